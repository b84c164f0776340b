//! One run, or one recording, as spans over time, for tools that draw them.

use crate::cell::{CAUSES, CellData, model_of};
use crate::error::Error;
use crate::manifest::{Entry, Manifest};
use crate::metrics::blame::cause_name;
use indexmap::IndexMap;
use kreplay_traces::error::Error as TraceError;
use kreplay_traces::event::BlockRow;
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
    /// What the variant's model was held against, with the error found; empty of a recording.
    pub held_against: Vec<String>,
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
    /// Bios that it carries.
    pub bios: i64,
    /// When the later ones were queued, nanoseconds; of a recording.
    pub joined_ns: Vec<i64>,
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
        bios: r.bios[i],
        joined_ns: Vec::new(),
        stamps_ns: [r.q_ns[i], r.i_ns[i], r.d_ns[i], r.c_ns[i]],
    });
    let frame = cell.table("samples", &["time_ns", "free_kib", "cache_kib", "dirty_kib", "swpd_kib"])?;
    let columns = LEVELS.iter().map(|(_, c)| frame.ints(c)).collect::<crate::Result<Vec<_>>>()?;
    let level = |row: usize| LEVELS.iter().zip(&columns).filter_map(|((n, _), c)| Some((*n, c[row]?))).collect();
    Ok(Timeline {
        held_against: model_of(entry)?.held_against(),
        label: format!("{}, seed {}", entry.variant, entry.seed),
        tasks: cell.tasks.iter().map(|t| Lane { task: t.task, tid: t.tid, name: t.name.clone() }).collect(),
        calls: spans.collect(),
        requests: requests.collect(),
        levels: frame.whole("time_ns")?.into_iter().enumerate().map(|(i, t)| (t, level(i))).collect(),
    })
}

/// The spans of a recording: its system calls that have a duration, and its block requests from dispatch (D) to completion (C).
///
/// A request covers the sectors that D names; the bios that were queued (Q) for sectors within them were merged into it, and
/// the earliest is its beginning.
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
    let mut requests = Requests::default();
    trace.blocks()?.for_each(|row| requests.event(&row))?;
    timeline.requests = requests.done;
    Ok(timeline)
}

/// A bio that waits for the request that takes it.
#[derive(Clone, Copy)]
struct Queued {
    q_ns: Option<i64>,
    i_ns: Option<i64>,
}

/// Block events on their way to requests.
#[derive(Default)]
struct Requests {
    devices: IndexMap<i64, u32>,
    /// By device and first sector.
    queued: BTreeMap<(i64, i64), Queued>,
    /// Requests at the device, by device and the first sector that is not yet complete; with their end.
    at_device: BTreeMap<(i64, i64), (RequestSpan, i64)>,
    done: Vec<RequestSpan>,
}

impl Requests {
    fn event(&mut self, row: &BlockRow<'_>) {
        let Some(sector) = row.sector_512 else { return };
        let key = (row.device(), sector);
        let end = sector.saturating_add(row.len_bytes.unwrap_or(0).max(0) / 512);
        match row.action {
            "Q" => {
                self.queued.entry(key).or_insert(Queued { q_ns: None, i_ns: None }).q_ns.get_or_insert(row.time_ns);
            }
            "I" => {
                self.queued.entry(key).or_insert(Queued { q_ns: None, i_ns: None }).i_ns.get_or_insert(row.time_ns);
            }
            // The second half of a bio that was split has its beginning.
            "X" => {
                if let (Some(rest), Some(bio)) = (row.from_sector_512, self.queued.get(&key).copied()) {
                    self.queued.entry((row.device(), rest)).or_insert(bio);
                }
            }
            "D" => self.dispatch(row, sector, end),
            // Back in the queue: it will be dispatched again.
            "R" => {
                if let Some((request, _)) = self.at_device.remove(&key) {
                    let [q, i, ..] = request.stamps_ns;
                    self.queued.insert(key, Queued { q_ns: Some(q), i_ns: Some(i) });
                }
            }
            "C" => self.complete(row, sector, end),
            _ => {}
        }
    }

