//! Points on one axis, a line for each row: finish times of clients, quantiles of latencies.

use super::theme::{LABEL, Role, SMALL, WIDTH, style, width_of};
use super::{Area, text};
use crate::number::tick;
use crate::{escape, number};
use kreplay_analysis::model::{Dots, Origin};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

const ROW: i32 = 46;
const AXIS: i32 = 26;
const TOP: i32 = 2;
/// Room for half a mark's label on both sides, pixels.
const SIDE: i32 = 16;
/// Longest name at a point, characters.
const NAME: usize = 20;

/// Height of the chart, pixels.
pub(super) fn height(chart: &Dots) -> u32 {
    (TOP + ROW * chart.rows.len() as i32 + AXIS) as u32
}

/// Marks of the axis with their labels.
fn axis(chart: &Dots) -> Vec<(f64, String)> {
    let values = || chart.rows.iter().flat_map(|r| r.points.iter().map(|p| p.value));
    let top = values().fold(0.0, f64::max);
    if !chart.log {
        let (marks, step) = number::ticks(top, 7);
        return marks.into_iter().map(|m| (m, tick(m, step))).collect();
    }
    let smallest = values().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    if !smallest.is_finite() {
        return vec![(0.1, "0.1".to_string()), (1.0, "1".to_string())];
    }
    let (from, to) =
        (smallest.log10().floor() as i32, (top.log10().ceil() as i32).max(smallest.log10().floor() as i32 + 1));
    (from..=to).map(|e| (10f64.powi(e), tick(10f64.powi(e), 10f64.powi(e)))).collect()
}

/// Draws the chart.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Dots) -> Result<(), String> {
    let marks = axis(chart);
    let (first, last) = (marks[0].0, marks[marks.len() - 1].0);
    let span = f64::from(WIDTH as i32 - 2 * SIDE);
    let place = |v: f64| {
        let share = if chart.log {
            (v.max(first).log10() - first.log10()) / (last.log10() - first.log10())
        } else {
            (v - first) / (last - first)
        };
        SIDE + (share.clamp(0.0, 1.0) * span).round() as i32
    };
    let bottom = TOP + ROW * chart.rows.len() as i32;
    for (i, (mark, name)) in marks.iter().enumerate() {
        let x = place(*mark);
        area.draw(&PathElement::new([(x, TOP), (x, bottom)], Role::Grid.color())).map_err(text)?;
        let (name, h) = if i + 1 == marks.len() {
            (format!("{name} {}", chart.unit.label()), HPos::Right)
        } else {
            (name.clone(), HPos::Center)
        };
        let x = if i + 1 == marks.len() { x + SIDE } else { x };
        area.draw(&Text::new(name, (x, bottom + 8), style(Role::Muted, SMALL, h, VPos::Top))).map_err(text)?;
    }
    for (i, row) in chart.rows.iter().enumerate() {
        let y = TOP + ROW * i as i32;
        let role = if row.origin == Origin::Recorded { Role::Recorded } else { Role::Simulated };
        let label = style(Role::Ink, LABEL, HPos::Left, VPos::Bottom);
        area.draw(&Text::new(escape::terminal(&row.label, 70), (0, y + 18), label)).map_err(text)?;
        let mut points: Vec<(i32, &str)> = row.points.iter().map(|p| (place(p.value), p.label.as_str())).collect();
        points.sort_by_key(|p| p.0);
        let line = y + 26;
        if let (Some(from), Some(to)) = (points.first(), points.last()) {
            let bar = Rectangle::new([(from.0, line - 2), (to.0.max(from.0 + 1), line + 2)], role.color().filled());
            area.draw(&bar).map_err(text)?;
        }
        for (x, _) in &points {
            area.draw(&Circle::new((*x, line), 5, role.color().filled())).map_err(text)?;
        }
        if chart.log {
            names_below(area, &points, line)?;
        } else {
            names_at_ends(area, &points, line)?;
        }
    }
    Ok(())
}

/// Names under the points, as long as they do not touch: for quantiles, whose order is known.
fn names_below<B: DrawingBackend>(area: &Area<B>, points: &[(i32, &str)], line: i32) -> Result<(), String> {
    let mut free_from = i32::MIN;
    for (x, name) in points {
        let name = escape::terminal(name, NAME);
        let half = width_of(&name, SMALL) / 2;
        if x - half > free_from && x + half <= WIDTH as i32 {
            let under = style(Role::Muted, SMALL - 1.0, HPos::Center, VPos::Top);
            area.draw(&Text::new(name, (*x, line + 7), under)).map_err(text)?;
            free_from = x + half + 4;
        }
    }
    Ok(())
}

/// Names of the first and the last point beside them: who won and who lost.
fn names_at_ends<B: DrawingBackend>(area: &Area<B>, points: &[(i32, &str)], line: i32) -> Result<(), String> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
    let (before, after) = (escape::terminal(first.1, NAME), escape::terminal(last.1, NAME));
    if points.len() > 1 && first.0 - 9 - width_of(&before, SMALL) >= 0 {
        let left = style(Role::Muted, SMALL - 1.0, HPos::Right, VPos::Center);
        area.draw(&Text::new(before, (first.0 - 9, line), left)).map_err(text)?;
    }
    if last.0 + 9 + width_of(&after, SMALL) <= WIDTH as i32 {
        let right = style(Role::Muted, SMALL - 1.0, HPos::Left, VPos::Center);
        area.draw(&Text::new(after, (last.0 + 9, line), right)).map_err(text)?;
    }
    Ok(())
}
