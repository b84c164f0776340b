//! Which knob explains how much: the variance of a figure over a full grid of settings, divided among the settings.
//!
//! The decomposition is the classical analysis of variance of a balanced factorial design (R. A. Fisher, 1925): the sum of
//! squares around the grand mean falls into one part a factor, one a combination of factors (what changing both does beyond
//! what each does alone) and what is left within the cells, that is, between seeds. On a balanced grid the parts are
//! orthogonal, so they add up exactly and their order does not matter; on anything else they would not, and [`decompose`]
//! refuses. Shares are of *this grid*: a factor that was varied over a wider range explains more.

/// Most factors that are taken apart: 2^n - 1 effects are computed.
pub const MOST_FACTORS: usize = 8;

/// One run: which level each factor had, and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Index of the level of each factor.
    pub levels: Vec<usize>,
    /// The figure.
    pub value: f64,
}

/// What one factor, or the interplay of several, explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Indices of the factors, ascending; one for a main effect, more for an interaction.
    pub factors: Vec<usize>,
    /// Sum of squares, in the square of the figure's unit.
    pub squares: f64,
    /// Share of the total sum of squares, 0 to 1.
    pub share: f64,
    /// Degrees of freedom: the product of (levels - 1).
    pub freedom: usize,
    /// F statistic against the variation within the cells; `None` with one run a cell, or if they do not vary.
    pub f: Option<f64>,
}

/// The variance of a figure, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// Mean over all runs.
    pub mean: f64,
    /// Sum of squares around [`Decomposition::mean`].
    pub total_squares: f64,
    /// Runs in each cell of the grid.
    pub runs_per_cell: usize,
    /// All effects, the largest first (ties by number of factors, then by index).
    pub effects: Vec<Effect>,
    /// Share left within the cells (between seeds), 0 to 1.
    pub within: f64,
}

impl Decomposition {
    /// Share explained by the factor alone.
    pub fn main(&self, factor: usize) -> f64 {
        self.effects.iter().find(|e| e.factors == [factor]).map_or(0.0, |e| e.share)
    }

    /// Share of all effects in which the factor takes part (the total index of Sobol', 2001, for this grid): what would
    /// vanish if the factor were held fixed. These overlap, so they may add up to more than 1.
    pub fn total(&self, factor: usize) -> f64 {
        self.effects.iter().filter(|e| e.factors.contains(&factor)).map(|e| e.share).sum()
    }

    /// Share of all interactions.
    pub fn interactions(&self) -> f64 {
        self.effects.iter().filter(|e| e.factors.len() > 1).map(|e| e.share).sum()
    }
}

/// Why runs cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAGrid {
    /// No factor has two levels.
    #[error("nothing was varied")]
    NoFactor,
    /// More than [`MOST_FACTORS`].
    #[error("{0} factors are too many, {MOST_FACTORS} can be taken apart")]
    TooMany(usize),
    /// A run names another number of levels, or a level that there is not.
    #[error("run {0} does not fit the factors")]
    Misfit(usize),
    /// A figure is not finite.
    #[error("the figure of run {0} is not a number")]
    NotFinite(usize),
    /// A combination of levels has another number of runs than the first one.
    #[error("the grid is not full: the levels {levels:?} have {found} runs, others {expected}")]
    Unbalanced {
        /// The combination.
        levels: Vec<usize>,
        /// Its runs.
        found: usize,
        /// Runs of the first combination.
        expected: usize,
    },
}

