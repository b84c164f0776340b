//! One Parquet file being written: batches in, bounded memory, a hash of the bytes out.

use super::error::{Result, ResultError};
use super::tables::Columns;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use kreplay_traces::encode::TableEncoder;
use kreplay_traces::hashing::{HashingWriter, WriteFault};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Rows collected before they are encoded.
const BATCH_ROWS: usize = 16 * 1024;
/// Batches that may wait for the encoder.
const BATCHES_WAITING: usize = 2;
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
    encoder: Encoder,
    rows: u64,
}

/// Where batches become bytes: here, or once there are many, in a thread beside the simulation. The bytes are the same.
enum Encoder {
    Here(Box<Encoding>),
    There(SyncSender<RecordBatch>, JoinHandle<Result<Box<Encoding>>>),
    /// An error ended it.
    Gone,
}

/// What makes the bytes.
struct Encoding {
    path: PathBuf,
    table: TableEncoder<Sink>,
    fault: WriteFault,
}

type Sink = HashingWriter<BufWriter<File>>;

impl Encoding {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.table.write(batch).map_err(|e| encode(&self.path, &self.fault, e))
    }

    /// Encodes batches as they come, until there are no more.
    fn follow(mut self: Box<Self>, batches: &Receiver<RecordBatch>) -> Result<Box<Self>> {
        for batch in batches {
            self.write(&batch)?;
        }
        Ok(self)
    }
}

impl<C: Columns> TableFile<C> {
    pub(super) fn create(dir: &Path) -> Result<Self> {
        let path = dir.join(format!("{}.parquet", C::NAME));
        let file = File::create_new(&path).map_err(|e| ResultError::io("create", &path, e))?;
        let sink = HashingWriter::new(BufWriter::with_capacity(256 * 1024, file));
        let fault = sink.fault();
        let table =
            TableEncoder::new(sink, C::schema(), properties(&C::schema())).map_err(|e| encode(&path, &fault, e))?;
        let encoder = Encoder::Here(Box::new(Encoding { path: path.clone(), table, fault }));
        Ok(Self { path, columns: C::default(), encoder, rows: 0 })
    }

    /// The columns to push a row into; call [`TableFile::pushed`] after it.
    pub(super) fn columns(&mut self) -> &mut C {
        &mut self.columns
    }

    /// Encodes what has collected, if it is enough.
    pub(super) fn pushed(&mut self) -> Result<()> {
        if self.columns.rows() < BATCH_ROWS {
            return Ok(());
        }
        self.encoder = match std::mem::replace(&mut self.encoder, Encoder::Gone) {
            Encoder::Here(encoding) => self.beside(encoding)?,
            there => there,
        };
        let batch = self.batch()?;
        let sent = match &self.encoder {
            Encoder::There(batches, _) => batches.send(batch).is_ok(),
            _ => false,
        };
        // Only an error ends the thread before its batches do.
        if sent { Ok(()) } else { self.encoding().map(|_| ()) }
    }

    /// Goes on in a thread.
    fn beside(&self, encoding: Box<Encoding>) -> Result<Encoder> {
        let (sender, receiver) = sync_channel(BATCHES_WAITING);
        let thread = std::thread::Builder::new()
            .name(C::NAME.to_owned())
            .spawn(move || encoding.follow(&receiver))
            .map_err(|e| ResultError::io("start a thread for", &self.path, e))?;
        Ok(Encoder::There(sender, thread))
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        self.rows += self.columns.rows() as u64;
        self.columns.batch().map_err(|e| ResultError::Encode { path: self.path.clone(), why: e.to_string() })
    }

    /// The encoder, when it has done what was asked of it so far.
    fn encoding(&mut self) -> Result<Box<Encoding>> {
        match std::mem::replace(&mut self.encoder, Encoder::Gone) {
            Encoder::Here(encoding) => Ok(encoding),
            Encoder::There(batches, thread) => {
                drop(batches);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Encoder::Gone => {
                Err(ResultError::Encode { path: self.path.clone(), why: "an earlier error ended it".to_owned() })
            }
        }
    }

    /// Writes the rest and syncs the file.
    pub(super) fn finish(mut self) -> Result<TableInfo> {
        let batch = self.batch()?;
        let mut encoding = self.encoding()?;
        encoding.write(&batch)?;
        let Encoding { path, table, fault } = *encoding;
        let sink = table.finish().map_err(|e| encode(&path, &fault, e))?;
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
        .set_created_by("kreplay".to_owned())
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields().iter().filter(|f| f.data_type() == &DataType::Int64) {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties.set_column_encoding(column, parquet::basic::Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

fn encode(path: &Path, fault: &WriteFault, e: parquet::errors::ParquetError) -> ResultError {
    match fault.behind(e) {
        Ok(io) => ResultError::io("write", path, io),
        Err(other) => ResultError::Encode { path: path.to_owned(), why: other.to_string() },
    }
}
