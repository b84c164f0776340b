//! Elapsed time and throughput.
//!
//! `elapsed_s`: simulated seconds from the beginning of the first foreground task until the last one ended (counter
//! `elapsed_ns`). `throughput_mib_s`: MiB that foreground tasks read and wrote by system calls, per elapsed second; not disk
//! traffic. Recorded elapsed time: from the same tasks' first call to the return of their last.

use super::{Context, Metric};
use crate::cell::{CellData, mib};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::percent_above;

pub(crate) struct Elapsed;

pub(crate) struct Facts {
    elapsed_s: Option<f64>,
    recorded_s: Option<f64>,
    read_bytes: i64,
    written_bytes: i64,
}

impl Facts {
    fn throughput_mib_s(&self) -> Option<f64> {
        let elapsed = self.elapsed_s.filter(|s| *s > 0.0)?;
        Some(mib(self.read_bytes.saturating_add(self.written_bytes)) / elapsed)
    }
}

impl Metric for Elapsed {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, recorded: &Recorded) -> Result<Facts> {
        Ok(Facts {
            elapsed_s: cell.elapsed_s(),
            recorded_s: recorded.elapsed_s(cell.foreground().map(|t| t.tid)),
            read_bytes: cell.foreground().map(|t| t.bytes_read).sum(),
            written_bytes: cell.foreground().map(|t| t.bytes_written).sum(),
        })
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::number("elapsed_s", "elapsed", Unit::Seconds, 2).better(Better::Lower),
            Column::number("throughput_mib_s", "throughput", Unit::MibPerSecond, 2).better(Better::Higher),
        ]
    }

    fn values(&self, facts: &Facts) -> Vec<Option<f64>> {
        vec![facts.elapsed_s, facts.throughput_mib_s()]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let mut table = Table::new(
            "elapsed",
            "Time until the last foreground task ended, and what the tasks moved by system calls in that time.",
            vec![
                Column::text("variant", "variant"),
                Column::number("elapsed_s", "elapsed", Unit::Seconds, 2).better(Better::Lower),
                Column::number("against_recorded_pct", "against recorded", Unit::Percent, 1),
                Column::number("read_mib", "read", Unit::Mib, 1),
                Column::number("written_mib", "written", Unit::Mib, 1),
                Column::number("throughput_mib_s", "throughput", Unit::MibPerSecond, 2).better(Better::Higher),
            ],
        );
        for (label, f) in context.labelled(facts) {
            let against = f.elapsed_s.zip(f.recorded_s).and_then(|(e, r)| percent_above(e, r));
            table.push(vec![
                Cell::text(label),
                Cell::number(f.elapsed_s),
                Cell::number(against),
                Cell::number(mib(f.read_bytes)),
                Cell::number(mib(f.written_bytes)),
                Cell::number(f.throughput_mib_s()),
            ]);
        }
        table.mark_best(|i| context.finished(i));
        if let Some(recorded) = facts.iter().find_map(|f| f.recorded_s) {
            let mut cells = vec![Cell::text("(recorded)"), Cell::number(recorded)];
            cells.resize_with(table.columns.len(), || Cell::number(None));
            table.push(cells);
        }
        Some(Section {
            id: "elapsed".to_string(),
            title: "Elapsed time and throughput".to_string(),
            lead: "How long the recorded work would have taken. The recorded time was measured on the recording's own kernel and machine, so it is a yardstick for the variant that stands for that machine, and only for that one.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![
                Definition::new("elapsed", "from the beginning of the first foreground task to the end of the last, in simulated seconds"),
                Definition::new("throughput", "bytes that foreground tasks read and wrote by system calls, per elapsed second; traffic of the disk is another matter, see below"),
            ],
        })
    }
}
