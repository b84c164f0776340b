//! From finished cells to the answer: figures, verdicts, causes.

use super::blame::{Facts, sentence};
use super::figures::{Grid, Take};
use super::onset::{Onset, ReadingWrite, ReadingWrites, reading_writes};
use super::registry::{Claim, Registry, Run, named};
use super::starve::{Episode, Link, chain, episodes};
use super::verdict::{Tested, Verdict, judge};
use super::view::View;
use crate::cell::{models_of, parts_of, seconds};
use crate::error::Result;
use crate::manifest::{Entry, Manifest};
use crate::model::{Definition, Unit, VariantModel};
use crate::stats::median;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A cell of the results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId {
    /// Trace id.
    pub trace: String,
    /// Name of the resolved variant.
    pub variant: String,
    /// Seed.
    pub seed: i64,
}

/// Where the cells of runs are: by run and by variant as the run names it.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Cells, a seed each.
    pub found: BTreeMap<(String, String), Vec<CellId>>,
    /// Why a run has no cells under a variant.
    pub missing: BTreeMap<(String, String), String>,
}

/// A figure's value.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureValue {
    /// Name in conditions.
    pub name: String,
    /// Variant, or `grid`.
    pub variant: String,
    /// What was taken.
    pub take: String,
    /// Unit.
    pub unit: Unit,
    /// Median over the seeds.
    pub value: Option<f64>,
    /// Least and largest over the seeds.
    pub range: Option<(f64, f64)>,
    /// The value of each seed, in their order; empty where there are none.
    pub by_seed: Vec<Option<f64>>,
    /// What was reported.
    pub reported: Vec<f64>,
    /// Why there is no value.
    pub missing: Option<String>,
}

/// A measurement on a real kernel beside what the model says.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Kernel.
    pub variant: String,
    /// What was taken.
    pub take: String,
    /// Unit.
    pub unit: Unit,
    /// Measured.
    pub measured: Vec<f64>,
    /// Simulated.
    pub simulated: Option<f64>,
    /// Recording.
    pub origin: String,
}

/// The verdict with another value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The change.
    pub change: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The conditions of the band with their values.
    pub band: Vec<Tested>,
}

/// A claim's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Id.
    pub id: String,
    /// What is claimed.
    pub title: String,
    /// What was reported.
    pub reported: String,
    /// How the figures are defined.
    pub definition: String,
    /// Verdict.
    pub verdict: Verdict,
    /// How many seeds by themselves give this verdict, of how many; none where there is one seed.
    pub alone: Option<(usize, usize)>,
    /// Figures.
    pub figures: Vec<FigureValue>,
    /// Band.
    pub band: Vec<Tested>,
    /// Direction.
    pub direction: Vec<Tested>,
    /// The cause.
    pub why: String,
    /// Real kernels.
    pub beside: Vec<Pair>,
    /// What is swept, and the verdicts.
    pub sensitivity: Option<(String, Vec<Swept>)>,
}

/// A grid with one of its figures.
#[derive(Clone, Debug)]
pub(crate) struct GridFacts {
    pub claim: String,
    pub take: Take,
    pub grid: Grid,
}

