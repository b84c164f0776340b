//! The matrix with an engine of a few lines: what is written, reused, isolated and skipped.

use super::*;
use crate::program::Program;
use crate::results::{CellInfo, Counters, ResultSink, SampleRow};
use crate::variant::{Library, Variant};
use kreplay_traces::units::Nanos;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts its runs; fails as the variant's name tells it to.
#[derive(Default)]
struct Toy {
    runs: AtomicUsize,
}

impl Simulate for Toy {
    fn simulate(
        &self,
        _: &Program,
        variant: &Variant,
        seed: u64,
        sink: &mut dyn ResultSink,
        abort: &AtomicBool,
    ) -> Result<Ended, Failure> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let latency = variant.config.elevator.read_latency;
        assert_ne!(latency, 13, "unlucky latency");
        if latency == 14 {
            return Err(Failure::Failed("no such latency".to_owned()));
        }
        if abort.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        sink.sample(&SampleRow { time: Nanos::from_secs(1), free_kib: seed, ..SampleRow::default() });
        sink.counters(&Counters { events: u64::from(latency), ..Counters::default() });
        Ok(Ended { finished: true, elapsed: Nanos::from_secs(1), events: 10 })
    }
}

fn plan(latencies: &str, seeds: u64) -> Plan {
    let mut library = Library::builtin().unwrap();
    let sweep = format!("elevator.read-latency={latencies}");
    let program = Program { trace_id: "0123456789abcdef0123".to_owned(), ..Program::default() };
    Plan {
        traces: vec![TraceInput { program, path: None }],
        variants: library.select(&["linux-2.4.16".to_owned()], &[], &[sweep]).unwrap(),
        picked: None,
        seeds: (1..=seeds).collect(),
        pacing: "closed".to_owned(),
        totals_only: false,
        code_version: "test".to_owned(),
    }
}

fn run(dir: &Path, plan: &Plan, toy: &Toy, drain: bool, threads: usize) -> Outcome {
    let (drain, abort) = (AtomicBool::new(drain), AtomicBool::new(false));
    let runner = Runner { dir, threads, drain: &drain, abort: &abort, watch: &|_| {} };
    runner.run(plan, &["kreplay".to_owned()], toy).unwrap()
}

/// Every file below a folder with its bytes.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

fn relative(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let prefix = dir.display().to_string();
    contents(dir).into_iter().map(|(p, b)| (p.trim_start_matches(&prefix).to_owned(), b)).collect()
}

#[test]
fn results_are_the_same_bytes_with_any_number_of_threads() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan("64,512,2048", 2);
    run(one.path(), &plan, &Toy::default(), false, 1);
    run(two.path(), &plan, &Toy::default(), false, 4);
    let files = relative(one.path());
    assert_eq!(files, relative(two.path()));
    assert_eq!(files.len(), 6 * 9 + 1);
    let folder = "/trace=0123456789abcdef/variant=linux-2.4.16+elevator.read-latency%3D64/seed=1/cell.json";
    assert!(files.iter().any(|(p, _)| p == folder), "{:?}", files.iter().map(|f| &f.0).collect::<Vec<_>>());
}

#[test]
fn a_second_run_simulates_only_what_is_missing_or_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan("64,512", 1);
    let toy = Toy::default();
    run(dir.path(), &plan, &toy, false, 1);
    assert_eq!(toy.runs.load(Ordering::Relaxed), 2);
    let before = relative(dir.path());

    let again = run(dir.path(), &plan, &toy, false, 1);
    assert_eq!(toy.runs.load(Ordering::Relaxed), 2);
    assert!(again.cells.iter().all(|c| c.reused));

    let damaged = dir.path().join(plan.cells()[1].path());
    std::fs::write(damaged.join("samples.parquet"), b"rot").unwrap();
    std::fs::create_dir_all(damaged.parent().unwrap().join(".tmp-killed")).unwrap();
    run(dir.path(), &plan, &toy, false, 1);
    assert_eq!(toy.runs.load(Ordering::Relaxed), 3);
    assert_eq!(relative(dir.path()), before);

    let other = Plan { code_version: "newer".to_owned(), ..plan };
    run(dir.path(), &other, &toy, false, 1);
    assert_eq!(toy.runs.load(Ordering::Relaxed), 5);
}

#[test]
fn a_cell_that_fails_or_panics_takes_no_other_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan("64,13,14,512", 1);
    let outcome = run(dir.path(), &plan, &Toy::default(), false, 2);
    let states: Vec<_> = outcome.cells.iter().map(|c| c.state).collect();
    assert_eq!(states, [CellState::Done, CellState::Failed, CellState::Failed, CellState::Done]);
    assert!(outcome.cells[1].why.as_ref().unwrap().contains("unlucky latency"));
    assert_eq!(outcome.cells[2].why.as_deref(), Some("no such latency"));
    for (cell, outcome) in plan.cells().iter().zip(&outcome.cells) {
        assert_eq!(dir.path().join(cell.path()).exists(), outcome.state == CellState::Done);
    }
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path().join(MANIFEST_FILE)).unwrap()).unwrap();
    assert_eq!(manifest["cells"][1]["state"], "failed");
    assert_eq!(manifest["schema"], 1);
}

#[test]
fn after_an_interrupt_no_cell_begins_and_the_next_run_completes() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan("64,512", 1);
    let toy = Toy::default();
    let outcome = run(dir.path(), &plan, &toy, true, 1);
    assert_eq!(outcome.count(CellState::Skipped), 2);
    assert_eq!(toy.runs.load(Ordering::Relaxed), 0);
    let outcome = run(dir.path(), &plan, &toy, false, 1);
    assert_eq!(outcome.count(CellState::Done), 2);
}

#[test]
fn the_cell_file_says_what_was_run() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan("64", 1);
    run(dir.path(), &plan, &Toy::default(), false, 1);
    let cell = plan.cells()[0];
    let folder = dir.path().join(cell.path());
    let info = CellInfo::read(&folder).unwrap();
    assert_eq!(info.header.id, cell.id());
    assert_eq!(info.header.config, cell.variant.config);
    assert_eq!(info.header.variant, "linux-2.4.16+elevator.read-latency=64");
    assert!(info.finished);
    assert_eq!(info.tables["counters"].rows, 32);
    info.verify(&folder).unwrap();
}
