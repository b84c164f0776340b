//! The seek plot: where on the disk requests were served (MiB from its beginning) over time (s), and seek distances.
//!
//! A mark a dispatched request at `d_ns` and `sector_512`, reads and writes apart; of many the lowest and the highest place of each stretch
//! of time stay. Distance: `seek_sectors` without its sign, in MiB; sequential: distance 0 (%).

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Axis, Block, Cell, Column, Definition, Join, Line, Plane, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::{Spread, envelope};

/// Most marks of a direction.
const MARKS: usize = 800;
const SECTORS_PER_MIB: f64 = 2048.0;

pub(crate) struct Seeks;

pub(crate) struct Facts {
    reads: Vec<(f64, f64)>,
    writes: Vec<(f64, f64)>,
    marks: usize,
    /// Distances in sectors.
    distance: Option<Spread>,
    sequential_pct: Option<f64>,
}

impl Metric for Seeks {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let r = cell.requests()?;
        let marks = |read: bool| {
            let mut marks: Vec<(f64, f64)> = (0..r.count())
                .filter(|i| r.read[*i] == read)
                .map(|i| (seconds(r.d_ns[i]), r.sector_512[i] as f64 / SECTORS_PER_MIB))
                .collect();
            marks.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            marks
        };
        let (reads, writes) = (marks(true), marks(false));
        let mut distances: Vec<i64> = r.seek_sectors.iter().map(|s| s.saturating_abs()).collect();
        let distance = Spread::of(&mut distances);
        let sequential = distances.iter().filter(|d| **d == 0).count();
        Ok(Facts {
            marks: reads.len().max(writes.len()),
            reads: envelope(&reads, MARKS / 2),
            writes: envelope(&writes, MARKS / 2),
            distance,
            sequential_pct: (r.count() > 0).then(|| sequential as f64 / r.count() as f64 * 100.0),
        })
    }

    fn thin(&self, facts: &mut Facts) {
        (facts.reads, facts.writes) = (Vec::new(), Vec::new());
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.distance.is_none()) {
            return None;
        }
        let distance = |id: &str, title: &str| Column::number(id, title, Unit::Mib, 2);
        let mut table = Table::new(
            "seeks",
            "How far the disk had to go from one request to the next.",
            vec![
                Column::text("variant", "variant"),
                Column::number("sequential_pct", "sequential", Unit::Percent, 1),
                distance("mean_mib", "mean"),
                distance("p50_mib", "p50"),
                distance("p90_mib", "p90"),
                distance("max_mib", "max"),
                distance("total_mib", "sum"),
            ],
        );
        for (label, f) in context.labelled(facts) {
            let of =
                |pick: fn(&Spread) -> i64| Cell::number(f.distance.as_ref().map(|s| pick(s) as f64 / SECTORS_PER_MIB));
            table.push(vec![
                Cell::text(label),
                Cell::number(f.sequential_pct),
                Cell::number(f.distance.map(|s| s.total_ns as f64 / s.count as f64 / SECTORS_PER_MIB)),
                of(|s| s.p50_ns),
                of(|s| s.p90_ns),
                of(|s| s.max_ns),
                of(|s| s.total_ns),
            ]);
        }
        let mut blocks = vec![Block::Table(table)];
        blocks.extend(context.labelled(facts).enumerate().filter(|(_, (_, f))| f.marks > 0).map(|(i, (label, f))| {
            let line = |name: &str, points: &[(f64, f64)]| Line { label: name.to_string(), group: name.to_string(), join: Join::Marks, points: points.to_vec() };
            let lines = [line("reads", &f.reads), line("writes", &f.writes)];
            Block::Plane(Plane {
                id: format!("seek-plot-{i}"),
                label: label.to_string(),
                caption: "Where on the disk requests were served. A clean slope is one sequential stream; two bands with everything between them are a disk that runs to and fro.".to_string(),
                x: Axis::linear("time", Unit::Seconds),
                y: Axis::linear("place on the disk", Unit::Mib),
                lines: lines.into_iter().filter(|l| !l.points.is_empty()).collect(),
                thinned_from: (f.marks > MARKS).then_some(f.marks),
            })
        }));
        Some(Section {
            id: "seeks".to_string(),
            title: "Seeks".to_string(),
            lead: "The seek plot, sector over time. Long distances cost a rotating disk most of its time.".to_string(),
            blocks,
            definitions: vec![
                Definition::new(
                    "distance",
                    "from the end of the request served before to the beginning of this one, without direction",
                ),
                Definition::new("sequential", "requests with a distance of 0, of all"),
            ],
        })
    }
}