/// Where reads begin in a cell.
#[derive(Clone, Debug)]
pub(crate) struct OnsetFacts {
    pub run: String,
    pub label: String,
    pub onset: Option<Onset>,
    pub writes: Vec<ReadingWrite>,
    pub count: usize,
    pub metadata_only: usize,
    pub seconds: Vec<f64>,
    pub series: Vec<(&'static str, Vec<f64>)>,
}

/// Episodes of a cell's clients, and who was served meanwhile in the longest.
#[derive(Clone, Debug)]
pub(crate) struct StarveFacts {
    pub run: String,
    pub label: String,
    pub names: BTreeMap<i64, String>,
    pub episodes: Vec<Episode>,
    pub chain: Vec<Link>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// A row a claim.
    pub rows: Vec<Row>,
    pub(crate) grids: Vec<GridFacts>,
    pub(crate) onsets: Vec<OnsetFacts>,
    pub(crate) starved: Vec<StarveFacts>,
    /// What the models of the variants cover and were held against.
    pub(crate) models: Vec<VariantModel>,
    /// What the parts of the variants' names stand for.
    pub(crate) parts: Vec<Definition>,
    /// What the runs are: load, parameters and machine, by their names.
    pub(crate) loads: Vec<Definition>,
}

/// What is wanted of a cell.
#[derive(Default)]
struct Wanted {
    /// The run that it was first wanted for.
    run: String,
    takes: Vec<Take>,
    /// Claims (by number) whose cause it is part of.
    whys: Vec<usize>,
    onset: bool,
    starved: bool,
}

/// What a cell gave.
#[derive(Default)]
struct Given {
    values: BTreeMap<Take, Option<f64>>,
    whys: BTreeMap<usize, Facts>,
    onset: Option<OnsetFacts>,
    starved: Option<StarveFacts>,
}

/// Evaluates claims over the cells below `results_dir`.
///
/// # Errors
/// Results that are missing, damaged or of another shape. A claim that lacks cells is a row that says so.
pub fn evaluate(registry: &Registry, claims: &[&Claim], results_dir: &Path, cells: &Cells) -> Result<Answer> {
    let manifest = Manifest::open(results_dir)?;
    let entries: BTreeMap<CellId, &Entry> = manifest
        .cells
        .iter()
        .map(|e| (CellId { trace: e.trace.clone(), variant: e.variant.clone(), seed: e.seed }, e))
        .collect();
    let mut session = Session { registry, claims, cells, entries, given: BTreeMap::new() };
    session.read()?;
    let used = || session.given.keys().filter_map(|id| session.entries.get(id).copied());
    let (models, parts) = (models_of(used())?, parts_of(used())?);
    Ok(Answer { models, parts, ..session.answer() })
}

struct Session<'a> {
    registry: &'a Registry,
    claims: &'a [&'a Claim],
    cells: &'a Cells,
    entries: BTreeMap<CellId, &'a Entry>,
    given: BTreeMap<CellId, Given>,
}

