//! Why: for each variant that differs from the one it is compared with, the causes that account for the difference in the
//! clients' time (s), each with the calls that show it best and their lines in the recorded log.
//!
//! Compared is with the reference if one was named, else with the fastest finished variant; a variant counts if its elapsed
//! time can be told apart from that one's ([`crate::compare::Rule`]). A cause's part: its sum over foreground tasks here less there,
//! and its share of all parts that changed in the same direction as the whole (%); waits for other tasks are left
//! out, these have causes of their own. Evidence: the [`EVIDENCE`] calls with
//! most of the cause here, with what the call of the same line and task took there (a call of less than [`NOTED_NS`] there is
//! not kept; it counts as shorter than that).

use super::blame::cause_words;
use super::{Context, Metric};
use crate::causes::{LEAST, SECOND_HAND};
use crate::cell::{CAUSES, CellData, millis, seconds};
use crate::error::Result;
use crate::model::{Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::who::Who;

/// Causes named for each variant.
const NAMED: usize = 3;
/// Calls shown for each cause.
const EVIDENCE: usize = 2;
/// Calls kept for each cause and cell, to choose the evidence from.
const KEPT: usize = 8;
/// Variants explained: those that differ most.
const EXPLAINED: usize = 8;
/// Shorter calls are not looked up in the other variant, nanoseconds.
const NOTED_NS: i64 = 1_000_000;

pub(crate) struct Why;

struct Shown {
    task: u32,
    line: u32,
    tid: i64,
    who: String,
    op: String,
    file: String,
    start_ns: i64,
    dur_ns: i64,
}

pub(crate) struct Facts {
    causes_ns: [i64; CAUSES.len()],
    /// For each cause the calls with most of it.
    shown: Vec<Vec<Shown>>,
    /// (task, line, duration) of the longest call of each line, of those worth noting; sorted.
    noted: Vec<(u32, u32, i64)>,
}

impl Facts {
    fn there(&self, task: u32, line: u32) -> Option<i64> {
        let at = self.noted.partition_point(|n| (n.0, n.1) < (task, line));
        self.noted.get(at).filter(|n| (n.0, n.1) == (task, line)).map(|n| n.2)
    }
}

impl Metric for Why {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let calls = cell.calls()?;
        let who = Who::of(cell);
        let mut foreground = vec![None; cell.tasks.iter().map(|t| t.task as usize + 1).max().unwrap_or(0)];
        for task in cell.foreground() {
            foreground[task.task as usize] = Some(task.tid);
        }
        let tid = |i: usize| foreground.get(calls.task[i] as usize).copied().flatten();
        let mut best: Vec<Vec<(i64, u32)>> = vec![Vec::new(); CAUSES.len()];
        for wait in &calls.waits {
            // Without a line nothing leads back to the recording.
            if calls.line[wait.call as usize] == 0 || tid(wait.call as usize).is_none() {
                continue;
            }
            let list = &mut best[usize::from(wait.cause)];
            list.push((wait.ns, wait.call));
            if list.len() > 16 * KEPT {
                keep(list);
            }
        }
        best.iter_mut().for_each(keep);
        let show = |(_, call): (i64, u32)| {
            let i = call as usize;
            Shown {
                task: calls.task[i],
                line: calls.line[i],
                tid: tid(i).unwrap_or(0),
                who: who.name_of(cell, i64::from(calls.task[i])),
                op: calls.op_of(i).to_string(),
                file: calls.file_of(i).to_string(),
                start_ns: calls.start_ns[i],
                dur_ns: calls.dur_ns[i],
            }
        };
        let mut noted: Vec<(u32, u32, i64)> = (0..calls.count())
            .filter(|i| calls.dur_ns[*i] >= NOTED_NS && calls.line[*i] > 0)
            .map(|i| (calls.task[i], calls.line[i], -calls.dur_ns[i]))
            .collect();
        noted.sort_unstable();
        noted.dedup_by_key(|n| (n.0, n.1));
        noted.iter_mut().for_each(|n| n.2 = -n.2);
        let sum = |c: usize| cell.foreground().map(|t| t.causes_ns[c]).fold(0i64, i64::saturating_add);
        Ok(Facts {
            causes_ns: std::array::from_fn(sum),
            shown: best.into_iter().map(|list| list.into_iter().map(show).collect()).collect(),
            noted,
        })
    }

    fn thin(&self, facts: &mut Facts) {
        facts.shown.iter_mut().for_each(Vec::clear);
        facts.noted = Vec::new();
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let (base, others) = compared(context)?;
        let mut table = Table::new(
            "why",
            &format!(
                "Against {}: the calls that show these causes best. The line is that of the recorded log.",
                context.cells[base].label
            ),
            vec![
                Column::text("variant", "variant"),
                Column::text("cause", "cause"),
                Column::text("call", "call that shows it"),
                Column::text("where", "line of the log"),
                Column::number("at_s", "at", Unit::Seconds, 2),
                Column::number("here_ms", "took here", Unit::Milliseconds, 1),
                Column::text("there", "took there"),
            ],
        );
        for other in others {
            explain(&mut table, context, facts, base, other);
        }
        if table.rows.is_empty() {
            return None;
        }
        Some(Section {
            id: "why".to_string(),
            title: "Why they differ".to_string(),
            lead: "For each difference that counts, where the time went that one variant spends and the other does not. Times are sums over tasks that run side by side, so they can exceed the difference in elapsed time; they show where time went, not by themselves the cause.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![
                Definition::new("share", "of all causes that changed in the same direction, by how much they changed; waits for another task are left out, since that task's own waits are counted. Causes below 2 % are not listed"),
                Definition::new("took there", "how long the call of the same line took under the variant compared with"),
            ],
        })
    }
}

