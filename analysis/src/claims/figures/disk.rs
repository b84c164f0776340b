//! Figures about requests, and about where reads begin.

use crate::cell::{mib, seconds};
use crate::claims::onset::Onset;
use crate::claims::starve::{Episode, longest_episode};
use crate::claims::view::View;
use crate::error::Result;

fn moved(view: &View, read: bool, swap: bool, from: i64, to: i64) -> Result<i64> {
    let io = view.io()?;
    let counted = |i: &usize| io.read[*i] == read && io.swap[*i] == swap && (from..to).contains(&io.c_ns[*i]);
    Ok((0..io.c_ns.len()).filter(counted).map(|i| io.len_bytes[i]).sum())
}

pub(super) fn read_mib(view: &View, args: &[String]) -> Result<Option<f64>> {
    let mut ends = [0, i64::MAX];
    for (end, name) in ends.iter_mut().zip(args) {
        let Some(time) = view.mark(name)? else { return Ok(None) };
        *end = time;
    }
    Ok(Some(mib(moved(view, true, false, ends[0], ends[1])?)))
}

pub(super) fn back_mib(view: &View, args: &[String]) -> Result<Option<f64>> {
    let (Some(from), Some(to)) = (view.mark(&args[0])?, view.mark(&args[1])?) else { return Ok(None) };
    Ok(Some(mib(moved(view, true, false, from, to)? + moved(view, true, true, from, to)?)))
}

pub(super) fn written_mib(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(Some(mib(moved(view, false, false, 0, i64::MAX)?)))
}

/// Indices of the reads from data disks that certain tasks asked for; of all tasks without a name.
fn reads(view: &View, args: &[String]) -> Result<Vec<usize>> {
    let io = view.io()?;
    let tasks = args.first().map(|name| view.tasks(name));
    let wanted = |i: &usize| io.read[*i] && !io.swap[*i] && tasks.as_ref().is_none_or(|t| t.contains(&io.task[*i]));
    Ok((0..io.c_ns.len()).filter(wanted).collect())
}

fn mean(view: &View, args: &[String], of: impl Fn(&crate::claims::view::Io, usize) -> f64) -> Result<Option<f64>> {
    let (reads, io) = (reads(view, args)?, view.io()?);
    Ok((!reads.is_empty()).then(|| reads.iter().map(|&i| of(io, i)).sum::<f64>() / reads.len() as f64))
}

pub(super) fn read_avg(view: &View, args: &[String]) -> Result<Option<f64>> {
    mean(view, args, |io, i| io.len_bytes[i] as f64 / 1024.0)
}

pub(super) fn passed(view: &View, args: &[String]) -> Result<Option<f64>> {
    mean(view, args, |io, i| io.passed[i] as f64)
}

pub(super) fn tail(view: &View, args: &[String]) -> Result<Option<f64>> {
    mean(view, args, |io, i| f64::from(u8::from(io.tail[i])) * 100.0)
}

fn episode(view: &View) -> Result<Option<Episode>> {
    longest_episode(view)
}

pub(super) fn episode_s(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(episode(view)?.map(|e| seconds(e.end_ns - e.start_ns)))
}

pub(super) fn episode_passed(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(episode(view)?.map(|e| e.passed))
}

pub(super) fn episode_tail(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(episode(view)?.map(|e| e.tail_pct))
}

pub(super) fn onset_lag(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(Onset::find(view)?.map(|o| o.reads_sample as f64 - o.cache_full_sample as f64))
}

pub(super) fn bo_drop(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(Onset::find(view)?.and_then(|o| o.bo_after_over_before))
}
