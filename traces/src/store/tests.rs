//! Round trips, resume after a kill, damage, and refusals.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, Result};
use crate::event::{BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow};

fn key(path: &str) -> SourceKey {
    SourceKey { path: path.into(), format: "test".into(), options: Default::default() }
}

fn facts_of(file: &Path) -> SourceFacts {
    SourceFacts {
        blake3: Some(hash_file(file).unwrap()),
        bytes: Some(fs::metadata(file).unwrap().len()),
        ..SourceFacts::default()
    }
}

fn call(time_ns: i64, line: i64) -> SyscallRow<'static> {
    SyscallRow { time_ns, line, tid: 1, call: "read", ..SyscallRow::default() }
}

fn times(trace: &TraceDir) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    trace.syscalls().unwrap().for_each(|r| out.push((r.time_ns, r.line))).unwrap();
    out
}

/// A trace with one row in every table.
fn small_trace(path: &Path) {
    let mut w = TraceWriter::create(path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    w.syscall(&call(5, 1));
    w.block(&BlockRow { time_ns: 6, action: "Q", rwbs: "R", sector_512: Some(8), ..BlockRow::default() });
    w.vmstat(&VmstatRow { free_kib: Some(7), ..VmstatRow::default() });
    w.fault(&FaultRow { time_ns: 8, count: 3, ..FaultRow::default() });
    w.process(&ProcessRow { tid: 9, comm: Some("cat"), repeat_from_line: Some(2), ..ProcessRow::default() });
    w.file(&FileRow { path: "/mnt/a", size_bytes: Some(10), ..FileRow::default() });
    w.counter(&CounterRow { subject: "disk sda", name: "reads", value: 12, ..CounterRow::default() });
    w.reject(&RejectRow { line: 11, reason: "test-no-result", text: "x\\n", ..RejectRow::default() });
    w.finish_source(SourceFacts { lines: 7, ..SourceFacts::default() }).unwrap();
    w.finish().unwrap();
}

#[test]
fn every_table_comes_back_and_the_manifest_counts_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    small_trace(&path);
    let trace = TraceDir::open(&path).unwrap();
    assert!(trace.manifest().counts.values().all(|n| *n == 1), "{:?}", trace.manifest().counts);
    assert_eq!(trace.manifest().sources[0].rejects["test-no-result"], 1);
    assert_eq!(times(&trace), [(5, 1)]);
    assert_eq!(trace.blocks().unwrap().next().unwrap().unwrap().sector_512, Some(8));
    assert_eq!(trace.vmstats().unwrap().next().unwrap().unwrap().time_ns, None);
    assert_eq!(trace.faults().unwrap().next().unwrap().unwrap().count, 3);
    assert_eq!(trace.processes().unwrap().next().unwrap().unwrap().repeat_from_line, Some(2));
    assert_eq!(trace.files().unwrap().next().unwrap().unwrap().path, "/mnt/a");
    let mut counters = trace.counters().unwrap();
    let counter = counters.next().unwrap().unwrap();
    assert_eq!((counter.subject, counter.name, counter.value), ("disk sda", "reads", 12));
    assert_eq!(trace.rejects().unwrap().next().unwrap().unwrap().text, "x\\n");
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["t"], "nothing else may stay");
    assert!(!path.join("ingest.lock").exists() && !path.join("ingest.json").exists());
}

#[test]
fn the_same_rows_give_the_same_bytes_and_id() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    small_trace(&a);
    small_trace(&b);
    assert_eq!(fs::read(a.join(MANIFEST_FILE)).unwrap(), fs::read(b.join(MANIFEST_FILE)).unwrap());
}

