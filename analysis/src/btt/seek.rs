//! Distances between one transfer and the next.

use std::collections::BTreeMap;

use serde::Serialize;

/// The most frequent distances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Distances, ascending, sectors.
    pub distances: Vec<u64>,
    /// How often each of them occurs.
    pub seeks: u64,
}

/// Distances of a sequence of transfers, sectors. Touching or overlapping the one before is no distance at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Seeks {
    /// Transfers.
    pub seeks: u64,
    /// Sum of the distances.
    pub sectors: f64,
    #[serde(skip)]
    counts: BTreeMap<u64, u64>,
    #[serde(skip)]
    last: (u64, u64),
    #[serde(skip)]
    first_distance: Option<u64>,
}

impl Seeks {
    pub(super) fn add(&mut self, start: u64, end: u64) {
        let (s, e) = self.last;
        let inside = |x: u64| (s..=e).contains(&x);
        let distance = if inside(start) || inside(end) {
            0
        } else if start > e {
            start - e
        } else {
            // Backwards btt measures from start to start.
            start.abs_diff(s)
        };
        self.last = (start, end);
        self.seeks += 1;
        self.sectors += distance as f64;
        *self.counts.entry(distance).or_default() += 1;
        self.first_distance.get_or_insert(distance);
    }

    /// Mean distance.
    pub fn mean(&self) -> f64 {
        self.sectors / self.seeks as f64
    }

    /// What btt prints as the median: the distance that at least half of all seeks have, else 0.
    pub fn btt_median(&self) -> u64 {
        let half = self.seeks / 2;
        let mut frequent = self.counts.iter().filter(|(_, n)| **n >= half).map(|(d, _)| *d);
        let one = frequent.next();
        match (one, frequent.next()) {
            // Several: btt takes the one at the root of its tree, for few distances the first that came.
            (Some(_), Some(_)) => self.first_distance.unwrap_or(0),
            (one, _) => one.unwrap_or(0),
        }
    }

    /// The distance that half of all seeks do not exceed.
    pub fn median(&self) -> u64 {
        let mut sum = 0;
        for (distance, n) in &self.counts {
            sum += n;
            if 2 * sum >= self.seeks {
                return *distance;
            }
        }
        0
    }

    /// Seeks of no distance.
    pub fn zero(&self) -> u64 {
        self.counts.get(&0).copied().unwrap_or(0)
    }

    /// The most frequent distances.
    pub fn mode(&self) -> Mode {
        let seeks = self.counts.values().copied().max().unwrap_or(0);
        let distances = self.counts.iter().filter(|(_, n)| **n == seeks).map(|(d, _)| *d).collect();
        Mode { distances, seeks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_is_no_distance_and_backwards_counts_from_the_start() {
        let mut s = Seeks::default();
        for (start, end) in [(100, 108), (108, 116), (90, 98), (20, 28)] {
            s.add(start, end);
        }
        assert_eq!(s.counts.into_iter().collect::<Vec<_>>(), [(0, 1), (18, 1), (70, 1), (100, 1)]);
    }

    #[test]
    fn the_printed_median_needs_half_of_all_seeks() {
        let mut s = Seeks::default();
        for start in [8u64, 1000, 2000, 3000, 4000] {
            s.add(start, start + 8);
        }
        // Distances 8, 984, 992, 992, 992.
        assert_eq!((s.btt_median(), s.median()), (992, 992));
        s.add(100_000, 100_008);
        s.add(200_000, 200_008);
        s.add(300_000, 300_008);
        assert_eq!((s.btt_median(), s.median()), (0, 992));
        assert_eq!(s.mode(), Mode { distances: vec![992], seeks: 3 });
    }
}
