//! Two-way analysis of variance with replication: how much of a figure's variation does each factor explain?
//!
//! Balanced design: a rows, b columns, n repetitions of each cell. Sums of squares as in R. A. Fisher, "Statistical Methods
//! for Research Workers" (1925): total = rows + columns + interaction + within cells, exactly.

/// Sums of squares and their shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anova {
    /// Between the rows' means.
    pub rows: f64,
    /// Between the columns' means.
    pub columns: f64,
    /// What rows and columns do together beyond the sum of both.
    pub interaction: f64,
    /// Inside of the cells: chance.
    pub within: f64,
}

impl Anova {
    /// From `values[row][column][repetition]`.
    ///
    /// `None` unless every cell has the same number of repetitions and there are at least two rows and two columns.
    pub fn of(values: &[Vec<Vec<f64>>]) -> Option<Anova> {
        let (a, b) = (values.len(), values.first()?.len());
        let n = values.first()?.first()?.len();
        let regular = values.iter().all(|row| row.len() == b && row.iter().all(|cell| cell.len() == n));
        if a < 2 || b < 2 || n == 0 || !regular || values.iter().flatten().flatten().any(|v| !v.is_finite()) {
            return None;
        }
        let mean = |it: &mut dyn Iterator<Item = f64>, count: usize| it.sum::<f64>() / count as f64;
        let grand = mean(&mut values.iter().flatten().flatten().copied(), a * b * n);
        let row_means: Vec<f64> = values.iter().map(|r| mean(&mut r.iter().flatten().copied(), b * n)).collect();
        let column_means: Vec<f64> =
            (0..b).map(|c| mean(&mut values.iter().flat_map(|r| r[c].iter().copied()), a * n)).collect();
        let square = |x: f64| x * x;
        let rows = (b * n) as f64 * row_means.iter().map(|m| square(m - grand)).sum::<f64>();
        let columns = (a * n) as f64 * column_means.iter().map(|m| square(m - grand)).sum::<f64>();
        let (mut interaction, mut within) = (0.0, 0.0);
        for (r, row) in values.iter().enumerate() {
            for (c, cell) in row.iter().enumerate() {
                let m = mean(&mut cell.iter().copied(), n);
                interaction += n as f64 * square(m - row_means[r] - column_means[c] + grand);
                within += cell.iter().map(|v| square(v - m)).sum::<f64>();
            }
        }
        Some(Anova { rows, columns, interaction, within })
    }

    /// All together.
    pub fn total(&self) -> f64 {
        self.rows + self.columns + self.interaction + self.within
    }

    /// A part's share of the total, percent; 0 where nothing varies.
    pub fn share_pct(&self, part: f64) -> f64 {
        if self.total() > 0.0 { part / self.total() * 100.0 } else { 0.0 }
    }
}

/// Two-sided 97.5 % quantiles of Student's distribution for 1 to 9 degrees of freedom (any table of it).
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Half width of the 95 % confidence interval of a mean; `None` for fewer than two or more than ten values.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let t = STUDENT.get(n.checked_sub(2)?)?;
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64;
    Some(t * (variance / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn a_worked_example() {
        // Rows differ by 2, columns by 4, no interaction, +-1 within: by hand 12, 48, 0 and 12.
        let cell = |m: f64| vec![m - 1.0, m, m + 1.0];
        let v = vec![vec![cell(1.0), cell(5.0)], vec![cell(3.0), cell(7.0)]];
        let s = Anova::of(&v).unwrap();
        assert!(close(s.rows, 12.0) && close(s.columns, 48.0) && close(s.interaction, 0.0), "{s:?}");
        assert!(close(s.within, 8.0), "{s:?}");
        assert!(close(s.share_pct(s.columns), 48.0 / 68.0 * 100.0));
    }

    #[test]
    fn interaction_is_what_neither_explains() {
        // Each factor alone does nothing: the cells of a saddle.
        let v = vec![vec![vec![1.0], vec![-1.0]], vec![vec![-1.0], vec![1.0]]];
        let s = Anova::of(&v).unwrap();
        assert!(close(s.interaction, 4.0) && close(s.total(), 4.0), "{s:?}");
    }

    #[test]
    fn the_parts_add_up_to_the_total() {
        let mut x = 1u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as f64 / 1e6
        };
        let v: Vec<Vec<Vec<f64>>> =
            (0..4).map(|_| (0..5).map(|_| (0..3).map(|_| next()).collect()).collect()).collect();
        let all: Vec<f64> = v.iter().flatten().flatten().copied().collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let total: f64 = all.iter().map(|a| (a - mean) * (a - mean)).sum();
        let s = Anova::of(&v).unwrap();
        assert!((s.total() - total).abs() < 1e-6 * total, "{s:?} {total}");
    }

    #[test]
    fn irregular_designs_have_no_decomposition() {
        assert_eq!(Anova::of(&[vec![vec![1.0], vec![2.0]], vec![vec![1.0], vec![]]]), None);
        assert_eq!(Anova::of(&[vec![vec![1.0], vec![2.0]]]), None);
        assert_eq!(half_width(&[1.0]), None);
        // Mean 2, deviation 1, three values: 4.303 / sqrt(3).
        assert!(close(half_width(&[1.0, 2.0, 3.0]).unwrap(), 4.303 / 3f64.sqrt()));
    }
}
