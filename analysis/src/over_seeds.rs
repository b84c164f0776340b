//! One rule for figures of several seeds: tables show the median over the seeds and the range, wherever their rows are the same under
//! every seed; charts and lists of single calls show one run of each variant, and their captions name its seed.
//!
//! The run that stands for its variant is the one of median elapsed time (of an even number the shorter of the two middle ones; one that did not
//! end counts as longest).

use crate::cell::CellData;
use crate::metrics::CellHead;
use crate::model::{Block, Cell, Row, Section, Table, Value};
use crate::stats::median;
use indexmap::{IndexMap, IndexSet};

/// Texts of a cell that are spelled out where the seeds differ in it.
const SPELLED: usize = 3;
/// Seeds named one by one in a caption.
const NAMED: usize = 4;

/// For each run (variant and elapsed time, `None` if unknown or unfinished) its place among the runs of its variant: 0 stands for it, the others follow in
/// the order of the run.
pub(crate) fn places(runs: &[(&str, Option<f64>)]) -> Vec<usize> {
    let mut of: IndexMap<&str, Vec<usize>> = IndexMap::new();
    for (i, (variant, _)) in runs.iter().enumerate() {
        of.entry(*variant).or_default().push(i);
    }
    let mut places = vec![0; runs.len()];
    for all in of.values() {
        let time = |i: usize| runs[i].1.unwrap_or(f64::INFINITY);
        let mut ranked = all.clone();
        ranked.sort_by(|a, b| time(*a).total_cmp(&time(*b)).then(a.cmp(b)));
        let stands = ranked[(ranked.len() - 1) / 2];
        places[stands] = 0;
        all.iter().filter(|i| **i != stands).enumerate().for_each(|(k, i)| places[*i] = k + 1);
    }
    places
}

/// The elapsed time by which runs are ranked.
pub(crate) fn ranked_by(cell: &CellData) -> Option<f64> {
    cell.elapsed_s().filter(|_| cell.finished)
}

/// The seeds of the runs that stand for their variants.
pub(crate) struct Seeds {
    of: Vec<(String, i64)>,
    several: bool,
}

impl Seeds {
    /// From the heads of the runs; `several` if some variant has more than one.
    pub(crate) fn new(heads: &[CellHead], several: bool) -> Seeds {
        let of = heads.iter().filter(|h| h.place == 0).map(|h| (h.variant.clone(), h.seed)).collect();
        Seeds { of, several }
    }

    /// "seed 2 of a; seed 1 of all others".
    pub(crate) fn in_words(&self) -> String {
        let mut by_seed: IndexMap<i64, Vec<&str>> = IndexMap::new();
        for (variant, seed) in &self.of {
            by_seed.entry(*seed).or_default().push(variant);
        }
        by_seed.sort_by(|_, a, _, b| a.len().cmp(&b.len()));
        let last = by_seed.len().saturating_sub(1);
        let one = |(i, (seed, variants)): (usize, (&i64, &Vec<&str>))| match i {
            _ if i == last && last == 0 => format!("seed {seed} of each variant"),
            _ if i == last => format!("seed {seed} of all others"),
            _ if variants.len() > NAMED => format!("seed {seed} of {} variants", variants.len()),
            _ => format!("seed {seed} of {}", variants.join(", ")),
        };
        by_seed.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
    }

    /// What a caption says of a block that shows one run: of the variant that it is labelled with, or of all.
    fn note(&self, label: &str) -> String {
        match self.of.iter().find(|(variant, _)| variant == label) {
            Some((_, seed)) => format!(" Seed {seed}."),
            None => format!(" One run of each variant: {}.", self.in_words()),
        }
    }
}

