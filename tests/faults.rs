//! Places and settings that fail: each ends with its exit code and words, before work is done where that can be, and
//! leaves nothing half-written.

mod common;

use common::{PROGRAM, Said, kreplay, kreplay_in};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn synth(dir: &Path, out: &str) {
    let said = kreplay_in(dir, &["synth", "read512", "big_mib=2", "-o", out]);
    assert_eq!(said.code, 0, "{}", said.err);
}

fn names(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(names(&path));
        }
        found.push(path.display().to_string());
    }
    found
}

#[test]
fn values_beyond_any_machine_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    for (set, word) in [
        ("machine.swap=9223372036854775807KiB", "machine.swap"),
        ("machine.ram=99999999999999TiB", "machine.ram"),
        ("machine.hz=5000", "more than 1000"),
        ("machine.cpus=0", "less than 1"),
        ("machine.fault-ns=9223372036854775807", "machine.fault-ns"),
        ("device.queue-depth=0", "device.queue-depth"),
        ("device.seek-span-us=9223372036854775807", "device.seek-span-us"),
        ("writeback.interval-ms=9223372036854775807", "writeback.interval-ms"),
        ("machine.reserved=60MiB", "machine.reserved"),
    ] {
        let said = kreplay_in(dir.path(), &["replay", "trace", "-v", "linux-2.4.16", "--set", set, "-o", "out"]);
        assert_eq!(said.code, 2, "{set}: {}", said.err);
        assert!(said.err.contains(word), "{set}: {}", said.err);
        assert!(!dir.path().join("out").exists(), "{set} left a folder");
    }
}

#[test]
fn a_reference_that_is_not_in_the_run_is_told_before_any_work() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let run = ["run", "trace", "-v", "linux-2.4.16", "-v", "linux-2.4.17", "--reference", "linux-2.4.71", "-o", "out"];
    let said = kreplay_in(dir.path(), &run);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("did you mean `linux-2.4.17`?"), "{}", said.err);
    assert!(!dir.path().join("out").exists());
}

