//! One setting changed, all others equal: the comparisons that a grid of variants is made for.
//!
//! For each setting ([`crate::settings`]) the finished variants that agree in every other one form a group; within a group the
//! elapsed times (s, medians over seeds) are ranked and each is held against the shortest ([`crate::compare::Rule`]).

use crate::compare::{Rule, seeds_in_words};
use crate::matrix::{Folded, Matrix};
use crate::model::{Block, Cell, Column, Definition, Section, Table, Unit};
use crate::model_error::{ModelErrors, covers};
use crate::settings::{Setting, grid};
use crate::verdict::names;
use indexmap::IndexMap;

/// Settings and groups told in the verdict; the table has more.
const TOLD: usize = 4;
/// Most rows of the table.
const LISTED: usize = 60;
/// More settings of a group are not spelled out.
const SPELLED: usize = 3;

/// What is compared.
pub(crate) struct ByFactor<'a> {
    /// Key figures.
    pub matrix: &'a Matrix,
    /// What was varied.
    pub settings: &'a [Setting],
    /// When figures differ.
    pub rule: Rule,
    /// How far the models are off.
    pub errors: ModelErrors<'a>,
}

/// A variant of a group.
struct Member {
    row: usize,
    value: String,
    time: Folded,
}

/// Variants that agree in everything but one setting.
struct Group {
    at: String,
    /// Shortest time first.
    members: Vec<Member>,
}

