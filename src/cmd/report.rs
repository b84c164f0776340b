//! `kreplay report`.

use crate::args::{Cli, ReportArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::pipeline::{analyse, check_kind, to_file, to_terminal};
use crate::stdout;
use kreplay_reports::Detail;

pub(crate) fn run(cli: &Cli, args: &ReportArgs) -> Result<Exit> {
    for path in &args.output {
        check_kind(path)?;
    }
    let report = analyse(&args.results, args.reference.as_deref(), args.trace.as_deref())?;
    for path in &args.output {
        to_file(&report, path)?;
    }
    if cli.json {
        stdout::print_json(&serde_json::json!(report))?;
    } else if args.output.is_empty() {
        stdout::print(&to_terminal(&report, Detail::Full)?)?;
    }
    Ok(Exit::Ok)
}
