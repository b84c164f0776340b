//! What is modelled of a variant, what it was held against, and the error: the rows of docs/MODEL.md that speak of it.
//!
//! The document is the only place where this stands; it is part of the program, and reports print its rows. `mechanisms.toml` says
//! which rows belong to which choices of a configuration; a test demands a row for every entry and an entry for every choice.

mod table;

use crate::variant::Variant;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use table::{Table, tables};

/// docs/MODEL.md.
const DOCUMENT: &str = include_str!("../../../docs/MODEL.md");
const MECHANISMS: &str = include_str!("mechanisms.toml");

/// Part of the lines about the kernel as a whole.
pub const WHOLE: &str = "whole kernel";

/// A line about a variant's model: one mechanism, or the kernel as a whole. Texts that the document lacks are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelLine {
    /// Which part of the kernel or machine.
    pub part: String,
    /// The rule that the variant selects there, in a few words; for the whole kernel its name.
    pub name: String,
    /// What is modelled.
    pub modelled: String,
    /// What is not, or is reduced.
    pub missing: String,
    /// What it was checked against.
    pub checked: String,
    /// The error found, with its unit.
    pub error: String,
    /// Of a whole kernel: the median error of the times of runs, percent, where the document has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_error_pct: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Mechanisms {
    mechanism: Vec<Mechanism>,
    words: IndexMap<String, String>,
    by_kernel: ByKernel,
    by_figure: ByFigure,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mechanism {
    part: String,
    name: String,
    key: String,
    values: Vec<String>,
    row: String,
    table: String,
}

/// A table of errors with a row a kernel.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByKernel {
    table: String,
    figures: String,
    error: String,
    /// Column of another table with a row a kernel: the error of times alone.
    times: String,
    what: String,
}

/// A table of one kernel's errors with a row a figure.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ByFigure {
    variant: String,
    table: String,
    error: String,
    rows: usize,
    /// Row of the time of a run.
    time: String,
    what: String,
}

struct Model {
    mechanisms: Mechanisms,
    tables: Vec<Table>,
}

static MODEL: LazyLock<Model> = LazyLock::new(|| Model {
    // A mistake in the file leaves the reports without lines; a test keeps that from being shipped.
    mechanisms: toml::from_str(MECHANISMS).unwrap_or_default(),
    tables: tables(DOCUMENT),
});

/// The lines about a variant: the whole kernel first, then its mechanisms.
pub fn lines(variant: &Variant) -> Vec<ModelLine> {
    let mut lines: Vec<ModelLine> = whole(variant).into_iter().collect();
    let config = serde_json::to_value(&variant.config).unwrap_or_default();
    lines.extend(MODEL.mechanisms.mechanism.iter().filter(|m| selected(m, &config)).map(line));
    lines
}

fn selected(mechanism: &Mechanism, config: &serde_json::Value) -> bool {
    let pointer = format!("/{}", mechanism.key.replace('.', "/"));
    let value = config.pointer(&pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
    mechanism.values.iter().any(|m| m == value)
}

fn line(mechanism: &Mechanism) -> ModelLine {
    let found = row(mechanism);
    let cell = |names: &[&str]| {
        let (table, row) = found?;
        row.get(table.column(names)?).filter(|c| *c != "-").cloned()
    };
    ModelLine {
        part: mechanism.part.clone(),
        name: mechanism.name.clone(),
        modelled: cell(&["modelled", "what is modelled"]).unwrap_or_default(),
        missing: cell(&["not modelled", "reduced"]).unwrap_or_default(),
        checked: cell(&["checked against", "checked"]).map(|c| in_full(&c)).unwrap_or_default(),
        error: cell(&["error"]).unwrap_or_default(),
        time_error_pct: None,
    }
}

/// The table and row that speak of a mechanism.
fn row(mechanism: &Mechanism) -> Option<(&'static Table, &'static [String])> {
    let tables = MODEL.tables.iter().filter(|t| t.first() == mechanism.table);
    let mut rows = tables.flat_map(|t| t.rows().iter().map(move |r| (t, r.as_slice())));
    rows.find(|(_, r)| r.first() == Some(&mechanism.row))
}

/// A cell of "checked against" with the words that stand for more written out.
fn in_full(cell: &str) -> String {
    let known = MODEL.mechanisms.words.iter().find(|(word, _)| {
        cell.strip_prefix(word.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ';', ' ']))
    });
    known.map_or_else(|| cell.to_owned(), |(word, full)| format!("{full}{}", &cell[word.len()..]))
}

/// Beginning of the names of kernels.
const KERNEL: &str = "linux-";

/// What whole runs of the kernel, or of the nearest one that it builds on, were compared with; settings on top of it were not.
fn whole(variant: &Variant) -> Option<ModelLine> {
    let layer = variant.layers.iter().rev().find_map(|layer| Some((layer, compared(layer)?)));
    let (name, Compared { what, error, time_error_pct }) = layer?;
    let changes: String = variant.changes.iter().map(|c| format!("+{c}")).collect();
    let own = variant.name.strip_suffix(&changes) == Some(name.as_str());
    let missing = if own { String::new() } else { format!("not compared itself; it builds on {name}") };
    Some(ModelLine {
        part: WHOLE.to_owned(),
        name: name.clone(),
        missing,
        checked: what,
        error,
        time_error_pct,
        ..ModelLine::default()
    })
}

