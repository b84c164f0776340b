//! The matrix: variants as rows, key metrics as columns, seeds folded into a median and a range.

use crate::metrics::CellHead;
use crate::model::{Cell, Column, Table, short_variant};
use crate::over_seeds::Seeds;
use crate::stats::{Sample, median};
use indexmap::IndexMap;

/// Values of the key metrics by variant and seed.
pub(crate) struct Matrix {
    /// The columns that have a value somewhere.
    pub columns: Vec<Column>,
    /// One row a variant, in the order of the run.
    pub rows: Vec<MatrixRow>,
}

/// One variant.
pub(crate) struct MatrixRow {
    /// Its name.
    pub variant: String,
    /// Its name for sentences: a long one loses its middle.
    pub shown: String,
    /// Every seed ran to the end.
    pub finished: bool,
    /// For each column the values of the seeds that have one.
    pub values: Vec<Vec<f64>>,
}

/// Median, smallest and largest value over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Folded {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub low: f64,
    /// Largest.
    pub high: f64,
    /// How many.
    pub seeds: usize,
    /// Mean and deviation.
    pub sample: Sample,
}

impl Folded {
    /// Folds `values`; `None` if there are none or one is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Folded> {
        Some(Folded {
            median: median(values)?,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            seeds: values.len(),
            sample: Sample::of(values)?,
        })
    }
}

impl Matrix {
    /// Collects the values of each cell (in the order of `cells`) under `columns`.
    pub(crate) fn new(columns: Vec<Column>, cells: &[CellHead], values: &[Vec<Option<f64>>]) -> Matrix {
        let mut rows: IndexMap<&str, MatrixRow> = IndexMap::new();
        for (cell, values) in cells.iter().zip(values) {
            let row = rows.entry(&cell.variant).or_insert_with(|| MatrixRow {
                variant: cell.variant.clone(),
                shown: shown(&cell.variant),
                finished: true,
                values: vec![Vec::new(); columns.len()],
            });
            row.finished &= cell.finished;
            for (column, value) in row.values.iter_mut().zip(values) {
                column.extend(value.filter(|v| v.is_finite()));
            }
        }
        let mut matrix = Matrix { columns, rows: rows.into_values().collect() };
        matrix.drop_empty_columns();
        matrix
    }

    fn drop_empty_columns(&mut self) {
        let used: Vec<bool> =
            (0..self.columns.len()).map(|c| self.rows.iter().any(|r| !r.values[c].is_empty())).collect();
        let keep = |i: &mut usize| {
            *i += 1;
            used[*i - 1]
        };
        let mut i = 0;
        self.columns.retain(|_| keep(&mut i));
        for row in &mut self.rows {
            let mut i = 0;
            row.values.retain(|_| keep(&mut i));
        }
    }

    /// The folded value of a row in the column `id`.
    pub(crate) fn get(&self, row: &MatrixRow, id: &str) -> Option<Folded> {
        let column = self.columns.iter().position(|c| c.id == id)?;
        Folded::of(&row.values[column])
    }

    /// The table, best values marked among the variants that ran to the end.
    pub(crate) fn table(&self, seeds: &Seeds) -> Table {
        let mut columns = vec![Column::text("variant", "variant")];
        columns.extend(self.columns.iter().cloned());
        let mut table = Table::new(
            "matrix",
            "Variants as rows, key figures as columns. * marks the best of a column and what is within 5 % of it; whether the difference counts is said in the verdict.",
            columns,
        );
        for row in &self.rows {
            let name = if row.finished { row.variant.clone() } else { format!("{} (unfinished)", row.variant) };
            let mut cells = vec![Cell::text(name)];
            cells.extend(self.columns.iter().map(|column| match self.get(row, &column.id) {
                Some(f) => Cell { range: (f.seeds > 1).then_some((f.low, f.high)), ..Cell::number(f.median) },
                None => Cell::number(None),
            }));
            table.push(cells);
        }
        if self.rows.iter().any(|r| r.values.iter().any(|v| v.len() > 1)) {
            table.caption.push_str(&format!(
                " Here and in all tables: the median over the seeds, and smallest to largest in brackets. Charts and lists of single calls show one run of each variant, that of median elapsed time ({}), and say so.",
                seeds.in_words()
            ));
        }
        table.mark_best(|r| self.rows[r].finished);
        table
    }
}

/// Longest name in a sentence, characters.
const LONGEST_NAME: usize = 60;

/// The variant that somebody means by a name: its own, or the short form that reports print, where only one has it.
pub(crate) fn named<'v>(variants: impl Iterator<Item = &'v str> + Clone, wanted: &str) -> Option<&'v str> {
    if let Some(exact) = variants.clone().find(|v| *v == wanted) {
        return Some(exact);
    }
    let mut short: Vec<&str> = variants.filter(|v| short_variant(v, 0) == wanted).collect();
    short.sort_unstable();
    short.dedup();
    if let [one] = short[..] { Some(one) } else { None }
}

/// A name for sentences.
pub(crate) fn shown(name: &str) -> String {
    let name = &short_variant(name, 0);
    let count = name.chars().count();
    if count <= LONGEST_NAME {
        return name.to_string();
    }
    let half = LONGEST_NAME / 2 - 1;
    let (head, tail): (String, String) = (name.chars().take(half).collect(), name.chars().skip(count - half).collect());
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_may_be_called_what_reports_call_it() {
        let all = ["k+machine.ram=64MiB", "k+machine.ram=32MiB", "k+machine.ram=64MiB", "k"];
        let short = short_variant(all[0], 0);
        assert_ne!(short, all[0]);
        assert_eq!(named(all.into_iter(), all[0]), Some(all[0]));
        assert_eq!(named(all.into_iter(), &short), Some(all[0]), "{short}");
        assert_eq!(named(all.into_iter(), "nobody"), None);
    }
}
