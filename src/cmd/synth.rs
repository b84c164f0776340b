//! `kreplay synth`: the trace of a generated load.

use crate::args::{Cli, SynthArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::stdout;
use kreplay_traces::store::WriterOptions;
use kreplay_traces::synth::{self, LOADS, PRESETS};
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &SynthArgs) -> Result<Exit> {
    let (Some(name), Some(output)) = (&args.load, &args.output) else {
        list(cli)?;
        return Ok(Exit::Ok);
    };
    let (load, params) = synth::find(name, &args.params).map_err(|e| {
        let near =
            kreplay_replay::variant::nearest(name, LOADS.iter().map(|l| l.name).chain(PRESETS.iter().map(|p| p.name)));
        let error = CliError::from(e);
        match near.filter(|n| n != name) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    })?;
    let options = WriterOptions { replace: args.replace, ..WriterOptions::default() };
    let (path, manifest) = synth::write_trace(load, &params, None, output, options)?;
    if cli.json {
        stdout::print_json(&serde_json::json!({
            "trace": stdout::json_path(&path), "trace_id": manifest.trace_id, "load": load.name, "counts": manifest.counts,
        }))?;
    } else {
        let rows: u64 = manifest.counts.values().sum();
        stdout::print(&format!(
            "{}: {rows} rows, trace {} in {}\n",
            load.name,
            &manifest.trace_id[..16],
            path.display()
        ))?;
    }
    Ok(Exit::Ok)
}

fn list(cli: &Cli) -> Result<()> {
    if cli.json {
        let loads: Vec<_> = LOADS
            .iter()
            .map(|l| {
                let params: Vec<_> = l
                    .params
                    .iter()
                    .map(|p| serde_json::json!({"name": p.name, "default": p.default, "about": p.about}))
                    .collect();
                serde_json::json!({"name": l.name, "about": l.about, "params": params})
            })
            .collect();
        let presets: Vec<_> = PRESETS
            .iter()
            .map(|p| serde_json::json!({"name": p.name, "load": p.load, "settings": p.settings}))
            .collect();
        return stdout::print_json(&serde_json::json!({"loads": loads, "presets": presets}));
    }
    let mut text = String::new();
    for load in LOADS {
        let _ = writeln!(text, "{}: {}", load.name, load.about);
        for p in load.params {
            let _ = writeln!(text, "    {}={}  {}", p.name, p.default, p.about);
        }
    }
    for preset in PRESETS {
        let _ = writeln!(text, "{} = {} {}", preset.name, preset.load, preset.settings.join(" "));
    }
    stdout::print(&text)
}
