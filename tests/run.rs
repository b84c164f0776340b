//! The main job on a small generated load and on a small log, end to end.

mod common;

use common::{PROGRAM, kreplay_in};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn synth(dir: &Path) {
    let said = kreplay_in(dir, &["synth", "read512", "big_mib=2", "-o", "trace"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

/// Every file below a folder, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn hashes(dir: &Path) -> Vec<(String, blake3::Hash)> {
    let name = |p: &Path| p.strip_prefix(dir).unwrap().display().to_string();
    files(dir).iter().map(|p| (name(p), blake3::hash(&fs::read(p).unwrap()))).collect()
}

#[test]
fn run_writes_reports_and_tables_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path());
    let run = ["run", "trace", "-v", "linux-2.4.16*", "-o", "out", "-q"];
    let said = kreplay_in(dir.path(), &run);
    assert_eq!(said.code, 0, "{}", said.err);
    let out = dir.path().join("out");
    assert!(out.join("report.html").is_file() && out.join("report.md").is_file());
    let tables = files(&out).iter().filter(|p| p.extension().is_some_and(|e| e == "parquet")).count();
    assert!(tables >= 4 * 8, "{tables}");
    let leftovers: Vec<_> = files(&out).into_iter().filter(|p| p.to_string_lossy().contains(".tmp-")).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");

    let before = hashes(&out.join("results"));
    let again = kreplay_in(dir.path(), &["replay", "trace", "-v", "linux-2.4.16*", "-o", "out", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(facts["reused"], facts["cells"].as_array().unwrap().len());
    let after = hashes(&out.join("results"));
    let tables = |list: &[(String, blake3::Hash)]| -> Vec<(String, blake3::Hash)> {
        list.iter().filter(|(name, _)| !name.ends_with("manifest.json")).cloned().collect()
    };
    assert_eq!(tables(&before), tables(&after));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path());
    let sweep = "machine.ram=32MiB,64MiB";
    for (threads, out) in [("1", "one"), ("4", "four")] {
        let said = kreplay_in(
            dir.path(),
            &["replay", "trace", "-v", "linux-2.4.1[67]", "--set", sweep, "-j", threads, "-o", out, "-q"],
        );
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let tables = |out: &str| -> Vec<(String, blake3::Hash)> {
        hashes(&dir.path().join(out).join("results")).into_iter().filter(|(n, _)| n.ends_with(".parquet")).collect()
    };
    let one = tables("one");
    assert_eq!(one.len(), 4 * 8);
    assert_eq!(one, tables("four"));
}

#[test]
fn a_report_is_made_anew_in_each_kind() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path());
    let said = kreplay_in(dir.path(), &["replay", "trace", "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = kreplay_in(dir.path(), &["report", "out", "-o", "r.html", "-o", "r.md", "-o", "r.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let html = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(html.contains("<svg") && !html.contains("http://") || html.contains("www.w3.org"));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(report["kind"], "kreplay-report");
    assert_eq!(kreplay_in(dir.path(), &["report", "out", "-o", "r.docx"]).code, 2);
    let unknown = kreplay_in(dir.path(), &["report", "out", "--reference", "linux-9"]);
    assert_eq!(unknown.code, 2, "{}", unknown.err);
}

#[test]
fn an_output_folder_in_use_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path());
    assert_eq!(kreplay_in(dir.path(), &["replay", "trace", "-o", "out", "-q"]).code, 0);
    let marker = fs::File::open(dir.path().join("out/.kreplay")).unwrap();
    marker.lock().unwrap();
    let said = kreplay_in(dir.path(), &["replay", "trace", "-o", "out", "-q"]);
    assert_eq!(said.code, 7);
    assert!(said.err.contains("another kreplay"), "{}", said.err);
}

#[test]
fn an_interrupt_keeps_finished_cells_and_the_same_command_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(kreplay_in(dir.path(), &["synth", "wr16", "-o", "trace"]).code, 0);
    let sweep = "machine.ram=24MiB,32MiB,40MiB,48MiB,56MiB,64MiB,72MiB,80MiB,88MiB,96MiB,104MiB,112MiB";
    let args = ["replay", "trace", "-v", "linux-2.4.16", "--set", sweep, "-j", "1", "-o", "out"];
    let child = Command::new(PROGRAM)
        .args(args)
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let done = |out: &Path| out.is_dir() && files(out).iter().any(|p| p.ends_with("cell.json"));
    let begin = Instant::now();
    while !done(&dir.path().join("out")) {
        assert!(begin.elapsed() < Duration::from_secs(120), "no cell was finished");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("go on with:") && err.contains("machine.ram=24MiB,32MiB"), "{err}");
    let again = kreplay_in(dir.path(), &[&args[..], &["--json"]].concat());
    assert_eq!(again.code, 0, "{}", again.err);
    let facts: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    let (cells, reused) = (facts["cells"].as_array().unwrap().len(), facts["reused"].as_u64().unwrap());
    assert_eq!(cells, 12);
    assert!((1..12).contains(&reused), "{reused}");
}

