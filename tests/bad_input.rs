//! Bad input: one clear error with place and hint, the documented exit code, nothing half-written.

mod common;

use common::kreplay_in;
use std::fs;
use std::path::Path;

const STRACE: &str = "\
7 1700000000.000000 openat(AT_FDCWD, \"/data/a\", O_RDONLY) = 3</data/a> <0.000050>
7 1700000000.000100 read(3</data/a>, \"x\"..., 65536) = 65536 <0.002000>
7 1700000000.002200 read(3</data/a>, \"x\"..., 65536) = 65536 <0.002000>
7 1700000000.004300 close(3</data/a>) = 0 <0.000010>
7 1700000000.004400 exit_group(0) = ?
7 1700000000.004500 +++ exited with 0 +++
";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn logs(dir: &Path, name: &str, text: &str) {
    fs::create_dir_all(dir.join("logs")).unwrap();
    fs::write(dir.join("logs").join(name), text).unwrap();
}

#[test]
fn an_empty_directory() {
    let dir = folder();
    fs::create_dir(dir.path().join("logs")).unwrap();
    let said = kreplay_in(dir.path(), &["run", "logs", "-o", "out"]);
    assert_eq!(said.code, 3);
    insta::assert_snapshot!(said.transcript());
}

#[test]
fn a_directory_without_a_log() {
    let dir = folder();
    logs(dir.path(), "letter.txt", "Dear all,\nplease find attached nothing.\n");
    let said = kreplay_in(dir.path(), &["run", "logs", "-o", "out"]);
    assert_eq!(said.code, 3);
    insta::assert_snapshot!(said.transcript());
    assert!(!dir.path().join("out/traces/logs").exists());
}

#[test]
fn a_path_that_does_not_exist() {
    let dir = folder();
    let said = kreplay_in(dir.path(), &["ingest", "nowhere.log", "-o", "trace"]);
    assert_eq!(said.code, 3);
    insta::assert_snapshot!(said.transcript());
}

#[test]
fn garbage_in_the_middle_is_rejected_and_the_rest_kept() {
    let dir = folder();
    let mut lines: Vec<&str> = STRACE.lines().collect();
    lines.insert(2, "7 1700000000.002150 read(3</data/a>, \u{fffd}\u{fffd} garbage");
    logs(dir.path(), "strace.log", &(lines.join("\n") + "\n"));
    let said = kreplay_in(dir.path(), &["ingest", "logs", "-o", "trace", "--json"]);
    assert_eq!(said.code, 4, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(facts["counts"]["reject"], 1, "{facts:#}");
    let strict = kreplay_in(dir.path(), &["ingest", "logs", "-o", "other", "--strict"]);
    assert_eq!(strict.code, 3);
    assert!(strict.err.contains("strace.log:3"), "{}", strict.err);
    assert!(!dir.path().join("other").exists());
}

#[test]
fn of_a_truncated_log_everything_before_the_cut_is_kept() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/samples/fileserver/strace.log.zst");
    let whole = fs::read(sample).unwrap();
    let dir = folder();
    fs::create_dir(dir.path().join("logs")).unwrap();
    fs::write(dir.path().join("logs/strace.log.zst"), &whole[..whole.len() / 2]).unwrap();
    let said = kreplay_in(dir.path(), &["ingest", "logs", "-o", "trace"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.out.contains("reading ended early"), "{}", said.out);
    let facts = kreplay_in(dir.path(), &["inspect", "trace", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&facts.out).unwrap();
    assert!(facts[0]["counts"]["syscall"].as_u64().unwrap() > 10_000, "{facts:#}");
    let strict = kreplay_in(dir.path(), &["ingest", "logs", "-o", "other", "--strict"]);
    assert_eq!(strict.code, 3, "{}", strict.err);
}

#[test]
fn an_unknown_variant() {
    let dir = folder();
    logs(dir.path(), "strace.log", STRACE);
    let said = kreplay_in(dir.path(), &["run", "logs", "-v", "linux-2.4.61", "-o", "out"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!(said.transcript());
    assert!(!dir.path().join("out").exists());
}

#[test]
fn a_variant_file_with_an_unknown_key() {
    let dir = folder();
    let text = "name = \"mine\"\nextends = \"linux-2.4.16\"\n\n[elevator]\nread-latancy = 64\n";
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let said = kreplay_in(dir.path(), &["variants", "show", "mine.toml"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!(said.transcript());
}

#[test]
fn a_variant_file_with_an_unknown_unit() {
    let dir = folder();
    let text = "name = \"mine\"\nextends = \"linux-2.4.16\"\n\n[machine]\nram = \"64 parsecs\"\n";
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let said = kreplay_in(dir.path(), &["variants", "show", "mine.toml"]);
    assert_eq!(said.code, 2);
    insta::assert_snapshot!(said.transcript());
}

#[test]
fn an_error_as_json_has_the_same_words_and_the_exit_code() {
    let dir = folder();
    let said = kreplay_in(dir.path(), &["variants", "show", "linux-2.4.16-nopp", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["exit"], said.code);
    assert_eq!(error["help"], "did you mean `linux-2.4.16-noop`?");
}

#[test]
fn an_output_folder_that_is_not_ours() {
    let dir = folder();
    logs(dir.path(), "strace.log", STRACE);
    fs::create_dir(dir.path().join("thesis")).unwrap();
    fs::write(dir.path().join("thesis/chapter1.tex"), "x").unwrap();
    let said = kreplay_in(dir.path(), &["run", "logs", "-o", "thesis"]);
    assert_eq!(said.code, 7);
    insta::assert_snapshot!(said.transcript());
    assert_eq!(fs::read_dir(dir.path().join("thesis")).unwrap().count(), 1);
}

#[test]
fn an_output_place_that_cannot_be_written() {
    let dir = folder();
    logs(dir.path(), "strace.log", STRACE);
    fs::write(dir.path().join("file"), "x").unwrap();
    let said = kreplay_in(dir.path(), &["run", "logs", "-o", "file/out"]);
    assert_eq!(said.code, 7, "{}", said.err);
    assert!(said.err.contains("file/out"), "{}", said.err);
}

#[test]
fn unknown_pacing_profile_sweep_proof_and_load() {
    let dir = folder();
    logs(dir.path(), "strace.log", STRACE);
    for (args, hint) in [
        (&["run", "logs", "-o", "out", "--pacing", "fast"][..], "closed"),
        (&["run", "logs", "-o", "out", "--with", "slowdsk"], "slowdisk"),
        (&["run", "logs", "-o", "out", "--set", "machine.ram"], "machine.ram=value"),
        (&["prove", "linux42", "."], "linux24"),
        (&["synth", "wr61", "-o", "trace"], "wr16"),
        (&["ingest", "logs", "-f", "dtrace", "-o", "trace"], "kreplay formats"),
    ] {
        let said = kreplay_in(dir.path(), args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(hint), "{args:?}: {}", said.err);
        assert!(!dir.path().join("out").exists() && !dir.path().join("trace").exists(), "{args:?}");
    }
}

#[test]
fn results_that_are_none() {
    let dir = folder();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let said = kreplay_in(dir.path(), &["report", "empty"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("empty") && said.err.contains("help:"), "{}", said.err);
}
