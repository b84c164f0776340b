//! Lists under a limit: misses of passes over files, and what outlasts a stream.

use super::machine::{Script, config};
use super::{Outcome, number};
use crate::config::Config;
use crate::mm::page::flag;
use crate::program::{Advice, Op};
use crate::sim::Sim;

/// The limit of the recorded group, pages, and what of it the kernel's own objects took.
const LIMIT: u32 = 16_384;
const KERNEL: u32 = 85;
/// Size of the recorded files is not known beyond what was read; read-ahead went past that.
const BEYOND: u32 = 512;
/// Pages that the kernel's batches hide.
const BATCH: i64 = 31;

/// One pass: file, pages read, and what was recorded.
struct Pass<'a> {
    file: u32,
    pages: u64,
    line: &'a str,
}

pub(super) fn cases(variant: &str, text: &str) -> Result<Vec<(String, Outcome)>, String> {
    let mut out = Vec::new();
    for section in text.split("## ").filter(|s| !s.trim().is_empty()) {
        let name = section.lines().next().unwrap_or_default().trim();
        let outcome = section_outcome(&limited(variant)?, section)
            .ok_or_else(|| format!("the section \"{name}\" is not understood"))?;
        out.push((name.to_owned(), outcome));
    }
    Ok(out)
}

fn limited(variant: &str) -> Result<Config, String> {
    let mut c = config(variant)?;
    c.machine.ram = 1 << 20;
    c.machine.memory_limit = u64::from(LIMIT) * 4;
    c.machine.limit_reserved = u64::from(KERNEL) * 4;
    c.reclaim.workingset.wait_writeback = true;
    Ok(c)
}

fn section_outcome(config: &Config, section: &str) -> Option<Outcome> {
    let mut lines = section.lines();
    let title = lines.next()?;
    let ahead = title.contains("readahead=on");
    let share: f64 =
        title.split_whitespace().find_map(|w| w.strip_suffix('x').or(w.strip_suffix("x,")))?.parse().ok()?;
    // The recorder read whole 64 KiB.
    let pages = (share * f64::from(LIMIT)) as u64 / 16 * 16;
    let mut passes = Vec::new();
    let mut resident = None;
    for line in lines.map(str::trim) {
        if ["pass", "hot read", "hot re-read"].iter().any(|begin| line.starts_with(begin)) {
            passes.push(Pass { file: 0, pages, line });
        } else if line.starts_with("stream") {
            passes.push(Pass { file: 1, pages: 4 * u64::from(LIMIT), line });
        } else if line.starts_with("hot resident") {
            resident = Some((passes.len() - 1, number(line, "stream")?));
        }
    }
    let outlast = resident.map_or(0, |(_, kept)| kept * if ahead { 5 } else { 20 } / 100);
    let most = passes.iter().map(|p| p.pages).max()? as u32 + BEYOND;
    let mut script = Script::new(&[most, most]);
    if !ahead {
        for ofd in 0..2 {
            script.add(Op::Advise { ofd, off: 0, len: 0, advice: Advice::Random });
        }
    }
    for p in &passes {
        for i in 0..p.pages {
            script.read(p.file, i, 1);
        }
        script.step();
    }
    let mut first = None;
    let mut before = 0;
    let mut differs = |why: String| {
        first.get_or_insert(why);
    };
    let played = script.play(config, |k, sim| {
        let read = sim.mm.counters.disk_read_bytes / 4096;
        let misses = (read - std::mem::replace(&mut before, read)) as i64;
        let Some(recorded) = number(passes[k].line, "miss_pages") else { return };
        // What a pass behind the stream reads are the pages that did not outlast it: the same figure once more.
        let again = resident.is_some_and(|(at, _)| k > at);
        let allowed = if again { outlast } else { recorded.max(32 * 100) / 100 };
        if (misses - recorded).abs() > allowed {
            differs(format!("pass {k}: {misses} pages were read, recorded were {recorded}"));
        }
        if let Some((at, kept)) = resident
            && at == k
        {
            let here = hot_pages(sim, passes[0].pages);
            if (here - kept).abs() > outlast {
                differs(format!("{here} hot pages outlast the stream, recorded were {kept}"));
            }
        }
    });
    Some(match (played, first) {
        (Err(e), _) => Err(e),
        (Ok(()), Some(why)) => Err(why),
        (Ok(()), None) => Ok(()),
    })
}

fn hot_pages(sim: &Sim<'_>, pages: u64) -> i64 {
    (0..pages as u32).filter(|i| sim.mm.page(*i).any(flag::PRESENT)).count() as i64
}

/// `lru-marking`: which uses of a page activate it.
pub(super) fn marking(variant: &str, text: &str) -> Result<Vec<(String, Outcome)>, String> {
    let mut c = limited(variant)?;
    c.machine.memory_limit = 256 * 1024;
    let mut script = Script::new(&[4096]);
    script.add(Op::Advise { ofd: 0, off: 0, len: 0, advice: Advice::Random });
    let page = |i: u64| i * 4096;
    for line in text.lines() {
        match line {
            l if l.starts_with("write pass") => {
                (0..4096).for_each(|i| script.add(Op::Write { ofd: 0, off: page(i), len: 4096 }));
            }
            l if l.starts_with("after fsync") => script.add(Op::Fsync { file: 0, data_only: false }),
            l if l.starts_with("read pass") => (0..4096).for_each(|i| script.read(0, i, 1)),
            l if l.starts_with("truncate") => {
                script.add(Op::Truncate { file: 0, len: 0 });
                script.add(Op::Truncate { file: 0, len: 4096 * 4096 });
            }
            l if l.starts_with("1024 pages read") => {
                (0..4096).for_each(|i| script.add(Op::Read { ofd: 0, off: i * 1024, len: 1024 }));
            }
            l if l.starts_with("then 1 x 100 B") => {
                (0..1024).for_each(|i| script.add(Op::Read { ofd: 0, off: page(i), len: 100 }));
            }
            _ => return Err(format!("\"{line}\" is not understood")),
        }
        script.step();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    script.play(&c, |k, sim| {
        let here = [sim.mm.inactive.len(), sim.mm.active.len()].map(i64::from);
        let recorded = [" inactive_file", " active_file"].map(|key| number(lines[k], key).unwrap_or(-1));
        let agree = here.iter().zip(&recorded).all(|(h, r)| (h - r).abs() <= BATCH);
        let why = || format!("{here:?} pages are inactive and active, recorded were {recorded:?}");
        let name = lines[k].split(" inactive_file").next().unwrap_or_default();
        out.push((name.to_owned(), agree.then_some(()).ok_or_else(why)));
    })?;
    Ok(out)
}
