//! The command line of kreplay: arguments in, exit code out. What it does lies in the workspace's crates.

mod args;
mod cmd;
mod error;
mod exit;
mod export_args;
mod inputs;
mod output;
mod parse_args;
mod pipeline;
mod progress;
mod signal;
mod stdout;

use args::Cli;
use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    signal::install();
    match cmd::dispatch(&cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if cli.json {
                eprintln!("{}", error.to_json());
            } else {
                eprint!("{}", error.render());
            }
            error.exit.into()
        }
    }
}
