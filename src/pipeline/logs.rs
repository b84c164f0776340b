//! Logs to a trace directory.

use crate::args::{Cli, ProgressMode, ReadArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::signal;
use indicatif::{ProgressBar, ProgressStyle};
use kreplay_parsers::ingest::{self as parse, IngestError, Options, Plan, Report, Watch};
use kreplay_reports::escape;
use kreplay_traces::store::{Manifest, TraceDir, TraceWriter, WriterOptions, hash_file};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// What to do with a finished trace that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is an error.
    Refuse,
    /// Write it anew.
    Replace,
    /// Keep it if its sources are these very files, unchanged; else write it anew.
    Reuse,
}

/// A trace directory after an ingest.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// What was read; `None` if the trace was there and current.
    pub(crate) report: Option<Report>,
}

impl Ingest {
    /// Parts of the input were left out.
    pub(crate) fn skipped(&self) -> bool {
        let rejects = self.manifest.count("reject") > 0;
        let cut = self.report.iter().flat_map(|r| &r.inputs).any(|i| i.cut.is_some() || i.changed.is_some());
        let unreadable = self.report.iter().flat_map(|r| &r.skipped).any(|s| s.unreadable);
        rejects || cut || unreadable
    }

    /// The exit code for what was left out.
    pub(crate) fn exit(&self, strict: bool) -> Exit {
        match (self.skipped(), strict) {
            (false, _) => Exit::Ok,
            (true, false) => Exit::Skipped,
            (true, true) => Exit::Input,
        }
    }
}

/// Reads logs into `target`.
pub(crate) fn ingest(
    cli: &Cli,
    inputs: &[PathBuf],
    read: &ReadArgs,
    target: &Path,
    existing: Existing,
) -> Result<Ingest> {
    let options = ingest_options(read);
    let plan = parse::plan(inputs, &options).map_err(explain_ingest)?;
    if existing == Existing::Reuse
        && let Some(manifest) = current(target, &plan)
    {
        return Ok(Ingest { path: target.to_owned(), manifest, report: None });
    }
    let replace = existing != Existing::Refuse;
    let mut writer = TraceWriter::create(target, WriterOptions { replace, fresh: false })?;
    let bar = bar(cli, plan.bytes());
    let mut progress = |p: parse::Progress<'_>| {
        bar.set_position(p.bytes);
        bar.set_message(escape::visible(&p.path.display().to_string()));
    };
    let report =
        parse::ingest(plan, &mut writer, &options, &mut Watch { stop: &signal::DRAIN, progress: &mut progress });
    bar.finish_and_clear();
    let report = match report {
        Ok(report) => report,
        Err(e) => {
            // Finished sources are kept for the same command again; where none can be, nothing is left behind.
            let kept = writer.sources().len();
            if matches!(e, IngestError::NoEvents { .. }) || kept == 0 {
                writer.discard()?;
                return Err(explain_ingest(e));
            }
            let what = if kept == 1 { "log was" } else { "logs were" };
            return Err(
                explain_ingest(e).note(format!("{kept} {what} read to the end; the same command takes them over"))
            );
        }
    };
    let (path, manifest) = writer.finish()?;
    Ok(Ingest { path, manifest, report: Some(report) })
}

/// How logs are read, as the command line says.
pub(crate) fn ingest_options(read: &ReadArgs) -> Options {
    Options {
        format: read.format.clone(),
        parse: read.parse.options(),
        strict: read.strict,
        allow_empty: read.parse.allow_empty,
        single: read.parse.single,
        ..Options::default()
    }
}

fn bar(cli: &Cli, bytes: u64) -> ProgressBar {
    let shown = match cli.progress {
        ProgressMode::Auto => std::io::stderr().is_terminal() && !cli.quiet,
        ProgressMode::Bar => true,
        ProgressMode::Plain | ProgressMode::None => false,
    };
    if !shown {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("reading {bar:30.cyan/blue} {bytes}/{total_bytes} {wide_msg}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The manifest of a finished trace that was made from these very files.
fn current(target: &Path, plan: &Plan) -> Option<Manifest> {
    let trace = TraceDir::open(target).ok()?;
    let sources = &trace.manifest().sources;
    let same = sources.len() == plan.inputs.len()
        && sources.iter().zip(&plan.inputs).all(|(source, input)| {
            Path::new(&source.path) == input.path
                && source.format == input.format.id()
                && source.bytes == input.bytes
                && source.blake3.is_some()
                && source.blake3 == hash_file(&input.path).ok()
        });
    same.then(|| trace.manifest().clone())
}

/// An error of reading, with its exit code.
pub(crate) fn explain_ingest(e: IngestError) -> CliError {
    let help = e.hint();
    let error = match e {
        IngestError::Store(e) => return e.into(),
        IngestError::UnknownFormat(_) | IngestError::StdinTwice | IngestError::BadOption { .. } => {
            CliError::new(Exit::Usage, e.to_string())
        }
        IngestError::Interrupted => CliError::new(Exit::Interrupted, e.to_string()),
        _ => CliError::new(Exit::Input, e.to_string()),
    };
    CliError { help, ..error }
}
