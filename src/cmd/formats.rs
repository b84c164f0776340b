//! `kreplay formats`.

use crate::args::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::stdout;
use kreplay_parsers::FORMATS;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli) -> Result<Exit> {
    let known = FORMATS.iter().filter(|f| f.refusal().is_none());
    if cli.json {
        let list: Vec<_> = known.map(|f| serde_json::json!({"id": f.id(), "about": f.about()})).collect();
        stdout::print_json(&list.into())?;
    } else {
        let mut text = String::new();
        for format in known {
            let _ = writeln!(text, "{:<12} {}", format.id(), format.about());
        }
        stdout::print(&text)?;
    }
    Ok(Exit::Ok)
}
