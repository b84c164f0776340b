//! From files to a trace directory: what is read, what is skipped, and how bad input ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kreplay_parsers::ingest::{IngestError, Options, Report, Watch, ingest, plan};
use kreplay_traces::store::{ClockKind, Manifest, TraceDir, TraceWriter, WriterOptions};

const STRACE: &str = "7 1700000000.100000 openat(AT_FDCWD, \"/mnt/disk/f\", O_RDONLY) = 3</mnt/disk/f> <0.000010>\n\
    7 1700000000.200000 read(3</mnt/disk/f>, \"\"..., 4096) = 4096 <0.000020>\n";
const BLKPARSE: &str = "  7,0    1        1     5.200000000     7  Q   R 64 + 8 [wl]\n\
    \x20 7,0    1        2     5.210000000     7  C   R 64 + 8 [0]\n";
const VMSTAT: &str = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu                 UTC\n \
    1 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 0 2023-11-14 22:13:21\n";
const LAYOUT: &str = "# ./f ino 12 size 8192\n   0:        0..      15:         64..        79:     16:  last,eof\n";
const RUN: &str = r#"{"format": "capture-1", "kernel": "6.18", "device": "/dev/loop0", "dev": "7:0", "scheduler": "none",
    "memory_limit_bytes": 1048576, "cpus": 2, "start_realtime": 1700000000.000000000, "start_monotonic": 5.000000,
    "facts": {"command": "/bin/wl clients /mnt/disk 5"}}"#;

struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let case = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(case.input()).unwrap();
        for (name, bytes) in files {
            fs::write(case.input().join(name), bytes).unwrap();
        }
        case
    }

    fn input(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    fn trace(&self) -> PathBuf {
        self.dir.path().join("trace")
    }

    fn run(&self, options: &Options) -> Result<(Report, Manifest), IngestError> {
        self.run_paths(&[self.input()], options)
    }

    fn run_paths(&self, paths: &[PathBuf], options: &Options) -> Result<(Report, Manifest), IngestError> {
        let plan = plan(paths, options)?;
        let mut writer = TraceWriter::create(&self.trace(), WriterOptions::default())?;
        let stop = AtomicBool::new(false);
        let report = ingest(plan, &mut writer, options, &mut Watch { stop: &stop, progress: &mut |_| {} })?;
        Ok((report, writer.finish()?.1))
    }
}

fn skipped(report: &Report) -> Vec<(String, &str)> {
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    report.skipped.iter().map(|s| (name(&s.path), s.why.as_str())).collect()
}

#[test]
fn a_recording_becomes_one_trace_on_one_time_line() {
    let packed = zstd::encode_all(STRACE.as_bytes(), 1).unwrap();
    let case = Case::new(&[
        ("strace.log.zst", &packed),
        ("blktrace.txt", BLKPARSE.as_bytes()),
        ("vmstat.log", VMSTAT.as_bytes()),
        ("layout.txt", LAYOUT.as_bytes()),
        ("run.json", RUN.as_bytes()),
        ("stdout.txt", b"hello\n"),
        ("stderr.txt", b""),
    ]);
    let (report, manifest) = case.run(&Options::default()).unwrap();

    let formats: Vec<_> = report.inputs.iter().map(|i| i.format).collect();
    assert_eq!(formats, ["blkparse", "layout", "strace", "vmstat"]);
    let expected = [
        ("stderr.txt".to_owned(), "the file is empty"),
        ("stdout.txt".to_owned(), "no known log format (no line fits any); name one with --format"),
    ];
    assert_eq!(skipped(&report), expected);
    let clocks: Vec<_> = manifest.sources.iter().map(|s| (s.clock, s.zero_ns, s.zero_assumed)).collect();
    assert_eq!(clocks[0], (ClockKind::Monotonic, 5_000_000_000, false));
    assert_eq!(clocks[2], (ClockKind::Realtime, 1_700_000_000_000_000_000, false));
    assert_eq!(clocks[3], (ClockKind::Realtime, 1_700_000_000_000_000_000, false));
    assert_eq!((manifest.machine.ram_kib, manifest.machine.cpus), (Some(1024), Some(2)));
    assert_eq!(manifest.machine.devices[0].dev, 7 << 20);
    assert_eq!(manifest.sources[2].lines, 2);

    let trace = TraceDir::open(case.trace()).unwrap();
    let mut calls = trace.syscalls().unwrap();
    let first = calls.next().unwrap().unwrap();
    assert_eq!((first.time_ns, first.call, first.path2), (100_000_000, "openat", Some("/mnt/disk/f")));
    let mut files = trace.files().unwrap();
    let file = files.next().unwrap().unwrap();
    assert_eq!((file.path, file.dev, file.extent_sector_512), ("/mnt/disk/f", Some(7 << 20), Some(64)));
}

