//! Charts as SVG: no fonts needed. plotters writes plain colours, which are replaced by classes afterwards, so that one style
//! sheet serves light and dark.

use super::{Area, Chosen, chosen, flame, foot, paint, plane, strips, theme};
use crate::{Error, RenderOptions, Renderer, Result, escape, names};
use kreplay_analysis::model::{Bars, Dots, Flame, Panel, Plane, Report, Strips};
use plotters::prelude::*;

/// Between two charts of a picture, pixels.
pub(super) const GAP: u32 = 34;
/// Left and right of a picture's charts, pixels.
pub(super) const MARGIN: u32 = 16;
/// Height of a line under the charts, pixels.
pub(super) const LINE: u32 = 16;
/// Room for a chart's heading, pixels.
pub(super) const TITLE: u32 = 24;

/// A finished chart: an `<svg>` element without width and height attributes of its own.
pub(crate) struct Drawing {
    /// The element.
    pub svg: String,
}

/// Draws stacked bars.
pub(crate) fn bars(chart: &Bars) -> Result<Drawing> {
    let height = super::bars::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| super::bars::draw(area, chart))
}

/// Draws rows of points.
pub(crate) fn dots(chart: &Dots) -> Result<Drawing> {
    let height = super::dots::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| super::dots::draw(area, chart))
}

/// Draws lines and marks on a plane.
pub(crate) fn plane(chart: &Plane) -> Result<Drawing> {
    let height = plane::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| plane::draw(area, chart))
}

/// Draws a tree of time.
pub(crate) fn flame(chart: &Flame) -> Result<Drawing> {
    let height = flame::height(chart);
    let about = format!("{}: {}", chart.label, chart.caption);
    draw(&chart.id, &about, (theme::WIDTH, height), |area| flame::draw(area, chart))
}

/// Draws one panel of a strip chart.
pub(crate) fn panel(chart: &Strips, panel: &Panel) -> Result<Drawing> {
    let about = format!("{} {}: {}", chart.label, panel.title, panel.about);
    draw(&chart.id, &about, (strips::WIDTH, strips::HEIGHT), |area| strips::draw(area, chart, panel))
}

fn draw<F>(id: &str, about: &str, size: (u32, u32), work: F) -> Result<Drawing>
where
    F: FnOnce(&Area<SVGBackend<'_>>) -> std::result::Result<(), String>,
{
    let failed = |why: String| Error::Chart { id: id.to_string(), why };
    let mut raw = String::new();
    {
        let area = SVGBackend::with_string(&mut raw, size).into_drawing_area();
        work(&area).map_err(failed)?;
        area.present().map_err(|e| failed(e.to_string()))?;
    }
    let raw = theme::classes(&raw);
    // One fixed head instead of plotters' own: sized by the page, named for readers who cannot see it.
    let body = raw.split_once('>').map_or("", |(_, rest)| rest);
    let (width, height) = size;
    let svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{}\">{body}",
        escape::html(about)
    );
    Ok(Drawing { svg: svg.trim_end().to_string() })
}

/// The SVG renderer: the charts under each other in one document.
pub(crate) struct Svg;

impl Renderer for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["svg"]
    }
    fn about(&self) -> &'static str {
        "an overview of the charts in one picture, or those of --chart ID"
    }
    fn render(&self, report: &Report, options: &RenderOptions) -> Result<Vec<u8>> {
        let report = &names::short(report);
        let mut body = String::new();
        let mut y = 12;
        let Chosen { charts, note } = chosen(report, options, "svg")?;
        for chart in charts {
            let drawing = draw(chart.id, &chart.title, chart.size, |area| paint(area, chart.block))?;
            body.push_str(&format!(
                "<text class=\"f-ink\" x=\"0\" y=\"{}\" font-family=\"sans-serif\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                y + 14,
                escape::html(&chart.title)
            ));
            let (width, height) = chart.size;
            let placed = format!("<svg y=\"{}\" width=\"{width}\" height=\"{height}\" ", y + TITLE);
            body.push_str(&drawing.svg.replacen("<svg ", &placed, 1));
            body.push('\n');
            y += TITLE + height + GAP;
        }
        for line in note.into_iter().chain(foot(report)) {
            body.push_str(&format!(
                "<text class=\"f-muted\" x=\"0\" y=\"{}\" font-family=\"sans-serif\" font-size=\"11\">{}</text>\n",
                y + 11,
                escape::html_full(&line)
            ));
            y += LINE;
        }
        let (width, style) = (theme::WIDTH + 2 * MARGIN, theme::STYLE);
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{MARGIN} 0 {width} {y}\" width=\"{width}\" height=\"{y}\">\n<style>{style}</style>\n<rect class=\"f-page\" x=\"-{MARGIN}\" y=\"0\" width=\"{width}\" height=\"{y}\"/>\n{body}</svg>\n"
        );
        Ok(out.into_bytes())
    }
}
