//! `prove recordings`: runs recorded on a real 6.18 under one memory limit and scheduler, predicted from a recording made
//! under another, and from one made under the same.
//!
//! A *source* is a recording with system calls; a *target* is a line of the recordings' metrics. Each target of a workload is
//! simulated from each source of that workload under the target's limit, scheduler, tunables and disk. What describes the
//! target is its name and its settings alone, with one exception, a state that its device had kept from earlier runs: the rate
//! at which it throttled writers when the run began, from the first line of the throttle log, and the bandwidth that it was
//! taken to have, from how much the flusher wrote at a time first ([`chunk_bandwidth_kib_s`]); where the target has these logs.
//!
//! # Calibration
//! The runs with a throttle log gave the constants below that name such logs, and, each for itself, the initial state; no
//! other figure of any run was fitted. They are marked, and reported apart from the others.
//!
//! # Figures
//! Wall time, first and last client, time of the timed reads, disk busy time, MB, requests, merges, share of fast reads,
//! miss ratio, quantiles of read and write times. Errors are percent of the recorded value, with floors below which a
//! figure says nothing (0.5 s, 1 MB, 20 requests, 1 ms); of ratios, the difference in hundredths.

mod order;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use kreplay_traces::units::{Nanos, PAGE_BYTES};
use serde::Serialize;

pub use order::{Order, orders};

use super::{Figure, RunFigures, median, median_error};
use crate::config::{Config, DeviceConfig};
use crate::program::{FileInfo, Op, Program, TaskProgram};
use crate::results::{CallOp, MemorySink};
use crate::sim::{Pacing, RunSummary, Sim};
use crate::variant::{Library, priorities_of};

/// The goal: median error of disk busy time, MB and wall time, percent.
const GOAL_PCT: f64 = 10.0;
/// ... of the miss ratio, hundredths.
const GOAL_MISS: f64 = 2.0;
/// How long the recorders' counters ran on after a command's end.
const TAIL: Nanos = Nanos::from_secs(1);
/// Reads faster than this found their page in memory, ms.
const FAST_MS: f64 = 0.4;
/// KiB/s at which writers of an undisturbed device were throttled in most recordings.
const USUAL_RATE_KIB_S: u64 = 2324;
/// Bandwidth that the device's estimator had learnt in earlier runs, KiB/s, where the run's block trace does not tell: the
/// middle of those that make the flusher write 8 MiB at a time, as two thirds of the traced runs with a long write begin.
const USUAL_BANDWIDTH_KIB_S: u64 = 12 << 10;
/// Memory of programs and kernel objects that a group held before its first file page, KiB.
const RESERVED_KIB: u64 = 600;
/// Nice value of the loads that had no real-time priority.
const NICE: i64 = -10;
/// How often xfs forces its log, ms (`fs.xfs.xfssyncd_centisecs`).
const XFS_SYNC_MS: u64 = 30_000;
/// Tags of a loop device when the kernel made it; the recorders took all but 4 or 64 away later.
const LOOP_TAGS: u32 = 128;
/// Length at which the load's endless writer begins its file anew.
const WRITER_BYTES: u64 = 600 << 20;
/// What the load generator remembers of each operation, bytes.
const LOG_BYTES: u64 = 32;

/// The bandwidth that made a flusher write so much at a time, KiB/s: half of it, and up to the next multiple of 4 MiB
/// (`writeback_chunk_size`, fs/fs-writeback.c); the middle of the range.
pub fn chunk_bandwidth_kib_s(chunk_mib: u64) -> u64 {
    (2 * chunk_mib.max(4) - 4) << 10
}

/// What is known of a target beside its figures.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the run.
    pub run: String,
    /// Workload with its tag, the part of the name before the limit.
    pub workload: String,
    /// Memory limit, MiB.
    pub limit_mib: u64,
    /// I/O scheduler.
    pub scheduler: String,
    /// Write-back throttling, us.
    pub wbt_us: u64,
    /// Rate of the throttle when the run began, KiB/s.
    pub rate_kib_s: Option<u64>,
    /// Bandwidth that the device's estimator knew when the run began, KiB/s.
    pub bandwidth_kib_s: Option<u64>,
    /// The load and the kernel's workers had real-time priorities.
    pub real_time: bool,
}

