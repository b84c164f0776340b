//! Provenance as tables and lists that all text formats share.

use kreplay_analysis::model::{Cell, CellProvenance, Column, ModelLine, Provenance, Table, Unit, VariantModel};

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
fn grouped(cells: &[CellProvenance], of: impl Fn(&CellProvenance) -> Vec<String>) -> Vec<Said> {
    let done: Vec<(&str, Vec<String>)> =
        cells.iter().filter(|c| c.state == "done").map(|c| (c.variant.as_str(), of(c))).collect();
    once(done)
}

/// What is said by variants, each different thing once, with those that say it; none if all do, each as often as it occurs.
fn once<T: PartialEq>(said: Vec<(&str, Vec<T>)>) -> Vec<(T, Vec<String>)> {
    let sayers = said.len();
    let mut all: Vec<(T, Vec<String>, usize)> = Vec::new();
    for (variant, things) in said {
        for thing in things {
            match all.iter_mut().find(|(t, _, _)| *t == thing) {
                None => all.push((thing, vec![variant.to_string()], 1)),
                Some((_, variants, count)) => {
                    *count += 1;
                    if variants.iter().all(|v| v != variant) {
                        variants.push(variant.to_string());
                    }
                }
            }
        }
    }
    all.into_iter().map(|(thing, variants, n)| (thing, if n == sayers { Vec::new() } else { variants })).collect()
}

/// Heading of what is known of the models.
pub(crate) const MODELS: &str = "The models behind the figures";

/// Settings in a variant's name that its comparisons did not vary. Those with recordings changed memory limit and scheduler of
/// the recorded machine.
fn has_other_settings(variant: &str) -> bool {
    let recorded = variant.split('+').any(|part| part == "recorded");
    let varied = |key: &str| match key.rsplit('.').next() {
        Some("memory-limit") => true,
        Some("policy") => recorded,
        _ => false,
    };
    variant.split('+').filter_map(|part| part.split_once('=')).any(|(key, _)| !varied(key))
}

/// What variants were held against, with the error found, and what they cover in a few words: no figure without it.
pub(crate) fn models_in_short(provenance: &Provenance) -> Vec<Said> {
    let models = &provenance.models;
    let mut said: Vec<Said> = compared(models).into_iter().map(|text| (text, Vec::new())).collect();
    let bare = |m: &&VariantModel| m.lines.iter().all(|l| l.part != ModelLine::WHOLE);
    let other = models.iter().filter(bare).map(|m| {
        let held = if m.checked.is_empty() { vec!["nothing recorded".to_string()] } else { m.checked.clone() };
        (m.variant.as_str(), held)
    });
    let all_bare = models.iter().all(|m| bare(&m));
    for (text, variants) in once(other.collect()) {
        let whose = if variants.is_empty() && !all_bare {
            models.iter().filter(bare).map(|m| m.variant.clone()).collect()
        } else {
            variants
        };
        said.push((format!("held against {text}."), whose));
    }
    let parts: Vec<String> =
        parts(models).iter().map(|(part, rules)| format!("{part} ({})", rules.join(" or "))).collect();
    if !parts.is_empty() {
        said.push((format!("modelled: {}.", parts.join(", ")), Vec::new()));
    }
    if models.iter().any(|m| has_other_settings(&m.variant)) {
        said.push((
            "settings after a + in a variant's name were not part of these comparisons.".to_string(),
            Vec::new(),
        ));
    }
    said
}

