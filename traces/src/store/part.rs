//! One Parquet file being written: hashed on the way, published by rename.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;

use super::manifest::PartInfo;
use crate::error::{Doing, Error, Result};
use crate::publish::AtomicFile;
use crate::schema::Table;

/// Hashes and counts what passes through, and keeps the operating system's error (Parquet turns it into text).
struct HashingFile {
    file: AtomicFile,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Write for HashingFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buf)?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Batches that wait for the encoder at most: enough that parsing and encoding do not wait for each other, few enough
/// that memory stays small.
const QUEUE_BATCHES: usize = 2;

/// A part of table `T`. Encoding and compressing take as long as parsing: they run in a thread of their own, batch by
/// batch in the order of writing, so that the file does not depend on it.
pub(super) struct PartWriter {
    table: &'static str,
    name: String,
    source: usize,
    rows: u64,
    span_ns: Option<(i64, i64)>,
    queue: SyncSender<RecordBatch>,
    // After the queue, so that a part that is dropped closes the queue before it waits for the thread.
    encoder: Encoder,
}

/// The encoder's thread. It is waited for in any case: a part that is given up leaves no file and no thread behind.
struct Encoder(Option<JoinHandle<Result<Hashed>>>);

impl Encoder {
    fn wait(&mut self, table: &'static str) -> Result<Hashed> {
        let died = || Err(Error::Encode { table, why: "the encoder panicked".to_owned() });
        self.0.take().and_then(|thread| thread.join().ok()).unwrap_or_else(died)
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // What it has to say is of no interest any more.
            let _ = thread.join();
        }
    }
}

/// A finished file: not yet visible under its name.
struct Hashed {
    file: AtomicFile,
    blake3: String,
    bytes: u64,
}

impl PartWriter {
    /// Begin part `number` of a table in `dir`.
    pub(super) fn create<T: Table>(dir: &Path, number: usize, source: usize) -> Result<Self> {
        let name = format!("{}/part-{number:05}.parquet", T::NAME);
        let path = dir.join(&name);
        crate::publish::create_dirs(crate::publish::parent_of(&path))?;
        let file = HashingFile { file: AtomicFile::create(&path)?, hasher: blake3::Hasher::new(), bytes: 0 };
        let writer =
            ArrowWriter::try_new(file, T::schema(), Some(T::writer_properties())).map_err(|e| encode(T::NAME, &e))?;
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let encoder = std::thread::Builder::new()
            .name(format!("encode {}", T::NAME))
            .spawn(move || encode_all(writer, batches, T::NAME))
            .map_err(|e| Error::io(path, Doing::Writing, e))?;
        Ok(Self { table: T::NAME, name, source, rows: 0, span_ns: None, queue, encoder: Encoder(Some(encoder)) })
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Append a batch whose first and last times are given. An error of the encoder is told by
    /// [`PartWriter::finish`]; until then `false` says that there is one.
    pub(super) fn write(&mut self, batch: RecordBatch, span_ns: Option<(i64, i64)>) -> bool {
        self.rows += batch.num_rows() as u64;
        self.span_ns = join(self.span_ns, span_ns);
        self.queue.send(batch).is_ok()
    }

    /// Finish the file and publish it.
    pub(super) fn finish(mut self) -> Result<PartInfo> {
        drop(self.queue);
        let done = self.encoder.wait(self.table)?;
        done.file.commit()?;
        Ok(PartInfo {
            table: self.table.to_owned(),
            file: self.name,
            source: self.source,
            rows: self.rows,
            bytes: done.bytes,
            blake3: done.blake3,
            span_ns: self.span_ns,
        })
    }
}

/// The encoder's thread.
fn encode_all(
    mut writer: ArrowWriter<HashingFile>,
    batches: Receiver<RecordBatch>,
    table: &'static str,
) -> Result<Hashed> {
    let path = writer.inner().file.target().to_path_buf();
    for batch in batches {
        writer.write(&batch).map_err(|e| parquet_error(&path, table, e))?;
    }
    let HashingFile { file, hasher, bytes } = writer.into_inner().map_err(|e| parquet_error(&path, table, e))?;
    Ok(Hashed { file, blake3: hasher.finalize().to_hex().to_string(), bytes })
}

/// The smallest span that holds both.
pub(super) fn join(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

fn encode(table: &'static str, e: &dyn std::error::Error) -> Error {
    Error::Encode { table, why: e.to_string() }
}

/// Bring the I/O error inside a Parquet error back to the surface: a full disk must read as a full disk.
pub(super) fn parquet_error(path: &Path, table: &'static str, e: parquet::errors::ParquetError) -> Error {
    use parquet::errors::ParquetError;
    let source = match e {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => return Error::io(path, Doing::Writing, *io),
            Err(other) => ParquetError::External(other),
        },
        other => other,
    };
    encode(table, &source)
}
