//! Files that commands write besides their output folder: they replace what is there, but never what was read.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use kreplay_traces::store::{TraceDir, hash_file};
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses an output that would replace a log of the trace (under whatever name) or lies in the trace itself.
pub(crate) fn check(output: &Path, trace: &TraceDir) -> Result<()> {
    let Ok(target) = real(output) else { return Ok(()) };
    if fs::canonicalize(trace.path()).is_ok_and(|dir| target.starts_with(dir)) {
        return Err(refused(output, "lies in the trace directory that is read"));
    }
    let meta = fs::metadata(&target).ok().filter(fs::Metadata::is_file);
    let Some(meta) = meta else { return Ok(()) };
    for source in &trace.manifest().sources {
        let path = Path::new(&source.path);
        let same_file = fs::canonicalize(path).is_ok_and(|p| p == target) || is_sibling(path, &target);
        let same_bytes = || source.blake3.is_some() && source.blake3 == hash_file(&target).ok();
        if same_file || source.bytes == Some(meta.len()) && same_bytes() {
            return Err(refused(output, "is a log that the trace was made from"));
        }
    }
    Ok(())
}

/// The same for the folder of a run: its results, its traces and their logs.
pub(crate) fn check_run(output: &Path, folder: &Path) -> Result<()> {
    let Ok(target) = real(output) else { return Ok(()) };
    for part in ["results", "traces"] {
        if fs::canonicalize(folder.join(part)).is_ok_and(|dir| target.starts_with(dir)) {
            return Err(refused(output, "lies among the results that are read"));
        }
    }
    let Ok(traces) = fs::read_dir(folder.join("traces")) else { return Ok(()) };
    traces.flatten().filter_map(|t| TraceDir::open(t.path()).ok()).try_for_each(|trace| check(output, &trace))
}

/// Refuses `-` where a folder is written.
pub(crate) fn check_folder(output: &Path) -> Result<()> {
    if output.as_os_str() != "-" {
        return Ok(());
    }
    Err(CliError::new(Exit::Usage, "a folder is written, which cannot go to standard output")
        .help("name a folder with -o; ./- is one of that name"))
}

/// The output behind all links; for one that is not there yet, its folder's real name and its own.
fn real(output: &Path) -> std::io::Result<PathBuf> {
    fs::canonicalize(output).or_else(|_| {
        let folder = kreplay_traces::publish::parent_of(output);
        Ok(fs::canonicalize(folder)?.join(output.file_name().unwrap_or_default()))
    })
}

/// Another file of a binary trace with one file a CPU (`NAME.blktrace.3` beside `NAME.blktrace.0`).
fn is_sibling(source: &Path, target: &Path) -> bool {
    let set = |path: &Path| -> Option<PathBuf> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name()?.to_str()?;
        let (stem, number) = name.split_once(".blktrace").unwrap_or((name, ""));
        let digits = number.strip_prefix('.').is_none_or(|n| n.bytes().all(|b| b.is_ascii_digit()));
        digits.then(|| path.with_file_name(stem))
    };
    let is_part = |p: &Path| p.file_name().is_some_and(|n| n.to_string_lossy().contains(".blktrace."));
    is_part(target) && set(source).is_some() && set(source) == set(target)
}

fn refused(output: &Path, why: &str) -> CliError {
    CliError::new(Exit::Output, format!("{} {why}", output.display()))
        .note("it was not touched")
        .help("choose another file with -o")
}
