//! Written rows against what the Parquet files say.

use super::*;
use crate::block::{BioKind, Dir, IoRecord};
use crate::config::Config;
use crate::program::{FileInfo, FileKind, Program, Start, TaskProgram};
use crate::variant::Library;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use kreplay_traces::units::{Bytes, Nanos, Sectors};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;

fn program() -> Program {
    let file = FileInfo {
        path: "/srv/a \"b\"".to_owned(),
        kind: FileKind::Regular,
        device: 0,
        first_page: 0,
        pages: 0,
        initial_size: 0,
        exists: true,
        elsewhere: false,
        extents: Vec::new(),
        parent: None,
        inode_page: None,
        name_page: None,
        indirect: Vec::new(),
        group: None,
    };
    let task =
        TaskProgram { client: Some("client 1".to_owned()), ..TaskProgram::new(4711, "tar", Start::At(Nanos::ZERO)) };
    Program {
        trace_id: "t".to_owned(),
        files: vec![file],
        tasks: vec![task],
        marks: vec!["pass 1".to_owned()],
        ..Program::default()
    }
}

fn header(config: Config) -> CellHeader {
    CellHeader {
        id: "id".to_owned(),
        trace: "t".to_owned(),
        trace_path: None,
        variant: "v".to_owned(),
        parts: Vec::new(),
        seed: 1,
        pacing: "closed".to_owned(),
        config,
        config_hash: "h".to_owned(),
        code_version: "c".to_owned(),
        checked_against: Vec::new(),
        model: Vec::new(),
        assumptions: Vec::new(),
    }
}

fn config() -> Config {
    Library::builtin().unwrap().select(&["linux-2.4.16".to_owned()], &[], &[]).unwrap().remove(0).config
}

fn blame() -> Blame {
    let mut blame = Blame::ZERO;
    blame.add(Cause::Cpu, Nanos(40));
    blame.add(Cause::Slot, Nanos(60));
    blame
}

fn call(i: u64) -> CallRow {
    CallRow {
        task: 0,
        line: 7,
        op: CallOp::Write,
        file: i.is_multiple_of(2).then_some(0),
        offset: Some(Bytes(i * 4096)),
        len: Some(Bytes(4096)),
        start: Nanos(i * 100),
        dur: Nanos(100),
        recorded: None,
        blame: blame(),
    }
}

fn write(target: &Path, calls: u64) -> CellInfo {
    let program = program();
    let mut writer = CellWriter::create(target, &program).unwrap();
    for i in 0..calls {
        writer.call(&call(i));
    }
    writer.io(&IoRecord {
        dev: 0,
        dir: Dir::Write,
        sector: Sectors(800),
        nr: 16,
        bios: 2,
        task: 0,
        kind: BioKind::Swap,
        q: Nanos(1),
        i: Nanos(2),
        d: Nanos(10),
        c: Nanos(110),
        passed: 3,
        tail: true,
        seek_sectors: -8,
    });
    writer.mark(&MarkRow { task: 0, mark: 0, time: Nanos(5) });
    writer.event(&EventRow { time: Nanos(6), task: None, kind: EventKind::Hung, text: "all wait".to_owned() });
    writer.client(&ClientRow {
        task: 0,
        start: Some(Nanos(1)),
        end: None,
        bytes_read: Bytes(0),
        bytes_written: Bytes(8192),
        think: Nanos(2),
        blame: blame(),
        killed: false,
    });
    writer.sample(&SampleRow { time: Nanos::from_secs(1), cache_kib: 12, ..SampleRow::default() });
    writer.counters(&Counters { seeks: 9, ..Counters::default() });
    writer.finish(header(config()), true).unwrap()
}

fn table(dir: &Path, name: &str) -> Vec<RecordBatch> {
    let file = std::fs::File::open(dir.join(format!("{name}.parquet"))).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(|b| b.unwrap()).collect()
}

fn number(batch: &RecordBatch, column: &str, row: usize) -> Option<i64> {
    let column = batch.column_by_name(column).expect(column).as_primitive::<Int64Type>();
    column.is_valid(row).then(|| column.value(row))
}

fn word(batch: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(column).expect(column).as_string::<i32>();
    column.is_valid(row).then(|| column.value(row).to_owned())
}

#[test]
fn every_table_holds_what_was_pushed() {
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("a/b/seed=1");
    let info = write(&dir, 3);
    assert_eq!(info.tables["calls"].rows, 3);
    let calls = &table(&dir, "calls")[0];
    assert_eq!(number(calls, "offset_bytes", 2), Some(8192));
    assert_eq!((word(calls, "file", 0), word(calls, "file", 1)), (Some("/srv/a \"b\"".to_owned()), None));
    assert_eq!(number(calls, "recorded_ns", 0), None);
    let causes: i64 = Cause::ALL.iter().filter_map(|c| number(calls, c.column(), 1)).sum();
    assert_eq!(Some(causes), number(calls, "dur_ns", 1));
    let io = &table(&dir, "io")[0];
    assert_eq!((number(io, "len_bytes", 0), number(io, "service_ns", 0)), (Some(8192), Some(100)));
    assert_eq!((number(io, "seek_sectors", 0), word(io, "kind", 0)), (Some(-8), Some("swap".to_owned())));
    let clients = &table(&dir, "clients")[0];
    assert_eq!((number(clients, "tid", 0), number(clients, "end_ns", 0)), (Some(4711), None));
    assert_eq!(word(clients, "client", 0), Some("client 1".to_owned()));
    assert_eq!(word(&table(&dir, "marks")[0], "name", 0), Some("pass 1".to_owned()));
    assert_eq!(word(&table(&dir, "events")[0], "kind", 0), Some("hung".to_owned()));
    assert_eq!(number(&table(&dir, "samples")[0], "cache_kib", 0), Some(12));
    let counters = &table(&dir, "counters")[0];
    let seeks = (0..counters.num_rows()).find(|&i| word(counters, "name", i).as_deref() == Some("seeks"));
    assert_eq!(number(counters, "value", seeks.unwrap()), Some(9));
}

#[test]
fn many_rows_survive_batches_and_row_groups() {
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("seed=1");
    let calls = 150_000;
    assert_eq!(write(&dir, calls).tables["calls"].rows, calls);
    let sum: i64 = table(&dir, "calls")
        .iter()
        .map(|b| b.column_by_name("start_ns").unwrap().as_primitive::<Int64Type>().values().iter().sum::<i64>())
        .sum();
    assert_eq!(sum, 100 * (calls * (calls - 1) / 2) as i64);
}

#[test]
fn an_unfinished_cell_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let program = program();
    let mut writer = CellWriter::create(&out.path().join("seed=1"), &program).unwrap();
    writer.call(&call(0));
    drop(writer);
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_cell_is_told_from_a_whole_one() {
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("seed=1");
    let info = write(&dir, 1);
    assert_eq!(CellInfo::read(&dir).unwrap(), info);
    info.verify(&dir).unwrap();
    let path = dir.join("io.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = info.verify(&dir).unwrap_err().to_string();
    assert!(error.contains("io.parquet") && error.contains("hash"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let program = program();
    let error = CellWriter::create(&file.join("seed=1"), &program).err().expect("a file is no folder");
    assert!(error.to_string().contains("file"), "{error}");
}
