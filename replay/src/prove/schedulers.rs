//! `prove schedulers`: block traces of a real kernel, each recorded under a known I/O scheduler on a known modelled disk,
//! replayed under the same scheduler and disk, at the recorded times or closed by process.
//!
//! # Figures
//! - `requests dispatched`, and `merged bios` (bios in requests beyond the first of each, split parts counted alone);
//! - `dispatch order %`: most recorded requests that the replay dispatches in the recorded order (recorded: 100);
//! - `same request %`: recorded requests that the replay dispatches with the same first sector and length;
//! - `D2C` of requests and `Q2C` of bios, read and write apart: median, 90 %, 99 % quantile and mean in ms, where the
//!   recording has at least ten.
//!
//! # Error
//! |simulated - recorded| / recorded in percent; below 0.5 ms, or 5 of a count, the divisor is that. Figures below it on
//! both sides don't count in the medians.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use kreplay_traces::store::{MachineInfo, TraceDir};
use kreplay_traces::units::Nanos;

use super::{Figure, FigureReport, RunFigures, median_error};
use crate::block::{Dir, IoRecord, policies};
use crate::blockreplay::{self, Action, BioDone, BlockProgram, Dispatched, Observe, agreement};
use crate::config::Config;
use crate::sim::Pacing;
use crate::variant::{Library, RECORDED, recorded_device};

/// The bar: median error of the telling figures, percent.
const BAR_PCT: f64 = 10.0;
/// Quantiles of fewer values say nothing.
const FEW: usize = 10;
const FLOOR_MS: f64 = 0.5;
const FLOOR_COUNT: f64 = 5.0;

/// Compares one recording, its bios paced so; the trace's machine facts say scheduler, queue and disk.
///
/// # Errors
/// Why it cannot be compared, in words.
pub fn compare(run: &str, trace: &TraceDir, pacing: Pacing, abort: &AtomicBool) -> Result<RunFigures, String> {
    let machine = &trace.manifest().machine;
    let scheduler = machine
        .devices
        .iter()
        .find_map(|d| d.scheduler.clone())
        .ok_or("the recording does not say which I/O scheduler it ran under")?;
    if !policies().iter().any(|p| p.name == scheduler) {
        return Err(format!("skipped: elevator \"{scheduler}\" is not registered"));
    }
    let config = configure(machine)?;
    let known: Vec<_> = machine.devices.iter().map(|d| (d.dev, d.name.clone(), d.sectors)).collect();
    let program = blockreplay::compile(&trace.manifest().trace_id, &known, trace).map_err(|e| e.to_string())?;
    let mut seen = Seen::default();
    let end = blockreplay::run(&program, &config, pacing, &mut seen, abort).map_err(|e| e.to_string())?;
    if !end.finished {
        return Err("the replay hung: bios wait that nothing will ever start".to_owned());
    }
    let figures = figures(&program, &seen);
    let median_error_pct = median_error(figures.iter());
    Ok(RunFigures { run: run.to_owned(), variant: scheduler, figures, median_error_pct })
}

/// Puts compared runs into a report.
pub fn report(kind: &'static str, results: Vec<(String, Result<RunFigures, String>)>) -> FigureReport {
    FigureReport::of(kind, BAR_PCT, results)
}

/// Queue, scheduler with its tunables, and disk of a recording.
fn configure(machine: &MachineInfo) -> Result<Config, String> {
    let mut library = Library::builtin().map_err(|e| e.to_string())?;
    library.add_recorded(Some(machine)).map_err(|e| e.to_string())?;
    // Nothing of a block trace depends on the size of memory, which may be too small for that kernel.
    let pattern = format!("linux-2.4.16+blk-mq+{RECORDED}+machine.ram=64MiB");
    let variant = library.select(&[pattern], &[], &[]).map_err(|e| e.to_string())?;
    let mut c = variant.into_iter().next().ok_or("no variant")?.config;
    c.device = recorded_device(&machine.facts).ok_or("the recording does not describe its disk")?;
    // That a writer sleeps until it is below its dirty limit, which lifts the throttle, is not in a block trace.
    c.queue.wbt.min_lat_us = 0;
    Ok(c)
}

