//! Memory stays small however much is read.
//!
//! The large runs are ignored by default: `cargo test --workspace --test memory -- --ignored --nocapture`, with
//! `KREPLAY_STREAM_GB` for another size than 5, and `KREPLAY_DISTINCT` for another number of different values than 2 million.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use kreplay_parsers::ingest::{Inspected, Options, Plan, Watch, ingest, inspect, plan};
use kreplay_traces::store::{Manifest, TraceWriter, WriterOptions};

/// The peak is that of the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Ingest what `write` puts into a pipe.
fn through_a_pipe(write: impl FnOnce(&mut dyn Write) + Send + 'static) -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    read_a_pipe(None, write, |plan, options, watch| {
        let mut out = TraceWriter::create(&dir.path().join("trace"), WriterOptions::default()).unwrap();
        ingest(plan, &mut out, options, watch).unwrap();
        out.finish().unwrap().1
    })
}

/// Read what `write` puts into a pipe in some way.
fn read_a_pipe<T>(
    format: Option<&str>,
    write: impl FnOnce(&mut dyn Write) + Send + 'static,
    read: impl FnOnce(Plan, &Options, &mut Watch<'_>) -> T,
) -> T {
    let (reader, writer) = std::io::pipe().unwrap();
    let thread = std::thread::spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 16, writer);
        write(&mut out);
        out.flush().unwrap();
    });
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let options = Options { format: format.map(str::to_owned), ..Options::default() };
    let plan = plan(&[path], &options).unwrap();
    let stop = AtomicBool::new(false);
    let done = read(plan, &options, &mut Watch { stop: &stop, progress: &mut |_| {} });
    thread.join().unwrap();
    done
}

/// Lines of four threads whose calls overlap; gives how many bytes were written.
fn strace_lines(out: &mut dyn Write, bytes: u64) -> u64 {
    let (mut written, mut i) = (0, 0u64);
    while written < bytes {
        let (tid, secs, micros) = (4000 + i % 4, 1_700_000_000 + i / 20_000, i % 20_000 * 50);
        let line = match i % 8 {
            0 => {
                format!("{tid} {secs}.{micros:06} futex(0x7f12ab3c9d10, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n")
            }
            4 => format!("{tid} {secs}.{micros:06} <... futex resumed>) = 0 <0.000200>\n"),
            _ => format!(
                "{tid} {secs}.{micros:06} pread64({}</srv/data/f{:04}.dat>, \"abc\\n\"..., 4096, {}) = 4096 <0.000080>\n",
                3 + i % 60,
                i * 7919 % 5000,
                i * 4096
            ),
        };
        out.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        i += 1;
    }
    written
}

/// Peak of resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn a_pipe_is_read_from_its_first_byte() {
    let manifest = through_a_pipe(|out| {
        strace_lines(out, 300_000);
    });
    let source = &manifest.sources[0];
    assert_eq!((source.rejects.len(), source.text_bytes.unwrap() >= 300_000), (0, true));
    assert_eq!(source.lines, source.events["syscall"] + source.non_events["resumed"]);
}

/// A log in which every line has a value of its own.
struct Many {
    format: &'static str,
    what: &'static str,
    first: &'static str,
    line: fn(u64) -> Vec<u8>,
    /// Code of the warning that the values after a limit stand together, where the parser has such a limit.
    warning: Option<&'static str>,
}

/// A version 7 record of blktrace, little-endian.
fn blktrace_record(i: u64, action: u32, bytes: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = 0x6561_7407u32.to_le_bytes().to_vec();
    record.extend((i as u32).to_le_bytes());
    record.extend((i * 1000).to_le_bytes());
    record.extend((i * 8).to_le_bytes());
    for word in [bytes, action, i as u32 + 1, 8 << 20, 0] {
        record.extend(word.to_le_bytes());
    }
    record.extend(0u16.to_le_bytes());
    record.extend((payload.len() as u16).to_le_bytes());
    record.extend(payload);
    record
}

