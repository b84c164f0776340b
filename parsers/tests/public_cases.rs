//! What went wrong for other readers of such logs, by the reports they got: each case in a small log of the same shape.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use kreplay_parsers::format::Head;
use kreplay_parsers::ingest::{IngestError, Options, Report, Watch, ingest, plan};
use kreplay_parsers::rows::Rows;
use kreplay_parsers::{DetectError, Diagnostics, ParseOptions, by_id, detect, parse_all};
use kreplay_traces::store::{Manifest, TraceDir, TraceWriter, WriterOptions};

fn parse_with(format: &str, options: &ParseOptions, text: &str) -> (Rows, Diagnostics) {
    let parsed = parse_all(by_id(format).unwrap(), options, text.as_bytes());
    assert!(parsed.1.adds_up(), "{:?}", parsed.1);
    parsed
}

fn parse(format: &str, text: &str) -> (Rows, Diagnostics) {
    parse_with(format, &ParseOptions::default(), text)
}

fn detected(text: &str) -> Result<&'static str, DetectError> {
    detect(Head { bytes: text.as_bytes(), complete: true }).map(|f| f.id())
}

fn warned(diag: &Diagnostics, code: &str) -> bool {
    diag.warnings().iter().any(|w| w.code == code)
}

/// Ingest files of a directory, named one by one or as patterns; empty: the directory itself.
fn run(files: &[(&str, Vec<u8>)], named: &[&str], options: &Options) -> Result<(Report, Manifest, Rows), IngestError> {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    fs::create_dir(&logs).unwrap();
    for (name, bytes) in files {
        fs::write(logs.join(name), bytes).unwrap();
    }
    let paths: Vec<PathBuf> =
        if named.is_empty() { vec![logs.clone()] } else { named.iter().map(|n| logs.join(n)).collect() };
    let plan = plan(&paths, options)?;
    let mut writer = TraceWriter::create(&dir.path().join("trace"), WriterOptions::default())?;
    let stop = AtomicBool::new(false);
    let report = ingest(plan, &mut writer, options, &mut Watch { stop: &stop, progress: &mut |_| {} })?;
    let (path, manifest) = writer.finish()?;
    let mut rows = Rows::default();
    let trace = TraceDir::open(path)?;
    trace.blocks()?.for_each(|r| kreplay_traces::event::EventSink::block(&mut rows, &r))?;
    trace.syscalls()?.for_each(|r| kreplay_traces::event::EventSink::syscall(&mut rows, &r))?;
    Ok((report, manifest, rows))
}

/// One binary record: a queued read of 4 KiB.
fn record(version: u8, cpu: u32, sequence: u32, time: u64) -> Vec<u8> {
    let mut v = vec![version, 0x74, 0x61, 0x65];
    v.extend(sequence.to_le_bytes());
    v.extend(time.to_le_bytes());
    v.extend(64u64.to_le_bytes());
    v.extend(4096u32.to_le_bytes());
    v.extend((1u32 | 1 << 16).to_le_bytes());
    v.extend(7u32.to_le_bytes());
    v.extend((8u32 << 20).to_le_bytes());
    v.extend(cpu.to_le_bytes());
    v.extend([0; 4]);
    v
}

#[test]
fn strace_on_a_terminal_with_messages_and_parentheses_everywhere() {
    let text = "strace: Process 75 attached\n\
        [pid    75] 12:00:01 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 9\n\
        75 12:00:02 write(1, \") = 3 (\", 7) = 7\n";
    assert_eq!(detected(text), Ok("strace"));
    let (rows, diag) = parse("strace", text);
    let got: Vec<_> = rows.syscalls.iter().map(|s| (s.tid, s.call.as_str(), s.ret)).collect();
    assert_eq!(got, [(75, "wait4", Some(9)), (75, "write", Some(7))]);
    assert_eq!((diag.note_count("strace-message"), diag.rejected()), (1, 0));
}

#[test]
fn clocks_without_a_date_pass_midnight() {
    let text = "7 23:59:59 close(3) = 0\n7 00:00:01 close(4) = 0\n";
    let (rows, diag) = parse("strace", text);
    assert_eq!(rows.syscalls[1].time_ns - rows.syscalls[0].time_ns, 2_000_000_000);
    assert!(warned(&diag, "clock-midnight"));
    let dated = ParseOptions { midnight_ns: Some(1_699_920_000_000_000_000), ..ParseOptions::default() };
    let (rows, _) = parse_with("strace", &dated, text);
    assert_eq!(rows.syscalls[1].time_ns, 1_700_006_401_000_000_000);
}

