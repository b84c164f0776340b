//! Names of variants as people read them: settings without the place at which they stand in the configuration, the same in
//! sentences, tables and charts. JSON, CSV and notebooks keep the full names, which select the variant again.

use kreplay_analysis::model::{Block, Finding, FlameNode, Level, Report, Table, Value, short_variant};
use std::collections::{BTreeMap, BTreeSet};

/// The report with short names, where variants stay distinct by them.
pub(crate) fn short(report: &Report) -> Report {
    let mut out = report.clone();
    let full: BTreeSet<&str> = report.provenance.cells.iter().map(|c| c.variant.as_str()).collect();
    let names: BTreeMap<&str, String> = full.iter().map(|n| (*n, short_variant(n, 0))).collect();
    let distinct: BTreeSet<&String> = names.values().collect();
    if distinct.len() < names.len() || names.iter().all(|(full, short)| full == short) {
        return out;
    }
    let names = Names(names);
    for trace in &mut out.traces {
        names.table(&mut trace.matrix);
        for section in &mut trace.sections {
            for block in &mut section.blocks {
                names.block(block);
            }
        }
    }
    for told in &mut out.legend.variants {
        names.change(&mut told.term);
    }
    for cell in &mut out.provenance.cells {
        names.change(&mut cell.variant);
    }
    for model in &mut out.provenance.models {
        names.change(&mut model.variant);
    }
    out.verdict.push(Finding::new(Level::Note, format!("In names of variants {}.", names.legend())));
    out
}

/// Short names by full ones.
struct Names<'r>(BTreeMap<&'r str, String>);

impl Names<'_> {
    /// The short form of a label: of a variant's name, also with a seed or a mark behind it.
    fn of(&self, label: &str) -> Option<String> {
        if let Some(short) = self.0.get(label) {
            return Some(short.clone());
        }
        let (name, rest) = label.split_at(label.find([' ', '\u{a0}'])?);
        Some(format!("{}{rest}", self.0.get(name)?))
    }

    fn change(&self, label: &mut String) {
        if let Some(short) = self.of(label) {
            *label = short;
        }
    }

    fn table(&self, table: &mut Table) {
        for column in &mut table.columns {
            self.change(&mut column.title);
        }
        for cell in table.rows.iter_mut().flat_map(|r| &mut r.cells) {
            if let Value::Text(text) = &mut cell.value {
                self.change(text);
            }
        }
        table.caption = self.sentence(&table.caption);
    }

    fn block(&self, block: &mut Block) {
        match block {
            Block::Table(table) => self.table(table),
            Block::Bars(chart) => chart.rows.iter_mut().for_each(|r| self.change(&mut r.label)),
            Block::Dots(chart) => chart.rows.iter_mut().for_each(|r| self.change(&mut r.label)),
            Block::Strips(chart) => self.change(&mut chart.label),
            Block::Plane(chart) => {
                self.change(&mut chart.label);
                for line in &mut chart.lines {
                    self.change(&mut line.label);
                    self.change(&mut line.group);
                }
            }
            Block::Heat(chart) => chart.rows.iter_mut().for_each(|r| self.change(&mut r.label)),
            Block::Flame(chart) => {
                self.change(&mut chart.label);
                self.node(&mut chart.root);
            }
            Block::List(list) => {
                for item in &mut list.items {
                    item.meaning = self.sentence(&item.meaning);
                }
            }
        }
    }

    fn node(&self, node: &mut FlameNode) {
        self.change(&mut node.name);
        node.parts.iter_mut().for_each(|n| self.node(n));
    }

    /// A sentence with the names in it shortened; marks may stand before and behind a name.
    fn sentence(&self, text: &str) -> String {
        let word = |word: &str| {
            let inner = word.trim_matches(['(', ')', ',', ';', ':', '.', '"']);
            match self.0.get(inner) {
                Some(short) if !inner.is_empty() => word.replacen(inner, short, 1),
                _ => word.to_string(),
            }
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// What the short keys stand for.
    fn legend(&self) -> String {
        let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
        for setting in self.0.keys().flat_map(|name| name.split('+')).filter_map(|part| part.split_once('=')) {
            if let Some((_, short)) = setting.0.rsplit_once('.') {
                keys.insert(short, setting.0);
            }
        }
        keys.iter().map(|(short, full)| format!("{short} stands for {full}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names<'static> {
        let full = ["a+machine.ram=64MiB", "b"];
        Names(full.iter().map(|n| (*n, short_variant(n, 0))).collect())
    }

    #[test]
    fn labels_and_sentences_get_the_same_names() {
        let names = names();
        assert_eq!(names.of("a+machine.ram=64MiB #2"), Some("a+ram=64MiB #2".to_string()));
        assert_eq!(names.of("a+machine.ram=64MiB (unfinished)"), Some("a+ram=64MiB (unfinished)".to_string()));
        assert_eq!(names.of("client of a+machine.ram=64MiB"), None);
        assert_eq!(names.sentence("Against a+machine.ram=64MiB: (b)."), "Against a+ram=64MiB: (b).");
        assert_eq!(names.legend(), "ram stands for machine.ram");
    }
}
