//! The sink that writes a cell's folder: temporary name, tables, `cell.json`, rename.

use super::cell::{CellHeader, CellInfo};
use super::error::{Result, ResultError};
use super::table_file::TableFile;
use super::tables::{Calls, Clients, Columns, CounterRows, Events, Evictions, Ios, Marks, Samples};
use super::{CallRow, ClientRow, Counters, EventRow, EvictionRow, MarkRow, ResultSink, SampleRow};
use crate::block::IoRecord;
use crate::program::Program;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Beginning of the names of folders that are not complete.
pub const TEMP_PREFIX: &str = ".tmp-";

/// Writes the tables of one cell; the folder gets its name when [`CellWriter::finish`] succeeds, and is removed
/// otherwise.
pub struct CellWriter<'p> {
    program: &'p Program,
    dir: tempfile::TempDir,
    target: PathBuf,
    io: TableFile<Ios>,
    calls: TableFile<Calls>,
    samples: TableFile<Samples>,
    clients: TableFile<Clients>,
    counters: TableFile<CounterRows>,
    marks: TableFile<Marks>,
    events: TableFile<Events>,
    evictions: TableFile<Evictions>,
    error: Option<ResultError>,
}

impl<'p> CellWriter<'p> {
    /// Begins the folder `target`; its parents are made.
    ///
    /// # Errors
    /// If a folder or a table cannot be created.
    pub fn create(target: &Path, program: &'p Program) -> Result<Self> {
        let parent = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|e| ResultError::io("create", parent, e))?;
        let dir = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempdir_in(parent)
            .map_err(|e| ResultError::io("write in", parent, e))?;
        let path = dir.path();
        Ok(Self {
            program,
            io: TableFile::create(path)?,
            calls: TableFile::create(path)?,
            samples: TableFile::create(path)?,
            clients: TableFile::create(path)?,
            counters: TableFile::create(path)?,
            marks: TableFile::create(path)?,
            events: TableFile::create(path)?,
            evictions: TableFile::create(path)?,
            dir,
            target: target.to_owned(),
            error: None,
        })
    }

    /// The first error that a row met, if any.
    pub fn take_error(&mut self) -> Option<ResultError> {
        self.error.take()
    }

    /// Closes the tables, writes `cell.json` and gives the folder its name; an older folder of that name goes.
    ///
    /// # Errors
    /// If anything could not be written; then nothing stays under the final name that was not there before.
    pub fn finish(mut self, header: CellHeader, finished: bool) -> Result<CellInfo> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let tables = [
            (Ios::NAME, self.io.finish()?),
            (Calls::NAME, self.calls.finish()?),
            (Samples::NAME, self.samples.finish()?),
            (Clients::NAME, self.clients.finish()?),
            (CounterRows::NAME, self.counters.finish()?),
            (Marks::NAME, self.marks.finish()?),
            (Events::NAME, self.events.finish()?),
            (Evictions::NAME, self.evictions.finish()?),
        ];
        let tables = tables.into_iter().map(|(name, info)| (name.to_owned(), info)).collect();
        let info = CellInfo::new(header, self.program, tables, finished);
        info.write(self.dir.path())?;
        publish(self.dir, &self.target)?;
        Ok(info)
    }

    fn keep<T>(&mut self, outcome: Result<T>) {
        if let Err(error) = outcome {
            self.error.get_or_insert(error);
        }
    }
}

macro_rules! push {
    ($self:ident, $table:ident, $($argument:expr),+) => {
        if $self.error.is_none() {
            $self.$table.columns().push($($argument),+);
            let outcome = $self.$table.pushed();
            $self.keep(outcome);
        }
    };
}

impl ResultSink for CellWriter<'_> {
    fn io(&mut self, row: &IoRecord) {
        push!(self, io, row);
    }
    fn call(&mut self, row: &CallRow) {
        push!(self, calls, row, &self.program.files);
    }
    fn sample(&mut self, row: &SampleRow) {
        push!(self, samples, row);
    }
    fn mark(&mut self, row: &MarkRow) {
        push!(self, marks, row, &self.program.marks);
    }
    fn event(&mut self, row: &EventRow) {
        push!(self, events, row);
    }
    fn evicted(&mut self, row: &EvictionRow) {
        push!(self, evictions, row, &self.program.files);
    }
    fn client(&mut self, row: &ClientRow) {
        push!(self, clients, row, &self.program.tasks);
    }
    fn counters(&mut self, counters: &Counters) {
        push!(self, counters, counters);
    }
    fn failed(&self) -> bool {
        self.error.is_some()
    }
}

/// Renames a complete folder into place.
fn publish(dir: tempfile::TempDir, target: &Path) -> Result<()> {
    sync_folder(dir.path())?;
    if target.exists() {
        // An older result of the same cell (another code version, or damaged): out of the way first, by rename.
        let parent = target.parent().unwrap_or(Path::new("."));
        let old = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .tempdir_in(parent)
            .map_err(|e| ResultError::io("write in", parent, e))?;
        fs::rename(target, old.path().join("old")).map_err(|e| ResultError::io("replace", target, e))?;
    }
    fs::rename(dir.path(), target).map_err(|e| ResultError::io("write", target, e))?;
    // Renamed away: there is nothing left for the guard to remove.
    let _ = dir.keep();
    sync_folder(target.parent().unwrap_or(Path::new(".")))
}

fn sync_folder(path: &Path) -> Result<()> {
    match File::open(path).and_then(|f| f.sync_all()) {
        // Some file systems cannot sync a folder; there renames are as durable as they get.
        Err(e) if matches!(e.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(|e| ResultError::io("sync", path, e)),
    }
}
