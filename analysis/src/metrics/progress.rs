//! Progress of clients over time: bytes moved (MiB), each client's share of what was moved in a window (%), and Jain's index
//! per window.
//!
//! A call's bytes count at its end. Windows: [`WINDOWS`] equal stretches from the start of the first client to the earliest
//! finish of any client, since afterwards shares are uneven by necessity. `jain_window`: Jain's index ([`crate::stats::jain`])
//! over the bytes that each client moved in a window; windows in which nobody moved anything are left out. `idle windows`:
//! share of (client, window) pairs in which the client moved nothing although the window was one in which others did (%).

use super::{Context, Metric};
use crate::cell::{CellData, mib, seconds};
use crate::error::Result;
use crate::model::{Axis, Better, Block, Cell, Column, Definition, Join, Line, Plane, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::{jain, mean};
use crate::who::Who;

/// Stretches that are compared.
const WINDOWS: usize = 20;
/// Clients drawn: those that moved most.
const DRAWN: usize = 12;
/// Points of a client's line.
const POINTS: usize = 80;

pub(crate) struct Progress;

pub(crate) struct Facts {
    names: Vec<String>,
    /// Cumulative MiB over seconds.
    lines: Vec<Vec<(f64, f64)>>,
    /// (middle of the window in seconds, share in % of each client).
    windows: Vec<(f64, Vec<f64>)>,
    jain: Vec<(f64, f64)>,
    idle_pct: Option<f64>,
}

impl Metric for Progress {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let calls = cell.calls()?;
        let who = Who::of(cell);
        let client_of = who.by_task(cell.tasks.iter().map(|t| t.task as usize + 1).max().unwrap_or(0));
        let moves = calls.moves_bytes();
        let mut moved: Vec<Vec<(i64, i64)>> = vec![Vec::new(); who.names.len()];
        for i in 0..calls.count() {
            let client = client_of.get(calls.task[i] as usize).copied().flatten();
            if let Some(client) = client.filter(|_| moves[usize::from(calls.op[i])] && calls.len[i] > 0) {
                moved[client].push((calls.start_ns[i].saturating_add(calls.dur_ns[i]), calls.len[i]));
            }
        }
        for client in &mut moved {
            client.sort_unstable();
        }
        let from = who.spans.iter().map(|s| s.0).min().unwrap_or(0);
        let ends: Option<Vec<i64>> = who.spans.iter().map(|s| s.1).collect();
        let to = match ends {
            Some(ends) => ends.into_iter().min().unwrap_or(from),
            None => moved.iter().filter_map(|m| Some(m.last()?.0)).min().unwrap_or(from),
        };
        let windows = if who.names.len() > 1 { shares(&moved, from, to) } else { Vec::new() };
        let mut facts = Facts {
            lines: moved.iter().map(|m| line(m, from)).collect(),
            jain: windows.iter().filter_map(|(t, s)| Some((*t, jain(s)?))).collect(),
            idle_pct: None,
            names: who.names,
            windows: Vec::new(),
        };
        let pairs = windows.iter().flat_map(|(_, s)| s).count();
        let idle = windows.iter().flat_map(|(_, s)| s).filter(|s| **s <= 0.0).count();
        facts.idle_pct = (pairs > 0).then(|| idle as f64 / pairs as f64 * 100.0);
        facts.windows = windows
            .into_iter()
            .map(|(t, s)| {
                let sum: f64 = s.iter().sum();
                (t, s.into_iter().map(|v| v / sum * 100.0).collect())
            })
            .collect();
        Ok(facts)
    }

    fn columns(&self) -> Vec<Column> {
        vec![Column::number("jain_window", "Jain per window", Unit::Count, 3).better(Better::Higher)]
    }

    fn values(&self, facts: &Facts) -> Vec<Option<f64>> {
        vec![mean_jain(facts)]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if !facts.iter().any(|f| f.lines.iter().any(|l| l.len() > 1)) {
            return None;
        }
        let mut blocks = Vec::new();
        if facts.iter().any(|f| !f.jain.is_empty()) {
            blocks.push(Block::Table(table(context, facts)));
            blocks.push(Block::Plane(Plane {
                id: "jain-over-time".to_string(),
                label: String::new(),
                caption: format!("Jain's index of the bytes moved in each of {WINDOWS} windows up to the first finish: 1 is even, a dip is a time in which some clients were served at the expense of others."),
                x: Axis::linear("time", Unit::Seconds),
                y: Axis::linear("Jain index", Unit::Count),
                lines: context
                    .labelled(facts)
                    .map(|(label, f)| Line { label: label.to_string(), group: label.to_string(), join: Join::Straight, points: f.jain.clone() })
                    .collect(),
                thinned_from: None,
            }));
        }
        blocks.extend(context.labelled(facts).enumerate().map(|(i, (label, f))| Block::Plane(progress(i, label, f))));
        if facts.iter().any(|f| f.names.len() > 1 && !f.windows.is_empty()) {
            blocks.extend(context.labelled(facts).enumerate().map(|(i, (label, f))| Block::Plane(share(i, label, f))));
        }
        Some(Section {
            id: "progress".to_string(),
            title: "Clients over time".to_string(),
            lead: "How far each client was at each moment. Lines that run together mean equal service; a flat stretch is a client that got nothing for that time.".to_string(),
            blocks,
            definitions: vec![
                Definition::new("Jain per window", "Jain's index over the bytes each client moved in a window, mean over the windows; a client that is starved for a while lowers it even if all finish together"),
                Definition::new("idle", "of all pairs of a client and a window, those in which the client moved nothing while others did"),
            ],
        })
    }
}

