//! From replay results to a report model.
//!
//! [`analyse`] reads a results directory (docs/RESULTS.md) and, where it is still there, the trace directory, and returns a
//! [`model::Report`]: figures, charts as data, findings in words and where all of it came from. Renderers live elsewhere.
//! polars is used in one module only; each metric is one file with one line in the registry.
//!
//! The same results give the same report, byte for byte.

pub mod btt;
mod by_factor;
mod causes;
mod cell;
pub mod claims;
mod compare;
pub mod diff;
mod error;
pub mod factors;
mod findings;
#[cfg(feature = "fixture")]
pub mod fixture;
mod frame;
mod json;
mod legend;
mod manifest;
mod matrix;
mod metrics;
pub mod model;
mod model_error;
mod mrc;
mod over_seeds;
mod recorded;
mod settings;
pub mod stats;
mod stays;
mod tables;
pub mod timeline;
mod tradeoffs;
mod verdict;
mod who;

pub use error::{Error, Result};

use by_factor::ByFactor;
use cell::CellData;
use compare::Rule;
use indexmap::IndexMap;
use kreplay_traces::store::TraceDir;
use manifest::{Entry, Manifest};
use matrix::Matrix;
use metrics::{CellHead, Collect, Context};
use model::{CellProvenance, Finding, Level, Provenance, Report, TraceReport, VariantModel};
use model_error::ModelErrors;
use over_seeds::Seeds;
use recorded::Recorded;
use std::path::{Path, PathBuf};
use tradeoffs::Tradeoffs;

/// How to analyse.
#[derive(Clone, Debug)]
pub struct Options {
    /// Variant to compare all others with in words; `None` compares with the best.
    pub reference: Option<String>,
    /// With one seed, differences below this many percent are called not distinguishable.
    pub tie_pct: f64,
    /// Where the trace directory is now, if it has moved; only for results of one trace.
    pub trace_dir: Option<PathBuf>,
    /// Figures of the Pareto set, by column id; empty for elapsed time, evenness and slowest reads.
    pub pareto: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { reference: None, tie_pct: compare::TIE_PCT, trace_dir: None, pareto: Vec::new() }
    }
}

/// Analyses the results in `results_dir` (or in its `results` folder).
///
/// # Errors
/// A directory that is not one of results, a missing or damaged table, a document of another version, no finished cell, or
/// an unknown reference; see [`Error`].
pub fn analyse(results_dir: &Path, options: &Options) -> Result<Report> {
    let manifest = Manifest::open(results_dir)?;
    let done: Vec<&Entry> = manifest.cells.iter().filter(|c| c.state == "done").collect();
    if done.is_empty() {
        return Err(no_cells(manifest));
    }
    let options = &Options { reference: reference(options.reference.as_deref(), &done)?, ..options.clone() };
    let measured = measure_all(results_dir, options)?;
    check_pareto(&options.pareto, &measured)?;
    let rule = Rule { tie_pct: options.tie_pct };
    let several = measured.len() > 1;
    let seeds = measured.iter().map(|m| m.seeds).min().unwrap_or(1);
    let models = cell::each_once(measured.iter().flat_map(|m| m.models.iter()));
    let (mut traces, mut verdict) = (Vec::new(), Vec::new());
    let (mut provenances, mut recordings) = (Vec::new(), Vec::new());
    for one in measured {
        let part = analyse_trace(one, options, rule);
        verdict.extend(part.verdict.into_iter().map(|mut f| {
            if several {
                f.text = format!("{}: {}", part.report.name, f.text);
            }
            f
        }));
        traces.push(part.report);
        provenances.extend(part.provenance);
        recordings.extend(part.recording);
    }
    let after = usize::from(!several && !verdict.is_empty());
    verdict.splice(after..after, lost_cells(&manifest));
    verdict.extend(same_settings(&provenances));
    verdict.extend(fixed_dirty_limit(&provenances));
    verdict.extend(unchecked(&models));
    verdict.push(Finding::new(Level::Note, rule.in_words(seeds)));
    provenances.extend(manifest.cells.iter().filter(|c| c.state != "done").map(cell::bare_provenance));
    let load = verdict::names(traces.iter().map(|t| matrix::shown(&t.name)));
    Ok(Report {
        schema: model::SCHEMA,
        kind: "kreplay-report".to_string(),
        title: format!("Replay of {load}"),
        question: question(&load, &done),
        legend: legend::legend(&provenances, &models),
        verdict,
        traces,
        provenance: Provenance {
            command: manifest.command.clone(),
            analysis_version: env!("CARGO_PKG_VERSION").to_string(),
            comparison_rule: rule.in_words(seeds),
            cells: provenances,
            models,
            recordings,
        },
    })
}

