//! Swap: volumes (MiB), bursts and clusters.
//!
//! A burst: a run of consecutive one-second samples with `si_kib_s` (or `so_kib_s`) above 0; its size is the sum over the run. A cluster:
//! swap requests (`kind` = "swap") of one direction that follow each other on the device, each beginning where the one before
//! ended; sizes in KiB.

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;

pub(crate) struct Swap;

/// Bursts of one direction.
#[derive(Default)]
struct Bursts {
    total_kib: i64,
    count: i64,
    largest_kib: i64,
    longest_s: i64,
    peak_kib_s: i64,
}

pub(crate) struct Facts {
    incoming: Bursts,
    outgoing: Bursts,
    /// Mean size of clusters in and out, KiB.
    clusters: [Option<f64>; 2],
    line: Vec<(f64, f64)>,
}

fn bursts(rates: &[i64]) -> Bursts {
    let mut all = Bursts::default();
    for run in rates.split(|r| *r <= 0).filter(|run| !run.is_empty()) {
        let size: i64 = run.iter().fold(0, |a, b| a.saturating_add(*b));
        all.total_kib = all.total_kib.saturating_add(size);
        all.count += 1;
        all.largest_kib = all.largest_kib.max(size);
        all.longest_s = all.longest_s.max(run.len() as i64);
        all.peak_kib_s = all.peak_kib_s.max(run.iter().copied().max().unwrap_or(0));
    }
    all
}

/// Mean size of clusters of swap requests, KiB.
fn cluster_kib(cell: &CellData, read: bool) -> Result<Option<f64>> {
    let r = cell.requests()?;
    let mut order: Vec<usize> = (0..r.count()).filter(|i| r.read[*i] == read && r.kind_of(*i) == "swap").collect();
    order.sort_by_key(|i| (r.dev[*i], r.d_ns[*i], *i));
    let bytes: i64 = order.iter().map(|i| r.len_bytes[*i]).sum();
    let follows =
        |w: &[usize]| r.dev[w[0]] == r.dev[w[1]] && r.sector_512[w[0]] + r.len_bytes[w[0]] / 512 == r.sector_512[w[1]];
    let clusters = order.len() - order.windows(2).filter(|w| follows(w)).count();
    Ok((clusters > 0).then(|| bytes as f64 / 1024.0 / clusters as f64))
}

impl Metric for Swap {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let frame = cell.table("samples", &["time_ns", "si_kib_s", "so_kib_s", "swpd_kib"])?;
        let rates =
            |name: &str| -> Result<Vec<i64>> { Ok(frame.ints(name)?.into_iter().map(|v| v.unwrap_or(0)).collect()) };
        let level = rates("swpd_kib")?;
        let line =
            frame.whole("time_ns")?.into_iter().zip(level).map(|(t, v)| (seconds(t), v as f64 / 1024.0)).collect();
        Ok(Facts {
            incoming: bursts(&rates("si_kib_s")?),
            outgoing: bursts(&rates("so_kib_s")?),
            clusters: [cluster_kib(cell, true)?, cluster_kib(cell, false)?],
            line,
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.incoming.count + f.outgoing.count == 0) {
            return None;
        }
        let mut table = Table::new(
            "swap",
            "Bursts of swapping, from the samples once a second.",
            vec![
                Column::text("direction", "swap"),
                Column::text("variant", "variant"),
                Column::number("mib", "total", Unit::Mib, 2).better(Better::Lower),
                Column::number("bursts", "bursts", Unit::Count, 0),
                Column::number("largest_mib", "largest", Unit::Mib, 2),
                Column::number("longest_s", "longest", Unit::Seconds, 0),
                Column::number("peak_kib_s", "peak", Unit::KibPerSecond, 0),
                Column::number("cluster_kib", "mean cluster", Unit::Kib, 1),
            ],
        );
        for (direction, at) in [("in", 0usize), ("out", 1)] {
            for (label, f) in context.labelled(facts) {
                let b = if at == 0 { &f.incoming } else { &f.outgoing };
                table.push(vec![
                    Cell::text(direction),
                    Cell::text(label),
                    Cell::number(b.total_kib as f64 / 1024.0),
                    Cell::count(b.count),
                    Cell::number(b.largest_kib as f64 / 1024.0),
                    Cell::count(b.longest_s),
                    Cell::count(b.peak_kib_s),
                    Cell::number(f.clusters[at]),
                ]);
            }
        }
        let chart = context.over_time(facts, "swap-level", "Swap space in use.", "in use", |f| &f.line);
        Some(Section {
            id: "swap".to_string(),
            title: "Swap".to_string(),
            lead: "Steady swapping in small portions is felt less than the same volume in bursts; large clusters cost the disk few seeks.".to_string(),
            blocks: vec![Block::Table(table), Block::Plane(chart)],
            definitions: vec![
                Definition::new("burst", "consecutive samples (one a second) in which something was swapped; its size is the sum"),
                Definition::new("cluster", "swap requests that follow each other without a gap on the disk"),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_runs() {
        let b = bursts(&[0, 5, 7, 0, 0, 20, 0]);
        assert_eq!((b.total_kib, b.count, b.largest_kib, b.longest_s, b.peak_kib_s), (32, 2, 20, 2, 20));
        assert_eq!(bursts(&[]).count, 0);
    }
}
