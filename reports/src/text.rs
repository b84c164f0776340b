//! Plain text for a terminal: fits the width, no colour needed, the best of a column marked by `*`.

use crate::number::{content, without_zeros};
use crate::{Detail, RenderOptions, Renderer, Result, escape, provenance};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid};
use kreplay_analysis::model::{Block, Finding, Level, Report, Section, Table, TraceReport, short_variant};
use std::collections::BTreeSet;

/// Narrowest width that is used, columns.
const NARROWEST: usize = 40;
/// Longest text in a cell, columns.
const LONGEST_CELL: usize = 40;
/// The same for texts that could not be told apart otherwise.
const WIDEST_CELL: usize = 100;

/// The terminal text renderer.
pub(crate) struct Text;

impl Renderer for Text {
    fn name(&self) -> &'static str {
        "text"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["txt"]
    }
    fn about(&self) -> &'static str {
        "plain text that fits a terminal's width"
    }
    fn render(&self, report: &Report, options: &RenderOptions) -> Result<Vec<u8>> {
        let mut page = Page::new(options.width.max(NARROWEST));
        page.report(report, options.detail);
        Ok(page.out.into_bytes())
    }
}

/// Text under construction, wrapped at a width.
pub(crate) struct Page {
    /// What there is so far.
    pub(crate) out: String,
    width: usize,
}

impl Page {
    /// An empty page of `width` columns.
    pub(crate) fn new(width: usize) -> Page {
        Page { out: String::new(), width }
    }

    fn report(&mut self, report: &Report, detail: Detail) {
        self.heading(&report.title, '=');
        self.paragraph(&report.question, "", "");
        self.gap();
        self.findings(&report.verdict);
        for trace in &report.traces {
            if report.traces.len() > 1 {
                self.heading(&format!("Trace {} ({})", trace.name, trace.id), '=');
            }
            self.table(&without_zeros(&trace.matrix));
            if detail == Detail::Full {
                self.details(trace);
            } else {
                let problems: Vec<Finding> =
                    trace.findings.iter().filter(|f| f.level <= Level::Warning).cloned().collect();
                self.findings(&problems);
            }
        }
        if detail == Detail::Full {
            self.provenance(report);
        } else {
            self.checked_against(report);
        }
    }

    /// What the variants were checked against: no figure without it.
    fn checked_against(&mut self, report: &Report) {
        let lists = provenance::lists(&report.provenance);
        let Some((heading, items)) = lists.into_iter().find(|(heading, _)| *heading == provenance::CHECKED) else {
            return;
        };
        self.paragraph(&format!("{heading}:"), "", "");
        for (text, variants) in items {
            let whose = if variants.is_empty() { String::new() } else { format!(" ({})", named(&variants)) };
            self.paragraph(&format!("{text}{whose}"), "  - ", "    ");
        }
    }

    fn details(&mut self, trace: &TraceReport) {
        for section in &trace.sections {
            self.section(section);
        }
        if !trace.findings.is_empty() {
            self.heading("Findings", '-');
            self.findings(&trace.findings);
        }
    }

    fn section(&mut self, section: &Section) {
        // Charts by themselves cannot be shown; a heading over nothing would puzzle.
        if section.blocks.iter().all(|b| !matches!(b, Block::Table(t) if !t.rows.is_empty())) {
            return;
        }
        self.heading(&section.title, '-');
        self.paragraph(&section.lead, "", "");
        self.gap();
        // Charts show what the tables beside them say in figures; text shows the tables.
        for block in &section.blocks {
            if let Block::Table(table) = block {
                self.table(table);
            }
        }
        for definition in &section.definitions {
            self.paragraph(&format!("{}: {}.", definition.term, definition.meaning), "  ", "    ");
        }
        self.gap();
    }

    fn provenance(&mut self, report: &Report) {
        let from = &report.provenance;
        self.heading("Provenance", '-');
        if !from.command.is_empty() {
            self.paragraph(&format!("Command: {}", provenance::command(from)), "", "  ");
        }
        self.paragraph(
            &format!("Report made by kreplay-analysis {}, report schema {}.", from.analysis_version, report.schema),
            "",
            "  ",
        );
        self.gap();
        self.table(&provenance::cells(from));
        for (heading, items) in provenance::lists(from) {
            self.paragraph(&format!("{heading}:"), "", "");
            for (text, variants) in items {
                let whose = if variants.is_empty() { String::new() } else { format!(" ({})", variants.join(", ")) };
                self.paragraph(&format!("{text}{whose}"), "  - ", "    ");
            }
            self.gap();
        }
    }

    fn heading(&mut self, text: &str, line: char) {
        let text = escape::terminal(text, self.width);
        let under = line.to_string().repeat(text.chars().count());
        self.out.push_str(&format!("{text}\n{under}\n"));
    }

    /// Findings, one a bullet.
    pub(crate) fn findings(&mut self, findings: &[Finding]) {
        for finding in findings {
            let mark = match finding.level {
                Level::Problem | Level::Warning => format!("{}: ", finding.level.word().to_uppercase()),
                Level::Answer | Level::Note => String::new(),
            };
            let when = finding.time_s.map_or(String::new(), |t| format!("at {t:.2} s: "));
            self.paragraph(&format!("{mark}{when}{}", finding.text), "* ", "  ");
        }
        if !findings.is_empty() {
            self.gap();
        }
    }

