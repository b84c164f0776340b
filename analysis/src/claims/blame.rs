//! Causes in words: where the time of the tasks that a claim is about went.

use super::registry::Why;
use super::view::View;
use crate::cell::{CAUSES, seconds};
use crate::error::Result;

/// What is told apart in sentences: words, and the causes that they sum.
const PARTS: [(&str, &[usize]); 11] = [
    ("the processor", &[0, 1]),
    ("reads of files from disk", &[4]),
    ("reads of metadata from disk", &[5]),
    ("swap-in", &[9]),
    ("waits for a free request", &[6]),
    ("locked pages and files", &[2, 3]),
    ("dirty limits", &[7]),
    ("direct reclaim", &[8]),
    ("sync and the journal", &[10]),
    ("the network or another wait outside", &[11]),
    ("sleep and other tasks", &[12, 13]),
];

/// What a cell says to a claim's cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// Seconds by [`PARTS`].
    parts_s: [f64; PARTS.len()],
    /// Mean requests that passed a read, share of reads at the tail in percent, mean KiB of a read; of the tasks.
    queue: Option<(f64, f64, f64)>,
    /// The counters asked for.
    counters: Vec<Option<i64>>,
}

impl Facts {
    /// Takes them from a cell.
    pub(crate) fn of(view: &View, why: &Why) -> Result<Facts> {
        let tasks = view.tasks(&why.tasks);
        let mut causes = [0i64; CAUSES.len()];
        match why.between.as_slice() {
            [from, to] => {
                let (from, to) = (view.mark(from)?.unwrap_or(0), view.mark(to)?.unwrap_or(i64::MAX));
                let mut columns = vec!["task", "start_ns", "dur_ns"];
                columns.extend(CAUSES);
                let frame = view.cell.table("calls", &columns)?;
                let (task, start, dur) = (frame.whole("task")?, frame.whole("start_ns")?, frame.whole("dur_ns")?);
                let inside: Vec<usize> = (0..task.len())
                    .filter(|&i| start[i] >= from && start[i] + dur[i] <= to && tasks.contains(&task[i]))
                    .collect();
                for (sum, name) in causes.iter_mut().zip(CAUSES) {
                    let column = frame.whole(name)?;
                    *sum = inside.iter().map(|&i| column[i]).sum();
                }
            }
            _ => {
                for t in view.cell.tasks.iter().filter(|t| tasks.contains(&t.task)) {
                    for (sum, ns) in causes.iter_mut().zip(t.causes_ns) {
                        *sum += ns;
                    }
                }
            }
        }
        let part = |of: &[usize]| seconds(of.iter().map(|c| causes[*c]).sum());
        Ok(Facts {
            parts_s: std::array::from_fn(|i| part(PARTS[i].1)),
            queue: if why.queue { queue(view, &tasks)? } else { None },
            counters: why.counters.iter().map(|c| view.cell.counter(c)).collect(),
        })
    }

    /// The mean over cells that differ by their seed.
    pub(crate) fn mean(all: &[&Facts]) -> Option<Facts> {
        let first = *all.first()?;
        let n = all.len() as f64;
        let average = |of: &dyn Fn(&Facts) -> f64| all.iter().map(|f| of(f)).sum::<f64>() / n;
        let queue = |of: &dyn Fn((f64, f64, f64)) -> f64| average(&|f| f.queue.map_or(0.0, of));
        let counter = |i: usize| {
            let sum: Option<i64> = all.iter().map(|f| f.counters[i]).sum();
            sum.map(|s| s / all.len() as i64)
        };
        Some(Facts {
            parts_s: std::array::from_fn(|i| average(&|f| f.parts_s[i])),
            queue: first.queue.map(|_| (queue(&|q| q.0), queue(&|q| q.1), queue(&|q| q.2))),
            counters: (0..first.counters.len()).map(counter).collect(),
        })
    }

    fn total(&self) -> f64 {
        self.parts_s.iter().sum()
    }

    /// The largest parts, largest first.
    fn largest(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..PARTS.len()).filter(|&i| self.parts_s[i] > 0.0).collect();
        order.sort_by(|a, b| self.parts_s[*b].total_cmp(&self.parts_s[*a]));
        order
    }
}

