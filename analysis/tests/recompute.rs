//! The figures of one report computed anew from the Parquet files beside it, by an independent slow path: plain arrow reading,
//! loops over rows, no polars and none of the crate's own statistics. Every column of the matrix must be covered.

use arrow::array::{Array, BooleanArray, Int64Array, StringArray};
use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::model::{Block, Report, Table, Value};
use kreplay_analysis::{Options, analyse};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// A table as rows of named cells.
#[derive(Debug, Default)]
struct Rows {
    ints: BTreeMap<String, Vec<Option<i64>>>,
    texts: BTreeMap<String, Vec<Option<String>>>,
    bools: BTreeMap<String, Vec<bool>>,
}

impl Rows {
    fn read(dir: &Path, name: &str) -> Rows {
        let file = File::open(dir.join(format!("{name}.parquet"))).unwrap();
        let mut rows = Rows::default();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let name = field.name().clone();
                if let Some(c) = column.as_any().downcast_ref::<Int64Array>() {
                    rows.ints.entry(name).or_default().extend(c.iter());
                } else if let Some(c) = column.as_any().downcast_ref::<StringArray>() {
                    rows.texts.entry(name).or_default().extend(c.iter().map(|t| t.map(str::to_string)));
                } else if let Some(c) = column.as_any().downcast_ref::<BooleanArray>() {
                    rows.bools.entry(name).or_default().extend(c.iter().map(|b| b.unwrap_or(false)));
                } else {
                    panic!("{name}: {:?}", column.data_type());
                }
            }
        }
        rows
    }

    fn int(&self, column: &str, row: usize) -> i64 {
        self.ints[column][row].unwrap()
    }

    fn text(&self, column: &str, row: usize) -> &str {
        self.texts[column][row].as_deref().unwrap_or("")
    }

    fn len(&self) -> usize {
        self.ints.values().next().map_or(0, Vec::len)
    }
}

/// The tables of one cell.
struct Cell {
    calls: Rows,
    io: Rows,
    clients: Rows,
    counters: Rows,
}

impl Cell {
    fn counter(&self, name: &str) -> f64 {
        let row = (0..self.counters.len()).find(|r| self.counters.text("name", *r) == name).unwrap();
        self.counters.int("value", row) as f64
    }

    fn foreground(&self) -> Vec<usize> {
        (0..self.clients.len()).filter(|r| !self.clients.bools["background"][*r]).collect()
    }
}

/// Smallest value that at least the share `q` of all values do not exceed: the definition, taken literally.
fn rank(values: &[i64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort();
    *sorted.iter().find(|v| sorted.iter().filter(|w| w <= v).count() as f64 >= q * sorted.len() as f64 - 1e-9).unwrap()
        as f64
}

fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|v| v * v).sum::<f64>())
}

fn slow(cell: &Cell, figure: &str) -> f64 {
    let fore = cell.foreground();
    let end = |r: &usize| cell.clients.int("end_ns", *r) as f64 / 1e9;
    let moved = |r: &usize| (cell.clients.int("bytes_read", *r) + cell.clients.int("bytes_written", *r)) as f64;
    let ends: Vec<f64> = fore.iter().map(end).collect();
    let begin = fore.iter().map(|r| cell.clients.int("start_ns", *r) as f64 / 1e9).fold(f64::MAX, f64::min);
    let ends: Vec<f64> = ends.iter().map(|e| e - begin).collect();
    let (first, last) = (ends.iter().copied().fold(f64::MAX, f64::min), ends.iter().copied().fold(0.0, f64::max));
    let of = |op: &str| -> Vec<i64> {
        (0..cell.calls.len()).filter(|r| cell.calls.text("op", *r) == op).map(|r| cell.calls.int("dur_ns", r)).collect()
    };
    const MIB: f64 = 1048576.0;
    match figure {
        "elapsed_s" => last,
        "throughput_mib_s" => fore.iter().map(moved).sum::<f64>() / MIB / last,
        "first_finish_s" => first,
        "last_finish_s" => last,
        "last_over_first" => last / first,
        "jain" => jain(
            &fore
                .iter()
                .map(|r| moved(r) / (end(r) - cell.clients.int("start_ns", *r) as f64 / 1e9))
                .collect::<Vec<_>>(),
        ),
        "jain_window" => windows(cell, &fore, first + begin),
        "read_p99_ms" => rank(&of("read"), 0.99) / 1e6,
        "read_p999_ms" => rank(&of("read"), 0.999) / 1e6,
        "write_p99_ms" => rank(&of("write"), 0.99) / 1e6,
        "write_p999_ms" => rank(&of("write"), 0.999) / 1e6,
        "longest_wait_s" => {
            let waits = ["runq", "pagelock", "inode", "read", "meta", "slot", "throttle", "reclaim", "swapin", "sync"];
            let wait = |r: usize| waits.iter().map(|w| cell.calls.int(&format!("t_{w}_ns"), r)).sum::<i64>();
            (0..cell.calls.len()).map(wait).max().unwrap() as f64 / 1e9
        }
        "disk_read_mib" => cell.counter("disk_read_bytes") / MIB,
        "disk_written_mib" => cell.counter("disk_write_bytes") / MIB,
        "swap_in_mib" => cell.counter("swap_in_pages") * 4096.0 / MIB,
        "swap_out_mib" => cell.counter("swap_out_pages") * 4096.0 / MIB,
        "seeks" => cell.counter("seeks"),
        "hit_pct" => 100.0 * cell.counter("page_hits") / (cell.counter("page_hits") + cell.counter("page_misses")),
        "alloc_failures" => cell.counter("alloc_failures"),
        "oom_kills" => cell.counter("oom_kills"),
        "refault_mib" => again(cell) * 4096.0 / MIB,
        other => panic!("the figure {other} is not computed anew here: add it"),
    }
}

