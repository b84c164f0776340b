//! Tables, charts and findings as HTML.

use super::data;
use crate::charts::svg::{self, Drawing};
use crate::number::content;
use crate::provenance::capital;
use crate::{Result, escape};
use kreplay_analysis::model::{Block, Finding, Heat, Level, List, Strips, Table};

/// Statements under a name each.
fn list(out: &mut String, list: &List) {
    if !list.caption.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", escape::html_full(&list.caption)));
    }
    out.push_str("<dl class=\"list\">\n");
    for item in &list.items {
        let (term, meaning) = (escape::html(&item.term), escape::html_full(&item.meaning));
        out.push_str(&format!("<div><dt>{term}</dt><dd>{meaning}</dd></div>\n"));
    }
    out.push_str("</dl>\n");
}

/// Longest text that is kept on one line, characters.
const SHORT: usize = 32;

/// Drawings of one kind in a section; with more variants than this the others stay in the JSON, and the page says so.
const FAMILY: usize = 10;

/// What all blocks of a page share.
pub(super) struct Blocks {
    /// Names of the variants; a row, line or figure of one carries its number.
    pub variants: Vec<String>,
    /// Charts so far.
    charts: usize,
    /// The recorded series are in the page's data already.
    recorded: bool,
}

impl Blocks {
    /// For a page about `variants`.
    pub(super) fn new(variants: Vec<String>) -> Blocks {
        Blocks { variants, charts: 0, recorded: false }
    }

    /// The number of the variant that a label names: itself, with a seed, or marked as unfinished.
    fn variant(&self, label: &str) -> Option<usize> {
        let exact = self.variants.iter().position(|v| v == label);
        exact.or_else(|| {
            let bare = label.strip_suffix(" (unfinished)").or_else(|| label.rsplit_once(" #").map(|(v, _)| v))?;
            self.variants.iter().position(|v| v == bare)
        })
    }

    fn mark(&self, label: &str) -> String {
        self.variant(label).map_or(String::new(), |v| format!(" data-v=\"{v}\""))
    }

    /// The blocks of a section. Of figures that differ only in whose they are, the first is open and the others are folded.
    pub(super) fn section(&mut self, out: &mut String, blocks: &[&Block]) -> Result<()> {
        let mut family = None;
        let (mut of_family, mut left_out) = (0, 0);
        for block in blocks {
            let (kind, label) = match block {
                Block::Strips(c) => (Some("strips"), c.label.as_str()),
                Block::Flame(c) => (Some("flame"), c.label.as_str()),
                Block::Plane(c) if !c.label.is_empty() => (Some(c.y.title.as_str()), c.label.as_str()),
                _ => (None, ""),
            };
            let folded = kind.is_some() && kind == family;
            of_family = if folded { of_family + 1 } else { 1 };
            family = kind;
            if of_family > FAMILY {
                left_out += 1;
                continue;
            }
            if folded {
                let mark = self.mark(label);
                out.push_str(&format!("<details class=\"more\"{mark}><summary>{}</summary>\n", escape::html(label)));
            }
            self.block(out, block)?;
            if folded {
                out.push_str("</details>\n");
            }
        }
        if left_out > 0 {
            out.push_str(&format!("<p class=\"note\">{left_out} more drawings of this kind are left out to keep the page small. The JSON report has their data.</p>\n"));
        }
        Ok(())
    }

    fn block(&mut self, out: &mut String, block: &Block) -> Result<()> {
        match block {
            Block::Table(t) => self.table(out, t),
            Block::Bars(chart) => {
                let data = script(&data::bars(chart, &|label: &str| self.variant(label))?);
                let attributes = self.attributes("", &chart.caption);
                figure(out, &attributes, &svg::bars(chart)?, &escape::html_full(&chart.caption), &data);
            }
            Block::Dots(chart) => {
                let data = script(&data::dots(chart, &|label: &str| self.variant(label))?);
                let caption = format!("{} ({}). {}", capital(&chart.axis), chart.unit.label(), chart.caption);
                let attributes = self.attributes("", &caption);
                figure(out, &attributes, &svg::dots(chart)?, &escape::html_full(&caption), &data);
            }
            Block::Strips(chart) => self.strips(out, chart)?,
            Block::Plane(chart) => {
                let drawing = svg::plane(chart)?;
                let caption = named(&chart.label, &thinned(&chart.caption, chart.thinned_from));
                let data = if data::worth_it(chart) {
                    script(&data::plane(chart, &|group: &str| self.variant(group))?)
                } else {
                    String::new()
                };
                let attributes = self.attributes(&chart.label, &chart.caption);
                figure(out, &attributes, &drawing, &caption, &data);
            }
            Block::Flame(chart) => {
                let caption = named(&chart.label, &chart.caption);
                let attributes = self.attributes(&chart.label, &chart.caption);
                figure(out, &attributes, &svg::flame(chart)?, &caption, &script(&data::flame(chart)?));
            }
            Block::Heat(chart) => self.heat(out, chart),
            Block::List(l) => list(out, l),
        }
        Ok(())
    }

