//! `kreplay fit disk TRACE`: a device model whose times are those of a recording.

use crate::args::{Cli, FitArgs, FitWhat};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::{outfile, stdout};
use kreplay_replay::blockreplay;
use kreplay_replay::config::DeviceConfig;
use kreplay_replay::fit::{FitReport, fit, profile};
use kreplay_traces::publish::write_atomically;
use kreplay_traces::store::TraceDir;
use std::fmt::Write as _;

pub(crate) fn run(cli: &Cli, args: &FitArgs) -> Result<Exit> {
    let FitWhat::Disk = args.what;
    let trace = TraceDir::open(&args.trace)?;
    if let Some(path) = &args.output {
        outfile::check(path, &trace)?;
    }
    let m = trace.manifest();
    let known: Vec<_> = m.machine.devices.iter().map(|d| (d.dev, d.name.clone(), d.sectors)).collect();
    let program = blockreplay::compile(&m.trace_id, &known, &trace)?;
    let report = fit(&program, args.device.as_deref()).map_err(|e| {
        CliError::new(Exit::Input, format!("{}: {e}", args.trace.display()))
            .help("a fit needs a block trace with D and C events; `kreplay inspect` shows what there is")
    })?;
    if let (Some(path), Some(best)) = (&args.output, report.models.first()) {
        let short = m.trace_id.get(..16).unwrap_or(&m.trace_id);
        let text = profile(&report, best, short);
        write_atomically(path, text.as_bytes())?;
    }
    if cli.json {
        stdout::print_json(&serde_json::json!(report))?;
    } else {
        stdout::print(&page(&report))?;
        if let Some(path) = &args.output {
            let path = path.display();
            stdout::print(&format!("\nwritten to {path}; use it with: --variant-file {path} --with fitted\n"))?;
        }
    }
    Ok(Exit::Ok)
}

fn page(r: &FitReport) -> String {
    let mut t = format!(
        "{}: {} requests fitted, {} tested, mean {:.3} ms\n\n",
        r.device, r.fitted_requests, r.tested_requests, r.recorded_mean_ms
    );
    let _ =
        writeln!(t, "  {:<10} {:>16} {:>16} {:>16}", "model", "demerit fitted %", "demerit tested %", "per request %");
    for m in &r.models {
        let _ = writeln!(
            t,
            "  {:<10} {:>16.1} {:>16.1} {:>16.1}",
            m.model, m.demerit_fitted_pct, m.demerit_tested_pct, m.request_error_pct
        );
    }
    let _ = writeln!(t, "  {:<10} {:>16} {:>16.1}", "constant", "", r.constant_demerit_pct);
    if !r.beats_constant {
        t.push_str("\nNo model does better on the tested half than one time for all requests (\"constant\"): the device does not\n");
        t.push_str("behave like either model, or its two halves differ. Do not rely on these parameters.\n");
    }
    for m in &r.models {
        let _ = writeln!(t, "\n{}:", m.model);
        for (key, value) in parameters(&m.device) {
            let _ = writeln!(t, "  {key} = {value}");
        }
    }
    t
}

/// Keys and values of a device, as in a variant file.
fn parameters(device: &DeviceConfig) -> Vec<(String, String)> {
    match serde_json::to_value(device) {
        Ok(serde_json::Value::Object(map)) => map.into_iter().map(|(k, v)| (k, v.to_string())).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_that_a_constant_beats_says_so() {
        let report = |beats_constant| FitReport {
            device: "sda".to_owned(),
            fitted_requests: 100,
            tested_requests: 100,
            recorded_mean_ms: 1.0,
            constant_demerit_pct: 10.0,
            beats_constant,
            models: Vec::new(),
        };
        assert!(page(&report(false)).contains("Do not rely"));
        assert!(!page(&report(true)).contains("Do not rely"));
    }
}