#[test]
fn a_recording_with_its_block_trace_in_two_forms_counts_it_once() {
    let ftrace = b"wl-7 [001] d..1. 5.200000: block_bio_queue: 7,0 R 64 + 8 [wl]\n";
    let after = format!("{LAYOUT}# ./new ino 13 size 512\n   0: 0..0: 100..100: 1:\n");
    let case = Case::new(&[
        ("block.ftrace.txt", ftrace),
        ("blktrace.txt", BLKPARSE.as_bytes()),
        ("layout.txt", LAYOUT.as_bytes()),
        ("layout.after.txt", after.as_bytes()),
        ("run.json", RUN.as_bytes()),
    ]);
    let (report, manifest) = case.run(&Options::default()).unwrap();
    assert_eq!(skipped(&report), [("block.ftrace.txt".to_owned(), "the same block events as blktrace.txt")]);
    assert_eq!((manifest.count("block"), manifest.count("file")), (2, 2));
}

#[test]
fn directories_without_logs_are_errors() {
    let empty = Case::new(&[]).run(&Options::default()).unwrap_err();
    assert!(matches!(empty, IngestError::EmptyDirectory { .. }), "{empty}");

    let none = Case::new(&[("a.txt", b"hello\n"), ("layout.txt", LAYOUT.as_bytes())]).run(&Options::default());
    let none = none.unwrap_err();
    assert!(matches!(none, IngestError::NoLogs { files: 2, .. }), "{none}");
    assert!(none.hint().unwrap().starts_with("a.txt: no known log format"), "{:?}", none.hint());

    let missing = plan(&["/nonexistent/log".into()], &Options::default()).err().unwrap();
    assert!(missing.to_string().starts_with("cannot read /nonexistent/log"), "{missing}");
}

#[test]
fn a_named_file_must_be_a_log() {
    let case = Case::new(&[("notes", b"hello\n"), ("log", STRACE.as_bytes())]);
    let unknown = case.run_paths(&[case.input().join("notes")], &Options::default()).unwrap_err();
    assert!(matches!(unknown, IngestError::Undetected { .. }), "{unknown}");
    let options = Options { format: Some("nope".into()), ..Options::default() };
    assert!(matches!(case.run(&options).unwrap_err(), IngestError::UnknownFormat(_)));
    let options = Options { format: Some("vmstat".into()), ..Options::default() };
    let error = case.run_paths(&[case.input().join("notes")], &options).unwrap_err();
    assert!(
        error.to_string().ends_with(
            "notes: no event in this log (line 1: vmstat-not-a-row: expected a header, or a row of numbers)"
        ),
        "{error}"
    );
    let options = Options { allow_empty: true, ..options };
    let case = Case::new(&[("notes", b"hello\n")]);
    assert_eq!(case.run_paths(&[case.input().join("notes")], &options).unwrap().0.rejected(), 1);
}

#[test]
fn nothing_is_no_log_of_any_format() {
    let case = Case::new(&[("empty", b"")]);
    for format in [None, Some("strace".to_owned())] {
        let options = Options { format, ..Options::default() };
        let error = case.run_paths(&[case.input().join("empty")], &options).unwrap_err();
        assert!(error.to_string().ends_with("empty: the file is empty"), "{error}");
    }
}

#[test]
fn standard_input_is_read_once() {
    let case = Case::new(&[]);
    let error = case.run_paths(&["-".into(), "-".into()], &Options::default()).unwrap_err();
    assert!(matches!(error, IngestError::StdinTwice), "{error}");
}

