//! Writes a report in every format into a directory, to look at while working on a renderer; of the fixture, or of given
//! results: `cargo run -p kreplay-reports --example fixture -- DIR [RESULTS]`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to look at")]

use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{RenderOptions, renderers};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("give a directory to write to")?);
    std::fs::create_dir_all(&dir)?;
    let results = match std::env::args().nth(2) {
        Some(results) => PathBuf::from(results),
        None => write_results(&dir, &Spec { seconds: 240, last_unfinished: true, ..Spec::default() })?.out,
    };
    let report = analyse(&results, &Options::default())?;
    for renderer in renderers() {
        let path = dir.join("report").with_extension(renderer.extensions()[0]);
        std::fs::write(&path, renderer.render(&report, &RenderOptions::default())?)?;
        println!("{}", path.display());
    }
    Ok(())
}
