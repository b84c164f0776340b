//! The report: what renderers draw and what is written as JSON. It knows nothing of polars or of output formats.
//!
//! Every text in it may come from a trace or a file name and is untrusted; renderers escape all of them alike.

mod chart;
mod provenance;
mod table;

pub use chart::{
    Axis, BarRow, Bars, Category, DotPoint, DotRow, Dots, Flame, FlameNode, Heat, HeatCell, HeatRow, Join, Line,
    Origin, Panel, Plane, Series, Strips,
};
pub use provenance::{CellProvenance, ModelLine, Provenance, TableProvenance, VariantModel};
pub use table::{Better, Cell, Column, Row, Table, Unit, Value};

use serde::{Deserialize, Serialize};

/// Version of the report's JSON shape; it rises when a reader of the old shape would go wrong.
pub const SCHEMA: u32 = 2;

/// A comparison report over the cells of a results directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Always `kreplay-report`.
    pub kind: String,
    /// Heading.
    pub title: String,
    /// The question that the report answers, one sentence.
    pub question: String,
    /// What names and words stand for: a box above the answer.
    #[serde(default)]
    pub legend: Legend,
    /// The answer in words, most important first.
    pub verdict: Vec<Finding>,
    /// One part a trace.
    pub traces: Vec<TraceReport>,
    /// Where everything came from.
    pub provenance: Provenance,
}

/// What the names and words of a report stand for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Legend {
    /// Words that the answer uses.
    #[serde(default)]
    pub terms: Vec<Definition>,
    /// What is the same under all variants, in words; may be empty.
    #[serde(default)]
    pub common: String,
    /// Each variant by what sets it apart from the others.
    #[serde(default)]
    pub variants: Vec<Definition>,
    /// Parts of which variants' names are put together.
    #[serde(default)]
    pub parts: Vec<Definition>,
}

/// What was found for one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// Trace id (first 16 hexadecimal digits).
    pub id: String,
    /// Name for people: the trace directory's last component.
    pub name: String,
    /// Variants as rows, key metrics as columns.
    pub matrix: Table,
    /// One section a metric, in the order of the registry.
    pub sections: Vec<Section>,
    /// Things a reader should know: failures, kills, unfinished runs.
    pub findings: Vec<Finding>,
}

/// A part of the report about one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Stable id, usable as a file name and as an anchor: `[a-z0-9-]`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What is shown and how to read it, in plain words.
    pub lead: String,
    /// Tables and charts, in order.
    pub blocks: Vec<Block>,
    /// How the figures are defined.
    pub definitions: Vec<Definition>,
}

/// How a figure is defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The word.
    pub term: String,
    /// What it means here.
    pub meaning: String,
}

impl Definition {
    /// `term` means `meaning`.
    pub fn new(term: &str, meaning: &str) -> Definition {
        Definition { term: term.to_string(), meaning: meaning.to_string() }
    }
}

/// Something that is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "block", rename_all = "kebab-case")]
pub enum Block {
    /// Figures in rows and columns.
    Table(Table),
    /// Stacked horizontal bars.
    Bars(Bars),
    /// Points on one axis, a line for each row.
    Dots(Dots),
    /// Series over time, in small panels.
    Strips(Strips),
    /// Lines or marks on a plane.
    Plane(Plane),
    /// A table of shades.
    Heat(Heat),
    /// A tree of time.
    Flame(Flame),
    /// Statements under a name each.
    List(List),
}

/// Statements under a name each: what is too long for the cells of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    /// Stable id: `[a-z0-9-]`.
    pub id: String,
    /// What the statements are about, one sentence; may be empty.
    pub caption: String,
    /// The statements.
    pub items: Vec<Definition>,
}

impl Block {
    /// Something that formats without drawings show.
    pub fn is_text(&self) -> bool {
        match self {
            Block::Table(table) => !table.rows.is_empty(),
            Block::List(list) => !list.items.is_empty(),
            _ => false,
        }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The run did not do what it should; figures may mislead.
    Problem,
    /// Look at this before trusting a figure.
    Warning,
    /// Part of the answer.
    Answer,
    /// Worth knowing.
    Note,
}

impl Level {
    /// The word shown before a finding.
    pub fn word(self) -> &'static str {
        match self {
            Level::Problem => "problem",
            Level::Warning => "warning",
            Level::Answer => "answer",
            Level::Note => "note",
        }
    }
}

/// A statement in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The statement, whole sentences.
    pub text: String,
    /// When it happened, seconds from the start of the trace, if at a moment.
    pub time_s: Option<f64>,
    /// The single events that it sums up, where it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Finding {
    /// A statement without a moment.
    pub fn new(level: Level, text: impl Into<String>) -> Finding {
        Finding { level, text: text.into(), time_s: None, details: Vec::new() }
    }
}

/// A variant's name of at most `limit` characters if that can be had by leaving out where in the configuration a changed key
/// stands: `linux-2.4.16+ram=64MiB` for `linux-2.4.16+machine.ram=64MiB`. Names that are short enough stay.
pub fn short_variant(name: &str, limit: usize) -> String {
    if name.chars().count() <= limit || !name.contains('=') {
        return name.to_string();
    }
    let parts = name.split('+').map(|part| match part.split_once('=') {
        Some((key, value)) => format!("{}={value}", key.rsplit('.').next().unwrap_or(key)),
        None => part.to_string(),
    });
    parts.collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::short_variant;

    #[test]
    fn settings_lose_their_place_only_where_room_is_short() {
        let name = "linux-2.4.16+machine.ram=64MiB+elevator.policy=noop-2.4";
        assert_eq!(short_variant(name, 40), "linux-2.4.16+ram=64MiB+policy=noop-2.4");
        assert_eq!(short_variant(name, 80), name);
        assert_eq!(short_variant("a".repeat(50).as_str(), 10), "a".repeat(50));
    }
}
