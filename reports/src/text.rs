//! Plain text for a terminal: fits the width, the best of a column marked by `*`. Colour, where it is taken, only repeats what signs
//! and words say.

use crate::number::{content, without_zeros};
use crate::{Detail, RenderOptions, Renderer, Result, escape, legend, names, provenance};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid};
use kreplay_analysis::model::{Block, Finding, Level, List, Provenance, Report, Section, Table, TraceReport};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrowest width that is used, columns.
const NARROWEST: usize = 40;
/// Longest line of prose, columns: longer ones are hard to read. Tables use the whole width.
const LONGEST_LINE: usize = 100;
/// Longest text in a cell, columns.
const LONGEST_CELL: usize = 40;
/// Lines of a cell; of longer texts the middle is left out.
const CELL_LINES: usize = 4;
/// Least width of a cell, columns, whatever the terminal says.
const LEAST_CELL: usize = 12;
/// Between two columns.
const GAP: usize = 2;

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
        page.color = options.color;
        page.report(&names::short(report), options.detail);
        Ok(page.out.into_bytes())
    }
}

/// Text under construction, wrapped at a width.
pub(crate) struct Page {
    /// What there is so far.
    pub(crate) out: String,
    width: usize,
    color: bool,
}

/// Ways to say something louder (ECMA-48, SGR).
const BOLD: &str = "\x1b[1m";
const GOOD: &str = "\x1b[1;32m";
const BAD: &str = "\x1b[1;31m";
const CARE: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

impl Page {
    /// An empty page of `width` columns.
    pub(crate) fn new(width: usize) -> Page {
        Page { out: String::new(), width, color: false }
    }

    fn report(&mut self, report: &Report, detail: Detail) {
        self.heading(&report.title, '=');
        self.paragraph(&report.question, "", "");
        self.gap();
        self.findings(&report.verdict);
        self.legend(report);
        for trace in &report.traces {
            if report.traces.len() > 1 {
                self.heading(&format!("Trace {} ({})", trace.name, trace.id), '=');
            }
            self.table(&without_zeros(&trace.matrix));
            if detail == Detail::Full {
                self.details(trace);
            } else {
                self.statements(trace);
                let problems: Vec<Finding> =
                    trace.findings.iter().filter(|f| f.level <= Level::Warning).cloned().collect();
                self.findings(&problems);
            }
        }
        if detail == Detail::Full {
            self.provenance(report);
        } else {
            self.models(&report.provenance);
        }
    }

    /// What names and words stand for.
    pub(crate) fn legend(&mut self, report: &Report) {
        let lines = legend::lines(report);
        if lines.is_empty() {
            return;
        }
        self.paragraph(&format!("{}:", legend::heading(report)), "", "");
        for (term, meaning) in &lines {
            self.paragraph(&format!("{term}: {meaning}"), "  ", "    ");
        }
        self.gap();
    }

    /// What the models cover and were held against: no figure without it.
    pub(crate) fn models(&mut self, from: &Provenance) {
        let said = provenance::models_in_short(from);
        if said.is_empty() {
            return;
        }
        self.paragraph(&format!("{}:", provenance::MODELS), "", "");
        for said in &said {
            self.paragraph(&provenance::whose(said), "- ", "  ");
        }
        self.gap();
    }

    /// The mechanisms in full: too long for the cells of a table.
    fn mechanisms(&mut self, from: &Provenance) {
        let table = provenance::mechanisms(from);
        for row in &table.rows {
            let cells: Vec<String> = row.cells.iter().zip(&table.columns).map(|(c, k)| content(c, k)).collect();
            let [part, rule, modelled, missing, checked, variants] = cells.as_slice() else { continue };
            let of = if variants == "all" { String::new() } else { format!(" ({variants})") };
            let text = format!(
                "{part}, {rule}{of}. Modelled: {modelled}. Not modelled: {missing}. Checked against: {checked}."
            );
            self.paragraph(&text, "- ", "  ");
        }
        if !table.rows.is_empty() {
            self.gap();
        }
    }

    fn details(&mut self, trace: &TraceReport) {
        for section in &trace.sections {
            self.section(section);
        }
        if !trace.findings.is_empty() {
            self.heading("Findings", '-');
            for finding in &trace.findings {
                self.findings(std::slice::from_ref(finding));
                finding.details.iter().for_each(|d| self.paragraph(d, "    - ", "      "));
            }
            self.gap();
        }
    }

