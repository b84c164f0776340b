//! Every log of a directory outside of the repository must parse without a reject.
//!
//! The directory is named by `KREPLAY_SHARED` and holds `groundtruth/` (recordings, packed or not) and `oracle/linux24/`;
//! without it the test says so and passes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kreplay_parsers::corpus::Verdict;
use kreplay_parsers::ingest::{Options, Watch, ingest, plan};
use kreplay_parsers::rows::Discard;
use kreplay_parsers::{Diagnostics, Format, ParseOptions, by_id};
use kreplay_traces::store::{TraceWriter, WriterOptions};

fn shared() -> Option<PathBuf> {
    let dir = std::env::var_os("KREPLAY_SHARED").map(PathBuf::from).filter(|d| d.is_dir());
    if dir.is_none() {
        eprintln!("skipped: KREPLAY_SHARED does not name a directory");
    }
    dir
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

fn text(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a readable file");
    match bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        true => zstd::decode_all(&bytes[..]).expect("valid zstd"),
        false => bytes,
    }
}

fn parse(format: &dyn Format, path: &Path) -> Diagnostics {
    let mut diag = Diagnostics::new();
    let mut parser = format.parser(&ParseOptions::default());
    parser.feed(&text(path), &mut Discard, &mut diag);
    parser.finish(&mut Discard, &mut diag);
    assert!(diag.adds_up(), "{}", path.display());
    diag
}

#[test]
fn recordings_parse_without_a_reject() {
    let Some(dir) = shared() else { return };
    let mut all = Vec::new();
    files(&dir.join("groundtruth"), &mut all);
    files(&dir.join("oracle/linux24"), &mut all);
    all.sort();
    let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for path in &all {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let format = match name.trim_end_matches(".zst") {
            "strace.log" => "strace",
            "blktrace.txt" => "blkparse",
            "vmstat.log" => "vmstat",
            "layout.txt" | "layout.after.txt" => "layout",
            _ => continue,
        };
        let diag = parse(by_id(format).unwrap(), path);
        assert_eq!(diag.rejects(), [], "{}", path.display());
        let sum = sums.entry(format).or_default();
        *sum = (sum.0 + 1, sum.1 + diag.lines(), sum.2 + diag.events());
    }
    for (format, (files, lines, events)) in &sums {
        println!("{format}: {files} files, {lines} lines, {events} events");
    }
    assert!(sums.len() == 4, "all four kinds are there: {sums:?}");
}

#[test]
fn the_corpus_has_what_its_manifest_says() {
    let Some(dir) = shared() else { return };
    let cases = kreplay_parsers::corpus::check(&dir.join("corpus")).unwrap();
    let mut failed = Vec::new();
    let (mut passed, mut skipped) = (0, 0);
    for case in &cases {
        match &case.verdict {
            Verdict::Passed => passed += 1,
            Verdict::Skipped(_) => skipped += 1,
            Verdict::Failed(why) => failed.push(format!("{} ({}): {why}", case.file, case.format)),
        }
    }
    println!("corpus: {passed} passed, {skipped} without comparable counts, {} failed", failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn recordings_become_traces() {
    let Some(dir) = shared() else { return };
    let samples = dir.join("groundtruth/samples");
    let mut runs: Vec<PathBuf> =
        std::fs::read_dir(&samples).unwrap().flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    runs.push(dir.join("groundtruth/W1-L34-mq-deadline-r1-strace"));
    runs.sort();
    let out = tempfile::tempdir().unwrap();
    for run in &runs {
        let options = Options::default();
        let plan = plan(std::slice::from_ref(run), &options).unwrap();
        let path = out.path().join(run.file_name().unwrap());
        let mut writer = TraceWriter::create(&path, WriterOptions::default()).unwrap();
        let stop = AtomicBool::new(false);
        let begin = std::time::Instant::now();
        let report = ingest(plan, &mut writer, &options, &mut Watch { stop: &stop, progress: &mut |_| {} }).unwrap();
        let (_, manifest) = writer.finish().unwrap();
        println!("{}: {:?} in {:?}", run.display(), manifest.counts, begin.elapsed());
        for source in &manifest.sources {
            println!("    {} {} lines, {:?} {:?}", source.format, source.lines, source.clock, source.notes);
        }
        for skipped in &report.skipped {
            println!("    skipped {}: {}", skipped.path.file_name().unwrap().to_string_lossy(), skipped.why);
        }
        assert_eq!(report.rejected(), 0, "{}", run.display());
        assert!(manifest.machine.ram_kib.is_some() && !manifest.clock.assumed, "{}", run.display());
    }
}
