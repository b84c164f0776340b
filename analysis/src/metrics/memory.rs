//! Memory: extremes over the run (MiB), page cache hits (%), and how often the kernel had to work for free pages (counts).
//!
//! All from the counters: `min_free_kib`, `max_cache_kib`, `max_swpd_kib`, `dirty_max_kib`, `page_hits`, `page_misses`,
//! `evicted_pages`, `direct_reclaim_calls`, `alloc_failures`, `oom_kills`. Hit ratio: hits over hits and misses, counted a page reference.

use super::{Context, Metric};
use crate::cell::CellData;
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;

pub(crate) struct Memory;

pub(crate) struct Facts {
    min_free_mib: Option<f64>,
    max_cache_mib: Option<f64>,
    max_swpd_mib: Option<f64>,
    max_dirty_mib: Option<f64>,
    hit_pct: Option<f64>,
    evicted_pages: Option<i64>,
    direct_reclaim: Option<i64>,
    failures: Option<i64>,
    kills: Option<i64>,
}

impl Metric for Memory {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let kib = |name: &str| cell.counter(name).map(|k| k as f64 / 1024.0);
        let looked = cell.counter("page_hits").zip(cell.counter("page_misses"));
        Ok(Facts {
            min_free_mib: kib("min_free_kib"),
            max_cache_mib: kib("max_cache_kib"),
            max_swpd_mib: kib("max_swpd_kib"),
            max_dirty_mib: kib("dirty_max_kib"),
            hit_pct: looked.filter(|(h, m)| h + m > 0).map(|(h, m)| h as f64 / (h + m) as f64 * 100.0),
            evicted_pages: cell.counter("evicted_pages"),
            direct_reclaim: cell.counter("direct_reclaim_calls"),
            failures: cell.counter("alloc_failures"),
            kills: cell.counter("oom_kills"),
        })
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::number("hit_pct", "cache hits", Unit::Percent, 2).better(Better::Higher),
            Column::number("alloc_failures", "failures", Unit::Count, 0).better(Better::Lower),
            Column::number("oom_kills", "kills", Unit::Count, 0).better(Better::Lower),
        ]
    }

    fn values(&self, f: &Facts) -> Vec<Option<f64>> {
        vec![f.hit_pct, f.failures.map(|v| v as f64), f.kills.map(|v| v as f64)]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let count = |id: &str, title: &str| Column::number(id, title, Unit::Count, 0);
        let mut table = Table::new(
            "memory",
            "Extremes and totals over the run.",
            vec![
                Column::text("variant", "variant"),
                Column::number("min_free_mib", "least free", Unit::Mib, 2),
                Column::number("max_cache_mib", "most cache", Unit::Mib, 1),
                Column::number("max_dirty_mib", "most dirty", Unit::Mib, 1),
                Column::number("max_swpd_mib", "most swapped", Unit::Mib, 1),
                Column::number("hit_pct", "cache hits", Unit::Percent, 2).better(Better::Higher),
                count("evicted_pages", "evicted pages"),
                count("direct_reclaim", "direct reclaims"),
                count("alloc_failures", "failures").better(Better::Lower),
                count("oom_kills", "kills").better(Better::Lower),
            ],
        );
        for (label, f) in context.labelled(facts) {
            table.push(vec![
                Cell::text(label),
                Cell::number(f.min_free_mib),
                Cell::number(f.max_cache_mib),
                Cell::number(f.max_dirty_mib),
                Cell::number(f.max_swpd_mib),
                Cell::number(f.hit_pct),
                Cell::count(f.evicted_pages),
                Cell::count(f.direct_reclaim),
                Cell::count(f.failures),
                Cell::count(f.kills),
            ]);
        }
        table.mark_best(|i| context.finished(i));
        Some(Section {
            id: "memory".to_string(),
            title: "Memory".to_string(),
            lead: "How memory was used and how hard it was to get. Failures and kills are listed with their time under findings.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![
                Definition::new("cache hits", "page references that found their page in memory, of all page references by reads and writes"),
                Definition::new("direct reclaims", "times a task had to free memory itself before it got a page"),
                Definition::new("failures, kills", "allocations that failed, and processes killed for lack of memory"),
            ],
        })
    }
}