#[test]
fn sources_are_merged_by_time_and_shifted_to_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    for (name, clock, times) in
        [("a", ClockKind::Realtime, [1000, 1010, 1020]), ("b", ClockKind::Monotonic, [5, 16, 24])]
    {
        w.begin_source(key(name), clock).unwrap();
        for (i, t) in times.into_iter().enumerate() {
            w.syscall(&call(t, i as i64 + 1));
        }
        w.finish_source(SourceFacts::default()).unwrap();
    }
    let (_, manifest) = w.finish().unwrap();
    assert!(manifest.clock.assumed);
    let trace = TraceDir::open(&path).unwrap();
    assert_eq!(times(&trace), [(0, 1), (0, 1), (10, 2), (11, 2), (19, 3), (20, 3)]);
}

#[test]
fn vmstat_rows_without_times_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("v"), ClockKind::Relative).unwrap();
    for (line, time_ns) in [(1, None), (2, Some(50)), (3, None), (4, Some(40)), (5, Some(60))] {
        w.vmstat(&VmstatRow { time_ns, line, ..VmstatRow::default() });
    }
    w.finish_source(SourceFacts::default()).unwrap();
    w.finish().unwrap();
    let mut lines = Vec::new();
    TraceDir::open(&path).unwrap().vmstats().unwrap().for_each(|r| lines.push(r.line)).unwrap();
    assert_eq!(lines, [1, 2, 3, 4, 5]);
}

#[test]
fn activity_merges_calls_and_touches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    for line in 0..30_000 {
        if line % 3 == 1 {
            w.fault(&FaultRow { time_ns: line / 2, line, count: 1, ..FaultRow::default() });
        } else {
            w.syscall(&call(line / 2, line));
        }
    }
    w.finish_source(SourceFacts::default()).unwrap();
    w.finish().unwrap();
    let trace = TraceDir::open(&path).unwrap();
    let mut rows = trace.activity().unwrap();
    for line in 0..30_000 {
        let got = match rows.next().unwrap().unwrap() {
            Activity::Syscall(c) => (false, c.line),
            Activity::Fault(f) => (true, f.line),
        };
        assert_eq!(got, (line % 3 == 1, line));
    }
    assert_eq!(rows.next().unwrap(), None);
    assert_eq!(rows.next().unwrap(), None, "the end stays the end");
}

/// An ingest is killed in its second source: the first is reused, the second done again.
#[test]
fn a_killed_ingest_resumes_with_its_finished_sources() {
    let dir = tempfile::tempdir().unwrap();
    let (path, a, b) = (dir.path().join("t"), dir.path().join("a.log"), dir.path().join("b.log"));
    fs::write(&a, "one").unwrap();
    fs::write(&b, "two").unwrap();

    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    assert!(!w.reuse_source(&key("a"), &a).unwrap());
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    w.syscall(&call(1, 1));
    w.finish_source(facts_of(&a)).unwrap();
    w.begin_source(key("b"), ClockKind::Trace).unwrap();
    for line in 0..70_000 {
        w.syscall(&call(line, line));
    }
    drop(w);
    assert!(!path.exists(), "nothing under the final name");
    assert!(TraceDir::open(&path).is_err());

    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    assert!(w.reuse_source(&key("a"), &a).unwrap());
    assert!(!w.reuse_source(&key("b"), &b).unwrap());
    w.begin_source(key("b"), ClockKind::Trace).unwrap();
    w.syscall(&call(2, 1));
    w.finish_source(facts_of(&b)).unwrap();
    w.finish().unwrap();
    assert_eq!(times(&TraceDir::open(&path).unwrap()), [(1, 1), (2, 1)]);
}

#[test]
fn a_source_that_changed_is_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, a) = (dir.path().join("t"), dir.path().join("a.log"));
    fs::write(&a, "one").unwrap();
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    w.syscall(&call(1, 1));
    w.finish_source(facts_of(&a)).unwrap();
    drop(w);
    fs::write(&a, "two").unwrap();
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    assert!(!w.reuse_source(&key("a"), &a).unwrap());
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    w.finish_source(facts_of(&a)).unwrap();
    w.finish().unwrap();
    let trace = TraceDir::open(&path).unwrap();
    assert!(trace.syscalls().unwrap().is_empty());
    assert!(!path.join("syscall/part-00000.parquet").exists(), "the old part is gone");
}