/// What one trace contributes to the report.
struct TracePart {
    report: TraceReport,
    verdict: Vec<Finding>,
    provenance: Vec<CellProvenance>,
    recording: Vec<(String, String)>,
}

/// A trace directory that the user points to.
struct Moved {
    dir: PathBuf,
    trace_id: String,
}

/// The directory of [`Options::trace_dir`], which must hold one of the traces that were replayed.
fn moved(dir: &Path, traces: &[&str]) -> Result<Moved> {
    let wrong = |why: String| Error::NotTheTrace { path: dir.to_owned(), why };
    let trace = TraceDir::open(dir).map_err(|e| wrong(e.to_string()))?;
    let trace_id = trace.manifest().trace_id.clone();
    if !traces.contains(&trace_id.as_str()) {
        let short = |id: &str| id.chars().take(16).collect::<String>();
        let replayed: Vec<String> = traces.iter().map(|t| short(t)).collect();
        return Err(wrong(format!("it holds trace {}, replayed was {}", short(&trace_id), replayed.join(", "))));
    }
    Ok(Moved { dir: dir.to_owned(), trace_id })
}

/// The cells of one trace, measured.
struct Measured {
    id: String,
    dir: PathBuf,
    metrics: Vec<Box<dyn Collect>>,
    heads: Vec<CellHead>,
    provenance: Vec<CellProvenance>,
    models: Vec<VariantModel>,
    findings: Vec<Finding>,
    recorded: Recorded,
    recorded_s: Option<f64>,
    /// The smallest number of seeds of a variant.
    seeds: usize,
}

impl Measured {
    fn name(&self) -> String {
        cell::short_name(&self.dir).unwrap_or_else(|| self.id.clone())
    }

    fn matrix(&self) -> Matrix {
        let value = |i: usize| self.metrics.iter().flat_map(|m| m.values(i)).collect();
        let values: Vec<Vec<Option<f64>>> = (0..self.heads.len()).map(value).collect();
        Matrix::new(self.metrics.iter().flat_map(|m| m.columns()).collect(), &self.heads, &values)
    }
}

/// Measures every finished cell of a results directory, trace by trace.
fn measure_all(results_dir: &Path, options: &Options) -> Result<Vec<Measured>> {
    let manifest = Manifest::open(results_dir)?;
    let done: Vec<&Entry> = manifest.cells.iter().filter(|c| c.state == "done").collect();
    if done.is_empty() {
        return Err(no_cells(manifest));
    }
    let mut by_trace: IndexMap<&str, Vec<&Entry>> = IndexMap::new();
    for entry in done {
        by_trace.entry(&entry.trace).or_default().push(entry);
    }
    let ids: Vec<&str> = by_trace.keys().copied().collect();
    let moved = options.trace_dir.as_deref().map(|dir| moved(dir, &ids)).transpose()?;
    by_trace.values().map(|entries| measure(&manifest, entries, moved.as_ref())).collect()
}

fn no_cells(manifest: Manifest) -> Error {
    let count = |state: &str| manifest.cells.iter().filter(|c| c.state == state).count();
    Error::NoCells { failed: count("failed"), skipped: count("skipped"), path: manifest.dir }
}

