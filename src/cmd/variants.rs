//! `kreplay variants list | show | diff`.

use crate::args::{Cli, VariantsArgs, VariantsCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::stdout;
use kreplay_replay::variant::{Choice, Library, RECORDED, Variant};
use kreplay_traces::store::TraceDir;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &VariantsArgs) -> Result<Exit> {
    let mut library = Library::builtin()?;
    if let Some(path) = &args.recording {
        library.add_recorded(Some(&TraceDir::open(path)?.manifest().machine))?;
    }
    for file in &args.variant_file {
        library.load(file)?;
    }
    match &args.command {
        VariantsCommand::List => list(cli, &library)?,
        VariantsCommand::Show { variant, resolved } => show(cli, &one(&mut library, variant)?, *resolved)?,
        VariantsCommand::Diff { a, b } => {
            let (a, b) = (one(&mut library, a)?, one(&mut library, b)?);
            diff(cli, &a, &b)?;
        }
    }
    Ok(Exit::Ok)
}

fn one(library: &mut Library, pattern: &str) -> Result<Variant> {
    let mut found = library.select(&[pattern.to_owned()], &[], &[])?;
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|v| v.name.as_str()).collect();
        return Err(CliError::new(Exit::Usage, format!("\"{pattern}\" means more than one variant"))
            .help(format!("name one of {}", names.join(", "))));
    }
    found.pop().ok_or_else(|| CliError::new(Exit::Internal, format!("\"{pattern}\" means no variant")))
}

fn list(cli: &Cli, library: &Library) -> Result<()> {
    if cli.json {
        return stdout::print_json(&serde_json::json!(library.list().collect::<Vec<_>>()));
    }
    let width = library.list().map(|s| s.name.len()).max().unwrap_or(0);
    let mut text = String::from("Kernels\n");
    for s in library.list().filter(|s| !s.profile) {
        let _ = writeln!(text, "  {:width$}  {}", s.name, s.about);
    }
    text.push_str("Profiles, to put on top with + or --with\n");
    for s in library.list().filter(|s| s.profile) {
        let _ = writeln!(text, "  {:width$}  {}", s.name, s.about);
    }
    if !library.list().any(|s| s.name == RECORDED) {
        let about = "the machine of the trace that is replayed (--recording TRACE shows it)";
        let _ = writeln!(text, "  {RECORDED:width$}  {about}");
    }
    stdout::print(&text)
}

fn show(cli: &Cli, variant: &Variant, resolved: bool) -> Result<()> {
    if cli.json {
        return stdout::print_json(&variant.to_json());
    }
    let mut text = if resolved {
        let name: String = variant.name.chars().map(|c| if matches!(c, '+' | '=') { '_' } else { c }).collect();
        format!("name = \"{name}-copy\"\n")
    } else {
        String::new()
    };
    text.push_str(&variant.to_toml(resolved));
    if !resolved && !variant.sources.is_empty() {
        text.push_str("\n# sources\n");
        for source in &variant.sources {
            let _ = writeln!(text, "#   {source}");
        }
    }
    stdout::print(&text)
}

fn diff(cli: &Cli, a: &Variant, b: &Variant) -> Result<()> {
    let differences = a.diff(b);
    if cli.json {
        return stdout::print_json(&serde_json::json!({"a": a.name, "b": b.name, "differences": differences}));
    }
    let mut text = String::new();
    if differences.is_empty() {
        let _ = writeln!(text, "{} and {} are the same", a.name, b.name);
    }
    for d in &differences {
        let _ = writeln!(text, "{}", d.key);
        let _ = writeln!(text, "  - {}", side(d.a));
        let _ = writeln!(text, "  + {}", side(d.b));
    }
    stdout::print(&text)
}

fn side(choice: Option<&Choice>) -> String {
    choice.map_or_else(|| "(no such key)".to_owned(), |c| format!("{:<14} # {}", c.value.to_string(), c.origin()))
}