impl Session<'_> {
    fn located(&self, run: &str, variant: &str) -> std::result::Result<&[CellId], String> {
        let key = (run.to_string(), variant.to_string());
        if let Some(why) = self.cells.missing.get(&key) {
            return Err(why.clone());
        }
        self.cells.found.get(&key).map(Vec::as_slice).ok_or_else(|| format!("{variant} was not run with {run}"))
    }

    /// Cells of a figure: of its variant, or all of its grid.
    fn cells_of(&self, run: &str, variant: Option<&str>) -> Vec<&CellId> {
        let names = match variant {
            Some(v) => vec![v.to_string()],
            None => self.registry.run(run).map_or_else(Vec::new, Run::names),
        };
        names.iter().filter_map(|n| self.located(run, n).ok()).flatten().collect()
    }

    fn wanted(&self) -> BTreeMap<CellId, Wanted> {
        let mut wanted: BTreeMap<CellId, Wanted> = BTreeMap::new();
        for (number, claim) in self.claims.iter().enumerate() {
            for (figure, take) in &claim.figures {
                let run = figure.run.as_deref().unwrap_or_default();
                let explained = claim
                    .why
                    .as_ref()
                    .is_some_and(|w| w.figure == figure.name || w.against.as_deref() == Some(&figure.name));
                for id in self.cells_of(run, figure.variant.as_deref()) {
                    let w = wanted.entry(id.clone()).or_default();
                    if w.run.is_empty() {
                        w.run = run.to_string();
                    }
                    w.takes.push(take.of_cells());
                    if explained && !take.of_grid() {
                        w.whys.push(number);
                    }
                    w.onset |= claim.samples && !take.of_grid();
                    w.starved |= take.kind().name.starts_with("episode-");
                }
            }
            for (beside, take) in &claim.beside {
                for id in self.cells_of(&beside.run, Some(&beside.variant)) {
                    wanted.entry(id.clone()).or_default().takes.push(take.clone());
                }
            }
            if let Some(s) = &claim.sensitivity {
                for (_, take) in &claim.figures {
                    for id in self.cells_of(&s.run, None) {
                        wanted.entry(id.clone()).or_default().takes.push(take.of_cells());
                    }
                }
            }
        }
        wanted
    }

    /// Reads every cell that is needed, once, on as many threads as there are processors.
    fn read(&mut self) -> Result<()> {
        let wanted: Vec<(CellId, Wanted)> = self.wanted().into_iter().collect();
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<(usize, Result<Given>)>> = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len().max(1));
        let this = &*self;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some((id, w)) = wanted.get(i) else { return };
                        let Some(entry) = this.entries.get(id).filter(|e| e.state == "done") else { continue };
                        let given = this.take(entry, w);
                        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, given));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_by_key(|(i, _)| *i);
        for (i, given) in results {
            self.given.insert(wanted[i].0.clone(), given?);
        }
        Ok(())
    }

    fn take(&self, entry: &Entry, wanted: &Wanted) -> Result<Given> {
        let view = View::open(entry)?;
        let mut given = Given::default();
        for take in &wanted.takes {
            if !given.values.contains_key(take) {
                given.values.insert(take.clone(), take.in_cell(&view)?);
            }
        }
        for &number in &wanted.whys {
            if let Some(why) = &self.claims[number].why {
                given.whys.insert(number, Facts::of(&view, why)?);
            }
        }
        if wanted.onset {
            given.onset = Some(onset_facts(&view, &wanted.run)?);
        }
        if wanted.starved {
            given.starved = Some(starve_facts(&view, &wanted.run)?);
        }
        Ok(given)
    }

    fn values(&self, ids: &[CellId], take: &Take) -> std::result::Result<Vec<f64>, String> {
        let mut values = Vec::new();
        for id in ids {
            let Some(given) = self.given.get(id) else {
                let why = self.entries.get(id).and_then(|e| e.why.clone());
                return Err(why.unwrap_or_else(|| "the cell was not simulated".to_string()));
            };
            values.extend(given.values.get(take).copied().flatten());
        }
        if values.is_empty() { Err(format!("the run has no {}", take.text())) } else { Ok(values) }
    }

    fn grid(&self, run: &Run, take: &Take) -> Grid {
        let cell = |variant: &str, column: &str| -> Vec<Option<f64>> {
            let name = named(variant, column);
            let ids = self.located(&run.id, &name).unwrap_or_default();
            ids.iter().map(|id| self.given.get(id).and_then(|g| g.values.get(take).copied().flatten())).collect()
        };
        Grid {
            variants: run.variants.clone(),
            columns: run.columns.clone(),
            values: run.variants.iter().map(|v| run.columns.iter().map(|c| cell(v, c)).collect()).collect(),
        }
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        for (number, claim) in self.claims.iter().enumerate() {
            answer.rows.push(self.row(number, claim));
            let mut seen: Vec<Take> = Vec::new();
            for (figure, take) in claim.figures.iter().filter(|(_, t)| t.of_grid()) {
                let of = take.of_cells();
                if let Some(run) = self.registry.run(figure.run.as_deref().unwrap_or_default())
                    && !seen.contains(&of)
                {
                    seen.push(of.clone());
                    answer.grids.push(GridFacts { claim: claim.id.clone(), grid: self.grid(run, &of), take: of });
                }
            }
        }
        answer.loads = self.registry.runs.iter().map(load_of).collect();
        let onset = |g: &Given| g.onset.clone();
        answer.onsets = self.given.values().filter_map(onset).collect();
        answer.onsets.sort_by(|a, b| (a.onset.is_none(), &a.label).cmp(&(b.onset.is_none(), &b.label)));
        answer.starved = self.given.values().filter_map(|g| g.starved.clone()).collect();
        answer
    }

    fn row(&self, number: usize, claim: &Claim) -> Row {
        let figures: Vec<FigureValue> = claim.figures.iter().map(|(f, take)| self.figure(f, take)).collect();
        let value = |name: &str| figures.iter().find(|f| f.name == name).and_then(|f| f.value);
        let (verdict, band, direction) = judge(claim, &value);
        Row {
            id: claim.id.clone(),
            title: claim.title.clone(),
            reported: claim.reported.clone(),
            definition: claim.definition.clone(),
            verdict,
            alone: alone(claim, &figures, verdict),
            why: self.why(number, claim, &figures),
            band,
            direction,
            beside: claim.beside.iter().map(|(b, take)| self.pair(b, take)).collect(),
            sensitivity: claim.sensitivity.as_ref().map(|s| (s.about.clone(), self.swept(claim, &s.run))),
            figures,
        }
    }

    fn figure(&self, spec: &super::registry::FigureSpec, take: &Take) -> FigureValue {
        let run = spec.run.as_deref().unwrap_or_default();
        let mut figure = FigureValue {
            name: spec.name.clone(),
            variant: spec.variant.clone().unwrap_or_else(|| "grid".to_string()),
            take: take.text(),
            unit: take.kind().unit,
            value: None,
            range: None,
            by_seed: Vec::new(),
            reported: spec.reported.clone(),
            missing: None,
        };
        match &spec.variant {
            Some(variant) => {
                let ids = self.located(run, variant).unwrap_or_default();
                match self.located(run, variant).and_then(|ids| self.values(ids, take)) {
                    Ok(values) => {
                        figure.by_seed =
                            ids.iter().map(|id| self.given.get(id)?.values.get(take).copied().flatten()).collect();
                        figure.value = median(&values);
                        let (low, high) =
                            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
                        figure.range = (values.len() > 1).then_some((low, high));
                    }
                    Err(why) => figure.missing = Some(why),
                }
            }
            None => {
                let grid = self.registry.run(run).map(|r| self.grid(r, &take.of_cells()));
                figure.value = grid.and_then(|g| take.in_grid(&g));
                if figure.value.is_none() {
                    figure.missing = Some("the grid lacks too many cells".to_string());
                }
            }
        }
        figure
    }

    fn pair(&self, beside: &super::registry::Beside, take: &Take) -> Pair {
        let values =
            self.located(&beside.run, &beside.variant).map(<[CellId]>::to_vec).and_then(|ids| self.values(&ids, take));
        Pair {
            variant: beside.variant.clone(),
            take: take.text(),
            unit: take.kind().unit,
            measured: beside.measured.clone(),
            simulated: values.ok().and_then(|v| median(&v)),
            origin: beside.origin.clone(),
        }
    }

    /// The claim's verdict with each change of the sweep: a figure of the claim's own run is taken from the sweep's cell of the
    /// same variant; one that names another run stays what it is.
    fn swept(&self, claim: &Claim, run: &str) -> Vec<Swept> {
        let Some(run) = self.registry.run(run) else { return Vec::new() };
        run.columns
            .iter()
            .map(|change| {
                let value = |name: &str| {
                    let (figure, take) = claim.figures.iter().find(|(f, _)| f.name == name)?;
                    if figure.run.as_deref() != Some(claim.run.as_str()) {
                        return self.figure(figure, take).value;
                    }
                    let variant = named(figure.variant.as_deref()?, change);
                    let ids = self.located(&run.id, &variant).ok()?;
                    median(&self.values(ids, take).ok()?)
                };
                let (verdict, band, _) = judge(claim, &value);
                Swept { change: change.clone(), verdict, band }
            })
            .collect()
    }

    fn why(&self, number: usize, claim: &Claim, figures: &[FigureValue]) -> String {
        let missing: Vec<&str> = figures.iter().filter_map(|f| f.missing.as_deref()).collect();
        if let Some(first) = missing.first() {
            let more =
                if missing.len() > 1 { format!(" (and {} more figures)", missing.len() - 1) } else { String::new() };
            return format!("not run: {first}{more}.");
        }
        let Some(why) = &claim.why else { return String::new() };
        let facts = |name: &str| -> Option<(String, Facts)> {
            let (figure, _) = claim.figures.iter().find(|(f, _)| f.name == name)?;
            let variant = figure.variant.as_deref()?;
            let ids = self.located(figure.run.as_deref()?, variant).ok()?;
            let all: Vec<&Facts> = ids.iter().filter_map(|id| self.given.get(id)?.whys.get(&number)).collect();
            let several = claim.figures.iter().filter(|(f, _)| f.variant.as_deref() == Some(variant)).count() > 1;
            let shown = if several { format!("{variant} ({name})") } else { variant.to_string() };
            Some((shown, Facts::mean(&all)?))
        };
        if let Some((name, a)) = facts(&why.figure) {
            let against = why.against.as_deref().and_then(facts);
            return sentence(why, &name, &a, against.as_ref().map(|(n, f)| (n.as_str(), f)));
        }
        grid_sentence(claim, figures)
    }
}

