//! What the matrix says as a whole: who is beaten on every count, how figures move along a sweep, and which setting explains
//! how much.
//!
//! * Pareto set: a finished variant belongs to it if no other finished variant is at least as good by every chosen figure and
//!   distinguishably better by one ([`crate::compare::Rule`]). Figures: [`CHOSEN`] unless the caller names others.
//! * Settings: [`crate::settings`].
//! * A sweep: variants that differ in one numeric setting only; a line for each combination of the others.
//! * Factors: [`crate::factors`], if the settings form a full grid.

use crate::compare::Rule;
use crate::factors::{Observation, decompose};
use crate::matrix::{Folded, Matrix};
use crate::model::{
    Axis, Better, Block, Cell, CellProvenance, Column, Definition, Finding, Heat, HeatCell, HeatRow, Join, Level, Line,
    Plane, Section, Table, Unit,
};
use crate::settings::{Setting, grid, settings};
use indexmap::IndexMap;

/// Figures of the Pareto set, by column id.
const CHOSEN: [&str; 3] = ["elapsed_s", "last_over_first", "read_p999_ms"];
/// Figures drawn along a sweep and taken apart by factors, where they are known.
const FIGURES: [&str; 6] =
    ["elapsed_s", "throughput_mib_s", "last_over_first", "read_p999_ms", "write_p999_ms", "disk_read_mib"];
/// Effects listed for a figure.
const EFFECTS: usize = 5;
/// Most columns of the heat map.
const HEAT_COLUMNS: usize = 16;

/// What is looked at.
pub(crate) struct Tradeoffs<'a> {
    /// Key figures.
    pub matrix: &'a Matrix,
    /// Cells of the trace.
    pub cells: &'a [CellProvenance],
    /// Figures of the Pareto set; empty for [`CHOSEN`].
    pub chosen: &'a [String],
    /// When figures differ.
    pub rule: Rule,
}