    fn attributes(&mut self, label: &str, about: &str) -> String {
        self.charts += 1;
        format!(" data-chart=\"{}\" data-about=\"{}\"{}", self.charts, escape::html(about), self.mark(label))
    }

    fn strips(&mut self, out: &mut String, chart: &Strips) -> Result<()> {
        let caption = named(&chart.label, &thinned(&chart.caption, chart.thinned_from));
        let attributes = self.attributes(&chart.label, &chart.caption);
        out.push_str(&format!(
            "<figure class=\"strips\"{attributes}>\n<figcaption>{caption}</figcaption>\n<div class=\"panels\">\n"
        ));
        for panel in &chart.panels {
            out.push_str(&svg::panel(chart, panel)?.svg);
            out.push('\n');
        }
        let first = !std::mem::replace(&mut self.recorded, true);
        out.push_str(&format!("</div>\n{}</figure>\n", script(&data::strips(chart, first)?)));
        Ok(())
    }

    /// A table, in several under each other where it is wider than a page; each scrolls by itself in a narrow window.
    pub(super) fn table(&self, out: &mut String, table: &Table) {
        if !table.rows.is_empty() {
            pieces(table).iter().for_each(|piece| self.piece(out, piece));
        }
    }

    fn piece(&self, out: &mut String, table: &Table) {
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
        let variant = table.columns.iter().position(|c| c.id == "variant");
        for row in &table.rows {
            let first = row.cells.first().map(|c| content(c, &table.columns[0]));
            let same = grouped && first == before;
            let begins = grouped && before.is_some() && !same;
            let whose = variant
                .and_then(|c| row.cells.get(c))
                .map_or(String::new(), |c| self.mark(&content(c, &table.columns[0])));
            out.push_str(&format!("<tr{}{whose}>", if begins { " class=\"begins\"" } else { "" }));
            for (i, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
                let text = escape::html(&content(cell, column));
                match (i, cell.best) {
                    (0, _) => {
                        out.push_str(&format!("<th scope=\"row\"{}>{}</th>", class(&text, same), breakable(&text)))
                    }
                    (_, true) => {
                        out.push_str(&format!("<td class=\"n best\">{text}<span class=\"star\">*</span></td>"))
                    }
                    _ if column.is_text() => out.push_str(&format!("<td{}>{text}</td>", class(&text, false))),
                    _ => out.push_str(&format!("<td class=\"n\">{text}</td>")),
                }
            }
            out.push_str("</tr>\n");
            before = first;
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }

    /// A table of sentences: nothing is shortened, and cells take lines.
    pub(super) fn prose_table(&self, out: &mut String, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        let caption = escape::html_full(&table.caption);
        out.push_str(&format!("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table class=\"prose\">\n<caption>{caption}</caption>\n<thead><tr>"));
        for column in &table.columns {
            out.push_str(&format!("<th scope=\"col\">{}</th>", escape::html(&column.title)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            out.push_str("<tr>");
            for (cell, column) in row.cells.iter().zip(&table.columns) {
                out.push_str(&format!("<td>{}</td>", escape::html_full(&content(cell, column))));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }

    fn heat(&self, out: &mut String, chart: &Heat) {
        let caption = escape::html_full(&chart.caption);
        out.push_str(&format!("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table class=\"heat\">\n<caption>{caption}</caption>\n<thead><tr><th scope=\"col\">variant</th>"));
        for column in &chart.columns {
            out.push_str(&format!("<th scope=\"col\" class=\"n\">{}</th>", escape::html(column)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &chart.rows {
            let label = escape::html(&row.label);
            out.push_str(&format!(
                "<tr{}><th scope=\"row\"{}>{}</th>",
                self.mark(&row.label),
                class(&label, false),
                breakable(&label)
            ));
            for (cell, column) in row.cells.iter().zip(&chart.columns) {
                let shade = cell.shade.unwrap_or(0.0).clamp(0.0, 1.0);
                let text = escape::html(&cell.text);
                let column = escape::html(column);
                out.push_str(&format!(
                    "<td class=\"n h\" style=\"--s:{shade:.2}\" title=\"{label}, {column}: {text}\">{text}</td>"
                ));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
}

/// About the width of a page's text, pixels; printed tables are smaller, and so are pages.
const PAGE: usize = 1080;

/// About how wide a column is, pixels.
fn width(table: &Table, c: usize) -> usize {
    const LETTER: usize = 8;
    let column = &table.columns[c];
    // Numbers have room for the mark of the best behind them.
    let padding = if column.is_text() { 17 } else { 25 };
    let cells = table.rows.iter().filter_map(|r| r.cells.get(c)).map(|cell| content(cell, column).chars().count());
    let heading = column.title.split(' ').map(|w| w.chars().count()).max().unwrap_or(0);
    cells.chain([heading]).max().unwrap_or(0).min(SHORT) * LETTER + padding
}

/// The table by parts of its columns that fit a page, each with the columns that say what a row is about.
fn pieces(table: &Table) -> Vec<Table> {
    let widths: Vec<usize> = (0..table.columns.len()).map(|c| width(table, c)).collect();
    if widths.iter().sum::<usize>() <= PAGE {
        return vec![table.clone()];
    }
    let lead = table.columns.iter().take_while(|c| c.is_text()).count().clamp(1, 2);
    let mut parts: Vec<Vec<usize>> = vec![(0..lead).collect()];
    let mut used: usize = widths[..lead].iter().sum();
    for (c, width) in widths.iter().enumerate().skip(lead) {
        let full = parts.last().is_some_and(|part| part.len() > lead) && used + width > PAGE;
        if full {
            parts.push((0..lead).collect());
            used = widths[..lead].iter().sum();
        }
        used += width;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let of = |(i, part): (usize, &Vec<usize>)| {
        let mut piece = table.clone();
        piece.columns = part.iter().map(|c| table.columns[*c].clone()).collect();
        for (row, whole) in piece.rows.iter_mut().zip(&table.rows) {
            row.cells = part.iter().filter_map(|c| whole.cells.get(*c).cloned()).collect();
        }
        if i > 0 {
            piece.caption = "Continued.".to_string();
        }
        piece
    };
    parts.iter().enumerate().map(of).collect()
}

/// The data of a chart; what stands in it passed [`escape::json`].
fn script(json: &str) -> String {
    format!("<script type=\"application/json\">{json}</script>\n")
}

fn figure(out: &mut String, attributes: &str, drawing: &Drawing, caption: &str, data: &str) {
    out.push_str(&format!(
        "<figure{attributes}>\n<figcaption>{caption}</figcaption>\n<div class=\"chart\">{}</div>\n{data}</figure>\n",
        drawing.svg
    ));
}

/// A caption, escaped, with whose it is in front.
fn named(label: &str, caption: &str) -> String {
    let caption = escape::html_full(caption);
    if label.is_empty() { caption } else { format!("<strong>{}</strong> {caption}", escape::html(label)) }
}

fn thinned(caption: &str, from: Option<usize>) -> String {
    match from {
        Some(points) => {
            format!("{caption} Thinned from {points} samples: the lowest and highest value of each stretch are kept.")
        }
        None => caption.to_string(),
    }
}

/// Class of a text cell: a short text stays on one line, one with a long word may be broken in it, a repeated one is dimmed.
fn class(text: &str, same: bool) -> String {
    let mut classes = Vec::new();
    if text.chars().count() <= SHORT {
        classes.push("nb");
    } else if text.split([' ', '+', '/']).any(|word| word.chars().count() > SHORT) {
        classes.push("long");
    }
    if same {
        classes.push("same");
    }
    if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) }
}

/// Longest name that is kept on one line, characters.
const WHOLE: usize = 44;

/// A sentence in which names of variants are not broken.
fn whole_names(text: &str, variants: &[String]) -> String {
    let word = |word: &str| {
        let name = word.trim_matches(['(', ')', ',', ';', ':', '.', '"', '?']);
        let known = name.contains(['-', '+']) && name.chars().count() <= WHOLE && variants.iter().any(|v| v == name);
        match word.split_once(name).filter(|_| known) {
            Some((before, after)) => {
                let [before, name, after] = [before, name, after].map(escape::html_full);
                format!("{before}<span class=\"nb\">{name}</span>{after}")
            }
            None => escape::html_full(word),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A name that may be broken behind a plus sign: between a kernel and its settings.
fn breakable(text: &str) -> String {
    text.replace('+', "+<wbr>")
}

/// A list of findings; the level is a word as well as a colour. Single events, and more than [`OPEN`] notes, are folded.
pub(super) fn findings(out: &mut String, findings: &[Finding], variants: &[String]) {
    let notes: Vec<&Finding> = findings.iter().filter(|f| f.level == Level::Note).collect();
    let folded = notes.len() > OPEN;
    let first: Vec<&Finding> = findings.iter().filter(|f| !folded || f.level != Level::Note).collect();
    list_of(out, &first, variants);
    if folded {
        out.push_str(&format!("<details class=\"more\"><summary>{} notes</summary>\n", notes.len()));
        list_of(out, &notes, variants);
        out.push_str("</details>\n");
    }
}

/// Notes that are shown without asking.
const OPEN: usize = 2;

fn list_of(out: &mut String, findings: &[&Finding], variants: &[String]) {
    if findings.is_empty() {
        return;
    }
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
        // A number and its unit stay on one line, and so do names of variants.
        let text = whole_names(&finding.text, variants).replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms");
        out.push_str(&format!("<li class=\"{word}\">{label}{when}{text}"));
        if !finding.details.is_empty() {
            out.push_str("\n<details><summary>Single events</summary>\n<ul class=\"plain\">\n");
            finding.details.iter().for_each(|d| out.push_str(&format!("<li>{}</li>\n", escape::html_full(d))));
            out.push_str("</ul>\n</details>\n");
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
}
