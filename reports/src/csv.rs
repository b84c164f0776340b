//! CSV of the matrix (RFC 4180, LF line ends): a row a trace and variant, a column a key figure; the last column says
//! what the variant's model was held against, with the error found.

use crate::number::fixed;
use crate::{RenderOptions, Renderer, Result, escape};
use kreplay_analysis::model::{Report, Value};

/// Digits after the point: the full precision is in the JSON.
const DIGITS: usize = 6;

/// The CSV renderer.
pub(crate) struct Csv;

impl Renderer for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["csv"]
    }
    fn about(&self) -> &'static str {
        "the matrix of key figures; texts are safe to open in a spreadsheet"
    }
    fn render(&self, report: &Report, options: &RenderOptions) -> Result<Vec<u8>> {
        // Traces may lack different columns: the union, in the order of first appearance.
        let mut ids: Vec<&str> = Vec::new();
        for column in report.traces.iter().flat_map(|t| t.matrix.columns.iter().skip(1)) {
            if !ids.contains(&column.id.as_str()) {
                ids.push(&column.id);
            }
        }
        let mut out = String::from("trace,variant");
        for id in &ids {
            // Column ids are our own: `[a-z0-9_]`.
            out.push_str(&format!(",{id}"));
        }
        out.push_str(",model\n");
        for trace in &report.traces {
            for row in &trace.matrix.rows {
                out.push_str(&escape::csv(&trace.name, options.csv_raw));
                let text = |value: &Value| match value {
                    Value::Missing => String::new(),
                    Value::Number(v) if v.fract() == 0.0 => fixed(*v, 0),
                    Value::Number(v) => fixed(*v, DIGITS),
                    Value::Text(text) => escape::csv(text, options.csv_raw),
                };
                out.push(',');
                out.push_str(&row.cells.first().map_or(String::new(), |c| text(&c.value)));
                for id in &ids {
                    let at = trace.matrix.columns.iter().position(|c| c.id == *id);
                    out.push(',');
                    out.push_str(&at.and_then(|i| row.cells.get(i)).map_or(String::new(), |c| text(&c.value)));
                }
                let name = row.cells.first().map(|c| &c.value);
                let model = report.provenance.models.iter().find(|m| name == Some(&Value::Text(m.variant.clone())));
                let held = model.map_or_else(String::new, |m| m.held_against().join("; "));
                out.push_str(&format!(",{}\n", escape::csv(&held, options.csv_raw)));
            }
        }
        Ok(out.into_bytes())
    }
}
