//! Figures about memory, swap and what the kernel says when both run out.

use super::number;
use crate::claims::view::View;
use crate::error::Result;

pub(super) fn counter(view: &View, args: &[String]) -> Result<Option<f64>> {
    Ok(view.cell.counter(&args[0]).map(|v| v as f64))
}

fn pages_kib(view: &View, name: &str) -> Option<f64> {
    view.cell.counter(name).map(|pages| pages as f64 * 4.0)
}

pub(super) fn swap_out(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(pages_kib(view, "swap_out_pages"))
}

pub(super) fn swap_in(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(pages_kib(view, "swap_in_pages"))
}

pub(super) fn so_peak(view: &View, args: &[String]) -> Result<Option<f64>> {
    let mut so = view.samples("so_kib_s")?.to_vec();
    so.sort_unstable_by(|a, b| b.cmp(a));
    let samples = if args.is_empty() { 1 } else { number(args, 0) as usize };
    Ok(Some(so.iter().take(samples).sum::<i64>() as f64 / 1024.0))
}

pub(super) fn active_share(view: &View, _: &[String]) -> Result<Option<f64>> {
    let (active, inactive) = (view.samples("active_kib")?, view.samples("inactive_kib")?);
    let most = active.iter().zip(inactive).map(|(a, i)| a + i).max().unwrap_or(0);
    let shares = active.iter().zip(inactive).filter(|(a, i)| *a + *i > 0 && (*a + *i) * 2 >= most);
    Ok(shares.map(|(a, i)| *a as f64 / (*a + *i) as f64 * 100.0).max_by(f64::total_cmp))
}

/// Dentries and inodes in the last sample before a time.
fn names_at(view: &View, time_ns: i64) -> Result<Option<i64>> {
    let (times, dentries, inodes) = (view.samples("time_ns")?, view.samples("dentries")?, view.samples("inodes")?);
    Ok(times.iter().rposition(|t| *t <= time_ns).map(|i| dentries[i] + inodes[i]))
}

pub(super) fn names_kept(view: &View, args: &[String]) -> Result<Option<f64>> {
    let (Some(from), Some(to)) = (view.mark(&args[0])?, view.mark(&args[1])?) else { return Ok(None) };
    // The sample after the mark counts for it: what was read just before it is in memory then.
    let (Some(before), Some(after)) = (names_at(view, from + 1_000_000_000)?, names_at(view, to)?) else {
        return Ok(None);
    };
    Ok((before > 0).then(|| after as f64 / before as f64 * 100.0))
}

pub(super) fn names_half(view: &View, _: &[String]) -> Result<Option<f64>> {
    Ok(view.cell.counter("names_half_life_pages").filter(|pages| *pages > 0).map(|pages| pages as f64))
}

pub(super) fn events(view: &View, args: &[String]) -> Result<Option<f64>> {
    Ok(Some(view.events()?.iter().filter(|e| e.kind == args[0]).count() as f64))
}

pub(super) fn events_of(view: &View, args: &[String]) -> Result<Option<f64>> {
    let of = |e: &&crate::claims::view::Event| e.kind == args[0] && e.text.contains(&args[1]);
    Ok(Some(view.events()?.iter().filter(of).count() as f64))
}

pub(super) fn killed(view: &View, args: &[String]) -> Result<Option<f64>> {
    let wanted = view.tasks(&args[0]);
    Ok(Some(view.cell.tasks.iter().filter(|t| wanted.contains(&t.task) && t.killed).count() as f64))
}

/// A size such as `256MiB` or `3264KiB`, MiB.
fn size_mib(text: &str) -> Option<f64> {
    let number = |unit: &str| text.strip_suffix(unit)?.parse::<f64>().ok();
    number("MiB").or_else(|| number("KiB").map(|kib| kib / 1024.0))
}

pub(super) fn swap_free_at_failure(view: &View, _: &[String]) -> Result<Option<f64>> {
    let first =
        view.events()?.iter().filter(|e| e.kind == "alloc-failure" || e.kind == "oom-kill").map(|e| e.time_ns).min();
    let Some(first) = first else { return Ok(None) };
    let swap = view.config("machine.swap").and_then(size_mib);
    let (times, used) = (view.samples("time_ns")?, view.samples("swpd_kib")?);
    let used = times.iter().rposition(|t| *t <= first).map_or(0, |i| used[i]);
    Ok(swap.map(|mib| mib - used as f64 / 1024.0))
}
