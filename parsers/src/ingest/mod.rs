//! From log files to a trace directory: find the inputs, detect their formats, pump them into a [`TraceWriter`].
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use kreplay_parsers::ingest::{Options, Watch, ingest, plan};
//! use kreplay_traces::store::{TraceWriter, WriterOptions};
//!
//! let options = Options::default();
//! let plan = plan(&["recording/".into()], &options)?;
//! let mut writer = TraceWriter::create("trace".as_ref(), WriterOptions::default())?;
//! let stop = AtomicBool::new(false);
//! let report = ingest(plan, &mut writer, &options, &mut Watch { stop: &stop, progress: &mut |_| {} })?;
//! println!("{} inputs, {} skipped", report.inputs.len(), report.skipped.len());
//! writer.finish()?;
//! # Ok::<(), kreplay_parsers::ingest::IngestError>(())
//! ```

mod error;
mod inspect;
mod midnight;
mod plan;
mod reader;
mod recording;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use kreplay_traces::error::Error as TraceError;
use kreplay_traces::event::EventSink;
use kreplay_traces::input::{Input, InputFacts, InputLimits};
use kreplay_traces::store::{ClockKind, SourceFacts, SourceInfo, SourceKey, TraceWriter};

pub use error::IngestError;
pub use inspect::{Inspected, inspect};
pub use plan::{Plan, Planned, Several, plan, recordings_below};
pub use reader::Reader;
pub use recording::Recording;

use crate::blktrace::merge::Merged;
use crate::diag::Diagnostics;
use crate::format::{Format, ParseOptions};
use crate::watched::{Findings, Watched};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// How to ingest.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Format of all inputs, instead of detection.
    pub format: Option<String>,
    /// Options for the parsers.
    pub parse: ParseOptions,
    /// Stop at the first reject, and where an input ends early.
    pub strict: bool,
    /// A log without a single event is no error.
    pub allow_empty: bool,
    /// Of a binary trace's per-CPU files read only those that are named, not their siblings.
    pub single: bool,
    /// Limits on compressed inputs.
    pub limits: InputLimits,
}

/// A file of a directory that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// Why, in words.
    pub why: String,
    /// It could not be read (else it is no log, or not wanted).
    pub unreadable: bool,
}

impl Skipped {
    /// A file that is no log, or not wanted.
    pub(super) fn unwanted(path: PathBuf, why: impl Into<String>) -> Self {
        Self { path, why: why.into(), unreadable: false }
    }
}

/// How far an ingest is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Input being read.
    pub path: &'a std::path::Path,
    /// Its index in the plan.
    pub index: usize,
    /// Bytes read of all inputs, as stored.
    pub bytes: u64,
    /// Bytes of all inputs, as stored (streams not counted).
    pub total_bytes: u64,
}

/// How an ingest is watched and stopped.
pub struct Watch<'a> {
    /// Set to true by anyone to stop it.
    pub stop: &'a AtomicBool,
    /// Called after each chunk.
    pub progress: &'a mut dyn FnMut(Progress<'_>),
}

/// One input that was read.
#[derive(Debug)]
pub struct Ingested {
    /// The file.
    pub path: PathBuf,
    /// Format id.
    pub format: &'static str,
    /// Counts, rejects, warnings and detected options; `None` for a source taken over from an earlier run.
    pub diagnostics: Option<Diagnostics>,
    /// Reading ended early; the rows before that place were kept.
    pub cut: Option<TraceError>,
    /// The file changed while it was read: how.
    pub changed: Option<String>,
}

/// What an ingest did.
#[derive(Debug, Default)]
pub struct Report {
    /// Inputs, in the order of reading.
    pub inputs: Vec<Ingested>,
    /// Files that were not read.
    pub skipped: Vec<Skipped>,
}

impl Report {
    /// Rejected lines of all inputs.
    pub fn rejected(&self) -> u64 {
        self.inputs.iter().filter_map(|i| i.diagnostics.as_ref()).map(Diagnostics::rejected).sum()
    }
}

