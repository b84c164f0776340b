//! `kreplay prove recordings DIR`: reads recordings with system calls, simulates them under the settings of the others.

use super::schedulers::folders;
use super::{Kind, Report};
use crate::signal;
use kreplay_parsers::ingest::{self as parse, Options, Watch};
use kreplay_replay::compile::{CompileOptions, StoredTrace, compile};
use kreplay_replay::program::Program;
use kreplay_replay::prove::Verdict;
use kreplay_replay::prove::recordings::{
    Pair, RecordingsReport, Settings, Simulated, chunk_bandwidth_kib_s, compare, free_the_writer, orders, simulate,
};
use kreplay_traces::input::{Input, InputLimits};
use kreplay_traces::store::{TraceDir, TraceWriter, WriterOptions};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

struct Source {
    settings: Settings,
    /// Of the size of the targets.
    full: bool,
    program: Program,
}

/// Compares every line of the folder's `metrics.jsonl`, and every run folder's `metrics.json` that is not among them.
pub(super) fn run(dir: &Path, stop: &AtomicBool) -> Result<RecordingsReport, String> {
    let mut runs: Vec<PathBuf> = Vec::new();
    for folder in folders(dir)? {
        if folder.join("run.json").is_file() {
            runs.push(folder);
        } else {
            runs.extend(folders(&folder)?.into_iter().filter(|f| f.join("run.json").is_file()));
        }
    }
    let mut skipped = Vec::new();
    let sources: Vec<Result<Source, Verdict>> = runs
        .par_iter()
        .filter(|f| log_of(f, "strace").is_some())
        .map(|folder| {
            let name = folder.strip_prefix(dir).unwrap_or(folder).display().to_string();
            source(folder, folder.parent() == Some(dir)).map_err(|why| Verdict { case: name, why })
        })
        .collect();
    let mut good = Vec::new();
    for s in sources {
        match s {
            Ok(s) => good.push(s),
            Err(v) => skipped.push(v),
        }
    }
    // Small samples stand in only for workloads that no run of full size shows the system calls of.
    let full: Vec<String> = good.iter().filter(|s| s.full).map(|s| s.settings.load().to_owned()).collect();
    good.retain(|s| s.full || s.settings.load() == "W3" && !full.iter().any(|l| l == "W3"));
    let targets = targets(dir, &runs)?;
    let mut jobs: BTreeMap<(usize, String), &Settings> = BTreeMap::new();
    for (settings, _) in &targets {
        let mut any = false;
        for (i, _) in good.iter().enumerate().filter(|(_, s)| settings.matches(&s.settings)) {
            any = true;
            jobs.entry((i, settings.key())).or_insert(settings);
        }
        if !any {
            let why = "no recording of this workload has system calls".to_owned();
            skipped.push(Verdict { case: settings.run.clone(), why });
        }
    }
    let results: BTreeMap<(usize, String), Result<Simulated, String>> = jobs
        .into_par_iter()
        .map(|((i, key), settings)| {
            let result = simulate(&good[i].program, settings, stop);
            ((i, key), result)
        })
        .collect();
    let mut pairs = Vec::new();
    for (settings, metrics) in &targets {
        for (i, s) in good.iter().enumerate() {
            match results.get(&(i, settings.key())) {
                Some(Ok(simulated)) if settings.matches(&s.settings) => pairs.push(Pair {
                    itself: (s.settings.limit_mib, &s.settings.scheduler) == (settings.limit_mib, &settings.scheduler),
                    quiet: settings.real_time,
                    calibrating: settings.rate_kib_s.is_some(),
                    workload: settings.workload.clone(),
                    limit_mib: settings.limit_mib,
                    scheduler: settings.scheduler.clone(),
                    figures: compare(&s.settings.run, metrics, simulated),
                }),
                Some(Err(why)) if settings.matches(&s.settings) => {
                    let case = format!("{} from {}", settings.run, s.settings.run);
                    skipped.push(Verdict { case, why: why.clone() });
                }
                _ => {}
            }
        }
    }
    let orders = orders(&pairs);
    Ok(RecordingsReport { kind: "recordings", pairs, orders, skipped })
}

