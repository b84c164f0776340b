//! Panels of vmstat over time: the recorded series as a grey area, the simulated one as a line over it.

use super::theme::{Role, SMALL, style};
use super::{Area, text};
use crate::number::tick;
use kreplay_analysis::model::{Origin, Panel, Strips, Unit};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Width of a panel, pixels.
pub(super) const WIDTH: u32 = 340;
/// Height of a panel, pixels.
pub(super) const HEIGHT: u32 = 132;

/// KiB as MiB where the axis would otherwise have too many digits: divisor and unit.
fn axis_unit(panel: &Panel) -> (f64, &'static str) {
    match panel.unit {
        Unit::Kib if panel.top >= 10_240.0 => (1024.0, "MiB"),
        Unit::KibPerSecond if panel.top >= 10_240.0 => (1024.0, "MiB/s"),
        unit => (1.0, unit.label()),
    }
}

/// Height of all panels, two beside each other, pixels.
pub(super) fn height(chart: &Strips) -> u32 {
    chart.panels.len().div_ceil(2).max(1) as u32 * HEIGHT
}

/// Draws all panels.
pub(super) fn draw_all<B: DrawingBackend>(area: &Area<B>, chart: &Strips) -> Result<(), String> {
    let parts = area.split_evenly((chart.panels.len().div_ceil(2).max(1), 2));
    chart.panels.iter().zip(&parts).try_for_each(|(panel, part)| draw(part, chart, panel))
}

/// Draws the panel.
pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, chart: &Strips, panel: &Panel) -> Result<(), String> {
    let (divisor, unit) = axis_unit(panel);
    let top = if panel.top > 0.0 { panel.top / divisor * 1.05 } else { 1.0 };
    let end = if chart.end_s > 0.0 { chart.end_s } else { 1.0 };
    let title = format!("{} ({unit})", panel.title);
    area.draw(&Text::new(title, (0, 2), style(Role::Ink, SMALL + 1.0, HPos::Left, VPos::Top))).map_err(text)?;
    let mut plot = ChartBuilder::on(area)
        .margin_top(20)
        .margin_right(14)
        .x_label_area_size(20)
        .y_label_area_size(42)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(text)?;
    let label = style(Role::Muted, SMALL, HPos::Center, VPos::Center);
    plot.configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(Role::Grid.color())
        .axis_style(Role::Muted.color())
        .x_labels(5)
        .y_labels(3)
        .x_label_style(label.clone())
        .y_label_style(label)
        .x_label_formatter(&|x| format!("{} s", tick(*x, if end < 5.0 { 0.1 } else { 1.0 })))
        .y_label_formatter(&|y| tick(*y, top / 3.0))
        .draw()
        .map_err(text)?;
    for origin in [Origin::Recorded, Origin::Simulated] {
        let Some(series) = panel.series.iter().find(|s| s.origin == origin) else { continue };
        let points = series.points.iter().map(|(x, y)| (*x, *y / divisor));
        if origin == Origin::Recorded {
            let fill = Role::Recorded.color().mix(0.55);
            plot.draw_series(AreaSeries::new(points, 0.0, fill)).map_err(text)?;
        } else {
            let line = Role::Simulated.color().stroke_width(1);
            plot.draw_series(LineSeries::new(points, line)).map_err(text)?;
        }
    }
    Ok(())
}
