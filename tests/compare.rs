//! Two runs against each other, and results for other tools, on the bundled sample.

mod common;

use common::kreplay_in;
use std::path::Path;

/// The bundled sample under two elevators.
fn run(dir: &Path) {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/samples/fileserver");
    let said = kreplay_in(dir, &["run", sample, "-v", "linux-2.4.16", "-v", "linux-2.4.16-noop", "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn thresholds_decide_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path());
    let compare = |extra: &[&str]| {
        let args = [&["compare", "out:linux-2.4.16", "out:linux-2.4.16-noop"], extra].concat();
        kreplay_in(dir.path(), &args)
    };
    let plain = compare(&[]);
    assert_eq!(plain.code, 0, "{}", plain.err);
    assert!(plain.out.contains("worse: elapsed +"), "{}", plain.out);
    let crossed = compare(&["--fail-if", "elapsed > +5%", "--fail-if", "elapsed_s > 1000"]);
    assert_eq!(crossed.code, 5);
    assert!(
        crossed.out.contains("`elapsed > +5%` is crossed") && !crossed.out.contains("1000` is crossed"),
        "{}",
        crossed.out
    );
    assert_eq!(compare(&["--fail-if", "elapsed > +50%"]).code, 0);
    let unknown = compare(&["--fail-if", "p98_read > +5%"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("read_p99_ms"), "{}", unknown.err);
    assert_eq!(compare(&["--fail-if", "elapsed"]).code, 2);
    let same = kreplay_in(dir.path(), &["compare", "out", "out", "--fail-if", "p99_read > +0%"]);
    assert_eq!(same.code, 0, "{}", same.err);
    assert!(same.out.contains("All key figures are the same."), "{}", same.out);
    let json = kreplay_in(
        dir.path(),
        &["--json", "compare", "out:linux-2.4.16", "out:linux-2.4.16-noop", "--fail-if", "elapsed > +5%"],
    );
    assert_eq!(json.code, 5);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["crossed"].as_array().unwrap().len(), 1);
}

#[test]
fn results_go_to_other_tools() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path());
    let mail = kreplay_in(dir.path(), &["report", "out", "--as", "mail"]);
    assert_eq!(mail.code, 0, "{}", mail.err);
    assert!(mail.out.lines().all(|l| l.chars().count() <= 72) && mail.out.contains("Why they differ:"), "{}", mail.out);
    assert_eq!(kreplay_in(dir.path(), &["report", "out", "--as", "pdf"]).code, 2);
    assert_eq!(kreplay_in(dir.path(), &["report", "out", "--pareto", "elapsed_s,beauty"]).code, 2);
    let book = kreplay_in(dir.path(), &["export", "out", "--to", "notebook", "-o", "out/report.ipynb"]);
    assert_eq!(book.code, 0, "{}", book.err);
    let text = std::fs::read_to_string(dir.path().join("out/report.ipynb")).unwrap();
    assert!(text.contains(r#"RESULTS = \"results\""#), "the path is relative to the notebook");
    let spans =
        kreplay_in(dir.path(), &["export", "out", "--to", "perfetto", "--variant", "linux-2.4.16-noop", "-o", "-"]);
    assert_eq!(spans.code, 0, "{}", spans.err);
    let value: serde_json::Value = serde_json::from_str(&spans.out).unwrap();
    assert!(value["traceEvents"].as_array().unwrap().len() > 10_000);
    let wrong = kreplay_in(dir.path(), &["export", "out", "--to", "perfetto", "--variant", "linux-9", "-o", "-"]);
    assert_eq!(wrong.code, 2);
    let recording = kreplay_in(dir.path(), &["export", "out/traces/fileserver", "--to", "perfetto", "-o", "-"]);
    assert_eq!(recording.code, 0, "{}", recording.err);
    let value: serde_json::Value = serde_json::from_str(&recording.out).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
    assert!(count("X") > 10_000 && count("b") > 100, "calls and requests of the recording");
    assert_eq!(count("b"), count("e"));
}
