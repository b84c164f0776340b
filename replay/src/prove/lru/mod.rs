//! `prove lru`: every decision of page replacement in the VM event traces of real 2.4 kernels.
//!
//! The engine's own list and reclaim code ([`crate::mm`], [`crate::reclaim`]) is driven with what the trace says went in, and
//! has to decide what the kernel decided. Two ways:
//! - *step by step*: after every decision the lists are put as the kernel had them; each page's marks, age, mapping, dirtiness
//!   and lock are always the model's. Scores: which page is looked at next (order), what becomes of it, what is activated by
//!   an access, how many steps a refill has, what a scan may look at, where calls end and what the next one wants.
//! - *left to itself* ("free run"): nothing is put right; the sequences of pages evicted, activated, deactivated and laundered are
//!   compared by page instance, as matches / max(recorded, modelled), a match being a page whose rank differs by at most 32.
//!
//! # Inputs
//! Pages added (which and to which frame) and deleted without reclaim, reads, writes, faults and unmappings, ends of page
//! I/O (from the block events), that a call happens and by whom, with what it wants and its priority where logged.
//!
//! # Hidden inputs, counted
//! Activations without a logged access (metadata, page-table entries found used), mappings (known from later unmappings), dirty
//! entries (a page unmapped again is taken for dirty). Pages of programs and of metadata, whose uses are not logged, stay on the
//! lists and are not scored.
//!
//! # Bars
//! Order 99.9 %, outcomes 99 %, list lengths exactly; evictions of the free run 99 % on the two-list kernels where nothing is
//! swapped (one different end of an I/O shifts all that follows). Lower ones, with the reason: limits of single traces
//! (`LIMITS`), and what depends on the number of free frames on the kernels with ages (`aging`).

mod aging;
mod events;
mod free;
#[cfg(test)]
mod tests;
mod twolist;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::blocktrace;
use super::scores::{Broken, RunScores, Score, ScoreReport, Tally};
use super::traced::{self, Traced};
use crate::config::{Config, Decay, NewPage, ReadMark, ReclaimConfig, ReclaimPolicy, RefillRule, UseRule};
use crate::mm::Mm;
use crate::mm::page::{List, flag};
use events::{Log, Look, What};
use world::World;

const FILE: &str = "vm_events.csv";
/// Bar of which page is looked at next, percent.
const ORDER: Option<f64> = Some(99.9);
/// Bar of what becomes of it, percent.
const OUTCOME: Option<f64> = Some(99.0);

/// What was fed, and what is hidden.
#[derive(Clone, Debug, Default)]
struct Tallies {
    inputs: BTreeMap<&'static str, u64>,
    hidden: BTreeMap<&'static str, u64>,
}

impl Tallies {
    fn input(&mut self, name: &'static str) {
        *self.inputs.entry(name).or_default() += 1;
    }
    fn hidden(&mut self, name: &'static str) {
        *self.hidden.entry(name).or_default() += 1;
    }
}

/// Rules broken on purpose that no configuration can express.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// New pages go to the other end of their list.
    at_tail: bool,
    /// Refill takes every page for unused.
    unmarked: bool,
}

impl Rules {
    fn misplace(&self, w: &mut World, page: u32) {
        if self.at_tail && w.list(page) == List::Inactive {
            w.at_tail(page, List::Inactive);
        }
    }

    fn forget_mark(&self, mm: &mut Mm, id: u32) {
        if self.unmarked && id != crate::mm::page::NIL {
            mm.clear(id, flag::REFERENCED);
        }
    }
}

/// A score that a trace puts to the test only in part, its bar there, and why.
struct Limit {
    variant: &'static str,
    /// Beginning of the load's name, and of the score's.
    load: &'static str,
    score: &'static str,
    bar_pct: f64,
    why: &'static str,
}

const LIMITS: [Limit; 2] = [
    Limit {
        variant: "linux-2.4.10",
        load: "read512",
        score: "scan outcomes",
        bar_pct: 95.0,
        why: "the inactive list holds little but the reader's page in hand and shared swap pages, whose users are not logged",
    },
    Limit {
        variant: "linux-2.4.10",
        load: "read512",
        score: "call ends",
        bar_pct: 85.0,
        why: "calls end early by pages of metadata, whose marks are not logged",
    },
];

/// Compares every run below `dir` that has VM events.
///
/// # Errors
/// `dir` can't be listed or has no such run.
pub fn run(dir: &Path, stop: &AtomicBool) -> Result<ScoreReport, String> {
    traced::run_all("lru", dir, FILE, stop, compare)
}