impl Settings {
    /// Settings from a run's name ("W1-L34-mq-deadline-rt1") and the line of its metrics.
    pub fn of(metrics: &serde_json::Value) -> Option<Self> {
        let run = metrics["run"].as_str()?;
        Some(Self {
            run: run.to_owned(),
            workload: run.split("-L").next()?.to_owned(),
            limit_mib: metrics["limit_mib"].as_u64()?,
            scheduler: metrics["scheduler"].as_str()?.to_owned(),
            wbt_us: if run.starts_with("W3wbt") { 75_000 } else { 0 },
            rate_kib_s: None,
            bandwidth_kib_s: None,
            real_time: metrics["rt"].as_u64().unwrap_or(0) > 0,
        })
    }

    /// The workload without the tags that only change settings.
    pub fn load(&self) -> &str {
        if self.workload.starts_with("W3") { "W3" } else { self.workload.trim_end_matches("xfs") }
    }

    /// Tags of the workload that change the file system have their own sources.
    pub fn matches(&self, source: &Settings) -> bool {
        self.load() == source.load() && self.workload.ends_with("xfs") == source.workload.ends_with("xfs")
            || self.load() == "W3" && source.load() == "W3"
    }

    /// What tells one simulation from another.
    pub fn key(&self) -> String {
        let Self { workload, limit_mib, scheduler, rate_kib_s, bandwidth_kib_s, real_time, .. } = self;
        format!("{workload} {limit_mib} {scheduler} {rate_kib_s:?} {bandwidth_kib_s:?} {real_time}")
    }

    /// The configuration under which the target ran.
    ///
    /// # Errors
    /// The built-in variants cannot be read.
    pub fn config(&self, operations: u64) -> Result<Config, String> {
        let mut library = Library::builtin().map_err(|e| e.to_string())?;
        let found = library.select(&["linux-6.18+slowdisk".to_owned()], &[], &[]).map_err(|e| e.to_string())?;
        let mut c = found.into_iter().next().ok_or("no variant")?.config;
        let depth = if self.workload.contains("qd64") { 64 } else { 4 };
        if let DeviceConfig::Rotating { queue_depth, .. } = &mut c.device {
            *queue_depth = depth;
        }
        c.machine.ram = 24 << 20;
        c.machine.memory_limit = self.limit_mib * 1024;
        c.machine.limit_reserved = RESERVED_KIB + operations * LOG_BYTES / 2 / 1024;
        c.machine.swap = if self.workload.starts_with("W7") && !self.workload.contains("oom") { 64 << 10 } else { 0 };
        c.reclaim.workingset.wait_writeback = true;
        c.writeback.balanced.device_limit_kib = self.limit_mib * 1024 / 5;
        c.writeback.balanced.real_time = self.real_time;
        c.writeback.balanced.journal_empty = true;
        c.writeback.balanced.journal_new = true;
        if self.workload.ends_with("xfs") {
            c.writeback.balanced.commit_ms = XFS_SYNC_MS;
            c.writeback.balanced.journal_copies = true;
        }
        c.writeback.balanced.start_kib_s = self.bandwidth_kib_s.unwrap_or(USUAL_BANDWIDTH_KIB_S);
        c.writeback.balanced.start_rate_kib_s = self.rate_kib_s.unwrap_or(USUAL_RATE_KIB_S);
        c.readahead.on_demand.io_kib = 512;
        c.queue.max_sectors = 1024;
        c.queue.slots = if self.scheduler == "none" { depth } else { 256 };
        c.queue.wbt.min_lat_us = self.wbt_us;
        // The loop driver.
        c.queue.wbt.driver_depth = false;
        c.queue.wbt.requests = LOOP_TAGS;
        c.queue.priorities = priorities_of(self.real_time, NICE);
        c.elevator.policy.clone_from(&self.scheduler);
        let d = &mut c.elevator.deadline;
        if let Some(n) = self.workload.strip_prefix("W3tfifo_batch").and_then(|n| n.parse().ok()) {
            d.fifo_batch = n;
        }
        if let Some(n) = self.workload.strip_prefix("W3twrites_starved").and_then(|n| n.parse().ok()) {
            d.writes_starved = n;
        }
        Ok(c)
    }
}

