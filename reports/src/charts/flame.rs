//! A tree of time as rows of boxes: the whole on top, its parts below.

use super::theme::{Role, SMALL, WIDTH, part, style, width_of};
use super::{Area, text};
use crate::escape;
use crate::number::fixed;
use kreplay_analysis::model::{Flame, FlameNode};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

const ROW: i32 = 22;

fn depth(node: &FlameNode) -> i32 {
    1 + node.parts.iter().map(depth).max().unwrap_or(0)
}

/// Height of the chart, pixels.
pub(super) fn height(chart: &Flame) -> u32 {
    (depth(&chart.root) * ROW + 2) as u32
}

/// Draws the chart.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Flame) -> Result<(), String> {
    let scale = if chart.top > 0.0 { f64::from(WIDTH) / chart.top } else { 0.0 };
    node(area, &chart.root, 0.0, 0, scale, chart.unit.label())
}

fn node<B: DrawingBackend>(
    area: &Area<B>,
    n: &FlameNode,
    from: f64,
    row: i32,
    scale: f64,
    unit: &str,
) -> Result<(), String> {
    let (left, right) = ((from * scale).round() as i32, ((from + n.value) * scale).round() as i32);
    if right <= left {
        return Ok(());
    }
    let y = row * ROW;
    let role = if n.part.is_empty() { Role::Recorded } else { part(&n.part, 0) };
    let end = (right - 1).max(left + 1);
    area.draw(&Rectangle::new([(left, y), (end, y + ROW - 2)], role.color().mix(0.75).filled())).map_err(text)?;
    let name = escape::terminal(&format!("{} {} {unit}", n.name, fixed(n.value, 2)), 60);
    let short = escape::terminal(&n.name, 30);
    let room = end - left - 6;
    let shown = [name, short].into_iter().find(|t| width_of(t, SMALL) <= room);
    if let Some(shown) = shown {
        let ink = style(Role::Ink, SMALL, HPos::Left, VPos::Center);
        area.draw(&Text::new(shown, (left + 3, y + (ROW - 2) / 2), ink)).map_err(text)?;
    }
    let mut at = from;
    for part in &n.parts {
        node(area, part, at, row + 1, scale, unit)?;
        at += part.value;
    }
    Ok(())
}
