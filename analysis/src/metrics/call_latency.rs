//! How long calls took: quantiles of `dur_ns` of `calls`, per kind of operation (ms).
//!
//! Quantiles are by nearest rank ([`crate::stats::quantile`]) over all finished operations of the kind, background tasks
//! included. Waits that are no calls to the kernel (own computing, other tasks, the world outside) are left out; blame has
//! them. `read_p99_ms` and the like are the matrix columns.

use super::{Context, Metric};
use crate::cell::{CellData, millis};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, DotPoint, DotRow, Dots, Origin, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::Spread;
use crate::tables::NO_CALLS;

/// Kinds shown before all others, in this order.
const FIRST: [&str; 5] = ["read", "write", "fsync", "open", "touch"];
/// Kinds shown in all: the first ones that took time, then those that took most.
const KINDS: usize = 6;
/// Kinds that took less than one part in so many of the longest kind's time are not listed.
const TRIFLE: i64 = 200;

pub(crate) struct CallLatency;

pub(crate) struct Facts {
    kinds: Vec<(String, Spread)>,
}

impl Facts {
    fn kind(&self, name: &str) -> Option<&Spread> {
        self.kinds.iter().find(|(n, _)| n == name).map(|(_, s)| s)
    }
}

/// Splits values by label and summarises each part, in the labels' order.
pub(super) fn spreads(
    labels: &[String],
    of_row: &[u32],
    values: impl Iterator<Item = Option<i64>>,
) -> Vec<(String, Spread)> {
    let mut parts: Vec<Vec<i64>> = vec![Vec::new(); labels.len()];
    for (label, value) in of_row.iter().zip(values) {
        if let Some(value) = value {
            parts[*label as usize].push(value);
        }
    }
    labels.iter().zip(&mut parts).filter_map(|(l, p)| Some((l.clone(), Spread::of(p)?))).collect()
}

/// Orders kinds of operations for people: the usual ones first, then by name.
pub(super) fn kind_order(name: &str) -> (usize, &str) {
    (FIRST.iter().position(|f| *f == name).unwrap_or(FIRST.len()), name)
}

impl Metric for CallLatency {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let frame = cell.table("calls", &["op", "dur_ns"])?;
        let split = frame.split("op")?;
        let mut kinds = spreads(&split.labels, &split.of_row, frame.ints("dur_ns")?.into_iter());
        kinds.retain(|(name, _)| !NO_CALLS.contains(&name.as_str()));
        kinds.sort_by(|a, b| kind_order(&a.0).cmp(&kind_order(&b.0)));
        Ok(Facts { kinds })
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::number("read_p99_ms", "read p99", Unit::Milliseconds, 3).better(Better::Lower),
            Column::number("read_p999_ms", "read p99.9", Unit::Milliseconds, 3).better(Better::Lower),
            Column::number("write_p99_ms", "write p99", Unit::Milliseconds, 3).better(Better::Lower),
            Column::number("write_p999_ms", "write p99.9", Unit::Milliseconds, 3).better(Better::Lower),
        ]
    }

    fn values(&self, facts: &Facts) -> Vec<Option<f64>> {
        let (read, write) = (facts.kind("read"), facts.kind("write"));
        vec![
            read.map(|s| millis(s.p99_ns)),
            read.map(|s| millis(s.p999_ns)),
            write.map(|s| millis(s.p99_ns)),
            write.map(|s| millis(s.p999_ns)),
        ]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let mut names: Vec<&str> = facts.iter().flat_map(|f| f.kinds.iter().map(|(n, _)| n.as_str())).collect();
        names.sort_by_key(|n| kind_order(n));
        names.dedup();
        if names.is_empty() {
            return None;
        }
        let longest = |name: &str| facts.iter().filter_map(|f| f.kind(name)).map(|s| s.total_ns).max().unwrap_or(0);
        let mut by_time = names.clone();
        by_time.sort_by_key(|n| std::cmp::Reverse(longest(n)));
        let most = by_time.first().map_or(0, |n| longest(n));
        by_time.retain(|n| longest(n).saturating_mul(TRIFLE) >= most);
        by_time.truncate(KINDS);
        let left_out = names.len() - by_time.len();
        names.retain(|n| by_time.contains(n));
        let mut blocks: Vec<Block> = names
            .iter()
            .take(2)
            .map(|name| {
                let rows = context.labelled(facts).filter_map(|(l, f)| Some((l, f.kind(name)?)));
                Block::Dots(quantile_chart(&format!("latency-{}", slug(name)), &format!("{name} calls"), rows))
            })
            .collect();
        let mut caption = "Duration of calls by kind.".to_string();
        if left_out > 0 {
            caption.push_str(&format!(" {left_out} more kinds took less time than these; they are in calls.parquet."));
        }
        let rows = names
            .iter()
            .flat_map(|name| context.labelled(facts).filter_map(move |(l, f)| Some((*name, l, *f.kind(name)?))));
        blocks.push(Block::Table(quantile_table("call-latency", &caption, "call", rows)));
        Some(Section {
            id: "call-latency".to_string(),
            title: "How long calls took".to_string(),
            lead: "Most calls are served from memory within microseconds; those that wait for the disk take milliseconds to seconds. The median says what is usual; what users complain about are the slowest in a hundred or in a thousand.".to_string(),
            blocks,
            definitions: vec![Definition::new(
                "p50, p90, p99, p99.9",
                "the value that half, 90 %, 99 % and 99.9 % of the calls do not exceed (nearest rank: always a value that occurred)",
            )],
        })
    }
}

