//! `calls.parquet`.

use super::{Columns, field, int, ints, schema, take_ints};
use crate::program::FileInfo;
use crate::results::rows::{CallRow, Cause};
use arrow::array::{ArrayRef, Int64Builder, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;

const NUMBERS: usize = 4 + Cause::COUNT;

pub(in crate::results) struct Calls {
    numbers: [Vec<i64>; NUMBERS],
    op: StringBuilder,
    file: StringBuilder,
    offset: Int64Builder,
    len: Int64Builder,
    recorded: Int64Builder,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            numbers: std::array::from_fn(|_| Vec::new()),
            op: StringBuilder::default(),
            file: StringBuilder::default(),
            offset: Int64Builder::default(),
            len: Int64Builder::default(),
            recorded: Int64Builder::default(),
        }
    }
}

impl Calls {
    pub(in crate::results) fn push(&mut self, r: &CallRow, files: &[FileInfo]) {
        let head = [i64::from(r.task), i64::from(r.line), int(r.start.0), int(r.dur.0)];
        let blame = r.blame.0.iter().map(|&t| int(t));
        for (column, value) in self.numbers.iter_mut().zip(head.into_iter().chain(blame)) {
            column.push(value);
        }
        self.op.append_value(r.op.name());
        self.file.append_option(r.file.and_then(|f| files.get(f as usize)).map(|f| f.path.as_str()));
        self.offset.append_option(r.offset.map(|o| int(o.0)));
        self.len.append_option(r.len.map(|l| int(l.0)));
        self.recorded.append_option(r.recorded.map(|t| int(t.0)));
    }
}

impl Columns for Calls {
    const NAME: &'static str = "calls";

    fn schema() -> SchemaRef {
        let head = ["task", "line", "start_ns", "dur_ns"];
        let names: Vec<&str> = head.into_iter().chain(Cause::ALL.iter().map(|c| c.column())).collect();
        let others = [
            field("op", DataType::Utf8, false),
            field("file", DataType::Utf8, true),
            field("offset_bytes", DataType::Int64, true),
            field("len_bytes", DataType::Int64, true),
            field("recorded_ns", DataType::Int64, true),
        ];
        schema(ints(&names).chain(others))
    }

    fn rows(&self) -> usize {
        self.numbers[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.numbers).collect();
        columns.push(Arc::new(self.op.finish()));
        columns.push(Arc::new(self.file.finish()));
        columns.push(Arc::new(self.offset.finish()));
        columns.push(Arc::new(self.len.finish()));
        columns.push(Arc::new(self.recorded.finish()));
        columns
    }
}
