//! States that a recorded machine may have been in, and the middle one of the outcomes.

use crate::config::Config;
use crate::prove::Figure;

/// How slow the emulated processor was, against the machine's usual costs: passes of 16 MiB over a cached file, the same in all
/// `seqhot` runs, took 14.1 to 28 ms in 17 of 21 runs (median of each; 17.9 ms over all).
const SLOWNESS: (f64, f64) = (0.8, 1.56);

/// The same of what handling a finished page takes: cold passes over that file took 1.03 to 1.29 s in 17 of 21 runs, of which
/// 0.94 s are the disk's (median over all 1.12 s, which is 1.5 times the usual cost a page).
const LATENESS: (f64, f64) = (0.75, 3.0);

/// The machine on a processor of some speed within what was measured, evenly on a logarithmic scale.
pub(super) fn at_some_speed(config: &Config, draw: u64) -> Config {
    let slowness = between(SLOWNESS, draw, 0.618_033_988_749_895);
    let lateness = between(LATENESS, draw, std::f64::consts::SQRT_2);
    let mut config = config.clone();
    let m = &mut config.machine;
    for cost in [
        &mut m.syscall_ns,
        &mut m.copy_page_ns,
        &mut m.fault_ns,
        &mut m.touch_ns,
        &mut m.scan_page_ns,
        &mut m.submit_ns,
        &mut m.fresh_frame_ns,
    ] {
        *cost = (*cost as f64 * slowness).round() as u64;
    }
    m.completion_page_ns = (m.completion_page_ns as f64 * lateness).round() as u64;
    config
}

/// A value between two, evenly on a logarithmic scale: multiples of an irrational number lie evenly, however many are taken.
fn between((least, most): (f64, f64), draw: u64, step: f64) -> f64 {
    least * (most / least).powf((draw as f64 * step).fract())
}

/// Per figure the outcome in the middle, in the order of the first outcome's figures. Of an even number the lower of the two
/// in the middle.
pub(super) fn median_of(outcomes: Vec<Vec<Figure>>) -> Vec<Figure> {
    let mut rest = outcomes.into_iter();
    let mut all: Vec<Vec<Figure>> = rest.next().unwrap_or_default().into_iter().map(|f| vec![f]).collect();
    for figure in rest.flatten() {
        match all.iter_mut().find(|of| of[0].name == figure.name) {
            Some(of) => of.push(figure),
            None => all.push(vec![figure]),
        }
    }
    all.into_iter().filter_map(middle).collect()
}

fn middle(mut of: Vec<Figure>) -> Option<Figure> {
    of.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let at = of.len().checked_sub(1)? / 2;
    Some(of.swap_remove(at))
}

/// What a figure is sorted by: a time that was never reached is later than any.
fn place(figure: &Figure) -> f64 {
    if figure.simulated < 0.0 { f64::INFINITY } else { figure.simulated }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, simulated: f64) -> Figure {
        Figure {
            name: name.into(),
            recorded: 1.0,
            simulated,
            error_pct: (simulated - 1.0).abs() * 100.0,
            telling: true,
        }
    }

    #[test]
    fn speeds_lie_within_what_was_measured() {
        let mut config = crate::testing::config();
        config.machine.copy_page_ns = 1000;
        let mut costs: Vec<u64> = (0..15).map(|d| at_some_speed(&config, d).machine.copy_page_ns).collect();
        costs.sort_unstable();
        assert!(costs[0] == 800 && costs[14] <= 1560, "{costs:?}");
        // Evenly spread: no gap of more than a fifth.
        assert!(costs.windows(2).all(|c| c[1] > c[0] && c[1] < c[0] * 6 / 5), "{costs:?}");
    }

    #[test]
    fn the_middle_outcome_counts_figure_by_figure() {
        let outcomes = [(3.0, 1.0), (1.0, 2.0), (2.0, 9.0)];
        let all = outcomes.map(|(a, b)| vec![figure("a", a), figure("b", b)]).to_vec();
        let middle: Vec<f64> = median_of(all).iter().map(|f| f.simulated).collect();
        assert_eq!(middle, [2.0, 2.0]);
    }

    #[test]
    fn what_is_never_reached_is_latest() {
        let one = |x| vec![figure("a", x)];
        assert_eq!(median_of(vec![one(-1.0), one(5.0), one(4.0)])[0].simulated, 5.0);
        assert_eq!(median_of(vec![one(-1.0), one(5.0), one(-1.0)])[0].simulated, -1.0);
        assert!(median_of(Vec::new()).is_empty());
    }
}