/// All recorded runs that ended well, with their figures.
fn targets(dir: &Path, runs: &[PathBuf]) -> Result<Vec<(Settings, Value)>, String> {
    let mut lines: Vec<Value> = Vec::new();
    let list = dir.join("metrics.jsonl");
    if let Ok(text) = std::fs::read_to_string(&list) {
        for line in text.lines() {
            lines.push(serde_json::from_str(line).map_err(|e| format!("{}: {e}", list.display()))?);
        }
    }
    let known: Vec<String> = lines.iter().filter_map(|l| Some(l["run"].as_str()?.to_owned())).collect();
    for run in runs {
        if let Ok(text) = std::fs::read_to_string(run.join("metrics.json"))
            && let Ok(value) = serde_json::from_str::<Value>(&text)
            && value["run"].as_str().is_some_and(|r| !known.iter().any(|k| k == r))
            && run.parent() == Some(dir)
        {
            lines.push(value);
        }
    }
    let mut out = Vec::new();
    for value in lines {
        if value["rc"].as_i64() != Some(0) || value["disturbed"].as_i64().unwrap_or(0) != 0 {
            continue;
        }
        let Some(mut settings) = Settings::of(&value) else { continue };
        let folder = dir.join(&settings.run);
        settings.bandwidth_kib_s = ["blktrace", "block.ftrace"]
            .iter()
            .find_map(|name| first_chunk_mib(&log_of(&folder, name)?))
            .map(chunk_bandwidth_kib_s);
        settings.rate_kib_s = log_of(&folder, "vm.ftrace").and_then(|log| first_rate(&log));
        out.push((settings, value));
    }
    out.sort_by(|a, b| a.0.run.cmp(&b.0.run));
    Ok(out)
}

/// A folder's log whose name begins so.
fn log_of(folder: &Path, begins: &str) -> Option<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    files.into_iter().find(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with(begins)))
}

/// How much the flusher wrote at a time first, MiB: up to where it began anew, by its bios, which hold 8 MiB at most. Nothing
/// where these are no multiples of 4 MiB, as in loads that write less at a time than the flusher would.
fn first_chunk_mib(log: &Path) -> Option<u64> {
    const MIB_SECTORS: u64 = 2048;
    let mut text = String::new();
    Input::open(log, InputLimits::default()).ok()?.read_to_string(&mut text).ok()?;
    let sectors = |line: &str| line.split(" + ").nth(1)?.split_whitespace().next()?.parse::<u64>().ok();
    let queued = |l: &&str| {
        (l.contains("  Q  ") || l.contains("block_bio_queue: ")) && l.contains(" W ") && l.contains("[kworker")
    };
    let mut bios = text.lines().filter(queued).filter_map(sectors);
    let (first, second) = (bios.next()?, bios.next()?);
    let whole = |n: u64| n > 0 && n.is_multiple_of(4 * MIB_SECTORS);
    match (first / MIB_SECTORS, second / MIB_SECTORS) {
        (4, _) if whole(first) => Some(4),
        (8, 4) if whole(first) && whole(second) => Some(12),
        (8, _) if whole(first) => Some(8),
        _ => None,
    }
}

/// The rate limit of the first throttled writer in a log of the throttle's events.
fn first_rate(log: &Path) -> Option<u64> {
    let mut text = String::new();
    Input::open(log, InputLimits::default()).ok()?.read_to_string(&mut text).ok()?;
    let line = text.lines().find(|l| l.contains("balance_dirty_pages:") && l.contains("bdi 7:"))?;
    let rest = line.split(" dirty_ratelimit=").nth(1)?;
    rest.split_whitespace().next()?.parse().ok()
}

fn source(folder: &Path, full: bool) -> Result<Source, String> {
    let text = std::fs::read_to_string(folder.join("metrics.json")).map_err(|e| format!("metrics.json: {e}"))?;
    let metrics: Value = serde_json::from_str(&text).map_err(|e| format!("metrics.json: {e}"))?;
    let settings = Settings::of(&metrics).ok_or("metrics.json does not say what was recorded")?;
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let options = Options::default();
    let input = temp.path().join("logs");
    std::fs::create_dir(&input).map_err(|e| e.to_string())?;
    let strace = log_of(folder, "strace").ok_or("no system calls")?;
    let layout = log_of(folder, "layout.after").or_else(|| log_of(folder, "layout"));
    for file in [Some(folder.join("run.json")), Some(strace), layout].into_iter().flatten() {
        let name = file.file_name().unwrap_or_default();
        std::fs::copy(&file, input.join(name)).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let plan = parse::plan(&[input], &options).map_err(|e| e.to_string())?;
    let target = temp.path().join("trace");
    let mut writer =
        TraceWriter::create(&target, WriterOptions { replace: true, fresh: false }).map_err(|e| e.to_string())?;
    parse::ingest(plan, &mut writer, &options, &mut Watch { stop: &signal::DRAIN, progress: &mut |_| () })
        .map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| e.to_string())?;
    let trace = TraceDir::open(&target).map_err(|e| e.to_string())?;
    let mut stored = StoredTrace::new(&trace).map_err(|e| e.to_string())?;
    let options =
        CompileOptions { roots: vec!["/mnt/disk".to_owned()], shared_links: true, ..CompileOptions::default() };
    let mut program = compile(&mut stored, &options).map_err(|e| e.to_string())?;
    if settings.load() == "W3" {
        free_the_writer(&mut program);
    }
    Ok(Source { settings, full, program })
}

