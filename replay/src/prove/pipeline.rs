//! `prove pipeline`: reading and writing times of a chain of tasks on a real machine, from the public evaluation of another
//! page-cache model (WRENCH, CLUSTER 2021).
//!
//! # Input
//! CSV, `#` begins a comment. Header `size_mb,compute_s,read1_s,write1_s,...`; a line for each file size (10^6 bytes). The
//! first line is the one that the machine's constants (profile `m-pipeline`) were calibrated on; the goal counts the others.
//!
//! # Miniature
//! A hundred gigabytes are 24 million pages, and twelve such passes. The chain is simulated at a sixteenth of its size:
//! files, memory and rates divided by 16, what each page, call and command takes multiplied by it, times of the kernel's timers
//! and of computing as they are. Shares of memory, and times, stay what they were. (The idea is that of miniature
//! simulations: C. Waldspurger, T. Saemundsson, I. Ahmad, N. Park: Cache Modeling and Optimization using Miniature
//! Simulations, USENIX ATC 2017; here nothing is sampled.)
//!
//! # Error
//! |simulated - recorded| / recorded, percent; the mean over the lines that nothing was calibrated on.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use kreplay_traces::store::{TraceDir, WriterOptions};
use kreplay_traces::synth::{self, write_trace};
use kreplay_traces::units::Nanos;
use rayon::prelude::*;
use serde::Serialize;

use super::{Figure, RunFigures, median_error};
use crate::compile::{CompileOptions, StoredTrace, compile};
use crate::config::{Config, DeviceConfig};
use crate::results::MemorySink;
use crate::sim::{Pacing, Sim};
use crate::variant::Library;

/// The kernel nearest to that of the study (4.18) on the study's machine.
const VARIANT: &str = "linux-6.1+m-pipeline";
/// Files, memory and rates are divided by this.
const SCALE: u64 = 16;
/// The goal: mean error of the lines that nothing was calibrated on, percent.
const BAR_PCT: f64 = 15.0;

/// Outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineReport {
    /// Which proof.
    pub kind: &'static str,
    /// How many times smaller the simulated chain is.
    pub scale: u64,
    /// File sizes, the calibrated one first.
    pub runs: Vec<RunFigures>,
    /// Mean error of the first one, percent.
    pub calibrated_mean_pct: f64,
    /// Mean error of the others, percent.
    pub predicted_mean_pct: f64,
    /// The goal for the latter, percent.
    pub bar_pct: f64,
}

impl PipelineReport {
    /// Whether the goal is met.
    pub fn holds(&self) -> bool {
        self.predicted_mean_pct <= self.bar_pct
    }
}

/// A line of the input.
#[derive(Clone, Debug, PartialEq)]
struct Recorded {
    size_mb: u64,
    compute_s: f64,
    /// Seconds of reading and writing, a pair a task.
    tasks: Vec<[f64; 2]>,
}

/// Simulates every line of the file.
///
/// # Errors
/// The file cannot be read or is not as described (with the line), or a simulation could not run.
pub fn run(file: &Path, stop: &AtomicBool) -> Result<PipelineReport, String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| at(&e))?;
    let lines = parse(&text).map_err(|e| at(&e))?;
    let config = miniature(Library::builtin().map_err(|e| e.to_string())?)?;
    let runs: Vec<RunFigures> = lines.par_iter().map(|r| compare(r, &config, stop)).collect::<Result<_, _>>()?;
    Ok(PipelineReport {
        kind: "pipeline",
        scale: SCALE,
        calibrated_mean_pct: mean(&runs[..1]),
        predicted_mean_pct: mean(&runs[1..]),
        runs,
        bar_pct: BAR_PCT,
    })
}

