//! `clients.parquet`.

use super::{Columns, field, int, ints, schema, take_ints};
use crate::program::TaskProgram;
use crate::results::rows::{Cause, ClientRow};
use arrow::array::{ArrayRef, BooleanArray, Int64Builder, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;

const NUMBERS: usize = 5 + Cause::COUNT;

#[derive(Default)]
pub(in crate::results) struct Clients {
    numbers: [Vec<i64>; NUMBERS],
    start: Int64Builder,
    end: Int64Builder,
    name: StringBuilder,
    client: StringBuilder,
    background: Vec<bool>,
    killed: Vec<bool>,
}

impl Clients {
    pub(in crate::results) fn push(&mut self, r: &ClientRow, tasks: &[TaskProgram]) {
        let task = tasks.get(r.task as usize);
        let head =
            [i64::from(r.task), task.map_or(0, |t| t.tid), int(r.bytes_read.0), int(r.bytes_written.0), int(r.think.0)];
        let blame = r.blame.0.iter().map(|&t| int(t));
        for (column, value) in self.numbers.iter_mut().zip(head.into_iter().chain(blame)) {
            column.push(value);
        }
        self.start.append_option(r.start.map(|t| int(t.0)));
        self.end.append_option(r.end.map(|t| int(t.0)));
        self.name.append_value(task.map_or("", |t| t.name.as_str()));
        self.client.append_option(task.and_then(|t| t.client.as_deref()));
        self.background.push(task.is_some_and(|t| t.background));
        self.killed.push(r.killed);
    }
}

impl Columns for Clients {
    const NAME: &'static str = "clients";

    fn schema() -> SchemaRef {
        let head = ["task", "tid", "bytes_read", "bytes_written", "think_ns"];
        let names: Vec<&str> = head.into_iter().chain(Cause::ALL.iter().map(|c| c.column())).collect();
        let others = [
            field("start_ns", DataType::Int64, true),
            field("end_ns", DataType::Int64, true),
            field("name", DataType::Utf8, false),
            field("client", DataType::Utf8, true),
            field("background", DataType::Boolean, false),
            field("killed", DataType::Boolean, false),
        ];
        schema(ints(&names).chain(others))
    }

    fn rows(&self) -> usize {
        self.killed.len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.numbers).collect();
        columns.push(Arc::new(self.start.finish()));
        columns.push(Arc::new(self.end.finish()));
        columns.push(Arc::new(self.name.finish()));
        columns.push(Arc::new(self.client.finish()));
        columns.push(Arc::new(BooleanArray::from(std::mem::take(&mut self.background))));
        columns.push(Arc::new(BooleanArray::from(std::mem::take(&mut self.killed))));
        columns
    }
}
