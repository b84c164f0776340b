//! One self-contained HTML page: no network, light and dark, made for print as well. It is whole without scripts; its one script,
//! pinned by its hash in the page's security policy, makes the charts answer (hover, zoom, switching variants).

mod blocks;
mod data;
mod sha256;
mod style;

use crate::number::without_zeros;
use crate::{RenderOptions, Renderer, Result, escape, legend, names, provenance};
use blocks::{Blocks, findings};
use kreplay_analysis::model::{Block, CellProvenance, Provenance, Report, Section, TraceReport};

/// The page's script.
const SCRIPT: &str = include_str!("page.js");

/// Strip charts shown in one page; with more cells than this the rest stays in the JSON, and the page says so.
const STRIPS: usize = 16;

/// The HTML renderer.
pub(crate) struct Html;

impl Renderer for Html {
    fn name(&self) -> &'static str {
        "html"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["html", "htm"]
    }
    fn about(&self) -> &'static str {
        "one self-contained page with charts"
    }
    fn render(&self, report: &Report, _options: &RenderOptions) -> Result<Vec<u8>> {
        let report = &names::short(report);
        let mut page = Page { out: String::new(), strips_left: STRIPS, blocks: Blocks::new(variants(report)) };
        page.head(report);
        for trace in &report.traces {
            page.trace(trace, report.traces.len() > 1)?;
        }
        page.provenance(report);
        page.out.push_str(&format!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"));
        Ok(page.out.into_bytes())
    }
}

struct Page {
    out: String,
    strips_left: usize,
    blocks: Blocks,
}

/// The variants of all traces, each once.
fn variants(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for cell in report.provenance.cells.iter().filter(|c| c.state == "done") {
        if !names.contains(&cell.variant) {
            names.push(cell.variant.clone());
        }
    }
    names
}

