//! `kreplay claims`: what was reported in 2001, answered by replays.

mod plan;

use crate::args::{ClaimsArgs, Cli};
use crate::cmd::replay;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::pipeline::{simulate_closed, to_terminal};
use crate::{signal, stderr, stdout};
use kreplay_analysis::claims::{Answer, Claim, Registry, evaluate};
use kreplay_replay::matrix::CellState;
use kreplay_replay::variant::{Library, nearest};
use kreplay_reports::{Detail, RenderOptions, render};
use kreplay_traces::publish::write_atomically;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Width of the mail form.
const MAIL_COLUMNS: usize = 72;

pub(crate) fn run(cli: &Cli, args: &ClaimsArgs) -> Result<Exit> {
    let registry = registry(&args.files)?;
    let claims = registry.select(&args.ids).map_err(|id| unknown(&registry, &id))?;
    let Some(path) = &args.output else {
        list(cli, &claims)?;
        return Ok(Exit::Ok);
    };
    let output = Output::claim(path)?;
    let mut library = Library::builtin()?;
    for file in &args.variant_file {
        library.load(file)?;
    }
    let work = plan::prepare(&registry, &claims, library, &output.path)?;
    if signal::interrupted() {
        return Err(CliError::new(Exit::Interrupted, "interrupted").help("run the same command again"));
    }
    let results = output.path.join("results");
    let outcome = simulate_closed(cli, args.threads, &work.plan, &results)?;
    if !cli.quiet {
        stderr::say(&replay::summary(&outcome, &results));
    }
    let exit = replay::exit(&outcome);
    if exit == Exit::Interrupted || (outcome.count(CellState::Done) == 0 && !outcome.cells.is_empty()) {
        return Ok(exit);
    }
    let answer = evaluate(&registry, &claims, &results, &work.cells).map_err(|e| {
        let hint = e.hint();
        CliError::new(Exit::Input, e.to_string()).help(hint)
    })?;
    write(&answer, &output.path)?;
    if cli.json {
        stdout::print_json(&answer.json())?;
    } else {
        stdout::print_rendered(&text(&answer)?)?;
        stdout::print(&format!("\nwith plots: {}\n", output.path.join("claims.html").display()))?;
    }
    Ok(exit)
}

/// The built-in claims, or those of files.
fn registry(files: &[PathBuf]) -> Result<Registry> {
    if files.is_empty() {
        return Registry::builtin().map_err(|e| CliError::new(Exit::Internal, e.to_string()));
    }
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path)
            .map_err(|e| CliError::new(Exit::Usage, format!("cannot read {}: {e}", path.display())))?;
        Ok((path.display().to_string(), text))
    };
    let texts = files.iter().map(read).collect::<Result<Vec<_>>>()?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Registry::parse(&texts)
        .map_err(|e| CliError::new(Exit::Usage, e.to_string()).help("analysis/claims has files to copy from"))
}

/// The answer in every form: a page, Markdown, a mail, JSON.
fn write(answer: &Answer, dir: &Path) -> Result<()> {
    let command: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let report = answer.report(command);
    for kind in ["html", "md"] {
        let bytes = render(&report, kind, &RenderOptions::default()).map_err(drawing)?;
        write_atomically(dir.join(format!("claims.{kind}")), &bytes)?;
    }
    let mail = RenderOptions { width: MAIL_COLUMNS, detail: Detail::Brief, ..RenderOptions::default() };
    write_atomically(dir.join("claims.txt"), &render(&report, "text", &mail).map_err(drawing)?)?;
    write_atomically(dir.join("claims.json"), format!("{:#}\n", answer.json()).as_bytes())?;
    Ok(())
}

/// What the terminal shows.
fn text(answer: &Answer) -> Result<String> {
    to_terminal(&answer.report(Vec::new()), Detail::Brief)
}

fn drawing(e: kreplay_reports::Error) -> CliError {
    CliError::new(Exit::Internal, e.to_string()).help(e.hint())
}

fn unknown(registry: &Registry, id: &str) -> CliError {
    let ids = registry.claims.iter().map(|c| c.id.as_str());
    let error = CliError::new(Exit::Usage, format!("there is no claim `{id}`"));
    match nearest(id, ids) {
        Some(near) => error.help(format!("did you mean `{near}`? `kreplay claims --list` shows all")),
        None => error.help("`kreplay claims --list` shows all"),
    }
}

fn list(cli: &Cli, claims: &[&Claim]) -> Result<()> {
    let band = |c: &Claim| c.holds.iter().map(|h| h.text().to_owned()).collect::<Vec<_>>().join("; ");
    if cli.json {
        let claims: Vec<_> = claims
            .iter()
            .map(|c| serde_json::json!({"id": c.id, "title": c.title, "reported": c.reported, "band": band(c)}))
            .collect();
        return stdout::print_json(&serde_json::json!({ "claims": claims }));
    }
    let mut text = String::new();
    for c in claims {
        let _ = writeln!(text, "{}: {}\n    reported: {}\n    band: {}", c.id, c.title, c.reported, band(c));
    }
    stdout::print(&text)
}