#[test]
fn a_trace_given_twice_is_replayed_once() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let said = kreplay_in(dir.path(), &["replay", "trace", "trace/", "-v", "linux-2.4.16", "-o", "out", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(facts["cells"].as_array().unwrap().len(), 1, "{facts:#}");
    assert!(said.err.contains("same trace"), "{}", said.err);
}

#[test]
fn a_report_takes_no_other_trace_for_its_own() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let said = kreplay_in(dir.path(), &["synth", "read512", "big_mib=3", "-o", "other"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = kreplay_in(dir.path(), &["run", "trace", "-v", "linux-2.4.16", "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = kreplay_in(dir.path(), &["report", "out", "--trace", "other"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("not the trace of these results"), "{}", said.err);
    fs::rename(dir.path().join("trace"), dir.path().join("moved")).unwrap();
    let said = kreplay_in(dir.path(), &["report", "out", "--trace", "moved"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn usage_errors_are_json_when_json_is_asked_for() {
    let said = kreplay(&["replay", "--json", "--no-such-option"]);
    assert_eq!(said.code, 2);
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["exit"], 2);
    assert!(error["error"].as_str().unwrap().contains("--no-such-option"), "{error}");
}

#[test]
fn what_a_file_name_could_do_to_a_terminal_becomes_visible() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let line = "7 1700000000.100000 read(3</data/f>, \"\"..., 4096) = 4096 <0.000020>\n";
    fs::write(logs.join("a\x1b[2J\n.log"), line.repeat(3)).unwrap();
    let said = kreplay_in(dir.path(), &["ingest", "logs", "-o", "trace"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("a\\x1b[2J\\n.log") && !said.out.contains('\x1b'), "{:?}", said.out);
    let said = kreplay_in(dir.path(), &["inspect", "trace"]);
    assert!(said.out.contains("a\\x1b[2J\\n.log") && !said.out.contains('\x1b'), "{:?}", said.out);
}

#[test]
fn a_clock_step_of_years_is_not_simulated() {
    let dir = tempfile::tempdir().unwrap();
    let line = |s: u64| format!("7 {s}.100000 read(3</data/f>, \"\"..., 4096) = 4096 <0.000020>\n");
    let early: String = (0..20).map(|i| line(1_000_000_000 + i)).collect();
    let late: String = (0..20).map(|i| line(1_700_000_000 + i)).collect();
    fs::create_dir(dir.path().join("logs")).unwrap();
    fs::write(dir.path().join("logs/strace.log"), early + &late).unwrap();
    let said = kreplay_in(dir.path(), &["run", "logs", "-v", "linux-2.4.16", "-o", "out", "--json", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let verdict = facts["verdict"].to_string();
    assert!(verdict.contains("would have taken 3") || verdict.contains("would have taken 4"), "{verdict}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_is_full_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let run = |args: &[&str], out: Stdio| {
        Command::new(PROGRAM).args(args).current_dir(dir.path()).stdout(out).stderr(full()).status().unwrap().code()
    };
    assert_eq!(run(&["run", "trace", "-v", "linux-2.4.16", "-o", "out"], Stdio::null()), Some(0));
    assert!(dir.path().join("out/report.md").is_file());
    assert_eq!(run(&["run", "nowhere", "-o", "out2"], Stdio::null()), Some(3), "an error keeps its exit code");
    assert_eq!(run(&["formats"], full()), Some(7), "a standard output that is full is an error");
}

/// A limit on the size of files stands in for a disk that fills up: the same writes fail in the same places.
#[cfg(unix)]
#[test]
fn a_write_that_fails_leaves_nothing_under_a_final_name() {
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let limited = |kib: u32, args: &str| {
        let script = format!("trap '' XFSZ; ulimit -f {}; exec '{PROGRAM}' {args}", kib * 2);
        let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    let said = limited(4, "synth read512 big_mib=2 -o small");
    assert_eq!(said.code, 7, "{}", said.err);
    assert!(!dir.path().join("small").exists(), "a trace that could not be written is not there");
    let said = limited(4, "run trace -v linux-2.4.16 -o out -q");
    assert!([6, 7].contains(&said.code), "{} {}", said.code, said.err);
    let left: Vec<String> = names(&dir.path().join("out"))
        .into_iter()
        .filter(|n| (n.ends_with(".parquet") || n.ends_with("cell.json")) && !n.contains(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let said = kreplay_in(dir.path(), &["run", "trace", "-v", "linux-2.4.16", "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "the same command goes on when there is room: {}", said.err);
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    synth(dir.path(), "trace");
    let locked = dir.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        // Root writes everywhere.
        fs::remove_file(locked.join("probe")).unwrap();
        return;
    }
    let said = kreplay_in(dir.path(), &["run", "trace", "-v", "linux-2.4.16", "-o", "locked/out"]);
    assert_eq!(said.code, 7, "{}", said.err);
    assert!(said.err.contains("locked/out"), "{}", said.err);
}

#[test]
fn a_wait_that_nothing_ends_is_left_out_of_the_replay() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("logs")).unwrap();
    let log = "11111 1796035856.000000 wait4(-1, NULL, 0, NULL) = 11111 <0.100000>\n\
        11111 1796035856.200000 read(3</mnt/f>, \"\"..., 4096) = 4096 <0.000020>\n";
    fs::write(dir.path().join("logs/strace.log"), log).unwrap();
    let said = kreplay_in(dir.path(), &["run", "logs", "-v", "linux-2.4.16", "-o", "out", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[cfg(unix)]
#[test]
fn names_that_are_no_utf8_are_names_like_others() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join(std::ffi::OsStr::from_bytes(b"lo\xffgs"));
    fs::create_dir(&logs).unwrap();
    let line = "7 1700000000.100000 read(3</data/f>, \"\"..., 4096) = 4096 <0.000020>\n";
    fs::write(logs.join(std::ffi::OsStr::from_bytes(b"a\xff.log")), line).unwrap();
    fs::write(logs.join(std::ffi::OsStr::from_bytes(b"b\xff.txt")), "nothing of ours\n").unwrap();
    let run = |args: &[&std::ffi::OsStr]| {
        let output = Command::new(PROGRAM).args(args).current_dir(dir.path()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), err)
    };
    let out = std::ffi::OsStr::from_bytes(b"tr\xfface");
    let (code, text, err) = run(&["--json".as_ref(), "ingest".as_ref(), logs.as_ref(), "-o".as_ref(), out]);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let (code, text, err) = run(&["--json".as_ref(), "inspect".as_ref(), out]);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_given_by_its_path_is_read_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let line = |i: u32| format!("7 17000{i:05}.100000 read(3</data/f>, \"\"..., 4096) = 4096 <0.000020>\n");
    fs::write(dir.path().join("log"), (0..20_000).map(line).collect::<String>()).unwrap();
    let script = format!("cat log | '{PROGRAM}' ingest /dev/stdin -o trace --json");
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["counts"]["syscall"], 20_000, "{facts:#}");
    let script = format!("mkfifo fifo; cat log > fifo & exec '{PROGRAM}' ingest fifo -o other --json");
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["counts"]["syscall"], 20_000, "{facts:#}");
}
