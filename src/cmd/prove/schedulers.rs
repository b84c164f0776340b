//! `kreplay prove schedulers DIR`: reads each recording's block log, then compares.

use crate::signal;
use kreplay_parsers::ingest::{self as parse, Options, Watch};
use kreplay_replay::prove::schedulers::{compare, is_recording, report};
use kreplay_replay::prove::{FigureReport, RunFigures};
use kreplay_replay::sim::Pacing;
use kreplay_traces::store::{TraceDir, TraceWriter, WriterOptions};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Beginnings of the names of block logs.
const LOGS: [&str; 2] = ["blktrace", "block.ftrace"];

/// Compares every recording in `dir` and in the folders of `dir`, in the order of their names.
pub(super) fn run(kind: &'static str, dir: &Path, pacing: Pacing, stop: &AtomicBool) -> Result<FigureReport, String> {
    let mut runs = Vec::new();
    for folder in folders(dir)? {
        if is_recording(&folder) {
            runs.push(folder);
        } else {
            runs.extend(folders(&folder)?.into_iter().filter(|f| is_recording(f)));
        }
    }
    if is_recording(dir) {
        runs.push(dir.to_owned());
    }
    if runs.is_empty() {
        return Err(format!("{}: no folder with a run.json", dir.display()));
    }
    let results: Vec<_> = runs
        .par_iter()
        .map(|folder| {
            let name = folder.strip_prefix(dir).unwrap_or(folder).display().to_string();
            (name, one(folder, pacing, stop))
        })
        .collect();
    Ok(report(kind, results))
}

pub(super) fn folders(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let list = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut folders: Vec<_> = list.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn one(folder: &Path, pacing: Pacing, stop: &AtomicBool) -> Result<RunFigures, String> {
    let log = block_log(folder).ok_or("no block log")?;
    let temp = tempfile::tempdir().map_err(|e| e.to_string())?;
    let target = temp.path().join("trace");
    let options = Options::default();
    // A folder with nothing but the block log and what describes the recording: other logs are not needed here.
    let input = temp.path().join("logs");
    std::fs::create_dir(&input).map_err(|e| e.to_string())?;
    for file in [folder.join("run.json"), log] {
        let name = file.file_name().unwrap_or_default();
        std::fs::copy(&file, input.join(name)).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    // Messages name the recording's files, not their copies.
    let copies = input.display().to_string();
    let explain = |e: String| e.replace(&copies, &folder.display().to_string());
    let plan = parse::plan(&[input], &options).map_err(|e| explain(e.to_string()))?;
    let mut writer =
        TraceWriter::create(&target, WriterOptions { replace: true, fresh: false }).map_err(|e| e.to_string())?;
    parse::ingest(plan, &mut writer, &options, &mut Watch { stop: &signal::DRAIN, progress: &mut |_| () })
        .map_err(|e| explain(e.to_string()))?;
    writer.finish().map_err(|e| e.to_string())?;
    let trace = TraceDir::open(&target).map_err(|e| e.to_string())?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    compare(&name, &trace, pacing, stop)
}

/// The folder's block log: the first of those that it may have.
fn block_log(folder: &Path) -> Option<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    // Texts before binaries of the same trace.
    files.sort_by_key(|f| f.extension().is_some_and(|e| e == "bin"));
    LOGS.iter().find_map(|log| {
        files.iter().find(|f| f.file_name().is_some_and(|n| n.to_string_lossy().starts_with(log))).cloned()
    })
}
