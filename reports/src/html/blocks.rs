//! Tables, charts and findings as HTML.

use crate::number::content;
use crate::svg::{self, Drawing};
use crate::{Result, escape};
use kreplay_analysis::model::{Block, Finding, Level, Strips, Table};

/// Longest text that is kept on one line, characters.
const SHORT: usize = 32;

/// A block of a section.
pub(super) fn block(out: &mut String, block: &Block) -> Result<()> {
    match block {
        Block::Table(t) => table(out, t),
        Block::Bars(chart) => figure(out, &svg::bars(chart)?, &chart.caption),
        Block::Dots(chart) => figure(
            out,
            &svg::dots(chart)?,
            &format!("{} ({}). {}", capital(&chart.axis), chart.unit.label(), chart.caption),
        ),
        Block::Strips(chart) => strips(out, chart)?,
    }
    Ok(())
}

fn figure(out: &mut String, drawing: &Drawing, caption: &str) {
    let caption = escape::html_full(caption);
    out.push_str(&format!(
        "<figure>\n<figcaption>{caption}</figcaption>\n<div class=\"chart\">{}</div>\n</figure>\n",
        drawing.svg
    ));
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn strips(out: &mut String, chart: &Strips) -> Result<()> {
    let mut caption = chart.caption.clone();
    if let Some(samples) = chart.thinned_from {
        caption.push_str(&format!(
            " Thinned from {samples} samples: the lowest and highest value of each stretch are kept."
        ));
    }
    out.push_str(&format!(
        "<figure class=\"strips\">\n<figcaption><strong>{}</strong> {}</figcaption>\n<div class=\"panels\">\n",
        escape::html(&chart.label),
        escape::html_full(&caption)
    ));
    for panel in &chart.panels {
        out.push_str(&svg::panel(chart, panel)?.svg);
        out.push('\n');
    }
    out.push_str("</div>\n</figure>\n");
    Ok(())
}

/// A table; wide ones scroll by themselves.
pub(super) fn table(out: &mut String, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    out.push_str(&format!("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n<table>\n<caption>{0}</caption>\n<thead><tr>", escape::html_full(&table.caption)));
    for column in &table.columns {
        let class = if column.is_text() { "" } else { " class=\"n\"" };
        let unit = match column.unit.label() {
            "" => String::new(),
            unit => format!(" <span class=\"unit\">{unit}</span>"),
        };
        out.push_str(&format!("<th scope=\"col\"{class}>{}{unit}</th>", escape::html(&column.title)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut before = None;
    // Where two text columns lead (kind, variant) a repeated kind is dimmed, so that groups show.
    let grouped = table.columns.len() > 1 && table.columns[1].is_text();
    for row in &table.rows {
        let first = row.cells.first().map(|c| content(c, &table.columns[0]));
        let same = grouped && first == before;
        let begins = grouped && before.is_some() && !same;
        out.push_str(if begins { "<tr class=\"begins\">" } else { "<tr>" });
        for (i, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
            let text = escape::html(&content(cell, column));
            match (i, cell.best) {
                (0, _) => out.push_str(&format!("<th scope=\"row\"{}>{text}</th>", class(&text, same))),
                (_, true) => out.push_str(&format!("<td class=\"n best\">{text}<span class=\"star\">*</span></td>")),
                _ if column.is_text() => out.push_str(&format!("<td{}>{text}</td>", class(&text, false))),
                _ => out.push_str(&format!("<td class=\"n\">{text}</td>")),
            }
        }
        out.push_str("</tr>\n");
        before = first;
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Class of a text cell: a short text stays on one line, a repeated one is dimmed.
fn class(text: &str, same: bool) -> &'static str {
    match (text.chars().count() <= SHORT, same) {
        (true, true) => " class=\"nb same\"",
        (true, false) => " class=\"nb\"",
        (false, true) => " class=\"same\"",
        (false, false) => "",
    }
}

/// A list of findings; the level is a word as well as a colour.
pub(super) fn findings(out: &mut String, findings: &[Finding]) {
    out.push_str("<ul class=\"findings\">\n");
    for finding in findings {
        let word = finding.level.word();
        let when = finding.time_s.map_or(String::new(), |t| format!("<span class=\"when\">at {t:.2} s</span> "));
        // An answer needs no label: it is what the list is for.
        let label = if finding.level == Level::Answer {
            String::new()
        } else {
            format!("<span class=\"level\">{word}</span> ")
        };
        // A number and its unit stay on one line.
        let text = escape::html_full(&finding.text).replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms");
        out.push_str(&format!("<li class=\"{word}\">{label}{when}{text}</li>\n"));
    }
    out.push_str("</ul>\n");
}