/// How many seeds, each taken by itself, give a verdict, and how many there are. A figure without seeds (a grid's) is the same for all.
fn alone(claim: &Claim, figures: &[FigureValue], verdict: Verdict) -> Option<(usize, usize)> {
    let seeds = figures.iter().map(|f| f.by_seed.len()).max().filter(|n| *n > 1)?;
    let with = |seed: usize| {
        let value = |name: &str| {
            let figure = figures.iter().find(|f| f.name == name)?;
            if figure.by_seed.len() == seeds { figure.by_seed[seed] } else { figure.value }
        };
        judge(claim, &value).0
    };
    Some(((0..seeds).filter(|seed| with(*seed) == verdict).count(), seeds))
}

/// The cause of a grid's claim: what explains how much.
fn grid_sentence(claim: &Claim, figures: &[FigureValue]) -> String {
    let mut shares: Vec<(&str, f64)> = claim
        .figures
        .iter()
        .zip(figures)
        .filter(|((_, take), _)| take.kind().name == "variance-pct")
        .filter_map(|(_, f)| Some((f.name.as_str(), f.value?)))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> = shares.iter().map(|(name, v)| format!("{} {v:.0} %", name.replace('_', " "))).collect();
    format!("of the variance over the grid: {}.", words.join(", "))
}

