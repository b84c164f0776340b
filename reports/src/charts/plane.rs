//! Lines and marks on a plane, with a legend on top: distributions, progress, seeks, sweeps.

use super::theme::{LINES, Role, SMALL, WIDTH, style, width_of};
use super::{Area, text};
use crate::escape;
use crate::number::{tick, ticks};
use kreplay_analysis::model::{Axis, Join, Plane};
use kreplay_analysis::stats::envelope;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Height of the drawing without the legend, pixels.
const PLOT: i32 = 250;
const LEFT: i32 = 58;
const RIGHT: i32 = 14;
const BOTTOM: i32 = 40;
const LEGEND_LINE: i32 = 19;
/// Longest name in the legend, characters.
const NAME: usize = 44;
/// Most marks of a line in the drawing; pages have more of them in their data.
const MARKS: usize = 300;
/// Most entries of the legend.
const ENTRIES: usize = 24;

/// An axis, ready to place values.
pub(crate) struct Scale {
    log: bool,
    from: f64,
    to: f64,
    /// Marks with their labels.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Scale {
    /// An axis over `values`; linear ones begin at 0, logarithmic ones cover whole decades.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Scale {
        let top = values.clone().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let smallest = values.filter(|v| v.is_finite() && *v > 0.0).fold(f64::INFINITY, f64::min);
        if axis.log && smallest.is_finite() {
            let from = smallest.log10().floor() as i32;
            let to = (top.log10().ceil() as i32).max(from + 1);
            let step = ((to - from) / 7 + 1).max(1) as usize;
            let marks = (from..=to).step_by(step).map(|e| (10f64.powi(e), decade(e))).collect();
            return Scale { log: true, from: f64::from(from), to: f64::from(to), marks };
        }
        let (marks, step) = ticks(top, 5);
        let to = marks.last().copied().unwrap_or(1.0);
        Scale { log: false, from: 0.0, to, marks: marks.into_iter().map(|m| (m, tick(m, step))).collect() }
    }

    /// Place of a value, 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let v = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((v - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// A power of ten as people write it.
fn decade(e: i32) -> String {
    if (-4..=6).contains(&e) { tick(10f64.powi(e), 10f64.powi(e)) } else { format!("1e{e}") }
}

/// Legend entries with their place; and the height they take.
fn legend(chart: &Plane) -> (Vec<(i32, i32, String)>, i32) {
    let (mut x, mut line) = (0, 0);
    let mut entries = Vec::new();
    for l in chart.lines.iter().take(ENTRIES) {
        let label = escape::terminal(&l.label, NAME);
        let width = 18 + width_of(&label, SMALL) + 16;
        if x > 0 && x + width > WIDTH as i32 {
            x = 0;
            line += 1;
        }
        entries.push((x, line * LEGEND_LINE, label));
        x += width;
    }
    (entries, (line + 1) * LEGEND_LINE + 8)
}

/// Height of the chart, pixels.
pub(super) fn height(chart: &Plane) -> u32 {
    (legend(chart).1 + PLOT + BOTTOM) as u32
}

/// An axis with its unit.
pub(crate) fn title(axis: &Axis) -> String {
    match axis.unit.label() {
        "" => axis.title.clone(),
        unit => format!("{} ({unit})", axis.title),
    }
}

/// Draws the chart.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Plane) -> Result<(), String> {
    let (entries, top) = legend(chart);
    let small = style(Role::Ink, SMALL, HPos::Left, VPos::Center);
    for (i, (x, y, name)) in entries.into_iter().enumerate() {
        let color = Role::Line(i).color().filled();
        area.draw(&Rectangle::new([(x, y + 4), (x + 12, y + 14)], color)).map_err(text)?;
        area.draw(&Text::new(name, (x + 18, y + 9), small.clone())).map_err(text)?;
    }
    let points = || chart.lines.iter().flat_map(|l| l.points.iter());
    let (xs, ys) = (Scale::new(&chart.x, points().map(|p| p.0)), Scale::new(&chart.y, points().map(|p| p.1)));
    let (span, bottom) = (WIDTH as i32 - LEFT - RIGHT, top + PLOT);
    let at = |p: &(f64, f64)| {
        (
            LEFT + (xs.place(p.0) * f64::from(span)).round() as i32,
            bottom - (ys.place(p.1) * f64::from(PLOT)).round() as i32,
        )
    };
    let muted = |h, v| style(Role::Muted, SMALL, h, v);
    for (mark, name) in &xs.marks {
        let x = LEFT + (xs.place(*mark) * f64::from(span)).round() as i32;
        area.draw(&PathElement::new([(x, top), (x, bottom)], Role::Grid.color())).map_err(text)?;
        area.draw(&Text::new(name.clone(), (x, bottom + 5), muted(HPos::Center, VPos::Top))).map_err(text)?;
    }
    for (mark, name) in &ys.marks {
        let y = bottom - (ys.place(*mark) * f64::from(PLOT)).round() as i32;
        area.draw(&PathElement::new([(LEFT, y), (WIDTH as i32 - RIGHT, y)], Role::Grid.color())).map_err(text)?;
        area.draw(&Text::new(name.clone(), (LEFT - 6, y), muted(HPos::Right, VPos::Center))).map_err(text)?;
    }
    let below = escape::terminal(&title(&chart.x), 80);
    area.draw(&Text::new(below, (WIDTH as i32 - RIGHT, bottom + 21), muted(HPos::Right, VPos::Top))).map_err(text)?;
    let beside = escape::terminal(&title(&chart.y), 60);
    area.draw(&Text::new(beside, (LEFT + 4, top + 3), muted(HPos::Left, VPos::Top))).map_err(text)?;
    for (i, line) in chart.lines.iter().enumerate().take(LINES * 4) {
        let color = Role::Line(i).color();
        match line.join {
            Join::Marks => {
                let r = if line.points.len() > 20 { 1 } else { 4 };
                let mut marks: Vec<(i32, i32)> = envelope(&line.points, MARKS / 2).iter().map(at).collect();
                marks.dedup();
                for mark in marks {
                    area.draw(&Circle::new(mark, r, color.filled())).map_err(text)?;
                }
            }
            Join::Straight => {
                let mut path: Vec<(i32, i32)> = line.points.iter().map(at).collect();
                path.dedup();
                if path.is_empty() {
                    continue;
                }
                if let [only] = path.as_slice() {
                    area.draw(&Circle::new(*only, 3, color.filled())).map_err(text)?;
                } else {
                    area.draw(&PathElement::new(path, color.stroke_width(2))).map_err(text)?;
                }
            }
        }
    }
    Ok(())
}
