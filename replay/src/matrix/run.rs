//! Running a plan's cells.

use super::manifest::{self, CellOutcome, CellState};
use super::plan::{CellSpec, Plan};
use crate::block::IoRecord;
use crate::program::Program;
use crate::results::{
    CallRow, CellInfo, CellWriter, ClientRow, Counters, EventRow, EvictionRow, MarkRow, ResultError, ResultSink,
    SampleRow, TEMP_PREFIX,
};
use crate::variant::Variant;
use kreplay_traces::units::Nanos;
use rayon::prelude::*;
use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a simulation ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// All foreground tasks ended.
    pub finished: bool,
    /// Simulated time.
    pub elapsed: Nanos,
    /// Events processed.
    pub events: u64,
}

/// Why a simulation did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was told to stop.
    Interrupted,
    /// It could not go on, in words.
    Failed(String),
}

/// The engine, as the matrix sees it.
pub trait Simulate: Sync {
    /// Plays a program under a variant and pushes its rows; stops soon after `abort` is set.
    ///
    /// # Errors
    /// If the simulation cannot run or was told to stop.
    fn simulate(
        &self,
        program: &Program,
        variant: &Variant,
        seed: u64,
        sink: &mut dyn ResultSink,
        abort: &AtomicBool,
    ) -> Result<Ended, Failure>;
}

/// What a watcher of the run is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A cell begins (its number in the plan).
    Started(usize),
    /// A cell reached this simulated time.
    At(usize, Nanos),
    /// A cell ended.
    Ended(usize, &'a CellOutcome),
}

/// How to run.
pub struct Runner<'a> {
    /// Results folder; made if it is not there.
    pub dir: &'a Path,
    /// Threads; 0 = one a processor.
    pub threads: usize,
    /// Set: begin no further cell.
    pub drain: &'a AtomicBool,
    /// Set: stop running cells as well.
    pub abort: &'a AtomicBool,
    /// Told of progress, from many threads.
    pub watch: &'a (dyn Fn(Progress<'_>) + Sync),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Every cell in the plan's order.
    pub cells: Vec<CellOutcome>,
    /// Events of the cells simulated now.
    pub events: u64,
    /// The disk filled up.
    pub disk_full: bool,
}

impl Outcome {
    /// Cells in a state.
    pub fn count(&self, state: CellState) -> usize {
        self.cells.iter().filter(|c| c.state == state).count()
    }
}

struct Finished {
    outcome: CellOutcome,
    events: u64,
    disk_full: bool,
}

impl Runner<'_> {
    /// Runs every cell that has no verified result of the same id yet, and writes the manifest.
    ///
    /// # Errors
    /// If the results folder cannot be used at all. What goes wrong with one cell stands in its outcome.
    pub fn run(&self, plan: &Plan, command: &[String], engine: &dyn Simulate) -> Result<Outcome, ResultError> {
        fs::create_dir_all(self.dir).map_err(|e| ResultError::io("create", self.dir, e))?;
        let cells = plan.cells();
        remove_leftovers(self.dir, &cells)?;
        let waiting: Vec<CellOutcome> =
            cells.iter().map(|c| outcome(c, CellState::Skipped, Some("not run yet".to_owned()))).collect();
        manifest::write(self.dir, plan, command, &waiting)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build().map_err(|e| ResultError::Io {
            doing: "start threads for",
            path: self.dir.to_owned(),
            source: std::io::Error::other(e),
        })?;
        let finished: Vec<Finished> = pool.install(|| {
            cells
                .par_iter()
                .enumerate()
                .with_max_len(1)
                .map(|(number, cell)| {
                    let finished = self.cell(number, cell, engine);
                    (self.watch)(Progress::Ended(number, &finished.outcome));
                    finished
                })
                .collect()
        });
        let events = finished.iter().map(|f| f.events).sum();
        let disk_full = finished.iter().any(|f| f.disk_full);
        let cells: Vec<CellOutcome> = finished.into_iter().map(|f| f.outcome).collect();
        manifest::write(self.dir, plan, command, &cells)?;
        Ok(Outcome { cells, events, disk_full })
    }

    fn cell(&self, number: usize, cell: &CellSpec<'_>, engine: &dyn Simulate) -> Finished {
        let done = |reused| CellOutcome { reused, ..outcome(cell, CellState::Done, None) };
        let ended = |outcome| Finished { outcome, events: 0, disk_full: false };
        let id = cell.id();
        let target = self.dir.join(cell.path());
        if is_there(&target, &id) {
            return ended(done(true));
        }
        if self.drain.load(Ordering::Relaxed) || self.abort.load(Ordering::Relaxed) {
            return ended(outcome(cell, CellState::Skipped, Some("interrupted".to_owned())));
        }
        (self.watch)(Progress::Started(number));
        // A panic is a bug, but one cell's bug: the writer's folder is temporary, nothing else is shared.
        let result = catch_unwind(AssertUnwindSafe(|| self.simulate(number, cell, id, &target, engine)));
        match result {
            Ok(Ok(end)) => Finished { events: end.events, ..ended(done(false)) },
            Ok(Err(CellError::Interrupted)) => ended(outcome(cell, CellState::Skipped, Some("interrupted".to_owned()))),
            Ok(Err(CellError::Failed(why))) => ended(outcome(cell, CellState::Failed, Some(why))),
            Ok(Err(CellError::Output(error))) => Finished {
                disk_full: error.is_disk_full(),
                ..ended(outcome(cell, CellState::Failed, Some(error.to_string())))
            },
            Err(panic) => {
                let why = format!("the simulator panicked, which is a bug: {}", message(panic.as_ref()));
                ended(outcome(cell, CellState::Failed, Some(why)))
            }
        }
    }

    fn simulate(
        &self,
        number: usize,
        cell: &CellSpec<'_>,
        id: String,
        target: &Path,
        engine: &dyn Simulate,
    ) -> Result<Ended, CellError> {
        let program = &cell.trace.program;
        let mut sink = Watched {
            writer: CellWriter::create(target, program)?,
            totals_only: cell.totals_only(),
            number,
            watch: self.watch,
        };
        let end = engine.simulate(program, cell.variant, cell.seed, &mut sink, self.abort);
        // A full disk makes the engine stop early; the disk is then the reason to tell.
        if let Some(error) = sink.writer.take_error() {
            return Err(error.into());
        }
        let end = end.map_err(|f| match f {
            Failure::Interrupted => CellError::Interrupted,
            Failure::Failed(why) => CellError::Failed(why),
        })?;
        sink.writer.finish(cell.header(id), end.finished)?;
        Ok(end)
    }
}

