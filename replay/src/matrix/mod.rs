//! The matrix: traces x variants x seeds, run in parallel, resumable, each cell on its own.
//!
//! A [`Plan`] lists cells; each has an id that hashes everything its result depends on. [`Runner::run`] simulates those
//! that are not there yet, writes their tables by rename, and lists them all in `manifest.json`. A cell that fails or
//! panics takes no other with it. The engine comes in as a [`Simulate`], so that this module knows nothing of it.

mod manifest;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use manifest::{CellOutcome, CellState, MANIFEST_FILE};
pub use plan::{CellSpec, Plan, TraceInput, code_version};
pub use run::{Ended, Failure, Outcome, Progress, Runner, Simulate};
