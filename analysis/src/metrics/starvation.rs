//! Starvation: the longest waits with work pending (ms), requests overtaken (count), and who waited for whom.
//!
//! A wait: the duration of a call less the task's own work in it (`t_cpu_ns`); while it lasts the task has work that does not
//! get on. Sleeps and waits outside the machine are none (`t_sleep_ns`, `t_net_ns` and `t_dep_ns` are taken off). Overtaken: `passed` of
//! `io`, requests given to the device while one waited in the queue. Who waited for whom: for the [`VICTIMS`] requests that
//! waited longest in the queue (I2D), those of other clients dispatched in that time although they were queued later; in requests and in the device's time for them (D2C; with one request in service at a time their sum).

use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, millis, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::quantile;
use crate::who::Who;
use indexmap::IndexMap;

/// Waits listed for each variant, and at most in all.
const WAITS: usize = 5;
const WAITS_IN_ALL: usize = 20;
/// Requests whose overtakers are looked for.
const VICTIMS: usize = 200;
/// Pairs listed for each variant.
const PAIRS: usize = 3;
/// Causes that are no starvation: the task or the world outside asked for the wait.
const ASKED_FOR: [&str; 3] = ["t_net_ns", "t_sleep_ns", "t_dep_ns"];

pub(crate) struct Starvation;

/// One of the longest waits.
struct Waited {
    ns: i64,
    start_ns: i64,
    who: String,
    op: String,
    file: String,
    line: u32,
    tid: i64,
    /// Chief cause and its time.
    chief: (usize, i64),
}

struct Pair {
    victim: String,
    other: String,
    requests: i64,
    ns: i64,
}

pub(crate) struct Facts {
    waits: Vec<Waited>,
    passed: Vec<i64>,
    pairs: Vec<Pair>,
}

impl Facts {
    fn longest_s(&self) -> Option<f64> {
        self.waits.first().map(|w| seconds(w.ns))
    }
}

impl Metric for Starvation {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let who = Who::of(cell);
        let mut passed = cell.requests()?.passed.clone();
        passed.sort_unstable();
        Ok(Facts { waits: longest(cell, &who)?, passed, pairs: pairs(cell, &who)? })
    }

    fn columns(&self) -> Vec<Column> {
        vec![Column::number("longest_wait_s", "longest wait", Unit::Seconds, 2).better(Better::Lower)]
    }

    fn values(&self, facts: &Facts) -> Vec<Option<f64>> {
        vec![facts.longest_s()]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.waits.is_empty()) {
            return None;
        }
        let mut blocks = vec![Block::Table(overview(context, facts)), Block::Table(waits(context, facts))];
        if facts.iter().any(|f| !f.pairs.is_empty()) {
            blocks.push(Block::Table(who_for_whom(context, facts)));
        }
        Some(Section {
            id: "starvation".to_string(),
            title: "Starvation: who waited, how long, for whom".to_string(),
            lead: "The longest single waits, which averages hide. The line is that of the recorded log: look there for what the program was doing.".to_string(),
            blocks,
            definitions: vec![
                Definition::new("wait", "duration of a call less the task's own work in it and less what it asked for (sleeps) or what happened outside (network, other tasks)"),
                Definition::new("overtaken", "requests that were given to the disk while one waited in the queue"),
                Definition::new("who waited for whom", "of the 200 requests that waited longest in the queue: requests of other clients queued later but served earlier"),
            ],
        })
    }
}

fn longest(cell: &CellData, who: &Who) -> Result<Vec<Waited>> {
    let calls = cell.calls()?;
    let is_call = calls.is_call();
    let counts: Vec<bool> = CAUSES.iter().map(|c| !ASKED_FOR.contains(c)).collect();
    // The waits lie in the order of the calls: one pass sums them up.
    let mut best: Vec<(i64, usize, (usize, i64))> = Vec::new();
    let mut at = 0;
    while at < calls.waits.len() {
        let call = calls.waits[at].call as usize;
        let (mut sum, mut chief) = (0i64, (0, 0));
        while at < calls.waits.len() && calls.waits[at].call as usize == call {
            let wait = calls.waits[at];
            if counts[usize::from(wait.cause)] {
                sum = sum.saturating_add(wait.ns);
                if wait.ns > chief.1 {
                    chief = (usize::from(wait.cause), wait.ns);
                }
            }
            at += 1;
        }
        if sum > 0 && is_call[usize::from(calls.op[call])] {
            best.push((sum, call, chief));
            if best.len() > 64 * WAITS {
                keep_longest(&mut best);
            }
        }
    }
    keep_longest(&mut best);
    Ok(best
        .into_iter()
        .map(|(ns, call, chief)| Waited {
            ns,
            start_ns: calls.start_ns[call],
            who: who.name_of(cell, i64::from(calls.task[call])),
            op: calls.op_of(call).to_string(),
            file: calls.file_of(call).to_string(),
            line: calls.line[call],
            tid: cell.tasks.iter().find(|t| t.task == i64::from(calls.task[call])).map_or(0, |t| t.tid),
            chief,
        })
        .collect())
}

fn keep_longest(best: &mut Vec<(i64, usize, (usize, i64))>) {
    best.sort_by_key(|(ns, call, _)| (std::cmp::Reverse(*ns), *call));
    best.truncate(WAITS);
}

