//! The page cache: hits and misses, pages read again after they had been thrown out, what happened to the hot set, and
//! the miss-ratio curve of the recorded references.
//!
//! Hits, misses, read-ahead and evictions are counters. *Read again* (refaults): pages of data and read-ahead requests whose
//! sectors the run had transferred before, in MiB and as a share of all data read (%); their *age* is the time from the end
//! of the earlier transfer to the queueing of the later one (s): the page was thrown out somewhere in between, so the age
//! bounds its life in the cache from above. *Once*: share of all
//! pages that only one call referenced. *Rightly evicted*, *use-once success* and *hot set survival* follow each page through its
//! stays in memory, from the calls and the rows of `evictions`: [`crate::stays`]. The curve: [`crate::mrc`], over the 4 KiB pages of
//! `read`, `write` and `touch` calls with a file and a place.

use super::{Context, Metric};
use crate::cell::{CellData, mib, seconds};
use crate::error::Result;
use crate::model::{Axis, Better, Block, Cell, Column, Definition, Join, Line, Plane, Section, Table, Unit};
use crate::mrc::{self, Curve, spread};
use crate::recorded::Recorded;
use crate::stats::quantile;
use crate::stays::{Stays, has_place, stays};
use crate::tables::Calls;
use rustc_hash::FxHashMap;

const PAGE: i64 = 4096;
const SECTORS_PER_PAGE: i64 = 8;
/// Pages of disk traffic that are followed; of more a sample by page.
const FOLLOWED: u64 = 4_000_000;
/// Sizes at which the curve is drawn.
const SIZES: usize = 60;

pub(crate) struct Cache;

pub(crate) struct Facts {
    hits: Option<i64>,
    misses: Option<i64>,
    readahead: Option<i64>,
    evicted: Option<i64>,
    max_cache_mib: Option<f64>,
    again: Again,
    stays: Option<Stays>,
    once_pct: Option<f64>,
    curve: Option<Curve>,
}

impl Facts {
    fn miss_pct(&self) -> Option<f64> {
        let (h, m) = self.hits.zip(self.misses)?;
        (h + m > 0).then(|| m as f64 / (h + m) as f64 * 100.0)
    }

    fn of_stays(&self, figure: impl Fn(&Stays) -> Option<f64>) -> Cell {
        Cell::number(self.stays.as_ref().and_then(figure))
    }
}

/// Pages that were read from the disk again.
#[derive(Default)]
struct Again {
    mib: f64,
    pct: Option<f64>,
    ages_ns: Vec<i64>,
}

impl Metric for Cache {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let calls = cell.calls()?;
        let order = referencing(calls);
        let evictions = cell.evictions()?;
        let count = order.iter().map(|i| pages(calls, *i).count() as u64).sum();
        let curve = mrc::curve(count, SIZES, |touch| {
            for &i in &order {
                pages(calls, i).for_each(&mut *touch);
            }
        });
        Ok(Facts {
            hits: cell.counter("page_hits"),
            misses: cell.counter("page_misses"),
            readahead: cell.counter("readahead_pages"),
            evicted: cell.counter("evicted_pages"),
            max_cache_mib: cell.counter("max_cache_kib").map(|k| k as f64 / 1024.0),
            again: read_again(cell)?,
            stays: evictions.map(|e| stays(calls, &order, &e)),
            once_pct: once_pct(calls, &order),
            curve,
        })
    }

    fn columns(&self) -> Vec<Column> {
        vec![Column::number("refault_mib", "read again", Unit::Mib, 1).better(Better::Lower)]
    }

    fn values(&self, f: &Facts) -> Vec<Option<f64>> {
        vec![Some(f.again.mib)]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if facts.iter().all(|f| f.miss_pct().is_none() && f.curve.is_none()) {
            return None;
        }
        let mut blocks = vec![Block::Table(table(context, facts))];
        blocks.extend(curve(context, facts).map(Block::Plane));
        Some(Section {
            id: "cache".to_string(),
            title: "The page cache".to_string(),
            lead: "What memory saved, and what it failed to keep. Data read again had been in memory and was thrown out too early, unless nobody could have kept it: the curve shows how large an LRU cache would have had to be.".to_string(),
            blocks,
            definitions: vec![
                Definition::new("misses", "page references by reads and writes that did not find their page in memory, of all"),
                Definition::new("read again", "data (read-ahead included) that the disk delivered although the run had read or written the same sectors before: refaults"),
                Definition::new("age", "time from the end of the earlier transfer to the request for the later one, median; the page was in memory for less than that"),
                Definition::new("rightly evicted", "of the pages of files that were thrown out, those that no later call used"),
                Definition::new("out after one use", "of the pages of files that were thrown out, those that at most one call had used since they came in: what the kernel should take first"),
                Definition::new("use-once success", "of these, those that no later call used: throwing them out was right"),
                Definition::new("hot set survival", "of the stays in memory in which two calls or more used a page, those that did not end before the page's last use"),
                Definition::new("once", "of all different pages, those that only one call used: more than this cannot be thrown out for good"),
                Definition::new("miss-ratio curve", "misses of an LRU cache of whole pages without read-ahead, for every size from one pass over the references (Mattson's stack distances; of more than 3 million references a sample by page, SHARDS)"),
            ],
        })
    }
}

