//! Figures from points in time and durations.

use super::number;
use crate::cell::{millis, seconds};
use crate::claims::view::View;
use crate::error::Result;
use crate::stats::quantile;

pub(super) fn span(view: &View, args: &[String]) -> Result<Option<f64>> {
    let Some(from) = view.mark(&args[0])? else { return Ok(None) };
    let to = view.marks()?.iter().find(|m| m.name == args[1] && m.time_ns >= from).map(|m| m.time_ns);
    Ok(to.map(|to| seconds(to - from)))
}

pub(super) fn count_marks(view: &View, args: &[String]) -> Result<Option<f64>> {
    Ok(Some(view.marks()?.iter().filter(|m| m.name == args[0]).count() as f64))
}

pub(super) fn overwritten(view: &View, args: &[String]) -> Result<Option<f64>> {
    let names: Vec<&str> = view.marks()?.iter().map(|m| m.name.as_str()).filter(|n| n.starts_with(&args[0])).collect();
    let different: std::collections::BTreeSet<&&str> = names.iter().collect();
    Ok((!names.is_empty()).then(|| (names.len() - different.len()) as f64))
}

pub(super) fn elapsed(view: &View, _: &[String]) -> Result<Option<f64>> {
    // A run that was given up has no end.
    Ok(view.cell.elapsed_s().filter(|_| view.cell.finished))
}

/// Times between successive passes of a mark.
fn gaps(view: &View, name: &str) -> Result<Vec<i64>> {
    let times: Vec<i64> = view.marks()?.iter().filter(|m| m.name == name).map(|m| m.time_ns).collect();
    Ok(times.windows(2).map(|w| w[1] - w[0]).collect())
}

pub(super) fn missed(view: &View, args: &[String]) -> Result<Option<f64>> {
    let period_ns = number(args, 1) * 1e6;
    let gaps = gaps(view, &args[0])?;
    Ok((!gaps.is_empty()).then(|| gaps.iter().filter(|g| **g as f64 > 1.5 * period_ns).count() as f64))
}

pub(super) fn dry(view: &View, args: &[String]) -> Result<Option<f64>> {
    let tasks = view.tasks(&args[0]);
    let period_ns = number(args, 1) * 1e6;
    let frame = view.cell.table("calls", &["task", "t_net_ns"])?;
    let (task, net) = (frame.whole("task")?, frame.whole("t_net_ns")?);
    // A message that queues behind another waits for longer than its own time on the link.
    let messages = task.iter().zip(&net).filter(|(t, ns)| **ns > 0 && tasks.contains(t));
    let idle = messages.clone().filter(|(_, ns)| **ns as f64 <= period_ns).count();
    Ok((messages.count() > 0).then(|| idle.saturating_sub(1) as f64))
}

pub(super) fn longest_gap(view: &View, args: &[String]) -> Result<Option<f64>> {
    Ok(gaps(view, &args[0])?.into_iter().max().map(millis))
}

pub(super) fn call_ms(view: &View, args: &[String]) -> Result<Option<f64>> {
    let tasks = view.tasks(&args[0]);
    let calls = view.calls()?;
    let Some(op) = calls.ops.iter().position(|o| *o == args[1]) else { return Ok(None) };
    let mut durations: Vec<i64> = (0..calls.op.len())
        .filter(|&i| calls.op[i] as usize == op && tasks.contains(&calls.task[i]))
        .map(|i| calls.dur_ns[i])
        .collect();
    durations.sort_unstable();
    Ok(quantile(&durations, number(args, 2) / 100.0).map(millis))
}

pub(super) fn ready_ms(view: &View, args: &[String]) -> Result<Option<f64>> {
    let tasks = view.tasks(&args[0]);
    let frame = view.cell.table("calls", &["task", "t_runq_ns"])?;
    let (task, ready) = (frame.whole("task")?, frame.whole("t_runq_ns")?);
    let mut waits: Vec<i64> =
        task.iter().zip(&ready).filter(|(t, ns)| **ns > 0 && tasks.contains(t)).map(|(_, ns)| *ns).collect();
    waits.sort_unstable();
    Ok(quantile(&waits, number(args, 1) / 100.0).map(millis))
}

pub(super) fn wake_ms(view: &View, args: &[String]) -> Result<Option<f64>> {
    let asked = number(args, 1);
    Ok(call_ms(view, &[args[0].clone(), "sleep".to_string(), args[2].clone()])?.map(|ms| ms - asked))
}

pub(super) fn call_sum(view: &View, args: &[String]) -> Result<Option<f64>> {
    let tasks = view.tasks(&args[0]);
    let calls = view.calls()?;
    let Some(op) = calls.ops.iter().position(|o| *o == args[1]) else { return Ok(None) };
    let mine = (0..calls.op.len()).filter(|&i| calls.op[i] as usize == op && tasks.contains(&calls.task[i]));
    Ok(Some(seconds(mine.map(|i| calls.dur_ns[i]).sum())))
}
