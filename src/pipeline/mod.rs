//! The steps that subcommands share: logs to trace, trace to program, programs to results, results to reports.

mod logs;
mod matrix;
mod report;

pub(crate) use logs::{Existing, Ingest, explain_ingest, ingest, ingest_options};
pub(crate) use matrix::{load, load_all, plan, simulate};
pub(crate) use report::{analyse, check_kind, to_file, to_terminal};
