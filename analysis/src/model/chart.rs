//! Charts as data: what is drawn, not how.

use super::Unit;
use serde::{Deserialize, Serialize};

/// Stacked horizontal bars: how a total divides, row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The parts of a bar, left to right.
    pub categories: Vec<Category>,
    /// The bars, top to bottom.
    pub rows: Vec<BarRow>,
}

/// One part of a stacked bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Category {
    /// Stable id.
    pub id: String,
    /// Legend.
    pub label: String,
}

/// One stacked bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarRow {
    /// Whose bar it is; untrusted.
    pub label: String,
    /// One value a category, not negative.
    pub values: Vec<f64>,
}

/// Points on one axis, a line for each row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dots {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// What the axis measures.
    pub axis: String,
    /// Unit of the axis.
    pub unit: Unit,
    /// The axis is logarithmic.
    pub log: bool,
    /// The rows, top to bottom.
    pub rows: Vec<DotRow>,
}

/// A row of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DotRow {
    /// Whose points they are; untrusted.
    pub label: String,
    /// Recorded or simulated.
    pub origin: Origin,
    /// The points.
    pub points: Vec<DotPoint>,
}

/// A point of a [`Dots`] chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DotPoint {
    /// What it stands for; untrusted.
    pub label: String,
    /// Where it lies on the axis.
    pub value: f64,
}

/// Whether a figure was measured on the real machine or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// From the recording.
    Recorded,
    /// From the replay.
    Simulated,
}

/// Series over time, in small panels that share the time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strips {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// Whose series they are; untrusted.
    pub label: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// End of the time axis, seconds.
    pub end_s: f64,
    /// The panels.
    pub panels: Vec<Panel>,
    /// Largest number of samples that a series had before it was thinned (lowest and highest value of each stretch
    /// kept); `None` if nothing was thinned.
    pub thinned_from: Option<usize>,
}

/// One panel of a strip chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// vmstat's column name.
    pub title: String,
    /// What the column means, in a few words.
    pub about: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Top of the value axis: the same for all variants, so that panels compare.
    pub top: f64,
    /// At most one recorded and one simulated series.
    pub series: Vec<Series>,
}

/// A series over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Recorded or simulated.
    pub origin: Origin,
    /// (seconds from the start of the trace, value in the panel's unit), by time.
    pub points: Vec<(f64, f64)>,
}
