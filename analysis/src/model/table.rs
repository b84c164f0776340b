//! Tables: columns with a unit, rows of cells.

use crate::compare::TIE_PCT;
use serde::{Deserialize, Serialize};

/// The unit of a column or an axis. Values are in exactly this unit; renderers never scale them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the label says it")]
pub enum Unit {
    None,
    Seconds,
    Milliseconds,
    Kib,
    Mib,
    KibPerSecond,
    MibPerSecond,
    Percent,
    Ratio,
    Count,
}

impl Unit {
    /// As it stands in a heading; empty for texts and bare counts.
    pub fn label(self) -> &'static str {
        match self {
            Unit::None | Unit::Count => "",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Kib => "KiB",
            Unit::Mib => "MiB",
            Unit::KibPerSecond => "KiB/s",
            Unit::MibPerSecond => "MiB/s",
            Unit::Percent => "%",
            Unit::Ratio => "ratio",
        }
    }
}

/// Which end of a column is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Smaller is better.
    Lower,
    /// Larger is better.
    Higher,
    /// Neither: the figure describes.
    Neither,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Stable id (`elapsed_s`): the key in CSV and JSON.
    pub id: String,
    /// Heading without the unit.
    pub title: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Digits after the point.
    pub digits: usize,
    /// Which end is the good one.
    pub better: Better,
}

impl Column {
    /// A column of texts.
    pub fn text(id: &str, title: &str) -> Column {
        Column { id: id.to_string(), title: title.to_string(), unit: Unit::None, digits: 0, better: Better::Neither }
    }

    /// A column of numbers that describe, none of them being best.
    pub fn number(id: &str, title: &str, unit: Unit, digits: usize) -> Column {
        Column { id: id.to_string(), title: title.to_string(), unit, digits, better: Better::Neither }
    }

    /// The same column with one end being the good one.
    pub fn better(self, better: Better) -> Column {
        Column { better, ..self }
    }

    /// Heading with the unit: `elapsed (s)`.
    pub fn heading(&self) -> String {
        match self.unit.label() {
            "" => self.title.clone(),
            unit => format!("{} ({unit})", self.title),
        }
    }

    /// True if the column holds texts.
    pub fn is_text(&self) -> bool {
        self.unit == Unit::None
    }
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Not applicable or not known.
    Missing,
    /// A number in the column's unit, finite.
    Number(f64),
    /// A text; untrusted.
    Text(String),
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What stands there; with several seeds the median.
    pub value: Value,
    /// Smallest and largest value over the seeds, when there are several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub range: Option<(f64, f64)>,
    /// Best of its column.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub best: bool,
}

impl Cell {
    /// A number, or nothing if it is not finite.
    pub fn number(value: impl Into<Option<f64>>) -> Cell {
        let value = value.into().filter(|v| v.is_finite()).map_or(Value::Missing, Value::Number);
        Cell { value, range: None, best: false }
    }

    /// A count.
    pub fn count(value: impl Into<Option<i64>>) -> Cell {
        Cell::number(value.into().map(|v| v as f64))
    }

    /// A text.
    pub fn text(value: impl Into<String>) -> Cell {
        Cell { value: Value::Text(value.into()), range: None, best: false }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            Value::Number(v) => Some(v),
            _ => None,
        }
    }
}

/// A row of a table; one cell a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cells, in column order.
    pub cells: Vec<Cell>,
}

/// Figures in rows and columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// What the table shows, one sentence.
    pub caption: String,
    /// Columns; the first names the row.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Columns of nothing but zeros are left out.
    #[serde(skip)]
    pub sparse: bool,
    /// Which rows may be marked best, if any were to be.
    #[serde(skip)]
    pub(crate) ranked: Option<Vec<bool>>,
}

impl Table {
    /// A table without rows.
    pub fn new(id: &str, caption: &str, columns: Vec<Column>) -> Table {
        Table {
            id: id.to_string(),
            caption: caption.to_string(),
            columns,
            rows: Vec::new(),
            sparse: false,
            ranked: None,
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell for each column: a mistake in the metric, not in the input.
    pub fn push(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "table {}: cells and columns differ in number", self.id);
        self.rows.push(Row { cells });
    }

    /// Marks the best cells of each column that has a good end, among rows for which `eligible` is true: the best value
    /// and those that are not distinguishable from it by one seed's rule. A column in which that holds for all values gets
    /// no mark: there is nothing to choose.
    pub fn mark_best(&mut self, eligible: impl Fn(usize) -> bool) {
        self.ranked = Some((0..self.rows.len()).map(eligible).collect());
        self.mark_again();
    }

    /// The same once more, after values have changed.
    pub fn mark_again(&mut self) {
        let Some(ranked) = self.ranked.clone() else { return };
        let eligible = |row: usize| ranked.get(row).copied().unwrap_or(false);
        for (c, column) in self.columns.iter().enumerate() {
            let sign = match column.better {
                Better::Lower => 1.0,
                Better::Higher => -1.0,
                Better::Neither => continue,
            };
            let values: Vec<(usize, f64)> = (0..self.rows.len())
                .filter(|r| eligible(*r))
                .filter_map(|r| Some((r, self.rows[r].cells[c].as_number()?)))
                .collect();
            let Some(best) = values.iter().map(|(_, v)| *v).min_by(|a, b| (a * sign).total_cmp(&(b * sign))) else {
                continue;
            };
            let ties = |v: f64| {
                let printed = |v: f64| format!("{:.*}", column.digits, v);
                (v - best).abs() < v.abs().max(best.abs()) * TIE_PCT / 100.0 || printed(v) == printed(best)
            };
            if values.iter().all(|(_, v)| ties(*v)) {
                continue;
            }
            for (r, v) in values {
                self.rows[r].cells[c].best = ties(v);
            }
        }
    }
}