/// A recording of today without variants named: its own kernel on the recorded machine, and the other schedulers.
#[test]
fn a_recording_of_today_is_compared_with_its_own_machine() {
    let dir = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/samples/fileserver");
    let said = kreplay_in(dir.path(), &["run", sample, "-o", "out", "--json", "--progress", "none"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = facts["cells"].as_array().unwrap().iter().filter_map(|c| c["variant"].as_str()).collect();
    assert_eq!(
        names,
        [
            "linux-6.18+recorded",
            "linux-6.18+recorded+elevator.policy=none",
            "linux-6.18+recorded+elevator.policy=bfq",
            "linux-6.18+recorded+elevator.policy=kyber",
        ]
    );
    let report = fs::read_to_string(dir.path().join("out/report.md")).unwrap();
    assert!(report.contains("34 MiB of memory for the load, 2 processors"), "what the name stands for");

    let shown = ["variants", "show", "linux-6.18+recorded", "--recording", "out/traces/fileserver"];
    let said = kreplay_in(dir.path(), &shown);
    assert!(said.out.contains("memory-limit = \"34816KiB\""), "{}{}", said.out, said.err);

    // Half the memory, twice as much: what is set by hand goes on top, and what is not stays as recorded.
    let memory = "machine.memory-limit=17MiB,68MiB";
    let more = ["replay", "out/traces/fileserver", "-v", "linux-6.18", "--with", "recorded", "--set", memory];
    let said = kreplay_in(dir.path(), &[&more[..], &["-o", "more", "--json", "--totals-only"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("note:"), "{}", said.err);
    // Without it the difference is said.
    let said = kreplay_in(
        dir.path(),
        &["replay", "out/traces/fileserver", "-v", "linux-6.18", "-o", "plain", "--totals-only"],
    );
    assert!(said.err.contains("`--with recorded` takes those of the recording"), "{}", said.err);
}

#[test]
fn a_log_alone_names_no_machine() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.strace"), "1 0.000001 openat(AT_FDCWD, \"/x\", O_RDONLY) = 3 <0.000010>\n").unwrap();
    let said = kreplay_in(dir.path(), &["run", "a.strace", "-v", "linux-6.18+recorded", "-o", "out"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("does not say what machine it was made on"), "{}", said.err);
}

/// A reader of the same 24 MiB twice, as strace -ttt -T shows it, and vmstat -t beside it: of the 63 000 KiB that the machine
/// had before, others took 47 464 during the load.
fn reader_beside_others(dir: &Path) {
    let mut calls = String::new();
    let mut at_ms = 1_000_000_000_000_u64;
    let mut call = |text: &str, took: &str| {
        calls += &format!("100 {}.{:03}000 {text} <{took}>\n", at_ms / 1000, at_ms % 1000);
        at_ms += 4;
    };
    call("execve(\"/bin/reader\", [\"reader\"], 0x0 /* 9 vars */) = 0", "0.000300");
    for _ in 0..2 {
        call("openat(AT_FDCWD, \"/data/f\", O_RDONLY) = 3", "0.000100");
        (0..24 * 16).for_each(|_| call("read(3, \"...\"..., 65536) = 65536", "0.003000"));
        call("close(3) = 0", "0.000010");
    }
    let mut table = String::from(
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC\n \
         0  0      0  62000    200    800    0    0     0     0  200  300  0  0 99  0  0 2001-09-09 01:46:35\n",
    );
    for s in 40..44 {
        table += &format!(
            " 0  1      0   2000    200  13336    0    0  8000     0  200  300 10 10 60 20  0 2001-09-09 01:46:{s}\n"
        );
    }
    fs::write(dir.join("reader.strace"), calls).unwrap();
    fs::write(dir.join("vmstat.log"), table).unwrap();
}

#[test]
fn memory_that_others_had_in_a_recorded_vmstat_log_is_missing_in_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    reader_beside_others(dir.path());
    let ingest = ["ingest", "reader.strace", "vmstat.log", "--strict", "-o", "trace"];
    let said = kreplay_in(dir.path(), &ingest);
    assert_eq!(said.code, 0, "{}", said.err);
    let sweep = "machine.envelope=none,recorded,scaled";
    let said = kreplay_in(dir.path(), &["replay", "trace", "-v", "linux-2.4.16", "--set", sweep, "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // 64 MiB alone keep the file between the passes; 18 MiB do not, and a loop through more than fits finds nothing again.
    let of = |envelope: &str| format!("out:linux-2.4.16+machine.envelope={envelope}");
    for taken in ["recorded", "scaled"] {
        let compare = |condition: &str| {
            kreplay_in(dir.path(), &["compare", &of("none"), &of(taken), "--fail-if", condition, "--json"])
        };
        let said = compare("disk_read_mib > 47");
        assert_eq!(said.code, 5, "{taken}: {}{}", said.out, said.err);
        let said = compare("disk_read_mib > 49");
        assert_eq!(said.code, 0, "{taken}: {}{}", said.out, said.err);
    }
    let said = kreplay_in(dir.path(), &["compare", &of("recorded"), &of("none"), "--fail-if", "disk_read_mib > 25"]);
    assert_eq!(said.code, 0, "alone it reads once: {}{}", said.out, said.err);
}