fn windows(cell: &Cell, fore: &[usize], first: f64) -> f64 {
    let mut indices = Vec::new();
    for window in 0..20 {
        let (from, to) = (first * window as f64 / 20.0, first * (window + 1) as f64 / 20.0);
        let mut sums = vec![0.0; fore.len()];
        for r in 0..cell.calls.len() {
            let end = (cell.calls.int("start_ns", r) + cell.calls.int("dur_ns", r)) as f64 / 1e9;
            let inside = end >= from && (end < to || (window == 19 && end <= first));
            let client = fore.iter().position(|f| cell.clients.int("task", *f) == cell.calls.int("task", r));
            if let (true, Some(client), "read" | "write") = (inside, client, cell.calls.text("op", r)) {
                sums[client] += cell.calls.ints["len_bytes"][r].unwrap_or(0) as f64;
            }
        }
        if sums.iter().any(|s| *s > 0.0) {
            indices.push(jain(&sums));
        }
    }
    indices.iter().sum::<f64>() / indices.len() as f64
}

/// Pages of data reads that an earlier request had transferred.
fn again(cell: &Cell) -> f64 {
    let (mut seen, mut count) = (BTreeSet::new(), 0);
    for r in 0..cell.io.len() {
        let first = cell.io.int("sector_512", r) / 8;
        let end = (cell.io.int("sector_512", r) + cell.io.int("len_bytes", r) / 512 + 7) / 8;
        for page in first..end {
            let known = !seen.insert(page);
            let data = matches!(cell.io.text("kind", r), "data" | "readahead") && cell.io.text("dir", r) == "R";
            count += usize::from(known && data);
        }
    }
    count as f64
}

fn table<'a>(report: &'a Report, id: &str) -> &'a Table {
    let blocks = report.traces[0].sections.iter().flat_map(|s| &s.blocks);
    blocks.filter_map(|b| if let Block::Table(t) = b { Some(t) } else { None }).find(|t| t.id == id).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9)
}

#[test]
fn every_figure_of_the_matrix_follows_from_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec::default()).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let matrix = &report.traces[0].matrix;
    assert!(matrix.columns.len() > 18, "{}", matrix.columns.len());
    for (row, path) in matrix.rows.iter().zip(&written.cells) {
        let read = |name: &str| Rows::read(path, name);
        let cell = Cell { calls: read("calls"), io: read("io"), clients: read("clients"), counters: read("counters") };
        for (column, shown) in matrix.columns.iter().zip(&row.cells).skip(1) {
            let Some(shown) = shown.as_number() else { panic!("{} has no value", column.id) };
            let computed = slow(&cell, &column.id);
            assert!(
                close(shown, computed),
                "{} of {:?}: the report says {shown}, the tables {computed}",
                column.id,
                row.cells[0].value
            );
        }
    }
}

