//! `kreplay inspect`: what a trace holds.

mod btt;

use super::inspect_logs;
use crate::args::{Cli, InspectArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::{stderr, stdout};
use kreplay_parsers::survey::{Survey, device_name};
use kreplay_reports::escape;
use kreplay_traces::event::EventSink as _;
use kreplay_traces::store::{MANIFEST_FILE, TraceDir};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &InspectArgs) -> Result<Exit> {
    let mut documents = Vec::new();
    let mut exit = Exit::Ok;
    let mut seen = Vec::new();
    for path in &args.inputs {
        let is_directory = path.as_os_str() != "-" && path.is_dir();
        if is_directory && path.join(MANIFEST_FILE).exists() {
            let trace = TraceDir::open(path)?;
            if args.btt && cli.json {
                documents.push(btt::json(&trace)?);
            } else if args.btt {
                stdout::print(&btt::page(&trace)?)?;
            } else if cli.json {
                documents.push(json(&trace)?);
            } else {
                stdout::print(&text(&trace)?)?;
            }
            continue;
        }
        // One log that cannot be read must not hide what the others hold.
        match inspect_logs::look(path, &args.read, &mut seen) {
            Ok(logs) => {
                exit = worse(exit, logs.exit(&args.read));
                if cli.json {
                    documents.extend(logs.found.iter().map(kreplay_parsers::ingest::Inspected::to_json));
                    documents.extend(logs.skipped.iter().map(
                        |s| serde_json::json!({"path": s.path.to_string_lossy(), "format": null, "skipped": s.why}),
                    ));
                } else {
                    for log in &logs.found {
                        stdout::print(&inspect_logs::text(log))?;
                    }
                    for skipped in &logs.skipped {
                        stdout::print(&format!("{}\n  not read: {}\n", skipped.path.display(), skipped.why))?;
                    }
                    for warning in &logs.warnings {
                        stdout::print(&format!("warning: {warning}\n"))?;
                    }
                }
            }
            Err(error) if args.inputs.len() == 1 => return Err(error),
            Err(error) if error.exit == Exit::Interrupted || error.exit == Exit::Usage => return Err(error),
            Err(error) => {
                exit = worse(exit, error.exit);
                if cli.json {
                    documents.push(serde_json::json!({
                        "path": path.to_string_lossy(), "format": null, "error": error.what, "help": error.help,
                    }));
                } else {
                    stderr::say(&error.render());
                }
            }
        }
    }
    if cli.json {
        stdout::print_json(&serde_json::json!(documents))?;
    }
    Ok(exit)
}

/// What could not be read at all weighs more than what was skipped.
fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Input, _) | (_, Exit::Input) => Exit::Input,
        (a, b) => a.max(b),
    }
}

/// Everything in the tables, counted.
fn survey(trace: &TraceDir) -> Result<Survey> {
    let mut survey = Survey::default();
    trace.syscalls()?.for_each(|row| survey.syscall(&row))?;
    trace.blocks()?.for_each(|row| survey.block(&row))?;
    trace.vmstats()?.for_each(|row| survey.vmstat(&row))?;
    trace.counters()?.for_each(|row| survey.counter(&row))?;
    trace.processes()?.for_each(|row| survey.process(&row))?;
    Ok(survey)
}

/// Calls by name and by thread.
struct Counts {
    calls: BTreeMap<String, u64>,
    threads: BTreeMap<i64, u64>,
    failed: u64,
}

fn count(trace: &TraceDir) -> Result<Counts> {
    let mut counts = Counts { calls: BTreeMap::new(), threads: BTreeMap::new(), failed: 0 };
    trace.syscalls()?.for_each(|row| {
        match counts.calls.get_mut(row.call) {
            Some(n) => *n += 1,
            None => {
                counts.calls.insert(row.call.to_owned(), 1);
            }
        }
        *counts.threads.entry(row.tid).or_default() += 1;
        counts.failed += u64::from(row.errno.is_some());
    })?;
    Ok(counts)
}

fn json(trace: &TraceDir) -> Result<serde_json::Value> {
    let counts = count(trace)?;
    let m = trace.manifest();
    let survey = survey(trace)?.to_json();
    Ok(serde_json::json!({
        "path": stdout::json_path(trace.path()),
        "trace_id": m.trace_id,
        "duration_ns": m.clock.duration_ns,
        "clock": m.clock,
        "machine": m.machine,
        "counts": m.counts,
        "sources": m.sources,
        "warnings": m.warnings,
        "syscalls": counts.calls,
        "threads": counts.threads,
        "failed_calls": counts.failed,
        "actions": survey["actions"],
        "devices": survey["devices"],
        "processes": survey["processes"],
        "process_count": survey["process_count"],
    }))
}

fn text(trace: &TraceDir) -> Result<String> {
    let counts = count(trace)?;
    let m = trace.manifest();
    let mut t = format!("{}  trace {}\n", trace.path().display(), m.trace_id);
    let _ = writeln!(t, "  {:.3} s", m.clock.duration_ns as f64 / 1e9);
    if let Some(kernel) = &m.machine.kernel {
        let _ = writeln!(t, "  recorded on {kernel}");
    }
    if let Some(kib) = m.machine.ram_kib {
        let _ = writeln!(t, "  memory {} MiB", kib / 1024);
    }
    for d in &m.machine.devices {
        let name = d.name.as_deref().unwrap_or("?");
        let scheduler = d.scheduler.as_deref().map_or(String::new(), |s| format!(", scheduler {s}"));
        let _ = writeln!(t, "  device {}:{} {name}{scheduler}", d.dev >> 20, d.dev & 0xf_ffff);
    }
    for s in &m.sources {
        let _ = writeln!(t, "  {} ({}): {} lines", escape::visible(&s.path), s.format, s.lines);
        for (table, rows) in &s.events {
            let _ = writeln!(t, "    {rows:>9} {table}");
        }
        for (reason, rows) in &s.rejects {
            let _ = writeln!(t, "    {rows:>9} rejected: {reason}");
        }
        for note in &s.notes {
            let _ = writeln!(t, "    note: {note}");
        }
    }
    if !counts.calls.is_empty() {
        let _ = writeln!(t, "  {} threads, {} failed calls; most frequent:", counts.threads.len(), counts.failed);
        let mut calls: Vec<_> = counts.calls.iter().collect();
        calls.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
        for (name, n) in calls.into_iter().take(12) {
            let _ = writeln!(t, "    {n:>9} {}", escape::visible(name));
        }
    }
    if m.count("block") > 0 {
        let survey = survey(trace)?;
        let actions: Vec<String> = survey.actions().iter().map(|(letter, n)| format!("{letter} {n}")).collect();
        let devices: Vec<String> =
            survey.devices().iter().map(|(dev, n)| format!("{} ({n})", device_name(*dev))).collect();
        let _ = writeln!(t, "  block events: {}", actions.join(", "));
        let _ = writeln!(t, "  devices: {}", devices.join(", "));
    }
    for warning in &m.warnings {
        let _ = writeln!(t, "  warning: {warning}");
    }
    Ok(t)
}
