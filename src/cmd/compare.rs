//! `kreplay compare BEFORE AFTER`: two runs against each other, with thresholds for machines that watch.

use crate::args::{Cli, CompareArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::pipeline::{check_kind, explain_analysis, to_file, to_terminal};
use crate::stdout;
use kreplay_analysis::Options;
use kreplay_analysis::diff::{DiffError, Side, Threshold, compare, is_results};
use kreplay_reports::Detail;
use std::path::{Path, PathBuf};

pub(crate) fn run(cli: &Cli, args: &CompareArgs) -> Result<Exit> {
    for path in &args.output {
        check_kind(path)?;
    }
    let parse =
        |text: &String| text.parse::<Threshold>().map_err(|e| CliError::new(Exit::Usage, format!("--fail-if: {e}")));
    let thresholds: Vec<Threshold> = args.fail_if.iter().map(parse).collect::<Result<_>>()?;
    let (before, after) = (side(&args.before), side(&args.after));
    let out = compare(&before, &after, &thresholds, &Options::default()).map_err(explain)?;
    for path in &args.output {
        to_file(&out.report, path)?;
    }
    if cli.json {
        stdout::print_json(&serde_json::json!({"crossed": out.crossed, "report": out.report}))?;
    } else if args.output.is_empty() {
        stdout::print_rendered(&to_terminal(&out.report, Detail::Brief)?)?;
    }
    Ok(if out.crossed.is_empty() { Exit::Ok } else { Exit::Bars })
}

/// `OUT` or `OUT:VARIANT`; a folder whose name has a colon wins.
fn side(text: &str) -> Side {
    let whole = Side { dir: PathBuf::from(text), variant: None };
    if is_results(&whole.dir) {
        return whole;
    }
    // Paths may hold colons, and variants of a sweep may as well: the first split that names results counts.
    let splits = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let found = splits.into_iter().find(|(dir, _)| is_results(Path::new(dir)));
    found.map_or(whole, |(dir, variant)| Side { dir: PathBuf::from(dir), variant: Some(variant.to_owned()) })
}

fn explain(e: DiffError) -> CliError {
    match e {
        DiffError::Analysis(e) => explain_analysis(e),
        DiffError::NoVariant { .. } | DiffError::NoFigure { .. } => CliError::new(Exit::Usage, e.to_string()),
        DiffError::NothingInCommon { .. } => CliError::new(Exit::Usage, e.to_string())
            .help("name one variant on each side, as in `kreplay compare A:linux-2.4.16 B:linux-2.4.17`"),
    }
}
