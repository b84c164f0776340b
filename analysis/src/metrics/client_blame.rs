//! Where the time of each client went (s): the causes of its tasks, and a tree of client, kind of call and cause.
//!
//! The table sums the `t_*_ns` columns of `clients` by client. The tree divides the same time by kind of operation from `calls`; what
//! `clients` has beyond the finished calls (an unfinished call, computing between calls) is the part "between calls".

use super::blame::{PARTS, cause_name, part_of};
use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, seconds};
use crate::error::Result;
use crate::model::{Block, Cell, Column, Flame, FlameNode, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::who::Who;

/// Clients listed: those with most waiting anywhere.
const LISTED: usize = 8;
/// Parts of a tree that are smaller than this share of it are summed up.
const SMALLEST: f64 = 0.002;

pub(crate) struct ClientBlame;

pub(crate) struct Facts {
    names: Vec<String>,
    /// For each client the seconds of each of [`PARTS`], and of thinking.
    parts_s: Vec<Vec<f64>>,
    tree: FlameNode,
}

impl Metric for ClientBlame {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let who = Who::of(cell);
        let mut causes = vec![[0i64; CAUSES.len()]; who.names.len()];
        let mut think = vec![0i64; who.names.len()];
        for task in cell.foreground() {
            let Some(client) = who.client(task.task) else { continue };
            for (sum, ns) in causes[client].iter_mut().zip(task.causes_ns) {
                *sum = sum.saturating_add(ns);
            }
            think[client] = think[client].saturating_add(task.think_ns);
        }
        let part = |c: usize, list: &[&str]| {
            CAUSES.iter().enumerate().filter(|(_, n)| list.contains(n)).map(|(i, _)| seconds(causes[c][i])).sum::<f64>()
        };
        let parts_s = (0..who.names.len())
            .map(|c| PARTS.iter().map(|(_, _, list)| part(c, list)).chain([seconds(think[c])]).collect())
            .collect();
        let tree = tree(cell, &who, &causes, &think)?;
        Ok(Facts { names: who.names, parts_s, tree })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.names.is_empty()) {
            return None;
        }
        let mut blocks = vec![Block::Table(table(context, facts))];
        let top = facts.iter().map(|f| f.tree.value).fold(0.0, f64::max);
        blocks.extend(context.labelled(facts).enumerate().map(|(i, (label, f))| {
            Block::Flame(Flame {
                id: format!("flame-{i}"),
                label: label.to_string(),
                caption: "The clients' time, divided from top to bottom by client, kind of call, and what was waited for. All variants have the same scale.".to_string(),
                unit: Unit::Seconds,
                top,
                root: f.tree.clone(),
            })
        }));
        Some(Section {
            id: "client-blame".to_string(),
            title: "Where each client's time went".to_string(),
            lead: "The same division for each client: clients with the same work should wait for the same things. A cause that one client has much more of than the others is what it was starved by.".to_string(),
            blocks,
            definitions: Vec::new(),
        })
    }
}

/// The largest first; small parts summed up.
fn tidy(mut parts: Vec<FlameNode>, least: f64) -> Vec<FlameNode> {
    parts.retain(|p| p.value > 0.0);
    let (mut kept, small): (Vec<FlameNode>, Vec<FlameNode>) = parts.into_iter().partition(|p| p.value >= least);
    kept.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.name.cmp(&b.name)));
    let rest: f64 = small.iter().map(|p| p.value).sum();
    if rest > 0.0 {
        kept.push(FlameNode {
            name: format!("{} more", small.len()),
            part: String::new(),
            value: rest,
            parts: Vec::new(),
        });
    }
    kept
}

fn leaf(name: &str, part: &str, ns: i64) -> FlameNode {
    FlameNode { name: name.to_string(), part: part.to_string(), value: seconds(ns), parts: Vec::new() }
}

