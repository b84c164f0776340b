//! Periods in which a device had something to do.

use std::collections::BTreeMap;

use serde::Serialize;

use super::seconds;

/// Disjoint periods from a dispatch to a completion, ns since the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    #[serde(skip)]
    periods: BTreeMap<u64, u64>,
}

impl Live {
    /// Adds a period; those that it touches become one with it.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.periods.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            self.periods.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.periods.insert(from, to);
    }

    /// Number, mean length (s), mean gap (s), share of the time since the first event in percent. As btt has it, a single
    /// period has no length and all of the time.
    pub fn figures(&self) -> (u64, f64, f64, f64) {
        let n = self.periods.len() as u64;
        let live: u64 = self.periods.iter().map(|(from, to)| to - from).sum();
        let end = self.periods.values().copied().max().unwrap_or(0);
        match n {
            0 => (0, 0.0, 0.0, 0.0),
            1 => (1, 0.0, 0.0, 100.0),
            _ => {
                let (live, time) = (seconds(live), seconds(end));
                (n, live / n as f64, (time - live) / (n - 1) as f64, 100.0 * (live / time))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_that_touch_become_one() {
        let mut l = Live::default();
        l.add(10, 20);
        l.add(30, 40);
        l.add(50, 60);
        l.add(20, 35);
        assert_eq!(l.periods.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>(), [(10, 40), (50, 60)]);
        l.add(0, 100);
        assert_eq!(l.periods.len(), 1);
    }
}