fn mean_jain(facts: &Facts) -> Option<f64> {
    mean(&facts.jain.iter().map(|(_, j)| *j).collect::<Vec<_>>())
}

/// Bytes of each client in each window; windows without any are left out.
fn shares(moved: &[Vec<(i64, i64)>], from: i64, to: i64) -> Vec<(f64, Vec<f64>)> {
    let span = to.saturating_sub(from);
    if span <= 0 {
        return Vec::new();
    }
    let mut sums = vec![vec![0.0; moved.len()]; WINDOWS];
    for (client, calls) in moved.iter().enumerate() {
        for (end, bytes) in calls.iter().filter(|(end, _)| *end >= from && *end <= to) {
            let window = ((end - from) as f64 / span as f64 * WINDOWS as f64) as usize;
            sums[window.min(WINDOWS - 1)][client] += *bytes as f64;
        }
    }
    let middle = |w: usize| seconds(from) + seconds(span) * (w as f64 + 0.5) / WINDOWS as f64;
    sums.into_iter().enumerate().filter(|(_, s)| s.iter().any(|v| *v > 0.0)).map(|(w, s)| (middle(w), s)).collect()
}

/// Cumulative MiB at [`POINTS`] places of the client's time; a sum never falls, so its values at equal distances show all.
fn line(moved: &[(i64, i64)], from: i64) -> Vec<(f64, f64)> {
    let Some(last) = moved.last().map(|m| m.0) else { return Vec::new() };
    let mut points = vec![(seconds(from), 0.0)];
    let (mut sum, mut next) = (0i64, 0);
    for step in 1..=POINTS {
        let until =
            if step == POINTS { last } else { from + ((last - from) as f64 * step as f64 / POINTS as f64) as i64 };
        while next < moved.len() && moved[next].0 <= until {
            sum = sum.saturating_add(moved[next].1);
            next += 1;
        }
        points.push((seconds(until), mib(sum)));
    }
    points
}

/// The clients that are drawn: those that moved most, in their own order.
fn drawn(facts: &Facts) -> Vec<usize> {
    let total = |c: usize| facts.lines[c].last().map_or(0.0, |p| p.1);
    let mut order: Vec<usize> = (0..facts.names.len()).filter(|c| !facts.lines[*c].is_empty()).collect();
    order.sort_by(|a, b| total(*b).total_cmp(&total(*a)));
    order.truncate(DRAWN);
    order.sort_unstable();
    order
}

fn left_out(facts: &Facts) -> String {
    let all = facts.names.len();
    if all > DRAWN { format!(" Of {all} clients the {DRAWN} that moved most are drawn.") } else { String::new() }
}

fn progress(index: usize, label: &str, facts: &Facts) -> Plane {
    Plane {
        id: format!("progress-{index}"),
        label: label.to_string(),
        caption: format!("What each client had moved by then.{}", left_out(facts)),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::linear("moved", Unit::Mib),
        lines: drawn(facts)
            .into_iter()
            .map(|c| Line {
                label: facts.names[c].clone(),
                group: facts.names[c].clone(),
                join: Join::Straight,
                points: facts.lines[c].clone(),
            })
            .collect(),
        thinned_from: None,
    }
}

fn share(index: usize, label: &str, facts: &Facts) -> Plane {
    Plane {
        id: format!("share-{index}"),
        label: label.to_string(),
        caption: format!(
            "Each client's share of what all clients moved in each of {WINDOWS} windows up to the first finish.{}",
            left_out(facts)
        ),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::linear("share", Unit::Percent),
        lines: drawn(facts)
            .into_iter()
            .map(|c| Line {
                label: facts.names[c].clone(),
                group: facts.names[c].clone(),
                join: Join::Straight,
                points: facts.windows.iter().map(|(t, s)| (*t, s[c])).collect(),
            })
            .collect(),
        thinned_from: None,
    }
}

fn table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "progress",
        "Evenness while all clients were running.",
        vec![
            Column::text("variant", "variant"),
            Column::number("jain_window", "Jain per window", Unit::Count, 3).better(Better::Higher),
            Column::number("jain_lowest", "lowest", Unit::Count, 3).better(Better::Higher),
            Column::number("lowest_at_s", "lowest at", Unit::Seconds, 2),
            Column::number("idle_pct", "idle", Unit::Percent, 1).better(Better::Lower),
            Column::number("smallest_share_pct", "smallest share", Unit::Percent, 1).better(Better::Higher),
            Column::number("largest_share_pct", "largest share", Unit::Percent, 1).better(Better::Lower),
        ],
    );
    for (label, f) in context.labelled(facts) {
        let lowest = f.jain.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let all = || f.windows.iter().flat_map(|(_, s)| s.iter().copied());
        table.push(vec![
            Cell::text(label),
            Cell::number(mean_jain(f)),
            Cell::number(lowest.map(|l| l.1)),
            Cell::number(lowest.map(|l| l.0)),
            Cell::number(f.idle_pct),
            Cell::number(all().min_by(f64::total_cmp)),
            Cell::number(all().max_by(f64::total_cmp)),
        ]);
    }
    table.mark_best(|i| context.finished(i));
    table
}
