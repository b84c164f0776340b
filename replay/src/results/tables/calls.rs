//! `calls.parquet`.

use super::{Columns, Sparse, Words, field, int, ints, schema, take_ints};
use crate::program::FileInfo;
use crate::results::rows::{CallRow, Cause};
use arrow::array::{ArrayRef, Int64Builder, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;

#[derive(Default)]
pub(in crate::results) struct Calls {
    numbers: [Vec<i64>; 4],
    causes: [Sparse; Cause::COUNT],
    op: Words,
    file: StringBuilder,
    offset: Int64Builder,
    len: Int64Builder,
    recorded: Int64Builder,
}

impl Calls {
    pub(in crate::results) fn push(&mut self, r: &CallRow, files: &[FileInfo]) {
        let head = [i64::from(r.task), i64::from(r.line), int(r.start.0), int(r.dur.0)];
        for (column, value) in self.numbers.iter_mut().zip(head) {
            column.push(value);
        }
        for (column, &time) in self.causes.iter_mut().zip(&r.blame.0) {
            column.push(int(time));
        }
        self.op.push(r.op.name());
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
        columns.extend(self.causes.iter_mut().map(Sparse::take));
        columns.push(self.op.take());
        columns.push(Arc::new(self.file.finish()));
        columns.push(Arc::new(self.offset.finish()));
        columns.push(Arc::new(self.len.finish()));
        columns.push(Arc::new(self.recorded.finish()));
        columns
    }
}