#[test]
fn halves_of_calls_are_joined_numbered_or_not() {
    let text = "7 1700000000.1 access(\"/etc/ld.so.nohwcap\", F_OK <unfinished ...>\n\
        8 1700000000.2 select(4, [3], NULL, NULL, NULL <unfinished #1 ...>\n\
        7 1700000000.3 <... access resumed>) = -1 ENOENT (No such file or directory)\n\
        8 1700000000.4 <... select resumed #1>) = 1 (in [3])\n";
    let (rows, diag) = parse("strace", text);
    let got: Vec<_> = rows.syscalls.iter().map(|s| (s.call.as_str(), s.ret, s.errno.as_deref())).collect();
    assert_eq!(got, [("access", Some(-1), Some("ENOENT")), ("select", Some(1), None)]);
    assert_eq!(rows.syscalls[0].path.as_deref(), Some("/etc/ld.so.nohwcap"));
    assert_eq!((diag.note_count("resumed"), diag.rejected()), (2, 0));
}

#[test]
fn a_first_line_that_resumes_and_results_that_nobody_saw() {
    let text = "1001 1700000000.5 <... clone resumed>) = 0\n\
        3619 1700000000.6 execve(\"/bin/x\", [\"bin\", \"args\", ...], 0x7f /* 37 vars */) = 0\n\
        3619 1700000000.7 futex(0x7f, FUTEX_WAIT, 1, NULL <unfinished ...>\n\
        3619 1700000000.8 <... futex resumed> )             = ? <unavailable>\n";
    let (rows, diag) = parse("strace", text);
    assert_eq!((rows.syscalls.len(), diag.rejected()), (3, 0));
    assert!(warned(&diag, "strace-orphan-resumed"));
    let last = &rows.syscalls[2];
    assert_eq!((last.call.as_str(), last.ret, last.errno.as_deref()), ("futex", None, None));
}

#[test]
fn comments_and_paths_are_atoms() {
    let text = "13:08:18.5 fstat(3</etc/ld.so.cache>, {st_dev=makedev(0xfd, 0), st_size=77, \
        st_mtime=1566306498 /* 2019-08-20T13:08:18+0100 */, ...}) = 0 <0.000032>\n\
        13:08:18.6 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3</etc/passwd>\n";
    assert_eq!(detected(text), Ok("strace"));
    let (rows, _) = parse("strace", text);
    let first = &rows.syscalls[0];
    assert_eq!(
        (first.path.as_deref(), first.len_bytes, first.dur_ns),
        (Some("/etc/ld.so.cache"), Some(77), Some(32_000))
    );
    assert_eq!(rows.syscalls[1].path2.as_deref(), Some("/etc/passwd"));
}

