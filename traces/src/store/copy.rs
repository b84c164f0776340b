//! The tables of a trace as plain Parquet files, for notebooks: one file a table, times since the start of the trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;

use super::buffer::BATCH_TEXT_BYTES;
use super::dir::TraceDir;
use super::part::parquet_error;
use crate::encode::TableEncoder;
use crate::error::{Doing, Error, Result};
use crate::hashing::HashingWriter;
use crate::publish::{AtomicFile, create_dirs};
use crate::schema::{Blocks, Counters, Faults, Files, Processes, Rejects, RowBuilder, Syscalls, Table, Vmstats};

/// Rows encoded at a time.
const BATCH_ROWS: usize = 64 * 1024;

/// Write every table that has rows to `dir/TABLE.parquet`; gives the files and their rows, in the order of the tables.
/// The directory is made if need be; files of these names are replaced, others are left alone.
///
/// # Errors
/// If the trace is damaged or the directory cannot be written.
pub fn copy_tables(trace: &TraceDir, dir: &Path) -> Result<Vec<(PathBuf, u64)>> {
    create_dirs(dir)?;
    let mut written = Vec::new();
    table::<Syscalls>(trace, dir, &mut written)?;
    table::<Blocks>(trace, dir, &mut written)?;
    table::<Vmstats>(trace, dir, &mut written)?;
    table::<Faults>(trace, dir, &mut written)?;
    table::<Processes>(trace, dir, &mut written)?;
    table::<Files>(trace, dir, &mut written)?;
    table::<Counters>(trace, dir, &mut written)?;
    table::<Rejects>(trace, dir, &mut written)?;
    Ok(written)
}

fn table<T: Table>(trace: &TraceDir, dir: &Path, written: &mut Vec<(PathBuf, u64)>) -> Result<()> {
    let mut rows = trace.rows::<T>()?;
    if rows.is_empty() {
        return Ok(());
    }
    let path = dir.join(format!("{}.parquet", T::NAME));
    if fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir()) {
        return Err(Error::io(&path, Doing::Writing, io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let file = HashingWriter::new(AtomicFile::create(&path)?);
    let fault = file.fault();
    let fail = |e| parquet_error(&path, T::NAME, &fault, e);
    let mut writer = TableEncoder::new(file, T::schema(), T::writer_properties()).map_err(fail)?;
    let mut builder = T::Builder::with_capacity(0);
    let (mut pending, mut total) = (0, 0);
    let mut flush = |builder: &mut T::Builder| -> Result<()> {
        let batch: RecordBatch = builder.finish().map_err(|e| Error::Encode { table: T::NAME, why: e.to_string() })?;
        writer.write(&batch).map_err(fail)
    };
    while let Some(row) = rows.next()? {
        builder.push(&row);
        pending += 1;
        total += 1;
        if pending == BATCH_ROWS || builder.text_bytes() >= BATCH_TEXT_BYTES {
            flush(&mut builder)?;
            pending = 0;
        }
    }
    flush(&mut builder)?;
    let (file, _, _) = writer.finish().map_err(fail)?.finish();
    file.commit()?;
    written.push((path, total));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use crate::event::{EventSink, SyscallRow};
    use crate::store::{ClockKind, SourceFacts, SourceKey, TraceWriter, WriterOptions};

    #[test]
    fn tables_become_files_with_times_of_the_trace() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = TraceWriter::create(&dir.path().join("t"), WriterOptions::default()).unwrap();
        let key = SourceKey { path: "a".into(), format: "strace".into(), options: Default::default() };
        writer.begin_source(key, ClockKind::Realtime).unwrap();
        for (line, time_ns) in [(1, 1000), (2, 1007)] {
            writer.syscall(&SyscallRow { time_ns, tid: 1, call: "sync", line, ..SyscallRow::default() });
        }
        writer.finish_source(SourceFacts::default()).unwrap();
        let (path, _) = writer.finish().unwrap();
        let out = dir.path().join("out");
        let written = copy_tables(&TraceDir::open(path).unwrap(), &out).unwrap();
        assert_eq!(written, [(out.join("syscall.parquet"), 2)]);
        let file = File::open(&written[0].0).unwrap();
        let batch = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        let times = batch.column_by_name("time_ns").unwrap().as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(times, [0, 7]);
    }
}
