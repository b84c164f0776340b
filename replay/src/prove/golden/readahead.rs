//! Windows of read-ahead: pages in memory after every read.

use super::Outcome;
use super::machine::{Script, cached, config, parse_runs};
use crate::program::{Advice, Op};

/// Pages of the recorded file.
const PAGES: u32 = 16_384;

/// Runs of pages in memory, and the step after which they were seen.
type Seen = Vec<(usize, Vec<(u32, u32)>)>;

pub(super) fn cases(variant: &str, text: &str) -> Result<Vec<(String, Outcome)>, String> {
    let config = config(variant)?;
    let mut out = Vec::new();
    for section in text.split("## ").filter(|s| !s.trim().is_empty()) {
        let title = section.lines().next().unwrap_or_default();
        let name = title.split(" [").next().unwrap_or(title).trim().to_owned();
        let (script, seen) = script(section).ok_or_else(|| format!("the pattern \"{name}\" is not understood"))?;
        let mut states: Vec<Vec<(u32, u32)>> = Vec::new();
        script.play(&config, |_, sim| states.push(cached(sim, 0, PAGES)))?;
        out.push((name, compare(&seen, &states)));
    }
    Ok(out)
}

/// The steps of a pattern, and what was seen after which of them (it was printed only when it changed).
fn script(section: &str) -> Option<(Script, Seen)> {
    let mut lines = section.lines();
    let title = lines.next()?;
    let mut s = Script::new(&[PAGES]);
    let mut seen: Seen = Vec::new();
    if title.starts_with("FADV_RANDOM") {
        s.add(Op::Advise { ofd: 0, off: 0, len: 0, advice: Advice::Random });
        s.read(0, 0, 1);
        s.read(0, 100, 16);
        s.step();
        return Some((s, vec![(0, parse_runs(title)?)]));
    }
    if title.starts_with("WILLNEED") {
        let pages: u64 = title.split_whitespace().nth(1)?.parse().ok()?;
        s.add(Op::Advise { ofd: 0, off: 0, len: pages * 4096, advice: Advice::WillNeed });
        s.step();
        return Some((s, vec![(0, parse_runs(title)?)]));
    }
    if title.starts_with("FADV_SEQUENTIAL") {
        s.add(Op::Advise { ofd: 0, off: 0, len: 0, advice: Advice::Sequential });
        for line in lines {
            let k: usize = line.split_whitespace().nth(1)?.parse().ok()?;
            seen.push((k, parse_runs(line)?));
        }
        for k in 0..=seen.last()?.0 as u64 {
            s.read(0, k, 1);
            s.step();
        }
        return Some((s, seen));
    }
    if title.starts_with("mmap") {
        for (i, line) in lines.enumerate() {
            let first: u32 = line.split_whitespace().nth(1)?.parse().ok()?;
            s.add(Op::Touch { area: 0, first, count: 1, stride: 1, write: false });
            s.step();
            seen.push((i, parse_runs(line)?));
        }
        return Some((s, seen));
    }
    // "read#K page A..B cached=[...]": reads of B - A + 1 pages, evenly spaced.
    let mut reads: Vec<(u64, u64, u64)> = Vec::new();
    for line in lines {
        let k: u64 = line.split("read#").nth(1)?.split_whitespace().next()?.parse().ok()?;
        let (a, b) = line.split("page ").nth(1)?.split_whitespace().next()?.split_once("..")?;
        reads.push((k, a.parse().ok()?, b.parse().ok()?));
        seen.push((k as usize, parse_runs(line.split("cached=").nth(1)?)?));
    }
    let (&(k0, a0, b0), &(k1, a1, _)) = (reads.first()?, reads.get(1)?);
    let step = (a1 - a0) / (k1 - k0).max(1);
    for k in 0..=reads.last()?.0 {
        s.read(0, a0 + (k - k0) * step, b0 - a0 + 1);
        s.step();
    }
    Some((s, seen))
}

/// Every step's state against what was seen last; the recording may lag one step behind.
fn compare(seen: &Seen, states: &[Vec<(u32, u32)>]) -> Outcome {
    let nothing = Vec::new();
    for (k, state) in states.iter().enumerate() {
        let expected = seen.iter().rev().find(|(at, _)| *at <= k).map_or(&nothing, |(_, runs)| runs);
        let before = k.checked_sub(1).map_or(&nothing, |k| &states[k]);
        if state != expected && before != expected {
            return Err(format!("after step {k} {} are in memory, recorded were {}", show(state), show(expected)));
        }
    }
    Ok(())
}

fn show(runs: &[(u32, u32)]) -> String {
    let runs: Vec<String> = runs.iter().map(|(a, b)| format!("{a}..{b}")).collect();
    format!("pages {}", runs.join(", "))
}
