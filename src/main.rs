//! The command line of kreplay: arguments in, exit code out. What it does lies in the workspace's crates.

mod args;
mod cmd;
mod error;
mod exit;
mod export_args;
mod inputs;
mod outfile;
mod output;
mod parse_args;
mod pipeline;
mod progress;
mod record_args;
mod signal;
mod stderr;
mod stdout;
mod terminal;

use args::Cli;
use clap::Parser as _;
use error::CliError;
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return misread(&e),
    };
    signal::install(matches!(cli.command, args::Command::Run(_) | args::Command::Replay(_) | args::Command::Claims(_)));
    match cmd::dispatch(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => fail(&error, cli.json),
    }
}

fn fail(error: &CliError, json: bool) -> ExitCode {
    stderr::say(&if json { format!("{}\n", error.to_json()) } else { error.render() });
    error.exit.into()
}

/// A command line that clap refuses, or help and version, which it hands out the same way.
fn misread(e: &clap::Error) -> ExitCode {
    if e.use_stderr() && std::env::args_os().any(|a| a == "--json") {
        let text = e.render().to_string();
        return fail(&CliError::new(Exit::Usage, text.trim_start_matches("error: ").trim_end()), true);
    }
    // Colours and pages are clap's; an output that is gone is no error.
    let _ = e.print();
    if e.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() }
}
