//! `io.parquet`.

use super::{Columns, Words, field, int, ints, schema, take_ints};
use crate::block::{BioKind, Dir, IoRecord};
use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, SchemaRef};
use kreplay_traces::units::SECTOR_BYTES;
use std::sync::Arc;

#[derive(Default)]
pub(in crate::results) struct Ios {
    numbers: [Vec<i64>; 12],
    dir: Words,
    kind: Words,
    tail: Vec<bool>,
}

impl Ios {
    pub(in crate::results) fn push(&mut self, r: &IoRecord) {
        let row = [
            int(r.q.0),
            int(r.i.0),
            int(r.d.0),
            int(r.c.0),
            i64::from(r.dev),
            int(r.sector.0),
            int(u64::from(r.nr) * SECTOR_BYTES),
            i64::from(r.bios),
            i64::from(r.task),
            i64::from(r.passed),
            r.seek_sectors,
            int(r.c.saturating_sub(r.d).0),
        ];
        for (column, value) in self.numbers.iter_mut().zip(row) {
            column.push(value);
        }
        self.dir.push(match r.dir {
            Dir::Read => "R",
            Dir::Write => "W",
        });
        self.kind.push(match r.kind {
            BioKind::Data => "data",
            BioKind::Readahead => "readahead",
            BioKind::Meta => "meta",
            BioKind::Swap => "swap",
        });
        self.tail.push(r.tail);
    }
}

impl Columns for Ios {
    const NAME: &'static str = "io";

    fn schema() -> SchemaRef {
        let numbers = ints(&[
            "q_ns",
            "i_ns",
            "d_ns",
            "c_ns",
            "dev",
            "sector_512",
            "len_bytes",
            "bios",
            "task",
            "passed",
            "seek_sectors",
            "service_ns",
        ]);
        let words = [
            field("dir", DataType::Utf8, false),
            field("kind", DataType::Utf8, false),
            field("tail", DataType::Boolean, false),
        ];
        schema(numbers.chain(words))
    }

    fn rows(&self) -> usize {
        self.tail.len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.numbers).collect();
        columns.push(self.dir.take());
        columns.push(self.kind.take());
        columns.push(Arc::new(BooleanArray::from(std::mem::take(&mut self.tail))));
        columns
    }
}
