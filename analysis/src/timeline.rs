//! One run, or one recording, as spans over time, for tools that draw them.

use crate::cell::{CAUSES, CellData};
use crate::error::Error;
use crate::manifest::{Entry, Manifest};
use crate::metrics::blame::cause_name;
use indexmap::IndexMap;
use kreplay_traces::error::Error as TraceError;
use kreplay_traces::store::TraceDir;
use std::collections::BTreeMap;
use std::path::Path;

/// A run's spans.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Variant and seed.
    pub label: String,
    /// The tasks, in the order of the result table.
    pub tasks: Vec<Lane>,
    /// Finished operations, by task and start.
    pub calls: Vec<CallSpan>,
    /// Block requests, in order of completion.
    pub requests: Vec<RequestSpan>,
    /// Levels once a simulated second: time in nanoseconds, name and KiB.
    pub levels: Vec<(i64, Vec<(&'static str, i64)>)>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Index.
    pub task: i64,
    /// Thread id in the recording.
    pub tid: i64,
    /// Process name; untrusted.
    pub name: String,
}

/// A finished operation.
#[derive(Clone, Debug)]
pub struct CallSpan {
    /// Task.
    pub task: u32,
    /// What it was.
    pub op: String,
    /// File it acted on, or empty; untrusted.
    pub file: String,
    /// Line of the recorded log, 0 if none.
    pub line: u32,
    /// Start, nanoseconds.
    pub start_ns: i64,
    /// Duration, nanoseconds.
    pub dur_ns: i64,
    /// What was waited for, nanoseconds each.
    pub waits: Vec<(&'static str, i64)>,
}

/// A block request.
#[derive(Clone, Debug)]
pub struct RequestSpan {
    /// Device.
    pub dev: u32,
    /// A read.
    pub read: bool,
    /// What it was for.
    pub kind: String,
    /// First sector.
    pub sector_512: i64,
    /// Bytes.
    pub len_bytes: i64,
    /// Task that queued it.
    pub task: i64,
    /// Queued, inserted, dispatched, completed; nanoseconds.
    pub stamps_ns: [i64; 4],
}

const LEVELS: [(&str, &str); 4] =
    [("free", "free_kib"), ("cache", "cache_kib"), ("dirty", "dirty_kib"), ("swapped", "swpd_kib")];

/// The spans of the first finished cell of `variant` (any, if `None`) with `seed` (any, if `None`).
///
/// # Errors
/// As for [`crate::analyse`]; an unknown variant is [`Error::NoReference`].
pub fn timeline(results_dir: &Path, variant: Option<&str>, seed: Option<i64>) -> crate::Result<Timeline> {
    let manifest = Manifest::open(results_dir)?;
    let done: Vec<&Entry> = manifest.cells.iter().filter(|c| c.state == "done").collect();
    let fits = |c: &&&Entry| variant.is_none_or(|v| c.variant == v) && seed.is_none_or(|s| c.seed == s);
    let Some(entry) = done.iter().find(fits) else {
        let mut known: Vec<&str> = done.iter().map(|c| c.variant.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let name = variant.unwrap_or("(any)").to_string();
        return Err(Error::NoReference { name, known: known.join(", ") });
    };
    let (cell, _) = CellData::open(entry)?;
    let calls = cell.calls()?;
    let mut order: Vec<usize> = (0..calls.count()).collect();
    order.sort_by_key(|i| (calls.task[*i], calls.start_ns[*i], std::cmp::Reverse(calls.dur_ns[*i]), *i));
    let spans = order.into_iter().map(|i| CallSpan {
        task: calls.task[i],
        op: calls.op_of(i).to_string(),
        file: calls.file_of(i).to_string(),
        line: calls.line[i],
        start_ns: calls.start_ns[i],
        dur_ns: calls.dur_ns[i],
        waits: calls.waits_of(i).iter().map(|w| (cause_name(usize::from(w.cause).min(CAUSES.len())), w.ns)).collect(),
    });
    let r = cell.requests()?;
    let requests = (0..r.count()).map(|i| RequestSpan {
        dev: r.dev[i],
        read: r.read[i],
        kind: r.kind_of(i).to_string(),
        sector_512: r.sector_512[i],
        len_bytes: r.len_bytes[i],
        task: r.task[i],
        stamps_ns: [r.q_ns[i], r.i_ns[i], r.d_ns[i], r.c_ns[i]],
    });
    let frame = cell.table("samples", &["time_ns", "free_kib", "cache_kib", "dirty_kib", "swpd_kib"])?;
    let columns = LEVELS.iter().map(|(_, c)| frame.ints(c)).collect::<crate::Result<Vec<_>>>()?;
    let level = |row: usize| LEVELS.iter().zip(&columns).filter_map(|((n, _), c)| Some((*n, c[row]?))).collect();
    Ok(Timeline {
        label: format!("{}, seed {}", entry.variant, entry.seed),
        tasks: cell.tasks.iter().map(|t| Lane { task: t.task, tid: t.tid, name: t.name.clone() }).collect(),
        calls: spans.collect(),
        requests: requests.collect(),
        levels: frame.whole("time_ns")?.into_iter().enumerate().map(|(i, t)| (t, level(i))).collect(),
    })
}

/// The spans of a recording: its system calls that have a duration, and its block requests from dispatch (D) to completion (C)
/// of the same first sector, with the queueing (Q) and insertion (I) of that sector before it where they were recorded.
///
/// # Errors
/// If a part of the trace is damaged or cannot be read.
pub fn recorded(trace: &TraceDir) -> Result<Timeline, TraceError> {
    let mut timeline = Timeline { label: "recorded".to_string(), ..Timeline::default() };
    let mut threads: IndexMap<i64, u32> = IndexMap::new();
    trace.syscalls()?.for_each(|row| {
        let next = threads.len() as u32;
        let task = *threads.entry(row.tid).or_insert(next);
        let Some(dur_ns) = row.dur_ns.filter(|d| *d >= 0) else { return };
        timeline.calls.push(CallSpan {
            task,
            op: row.call.to_string(),
            file: row.path.unwrap_or_default().to_string(),
            line: u32::try_from(row.line).unwrap_or(0),
            start_ns: row.time_ns,
            dur_ns,
            waits: Vec::new(),
        });
    })?;
    timeline.calls.sort_by_key(|c| (c.task, c.start_ns, std::cmp::Reverse(c.dur_ns), c.line));
    timeline.tasks = threads
        .iter()
        .map(|(tid, task)| Lane { task: i64::from(*task), tid: *tid, name: "thread".to_string() })
        .collect();
    let mut devices: IndexMap<i64, u32> = IndexMap::new();
    // By device and sector: when it was queued, inserted and dispatched.
    let mut open: BTreeMap<(i64, i64), [Option<i64>; 3]> = BTreeMap::new();
    trace.blocks()?.for_each(|row| {
        let Some(sector) = row.sector_512 else { return };
        let key = (row.dev, sector);
        let stage = match row.action {
            "Q" => 0,
            "I" => 1,
            "D" => 2,
            "C" => {
                let Some([q, i, Some(d)]) = open.remove(&key) else { return };
                let next = devices.len() as u32;
                let dev = *devices.entry(row.dev).or_insert(next);
                let i = i.filter(|i| *i <= d).unwrap_or(d);
                let q = q.filter(|q| *q <= i).unwrap_or(i);
                timeline.requests.push(RequestSpan {
                    dev,
                    read: row.rwbs.contains('R'),
                    kind: row.rwbs.to_string(),
                    sector_512: sector,
                    len_bytes: row.len_bytes.unwrap_or(0),
                    task: row.pid.unwrap_or(-1),
                    stamps_ns: [q, i, d, row.time_ns.max(d)],
                });
                return;
            }
            _ => return,
        };
        let stamps = open.entry(key).or_default();
        // What is queued again before it was dispatched keeps its first time; what was dispatched begins anew.
        if stage < 2 && stamps[2].is_some() {
            *stamps = [None; 3];
        }
        stamps[stage] = stamps[stage].or(Some(row.time_ns));
    })?;
    Ok(timeline)
}