/// What a kernel's runs were compared with, and the errors found.
struct Compared {
    what: String,
    error: String,
    time_error_pct: Option<f64>,
}

fn compared(layer: &str) -> Option<Compared> {
    by_kernel(layer).or_else(|| by_figure(layer))
}

fn by_kernel(layer: &str) -> Option<Compared> {
    let place = &MODEL.mechanisms.by_kernel;
    let kernel = layer.strip_prefix(KERNEL)?;
    let table = table_with(&place.table, &place.error)?;
    let row = table.rows().iter().find(|r| r.first().is_some_and(|k| k == kernel))?;
    let figures = row.get(table.column(&[&place.figures])?)?;
    let error = row.get(table.column(&[&place.error])?)?;
    let of_times = || {
        let table = table_with(&place.table, &place.times)?;
        table.rows().iter().find(|r| r.first().is_some_and(|k| k == kernel))?.get(table.column(&[&place.times])?)
    };
    Some(Compared {
        what: place.what.clone(),
        error: format!("{error} % (median of {figures} figures)"),
        time_error_pct: of_times().and_then(|e| e.parse().ok()),
    })
}

fn by_figure(layer: &str) -> Option<Compared> {
    let place = &MODEL.mechanisms.by_figure;
    let table = table_with(&place.table, &place.error).filter(|_| layer == place.variant)?;
    let column = table.column(&[&place.error])?;
    let figure = |r: &Vec<String>| Some(format!("{} {} %", r.first()?, r.get(column)?));
    let figures: Vec<String> = table.rows().iter().take(place.rows).filter_map(figure).collect();
    let time = table.rows().iter().find(|r| r.first().is_some_and(|f| *f == place.time)).and_then(|r| r.get(column));
    (!figures.is_empty()).then(|| Compared {
        what: place.what.clone(),
        error: format!("{} (medians)", figures.join("; ")),
        time_error_pct: time.and_then(|e| e.parse().ok()),
    })
}

/// The table with this first heading and a column of this name.
fn table_with(first: &str, column: &str) -> Option<&'static Table> {
    MODEL.tables.iter().find(|t| t.first() == first && t.column(&[column]).is_some())
}

/// Whether a configuration's choice has an entry.
#[cfg(test)]
fn has_entry(key: &str, config: &crate::config::Config) -> bool {
    let config = serde_json::to_value(config).unwrap_or_default();
    MODEL.mechanisms.mechanism.iter().any(|m| m.key == key && selected(m, &config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Library;

    fn variant(library: &mut Library, name: &str) -> Variant {
        library.select(&[name.to_owned()], &[], &[]).unwrap().remove(0)
    }

    #[test]
    fn every_entry_has_its_row_in_the_document() {
        assert!(MODEL.mechanisms.mechanism.len() > 20 && !MODEL.mechanisms.words.is_empty());
        for mechanism in &MODEL.mechanisms.mechanism {
            assert!(
                row(mechanism).is_some(),
                "docs/MODEL.md has no table \"{}\" with a row \"{}\": name the new one in replay/src/model/mechanisms.toml",
                mechanism.table,
                mechanism.row
            );
            assert!(!line(mechanism).modelled.is_empty(), "{}", mechanism.row);
        }
    }

    #[test]
    fn every_built_in_kernel_has_lines() {
        let mut library = Library::builtin().unwrap();
        let names: Vec<String> = library.list().filter(|s| !s.profile).map(|s| s.name).collect();
        for name in names {
            let v = variant(&mut library, &name);
            for key in ["reclaim.policy", "readahead.policy", "writeback.policy", "elevator.policy", "device.model"] {
                assert!(
                    has_entry(key, &v.config),
                    "{name}: replay/src/model/mechanisms.toml has no entry for its {key}"
                );
            }
        }
    }

    #[test]
    fn a_kernel_has_its_own_error_or_that_of_what_it_builds_on() {
        let mut library = Library::builtin().unwrap();
        let own = whole(&variant(&mut library, "linux-2.4.16")).unwrap();
        assert!(own.checked.starts_with("recorded runs of the real kernel") && own.error.contains(" % (median of "));
        let derived = whole(&variant(&mut library, "linux-2.4.16-noop")).unwrap();
        assert_eq!(
            (&derived.checked, derived.missing.as_str()),
            (&own.checked, "not compared itself; it builds on linux-2.4.16")
        );
        assert_eq!(derived.error, own.error);
        let changed = whole(&variant(&mut library, "linux-2.4.16+machine.ram=64MiB")).unwrap();
        assert_eq!(changed, own);
        assert!(own.time_error_pct.is_some_and(|e| e > 0.0), "{own:?}");
        let today = whole(&variant(&mut library, "linux-6.18-none")).unwrap();
        assert!(today.error.contains("wall time"), "{today:?}");
        assert!(today.error.contains(&format!("wall time {} %", today.time_error_pct.unwrap())), "{today:?}");
        assert_eq!(whole(&variant(&mut library, "linux-6.1")), None);
    }

    #[test]
    fn short_words_are_written_out() {
        assert!(in_full("exactly; the rest read").starts_with("every recorded decision agrees"));
        assert_eq!(in_full("readers of 2 MB"), "readers of 2 MB");
    }
}
