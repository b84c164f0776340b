//! The phases of a block request in the vocabulary of blktrace's btt (ms): Q2Q, Q2G, G2I, I2D, D2C and Q2C.
//!
//! Q2Q: between one request's Q and the next one's on the same device. Q2G: what calls waited for a free request slot
//! (`t_slot_ns` of `calls`, calls that waited only), since the simulator stamps `q_ns` when the slot has been got. G2I: `i_ns - q_ns`,
//! the time in a task's plug list (where the kernel has none, only requests that were joined: the older one's Q counts). I2D: `d_ns - i_ns`, the elevator. D2C: `c_ns - d_ns`, the device. Q2C:
//! `c_ns - q_ns`. Shares are of the sum of Q2C over all requests, as in btt's overhead table (%).

use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, millis};
use crate::error::Result;
use crate::model::{Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::Spread;

pub(crate) struct Phases;

/// Phases, in btt's order, and whether they are parts of Q2C.
const PHASES: [(&str, bool); 6] =
    [("Q2Q", false), ("Q2G", false), ("G2I", true), ("I2D", true), ("D2C", true), ("Q2C", true)];

pub(crate) struct Facts {
    /// One a phase: smallest value, and the spread.
    phases: [Option<(i64, Spread)>; PHASES.len()],
}

fn of(mut values: Vec<i64>) -> Option<(i64, Spread)> {
    let spread = Spread::of(&mut values)?;
    Some((values[0], spread))
}

impl Metric for Phases {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let r = cell.requests()?;
        let between = |from: &[i64], to: &[i64]| of(from.iter().zip(to).map(|(a, b)| b.saturating_sub(*a)).collect());
        let mut queued: Vec<(u32, i64)> = r.dev.iter().copied().zip(r.q_ns.iter().copied()).collect();
        queued.sort_unstable();
        let q2q = queued.windows(2).filter(|w| w[0].0 == w[1].0).map(|w| w[1].1 - w[0].1).collect();
        let slot = CAUSES.iter().position(|c| *c == "t_slot_ns");
        let waits = &cell.calls()?.waits;
        let q2g = waits.iter().filter(|w| Some(usize::from(w.cause)) == slot).map(|w| w.ns).collect();
        Ok(Facts {
            phases: [
                of(q2q),
                of(q2g),
                between(&r.q_ns, &r.i_ns),
                between(&r.i_ns, &r.d_ns),
                between(&r.d_ns, &r.c_ns),
                between(&r.q_ns, &r.c_ns),
            ],
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.phases[5].is_none()) {
            return None;
        }
        let ms = |id: &str, title: &str| Column::number(id, title, Unit::Milliseconds, 3);
        let mut table = Table::new(
            "phases",
            "Phases of block requests.",
            vec![
                Column::text("phase", "phase"),
                Column::text("variant", "variant"),
                Column::number("count", "count", Unit::Count, 0),
                ms("min_ms", "min"),
                ms("mean_ms", "mean"),
                ms("p50_ms", "p50"),
                ms("p99_ms", "p99"),
                ms("max_ms", "max"),
                Column::number("share_pct", "of Q2C", Unit::Percent, 1),
            ],
        );
        for (p, (name, part)) in PHASES.iter().enumerate() {
            for (label, f) in context.labelled(facts) {
                let Some((min, s)) = f.phases[p].filter(|(_, s)| s.max_ns > 0) else { continue };
                let whole = f.phases[5].map_or(0, |(_, s)| s.total_ns);
                table.push(vec![
                    Cell::text(*name),
                    Cell::text(label),
                    Cell::count(s.count as i64),
                    Cell::number(millis(min)),
                    Cell::number(millis(s.total_ns) / s.count as f64),
                    Cell::number(millis(s.p50_ns)),
                    Cell::number(millis(s.p99_ns)),
                    Cell::number(millis(s.max_ns)),
                    Cell::number((*part && whole > 0).then(|| s.total_ns as f64 / whole as f64 * 100.0)),
                ]);
            }
        }
        Some(Section {
            id: "phases".to_string(),
            title: "Phases of block requests (btt)".to_string(),
            lead: "Where a request spent its life. A large I2D share is waiting in the elevator, a large D2C share a slow disk; Q2G is what tasks waited before they had a request at all. A phase that was never longer than 0 is left out.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![
                Definition::new("Q2Q", "from one request's queueing to the next one's on the same device: the arrival rate"),
                Definition::new("Q2G", "waiting for a free request slot; counted over calls that waited, which may wait more than once"),
                Definition::new("G2I", "from having a slot to insertion into the elevator's queue: the time in a task's plug list; where two queued requests were joined, the older one's queueing counts"),
                Definition::new("I2D", "from insertion to dispatch: the elevator's doing"),
                Definition::new("D2C", "from dispatch to completion: the device's doing"),
                Definition::new("Q2C", "from queueing to completion: G2I, I2D and D2C together"),
            ],
        })
    }
}