fn tree(cell: &CellData, who: &Who, causes: &[[i64; CAUSES.len()]], think: &[i64]) -> Result<FlameNode> {
    let calls = cell.calls()?;
    let client_of = who.by_task(cell.tasks.iter().map(|t| t.task as usize + 1).max().unwrap_or(0));
    let kinds = calls.ops.len();
    let mut sums = vec![vec![[0i64; CAUSES.len()]; kinds]; who.names.len()];
    let client = |task: u32| client_of.get(task as usize).copied().flatten();
    for i in 0..calls.count() {
        if let Some(c) = client(calls.task[i]) {
            // The task's own work; the waits are taken off below.
            sums[c][usize::from(calls.op[i])][0] += calls.dur_ns[i];
        }
    }
    for wait in &calls.waits {
        let i = wait.call as usize;
        if let Some(c) = client(calls.task[i]) {
            let sum = &mut sums[c][usize::from(calls.op[i])];
            sum[usize::from(wait.cause)] += wait.ns;
            sum[0] -= wait.ns;
        }
    }
    let all: i64 = causes.iter().flatten().chain(think).fold(0, |a, b| a.saturating_add(*b));
    let least = seconds(all) * SMALLEST;
    let of_causes = |causes: &[i64; CAUSES.len()]| {
        let parts = causes.iter().enumerate().map(|(i, ns)| leaf(cause_name(i), part_of(i), *ns));
        tidy(parts.collect(), least)
    };
    let mut clients = Vec::new();
    for (c, name) in who.names.iter().enumerate() {
        let mut rest = causes[c];
        let mut parts = Vec::new();
        for (kind, sum) in sums[c].iter().enumerate() {
            for (left, ns) in rest.iter_mut().zip(sum) {
                *left -= ns;
            }
            let total: i64 = sum.iter().sum();
            parts.push(FlameNode { parts: of_causes(sum), ..leaf(&calls.ops[kind], "", total) });
        }
        let between = rest.map(|ns| ns.max(0));
        parts.push(FlameNode { parts: of_causes(&between), ..leaf("between calls", "", between.iter().sum()) });
        parts.push(leaf("think time", "think", think[c]));
        let parts = tidy(parts, least);
        let value = parts.iter().map(|p| p.value).sum();
        clients.push(FlameNode { name: name.clone(), part: String::new(), value, parts });
    }
    let clients = tidy(clients, least);
    let value = clients.iter().map(|p| p.value).sum();
    Ok(FlameNode { name: "all clients".to_string(), part: String::new(), value, parts: clients })
}

fn table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for name in facts.iter().flat_map(|f| &f.names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of = |f: &Facts, name: &str| f.names.iter().position(|n| n == name).map(|c| f.parts_s[c].clone());
    // What it waited for anything: all parts but the processor and thinking.
    let waited = |parts: &[f64]| parts.iter().skip(1).take(PARTS.len() - 1).sum::<f64>();
    let most = |name: &str| facts.iter().filter_map(|f| Some(waited(&of(f, name)?))).fold(0.0, f64::max);
    let all = names.len();
    names.sort_by(|a, b| most(b).total_cmp(&most(a)).then_with(|| a.cmp(b)));
    names.truncate(LISTED);
    let mut caption = "Seconds of each client by cause.".to_string();
    if all > LISTED {
        caption.push_str(&format!(" Of {all} clients the {LISTED} that waited longest under some variant."));
    }
    let used: Vec<usize> =
        (0..PARTS.len()).filter(|p| facts.iter().any(|f| f.parts_s.iter().any(|c| c[*p] > 0.0))).collect();
    let mut columns = vec![Column::text("client", "client"), Column::text("variant", "variant")];
    columns.extend(used.iter().map(|p| Column::number(&format!("{}_s", PARTS[*p].0), PARTS[*p].1, Unit::Seconds, 2)));
    columns.push(Column::number("think_s", "think", Unit::Seconds, 2));
    let mut table = Table::new("client-blame", &caption, columns);
    table.sparse = true;
    for name in names {
        for (label, f) in context.labelled(facts) {
            let Some(parts) = of(f, name) else { continue };
            let mut cells = vec![Cell::text(name), Cell::text(label)];
            cells.extend(used.iter().map(|p| Cell::number(parts[*p])));
            cells.push(Cell::number(parts[PARTS.len()]));
            table.push(cells);
        }
    }
    table
}
