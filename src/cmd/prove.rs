//! `kreplay prove KIND DIR`.

use crate::args::{Cli, ProveArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::{signal, stdout};
use kreplay_replay::prove::{FigureProof, KINDS, Kind, ProveError, ProveOptions};
use kreplay_replay::variant::nearest;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &ProveArgs) -> Result<Exit> {
    if args.kind == "list" {
        list(cli)?;
        return Ok(Exit::Ok);
    }
    let kind = KINDS.iter().find(|k| k.name == args.kind).ok_or_else(|| unknown(&args.kind))?;
    let Some(dir) = &args.dir else {
        return Err(CliError::new(Exit::Usage, format!("prove {} needs the folder of the recordings", kind.name))
            .help(format!("kreplay prove {} DIR", kind.name)));
    };
    let progress = |run: &str| {
        if !cli.quiet && cli.progress != crate::args::ProgressMode::None {
            eprintln!("done: {run}");
        }
    };
    let options = ProveOptions {
        only: &args.only,
        threads: args.threads.map_or(0, usize::from),
        stop: &signal::DRAIN,
        progress: &progress,
    };
    let proof = (kind.prove)(dir, &options).map_err(|e| {
        let exit = match e {
            ProveError::Input { .. } => Exit::Input,
            ProveError::Glob { .. } => Exit::Usage,
            ProveError::Interrupted => Exit::Interrupted,
        };
        CliError::new(exit, e.to_string())
    })?;
    if cli.json {
        stdout::print_json(&serde_json::json!(proof))?;
    } else {
        stdout::print(&text(kind, &proof))?;
    }
    Ok(if proof.holds { Exit::Ok } else { Exit::Bars })
}

fn unknown(name: &str) -> CliError {
    let names = || KINDS.iter().map(|k| k.name);
    let help = nearest(name, names()).map_or_else(
        || format!("the kinds are {}", names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    CliError::new(Exit::Usage, format!("there is no proof \"{name}\"")).help(help)
}

fn list(cli: &Cli) -> Result<()> {
    if cli.json {
        let kinds: Vec<_> = KINDS.iter().map(|k| serde_json::json!({"name": k.name, "about": k.about})).collect();
        return stdout::print_json(&serde_json::json!(kinds));
    }
    let lines: Vec<String> = KINDS.iter().map(|k| format!("{}: {}\n", k.name, k.about)).collect();
    stdout::print(&lines.concat())
}

fn text(kind: &Kind, proof: &FigureProof) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for run in &proof.runs {
        let _ = writeln!(t, "\n{} under {}: median error {:.1} %", run.run, run.variant, run.median_error_pct);
        let width = run.figures.iter().map(|f| f.name.len()).max().unwrap_or(0).max(6);
        let _ = writeln!(t, "  {:width$} {:>12} {:>12} {:>9}", "figure", "recorded", "simulated", "error %");
        for f in &run.figures {
            let simulated = f.simulated.map_or_else(|| "-".to_owned(), |s| format!("{s:.3}"));
            let _ = writeln!(t, "  {:width$} {:>12.3} {simulated:>12} {:>9.1}", f.name, f.recorded, f.error_pct);
        }
    }
    if !proof.skipped.is_empty() {
        t.push_str("\nnot compared:\n");
        for s in &proof.skipped {
            let _ = writeln!(t, "  {}: {}", s.run, s.why);
        }
    }
    let figures: usize = proof.runs.iter().map(|r| r.figures.len()).sum();
    let median = proof.median_error_pct.map_or_else(|| "no figures".to_owned(), |m| format!("{m:.1} %"));
    let _ = writeln!(
        t,
        "\n{} runs, {figures} figures, median error {median}: {} (bar: below {} %)",
        proof.runs.len(),
        if proof.holds { "holds" } else { "does not hold" },
        proof.bars.median_error_below_pct
    );
    t
}
