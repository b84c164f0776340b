//! How long block requests took, in blktrace's vocabulary: Q2C from queueing to completion, D2C from dispatch to completion (ms),
//! per direction. Q2C minus D2C is what the request waited in the queue. `passed`: requests that were dispatched while
//! this one waited (count). Quantiles by nearest rank.

use super::call_latency::{quantile_chart, quantile_table, spreads};
use super::{Context, Metric};
use crate::cell::CellData;
use crate::error::Result;
use crate::model::{Block, Definition, Section};
use crate::recorded::Recorded;
use crate::stats::Spread;

pub(crate) struct BlockLatency;

pub(crate) struct Facts {
    kinds: Vec<(String, Spread)>,
}

impl Metric for BlockLatency {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let frame = cell.table("io", &["dir", "q_ns", "d_ns", "c_ns"])?;
        let split = frame.split("dir")?;
        let names: Vec<String> = split
            .labels
            .iter()
            .map(|l| match l.as_str() {
                "R" => "read".to_string(),
                "W" => "write".to_string(),
                other => other.to_string(),
            })
            .collect();
        let (queued, dispatched, completed) = (frame.ints("q_ns")?, frame.ints("d_ns")?, frame.ints("c_ns")?);
        let since = |from: Vec<Option<i64>>| {
            let completed = completed.clone();
            from.into_iter().zip(completed).map(|(a, c)| Some(c? - a?))
        };
        let named = |what: &str, spreads: Vec<(String, Spread)>| -> Vec<(String, Spread)> {
            spreads.into_iter().map(|(l, s)| (format!("{l} {what}"), s)).collect()
        };
        let mut kinds = named("Q2C", spreads(&names, &split.of_row, since(queued)));
        kinds.extend(named("D2C", spreads(&names, &split.of_row, since(dispatched))));
        kinds.sort_by(|a, b| (a.0.split(' ').next(), &b.0).cmp(&(b.0.split(' ').next(), &a.0)));
        Ok(Facts { kinds })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in facts.iter().flat_map(|f| &f.kinds) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return None;
        }
        let of = |f: &'_ Facts, name: &str| f.kinds.iter().find(|(n, _)| n == name).map(|(_, s)| *s);
        let mut blocks = Vec::new();
        if names.contains(&"read Q2C") {
            let spreads: Vec<(&str, Spread)> =
                context.labelled(facts).filter_map(|(l, f)| Some((l, of(f, "read Q2C")?))).collect();
            let rows = spreads.iter().map(|(l, s)| (*l, s));
            blocks.push(Block::Dots(quantile_chart("read-q2c", "read requests, queued to completed (Q2C)", rows)));
        }
        let rows = names
            .iter()
            .flat_map(|name| context.labelled(facts).filter_map(move |(l, f)| Some((*name, l, of(f, name)?))));
        blocks.push(Block::Table(quantile_table("block-latency", "Duration of block requests.", "request", rows)));
        Some(Section {
            id: "block-latency".to_string(),
            title: "How long block requests took".to_string(),
            lead: "Where Q2C is much longer than D2C, requests waited in the queue: that is the elevator's doing, or simply too many requests. Where D2C itself is long, the disk was slow, mostly because of seeks.".to_string(),
            blocks,
            definitions: vec![
                Definition::new("Q2C", "from the moment a request's first part was queued to its completion"),
                Definition::new("D2C", "from the moment a request was given to the disk to its completion"),
            ],
        })
    }
}
