//! Traffic of disk and swap: volumes (MiB), requests, merges, seeks (counts) and how busy the disk was (%).
//!
//! Volumes come from the counters `disk_read_bytes`, `disk_write_bytes`, `swap_in_pages`, `swap_out_pages` (a page is 4 KiB);
//! swap is part of the disk volumes. Mean size: disk bytes of a direction over its requests (KiB). `seeks`: requests that did
//! not begin where the one before ended. `busy`: `device_busy_ns` over `elapsed_ns`.

use super::{Context, Metric};
use crate::cell::{CellData, mib};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;

/// Bytes of a page on the machines that are modelled.
const PAGE_BYTES: i64 = 4096;

pub(crate) struct Traffic;

pub(crate) struct Facts {
    read_mib: Option<f64>,
    written_mib: Option<f64>,
    swap_in_mib: Option<f64>,
    swap_out_mib: Option<f64>,
    read_requests: Option<i64>,
    write_requests: Option<i64>,
    read_merges: Option<i64>,
    write_merges: Option<i64>,
    seeks: Option<i64>,
    sequential: Option<i64>,
    busy_pct: Option<f64>,
    most_passed: Option<i64>,
    kinds: Vec<(String, i64, Vec<i64>)>,
}

impl Metric for Traffic {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let volume = |name: &str| cell.counter(name).map(mib);
        let pages = |name: &str| cell.counter(name).map(|p| mib(p.saturating_mul(PAGE_BYTES)));
        let frame = cell.table("io", &["kind", "len_bytes", "passed"])?;
        let busy = cell.counter("device_busy_ns").zip(cell.counter("elapsed_ns").filter(|e| *e > 0));
        Ok(Facts {
            read_mib: volume("disk_read_bytes"),
            written_mib: volume("disk_write_bytes"),
            swap_in_mib: pages("swap_in_pages"),
            swap_out_mib: pages("swap_out_pages"),
            read_requests: cell.counter("read_requests"),
            write_requests: cell.counter("write_requests"),
            read_merges: cell.counter("read_merges"),
            write_merges: cell.counter("write_merges"),
            seeks: cell.counter("seeks"),
            sequential: cell.counter("sequential_requests"),
            busy_pct: busy.map(|(b, e)| b as f64 / e as f64 * 100.0),
            most_passed: frame.ints("passed")?.into_iter().flatten().max(),
            kinds: frame.sums_by("kind", &["len_bytes"])?,
        })
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::number("disk_read_mib", "disk read", Unit::Mib, 1).better(Better::Lower),
            Column::number("disk_written_mib", "disk written", Unit::Mib, 1).better(Better::Lower),
            Column::number("swap_in_mib", "swap in", Unit::Mib, 1).better(Better::Lower),
            Column::number("swap_out_mib", "swap out", Unit::Mib, 1).better(Better::Lower),
            Column::number("seeks", "seeks", Unit::Count, 0).better(Better::Lower),
        ]
    }

    fn values(&self, f: &Facts) -> Vec<Option<f64>> {
        vec![f.read_mib, f.written_mib, f.swap_in_mib, f.swap_out_mib, f.seeks.map(|s| s as f64)]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        Some(Section {
            id: "traffic".to_string(),
            title: "Disk and swap traffic".to_string(),
            lead: "What reached the disk. More traffic than the tasks asked for means pages were thrown out and read again, or swapped; more seeks per MiB means that the order of requests was bad.".to_string(),
            blocks: vec![
                Block::Table(volumes(context, facts)),
                Block::Table(requests(context, facts)),
                Block::Table(kinds(context, facts)),
            ],
            definitions: vec![
                Definition::new("merges", "pieces of I/O that were joined to a request already waiting"),
                Definition::new("seek", "a request that does not begin where the one before it ended"),
                Definition::new("most passed", "the largest number of requests given to the disk while one request waited"),
                Definition::new("busy", "share of the elapsed time in which the disk had a request"),
            ],
        })
    }
}

fn volumes(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "traffic-volumes",
        "Volumes. Swap is included in what the disk read and wrote; a page is 4 KiB.",
        vec![
            Column::text("variant", "variant"),
            Column::number("disk_read_mib", "disk read", Unit::Mib, 1).better(Better::Lower),
            Column::number("disk_written_mib", "disk written", Unit::Mib, 1).better(Better::Lower),
            Column::number("swap_in_mib", "swap in", Unit::Mib, 1).better(Better::Lower),
            Column::number("swap_out_mib", "swap out", Unit::Mib, 1).better(Better::Lower),
            Column::number("busy_pct", "disk busy", Unit::Percent, 1),
        ],
    );
    for (label, f) in context.labelled(facts) {
        table.push(vec![
            Cell::text(label),
            Cell::number(f.read_mib),
            Cell::number(f.written_mib),
            Cell::number(f.swap_in_mib),
            Cell::number(f.swap_out_mib),
            Cell::number(f.busy_pct),
        ]);
    }
    table.mark_best(|i| context.finished(i));
    table
}

fn requests(context: &Context<'_>, facts: &[Facts]) -> Table {
    let count = |id: &str, title: &str| Column::number(id, title, Unit::Count, 0);
    let mut table = Table::new(
        "traffic-requests",
        "Requests, after merging.",
        vec![
            Column::text("variant", "variant"),
            count("read_requests", "reads"),
            Column::number("mean_read_kib", "mean read", Unit::Kib, 1),
            count("read_merges", "read merges"),
            count("write_requests", "writes"),
            Column::number("mean_write_kib", "mean write", Unit::Kib, 1),
            count("write_merges", "write merges"),
            count("seeks", "seeks"),
            count("sequential", "sequential"),
            count("most_passed", "most passed"),
        ],
    );
    let mean_kib = |volume: Option<f64>, requests: Option<i64>| {
        volume.zip(requests.filter(|r| *r > 0)).map(|(v, r)| v * 1024.0 / r as f64)
    };
    for (label, f) in context.labelled(facts) {
        table.push(vec![
            Cell::text(label),
            Cell::count(f.read_requests),
            Cell::number(mean_kib(f.read_mib, f.read_requests)),
            Cell::count(f.read_merges),
            Cell::count(f.write_requests),
            Cell::number(mean_kib(f.written_mib, f.write_requests)),
            Cell::count(f.write_merges),
            Cell::count(f.seeks),
            Cell::count(f.sequential),
            Cell::count(f.most_passed),
        ]);
    }
    table
}

fn kinds(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut names: Vec<&str> = facts.iter().flat_map(|f| f.kinds.iter().map(|(k, _, _)| k.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let mut columns = vec![Column::text("variant", "variant")];
    for (i, name) in names.iter().enumerate() {
        columns.push(Column::number(&format!("kind{i}_requests"), &format!("{name}, requests"), Unit::Count, 0));
        columns.push(Column::number(&format!("kind{i}_mib"), name, Unit::Mib, 1));
    }
    let mut table = Table::new("traffic-kinds", "What the requests were for.", columns);
    for (label, f) in context.labelled(facts) {
        let mut cells = vec![Cell::text(label)];
        for name in &names {
            let kind = f.kinds.iter().find(|(k, _, _)| k == name);
            cells.push(Cell::count(kind.map_or(0, |k| k.1)));
            cells.push(Cell::number(mib(kind.map_or(0, |k| k.2[0]))));
        }
        table.push(cells);
    }
    table
}
