//! Write-back: how much was dirty (MiB), and who was throttled, how often (calls) and how long (s).
//!
//! Levels are `dirty_kib` and `writeback_kib` of the samples and `dirty_max_kib` of the counters. Throttled: `t_throttle_ns` of `calls`, by client; a
//! throttled call is one with any.

use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, millis, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::mean;
use crate::who::Who;
use indexmap::IndexMap;

/// Clients listed for each variant: those throttled longest.
const LISTED: usize = 4;

pub(crate) struct Writeback;

struct Throttled {
    who: String,
    calls: i64,
    ns: i64,
    longest_ns: i64,
}

pub(crate) struct Facts {
    dirty: Vec<(f64, f64)>,
    mean_writeback_mib: Option<f64>,
    max_dirty_mib: Option<f64>,
    throttled: Vec<Throttled>,
}

impl Metric for Writeback {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let frame = cell.table("samples", &["time_ns", "dirty_kib", "writeback_kib"])?;
        let level = |name: &str| -> Result<Vec<f64>> {
            Ok(frame.ints(name)?.into_iter().map(|v| v.unwrap_or(0) as f64 / 1024.0).collect())
        };
        let calls = cell.calls()?;
        let who = Who::of(cell);
        let cause = CAUSES.iter().position(|c| *c == "t_throttle_ns").unwrap_or(0);
        let mut by_task: IndexMap<u32, (i64, i64, i64)> = IndexMap::new();
        for wait in calls.waits.iter().filter(|w| usize::from(w.cause) == cause) {
            let sum = by_task.entry(calls.task[wait.call as usize]).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(wait.ns), sum.2.max(wait.ns));
        }
        let mut by_name: IndexMap<String, Throttled> = IndexMap::new();
        for (task, (calls, ns, longest_ns)) in by_task {
            let name = who.name_of(cell, i64::from(task));
            let t = by_name.entry(name.clone()).or_insert(Throttled { who: name, calls: 0, ns: 0, longest_ns: 0 });
            t.calls += calls;
            t.ns = t.ns.saturating_add(ns);
            t.longest_ns = t.longest_ns.max(longest_ns);
        }
        let mut throttled: Vec<Throttled> = by_name.into_values().collect();
        throttled.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.who.cmp(&b.who)));
        Ok(Facts {
            dirty: frame.whole("time_ns")?.into_iter().map(seconds).zip(level("dirty_kib")?).collect(),
            mean_writeback_mib: mean(&level("writeback_kib")?),
            max_dirty_mib: cell.counter("dirty_max_kib").map(|k| k as f64 / 1024.0),
            throttled,
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let dirty = facts.iter().any(|f| f.dirty.iter().any(|(_, v)| *v > 0.0));
        if !dirty && facts.iter().all(|f| f.throttled.is_empty()) {
            return None;
        }
        let mut table = Table::new(
            "writeback",
            "Dirty pages, and what tasks had to wait for them.",
            vec![
                Column::text("variant", "variant"),
                Column::number("mean_dirty_mib", "mean dirty", Unit::Mib, 1),
                Column::number("max_dirty_mib", "most dirty", Unit::Mib, 1),
                Column::number("last_dirty_mib", "dirty at end", Unit::Mib, 1),
                Column::number("mean_writeback_mib", "mean in flight", Unit::Mib, 2),
                Column::number("throttled_calls", "throttled calls", Unit::Count, 0),
                Column::number("throttled_s", "throttled", Unit::Seconds, 2).better(Better::Lower),
                Column::number("longest_ms", "longest", Unit::Milliseconds, 1),
            ],
        );
        for (label, f) in context.labelled(facts) {
            let values: Vec<f64> = f.dirty.iter().map(|(_, v)| *v).collect();
            table.push(vec![
                Cell::text(label),
                Cell::number(mean(&values)),
                Cell::number(f.max_dirty_mib),
                Cell::number(values.last().copied()),
                Cell::number(f.mean_writeback_mib),
                Cell::count(f.throttled.iter().map(|t| t.calls).sum::<i64>()),
                Cell::number(seconds(f.throttled.iter().map(|t| t.ns).fold(0, i64::saturating_add))),
                Cell::number(f.throttled.iter().map(|t| t.longest_ns).max().map(millis)),
            ]);
        }
        table.mark_best(|i| context.finished(i));
        let mut blocks = vec![Block::Table(table)];
        if facts.iter().any(|f| !f.throttled.is_empty()) {
            blocks.push(Block::Table(who_was_throttled(context, facts)));
        }
        if dirty {
            blocks.push(Block::Plane(context.over_time(
                facts,
                "dirty-level",
                "Dirty pages over time.",
                "dirty",
                |f| &f.dirty,
            )));
        }
        Some(Section {
            id: "writeback".to_string(),
            title: "Write-back".to_string(),
            lead: "How far the disk was behind the writers, and who had to wait because of it.".to_string(),
            blocks,
            definitions: vec![Definition::new(
                "throttled",
                "time in which a writer had to write out, or wait for, dirty pages before it could go on",
            )],
        })
    }
}

fn who_was_throttled(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "throttled",
        &format!("Who was throttled, the {LISTED} of each variant that lost most time."),
        vec![
            Column::text("variant", "variant"),
            Column::text("who", "who"),
            Column::number("calls", "calls", Unit::Count, 0),
            Column::number("throttled_s", "throttled", Unit::Seconds, 2),
            Column::number("longest_ms", "longest", Unit::Milliseconds, 1),
        ],
    );
    for (label, f) in context.labelled(facts) {
        for t in f.throttled.iter().take(LISTED) {
            table.push(vec![
                Cell::text(label),
                Cell::text(t.who.clone()),
                Cell::count(t.calls),
                Cell::number(seconds(t.ns)),
                Cell::number(millis(t.longest_ns)),
            ]);
        }
    }
    table
}
