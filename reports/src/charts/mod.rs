//! Charts by plotters, on any of its surfaces: SVG for pages and pictures ([`svg`]), pixels for pictures ([`png`]).
//!
//! Coordinates are whole pixels at [`theme::WIDTH`], so the same report gives the same bytes. Each role (ink, grid, a cause) has one
//! reserved colour, which each surface replaces by its own.

mod bars;
mod canvas;
mod dots;
mod flame;
mod heat;
mod pixels;
mod plane;
pub(crate) mod png;
mod strips;
pub(crate) mod svg;
mod theme;

pub(crate) use plane::{Scale, title as axis_title};
pub(crate) use theme::{STYLE, part_number};

use crate::{Error, RenderOptions, Result, escape, legend, provenance};
use kreplay_analysis::model::{Block, Report, TraceReport};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;

/// Drawing area of one chart.
type Area<B> = DrawingArea<B, Shift>;

/// A chart of a report, for a picture.
pub(crate) struct Listed<'r> {
    /// Stable id, `[a-z0-9-]`; charts that differ in their variant alone share it.
    pub id: &'r str,
    /// Id of its section, `[a-z0-9-]`.
    pub section: &'r str,
    /// Heading in the picture; holds names, so it is untrusted.
    pub title: String,
    /// The chart.
    pub block: &'r Block,
    /// Width and height, pixels.
    pub size: (u32, u32),
}

/// What a picture shows.
pub(crate) struct Chosen<'r> {
    /// The charts, top to bottom.
    pub charts: Vec<Listed<'r>>,
    /// What is said of the charts that it leaves out.
    pub note: Option<String>,
}

/// All charts of a report.
fn all(report: &Report) -> Vec<Listed<'_>> {
    let mut all = Vec::new();
    for trace in &report.traces {
        for (section, block) in trace.sections.iter().flat_map(|s| s.blocks.iter().map(move |b| (s.id.as_str(), b))) {
            if let Some((id, title, size)) = described(trace, block) {
                all.push(Listed { id, section, title, block, size });
            }
        }
    }
    all
}

/// Ids of the charts of a report, each once, in order: what a picture can be asked for.
pub(crate) fn ids(report: &Report) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for chart in all(report) {
        if ids.iter().all(|id| id != chart.id) {
            ids.push(chart.id.to_string());
        }
    }
    ids
}

/// The charts of a report that a picture shows: those of the asked id or section, or an overview: figures against the best and where the
/// time went, else the first chart. All of them under each other would make a picture that nobody can read.
///
/// # Errors
/// [`Error::Nothing`] without charts, [`Error::NoChart`] if none has the id.
pub(crate) fn chosen<'r>(report: &'r Report, options: &RenderOptions, kind: &'static str) -> Result<Chosen<'r>> {
    let mut charts = all(report);
    if charts.is_empty() {
        return Err(Error::Nothing { kind, why: "the report has no charts" });
    }
    if let Some(asked) = &options.chart {
        charts.retain(|c| c.id == asked || c.section == asked);
        if charts.is_empty() {
            return Err(Error::NoChart { asked: escape::terminal(asked, 60), known: ids(report).join(", ") });
        }
        return Ok(Chosen { charts, note: None });
    }
    let count = charts.len();
    let overview = |c: &Listed<'_>| matches!(c.block, Block::Heat(_) | Block::Bars(_));
    if charts.iter().any(overview) {
        charts.retain(overview);
    } else {
        charts.truncate(1);
    }
    let left_out = count - charts.len();
    let note = format!(
        "An overview: {left_out} more charts are left out. --chart ID shows one of them, --chart each writes each into a file of its own; html shows all."
    );
    Ok(Chosen { charts, note: (left_out > 0).then_some(note) })
}

/// Id, heading and size of a chart; `None` for tables.
fn described<'r>(trace: &TraceReport, block: &'r Block) -> Option<(&'r str, String, (u32, u32))> {
    let titled = |label: &str, what: &str| {
        if label.is_empty() { format!("{}: {what}", trace.name) } else { format!("{}, {label}: {what}", trace.name) }
    };
    let wide = |height: u32| (theme::WIDTH, height);
    Some(match block {
        Block::Table(_) | Block::List(_) => return None,
        Block::Bars(c) => (c.id.as_str(), titled("", "where the time went"), wide(bars::height(c))),
        Block::Dots(c) => (c.id.as_str(), titled("", &c.axis), wide(dots::height(c))),
        Block::Strips(c) => (c.id.as_str(), titled(&c.label, "over time"), wide(strips::height(c))),
        Block::Plane(c) => (c.id.as_str(), titled(&c.label, &c.y.title), wide(plane::height(c))),
        Block::Heat(c) => (c.id.as_str(), titled("", "figures against the best"), wide(heat::height(c))),
        Block::Flame(c) => (c.id.as_str(), titled(&c.label, "time of the clients"), wide(flame::height(c))),
    })
}

/// Longest line under a picture, characters; most lines about one thing.
const FOOT_WIDTH: usize = 108;
const FOOT_LINES: usize = 14;

/// What stands under a picture's charts: what the names stand for, and what the models were held against, wrapped.
fn foot(report: &Report) -> Vec<String> {
    let names = legend::lines(report).into_iter().map(|(term, meaning)| format!("{term}: {meaning}")).collect();
    let models = provenance::models_in_short(&report.provenance).iter().map(provenance::whose).collect();
    let mut lines = wrapped(legend::heading(report), names);
    lines.extend(wrapped(provenance::MODELS, models));
    lines
}

fn wrapped(heading: &str, said: Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for said in said {
        let text = escape::terminal(&said, 6 * FOOT_WIDTH);
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > FOOT_WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
        lines.push(escape::shorten(&line, FOOT_WIDTH));
    }
    if lines.len() > FOOT_LINES {
        lines.truncate(FOOT_LINES - 1);
        lines.push("... and more: see the page.".to_string());
    }
    if !lines.is_empty() {
        lines.insert(0, format!("{heading}:"));
    }
    lines
}

/// Draws a chart; tables draw nothing.
fn paint<B: DrawingBackend>(area: &Area<B>, block: &Block) -> std::result::Result<(), String> {
    match block {
        Block::Table(_) | Block::List(_) => Ok(()),
        Block::Bars(chart) => bars::draw(area, chart),
        Block::Dots(chart) => dots::draw(area, chart),
        Block::Strips(chart) => strips::draw_all(area, chart),
        Block::Plane(chart) => plane::draw(area, chart),
        Block::Heat(chart) => heat::draw(area, chart),
        Block::Flame(chart) => flame::draw(area, chart),
    }
}

/// plotters' errors as text.
fn text<E: Display>(error: E) -> String {
    error.to_string()
}
