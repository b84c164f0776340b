//! `prove linux24`: the runs of real 2.2 and 2.4 kernels, their loads generated again and simulated under the same
//! kernel's variant.
//!
//! # Figures
//! For every run the same, as far as its files have them:
//! - `t <mark>`: seconds from the load's start to each event that ends a pass, a file, a client or the whole load
//!   (progress lines within a pass are left out). Of processes that all do the same (receivers, clients, hogs) which one is
//!   the first is chance: their events are compared by rank, `#0` being the first to get there;
//! - `<mark> mean ms`: mean duration of the passes of a load without end;
//! - `data MB read`, `data MB written`, `data avg read KB`, `data avg write KB`, `data sequential %`, `data busy s`, and the same of
//!   the swap disk, from the disk logs' totals until the machine stopped, about two seconds after the load's end;
//! - `swapped in MB`, `swapped out MB`, `min free KB`, `max swpd KB`; `order-0 failures` and `kills` until the load's end (what
//!   fails afterwards are init and the sampler);
//! - `cache KB at end`, `dentries at end`, `inodes at end` from the last sample.
//!
//! # Clocks
//! Samples are taken at the recorded times, and kupdate, which has slept since the machine started, wakes at the times that
//! follow from how long it had been up. Where a recording has fewer interrupts than timer ticks between two samples, the
//! emulated machine stood still; recorded times after it are shortened by that.
//!
//! # State at the start
//! What was left of init's slice, which the load's processes share, how far apart processes that begin together began
//! (less than a millisecond), and how fast the emulator was (its host had other work) are not recorded. Each run is simulated from fifteen states drawn at random, the same every time,
//! and a figure is the middle one of those that come out. A time that is never reached counts as later than all others.
//!
//! # Error
//! |simulated - recorded| / recorded in percent; where the recorded figure is so small that a ratio says nothing, the
//! divisor is a floor (1 MB, 0.1 s, 4 KB, 5 %, 256 KB of cache, 1 of a count). Figures that are below their floor on both sides
//! (no swap traffic in a load that does not swap) are listed, but don't count in the medians: they would flatter them.

mod clock;
mod draws;
mod messages;

use self::clock::{MachineClock, serial_log};
use self::messages::Messages;
use super::{Figure, FigureReport, RunFigures, median_error, order};
use crate::compile::{CompileOptions, StoredTrace, compile};
use crate::config::{Config, DeviceConfig, ReclaimPolicy};
use crate::program::{AreaInfo, Program, Start, TaskProgram};
use crate::results::{MarkRow, MemorySink, SampleRow};
use crate::sim::{Pacing, Sim};
use crate::variant::Library;
use kreplay_traces::store::{TraceDir, WriterOptions};
use kreplay_traces::synth::{linux24, write_trace};
use kreplay_traces::units::Nanos;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Until the machine was switched off after its load had ended.
const TAIL: Nanos = Nanos::from_millis(2100);
/// So many states of the machine at the load's start are tried. Odd, so that there is a middle one.
const DRAWS: u64 = 15;
/// The bar: median error of the telling figures, percent.
const BAR_PCT: f64 = 25.0;
/// Marks inside a pass.
const PROGRESS: [&str; 5] = ["rprog", "bigprog", "wprog", "phase", "untar dirs"];
const MB: f64 = 1_048_576.0;
/// So many samples at most have runs that were not sampled while the load ran.
const UNSAMPLED: u32 = 3;

/// Totals of a disk log.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(non_snake_case, reason = "names of the recorded files")]
struct DiskTotals {
    read_MB: f64,
    write_MB: f64,
    avg_read_KB: f64,
    avg_write_KB: f64,
    sequential_pct: f64,
    busy_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, reason = "names of the recorded files")]
struct Summary {
    events: Vec<(f64, String)>,
    swapin_MB: f64,
    swapout_MB: f64,
    min_free_kb: f64,
    max_swpd_kb: f64,
    #[serde(default)]
    samples: u32,
    hdc: Option<DiskTotals>,
    hdd: Option<DiskTotals>,
}

/// Why a run could not be compared.
pub type Why = String;

