//! Memory stays small however much is read.
//!
//! The large run is ignored by default: `cargo test --release -p kreplay-parsers --test memory -- --ignored --nocapture`,
//! with `KREPLAY_STREAM_GB` for another size than 5.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use kreplay_parsers::ingest::{Options, Watch, ingest, plan};
use kreplay_traces::store::{Manifest, TraceWriter, WriterOptions};

/// Ingest what `write` puts into a pipe.
fn through_a_pipe(write: impl FnOnce(&mut dyn Write) + Send + 'static) -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let thread = std::thread::spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 16, writer);
        write(&mut out);
        out.flush().unwrap();
    });
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let options = Options::default();
    let plan = plan(&[path], &options).unwrap();
    let mut out = TraceWriter::create(&dir.path().join("trace"), WriterOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    ingest(plan, &mut out, &options, &mut Watch { stop: &stop, progress: &mut |_| {} }).unwrap();
    thread.join().unwrap();
    out.finish().unwrap().1
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

#[test]
#[ignore = "reads 5 GB"]
fn five_gigabytes_through_a_pipe_stay_below_200_mb() {
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