fn measure(manifest: &Manifest, entries: &[&Entry], moved: Option<&Moved>) -> Result<Measured> {
    let seeds = seeds_per_variant(entries);
    let places = places(entries)?;
    let several = places.iter().any(|p| *p > 0);
    let mut metrics = metrics::registry();
    let (mut heads, mut provenance, mut happened) = (Vec::new(), Vec::new(), Vec::new());
    let mut recorded: Option<(Recorded, PathBuf)> = None;
    let mut recorded_s = None;
    for (entry, place) in entries.iter().zip(places) {
        let (mut cell, origin) = CellData::open(entry)?;
        if several {
            cell.label = format!("{} #{}", cell.variant, cell.seed);
        }
        if recorded.is_none() {
            let known = || cell.trace_path.as_deref().map(|p| locate(manifest, p));
            let dir = moved.filter(|m| m.trace_id == entry.trace).map(|m| m.dir.clone()).or_else(known);
            let read = Recorded::open(dir.as_deref(), &entry.trace);
            recorded_s = read.elapsed_s(cell.foreground().map(|t| t.tid));
            recorded = Some((read, dir.unwrap_or_default()));
        }
        let Some((recorded, _)) = &recorded else { continue };
        for metric in &mut metrics {
            metric.measure(&cell, recorded, place)?;
        }
        happened.push(findings::of_cell(&cell)?);
        heads.push(CellHead {
            label: cell.variant.clone(),
            place,
            seed: cell.seed,
            variant: cell.variant,
            finished: cell.finished,
        });
        provenance.push(origin);
    }
    let (recorded, dir) = recorded.unwrap_or_default();
    let mut findings = findings::over_cells(&happened);
    findings.extend(recorded.findings.iter().cloned());
    findings.sort_by_key(|f| f.level);
    Ok(Measured {
        id: entries[0].trace.clone(),
        dir,
        metrics,
        heads,
        provenance,
        models: cell::models_of(entries.iter().copied())?,
        findings,
        recorded,
        recorded_s,
        seeds,
    })
}

/// Which run stands for its variant, and which place the others have; see [`over_seeds::places`].
fn places(entries: &[&Entry]) -> Result<Vec<usize>> {
    let mut runs = Vec::new();
    for entry in entries {
        runs.push((entry.variant.as_str(), over_seeds::ranked_by(&CellData::open(entry)?.0)));
    }
    Ok(over_seeds::places(&runs))
}

fn analyse_trace(measured: Measured, options: &Options, rule: Rule) -> TracePart {
    let (matrix, name) = (measured.matrix(), measured.name());
    let Measured { id, metrics, heads, provenance, models, findings, recorded, recorded_s, .. } = measured;
    let reference = options.reference.as_deref();
    let runs = heads.iter().map(|h| h.place + 1).max().unwrap_or(1);
    let at = |place: usize| heads.iter().filter(|h| h.place == place).cloned().collect::<Vec<_>>();
    let cells: Vec<Vec<CellHead>> = (0..runs).map(at).collect();
    let context = |cells| Context { cells, recorded: &recorded, matrix: &matrix, reference, rule };
    let contexts: Vec<Context<'_>> = cells.iter().map(|c| context(c)).collect();
    let seeds = Seeds::new(&heads, runs > 1);
    let (weighed, undominated) =
        Tradeoffs { matrix: &matrix, cells: &provenance, chosen: &options.pareto, rule }.section();
    let errors = ModelErrors { models: &models, own_pct: verdict::own_error_pct(&matrix, recorded_s) };
    let settings = settings::settings(&matrix, &provenance);
    let (changed, by_factor) = ByFactor { matrix: &matrix, settings: &settings, rule, errors }.section();
    let first = changed.into_iter().chain(weighed);
    let mut sections: Vec<_> = first.chain(metrics.iter().filter_map(|m| m.section(&contexts, &seeds))).collect();
    causes::into_why(&mut sections, &contexts[0]);
    let evidence = verdict::Evidence {
        matrix: &matrix,
        sections: &sections,
        recorded_s,
        reference,
        rule,
        errors,
        by_factor: &by_factor,
    };
    // The answer first, then what stands against it; single events are under findings.
    let mut verdict = evidence.verdict();
    verdict.extend(undominated);
    let problems = findings.iter().filter(|f| f.level == Level::Problem && f.time_s.is_none()).cloned();
    let after = usize::from(!verdict.is_empty());
    verdict.splice(after..after, problems);
    let report = TraceReport { name, id, matrix: matrix.table(&seeds), sections, findings };
    TracePart { report, verdict, provenance, recording: recorded.provenance }
}

