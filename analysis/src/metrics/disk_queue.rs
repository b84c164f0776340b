//! The disk's queue: depth (requests), utilisation (%), and sizes of requests (KiB).
//!
//! Depth: requests between `q_ns` and `c_ns`, and between `d_ns` and `c_ns` for those at the device; means are over the time from the first
//! queueing to the last completion. Utilisation: share of that time in which a device had at least one request.

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Axis, Block, Cell, Column, Definition, Join, Line, Plane, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::{envelope, quantile};

/// Upper ends of the classes of depth; the last class is open.
const CLASSES: [usize; 5] = [0, 1, 4, 16, 64];
/// Most points of a line.
const POINTS: usize = 400;

pub(crate) struct DiskQueue;

#[derive(Default)]
pub(crate) struct Facts {
    requests: usize,
    mean_depth: Option<f64>,
    max_depth: usize,
    mean_at_device: Option<f64>,
    busy_pct: Option<f64>,
    /// Share of the time with a depth in each of [`CLASSES`], and above.
    classes_pct: Vec<f64>,
    size_p50_kib: Option<f64>,
    size_p99_kib: Option<f64>,
    line: Vec<(f64, f64)>,
    points: usize,
}

/// What a level did over time: rises at `from`, falls at `to`.
struct Level {
    /// Time at each level, nanoseconds.
    at: Vec<i64>,
    steps: Vec<(i64, usize)>,
}

fn level(from: &[i64], to: &[i64]) -> Level {
    let mut changes: Vec<(i64, i32)> = from.iter().map(|t| (*t, 1)).chain(to.iter().map(|t| (*t, -1))).collect();
    // Falls first: a request that ends when another begins was never beside it.
    changes.sort_unstable();
    let (mut depth, mut before) = (0i64, changes.first().map_or(0, |c| c.0));
    let mut level = Level { at: Vec::new(), steps: Vec::new() };
    for (time, change) in changes {
        let now = depth.max(0) as usize;
        if level.at.len() <= now {
            level.at.resize(now + 1, 0);
        }
        level.at[now] += time - before;
        before = time;
        depth += i64::from(change);
        level.steps.push((time, depth.max(0) as usize));
    }
    level
}

impl Metric for DiskQueue {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let r = cell.requests()?;
        let (queue, device) = (level(&r.q_ns, &r.c_ns), level(&r.d_ns, &r.c_ns));
        let span: i64 = queue.at.iter().sum();
        let mean = |l: &Level| {
            let sum: f64 = l.at.iter().enumerate().map(|(depth, ns)| depth as f64 * *ns as f64).sum();
            (span > 0).then(|| sum / span as f64)
        };
        let mut classes = vec![0i64; CLASSES.len() + 1];
        for (depth, ns) in queue.at.iter().enumerate() {
            classes[CLASSES.iter().position(|top| depth <= *top).unwrap_or(CLASSES.len())] += ns;
        }
        let mut sizes = r.len_bytes.clone();
        sizes.sort_unstable();
        let kib = |q: f64| quantile(&sizes, q).map(|b| b as f64 / 1024.0);
        let busy = device.at.iter().skip(1).sum::<i64>();
        let line: Vec<(f64, f64)> = queue.steps.iter().map(|(t, d)| (seconds(*t), *d as f64)).collect();
        Ok(Facts {
            requests: r.count(),
            mean_depth: mean(&queue),
            max_depth: queue.steps.iter().map(|s| s.1).max().unwrap_or(0),
            mean_at_device: mean(&device),
            busy_pct: (span > 0).then(|| busy as f64 / span as f64 * 100.0),
            classes_pct: classes
                .iter()
                .map(|ns| if span > 0 { *ns as f64 / span as f64 * 100.0 } else { 0.0 })
                .collect(),
            size_p50_kib: kib(0.5),
            size_p99_kib: kib(0.99),
            points: line.len(),
            line: envelope(&line, POINTS / 2),
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.requests == 0) {
            return None;
        }
        let mut columns = vec![
            Column::text("variant", "variant"),
            Column::number("requests", "requests", Unit::Count, 0),
            Column::number("mean_depth", "mean depth", Unit::Count, 2),
            Column::number("max_depth", "deepest", Unit::Count, 0),
            Column::number("mean_at_device", "at the disk", Unit::Count, 2),
            Column::number("busy_pct", "busy", Unit::Percent, 1),
            Column::number("size_p50_kib", "size p50", Unit::Kib, 1),
            Column::number("size_p99_kib", "size p99", Unit::Kib, 1),
        ];
        let mut from = 0;
        for top in CLASSES {
            let name = if from == top { format!("depth {top}") } else { format!("depth {from}-{top}") };
            columns.push(Column::number(&format!("depth_to_{top}_pct"), &name, Unit::Percent, 1));
            from = top + 1;
        }
        columns.push(Column::number("depth_more_pct", &format!("depth {from}+"), Unit::Percent, 1));
        let mut table =
            Table::new("disk-queue", "Depth of the queue, as share of the time, and sizes of requests.", columns);
        for (label, f) in context.labelled(facts) {
            let mut cells = vec![
                Cell::text(label),
                Cell::count(f.requests as i64),
                Cell::number(f.mean_depth),
                Cell::count(f.max_depth as i64),
                Cell::number(f.mean_at_device),
                Cell::number(f.busy_pct),
                Cell::number(f.size_p50_kib),
                Cell::number(f.size_p99_kib),
            ];
            cells.extend(f.classes_pct.iter().map(|p| Cell::number(*p)));
            table.push(cells);
        }
        let longest = facts.iter().map(|f| f.points).max().unwrap_or(0);
        let chart = Plane {
            id: "queue-depth".to_string(),
            label: String::new(),
            caption: "Requests in the queue or at the disk.".to_string(),
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear("depth", Unit::Count),
            lines: context
                .labelled(facts)
                .map(|(label, f)| Line {
                    label: label.to_string(),
                    group: label.to_string(),
                    join: Join::Straight,
                    points: f.line.clone(),
                })
                .collect(),
            thinned_from: (longest > POINTS).then_some(longest),
        };
        Some(Section {
            id: "disk-queue".to_string(),
            title: "The disk's queue".to_string(),
            lead: "A deep queue gives the elevator something to sort, and makes everybody behind it wait; a disk that is not busy while tasks wait is waiting for the processor or for the kernel's own locks.".to_string(),
            blocks: vec![Block::Table(table), Block::Plane(chart)],
            definitions: vec![
                Definition::new("depth", "requests that have been queued and not yet completed, by time"),
                Definition::new("at the disk", "requests dispatched and not yet completed, mean over the time"),
                Definition::new("busy", "share of the time from the first queueing to the last completion in which a disk had a request"),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_weighted_by_time() {
        // One request over 0..10, another over 4..6: depth 2 for 2 of 10.
        let l = level(&[0, 4], &[10, 6]);
        assert_eq!(l.at, [0, 8, 2]);
        assert_eq!(level(&[0, 5], &[5, 9]).at, [0, 9], "one after the other is never beside");
        assert!(level(&[], &[]).at.is_empty());
    }
}
