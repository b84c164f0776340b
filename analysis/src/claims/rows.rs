//! The rows of the answer in words: what was reported, what came out, what was tested, why; and what the names in them stand for.

use super::evaluate::{Answer, Row};
use super::report::{tests, with_unit};
use super::verdict::Verdict;
use crate::model::{Block, Definition, List, Section};
use std::collections::BTreeMap;

/// Figures of which each has its variant named; of more only the variants are listed.
const NAMED: usize = 8;

impl Verdict {
    /// What the verdicts mean, a sentence each.
    pub(super) fn definitions() -> Vec<Definition> {
        vec![
            Definition::new(
                "band",
                "the conditions on the simulated figures that count as what was reported; written down in analysis/claims for each claim",
            ),
            Definition::new(Verdict::Reproduced.word(), "every condition of the band holds"),
            Definition::new(
                Verdict::DirectionOnly.word(),
                "the band is missed, but the figures differ in the reported direction: every condition of a weaker test holds",
            ),
            Definition::new(
                Verdict::NotReproduced.word(),
                "not even the direction comes out, or the claim has no weaker test than its band",
            ),
        ]
    }
}

impl Answer {
    /// A statement for each claim.
    pub(super) fn row_by_row(&self) -> Section {
        let items = self
            .rows
            .iter()
            .map(|r| Definition { term: format!("{} {}", r.id, r.verdict.word()), meaning: r.in_words() })
            .collect();
        let list = List { id: "answers".to_string(), caption: String::new(), items };
        Section {
            id: "answers".to_string(),
            title: "Row by row".to_string(),
            lead: "What was reported, what the replay says, what was tested and why it came out so. Behind a condition stands the value that it compared, and \"no\" if it does not hold.".to_string(),
            blocks: vec![Block::List(list)],
            definitions: Vec::new(),
        }
    }

    /// What the names of kernels, machines and figures stand for.
    pub(super) fn names(&self) -> Option<Section> {
        let list = |id: &str, caption: &str, items: &[Definition]| {
            let list = List { id: id.to_string(), caption: caption.to_string(), items: items.to_vec() };
            (!items.is_empty()).then_some(Block::List(list))
        };
        let taken = |r: &Row, kind: &str| {
            let takes = r.figures.iter().map(|f| &f.take).chain(r.beside.iter().map(|p| &p.take));
            takes.into_iter().any(|take| take.split('(').next() == Some(kind))
        };
        let kinds: Vec<Definition> = super::figures::KINDS
            .iter()
            .filter(|k| self.rows.iter().any(|r| taken(r, k.name)))
            .map(|k| Definition::new(k.name, k.about))
            .collect();
        let blocks: Vec<Block> =
            [list("kernels", "Kernels and machines:", &self.parts), list("kinds", "What is taken of a run:", &kinds)]
                .into_iter()
                .flatten()
                .collect();
        (!blocks.is_empty()).then(|| Section {
            id: "names".to_string(),
            title: "What the names stand for".to_string(),
            lead: "A name like linux-2.4.10+m-64 is a kernel on a machine; a setting behind a further + is changed on top of both.".to_string(),
            blocks,
            definitions: Vec::new(),
        })
    }
}

impl Row {
    /// The row as sentences.
    pub(super) fn in_words(&self) -> String {
        let mut said = vec![format!("{}.", self.title.trim_end_matches('.')), format!("Reported: {}.", self.reported)];
        if self.verdict == Verdict::NotRun {
            said.push(self.why.clone());
            return said.join(" ");
        }
        said.push(format!("Simulated: {}.", self.simulated()));
        said.extend(self.figures_named());
        if self.figures.iter().all(|f| f.reported.is_empty()) {
            said.push("The report gives no figures to compare with, so a direction is tested.".to_string());
        }
        said.push(format!("Band: {}.", self.band_text()));
        if let Some((agree, seeds)) = self.alone {
            said.push(format!("Of the {seeds} seeds, each by itself, {agree} give this verdict."));
        }
        if self.verdict != Verdict::Reproduced {
            said.push(match self.direction.as_slice() {
                [] => "There is no weaker test.".to_string(),
                direction => format!("Direction: {}.", tests(direction)),
            });
        }
        if !self.why.is_empty() {
            said.push(format!("Cause: {}", self.why));
        }
        said.extend(self.on_real_kernels());
        said.retain(|s| !s.is_empty());
        said.join(" ")
    }

    /// What real kernels did under the same load, beside the model on their machine.
    fn on_real_kernels(&self) -> Option<String> {
        let said: Vec<String> = self
            .beside
            .iter()
            .map(|p| {
                let measured: Vec<String> = p.measured.iter().map(|m| with_unit(*m, p.unit)).collect();
                let simulated = p.simulated.map_or_else(|| "nothing".to_string(), |v| with_unit(v, p.unit));
                format!("{} of {}: {} measured, {simulated} simulated", p.take, p.variant, measured.join(" and "))
            })
            .collect();
        (!said.is_empty()).then(|| format!("On real kernels, and on their machine in the model: {}.", said.join("; ")))
    }

    /// Which variant each figure is of and what was taken, where the figures' names are short for them.
    fn figures_named(&self) -> Option<String> {
        let of: Vec<_> = self.figures.iter().filter(|f| f.variant != "grid").collect();
        let (first, take) = (of.first()?, of.first()?.take.as_str());
        let same_take = of.iter().all(|f| f.take == take);
        let same_variant = of.iter().all(|f| f.variant == first.variant);
        let mut groups: BTreeMap<usize, (String, Vec<&str>)> = BTreeMap::new();
        let mut order: Vec<(&str, &str)> = Vec::new();
        for f in &of {
            let key = (f.variant.as_str(), if same_take { "" } else { f.take.as_str() });
            let at = order.iter().position(|o| *o == key).unwrap_or_else(|| {
                order.push(key);
                order.len() - 1
            });
            let what = match (same_variant, key.1) {
                (true, "") => String::new(),
                (true, take) => take.to_string(),
                (false, "") => key.0.to_string(),
                (false, take) => format!("{take} of {}", key.0),
            };
            groups.entry(at).or_insert((what, Vec::new())).1.push(&f.name);
        }
        let named: Vec<String> = groups
            .values()
            .filter(|(what, _)| !what.is_empty())
            .take(NAMED)
            .map(|(what, names)| format!("{} {} {what}", names.join(", "), if names.len() > 1 { "are" } else { "is" }))
            .collect();
        let more = groups.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; {more} more in the table of figures") } else { String::new() };
        let whose = if same_variant { format!(" under {}", first.variant) } else { String::new() };
        let taken = if same_take { format!("{take} is taken{whose}") } else { format!("Taken{whose}") };
        let definition = if self.definition.is_empty() { String::new() } else { format!(" {}", self.definition) };
        Some(match named.as_slice() {
            [] => format!("{taken}.{definition}"),
            named => format!("{taken}: {}{more}.{definition}", named.join("; ")),
        })
    }
}
