//! `kreplay ingest`.

use crate::args::{Cli, IngestArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::inputs::{expand, trace_name};
use crate::pipeline::{Existing, Ingest, ingest};
use crate::stdout;
use kreplay_parsers::ingest::recordings_below;
use kreplay_reports::escape;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &IngestArgs) -> Result<Exit> {
    let existing = if args.replace { Existing::Replace } else { Existing::Refuse };
    if let [input] = &args.inputs[..]
        && recordings_below(input).is_some()
    {
        return several(cli, args, existing);
    }
    let done = ingest(cli, &args.inputs, &args.read, &args.output, existing)?;
    if cli.json {
        stdout::print_json(&document(&done))?;
    } else {
        stdout::print(&summary(&done))?;
    }
    Ok(done.exit(args.read.strict))
}

/// A folder of recordings: a trace of each, in the output folder.
fn several(cli: &Cli, args: &IngestArgs, existing: Existing) -> Result<Exit> {
    let (mut exit, mut documents) = (Exit::Ok, Vec::new());
    for (number, recording) in expand(&args.inputs, cli.quiet).iter().enumerate() {
        let target = args.output.join(trace_name(recording, number));
        let done = ingest(cli, std::slice::from_ref(recording), &args.read, &target, existing)?;
        exit = exit.max(done.exit(args.read.strict));
        if cli.json {
            documents.push(document(&done));
        } else {
            stdout::print(&summary(&done))?;
        }
    }
    if cli.json {
        stdout::print_json(&documents.into())?;
    }
    Ok(exit)
}

/// What was read, for programs.
fn document(done: &Ingest) -> serde_json::Value {
    serde_json::json!({
            "trace": stdout::json_path(&done.path),
            "trace_id": done.manifest.trace_id,
            "counts": done.manifest.counts,
            "sources": done.manifest.sources,
            "skipped_files": done.report.iter().flat_map(|r| &r.skipped)
                .map(|s| serde_json::json!({"path": stdout::json_path(&s.path), "why": s.why})).collect::<Vec<_>>(),
            "warnings": done.manifest.warnings,
    })
}

/// What was read, for people.
pub(crate) fn summary(done: &Ingest) -> String {
    let mut text = String::new();
    for source in &done.manifest.sources {
        let rows: u64 = source.events.values().sum();
        let rejected: u64 = source.rejects.values().sum();
        let _ = writeln!(
            text,
            "{}: {}, {} lines, {rows} rows, {rejected} rejected",
            escape::visible(&source.path),
            source.format,
            source.lines
        );
        for (reason, count) in &source.rejects {
            let _ = writeln!(text, "  rejected {count}: {reason}");
        }
        for note in &source.notes {
            let _ = writeln!(text, "  note: {note}");
        }
    }
    for skipped in done.report.iter().flat_map(|r| &r.skipped) {
        let _ = writeln!(text, "not read: {}: {}", escape::visible(&skipped.path.display().to_string()), skipped.why);
    }
    for warning in &done.manifest.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let _ = writeln!(text, "trace {} in {}", &done.manifest.trace_id[..16], done.path.display());
    text
}
