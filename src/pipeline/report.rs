//! Results to reports.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use kreplay_analysis::model::Report;
use kreplay_analysis::{Error as AnalysisError, Options};
use kreplay_reports as reports;
use kreplay_traces::publish::write_atomically;
use std::path::Path;

/// Analyses an output folder.
pub(crate) fn analyse(results: &Path, reference: Option<&str>, trace: Option<&Path>) -> Result<Report> {
    let options = Options {
        reference: reference.map(str::to_owned),
        trace_dir: trace.map(Path::to_owned),
        ..Options::default()
    };
    kreplay_analysis::analyse(results, &options).map_err(|e| {
        let exit = if matches!(e, AnalysisError::NoReference { .. }) { Exit::Usage } else { Exit::Input };
        CliError::new(exit, e.to_string())
    })
}

/// The report as the terminal shows it.
pub(crate) fn to_terminal(report: &Report) -> String {
    reports::terminal(report)
}

/// Writes the report by rename, in the kind that the file's ending names.
pub(crate) fn to_file(report: &Report, path: &Path) -> Result<()> {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    let text = match ending.as_str() {
        "html" | "htm" => reports::html(report),
        "md" | "markdown" => reports::markdown(report),
        "json" => reports::json(report),
        "txt" => reports::terminal(report),
        other => {
            return Err(CliError::new(Exit::Usage, format!("{}: no report of kind \".{other}\"", path.display()))
                .help("use .html, .md, .json or .txt"));
        }
    };
    write_atomically(path, text.as_bytes())?;
    Ok(())
}