/// Compare every run folder below `dir` (or `dir` alone, if it is one), in the order of their names, on all processors.
///
/// # Errors
/// If `dir` can't be listed or has no run folder.
pub fn run(dir: &Path, stop: &AtomicBool) -> Result<FigureReport, String> {
    let list = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let is_run = |p: &PathBuf| p.join("run.json").is_file();
    let mut folders: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).filter(is_run).collect();
    if folders.is_empty() && is_run(&dir.to_owned()) {
        // A run itself, not a folder of runs.
        folders.push(dir.to_owned());
    }
    folders.sort();
    if folders.is_empty() {
        return Err(format!("{}: no folder with a run.json", dir.display()));
    }
    use rayon::prelude::*;
    let results: Vec<(String, Result<RunFigures, Why>)> = folders
        .par_iter()
        .map(|f| {
            let whole = std::path::absolute(f).unwrap_or_else(|_| f.clone());
            let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let result = compare(f, &name, stop);
            (name, result)
        })
        .collect();
    let mut report = FigureReport::of("linux24", BAR_PCT, results);
    report.order = order::of(&report.runs);
    Ok(report)
}

fn compare(folder: &Path, name: &str, stop: &AtomicBool) -> Result<RunFigures, Why> {
    if stop.load(Ordering::Relaxed) {
        return Err("interrupted".into());
    }
    let described = linux24::from_run_json(&folder.join("run.json")).map_err(|e| e.to_string())?;
    let variant = variant_of(&described);
    let library = Library::builtin().map_err(|e| e.to_string())?;
    if !library.list().any(|s| s.name == variant) {
        return Err(format!("no variant {variant} yet"));
    }
    if !described.completed {
        return Err("the recording was cut off by its time limit".into());
    }
    let text = std::fs::read(folder.join("summary.json")).map_err(|e| format!("summary.json: {e}"))?;
    let summary: Summary = serde_json::from_slice(&text).map_err(|e| format!("summary.json: {e}"))?;
    let (program, config) = prepare(folder)?;
    let serial = serial_log(folder);
    let samples = std::fs::read_to_string(folder.join("samples.csv")).unwrap_or_default();
    let (clock, told) = (MachineClock::of(&serial, &samples), Messages::of(&serial));
    let figures = (0..DRAWS)
        .map(|draw| {
            let config = draws::at_some_speed(&config, draw);
            let sink = simulate(&program, &config, &clock, draw, stop)?;
            let comparison = Comparison {
                summary: &summary,
                clock: &clock,
                told,
                samples: &samples,
                sink: &sink,
                marks: &program.marks,
                completion_page_ns: config.machine.completion_page_ns,
                figures: Vec::new(),
            };
            Ok(comparison.all())
        })
        .collect::<Result<Vec<_>, Why>>()?;
    let figures = draws::median_of(figures);
    let median_error_pct = median_error(figures.iter());
    Ok(RunFigures { run: name.to_owned(), variant, figures, median_error_pct })
}

/// Simulate a run on a machine that began in one of the states that it may have been in.
fn simulate(
    program: &Program,
    config: &Config,
    clock: &MachineClock,
    draw: u64,
    stop: &AtomicBool,
) -> Result<MemorySink, Why> {
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(program, config, draw, Pacing::Closed).map_err(|e| e.to_string())?;
    map_bystanders(&mut sim, program);
    // Where init itself is the link, it is no task here that could have a slice.
    if program.links.is_empty() {
        sim.draw_first_slice(draw);
    }
    if let Some(first) = clock.kupdate_in(Nanos::from_millis(config.writeback.interval_ms)) {
        sim.wake_kupdate_in(first);
    }
    if config.reclaim.policy == ReclaimPolicy::Aging
        && let Some(first) = clock.kswapd_in()
    {
        sim.wake_kswapd_in(first);
    }
    if let Some(at) = clock.first_sample {
        sim.sample_first_at(Nanos((at * 1e9) as u64));
    }
    sim.run_on_for(TAIL);
    sim.run(&mut sink, stop).map_err(|e| e.to_string())?;
    Ok(sink)
}

fn variant_of(run: &linux24::Run) -> String {
    format!("linux-{}", run.kernel)
}

