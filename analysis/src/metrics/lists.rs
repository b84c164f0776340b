//! Memory over time: what the machine's pages were used for (MiB), a sample a second.
//!
//! Columns of `samples`: `free_kib`, `active_kib`, `inactive_kib`, `anon_kib`, `cache_kib`, `dirty_kib`, `writeback_kib`, `slab_kib`. They overlap: active and inactive are the lists of
//! reclaim, anon and cache what is on them, dirty a part of the cache.

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Axis, Block, Definition, Join, Line, Plane, Section, Unit};
use crate::recorded::Recorded;
use crate::stats::envelope;

/// Name, column, meaning.
const LISTS: [(&str, &str, &str); 8] = [
    ("free", "free_kib", "not used at all"),
    ("active", "active_kib", "on the active list: referenced again, not looked at by reclaim"),
    ("inactive", "inactive_kib", "on the inactive list: reclaim's candidates"),
    ("anon", "anon_kib", "memory of processes, which only swap can free"),
    ("cache", "cache_kib", "pages of files"),
    ("dirty", "dirty_kib", "pages of files that the disk does not have yet"),
    ("writeback", "writeback_kib", "on their way to the disk"),
    ("slab", "slab_kib", "the kernel's own objects: inodes, directory entries"),
];
/// Most points of a line.
const POINTS: usize = 240;

pub(crate) struct Lists;

pub(crate) struct Facts {
    lines: Vec<Vec<(f64, f64)>>,
    samples: usize,
}

impl Metric for Lists {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let mut wanted = vec!["time_ns"];
        wanted.extend(LISTS.iter().map(|l| l.1));
        let frame = cell.table("samples", &wanted)?;
        let times: Vec<f64> = frame.whole("time_ns")?.into_iter().map(seconds).collect();
        let line = |column: &str| -> Result<Vec<(f64, f64)>> {
            let values = frame.ints(column)?;
            let points: Vec<(f64, f64)> =
                times.iter().zip(values).filter_map(|(t, v)| Some((*t, v? as f64 / 1024.0))).collect();
            Ok(envelope(&points, POINTS / 2))
        };
        Ok(Facts { lines: LISTS.iter().map(|l| line(l.1)).collect::<Result<_>>()?, samples: times.len() })
    }

    fn thin(&self, facts: &mut Facts) {
        facts.lines.iter_mut().for_each(Vec::clear);
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let used = |l: usize| facts.iter().any(|f| f.lines[l].iter().any(|(_, v)| *v > 0.0));
        let shown: Vec<usize> = (0..LISTS.len()).filter(|l| used(*l)).collect();
        if shown.is_empty() || facts.iter().all(|f| f.samples < 2) {
            return None;
        }
        let blocks = context.labelled(facts).enumerate().map(|(i, (label, f))| {
            Block::Plane(Plane {
                id: format!("memory-lists-{i}"),
                label: label.to_string(),
                caption: "What memory was used for. Lists and uses overlap, so the lines do not add up to the whole."
                    .to_string(),
                x: Axis::linear("time", Unit::Seconds),
                y: Axis::linear("memory", Unit::Mib),
                lines: shown
                    .iter()
                    .map(|l| Line {
                        label: LISTS[*l].0.to_string(),
                        group: LISTS[*l].0.to_string(),
                        join: Join::Straight,
                        points: f.lines[*l].clone(),
                    })
                    .collect(),
                thinned_from: (f.samples > POINTS).then_some(f.samples),
            })
        });
        Some(Section {
            id: "memory-lists".to_string(),
            title: "Memory over time".to_string(),
            lead: "What the pages of the simulated machine were used for, second by second.".to_string(),
            blocks: blocks.collect(),
            definitions: shown.iter().map(|l| Definition::new(LISTS[*l].0, LISTS[*l].2)).collect(),
        })
    }
}