/// A section of the runs that stand for their variants, with the figures of all seeds: `others` are the same section made of the
/// other runs, `None` where these have nothing to show.
pub(crate) fn folded(mut section: Section, others: &[Option<Section>], seeds: &Seeds) -> Section {
    if !seeds.several {
        return section;
    }
    for block in &mut section.blocks {
        match block {
            Block::Table(table) => {
                let of_others: Option<Vec<&Table>> =
                    others.iter().map(|s| same_table(s.as_ref()?, &table.id)).collect();
                match of_others.and_then(|others| fold(table, &others)) {
                    Some(all) => *table = all,
                    None => table.caption.push_str(&seeds.note("")),
                }
            }
            Block::Bars(c) => c.caption.push_str(&seeds.note("")),
            Block::Dots(c) => c.caption.push_str(&seeds.note("")),
            Block::Strips(c) => c.caption.push_str(&seeds.note(&c.label)),
            Block::Plane(c) => c.caption.push_str(&seeds.note(&c.label)),
            Block::Flame(c) => c.caption.push_str(&seeds.note(&c.label)),
            Block::Heat(_) | Block::List(_) => {}
        }
    }
    section
}

fn same_table<'s>(section: &'s Section, id: &str) -> Option<&'s Table> {
    section.blocks.iter().find_map(|b| match b {
        Block::Table(t) if t.id == id => Some(t),
        _ => None,
    })
}

/// What names a row: its texts before the first number.
fn key(table: &Table, row: &Row) -> Vec<String> {
    let texts = table.columns.iter().take_while(|c| c.is_text()).count();
    row.cells
        .iter()
        .take(texts)
        .map(|c| match &c.value {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        })
        .collect()
}

/// The rows of a table by what names them; `None` if two have the same name.
fn by_key(table: &Table) -> Option<IndexMap<Vec<String>, &Row>> {
    let rows: IndexMap<Vec<String>, &Row> = table.rows.iter().map(|r| (key(table, r), r)).collect();
    (rows.len() == table.rows.len() && rows.keys().all(|k| !k.is_empty())).then_some(rows)
}

/// The median table; `None` if the rows are not the same under every seed.
fn fold(table: &Table, others: &[&Table]) -> Option<Table> {
    let mine = by_key(table)?;
    let theirs: Vec<IndexMap<Vec<String>, &Row>> = others.iter().map(|t| by_key(t)).collect::<Option<_>>()?;
    if theirs.iter().any(|rows| rows.keys().any(|k| !mine.contains_key(k))) {
        return None;
    }
    // Variants may have different numbers of seeds, but a run that is there has all rows that its variant has.
    let whole = |rows: &IndexMap<Vec<String>, &Row>| {
        rows.len() == mine.len() || variants(table).is_some_and(|of| complete(&mine, rows, of))
    };
    if !theirs.iter().all(whole) {
        return None;
    }
    let columns = all_columns(table, others);
    if columns.len() != table.columns.len() && !table.sparse {
        return None;
    }
    let mut out = Table { columns: columns.iter().map(|c| (*c).clone()).collect(), rows: Vec::new(), ..table.clone() };
    for (name, row) in &mine {
        let all: Vec<(&Table, &Row)> = std::iter::once((table, *row))
            .chain(others.iter().zip(&theirs).filter_map(|(t, rows)| Some((*t, *rows.get(name)?))))
            .collect();
        let cells = columns.iter().map(|column| {
            let of = |(t, r): &(&Table, &Row)| {
                t.columns.iter().position(|c| c.id == column.id).map(|at| r.cells[at].clone())
            };
            one_cell(&all.iter().map(of).collect::<Vec<_>>(), column.is_text())
        });
        out.push(cells.collect());
    }
    out.mark_again();
    Some(out)
}

/// Which text of a row's name is the variant.
fn variants(table: &Table) -> Option<usize> {
    table.columns.iter().take_while(|c| c.is_text()).position(|c| c.id == "variant")
}

/// Every row of `mine` whose variant occurs in `theirs` is there.
fn complete(mine: &IndexMap<Vec<String>, &Row>, theirs: &IndexMap<Vec<String>, &Row>, variant: usize) -> bool {
    let there: IndexSet<&String> = theirs.keys().map(|k| &k[variant]).collect();
    mine.keys().filter(|k| there.contains(&k[variant])).all(|k| theirs.contains_key(k))
}