/// Takes the variance of `runs` apart. `levels[i]` is the number of levels of factor `i`; factors with one level explain
/// nothing and take no part. Every combination of levels must have the same number of runs, at least one.
///
/// # Errors
/// [`NotAGrid`]; a figure that is the same in all runs is no error, all shares are then 0.
pub fn decompose(levels: &[usize], runs: &[Observation]) -> Result<Decomposition, NotAGrid> {
    let factors: Vec<usize> = (0..levels.len()).filter(|f| levels[*f] > 1).collect();
    if factors.is_empty() {
        return Err(NotAGrid::NoFactor);
    }
    if factors.len() > MOST_FACTORS {
        return Err(NotAGrid::TooMany(factors.len()));
    }
    for (i, run) in runs.iter().enumerate() {
        if run.levels.len() != levels.len() || run.levels.iter().zip(levels).any(|(l, n)| l >= n) {
            return Err(NotAGrid::Misfit(i));
        }
        if !run.value.is_finite() {
            return Err(NotAGrid::NotFinite(i));
        }
    }
    let runs_per_cell = balanced(levels, runs)?;
    let mean = runs.iter().map(|r| r.value).sum::<f64>() / runs.len() as f64;
    let total_squares: f64 = runs.iter().map(|r| (r.value - mean).powi(2)).sum();
    // What the cells of each subset of factors explain together, by bit mask over `factors`.
    let together: Vec<f64> =
        (0..1usize << factors.len()).map(|mask| explained(mask, &factors, levels, runs, mean)).collect();
    let all = together.len() - 1;
    let left = (total_squares - together[all]).max(0.0);
    let cells = runs.len() / runs_per_cell;
    let noise = (runs_per_cell > 1 && left > 0.0).then(|| left / (runs.len() - cells) as f64);
    let share = |squares: f64| if total_squares > 0.0 { squares / total_squares } else { 0.0 };
    let mut effects: Vec<Effect> = (1..=all)
        .map(|mask| {
            let members: Vec<usize> = (0..factors.len()).filter(|b| (mask >> b) & 1 == 1).map(|b| factors[b]).collect();
            let squares = alone(mask, &together).max(0.0);
            let freedom: usize = members.iter().map(|f| levels[*f] - 1).product();
            let f = noise.map(|n| squares / freedom as f64 / n);
            Effect { factors: members, squares, share: share(squares), freedom, f }
        })
        .collect();
    effects.sort_by(|a, b| {
        b.squares.total_cmp(&a.squares).then(a.factors.len().cmp(&b.factors.len())).then(a.factors.cmp(&b.factors))
    });
    Ok(Decomposition { mean, total_squares, runs_per_cell, effects, within: share(left) })
}

/// Runs a cell, if all cells have as many.
fn balanced(levels: &[usize], runs: &[Observation]) -> Result<usize, NotAGrid> {
    let cells: usize = levels.iter().product();
    let mut counts = vec![0usize; cells.min(runs.len() + 1)];
    let place = |run: &Observation| run.levels.iter().zip(levels).fold(0, |at, (l, n)| at * n + l);
    for run in runs {
        if let Some(count) = counts.get_mut(place(run)) {
            *count += 1;
        }
    }
    let expected = runs.len() / cells.max(1);
    match counts.iter().position(|c| *c != expected.max(1)) {
        None if counts.len() == cells => Ok(expected),
        found => {
            let mut at = found.unwrap_or(counts.len() - 1);
            let count = counts[at];
            let mut missing: Vec<usize> = levels
                .iter()
                .rev()
                .map(|n| {
                    let level = at % n;
                    at /= n;
                    level
                })
                .collect();
            missing.reverse();
            Err(NotAGrid::Unbalanced { levels: missing, found: count, expected: expected.max(1) })
        }
    }
}

/// Sum of squares between the cells that the factors of `mask` form.
fn explained(mask: usize, factors: &[usize], levels: &[usize], runs: &[Observation], mean: f64) -> f64 {
    let chosen: Vec<usize> = (0..factors.len()).filter(|b| (mask >> b) & 1 == 1).map(|b| factors[b]).collect();
    let cells: usize = chosen.iter().map(|f| levels[*f]).product();
    let mut sums = vec![0.0; cells];
    for run in runs {
        let at = chosen.iter().fold(0, |at, f| at * levels[*f] + run.levels[*f]);
        // Deviations, not values: sums of squares of large nearly equal numbers would lose their digits.
        sums[at] += run.value - mean;
    }
    let each = (runs.len() / cells) as f64;
    sums.iter().map(|s| s * s / each).sum()
}

