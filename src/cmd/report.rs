//! `kreplay report`.

use crate::args::{Cli, ReportArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::pipeline::{analyse_with, check_kind, check_name, to_bytes, to_file_as, to_terminal};
use crate::{outfile, stderr, stdout};
use kreplay_analysis::Options;
use kreplay_analysis::model::Report;
use kreplay_reports::{Detail, chart_ids};
use std::path::Path;

/// Instead of a chart's id: each chart into a file of its own.
const EACH: &str = "each";

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
        match args.chart.as_deref() {
            Some(EACH) => each_chart(cli, &report, path, args.kind.as_deref())?,
            chart => to_file_as(&report, path, args.kind.as_deref(), chart)?,
        }
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

/// A picture of each chart, `report-ID.png` beside what would be `report.png`.
fn each_chart(cli: &Cli, report: &Report, path: &Path, kind: Option<&str>) -> Result<()> {
    let stem = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    let ids = chart_ids(report);
    for id in &ids {
        to_file_as(report, &path.with_file_name(format!("{stem}-{id}{ending}")), kind, Some(id))?;
    }
    if !cli.quiet {
        let like = path.with_file_name(format!("{stem}-ID{ending}"));
        stderr::say(&format!("{} charts, each in a file {}: {}", ids.len(), like.display(), ids.join(", ")));
    }
    Ok(())
}
