//! Logs on the command line: looking at them, telling what they do not say, and giving them back.

mod common;

use common::kreplay_in;
use std::fs;
use std::path::Path;

const STRACE: &str = "\
7 1700000000.000000 openat(AT_FDCWD, \"/data/a\", O_RDONLY) = 3</data/a> <0.000050>
7 1700000000.000100 read(3</data/a>, \"x\"..., 65536) = 65536 <0.002000>
garbage
7 1700000000.004500 +++ exited with 0 +++
";
const BLKPARSE: &str = "  8,0    1        1     0.000001000  4321  Q   R 64 + 8 [dd]
  8,0    1        2     0.000002000  4321  D   R 64 + 8 [dd]
  8,0    1        3     0.000900000     0  C   R 64 + 8 [0]
  8,16   0        4     0.001000000  4321  Q   W 128 + 16 [dd]
";
const VMSTAT: &str = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 1  0      0   1000     10    100    0    0     5     6    7    8  1  2 97  0  0
 2  0      0   2000     10    100    0    0     5     6    7    8  1  2 97  0  0
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn json(dir: &Path, args: &[&str], code: i32) -> serde_json::Value {
    let said = kreplay_in(dir, args);
    assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.out))
}

#[test]
fn each_log_is_described() {
    let dir = folder(&[("s", STRACE), ("b", BLKPARSE), ("v", VMSTAT), ("n", "Dear all,\n")]);
    let all = json(dir.path(), &["inspect", "s", "b", "v", "n", "--json"], 3);
    let (s, b, v, n) = (&all[0], &all[1], &all[2], &all[3]);
    assert_eq!((&s["format"], &s["events"], &s["rejected"]), (&"strace".into(), &2.into(), &1.into()));
    assert_eq!((&s["calls"]["read"], &s["detected"]["clock"]), (&1.into(), &"epoch".into()));
    assert_eq!((&s["rejects"][0]["reason"], &s["rejects"][0]["first_line"]), (&"strace-not-a-call".into(), &3.into()));
    assert_eq!((&s["duration_ns"], &s["adds_up"]), (&100_000.into(), &true.into()));
    assert_eq!((&b["actions"]["Q"], &b["devices"][1]["device"]), (&2.into(), &"8:16".into()));
    assert_eq!((&b["processes"][1]["comm"], &b["process_count"]), (&"dd".into(), &2.into()));
    assert_eq!((&v["rows"]["vmstat"], &v["vmstat_runs"]), (&2.into(), &1.into()));
    assert!(n["error"].as_str().unwrap().contains("no known log format"), "{n}");
    let said = kreplay_in(dir.path(), &["inspect", "s"]);
    assert_eq!(said.code, 4);
    for piece in ["strace: 4 lines", "calls: openat 1, read 1", "rejected 1: strace-not-a-call (first in line 3)"] {
        assert!(said.out.contains(piece), "{piece}: {}", said.out);
    }
    assert_eq!(kreplay_in(dir.path(), &["inspect", "s", "--strict"]).code, 3);
}

#[test]
fn what_the_text_does_not_say_is_said_by_options() {
    let dir = folder(&[
        ("v", VMSTAT),
        ("t", "7 12:00:00.5 close(3) = 0\n"),
        ("f", "1.000000002;8;0;3;Q;R;64;8;276;dd\n1.000000009;8;0;3;C;R;64;8;0;\n"),
    ]);
    let v = json(
        dir.path(),
        &["inspect", "v", "--json", "--interval", "5", "--start", "2023-11-14T22:13:20", "--memory-unit", "M"],
        0,
    );
    assert_eq!(v[0]["span_ns"], serde_json::json!([1_700_000_000_000_000_000i64, 1_700_000_005_000_000_000i64]));
    assert_eq!(v[0]["options"]["memory_unit_bytes"], "1048576");
    let t = json(dir.path(), &["inspect", "t", "--json", "--date", "2023-11-14", "--utc-offset", "+02:00"], 0);
    assert_eq!(t[0]["span_ns"][0], 1_699_956_000_500_000_000i64);
    let format = r"%T.%t;%M;%m;%c;%a;%d;%S;%n;%p;%C\n";
    let f = json(dir.path(), &["inspect", "f", "--json", "--blkparse-format", format], 0);
    assert_eq!((&f[0]["format"], &f[0]["events"]), (&"blkparse".into(), &2.into()));
    for (option, bad) in [("--interval", "soon"), ("--memory-unit", "q"), ("--date", "Monday"), ("--utc-offset", "+99")]
    {
        assert_eq!(kreplay_in(dir.path(), &["inspect", "v", option, bad]).code, 2, "{option}");
    }
    assert_eq!(kreplay_in(dir.path(), &["inspect", "f", "--blkparse-format", "%q"]).code, 2);
}

