//! Results of a simulation: the rows it produces, where they go, and how they become files.
//!
//! The engine knows [`ResultSink`] only. [`MemorySink`] keeps everything (tests, `prove`), [`CellWriter`] writes the
//! Parquet tables of docs/RESULTS.md with bounded memory.

mod cell;
mod error;
mod memory;
pub mod rows;
mod table_file;
mod tables;
#[cfg(test)]
mod tests;
mod vmstat;
mod writer;

pub use cell::{CELL_FILE, CellHeader, CellInfo, SCHEMA};
pub use error::ResultError;
pub use memory::MemorySink;
pub use rows::{
    Blame, CallOp, CallRow, Cause, ClientRow, Counters, EventKind, EventRow, EvictionRow, MarkRow, SampleRow,
};
pub use table_file::TableInfo;
pub use vmstat::VmStat;
pub use writer::{CellWriter, TEMP_PREFIX};

use crate::block::IoRecord;

/// Where the engine's rows go.
///
/// Methods cannot fail, so that the engine needs no error paths in its hot loops: a sink that does I/O remembers its
/// first error, ignores what follows, says so in [`ResultSink::failed`] and reports the error when it is finished.
pub trait ResultSink {
    /// A request was completed.
    fn io(&mut self, row: &IoRecord);
    /// An operation was finished.
    fn call(&mut self, row: &CallRow);
    /// A simulated second went by.
    fn sample(&mut self, row: &SampleRow);
    /// A mark was reached.
    fn mark(&mut self, row: &MarkRow);
    /// Something worth telling happened.
    fn event(&mut self, row: &EventRow);
    /// Reclaim threw pages of a file out.
    fn evicted(&mut self, row: &EvictionRow);
    /// A task's totals, once a task at the end of the run, in task order.
    fn client(&mut self, row: &ClientRow);
    /// The run's totals, once at the end.
    fn counters(&mut self, counters: &Counters);
    /// Whether rows of single requests and operations ([`ResultSink::io`], [`ResultSink::call`]) are kept; if not, an engine need not
    /// make them.
    fn wants_each(&self) -> bool {
        true
    }
    /// True once rows are being lost; the engine asks now and then and may stop early.
    fn failed(&self) -> bool {
        false
    }
}
