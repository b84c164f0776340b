//! The steps that subcommands share: logs to trace, trace to program, programs to results, results to reports.

mod logs;
mod matrix;
mod report;

pub(crate) use logs::{Ingest, Existing, ingest};
pub(crate) use matrix::{load, plan, simulate};
pub(crate) use report::{analyse, to_file, to_terminal};