/// Calls with pages, in the order of their start.
fn referencing(calls: &Calls) -> Vec<usize> {
    let counts: Vec<bool> =
        calls.ops.iter().map(|o| matches!(o.as_str(), "read" | "write" | "touch" | "recv-write")).collect();
    let mut order: Vec<usize> =
        (0..calls.count()).filter(|i| counts[usize::from(calls.op[*i])] && has_place(calls, *i)).collect();
    order.sort_by_key(|i| (calls.start_ns[*i], *i));
    order
}

/// The pages of a call: the file in the upper half.
fn pages(calls: &Calls, i: usize) -> impl Iterator<Item = u64> {
    let (from, len) = (calls.offset[i].max(0), calls.len[i]);
    let (first, last) = (from / PAGE, from.saturating_add(len - 1) / PAGE);
    let file = u64::from(calls.file[i]) << 40;
    (first..=last).map(move |p| file | (p as u64 & ((1 << 40) - 1)))
}

/// Share of the different pages that one call used.
fn once_pct(calls: &Calls, order: &[usize]) -> Option<f64> {
    let mut uses: FxHashMap<u64, u32> = FxHashMap::default();
    for &i in order {
        pages(calls, i).for_each(|page| *uses.entry(page).or_insert(0) += 1);
    }
    let once = uses.values().filter(|c| **c == 1).count();
    (!uses.is_empty()).then(|| once as f64 / uses.len() as f64 * 100.0)
}

fn read_again(cell: &CellData) -> Result<Again> {
    let r = cell.requests()?;
    let data: Vec<bool> = r.kinds.iter().map(|k| matches!(k.as_str(), "data" | "readahead")).collect();
    let all: u64 = r.len_bytes.iter().map(|b| (*b / PAGE) as u64 + 1).sum();
    let limit = if all > FOLLOWED { (u64::MAX as f64 * FOLLOWED as f64 / all as f64) as u64 } else { u64::MAX };
    let mut last: FxHashMap<u64, i64> = FxHashMap::default();
    let (mut again, mut read) = (0u64, 0u64);
    let mut ages_ns = Vec::new();
    for i in 0..r.count() {
        let first = r.sector_512[i].max(0) / SECTORS_PER_PAGE;
        let end = (r.sector_512[i].max(0) + r.len_bytes[i] / 512 + SECTORS_PER_PAGE - 1) / SECTORS_PER_PAGE;
        let of_data = data[r.kind[i] as usize];
        for page in first..end {
            let page = (u64::from(r.dev[i]) << 52) | page as u64;
            if limit < u64::MAX && spread(page) >= limit {
                continue;
            }
            let before = last.insert(page, r.c_ns[i]);
            if r.read[i] && of_data {
                read += 1;
                if let Some(before) = before {
                    again += 1;
                    ages_ns.push(r.q_ns[i].saturating_sub(before).max(0));
                }
            }
        }
    }
    ages_ns.sort_unstable();
    let rate = if limit < u64::MAX { limit as f64 / u64::MAX as f64 } else { 1.0 };
    Ok(Again {
        mib: mib(again as i64 * PAGE) / rate,
        pct: (read > 0).then(|| again as f64 / read as f64 * 100.0),
        ages_ns,
    })
}

