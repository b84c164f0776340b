//! `kreplay inspect`: what a trace holds.

mod btt;

use crate::args::{Cli, InspectArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::stdout;
use kreplay_reports::escape;
use kreplay_traces::store::TraceDir;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &InspectArgs) -> Result<Exit> {
    let mut documents = Vec::new();
    for path in &args.traces {
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
    }
    if cli.json {
        stdout::print_json(&serde_json::json!(documents))?;
    }
    Ok(Exit::Ok)
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
    Ok(serde_json::json!({
        "path": trace.path(),
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
    for warning in &m.warnings {
        let _ = writeln!(t, "  warning: {warning}");
    }
    Ok(t)
}
