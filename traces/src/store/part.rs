//! One Parquet file being written: hashed on the way, published by rename.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;

use super::manifest::PartInfo;
use crate::encode::TableEncoder;
use crate::error::{Doing, Error, Result};
use crate::hashing::{HashingWriter, WriteFault};
use crate::publish::AtomicFile;
use crate::schema::Table;

/// A part of table `T`.
pub(super) struct PartWriter {
    table: &'static str,
    name: String,
    source: usize,
    rows: u64,
    span_ns: Option<(i64, i64)>,
    path: PathBuf,
    writer: TableEncoder<HashingWriter<AtomicFile>>,
    fault: WriteFault,
}

impl PartWriter {
    /// Begin part `number` of a table in `dir`.
    pub(super) fn create<T: Table>(dir: &Path, number: usize, source: usize) -> Result<Self> {
        let name = format!("{}/part-{number:05}.parquet", T::NAME);
        let path = dir.join(&name);
        crate::publish::create_dirs(crate::publish::parent_of(&path))?;
        let file = HashingWriter::new(AtomicFile::create(&path)?);
        let fault = file.fault();
        let writer = TableEncoder::new(file, T::schema(), T::writer_properties())
            .map_err(|e| parquet_error(&path, T::NAME, &fault, e))?;
        Ok(Self { table: T::NAME, name, source, rows: 0, span_ns: None, path, writer, fault })
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Append a batch whose first and last times are given.
    pub(super) fn write(&mut self, batch: &RecordBatch, span_ns: Option<(i64, i64)>) -> Result<()> {
        self.writer.write(batch).map_err(|e| parquet_error(&self.path, self.table, &self.fault, e))?;
        self.rows += batch.num_rows() as u64;
        self.span_ns = join(self.span_ns, span_ns);
        Ok(())
    }

    /// Finish the file and publish it.
    pub(super) fn finish(self) -> Result<PartInfo> {
        let done = self.writer.finish().map_err(|e| parquet_error(&self.path, self.table, &self.fault, e))?;
        let (file, bytes, blake3) = done.finish();
        file.commit()?;
        Ok(PartInfo {
            table: self.table.to_owned(),
            file: self.name,
            source: self.source,
            rows: self.rows,
            bytes,
            blake3,
            span_ns: self.span_ns,
        })
    }
}

/// The smallest span that holds both.
pub(super) fn join(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// Bring the I/O error inside a Parquet error back to the surface: a full disk must read as a full disk.
pub(super) fn parquet_error(
    path: &Path,
    table: &'static str,
    fault: &WriteFault,
    e: parquet::errors::ParquetError,
) -> Error {
    match fault.behind(e) {
        Ok(io) => Error::io(path, Doing::Writing, io),
        Err(other) => Error::Encode { table, why: other.to_string() },
    }
}
