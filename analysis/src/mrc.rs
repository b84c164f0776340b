//! Miss ratios of an LRU cache over all sizes, by one pass over the page references.
//!
//! The stack distance of a reference is the number of different pages since the last reference to the same page; an LRU
//! cache of n pages misses exactly the references with a distance above n (R. L. Mattson et al., IBM Systems Journal 9,
//! 1970). Distances are counted by a Fenwick tree over the times of last use, O(log n) a reference. Longer streams are
//! sampled by page: a page takes part if its hash falls below a threshold, distances and counts are scaled up (SHARDS with
//! a fixed rate and count correction; C. A. Waldspurger et al., FAST 2015).

use rustc_hash::FxHashMap;

/// References that are counted exactly; of more a sample of about as many.
pub(crate) const EXACT: usize = 3_000_000;

/// A miss-ratio curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// (cache size in pages, share of references that miss), by size, from 1 page to the whole footprint.
    pub points: Vec<(u64, f64)>,
    /// References.
    pub references: u64,
    /// Different pages: what no cache can avoid missing once.
    pub pages: u64,
    /// Share of the pages that took part, 1 if all.
    pub sampled: f64,
}

/// A hash that spreads pages evenly (splitmix64's finaliser, S. Vigna).
pub(crate) fn spread(page: u64) -> u64 {
    let mut x = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The curve of the references that `feed` passes to its argument, in order; `count` says how many there will be. `None` if
/// there are none.
pub(crate) fn curve(count: u64, sizes: usize, feed: impl FnOnce(&mut dyn FnMut(u64))) -> Option<Curve> {
    let rate = if count > EXACT as u64 { EXACT as f64 / count as f64 } else { 1.0 };
    let limit = if rate < 1.0 { (rate * u64::MAX as f64) as u64 } else { u64::MAX };
    let mut stack = Stack::default();
    let mut all = 0u64;
    feed(&mut |page| {
        all += 1;
        if rate >= 1.0 || spread(page) < limit {
            stack.touch(page);
        }
    });
    stack.curve(all, rate, sizes)
}

/// Last use of each page and how many distances of each length there were.
#[derive(Default)]
struct Stack {
    last: FxHashMap<u64, u32>,
    /// Fenwick tree over times: 1 where a page was last used.
    marks: Vec<u32>,
    now: u32,
    /// Count by distance; the index is the distance in (sampled) pages.
    distances: Vec<u64>,
}

impl Stack {
    fn touch(&mut self, page: u64) {
        self.now += 1;
        self.grow();
        if let Some(before) = self.last.insert(page, self.now) {
            let distance = (self.sum(self.now - 1) - self.sum(before - 1)) as usize;
            if self.distances.len() <= distance {
                self.distances.resize(distance + 1, 0);
            }
            self.distances[distance] += 1;
            self.add(before, u32::MAX);
        }
        self.add(self.now, 1);
    }

    /// Doubles the tree when it is full.
    fn grow(&mut self) {
        if (self.now as usize) < self.marks.len() {
            return;
        }
        let size = (self.marks.len() * 2).max(1024);
        self.marks = vec![0; size];
        let mut used: Vec<u32> = Vec::with_capacity(self.last.len());
        used.extend(self.last.values().copied());
        for at in used {
            self.add(at, 1);
        }
    }

    /// Adds `by` (wrapping, so `u32::MAX` takes one away) at `at`.
    fn add(&mut self, at: u32, by: u32) {
        let mut i = at as usize;
        while i < self.marks.len() {
            self.marks[i] = self.marks[i].wrapping_add(by);
            i += i & i.wrapping_neg();
        }
    }

    /// Marks at times up to `at`.
    fn sum(&self, at: u32) -> u32 {
        let (mut i, mut sum) = (at as usize, 0u32);
        while i > 0 {
            sum = sum.wrapping_add(self.marks[i]);
            i &= i - 1;
        }
        sum
    }

    fn curve(self, all: u64, rate: f64, sizes: usize) -> Option<Curve> {
        let sampled: u64 = u64::from(self.now);
        if sampled == 0 {
            return None;
        }
        let expected = all as f64 * rate;
        // SHARDS' correction: what the sample has too many or too few references of goes to the shortest distance.
        let missing = if rate < 1.0 { expected - sampled as f64 } else { 0.0 };
        let total = if rate < 1.0 { expected } else { sampled as f64 };
        let pages = self.last.len() as u64;
        let mut points = Vec::with_capacity(sizes);
        let mut hits = missing;
        let mut counted = 0usize;
        let steps = sizes.max(2);
        for step in 0..steps {
            // Geometric steps: caches are compared by doubling.
            let size = (pages as f64).powf(step as f64 / (steps - 1) as f64).round() as usize;
            while counted <= size && counted < self.distances.len() {
                hits += self.distances[counted] as f64;
                counted += 1;
            }
            let scaled = (size as f64 / rate).round() as u64;
            let ratio = (1.0 - hits / total).clamp(0.0, 1.0);
            if points.last().is_none_or(|(s, _)| *s < scaled) {
                points.push((scaled, ratio));
            }
        }
        Some(Curve { points, references: all, pages: (pages as f64 / rate).round() as u64, sampled: rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain LRU list.
    fn misses(stream: &[u64], size: usize) -> usize {
        let mut list: Vec<u64> = Vec::new();
        let mut misses = 0;
        for page in stream {
            match list.iter().position(|p| p == page) {
                Some(at) => drop(list.remove(at)),
                None => misses += 1,
            }
            list.insert(0, *page);
            list.truncate(size);
        }
        misses
    }

    fn of(stream: &[u64]) -> Curve {
        curve(stream.len() as u64, 200, |touch| stream.iter().for_each(|p| touch(*p))).unwrap()
    }

    #[test]
    fn the_curve_is_that_of_lru_at_every_size() {
        let stream: Vec<u64> =
            (0..4000u64).map(|i| spread(i) % (7 + i % 60) * if i % 5 == 0 { 3 } else { 1 }).collect();
        let curve = of(&stream);
        assert_eq!(curve.sampled, 1.0);
        for (size, ratio) in &curve.points {
            let slow = misses(&stream, *size as usize) as f64 / stream.len() as f64;
            assert!((slow - ratio).abs() < 1e-12, "{size} pages: {ratio}, by hand {slow}");
        }
        let last = curve.points.last().unwrap();
        assert_eq!(last.0, curve.pages);
        assert!((last.1 - curve.pages as f64 / 4000.0).abs() < 1e-12, "a cache for everything misses each page once");
    }

    #[test]
    fn a_loop_misses_always_until_it_fits() {
        let stream: Vec<u64> = (0..1000).map(|i| i % 50).collect();
        let curve = of(&stream);
        assert!(curve.points.iter().filter(|(s, _)| *s < 50).all(|(_, r)| (*r - 1.0).abs() < 1e-12));
        assert!((curve.points.last().unwrap().1 - 0.05).abs() < 1e-12);
        assert!(super::curve(0, 10, |_| ()).is_none());
    }

    #[test]
    fn a_sample_comes_near() {
        // Told that there will be more than there are, the pass samples: rate 1/4.
        let stream: Vec<u64> = (0..400_000u64).map(|i| spread(i) % 30_000 * (spread(i + 9) % 3)).collect();
        let exact = of(&stream);
        let sample =
            curve(EXACT as u64 * 4, 200, |touch| (0..10).for_each(|_| stream.iter().for_each(|p| touch(*p)))).unwrap();
        assert!((sample.sampled - 0.25).abs() < 1e-9);
        assert!((sample.pages as f64 / exact.pages as f64 - 1.0).abs() < 0.05, "{} {}", sample.pages, exact.pages);
    }
}