fn compare(run: &Traced) -> Result<RunScores, String> {
    let block = blocktrace::events::parse("block_events.csv", &traced::text(&run.folder, "block_events.csv")?)?;
    let events = traced::text(&run.folder, FILE)?;
    let looks = looks(run, &events)?;
    let log = events::parse(FILE, &events, &block, &looks, 1 << run.config.swap_cluster())?;
    let unscored = world::not_scored(&log, &run.config);
    let (scores, tallies) = play(run, &log, &run.config, Rules::default(), &unscored)?;
    let list = |map: BTreeMap<&'static str, u64>| {
        map.into_iter().map(|(n, count)| Tally { name: n.to_owned(), count }).collect()
    };
    let mut scores = RunScores {
        run: run.name.clone(),
        variant: run.variant.clone(),
        scores,
        inputs: list(tallies.inputs),
        hidden: list(tallies.hidden),
        broken: Vec::new(),
    };
    scores.broken = broken(run, &log, &unscored, &scores.scores)?;
    Ok(scores)
}

/// Files that the sampler looks at with mincore(), by inode, with the parameter that says how many MiB of them the load uses.
const SAMPLED_FILES: [(u64, &str); 2] = [(12, "BIG"), (HOT, "HOT")];
/// Inode of the file that the load reads pass after pass.
const HOT: u64 = 18;

/// When the sampler of a run looked, where the kernel's lookup marks pages. Known for loads whose passes over the hot file stand
/// in both logs; their clocks drift apart by a percent, so times in between are interpolated.
fn looks(run: &Traced, events: &str) -> Result<Vec<Look>, String> {
    if run.config.reclaim.policy != ReclaimPolicy::Aging {
        return Ok(Vec::new());
    }
    let serial = traced::text(&run.folder, "serial.log")?;
    let marks: Vec<u64> = serial.lines().filter_map(|l| time_of(l.strip_prefix("@T ")?, "hotpass")).collect();
    let pause_us = run.params.get("PAUSE").and_then(|p| p.parse::<u64>().ok()).unwrap_or(0) * 1000;
    let passes = pass_ends(events, pause_us / 2);
    if marks.len() < 2 || marks.len() != passes.len() {
        return Ok(Vec::new());
    }
    let pairs: Vec<(u64, u64)> = marks.into_iter().zip(passes).collect();
    let files: Vec<(u64, u64)> = SAMPLED_FILES
        .iter()
        .filter_map(|(ino, key)| Some((*ino, run.params.get(*key)?.parse::<u64>().ok()? * 256)))
        .collect();
    let times = serial.lines().filter_map(|l| time_of(l.strip_prefix("@S ")?, ""));
    Ok(times.map(|t| Look { at: translated(t, &pairs), files: files.clone() }).collect())
}

/// The time that a line of the serial log begins with, if `what` follows.
fn time_of(line: &str, what: &str) -> Option<u64> {
    let (time, rest) = line.split_once(' ')?;
    rest.starts_with(what).then(|| time.parse().ok()).flatten()
}

/// Last reads of the hot file before nothing was read of it for longer than `gap_us`; the last of all.
fn pass_ends(events: &str, gap_us: u64) -> Vec<u64> {
    let (hot, mut last, mut ends) = (HOT.to_string(), None, Vec::new());
    for line in events.lines() {
        let mut fields = line.split(',');
        let time = fields.next().and_then(|t| t.parse::<u64>().ok());
        if fields.nth(1) != Some("read_access") || fields.next() != Some(&hot) {
            continue;
        }
        let Some(time) = time else { continue };
        ends.extend(last.filter(|l| time - l > gap_us));
        last = Some(time);
    }
    ends.extend(last);
    ends
}

/// A time of one clock in the other's, along the line through the two pairs around it (or the two at that end).
fn translated(time: u64, pairs: &[(u64, u64)]) -> u64 {
    let i = pairs.partition_point(|(t, _)| *t <= time).clamp(1, pairs.len() - 1);
    let ((a, x), (b, y)) = (pairs[i - 1], pairs[i]);
    let slope = (y - x) as f64 / (b - a).max(1) as f64;
    (x as f64 + (time as f64 - a as f64) * slope).max(0.0) as u64
}

