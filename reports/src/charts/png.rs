//! The PNG renderer: the pictures of [`super::svg`] as pixels, light, twice as fine as drawn.

use super::canvas::{Canvas, Fonts, SHARP};
use super::pixels::Pixels;
use super::svg::{GAP, LINE, MARGIN, TITLE};
use super::{Chosen, chosen, foot, paint, theme};
use crate::{Error, RenderOptions, Renderer, Result, escape, names};
use kreplay_analysis::model::Report;
use plotters::prelude::*;
use plotters_backend::BackendColor;

/// Highest picture, pixels of the drawing: what browsers and mail programs still show. Charts beyond it are counted below it.
const HIGHEST: u32 = 15_000;
/// Size of headings and of notes, pixels.
const HEADING: f64 = 15.0;
const NOTE: f64 = 11.0;

/// The PNG renderer: an overview, or the charts asked for under each other.
pub(crate) struct Png;

impl Renderer for Png {
    fn name(&self) -> &'static str {
        "png"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["png"]
    }
    fn about(&self) -> &'static str {
        "the same picture in pixels, for mails and slides"
    }
    fn render(&self, report: &Report, options: &RenderOptions) -> Result<Vec<u8>> {
        let report = &names::short(report);
        let fonts = Fonts::new().map_err(|why| failed("png", &why))?;
        let Chosen { charts, note } = chosen(report, options, "png")?;
        let high = |size: (u32, u32)| TITLE + size.1 + GAP;
        let mut height = TOP;
        let mut shown = 0;
        // The first is drawn however high it is.
        while shown < charts.len() && (shown == 0 || height + high(charts[shown].size) <= HIGHEST) {
            height += high(charts[shown].size);
            shown += 1;
        }
        let left_out = charts.len() - shown;
        let mut notes: Vec<String> = note.into_iter().collect();
        if left_out > 0 {
            notes.push(format!(
                "{left_out} of the charts asked for are left out to keep the picture small: html and svg have them."
            ));
        }
        notes.extend(foot(report));
        let below = notes.len() as u32 * LINE + TOP;
        let width = theme::WIDTH + 2 * MARGIN;
        let mut picture = Pixels::new(width * SHARP, (height + below) * SHARP);
        let mut put = |canvas: &Canvas<'_>| -> Result<()> {
            canvas.rows().try_for_each(|row| picture.row(row)).map_err(|e| failed("png", &e))
        };
        put(&Canvas::new(&fonts, (width, TOP)))?;
        for chart in &charts[..shown] {
            let mut canvas = Canvas::new(&fonts, (width, high(chart.size)));
            let title = escape::terminal(&chart.title, 100);
            canvas.write(&title, (f64::from(MARGIN), HEADING - 1.0), HEADING, true, ink());
            {
                let area = (&mut canvas).into_drawing_area();
                let part = area.margin(TITLE as i32, GAP as i32, MARGIN as i32, MARGIN as i32);
                paint(&part, chart.block).map_err(|why| failed(chart.id, &why))?;
                area.present().map_err(|e| failed(chart.id, &e))?;
            }
            put(&canvas)?;
        }
        let mut canvas = Canvas::new(&fonts, (width, below));
        for (note, row) in notes.iter().zip(0u32..) {
            canvas.write(note, (f64::from(MARGIN), f64::from(row * LINE) + NOTE), NOTE, false, muted());
        }
        put(&canvas)?;
        picture.finish().map_err(|e| failed("png", &e))
    }
}

/// Above the first chart, pixels.
const TOP: u32 = 12;

fn ink() -> BackendColor {
    BackendColor { alpha: 1.0, rgb: theme::ink() }
}

fn muted() -> BackendColor {
    BackendColor { alpha: 1.0, rgb: theme::muted() }
}

fn failed(id: &str, why: &impl ToString) -> Error {
    Error::Chart { id: id.to_string(), why: why.to_string() }
}
