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

/// An axis of a plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Logarithmic; values are then above 0.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(title: &str, unit: Unit) -> Axis {
        Axis { title: title.to_string(), unit, log: false }
    }

    /// A logarithmic axis.
    pub fn log(title: &str, unit: Unit) -> Axis {
        Axis { title: title.to_string(), unit, log: true }
    }
}

/// How the points of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Join {
    /// By straight lines.
    Straight,
    /// Not at all: each point is a mark.
    Marks,
}

/// Lines or marks on a plane: distributions, progress, seeks, sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plane {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// Heading above the drawing, where several drawings differ in it only (a variant); untrusted, may be empty.
    pub label: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
    /// Largest number of points that a line had before it was thinned; `None` if nothing was thinned.
    pub thinned_from: Option<usize>,
}

/// A line of a [`Plane`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Legend; untrusted.
    pub label: String,
    /// Variant or client whose line it is: lines of one group have one colour and are switched together; untrusted.
    pub group: String,
    /// How its points are joined.
    pub join: Join,
    /// (x, y) in the axes' units, by x where joined.
    pub points: Vec<(f64, f64)>,
}

/// A table of shades: rows against columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// Headings of the columns; untrusted.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<HeatRow>,
}

/// A row of a [`Heat`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatRow {
    /// Whose row it is; untrusted.
    pub label: String,
    /// One cell a column.
    pub cells: Vec<HeatCell>,
}

/// A cell of a [`Heat`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatCell {
    /// Shade, 0 (none: as good as the best, or nothing) to 1 (full); `None` leaves the cell empty.
    pub shade: Option<f64>,
    /// What stands in the cell.
    pub text: String,
}

/// A tree of time: how a total divides into parts, and these again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// Whose time it is; untrusted.
    pub label: String,
    /// What is drawn and how to read it.
    pub caption: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The largest total of all flames that are compared with this one: the width of the drawing.
    pub top: f64,
    /// The whole.
    pub root: FlameNode,
}

/// A part of a [`Flame`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlameNode {
    /// What it is; untrusted.
    pub name: String,
    /// Stable id of the colour's part (a cause), or empty.
    pub part: String,
    /// Its size, in the flame's unit; at least the sum of the parts.
    pub value: f64,
    /// The parts, the largest first.
    pub parts: Vec<FlameNode>,
}