    fn section(&mut self, section: &Section) {
        // Charts by themselves cannot be shown; a heading over nothing would puzzle.
        if !section.blocks.iter().any(Block::is_text) {
            return;
        }
        self.heading(&section.title, '-');
        self.paragraph(&section.lead, "", "");
        self.gap();
        // Charts show what the tables beside them say in figures; text shows the tables.
        for block in &section.blocks {
            match block {
                Block::Table(table) => self.table(table),
                Block::List(list) => self.list(list),
                _ => {}
            }
        }
        for definition in &section.definitions {
            self.paragraph(&format!("{}: {}.", definition.term, definition.meaning), "  ", "    ");
        }
        self.gap();
    }

    /// Statements, one a paragraph.
    pub(crate) fn list(&mut self, list: &List) {
        if !list.caption.is_empty() {
            self.paragraph(&list.caption, "", "");
            self.gap();
        }
        for item in &list.items {
            self.paragraph(&format!("{}: {}", item.term, item.meaning), "* ", "  ");
        }
        self.gap();
    }

    /// The sections that hold statements only: they are part of the answer.
    pub(crate) fn statements(&mut self, trace: &TraceReport) {
        let only = |s: &&Section| s.blocks.iter().all(|b| matches!(b, Block::List(_)));
        trace.sections.iter().filter(only).for_each(|s| self.section(s));
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
        self.models(from);
        self.mechanisms(from);
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
        let text = self.louder(&text, BOLD);
        self.out.push_str(&format!("{text}\n{under}\n"));
    }

    fn louder(&self, text: &str, how: &str) -> String {
        if self.color { format!("{how}{text}{PLAIN}") } else { text.to_string() }
    }

    /// Findings, one a bullet.
    pub(crate) fn findings(&mut self, findings: &[Finding]) {
        for finding in findings {
            let mark = match finding.level {
                Level::Problem | Level::Warning => format!("{}: ", finding.level.word().to_uppercase()),
                Level::Answer | Level::Note => String::new(),
            };
            let when = finding.time_s.map_or(String::new(), |t| format!("at {t:.2} s: "));
            let begin = self.out.len();
            self.paragraph(&format!("{mark}{when}{}", finding.text), "* ", "  ");
            if self.color && !mark.is_empty() {
                let how = if finding.level == Level::Problem { BAD } else { CARE };
                let word = mark.trim_end();
                let loud = self.out[begin..].replacen(word, &self.louder(word, how), 1);
                self.out.truncate(begin);
                self.out.push_str(&loud);
            }
        }
        if !findings.is_empty() {
            self.gap();
        }
    }

    /// Wraps at spaces; a word longer than a line is cut.
    pub(crate) fn paragraph(&mut self, text: &str, first: &str, rest: &str) {
        let text = escape::visible(text);
        let width = self.width.min(LONGEST_LINE);
        let mut line = String::from(first);
        let mut used = false;
        for word in words(&text) {
            let mut word = word.as_str();
            let room = width - rest.chars().count();
            if used && line.chars().count() + 1 + word.chars().count() > width {
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
        let columns = columns(table, self.width);
        let width_of = |c: usize| width_of(&columns[c]);
        let keys = keys(&columns, self.width);
        let mut next = keys;
        loop {
            let mut shown: Vec<usize> = (0..keys).collect();
            let mut used = shown.iter().map(|c| width_of(*c)).sum::<usize>() + 2 * (keys - 1);
            while next < columns.len() && (shown.len() == keys || used + 2 + width_of(next) <= self.width) {
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
            let line = line.trim_end();
            self.out.push_str(&if self.color { best_in_colour(line) } else { line.to_string() });
            self.out.push('\n');
        }
        self.out.push('\n');
    }
}

/// How many columns, from the first on, tell the rows apart: they stand again where a table goes on below. At most half of the
/// width is given to them.
fn keys(columns: &[Vec<String>], width: usize) -> usize {
    let mut used = 0;
    for k in 1..columns.len() {
        used += width_of(&columns[k - 1]) + 2;
        let widest = columns[k..].iter().map(|c| width_of(c)).max().unwrap_or(0);
        if k > 1 && (used > width / 2 || used + widest > width) {
            return k - 1;
        }
        let rows = columns[0].len();
        let mut seen = std::collections::BTreeSet::new();
        if (1..rows).all(|r| seen.insert(columns[..k].iter().map(|c| c[r].as_str()).collect::<Vec<_>>())) {
            return k;
        }
    }
    1
}

/// The words of a sentence; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 7] = ["%", "s", "ms", "KiB", "MiB", "KiB/s", "MiB/s"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let unit = word.trim_end_matches([',', ';', '.', ':', ')', '?']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_string()),
        }
    }
    words
}

/// A line of a table with its marked figures (`*12.30`) in colour.
fn best_in_colour(line: &str) -> String {
    let marked =
        |word: &str| word.strip_prefix('*').is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    let words: Vec<String> = line
        .split(' ')
        .map(|word| if marked(word) { format!("{GOOD}{word}{PLAIN}") } else { word.to_string() })
        .collect();
    words.join(" ")
}