#[test]
fn an_abandoned_source_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    w.syscall(&call(1, 1));
    w.abandon_source().unwrap();
    w.begin_source(key("b"), ClockKind::Trace).unwrap();
    w.syscall(&call(2, 1));
    w.finish_source(SourceFacts::default()).unwrap();
    w.finish().unwrap();
    assert_eq!(times(&TraceDir::open(&path).unwrap()), [(2, 1)]);
}

#[test]
fn a_second_writer_is_locked_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let first = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    let second = TraceWriter::create(&path, WriterOptions::default());
    assert!(matches!(second.err(), Some(Error::Locked { .. })));
    drop(first);
    assert!(TraceWriter::create(&path, WriterOptions::default()).is_ok());
}

#[test]
fn foreign_and_finished_directories_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("photos");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("cat.jpg"), "x").unwrap();
    let refused = TraceWriter::create(&foreign, WriterOptions { replace: true, fresh: true });
    assert!(matches!(refused.err(), Some(Error::NotOurs { .. })));
    assert_eq!(fs::read(foreign.join("cat.jpg")).unwrap(), b"x");

    let done = dir.path().join("t");
    small_trace(&done);
    let refused = TraceWriter::create(&done, WriterOptions::default());
    assert!(matches!(refused.err(), Some(Error::Exists { .. })));
    let mut w = TraceWriter::create(&done, WriterOptions { replace: true, fresh: false }).unwrap();
    w.begin_source(key("n"), ClockKind::Trace).unwrap();
    w.syscall(&call(77, 1));
    w.finish_source(SourceFacts::default()).unwrap();
    assert_eq!(times(&TraceDir::open(&done).unwrap()), [(5, 1)], "the old one stays until the end");
    w.finish().unwrap();
    assert_eq!(times(&TraceDir::open(&done).unwrap()), [(77, 1)]);

    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    small_trace(&empty);
    assert!(TraceDir::open(&empty).is_ok());
}

#[test]
fn a_newer_schema_and_foreign_manifests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    small_trace(&path);
    let manifest = path.join(MANIFEST_FILE);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"schema_version\": 1", "\"schema_version\": 2")).unwrap();
    assert!(matches!(TraceDir::open(&path), Err(Error::NewerSchema { found: 2, .. })));
    assert!(TraceDir::is_trace(&path));
    fs::write(&manifest, text.replace("kreplay-trace", "other")).unwrap();
    assert!(matches!(TraceDir::open(&path), Err(Error::NotATrace { .. })));
    fs::write(&manifest, text.replace("syscall/part", "../syscall/part")).unwrap();
    assert!(matches!(TraceDir::open(&path), Err(Error::Damaged { .. })));
    fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    assert!(matches!(TraceDir::open(&path), Err(Error::Damaged { .. })));
}

/// Damage that the hash does not see, because the manifest vouches for it, is still a clean error.
#[test]
fn a_damaged_part_with_a_matching_hash_is_an_error_and_never_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    for i in 0..3000 {
        w.syscall(&SyscallRow { path: Some(if i % 2 == 0 { "/a" } else { "/b" }), ..call(i * 7, i) });
    }
    w.finish_source(SourceFacts::default()).unwrap();
    w.finish().unwrap();
    let file = path.join("syscall/part-00000.parquet");
    let good = fs::read(&file).unwrap();
    let manifest = fs::read_to_string(path.join(MANIFEST_FILE)).unwrap();
    let good_hash = blake3::hash(&good).to_hex().to_string();
    let (mut failed, mut read) = (0, 0);
    for k in 0..200_usize {
        let mut bad = good.clone();
        // The footer is where damage confuses a reader most.
        let at = bad.len() - 1 - (k * 37) % bad.len().min(3000);
        bad[at] ^= 1 << (k % 8);
        fs::write(&file, &bad).unwrap();
        fs::write(path.join(MANIFEST_FILE), manifest.replace(&good_hash, blake3::hash(&bad).to_hex().as_str()))
            .unwrap();
        let trace = TraceDir::open(&path).unwrap();
        let result: Result<()> = trace.syscalls().and_then(|mut rows| rows.for_each(|_| ()));
        match result {
            Ok(()) => read += 1,
            Err(Error::Damaged { path, .. }) => {
                assert_eq!(path, file);
                failed += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(failed > 100, "{failed} failed, {read} read");
}

#[test]
fn late_rows_end_in_parts_of_their_own_and_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
    w.begin_source(key("a"), ClockKind::Trace).unwrap();
    // Every 1000th row is a call that began long ago (a wait that returned late).
    let n = 200_000_i64;
    for i in 0..n {
        w.syscall(&call(if i % 1000 == 999 { i / 2 } else { i + 10 }, i + 1));
    }
    w.finish_source(SourceFacts::default()).unwrap();
    w.finish().unwrap();
    let trace = TraceDir::open(&path).unwrap();
    assert!(trace.manifest().parts.len() >= 2);
    let times = times(&trace);
    assert_eq!(times.len(), n as usize);
    assert!(times.is_sorted());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z]{1,3}", any::<String>()]
}

