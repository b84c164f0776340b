//! The pages of one column in one row group: compressed where that pays, with the metadata that Parquet wants.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// zstd's level: the fastest of the ordinary ones.
const ZSTD_LEVEL: i32 = 1;
/// Bytes of pages that decide whether compressing the column pays: it does if it saves more than a quarter.
const TRIAL_BYTES: usize = 64 * 1024;

/// A data page that waits, as it is and compressed.
struct Waiting {
    body: Vec<u8>,
    compressed: Bytes,
    values: u32,
    encoding: Encoding,
}

/// A column chunk being made.
#[derive(Default)]
pub(super) struct Chunk {
    /// Pages that wait until it is known whether they are worth compressing.
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    compressed: Option<bool>,
    pages: Vec<u8>,
    uncompressed_bytes: usize,
    values: u64,
    encodings: Vec<Encoding>,
}

/// zstd and its buffer, shared by the columns of a file.
pub(super) struct Zstd {
    context: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
}

impl Zstd {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { context: zstd::bulk::Compressor::new(ZSTD_LEVEL)?, buffer: Vec::new() })
    }

    fn compress(&mut self, bytes: &[u8]) -> Result<&[u8]> {
        self.buffer.clear();
        self.buffer.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.context.compress_to_buffer(bytes, &mut self.buffer)?;
        Ok(&self.buffer)
    }
}

impl Chunk {
    /// Add a data page of `values` rows (those without a value included).
    pub(super) fn page(&mut self, body: Vec<u8>, values: usize, encoding: Encoding, zstd: &mut Zstd) -> Result<()> {
        self.values += values as u64;
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let values = values as u32;
        match self.compressed {
            Some(true) => {
                let compressed = Bytes::copy_from_slice(zstd.compress(&body)?);
                self.push(compressed, body.len(), values, encoding)
            }
            Some(false) => {
                let length = body.len();
                self.push(body.into(), length, values, encoding)
            }
            None => {
                let compressed = Bytes::copy_from_slice(zstd.compress(&body)?);
                self.waiting_bytes += body.len();
                self.waiting.push(Waiting { body, compressed, values, encoding });
                if self.waiting_bytes >= TRIAL_BYTES { self.settle() } else { Ok(()) }
            }
        }
    }

    /// Decide whether to compress, by the pages that wait, and write them.
    fn settle(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let small: usize = waiting.iter().map(|w| w.compressed.len()).sum();
        let compressed = *self.compressed.get_or_insert(small * 4 < self.waiting_bytes * 3);
        for page in waiting {
            let length = page.body.len();
            let body = if compressed { page.compressed } else { page.body.into() };
            self.push(body, length, page.values, page.encoding)?;
        }
        Ok(())
    }

    fn push(&mut self, body: Bytes, uncompressed: usize, values: u32, encoding: Encoding) -> Result<()> {
        let page = Page::DataPage {
            buf: body,
            num_values: values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.uncompressed_bytes += push_page(&mut self.pages, page, uncompressed)?;
        Ok(())
    }

    /// The chunk's bytes and metadata; `dictionary` is its PLAIN bytes and the number of its values.
    pub(super) fn finish(
        mut self,
        descr: ColumnDescPtr,
        dictionary: Option<(&[u8], usize)>,
        statistics: Option<Statistics>,
        zstd: &mut Zstd,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        self.settle()?;
        let compressed = self.compressed == Some(true);
        let mut bytes = Vec::new();
        if let Some((plain, entries)) = dictionary {
            let body = if compressed { zstd.compress(plain)? } else { plain };
            let page = Page::DictionaryPage {
                buf: Bytes::copy_from_slice(body),
                num_values: entries as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            self.uncompressed_bytes += push_page(&mut bytes, page, plain.len())?;
            self.encodings.push(Encoding::PLAIN);
        }
        let data_offset = bytes.len() as i64;
        bytes.append(&mut self.pages);
        // That of the levels.
        self.encodings.push(Encoding::RLE);
        let codec =
            if compressed { Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?) } else { Compression::UNCOMPRESSED };
        let mut metadata = ColumnChunkMetaData::builder(descr)
            .set_encodings(self.encodings)
            .set_num_values(self.values as i64)
            .set_compression(codec)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed_bytes as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(dictionary.map(|_| 0));
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.values,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes.into(), close))
    }
}

/// Append a page and its header; gives the bytes of both before compression.
fn push_page(out: &mut Vec<u8>, page: Page, uncompressed: usize) -> Result<usize> {
    let mut sink = TrackedWrite::new(std::mem::take(out));
    let spec = SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, uncompressed))?;
    *out = sink.into_inner().map_err(|e| ParquetError::General(e.to_string()))?;
    Ok(spec.uncompressed_size)
}
