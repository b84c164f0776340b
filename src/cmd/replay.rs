//! `kreplay replay`: traces under variants, results as Parquet.

use crate::args::{Cli, ReplayArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use crate::pipeline::{load_all, plan, simulate};
use crate::{signal, stderr, stdout};
use kreplay_replay::matrix::{CellState, Outcome};
use std::fmt::Write as _;
use std::path::Path;

pub(crate) fn run(cli: &Cli, args: &ReplayArgs) -> Result<Exit> {
    let plan = plan(&args.matrix, None, cli.quiet)?;
    let output = Output::claim(&args.output)?;
    let mut plan = plan(load_all(&args.traces, args.matrix.level)?)?;
    plan.0.totals_only = args.totals_only;
    let results = output.path.join("results");
    let outcome = simulate(cli, &args.matrix, &plan, &results)?;
    if cli.json {
        stdout::print_json(&serde_json::json!({
            "results": stdout::json_path(&results),
            "cells": outcome.cells,
            "reused": outcome.cells.iter().filter(|c| c.reused).count(),
            "events": outcome.events,
        }))?;
    } else {
        stdout::print(&summary(&outcome, &results))?;
    }
    Ok(exit(&outcome))
}

/// What became of the cells, for people.
pub(crate) fn summary(outcome: &Outcome, results: &Path) -> String {
    let mut text = String::new();
    for cell in outcome.cells.iter().filter(|c| c.state != CellState::Done) {
        let state = if cell.state == CellState::Failed { "failed" } else { "not run" };
        let why = cell.why.as_deref().unwrap_or("no reason given");
        let _ = writeln!(text, "{state}: {} seed {}: {why}", cell.variant, cell.seed);
    }
    let done = outcome.count(CellState::Done);
    let reused = outcome.cells.iter().filter(|c| c.reused).count();
    let kept = if reused > 0 { format!(" ({reused} of them from an earlier run)") } else { String::new() };
    let _ = writeln!(text, "{done} of {} cells done{kept}, results in {}", outcome.cells.len(), results.display());
    text
}

/// The exit code; says how to go on after an interrupt.
pub(crate) fn exit(outcome: &Outcome) -> Exit {
    if outcome.count(CellState::Skipped) > 0 && signal::interrupted() {
        stderr::say(&format!("interrupted; finished cells are kept, go on with:\n  {}\n", command()));
        return Exit::Interrupted;
    }
    if outcome.count(CellState::Failed) > 0 { Exit::Cells } else { Exit::Ok }
}

/// This command line, quoted for a shell.
fn command() -> String {
    std::env::args_os().map(|a| quote(&a.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(quote("machine.ram=64MiB"), "machine.ram=64MiB");
        assert_eq!(quote("linux-2.4.16*"), "'linux-2.4.16*'");
        assert_eq!(quote("it's"), "'it'\\''s'");
    }
}
