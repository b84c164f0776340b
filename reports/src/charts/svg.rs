//! Charts by plotters' SVG backend: no fonts needed, whole-pixel coordinates, so the same report gives the same bytes.
//!
//! plotters writes plain colours. Each role (ink, grid, a cause) has one reserved colour, which is replaced by a class
//! afterwards, so that one style sheet serves light and dark.

mod bars;
mod dots;
mod flame;
mod heat;
mod plane;
mod strips;
mod theme;

pub(crate) use plane::{Scale, title as axis_title};
pub(crate) use theme::{STYLE, part_number};

use crate::{Error, RenderOptions, Renderer, Result, escape};
use kreplay_analysis::model::{Bars, Block, Dots, Flame, Heat, Panel, Plane, Report, Strips, TraceReport};
use plotters::prelude::*;
use std::fmt::Display;

/// Drawing area of one chart.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A finished chart: an `<svg>` element without width and height attributes of its own.
pub(crate) struct Drawing {
    /// The element.
    pub svg: String,
    /// Height at a width of [`theme::WIDTH`] (or of a panel), pixels.
    pub height: u32,
}

/// Draws stacked bars.
pub(crate) fn bars(chart: &Bars) -> Result<Drawing> {
    let height = bars::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| bars::draw(area, chart))
}

/// Draws rows of points.
pub(crate) fn dots(chart: &Dots) -> Result<Drawing> {
    let height = dots::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| dots::draw(area, chart))
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

/// Draws a table of shades.
pub(crate) fn heat(chart: &Heat) -> Result<Drawing> {
    let height = heat::height(chart);
    draw(&chart.id, &chart.caption, (theme::WIDTH, height), |area| heat::draw(area, chart))
}

/// Draws one panel of a strip chart.
pub(crate) fn panel(chart: &Strips, panel: &Panel) -> Result<Drawing> {
    let about = format!("{} {}: {}", chart.label, panel.title, panel.about);
    draw(&chart.id, &about, (strips::WIDTH, strips::HEIGHT), |area| strips::draw(area, chart, panel))
}

fn draw<F>(id: &str, about: &str, size: (u32, u32), work: F) -> Result<Drawing>
where
    F: FnOnce(&Area<'_>) -> std::result::Result<(), String>,
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
    Ok(Drawing { svg: svg.trim_end().to_string(), height })
}

/// plotters' errors as text.
fn text<E: Display>(error: E) -> String {
    error.to_string()
}

/// Heading of a chart in the picture.
fn titled(trace: &TraceReport, label: &str, what: &str) -> String {
    if label.is_empty() { format!("{}: {what}", trace.name) } else { format!("{}, {label}: {what}", trace.name) }
}

/// The SVG renderer: the first trace's charts under each other in one document.
pub(crate) struct Svg;

impl Renderer for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["svg"]
    }
    fn about(&self) -> &'static str {
        "the charts of the comparison in one picture (without the strips over time)"
    }
    fn render(&self, report: &Report, _options: &RenderOptions) -> Result<Vec<u8>> {
        const GAP: u32 = 34;
        let mut body = String::new();
        let mut y = 12;
        for trace in &report.traces {
            for block in trace.sections.iter().flat_map(|s| &s.blocks) {
                let (drawing, title) = match block {
                    Block::Bars(chart) => (bars(chart)?, format!("{}: where the time went", trace.name)),
                    Block::Dots(chart) => (dots(chart)?, format!("{}: {}", trace.name, chart.axis)),
                    Block::Plane(chart) => (plane(chart)?, titled(trace, &chart.label, &chart.y.title)),
                    Block::Heat(chart) => (heat(chart)?, titled(trace, "", "figures against the best")),
                    Block::Flame(chart) => (flame(chart)?, titled(trace, &chart.label, "time of the clients")),
                    Block::Table(_) | Block::Strips(_) => continue,
                };
                body.push_str(&format!(
                    "<text class=\"f-ink\" x=\"0\" y=\"{}\" font-family=\"sans-serif\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                    y + 14,
                    escape::html(&title)
                ));
                let placed = format!("<svg y=\"{}\" width=\"{}\" height=\"{}\" ", y + 24, theme::WIDTH, drawing.height);
                body.push_str(&drawing.svg.replacen("<svg ", &placed, 1));
                body.push('\n');
                y += 24 + drawing.height + GAP;
            }
        }
        if body.is_empty() {
            return Err(Error::Nothing { kind: "svg", why: "the report has no charts" });
        }
        let (width, margin) = (theme::WIDTH, 16);
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{margin} 0 {} {y}\" width=\"{}\" height=\"{y}\">\n<style>{STYLE}</style>\n<rect class=\"f-page\" x=\"-{margin}\" y=\"0\" width=\"{}\" height=\"{y}\"/>\n{body}</svg>\n",
            width + 2 * margin,
            width + 2 * margin,
            width + 2 * margin
        );
        Ok(out.into_bytes())
    }
}
