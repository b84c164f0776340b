//! The page cache: hits and misses, pages read again after they had been thrown out, what happened to the hot set, and
//! the miss-ratio curve of the recorded references.
//!
//! Hits, misses, read-ahead and evictions are counters. *Read again* (refaults): pages of data and read-ahead requests whose
//! sectors the run had transferred before, in MiB and as a share of all data read (%); their *age* is the time from the end
//! of the earlier transfer to the queueing of the later one (s): the page was thrown out somewhere in between, so the age
//! bounds its life in the cache from above. *Hot* references: those to a page that earlier calls had referenced at least
//! [`HOT`] times; kept: share of calls on hot pages only that did not wait for a data read (`t_read_ns` = 0). *Once*: share of all
//! pages that only one call referenced. *Use-once success*: of the pages in memory that were thrown out, those never wanted
//! back, as far as transfers show it: 1 - read again / evicted (%; a page evicted twice counts twice). The curve: [`crate::mrc`], over the 4 KiB pages of `read`, `write` and `touch` calls with a file and a place.

use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, mib, seconds};
use crate::error::Result;
use crate::model::{Axis, Better, Block, Cell, Column, Definition, Join, Line, Plane, Section, Table, Unit};
use crate::mrc::{self, Curve, spread};
use crate::recorded::Recorded;
use crate::stats::quantile;
use crate::tables::{Calls, NONE};
use rustc_hash::FxHashMap;

const PAGE: i64 = 4096;
const SECTORS_PER_PAGE: i64 = 8;
/// Earlier references that make a page hot.
const HOT: u32 = 2;
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
    hot_refs: u64,
    hot_kept: u64,
    once_pct: Option<f64>,
    curve: Option<Curve>,
}

impl Facts {
    fn miss_pct(&self) -> Option<f64> {
        let (h, m) = self.hits.zip(self.misses)?;
        (h + m > 0).then(|| m as f64 / (h + m) as f64 * 100.0)
    }

    /// Of the pages thrown out, those that were never wanted back.
    fn well_evicted_pct(&self) -> Option<f64> {
        let evicted = self.evicted.filter(|e| *e > 0)? as f64;
        let again = self.again.mib * f64::from(1 << 20) / PAGE as f64;
        Some((1.0 - again / evicted).clamp(0.0, 1.0) * 100.0)
    }

    fn kept_pct(&self) -> Option<f64> {
        (self.hot_refs > 0).then(|| self.hot_kept as f64 / self.hot_refs as f64 * 100.0)
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
        let (hot_refs, hot_kept, once_pct) = hot_set(calls, &order);
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
            hot_refs,
            hot_kept,
            once_pct,
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
                Definition::new("rightly evicted", "evicted pages that were not read again, of all evicted pages: the success of throwing out what is used once"),
                Definition::new("hot kept", "of calls whose pages had all been referenced at least twice before, those that did not wait for a data read"),
                Definition::new("once", "pages that only one call referenced, of all pages: what use-once protection may throw out first"),
                Definition::new("miss-ratio curve", "misses of an LRU cache of whole pages without read-ahead, for every size from one pass over the references (Mattson's stack distances; of more than 3 million references a sample by page, SHARDS)"),
            ],
        })
    }
}

/// Calls with pages, in the order of their start.
fn referencing(calls: &Calls) -> Vec<usize> {
    let counts: Vec<bool> =
        calls.ops.iter().map(|o| matches!(o.as_str(), "read" | "write" | "touch" | "recv-write")).collect();
    let mut order: Vec<usize> = (0..calls.count())
        .filter(|i| counts[usize::from(calls.op[*i])] && calls.len[*i] > 0 && calls.offset[*i] != NONE)
        .filter(|i| !calls.file_of(*i).is_empty())
        .collect();
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

/// Calls on hot pages, those of them that did not wait for the disk, and the share of pages that one call used.
fn hot_set(calls: &Calls, order: &[usize]) -> (u64, u64, Option<f64>) {
    let read = CAUSES.iter().position(|c| *c == "t_read_ns").unwrap_or(0);
    let mut uses: FxHashMap<u64, u32> = FxHashMap::default();
    let (mut hot, mut kept) = (0, 0);
    for &i in order {
        let mut all_hot = true;
        for page in pages(calls, i) {
            let count = uses.entry(page).or_insert(0);
            all_hot &= *count >= HOT;
            *count += 1;
        }
        if all_hot {
            hot += 1;
            kept += u64::from(calls.waits_of(i).iter().all(|w| usize::from(w.cause) != read));
        }
    }
    let once = uses.values().filter(|c| **c == 1).count();
    (hot, kept, (!uses.is_empty()).then(|| once as f64 / uses.len() as f64 * 100.0))
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
            pct("hot_kept_pct", "hot kept").better(Better::Higher),
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
            Cell::number(f.well_evicted_pct()),
            Cell::number(f.kept_pct()),
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
