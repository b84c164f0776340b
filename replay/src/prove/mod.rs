//! Proofs: the model held against things that this project did not write.

pub mod blocktrace;
pub mod elevator;
pub mod golden;
pub mod linux24;
pub mod lru;
pub mod nfsd;
pub mod order;
pub mod pipeline;
pub mod recordings;
pub mod schedulers;
pub mod scores;
mod traced;

use serde::Serialize;

/// Outcome of a proof by exact cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExactReport {
    /// Which proof.
    pub kind: &'static str,
    /// Cases found.
    pub cases: usize,
    /// Cases that agree in everything.
    pub passed: usize,
    /// Cases that differ.
    pub failed: Vec<Verdict>,
    /// Cases not run.
    pub skipped: Vec<Verdict>,
}

/// A case and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its name.
    pub case: String,
    /// The first difference, or why it was not run.
    pub why: String,
}

impl ExactReport {
    /// Whether the proof's bar, all cases exact, holds. A folder without a case proves nothing.
    pub fn holds(&self) -> bool {
        self.passed > 0 && self.failed.is_empty()
    }
}

/// One figure of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name with its unit.
    pub name: String,
    /// As recorded.
    pub recorded: f64,
    /// As simulated.
    pub simulated: f64,
    /// Error in percent of the recorded value (see the proof's documentation for small ones).
    pub error_pct: f64,
    /// Counts in the medians: not next to nothing on both sides.
    pub telling: bool,
}

/// All figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// The run.
    pub run: String,
    /// The variant that it was simulated under.
    pub variant: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Median of their errors, percent.
    pub median_error_pct: Option<f64>,
}

/// Outcome of a proof by figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureReport {
    /// Which proof.
    pub kind: &'static str,
    /// Runs compared.
    pub runs: Vec<RunFigures>,
    /// Runs not compared.
    pub skipped: Vec<Verdict>,
    /// Median error of all figures, percent; `None` without runs.
    pub median_error_pct: Option<f64>,
    /// Bar that the median has to stay under, percent.
    pub bar_pct: f64,
    /// Order of the kernels among each other, where the proof compares kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<order::OrderReport>,
}

impl FigureReport {
    /// Puts compared runs into a report; `Err` says why a run was not compared.
    pub fn of<W: Into<String>>(
        kind: &'static str,
        bar_pct: f64,
        results: Vec<(String, Result<RunFigures, W>)>,
    ) -> Self {
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for (run, result) in results {
            match result {
                Ok(figures) => runs.push(figures),
                Err(why) => skipped.push(Verdict { case: run, why: why.into() }),
            }
        }
        let median_error_pct = median_error(runs.iter().flat_map(|r: &RunFigures| &r.figures));
        Self { kind, runs, skipped, median_error_pct, bar_pct, order: None }
    }

    /// Whether the bar holds. A folder without a run that could be compared proves nothing.
    pub fn holds(&self) -> bool {
        self.median_error_pct.is_some_and(|m| m < self.bar_pct)
    }
}

/// Median error of the figures that tell something.
pub fn median_error<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<f64> {
    median(figures.filter(|f| f.telling).map(|f| f.error_pct).collect())
}

/// Median of a list; `None` if it is empty.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}