impl ByFactor<'_> {
    /// The section, and a sentence for each setting.
    pub(crate) fn section(&self) -> (Option<Section>, Vec<String>) {
        let factors = grid(self.settings);
        let settings = if factors.is_empty() { self.settings.to_vec() } else { factors };
        let compared: Vec<(&Setting, Vec<Group>)> = (0..settings.len())
            .map(|s| (&settings[s], self.groups(&settings, s)))
            .filter(|(_, groups)| !groups.is_empty())
            .collect();
        // One group of all variants is the comparison that the rest of the report makes.
        let whole = |groups: &[Group]| groups.iter().any(|g| g.members.len() == self.matrix.rows.len());
        if compared.is_empty() || (compared.len() == 1 && whole(&compared[0].1)) {
            return (None, Vec::new());
        }
        let said = compared.iter().take(TOLD).map(|(setting, groups)| self.sentence(setting, groups)).collect();
        (Some(self.table(&compared)), said)
    }

    fn groups(&self, settings: &[Setting], s: usize) -> Vec<Group> {
        let others = |row: usize| -> Vec<usize> {
            settings.iter().enumerate().filter(|(o, _)| *o != s).map(|(_, o)| o.level[row]).collect()
        };
        let mut rows: IndexMap<Vec<usize>, Vec<Member>> = IndexMap::new();
        for (row, r) in self.matrix.rows.iter().enumerate().filter(|(_, r)| r.finished) {
            let Some(time) = self.matrix.get(r, "elapsed_s") else { continue };
            let value = spaced(&settings[s].values[settings[s].level[row]]);
            rows.entry(others(row)).or_default().push(Member { row, value, time });
        }
        rows.retain(|_, members| members.len() > 1);
        let alone = rows.len() == 1;
        rows.into_values()
            .map(|mut members| {
                let at = at(settings, s, members[0].row, alone);
                members.sort_by(|a, b| a.time.median.total_cmp(&b.time.median));
                Group { at, members }
            })
            .collect()
    }

    fn sentence(&self, setting: &Setting, groups: &[Group]) -> String {
        let told = &groups[..groups.len().min(TOLD)];
        let mut parts: Vec<String> = told.iter().map(|g| self.group(g)).collect();
        if groups.len() > TOLD {
            parts.push(format!("{} more under \"One thing changed at a time\"", groups.len() - TOLD));
        }
        let variants = told.iter().flat_map(|g| &g.members).map(|m| self.variant(m));
        let error = match self.errors.of(variants) {
            None => "How far the model is off on such times is not known.".to_string(),
            Some(error) => format!("Against that: {}.", self.errors.in_words(error)),
        };
        format!("By {} alone: {}. {error}", setting.called(), parts.join("; "))
    }

    fn variant(&self, member: &Member) -> &str {
        &self.matrix.rows[member.row].variant
    }

    /// "at memory limit 34 MiB: bfq 21.4 s, none 24.4 s (...)".
    fn group(&self, group: &Group) -> String {
        let times: Vec<String> = group.members.iter().map(|m| format!("{} {:.2} s", m.value, m.time.median)).collect();
        let at = if group.at.is_empty() { String::new() } else { format!("at {}: ", group.at) };
        format!("{at}{} ({})", times.join(", "), self.told_apart(&group.members))
    }

    /// Which of a group differ: the pair that is farthest apart, and who cannot be told from whom.
    fn told_apart(&self, members: &[Member]) -> String {
        let differ = |a: &Member, b: &Member| self.rule.differ(a.time, b.time);
        let pairs = (0..members.len()).flat_map(|slow| (0..slow).map(move |fast| (slow, fast)));
        let apart: Vec<(usize, usize)> =
            pairs.filter(|(slow, fast)| differ(&members[*slow], &members[*fast])).collect();
        let pct = |(slow, fast): (usize, usize)| longer(members[slow].time, members[fast].time);
        let farthest = apart.iter().copied().max_by(|a, b| pct(*a).total_cmp(&pct(*b)));
        let Some((slow, fast)) = farthest else { return "not distinguishable".to_string() };
        let (a, b) = (&members[slow], &members[fast]);
        let than = if members.len() > 2 { format!(" than {}", b.value) } else { String::new() };
        let mut said = vec![format!("{} takes {:.1} % longer{than}", a.value, pct((slow, fast)))];
        said.push(seeds_in_words(a.time, b.time));
        if self.within(a, b, pct((slow, fast))) {
            said.push("less than the model is off by".to_string());
        }
        let lone: Vec<String> = (0..members.len())
            .filter(|m| apart.iter().all(|(x, y)| x != m && y != m))
            .map(|m| members[m].value.clone())
            .collect();
        if !lone.is_empty() {
            let are = if lone.len() > 1 { "are" } else { "is" };
            said.push(format!("{} {are} not distinguishable from any", names(lone.into_iter())));
        }
        let level = members.iter().filter(|m| m.row != b.row && !differ(m, b)).map(|m| m.value.clone());
        let level: Vec<String> = level.filter(|v| !said.iter().any(|s| s.starts_with(v.as_str()))).collect();
        if !level.is_empty() {
            said.push(format!("{} not distinguishable from {}", names(level.into_iter()), b.value));
        }
        said.retain(|s| !s.is_empty());
        said.join("; ")
    }

    fn within(&self, a: &Member, b: &Member, pct: f64) -> bool {
        self.errors.of([self.variant(a), self.variant(b)].into_iter()).is_some_and(|error| covers(error, pct))
    }

    fn table(&self, compared: &[(&Setting, Vec<Group>)]) -> Section {
        let mut table = Table::new(
            "by-factor",
            "Elapsed time by one setting, everything else equal.",
            vec![
                Column::text("setting", "changed"),
                Column::text("at", "all else"),
                Column::text("value", "value"),
                Column::text("variant", "variant"),
                Column::number("elapsed_s", "elapsed", Unit::Seconds, 2),
                Column::number("longer_pct", "longer than the shortest", Unit::Percent, 1),
                Column::text("says", "what that says"),
            ],
        );
        let all: usize = compared.iter().flat_map(|(_, groups)| groups.iter().map(|g| g.members.len())).sum();
        for (setting, group) in compared.iter().flat_map(|(s, groups)| groups.iter().map(move |g| (s, g))) {
            if table.rows.len() + group.members.len() > LISTED {
                break;
            }
            let best = &group.members[0];
            for (i, m) in group.members.iter().enumerate() {
                let pct = longer(m.time, best.time);
                let time = Cell {
                    range: (m.time.seeds > 1).then_some((m.time.low, m.time.high)),
                    ..Cell::number(m.time.median)
                };
                table.push(vec![
                    Cell::text(setting.called()),
                    Cell::text(group.at.clone()),
                    Cell::text(m.value.clone()),
                    Cell::text(self.matrix.rows[m.row].variant.clone()),
                    time,
                    Cell::number((i > 0).then_some(pct)),
                    Cell::text(if i == 0 { "shortest".to_string() } else { self.says(m, best, pct) }),
                ]);
            }
        }
        if all > table.rows.len() {
            table.caption.push_str(&format!(" {} of {all} rows.", table.rows.len()));
        }
        Section {
            id: "by-factor".to_string(),
            title: "One thing changed at a time".to_string(),
            lead: "What each setting does by itself: only variants that agree in everything else are held against each other.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![Definition::new(
                "within the model's error",
                "the difference is no larger than the median error that the model's times have against recorded runs of real kernels, so on these the order may be another",
            )],
        }
    }

    fn says(&self, member: &Member, best: &Member, pct: f64) -> String {
        if !self.rule.differ(member.time, best.time) {
            return "not distinguishable".to_string();
        }
        match self.errors.of([self.variant(member), self.variant(best)].into_iter()) {
            None => "longer; the model's error is not known".to_string(),
            Some(error) if covers(error, pct) => format!("longer, but within the model's error of {error} %"),
            Some(error) => format!("longer; the model's error is {error} %"),
        }
    }
}

/// By how much `a` is longer than `b`, percent of `b`.
fn longer(a: Folded, b: Folded) -> f64 {
    if b.median > 0.0 { (a.median / b.median - 1.0) * 100.0 } else { 0.0 }
}

