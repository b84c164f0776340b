//! `kreplay formats`.

use crate::args::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::stdout;
use kreplay_parsers::FORMATS;
use kreplay_parsers::registry::REFUSED;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli) -> Result<Exit> {
    if cli.json {
        let read: Vec<_> = FORMATS.iter().map(|f| serde_json::json!({"id": f.id(), "about": f.about()})).collect();
        let refused: Vec<_> =
            REFUSED.iter().map(|f| serde_json::json!({"id": f.id(), "about": f.about(), "why": f.refusal()})).collect();
        stdout::print_json(&serde_json::json!({"formats": read, "refused": refused}))?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for format in FORMATS {
        let _ = writeln!(text, "{:<17} {}", format.id(), format.about());
    }
    text.push_str("\nknown only to be refused:\n");
    for format in REFUSED {
        let _ = writeln!(text, "{:<17} {}", format.id(), format.about());
    }
    stdout::print(&text)?;
    Ok(Exit::Ok)
}