#[test]
fn look_alikes_are_refused_by_name() {
    let cases = [
        ("[ 23: 23] cmake X unlink(0x7f234e5bd500 ) = 0 (0x0) errno=2 (no such file) (667ns)\n", "gVisor"),
        ("Fri Apr 21 04:50:39 2017.564717 @8050a46[1155] read(6, 0xbf998f5b, 1) = 1\n", "SystemTap"),
        (
            "TIME(ms)     MAJOR MINOR   COMM            PID      LAT(ms)\n611      202   0     bash   2178      19\n",
            "bpftrace",
        ),
        (" r b w     avm    fre   flt  re  pi  po    fr  sr ad0   in   sy   cs us sy id\n", "BSD"),
        ("nr_free_pages 12\nnr_zone_inactive_anon 5\n", "/proc/vmstat"),
    ];
    for (text, name) in cases {
        let error = detected(text).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

const VMSTAT: &str = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";

#[test]
fn first_rows_are_averages_since_boot_after_each_restart() {
    let row = " 1  0      0   1000     10    100    0    0     5     6    7    8  1  2 97  0  0\n";
    let page = row.repeat(21);
    let text = format!(
        "Thu Feb 11 10:00:01 IST 2016\n{VMSTAT}{row}{row}\nThu Feb 11 10:01:01 IST 2016\n{VMSTAT}{page}{VMSTAT}{row}"
    );
    let (rows, diag) = parse("vmstat", &text);
    let marks: Vec<_> = rows.vmstats.iter().map(|r| (r.run, r.since_boot)).collect();
    assert_eq!(marks[..4], [(0, true), (0, false), (1, true), (1, false)]);
    assert_eq!((marks.len(), marks[23]), (24, (1, false)), "a header at the usual distance is a repeated one");
    assert_eq!(diag.rejected(), 0);
}

#[test]
fn columns_are_known_by_name_in_any_order_and_width() {
    let active = " r  b   swpd   free  inact active   si   so    bi    bo   in   cs us sy id wa\n";
    let row = " 1  0      0   1000     10    100    0    0     5     6    7    8  1  2 97  0\n";
    let swapped =
        " r b w swpd free buff cache si so bi bo in cs us sy id\n1441 0 0 0 12615398208 1 2 0 0 0 0 0 0 1 1 98\n";
    let plain = VMSTAT.replace(" st", "");
    let (rows, diag) = parse("vmstat", &format!("{active}{row}{plain}{row}{swapped}"));
    let r = &rows.vmstats;
    assert_eq!((r[0].inact_kib, r[0].active_kib, r[0].buff_kib), (Some(10), Some(100), None));
    assert_eq!((r[1].inact_kib, r[1].buff_kib, r[1].cache_kib), (None, Some(10), Some(100)));
    assert_eq!((r[2].r, r[2].w, r[2].free_kib), (Some(1441), Some(0), Some(12_615_398_208)));
    assert_eq!(diag.rejected(), 0);
    let mib = ParseOptions { memory_unit_bytes: Some(1 << 20), ..ParseOptions::default() };
    assert_eq!(parse_with("vmstat", &mib, &format!("{plain}{row}")).0.vmstats[0].free_kib, Some(1000 * 1024));
}

#[test]
fn a_vmstat_without_rows_is_an_error_unless_asked_for() {
    let text = format!("{VMSTAT}vmstat: Bad pgpgin in /proc/vmstat:\n");
    let files = [("log", text.into_bytes())];
    let error = run(&files, &["log"], &Options::default()).unwrap_err();
    assert!(matches!(error, IngestError::NoEvents { .. }), "{error}");
    assert!(error.to_string().contains("Bad pgpgin"), "{error}");
    let (report, manifest, _) = run(&files, &["log"], &Options { allow_empty: true, ..Options::default() }).unwrap();
    assert_eq!((report.rejected(), manifest.count("vmstat")), (0, 0));
}

#[test]
fn locales_group_digits_in_summaries() {
    let text = "  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\nCPU0 (8,0):\n Reads Queued:     143,304,  1,146MiB\t Writes Queued:  7.000,  28\u{a0}KiB\n \
        Reads Completed: 12'345, 5KiB\n\nThroughput (R/W): 1,234KiB/s / 0KiB/s\nEvents (8,0): 1\u{202f}206 entries\n\
        Skips: 0 forward (0 -   0,0%)\n";
    let (_, diag) = parse("blkparse", text);
    assert_eq!((diag.events(), diag.rejected()), (1, 0), "{:?}", diag.rejects());
}

#[test]
fn times_and_latencies_below_zero_are_never_huge() {
    let text = "  8,0 1 1 0.000100000 9 Q R 64 + 8 [x]\n  8,0 0 1 1266874889.709450585 9 Q R 72 + 8 [x]\n\
        \x20 8,0 1 2 0.000200000 9 C W 992 + 24 (18446744071823058088) [0]\n";
    let (rows, diag) = parse("blkparse", text);
    let times: Vec<_> = rows.blocks.iter().map(|b| b.time_ns).collect();
    assert_eq!(times, [100_000, -101_031, 200_000]);
    assert!(warned(&diag, "time-wrapped"));
    assert_eq!(rows.blocks[2].error, Some(0));
    assert!(warned(&diag, "negative-latency"));

    let text = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.001 x 1 sda W 8 512 -0.5\n";
    let (rows, diag) = parse("biosnoop", text);
    assert_eq!((rows.blocks.len(), warned(&diag, "negative-latency")), (1, true));
    let (rows, diag) = parse("msr", "128166372003061629,hm,0,Write,7014912,4096,-26\n");
    assert_eq!((rows.blocks.len(), warned(&diag, "negative-latency")), (1, true));
}

#[test]
fn a_binary_trace_is_found_by_file_base_name_pattern_and_directory() {
    let files = [
        ("disk.blktrace.0", [record(7, 0, 1, 10), record(7, 0, 2, 30)].concat()),
        ("disk.blktrace.1", [record(7, 1, 1, 20), record(7, 1, 2, 40)].concat()),
    ];
    for named in [
        &["disk.blktrace.0"][..],
        &["disk.blktrace.1", "disk.blktrace.0"],
        &["disk"],
        &["disk.blktrace"],
        &["disk.blktrace.*"],
        &[],
    ] {
        let (report, manifest, rows) = run(&files, named, &Options::default()).unwrap();
        let order: Vec<_> = rows.blocks.iter().map(|b| b.cpu.unwrap()).collect();
        assert_eq!((report.inputs.len(), order), (1, vec![0, 1, 0, 1]), "{named:?}");
        assert_eq!(manifest.sources[0].lines, 4);
    }
    let single = Options { single: true, ..Options::default() };
    assert_eq!(run(&files, &["disk.blktrace.0"], &single).unwrap().2.blocks.len(), 2);
    let error = run(&files, &["nothing.*"], &Options::default()).unwrap_err();
    assert!(matches!(error, IngestError::NoMatch { .. }), "{error}");
}

#[test]
fn what_is_no_blktrace_is_said_so() {
    let options = Options { format: Some("blktrace".into()), ..Options::default() };
    let error = run(&[("log", b"hello, this is not a trace\n".to_vec())], &["log"], &options).unwrap_err();
    assert!(error.to_string().contains("blktrace-bad-magic"), "{error}");
}

#[test]
fn damaged_records_are_bounded() {
    // A payload longer than the file, and one that is missing.
    let mut long = record(7, 0, 1, 10);
    long[46] = 0xff;
    long[47] = 0xff;
    let (rows, diag) = parse_all(by_id("blktrace").unwrap(), &ParseOptions::default(), &long);
    assert_eq!((rows.blocks.len(), diag.rejects()[0].reason.code), (0, "blktrace-truncated"));
    let mut remap = record(7, 0, 1, 10);
    remap[28] = 15;
    let (rows, _) = parse_all(by_id("blktrace").unwrap(), &ParseOptions::default(), &remap);
    assert_eq!((rows.blocks[0].action.as_str(), rows.blocks[0].from_dev), ("A", None));
}

#[test]
fn fio_logs_with_odd_times_and_files() {
    let (rows, diag) = parse("fio-iolog", "fio version 3 iolog\n1 f open\n1000007 f read 0 512\n1 f read 512 512\n");
    assert_eq!(rows.blocks.len(), 2);
    let back = diag.warnings().iter().find(|w| w.code == "time-backwards").unwrap();
    assert_eq!(back.first_line, Some(4));
    let (_, diag) = parse("fio-iolog", "fio version 3 iolog\n1 /dev/sda read 100 512\n");
    assert!(warned(&diag, "fio-not-opened") && warned(&diag, "not-sector-aligned"));
    let (rows, _) = parse("fio-iolog", "fio version 3 iolog\n1 f open\n2 f trim 0 4096\n");
    assert_eq!(rows.blocks[0].rwbs, "D", "a discard is no write");
}

#[test]
fn a_unit_that_cannot_be_right_is_asked_about() {
    // Nanoseconds where microseconds belong.
    let lines: String = (0..200).map(|i| format!("{} f read {} 512\n", i * 500_000_000u64, i * 512)).collect();
    let (_, diag) = parse("fio-iolog", &format!("fio version 3 iolog\n0 f add\n0 f open\n{lines}"));
    let warning = diag.warnings().iter().find(|w| w.code == "unit-suspect").unwrap();
    assert!(warning.text.contains("27.6 h for 200 requests"), "{}", warning.text);
}

#[test]
fn trace_versions_do_not_mix() {
    let bytes = [record(7, 0, 1, 10), record(8, 0, 2, 20), vec![0; 16]].concat();
    let (rows, diag) = parse_all(by_id("blktrace").unwrap(), &ParseOptions::default(), &bytes);
    assert_eq!(rows.blocks.len(), 1);
    let reject = &diag.rejects()[0];
    assert_eq!((reject.reason.code, reject.first_byte), ("blktrace-mixed-versions", 48));
}

#[test]
fn a_zoned_device_without_zone_operations_is_pointed_out() {
    let run_json = |zoned: &str| {
        format!(r#"{{"format": "capture-1", "queue": {{"zoned": "{zoned}"}}, "start_monotonic": 0.0}}"#).into_bytes()
    };
    let block = b"  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\n".to_vec();
    for (zoned, expected) in [("host-managed", true), ("none", false)] {
        let files = [("run.json", run_json(zoned)), ("blktrace.txt", block.clone())];
        let (_, manifest, _) = run(&files, &[], &Options::default()).unwrap();
        assert_eq!(manifest.warnings.iter().any(|w| w.contains("may be missing")), expected, "{:?}", manifest.warnings);
    }
}

#[test]
fn the_cpu_is_that_of_the_record() {
    let files = [("odd.blktrace.0", [record(7, 1, 1, 10), record(7, 1, 2, 20)].concat())];
    let (report, _, rows) = run(&files, &["odd.blktrace.0"], &Options::default()).unwrap();
    assert_eq!((report.rejected(), rows.blocks[0].cpu), (0, Some(1)));
}

#[test]
fn process_names_hold_anything() {
    let cases = [
        ("my app [x]-9 [002] d...  1.5: block_plug: [my app [x]]", Some(9), Some(2)),
        ("<...>-1297  [007] 1.5: block_plug: [x]", Some(1297), Some(7)),
        ("a-b-c-12 (  99) [000] ..... 1.5: block_plug: [x]", Some(12), Some(0)),
        (":1234 1234 [003] 1.500000: block:block_plug: [x]", Some(1234), Some(3)),
    ];
    for (line, pid, cpu) in cases {
        let (rows, diag) = parse("ftrace", &format!("{line}\n"));
        assert_eq!(rows.blocks.first().map(|b| (b.pid, b.cpu)), Some((pid, cpu)), "{line} {:?}", diag.rejects());
    }
}

#[test]
fn kernels_print_events_in_several_shapes() {
    let text = "dd-1 [000] 1.1: block_rq_issue: 8,0 R 4096 () 64 + 8 none,0,0 [dd]\n\
        dd-1 [000] 1.2: block_rq_issue: 8,0 R 0 () 64 + 8 [dd]\n\
        dd-1 [000] 1.3: block_rq_complete: 8,0 R () 64 + 8 be,0,4 [0]\n\
        dd-1 [000] 1.4: block_rq_error: 8,0 R () 64 + 8 [-5]\n\
        dd-1 [000] 1.5: block_rq_complete: 8,0 R () 64 + 8 [-5]\n";
    let (rows, diag) = parse("ftrace", text);
    let got: Vec<_> = rows.blocks.iter().map(|b| (b.action.as_str(), b.len_bytes, b.error)).collect();
    let d = ("D", Some(4096), None);
    assert_eq!(got, [d, d, ("C", Some(4096), Some(0)), ("C", Some(4096), Some(-5))]);
    assert_eq!((diag.note_count("accounting-event"), diag.rejected()), (1, 0));
}

#[test]
fn ring_buffers_that_wrapped_begin_at_different_times() {
    let text = "# entries-in-buffer/entries-written: 2/9   #P:2\n\
        dd-1 [000] 1.500000: block_plug: [dd]\ndd-1 [001] 2.250000: block_plug: [dd]\n";
    let (_, diag) = parse("ftrace", text);
    let warning = diag.warnings().iter().find(|w| w.code == "buffer-overwritten").unwrap();
    assert!(warning.text.contains("CPU 1 begins last"), "{}", warning.text);
}

#[test]
fn a_clock_that_jumps_by_decades_is_pointed_out_with_its_line() {
    let text = b"7 1000000000.1 close(3) = 0\n7 1700000000.2 close(3) = 0\n".to_vec();
    let (report, manifest, rows) = run(&[("log", text)], &["log"], &Options::default()).unwrap();
    let jump =
        report.inputs[0].diagnostics.as_ref().unwrap().warnings().iter().find(|w| w.code == "clock-jump").unwrap();
    assert_eq!(jump.first_line, Some(2));
    assert!(jump.text.contains("forward by 8101 days"), "{}", jump.text);
    assert_eq!((manifest.sources[0].notes.len(), rows.syscalls[1].time_ns), (1, 700_000_000_100_000_000));
}

#[test]
fn threads_of_a_set_share_their_time_of_day() {
    let files = [("log.7", b"12:00:00.5 close(3) = 0\n".to_vec()), ("log.8", b"12:00:01.5 close(3) = 0\n".to_vec())];
    let (_, manifest, rows) = run(&files, &[], &Options::default()).unwrap();
    let got: Vec<_> = rows.syscalls.iter().map(|s| (s.tid, s.time_ns)).collect();
    assert_eq!(got, [(7, 0), (8, 1_000_000_000)]);
    assert_eq!(manifest.warnings, [] as [String; 0]);
    let files = [("log.7", b"close(3) = 0\n".to_vec()), ("log.8", b"close(3) = 0\n".to_vec())];
    let (_, manifest, _) = run(&files, &[], &Options::default()).unwrap();
    assert!(manifest.warnings[0].contains("no absolute clock"), "{:?}", manifest.warnings);
}

#[test]
fn logs_in_saved_mails_are_read_whatever_their_format() {
    let mail = "Subject: trace\nContent-Type: text/plain; charset=\"utf-8\"\n\
        Content-Transfer-Encoding: quoted-printable\n\nHere it is:\n";
    let strace = "> 4204 1700000000.1 openat(AT_FDCWD, \"/srv/data/some/long/path/that/wraps/fil=\ne.txt\", \
        O_RDONLY) =3D 3 <0.000010>\n> 4204 1700000000.2 read(3, \"a=3D3D\"..., 4096) =3D 4096\n";
    let blkparse = "  8,0    3        1     0.000000000  1000  Q   R 123 + 8 [a]\n\
        \x20 8,0    3        2     0.000001000  1000  A   R 123 + 8 <- (8,=\n1) 55\n";
    let vmstat = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id =\nwa st\n\
        \x20 1  0      0 123456   1234  12345    0    0     1     2    3    4  5  6=\n 89  0  0=20\n";
    let ftrace = " a-1 [001] ..... 1234.567893: block_split: 8,0 W 123 / 456 [a=3D]\n";
    for (format, log, events) in
        [("strace", strace, 2), ("blkparse", blkparse, 2), ("vmstat", vmstat, 1), ("ftrace", ftrace, 1)]
    {
        assert_eq!(detected(log), Ok(format));
        let (_, diag) = parse(format, log);
        assert_eq!((diag.events(), diag.rejected()), (events, 0), "{format}: {:?}", diag.rejects());
        assert!(warned(&diag, "quoted-printable"), "{format}");
        assert_eq!(diag.lines(), log.lines().count() as u64, "{format}");
        let (_, diag) = parse(format, &format!("{mail}{log}"));
        assert_eq!(diag.events(), events, "{format} below a header: {:?}", diag.rejects());
        assert_eq!(diag.options().get("transfer-encoding").map(String::as_str), Some("quoted-printable"));
    }
    let (rows, _) = parse("strace", strace);
    assert_eq!(rows.syscalls[0].path.as_deref(), Some("/srv/data/some/long/path/that/wraps/file.txt"));
    let (rows, _) = parse("blkparse", blkparse);
    assert_eq!((rows.blocks[1].from_dev, rows.blocks[1].from_sector_512), (Some(8 << 20 | 1), Some(55)));
    // The same signs in a log that is not encoded are the log's own.
    let own = "4204 1700000000.1 openat(AT_FDCWD, \"a=3D\", O_RDONLY) = 4\n4204 1700000000.2 chdir(\"b=20\") = 0\n";
    let (rows, diag) = parse("strace", own);
    assert_eq!((rows.syscalls[0].path.as_deref(), diag.warnings().len()), (Some("a=3D"), 0));
    assert_eq!(rows.syscalls[1].path.as_deref(), Some("b=20"));
}
