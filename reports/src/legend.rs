//! The box above the answer: what names and words stand for, as lines that all formats share.

use crate::provenance::capital;
use kreplay_analysis::model::{Legend, Report};

/// Heading of the box.
pub(crate) fn heading(report: &Report) -> &'static str {
    if report.legend.variants.is_empty() { "What the words mean" } else { "What the names stand for" }
}

/// Most variants and most parts of names that are told; the JSON report has them all.
const TOLD: usize = 16;

/// Name and meaning, one a line; untrusted.
pub(crate) fn lines(report: &Report) -> Vec<(String, String)> {
    let Legend { terms, common, variants, parts } = &report.legend;
    let pair = |d: &kreplay_analysis::model::Definition| (d.term.clone(), d.meaning.clone());
    let mut lines: Vec<(String, String)> = terms.iter().map(pair).collect();
    if !common.is_empty() {
        let whose = if variants.len() == 1 { "The variant" } else { "All variants" };
        lines.push((whose.to_string(), capital(common)));
    }
    for list in [variants, parts] {
        lines.extend(list.iter().take(TOLD).map(pair));
        if list.len() > TOLD {
            lines.push(("And more".to_string(), format!("{} others, which the JSON report has", list.len() - TOLD)));
        }
    }
    lines
}
