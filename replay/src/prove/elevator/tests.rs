//! The proof on the bundled part of the recordings, and on cases spoilt on purpose.

use std::path::PathBuf;

use super::*;

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/elevator")
}

/// All lines of a bundled file.
fn lines(name: &str) -> Vec<String> {
    let file = File::open(bundled().join(name)).expect("fixture");
    let decoder = zstd::stream::read::Decoder::new(file).expect("zstd");
    BufReader::new(decoder).lines().collect::<Result<_, _>>().expect("text")
}

fn check(line: &str) -> ExactReport {
    let mut report = ExactReport { kind: "elevator", cases: 0, passed: 0, failed: Vec::new(), skipped: Vec::new() };
    run_line("test:1", line, &mut report);
    report
}

#[test]
fn bundled_cases_agree_in_everything() {
    let report = run(&bundled()).expect("readable");
    assert_eq!(report.failed, []);
    assert_eq!(report.skipped, []);
    assert!(report.holds());
    assert!(report.cases >= 28, "two cases a family at least: {}", report.cases);
}

/// All recorded cases, where `KREPLAY_SHARED` names the folder that has them.
#[test]
fn all_recorded_cases_agree_in_everything() {
    let dir = std::env::var_os("KREPLAY_SHARED").map(|d| PathBuf::from(d).join("oracle/elevator"));
    let Some(dir) = dir.filter(|d| d.is_dir()) else { return };
    let report = run(&dir).expect("readable");
    assert_eq!(report.failed, []);
    assert_eq!(report.skipped, []);
    assert!(report.cases >= 344, "{}", report.cases);
}

#[test]
fn a_spoilt_expectation_is_caught() {
    let line = &lines("linus-2.4.10.jsonl.zst")[0];
    assert_eq!(check(line).passed, 1);
    let spoilt = [
        line.replacen("\"pos\":0,\"qlen\":2", "\"pos\":1,\"qlen\":2", 1),
        line.replacen("\"pos\":1,\"qlen\":2", "\"pos\":0,\"qlen\":2", 1),
        line.replacen("\"end_time\":", "\"end_time\":1", 1),
    ];
    let mut caught = 0;
    for s in spoilt.iter().filter(|s| *s != line) {
        let report = check(s);
        assert_eq!((report.passed, report.failed.len()), (0, 1));
        assert!(report.failed[0].why.contains("kernel") && report.failed[0].why.contains("simulated"));
        caught += 1;
    }
    assert!(caught >= 2);
}

#[test]
fn another_elevator_is_caught() {
    // Recorded with 2.4.20's scan, claimed to be 2.4.10's: some case must tell them apart.
    let wrong = lines("linus-2.4.20.jsonl.zst")
        .iter()
        .map(|l| check(&l.replacen("\"elevator\":\"linus-2.4.20\"", "\"elevator\":\"linus-2.4.10\"", 1)))
        .filter(|r| r.failed.len() == 1)
        .count();
    assert!(wrong > 0);
}

#[test]
fn garbage_and_strangers_are_named() {
    let garbage = check("{\"case\":");
    assert_eq!(garbage.failed[0].case, "test:1");
    let stranger = lines("noop-2.4.10.jsonl.zst")[0].replacen("\"elevator\":\"noop-2.4.10\"", "\"elevator\":\"x\"", 1);
    let report = check(&stranger);
    assert_eq!((report.passed, report.failed.len(), report.skipped.len()), (0, 1, 0));
    assert!(!report.holds());
    let empty = tempfile::tempdir().expect("tempdir");
    let one = empty.path().join("cases.txt");
    std::fs::write(&one, &lines("noop-2.4.10.jsonl.zst")[0]).expect("written");
    assert_eq!(run(&one).expect("a file by its name").passed, 1);
    assert!(matches!(run(empty.path()), Err(ProveError::Empty { .. })));
    assert!(matches!(run(&empty.path().join("missing")), Err(ProveError::Io { .. })));
}