prop_compose! {
    fn any_call()(
        time_ns in -1_000_000_i64..1_000_000, tid in any::<i64>(), call in text(), ret in any::<Option<i64>>(),
        errno in proptest::option::of(text()), dur_ns in any::<Option<i64>>(), fd in any::<Option<i64>>(),
        path in proptest::option::of(text()), offset_bytes in any::<Option<i64>>(), args in proptest::option::of(text()),
        unfinished in any::<bool>(), line in any::<i64>(),
    ) -> OwnedCall {
        OwnedCall { time_ns, tid, call, ret, errno, dur_ns, fd, path, offset_bytes, args, unfinished, line }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct OwnedCall {
    time_ns: i64,
    tid: i64,
    call: String,
    ret: Option<i64>,
    errno: Option<String>,
    dur_ns: Option<i64>,
    fd: Option<i64>,
    path: Option<String>,
    offset_bytes: Option<i64>,
    args: Option<String>,
    unfinished: bool,
    line: i64,
}

impl OwnedCall {
    fn row(&self) -> SyscallRow<'_> {
        SyscallRow {
            time_ns: self.time_ns,
            tid: self.tid,
            call: &self.call,
            ret: self.ret,
            errno: self.errno.as_deref(),
            dur_ns: self.dur_ns,
            fd: self.fd,
            path: self.path.as_deref(),
            offset_bytes: self.offset_bytes,
            args: self.args.as_deref(),
            unfinished: self.unfinished,
            line: self.line,
            ..SyscallRow::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_rows_come_back_sorted_by_time_and_line(calls in proptest::collection::vec(any_call(), 0..400)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut w = TraceWriter::create(&path, WriterOptions::default()).unwrap();
        w.begin_source(key("a"), ClockKind::Relative).unwrap();
        calls.iter().for_each(|c| w.syscall(&c.row()));
        w.finish_source(SourceFacts::default()).unwrap();
        w.finish().unwrap();
        let trace = TraceDir::open(&path).unwrap();
        let zero = calls.iter().map(|c| c.time_ns).min().unwrap_or(0);
        let mut expected: Vec<OwnedCall> = calls;
        expected.sort_by_key(|c| (c.time_ns, c.line));
        let mut rows = trace.syscalls().unwrap();
        for want in &expected {
            let want = SyscallRow { time_ns: want.time_ns - zero, ..want.row() };
            prop_assert_eq!(rows.next().unwrap(), Some(want));
        }
        prop_assert_eq!(rows.next().unwrap(), None);
    }

    #[test]
    fn any_damage_to_a_part_is_noticed(at in any::<prop::sample::Index>(), flip in 1_u8..=255) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        small_trace(&path);
        let file = path.join("syscall/part-00000.parquet");
        let mut bytes = fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(&file, bytes).unwrap();
        let opened = TraceDir::open(&path);
        let noticed = matches!(opened, Err(Error::Damaged { .. }));
        prop_assert!(noticed);
    }
}
