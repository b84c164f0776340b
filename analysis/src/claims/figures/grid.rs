//! Figures of a whole grid: every variant of a run with every column, over all seeds.

use crate::claims::anova::Anova;

/// One figure of every cell of a grid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    /// Rows.
    pub variants: Vec<String>,
    /// Columns: changes put on each variant; empty for none.
    pub columns: Vec<String>,
    /// `values[variant][column][seed]`; a cell without a value makes the whole row missing in [`Grid::complete`].
    pub values: Vec<Vec<Vec<Option<f64>>>>,
}

impl Grid {
    /// The rows that have a value in every cell, with their names.
    pub(crate) fn complete(&self) -> (Vec<&str>, Vec<Vec<Vec<f64>>>) {
        let row = |cells: &[Vec<Option<f64>>]| -> Option<Vec<Vec<f64>>> {
            cells.iter().map(|c| c.iter().copied().collect::<Option<Vec<f64>>>().filter(|v| !v.is_empty())).collect()
        };
        let rows = self.variants.iter().zip(&self.values);
        rows.filter_map(|(name, cells)| Some((name.as_str(), row(cells)?))).unzip()
    }

    /// Sums of squares over the complete rows.
    pub(crate) fn anova(&self) -> Option<Anova> {
        Anova::of(&self.complete().1)
    }
}

pub(super) fn variance(grid: &Grid, args: &[String]) -> Option<f64> {
    let a = grid.anova()?;
    let part = match args[0].as_str() {
        "variants" => a.rows,
        "columns" => a.columns,
        "both" => a.interaction,
        _ => a.within,
    };
    Some(a.share_pct(part))
}

fn range(means: &[f64]) -> Option<f64> {
    let (low, high) = (means.iter().copied().fold(f64::INFINITY, f64::min), means.iter().copied().fold(0.0, f64::max));
    (low > 0.0).then(|| high / low)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn range_columns(grid: &Grid, args: &[String]) -> Option<f64> {
    let (names, values) = grid.complete();
    let row = names.iter().position(|n| *n == args[0])?;
    range(&values[row].iter().map(|c| mean(c)).collect::<Vec<_>>())
}

pub(super) fn range_variants(grid: &Grid, args: &[String]) -> Option<f64> {
    let column = grid.columns.iter().position(|c| *c == args[0])?;
    let (_, values) = grid.complete();
    range(&values.iter().map(|r| mean(&r[column])).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_value_are_left_out() {
        let cell = |v: f64| vec![Some(v), Some(v + 1.0)];
        let grid = Grid {
            variants: vec!["a".into(), "b".into(), "c".into()],
            columns: vec![String::new(), "x".into()],
            values: vec![vec![cell(1.0), cell(3.0)], vec![cell(1.0), vec![None, None]], vec![cell(2.0), cell(8.0)]],
        };
        assert_eq!(grid.complete().0, ["a", "c"]);
        let share = |f: &str| variance(&grid, &[f.into(), String::new()]).unwrap();
        let sum: f64 = ["variants", "columns", "both", "seeds"].iter().map(|f| share(f)).sum();
        assert!((sum - 100.0).abs() < 1e-9, "{sum}");
        assert_eq!(range_columns(&grid, &["c".into(), String::new()]), Some(8.5 / 2.5));
        assert_eq!(range_variants(&grid, &["x".into(), String::new()]), Some(8.5 / 3.5));
    }
}
