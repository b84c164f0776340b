//! One part's Parquet file as record batches, decoded here or ahead of the reader in a thread.
//!
//! Parquet readers panic on some damaged files (31 of 34 335 damaged ones did, parquet 60.1), so every call into one
//! runs behind `catch_unwind`; hashes were verified before.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;

use crate::error::{Doing, Error, Result};
use crate::schema::{ROW_GROUP_ROWS, SCHEMA_KEY, SCHEMA_VERSION, Table};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;
/// A row group that claims more uncompressed bytes than this is refused.
const MAX_ROW_GROUP_BYTES: i64 = 4 << 30;
/// Parts with fewer rows are decoded where they are needed: a thread would cost more than it saves.
const AHEAD_ROWS: u64 = 8 * BATCH_ROWS as u64;
/// Batches that wait decoded.
const AHEAD_BATCHES: usize = 4;
/// Parts of one table that are decoded ahead at a time.
const AHEAD_PARTS: usize = 2;

/// Where a part's batches come from.
pub(super) enum Batches {
    /// Decoded when asked for.
    Here(Box<ParquetRecordBatchReader>),
    /// Decoded in a thread, which ends when this is dropped.
    Ahead(Receiver<Decoded>),
}

/// A batch, `None` at the end, or why there is none.
type Decoded = std::result::Result<Option<RecordBatch>, String>;

impl Batches {
    /// The next batch.
    pub(super) fn next(&mut self) -> Decoded {
        match self {
            Batches::Here(reader) => decode(reader),
            Batches::Ahead(batches) => batches.recv().unwrap_or_else(|_| Err(GAVE_UP.to_owned())),
        }
    }
}

const GAVE_UP: &str = "the Parquet reader gave up";

fn decode(reader: &mut ParquetRecordBatchReader) -> Decoded {
    match catch_unwind(AssertUnwindSafe(|| reader.next())) {
        Ok(batch) => batch.transpose().map_err(|e| e.to_string()),
        Err(_) => Err(GAVE_UP.to_owned()),
    }
}

/// A part to be decoded.
pub(super) struct Decoding<'a> {
    pub(super) path: &'a Path,
    /// Rows that the manifest promises.
    pub(super) rows: u64,
}

impl Decoding<'_> {
    /// Opens the file; of its columns the wanted ones (`None`: all). `ahead` counts the threads.
    pub(super) fn open<T: Table>(&self, wanted: Option<&[&str]>, ahead: &Arc<()>) -> Result<Batches> {
        let mut reader = Box::new(self.reader::<T>(wanted)?);
        if self.rows < AHEAD_ROWS || Arc::strong_count(ahead) > AHEAD_PARTS {
            return Ok(Batches::Here(reader));
        }
        let (sender, receiver) = sync_channel(AHEAD_BATCHES);
        let counted = Arc::clone(ahead);
        let thread = std::thread::Builder::new().name("decode".to_owned()).spawn(move || {
            let _counted = counted;
            loop {
                let decoded = decode(&mut reader);
                let last = !matches!(decoded, Ok(Some(_)));
                // Nobody listens any more: the reader was dropped.
                if sender.send(decoded).is_err() || last {
                    return;
                }
            }
        });
        match thread {
            Ok(_) => Ok(Batches::Ahead(receiver)),
            // No thread to be had: as for small parts.
            Err(_) => Ok(Batches::Here(Box::new(self.reader::<T>(wanted)?))),
        }
    }

    /// Opens the file and checks that it is what the table's schema says before any row is decoded.
    fn reader<T: Table>(&self, wanted: Option<&[&str]>) -> Result<ParquetRecordBatchReader> {
        let file = File::open(self.path).map_err(|e| Error::io(self.path, Doing::Reading, e))?;
        let stored =
            guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())).map_err(|why| self.damaged(why))?;
        let meta = stored.metadata();
        let key_values = meta.file_metadata().key_value_metadata();
        let version =
            key_values.into_iter().flatten().find(|kv| kv.key == SCHEMA_KEY).and_then(|kv| kv.value.as_deref());
        if version.and_then(|v| v.parse::<u32>().ok()).is_none_or(|v| v > SCHEMA_VERSION) {
            return Err(self.damaged("its schema version is missing or newer"));
        }
        let schema = T::schema();
        let same = stored.schema().fields().len() == schema.fields().len()
            && stored.schema().fields().iter().zip(schema.fields()).all(|(a, b)| {
                a.name() == b.name() && a.data_type() == b.data_type() && a.is_nullable() <= b.is_nullable()
            });
        if !same {
            return Err(self.damaged(format!("its columns are not those of table {}", T::NAME)));
        }
        let oversized = |g: &RowGroupMetaData| {
            g.num_rows() > ROW_GROUP_ROWS as i64 || !(0..=MAX_ROW_GROUP_BYTES).contains(&g.total_byte_size())
        };
        if meta.row_groups().iter().any(oversized) || u64::try_from(meta.file_metadata().num_rows()) != Ok(self.rows) {
            return Err(self.damaged("its row groups are not as this program writes them"));
        }
        guarded(|| {
            // A column that may be null now may have been written when it could not.
            let fields = T::read_schema()
                .fields()
                .iter()
                .zip(stored.schema().fields())
                .map(|(field, stored)| Field::clone(field).with_nullable(stored.is_nullable()))
                .collect::<Vec<_>>();
            let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
            let read = ArrowReaderMetadata::try_new(Arc::clone(meta), options)?;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, read).with_batch_size(BATCH_ROWS);
            match wanted {
                None => builder.build(),
                Some(wanted) => {
                    let mask = ProjectionMask::columns(builder.parquet_schema(), wanted.iter().copied());
                    builder.with_projection(mask).build()
                }
            }
        })
        .map_err(|why| self.damaged(why))
    }

    /// The error of a damaged part.
    pub(super) fn damaged(&self, why: impl ToString) -> Error {
        Error::Damaged { path: self.path.to_owned(), why: why.to_string() }
    }
}

fn guarded<T>(open: impl FnOnce() -> parquet::errors::Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(|e| e.to_string()),
        Err(_) => Err(GAVE_UP.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::BlockRow;
    use crate::schema::{Blocks, RowBuilder, RowView};
    use arrow::array::Array as _;
    use parquet::arrow::ArrowWriter;

    #[test]
    fn a_column_that_could_not_be_null_when_it_was_written_is_read() {
        let mut builder = <Blocks as Table>::Builder::with_capacity(1);
        builder.push(&BlockRow { time_ns: 5, dev: Some(8 << 20), action: "Q", rwbs: "R", ..BlockRow::default() });
        let batch = builder.finish().unwrap();
        let strict = |f: &std::sync::Arc<Field>| Field::clone(f).with_nullable(f.is_nullable() && f.name() != "dev");
        let schema = Arc::new(Schema::new(batch.schema().fields().iter().map(strict).collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).unwrap();
        assert_eq!(batch.column(1).null_count(), 0);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part.parquet");
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), schema, Some(Blocks::writer_properties())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut batches = Decoding { path: &path, rows: 1 }.open::<Blocks>(None, &Arc::new(())).unwrap();
        let read = batches.next().unwrap().unwrap();
        let view = <Blocks as Table>::View::new(&read, None).unwrap();
        assert_eq!((view.row(0).dev, view.row(0).action), (Some(8 << 20), "Q"));
    }
}