impl Tradeoffs<'_> {
    /// The section, and what belongs into the verdict.
    pub(crate) fn section(&self) -> (Option<Section>, Vec<Finding>) {
        let mut blocks = Vec::new();
        let mut said = Vec::new();
        let mut definitions = Vec::new();
        if self.matrix.rows.len() > 1 {
            blocks.extend(self.heat().map(Block::Heat));
            if let Some((table, finding)) = self.pareto() {
                blocks.push(Block::Table(table));
                said.extend(finding);
                definitions.push(Definition::new("undominated", "no other variant is at least as good by every one of these figures and distinguishably better by one: only among these is there anything to weigh"));
            }
            let settings = settings(self.matrix, self.cells);
            blocks.extend(self.sweeps(&settings).into_iter().map(Block::Plane));
            if let Some(table) = self.factors(&grid(&settings)) {
                blocks.push(Block::Table(table));
                definitions.push(Definition::new("explains", "share of the variance of the figure over the grid that goes with the setting, or with the interplay of several beyond what each does alone (analysis of variance of the full grid). It is a share of this grid: a setting varied over a wider range explains more"));
                definitions.push(Definition::new("between seeds", "share of the variance that no setting explains"));
            }
        }
        let section = (!blocks.is_empty()).then(|| Section {
            id: "tradeoffs".to_string(),
            title: "Trade-offs".to_string(),
            lead: "What is worth weighing, and what is not: a variant that is beaten on every count needs no further thought.".to_string(),
            blocks,
            definitions,
        });
        (section, said)
    }

    fn value(&self, row: usize, id: &str) -> Option<Folded> {
        self.matrix.get(&self.matrix.rows[row], id)
    }

    /// Each figure against the best of its column.
    fn heat(&self) -> Option<Heat> {
        let columns: Vec<&Column> = self
            .matrix
            .columns
            .iter()
            .filter(|c| c.better != Better::Neither)
            .filter(|c| self.differs(c))
            .take(HEAT_COLUMNS)
            .collect();
        if columns.is_empty() {
            return None;
        }
        let rows = (0..self.matrix.rows.len())
            .map(|r| HeatRow {
                label: self.matrix.rows[r].variant.clone(),
                cells: columns.iter().map(|c| self.shade(r, c)).collect(),
            })
            .collect();
        Some(Heat {
            id: "matrix-heat".to_string(),
            caption: "Each figure against the best of its column: empty is the best, full is the worst or at least twice as bad. Columns in which the variants do not differ are left out.".to_string(),
            columns: columns.iter().map(|c| c.heading()).collect(),
            rows,
        })
    }

    fn best(&self, column: &Column) -> Option<f64> {
        let values = (0..self.matrix.rows.len()).filter_map(|r| Some(self.value(r, &column.id)?.median));
        if column.better == Better::Higher { values.max_by(f64::total_cmp) } else { values.min_by(f64::total_cmp) }
    }

    fn differs(&self, column: &Column) -> bool {
        let values: Vec<Folded> = (0..self.matrix.rows.len()).filter_map(|r| self.value(r, &column.id)).collect();
        values.iter().any(|v| self.rule.differ(*v, values[0]))
    }

    fn shade(&self, row: usize, column: &Column) -> HeatCell {
        let (Some(value), Some(best)) = (self.value(row, &column.id), self.best(column)) else {
            return HeatCell { shade: None, text: "-".to_string() };
        };
        let worst = (0..self.matrix.rows.len())
            .filter_map(|r| Some((self.value(r, &column.id)?.median - best).abs()))
            .fold(0.0, f64::max);
        let away = (value.median - best).abs();
        // Twice as bad as the best is full, unless the whole column lies closer together or the best is 0.
        let full = if best.abs() > 0.0 { worst.min(best.abs()) } else { worst };
        let shade = if full > 0.0 { (away / full).min(1.0) } else { 0.0 };
        HeatCell { shade: Some(shade), text: short(value.median, column.digits) }
    }

    fn pareto(&self) -> Option<(Table, Option<Finding>)> {
        let wanted: Vec<&str> =
            if self.chosen.is_empty() { CHOSEN.to_vec() } else { self.chosen.iter().map(String::as_str).collect() };
        let columns: Vec<&Column> =
            wanted.iter().filter_map(|id| self.matrix.columns.iter().find(|c| c.id == *id)).collect();
        let rows: Vec<usize> = (0..self.matrix.rows.len())
            .filter(|r| self.matrix.rows[*r].finished && columns.iter().all(|c| self.value(*r, &c.id).is_some()))
            .collect();
        if columns.len() < 2 || rows.len() < 2 {
            return None;
        }
        let beaten: Vec<Option<usize>> =
            rows.iter().map(|r| rows.iter().copied().find(|o| o != r && self.beats(*o, *r, &columns))).collect();
        let mut headings = vec![
            Column::text("variant", "variant"),
            Column::text("undominated", "undominated"),
            Column::text("beaten_by", "beaten by"),
        ];
        headings.extend(columns.iter().map(|c| (*c).clone()));
        let names = columns.iter().map(|c| c.title.as_str()).collect::<Vec<_>>().join(", ");
        let mut table = Table::new("pareto", &format!("Who is beaten on every count, by {names}."), headings);
        for (r, by) in rows.iter().zip(&beaten) {
            let mut cells = vec![
                Cell::text(self.matrix.rows[*r].variant.clone()),
                Cell::text(if by.is_none() { "yes" } else { "no" }),
                by.map_or_else(|| Cell::number(None), |b| Cell::text(self.matrix.rows[b].variant.clone())),
            ];
            cells.extend(columns.iter().map(|c| Cell::number(self.value(*r, &c.id).map(|v| v.median))));
            table.push(cells);
        }
        let left: Vec<usize> = rows.iter().zip(&beaten).filter(|(_, b)| b.is_none()).map(|(r, _)| *r).collect();
        let finding = match left.as_slice() {
            [best] if rows.len() > 2 && !rows.iter().any(|r| self.better_by_some(*r, *best, &columns)) => {
                Some(Finding::new(
                    Level::Answer,
                    format!(
                        "No other variant is distinguishably better than {} by any of {names}: there is nothing to weigh.",
                        self.matrix.rows[*best].shown
                    ),
                ))
            }
            _ => None,
        };
        Some((table, finding))
    }

    /// True if `a` is distinguishably better than `b` by some figure.
    fn better_by_some(&self, a: usize, b: usize, columns: &[&Column]) -> bool {
        columns.iter().any(|c| {
            let (Some(x), Some(y)) = (self.value(a, &c.id), self.value(b, &c.id)) else { return false };
            let gain = if c.better == Better::Higher { x.median - y.median } else { y.median - x.median };
            gain > 0.0 && self.rule.differ(x, y)
        })
    }

    /// True if `a` is at least as good as `b` by every figure and distinguishably better by one.
    fn beats(&self, a: usize, b: usize, columns: &[&Column]) -> bool {
        let mut better = false;
        for c in columns {
            let (Some(x), Some(y)) = (self.value(a, &c.id), self.value(b, &c.id)) else { return false };
            let gain = if c.better == Better::Higher { x.median - y.median } else { y.median - x.median };
            let differ = self.rule.differ(x, y);
            if differ && gain < 0.0 {
                return false;
            }
            better |= differ && gain > 0.0;
        }
        better
    }

    fn figures(&self) -> Vec<&Column> {
        FIGURES
            .iter()
            .filter_map(|id| self.matrix.columns.iter().find(|c| c.id == *id))
            .filter(|c| self.differs(c))
            .collect()
    }

    /// Figures along each numeric setting with at least three values, if the variants differ in it alone.
    fn sweeps(&self, settings: &[Setting]) -> Vec<Plane> {
        let mut planes = Vec::new();
        for (s, setting) in settings.iter().enumerate() {
            let Some(numbers) = setting.numbers().filter(|n| n.len() > 2) else { continue };
            // Rows with the same values of all other settings form a line.
            let mut lines: IndexMap<Vec<usize>, Vec<usize>> = IndexMap::new();
            for row in 0..self.matrix.rows.len() {
                let others = settings.iter().enumerate().filter(|(o, _)| *o != s).map(|(_, o)| o.level[row]).collect();
                lines.entry(others).or_default().push(row);
            }
            lines.retain(|_, rows| rows.len() > 2);
            if lines.is_empty() {
                continue;
            }
            let scale = if numbers.iter().all(|n| *n >= 1024.0 * 1024.0) { 1024.0 * 1024.0 } else { 1.0 };
            let unit = if scale > 1.0 { Unit::Mib } else { Unit::Count };
            let wide = numbers[0] > 0.0 && numbers[numbers.len() - 1] / numbers[0] >= 8.0;
            for figure in self.figures() {
                planes.push(Plane {
                    id: format!("sweep-{s}-{}", figure.id.replace('_', "-")),
                    label: String::new(),
                    caption: format!("{} along {}.", figure.title, setting.name()),
                    x: Axis { title: setting.name(), unit, log: wide },
                    y: Axis::linear(&figure.title, figure.unit),
                    lines: lines
                        .iter()
                        .map(|(others, rows)| {
                            let mut points: Vec<(f64, f64)> = rows
                                .iter()
                                .filter_map(|r| {
                                    Some((numbers[setting.level[*r]] / scale, self.value(*r, &figure.id)?.median))
                                })
                                .collect();
                            points.sort_by(|a, b| a.0.total_cmp(&b.0));
                            let label = line_name(settings, s, others, &self.matrix.rows[rows[0]].shown);
                            Line { group: label.clone(), label, join: Join::Straight, points }
                        })
                        .collect(),
                    thinned_from: None,
                });
            }
        }
        planes
    }

    fn factors(&self, settings: &[Setting]) -> Option<Table> {
        let levels: Vec<usize> = settings.iter().map(|s| s.values.len()).collect();
        if settings.len() < 2 {
            return None;
        }
        let mut table = Table::new(
            "factors",
            "Which setting explains how much of the differences over the grid of variants.",
            vec![
                Column::text("figure", "figure"),
                Column::text("setting", "setting"),
                Column::number("explains_pct", "explains", Unit::Percent, 1),
                Column::number("total_pct", "with interplay", Unit::Percent, 1),
            ],
        );
        for figure in self.figures() {
            let column = self.matrix.columns.iter().position(|c| c.id == figure.id)?;
            let runs: Vec<Observation> = self
                .matrix
                .rows
                .iter()
                .enumerate()
                .flat_map(|(r, row)| {
                    let levels: Vec<usize> = settings.iter().map(|s| s.level[r]).collect();
                    row.values[column].iter().map(move |v| Observation { levels: levels.clone(), value: *v })
                })
                .collect();
            let Ok(parts) = decompose(&levels, &runs) else { continue };
            for effect in parts.effects.iter().take(EFFECTS).filter(|e| e.share >= 0.005) {
                let name = effect.factors.iter().map(|f| settings[*f].name()).collect::<Vec<_>>().join(" x ");
                let total = (effect.factors.len() == 1).then(|| parts.total(effect.factors[0]) * 100.0);
                table.push(vec![
                    Cell::text(figure.title.clone()),
                    Cell::text(name),
                    Cell::number(effect.share * 100.0),
                    Cell::number(total),
                ]);
            }
            if parts.runs_per_cell > 1 {
                table.push(vec![
                    Cell::text(figure.title.clone()),
                    Cell::text("between seeds"),
                    Cell::number(parts.within * 100.0),
                    Cell::number(None),
                ]);
            }
        }
        (!table.rows.is_empty()).then_some(table)
    }
}