/// Both ways of playing.
fn play(
    run: &Traced,
    log: &Log,
    config: &Config,
    rules: Rules,
    unscored: &[bool],
) -> Result<(Vec<Score>, Tallies), String> {
    let swaps = log.events.iter().any(|e| e.what == What::WritepageLaunder);
    let (mut scores, tallies) = match config.reclaim.policy {
        ReclaimPolicy::Aging => aging::Player::new(log, config, &rules, unscored).step(),
        ReclaimPolicy::TwoList => {
            let (mut scores, tallies) = twolist::Player::new(log, config, &rules, unscored).step();
            let free = twolist::Player::new(log, config, &rules, unscored).free();
            scores.extend(free.scores((!swaps).then_some(99.0)));
            (scores, tallies)
        }
        ReclaimPolicy::Clock | ReclaimPolicy::Workingset | ReclaimPolicy::Generations => {
            return Err(format!("variant {} keeps no lists that these traces show", run.variant));
        }
    };
    for s in &mut scores {
        let limit =
            |l: &&Limit| run.variant == l.variant && run.load.starts_with(l.load) && s.name.starts_with(l.score);
        if let Some(l) = LIMITS.iter().find(limit) {
            s.bar_pct = Some(l.bar_pct);
            s.note = Some(l.why.to_owned());
        }
        if swaps && s.name == "free run: evict, rank within 32" {
            s.note = Some("this run swaps: one different end of an I/O shifts all that follows".to_owned());
        }
    }
    Ok((scores, tallies))
}

/// The rules broken one at a time. One whose breaking changes no decision is not put to the test by this run, and left out.
fn broken(run: &Traced, log: &Log, unscored: &[bool], intact: &[Score]) -> Result<Vec<Broken>, String> {
    let mut broken = Vec::new();
    // Without reclaim no rule is put to the test.
    if !log.events.iter().any(|e| e.what == What::Evict) {
        return Ok(broken);
    }
    let mut with = |rule: &str, config: &Config, rules: Rules| -> Result<(), String> {
        let (scores, _) = play(run, log, config, rules, unscored)?;
        if scores == intact {
            return Ok(());
        }
        let scores = RunScores {
            run: String::new(),
            variant: String::new(),
            scores,
            inputs: Vec::new(),
            hidden: Vec::new(),
            broken: Vec::new(),
        };
        broken.extend(scores.worst(rule));
        Ok(())
    };
    let plain = Rules::default();
    let (new_pages, marks) = match run.config.reclaim.policy {
        ReclaimPolicy::Aging => ("new pages at the dirty list's tail", "aging takes all pages for unused"),
        _ => ("new pages at the inactive list's tail", "refill takes all pages for unused"),
    };
    with(new_pages, &run.config, Rules { at_tail: true, ..plain })?;
    with(marks, &run.config, Rules { unmarked: true, ..plain })?;
    for (name, change) in changes(&run.config.reclaim) {
        let mut c = run.config.clone();
        change(&mut c.reclaim);
        with(name, &c, plain)?;
    }
    Ok(broken)
}

/// A rule's name as broken, and how to break it.
type Change = (&'static str, fn(&mut ReclaimConfig));

fn changes(r: &ReclaimConfig) -> Vec<Change> {
    if r.policy == ReclaimPolicy::Aging {
        let all: [Change; 4] = [
            ("new pages on the active list", |r| r.aging.new_page = NewPage::Active),
            ("one use does not count (no use-once)", |r| r.aging.use_rule = UseRule::LookupOnly),
            ("ages fall by one", |r| r.aging.decay = Decay::One),
            ("no zone has plenty", |r| r.aging.zone_plenty = false),
        ];
        return all.to_vec();
    }
    let scan: Change = match r.scan_clears_referenced {
        true => ("the scan ignores references", |r| r.scan_clears_referenced = false),
        false => ("the scan spares referenced pages", |r| r.scan_clears_referenced = true),
    };
    let reads: Change = match r.read_mark {
        ReadMark::EveryCopy => ("only a page's first copy marks it", |r| r.read_mark = ReadMark::Once),
        ReadMark::Once => ("every copy marks its page (no use-once)", |r| r.read_mark = ReadMark::EveryCopy),
    };
    let refill: Change = match r.refill {
        RefillRule::WhenShort => ("refill in proportion", |r| r.refill = RefillRule::Proportional),
        _ => ("refill by what is wanted", |r| r.refill = RefillRule::WhenShort),
    };
    vec![scan, reads, refill]
}
