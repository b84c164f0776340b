//! The answer in words: who wins, by how much, whether that can be told apart, and what the time went to.

use crate::causes::{Gap, Spent};
use crate::compare::{Rule, earlier_or_later, seeds_in_words};
use crate::matrix::{Folded, Matrix, MatrixRow};
use crate::model::{Finding, Level, Section};
use crate::model_error::ModelErrors;

/// Variants named one by one in a sentence; more are counted.
const NAMED: usize = 4;

/// What is no wait of a task's own making: sleep that it asked for, and other tasks, whose own time is counted.
const NOT_OWN: [&str; 2] = ["t_sleep_ns", "t_dep_ns"];

/// Shorter waits are not worth a sentence, milliseconds.
const FELT_MS: f64 = 1.0;

/// What the verdict is drawn from.
pub(crate) struct Evidence<'a> {
    /// Key figures.
    pub matrix: &'a Matrix,
    /// Sections of the trace.
    pub sections: &'a [Section],
    /// How long the recording took, seconds.
    pub recorded_s: Option<f64>,
    /// Variant to compare with, if one was asked for.
    pub reference: Option<&'a str>,
    /// When figures differ.
    pub rule: Rule,
    /// How far the models are off.
    pub errors: ModelErrors<'a>,
    /// Comparisons of single settings, in words.
    pub by_factor: &'a [String],
}

/// A finished variant with a figure.
struct Standing<'a> {
    row: &'a MatrixRow,
    value: Folded,
}