#[test]
fn phases_depth_and_seeks_follow_from_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec::default()).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let names: Vec<Value> = report.traces[0].matrix.rows.iter().map(|r| r.cells[0].value.clone()).collect();
    let cell_of = |id: &str, name: &Value, kind: Option<&str>, column: &str| {
        let t = table(&report, id);
        let at = |c: &str| t.columns.iter().position(|x| x.id == c).unwrap();
        let row = t.rows.iter().find(|r| {
            r.cells[at("variant")].value == *name && kind.is_none_or(|k| r.cells[0].value == Value::Text(k.to_string()))
        });
        row.unwrap().cells[at(column)].as_number().unwrap()
    };
    for (name, path) in names.iter().zip(&written.cells) {
        let io = Rows::read(path, "io");
        let n = io.len();
        let gap = |a: &str, b: &str| -> Vec<i64> { (0..n).map(|r| io.int(b, r) - io.int(a, r)).collect() };
        for (phase, a, b) in
            [("G2I", "q_ns", "i_ns"), ("I2D", "i_ns", "d_ns"), ("D2C", "d_ns", "c_ns"), ("Q2C", "q_ns", "c_ns")]
        {
            let values = gap(a, b);
            let mean = values.iter().sum::<i64>() as f64 / n as f64 / 1e6;
            assert!(close(cell_of("phases", name, Some(phase), "mean_ms"), mean), "{phase}");
            assert!(close(cell_of("phases", name, Some(phase), "p99_ms"), rank(&values, 0.99) / 1e6), "{phase}");
        }
        let mut queued: Vec<i64> = (0..n).map(|r| io.int("q_ns", r)).collect();
        queued.sort();
        let q2q: Vec<i64> = queued.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(close(cell_of("phases", name, Some("Q2Q"), "max_ms"), *q2q.iter().max().unwrap() as f64 / 1e6));

        // The mean depth is the requests' lives together over the time from the first queueing to the last completion.
        let span = (0..n).map(|r| io.int("c_ns", r)).max().unwrap() - queued[0];
        let lives: i64 = gap("q_ns", "c_ns").iter().sum();
        assert!(close(cell_of("disk-queue", name, None, "mean_depth"), lives as f64 / span as f64));
        // Busy, by looking at every moment at which something changes.
        let mut moments: Vec<i64> = (0..n).flat_map(|r| [io.int("d_ns", r), io.int("c_ns", r)]).collect();
        moments.sort();
        let served = |t: i64| (0..n).any(|r| io.int("d_ns", r) <= t && t < io.int("c_ns", r));
        let busy: i64 = moments.windows(2).filter(|w| served(w[0])).map(|w| w[1] - w[0]).sum();
        assert!(close(cell_of("disk-queue", name, None, "busy_pct"), busy as f64 / span as f64 * 100.0));

        let far: Vec<i64> = (0..n).map(|r| io.int("seek_sectors", r).abs()).collect();
        assert!(close(cell_of("seeks", name, None, "mean_mib"), far.iter().sum::<i64>() as f64 / n as f64 / 2048.0));
        assert!(close(
            cell_of("starvation", name, None, "overtaken_max"),
            (0..n).map(|r| io.int("passed", r)).max().unwrap() as f64
        ));
    }
}

#[test]
fn the_causes_of_a_client_follow_from_its_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec::default()).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let clients = Rows::read(&written.cells[0], "clients");
    let t = table(&report, "client-blame");
    let column = |id: &str| t.columns.iter().position(|c| c.id == id).unwrap();
    for row in t.rows.iter().filter(|r| r.cells[1].value == Value::Text("linux-2.4.16".to_string())) {
        let Value::Text(name) = &row.cells[0].value else { panic!() };
        let task = (0..clients.len()).find(|r| clients.text("client", *r) == name).unwrap();
        let sum = |causes: &[&str]| causes.iter().map(|c| clients.int(c, task)).sum::<i64>() as f64 / 1e9;
        for (id, causes) in [
            ("disk_s", ["t_read_ns", "t_meta_ns"]),
            ("cpu_s", ["t_cpu_ns", "t_runq_ns"]),
            ("lock_s", ["t_pagelock_ns", "t_inode_ns"]),
        ] {
            assert!(close(row.cells[column(id)].as_number().unwrap(), sum(&causes)), "{id} of {name}");
        }
    }
}

/// Uses of each page of each file, nanoseconds: every call's pages in equal steps, without a page in which the task's last call on
/// the file ended.
fn uses(calls: &Rows) -> BTreeMap<(String, i64), Vec<i64>> {
    let mut rows: Vec<usize> = (0..calls.len()).collect();
    rows.sort_by_key(|r| (calls.int("start_ns", *r), *r));
    let mut ends: BTreeMap<(i64, String), i64> = BTreeMap::new();
    let mut uses: BTreeMap<(String, i64), Vec<i64>> = BTreeMap::new();
    for r in rows {
        let (file, op) = (calls.text("file", r).to_string(), calls.text("op", r));
        let (Some(from), Some(len)) = (calls.ints["offset_bytes"][r], calls.ints["len_bytes"][r]) else { continue };
        if file.is_empty() || len == 0 || !matches!(op, "read" | "write" | "touch" | "recv-write") {
            continue;
        }
        let before = ends.insert((calls.int("task", r), file.clone()), from + len);
        let (first, last) = (from / 4096, (from + len - 1) / 4096);
        for page in first..=last {
            if page == first && from % 4096 != 0 && before == Some(from) {
                continue;
            }
            let at = calls.int("start_ns", r) + calls.int("dur_ns", r) * (page - first + 1) / (last - first + 1);
            uses.entry((file.clone(), page)).or_default().push(at);
        }
    }
    uses
}

