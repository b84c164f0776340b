//! Block-level replay, btt's figures, fits and proofs from the command line, on the bundled recording's block log.

mod common;

use common::{Said, kreplay_in};
use std::fs;
use std::path::Path;

/// A trace directory of the sample's block log and what describes its recording.
fn ingest(dir: &Path) {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/samples/fileserver");
    let logs = dir.join("logs");
    fs::create_dir(&logs).unwrap();
    for name in ["blktrace.txt.zst", "run.json"] {
        fs::copy(sample.join(name), logs.join(name)).unwrap();
    }
    good(&kreplay_in(dir, &["ingest", "logs", "-o", "trace", "-q"]));
}

fn good(said: &Said) {
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn btt() {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path());
    let said = kreplay_in(dir.path(), &["inspect", "trace", "--btt"]);
    good(&said);
    insta::assert_snapshot!(said.out);
    let json = kreplay_in(dir.path(), &["inspect", "trace", "--btt", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let (q2c, d2c) = (&facts[0]["stages"]["q2c"], &facts[0]["stages"]["d2c"]);
    assert!(q2c["n"].as_u64() > Some(0) && q2c["total_ns"].as_u64() >= d2c["total_ns"].as_u64(), "{q2c} {d2c}");
}

#[test]
fn the_elevators_of_today_and_of_2001_replay_the_same_bios() {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path());
    let variants = ["-v", "linux-2.4.16+blk-mq", "-v", "linux-2.4.16"];
    let sets = ["--set", "elevator.policy=none,mq-deadline,linus-2.4"];
    for pacing in ["recorded", "closed"] {
        let mut args = vec!["replay", "trace", "--level", "block", "--pacing", pacing, "-o", pacing, "--json"];
        args.extend(variants);
        args.extend(sets);
        let said = kreplay_in(dir.path(), &args);
        good(&said);
        let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let cells = facts["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 6);
        assert!(cells.iter().all(|c| c["state"] == "done"), "{cells:?}");
        // The reports take the tables as they are.
        let report = kreplay_in(dir.path(), &["report", pacing]);
        good(&report);
        assert!(report.out.contains("block level"), "{}", report.out);
        // The same again is the same, and nothing is simulated twice.
        let again = kreplay_in(dir.path(), &args);
        let facts: serde_json::Value = serde_json::from_str(&again.out).unwrap();
        assert_eq!(facts["reused"], 6);
    }
}

#[test]
fn a_trace_without_block_events_cannot_be_replayed_at_block_level() {
    let dir = tempfile::tempdir().unwrap();
    good(&kreplay_in(dir.path(), &["synth", "read512", "big_mib=2", "-o", "trace"]));
    let said = kreplay_in(dir.path(), &["replay", "trace", "--level", "block", "-o", "out"]);
    insta::assert_snapshot!(said.transcript());
}

#[test]
fn a_fitted_disk_is_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path());
    let said = kreplay_in(dir.path(), &["fit", "disk", "trace", "-o", "mine.toml", "--json"]);
    good(&said);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let best = &facts["models"][0];
    assert_eq!(best["model"], "rotating");
    assert!(best["demerit_tested_pct"].as_f64().unwrap() < 15.0, "{best}");
    let replay =
        ["replay", "trace", "--level", "block", "--variant-file", "mine.toml", "--with", "fitted", "-o", "out"];
    good(&kreplay_in(dir.path(), &replay));
}

#[test]
fn schedulers_are_proved_on_a_folder_of_recordings() {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path());
    fs::create_dir(dir.path().join("runs")).unwrap();
    fs::rename(dir.path().join("logs"), dir.path().join("runs/one")).unwrap();
    let said = kreplay_in(dir.path(), &["prove", "schedulers", "runs", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((facts["kind"].as_str(), facts["runs"][0]["run"].as_str()), (Some("schedulers"), Some("one")));
    let figures = facts["runs"][0]["figures"].as_array().unwrap();
    let order = figures.iter().find(|f| f["name"] == "dispatch order %").unwrap();
    assert!(order["simulated"].as_f64().unwrap() > 80.0, "{order}");
}

#[test]
fn a_recording_that_cannot_be_read_is_named_by_its_own_path() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("runs/one");
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("run.json"), "{}").unwrap();
    fs::write(run.join("blktrace.txt"), "nothing that any parser knows\n").unwrap();
    let said = kreplay_in(dir.path(), &["prove", "schedulers", "runs", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let why = facts["skipped"][0]["why"].as_str().unwrap();
    assert!(why.contains("runs/one"), "{why}");
}

#[test]
fn totals_can_be_had_without_a_row_for_each_request() {
    let dir = tempfile::tempdir().unwrap();
    ingest(dir.path());
    let base = ["replay", "trace", "--level", "block", "-v", "linux-2.4.16+blk-mq", "--json", "-o", "out"];
    let cell = |more: &[&str]| {
        let args: Vec<&str> = base.iter().chain(more).copied().collect();
        let said = kreplay_in(dir.path(), &args);
        good(&said);
        let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(facts["reused"], 0, "a cell without rows is another cell");
        let path = dir.path().join("out/results").join(facts["cells"][0]["path"].as_str().unwrap());
        let cell: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path.join("cell.json")).unwrap()).unwrap();
        cell
    };
    let (whole, totals) = (cell(&[]), cell(&["--totals-only"]));
    for table in ["io", "calls"] {
        assert!(whole["tables"][table]["rows"].as_u64() > Some(0), "{table}");
        assert_eq!(totals["tables"][table]["rows"], 0, "{table}");
    }
    for table in ["counters", "clients", "samples"] {
        assert_eq!(whole["tables"][table], totals["tables"][table], "{table}");
    }
}
