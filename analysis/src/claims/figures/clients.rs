//! Figures about clients: who finished when, who moved how much.

use crate::cell::{Task, mib, seconds};
use crate::claims::view::View;
use crate::error::Result;
use crate::stats::median;
use std::collections::BTreeMap;

/// Foreground tasks that stand for clients.
fn clients(view: &View) -> Vec<&Task> {
    view.cell.foreground().filter(|t| t.client.is_some()).collect()
}

/// Finishes in order, seconds; `None` if a client did not finish.
fn ends(view: &View) -> Option<Vec<f64>> {
    let mut ends: Vec<f64> = clients(view).iter().map(|t| t.end_ns.map(seconds)).collect::<Option<_>>()?;
    ends.sort_by(f64::total_cmp);
    (!ends.is_empty()).then_some(ends)
}

pub(super) fn first(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(ends(view).map(|e| e[0]))
}

pub(super) fn last(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(ends(view).map(|e| e[e.len() - 1]))
}

pub(super) fn last_over_first(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(ends(view).map(|e| e[e.len() - 1] / e[0]))
}

pub(super) fn second_over_first(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(ends(view).filter(|e| e.len() > 1).map(|e| e[1] / e[0]))
}

pub(super) fn moved(view: &View, _: &[String]) -> Result<Option<f64>> {
    let bytes: i64 = clients(view).iter().map(|t| t.bytes_read + t.bytes_written).sum();
    Ok(ends(view).map(|e| bytes as f64 / 1e6 / e[e.len() - 1]))
}

pub(super) fn task_rate(view: &View, args: &[String]) -> Result<Option<f64>> {
    let wanted = view.tasks(&args[0]);
    let (mut bytes, mut time_s) = (0, 0.0);
    for t in view.cell.tasks.iter().filter(|t| wanted.contains(&t.task)) {
        bytes += t.bytes_read + t.bytes_written;
        let end = t.end_ns.map(seconds).or_else(|| view.cell.elapsed_s()).unwrap_or(0.0);
        time_s += end - seconds(t.start_ns);
    }
    Ok((time_s > 0.0).then(|| mib(bytes) / time_s))
}

pub(super) fn task_mib(view: &View, args: &[String]) -> Result<Option<f64>> {
    let wanted = view.tasks(&args[0]);
    let moved = view.cell.tasks.iter().filter(|t| wanted.contains(&t.task)).map(|t| t.bytes_read + t.bytes_written);
    Ok(Some(mib(moved.sum())))
}

pub(super) fn calls(view: &View, args: &[String]) -> Result<Option<f64>> {
    let tasks = view.tasks(&args[0]);
    let calls = view.calls()?;
    Ok(Some(calls.task.iter().filter(|t| tasks.contains(t)).count() as f64))
}

/// Bytes that each client moved in each second until the first of them finished, by the ends of calls.
fn by_second(view: &View) -> Result<Vec<Vec<i64>>> {
    let tasks: Vec<i64> = clients(view).iter().map(|t| t.task).collect();
    let until = ends(view).map_or(f64::INFINITY, |e| e[0]);
    let calls = view.calls()?;
    let io: Vec<bool> = calls.ops.iter().map(|o| o == "read" || o == "write").collect();
    let mut bins: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for i in 0..calls.task.len() {
        let Some(client) = tasks.iter().position(|t| *t == calls.task[i]) else { continue };
        let end_ns = calls.start_ns[i] + calls.dur_ns[i];
        if io[calls.op[i] as usize] && seconds(end_ns) < until {
            let bin = bins.entry(end_ns / 1_000_000_000).or_insert_with(|| vec![0; tasks.len()]);
            bin[client] += calls.len_bytes[i].unwrap_or(0);
        }
    }
    let last = bins.keys().next_back().copied().unwrap_or(-1);
    Ok((0..=last).map(|s| bins.remove(&s).unwrap_or_else(|| vec![0; tasks.len()])).collect())
}

pub(super) fn busiest_share(view: &View, _: &[String]) -> Result<Option<f64>> {
    let shares: Vec<f64> = by_second(view)?
        .iter()
        .filter(|bin| bin.iter().sum::<i64>() > 0)
        .map(|bin| bin.iter().copied().max().unwrap_or(0) as f64 / bin.iter().sum::<i64>() as f64 * 100.0)
        .collect();
    Ok(median(&shares))
}

pub(super) fn groove(view: &View, _: &[String]) -> Result<Option<f64>> {
    let alone = |bin: &&Vec<i64>| {
        let all: i64 = bin.iter().sum();
        all > 0 && bin.iter().copied().max().unwrap_or(0) * 10 > all * 7
    };
    Ok(Some(by_second(view)?.iter().filter(alone).count() as f64))
}

pub(super) fn starved(view: &View, _: &[String]) -> Result<Option<f64>> {
    let bins = by_second(view)?;
    let Some(n) = bins.first().map(Vec::len) else { return Ok(None) };
    let mut longest = 0;
    for client in 0..n {
        let mut now = 0;
        for bin in &bins {
            let busiest = bin.iter().copied().max().unwrap_or(0);
            now = if busiest > 0 && bin[client] * 10 < busiest { now + 1 } else { 0 };
            longest = longest.max(now);
        }
    }
    Ok(Some(f64::from(longest)))
}