/// What the factors of `mask` explain beyond all of their parts: inclusion and exclusion over the subsets.
fn alone(mask: usize, together: &[f64]) -> f64 {
    (1..=mask)
        .filter(|part| part & mask == *part)
        .map(|part| {
            let sign = if (mask.count_ones() - part.count_ones()).is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * together[part]
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid(levels: &[usize], seeds: usize, value: impl Fn(&[usize], usize) -> f64) -> Vec<Observation> {
        let cells: usize = levels.iter().product();
        let mut runs = Vec::new();
        for mut at in 0..cells {
            let mut place: Vec<usize> = levels
                .iter()
                .rev()
                .map(|n| {
                    let l = at % n;
                    at /= n;
                    l
                })
                .collect();
            place.reverse();
            for seed in 0..seeds {
                runs.push(Observation { levels: place.clone(), value: value(&place, seed) });
            }
        }
        runs
    }

    #[test]
    fn one_knob_that_does_everything() {
        let d = decompose(&[3, 2], &grid(&[3, 2], 1, |l, _| 10.0 + 5.0 * l[0] as f64)).unwrap();
        assert!((d.main(0) - 1.0).abs() < 1e-12 && d.main(1).abs() < 1e-12 && d.within.abs() < 1e-12);
        assert_eq!(d.effects[0].factors, [0]);
        assert_eq!(d.effects[0].freedom, 2);
        assert_eq!(d.effects[0].f, None, "one run a cell tells nothing of chance");
    }

    #[test]
    fn interplay_is_not_put_down_to_either() {
        // Exclusive or: neither knob alone does anything.
        let d = decompose(&[2, 2], &grid(&[2, 2], 1, |l, _| (l[0] ^ l[1]) as f64)).unwrap();
        assert!(d.main(0).abs() < 1e-12 && d.main(1).abs() < 1e-12);
        assert!((d.interactions() - 1.0).abs() < 1e-12 && (d.total(0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_textbook_case() {
        // Means 10, 20 / 30, 40 with seeds +-1: SS_a = 4 * 2 * 10^2 = 800 * 2, SS_b = 8 * 5^2 = 200, within = 8.
        let d = decompose(
            &[2, 2],
            &grid(&[2, 2], 2, |l, s| 10.0 + 20.0 * l[0] as f64 + 10.0 * l[1] as f64 + if s == 0 { 1.0 } else { -1.0 }),
        )
        .unwrap();
        let squares = |f: &[usize]| d.effects.iter().find(|e| e.factors == f).unwrap().squares;
        assert!(
            (squares(&[0]) - 800.0).abs() < 1e-9
                && (squares(&[1]) - 200.0).abs() < 1e-9
                && squares(&[0, 1]).abs() < 1e-9
        );
        assert!((d.within - 8.0 / 1008.0).abs() < 1e-12);
        assert!((d.effects[0].f.unwrap() - 800.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let mut runs = grid(&[2, 3], 1, |_, _| 1.0);
        runs.pop();
        let e = decompose(&[2, 3], &runs).unwrap_err();
        assert_eq!(e, NotAGrid::Unbalanced { levels: vec![1, 2], found: 0, expected: 1 });
        assert_eq!(decompose(&[1, 1], &[]).unwrap_err(), NotAGrid::NoFactor);
        assert!(decompose(&[2], &[]).is_err());
        let bad = [Observation { levels: vec![2], value: 1.0 }];
        assert_eq!(decompose(&[2], &bad).unwrap_err(), NotAGrid::Misfit(0));
        assert_eq!(decompose(&[2; 9], &[]).unwrap_err(), NotAGrid::TooMany(9));
        let same = decompose(&[2], &grid(&[2], 3, |_, _| 7.0)).unwrap();
        assert_eq!((same.main(0), same.within), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole(levels in proptest::collection::vec(1usize..4, 1..4), seeds in 1usize..4, numbers in proptest::collection::vec(-1e6f64..1e6, 81)) {
            prop_assume!(levels.iter().any(|l| *l > 1));
            let runs = grid(&levels, seeds, |l, s| numbers[(l.iter().fold(0, |a, x| a * 3 + x) * 3 + s) % 81]);
            let d = decompose(&levels, &runs).unwrap();
            if d.total_squares > 0.0 {
                let sum: f64 = d.effects.iter().map(|e| e.share).sum::<f64>() + d.within;
                prop_assert!((sum - 1.0).abs() < 1e-6, "{}", sum);
            }
            prop_assert!(d.effects.iter().all(|e| e.share >= 0.0));
        }
    }
}
