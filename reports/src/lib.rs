//! Renderers of the report model: terminal text, text for mails, Markdown, JSON, CSV, SVG, PNG and one self-contained HTML page.
//!
//! [`render`] picks a renderer by name or file extension; [`renderers`] lists them. A new renderer is one file and one
//! line in the list. Every text of a report is untrusted and passes [`escape`], the only place that knows how.

mod charts;
mod csv;
pub mod escape;
mod html;
mod json;
mod legend;
mod mail;
mod markdown;
mod names;
pub mod notebook;
mod number;
mod provenance;
mod text;
pub mod trace_event;

use kreplay_analysis::model::Report;

/// How to render.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// Width of the terminal text, columns; at least 40 is used.
    pub width: usize,
    /// The terminal text has colour; what it marks is marked by signs as well.
    pub color: bool,
    /// How much of the report the terminal text shows.
    pub detail: Detail,
    /// CSV: leave texts as they are, even where a spreadsheet would take them for formulas.
    pub csv_raw: bool,
    /// Pictures: only the charts of this id or section; `None` for an overview.
    pub chart: Option<String>,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions { width: 100, color: false, detail: Detail::Full, csv_raw: false, chart: None }
    }
}

/// Ids of the charts that a report has, each once, in its order.
pub fn chart_ids(report: &Report) -> Vec<String> {
    charts::ids(report)
}

/// How much of a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Verdict, matrix and problems.
    Brief,
    /// Everything.
    Full,
}

/// A report cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No renderer has this name or extension.
    #[error("no renderer for `{asked}`; there are: {known}")]
    UnknownKind {
        /// What was asked for.
        asked: String,
        /// Names and extensions.
        known: String,
    },
    /// A chart could not be drawn.
    #[error("chart `{id}`: {why}")]
    Chart {
        /// Its id.
        id: String,
        /// The drawing library's reason.
        why: String,
    },
    /// No chart of the report has this id.
    #[error("no chart `{asked}` in this report; there are: {known}")]
    NoChart {
        /// What was asked for.
        asked: String,
        /// Ids of its charts.
        known: String,
    },
    /// The report has nothing that this renderer shows.
    #[error("nothing to render as {kind}: {why}")]
    Nothing {
        /// The renderer.
        kind: &'static str,
        /// What is missing.
        why: &'static str,
    },
    /// The report could not be written as JSON.
    #[error("report as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::UnknownKind { .. } => {
                "name the output file with one of these extensions, or give the format by name"
            }
            Error::Chart { .. } | Error::Json(_) => {
                "this is a mistake in kreplay: please report it with the results directory"
            }
            Error::NoChart { .. } => "choose one of these, or leave --chart out for all of them",
            Error::Nothing { .. } => "another format shows the report; html and md show all of it",
        }
    }
}

/// Result of rendering.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns a report into the bytes of one format.
pub trait Renderer: Sync {
    /// Name for command lines.
    fn name(&self) -> &'static str;
    /// File extensions that mean this format.
    fn extensions(&self) -> &'static [&'static str];
    /// One line for lists.
    fn about(&self) -> &'static str;
    /// Renders.
    ///
    /// # Errors
    /// If a chart cannot be drawn or the report has nothing for this format.
    fn render(&self, report: &Report, options: &RenderOptions) -> Result<Vec<u8>>;
}

/// All renderers.
pub fn renderers() -> &'static [&'static dyn Renderer] {
    &[
        &text::Text,
        &mail::Mail,
        &markdown::Markdown,
        &html::Html,
        &json::Json,
        &csv::Csv,
        &charts::svg::Svg,
        &charts::png::Png,
    ]
}

/// The renderer of this name or file extension (without dot, any case).
///
/// # Errors
/// [`Error::UnknownKind`] if there is none.
pub fn renderer(kind: &str) -> Result<&'static dyn Renderer> {
    let wanted = kind.to_ascii_lowercase();
    let found = renderers().iter().find(|r| r.name() == wanted || r.extensions().contains(&wanted.as_str()));
    found.copied().ok_or_else(|| Error::UnknownKind {
        asked: escape::terminal(kind, 60),
        known: renderers().iter().map(|r| r.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Renders `report` by the renderer of this name or file extension.
///
/// # Errors
/// [`Error::UnknownKind`], or what the renderer says.
pub fn render(report: &Report, kind: &str, options: &RenderOptions) -> Result<Vec<u8>> {
    renderer(kind)?.render(report, options)
}
