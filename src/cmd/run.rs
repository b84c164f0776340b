//! `kreplay run`: logs in, comparison report out.

use crate::args::{Cli, RunArgs};
use crate::cmd::{ingest as ingest_cmd, replay};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::inputs::{expand, trace_name};
use crate::output::Output;
use crate::pipeline::{Existing, analyse, ingest, load, plan, simulate, to_file, to_terminal};
use crate::{signal, stderr, stdout};
use kreplay_replay::matrix::CellState;
use kreplay_reports::Detail;
use kreplay_traces::store::TraceDir;

/// Reports that every run writes.
const REPORTS: [&str; 2] = ["report.html", "report.md"];

pub(crate) fn run(cli: &Cli, args: &RunArgs) -> Result<Exit> {
    let plan = plan(&args.matrix, args.reference.as_deref(), cli.quiet)?;
    let output = Output::claim(&args.output)?;
    let mut exit = Exit::Ok;
    let mut traces = Vec::new();
    for (number, input) in expand(&args.inputs, cli.quiet).iter().enumerate() {
        let path = if TraceDir::is_trace(input) {
            input.clone()
        } else {
            let target = output.path.join("traces").join(trace_name(input, number));
            let done = ingest(cli, std::slice::from_ref(input), &args.read, &target, Existing::Reuse)?;
            exit = exit.max(done.exit(args.read.strict));
            if !cli.quiet {
                stderr::say(&ingest_cmd::summary(&done));
            }
            if args.read.strict && done.skipped() {
                return Ok(Exit::Input);
            }
            done.path
        };
        if signal::interrupted() {
            return Err(CliError::new(Exit::Interrupted, "interrupted")
                .help("run the same command again: finished parts are kept"));
        }
        traces.push(load(&path, args.matrix.level)?);
    }
    let plan = plan(traces)?;
    let results = output.path.join("results");
    let outcome = simulate(cli, &args.matrix, &plan, &results)?;
    if !cli.quiet {
        stderr::say(&replay::summary(&outcome, &results));
    }
    let cells = replay::exit(&outcome);
    if outcome.count(CellState::Done) == 0 {
        return Ok(cells);
    }
    let report = analyse(&output.path, args.reference.as_deref(), None)?;
    for name in REPORTS {
        to_file(&report, &output.path.join(name))?;
    }
    if cli.json {
        stdout::print_json(&serde_json::json!({
            "output": stdout::json_path(&output.path),
            "reports": REPORTS.map(|r| stdout::json_path(&output.path.join(r))),
            "cells": outcome.cells,
            "verdict": report.verdict,
        }))?;
    } else {
        stdout::print_rendered(&to_terminal(&report, Detail::Brief)?)?;
        stdout::print(&format!("\nfull report: {}\n", output.path.join(REPORTS[0]).display()))?;
    }
    // What went wrong later weighs more than lines that were skipped.
    Ok(if cells == Exit::Ok { exit } else { cells })
}