fn keep(list: &mut Vec<(i64, u32)>) {
    list.sort_by_key(|(ns, call)| (std::cmp::Reverse(*ns), *call));
    list.truncate(KEPT);
}

/// The cell to compare with, and those that differ from it, the most different first.
pub(crate) fn compared(context: &Context<'_>) -> Option<(usize, Vec<usize>)> {
    let value = |variant: &str| {
        let row = context.matrix.rows.iter().find(|r| r.variant == variant)?;
        context.matrix.get(row, "elapsed_s")
    };
    // One cell a variant: the first seed stands for all.
    let mut cells: Vec<usize> = Vec::new();
    for (i, cell) in context.cells.iter().enumerate() {
        if cell.finished && cells.iter().all(|c| context.cells[*c].variant != cell.variant) {
            cells.push(i);
        }
    }
    let median = |i: usize| value(&context.cells[i].variant).map_or(f64::INFINITY, |v| v.median);
    let base = match context.reference {
        Some(name) => *cells.iter().find(|c| context.cells[**c].variant == name)?,
        None => cells.iter().copied().min_by(|a, b| median(*a).total_cmp(&median(*b)))?,
    };
    let of_base = value(&context.cells[base].variant)?;
    let mut others: Vec<usize> = cells
        .into_iter()
        .filter(|c| *c != base)
        .filter(|c| value(&context.cells[*c].variant).is_some_and(|v| context.rule.differ(v, of_base)))
        .collect();
    others.sort_by(|a, b| {
        let far = |i: usize| (median(i) - of_base.median).abs();
        far(*b).total_cmp(&far(*a)).then(a.cmp(b))
    });
    others.truncate(EXPLAINED);
    Some((base, others))
}

fn explain(table: &mut Table, context: &Context<'_>, facts: &[Facts], base: usize, other: usize) {
    let (here, there) = (&facts[other], &facts[base]);
    let gaps: Vec<(usize, i64)> = (0..CAUSES.len())
        .filter(|c| CAUSES[*c] != SECOND_HAND)
        .map(|c| (c, here.causes_ns[c].saturating_sub(there.causes_ns[c])))
        .collect();
    let whole: i64 = gaps.iter().map(|g| g.1).sum();
    let mut same: Vec<(usize, i64)> = gaps.into_iter().filter(|g| g.1 != 0 && (g.1 > 0) == (whole > 0)).collect();
    let moved: i64 = same.iter().map(|g| g.1).sum();
    same.retain(|g| (g.1 as f64 / moved as f64) >= LEAST);
    same.sort_by_key(|g| (std::cmp::Reverse(g.1.saturating_abs()), g.0));
    for (cause, gap) in same.into_iter().take(NAMED) {
        // The calls are those of whoever has more of the cause.
        let (more, less, of) = if gap > 0 { (here, there, other) } else { (there, here, base) };
        let head = |first: bool| {
            let text = |t: &str| if first { Cell::text(t) } else { Cell::text("") };
            vec![text(&context.cells[other].label), text(cause_words(cause))]
        };
        let evidence: Vec<&Shown> = more.shown[cause].iter().take(EVIDENCE).collect();
        if evidence.is_empty() {
            let mut cells = head(true);
            cells.extend([Cell::text("-"), Cell::text("")]);
            cells.extend((0..2).map(|_| Cell::number(None)));
            cells.push(Cell::text(""));
            table.push(cells);
        }
        for (i, call) in evidence.into_iter().enumerate() {
            let took = less
                .there(call.task, call.line)
                .map_or_else(|| "< 1 ms".to_string(), |ns| format!("{:.1} ms", millis(ns)));
            let swapped = if of == base { " (there)" } else { "" };
            let file = if call.file.is_empty() { String::new() } else { format!(" {}", call.file) };
            let mut cells = head(i == 0);
            cells.extend([
                Cell::text(format!("{}: {}{file}{swapped}", call.who, call.op)),
                Cell::text(context.recorded.place(call.tid, call.line)),
                Cell::number(seconds(call.start_ns)),
                Cell::number(millis(if of == other {
                    call.dur_ns
                } else {
                    less.there(call.task, call.line).unwrap_or(0)
                })),
                Cell::text(if of == other { took } else { format!("{:.1} ms", millis(call.dur_ns)) }),
            ]);
            table.push(cells);
        }
    }
}