#[test]
fn traces_go_back_into_other_formats() {
    let dir = folder(&[("b", BLKPARSE), ("s", "7 1700000000.0 close(3) = 0\n")]);
    assert_eq!(kreplay_in(dir.path(), &["ingest", "b", "-o", "trace"]).code, 0);
    let said = kreplay_in(dir.path(), &["export", "trace", "--to", "blkparse", "-o", "-"]);
    // Times are those of the trace: its first event is 0.
    let shifted = BLKPARSE.replace("0.000001000", "0.000000000").replace("0.000002000", "0.000001000");
    let shifted = shifted.replace("0.000900000", "0.000899000").replace("0.001000000", "0.000999000");
    assert_eq!((said.code, said.out), (0, shifted));

    assert_eq!(kreplay_in(dir.path(), &["export", "trace", "--to", "fio-iolog", "-o", "log"]).code, 0);
    let log = json(dir.path(), &["inspect", "log", "--json"], 0);
    assert_eq!((&log[0]["format"], &log[0]["actions"]["Q"]), (&"fio-iolog".into(), &2.into()));

    assert_eq!(kreplay_in(dir.path(), &["export", "trace", "--to", "oracle-general", "-o", "cache"]).code, 0);
    assert_eq!(fs::read(dir.path().join("cache")).unwrap().len(), 48);

    let files = json(dir.path(), &["export", "trace", "--to", "parquet", "-o", "tables", "--json"], 0);
    assert_eq!(files["files"][0]["rows"], 4);
    assert!(dir.path().join("tables/block.parquet").is_file());
    // The same tables as text: a header, and a line a row.
    let told = json(dir.path(), &["export", "trace", "--to", "csv", "-o", "csv", "--json"], 0);
    for file in told["files"].as_array().unwrap() {
        let text = std::fs::read_to_string(dir.path().join(file["file"].as_str().unwrap())).unwrap();
        assert_eq!(text.lines().count() as u64, file["rows"].as_u64().unwrap() + 1, "{file}");
    }
    assert_eq!(told["files"].as_array().unwrap().len(), files["files"].as_array().unwrap().len());
    let block = std::fs::read_to_string(dir.path().join("csv/block.csv")).unwrap();
    assert!(block.starts_with("time_ns,"), "{}", block.lines().next().unwrap());

    assert_eq!(kreplay_in(dir.path(), &["ingest", "s", "-o", "calls"]).code, 0);
    let said = kreplay_in(dir.path(), &["export", "calls", "--to", "blkparse", "-o", "x"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(!dir.path().join("x").exists());
}

#[test]
fn a_corpus_is_compared_with_its_manifest() {
    let manifest = "file\tformat\tcounts\ns\tstrace\tlines=4; call_starts=2 [read=1, openat=1] x; unfinished=0; resumed=0; signals=0; exits=1\n\
        v\tvmstat\tsee the notes\n";
    let dir = folder(&[("c/s", STRACE), ("c/v", VMSTAT), ("c/MANIFEST.tsv", manifest)]);
    let report = json(dir.path(), &["prove", "corpus", "c", "--json"], 0);
    assert_eq!((&report["kind"], &report["cases"], &report["passed"]), (&"corpus".into(), &2.into(), &1.into()));
    assert_eq!(report["skipped"][0]["case"], "v");
    fs::write(dir.path().join("c/MANIFEST.tsv"), manifest.replace("read=1", "read=2")).unwrap();
    let report = json(dir.path(), &["prove", "corpus", "c", "--json"], 5);
    assert_eq!(report["failed"][0]["why"], "read: expected 2, got 1");
}

#[test]
fn a_folder_of_recordings_is_a_trace_each() {
    let run = r#"{"format": "capture-1", "kernel": "6.18"}"#;
    let log = "7 1700000000.0 close(3) = 0\n";
    let dir =
        folder(&[("all/a/run.json", run), ("all/a/s", log), ("all/b/run.json", run), ("all/b/s", log), ("all/x", log)]);
    let said = kreplay_in(dir.path(), &["ingest", "all", "-o", "traces"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("all/x: it lies in none"), "{}", said.err);
    let names: Vec<_> =
        ["a", "b-2"].iter().filter(|n| dir.path().join("traces").join(n).join("manifest.json").is_file()).collect();
    assert_eq!(names.len(), 2);
}

#[test]
fn odd_inputs_have_one_clear_error() {
    let dir =
        folder(&[("empty", ""), ("header", VMSTAT.lines().next().unwrap()), ("good", "7 1700000000.0 close(3) = 0\n")]);
    for (args, code, words) in [
        (&["ingest", "-f", "strace", "empty", "-o", "t"][..], 3, "the file is empty"),
        (&["ingest", "-", "-", "-o", "t"], 2, "only once"),
        (&["ingest", "header", "-o", "t"], 3, "no event"),
        (&["ingest", "'*.nothing'", "-o", "t"], 3, "no file fits"),
    ] {
        let said = kreplay_in(dir.path(), args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
        assert!(!dir.path().join("t").exists() && !dir.path().join("t.partial").exists(), "{args:?}");
    }
    assert_eq!(kreplay_in(dir.path(), &["ingest", "header", "--allow-empty", "-o", "t"]).code, 0);
    let said = kreplay_in(dir.path(), &["ingest", "good", "./good", "-o", "two"]);
    assert!(said.code == 0 && said.out.contains("read once"), "{}", said.out);
    let said = kreplay_in(dir.path(), &["run", "header", "-o", "out"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(!dir.path().join("out").exists(), "a failed run leaves no folder");
}

#[test]
fn formats_are_listed() {
    let dir = folder(&[]);
    let list = json(dir.path(), &["formats", "--json"], 0);
    let read = list["formats"].as_array().unwrap();
    assert!(read.iter().any(|f| f["id"] == "strace") && read.iter().any(|f| f["id"] == "btrecord"));
    let refused = list["refused"].as_array().unwrap();
    assert!(refused.iter().any(|f| f["id"] == "ltrace" && f["why"].as_str().is_some_and(|w| !w.is_empty())));
}

#[test]
fn an_output_replaces_files_but_nothing_that_was_read_and_no_link() {
    let dir = folder(&[("blk.txt", BLKPARSE), ("old.txt", "old"), ("copy.txt", BLKPARSE)]);
    assert_eq!(kreplay_in(dir.path(), &["ingest", "blk.txt", "-o", "trace"]).code, 0);
    std::os::unix::fs::symlink("old.txt", dir.path().join("link")).unwrap();
    let export = |to: &str, out: &str| kreplay_in(dir.path(), &["export", "trace", "--to", to, "-o", out]).code;
    assert_eq!(export("blkparse", "link"), 0);
    assert!(fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
    let written = fs::read_to_string(dir.path().join("old.txt")).unwrap();
    assert_eq!(written.lines().count(), BLKPARSE.lines().count(), "the link's target has the export: {written}");
    let manifest = fs::read(dir.path().join("trace/manifest.json")).unwrap();
    for kept in ["blk.txt", "copy.txt", "./trace/../blk.txt", "trace/manifest.json", "trace/new"] {
        assert_eq!(export("fio-iolog", kept), 7, "{kept}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("blk.txt")).unwrap(), BLKPARSE);
    assert_eq!(fs::read(dir.path().join("trace/manifest.json")).unwrap(), manifest);
    assert_eq!(export("parquet", "-"), 2, "a folder cannot go to standard output");
    assert_eq!(export("csv", "-"), 2);
    assert!(!dir.path().join("-").exists());
}
