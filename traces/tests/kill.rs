//! An ingest killed at any moment leaves nothing under the final name, and the next one ends with the same bytes as one
//! that was never killed.
//!
//! The test starts itself as a child process that writes a trace, and kills it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kreplay_traces::event::{EventSink, SyscallRow};
use kreplay_traces::store::{ClockKind, MANIFEST_FILE, SourceFacts, SourceKey, TraceDir, TraceWriter, WriterOptions};

const CHILD_DIR: &str = "KREPLAY_KILL_TEST_DIR";
/// Rows of a source: enough that a kill falls into the middle of one.
const ROWS: i64 = 150_000;
const SOURCES: [&str; 3] = ["a.log", "b.log", "c.log"];

/// Ingest the three sources of `dir`, reusing what is finished; the number reused.
fn ingest(dir: &Path) -> usize {
    let mut writer = TraceWriter::create(&dir.join("trace"), WriterOptions::default()).unwrap();
    let mut reused = 0;
    for (n, name) in SOURCES.iter().enumerate() {
        let file = dir.join(name);
        let key = SourceKey { path: (*name).into(), format: "test".into(), options: Default::default() };
        if writer.reuse_source(&key, &file).unwrap() {
            reused += 1;
            continue;
        }
        writer.begin_source(key, ClockKind::Trace).unwrap();
        for line in 0..ROWS {
            let path = ["/a", "/b", "/c"][(line % 3) as usize];
            let tid = n as i64;
            let row =
                SyscallRow { time_ns: line * 10, line, tid, call: "read", path: Some(path), ..Default::default() };
            writer.syscall(&row);
        }
        let text = fs::read(&file).unwrap();
        let facts = SourceFacts {
            blake3: Some(blake3::hash(&text).to_hex().to_string()),
            bytes: Some(text.len() as u64),
            ..SourceFacts::default()
        };
        writer.finish_source(facts).unwrap();
    }
    writer.finish().unwrap();
    reused
}

#[test]
fn child() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        ingest(Path::new(&dir));
    }
}

fn start(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn sources_in(dir: &Path) {
    for name in SOURCES {
        fs::write(dir.join(name), name).unwrap();
    }
}

#[test]
fn a_killed_ingest_ends_with_the_same_bytes_when_run_again() {
    let whole = tempfile::tempdir().unwrap();
    sources_in(whole.path());
    let started = Instant::now();
    assert!(start(whole.path()).wait().unwrap().success());
    let whole_run = started.elapsed();
    let expected = fs::read(whole.path().join("trace").join(MANIFEST_FILE)).unwrap();

    let mut killed = 0;
    let mut reused = 0;
    for k in 0..8_u32 {
        let dir = tempfile::tempdir().unwrap();
        sources_in(dir.path());
        let mut run = start(dir.path());
        std::thread::sleep(whole_run * (k + 1) / 10 + Duration::from_millis(u64::from(k)));
        let ended = run.try_wait().unwrap().is_some();
        run.kill().unwrap();
        run.wait().unwrap();
        let trace = dir.path().join("trace");
        if ended || trace.exists() {
            // It was quicker this time; then it must be whole.
            TraceDir::open(&trace).unwrap();
            continue;
        }
        killed += 1;
        reused += ingest(dir.path());
        TraceDir::open(&trace).unwrap();
        assert_eq!(fs::read(trace.join(MANIFEST_FILE)).unwrap(), expected, "killed after {k}/10");
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), SOURCES.len() + 1, "only the logs and the trace: {names:?}");
    }
    assert!(killed > 0, "no run was caught before its end");
    println!("{killed} runs killed, {reused} sources reused");
}
