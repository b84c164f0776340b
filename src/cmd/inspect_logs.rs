//! `kreplay inspect` of logs: what each is, and what is in it.

use crate::args::ReadArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::pipeline::{explain_ingest, ingest_options};
use crate::signal;
use kreplay_parsers::ingest::{Inspected, Skipped, Watch, inspect, plan};
use kreplay_parsers::survey::device_name;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Most frequent calls, tasks and devices that are listed for people.
const LISTED: usize = 12;

/// The logs of one path.
pub(crate) struct Logs {
    pub(crate) found: Vec<Inspected>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) warnings: Vec<String>,
}

impl Logs {
    /// The exit code for what was not understood.
    pub(crate) fn exit(&self, read: &ReadArgs) -> Exit {
        let empty = !self.found.is_empty() && self.found.iter().all(|l| l.diagnostics.events() == 0);
        if empty && !read.parse.allow_empty {
            Exit::Input
        } else if self.found.iter().any(Inspected::has_problems) {
            Exit::Skipped
        } else {
            Exit::Ok
        }
    }
}

/// Looks at the logs that a path names. A set of files that `seen` has is left out: its name may come up for each file.
pub(crate) fn look(path: &Path, read: &ReadArgs, seen: &mut Vec<PathBuf>) -> Result<Logs> {
    let options = ingest_options(read);
    let mut plan = plan(&[path.to_owned()], &options).map_err(explain_ingest)?;
    plan.inputs.retain(|input| !seen.contains(&input.path) || input.path.as_os_str() == "-");
    seen.extend(plan.inputs.iter().map(|input| input.path.clone()));
    let (skipped, warnings) = (std::mem::take(&mut plan.skipped), std::mem::take(&mut plan.warnings));
    let found = inspect(plan, &options, &mut Watch { stop: &signal::DRAIN, progress: &mut |_| {} });
    Ok(Logs { found: found.map_err(explain_ingest)?, skipped, warnings })
}

/// One log, for people.
pub(crate) fn text(log: &Inspected) -> String {
    let (d, s) = (&log.diagnostics, &log.survey);
    let mut t =
        format!("{}\n  {}: {} lines or records, {} events", log.path.display(), log.format, d.lines(), d.events());
    let _ = writeln!(t, ", {} rejected, {} bytes ({})", d.rejected(), log.facts.bytes, log.facts.compression);
    let options: Vec<String> = d.options().iter().map(|(k, v)| format!("{k} {v}")).collect();
    if !options.is_empty() {
        let _ = writeln!(t, "  detected: {}", options.join(", "));
    }
    if !log.options.is_empty() {
        let given: Vec<String> = log.options.iter().map(|(k, v)| format!("{k} {v}")).collect();
        let _ = writeln!(t, "  given: {}", given.join(", "));
    }
    if let Some((first, last)) = s.span_ns {
        let seconds = |ns: i64| ns as f64 / 1e9;
        let _ = writeln!(
            t,
            "  {:.6} s, from {:.6} to {:.6}",
            seconds(last.saturating_sub(first)),
            seconds(first),
            seconds(last)
        );
    }
    for (what, counts) in [("calls", s.calls()), ("actions", s.actions())] {
        if counts.is_empty() {
            continue;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
        let more = counts.len().saturating_sub(LISTED);
        let shown: Vec<String> = counts.iter().take(LISTED).map(|(name, n)| format!("{name} {n}")).collect();
        let more = if more > 0 { format!(", and {more} others") } else { String::new() };
        let _ = writeln!(t, "  {what}: {}{more}", shown.join(", "));
    }
    let devices: Vec<String> = s.devices().iter().map(|(dev, n)| format!("{} ({n})", device_name(*dev))).collect();
    if !devices.is_empty() {
        let _ = writeln!(t, "  devices: {}", devices.join(", "));
    }
    let tasks = s.tasks();
    if !tasks.is_empty() {
        let shown: Vec<String> = tasks
            .iter()
            .take(LISTED)
            .map(|(id, (_, comm))| comm.map_or_else(|| id.to_string(), |c| format!("{id} {}", printable(c))))
            .collect();
        let more = tasks.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(", and {more} others") } else { String::new() };
        let _ = writeln!(t, "  processes: {}{more}", shown.join(", "));
    }
    let notes: Vec<String> = d.notes().iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    if !notes.is_empty() {
        let _ = writeln!(t, "  no events: {}", notes.join(", "));
    }
    for r in d.rejects() {
        let _ = writeln!(
            t,
            "  rejected {}: {} (first in line {}): expected {}",
            r.count, r.reason.code, r.first_line, r.reason.expected
        );
    }
    for warning in log.warnings() {
        let _ = writeln!(t, "  warning: {}", printable(&warning));
    }
    t
}

/// Text of a log without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
