//! One file a subcommand.

mod claims;
mod compare;
mod export;
mod export_csv;
mod export_results;
mod fit;
mod formats;
mod ingest;
mod inspect;
mod inspect_logs;
mod pages;
mod prove;
mod record;
mod replay;
mod report;
mod run;
mod synth;
mod variants;

use crate::args::{Cli, Command};
use crate::error::Result;
use crate::exit::Exit;

/// Does what the command line says.
pub(crate) fn dispatch(cli: &Cli) -> Result<Exit> {
    match &cli.command {
        Command::Record(args) => record::run(cli, args),
        Command::Run(args) => run::run(cli, args),
        Command::Ingest(args) => ingest::run(cli, args),
        Command::Inspect(args) => inspect::run(cli, args),
        Command::Export(args) => export::run(cli, args),
        Command::Replay(args) => replay::run(cli, args),
        Command::Report(args) => report::run(cli, args),
        Command::Compare(args) => compare::run(cli, args),
        Command::Variants(args) => variants::run(cli, args),
        Command::Formats => formats::run(cli),
        Command::Prove(args) => prove::run(cli, args),
        Command::Claims(args) => claims::run(cli, args),
        Command::Fit(args) => fit::run(cli, args),
        Command::Synth(args) => synth::run(cli, args),
        Command::Completions { shell } => pages::completions(*shell),
        Command::Man { dir } => pages::man(dir),
    }
}