/// A simulated run's figures, by the names of the recorded ones.
pub type Simulated = BTreeMap<&'static str, f64>;

/// In a load whose writer goes on until a reader is done, everything but the reader is background. A writer that appends goes
/// on when its recorded operations are used up, as far as the load's does; it and all others then begin anew.
pub fn free_the_writer(program: &mut Program) {
    let reads = |ops: &[Op]| ops.iter().filter(|o| matches!(o, Op::Read { .. })).count();
    let Some(most) = program.tasks.iter().map(|t| reads(&t.ops)).max() else { return };
    let Program { tasks, files, pages, .. } = program;
    for t in tasks {
        if reads(&t.ops) == most {
            continue;
        }
        t.background = true;
        append(t, files, pages);
        t.repeat_from = t.ops.iter().position(|o| matches!(o, Op::Write { .. })).map(|i| i as u32);
    }
}

/// Let a task whose last operations append to a file do so until the file has its full length.
fn append(t: &mut TaskProgram, files: &mut [FileInfo], pages: &mut u32) {
    let Some(last) = t.ops.iter().rposition(|o| matches!(o, Op::Write { .. })) else { return };
    let Op::Write { ofd, off, len } = t.ops[last] else { return };
    let before = t.ops[..last].iter().rev().find(|o| matches!(o, Op::Write { .. }));
    if !matches!(before, Some(Op::Write { ofd: o, off: a, len: n }) if *o == ofd && a + n == off) || len == 0 {
        return;
    }
    let file = t.ops.iter().find_map(|o| match o {
        Op::Open { ofd: o, file, .. } if *o == ofd => Some(*file),
        _ => None,
    });
    let Some(f) = file.map(|i| &mut files[i as usize]) else { return };
    let full = (WRITER_BYTES / PAGE_BYTES) as u32;
    if f.exists || f.pages >= full {
        return;
    }
    if let Some(e) = f.extents.last_mut() {
        e.pages += full - f.pages;
    }
    (f.first_page, f.pages) = (*pages, full);
    *pages += full;
    let mut at = off + len;
    let mut place = last + 1;
    while at + len <= WRITER_BYTES {
        t.ops.insert(place, Op::Write { ofd, off: at, len });
        for times in [&mut t.think, &mut t.at, &mut t.recorded] {
            times.insert(place, times[last]);
        }
        t.line.insert(place, t.line[last]);
        (at, place) = (at + len, place + 1);
    }
}

/// The same load with another parameter: how long its writer writes before its reader begins.
fn with_warm_up(program: &Program, warm: Nanos) -> Program {
    let mut p = program.clone();
    for t in p.tasks.iter_mut().filter(|t| !t.background) {
        let sleep = t.ops.iter_mut().find(|o| matches!(o, Op::Pace { .. } | Op::External { .. }));
        if let Some(op) = sleep {
            *op = Op::External { time: warm };
        }
    }
    p
}

/// Operations on files that the load generator logs.
pub fn operations(program: &Program) -> u64 {
    program.tasks.iter().flat_map(|t| &t.ops).filter(|o| matches!(o, Op::Read { .. } | Op::Write { .. })).count() as u64
}

