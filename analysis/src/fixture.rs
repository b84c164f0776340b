//! A small results directory in the documented shape, for tests of this crate and of the renderers.
//!
//! Everything is computed from row numbers, so the same call writes the same figures on any machine. The numbers are
//! invented: they have the shape of a file server under memory pressure, but no simulation made them.

mod tables;

use arrow::array::{ArrayRef, RecordBatch};
use kreplay_traces::event::{EventSink, RejectRow};
use kreplay_traces::store::{ClockKind, MachineInfo, SourceFacts, SourceKey, TraceWriter, WriterOptions};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use std::error::Error;
use std::fs::{File, create_dir_all, write};
use std::path::{Path, PathBuf};

/// Result of writing a fixture.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the fixture looks like.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Variant names; the further back, the slower and the less even.
    pub variants: Vec<String>,
    /// Seeds of each variant.
    pub seeds: i64,
    /// Process and client names, one a client.
    pub clients: Vec<String>,
    /// Simulated seconds of the first variant.
    pub seconds: i64,
    /// Name of the trace directory.
    pub trace_name: String,
    /// The last variant's runs end before their tasks do.
    pub last_unfinished: bool,
    /// Adds a failed and a skipped cell to the manifest.
    pub lost_cells: bool,
}

impl Default for Spec {
    fn default() -> Spec {
        let texts = |items: &[&str]| items.iter().map(|s| (*s).to_string()).collect();
        Spec {
            variants: texts(&["linux-2.4.16", "linux-2.4.16-noop", "linux-2.4.16-64m"]),
            seeds: 1,
            clients: texts(&["client 1", "client 2", "client 3", "client 4", "client 5"]),
            seconds: 40,
            trace_name: "fileserver".to_string(),
            last_unfinished: false,
            lost_cells: false,
        }
    }
}

/// Paths of a written fixture.
#[derive(Clone, Debug)]
pub struct Written {
    /// The output folder: `analyse` takes it or its `results`.
    pub out: PathBuf,
    /// The cells' folders, in the manifest's order.
    pub cells: Vec<PathBuf>,
    /// The trace directory.
    pub trace: PathBuf,
}

/// The trace's id in all fixtures.
const TRACE_ID: &str = "0123456789abcdef";

/// Writes a fixture below `dir`.
///
/// # Errors
/// What the file system or the Parquet writer says.
pub fn write_results(dir: &Path, spec: &Spec) -> Result<Written> {
    let out = dir.join("out");
    let trace = dir.join("traces").join(&spec.trace_name);
    write_trace(&trace, spec)?;
    let mut cells = Vec::new();
    let mut entries = Vec::new();
    let id = TRACE_ID;
    for (v, variant) in spec.variants.iter().enumerate() {
        for seed in 1..=spec.seeds {
            // Folder names are made of safe characters, never of the variant's name as it stands.
            let folder = format!("trace={id}/variant=v{v}/seed={seed}");
            let path = out.join("results").join(&folder);
            write_cell(&path, spec, v as i64, seed, &trace)?;
            cells.push(path);
            entries.push(
                json!({"path": folder, "trace": id, "variant": variant, "seed": seed, "state": "done", "why": null}),
            );
        }
    }
    if spec.lost_cells {
        let lost = |variant: &str, state: &str, why: &str| json!({"path": format!("trace={id}/variant={variant}/seed=1"), "trace": id, "variant": variant, "seed": 1, "state": state, "why": why});
        entries.push(lost("linux-2.4.17", "failed", "no request was completed for 60 simulated seconds"));
        entries.push(lost("linux-2.4.18", "skipped", "interrupted"));
    }
    let manifest = json!({
        "schema": 1,
        "command": ["kreplay", "run", format!("samples/{}", spec.trace_name), "-v", "linux-2.4.16*", "-o", "out"],
        "cells": entries,
        "recorded": {(id): trace},
    });
    write(out.join("results/manifest.json"), serde_json::to_vec_pretty(&manifest)?)?;
    Ok(Written { out, cells, trace })
}