/// Read all inputs of a plan into the writer. The writer is left open: the caller finishes it.
///
/// # Errors
/// If writing fails, at the first reject in strict mode, or when it was stopped. A damaged or truncated input is no error:
/// what was read of it is kept and [`Ingested::cut`] says where it ended.
pub fn ingest(
    plan: Plan,
    writer: &mut TraceWriter,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Report, IngestError> {
    let total_bytes = plan.bytes();
    let paths: Vec<PathBuf> = plan.inputs.iter().map(|i| i.path.clone()).collect();
    let mut report = Report { inputs: Vec::new(), skipped: plan.skipped };
    if let Some(recording) = plan.recordings.first() {
        writer.set_machine(recording.machine.clone());
    }
    if let [first, second, ..] = &plan.recordings[..] {
        writer.warn(format!(
            "{} and {} describe two recordings; the machine is that of the first",
            first.path.display(),
            second.path.display()
        ));
    }
    for warning in plan.recordings.iter().flat_map(|r| &r.warnings).chain(&plan.warnings) {
        writer.warn(warning.clone());
    }
    let zoned = plan.recordings.iter().any(|r| r.is_zoned());
    let (mut block_rows, mut zone_rows) = (0, 0);
    let mut done_bytes = 0;
    for (index, planned) in plan.inputs.into_iter().enumerate() {
        let recording = planned.recording.map(|r| &plan.recordings[r]);
        let bytes = planned.bytes.unwrap_or(0);
        let path = planned.path.clone();
        let mut on_bytes = |read: u64| {
            (watch.progress)(Progress { path: &path, index, bytes: done_bytes + read, total_bytes });
            !watch.stop.load(Ordering::Relaxed)
        };
        let result = one(planned, recording, writer, options, &mut on_bytes);
        if result.is_err() {
            writer.abandon_source()?;
        }
        let (ingested, found) = result?;
        block_rows += found.block_rows;
        zone_rows += found.zone_rows;
        report.inputs.push(ingested);
        done_bytes += bytes;
    }
    if zoned && block_rows > 0 && zone_rows == 0 {
        writer.warn(
            "the recorded device is zoned, but the block trace has no zone operation: tools that only know the first \
             trace version drop them, they may be missing",
        );
    }
    midnight::settle_days(writer);
    warn_of_unordered_threads(writer);
    check_events(&paths, &report, writer, options)?;
    Ok(report)
}

/// Files of one thread each (`strace -ff`) can be laid together only by a clock that they share.
fn warn_of_unordered_threads(writer: &mut TraceWriter) {
    let without = writer
        .sources()
        .iter()
        .filter(|s| s.format == "strace" && s.options.contains_key("tid") && s.clock == ClockKind::Relative)
        .count();
    if without > 1 {
        writer.warn(format!(
            "{without} logs of single threads have no absolute clock: the order of calls between threads is not known; \
             record with -ttt"
        ));
    }
}

/// A trace without a single event is an error unless it is asked for; one empty input among others is a warning.
fn check_events(
    paths: &[PathBuf],
    report: &Report,
    writer: &mut TraceWriter,
    options: &Options,
) -> Result<(), IngestError> {
    if options.allow_empty {
        return Ok(());
    }
    // Tasks and rejects are no events of their own.
    let is_empty = |s: &SourceInfo| s.events.keys().all(|table| matches!(table.as_str(), "process" | "reject"));
    let empty: Vec<String> =
        writer.sources().iter().filter(|s| is_empty(s)).map(|s| format!("{} ({})", s.path, s.format)).collect();
    if empty.len() == paths.len() {
        let path = paths.first().cloned().unwrap_or_default();
        let said = report.inputs.iter().filter_map(|i| i.diagnostics.as_ref()).find_map(what_it_says);
        return Err(IngestError::NoEvents { path, inputs: paths.len(), said });
    }
    for input in empty {
        writer.warn(format!("{input} has no event"));
    }
    Ok(())
}

/// The first thing that a log without events says for itself: a message of its tool, or its first reject.
fn what_it_says(diag: &Diagnostics) -> Option<String> {
    if let Some(warning) = diag.warnings().first() {
        return Some(note(warning.count, warning.first_line, &warning.text));
    }
    let reject = diag.rejects().first()?;
    Some(format!("line {}: {}: expected {}", reject.first_line, reject.reason.code, reject.reason.expected))
}

/// Read one input into the writer.
fn one(
    planned: Planned,
    recording: Option<&Recording>,
    writer: &mut TraceWriter,
    options: &Options,
    on_bytes: &mut dyn FnMut(u64) -> bool,
) -> Result<(Ingested, Findings), IngestError> {
    let Planned { path, format, parse, open, parts, .. } = planned;
    format.check(&parse).map_err(|why| IngestError::BadOption { path: path.clone(), why })?;
    let key = SourceKey {
        path: path.to_string_lossy().into_owned(),
        format: format.id().to_owned(),
        options: option_names(&parse),
    };
    if open.is_none() && parts.is_empty() && writer.reuse_source(&key, &path)? {
        let reused = Ingested { path, format: format.id(), diagnostics: None, cut: None, changed: None };
        return Ok((reused, Findings::default()));
    }
    let (head, input) = open_input(&path, open, &parts, options)?;
    writer.begin_source(key, ClockKind::Relative)?;
    let mut diag = if options.strict { Diagnostics::strict() } else { Diagnostics::new() };
    let (read, mut found) = pump(&path, &head, input, format, &parse, options, writer, &mut diag, on_bytes)?;
    let clock = clock_kind(&diag, &parse, recording);
    writer.set_clock(clock);
    let of_day = diag.options().get("clock").is_some_and(|c| c == "time-of-day");
    let mut notes: Vec<String> = diag.warnings().iter().map(|w| note(w.count, w.first_line, &w.text)).collect();
    if let Some(cut) = &read.cut {
        notes.push(format!("reading ended early: {cut}"));
    }
    if let Some(changed) = &read.facts.changed {
        notes.push(format!("the file changed while it was read: {changed}"));
    }
    writer.finish_source(SourceFacts {
        blake3: Some(read.facts.blake3),
        bytes: Some(read.facts.bytes),
        text_bytes: Some(read.facts.text_bytes),
        lines: diag.lines(),
        non_events: diag.notes().iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
        zero_ns: match clock {
            ClockKind::Realtime => recording.and_then(|r| r.start_realtime_ns),
            ClockKind::Monotonic => recording.and_then(|r| r.start_monotonic_ns),
            ClockKind::TimeOfDay | ClockKind::Relative | ClockKind::Trace => None,
        },
        births: if of_day && parse.tid.is_some() { std::mem::take(&mut found.births) } else { Vec::new() },
        notes,
    })?;
    let changed = read.facts.changed;
    Ok((Ingested { path, format: format.id(), diagnostics: Some(diag), cut: read.cut, changed }, found))
}

/// Open what a plan names: the bytes already taken from it, and the rest.
fn open_input(
    path: &std::path::Path,
    open: Option<(Vec<u8>, Input)>,
    parts: &[PathBuf],
    options: &Options,
) -> Result<(Vec<u8>, Reader), IngestError> {
    Ok(match open {
        Some((head, input)) => (head, input.into()),
        None if parts.is_empty() => (Vec::new(), Input::open(path, options.limits)?.into()),
        None => {
            let files = parts.iter().map(|p| Input::open(p, options.limits)).collect::<Result<Vec<_>, _>>()?;
            (Vec::new(), Reader::Merged { name: path.to_owned(), files: Merged::new(files) })
        }
    })
}

/// Read an input to its end into a sink; what is odd about its clock joins the diagnostics.
#[allow(clippy::too_many_arguments, reason = "one input's parts, from two callers of this module")]
fn pump(
    path: &std::path::Path,
    head: &[u8],
    input: Reader,
    format: &dyn Format,
    parse: &ParseOptions,
    options: &Options,
    out: &mut dyn EventSink,
    diag: &mut Diagnostics,
    on_bytes: &mut dyn FnMut(u64) -> bool,
) -> Result<(ReadFacts, Findings), IngestError> {
    let mut watched = Watched::new(out);
    let mut read = read(head, input, format, parse, &mut watched, diag, on_bytes)?;
    let found = watched.finish();
    if let Some((line, before, after)) = found.first_jump {
        let days = after.abs_diff(before) / (86_400 * 1_000_000_000);
        let way = if after < before { "back" } else { "forward" };
        for _ in 0..found.jumps {
            diag.warn("clock-jump", Some(line), || {
                format!("the clock jumps {way} by {days} days between two events; the times are kept as they are")
            });
        }
    }
    if options.strict
        && let Some(cut) = read.cut.take()
    {
        return Err(IngestError::Cut { path: path.to_owned(), lines: diag.lines(), cut: Box::new(cut) });
    }
    if diag.stopped() {
        let reject = Box::new(diag.rejects()[0].clone());
        return Err(IngestError::Strict { path: path.to_owned(), reject });
    }
    Ok((read, found))
}

/// What is known after an input was read to its end, or as far as it can be read.
#[derive(Debug)]
pub struct ReadFacts {
    /// Hash, lengths, compression.
    pub facts: InputFacts,
    /// Reading ended early: why.
    pub cut: Option<TraceError>,
}

/// Pump one input through its parser into any sink; `head` are bytes already taken from it. `on_bytes` hears the bytes
/// read so far (as stored) and gives false to stop.
///
/// # Errors
/// If it is stopped, or the end of the input cannot be read. A read error after the first byte is no error, see
/// [`ReadFacts::cut`].
pub fn read(
    head: &[u8],
    mut input: Reader,
    format: &dyn Format,
    parse: &ParseOptions,
    out: &mut dyn EventSink,
    diag: &mut Diagnostics,
    on_bytes: &mut dyn FnMut(u64) -> bool,
) -> Result<ReadFacts, IngestError> {
    let mut parser = format.parser(parse);
    parser.feed(head, out, diag);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut cut = None;
    while !diag.stopped() {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => parser.feed(&chunk[..n], out, diag),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => {
                cut = Some(input.explain(e));
                break;
            }
        }
        if !on_bytes(input.bytes_read()) {
            return Err(IngestError::Interrupted);
        }
    }
    parser.finish(out, diag);
    Ok(ReadFacts { facts: input.finish()?, cut })
}

