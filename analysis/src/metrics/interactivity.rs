//! Interactivity: calls that took longer than a person waits without noticing (count, %).
//!
//! Deadlines are J. Nielsen's limits (Usability Engineering, 1993, after R. B. Miller, 1968): [`DEADLINES_MS`], 0.1 s feels
//! immediate, 1 s keeps the flow of thought, 10 s the attention. Counted are calls of foreground tasks that a person may be
//! waiting for (everything but `fsync`, `sync` and what is no call to the kernel), by their duration `dur_ns`.

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;

/// Deadlines, milliseconds.
const DEADLINES_MS: [i64; 3] = [100, 1000, 10_000];
/// Calls that ask for the disk: nobody expects them to be immediate.
const PATIENT: [&str; 2] = ["fsync", "sync"];

pub(crate) struct Interactivity;

pub(crate) struct Facts {
    calls: u64,
    missed: [u64; DEADLINES_MS.len()],
    /// Sum of what went beyond the first deadline, nanoseconds.
    beyond_ns: i64,
}

impl Metric for Interactivity {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let calls = cell.calls()?;
        let counts: Vec<bool> =
            calls.is_call().iter().zip(&calls.ops).map(|(call, op)| *call && !PATIENT.contains(&op.as_str())).collect();
        let tasks = cell.tasks.iter().map(|t| t.task as usize + 1).max().unwrap_or(0);
        let mut foreground = vec![false; tasks];
        for task in cell.foreground() {
            foreground[task.task as usize] = true;
        }
        let mut facts = Facts { calls: 0, missed: [0; DEADLINES_MS.len()], beyond_ns: 0 };
        for i in 0..calls.count() {
            let ours = foreground.get(calls.task[i] as usize).copied().unwrap_or(false);
            if !ours || !counts[usize::from(calls.op[i])] {
                continue;
            }
            facts.calls += 1;
            for (missed, deadline) in facts.missed.iter_mut().zip(DEADLINES_MS) {
                *missed += u64::from(calls.dur_ns[i] > deadline * 1_000_000);
            }
            facts.beyond_ns = facts.beyond_ns.saturating_add((calls.dur_ns[i] - DEADLINES_MS[0] * 1_000_000).max(0));
        }
        Ok(facts)
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.missed[0] == 0) {
            return None;
        }
        let count = |id: &str, title: &str| Column::number(id, title, Unit::Count, 0).better(Better::Lower);
        let mut table = Table::new(
            "interactivity",
            "Calls that took longer than a person's patience.",
            vec![
                Column::text("variant", "variant"),
                Column::number("calls", "calls", Unit::Count, 0),
                count("over_100ms", "over 0.1 s"),
                count("over_1s", "over 1 s"),
                count("over_10s", "over 10 s"),
                Column::number("over_100ms_pct", "over 0.1 s", Unit::Percent, 3).better(Better::Lower),
                Column::number("beyond_s", "beyond 0.1 s", Unit::Seconds, 2).better(Better::Lower),
            ],
        );
        for (label, f) in context.labelled(facts) {
            let mut cells = vec![Cell::text(label), Cell::count(f.calls as i64)];
            cells.extend(f.missed.iter().map(|m| Cell::count(*m as i64)));
            cells.push(Cell::number((f.calls > 0).then(|| f.missed[0] as f64 / f.calls as f64 * 100.0)));
            cells.push(Cell::number(seconds(f.beyond_ns)));
            table.push(cells);
        }
        table.mark_best(|i| context.finished(i));
        Some(Section {
            id: "interactivity".to_string(),
            title: "Interactivity: deadlines missed".to_string(),
            lead: "What a person in front of the machine would have noticed.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![
                Definition::new(
                    "over 0.1 s, 1 s, 10 s",
                    "calls longer than the limits below which an answer feels immediate, keeps the flow of thought, and keeps the attention (Nielsen, 1993); fsync and sync are left out",
                ),
                Definition::new("beyond 0.1 s", "sum of what such calls took beyond 0.1 s each"),
            ],
        })
    }
}
