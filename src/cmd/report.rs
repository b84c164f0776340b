//! `kreplay report`.

use crate::args::{Cli, ReportArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::pipeline::{analyse_with, check_kind, check_name, to_bytes, to_file_as, to_terminal};
use crate::{outfile, stdout};
use kreplay_analysis::Options;
use kreplay_reports::Detail;

pub(crate) fn run(cli: &Cli, args: &ReportArgs) -> Result<Exit> {
    match &args.kind {
        Some(kind) => check_name(kind)?,
        None => args.output.iter().try_for_each(|path| check_kind(path))?,
    }
    let options = Options {
        reference: args.reference.clone(),
        trace_dir: args.trace.clone(),
        pareto: args.pareto.clone(),
        ..Options::default()
    };
    args.output.iter().try_for_each(|path| outfile::check_run(path, &args.results))?;
    let report = analyse_with(&args.results, &options)?;
    for path in &args.output {
        to_file_as(&report, path, args.kind.as_deref(), args.chart.as_deref())?;
    }
    if cli.json {
        stdout::print_json(&serde_json::json!(report))?;
    } else if args.output.is_empty() {
        match &args.kind {
            Some(kind) => stdout::print_bytes(&to_bytes(&report, kind, args.chart.as_deref())?)?,
            None => stdout::print_rendered(&to_terminal(&report, Detail::Full)?)?,
        }
    }
    Ok(Exit::Ok)
}