fn table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let count = |id: &str, title: &str| Column::number(id, title, Unit::Count, 0);
    let pct = |id: &str, title: &str| Column::number(id, title, Unit::Percent, 2);
    let mut table = Table::new(
        "cache",
        "What the cache found and lost.",
        vec![
            Column::text("variant", "variant"),
            count("page_hits", "hits"),
            count("page_misses", "misses"),
            pct("miss_pct", "misses").better(Better::Lower),
            count("readahead_pages", "read ahead"),
            count("evicted_pages", "evicted"),
            Column::number("refault_mib", "read again", Unit::Mib, 1).better(Better::Lower),
            pct("refault_pct", "of data read"),
            Column::number("age_p50_s", "age", Unit::Seconds, 2),
            pct("well_evicted_pct", "rightly evicted").better(Better::Higher),
            pct("once_evicted_pct", "out after one use"),
            pct("use_once_pct", "use-once success").better(Better::Higher),
            pct("survival_pct", "hot set survival").better(Better::Higher),
            pct("once_pct", "once"),
        ],
    );
    for (label, f) in context.labelled(facts) {
        table.push(vec![
            Cell::text(label),
            Cell::count(f.hits),
            Cell::count(f.misses),
            Cell::number(f.miss_pct()),
            Cell::count(f.readahead),
            Cell::count(f.evicted),
            Cell::number(f.again.mib),
            Cell::number(f.again.pct),
            Cell::number(quantile(&f.again.ages_ns, 0.5).map(seconds)),
            f.of_stays(Stays::well_evicted_pct),
            f.of_stays(Stays::once_pct),
            f.of_stays(Stays::use_once_pct),
            f.of_stays(Stays::survival_pct),
            Cell::number(f.once_pct),
        ]);
    }
    table.mark_best(|i| context.finished(i));
    table
}

/// The curve of the first variant that has one, and where each variant's run lies.
fn curve(context: &Context<'_>, facts: &[Facts]) -> Option<Plane> {
    let found = facts.iter().find_map(|f| f.curve.as_ref()).filter(|c| c.points.len() > 1)?;
    let size = |pages: u64| mib(pages as i64 * PAGE);
    let mut lines: Vec<Line> = context
        .labelled(facts)
        // A variant that does not say keeps its place, so that it has the same colour in all drawings.
        .map(|(label, f)| {
            let at = f.max_cache_mib.filter(|m| *m > 0.0).zip(f.miss_pct());
            let points = at.into_iter().collect();
            Line { label: label.to_string(), group: label.to_string(), join: Join::Marks, points }
        })
        .collect();
    lines.push(Line {
        label: "LRU".to_string(),
        group: "LRU".to_string(),
        join: Join::Straight,
        points: found.points.iter().map(|(pages, ratio)| (size(*pages), ratio * 100.0)).collect(),
    });
    let sampled = if found.sampled < 1.0 {
        format!(" From a sample of {:.1} % of the pages (SHARDS).", found.sampled * 100.0)
    } else {
        String::new()
    };
    Some(Plane {
        id: "miss-ratio".to_string(),
        label: String::new(),
        caption: format!(
            "Misses of an LRU cache of each size on the {} page references of the load ({:.1} MiB of different pages, of which each must be missed once). Dots: the most cache that a variant held, and its own misses; below the line is better than LRU (read-ahead helps), above it is worse.{sampled}",
            found.references,
            size(found.pages)
        ),
        x: Axis::log("cache size", Unit::Mib),
        y: Axis::linear("misses", Unit::Percent),
        lines,
        thinned_from: None,
    })
}
