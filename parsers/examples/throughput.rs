//! How fast a parser alone is: `cargo run --release -p kreplay-parsers --example throughput -- FORMAT FILE [ROUNDS]`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use std::time::Instant;

use kreplay_parsers::rows::Discard;
use kreplay_parsers::{Diagnostics, ParseOptions, by_id};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [format, file, rest @ ..] = &args[..] else { return eprintln!("usage: throughput FORMAT FILE [ROUNDS]") };
    let Some(format) = by_id(format) else { return eprintln!("unknown format {format}") };
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(e) => return eprintln!("{file}: {e}"),
    };
    let rounds = rest.first().and_then(|r| r.parse().ok()).unwrap_or(5);
    let mut best = f64::INFINITY;
    let mut events = 0;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut diag = Diagnostics::new();
        let mut parser = format.parser(&ParseOptions::default());
        for chunk in text.chunks(256 * 1024) {
            parser.feed(chunk, &mut Discard, &mut diag);
        }
        parser.finish(&mut Discard, &mut diag);
        best = best.min(start.elapsed().as_secs_f64());
        events = diag.events();
    }
    println!(
        "{:.0} MB/s, {:.2} million events/s (best of {rounds})",
        text.len() as f64 / best / 1e6,
        events as f64 / best / 1e6
    );
}