/// The program and the configuration of a run: its load, generated; its kernel's variant on its machine.
///
/// # Errors
/// If the folder does not describe a run, or its kernel has no variant.
pub fn prepare(folder: &Path) -> Result<(Program, Config), Why> {
    let mut run = linux24::from_run_json(&folder.join("run.json")).map_err(|e| e.to_string())?;
    without_refused(folder, &mut run)?;
    let mut library = Library::builtin().map_err(|e| e.to_string())?;
    let selected = library.select(&[variant_of(&run)], &[], &[]).map_err(|e| e.to_string())?;
    let mut config = selected[0].config.clone();
    adapt(&mut config, &run);
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = temp.path().join("trace");
    write_trace(run.load, &run.params, None, &path, WriterOptions::default()).map_err(|e| e.to_string())?;
    let trace = TraceDir::open(&path).map_err(|e| e.to_string())?;
    let mut source = StoredTrace::new(&trace).map_err(|e| e.to_string())?;
    let mut program = compile(&mut source, &CompileOptions::default()).map_err(|e| e.to_string())?;
    bystanders(&mut program);
    Ok((program, config))
}

/// A process whose mapping the recorded kernel refused did nothing. Whether it is refused depends on how much the others have
/// touched in the tenth of a second before, so it is taken from the recording.
fn without_refused(folder: &Path, run: &mut linux24::Run) -> Result<(), Why> {
    let Ok(text) = std::fs::read(folder.join("summary.json")) else { return Ok(()) };
    let summary: Summary = serde_json::from_slice(&text).map_err(|e| format!("summary.json: {e}"))?;
    let refused = summary.events.iter().filter(|(_, e)| e.starts_with("mmap fail")).count() as u64;
    if refused > 0 && run.load.name == "hog" {
        let left = run.params.get("processes").saturating_sub(refused).max(1);
        run.params.set("processes", left).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The other processes of the recorded machine: init, which ran the load and perhaps only waits for its children, and the
/// sampler, whose memory is locked. They do nothing here and nothing of theirs can be unmapped, but their address spaces have
/// their turn: in the event traces of 2.4.9 every third round of kswapd looks at the load's.
fn bystanders(program: &mut Program) {
    for (tid, name) in [(1, "init"), (8, "sampler")] {
        let task = program.tasks.len() as u32;
        program.areas.push(AreaInfo { task, pages: 1, first_page: program.pages, file: None, private: true });
        program.pages += 1;
        program.tasks.push(TaskProgram { background: true, ..TaskProgram::new(tid, name, Start::Spawned) });
    }
}

/// Map what [`bystanders`] have: the last areas of the program. The sampler was forked before the load's processes, which stand
/// before it, behind init.
fn map_bystanders(sim: &mut Sim<'_>, program: &Program) {
    // Where the load's first process uses memory itself, it is init.
    let init_waits = program.areas.iter().all(|a| a.task != 0);
    for (k, (area, a)) in program.areas.iter().enumerate().rev().take(2).enumerate() {
        sim.mm.spaces.enter_bystander(a.task, k > 0);
        if k == 0 || init_waits {
            sim.mm.spaces.map(a.task, area as u32, a.first_page, a.pages);
        }
    }
}

/// The run's machine under the kernel's variant.
fn adapt(config: &mut Config, run: &linux24::Run) {
    config.machine.ram = run.ram_mib * 1024;
    config.machine.swap = run.swap_mib * 1024;
    let d = run.disk;
    if let DeviceConfig::Rotating {
        overhead_us,
        seek_min_us,
        seek_span_us,
        rotation_us,
        rate_bytes_s,
        stroke_bytes,
        ..
    } = &mut config.device
    {
        (*overhead_us, *seek_min_us, *seek_span_us) = (d.overhead_us, d.seek_a_us, d.seek_b_us);
        (*rotation_us, *rate_bytes_s, *stroke_bytes) = (d.rot_us, d.rate_bytes_s, d.stroke_bytes);
    }
    if let Some(e) = run.elevator {
        config.elevator.read_latency = e.read_latency as u32;
        config.elevator.write_latency = e.write_latency as u32;
        config.elevator.max_bomb_segments = e.max_bomb as u32;
    }
}

/// The mark of a process among its like, without the number that tells it from the others: `rep 3 0` is `rep # 0`.
fn ranked(mark: &str) -> Option<String> {
    ["rep ", "client done ", "hogpass "].iter().find_map(|what| {
        let rest = mark.strip_prefix(what)?;
        let number = rest.find(' ').unwrap_or(rest.len());
        Some(format!("{what}#{}", &rest[number..]))
    })
}

struct Comparison<'a> {
    summary: &'a Summary,
    clock: &'a MachineClock,
    told: Messages,
    /// Text of samples.csv.
    samples: &'a str,
    sink: &'a MemorySink,
    marks: &'a [String],
    completion_page_ns: u64,
    figures: Vec<Figure>,
}

impl Comparison<'_> {
    fn add(&mut self, name: impl Into<String>, recorded: f64, simulated: f64, floor: f64) {
        let error_pct = (simulated - recorded).abs() / recorded.abs().max(floor) * 100.0;
        let telling = recorded.abs() >= floor || simulated.abs() >= floor;
        self.figures.push(Figure { name: name.into(), recorded, simulated, error_pct, telling });
    }

    fn all(mut self) -> Vec<Figure> {
        self.times();
        self.disks();
        let c = self.sink.counters.unwrap_or_default();
        let pages_mb = |pages: u64| pages as f64 * 4096.0 / MB;
        self.add("swapped in MB", self.summary.swapin_MB, pages_mb(c.swap_in_pages), 1.0);
        self.add("swapped out MB", self.summary.swapout_MB, pages_mb(c.swap_out_pages), 1.0);
        // The recording samples once a second, and so does the simulation; runs without sampling have one sample before the
        // load and one behind it.
        let mut samples: Vec<SampleRow> = self.sink.samples.clone();
        if self.summary.samples <= UNSAMPLED {
            samples.drain(..samples.len().saturating_sub(1));
        }
        if !samples.is_empty() {
            let min_free = samples.iter().map(|s| s.free_kib).min().unwrap_or_default();
            let max_swpd = samples.iter().map(|s| s.swpd_kib).max().unwrap_or_default();
            self.add("min free KB", self.summary.min_free_kb, min_free as f64, 256.0);
            self.add("max swpd KB", self.summary.max_swpd_kb, max_swpd as f64, 1024.0);
        }
        let told = self.told;
        self.add("order-0 failures", told.failures, c.alloc_failures as f64, 1.0);
        self.add("kills", told.kills, c.oom_kills as f64, 1.0);
        self.last_sample();
        self.figures
    }

    /// Simulated times of a mark, in order.
    fn times_of(&self, mark: &str) -> Vec<Nanos> {
        let is = |m: &&MarkRow| self.marks[m.mark as usize] == mark;
        self.sink.marks.iter().filter(is).map(|m| m.time).collect()
    }

    fn times(&mut self) {
        let start = self.times_of("start").first().copied().unwrap_or_default();
        let mut recorded: Vec<(String, Vec<f64>)> = Vec::new();
        for (at, event) in &self.summary.events {
            let Some(mark) = linux24::mark_of_event(event) else { continue };
            if mark == "start" || PROGRESS.iter().any(|p| mark.starts_with(p)) {
                continue;
            }
            let mark = ranked(&mark).unwrap_or(mark);
            match recorded.iter_mut().find(|(m, _)| *m == mark) {
                Some((_, times)) => times.push(self.clock.running(*at)),
                None => recorded.push((mark, vec![self.clock.running(*at)])),
            }
        }
        for (mark, mut times) in recorded {
            if mark.contains('#') {
                times.sort_unstable_by(f64::total_cmp);
                let is = |m: &&MarkRow| ranked(&self.marks[m.mark as usize]).as_ref() == Some(&mark);
                let mut simulated: Vec<Nanos> = self.sink.marks.iter().filter(is).map(|m| m.time).collect();
                simulated.sort_unstable();
                for (k, at) in times.into_iter().enumerate() {
                    let simulated = simulated.get(k).map(|t| t.saturating_sub(start).as_secs_f64());
                    self.time(&mark.replace('#', &format!("#{k}")), at, simulated);
                }
                continue;
            }
            let simulated: Vec<f64> =
                self.times_of(&mark).iter().map(|t| (t.saturating_sub(start)).as_secs_f64()).collect();
            if times.len() == 1 {
                self.time(&mark, times[0], simulated.first().copied());
            } else {
                self.add(format!("{mark} count"), times.len() as f64, simulated.len() as f64, 1.0);
            }
        }
    }

    fn time(&mut self, mark: &str, recorded: f64, simulated: Option<f64>) {
        match simulated {
            Some(at) => self.add(format!("t {mark} s"), recorded, at, 0.1),
            // The simulated load never got there: as wrong as can be.
            None => self.figures.push(Figure {
                name: format!("t {mark} s"),
                recorded,
                simulated: -1.0,
                error_pct: 100.0,
                telling: true,
            }),
        }
    }

    fn disks(&mut self) {
        let devices = self.sink.io.iter().map(|r| r.dev).max().unwrap_or(0).max(1);
        for (name, recorded, dev) in [("data", self.summary.hdc, 0), ("swap", self.summary.hdd, devices)] {
            let Some(recorded) = recorded else { continue };
            let mut s = DiskTotals::default();
            let (mut reads, mut writes, mut sequential) = (0u64, 0u64, 0u64);
            for r in self.sink.io.iter().filter(|r| r.dev == dev) {
                let bytes = f64::from(r.nr) * 512.0;
                match r.dir {
                    crate::block::Dir::Read => {
                        reads += 1;
                        s.read_MB += bytes / MB;
                    }
                    crate::block::Dir::Write => {
                        writes += 1;
                        s.write_MB += bytes / MB;
                    }
                }
                sequential += u64::from((0..=128).contains(&r.seek_sectors));
                // What the disk log counts as service ends before the interrupt is handled.
                let handling = u64::from(r.nr).div_ceil(8) * self.completion_page_ns;
                s.busy_s += (r.c - r.d).as_secs_f64() - handling as f64 / 1e9;
            }
            s.avg_read_KB = s.read_MB * 1024.0 / (reads.max(1) as f64);
            s.avg_write_KB = s.write_MB * 1024.0 / (writes.max(1) as f64);
            s.sequential_pct = sequential as f64 * 100.0 / ((reads + writes).max(1) as f64);
            self.add(format!("{name} MB read"), recorded.read_MB, s.read_MB, 1.0);
            self.add(format!("{name} MB written"), recorded.write_MB, s.write_MB, 1.0);
            // Sizes and order of a handful of requests (superblock, swap header) say nothing.
            if recorded.read_MB >= 1.0 {
                self.add(format!("{name} avg read KB"), recorded.avg_read_KB, s.avg_read_KB, 4.0);
            }
            if recorded.write_MB >= 1.0 {
                self.add(format!("{name} avg write KB"), recorded.avg_write_KB, s.avg_write_KB, 4.0);
            }
            if recorded.read_MB + recorded.write_MB >= 1.0 {
                self.add(format!("{name} sequential %"), recorded.sequential_pct, s.sequential_pct, 5.0);
                self.add(format!("{name} busy s"), recorded.busy_s, s.busy_s, 0.1);
            }
        }
    }

    /// Caches at the end, from the last line of samples.csv.
    fn last_sample(&mut self) {
        let mut lines = self.samples.lines();
        let (Some(header), Some(last)) = (lines.next(), lines.last()) else { return };
        let value = |column: &str| -> Option<f64> {
            let i = header.split(',').position(|c| c == column)?;
            last.split(',').nth(i)?.parse().ok()
        };
        let Some(end) = self.sink.samples.last().copied() else { return };
        if let (Some(cached), Some(swap_cached)) = (value("m_Cached"), value("m_SwapCached")) {
            // 2.4's "Cached" leaves the swap cache out, vmstat's column does not.
            self.add("cache KB at end", cached + swap_cached, end.cache_kib as f64, 256.0);
        }
        if let Some(n) = value("dentry_active").filter(|n| *n > 100.0) {
            self.add("dentries at end", n, end.dentries as f64, 100.0);
        }
        if let Some(n) = value("inode_active").filter(|n| *n > 100.0) {
            self.add("inodes at end", n, end.inodes as f64, 100.0);
        }
    }
}