enum CellError {
    Interrupted,
    Failed(String),
    Output(ResultError),
}

impl From<ResultError> for CellError {
    fn from(e: ResultError) -> Self {
        Self::Output(e)
    }
}

fn outcome(cell: &CellSpec<'_>, state: CellState, why: Option<String>) -> CellOutcome {
    CellOutcome {
        path: cell.path().display().to_string(),
        trace: cell.trace.program.trace_id.clone(),
        variant: cell.variant.name.clone(),
        seed: cell.seed,
        state,
        why,
        reused: false,
    }
}

/// The folder holds this very cell, unharmed.
fn is_there(target: &Path, id: &str) -> bool {
    target.is_dir() && CellInfo::read(target).is_ok_and(|info| info.header.id == id && info.verify(target).is_ok())
}

/// Removes what killed runs left beside the cells of this plan. The caller holds the output folder's lock, so none of
/// it is in use.
fn remove_leftovers(dir: &Path, cells: &[CellSpec<'_>]) -> Result<(), ResultError> {
    let mut folders: Vec<_> = cells.iter().filter_map(|c| dir.join(c.path()).parent().map(Path::to_owned)).collect();
    folders.push(dir.to_owned());
    folders.sort();
    folders.dedup();
    for folder in folders.iter().filter(|f| f.is_dir()) {
        let entries = fs::read_dir(folder).map_err(|e| ResultError::io("read", folder, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| ResultError::io("read", folder, e))?;
            if entry.file_name().as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
                let path = entry.path();
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                removed.map_err(|e| ResultError::io("remove", &path, e))?;
            }
        }
    }
    Ok(())
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Passes rows on and tells the watcher of each simulated second.
struct Watched<'a, 'p> {
    writer: CellWriter<'p>,
    totals_only: bool,
    number: usize,
    watch: &'a (dyn Fn(Progress<'_>) + Sync),
}

impl ResultSink for Watched<'_, '_> {
    fn io(&mut self, row: &IoRecord) {
        if !self.totals_only {
            self.writer.io(row);
        }
    }
    fn call(&mut self, row: &CallRow) {
        if !self.totals_only {
            self.writer.call(row);
        }
    }
    fn sample(&mut self, row: &SampleRow) {
        (self.watch)(Progress::At(self.number, row.time));
        self.writer.sample(row);
    }
    fn mark(&mut self, row: &MarkRow) {
        self.writer.mark(row);
    }
    fn event(&mut self, row: &EventRow) {
        self.writer.event(row);
    }
    fn evicted(&mut self, row: &EvictionRow) {
        self.writer.evicted(row);
    }
    fn client(&mut self, row: &ClientRow) {
        self.writer.client(row);
    }
    fn counters(&mut self, counters: &Counters) {
        self.writer.counters(counters);
    }
    fn wants_each(&self) -> bool {
        !self.totals_only
    }
    fn failed(&self) -> bool {
        self.writer.failed()
    }
}