/// Simulate a source under a target's settings.
///
/// # Errors
/// The simulation could not run or hung.
pub fn simulate(program: &Program, settings: &Settings, stop: &AtomicBool) -> Result<Simulated, String> {
    let config = settings.config(operations(program))?;
    let warmed;
    let program = if settings.load() == "W3" {
        let seconds = if settings.limit_mib >= 256 { 8 } else { 5 };
        warmed = with_warm_up(program, Nanos::from_secs(seconds));
        &warmed
    } else {
        program
    };
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(program, &config, 0, Pacing::Closed).map_err(|e| e.to_string())?;
    sim.run_on_for(TAIL);
    let end = sim.run(&mut sink, stop).map_err(|e| e.to_string())?;
    if !end.finished {
        let why = sink.events.last().map_or_else(String::new, |e| format!(": {}", e.text));
        return Err(format!("the simulated machine hung{why}"));
    }
    Ok(figures(program, &sink, end))
}

fn figures(program: &Program, sink: &MemorySink, end: RunSummary) -> Simulated {
    let mut f = Simulated::new();
    let c = sink.counters.unwrap_or_default();
    f.insert("wall_s", seconds(end.elapsed));
    f.insert("disk_busy_s", c.device_busy_ns as f64 / 1e9);
    f.insert("q_read_mb", c.disk_read_bytes as f64 / 1e6);
    f.insert("q_write_mb", c.disk_write_bytes as f64 / 1e6);
    f.insert("read_reqs", c.read_requests as f64);
    f.insert("write_reqs", c.write_requests as f64);
    f.insert("merges", (c.read_merges + c.write_merges) as f64);
    let clients: Vec<usize> = (0..program.tasks.len())
        .filter(|i| program.tasks[*i].ops.iter().any(|o| matches!(o, Op::Link { .. })))
        .collect();
    let ends: Vec<Nanos> =
        sink.clients.iter().filter(|r| clients.contains(&(r.task as usize))).filter_map(|r| r.end).collect();
    let begin = sink.clients.iter().filter(|r| clients.contains(&(r.task as usize))).filter_map(|r| r.start).min();
    if let (Some(begin), Some(first), Some(last)) = (begin, ends.iter().min(), ends.iter().max()) {
        f.insert("first_s", seconds(*first - begin));
        f.insert("last_s", seconds(*last - begin));
    }
    // The load generator's parents prepare; what they read is not logged.
    let parents: Vec<bool> =
        program.tasks.iter().map(|t| t.ops.iter().any(|o| matches!(o, Op::Spawn { .. }))).collect();
    let times = |op: CallOp| -> Vec<f64> {
        let rows = sink.calls.iter().filter(|r| r.op == op && r.len.is_some_and(|l| l.get() > 0));
        rows.filter(|r| !parents[r.task as usize]).map(|r| r.dur.get() as f64 / 1e6).collect()
    };
    let (mut reads, mut writes) = (times(CallOp::Read), times(CallOp::Write));
    if !reads.is_empty() {
        f.insert("app_R_fast", reads.iter().filter(|ms| **ms < FAST_MS).count() as f64 / reads.len() as f64);
        f.insert("miss_ratio", c.read_requests as f64 / reads.len() as f64);
    }
    for (list, p50, p99) in
        [(&mut reads, "app_R_ms_p50", "app_R_ms_p99"), (&mut writes, "app_W_ms_p50", "app_W_ms_p99")]
    {
        list.sort_unstable_by(f64::total_cmp);
        if !list.is_empty() {
            let at = |q: f64| list[((list.len() as f64 * q) as usize).min(list.len() - 1)];
            f.insert(p50, at(0.5));
            f.insert(p99, at(0.99));
        }
    }
    for (name, path) in [("read16_s", "/big16"), ("stream_s", "/stream"), ("hot_s", "/hot")] {
        let of = |r: &&crate::results::CallRow| {
            r.op == CallOp::Read
                && !parents[r.task as usize]
                && r.file.is_some_and(|f| program.files[f as usize].path.ends_with(path))
        };
        let begin = sink.calls.iter().filter(of).map(|r| r.start).min();
        let end = sink.calls.iter().filter(of).map(|r| r.start + r.dur).max();
        if let (Some(a), Some(b)) = (begin, end) {
            f.insert(name, seconds(b - a));
        }
    }
    f
}