fn mean(runs: &[RunFigures]) -> f64 {
    let all: Vec<f64> = runs.iter().flat_map(|r| &r.figures).map(|f| f.error_pct).collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

fn parse(text: &str) -> Result<Vec<Recorded>, String> {
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    let (_, header) = lines.next().ok_or("empty; a header is expected")?;
    if !header.starts_with("size_mb,compute_s,read1_s,write1_s") {
        return Err(format!("header \"{header}\", expected size_mb,compute_s,read1_s,write1_s,..."));
    }
    let mut out = Vec::new();
    for (i, line) in lines {
        let wrong = || format!("line {}: expected a positive number for each column of the header", i + 1);
        let cells: Vec<f64> =
            line.split(',').map(|c| c.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
        if cells.len() != header.split(',').count() || !cells.len().is_multiple_of(2) || cells.iter().any(|c| *c <= 0.0)
        {
            return Err(wrong());
        }
        let tasks = cells[2..].chunks_exact(2).map(|c| [c[0], c[1]]).collect();
        out.push(Recorded { size_mb: cells[0] as u64, compute_s: cells[1], tasks });
    }
    if out.len() < 2 {
        return Err("two sizes are needed: one that was calibrated on, and one to predict".to_owned());
    }
    Ok(out)
}

/// The machine, [`SCALE`] times smaller and slower.
fn miniature(mut library: Library) -> Result<Config, String> {
    let found = library.select(&[VARIANT.to_owned()], &[], &[]).map_err(|e| e.to_string())?;
    let mut c = found.into_iter().next().ok_or("no variant")?.config;
    let m = &mut c.machine;
    m.ram /= SCALE;
    m.reserved /= SCALE;
    for ns in [
        &mut m.syscall_ns,
        &mut m.copy_page_ns,
        &mut m.fault_ns,
        &mut m.fresh_frame_ns,
        &mut m.touch_ns,
        &mut m.scan_page_ns,
        &mut m.page_cache_add_ns,
        &mut m.submit_ns,
    ] {
        *ns *= SCALE;
    }
    let b = &mut c.writeback.balanced;
    b.start_kib_s /= SCALE;
    b.start_rate_kib_s /= SCALE;
    if let DeviceConfig::Ssd { read_ns, program_ns, ack_ns, overhead_ns, link_bytes_s, buffer_bytes, .. } =
        &mut c.device
    {
        for ns in [read_ns, program_ns, ack_ns, overhead_ns] {
            *ns *= SCALE;
        }
        *link_bytes_s /= SCALE;
        *buffer_bytes /= SCALE;
    }
    Ok(c)
}

fn compare(r: &Recorded, config: &Config, stop: &AtomicBool) -> Result<RunFigures, String> {
    let settings = [
        format!("tasks={}", r.tasks.len()),
        format!("size_mb={}", r.size_mb / SCALE),
        format!("compute_ms={}", (r.compute_s * 1000.0) as u64),
    ];
    let (load, params) = synth::find("pipeline", &settings).map_err(|e| e.to_string())?;
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = temp.path().join("trace");
    write_trace(load, &params, None, &path, WriterOptions::default()).map_err(|e| e.to_string())?;
    let trace = TraceDir::open(&path).map_err(|e| e.to_string())?;
    let mut source = StoredTrace::new(&trace).map_err(|e| e.to_string())?;
    let program = compile(&mut source, &CompileOptions::default()).map_err(|e| e.to_string())?;
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(&program, config, 0, Pacing::Closed).map_err(|e| e.to_string())?;
    let end = sim.run(&mut sink, stop).map_err(|e| e.to_string())?;
    if !end.finished {
        return Err(format!("the simulated machine hung at {} MB", r.size_mb));
    }
    let time_of = |name: String| -> Result<Nanos, String> {
        let row = sink.marks.iter().find(|m| program.marks.get(m.mark as usize).is_some_and(|n| *n == name));
        row.map(|m| m.time).ok_or_else(|| format!("the chain never came to \"{name}\""))
    };
    let mut figures = Vec::new();
    for (n, recorded) in (1..).zip(&r.tasks) {
        for (what, [from, to], recorded) in
            [("read", ["begin", "read"], recorded[0]), ("write", ["computed", "wrote"], recorded[1])]
        {
            let took = time_of(format!("{to} {n}"))? - time_of(format!("{from} {n}"))?;
            let simulated = took.get() as f64 / 1e9;
            figures.push(Figure {
                name: format!("{what}{n}_s"),
                recorded,
                simulated,
                error_pct: 100.0 * (simulated - recorded).abs() / recorded,
                telling: true,
            });
        }
    }
    let median_error_pct = median_error(figures.iter());
    Ok(RunFigures { run: format!("{} MB", r.size_mb), variant: VARIANT.to_owned(), figures, median_error_pct })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "size_mb,compute_s,read1_s,write1_s\n";

    #[test]
    fn a_file_that_is_not_as_described_is_refused_with_its_line() {
        assert!(parse("").is_err());
        assert!(parse("a,b\n1,2\n").unwrap_err().contains("header"));
        assert!(parse(&format!("{HEADER}1,2,3\n")).unwrap_err().contains("line 2"));
        assert!(parse(&format!("{HEADER}# note\n1,2,x,4\n")).unwrap_err().contains("line 3"));
        assert!(parse(&format!("{HEADER}1,2,3,4\n")).unwrap_err().contains("two sizes"));
        let two = parse(&format!("{HEADER}1,2,3,4\n5,6,7,8\n")).unwrap();
        assert_eq!(two[1], Recorded { size_mb: 5, compute_s: 6.0, tasks: vec![[7.0, 8.0]] });
    }

    #[test]
    fn what_is_cached_is_read_at_the_speed_of_memory_and_a_long_write_at_that_of_the_disk() {
        let config = miniature(Library::builtin().unwrap()).unwrap();
        let r = Recorded { size_mb: 4000, compute_s: 1.0, tasks: vec![[1.0, 1.0]; 2] };
        let got = compare(&r, &config, &AtomicBool::new(false)).unwrap();
        let of = |name: &str| got.figures.iter().find(|f| f.name == name).unwrap().simulated;
        // 4 GB at 510 MB/s; the second task's input was written just before.
        assert!((of("read1_s") - 7.84).abs() < 0.5, "{got:?}");
        assert!(of("read2_s") < 0.25 * of("read1_s"), "{got:?}");
    }
}
