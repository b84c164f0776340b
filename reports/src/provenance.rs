//! Provenance as tables and lists that all text formats share.

use kreplay_analysis::model::{Cell, CellProvenance, Column, Provenance, Table, Unit};

/// A statement and the variants that make it; no variants means all of them.
pub(crate) type Said = (String, Vec<String>);

/// The cells of the run: one row each.
pub(crate) fn cells(provenance: &Provenance) -> Table {
    let mut table = Table::new(
        "cells",
        "The cells of the run. Equal configuration hashes mean equal variants.",
        vec![
            Column::text("variant", "variant"),
            Column::number("seed", "seed", Unit::Count, 0),
            Column::text("state", "state"),
            Column::text("pacing", "pacing"),
            Column::number("tasks", "tasks", Unit::Count, 0),
            Column::text("code", "simulator"),
            Column::text("config", "configuration"),
        ],
    );
    for c in &provenance.cells {
        let text = |t: &Option<String>| t.clone().map_or_else(|| Cell::number(None), Cell::text);
        let state = match (&c.why, c.finished) {
            (Some(why), _) => format!("{}: {why}", c.state),
            (None, Some(false)) => format!("{}, unfinished", c.state),
            _ => c.state.clone(),
        };
        table.push(vec![
            Cell::text(c.variant.clone()),
            Cell::count(c.seed),
            Cell::text(state),
            text(&c.pacing),
            Cell::count(c.tasks),
            text(&c.code_version),
            text(&c.config_hash.as_ref().map(|h| h.chars().take(16).collect())),
        ]);
    }
    table
}

/// What cells say, each different thing once, with the variants that say it (empty: all of them).
pub(crate) fn grouped(cells: &[CellProvenance], of: impl Fn(&CellProvenance) -> Vec<String>) -> Vec<Said> {
    let done: Vec<&CellProvenance> = cells.iter().filter(|c| c.state == "done").collect();
    let mut all: Vec<(String, Vec<String>, usize)> = Vec::new();
    for cell in &done {
        for text in of(cell) {
            match all.iter_mut().find(|(t, _, _)| *t == text) {
                None => all.push((text, vec![cell.variant.clone()], 1)),
                Some((_, variants, count)) => {
                    *count += 1;
                    if !variants.contains(&cell.variant) {
                        variants.push(cell.variant.clone());
                    }
                }
            }
        }
    }
    let everywhere = |n: usize| n == done.len();
    all.into_iter().map(|(text, variants, n)| (text, if everywhere(n) { Vec::new() } else { variants })).collect()
}

/// `key: value` lines of a list of pairs.
pub(crate) fn lines(pairs: &[(String, String)]) -> Vec<String> {
    pairs.iter().map(|(k, v)| if k.is_empty() { v.clone() } else { format!("{k}: {v}") }).collect()
}

/// Heading of what variants were checked against.
pub(crate) const CHECKED: &str = "Checked against";

/// The lists under provenance: heading, and what is said by whom.
pub(crate) fn lists(provenance: &Provenance) -> Vec<(&'static str, Vec<Said>)> {
    let cells = &provenance.cells;
    let all = [
        (CHECKED, grouped(cells, |c| c.checked_against.clone())),
        ("Assumptions", grouped(cells, |c| c.assumptions.clone())),
        ("Coverage of the trace", grouped(cells, |c| lines(&c.coverage))),
        ("Recording", lines(&provenance.recordings).into_iter().map(|l| (l, Vec::new())).collect()),
    ];
    all.into_iter().filter(|(_, items)| !items.is_empty()).collect()
}

/// The command as one line that a shell would take.
pub(crate) fn command(provenance: &Provenance) -> String {
    let plain = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c));
    let quote = |w: &String| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) };
    provenance.command.iter().map(quote).collect::<Vec<_>>().join(" ")
}
