//! Outcome of the proofs that hold a model's single decisions against an event trace of a real kernel.

use serde::Serialize;

use super::Verdict;

/// Decisions of one kind in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// What was decided.
    pub name: String,
    /// Decisions that are the recorded ones.
    pub right: u64,
    /// All that were compared.
    pub of: u64,
    /// Least share, percent; `None` = reported only.
    pub bar_pct: Option<f64>,
    /// Why there is no bar, or a lower one.
    pub note: Option<String>,
    /// The first that differs.
    pub first_difference: Option<String>,
}

impl Score {
    /// A score without any decision yet.
    pub fn new(name: impl Into<String>, bar_pct: Option<f64>) -> Self {
        Self { name: name.into(), right: 0, of: 0, bar_pct, note: None, first_difference: None }
    }

    /// Count a decision; `why` is asked for the first wrong one.
    pub fn count(&mut self, right: bool, why: impl FnOnce() -> String) {
        self.of += 1;
        if right {
            self.right += 1;
        } else if self.first_difference.is_none() {
            self.first_difference = Some(why());
        }
    }

    /// Share of right ones, percent; `None` where nothing was compared.
    pub fn pct(&self) -> Option<f64> {
        (self.of > 0).then(|| self.right as f64 * 100.0 / self.of as f64)
    }

    /// At or above its bar, or without one, or without a decision.
    pub fn holds(&self) -> bool {
        match (self.bar_pct, self.pct()) {
            (Some(bar), Some(pct)) => pct >= bar,
            _ => true,
        }
    }
}

/// What was counted but not scored: inputs fed, inputs hidden from the trace, pages left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// What.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// A rule broken on purpose, and the score that has to notice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Broken {
    /// The rule, as broken.
    pub rule: String,
    /// The lowest of the run's scores that have a bar.
    pub score: String,
    /// Its value, percent.
    pub pct: f64,
    /// Its bar, percent.
    pub bar_pct: f64,
    /// It fell below the bar.
    pub noticed: bool,
}

/// Scores of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunScores {
    /// The run.
    pub run: String,
    /// Variant whose code decided.
    pub variant: String,
    /// By kind of decision.
    pub scores: Vec<Score>,
    /// What was fed from the trace.
    pub inputs: Vec<Tally>,
    /// What the trace does not show and was taken from its effects.
    pub hidden: Vec<Tally>,
    /// Rules broken on purpose.
    pub broken: Vec<Broken>,
}

impl RunScores {
    /// The lowest score with a bar, as what a broken rule comes to.
    pub fn worst(&self, rule: &str) -> Option<Broken> {
        let margin = |s: &Score| Some(s.pct()? - s.bar_pct?);
        let worst = self.scores.iter().filter(|s| margin(s).is_some());
        let worst = worst.min_by(|a, b| margin(a).unwrap_or(0.0).total_cmp(&margin(b).unwrap_or(0.0)))?;
        Some(Broken {
            rule: rule.to_owned(),
            score: worst.name.clone(),
            pct: worst.pct()?,
            bar_pct: worst.bar_pct?,
            noticed: !worst.holds(),
        })
    }

    fn holds(&self) -> bool {
        self.scores.iter().all(Score::holds)
    }
}

/// Outcome of a proof by scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreReport {
    /// Which proof.
    pub kind: &'static str,
    /// Runs compared.
    pub runs: Vec<RunScores>,
    /// Runs not compared.
    pub skipped: Vec<Verdict>,
}

impl ScoreReport {
    /// Puts compared runs into a report; `Err` says why a run was not compared.
    pub fn of(kind: &'static str, results: Vec<(String, Result<RunScores, String>)>) -> Self {
        let (mut runs, mut skipped) = (Vec::new(), Vec::new());
        for (run, result) in results {
            match result {
                Ok(scores) => runs.push(scores),
                Err(why) => skipped.push(Verdict { case: run, why }),
            }
        }
        Self { kind, runs, skipped }
    }

    /// Whether every bar of every run holds and every broken rule was noticed by some run: breaking it fails the proof. A
    /// folder without a run that could be compared proves nothing.
    pub fn holds(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(RunScores::holds) && self.unnoticed().is_empty()
    }

    /// Rules broken on purpose that no run noticed.
    pub fn unnoticed(&self) -> Vec<&str> {
        let all = || self.runs.iter().flat_map(|r| &r.broken);
        let mut rules: Vec<&str> = all().map(|b| b.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.retain(|rule| !all().any(|b| b.rule == *rule && b.noticed));
        rules
    }
}