/// Where a trace directory is: as the replay knew it, or relative to the results.
fn locate(manifest: &Manifest, path: &Path) -> PathBuf {
    let candidates = [path.to_path_buf(), manifest.dir.join(path), manifest.dir.join("..").join(path)];
    candidates.iter().find(|p| p.is_dir()).unwrap_or(&candidates[0]).clone()
}

/// The smallest number of seeds that a variant has.
fn seeds_per_variant(entries: &[&Entry]) -> usize {
    let mut seeds: IndexMap<&str, usize> = IndexMap::new();
    for entry in entries {
        *seeds.entry(&entry.variant).or_default() += 1;
    }
    seeds.values().copied().min().unwrap_or(1)
}

/// The full name of the reference.
fn reference(reference: Option<&str>, done: &[&Entry]) -> Result<Option<String>> {
    let Some(name) = reference else { return Ok(None) };
    if let Some(found) = matrix::named(done.iter().map(|c| c.variant.as_str()), name) {
        return Ok(Some(found.to_string()));
    }
    let mut known: Vec<&str> = done.iter().map(|c| c.variant.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    Err(Error::NoReference { name: name.to_string(), known: known.join(", ") })
}

fn check_pareto(chosen: &[String], measured: &[Measured]) -> Result<()> {
    let columns = || measured.iter().flat_map(|m| m.metrics.iter().flat_map(|c| c.columns()));
    let weighable = |c: &model::Column| c.better != model::Better::Neither;
    let Some(name) = chosen.iter().find(|n| !columns().any(|c| c.id == **n && weighable(&c))) else { return Ok(()) };
    let mut known: Vec<String> = columns().filter(weighable).map(|c| c.id).collect();
    known.sort_unstable();
    known.dedup();
    Err(Error::NoFigure { name: name.clone(), known: known.join(", ") })
}

/// Cells that are missing from the comparison.
fn lost_cells(manifest: &Manifest) -> Vec<Finding> {
    let lost = manifest.cells.iter().filter(|c| c.state != "done");
    lost.map(|c| {
        let why = c.why.as_deref().map_or(String::new(), |w| format!(": {w}"));
        let level = if c.state == "failed" { Level::Problem } else { Level::Warning };
        Finding::new(
            level,
            format!(
                "{} with seed {} is not in this comparison, it {}{why}.",
                matrix::shown(&c.variant),
                c.seed,
                ended(&c.state)
            ),
        )
    })
    .collect()
}

fn ended(state: &str) -> String {
    match state {
        "failed" => "failed".to_string(),
        "skipped" => "was skipped".to_string(),
        other => format!("is in state \"{other}\""),
    }
}

/// Warnings about variants that are one machine under several names: they can't differ, which is no finding.
fn same_settings(cells: &[model::CellProvenance]) -> Vec<Finding> {
    let mut names: IndexMap<&[(String, String)], Vec<&str>> = IndexMap::new();
    for cell in cells.iter().filter(|c| !c.config.is_empty()) {
        let of = names.entry(&cell.config).or_default();
        if !of.contains(&cell.variant.as_str()) {
            of.push(&cell.variant);
        }
    }
    let several = names.into_values().filter(|of| of.len() > 1);
    several
        .map(|of| {
            let text = format!(
                "{} have the same settings, so they cannot differ: what is laid over them (a profile, the recorded machine) sets what they would differ in.",
                verdict::names(of.into_iter().map(matrix::shown))
            );
            Finding::new(Level::Warning, text)
        })
        .collect()
}

/// A warning where memory changes and an absolute limit on dirty pages, as recordings bring it, does not.
fn fixed_dirty_limit(cells: &[model::CellProvenance]) -> Option<Finding> {
    const LIMITS: [&str; 2] = ["writeback.balanced.device-limit-kib", "writeback.balanced.dirty-kib"];
    let of = |cell: &model::CellProvenance, key: &str| {
        cell.config.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone()).unwrap_or_default()
    };
    let memory = |cell: &model::CellProvenance| (of(cell, "machine.memory-limit"), of(cell, "machine.ram"));
    let first = cells.iter().find(|c| !c.config.is_empty())?;
    let several = cells.iter().filter(|c| !c.config.is_empty()).any(|c| memory(c) != memory(first));
    let fixed = LIMITS.into_iter().find(|key| {
        let limit = of(first, key);
        let same = |c: &model::CellProvenance| c.config.is_empty() || of(c, key) == limit;
        !matches!(limit.as_str(), "" | "0") && cells.iter().all(same)
    })?;
    several.then(|| {
        let text = format!(
            "Memory differs, but the limit on dirty pages is the same under all of them ({fixed} = {} KiB): a machine whose limit is a share of its memory would have another. Set it along with the memory to compare such machines.",
            of(first, fixed)
        );
        Finding::new(Level::Warning, text)
    })
}

