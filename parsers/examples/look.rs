//! Print what each file is and what its parser found: `cargo run -p kreplay-parsers --example look -- FILE...`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::io::Read;
use std::path::Path;

use kreplay_parsers::format::{HEAD_BYTES, Head};
use kreplay_parsers::rows::Rows;
use kreplay_parsers::{Diagnostics, ParseOptions, detect};
use kreplay_traces::input::{Input, InputLimits};

fn main() {
    for path in std::env::args().skip(1) {
        match look(Path::new(&path)) {
            Ok(text) => println!("{path}: {text}"),
            Err(why) => println!("{path}: {why}"),
        }
    }
}

fn look(path: &Path) -> Result<String, String> {
    let mut text = Vec::new();
    let mut input = Input::open(path, InputLimits::default()).map_err(|e| e.to_string())?;
    input.read_to_end(&mut text).map_err(|e| input.explain(e).to_string())?;
    let head = Head { bytes: &text[..text.len().min(HEAD_BYTES)], complete: text.len() <= HEAD_BYTES };
    let format = detect(head).map_err(|e| e.to_string())?;
    let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
    let mut parser = format.parser(&ParseOptions::default());
    parser.feed(&text, &mut rows, &mut diag);
    parser.finish(&mut rows, &mut diag);
    let mut out = format!("{}: {} lines, {} events", format.id(), diag.lines(), diag.events());
    for (kind, count) in diag.notes() {
        out += &format!(", {count} {kind}");
    }
    for reject in diag.rejects() {
        out += &format!("\n    reject {} x {} first line {}", reject.count, reject.reason.code, reject.first_line);
    }
    for warning in diag.warnings() {
        out += &format!("\n    warn {} x {}: {}", warning.count, warning.code, warning.text);
    }
    for reject in rows.rejects.iter().take(3) {
        out += &format!("\n    {}: {}", reject.line, reject.text);
    }
    Ok(out)
}