fn pairs(cell: &CellData, who: &Who) -> Result<Vec<Pair>> {
    let r = cell.requests()?;
    let mut dispatched: Vec<usize> = (0..r.count()).collect();
    dispatched.sort_by_key(|i| (r.dev[*i], r.d_ns[*i], r.q_ns[*i]));
    let mut victims: Vec<usize> = (0..r.count()).filter(|i| r.d_ns[*i] > r.i_ns[*i]).collect();
    victims.sort_by_key(|i| (std::cmp::Reverse(r.d_ns[*i] - r.i_ns[*i]), *i));
    victims.truncate(VICTIMS);
    let mut names: IndexMap<i64, String> = IndexMap::new();
    let mut name = |task: i64| names.entry(task).or_insert_with(|| who.name_of(cell, task)).clone();
    let mut sums: IndexMap<(String, String), (i64, i64)> = IndexMap::new();
    for v in victims {
        let from = dispatched.partition_point(|i| (r.dev[*i], r.d_ns[*i]) <= (r.dev[v], r.i_ns[v]));
        for &other in dispatched[from..].iter().take_while(|i| (r.dev[**i], r.d_ns[**i]) < (r.dev[v], r.d_ns[v])) {
            // Waiting for one's own requests is no unfairness.
            let (whose, others) = (name(r.task[v]), name(r.task[other]));
            if r.q_ns[other] > r.q_ns[v] && whose != others {
                let sum = sums.entry((whose, others)).or_default();
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(r.c_ns[other].saturating_sub(r.d_ns[other]));
            }
        }
    }
    let mut pairs: Vec<Pair> =
        sums.into_iter().map(|((victim, other), (requests, ns))| Pair { victim, other, requests, ns }).collect();
    pairs.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (&a.victim, &a.other).cmp(&(&b.victim, &b.other))));
    pairs.truncate(PAIRS);
    Ok(pairs)
}

fn overview(context: &Context<'_>, facts: &[Facts]) -> Table {
    let count = |id: &str, title: &str| Column::number(id, title, Unit::Count, 0);
    let mut table = Table::new(
        "starvation",
        "The longest wait, and how many requests overtook one.",
        vec![
            Column::text("variant", "variant"),
            Column::number("longest_wait_s", "longest wait", Unit::Seconds, 2).better(Better::Lower),
            Column::text("who", "who"),
            Column::number("overtaken_pct", "requests overtaken", Unit::Percent, 1),
            count("overtaken_p99", "overtaken by, p99"),
            count("overtaken_max", "at most").better(Better::Lower),
        ],
    );
    for (label, f) in context.labelled(facts) {
        let overtaken = f.passed.iter().filter(|p| **p > 0).count();
        table.push(vec![
            Cell::text(label),
            Cell::number(f.longest_s()),
            f.waits.first().map_or_else(|| Cell::number(None), |w| Cell::text(w.who.clone())),
            Cell::number((!f.passed.is_empty()).then(|| overtaken as f64 / f.passed.len() as f64 * 100.0)),
            Cell::count(quantile(&f.passed, 0.99)),
            Cell::count(f.passed.last().copied()),
        ]);
    }
    table.mark_best(|i| context.finished(i));
    table
}

fn waits(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "longest-waits",
        &format!("The {WAITS} longest waits of each variant, at most {WAITS_IN_ALL} in all."),
        vec![
            Column::text("variant", "variant"),
            Column::text("who", "who"),
            Column::text("call", "call"),
            Column::text("file", "file"),
            Column::text("where", "line of the log"),
            Column::number("at_s", "at", Unit::Seconds, 2),
            Column::number("waited_ms", "waited", Unit::Milliseconds, 1),
            Column::text("cause", "mostly for"),
            Column::number("cause_ms", "of it", Unit::Milliseconds, 1),
        ],
    );
    let each = (WAITS_IN_ALL / facts.len().max(1)).clamp(1, WAITS);
    for (label, f) in context.labelled(facts) {
        for w in f.waits.iter().take(each).take(WAITS_IN_ALL.saturating_sub(table.rows.len())) {
            table.push(vec![
                Cell::text(label),
                Cell::text(w.who.clone()),
                Cell::text(w.op.clone()),
                Cell::text(w.file.clone()),
                Cell::text(context.recorded.place(w.tid, w.line)),
                Cell::number(seconds(w.start_ns)),
                Cell::number(millis(w.ns)),
                Cell::text(super::blame::cause_words(w.chief.0)),
                Cell::number(millis(w.chief.1)),
            ]);
        }
    }
    table
}

fn who_for_whom(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "who-waited-for-whom",
        &format!(
            "Of the {VICTIMS} requests that waited longest in the queue of each variant: whose they were, and which other clients' requests came later but were served before them. The {PAIRS} pairs that cost most; a request that overtook several counts for each."
        ),
        vec![
            Column::text("variant", "variant"),
            Column::text("victim", "waited"),
            Column::text("other", "for"),
            Column::number("requests", "requests", Unit::Count, 0),
            Column::number("device_s", "disk time", Unit::Seconds, 2),
        ],
    );
    for (label, f) in context.labelled(facts) {
        for p in &f.pairs {
            table.push(vec![
                Cell::text(label),
                Cell::text(p.victim.clone()),
                Cell::text(p.other.clone()),
                Cell::count(p.requests),
                Cell::number(seconds(p.ns)),
            ]);
        }
    }
    table
}
