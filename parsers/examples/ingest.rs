//! How fast logs become a trace directory, whole process: `cargo run --release -p kreplay-parsers --example ingest --
//! OUT LOG...` (`-` reads standard input; OUT is replaced). Prints bytes, events, seconds and the peak of resident memory.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kreplay_parsers::ingest::{Options, Watch, ingest, plan};
use kreplay_traces::store::{TraceWriter, WriterOptions};

fn main() {
    if let Err(why) = run() {
        eprintln!("{why}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let out = args.next().ok_or("usage: ingest OUT LOG...")?;
    let logs: Vec<PathBuf> = args.collect();
    let start = Instant::now();
    let options = Options::default();
    let plan = plan(&logs, &options)?;
    let mut writer = TraceWriter::create(&out, WriterOptions { replace: true, fresh: true })?;
    let stop = AtomicBool::new(false);
    let report = ingest(plan, &mut writer, &options, &mut Watch { stop: &stop, progress: &mut |_| {} })?;
    let (_, manifest) = writer.finish()?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes: u64 = manifest.sources.iter().filter_map(|s| s.text_bytes).sum();
    let events: u64 = report.inputs.iter().filter_map(|i| i.diagnostics.as_ref()).map(|d| d.events()).sum();
    println!(
        "{:.1} MB, {events} events, {} rejected, {seconds:.3} s: {:.0} MB/s, {:.2} million events/s; peak {} MiB resident",
        bytes as f64 / 1e6,
        report.rejected(),
        bytes as f64 / seconds / 1e6,
        events as f64 / seconds / 1e6,
        peak_kib().unwrap_or(0) / 1024,
    );
    Ok(())
}

/// Peak of resident memory of this process.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}
