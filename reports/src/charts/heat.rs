//! A table of shades.

use super::theme::{Role, SMALL, WIDTH, style};
use super::{Area, text};
use crate::escape;
use kreplay_analysis::model::Heat;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

const ROW: i32 = 24;
/// Room for the headings, one above the other so that long ones fit, pixels.
const HEADING: i32 = 15;
/// Width of the names, pixels.
const NAMES: i32 = 210;

/// Height of the chart, pixels.
pub(super) fn height(chart: &Heat) -> u32 {
    (chart.columns.len() as i32 * HEADING + 8 + ROW * chart.rows.len() as i32) as u32
}

/// Draws the chart.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Heat) -> Result<(), String> {
    let columns = chart.columns.len().max(1) as i32;
    let width = (WIDTH as i32 - NAMES) / columns;
    let top = columns * HEADING + 8;
    let muted = |h| style(Role::Muted, SMALL, h, VPos::Center);
    for (i, name) in chart.columns.iter().enumerate() {
        // A staircase of headings, each with a line down to its column.
        let (x, y) = (NAMES + width * i as i32 + width / 2, HEADING * i as i32 + HEADING / 2);
        area.draw(&PathElement::new([(x, y), (x, top)], Role::Grid.color())).map_err(text)?;
        area.draw(&Text::new(escape::terminal(name, 40), (x - 4, y), muted(HPos::Right))).map_err(text)?;
    }
    for (r, row) in chart.rows.iter().enumerate() {
        let y = top + ROW * r as i32;
        let label = style(Role::Ink, SMALL, HPos::Left, VPos::Center);
        area.draw(&Text::new(escape::terminal(&row.label, 32), (0, y + ROW / 2), label)).map_err(text)?;
        for (c, cell) in row.cells.iter().enumerate() {
            let x = NAMES + width * c as i32;
            if let Some(shade) = cell.shade.filter(|s| *s > 0.0) {
                let fill = Role::Warm.color().mix(shade.clamp(0.08, 1.0) * 0.85).filled();
                area.draw(&Rectangle::new([(x, y), (x + width - 2, y + ROW - 2)], fill)).map_err(text)?;
            }
            let ink = style(Role::Ink, SMALL - 1.0, HPos::Center, VPos::Center);
            area.draw(&Text::new(escape::terminal(&cell.text, 10), (x + width / 2, y + ROW / 2), ink)).map_err(text)?;
        }
    }
    Ok(())
}
