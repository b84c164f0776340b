//! Which scheduler was faster, recorded and predicted.
//!
//! Two schedulers differ in a workload under a limit where their recorded times lie further apart than runs of the same
//! setting did anywhere in that workload, and their ranges do not meet. Then the predictions should be in the same order.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::median;
use super::Pair;

/// Least difference that counts where nothing was recorded twice: 5 %.
const LEAST_BAND: f64 = 0.05;

/// Recorded and predicted order of two schedulers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Workload.
    pub workload: String,
    /// Limit, MiB.
    pub limit_mib: u64,
    /// The scheduler that was faster, and the other.
    pub faster: String,
    /// ... the other.
    pub slower: String,
    /// Their recorded times, s (medians).
    pub recorded_s: (f64, f64),
    /// Their predicted times, s (medians over sources).
    pub predicted_s: (f64, f64),
    /// The predictions are in the same order.
    pub same: bool,
}

#[derive(Default)]
struct Times {
    recorded: BTreeMap<String, f64>,
    predicted: Vec<f64>,
}

impl Times {
    fn recorded(&self) -> Vec<f64> {
        self.recorded.values().copied().collect()
    }
    fn range(&self) -> (f64, f64) {
        self.recorded.values().fold((f64::MAX, 0.0), |(a, b), v| (a.min(*v), b.max(*v)))
    }
}

/// Times of one setting's schedulers, by limit.
type ByLimit<'a> = BTreeMap<u64, BTreeMap<&'a str, Times>>;

/// Compares all pairs of schedulers that ran under the same conditions.
pub fn orders(pairs: &[Pair]) -> Vec<Order> {
    // Workload, quiet or not -> limit -> scheduler.
    let mut groups: BTreeMap<(&str, bool), ByLimit<'_>> = BTreeMap::new();
    for p in pairs {
        let Some(wall) = p.figures.figures.iter().find(|f| f.name == "wall_s") else { continue };
        let limits = groups.entry((&p.workload, p.quiet)).or_default();
        let times = limits.entry(p.limit_mib).or_default().entry(&p.scheduler).or_default();
        times.recorded.insert(p.figures.run.clone(), wall.recorded);
        times.predicted.push(wall.simulated);
    }
    let mut out = Vec::new();
    let mut done = BTreeSet::new();
    // Quiet runs first; others tell where there are no two quiet ones.
    for ((workload, quiet), limits) in groups.iter().rev() {
        let band = limits
            .values()
            .flat_map(BTreeMap::values)
            .map(Times::range)
            .map(|(least, most)| (most - least) / most.max(f64::MIN_POSITIVE))
            .fold(LEAST_BAND, f64::max);
        for (limit, schedulers) in limits {
            let names: Vec<&&str> = schedulers.keys().collect();
            for (i, a) in names.iter().enumerate() {
                for b in &names[i + 1..] {
                    if *quiet {
                        done.insert((*workload, *limit, **a, **b));
                    } else if done.contains(&(*workload, *limit, **a, **b)) {
                        continue;
                    }
                    out.extend(order(workload, *limit, (a, &schedulers[**a]), (b, &schedulers[**b]), band));
                }
            }
        }
    }
    out.sort_by(|a, b| (&a.workload, a.limit_mib, &a.faster).cmp(&(&b.workload, b.limit_mib, &b.faster)));
    out
}

fn order(workload: &str, limit_mib: u64, a: (&str, &Times), b: (&str, &Times), band: f64) -> Option<Order> {
    let (x, y) = (median(a.1.recorded())?, median(b.1.recorded())?);
    let (faster, slower) = if x <= y { (a, b) } else { (b, a) };
    let (x, y) = (x.min(y), x.max(y));
    if (y - x) / y <= band || faster.1.range().1 >= slower.1.range().0 {
        return None;
    }
    let (p, q) = (median(faster.1.predicted.clone())?, median(slower.1.predicted.clone())?);
    Some(Order {
        workload: workload.to_owned(),
        limit_mib,
        faster: faster.0.to_owned(),
        slower: slower.0.to_owned(),
        recorded_s: (x, y),
        predicted_s: (p, q),
        same: p < q,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::{Figure, RunFigures};

    fn pair(run: &str, scheduler: &str, recorded: f64, simulated: f64) -> Pair {
        let wall = Figure { name: "wall_s".to_owned(), recorded, simulated, error_pct: 0.0, telling: true };
        Pair {
            itself: false,
            quiet: true,
            calibrating: false,
            workload: "W".to_owned(),
            limit_mib: 64,
            scheduler: scheduler.to_owned(),
            figures: RunFigures {
                run: run.to_owned(),
                variant: "source".to_owned(),
                figures: vec![wall],
                median_error_pct: None,
            },
        }
    }

    #[test]
    fn only_what_differs_by_more_than_the_runs_themselves_has_an_order() {
        let near = [pair("a", "none", 10.0, 9.0), pair("b", "none", 8.0, 9.0), pair("c", "bfq", 11.0, 5.0)];
        assert_eq!(orders(&near), []);
        let far = [pair("a", "none", 10.0, 9.0), pair("b", "none", 8.0, 9.0), pair("c", "bfq", 30.0, 5.0)];
        let found = orders(&far);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].faster.as_str(), found[0].slower.as_str(), found[0].same), ("none", "bfq", false));
        assert_eq!(found[0].recorded_s, (9.0, 30.0));
    }
}
