//! What the names of variants stand for, in plain words made from the cells' own data: the resolved configuration, what the files
//! of a variant say of themselves, and the names of the mechanisms that it selects.
//!
//! What all variants share is said once; each variant is told by what sets it apart. Sizes are in the units of the configuration.

use crate::model::{CellProvenance, Definition, Legend, VariantModel};
use indexmap::IndexMap;

/// Makes the legend of a report about these cells (finished or not) and the models of their variants.
pub(crate) fn legend(cells: &[CellProvenance], models: &[VariantModel]) -> Legend {
    let mut variants: IndexMap<&str, &CellProvenance> = IndexMap::new();
    for cell in cells.iter().filter(|c| !c.config.is_empty()) {
        variants.entry(&cell.variant).or_insert(cell);
    }
    let facts: Vec<Vec<(&str, String)>> =
        variants.values().map(|cell| facts(cell, models.iter().find(|m| m.variant == cell.variant))).collect();
    let same = |subject: &str| {
        let of = |f: &Vec<(&str, String)>| f.iter().find(|(s, _)| *s == subject).map(|(_, text)| text.clone());
        facts.windows(2).all(|two| of(&two[0]) == of(&two[1]))
    };
    let common: Vec<String> =
        facts.first().into_iter().flatten().filter(|(s, _)| same(s)).map(|(_, text)| text.clone()).collect();
    let told = variants.iter().zip(&facts).map(|((name, cell), facts)| {
        let mut words: Vec<String> = facts.iter().filter(|(s, _)| !same(s)).map(|(_, text)| text.clone()).collect();
        words.extend(settings(cell));
        if cell.parts.len() == 1 && cell.parts[0].term == **name && !cell.parts[0].meaning.is_empty() {
            words.insert(0, cell.parts[0].meaning.clone());
        }
        Definition { term: (*name).to_string(), meaning: words.join("; ") }
    });
    let told: Vec<Definition> = told.filter(|d| !d.meaning.is_empty()).collect();
    let composed =
        variants.values().filter(|c| c.parts.len() > 1 || c.parts.first().is_some_and(|p| p.term != c.variant));
    Legend {
        terms: Vec::new(),
        common: common.join("; "),
        variants: told,
        parts: parts(composed.map(|c| c.parts.as_slice())),
    }
}

/// What the parts of names stand for, each once: the kernels first, then what is put on top of them.
pub(crate) fn parts<'c>(cells: impl Iterator<Item = &'c [Definition]>) -> Vec<Definition> {
    let (mut kernels, mut others) = (Vec::new(), Vec::new());
    for (i, part) in cells.flat_map(|parts| parts.iter().enumerate()).filter(|(_, p)| !p.meaning.is_empty()) {
        let list: &mut Vec<Definition> = if i == 0 { &mut kernels } else { &mut others };
        let term = if i == 0 { part.term.clone() } else { format!("+{}", part.term) };
        let part = Definition { term, meaning: part.meaning.clone() };
        if !list.contains(&part) {
            list.push(part);
        }
    }
    kernels.extend(others);
    kernels
}

/// Single settings on top of the named files, as the variant's name has them.
fn settings(cell: &CellProvenance) -> Vec<String> {
    let begins = cell.parts.first().map_or("", |p| p.term.as_str());
    let rest = cell.variant.strip_prefix(begins).unwrap_or(&cell.variant);
    rest.split('+')
        .filter_map(|part| part.split_once('='))
        .map(|(key, value)| format!("{key} set to {value}"))
        .collect()
}

/// What a variant is, by subject. A subject that the configuration lacks is left out.
fn facts(cell: &CellProvenance, model: Option<&VariantModel>) -> Vec<(&'static str, String)> {
    let get = |key: &str| cell.config.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
    let rule = |part: &str| {
        let line = model.and_then(|m| m.lines.iter().find(|l| l.part == part));
        line.map(|l| l.name.clone())
    };
    let mut facts: Vec<(&str, String)> = Vec::new();
    facts.extend(rule("page replacement").map(|r| ("replacement", format!("page replacement by {r}"))));
    facts.extend(get("elevator.policy").map(|policy| ("scheduler", format!("I/O scheduler {policy}"))));
    facts.extend(passes(&get).map(|f| ("passes", f)));
    facts.extend(get("machine.ram").map(|ram| ("memory", format!("{} of memory", spaced(ram)))));
    facts.extend(get("machine.memory-limit").filter(|l| !zero(l)).map(|limit| ("limit", limited(limit))));
    facts.extend(swap(&get).map(|f| ("swap", f)));
    facts.extend(disk(&get).map(|f| ("disk", f)));
    facts.extend(get("machine.cpus").map(|n| ("processors", counted(n, "processor"))));
    facts
}

fn counted(number: &str, what: &str) -> String {
    format!("{number} {what}{}", if number == "1" { "" } else { "s" })
}