#[test]
fn a_file_that_is_named_twice_counts_once() {
    let case = Case::new(&[("log", STRACE.as_bytes())]);
    let log = case.input().join("log");
    let again = case.input().join("./log");
    let (report, manifest) = case.run_paths(&[log, again, case.input()], &Options::default()).unwrap();
    assert_eq!((manifest.count("syscall"), report.inputs.len(), report.skipped.len()), (2, 1, 2));
    assert!(manifest.warnings[0].contains("the same file as"), "{:?}", manifest.warnings);
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf8_and_links_are_not_followed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let case = Case::new(&[]);
    let name = OsStr::from_bytes(b"tr\xe4ce.log");
    fs::write(case.input().join(name), STRACE).unwrap();
    let (report, manifest) = case.run(&Options::default()).unwrap();
    assert_eq!((manifest.count("syscall"), &report.inputs[0].changed), (2, &None));

    let case = Case::new(&[]);
    std::os::unix::fs::symlink("/dev/zero", case.input().join("link")).unwrap();
    let error = case.run(&Options::default()).unwrap_err();
    assert!(matches!(error, IngestError::NoLogs { .. }), "{error}");
    assert!(error.hint().unwrap().contains("link: a symbolic link"), "{:?}", error.hint());
}

#[test]
fn strict_does_not_take_half_a_file() {
    let lines: String = (0..60_000u64)
        .map(|i| format!("7 1700000000.1 lseek(3, {}, SEEK_SET) = 0\n", i.wrapping_mul(i) * 7919))
        .collect();
    let packed = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    let case = Case::new(&[("log.zst", &packed[..packed.len() / 2])]);
    let error = case.run(&Options { strict: true, ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains("log.zst ends early, after"), "{error}");
    assert!(!case.trace().exists());
}

#[cfg(unix)]
#[test]
fn everybody_may_read_the_manifest_as_any_other_file() {
    use std::os::unix::fs::PermissionsExt;
    let case = Case::new(&[("log", STRACE.as_bytes())]);
    case.run(&Options::default()).unwrap();
    let mode = |p: PathBuf| fs::metadata(p).unwrap().permissions().mode() & 0o777;
    let usual = mode(case.input().join("log"));
    assert_eq!(mode(case.trace().join("manifest.json")), usual);
    assert_eq!(mode(case.trace().join("syscall/part-00000.parquet")), usual);
}

#[test]
fn garbage_in_the_middle_is_kept_as_rejects() {
    let text = format!("{STRACE}\u{1}\u{2}garbage\n{STRACE}");
    let case = Case::new(&[("log", text.as_bytes())]);
    let (report, manifest) = case.run(&Options::default()).unwrap();
    assert_eq!((report.rejected(), manifest.count("syscall"), manifest.count("reject")), (1, 4, 1));
    assert_eq!(manifest.sources[0].rejects["strace-not-a-call"], 1);
}

#[test]
fn strict_names_the_place() {
    let case = Case::new(&[("log", format!("{STRACE}garbage\n{STRACE}").as_bytes())]);
    let error = case.run(&Options { strict: true, ..Options::default() }).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("log:3:1: strace-not-a-call: expected a call"), "{text}");
    assert!(!case.trace().exists());
}

#[test]
fn what_could_be_read_of_a_truncated_input_is_kept() {
    // Not compressible, so that the cut falls into the text and not into its last block.
    let lines: String = (0..60_000u64)
        .map(|i| format!("7 1700000000.1 lseek(3, {}, SEEK_SET) = 0\n", i.wrapping_mul(i) * 7919))
        .collect();
    let packed = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    let case = Case::new(&[("log.zst", &packed[..packed.len() / 2])]);
    let (report, manifest) = case.run(&Options::default()).unwrap();
    assert!(report.inputs[0].cut.is_some());
    let rows = manifest.count("syscall");
    assert!((1000..60_000).contains(&rows), "{rows}");
    assert!(
        manifest.sources[0].notes.iter().any(|n| n.starts_with("reading ended early")),
        "{:?}",
        manifest.sources[0].notes
    );
}

#[test]
fn stopping_leaves_nothing_under_the_final_name() {
    let case = Case::new(&[("log", STRACE.as_bytes())]);
    let options = Options::default();
    let plan = plan(&[case.input()], &options).unwrap();
    let mut writer = TraceWriter::create(&case.trace(), WriterOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut progress = |p: kreplay_parsers::ingest::Progress<'_>| {
        seen.push((p.index, p.total_bytes));
        stop.store(true, Ordering::Relaxed);
    };
    let result = ingest(plan, &mut writer, &options, &mut Watch { stop: &stop, progress: &mut progress });
    assert!(matches!(result.unwrap_err(), IngestError::Interrupted));
    drop(writer);
    assert!(!case.trace().exists());
    assert_eq!(seen, [(0, STRACE.len() as u64)]);
}