/// A sentence for each kind of comparison of whole runs: the kernels with their errors, and for which variants they stand.
fn compared(models: &[VariantModel]) -> Vec<String> {
    /// A kernel's line, and the variants that have it although they are other kernels.
    type Kernel<'m> = (&'m ModelLine, Vec<String>);
    let mut kinds: Vec<(&str, Vec<Kernel<'_>>)> = Vec::new();
    for (model, line) in models.iter().filter_map(|m| Some((m, m.lines.iter().find(|l| l.part == ModelLine::WHOLE)?))) {
        let at = kinds.iter().position(|k| k.0 == line.checked).unwrap_or_else(|| {
            kinds.push((&line.checked, Vec::new()));
            kinds.len() - 1
        });
        let kernels = &mut kinds[at].1;
        let kernel = kernels.iter().position(|k| k.0.name == line.name).unwrap_or_else(|| {
            kernels.push((line, Vec::new()));
            kernels.len() - 1
        });
        if !line.missing.is_empty() {
            kernels[kernel].1.push(model.variant.clone());
        }
    }
    let kernel = |(line, others): &Kernel<'_>| {
        let stands = if others.is_empty() { String::new() } else { format!(", which also stands for {}", few(others)) };
        format!("{} with an error of {}{stands}", line.name, line.error)
    };
    kinds
        .iter()
        .map(|(what, kernels)| {
            let kernels: Vec<String> = kernels.iter().map(kernel).collect();
            format!("held against {what}: {}.", kernels.join("; "))
        })
        .collect()
}

/// The parts that are modelled, each with the rules that the variants have there.
fn parts(models: &[VariantModel]) -> Vec<(&str, Vec<&str>)> {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in models.iter().flat_map(|m| &m.lines).filter(|l| l.part != ModelLine::WHOLE) {
        match parts.iter_mut().find(|(part, _)| *part == line.part) {
            None => parts.push((&line.part, vec![&line.name])),
            Some((_, rules)) if !rules.contains(&line.name.as_str()) => rules.push(&line.name),
            Some(_) => {}
        }
    }
    parts
}

/// What the variants' own files say that they were checked against.
pub(crate) fn own_checks(provenance: &Provenance) -> Vec<Said> {
    let of = |m: &VariantModel| m.checked.iter().filter(|c| !c.contains("docs/MODEL.md")).cloned().collect();
    once(provenance.models.iter().map(|m| (m.variant.as_str(), of(m))).collect())
}

/// What is modelled of each mechanism, and what is not: a row a mechanism.
pub(crate) fn mechanisms(provenance: &Provenance) -> Table {
    let parts = |m: &VariantModel| -> Vec<ModelLine> {
        m.lines.iter().filter(|l| l.part != ModelLine::WHOLE).cloned().collect()
    };
    let lines = once(provenance.models.iter().map(|m| (m.variant.as_str(), parts(m))).collect());
    let mut table = Table::new(
        "mechanisms",
        "Mechanisms of the variants, as docs/MODEL.md has them.",
        vec![
            Column::text("part", "part"),
            Column::text("rule", "rule"),
            Column::text("modelled", "modelled"),
            Column::text("missing", "not modelled"),
            Column::text("checked", "checked against"),
            Column::text("variants", "variants"),
        ],
    );
    for (l, variants) in lines {
        let or = |text: String, other: &str| Cell::text(if text.is_empty() { other.to_string() } else { text });
        table.push(vec![
            Cell::text(l.part),
            Cell::text(l.name),
            or(l.modelled, "-"),
            or(l.missing, "-"),
            or(l.checked, "as part of the kernel"),
            or(few(&variants), "all"),
        ]);
    }
    table
}

/// Variants for brackets: the first few, and how many more.
pub(crate) fn few(variants: &[String]) -> String {
    const FEW: usize = 3;
    let shown = variants.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    let more = variants.len().saturating_sub(FEW);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// A statement about models with whose it is, the variants in front.
pub(crate) fn whose((text, variants): &Said) -> String {
    if variants.is_empty() { capital(text) } else { format!("{}: {text}", few(variants)) }
}

/// With a capital at its beginning.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// `key: value` lines of a list of pairs.
pub(crate) fn lines(pairs: &[(String, String)]) -> Vec<String> {
    pairs.iter().map(|(k, v)| if k.is_empty() { v.clone() } else { format!("{k}: {v}") }).collect()
}

/// The lists under provenance: heading, and what is said by whom.
pub(crate) fn lists(provenance: &Provenance) -> Vec<(&'static str, Vec<Said>)> {
    let cells = &provenance.cells;
    let all = [
        ("Checked besides", own_checks(provenance)),
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
