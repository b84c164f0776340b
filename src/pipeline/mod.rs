//! The steps that subcommands share: logs to trace, trace to program, programs to results, results to reports.

mod logs;
mod matrix;
mod report;

pub(crate) use logs::{Existing, Ingest, explain_ingest, ingest, ingest_options};
pub(crate) use matrix::{load, load_all, plan, simulate, simulate_closed};
pub(crate) use report::{
    analyse, analyse_with, check_kind, check_name, explain as explain_report, explain_analysis, to_bytes, to_file,
    to_file_as, to_terminal,
};
