//! From claims to cells: loads are generated, variants resolved, and each run's cells located.

use crate::args::Level;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::pipeline::load;
use kreplay_analysis::claims::{CellId, Cells, Claim, Registry, Run};
use kreplay_replay::matrix::{Plan, TraceInput, code_version};
use kreplay_replay::sim::Pacing;
use kreplay_replay::variant::{Library, Variant};
use kreplay_traces::store::WriterOptions;
use kreplay_traces::synth;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What to simulate, and where each run's cells will be.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) cells: Cells,
}

/// A load with its parameters, as one line: what makes two runs share a trace.
fn load_key(run: &Run) -> String {
    let mut key = run.load.clone();
    for param in &run.params {
        key.push(' ');
        key.push_str(param);
    }
    key
}

/// Generates the loads that `claims` need below `dir` and resolves their variants.
pub(super) fn prepare(registry: &Registry, claims: &[&Claim], mut library: Library, dir: &Path) -> Result<Work> {
    let needed: BTreeSet<&str> = claims.iter().flat_map(|c| registry.runs_of(c)).map(|r| r.id.as_str()).collect();
    let runs: Vec<&Run> = registry.runs.iter().filter(|r| needed.contains(r.id.as_str())).collect();
    let mut variants: Vec<Variant> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut cells = Cells::default();
    let mut picked: Vec<(usize, usize, u64)> = Vec::new();
    // Per run and name: number of the trace's key, of the variant, seeds.
    let mut located: Vec<((String, String), usize, usize, u64)> = Vec::new();
    for run in &runs {
        let key = load_key(run);
        let trace = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        for base in &run.variants {
            for change in &run.columns {
                let name = if change.is_empty() { base.clone() } else { format!("{base}+{change}") };
                let at = (run.id.clone(), name);
                let Some(variant) = resolve(&mut library, base, &run.with, change)? else {
                    cells.missing.insert(at, format!("variant {base} is unknown"));
                    continue;
                };
                let number = variants.iter().position(|v| v.name == variant.name).unwrap_or_else(|| {
                    variants.push(variant);
                    variants.len() - 1
                });
                located.push((at, trace, number, run.seeds));
            }
        }
    }
    let used: Vec<bool> = (0..keys.len()).map(|t| located.iter().any(|l| l.1 == t)).collect();
    let traces = generate(&runs, &keys, &used, dir)?;
    for (at, trace, variant, seeds) in located {
        let Some(number) = traces.iter().position(|(key, _)| *key == trace) else { continue };
        let ids = (1..=seeds).map(|seed| {
            let cell = (number, variant, seed);
            if !picked.contains(&cell) {
                picked.push(cell);
            }
            CellId {
                trace: traces[number].1.program.trace_id.clone(),
                variant: variants[variant].name.clone(),
                seed: i64::try_from(seed).unwrap_or(i64::MAX),
            }
        });
        cells.found.insert(at, ids.collect());
    }
    let plan = Plan {
        traces: traces.into_iter().map(|(_, t)| t).collect(),
        variants,
        seeds: Vec::new(),
        picked: Some(picked),
        pacing: Pacing::Closed.to_string(),
        totals_only: false,
        code_version: code_version(),
    };
    Ok(Work { plan, cells })
}

/// A variant with a run's profiles and a column's change; `None` if there is no variant of that name.
///
/// Names may contain a `+`, so the longest beginning that is a variant counts; what is left must be profiles or settings.
fn resolve(library: &mut Library, base: &str, with: &[String], change: &str) -> Result<Option<Variant>> {
    if !known(library, base) {
        return Ok(None);
    }
    let mut pattern = base.to_owned();
    for part in with.iter().map(String::as_str).chain((!change.is_empty()).then_some(change)) {
        pattern.push('+');
        pattern.push_str(part);
    }
    Ok(library.select(&[pattern], &[], &[])?.into_iter().next())
}

fn known(library: &Library, base: &str) -> bool {
    let is = |name: &str, profile: bool| library.list().any(|s| s.name == name && s.profile == profile);
    let mut ends = base.match_indices('+').map(|(i, _)| i).chain([base.len()]);
    let Some(end) = ends.rfind(|&end| is(&base[..end], false)) else { return false };
    base[end..].split('+').skip(1).all(|part| part.contains('=') || is(part, true))
}

/// Writes the traces that are not there yet, and compiles all, several at a time.
fn generate(runs: &[&Run], keys: &[String], used: &[bool], dir: &Path) -> Result<Vec<(usize, TraceInput)>> {
    let by_key: BTreeMap<String, &Run> = runs.iter().map(|r| (load_key(r), *r)).collect();
    let done: Vec<Result<(usize, TraceInput)>> = keys
        .par_iter()
        .enumerate()
        .filter(|(number, _)| used[*number])
        .map(|(number, key)| Ok((number, trace(by_key[key], key, dir)?)))
        .collect();
    done.into_iter().collect()
}

fn trace(run: &Run, key: &str, dir: &Path) -> Result<TraceInput> {
    let (generator, params) = synth::find(&run.load, &run.params)
        .map_err(|e| CliError::new(Exit::Internal, format!("run {}: {e}", run.id)))?;
    // Written anew each time: that costs less than to find out whether a generator has changed, and the trace's id says it.
    let hash = blake3::hash(key.as_bytes()).to_hex();
    let path = dir.join("traces").join(format!("{}-{}", run.load, &hash[..8]));
    let options = WriterOptions { replace: true, ..WriterOptions::default() };
    synth::write_trace(generator, &params, None, &path, options)?;
    Ok(load(&path, Level::System)?.input)
}
