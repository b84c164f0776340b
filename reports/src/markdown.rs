//! Markdown with GitHub's tables; everything but the drawings.

use crate::number::{content, without_zeros};
use crate::{RenderOptions, Renderer, Result, escape, legend, names, provenance};
use kreplay_analysis::model::{Block, Finding, Level, List, Report, Section, Table};

/// The Markdown renderer.
pub(crate) struct Markdown;

impl Renderer for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["md", "markdown"]
    }
    fn about(&self) -> &'static str {
        "Markdown with tables, for mails, issues and wikis"
    }
    fn render(&self, report: &Report, _options: &RenderOptions) -> Result<Vec<u8>> {
        let report = &names::short(report);
        let mut out = String::new();
        out.push_str(&format!("# {}\n\n", escape::markdown(&report.title)));
        out.push_str(&format!("{}\n\n", escape::markdown(&report.question)));
        findings(&mut out, &report.verdict);
        legend(&mut out, report);
        for trace in &report.traces {
            if report.traces.len() > 1 {
                let name = escape::markdown(&trace.name);
                out.push_str(&format!("## Trace {name} ({})\n\n", escape::markdown(&trace.id)));
            }
            out.push_str("## Comparison\n\n");
            table(&mut out, &without_zeros(&trace.matrix));
            for part in &trace.sections {
                section(&mut out, part);
            }
            if !trace.findings.is_empty() {
                out.push_str("## Findings\n\n");
                findings(&mut out, &trace.findings);
            }
        }
        origin(&mut out, report);
        while out.ends_with("\n\n") {
            out.pop();
        }
        Ok(out.into_bytes())
    }
}

fn legend(out: &mut String, report: &Report) {
    let lines = legend::lines(report);
    if lines.is_empty() {
        return;
    }
    // A quotation stands out as a box in most views.
    out.push_str(&format!("> **{}**\n>\n", legend::heading(report)));
    for (term, meaning) in &lines {
        out.push_str(&format!("> - *{}*: {}\n", escape::markdown(term), escape::markdown(meaning)));
    }
    out.push('\n');
}

fn section(out: &mut String, section: &Section) {
    // Charts are not drawn here; a heading over nothing would puzzle.
    if !section.blocks.iter().any(Block::is_text) {
        return;
    }
    out.push_str(&format!("## {}\n\n{}\n\n", escape::markdown(&section.title), escape::markdown(&section.lead)));
    for block in &section.blocks {
        match block {
            Block::Table(t) => table(out, t),
            Block::List(l) => list(out, l),
            _ => {}
        }
    }
    for definition in &section.definitions {
        let (term, meaning) = (escape::markdown(&definition.term), escape::markdown(&definition.meaning));
        out.push_str(&format!("- *{term}*: {meaning}.\n"));
    }
    if !section.definitions.is_empty() {
        out.push('\n');
    }
}

fn list(out: &mut String, list: &List) {
    if !list.caption.is_empty() {
        out.push_str(&format!("{}\n\n", escape::markdown(&list.caption)));
    }
    for item in &list.items {
        out.push_str(&format!("- **{}**: {}\n", escape::markdown(&item.term), escape::markdown(&item.meaning)));
    }
    out.push('\n');
}

fn findings(out: &mut String, findings: &[Finding]) {
    for finding in findings {
        let mark = match finding.level {
            Level::Problem | Level::Warning => format!("**{}:** ", finding.level.word()),
            Level::Answer | Level::Note => String::new(),
        };
        let when = finding.time_s.map_or(String::new(), |t| format!("at {t:.2} s: "));
        out.push_str(&format!("- {mark}{when}{}\n", escape::markdown(&finding.text)));
        for detail in &finding.details {
            out.push_str(&format!("  - {}\n", escape::markdown(detail)));
        }
    }
    out.push('\n');
}

fn table(out: &mut String, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    out.push_str(&format!("{}\n\n", escape::markdown(&table.caption)));
    let headings: Vec<String> = table.columns.iter().map(|c| escape::markdown(&c.heading())).collect();
    let rules: Vec<&str> = table.columns.iter().map(|c| if c.is_text() { "---" } else { "---:" }).collect();
    out.push_str(&format!("| {} |\n| {} |\n", headings.join(" | "), rules.join(" | ")));
    for row in &table.rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .zip(&table.columns)
            .map(|(cell, column)| {
                let text = content(cell, column);
                let text = if column.is_text() {
                    escape::markdown(&escape::shorten(&escape::visible(&text), 200))
                } else {
                    text
                };
                if cell.best { format!("\\* {text}") } else { text }
            })
            .collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
}

fn origin(out: &mut String, report: &Report) {
    let from = &report.provenance;
    out.push_str("## Provenance\n\n");
    if !from.command.is_empty() {
        // An indented block cannot be closed from inside, unlike a fenced one.
        out.push_str(&format!("    {}\n\n", escape::visible(&provenance::command(from))));
    }
    out.push_str(&format!(
        "Report made by kreplay-analysis {}, report schema {}.\n\n",
        escape::markdown(&from.analysis_version),
        report.schema
    ));
    table(out, &provenance::cells(from));
    let said = provenance::models_in_short(from);
    if !said.is_empty() {
        out.push_str(&format!("### {}\n\n", provenance::MODELS));
        said.iter().for_each(|s| out.push_str(&format!("- {}\n", escape::markdown(&provenance::whose(s)))));
        out.push('\n');
        table(out, &provenance::mechanisms(from));
    }
    for (heading, items) in provenance::lists(from) {
        out.push_str(&format!("### {heading}\n\n"));
        for (text, variants) in items {
            let whose = if variants.is_empty() { String::new() } else { format!(" ({})", variants.join(", ")) };
            out.push_str(&format!("- {}\n", escape::markdown(&format!("{text}{whose}"))));
        }
        out.push('\n');
    }
}
