//! Writes the fixture's report in every format into a directory, to look at while working on a renderer:
//! `cargo run -p kreplay-reports --example fixture -- DIR`.

use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{RenderOptions, renderers};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("give a directory to write to")?);
    let spec = Spec { seconds: 240, last_unfinished: std::env::args().nth(2).is_some(), ..Spec::default() };
    let written = write_results(&dir, &spec)?;
    let report = analyse(&written.out, &Options::default())?;
    for renderer in renderers() {
        let path = dir.join("report").with_extension(renderer.extensions()[0]);
        std::fs::write(&path, renderer.render(&report, &RenderOptions::default())?)?;
        println!("{}", path.display());
    }
    Ok(())
}