impl Evidence<'_> {
    /// The findings, most important first.
    pub(crate) fn verdict(&self) -> Vec<Finding> {
        let mut said = Vec::new();
        let by_time = self.standings("elapsed_s", false);
        said.extend(self.elapsed(&by_time));
        said.extend(self.against_reference(&by_time));
        said.extend(self.by_factor.iter().cloned());
        said.extend(self.why(&by_time));
        said.extend(self.fairness());
        said.extend(self.slow_calls("read_p999_ms", "reads"));
        said.extend(self.slow_calls("write_p999_ms", "writes"));
        said.extend(self.recorded(&by_time));
        said.into_iter().map(|text| Finding::new(Level::Answer, text)).collect()
    }

    /// Finished variants with a value in column `id`, best first.
    fn standings(&self, id: &str, higher_is_better: bool) -> Vec<Standing<'_>> {
        let mut standings: Vec<Standing<'_>> = self
            .matrix
            .rows
            .iter()
            .filter(|row| row.finished)
            .filter_map(|row| Some(Standing { row, value: self.matrix.get(row, id)? }))
            .collect();
        standings.sort_by(|a, b| a.value.median.total_cmp(&b.value.median));
        if higher_is_better {
            standings.reverse();
        }
        standings
    }

    /// How many standings from the first on cannot be told apart from the first.
    fn tied(&self, standings: &[Standing<'_>]) -> usize {
        standings.iter().take_while(|s| !self.rule.differ(s.value, standings[0].value)).count()
    }

    fn elapsed(&self, by_time: &[Standing<'_>]) -> Option<String> {
        let (best, worst) = (by_time.first()?, by_time.last()?);
        if by_time.len() == 1 {
            return Some(format!("{} would have taken {:.2} s.", best.row.shown, best.value.median));
        }
        let tied = self.tied(by_time);
        if tied == by_time.len() {
            let (first, last) = (format!("{:.2}", best.value.median), format!("{:.2}", worst.value.median));
            let when =
                if first == last { format!("after {first} s") } else { format!("between {first} s and {last} s") };
            return Some(format!(
                "The variants are not distinguishable by elapsed time: all {} finish {when}.",
                by_time.len()
            ));
        }
        let slowest = format!("the slowest is {} with {:.2} s", worst.row.shown, worst.value.median);
        if tied == 1 {
            let second = &by_time[1];
            let margin = self.margin(best, second);
            let rest = if by_time.len() > 2 { format!("; {slowest}") } else { String::new() };
            Some(format!(
                "{} finishes first, after {:.2} s: {margin} than {} ({:.2} s){rest}.",
                best.row.shown, best.value.median, second.row.shown, second.value.median
            ))
        } else {
            let first = names(by_time[..tied].iter().map(|s| format!("{} ({:.2} s)", s.row.shown, s.value.median)));
            let alike = |s: &Standing<'_>| by_time[..tied].iter().all(|o| !self.rule.differ(s.value, o.value));
            let apart = if by_time[..tied].iter().all(alike) {
                "finish first and are not distinguishable from each other".to_string()
            } else {
                format!("finish first and are not distinguishable from {}", best.row.shown)
            };
            Some(format!("{first} {apart}; {slowest}, {} than {}.", self.margin(worst, best), best.row.shown))
        }
    }

    /// "12.4 % earlier", with what the seeds and the model's own error say of it.
    fn margin(&self, a: &Standing<'_>, b: &Standing<'_>) -> String {
        let words = earlier_or_later(a.value.median, b.value.median);
        let pct = (1.0 - a.value.median / b.value.median) * 100.0;
        let mut said = vec![seeds_in_words(a.value, b.value)];
        said.push(self.errors.beside(&a.row.variant, &b.row.variant, pct));
        said.retain(|s| !s.is_empty());
        format!("{words} ({})", said.join("; "))
    }

    fn against_reference(&self, by_time: &[Standing<'_>]) -> Option<String> {
        let name = self.reference?;
        let reference = by_time.iter().find(|s| s.row.variant == name)?;
        let others = by_time.iter().filter(|s| s.row.variant != name).map(|s| {
            if self.rule.differ(s.value, reference.value) {
                format!("{} finishes {}", s.row.shown, self.margin(s, reference))
            } else {
                format!("{} is not distinguishable", s.row.shown)
            }
        });
        let others: Vec<String> = others.collect();
        (!others.is_empty())
            .then(|| format!("Against {name} ({:.2} s): {}.", reference.value.median, others.join("; ")))
    }

    /// What the last variant's tasks spend more on than the first one's.
    fn why(&self, by_time: &[Standing<'_>]) -> Option<String> {
        let (best, worst) = (by_time.first()?, by_time.last()?);
        if !self.rule.differ(best.value, worst.value) {
            return None;
        }
        let spent = Spent::of(self.sections)?;
        let gaps = spent.gaps(&worst.row.variant, &best.row.variant)?;
        let most = gaps.iter().filter(|g| g.here_s > g.there_s && !NOT_OWN.contains(&g.cause)).max_by(|a, b| {
            let gap = |g: &&Gap| g.here_s - g.there_s;
            gap(a).total_cmp(&gap(b))
        })?;
        Some(format!(
            "What {} loses most on is \"{}\": {:.2} s of its tasks' time against {:.2} s under {}, {:.0} % of all that it spends more (a sum over tasks that ran side by side; it shows where time went, not by itself the cause).",
            worst.row.shown,
            most.words(),
            most.here_s,
            most.there_s,
            best.row.shown,
            most.share_pct
        ))
    }

    fn fairness(&self) -> Option<String> {
        let even = self.standings("last_over_first", false);
        let (best, worst) = (even.first()?, even.last()?);
        let jain = |row: &MatrixRow| {
            self.matrix.get(row, "jain").map_or(String::new(), |j| format!(", Jain's index {:.3} of 1", j.median))
        };
        if !self.rule.differ(best.value, worst.value) {
            let (low, high) = (format!("{:.2}", best.value.median), format!("{:.2}", worst.value.median));
            let times = if low == high { low } else { format!("{low} to {high}") };
            let who = if even.len() == 1 {
                format!("Under {}", best.row.shown)
            } else {
                "The variants treat the clients alike:".to_owned()
            };
            return Some(format!("{who} the last client finishes {times} times as late as the first."));
        }
        Some(format!(
            "{} treats the clients most evenly: the last finishes {:.2} times as late as the first{}; the least even is {} with {:.2}{}.",
            best.row.shown,
            best.value.median,
            jain(best.row),
            worst.row.shown,
            worst.value.median,
            jain(worst.row)
        ))
    }

    fn slow_calls(&self, id: &str, what: &str) -> Option<String> {
        let standings = self.standings(id, false);
        let (best, worst) = (standings.first()?, standings.last()?);
        if standings.len() < 2 || worst.value.median < FELT_MS || !self.rule.differ(best.value, worst.value) {
            return None;
        }
        let first = names(standings[..self.tied(&standings)].iter().map(|s| s.row.shown.clone()));
        Some(format!(
            "The slowest {what} are shortest under {first}: 99.9 % take at most {} ms, against {} ms under {}.",
            telling(best.value.median),
            telling(worst.value.median),
            worst.row.shown
        ))
    }

    fn recorded(&self, by_time: &[Standing<'_>]) -> Option<String> {
        let recorded = self.recorded_s.filter(|r| *r > 0.0)?;
        let gap = |s: &Standing<'_>| (s.value.median - recorded).abs();
        if let Some(s) = by_time.iter().find(|s| is_recorded_machine(s.row)) {
            return Some(format!(
                "The recording took {recorded:.2} s; {}, the nearest kernel known on the recorded machine, takes {:.2} s ({}): that is what the model is off by for this load where nothing was changed.",
                s.row.shown,
                s.value.median,
                earlier_or_later(s.value.median, recorded)
            ));
        }
        let closest = by_time.iter().min_by(|a, b| gap(a).total_cmp(&gap(b)))?;
        Some(format!(
            "The recording, on its own kernel and machine (see Provenance), took {recorded:.2} s; {} is nearest with {:.2} s ({}). Being near is no proof: only a variant of that kernel on that machine has to agree.",
            closest.row.shown,
            closest.value.median,
            earlier_or_later(closest.value.median, recorded)
        ))
    }
}

/// The recorded machine with nothing changed: here the model has to agree.
fn is_recorded_machine(row: &MatrixRow) -> bool {
    row.shown.split('+').skip(1).eq(["recorded"])
}

/// By how much the recorded machine with nothing changed is off, percent of the recorded time.
pub(crate) fn own_error_pct(matrix: &Matrix, recorded_s: Option<f64>) -> Option<f64> {
    let recorded = recorded_s.filter(|r| *r > 0.0)?;
    let row = matrix.rows.iter().find(|r| r.finished && is_recorded_machine(r))?;
    Some((matrix.get(row, "elapsed_s")?.median / recorded - 1.0).abs() * 100.0)
}

/// A time with two digits after the point, or, below that, with two that matter.
fn telling(ms: f64) -> String {
    if ms >= 0.1 || ms <= 0.0 {
        return format!("{ms:.2}");
    }
    let digits = 1 - ms.log10().floor() as i32;
    format!("{ms:.*}", digits.clamp(2, 6) as usize)
}

/// A list for a sentence: `a, b and c`, or `a, b, c and 5 more`.
pub(crate) fn names(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    if items.len() > NAMED {
        let more = items.len() - (NAMED - 1);
        items.truncate(NAMED - 1);
        items.push(format!("{more} more"));
    }
    match items.pop() {
        None => String::new(),
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} and {last}", items.join(", ")),
    }
}
