//! Results to reports.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::terminal;
use kreplay_analysis::model::Report;
use kreplay_analysis::{Error as AnalysisError, Options};
use kreplay_reports::{Detail, Error as ReportError, RenderOptions, render, renderer};
use kreplay_traces::publish::write_atomically;
use std::path::Path;

/// Analyses an output folder.
pub(crate) fn analyse(results: &Path, reference: Option<&str>, trace: Option<&Path>) -> Result<Report> {
    let options =
        Options { reference: reference.map(str::to_owned), trace_dir: trace.map(Path::to_owned), ..Options::default() };
    analyse_with(results, &options)
}

/// The same with all options.
pub(crate) fn analyse_with(results: &Path, options: &Options) -> Result<Report> {
    kreplay_analysis::analyse(results, options).map_err(explain_analysis)
}

/// What went wrong in the analysis, as the user sees it.
pub(crate) fn explain_analysis(e: AnalysisError) -> CliError {
    let exit = match e {
        AnalysisError::NoReference { .. } | AnalysisError::NoFigure { .. } => Exit::Usage,
        _ => Exit::Input,
    };
    CliError::new(exit, e.to_string()).help(e.hint())
}

/// The report as the terminal shows it: for [`crate::stdout::print_rendered`].
pub(crate) fn to_terminal(report: &Report, detail: Detail) -> Result<String> {
    let options =
        RenderOptions { detail, width: terminal::width(), color: terminal::color(), ..RenderOptions::default() };
    let bytes = render(report, "text", &options).map_err(explain)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The report in the kind of this name, for standard output.
pub(crate) fn to_bytes(report: &Report, kind: &str, chart: Option<&str>) -> Result<Vec<u8>> {
    let options =
        RenderOptions { width: terminal::width(), chart: chart.map(str::to_owned), ..RenderOptions::default() };
    render(report, kind, &options).map_err(explain)
}

/// Says at once whether there is a kind of this name.
pub(crate) fn check_name(kind: &str) -> Result<()> {
    renderer(kind).map(|_| ()).map_err(explain)
}

/// Says at once, before any work, whether a file's ending names a kind of report.
pub(crate) fn check_kind(path: &Path) -> Result<()> {
    renderer(ending(path)).map(|_| ()).map_err(explain)
}

/// Writes the report by rename, in the kind that the file's ending names.
pub(crate) fn to_file(report: &Report, path: &Path) -> Result<()> {
    to_file_as(report, path, None, None)
}

/// Writes the report by rename, in the kind of this name, or else that which the file's ending names; of pictures the charts of an
/// id, if one is given.
pub(crate) fn to_file_as(report: &Report, path: &Path, kind: Option<&str>, chart: Option<&str>) -> Result<()> {
    let options = RenderOptions { chart: chart.map(str::to_owned), ..RenderOptions::default() };
    let bytes = render(report, kind.unwrap_or_else(|| ending(path)), &options).map_err(explain)?;
    write_atomically(path, &bytes)?;
    Ok(())
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

/// What went wrong in rendering, as the user sees it.
pub(crate) fn explain(e: ReportError) -> CliError {
    let exit = match e {
        ReportError::UnknownKind { .. } | ReportError::NoChart { .. } | ReportError::Nothing { .. } => Exit::Usage,
        ReportError::Chart { .. } | ReportError::Json(_) => Exit::Internal,
    };
    CliError::new(exit, e.to_string()).help(e.hint())
}
