//! Runs whose kernel logged events: which folders they are, and their files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kreplay_traces::synth::linux24;
use rayon::prelude::*;
use serde::Deserialize;

use super::scores::{RunScores, ScoreReport};
use crate::config::Config;
use crate::variant::Library;

/// A file of events unpacks to less than this; more is no recording of ours.
const MAX_BYTES: u64 = 1 << 30;

/// One run.
pub(super) struct Traced {
    /// Its folder's name.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its load, as `run.json` calls it.
    pub(super) load: String,
    /// Its parameters, as `run.json` has them.
    pub(super) params: BTreeMap<String, String>,
    /// Name of its kernel's variant.
    pub(super) variant: String,
    /// That variant on the run's machine.
    pub(super) config: Config,
}

/// Compares every run folder below `dir` (or `dir` itself) that has `file` or `file.zst`, in the order of their names, on all
/// processors.
pub(super) fn run_all(
    kind: &'static str,
    dir: &Path,
    file: &str,
    stop: &AtomicBool,
    compare: impl Fn(&Traced) -> Result<RunScores, String> + Sync,
) -> Result<ScoreReport, String> {
    let has = |p: &Path| p.join(file).is_file() || p.join(format!("{file}.zst")).is_file();
    let list = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut folders: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).filter(|p| has(p)).collect();
    if folders.is_empty() && has(dir) {
        folders.push(dir.to_owned());
    }
    folders.sort();
    if folders.is_empty() {
        return Err(format!("{}: no folder with a {file} or {file}.zst", dir.display()));
    }
    let results = folders
        .par_iter()
        .map(|folder| {
            let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let result = if stop.load(Ordering::Relaxed) {
                Err("interrupted".to_owned())
            } else {
                open(folder, &name).and_then(|run| compare(&run))
            };
            (name, result)
        })
        .collect();
    Ok(ScoreReport::of(kind, results))
}

/// What a run's `run.json` says, with its kernel's variant.
pub(super) fn open(folder: &Path, name: &str) -> Result<Traced, String> {
    let run = linux24::from_run_json(&folder.join("run.json")).map_err(|e| e.to_string())?;
    // "2.4.16 (instrumented locally for event tracing)"
    let kernel = run.kernel.split(' ').next().unwrap_or_default();
    let variant = format!("linux-{kernel}");
    let mut library = Library::builtin().map_err(|e| e.to_string())?;
    let selected = library.select(std::slice::from_ref(&variant), &[], &[]).map_err(|e| e.to_string())?;
    let mut config = selected.into_iter().next().ok_or("no variant")?.config;
    config.machine.ram = run.ram_mib * 1024;
    config.machine.swap = run.swap_mib * 1024;
    if let Some(e) = run.elevator {
        config.elevator.read_latency = e.read_latency as u32;
        config.elevator.write_latency = e.write_latency as u32;
        config.elevator.max_bomb_segments = e.max_bomb as u32;
    }
    Ok(Traced {
        name: name.to_owned(),
        folder: folder.to_owned(),
        load: run.workload,
        params: params(folder)?,
        variant,
        config,
    })
}

#[derive(Deserialize)]
struct RunJson {
    params: BTreeMap<String, String>,
}

fn params(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read(folder.join("run.json")).map_err(|e| format!("run.json: {e}"))?;
    Ok(serde_json::from_slice::<RunJson>(&text).map_err(|e| format!("run.json: {e}"))?.params)
}

/// Text of `file`, or of `file.zst`, of a run.
pub(super) fn text(folder: &Path, file: &str) -> Result<String, String> {
    let plain = folder.join(file);
    let (path, packed) = if plain.is_file() { (plain, false) } else { (folder.join(format!("{file}.zst")), true) };
    let why = |e: std::io::Error| format!("{}: {e}", path.display());
    let opened = File::open(&path).map_err(why)?;
    let mut text = String::new();
    if packed {
        let decoder = zstd::stream::read::Decoder::new(opened).map_err(why)?;
        decoder.take(MAX_BYTES).read_to_string(&mut text).map_err(why)?;
    } else {
        opened.take(MAX_BYTES).read_to_string(&mut text).map_err(why)?;
    }
    Ok(text)
}

/// A line's fields by the names of its header.
pub(super) struct Table<'a> {
    file: &'static str,
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
}

impl<'a> Table<'a> {
    /// A file whose first line is exactly `header`.
    pub(super) fn new(file: &'static str, text: &'a str, header: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, first)) if first == header => Ok(Self { file, lines }),
            Some((_, first)) => Err(format!("{file}:1: the header is \"{first:.80}\", expected \"{header}\"")),
            None => Err(format!("{file}: empty, expected the header \"{header}\"")),
        }
    }
}

impl<'a> Iterator for Table<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let (at, text) = self.lines.next()?;
        Some(Line { file: self.file, number: at + 1, fields: text.split(',') })
    }
}

/// One line of a table, taken field by field.
pub(super) struct Line<'a> {
    file: &'static str,
    pub(super) number: usize,
    fields: std::str::Split<'a, char>,
}

impl<'a> Line<'a> {
    /// The next field as text.
    pub(super) fn word(&mut self) -> Result<&'a str, String> {
        self.fields.next().ok_or_else(|| format!("{}:{}: the line ends early", self.file, self.number))
    }

    /// The next field as a number; `None` if it is empty.
    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<Option<T>, String> {
        let word = self.word()?;
        if word.is_empty() {
            return Ok(None);
        }
        word.parse().map(Some).map_err(|_| self.wrong(&format!("{what} \"{word:.40}\" is no number that fits")))
    }

    /// The next field as a number that has to be there.
    pub(super) fn need<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        self.number(what)?.ok_or_else(|| self.wrong(&format!("{what} is missing")))
    }

    /// What is wrong with the line, with its place.
    pub(super) fn wrong(&self, what: &str) -> String {
        format!("{}:{}: {what}", self.file, self.number)
    }
}
