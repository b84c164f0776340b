//! JSON: the report model itself, with its schema version.

use crate::{RenderOptions, Renderer, Result, escape};
use kreplay_analysis::model::Report;

/// The JSON renderer.
pub(crate) struct Json;

impl Renderer for Json {
    fn name(&self) -> &'static str {
        "json"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["json"]
    }
    fn about(&self) -> &'static str {
        "the whole report model, with a schema version"
    }
    fn render(&self, report: &Report, _options: &RenderOptions) -> Result<Vec<u8>> {
        let mut text = escape::json(&serde_json::to_string(report)?);
        text.push('\n');
        Ok(text.into_bytes())
    }
}
