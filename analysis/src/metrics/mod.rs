//! The metrics: one file each, one line each in [`registry`].
//!
//! A metric measures one cell at a time, so that only its facts stay in memory, and then turns the facts of all cells
//! of a trace into a section of the report and into columns of the matrix.

pub(crate) mod blame;
mod block_latency;
mod cache;
mod call_latency;
mod client_blame;
mod clients;
mod disk_queue;
mod elapsed;
mod interactivity;
mod latency_curves;
mod lists;
mod memory;
mod phases;
mod plug;
mod progress;
mod recorded_calls;
mod seeks;
mod starvation;
mod swap;
mod traffic;
mod vmstat;
pub(crate) mod why;
mod writeback;

use crate::cell::CellData;
use crate::compare::Rule;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::model::{Axis, Column, Join, Line, Plane, Section, Unit};
use crate::over_seeds::{Seeds, folded};
use crate::recorded::Recorded;
use crate::stats::envelope;

/// Most points of a line of [`Context::over_time`].
const LEVEL_POINTS: usize = 400;

/// All metrics, in the order of the report.
pub(crate) fn registry() -> Vec<Box<dyn Collect>> {
    vec![
        collector(why::Why),
        collector(elapsed::Elapsed),
        collector(clients::Clients),
        collector(progress::Progress),
        collector(call_latency::CallLatency),
        collector(latency_curves::LatencyCurves),
        collector(interactivity::Interactivity),
        collector(starvation::Starvation),
        collector(blame::Blame),
        collector(client_blame::ClientBlame),
        collector(block_latency::BlockLatency),
        collector(phases::Phases),
        collector(disk_queue::DiskQueue),
        collector(plug::Plug),
        collector(seeks::Seeks),
        collector(traffic::Traffic),
        collector(cache::Cache),
        collector(memory::Memory),
        collector(lists::Lists),
        collector(swap::Swap),
        collector(writeback::Writeback),
        collector(vmstat::Vmstat),
        collector(recorded_calls::RecordedCalls),
    ]
}

/// A figure, or a family of figures, and how it is shown.
pub(crate) trait Metric {
    /// What is kept of each cell.
    type Facts;

    /// Measures one cell.
    ///
    /// # Errors
    /// What is wrong with a table of the cell.
    fn measure(&self, cell: &CellData, recorded: &Recorded) -> Result<Self::Facts>;

    /// The columns it adds to the matrix.
    fn columns(&self) -> Vec<Column> {
        Vec::new()
    }

    /// The values of one cell for [`Metric::columns`], in that order.
    fn values(&self, _facts: &Self::Facts) -> Vec<Option<f64>> {
        Vec::new()
    }

    /// Drops what only charts and lists of single calls show: those of one run a variant are shown, the figures of all.
    fn thin(&self, _facts: &mut Self::Facts) {}

    /// The section over cells of the trace, one a variant; `None` if there is nothing to show.
    fn section(&self, context: &Context<'_>, facts: &[Self::Facts]) -> Option<Section>;
}

/// What stays known of a cell after it was measured.
#[derive(Clone, Debug)]
pub(crate) struct CellHead {
    /// Name in tables.
    pub label: String,
    /// Place among the runs of its variant: 0 stands for it; see [`crate::over_seeds::places`].
    pub place: usize,
    /// Seed.
    pub seed: i64,
    /// Variant.
    pub variant: String,
    /// The run went on to the end of its foreground tasks.
    pub finished: bool,
}

/// What all sections of a trace share.
pub(crate) struct Context<'a> {
    /// The cells, one a variant, in the order of the facts.
    pub cells: &'a [CellHead],
    /// The recording.
    pub recorded: &'a Recorded,
    /// Key figures.
    pub matrix: &'a Matrix,
    /// Variant to compare with, if one was asked for.
    pub reference: Option<&'a str>,
    /// When figures differ.
    pub rule: Rule,
}

impl Context<'_> {
    /// Facts with the label of their cell.
    fn labelled<'f, F>(&'f self, facts: &'f [F]) -> impl Iterator<Item = (&'f str, &'f F)> {
        self.cells.iter().map(|c| c.label.as_str()).zip(facts)
    }

    /// A level in MiB over the time in seconds, a line a cell, thinned where it is long.
    fn over_time<F>(
        &self,
        facts: &[F],
        id: &str,
        caption: &str,
        level: &str,
        of: impl Fn(&F) -> &Vec<(f64, f64)>,
    ) -> Plane {
        let longest = facts.iter().map(|f| of(f).len()).max().unwrap_or(0);
        let line = |(label, f): (&str, &F)| Line {
            label: label.to_string(),
            group: label.to_string(),
            join: Join::Straight,
            points: envelope(of(f), LEVEL_POINTS / 2),
        };
        Plane {
            id: id.to_string(),
            label: String::new(),
            caption: caption.to_string(),
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear(level, Unit::Mib),
            lines: self.labelled(facts).map(line).collect(),
            thinned_from: (longest > LEVEL_POINTS).then_some(longest),
        }
    }

    /// True if the cell of row `i` ran to its end: only then can it be best.
    fn finished(&self, i: usize) -> bool {
        self.cells.get(i).is_some_and(|c| c.finished)
    }
}

/// A metric together with the facts measured so far; hides the facts' type.
pub(crate) trait Collect {
    /// See [`Metric::measure`]; of a run at this place among those of its variant.
    fn measure(&mut self, cell: &CellData, recorded: &Recorded, place: usize) -> Result<()>;
    /// See [`Metric::columns`].
    fn columns(&self) -> Vec<Column>;
    /// See [`Metric::values`]; of the `i`-th measured cell.
    fn values(&self, i: usize) -> Vec<Option<f64>>;
    /// See [`Metric::section`]; with the figures of all seeds. One context a place.
    fn section(&self, contexts: &[Context<'_>], seeds: &Seeds) -> Option<Section>;
}

struct Collector<M: Metric> {
    metric: M,
    /// By place among the runs of a variant.
    facts: Vec<Vec<M::Facts>>,
    values: Vec<Vec<Option<f64>>>,
}

fn collector<M: Metric + 'static>(metric: M) -> Box<dyn Collect> {
    Box::new(Collector { metric, facts: Vec::new(), values: Vec::new() })
}

impl<M: Metric> Collect for Collector<M> {
    fn measure(&mut self, cell: &CellData, recorded: &Recorded, place: usize) -> Result<()> {
        let mut facts = self.metric.measure(cell, recorded)?;
        self.values.push(self.metric.values(&facts));
        if place > 0 {
            self.metric.thin(&mut facts);
        }
        while self.facts.len() <= place {
            self.facts.push(Vec::new());
        }
        self.facts[place].push(facts);
        Ok(())
    }

    fn columns(&self) -> Vec<Column> {
        self.metric.columns()
    }

    fn values(&self, i: usize) -> Vec<Option<f64>> {
        self.values[i].clone()
    }

    fn section(&self, contexts: &[Context<'_>], seeds: &Seeds) -> Option<Section> {
        let mut all = contexts.iter().zip(&self.facts).map(|(context, facts)| self.metric.section(context, facts));
        let first = all.next()??;
        Some(folded(first, &all.collect::<Vec<_>>(), seeds))
    }
}
