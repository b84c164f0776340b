//! Plain text of 72 columns for mailing lists, in the manner of the mails of 2001: a line a variant with first and last
//! finish in minutes and seconds, then the answer in words.

use crate::number::fixed;
use crate::text::Page;
use crate::{RenderOptions, Renderer, Result, escape, names, provenance};
use kreplay_analysis::model::{Level, Report, Table, TraceReport, Value, short_variant};

/// Columns of a mail.
const WIDTH: usize = 72;
/// Longest name of a variant in the table, columns.
const NAME: usize = 24;
/// Columns of a figure.
const FIELD: usize = 7;
/// Figures shown beside the finish times: column, heading, how it is written.
const FIGURES: [(&str, &str, Show); 6] = [
    ("elapsed_s", "elapsed", Show::Minutes),
    ("first_finish_s", "first", Show::Minutes),
    ("last_finish_s", "last", Show::Minutes),
    ("jain", "Jain", Show::Digits(3)),
    ("longest_wait_s", "longest", Show::Wait),
    ("disk_read_mib", "MB read", Show::Digits(0)),
];

#[derive(Clone, Copy)]
enum Show {
    /// `2:15`, with tenths below ten minutes.
    Minutes,
    /// Seconds, with hundredths.
    Wait,
    /// A plain number.
    Digits(usize),
}

/// The mail renderer.
pub(crate) struct Mail;

impl Renderer for Mail {
    fn name(&self) -> &'static str {
        "mail"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["mail"]
    }
    fn about(&self) -> &'static str {
        "plain text of 72 columns, short, for mailing lists"
    }
    fn render(&self, report: &Report, _options: &RenderOptions) -> Result<Vec<u8>> {
        let report = &names::short(report);
        let mut page = Page::new(WIDTH);
        page.paragraph(&format!("{}.", report.title), "", "");
        page.paragraph(&report.question, "", "");
        page.gap();
        for trace in &report.traces {
            if report.traces.len() > 1 {
                page.paragraph(&format!("Trace {}:", trace.name), "", "");
                page.gap();
            }
            figures(&mut page, trace);
            page.statements(trace);
        }
        let answers: Vec<_> = report.verdict.iter().filter(|f| f.level != Level::Note).cloned().collect();
        page.findings(&answers);
        page.legend(report);
        if let Some(why) = report.traces.iter().flat_map(|t| &t.sections).find(|s| s.id == "why") {
            page.paragraph(&format!("{}:", why.title), "", "");
            for block in &why.blocks {
                if let kreplay_analysis::model::Block::Table(table) = block {
                    causes(&mut page, table);
                }
            }
            page.gap();
        }
        let notes: Vec<_> = report.verdict.iter().filter(|f| f.level == Level::Note).cloned().collect();
        page.findings(&notes);
        page.models(&report.provenance);
        if !report.provenance.command.is_empty() {
            page.paragraph(&provenance::command(&report.provenance), "", "    ");
        }
        Ok(page.out.into_bytes())
    }
}

/// `2:15` for 135 s; below ten minutes with tenths.
fn minutes(s: f64) -> String {
    if s < 0.0 {
        return format!("-{}", minutes(-s));
    }
    let tenths = (s * 10.0).round() as i64;
    let (m, rest) = (tenths / 600, tenths % 600);
    if m >= 10 { format!("{m}:{:02}", (rest + 5) / 10 % 60) } else { format!("{m}:{:02}.{}", rest / 10, rest % 10) }
}

/// A figure of at most [`FIELD`] columns.
fn shown(value: &Value, how: Show, best: bool) -> String {
    let (text, v) = match (value, how) {
        (Value::Number(v), Show::Minutes) => (minutes(*v), *v),
        (Value::Number(v), Show::Wait) => (fixed(*v, 2), *v),
        (Value::Number(v), Show::Digits(d)) => (fixed(*v, d), *v),
        _ => ("-".to_string(), 0.0),
    };
    let marked = if best { format!("*{text}") } else { text };
    if marked.chars().count() <= FIELD { marked } else { format!("{v:.0e}") }
}

/// A line a variant. All widths are fixed, so the table never exceeds a mail's.
fn figures(page: &mut Page, trace: &TraceReport) {
    let at = |id: &str| trace.matrix.columns.iter().position(|c| c.id == id);
    let used: Vec<(usize, &str, Show)> =
        FIGURES.iter().filter_map(|(id, name, how)| Some((at(id)?, *name, *how))).collect();
    // A comparison of two runs has figures as rows.
    if used.is_empty() {
        page.table(&trace.matrix);
        return;
    }
    let full: Vec<String> = trace
        .matrix
        .rows
        .iter()
        .map(|r| match r.cells.first().map(|c| &c.value) {
            Some(Value::Text(t)) => t.clone(),
            _ => String::new(),
        })
        .collect();
    let mut names: Vec<String> = full.iter().map(|n| escape::terminal(&short_variant(n, NAME), NAME)).collect();
    // Names that look alike once they are cut get numbers.
    if names.iter().collect::<std::collections::BTreeSet<_>>().len() < names.len() {
        for (i, name) in full.iter().enumerate() {
            page.paragraph(&format!("[{}] {}", i + 1, escape::terminal(name, 3 * WIDTH)), "", "    ");
        }
        page.gap();
        names = (1..=full.len()).map(|i| format!("[{i}]")).collect();
    }
    let mut line = format!("{:NAME$}", "");
    for (_, name, _) in &used {
        line.push_str(&format!(" {name:>FIELD$}"));
    }
    page.out.push_str(line.trim_end());
    page.out.push('\n');
    for (row, name) in trace.matrix.rows.iter().zip(&names) {
        let pad = NAME.saturating_sub(name.chars().count());
        let mut line = format!("{name}{}", " ".repeat(pad));
        for (c, _, how) in &used {
            line.push_str(&format!(" {:>FIELD$}", shown(&row.cells[*c].value, *how, row.cells[*c].best)));
        }
        page.out.push_str(line.trim_end());
        page.out.push('\n');
    }
    page.gap();
    page.paragraph(
        "Times in minutes:seconds, longest wait of a call in seconds; * marks the best and what is within 5 % of it.",
        "",
        "",
    );
    page.gap();
}

/// A line for each cause of the table of causes.
fn causes(page: &mut Page, table: &Table) {
    let at = |id: &str| table.columns.iter().position(|c| c.id == id);
    let (Some(variant), Some(cause), Some(gap), Some(share)) =
        (at("variant"), at("cause"), at("difference_s"), at("share_pct"))
    else {
        return;
    };
    for row in &table.rows {
        let (Value::Text(variant), Value::Text(cause)) = (&row.cells[variant].value, &row.cells[cause].value) else {
            continue;
        };
        let Some(seconds) = row.cells[gap].as_number() else { continue };
        let share = row.cells[share].as_number().unwrap_or(0.0);
        let more = if seconds >= 0.0 { "more" } else { "less" };
        page.paragraph(
            &format!("{variant}: {} s {more} on {cause} ({} %)", fixed(seconds.abs(), 2), fixed(share, 0)),
            "- ",
            "  ",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_a_stop_watch() {
        assert_eq!(minutes(135.04), "2:15.0");
        assert_eq!(minutes(59.96), "1:00.0");
        assert_eq!(minutes(0.0), "0:00.0");
        assert_eq!(minutes(3725.2), "62:05");
        assert_eq!(minutes(659.96), "11:00");
    }
}
