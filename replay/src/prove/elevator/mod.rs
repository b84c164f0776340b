//! `prove elevator`: the elevators against decisions of real kernels on random streams, exactly.
//!
//! A folder of `*.jsonl` or `*.jsonl.zst`, a case a line; every operation, merge target, list position, queue length
//! and dispatch has to be the recorded one.

mod case;
mod kernels;
mod run;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{ExactReport, Verdict};
use case::Case;

/// Lines longer than this are not cases (the largest recorded has 200 KB).
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The folder cannot be read.
#[derive(Debug, Error)]
pub enum ProveError {
    /// A file or the folder failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing to prove with.
    #[error("{path}: no *.jsonl or *.jsonl.zst file with elevator cases", path = path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// Runs every case of a folder, files and lines in order, or of one file.
///
/// # Errors
/// The folder or a file can't be read, or holds no case files. A line that is no case is a failed case.
pub fn run(path: &Path) -> Result<ExactReport, ProveError> {
    let files = if path.is_file() { vec![path.to_owned()] } else { case_files(path)? };
    let mut report = ExactReport { kind: "elevator", cases: 0, passed: 0, failed: Vec::new(), skipped: Vec::new() };
    for path in &files {
        let file = File::open(path).map_err(io(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".zst") {
            let decoder = zstd::stream::read::Decoder::new(file).map_err(io(path))?;
            run_file(&name, BufReader::new(decoder), &mut report).map_err(io(path))?;
        } else {
            run_file(&name, BufReader::new(file), &mut report).map_err(io(path))?;
        }
    }
    Ok(report)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ProveError + use<> {
    let path = path.to_owned();
    move |source| ProveError::Io { path, source }
}

/// The case files of a folder, by name.
fn case_files(dir: &Path) -> Result<Vec<PathBuf>, ProveError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io(dir))? {
        let path = entry.map_err(io(dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.zst") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() { Err(ProveError::Empty { path: dir.to_owned() }) } else { Ok(files) }
}

fn run_file(name: &str, mut input: impl BufRead, report: &mut ExactReport) -> std::io::Result<()> {
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let read = input.by_ref().take(MAX_LINE_BYTES).read_line(&mut line)?;
        if read == 0 {
            break;
        }
        if !line.trim().is_empty() {
            run_line(&format!("{name}:{number}"), &line, report);
        }
    }
    Ok(())
}

fn run_line(place: &str, line: &str, report: &mut ExactReport) {
    report.cases += 1;
    let case: Case = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(e) => {
            report.failed.push(Verdict { case: place.to_owned(), why: format!("not a case: {e}") });
            return;
        }
    };
    let verdict = |why: String| Verdict { case: case.case.clone(), why };
    if case.schema != "elevator-oracle/1" || !kernels::known(&case.elevator) {
        let why = format!("{place}: schema \"{}\", elevator \"{}\" is not known here", case.schema, case.elevator);
        report.failed.push(verdict(why)); // a case that is not run proves nothing
        return;
    }
    // A case that makes no machine must not take the others with it.
    match catch_unwind(AssertUnwindSafe(|| run::check(&case))) {
        Ok(Ok(())) => report.passed += 1,
        Ok(Err(why)) => report.failed.push(verdict(why)),
        Err(_) => report.failed.push(verdict("the case's parameters make no machine (the model gave up)".to_owned())),
    }
}
