//! Proofs: the simulator held against recordings and oracles.

pub mod elevator;

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
