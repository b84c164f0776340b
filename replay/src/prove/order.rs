//! Order of kernels: of all pairs of kernels whose recorded figures of the same load differ by more than the figures of
//! repeated recordings do, how many come out of the simulation in the recorded order.
//!
//! # Which pairs count
//! Runs of the same memory size and load are compared figure by figure; a kernel's value is the mean of its recordings
//! (`-r2`, `-r3` repeat one). A pair counts if its relative difference, |a - b| / ((a + b) / 2), is above the figure's noise and
//! the figure tells something on one side at least.
//!
//! # Noise
//! From recordings of one kernel that were made twice, by the same measure. Figures are of two kinds, times (also busy
//! times) and amounts. Nine tenths of the differences of its kind, over all loads, lie below a figure's noise; and it is no
//! less than the largest difference among the repeats of its own load, of any kernel. (One or two repeats of a load say
//! little alone: they agree to 1 % in one figure and not at all in the next.)

use super::RunFigures;
use serde::Serialize;
use std::collections::BTreeMap;

/// Share of pairs that has to be in the recorded order, percent.
pub const BAR_PCT: f64 = 95.0;

/// Outcome of the comparison of pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderReport {
    /// Pairs that differ by more than the noise.
    pub pairs: usize,
    /// Of these, pairs in the recorded order.
    pub right: usize,
    /// Share of these, percent; `None` without pairs.
    pub right_pct: Option<f64>,
    /// Share that is wanted, percent.
    pub bar_pct: f64,
    /// By load, in the order of their names.
    pub loads: Vec<LoadOrder>,
    /// Noise of each kind of figure.
    pub noise: Vec<KindNoise>,
    /// Pairs that came out otherwise.
    pub wrong: Vec<WrongPair>,
}

/// Pairs of one load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadOrder {
    /// Memory and load.
    pub load: String,
    /// Pairs that differ by more than the noise.
    pub pairs: usize,
    /// Of these, pairs in the recorded order.
    pub right: usize,
}

/// How much repeated recordings differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindNoise {
    /// Kind of figures.
    pub kind: &'static str,
    /// Figures that were recorded twice.
    pub repeats: usize,
    /// Nine tenths differ by less, percent.
    pub p90_pct: f64,
}