/// Mean number of requests that passed a read, share at the tail, mean size.
fn queue(view: &View, tasks: &[i64]) -> Result<Option<(f64, f64, f64)>> {
    let io = view.io()?;
    let reads: Vec<usize> =
        (0..io.q_ns.len()).filter(|&i| io.read[i] && !io.swap[i] && tasks.contains(&io.task[i])).collect();
    let n = reads.len() as f64;
    let mean = |of: &dyn Fn(usize) -> f64| reads.iter().map(|&i| of(i)).sum::<f64>() / n;
    Ok((!reads.is_empty()).then(|| {
        (
            mean(&|i| io.passed[i] as f64),
            mean(&|i| f64::from(u8::from(io.tail[i])) * 100.0),
            mean(&|i| io.len_bytes[i] as f64 / 1024.0),
        )
    }))
}

/// Whose time a sentence is about.
fn whose(why: &Why) -> String {
    if why.tasks.is_empty() { "all tasks".to_string() } else { format!("the tasks \"{}\"", why.tasks) }
}

/// The sentence: the figure's cell under `name`, against another where there is one.
pub(crate) fn sentence(why: &Why, name: &str, facts: &Facts, against: Option<(&str, &Facts)>) -> String {
    let mut text = match against {
        Some((other, b)) => difference(why, (name, facts), (other, b)),
        None => alone(why, name, facts),
    };
    let other = against.map(|(_, b)| b);
    if let Some((passed, tail, kib)) = facts.queue {
        text.push_str(&format!(
            "; their reads, {kib:.0} KiB on average, are overtaken by {passed:.1} requests each, {tail:.0} % are queued last"
        ));
        if let Some((p, t, k)) = other.and_then(|o| o.queue) {
            text.push_str(&format!(" (there: {k:.0} KiB, {p:.1} requests, {t:.0} %)"));
        }
    }
    for (i, counter) in why.counters.iter().enumerate() {
        let words = counter.replace('_', " ");
        if let Some(a) = facts.counters[i] {
            text.push_str(&format!("; {words} {a}"));
            if let Some(b) = other.and_then(|o| o.counters[i]) {
                text.push_str(&format!(" against {b}"));
            }
        }
    }
    text.push('.');
    text
}

fn alone(why: &Why, name: &str, facts: &Facts) -> String {
    let total = facts.total();
    let mut order = facts.largest();
    if order.is_empty() {
        return format!("{} under {name} spent no time", whose(why));
    }
    // What tasks waited for comes first: sleep was asked for.
    order.sort_by_key(|i| *i == NO_CAUSE);
    let first = order[0];
    let share = |i: usize| format!("{:.0} % in {}", facts.parts_s[i] / total * 100.0, PARTS[i].0);
    let second = order.get(1).map_or(String::new(), |&i| format!(" and {}", share(i)));
    format!("of the {total:.1} s of {} under {name} {}{second}", whose(why), share(first))
}

/// The part that is no cause by itself: sleep that was asked for, and waits for tasks whose own waits are counted.
const NO_CAUSE: usize = PARTS.len() - 1;

fn difference(why: &Why, (name, a): (&str, &Facts), (other, b): (&str, &Facts)) -> String {
    let (total_a, total_b) = (a.total(), b.total());
    let diff = total_a - total_b;
    if diff.abs() < ALIKE * total_a.max(total_b) {
        return alike(why, (name, a), (other, b));
    }
    let (slow, fast, s, f) = if diff > 0.0 { (name, other, a, b) } else { (other, name, b, a) };
    let gap = |i: usize| s.parts_s[i] - f.parts_s[i];
    let own = (0..NO_CAUSE).max_by(|x, y| gap(*x).total_cmp(&gap(*y))).unwrap_or(0);
    let more = format!("{} spend {:.1} s more under {slow} than under {fast}", whose(why), diff.abs());
    if gap(own) <= 0.0 {
        return format!(
            "{more}, but only asleep or waiting for other tasks ({:.1} against {:.1} s): the blame figures do not tell the cause",
            s.parts_s[NO_CAUSE], f.parts_s[NO_CAUSE]
        );
    }
    let share = gap(own) / diff.abs() * 100.0;
    // Where other parts shrank, the one that grew most is more than the whole difference: no share then.
    let most = match share {
        _ if gap(NO_CAUSE) > gap(own) => "of it, beside sleep and waits for other tasks, most".to_string(),
        share if share <= 100.0 => format!("{share:.0} % of it"),
        _ => "the most of it".to_string(),
    };
    format!("{more}, {most} in {} ({:.1} against {:.1} s)", PARTS[own].0, s.parts_s[own], f.parts_s[own])
}