/// A figure for a narrow cell: no more than four digits that matter.
fn short(value: f64, digits: usize) -> String {
    let before = if value.abs() >= 100.0 {
        3
    } else if value.abs() >= 10.0 {
        2
    } else {
        1
    };
    format!("{value:.*}", digits.min(4 - before))
}

/// What the variants of a line share: the values of the other settings.
fn line_name(settings: &[Setting], swept: usize, others: &[usize], fallback: &str) -> String {
    let mut at = others.iter();
    let parts: Vec<String> = settings
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != swept)
        .filter_map(|(_, s)| {
            let level = *at.next()?;
            let key = s.keys[0].rsplit('.').next().unwrap_or("");
            Some(format!("{key}={}", s.values[level]))
        })
        .collect();
    match parts.len() {
        0 => "all variants".to_string(),
        n if n > 3 => fallback.to_string(),
        _ => parts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::CellHead;

    fn matrix(values: &[(&str, f64, f64)]) -> Matrix {
        let heads: Vec<CellHead> = values
            .iter()
            .map(|(v, _, _)| CellHead {
                label: (*v).to_string(),
                place: 0,
                seed: 1,
                variant: (*v).to_string(),
                finished: true,
            })
            .collect();
        let columns = vec![
            Column::number("elapsed_s", "elapsed", Unit::Seconds, 2).better(Better::Lower),
            Column::number("last_over_first", "last/first", Unit::Count, 2).better(Better::Lower),
        ];
        let values: Vec<Vec<Option<f64>>> = values.iter().map(|(_, a, b)| vec![Some(*a), Some(*b)]).collect();
        Matrix::new(columns, &heads, &values)
    }

    fn cell(variant: &str, config: &[(&str, &str)]) -> CellProvenance {
        CellProvenance {
            variant: variant.to_string(),
            config: config.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
            ..CellProvenance::default()
        }
    }

    #[test]
    fn the_pareto_set_leaves_out_who_is_beaten() {
        let matrix = matrix(&[("fast", 10.0, 3.0), ("even", 20.0, 1.0), ("bad", 25.0, 3.5), ("tie", 10.1, 3.0)]);
        let t = Tradeoffs { matrix: &matrix, cells: &[], chosen: &[], rule: Rule { tie_pct: 5.0 } };
        let (table, finding) = t.pareto().unwrap();
        let yes: Vec<String> = table.rows.iter().map(|r| format!("{:?}", r.cells[1].value)).collect();
        assert_eq!(yes, [r#"Text("yes")"#, r#"Text("yes")"#, r#"Text("no")"#, r#"Text("yes")"#]);
        assert!(finding.is_none());
    }

    #[test]
    fn settings_that_change_together_are_one_and_a_grid_is_taken_apart() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let values: Vec<(&str, f64, f64)> =
            names.iter().enumerate().map(|(i, n)| (*n, 10.0 + (i / 2) as f64 * 5.0 + (i % 2) as f64, 1.0)).collect();
        let matrix = matrix(&values);
        let cells: Vec<CellProvenance> = names
            .iter()
            .enumerate()
            .map(|(i, n)| {
                let ram = ["256 MiB", "64 MiB", "128 MiB"][i / 2];
                cell(n, &[("machine.ram", ram), ("zones.low", ram), ("elevator", ["x", "y"][i % 2]), ("cpus", "1")])
            })
            .collect();
        let t = Tradeoffs { matrix: &matrix, cells: &cells, chosen: &[], rule: Rule { tie_pct: 5.0 } };
        let settings = settings(&matrix, &cells);
        assert_eq!(settings.len(), 2);
        assert_eq!(settings[0].name(), "machine.ram, zones.low");
        assert_eq!(settings[0].values, ["64 MiB", "128 MiB", "256 MiB"]);
        let sweeps = t.sweeps(&settings);
        assert_eq!(sweeps.len(), 1);
        assert_eq!(sweeps[0].lines.len(), 2);
        assert_eq!(sweeps[0].lines[0].points, [(64.0, 15.0), (128.0, 20.0), (256.0, 10.0)]);
        let table = t.factors(&grid(&settings)).unwrap();
        assert!(table.rows[0].cells[2].as_number().unwrap() > 90.0, "{table:?}");
    }
}