/// A pair that came out in another order, or equal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WrongPair {
    /// Memory and load.
    pub load: String,
    /// Figure.
    pub figure: String,
    /// The two kernels.
    pub kernels: [String; 2],
    /// Recorded values.
    pub recorded: [f64; 2],
    /// Simulated values; -1 for a time that was never reached.
    pub simulated: [f64; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Value {
    recorded: f64,
    simulated: f64,
    telling: bool,
}

impl Value {
    /// The simulated value; a time that was never reached, which is negative, is later than all.
    fn reached(&self) -> f64 {
        if self.simulated < 0.0 { f64::INFINITY } else { self.simulated }
    }
}

/// Figures of one load by kernel: figure name to the values of its recordings.
type Load<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<Value>>>;

/// Compare all pairs; `None` if no load was recorded under two kernels.
pub fn of(runs: &[RunFigures]) -> Option<OrderReport> {
    let mut loads: BTreeMap<String, Load<'_>> = BTreeMap::new();
    for run in runs {
        let Some((kernel, load)) = split(&run.run) else { continue };
        let figures = loads.entry(load).or_default().entry(kernel).or_default();
        for f in &run.figures {
            let value = Value { recorded: f.recorded, simulated: f.simulated, telling: f.telling };
            figures.entry(&f.name).or_default().push(value);
        }
    }
    let noise = Noise::of(&loads);
    let mut report = OrderReport {
        pairs: 0,
        right: 0,
        right_pct: None,
        bar_pct: BAR_PCT,
        loads: Vec::new(),
        noise: noise.kinds(),
        wrong: Vec::new(),
    };
    for (name, load) in &loads {
        let mut row = LoadOrder { load: name.clone(), pairs: 0, right: 0 };
        let kernels: Vec<_> = load.iter().collect();
        for (i, (a, of_a)) in kernels.iter().enumerate() {
            for (b, of_b) in &kernels[..i] {
                compare(name, [b, a], [of_b, of_a], &noise, &mut row, &mut report.wrong);
            }
        }
        report.pairs += row.pairs;
        report.right += row.right;
        if row.pairs > 0 {
            report.loads.push(row);
        }
    }
    report.right_pct = (report.pairs > 0).then(|| report.right as f64 * 100.0 / report.pairs as f64);
    report.right_pct.is_some().then_some(report)
}

/// Compare two kernels under one load.
fn compare(
    load: &str,
    kernels: [&str; 2],
    figures: [&BTreeMap<&str, Vec<Value>>; 2],
    noise: &Noise,
    row: &mut LoadOrder,
    wrong: &mut Vec<WrongPair>,
) {
    for (figure, ours) in figures[0] {
        let Some(theirs) = figures[1].get(figure) else { continue };
        if !ours.iter().chain(theirs).any(|v| v.telling) {
            continue;
        }
        let recorded = [mean(ours, |v| v.recorded), mean(theirs, |v| v.recorded)];
        if difference(recorded[0], recorded[1]) <= noise.of_figure(load, figure) {
            continue;
        }
        let simulated = [mean(ours, Value::reached), mean(theirs, Value::reached)];
        row.pairs += 1;
        // (Where neither was reached there is no order.)
        if (recorded[0] - recorded[1]) * (simulated[0] - simulated[1]) > 0.0 {
            row.right += 1;
        } else {
            let kernels = kernels.map(str::to_owned);
            let simulated = simulated.map(|s| if s.is_finite() { s } else { -1.0 });
            wrong.push(WrongPair { load: load.to_owned(), figure: (*figure).to_owned(), kernels, recorded, simulated });
        }
    }
}

/// Kernel and load of a run's name, `<kernel>-<RAM>M-<load>[-r<n>]`.
fn split(run: &str) -> Option<(&str, String)> {
    let words: Vec<(usize, &str)> =
        run.split('-').scan(0, |at, w| Some((std::mem::replace(at, *at + w.len() + 1), w))).collect();
    let is_memory =
        |w: &str| w.strip_suffix('M').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let (at, _) = words.iter().skip(1).find(|(_, w)| is_memory(w))?;
    let load = &run[*at..];
    let repeat = |w: &str| w.strip_prefix('r').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let load = match load.rsplit_once('-') {
        Some((first, last)) if repeat(last) => first,
        _ => load,
    };
    Some((&run[..at - 1], load.to_owned()))
}

/// Differences between repeats.
struct Noise {
    own: BTreeMap<(String, String), f64>,
    by_kind: [Vec<f64>; 2],
}

const KINDS: [&str; 2] = ["times", "amounts"];

fn kind_of(figure: &str) -> usize {
    usize::from(!(figure.starts_with("t ") || figure.ends_with(" ms") || figure.ends_with("busy s")))
}

impl Noise {
    fn of(loads: &BTreeMap<String, Load<'_>>) -> Self {
        let mut noise = Self { own: BTreeMap::new(), by_kind: [Vec::new(), Vec::new()] };
        for (name, load) in loads {
            for (figure, values) in load.values().flatten() {
                for (i, a) in values.iter().enumerate() {
                    for b in values[..i].iter().filter(|b| a.telling || b.telling) {
                        let d = difference(a.recorded, b.recorded);
                        noise.by_kind[kind_of(figure)].push(d);
                        let own = noise.own.entry((name.clone(), (*figure).to_owned())).or_default();
                        *own = own.max(d);
                    }
                }
            }
        }
        noise.by_kind.iter_mut().for_each(|k| k.sort_unstable_by(f64::total_cmp));
        noise
    }

    /// Below what `share` of the differences of a kind lie.
    fn quantile(&self, kind: usize, share: f64) -> f64 {
        let k = &self.by_kind[kind];
        let i = (k.len() as f64 * share) as usize;
        k.get(i.min(k.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    fn of_figure(&self, load: &str, figure: &str) -> f64 {
        let kind = kind_of(figure);
        let own = self.own.get(&(load.to_owned(), figure.to_owned())).copied();
        own.unwrap_or(0.0).max(self.quantile(kind, 0.9))
    }

    fn kinds(&self) -> Vec<KindNoise> {
        (0..KINDS.len())
            .map(|k| KindNoise {
                kind: KINDS[k],
                repeats: self.by_kind[k].len(),
                p90_pct: self.quantile(k, 0.9) * 100.0,
            })
            .collect()
    }
}

fn difference(a: f64, b: f64) -> f64 {
    let middle = f64::midpoint(a.abs(), b.abs());
    if middle == 0.0 { 0.0 } else { (a - b).abs() / middle }
}

fn mean(values: &[Value], of: impl Fn(&Value) -> f64) -> f64 {
    values.iter().map(of).sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::Figure;

    fn run(name: &str, recorded: f64, simulated: f64) -> RunFigures {
        let figure = Figure { name: "t workload s".into(), recorded, simulated, error_pct: 0.0, telling: true };
        RunFigures { run: name.into(), variant: String::new(), figures: vec![figure], median_error_pct: None }
    }

    #[test]
    fn names_are_kernel_memory_load_and_repeat() {
        assert_eq!(split("2.4.13-pre2-64M-wr16-r2"), Some(("2.4.13-pre2", "64M-wr16".into())));
        assert_eq!(split("2.4.17-64M-wr16p-elv2048-8192"), Some(("2.4.17", "64M-wr16p-elv2048-8192".into())));
        assert_eq!(split("nothing of the kind"), None);
    }

    #[test]
    fn pairs_within_the_noise_do_not_count() {
        // The load's own repeat differs by a tenth; a and b by less, c from both by more.
        let runs = [
            run("a-64M-x", 10.0, 10.0),
            run("a-64M-x-r2", 11.0, 10.0),
            run("b-64M-x", 10.9, 1.0),
            run("c-64M-x", 20.0, 5.0),
        ];
        let report = of(&runs).unwrap();
        assert_eq!((report.pairs, report.right), (2, 1));
        assert_eq!(report.wrong[0].kernels, ["a".to_owned(), "c".to_owned()]);
        assert_eq!(report.right_pct, Some(50.0));
    }

    #[test]
    fn what_is_never_reached_is_later_than_all() {
        let right = |a, b| of(&[run("a-64M-x", 1.0, a), run("b-64M-x", 2.0, b)]).unwrap().right;
        assert_eq!((right(5.0, -1.0), right(-1.0, 5.0), right(-1.0, -1.0)), (1, 0, 0));
    }

    #[test]
    fn equal_simulated_figures_are_no_order() {
        let report = of(&[run("a-64M-x", 1.0, 3.0), run("b-64M-x", 2.0, 3.0)]).unwrap();
        assert_eq!((report.pairs, report.right), (1, 0));
        assert_eq!(of(&[run("a-64M-x", 1.0, 3.0)]), None);
    }
}