/// What the variants of a group share; empty where no other group has to be told apart from it.
fn at(settings: &[Setting], s: usize, row: usize, alone: bool) -> String {
    let others: Vec<&Setting> = settings.iter().enumerate().filter(|(o, _)| *o != s).map(|(_, o)| o).collect();
    if alone || others.is_empty() {
        return String::new();
    }
    let mut words: Vec<String> =
        others.iter().take(SPELLED).map(|o| format!("{} {}", o.called(), spaced(&o.values[o.level[row]]))).collect();
    if others.len() > SPELLED {
        words.push(format!("{} more settings", others.len() - SPELLED));
    }
    words.join(", ")
}

/// `34 MiB` for `34MiB`.
fn spaced(value: &str) -> String {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    match (&value[..end], &value[end..]) {
        (number, unit @ ("KiB" | "MiB" | "GiB")) if !number.is_empty() => format!("{number} {unit}"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::CellHead;
    use crate::model::{Better, CellProvenance, Value};
    use crate::settings::settings;

    fn cell(variant: &str, policy: &str, limit: &str) -> CellProvenance {
        let config = [("elevator.policy", policy), ("machine.memory-limit", limit)];
        CellProvenance {
            variant: variant.to_string(),
            config: config.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
            ..CellProvenance::default()
        }
    }

    fn matrix(rows: &[(&str, f64)]) -> Matrix {
        let head = |v: &str| CellHead { label: v.into(), place: 0, seed: 1, variant: v.into(), finished: true };
        let heads: Vec<CellHead> = rows.iter().map(|(v, _)| head(v)).collect();
        let columns = vec![Column::number("elapsed_s", "elapsed", Unit::Seconds, 2).better(Better::Lower)];
        Matrix::new(columns, &heads, &rows.iter().map(|(_, s)| vec![Some(*s)]).collect::<Vec<_>>())
    }

    #[test]
    fn schedulers_are_compared_at_equal_memory() {
        let matrix = matrix(&[("a", 21.0), ("b", 24.0), ("c", 15.0), ("d", 15.1)]);
        let cells = [
            cell("a", "bfq", "34MiB"),
            cell("b", "none", "34MiB"),
            cell("c", "bfq", "68MiB"),
            cell("d", "none", "68MiB"),
        ];
        let varied = settings(&matrix, &cells);
        let rule = Rule { tie_pct: 5.0 };
        let by =
            ByFactor { matrix: &matrix, settings: &varied, rule, errors: ModelErrors { models: &[], own_pct: None } };
        let (section, said) = by.section();
        assert_eq!(
            said,
            [
                "By I/O scheduler alone: at memory limit 34 MiB: bfq 21.00 s, none 24.00 s (none takes 14.3 % longer); at memory limit 68 MiB: bfq 15.00 s, none 15.10 s (not distinguishable). How far the model is off on such times is not known.",
                "By memory limit alone: at I/O scheduler bfq: 68 MiB 15.00 s, 34 MiB 21.00 s (34 MiB takes 40.0 % longer); at I/O scheduler none: 68 MiB 15.10 s, 34 MiB 24.00 s (34 MiB takes 58.9 % longer). How far the model is off on such times is not known.",
            ]
        );
        let Block::Table(table) = &section.unwrap().blocks[0] else { panic!("a table") };
        assert_eq!(table.rows.len(), 8);
        assert_eq!(table.rows[3].cells[6].value, Value::Text("not distinguishable".into()));
    }

    #[test]
    fn what_cannot_be_told_from_the_shortest_may_differ_from_another() {
        let values = |seeds: &[f64]| Folded::of(seeds).unwrap();
        let member = |row: usize, value: &str, seeds: &[f64]| Member { row, value: value.into(), time: values(seeds) };
        let matrix = matrix(&[("a", 21.4), ("b", 22.1), ("c", 24.4)]);
        let by = ByFactor {
            matrix: &matrix,
            settings: &[],
            rule: Rule { tie_pct: 5.0 },
            errors: ModelErrors { models: &[], own_pct: None },
        };
        let members = [
            member(0, "bfq", &[19.0, 21.4, 25.0]),
            member(1, "deadline", &[22.0, 22.1, 22.3]),
            member(2, "none", &[24.2, 24.4, 24.5]),
        ];
        let said = by.told_apart(&members);
        assert!(said.starts_with("none takes 10.4 % longer than deadline; 95 % interval of the seeds alone"), "{said}");
        assert!(said.ends_with("bfq is not distinguishable from any"), "{said}");
    }

    #[test]
    fn variants_that_differ_in_one_setting_only_need_no_section_of_their_own() {
        let matrix = matrix(&[("a", 21.0), ("b", 24.0)]);
        let cells = [cell("a", "bfq", "34MiB"), cell("b", "none", "34MiB")];
        let varied = settings(&matrix, &cells);
        let by = ByFactor {
            matrix: &matrix,
            settings: &varied,
            rule: Rule { tie_pct: 5.0 },
            errors: ModelErrors { models: &[], own_pct: None },
        };
        assert!(by.section().0.is_none());
    }
}