/// Most writes that are listed.
const WRITES: usize = 10;

fn label(view: &View, run: &str) -> String {
    format!("{run}: {} #{}", view.cell.variant, view.cell.seed)
}

/// A run in words: the load with its parameters, and the machine.
fn load_of(run: &Run) -> Definition {
    let with = if run.with.is_empty() { String::new() } else { format!(", on {}", run.with.join(" and ")) };
    Definition { term: run.id.clone(), meaning: format!("load {} {}{with}", run.load, run.params.join(" ")) }
}

fn onset_facts(view: &View, run: &str) -> Result<OnsetFacts> {
    let ReadingWrites { first: writes, count, metadata_only } = reading_writes(view, WRITES)?;
    let mut series = Vec::new();
    for column in ["bi_kib_s", "bo_kib_s", "cache_kib"] {
        series.push((column, view.samples(column)?.iter().map(|v| *v as f64).collect()));
    }
    Ok(OnsetFacts {
        run: run.to_string(),
        label: label(view, run),
        onset: Onset::find(view)?,
        writes,
        count,
        metadata_only,
        seconds: view.samples("time_ns")?.iter().map(|t| seconds(*t)).collect(),
        series,
    })
}

fn starve_facts(view: &View, run: &str) -> Result<StarveFacts> {
    let mut episodes = episodes(view)?;
    let chain = episodes.first().map(|e| chain(view, e)).transpose()?.unwrap_or_default();
    episodes.truncate(WRITES);
    let names = view.cell.tasks.iter().map(|t| (t.task, t.client.clone().unwrap_or_else(|| t.name.clone()))).collect();
    Ok(StarveFacts { run: run.to_string(), label: label(view, run), names, episodes, chain })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_one_seed_alone_does_not_give_says_so() {
        let registry = Registry::parse(&[(
            "t.toml",
            r#"
[[run]]
id = "r"
load = "fileserver"
variants = ["linux-2.4.10"]
seeds = 3

[[claim]]
id = "T"
title = "it is above 2"
reported = "3"
run = "r"
take = "last-over-first"
figures = [{ name = "x", variant = "linux-2.4.10" }]
holds = ["x > 2"]
"#,
        )])
        .unwrap();
        let claim = registry.select(&[]).unwrap()[0];
        let figure = |by_seed: &[f64]| FigureValue {
            name: "x".into(),
            variant: "linux-2.4.10".into(),
            take: String::new(),
            unit: Unit::Ratio,
            value: median(by_seed),
            range: None,
            by_seed: by_seed.iter().copied().map(Some).collect(),
            reported: Vec::new(),
            missing: None,
        };
        assert_eq!(alone(claim, &[figure(&[1.0, 3.0, 4.0])], Verdict::Reproduced), Some((2, 3)));
        assert_eq!(alone(claim, &[figure(&[3.0])], Verdict::Reproduced), None, "one seed has no others");
    }
}