/// Sums that differ by less than this share are alike; so are parts that differ by less than this share of the sum.
const ALIKE: f64 = 0.05;

/// Two cells whose tasks spend alike in sum: the part that differs all the same, or that none does.
fn alike(why: &Why, (name, a): (&str, &Facts), (other, b): (&str, &Facts)) -> String {
    let (total_a, total_b) = (a.total(), b.total());
    let gap = |i: usize| (a.parts_s[i] - b.parts_s[i]).abs();
    let top = (0..NO_CAUSE).max_by(|x, y| gap(*x).total_cmp(&gap(*y))).unwrap_or(0);
    // Sleep is asked for, so it says nothing of how large a difference is.
    let own = |f: &Facts| f.total() - f.parts_s[NO_CAUSE];
    let sums = format!("{} spend {total_a:.1} s under {name} and {total_b:.1} s under {other}", whose(why));
    let figures = format!("{} ({:.1} and {:.1} s)", PARTS[top].0, a.parts_s[top], b.parts_s[top]);
    if gap(top) > 0.0 && gap(top) >= ALIKE * own(a).max(own(b)) {
        return format!("{sums}, alike in sum; what differs most is {figures}");
    }
    format!("the blame figures do not tell: {sums}, and no part of it differs by much, most of all {figures}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(queue: bool) -> Why {
        Why {
            figure: "a".into(),
            against: None,
            tasks: "office".into(),
            queue,
            counters: vec!["swap_in_pages".into()],
            between: Vec::new(),
        }
    }

    fn facts(cpu: f64, swap: f64, pages: i64) -> Facts {
        let mut parts_s = [0.0; PARTS.len()];
        (parts_s[0], parts_s[3]) = (cpu, swap);
        Facts { parts_s, queue: None, counters: vec![Some(pages)] }
    }

    #[test]
    fn the_largest_part_of_a_difference_is_the_cause() {
        let text = sentence(&why(false), "slow", &facts(10.0, 38.0, 900), Some(("fast", &facts(12.0, 21.0, 400))));
        assert_eq!(
            text,
            "the tasks \"office\" spend 15.0 s more under slow than under fast, the most of it in swap-in (38.0 against 21.0 s); swap in pages 900 against 400."
        );
        let text = sentence(&why(false), "a", &facts(10.0, 21.0, 1), Some(("b", &facts(10.0, 21.5, 1))));
        assert_eq!(
            text,
            "the blame figures do not tell: the tasks \"office\" spend 31.0 s under a and 31.5 s under b, and no part of it differs by much, most of all swap-in (21.0 and 21.5 s); swap in pages 1 against 1."
        );
        let text = sentence(&why(false), "a", &facts(13.0, 21.0, 1), Some(("b", &facts(10.0, 24.5, 1))));
        assert!(text.contains("alike in sum; what differs most is swap-in (21.0 and 24.5 s)"), "{text}");
    }

    #[test]
    fn sleep_is_no_cause() {
        let asleep = |cpu: f64, sleep: f64| {
            let mut facts = facts(cpu, 0.0, 1);
            facts.parts_s[NO_CAUSE] = sleep;
            facts
        };
        let text = sentence(&why(false), "a", &asleep(10.0, 50.0), Some(("b", &asleep(10.0, 30.0))));
        assert!(text.contains("do not tell the cause"), "{text}");
        let text = sentence(&why(false), "a", &asleep(14.0, 50.0), Some(("b", &asleep(10.0, 30.0))));
        assert!(
            text.contains("beside sleep and waits for other tasks, most in the processor (14.0 against 10.0 s)"),
            "{text}"
        );
    }

    #[test]
    fn a_cell_by_itself_names_its_two_largest_parts() {
        let text = sentence(&why(false), "linux", &facts(25.0, 75.0, 5), None);
        assert_eq!(
            text,
            "of the 100.0 s of the tasks \"office\" under linux 75 % in swap-in and 25 % in the processor; swap in pages 5."
        );
    }
}