/// What the parser found out about the time stamps, as the store's kind of clock.
fn clock_kind(diag: &Diagnostics, parse: &ParseOptions, recording: Option<&Recording>) -> ClockKind {
    match diag.options().get("clock").map(String::as_str) {
        Some("epoch") => ClockKind::Realtime,
        Some("time-of-day") if parse.midnight_ns.is_some() => ClockKind::Realtime,
        Some("time-of-day") => ClockKind::TimeOfDay,
        Some("samples") if parse.start_ns.is_some() => ClockKind::Realtime,
        // blkparse counts from the trace's start; our recordings keep the monotonic clock.
        Some("trace") if recording.is_some_and(|r| r.start_monotonic_ns.is_some()) => ClockKind::Monotonic,
        _ => ClockKind::Relative,
    }
}

fn note(count: u64, line: Option<i64>, text: &str) -> String {
    let place = line.map_or_else(String::new, |l| format!(" (line {l})"));
    if count > 1 { format!("{count} times, first{place}: {text}") } else { format!("{text}{place}") }
}

/// Parser options that were given, by name, for the source's identity.
fn option_names(parse: &ParseOptions) -> BTreeMap<String, String> {
    let numbers = [
        ("tid", parse.tid),
        ("interval_ns", parse.interval_ns),
        ("start_ns", parse.start_ns),
        ("memory_unit_bytes", parse.memory_unit_bytes),
        ("utc_offset_s", parse.utc_offset_s),
        ("midnight_ns", parse.midnight_ns),
        ("dev", parse.dev),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_string())));
    let texts = [("root", &parse.root), ("blkparse_format", &parse.blkparse_format)];
    let texts = texts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let after = parse.after_run.as_ref().map(|known| ("after_run".to_owned(), format!("{} files known", known.len())));
    numbers.chain(texts).chain(after).collect()
}
