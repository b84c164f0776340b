//! One Parquet file being written: batches in, bounded memory, a hash of the bytes out.

use super::error::{Result, ResultError};
use super::tables::Columns;
use arrow::datatypes::{DataType, Schema};
use kreplay_traces::hashing::{HashingWriter, WriteFault};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Rows collected before they are encoded.
const BATCH_ROWS: usize = 16 * 1024;
/// Rows after which a row group goes to disk: the bound on memory, about 20 MB in the widest table.
const GROUP_ROWS: usize = 128 * 1024;

/// What a finished table is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TableInfo {
    /// Rows.
    pub rows: u64,
    /// blake3 of the file, hex.
    pub blake3: String,
}

/// A table on its way to `<dir>/<name>.parquet`.
pub(super) struct TableFile<C: Columns> {
    path: PathBuf,
    columns: C,
    writer: ArrowWriter<HashingWriter<BufWriter<File>>>,
    fault: WriteFault,
    rows: u64,
}

impl<C: Columns> TableFile<C> {
    pub(super) fn create(dir: &Path) -> Result<Self> {
        let path = dir.join(format!("{}.parquet", C::NAME));
        let file = File::create_new(&path).map_err(|e| ResultError::io("create", &path, e))?;
        let sink = HashingWriter::new(BufWriter::with_capacity(256 * 1024, file));
        let fault = sink.fault();
        let writer = ArrowWriter::try_new(sink, C::schema(), Some(properties(&C::schema())))
            .map_err(|e| encode(&path, &fault, e))?;
        Ok(Self { path, columns: C::default(), writer, fault, rows: 0 })
    }

    /// The columns to push a row into; call [`TableFile::pushed`] after it.
    pub(super) fn columns(&mut self) -> &mut C {
        &mut self.columns
    }

    /// Encodes what has collected, if it is enough.
    pub(super) fn pushed(&mut self) -> Result<()> {
        if self.columns.rows() >= BATCH_ROWS { self.encode() } else { Ok(()) }
    }

    fn encode(&mut self) -> Result<()> {
        self.rows += self.columns.rows() as u64;
        let batch =
            self.columns.batch().map_err(|e| ResultError::Encode { path: self.path.clone(), why: e.to_string() })?;
        self.writer.write(&batch).map_err(|e| encode(&self.path, &self.fault, e))
    }

    /// Writes the rest and syncs the file.
    pub(super) fn finish(mut self) -> Result<TableInfo> {
        self.encode()?;
        let path = self.path;
        let sink = self.writer.into_inner().map_err(|e| encode(&path, &self.fault, e))?;
        let (file, _, blake3) = sink.finish();
        let file = file.into_inner().map_err(|e| ResultError::io("write", &path, e.into_error()))?;
        file.sync_all().map_err(|e| ResultError::io("write", &path, e))?;
        Ok(TableInfo { rows: self.rows, blake3 })
    }
}

/// Everything that reaches the bytes is fixed here.
///
/// Numbers are packed as differences: times, places and durations hardly repeat, and to look each of them up in a dictionary
/// took longer than to simulate them.
fn properties(schema: &Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).expect("1 is a zstd level")))
        .set_created_by("kreplay".to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields().iter().filter(|f| f.data_type() == &DataType::Int64) {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

fn encode(path: &Path, fault: &WriteFault, e: parquet::errors::ParquetError) -> ResultError {
    match fault.behind(e) {
        Ok(io) => ResultError::io("write", path, io),
        Err(other) => ResultError::Encode { path: path.to_owned(), why: other.to_string() },
    }
}