#[test]
fn the_thread_of_a_ff_file_is_in_its_name() {
    let case = Case::new(&[("log.4196", b"12:00:00.1 sync() = 0\n12:00:00.2 fsync(3) = 0\n")]);
    let (_, manifest) = case.run(&Options::default()).unwrap();
    assert_eq!(manifest.sources[0].options["tid"], "4196");
    let trace = TraceDir::open(case.trace()).unwrap();
    let mut calls = trace.syscalls().unwrap();
    assert_eq!(calls.next().unwrap().unwrap().tid, 4196);
}

/// Times of the system calls of a trace, with their threads, in the order of time.
fn calls_of(case: &Case) -> Vec<(i64, i64)> {
    let trace = TraceDir::open(case.trace()).unwrap();
    let mut rows = trace.syscalls().unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        all.push((row.time_ns / 1_000_000, row.tid));
    }
    all
}

#[test]
fn threads_that_begin_after_midnight_are_a_day_later() {
    // By order of the ids; by the call that made it, also where that has a higher id (they wrap).
    let cases: [&[(&str, &[u8])]; 2] = [
        &[
            ("log.7", b"23:59:59.500000 sync() = 0\n00:00:01.000000 sync() = 0\n"),
            ("log.8", b"00:00:00.500000 sync() = 0\n"),
        ],
        &[
            ("log.8", b"00:00:00.500000 sync() = 0\n"),
            ("log.9", b"23:59:59.500000 fork() = 5\n00:00:00.400000 clone(child_stack=NULL, flags=SIGCHLD) = 8\n"),
        ],
    ];
    for files in cases {
        let case = Case::new(files);
        let (_, manifest) = case.run(&Options::default()).unwrap();
        assert!(
            manifest.warnings.iter().any(|w| w.starts_with("1 logs of single threads begin after midnight")),
            "{:?}",
            manifest.warnings
        );
        let calls = calls_of(&case);
        assert_eq!((calls[0].0, calls.iter().find(|c| c.1 == 8)), (0, Some(&(1000, 8))), "{calls:?}");
        assert!(calls.last().is_some_and(|c| c.0 < 2000), "{calls:?}");
    }
}

#[test]
fn an_idle_cpu_s_empty_file_is_part_of_the_set() {
    let mut record = vec![0u8; 48];
    record[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    record[4..8].copy_from_slice(&1u32.to_le_bytes());
    record[16..24].copy_from_slice(&64u64.to_le_bytes());
    record[24..28].copy_from_slice(&4096u32.to_le_bytes());
    record[28..32].copy_from_slice(&(0x0011_0001u32).to_le_bytes());
    let case = Case::new(&[("x.blktrace.0", &record), ("x.blktrace.1", b""), ("y.blktrace.0", b"")]);
    let (report, manifest) = case.run(&Options::default()).unwrap();
    assert_eq!((manifest.count("block"), manifest.sources.len()), (1, 1));
    assert_eq!(skipped(&report), [("y.blktrace.0".to_owned(), "the file is empty")]);
    for name in ["x", "x.blktrace", "x.blktrace.0", "x.blktrace.1", "x.blktrace.*"] {
        let plan = plan(&[case.input().join(name)], &Options::default()).unwrap();
        let parts: Vec<_> = plan.inputs.iter().map(|i| i.parts.len()).collect();
        assert_eq!(parts, [2], "{name}");
    }
    let error = plan(&[case.input().join("y")], &Options::default()).err().unwrap();
    assert!(error.to_string().contains("the file is empty"), "{error}");
}

#[test]
fn a_file_that_is_damaged_at_its_beginning_says_so() {
    let mut packed = zstd::encode_all(STRACE.repeat(200).as_bytes(), 1).unwrap();
    let end = packed.len() - 20;
    packed.truncate(end);
    packed[12] ^= 0xff;
    let case = Case::new(&[("log.zst", &packed)]);
    let error = plan(&[case.input().join("log.zst")], &Options::default()).err().unwrap();
    assert!(matches!(error, IngestError::Store(_)), "{error}");
}