    /// Wraps at spaces; a word longer than a line is cut.
    pub(crate) fn paragraph(&mut self, text: &str, first: &str, rest: &str) {
        let text = escape::visible(text);
        let mut line = String::from(first);
        let mut used = false;
        for word in text.split(' ').filter(|w| !w.is_empty()) {
            let mut word = word;
            let room = self.width - rest.chars().count();
            if used && line.chars().count() + 1 + word.chars().count() > self.width {
                self.out.push_str(line.trim_end());
                self.out.push('\n');
                line = String::from(rest);
                used = false;
            }
            while word.chars().count() > room {
                let cut =
                    word.char_indices().nth(room.saturating_sub(usize::from(used))).map_or(word.len(), |(i, _)| i);
                self.out.push_str(&format!("{line}{}{}\n", if used { " " } else { "" }, &word[..cut]));
                word = &word[cut..];
                line = String::from(rest);
                used = false;
            }
            if used {
                line.push(' ');
            }
            line.push_str(word);
            used = true;
        }
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// An empty line, if there is none yet.
    pub(crate) fn gap(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A table, cut into several under each other where it is too wide; each repeats the first column.
    pub(crate) fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.paragraph(&table.caption, "", "");
        let columns: Vec<Vec<String>> = (0..table.columns.len()).map(|c| column_texts(table, c)).collect();
        let width_of =
            |c: usize| columns[c].iter().flat_map(|t| t.lines()).map(|l| l.chars().count()).max().unwrap_or(0);
        let mut next = 1;
        loop {
            let mut shown = vec![0];
            let mut used = width_of(0);
            while next < columns.len() && (shown.len() == 1 || used + 2 + width_of(next) <= self.width) {
                used += 2 + width_of(next);
                shown.push(next);
                next += 1;
            }
            self.grid(table, &columns, &shown);
            if next >= columns.len() {
                break;
            }
        }
        self.gap();
    }

    fn grid(&mut self, table: &Table, columns: &[Vec<String>], shown: &[usize]) {
        let mut grid = Grid::new();
        grid.load_style(comfy_table::TableStyle::new());
        grid.set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(shown.iter().map(|c| columns[*c][0].clone()));
        for r in 0..table.rows.len() {
            grid.add_row(shown.iter().map(|c| columns[*c][r + 1].clone()));
        }
        for (at, c) in shown.iter().enumerate() {
            if let Some(column) = grid.column_mut(at) {
                column.set_padding((0, if at + 1 == shown.len() { 0 } else { 2 }));
                if !table.columns[*c].is_text() {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        for line in grid.lines() {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
        self.out.push('\n');
    }
}

/// Variants for brackets: the first few, and how many more.
fn named(variants: &[String]) -> String {
    const FEW: usize = 3;
    let shown = variants.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    let more = variants.len().saturating_sub(FEW);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Heading (a word a line for numbers, so that columns stay narrow) and cells of a column.
fn column_texts(table: &Table, c: usize) -> Vec<String> {
    let column = &table.columns[c];
    let heading = escape::terminal(&column.heading(), LONGEST_CELL);
    let mut texts = vec![if column.is_text() { heading } else { heading.replace(' ', "\n") }];
    let mut full: Vec<String> = table.rows.iter().map(|row| content(&row.cells[c], column)).collect();
    if column.is_text() {
        // Two settings that differ in their place alone keep it.
        let short: Vec<String> = full.iter().map(|t| short_variant(t, LONGEST_CELL)).collect();
        let distinct = |texts: &[String]| texts.iter().collect::<BTreeSet<_>>().len();
        if distinct(&short) == distinct(&full) {
            full = short;
        }
    }
    let limit = telling_limit(&full);
    texts.extend(table.rows.iter().zip(&full).map(|(row, full)| {
        let text = escape::terminal(full, limit);
        if row.cells[c].best { format!("*{text}") } else { text }
    }));
    texts
}

/// The least width, from [`LONGEST_CELL`] up, at which texts that differ (the members of a sweep) still differ when cut.
fn telling_limit(texts: &[String]) -> usize {
    let distinct = |limit: usize| texts.iter().map(|t| escape::terminal(t, limit)).collect::<BTreeSet<_>>().len();
    let all = distinct(usize::MAX);
    (LONGEST_CELL..=WIDEST_CELL).find(|limit| distinct(*limit) == all).unwrap_or(WIDEST_CELL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_sweep_are_not_cut_to_the_same_text() {
        let name = |n: u32| format!("linux-2.4.16+machine.ram=64MiB+readahead.max-pages={n}+elevator.policy=noop");
        let names: Vec<String> = (10..13).map(name).collect();
        let limit = telling_limit(&names);
        let cut: BTreeSet<String> = names.iter().map(|n| escape::terminal(n, limit)).collect();
        assert_eq!(cut.len(), 3, "{cut:?}");
        assert_eq!(telling_limit(&["a".into(), "a".into()]), LONGEST_CELL);
    }
}
