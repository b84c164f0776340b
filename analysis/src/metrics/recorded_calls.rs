//! Recorded against simulated durations of the same calls (ms), where the recording has them (`recorded_ns` of `calls`).
//!
//! Only calls with both durations count. Ratio: simulated sum over recorded sum.

use super::call_latency::{kind_order, spreads};
use super::{Context, Metric};
use crate::cell::{CellData, millis, seconds};
use crate::error::Result;
use crate::model::{Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::Spread;
use crate::tables::NO_CALLS;

pub(crate) struct RecordedCalls;

pub(crate) struct Facts {
    /// Kind, recorded, simulated.
    kinds: Vec<(String, Spread, Spread)>,
}

impl Metric for RecordedCalls {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let frame = cell.table("calls", &["op", "dur_ns", "recorded_ns"])?;
        let split = frame.split("op")?;
        let (simulated, recorded) = (frame.ints("dur_ns")?, frame.ints("recorded_ns")?);
        let both = || simulated.iter().zip(&recorded).map(|(s, r)| (*s).zip(*r));
        let simulated = spreads(&split.labels, &split.of_row, both().map(|b| b.map(|(s, _)| s)));
        let recorded = spreads(&split.labels, &split.of_row, both().map(|b| b.map(|(_, r)| r)));
        let mut kinds: Vec<_> = recorded.into_iter().zip(simulated).map(|((name, r), (_, s))| (name, r, s)).collect();
        kinds.retain(|(name, _, _)| !NO_CALLS.contains(&name.as_str()));
        kinds.sort_by(|a, b| kind_order(&a.0).cmp(&kind_order(&b.0)));
        Ok(Facts { kinds })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.kinds.is_empty()) {
            return None;
        }
        let ms = |id: &str, title: &str| Column::number(id, title, Unit::Milliseconds, 3);
        let mut table = Table::new(
            "recorded-calls",
            "Calls of which the recording has the duration.",
            vec![
                Column::text("call", "call"),
                Column::text("variant", "variant"),
                Column::number("count", "count", Unit::Count, 0),
                ms("recorded_p50_ms", "recorded p50"),
                ms("simulated_p50_ms", "simulated p50"),
                ms("recorded_p99_ms", "recorded p99"),
                ms("simulated_p99_ms", "simulated p99"),
                Column::number("recorded_s", "recorded sum", Unit::Seconds, 2),
                Column::number("simulated_s", "simulated sum", Unit::Seconds, 2),
                Column::number("ratio", "simulated/recorded", Unit::Count, 2),
            ],
        );
        let mut names: Vec<&str> = facts.iter().flat_map(|f| f.kinds.iter().map(|(n, _, _)| n.as_str())).collect();
        names.sort_by_key(|n| kind_order(n));
        names.dedup();
        for name in names {
            for (label, f) in context.labelled(facts) {
                let Some((_, r, s)) = f.kinds.iter().find(|(n, _, _)| n == name) else { continue };
                table.push(vec![
                    Cell::text(name),
                    Cell::text(label),
                    Cell::count(r.count as i64),
                    Cell::number(millis(r.p50_ns)),
                    Cell::number(millis(s.p50_ns)),
                    Cell::number(millis(r.p99_ns)),
                    Cell::number(millis(s.p99_ns)),
                    Cell::number(seconds(r.total_ns)),
                    Cell::number(seconds(s.total_ns)),
                    Cell::number((r.total_ns > 0).then(|| s.total_ns as f64 / r.total_ns as f64)),
                ]);
            }
        }
        Some(Section {
            id: "recorded-calls".to_string(),
            title: "Recorded and simulated calls".to_string(),
            lead: "How far to trust the replay: for the variant that stands for the recorded machine both figures should be close. For other variants the difference is the prediction.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![Definition::new("simulated/recorded", "sum of simulated durations over sum of recorded durations of the same calls")],
        })
    }
}
