//! `kreplay completions` and `kreplay man`: what clap knows, for shells and for man.

use crate::args::Cli;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::stdout;
use clap::CommandFactory as _;
use std::path::Path;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kreplay", &mut script);
    stdout::print_raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

pub(crate) fn man(dir: &Path) -> Result<Exit> {
    std::fs::create_dir_all(dir).map_err(|e| CliError::unwritable(dir, &e))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| CliError::unwritable(dir, &e))?;
    Ok(Exit::Ok)
}