    fn dispatch(&mut self, row: &BlockRow<'_>, sector: i64, end: i64) {
        let last = end.max(sector.saturating_add(1));
        let parts: Vec<(i64, i64)> =
            self.queued.range((row.device(), sector)..(row.device(), last)).map(|(key, _)| *key).collect();
        let bios: Vec<Queued> = parts.iter().filter_map(|key| self.queued.remove(key)).collect();
        let d = row.time_ns;
        let i = bios.iter().filter_map(|b| b.i_ns).filter(|i| *i <= d).min().unwrap_or(d);
        let mut queued: Vec<i64> = bios.iter().filter_map(|b| b.q_ns).filter(|q| *q <= d).collect();
        queued.sort_unstable();
        let q = queued.first().copied().filter(|q| *q <= i).unwrap_or(i);
        let next = self.devices.len() as u32;
        let dev = *self.devices.entry(row.device()).or_insert(next);
        let request = RequestSpan {
            dev,
            read: row.rwbs.contains('R'),
            kind: row.rwbs.to_string(),
            sector_512: sector,
            len_bytes: row.len_bytes.unwrap_or(0),
            task: row.pid.unwrap_or(-1),
            bios: queued.len().max(1) as i64,
            joined_ns: queued.into_iter().skip(1).collect(),
            stamps_ns: [q, i, d, d],
        };
        self.at_device.insert((row.device(), sector), (request, end));
    }

    fn complete(&mut self, row: &BlockRow<'_>, sector: i64, end: i64) {
        let Some((mut request, whole)) = self.at_device.remove(&(row.device(), sector)) else { return };
        if end > sector && end < whole {
            self.at_device.insert((row.device(), end), (request, whole));
            return;
        }
        request.stamps_ns[3] = row.time_ns.max(request.stamps_ns[2]);
        self.done.push(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(events: &[(&str, i64, i64, i64)]) -> Vec<RequestSpan> {
        let mut requests = Requests::default();
        for (action, time_ns, sector, sectors) in events {
            let row = BlockRow {
                action,
                time_ns: *time_ns,
                sector_512: Some(*sector),
                len_bytes: Some(sectors * 512),
                rwbs: "W",
                ..BlockRow::default()
            };
            requests.event(&row);
        }
        requests.done
    }

    #[test]
    fn merged_bios_belong_to_the_request_that_took_them() {
        let done = play(&[
            ("Q", 1, 108, 8),
            ("I", 2, 108, 8),
            ("Q", 3, 116, 8),
            ("M", 3, 116, 8),
            ("Q", 4, 100, 8),
            ("F", 4, 100, 8),
            ("Q", 5, 500, 8),
            ("D", 6, 100, 24),
            ("C", 9, 100, 24),
        ]);
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].stamps_ns, done[0].bios), ([1, 2, 6, 9], 3));
        assert_eq!(done[0].joined_ns, [3, 4]);
    }

    #[test]
    fn a_request_ends_when_its_last_part_is_complete_and_may_go_back() {
        let done = play(&[("Q", 1, 0, 16), ("D", 2, 0, 16), ("C", 3, 0, 8), ("C", 5, 8, 8)]);
        assert_eq!((done.len(), done[0].stamps_ns), (1, [1, 2, 2, 5]));
        let done =
            play(&[("Q", 1, 0, 8), ("I", 1, 0, 8), ("D", 2, 0, 8), ("R", 3, 0, 8), ("D", 4, 0, 8), ("C", 7, 0, 8)]);
        assert_eq!(done[0].stamps_ns, [1, 1, 4, 7]);
        assert!(play(&[("C", 5, 0, 8)]).is_empty(), "what was never dispatched is not a request");
    }
}