static MANY: &[Many] = &[
    Many {
        format: "msr",
        what: "hosts",
        first: "",
        line: |i| format!("{},host-number-{i},0,Read,4096,4096,26\n", 128_166_372_003_061_629 + i).into(),
        warning: Some("msr-many-hosts"),
    },
    Many {
        format: "biosnoop",
        what: "disks, processes",
        first: "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
        line: |i| format!("{}.{:06} proc{i} {i} disk-number-{i} R 8 4096 0.25\n", i / 1000, i % 1000).into(),
        warning: Some("biosnoop-many-disks"),
    },
    Many {
        format: "blktrace",
        what: "processes with names",
        first: "",
        line: |i| {
            let name = blktrace_record(i, 1 << 26, 0, format!("proc-{i}\0").as_bytes());
            [name, blktrace_record(i, 1 << 16 | 1, 4096, b"")].concat()
        },
        warning: Some("blktrace-many-processes"),
    },
    Many {
        format: "fio-iolog",
        what: "files",
        first: "fio version 3 iolog\n",
        line: |i| format!("{i} /srv/data/file-number-{i} read 0 4096\n").into(),
        warning: Some("fio-many-files"),
    },
    Many {
        format: "blkparse",
        what: "devices, processes",
        first: "",
        line: |i| format!("{},{} 1 {i} {}.{:09} {i} Q R 64 + 8 [p{i}]\n", i >> 8, i & 255, i / 1000, i % 1000).into(),
        warning: None,
    },
    Many {
        format: "ftrace",
        what: "CPUs, devices, processes",
        first: "",
        line: |i| {
            let event = format!("block_bio_queue: {},{} R 64 + 8 [p{i}]", i >> 8, i & 255);
            format!("p{i}-{i} [{i:03}] d..1. {}.{:06}: {event}\n", i / 1000, i % 1000).into()
        },
        warning: None,
    },
    Many {
        format: "strace",
        what: "threads, calls, paths",
        first: "",
        line: |i| format!("{i} 1700000000.000001 call_{i}(\"/srv/data/file-number-{i}\") = 0\n").into(),
        warning: None,
    },
    Many {
        format: "strace",
        what: "threads inside of a call",
        first: "",
        line: |i| format!("{i} 1700000000.000001 read(3</srv/data/a-file-of-some-length>,  <unfinished ...>\n").into(),
        warning: Some("strace-many-threads"),
    },
    Many {
        format: "strace-summary",
        what: "calls",
        first: "% time     seconds  usecs/call     calls    errors syscall\n",
        line: |i| format!("  0.01    0.000001           1         1           call{i}\n").into(),
        warning: None,
    },
    Many {
        format: "vmstat-totals",
        what: "disks",
        first: "       total merged sectors      ms  total merged sectors      ms    cur    sec\n",
        line: |i| format!("disk{i} 1 2 3 4 5 6 7 8 9 10\n").into(),
        warning: None,
    },
    Many {
        format: "alibaba",
        what: "volumes",
        first: "",
        line: |i| format!("{i},R,4096,4096,{}\n", 1_577_808_000_000_607 + i).into(),
        warning: None,
    },
    Many {
        format: "tencent",
        what: "volumes",
        first: "",
        line: |i| format!("{},8,8,0,{i}\n", 1_538_323_200 + i / 1000).into(),
        warning: None,
    },
    Many {
        format: "layout",
        what: "files",
        first: "",
        line: |i| format!("# ./file-number-{i} ino {i} size 4096\n 0: 0..7: 8..15: 8:\n").into(),
        warning: None,
    },
];

impl Many {
    fn write(&'static self, values: u64) -> impl FnOnce(&mut dyn Write) + Send + 'static {
        move |out| {
            out.write_all(self.first.as_bytes()).unwrap();
            (0..values).for_each(|i| out.write_all(&(self.line)(i)).unwrap());
        }
    }
}

/// Forget the peak so far.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
#[ignore = "reads some gigabytes"]
fn millions_of_different_values_through_a_pipe_stay_below_200_mb() {
    let _alone = ALONE.lock();
    let values: u64 = std::env::var("KREPLAY_DISTINCT").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    for many in MANY {
        let dir = tempfile::tempdir().unwrap();
        reset_peak();
        let manifest = read_a_pipe(Some(many.format), many.write(values), |plan, options, watch| {
            let mut out = TraceWriter::create(&dir.path().join("trace"), WriterOptions::default()).unwrap();
            ingest(plan, &mut out, options, watch).unwrap();
            out.finish().unwrap().1
        });
        let (source, stored) = (&manifest.sources[0], peak_kib());
        reset_peak();
        let seen: Vec<Inspected> = read_a_pipe(Some(many.format), many.write(values), |plan, options, watch| {
            inspect(plan, options, watch).unwrap()
        });
        let inspected = peak_kib();
        let (format, what) = (many.format, many.what);
        println!("{format}, {values} {what}: {} MiB stored, {} MiB inspected", stored / 1024, inspected / 1024);
        let diag = &seen[0].diagnostics;
        assert!(diag.adds_up() && diag.rejected() == 0 && source.rejects.is_empty(), "{format}: {:?}", diag.rejects());
        assert!(diag.events() >= values, "{format}: {} events", diag.events());
        let warned = |code| diag.warnings().iter().any(|w| w.code == code);
        assert!(many.warning.is_none_or(warned), "{format}: {:?}", diag.warnings());
        assert!(stored.max(inspected) < 200 * 1024, "{format}: {stored} and {inspected} KiB");
    }
}

#[test]
#[ignore = "reads 5 GB"]
fn five_gigabytes_through_a_pipe_stay_below_200_mb() {
    let _alone = ALONE.lock();
    reset_peak();
    let gigabytes: f64 = std::env::var("KREPLAY_STREAM_GB").ok().and_then(|n| n.parse().ok()).unwrap_or(5.0);
    let begin = std::time::Instant::now();
    let manifest = through_a_pipe(move |out| {
        strace_lines(out, (gigabytes * 1e9) as u64);
    });
    let (source, peak) = (&manifest.sources[0], peak_kib());
    println!(
        "{gigabytes} GB, {} lines in {:.0} s: peak {} MiB resident, {} parts",
        source.lines,
        begin.elapsed().as_secs_f64(),
        peak / 1024,
        manifest.parts.len()
    );
    assert!(source.rejects.is_empty());
    assert!(peak < 200 * 1024, "{peak} KiB");
}