fn passes<'c>(get: &impl Fn(&str) -> Option<&'c str>) -> Option<String> {
    let (read, write) = (get("elevator.read-latency")?, get("elevator.write-latency")?);
    let text = format!("a waiting read is passed by {read} requests at most, a write by {write}");
    ((read, write) != ("0", "0")).then_some(text)
}

fn limited(limit: &str) -> String {
    format!("the load may use {} of the memory (a memory cgroup)", spaced(limit))
}

fn swap<'c>(get: &impl Fn(&str) -> Option<&'c str>) -> Option<String> {
    let size = get("machine.swap")?;
    let place =
        if get("swap.shares-disk") == Some("true") { " on the disk of the files" } else { " on a disk of its own" };
    Some(if zero(size) { "no swap".to_string() } else { format!("{} of swap{place}", spaced(size)) })
}

fn disk<'c>(get: &impl Fn(&str) -> Option<&'c str>) -> Option<String> {
    let number = |key: &str| get(key)?.parse::<f64>().ok();
    let depth = get("device.queue-depth").map_or(String::new(), |d| format!(", {} at a time", counted(d, "request")));
    Some(match get("device.model")? {
        "rotating" => {
            let rate = number("device.rate-bytes-s").map_or(String::new(), |r| format!(", {:.1} MB/s", r / 1e6));
            let (least, span) = (number("device.seek-min-us")?, number("device.seek-span-us")?);
            let (least, most) = (least / 1e3, (least + span) / 1e3);
            format!("disk of one arm{rate}, seeks of {least:.1} to {most:.1} ms{depth}")
        }
        "disk" => format!("disk with the parameters of {}{depth}", get("device.preset").unwrap_or("a built-in set")),
        "ssd" => format!("solid-state disk{depth}"),
        "null" => "a device that answers at once".to_string(),
        other => format!("device {other}{depth}"),
    })
}

fn zero(size: &str) -> bool {
    size.trim_start_matches('0').starts_with(|c: char| c.is_alphabetic()) || size.is_empty() || size == "0"
}

/// A size as people write it: `64 MiB` for `64MiB`.
fn spaced(size: &str) -> String {
    let end = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = (&size[..end], size[end..].trim());
    if unit.is_empty() { number.to_string() } else { format!("{number} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelLine;

    fn cell(variant: &str, parts: &[(&str, &str)], config: &[(&str, &str)]) -> CellProvenance {
        CellProvenance {
            variant: variant.to_string(),
            parts: parts.iter().map(|(t, m)| Definition::new(t, m)).collect(),
            config: config.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
            ..CellProvenance::default()
        }
    }

    #[test]
    fn what_is_shared_is_said_once_and_each_variant_by_what_sets_it_apart() {
        let config = |limit: &'static str| {
            [
                ("machine.ram", "4096MiB"),
                ("machine.memory-limit", limit),
                ("machine.swap", "0MiB"),
                ("elevator.policy", "bfq"),
            ]
        };
        let parts = |limit: &'static str, about: &'static str| [("k", "kernel K"), (limit, about)];
        let cells = [
            cell("k+small", &parts("small", "34 MiB for the load"), &config("34MiB")),
            cell("k+large", &parts("large", "68 MiB for the load"), &config("68MiB")),
        ];
        let line = ModelLine { part: "page replacement".into(), name: "two lists".into(), ..ModelLine::default() };
        let model = |v: &str| VariantModel { variant: v.into(), lines: vec![line.clone()], checked: Vec::new() };
        let legend = legend(&cells, &[model("k+small"), model("k+large")]);
        assert_eq!(legend.common, "page replacement by two lists; I/O scheduler bfq; 4096 MiB of memory; no swap");
        assert_eq!(
            legend.variants[0],
            Definition::new("k+small", "the load may use 34 MiB of the memory (a memory cgroup)")
        );
        let names: Vec<&str> = legend.parts.iter().map(|p| p.term.as_str()).collect();
        assert_eq!(names, ["k", "+small", "+large"]);
    }

    #[test]
    fn a_single_setting_is_told_and_a_plain_name_by_its_file() {
        let cells = [
            cell("k", &[("k", "kernel K")], &[("machine.ram", "64MiB")]),
            cell("k+writeback.soft-pct=20", &[("k", "kernel K")], &[("machine.ram", "64MiB")]),
        ];
        let legend = legend(&cells, &[]);
        assert_eq!(legend.common, "64 MiB of memory");
        assert_eq!(legend.variants[0].meaning, "kernel K");
        assert_eq!(legend.variants[1].meaning, "writeback.soft-pct set to 20");
        assert_eq!(legend.parts, [Definition::new("k", "kernel K")]);
        assert!(zero("0MiB") && zero("0") && !zero("34MiB") && !zero("100"));
    }
}
