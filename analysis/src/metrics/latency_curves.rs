//! Distribution of durations (ms): how many in a hundred calls of a kind, or requests of a direction, took longer than x.
//!
//! `calls`: `dur_ns` by `op`. Requests: Q2C (`c_ns - q_ns`) and D2C (`c_ns - d_ns`) by direction. The curve is the complement of
//! the cumulative distribution, 1 - CDF, on logarithmic axes: a plain CDF of calls that mostly hit the cache is a step, and
//! what users feel is in the last thousandth. Points are exact quantiles (nearest rank), [`PER_DECADE`] for each decade of
//! the complement, and the largest value.

use super::call_latency::{kind_order, slug};
use super::{Context, Metric};
use crate::cell::{CellData, millis};
use crate::error::Result;
use crate::model::{Axis, Block, Definition, Join, Line, Plane, Section, Unit};
use crate::recorded::Recorded;
use crate::stats::quantile;

/// Quantiles drawn for each decade of the complement.
const PER_DECADE: i32 = 8;
/// Kinds of calls drawn: those that took most time.
const KINDS: usize = 4;
/// Durations below this are drawn at it, milliseconds: the axis is logarithmic.
const SHORTEST_MS: f64 = 1e-4;

pub(crate) struct LatencyCurves;

type Curve = Vec<(f64, f64)>;

pub(crate) struct Facts {
    /// Kind of call, sum of its durations in nanoseconds, curve.
    calls: Vec<(String, i64, Curve)>,
    /// Name and curve.
    requests: Vec<(&'static str, Curve)>,
}

/// The curve of `values` (sorted in place): milliseconds, and percent of all values that exceed them.
fn curve(mut values: Vec<i64>) -> Curve {
    values.sort_unstable();
    let Some(last) = values.last().copied() else { return Vec::new() };
    let mut points: Curve = vec![(millis(values[0]).max(SHORTEST_MS), 100.0)];
    for step in 1.. {
        let above = 10f64.powf(-f64::from(step) / f64::from(PER_DECADE));
        if above * (values.len() as f64) < 1.0 {
            break;
        }
        if let Some(value) = quantile(&values, 1.0 - above) {
            points.push((millis(value).max(SHORTEST_MS), above * 100.0));
        }
    }
    points.push((millis(last).max(SHORTEST_MS), 100.0 / values.len() as f64));
    points
}

impl Metric for LatencyCurves {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let calls = cell.calls()?;
        let mut kinds: Vec<Vec<i64>> = vec![Vec::new(); calls.ops.len()];
        for i in 0..calls.count() {
            kinds[usize::from(calls.op[i])].push(calls.dur_ns[i]);
        }
        let is_call = calls.is_call();
        let of_calls = kinds.into_iter().enumerate().filter(|(op, d)| is_call[*op] && !d.is_empty()).map(|(op, d)| {
            let total = d.iter().fold(0i64, |a, b| a.saturating_add(*b));
            (calls.ops[op].clone(), total, curve(d))
        });
        let requests = cell.requests()?;
        let times = |read: bool, from: &[i64]| {
            let rows = (0..requests.count()).filter(|i| requests.read[*i] == read);
            curve(rows.map(|i| requests.c_ns[i].saturating_sub(from[i])).collect())
        };
        let of_requests = [
            ("read requests, Q2C", times(true, &requests.q_ns)),
            ("read requests, D2C", times(true, &requests.d_ns)),
            ("write requests, Q2C", times(false, &requests.q_ns)),
            ("write requests, D2C", times(false, &requests.d_ns)),
        ];
        Ok(Facts {
            calls: of_calls.collect(),
            requests: of_requests.into_iter().filter(|(_, c)| !c.is_empty()).collect(),
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let mut kinds: Vec<(&str, i64)> = Vec::new();
        for (kind, total, _) in facts.iter().flat_map(|f| &f.calls) {
            match kinds.iter_mut().find(|(k, _)| k == kind) {
                Some((_, longest)) => *longest = (*longest).max(*total),
                None => kinds.push((kind, *total)),
            }
        }
        kinds.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
        kinds.truncate(KINDS);
        kinds.sort_by_key(|(kind, _)| kind_order(kind));
        let mut blocks = Vec::new();
        for (kind, _) in kinds {
            let of = |f: &Facts| f.calls.iter().find(|(k, _, _)| k == kind).map(|(_, _, c)| c.clone());
            blocks.push(Block::Plane(plane(
                context,
                facts,
                &format!("curve-{}", slug(kind)),
                &format!("{kind} calls"),
                of,
            )));
        }
        for name in ["read requests, Q2C", "read requests, D2C", "write requests, Q2C", "write requests, D2C"] {
            if facts.iter().any(|f| f.requests.iter().any(|(n, _)| *n == name)) {
                let of = |f: &Facts| f.requests.iter().find(|(n, _)| *n == name).map(|(_, c)| c.clone());
                let id = format!("curve-{}", name.replace(", ", "-").replace(' ', "-").to_lowercase());
                blocks.push(Block::Plane(plane(context, facts, &id, name, of)));
            }
        }
        (!blocks.is_empty()).then(|| Section {
            id: "latency-curves".to_string(),
            title: "Distribution of durations".to_string(),
            lead: "How many in a hundred took longer than a time. Follow a height, say 1 %, to the right until it meets a variant's line: that is its p99. The line further left is better.".to_string(),
            blocks,
            definitions: vec![Definition::new(
                "took longer",
                "1 - CDF: percent of all calls of the kind (requests of the direction) with a duration above x; both axes are logarithmic, durations below 0.0001 ms are drawn there",
            )],
        })
    }
}

fn plane(context: &Context<'_>, facts: &[Facts], id: &str, what: &str, of: impl Fn(&Facts) -> Option<Curve>) -> Plane {
    Plane {
        id: id.to_string(),
        label: String::new(),
        caption: format!(
            "{what}: percent that took longer than a time. Drawn at {PER_DECADE} exact quantiles a decade."
        ),
        x: Axis::log("duration", Unit::Milliseconds),
        y: Axis::log("took longer", Unit::Percent),
        lines: context
            .labelled(facts)
            // A variant without any keeps its place, so that it has the same colour in all drawings.
            .map(|(label, f)| {
                let points = of(f).unwrap_or_default();
                Line { label: label.to_string(), group: label.to_string(), join: Join::Straight, points }
            })
            .collect(),
        thinned_from: None,
    }
}