#[derive(Default)]
struct Seen {
    requests: Vec<IoRecord>,
    /// Q2C by direction, ms.
    q2c: [Vec<f64>; 2],
}

impl Observe for Seen {
    fn request(&mut self, r: &IoRecord) {
        self.requests.push(*r);
    }

    fn bio(&mut self, a: &Action, b: &BioDone) {
        // Compared are the bios that the recording shows complete.
        if a.done != Nanos::MAX && a.nr > 0 {
            self.q2c[a.flags.dir().index()].push(ms(b.c.saturating_sub(b.q)));
        }
    }
}

fn ms(t: Nanos) -> f64 {
    t.get() as f64 / 1e6
}

fn figures(program: &BlockProgram, seen: &Seen) -> Vec<Figure> {
    let recorded: Vec<_> =
        program.requests.iter().map(|r| Dispatched { dev: r.dev, dir: r.dir, sector: r.sector, nr: r.nr }).collect();
    let mut simulated = seen.requests.clone();
    simulated.sort_by_key(|r| r.d);
    let simulated: Vec<_> = simulated
        .iter()
        .map(|r| Dispatched { dev: r.dev as u16, dir: r.dir, sector: r.sector.get(), nr: r.nr })
        .collect();
    let agreed = agreement(&recorded, &simulated);
    let share = |n: usize| 100.0 * n as f64 / agreed.of.max(1) as f64;
    let mut out = vec![
        figure("requests dispatched", recorded.len() as f64, simulated.len() as f64, FLOOR_COUNT),
        figure("dispatch order %", 100.0, share(agreed.in_order), FLOOR_COUNT),
        figure("same request %", 100.0, share(agreed.same), FLOOR_COUNT),
    ];
    for dir in [Dir::Read, Dir::Write] {
        let letter = if dir == Dir::Read { 'R' } else { 'W' };
        let d2c = |c: Option<Nanos>, d: Nanos| c.map(|c| ms(c.saturating_sub(d)));
        let d2c_recorded = program.requests.iter().filter(|r| r.dir == dir).filter_map(|r| d2c(r.c, r.d)).collect();
        let d2c_simulated = seen.requests.iter().filter(|r| r.dir == dir).filter_map(|r| d2c(Some(r.c), r.d)).collect();
        latencies(&mut out, &format!("D2C {letter}"), d2c_recorded, d2c_simulated);
        let bios = program.actions.iter().filter(|a| a.flags.dir() == dir && a.done != Nanos::MAX && a.nr > 0);
        let q2c_recorded = bios.map(|a| ms(a.done.saturating_sub(a.at))).collect();
        latencies(&mut out, &format!("Q2C {letter}"), q2c_recorded, seen.q2c[dir.index()].clone());
    }
    out
}

fn latencies(out: &mut Vec<Figure>, name: &str, mut recorded: Vec<f64>, mut simulated: Vec<f64>) {
    if recorded.len() < FEW || simulated.len() < FEW {
        return;
    }
    recorded.sort_unstable_by(f64::total_cmp);
    simulated.sort_unstable_by(f64::total_cmp);
    for (label, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let at = |v: &[f64]| v[((v.len() as f64 * q).ceil() as usize).clamp(1, v.len()) - 1];
        out.push(figure(&format!("{name} {label} ms"), at(&recorded), at(&simulated), FLOOR_MS));
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    out.push(figure(&format!("{name} mean ms"), mean(&recorded), mean(&simulated), FLOOR_MS));
}

fn figure(name: &str, recorded: f64, simulated: f64, floor: f64) -> Figure {
    Figure {
        name: name.to_owned(),
        recorded,
        simulated,
        error_pct: 100.0 * (simulated - recorded).abs() / recorded.max(floor),
        telling: recorded >= floor || simulated >= floor,
    }
}

/// Whether a folder looks like a recording.
pub fn is_recording(folder: &Path) -> bool {
    folder.join("run.json").is_file()
}