#[test]
fn use_once_and_hot_set_follow_from_calls_and_evictions() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec::default()).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let t = table(&report, "cache");
    let at = |id: &str| t.columns.iter().position(|c| c.id == id).unwrap();
    for (row, path) in t.rows.iter().zip(&written.cells) {
        let (uses, out) = (uses(&Rows::read(path, "calls")), Rows::read(path, "evictions"));
        let mut gone: BTreeMap<(String, i64), Vec<i64>> = BTreeMap::new();
        for r in 0..out.len() {
            for page in 0..out.int("pages", r) {
                let key = (out.text("file", r).to_string(), out.int("page", r) + page);
                gone.entry(key).or_default().push(out.int("time_ns", r));
            }
        }
        let (mut evicted, mut wanted, mut once, mut once_wanted, mut hot, mut lost) = (0, 0, 0, 0, 0, 0);
        let none = Vec::new();
        for key in uses.keys().chain(gone.keys()).collect::<BTreeSet<_>>() {
            let (of, mut ends) = (uses.get(key).unwrap_or(&none), gone.get(key).unwrap_or(&none).clone());
            ends.sort();
            let mut from = i64::MIN;
            for end in &ends {
                let count = of.iter().filter(|u| **u > from && *u <= end).count();
                let again = of.iter().any(|u| u > end);
                evicted += 1;
                wanted += i32::from(again);
                if count > 1 {
                    hot += 1;
                    lost += i32::from(again);
                } else {
                    once += 1;
                    once_wanted += i32::from(again);
                }
                from = *end;
            }
            hot += i32::from(of.iter().filter(|u| **u > from).count() > 1);
        }
        assert!(once_wanted > 0 && lost > 0, "the fixture shows nothing");
        let pct = |part: i32, of: i32| 100.0 - f64::from(part) / f64::from(of) * 100.0;
        for (id, value) in [
            ("well_evicted_pct", pct(wanted, evicted)),
            ("once_evicted_pct", 100.0 - pct(once, evicted)),
            ("use_once_pct", pct(once_wanted, once)),
            ("survival_pct", pct(lost, hot)),
        ] {
            assert!(close(row.cells[at(id)].as_number().unwrap(), value), "{id}: {value}, {:?}", row.cells[at(id)]);
        }
    }
}

#[test]
fn plug_times_follow_from_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec::default()).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let t = table(&report, "plug");
    let at = |id: &str| t.columns.iter().position(|c| c.id == id).unwrap();
    for (row, path) in t.rows.iter().zip(&written.cells) {
        let io = Rows::read(path, "io");
        let n = io.len();
        let mut moments: Vec<i64> =
            (0..n).flat_map(|r| ["q_ns", "d_ns", "c_ns"].map(|stamp| io.int(stamp, r))).collect();
        moments.sort();
        moments.dedup();
        // Between two moments nothing changes: looking at the first of them is enough.
        let held = |t: i64| {
            let lives = |from: &str| (0..n).any(|r| io.int(from, r) <= t && t < io.int("c_ns", r));
            lives("q_ns") && !lives("d_ns")
        };
        let parts: Vec<(i64, bool)> = moments.windows(2).map(|w| (w[1] - w[0], held(w[0]))).collect();
        let total: i64 = parts.iter().filter(|p| p.1).map(|p| p.0).sum();
        let times = (0..parts.len()).filter(|i| parts[*i].1 && (*i == 0 || !parts[i - 1].1)).count();
        assert!(times > 5, "the fixture shows nothing");
        assert!(close(row.cells[at("plugs")].as_number().unwrap(), times as f64));
        assert!(close(row.cells[at("plugged_s")].as_number().unwrap(), total as f64 / 1e9));
        let span = moments[moments.len() - 1] - moments[0];
        assert!(close(row.cells[at("plugged_pct")].as_number().unwrap(), total as f64 / span as f64 * 100.0));
    }
}
