//! Plug times: stretches in which requests existed and their disk had none of them.
//!
//! A queue that was empty holds what arrives back until it is unplugged (2.2, 2.4: `generic_plug_device`), a task of today holds
//! back its own list (`blk_start_plug`), and some schedulers wait for a task's next request while they have others. All look
//! alike in `io`: a request is made (`q_ns`) and none is at the device (`d_ns` to `c_ns`). Such a stretch begins when a request is
//! made, or when the device falls idle, and ends at the next dispatch. By device; stretches of no length do not count.

use super::{Context, Metric};
use crate::cell::{CellData, millis, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::quantile;
use crate::tables::Requests;

pub(crate) struct Plug;

#[derive(Default)]
pub(crate) struct Facts {
    requests: usize,
    /// Lengths of the stretches, sorted, nanoseconds.
    held_ns: Vec<i64>,
    /// From the first request made to the last completion, nanoseconds, summed over devices.
    span_ns: i64,
}

impl Facts {
    fn total_ns(&self) -> i64 {
        self.held_ns.iter().sum()
    }
}

/// Stretches of one device's requests, and the time that they span.
fn stretches(of: &[(i64, i64, i64)], held: &mut Vec<i64>) -> i64 {
    // Time, change of the requests that exist, change of those at the device. At one moment all changes count together.
    let mut changes: Vec<(i64, i32, i32)> = Vec::with_capacity(of.len() * 3);
    for (q, d, c) in of {
        changes.extend([(*q, 1, 0), (*d, 0, 1), (*c, -1, -1)]);
    }
    changes.sort_unstable();
    let (mut exist, mut served, mut since) = (0, 0, None);
    let mut next = 0;
    while next < changes.len() {
        let now = changes[next].0;
        while next < changes.len() && changes[next].0 == now {
            exist += changes[next].1;
            served += changes[next].2;
            next += 1;
        }
        let holds = exist > 0 && served == 0;
        match since {
            None if holds => since = Some(now),
            Some(from) if !holds => {
                held.push(now - from);
                since = None;
            }
            _ => {}
        }
    }
    changes.last().map_or(0, |last| last.0 - changes[0].0)
}

fn facts(r: &Requests) -> Facts {
    let mut devices = r.dev.clone();
    devices.sort_unstable();
    devices.dedup();
    let mut facts = Facts { requests: r.count(), ..Facts::default() };
    for dev in devices {
        let of: Vec<(i64, i64, i64)> =
            (0..r.count()).filter(|i| r.dev[*i] == dev).map(|i| (r.q_ns[i], r.d_ns[i], r.c_ns[i])).collect();
        facts.span_ns += stretches(&of, &mut facts.held_ns);
    }
    facts.held_ns.sort_unstable();
    facts
}

impl Metric for Plug {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        Ok(facts(cell.requests()?))
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.held_ns.is_empty()) {
            return None;
        }
        let ms = |id: &str, title: &str| Column::number(id, title, Unit::Milliseconds, 3);
        let mut table = Table::new(
            "plug",
            "Times in which the disk idled although requests for it existed.",
            vec![
                Column::text("variant", "variant"),
                Column::number("plugs", "times", Unit::Count, 0),
                Column::number("plugged_s", "in all", Unit::Seconds, 2).better(Better::Lower),
                Column::number("plugged_pct", "of the time", Unit::Percent, 2).better(Better::Lower),
                ms("plug_mean_ms", "mean"),
                ms("plug_p50_ms", "p50"),
                ms("plug_p99_ms", "p99"),
                ms("plug_max_ms", "longest"),
            ],
        );
        for (label, f) in context.labelled(facts) {
            let of = |q: f64| Cell::number(quantile(&f.held_ns, q).map(millis));
            let count = f.held_ns.len();
            table.push(vec![
                Cell::text(label),
                Cell::count(count as i64),
                Cell::number(seconds(f.total_ns())),
                Cell::number((f.span_ns > 0).then(|| f.total_ns() as f64 / f.span_ns as f64 * 100.0)),
                Cell::number((count > 0).then(|| millis(f.total_ns()) / count as f64)),
                of(0.5),
                of(0.99),
                Cell::number(f.held_ns.last().copied().map(millis)),
            ]);
        }
        table.mark_best(|i| context.finished(i) && facts[i].requests > 0);
        Some(Section {
            id: "plug".to_string(),
            title: "Requests held back".to_string(),
            lead: "A plugged queue waits for neighbours of the requests that it has, so that they can be merged; some schedulers wait for the next request of the task that they serve. Both let the disk idle for a moment to save it longer ways; here is how long.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![Definition::new(
                "held back",
                "from the moment at which a request exists and the disk has nothing to do, to the next dispatch",
            )],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(of: &[(i64, i64, i64)]) -> (Vec<i64>, i64) {
        let mut held = Vec::new();
        let span = stretches(of, &mut held);
        (held, span)
    }

    #[test]
    fn only_an_idle_disk_with_requests_counts() {
        // Plugged from 0 to 5 with two requests; the second waits behind the first, then the disk idles over it till 12.
        assert_eq!(held(&[(0, 5, 10), (3, 12, 20)]), (vec![5, 2], 20));
        // Dispatched at once, and one after the other without a gap.
        assert_eq!(held(&[(0, 0, 10), (4, 10, 20)]), (vec![], 20));
        // Nothing exists between 10 and 30.
        assert_eq!(held(&[(0, 1, 10), (30, 30, 40)]), (vec![1], 40));
        assert_eq!(held(&[]), (vec![], 0));
    }
}