/// A chart of quantiles, a row a cell.
pub(super) fn quantile_chart<'a>(id: &str, what: &str, rows: impl Iterator<Item = (&'a str, &'a Spread)>) -> Dots {
    let point = |label: &str, ns: i64| DotPoint { label: label.to_string(), value: millis(ns) };
    Dots {
        id: id.to_string(),
        caption: format!(
            "Quantiles of {what} on a logarithmic axis: p50, p90, p99, p99.9 and maximum from left to right."
        ),
        axis: what.to_string(),
        unit: Unit::Milliseconds,
        log: true,
        rows: rows
            .map(|(label, s)| DotRow {
                label: label.to_string(),
                origin: Origin::Simulated,
                points: vec![
                    point("p50", s.p50_ns),
                    point("p90", s.p90_ns),
                    point("p99", s.p99_ns),
                    point("p99.9", s.p999_ns),
                    point("max", s.max_ns),
                ],
            })
            .collect(),
    }
}

/// A table of quantiles, a row a kind and cell.
pub(super) fn quantile_table<'a>(
    id: &str,
    caption: &str,
    kind: &str,
    rows: impl Iterator<Item = (&'a str, &'a str, Spread)>,
) -> Table {
    let ms = |id: &str, title: &str| Column::number(id, title, Unit::Milliseconds, 3);
    let mut table = Table::new(
        id,
        caption,
        vec![
            Column::text("kind", kind),
            Column::text("variant", "variant"),
            Column::number("count", "count", Unit::Count, 0),
            ms("p50_ms", "p50"),
            ms("p90_ms", "p90"),
            ms("p99_ms", "p99"),
            ms("p999_ms", "p99.9"),
            ms("max_ms", "max"),
            Column::number("total_s", "sum", Unit::Seconds, 2),
        ],
    );
    for (name, label, s) in rows {
        table.push(vec![
            Cell::text(name),
            Cell::text(label),
            Cell::count(s.count as i64),
            Cell::number(millis(s.p50_ns)),
            Cell::number(millis(s.p90_ns)),
            Cell::number(millis(s.p99_ns)),
            Cell::number(millis(s.p999_ns)),
            Cell::number(millis(s.max_ns)),
            Cell::number(millis(s.total_ns) / 1e3),
        ]);
    }
    table
}

/// A name as part of an id: `[a-z0-9-]`.
pub(super) fn slug(name: &str) -> String {
    name.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
