//! Sequences of decisions of a run left to itself, and how they compare.

use std::collections::BTreeMap;

use crate::prove::scores::Score;

/// A page counts as decided on at the same time if its rank differs by at most one quota of reclaim.
const RANK: usize = 32;

/// What was done to which instances, in order.
#[derive(Default)]
pub(super) struct Sequence {
    pub(super) recorded: Vec<u32>,
    pub(super) modelled: Vec<u32>,
}

/// By kind.
#[derive(Default)]
pub(super) struct Sequences {
    pub(super) evict: Sequence,
    pub(super) activate: Sequence,
    pub(super) deactivate: Sequence,
    pub(super) launder: Sequence,
}

impl Sequence {
    /// Instances that both have, at ranks that differ by at most [`RANK`] (`None`: at any rank; `Some(0)`: at the same);
    /// surplus counts as wrong.
    fn score(&self, name: String, rank: Option<usize>, bar: Option<f64>) -> Score {
        // An instance may come several times (a page laundered twice): n-th with n-th.
        let mut ranks: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (i, page) in self.modelled.iter().enumerate() {
            ranks.entry(*page).or_default().push(i);
        }
        ranks.values_mut().for_each(|r| r.reverse());
        let mut score = Score::new(name, bar);
        for (i, page) in self.recorded.iter().enumerate() {
            let at = ranks.get_mut(page).and_then(Vec::pop);
            let right = at.is_some_and(|j| rank.is_none_or(|most| i.abs_diff(j) <= most));
            score.count(right, || format!("rank {i}: the model's is {at:?}"));
        }
        for i in self.recorded.len()..self.modelled.len() {
            score.count(false, || format!("the model has {} more, from rank {i}", self.modelled.len() - i));
        }
        score
    }
}

impl Sequences {
    /// All scores; only evictions within a quota have a bar.
    pub(super) fn scores(&self, bar: Option<f64>) -> Vec<Score> {
        let mut all = Vec::new();
        let kinds = [
            ("evict", &self.evict),
            ("activate", &self.activate),
            ("deactivate", &self.deactivate),
            ("launder", &self.launder),
        ];
        for (name, seq) in kinds {
            let bar = if name == "evict" { bar } else { None };
            all.push(seq.score(format!("free run: {name}, rank within 32"), Some(RANK), bar));
            all.push(seq.score(format!("free run: {name}, same pages"), None, None));
            all.push(seq.score(format!("free run: {name}, exact rank"), Some(0), None));
        }
        all.retain(|s| s.of > 0);
        all
    }
}