/// A warning about variants that were never checked against anything.
fn unchecked(models: &[VariantModel]) -> Option<Finding> {
    let bare: Vec<String> = models.iter().filter(|m| m.is_unchecked()).map(|m| matrix::shown(&m.variant)).collect();
    (!bare.is_empty()).then(|| {
        let text = format!(
            "Not checked against any real kernel or recording: {}. Read their figures as what the model says.",
            verdict::names(bare.into_iter())
        );
        Finding::new(Level::Warning, text)
    })
}

fn question(load: &str, done: &[&Entry]) -> String {
    let mut variants: Vec<String> = Vec::new();
    for entry in done {
        if !variants.contains(&matrix::shown(&entry.variant)) {
            variants.push(matrix::shown(&entry.variant));
        }
    }
    let count = variants.len();
    let names = verdict::names(variants.into_iter());
    if count == 1 {
        format!("How would the recorded load {load} have run under {names}?")
    } else {
        format!("Under which of {count} variants would the recorded load {load} have run best: {names}?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dirty_limit_that_stays_while_memory_changes_is_said() {
        let cell = |memory: &str, limit: &str| model::CellProvenance {
            config: [("machine.memory-limit", memory), ("writeback.balanced.device-limit-kib", limit)]
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .to_vec(),
            ..model::CellProvenance::default()
        };
        let said = fixed_dirty_limit(&[cell("64MiB", "13107"), cell("32MiB", "13107")]);
        assert!(said.is_some_and(|f| f.text.contains("13107 KiB")));
        assert!(fixed_dirty_limit(&[cell("64MiB", "13107"), cell("32MiB", "6553")]).is_none(), "it was changed too");
        assert!(fixed_dirty_limit(&[cell("64MiB", "0"), cell("32MiB", "0")]).is_none(), "a share of memory");
        assert!(fixed_dirty_limit(&[cell("64MiB", "13107"), cell("64MiB", "13107")]).is_none(), "one memory size");
    }

    #[test]
    fn one_machine_under_two_names_is_said() {
        let cell = |variant: &str, policy: &str| model::CellProvenance {
            variant: variant.to_string(),
            config: vec![("elevator.policy".to_string(), policy.to_string())],
            ..model::CellProvenance::default()
        };
        let cells = [cell("a", "bfq"), cell("b", "bfq"), cell("a", "bfq"), cell("c", "none")];
        let said = same_settings(&cells);
        assert_eq!(said.len(), 1);
        assert!(said[0].text.starts_with("a and b have the same settings"), "{}", said[0].text);
        assert!(same_settings(&cells[1..]).len() == 1 && same_settings(&cells[2..]).is_empty());
    }
}