impl Page {
    fn head(&mut self, report: &Report) {
        let title = escape::html(&report.title);
        self.out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        let hash = sha256::base64(&sha256::sha256(SCRIPT.as_bytes()));
        self.out.push_str(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'\">\n"));
        self.out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n");
        self.out.push_str(&format!(
            "<title>{title}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
            crate::charts::STYLE,
            style::STYLE
        ));
        self.out.push_str(&format!("<header>\n<p class=\"brand\">kreplay report</p>\n<h1>{title}</h1>\n<p class=\"question\">{}</p>\n</header>\n", escape::html_full(&report.question)));
        // The answer first; what leads elsewhere and what explains it come after it.
        self.out.push_str("<main>\n<section id=\"verdict\" class=\"verdict\">\n<h2>Verdict</h2>\n");
        findings(&mut self.out, &report.verdict, &self.blocks.variants);
        self.out.push_str("</section>\n");
        self.contents(report);
        self.switches();
        self.legend(report);
    }

    /// The box that says what names and words stand for.
    fn legend(&mut self, report: &Report) {
        let lines = legend::lines(report);
        if lines.is_empty() {
            return;
        }
        self.out.push_str(&format!(
            "<section id=\"legend\" class=\"names\">\n<h2>{}</h2>\n<dl>\n",
            legend::heading(report)
        ));
        for (term, meaning) in &lines {
            // Long names break where a change begins.
            let (term, meaning) = (escape::html(term).replace('+', "+<wbr>"), escape::html_full(meaning));
            self.out.push_str(&format!("<div><dt>{term}</dt><dd>{meaning}</dd></div>\n"));
        }
        self.out.push_str("</dl>\n</section>\n");
    }

    /// A box a variant that shows and hides what belongs to it; only the script can do that, so it alone shows them.
    fn switches(&mut self) {
        if self.blocks.variants.len() < 2 {
            return;
        }
        self.out.push_str("<div class=\"variants\" role=\"group\" aria-label=\"Variants shown\" hidden>Show ");
        for (i, name) in self.blocks.variants.iter().enumerate() {
            let name = escape::html(name);
            self.out.push_str(&format!("<label><input type=\"checkbox\" value=\"{i}\" checked> {name}</label> "));
        }
        self.out.push_str("</div>\n");
    }

    fn contents(&mut self, report: &Report) {
        self.out.push_str("<nav aria-label=\"Contents\"><ul>\n<li><a href=\"#verdict\">Verdict</a></li>\n");
        // With several traces only the traces are listed; each has its sections under it.
        for trace in &report.traces {
            if report.traces.len() > 1 {
                self.out.push_str(&format!(
                    "<li><a href=\"#t-{}\">{}</a></li>\n",
                    anchor(trace),
                    escape::html(&trace.name)
                ));
                continue;
            }
            self.out.push_str(&format!("<li><a href=\"#{}-matrix\">Comparison</a></li>\n", anchor(trace)));
            for section in &trace.sections {
                let id = escape::file_id(&section.id);
                self.out.push_str(&format!(
                    "<li><a href=\"#{}-{id}\">{}</a></li>\n",
                    anchor(trace),
                    escape::html(&section.title)
                ));
            }
        }
        self.out.push_str("<li><a href=\"#provenance\">Provenance</a></li>\n</ul></nav>\n");
    }

    fn trace(&mut self, trace: &TraceReport, named: bool) -> Result<()> {
        let id = anchor(trace);
        if named {
            self.out.push_str(&format!("<h2 class=\"trace\" id=\"t-{id}\">Trace {}</h2>\n", escape::html(&trace.name)));
        }
        self.out.push_str(&format!("<section id=\"{id}-matrix\">\n<h2>Comparison</h2>\n"));
        self.blocks.table(&mut self.out, &without_zeros(&trace.matrix));
        self.out.push_str("</section>\n");
        for part in &trace.sections {
            self.section(&id, part)?;
        }
        if !trace.findings.is_empty() {
            self.out.push_str(&format!("<section id=\"{id}-findings\">\n<h2>Findings</h2>\n<p class=\"lead\">What happened during the runs that a reader should know.</p>\n"));
            findings(&mut self.out, &trace.findings, &self.blocks.variants);
            self.out.push_str("</section>\n");
        }
        Ok(())
    }

    fn section(&mut self, trace: &str, section: &Section) -> Result<()> {
        let id = escape::file_id(&section.id);
        self.out.push_str(&format!(
            "<section id=\"{trace}-{id}\">\n<h2>{}</h2>\n<p class=\"lead\">{}</p>\n",
            escape::html(&section.title),
            escape::html_full(&section.lead)
        ));
        let mut left_out = 0;
        let mut shown = Vec::new();
        for part in &section.blocks {
            if matches!(part, Block::Strips(_)) {
                if self.strips_left == 0 {
                    left_out += 1;
                    continue;
                }
                self.strips_left -= 1;
            }
            shown.push(part);
        }
        self.blocks.section(&mut self.out, &shown)?;
        if left_out > 0 {
            self.out.push_str(&format!("<p class=\"note\">{left_out} more runs have such charts; they are left out to keep the page small. The JSON report has their series.</p>\n"));
        }
        if !section.definitions.is_empty() {
            self.out.push_str("<dl>\n");
            for d in &section.definitions {
                self.out.push_str(&format!(
                    "<div><dt>{}</dt><dd>{}</dd></div>\n",
                    escape::html(&d.term),
                    escape::html_full(&d.meaning)
                ));
            }
            self.out.push_str("</dl>\n");
        }
        self.out.push_str("</section>\n");
        Ok(())
    }

    fn provenance(&mut self, report: &Report) {
        let from = &report.provenance;
        self.out.push_str("<section id=\"provenance\">\n<h2>Provenance</h2>\n<p class=\"lead\">Where the figures came from, and what it takes to repeat them.</p>\n");
        if !from.command.is_empty() {
            self.out.push_str(&format!("<pre><code>{}</code></pre>\n", escape::html_full(&provenance::command(from))));
        }
        self.models(from);
        self.blocks.table(&mut self.out, &provenance::cells(from));
        for (heading, items) in provenance::lists(from) {
            self.out.push_str(&format!("<h3>{heading}</h3>\n<ul class=\"plain\">\n"));
            for (text, variants) in items {
                let whose = if variants.is_empty() {
                    String::new()
                } else {
                    format!(" <span class=\"whose\">{}</span>", escape::html_full(&variants.join(", ")))
                };
                self.out.push_str(&format!("<li>{}{whose}</li>\n", escape::html(&text)));
            }
            self.out.push_str("</ul>\n");
        }
        let mut shown: Vec<&str> = Vec::new();
        for cell in from.cells.iter().filter(|c| c.state == "done") {
            if !shown.contains(&cell.variant.as_str()) {
                shown.push(&cell.variant);
                self.details(cell);
            }
        }
        self.out.push_str(&format!(
            "<p class=\"note\">Report made by kreplay-analysis {}, report schema {}.</p>\n</section>\n",
            escape::html(&from.analysis_version),
            report.schema
        ));
    }

    /// What the models cover and were held against.
    fn models(&mut self, from: &Provenance) {
        let said = provenance::models_in_short(from);
        if said.is_empty() {
            return;
        }
        self.out.push_str(&format!("<h3 id=\"models\">{}</h3>\n<ul class=\"plain\">\n", provenance::MODELS));
        for (text, variants) in &said {
            let whose = if variants.is_empty() {
                String::new()
            } else {
                format!(" <span class=\"whose\">{}</span>", escape::html_full(&variants.join(", ")))
            };
            self.out.push_str(&format!("<li>{}{whose}</li>\n", escape::html_full(&provenance::capital(text))));
        }
        self.out.push_str("</ul>\n");
        self.out.push_str(
            "<details class=\"model\"><summary>What is modelled of each mechanism, and what is not</summary>\n",
        );
        self.blocks.prose_table(&mut self.out, &provenance::mechanisms(from));
        self.out.push_str("</details>\n");
    }

    /// Configuration and table hashes of a variant's first cell.
    fn details(&mut self, cell: &CellProvenance) {
        if cell.config.is_empty() && cell.tables.is_empty() {
            return;
        }
        self.out.push_str(&format!(
            "<details><summary>Configuration and result tables of {} (seed {})</summary>\n<dl class=\"config\">\n",
            escape::html(&cell.variant),
            cell.seed
        ));
        for (key, value) in &cell.config {
            self.out.push_str(&format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape::html(key), escape::html(value)));
        }
        self.out.push_str("</dl>\n<dl class=\"config\">\n");
        for t in &cell.tables {
            self.out.push_str(&format!(
                "<div><dt>{}.parquet</dt><dd>{} rows, blake3 <code>{}</code></dd></div>\n",
                escape::html(&t.name),
                t.rows,
                escape::html(&t.blake3)
            ));
        }
        self.out.push_str("</dl>\n</details>\n");
    }
}

/// Anchor of a trace.
fn anchor(trace: &TraceReport) -> String {
    escape::file_id(&trace.id)
}