impl Report for RecordingsReport {
    fn holds(&self) -> bool {
        self.holds()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn text(&self, _: &Kind) -> String {
        text(self)
    }
}

/// The report in words and tables.
fn text(r: &RecordingsReport) -> String {
    let mut t =
        String::from("recordings: runs of a real 6.18, from recordings under the same and under other settings\n");
    for p in &r.pairs {
        let f = &p.figures;
        let how = if p.itself { "as itself, from" } else { "predicted from" };
        let median = f.median_error_pct.map_or_else(|| "-".to_owned(), |m| format!("{m:.1} %"));
        let _ = writeln!(t, "\n{} {how} {}: median error {median}", f.run, f.variant);
        let _ = writeln!(t, "  {:12} {:>12} {:>12} {:>9}", "figure", "recorded", "simulated", "error %");
        for f in &f.figures {
            let _ = writeln!(t, "  {:12} {:>12.3} {:>12.3} {:>9.1}", f.name, f.recorded, f.simulated, f.error_pct);
        }
    }
    if !r.skipped.is_empty() {
        t.push_str("\nnot compared:\n");
        for s in &r.skipped {
            let _ = writeln!(t, "  {}: {}", s.case, s.why);
        }
    }
    let mut loads: Vec<&str> = r.pairs.iter().map(|p| p.workload.as_str()).collect();
    loads.sort_unstable();
    loads.dedup();
    t.push_str("\nmedian errors, percent (quiet runs where a workload has some; itself / predicted):\n");
    for load in loads {
        let has_quiet = r.pairs.iter().any(|p| p.workload == load && p.quiet);
        let _ = write!(t, "  {load:18}");
        for name in ["wall_s", "disk_busy_s", "q_read_mb", "q_write_mb", "read_reqs", "write_reqs"] {
            let of = |itself: bool| {
                r.median_of(name, |p| p.workload == load && p.itself == itself && (p.quiet || !has_quiet))
                    .map_or_else(|| "-".to_owned(), |m| format!("{m:.1}"))
            };
            let _ = write!(t, " {name} {}/{}", of(true), of(false));
        }
        t.push('\n');
    }
    t.push_str("\nall workloads:\n");
    for name in RecordingsReport::names() {
        let of = |itself: bool, quiet: bool| {
            r.median_of(name, |p| p.itself == itself && (p.quiet || !quiet))
                .map_or_else(|| "-".to_owned(), |m| format!("{m:.1}"))
        };
        let _ = writeln!(
            t,
            "  {name:14} as itself {:>6} (quiet {:>6})  predicted {:>6} (quiet {:>6})",
            of(true, false),
            of(true, true),
            of(false, false),
            of(false, true)
        );
    }
    t.push_str("\npredicted, by whether the target's throttle log gave constants (calibrating) or not (others):\n");
    for name in RecordingsReport::names() {
        let of = |calibrating: bool| {
            r.median_of(name, |p| !p.itself && p.calibrating == calibrating)
                .map_or_else(|| "-".to_owned(), |m| format!("{m:.1}"))
        };
        let _ = writeln!(t, "  {name:14} calibrating {:>6}  others {:>6}", of(true), of(false));
    }
    t.push_str("\norder of schedulers, where recorded times differ by more than runs of one setting do (s):\n");
    for o in &r.orders {
        let _ = writeln!(
            t,
            "  {:16} L={:<4} {} {:.1} before {} {:.1}; predicted {:.1} and {:.1}: {}",
            o.workload,
            o.limit_mib,
            o.faster,
            o.recorded_s.0,
            o.slower,
            o.recorded_s.1,
            o.predicted_s.0,
            o.predicted_s.1,
            if o.same { "same order" } else { "OTHER ORDER" }
        );
    }
    let same = r.orders.iter().filter(|o| o.same).count();
    let _ = writeln!(t, "  {same} of {} in the recorded order", r.orders.len());
    let verdict = if r.holds() { "hold" } else { "do not hold" };
    let _ = writeln!(
        t,
        "\n{} pairs; goals (median error of busy time, MB and wall time of predicted quiet runs at most 10 %, of the miss \
         ratio 0.02; schedulers in the recorded order): {verdict}",
        r.pairs.len()
    );
    t
}