fn seconds(t: Nanos) -> f64 {
    t.get() as f64 / 1e9
}

/// Figures, with the value below which one says nothing. Ratios have a floor of 1, so that their error is a difference in
/// hundredths.
const COMPARED: [(&str, f64); 17] = [
    ("wall_s", 0.5),
    ("first_s", 0.5),
    ("last_s", 0.5),
    ("read16_s", 0.5),
    ("hot_s", 0.5),
    ("stream_s", 0.5),
    ("disk_busy_s", 0.5),
    ("q_read_mb", 1.0),
    ("q_write_mb", 1.0),
    ("read_reqs", 20.0),
    ("write_reqs", 20.0),
    ("merges", 20.0),
    ("app_R_fast", 1.0),
    ("miss_ratio", 1.0),
    ("app_R_ms_p99", 1.0),
    ("app_W_ms_p99", 1.0),
    ("app_R_ms_p50", 1.0),
];

/// Compare a simulated run with the recorded one.
pub fn compare(source: &str, metrics: &serde_json::Value, simulated: &Simulated) -> RunFigures {
    let figures: Vec<Figure> = COMPARED
        .iter()
        .filter_map(|&(name, floor)| {
            let (recorded, simulated) = (metrics[name].as_f64()?, *simulated.get(name)?);
            Some(Figure {
                name: name.to_owned(),
                recorded,
                simulated,
                error_pct: 100.0 * (simulated - recorded).abs() / recorded.abs().max(floor),
                telling: recorded >= floor
                    || simulated >= floor
                    || floor == 1.0 && name.contains('_') && recorded > 0.0,
            })
        })
        .collect();
    let median_error_pct = median_error(figures.iter());
    let run = metrics["run"].as_str().unwrap_or_default().to_owned();
    RunFigures { run, variant: source.to_owned(), figures, median_error_pct }
}

/// A pair of source and target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The target was recorded under the source's limit and scheduler.
    pub itself: bool,
    /// Recorded with real-time priorities, so that the machine's other users did not delay it.
    pub quiet: bool,
    /// The target is one of the runs whose throttle logs gave constants of this proof and the throttle's initial rate.
    pub calibrating: bool,
    /// Workload.
    pub workload: String,
    /// Limit, MiB, and scheduler of the target.
    pub limit_mib: u64,
    /// ... scheduler.
    pub scheduler: String,
    /// Figures; the variant names the source.
    pub figures: RunFigures,
}

/// Outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingsReport {
    /// Which proof.
    pub kind: &'static str,
    /// Compared pairs.
    pub pairs: Vec<Pair>,
    /// Which scheduler was faster, where they differed.
    pub orders: Vec<Order>,
    /// Not compared, with reasons.
    pub skipped: Vec<super::Verdict>,
}

impl RecordingsReport {
    /// Median error of a figure over pairs, percent.
    pub fn median_of<'a>(&'a self, name: &str, of: impl Fn(&&'a Pair) -> bool) -> Option<f64> {
        let all = self.pairs.iter().filter(of).flat_map(|p| &p.figures.figures);
        median(all.filter(|f| f.name == name && f.telling).map(|f| f.error_pct).collect())
    }

    /// The goals: medians over predicted quiet runs, and the order of schedulers.
    pub fn holds(&self) -> bool {
        let within = |name: &str, goal: f64| self.median_of(name, |p| !p.itself && p.quiet).is_some_and(|m| m <= goal);
        ["disk_busy_s", "q_read_mb", "q_write_mb", "wall_s"].iter().all(|n| within(n, GOAL_PCT))
            && within("miss_ratio", GOAL_MISS)
            && self.orders.iter().all(|o| o.same)
    }

    /// Names of the figures, in the order in which they are printed.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COMPARED.iter().map(|c| c.0)
    }
}
