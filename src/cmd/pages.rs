//! `kreplay completions` and `kreplay man`: what clap knows, for shells and for man.

use crate::args::Cli;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::stdout;
use clap::CommandFactory as _;
use kreplay_traces::publish::write_atomically;
use std::path::Path;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kreplay", &mut script);
    stdout::print_raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

pub(crate) fn man(dir: &Path) -> Result<Exit> {
    std::fs::create_dir_all(dir).map_err(|e| CliError::unwritable(dir, &e))?;
    let mut command = Cli::command();
    command.build();
    page(&command, dir)?;
    Ok(Exit::Ok)
}

/// A command's page and those of its subcommands, each by rename.
fn page(command: &clap::Command, dir: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let target = dir.join(format!("{name}.1"));
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(command.clone());
    man.render(&mut text).map_err(|e| CliError::unwritable(&target, &e))?;
    write_atomically(&target, &text)?;
    command.get_subcommands().filter(|c| !c.is_hide_set()).try_for_each(|c| page(c, dir))
}