/// Columns of the widest line of a column's texts.
fn width_of(texts: &[String]) -> usize {
    texts.iter().flat_map(|t| t.lines()).map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// The texts of all columns: none wider than what the first one, which is repeated, leaves of the width. A last column of texts takes
/// what all others leave.
fn columns(table: &Table, width: usize) -> Vec<Vec<String>> {
    // Names of rows leave the figures more than half of the width.
    let mut columns = vec![column_texts(table, 0, (width * 45 / 100).min(LONGEST_CELL))];
    let room = width.saturating_sub(width_of(&columns[0]) + GAP).max(LEAST_CELL);
    columns.extend((1..table.columns.len()).map(|c| column_texts(table, c, room.min(LONGEST_CELL))));
    let last = table.columns.len() - 1;
    if last > 0 && table.columns[last].is_text() {
        let others: usize = columns[..last].iter().map(|c| width_of(c) + GAP).sum();
        let left = width.min(LONGEST_LINE).saturating_sub(others);
        if left > LONGEST_CELL {
            columns[last] = column_texts(table, last, left);
        }
    }
    columns
}

/// Heading (a word a line for numbers, so that columns stay narrow) and cells of a column, no line wider than `limit`.
fn column_texts(table: &Table, c: usize, limit: usize) -> Vec<String> {
    let column = &table.columns[c];
    let heading = escape::terminal(&column.heading(), LONGEST_CELL);
    let lines = |word: &str| folded(word, limit);
    let heading =
        if column.is_text() { lines(&heading) } else { heading.split(' ').map(lines).collect::<Vec<_>>().join("\n") };
    let mut texts = vec![heading];
    texts.extend(table.rows.iter().map(|row| {
        let cell = &row.cells[c];
        let text = escape::terminal(&content(cell, column), limit * CELL_LINES);
        // One column less for the mark.
        let text = folded(&text, if column.is_text() { limit } else { limit - 1 });
        if cell.best { format!("*{text}") } else { text }
    }));
    texts
}

/// A text in lines of at most `columns`, broken at spaces, else behind a sign, else anywhere.
fn folded(text: &str, columns: usize) -> String {
    let columns = columns.max(2);
    // How many characters from the first on fit into a line; some are two columns wide.
    let fitting = |rest: &[char]| {
        let mut used = 0;
        let fits = |c: &&char| {
            used += c.width().unwrap_or(0);
            used <= columns
        };
        rest.iter().take_while(fits).count()
    };
    let mut rest: Vec<char> = text.chars().collect();
    let mut lines: Vec<String> = Vec::new();
    while fitting(&rest) < rest.len() {
        let limit = fitting(&rest);
        let space = rest[..=limit].iter().rposition(|c| *c == ' ').filter(|at| *at > 0);
        let sign = || rest[..limit].iter().rposition(|c| matches!(c, '+' | '/' | '-' | ',' | '=')).map(|at| at + 1);
        let at = space.or_else(|| sign().filter(|at| *at > limit / 3)).unwrap_or(limit);
        lines.push(rest[..at].iter().collect());
        let skip = at + usize::from(space.is_some());
        rest.drain(..skip);
    }
    lines.push(rest.into_iter().collect());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreplay_analysis::model::{Cell, Column};
    use std::collections::BTreeSet;

    #[test]
    fn names_of_a_sweep_are_not_cut_to_the_same_text() {
        let name = |n: u32| format!("linux-2.4.16+machine.ram=64MiB+readahead.max-pages={n}+elevator.policy=noop");
        let mut table = Table::new("t", "T.", vec![Column::text("v", "variant")]);
        (10..13).for_each(|n| table.push(vec![Cell::text(name(n))]));
        let texts = &columns(&table, 100)[0];
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 4, "{texts:?}");
        let narrow = &columns(&table, 40)[0];
        assert!(width_of(narrow) <= 18 && narrow[1].contains("max-pages=\n10"), "{narrow:?}");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(words("took 3 s (84 %), 2 MiB or so"), ["took", "3 s", "(84 %),", "2 MiB", "or", "so"]);
        assert_eq!(words("a % b s"), ["a", "%", "b", "s"]);
    }

    #[test]
    fn long_texts_are_folded_where_they_may_be() {
        assert_eq!(folded("one client at a time", 12), "one client\nat a time");
        assert_eq!(folded("linux-6.18-none+memory-limit=34MiB", 16), "linux-6.18-none+\nmemory-limit=\n34MiB");
        assert_eq!(folded("abcdefghij", 4), "abcd\nefgh\nij");
    }
}