fn write_cell(path: &Path, spec: &Spec, variant: i64, seed: i64, trace: &Path) -> Result<()> {
    create_dir_all(path)?;
    let run = tables::Run { spec, variant, seed };
    let all = [
        ("io", run.io()),
        ("calls", run.calls()),
        ("samples", run.samples()),
        ("clients", run.clients()),
        ("counters", run.counters()),
        ("marks", run.marks()),
        ("events", run.events()),
        ("evictions", run.evictions()),
    ];
    let mut hashes = serde_json::Map::new();
    for (name, columns) in all {
        let file = path.join(format!("{name}.parquet"));
        let rows = write_table(&file, columns)?;
        let hash = blake3::hash(&std::fs::read(&file)?).to_hex().to_string();
        hashes.insert(name.to_string(), json!({"rows": rows, "blake3": hash}));
    }
    let finished = !run.unfinished();
    let document = json!({
        "schema": 1,
        "trace": TRACE_ID,
        "trace_path": trace,
        "variant": spec.variants[variant as usize],
        "seed": seed,
        "pacing": "closed",
        "parts": [{"name": spec.variants[variant as usize], "about": format!("the kernel {}", spec.variants[variant as usize])}],
        "config": {"machine": {"ram": if variant == 2 { "64 MiB" } else { "128 MiB" }, "cpus": 1}, "elevator": {"policy": if variant == 1 { "noop" } else { "linus" }}},
        "config_hash": format!("{:016x}", 0xfeed + variant),
        "code_version": "0.1.0",
        "model": model(spec, variant),
        "checked_against": if variant == 0 { json!(["oracle linux24: median error 12 %"]) } else { json!([]) },
        "assumptions": ["files lie on disk in order of first use"],
        "coverage": {"syscalls": 4200, "rejected_lines": 3, "unsupported": {"ioctl": 2}},
        "tables": Value::Object(hashes),
        "tasks": spec.clients.len() + 1,
        "finished": finished,
    });
    write(path.join("cell.json"), serde_json::to_vec_pretty(&document)?)?;
    Ok(())
}

/// The first variant was compared with runs, the second builds on it, the others say nothing of runs.
fn model(spec: &Spec, variant: i64) -> Value {
    let line = |part: &str, name: &str, texts: [&str; 4]| {
        let [modelled, missing, checked, error] = texts;
        json!({"part": part, "name": name, "modelled": modelled, "missing": missing, "checked": checked, "error": error})
    };
    let whole =
        |missing: &str| line("whole kernel", &spec.variants[0], ["", missing, "7 recorded runs", "12 % (median)"]);
    let mut lines = match variant {
        0 => vec![whole("")],
        1 => vec![whole("not compared itself")],
        _ => Vec::new(),
    };
    lines.push(line("page replacement", "two lists", ["refill and shrink", "rescheduling", "", ""]));
    let elevator = if variant == 1 { "noop" } else { "Linus's" };
    lines.push(line("elevator", elevator, ["merging both ways", "", "every recorded decision agrees", ""]));
    json!(lines)
}

fn write_trace(dir: &Path, spec: &Spec) -> Result<()> {
    if let Some(parent) = dir.parent() {
        create_dir_all(parent)?;
    }
    let mut writer = TraceWriter::create(dir, WriterOptions::default())?;
    let source =
        |path: &str, format: &str| SourceKey { path: path.into(), format: format.into(), options: Default::default() };
    writer.begin_source(source("strace.log", "strace"), ClockKind::Trace)?;
    tables::recorded_calls(spec, &mut writer);
    writer.finish_source(SourceFacts { lines: 10, ..SourceFacts::default() })?;
    writer.begin_source(source("vmstat.log", "vmstat"), ClockKind::Trace)?;
    tables::recorded_vmstat(spec, &mut writer);
    writer.reject(&RejectRow { line: 7, reason: "vmstat-not-a-number", text: "1 0 x", ..RejectRow::default() });
    writer.finish_source(SourceFacts { lines: 40, ..SourceFacts::default() })?;
    writer.set_machine(MachineInfo { ram_kib: Some(131_072), kernel: Some("6.18.5".into()), ..MachineInfo::default() });
    let (path, manifest) = writer.finish()?;
    // A fixed id, so that snapshots do not change with the format of the parts.
    let file = path.join("manifest.json");
    let text = std::fs::read_to_string(&file)?.replace(&manifest.trace_id, TRACE_ID);
    std::fs::write(file, text)?;
    Ok(())
}

/// Writes named columns of equal length; returns the number of rows.
fn write_table(path: &Path, columns: Vec<(&'static str, ArrayRef)>) -> Result<usize> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(batch.num_rows())
}
