//! Stacked horizontal bars with a legend on top and the sum at the end of each bar.

use super::theme::{LABEL, Role, SMALL, WIDTH, part, style, width_of};
use super::{Area, text};
use crate::number::fixed;
use crate::{escape, number};
use kreplay_analysis::model::Bars;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

const ROW: i32 = 46;
const BAR: i32 = 20;
const LEGEND_LINE: i32 = 20;
const AXIS: i32 = 24;
/// Right of the axis, for the sum at the end of the longest bar, pixels.
const ROOM_FOR_SUM: u32 = 72;

/// Legend entries with their place.
fn legend(chart: &Bars) -> (Vec<(i32, i32, String)>, i32) {
    let (mut x, mut line) = (0, 0);
    let entries = chart
        .categories
        .iter()
        .map(|c| {
            let label = escape::terminal(&c.label, 30);
            let width = 18 + width_of(&label, SMALL) + 16;
            if x > 0 && x + width > WIDTH as i32 {
                x = 0;
                line += 1;
            }
            let at = (x, line * LEGEND_LINE, label);
            x += width;
            at
        })
        .collect();
    (entries, (line + 1) * LEGEND_LINE + 6)
}

/// Height of the chart, pixels.
pub(super) fn height(chart: &Bars) -> u32 {
    (legend(chart).1 + ROW * chart.rows.len() as i32 + AXIS) as u32
}

/// Draws the chart.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Bars) -> Result<(), String> {
    let (entries, top) = legend(chart);
    let label = style(Role::Ink, LABEL, HPos::Left, VPos::Bottom);
    let small = style(Role::Ink, SMALL, HPos::Left, VPos::Center);
    for (i, (x, y, name)) in entries.into_iter().enumerate() {
        let color = part(&chart.categories[i].id, i).color().filled();
        area.draw(&Rectangle::new([(x, y + 3), (x + 12, y + 15)], color)).map_err(text)?;
        area.draw(&Text::new(name, (x + 18, y + 9), small.clone())).map_err(text)?;
    }
    let longest = chart.rows.iter().map(|r| r.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let (marks, step) = number::ticks(longest, 6);
    let end = marks.last().copied().unwrap_or(1.0);
    let scale = |v: f64| ((v / end).clamp(0.0, 1.0) * f64::from(WIDTH - ROOM_FOR_SUM)).round() as i32;
    let bottom = top + ROW * chart.rows.len() as i32;
    for mark in &marks {
        let x = scale(*mark);
        area.draw(&PathElement::new([(x, top + 4), (x, bottom)], Role::Grid.color())).map_err(text)?;
        let last = *mark == end;
        let name = if last {
            format!("{} {}", number::tick(*mark, step), chart.unit.label())
        } else {
            number::tick(*mark, step)
        };
        let h = if x == 0 { HPos::Left } else { HPos::Center };
        area.draw(&Text::new(name, (x, bottom + 6), style(Role::Muted, SMALL, h, VPos::Top))).map_err(text)?;
    }
    for (i, row) in chart.rows.iter().enumerate() {
        let y = top + ROW * i as i32;
        area.draw(&Text::new(escape::terminal(&row.label, 70), (0, y + 19), label.clone())).map_err(text)?;
        let sum: f64 = row.values.iter().sum();
        let mut before = 0.0;
        for (p, value) in row.values.iter().enumerate() {
            let (from, to) = (scale(before), scale(before + value));
            before += value;
            if to <= from {
                continue;
            }
            let color = part(&chart.categories[p].id, p).color().filled();
            area.draw(&Rectangle::new([(from, y + 22), (to, y + 22 + BAR)], color)).map_err(text)?;
        }
        let total = format!("{} {}", fixed(sum, 1), chart.unit.label());
        let beside = style(Role::Muted, SMALL, HPos::Left, VPos::Center);
        area.draw(&Text::new(total, (scale(sum) + 7, y + 22 + BAR / 2), beside)).map_err(text)?;
    }
    Ok(())
}
