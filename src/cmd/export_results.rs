//! `kreplay export DIR --to perfetto|notebook`: results of a replay for other tools.

use crate::args::Cli;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::export_args::{ExportArgs, Target};
use crate::pipeline::{analyse, explain_analysis, explain_report};
use crate::{outfile, stderr, stdout};
use kreplay_analysis::timeline::{recorded, timeline};
use kreplay_reports::{notebook, trace_event};
use kreplay_traces::publish::AtomicFile;
use kreplay_traces::store::TraceDir;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(cli: &Cli, args: &ExportArgs) -> Result<Exit> {
    if TraceDir::is_trace(&args.trace) {
        outfile::check(&args.output, &TraceDir::open(&args.trace)?)?;
    } else {
        outfile::check_run(&args.output, &args.trace)?;
    }
    let (bytes, what) = match args.to {
        Target::Notebook => notebook_of(args)?,
        _ => spans_of(args)?,
    };
    if args.output.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        return match out.write_all(&bytes).and_then(|()| out.flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
            other => other.map(|()| Exit::Ok).map_err(|e| CliError::unwritable(&args.output, &e)),
        };
    }
    let mut out = BufWriter::new(AtomicFile::create(&args.output)?);
    out.write_all(&bytes).map_err(|e| CliError::unwritable(&args.output, &e))?;
    out.into_inner().map_err(|e| CliError::unwritable(&args.output, e.error()))?.commit()?;
    if cli.json {
        stdout::print_json(&serde_json::json!({"output": stdout::json_path(&args.output), "bytes": bytes.len()}))?;
    } else if !cli.quiet {
        stderr::say(&format!("{what}\n"));
    }
    Ok(Exit::Ok)
}

fn spans_of(args: &ExportArgs) -> Result<(Vec<u8>, String)> {
    let run = if TraceDir::is_trace(&args.trace) {
        if args.variant.is_some() || args.seed.is_some() {
            return Err(CliError::new(Exit::Usage, "--variant and --seed choose a run of a replay")
                .help("a trace directory holds the recording only; give the output folder of the run"));
        }
        recorded(&TraceDir::open(&args.trace)?)?
    } else {
        timeline(&args.trace, args.variant.as_deref(), args.seed).map_err(explain_analysis)?
    };
    let mut bytes = Vec::new();
    trace_event::write(&run, &mut bytes).map_err(|e| CliError::new(Exit::Internal, e.to_string()))?;
    let what = format!("{}: {} calls, {} block requests", run.label, run.calls.len(), run.requests.len());
    Ok((bytes, what))
}

/// The results below the output folder of a run, or the folder itself if it is that of results.
pub(super) fn results_of(folder: &Path) -> Option<PathBuf> {
    [folder.join("results"), folder.to_owned()].into_iter().find(|d| d.join("manifest.json").is_file())
}

fn notebook_of(args: &ExportArgs) -> Result<(Vec<u8>, String)> {
    let report = analyse(&args.trace, None, None)?;
    let results = results_of(&args.trace).unwrap_or_else(|| args.trace.clone());
    let full = |p: &Path| std::fs::canonicalize(p).unwrap_or_else(|_| p.to_owned());
    let folder = args.output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Beside or above the results a relative path survives moving the folder.
    let (results, folder) = (full(&results), full(folder));
    let shown = results.strip_prefix(&folder).map_or_else(|_| results.clone(), Path::to_owned);
    let path = if shown.as_os_str().is_empty() { ".".to_string() } else { shown.to_string_lossy().into_owned() };
    let bytes = notebook::notebook(&report, &path).map_err(explain_report)?;
    Ok((bytes, format!("notebook over {path}")))
}