/// The columns of all tables: one that only another has follows the one that it follows there.
fn all_columns<'t>(table: &'t Table, others: &[&'t Table]) -> Vec<&'t crate::model::Column> {
    let mut columns: Vec<&crate::model::Column> = table.columns.iter().collect();
    for other in others {
        for (i, column) in other.columns.iter().enumerate() {
            if columns.iter().all(|c| c.id != column.id) {
                let before = i.checked_sub(1).map(|b| &other.columns[b].id);
                let at = columns.iter().position(|c| Some(&c.id) == before).map_or(0, |at| at + 1);
                columns.insert(at, column);
            }
        }
    }
    columns
}

/// A cell over the seeds; `None` where a table lacks the column, which stands for nothing but zeros there.
fn one_cell(all: &[Option<Cell>], text: bool) -> Cell {
    if text {
        let texts: IndexSet<&str> = all
            .iter()
            .flatten()
            .filter_map(|c| if let Value::Text(t) = &c.value { Some(t.as_str()) } else { None })
            .collect();
        let missing = Cell::number(None);
        return match texts.len() {
            0 => all.iter().flatten().next().cloned().unwrap_or(missing),
            n if n <= SPELLED => Cell::text(texts.into_iter().collect::<Vec<_>>().join(" or ")),
            n => Cell::text(format!("{} and {} others", texts[0], n - 1)),
        };
    }
    let values: Vec<f64> = all.iter().filter_map(|c| c.as_ref().map_or(Some(0.0), Cell::as_number)).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    Cell { range: (values.len() > 1).then_some((low, high)), ..Cell::number(median(&values)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Better, Column, Unit};

    fn table(rows: &[(&str, f64, &str)]) -> Table {
        let columns = vec![
            Column::text("variant", "variant"),
            Column::number("s", "s", Unit::Seconds, 2).better(Better::Lower),
            Column::text("who", "who"),
        ];
        let mut table = Table::new("t", "T.", columns);
        rows.iter().for_each(|(v, s, who)| table.push(vec![Cell::text(*v), Cell::number(*s), Cell::text(*who)]));
        table.mark_best(|_| true);
        table
    }

    #[test]
    fn the_run_of_median_time_stands_for_its_variant() {
        let runs = [("a", Some(3.0)), ("a", Some(1.0)), ("a", Some(2.0)), ("b", None), ("b", Some(9.0))];
        assert_eq!(places(&runs), [1, 2, 0, 1, 0]);
    }

    #[test]
    fn figures_become_medians_with_their_range_and_the_best_is_marked_anew() {
        let mine = table(&[("a", 1.0, "x"), ("b", 2.0, "x")]);
        assert!(mine.rows[0].cells[1].best);
        let (second, third) = (table(&[("a", 9.0, "y"), ("b", 3.0, "x")]), table(&[("a", 5.0, "x"), ("b", 4.0, "x")]));
        let out = fold(&mine, &[&second, &third]).unwrap();
        let cell = &out.rows[0].cells[1];
        assert_eq!((cell.as_number(), cell.range, cell.best), (Some(5.0), Some((1.0, 9.0)), false));
        assert!(out.rows[1].cells[1].best);
        assert_eq!(out.rows[0].cells[2].value, Value::Text("x or y".into()));
    }

    #[test]
    fn rows_that_differ_between_the_seeds_are_those_of_one_run() {
        let mine = table(&[("a", 1.0, "x"), ("b", 2.0, "x")]);
        assert!(fold(&mine, &[&table(&[("a", 1.0, "x"), ("c", 2.0, "x")])]).is_none());
        assert!(fold(&table(&[("a", 1.0, "x"), ("a", 2.0, "y")]), &[]).is_none(), "two rows of one name");
        // A variant that has fewer seeds than another is no difference.
        assert!(fold(&mine, &[&table(&[("b", 2.0, "x")])]).is_some());
    }

    #[test]
    fn seeds_are_named() {
        let head = |variant: &str, seed, place| CellHead {
            label: variant.into(),
            place,
            seed,
            variant: variant.into(),
            finished: true,
        };
        let seeds = Seeds::new(&[head("a", 2, 0), head("a", 1, 1), head("b", 1, 0), head("c", 1, 0)], true);
        assert_eq!(seeds.in_words(), "seed 2 of a; seed 1 of all others");
        assert_eq!(seeds.note("a"), " Seed 2.");
        let alike = Seeds::new(&[head("a", 1, 0), head("b", 1, 0)], true);
        assert_eq!(alike.note(""), " One run of each variant: seed 1 of each variant.");
    }
}
