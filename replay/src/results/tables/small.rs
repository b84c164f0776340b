//! `marks.parquet`, `events.parquet` and `counters.parquet`.

use super::{Columns, field, int, ints, schema, take_ints};
use crate::results::rows::{Counters, EventRow, MarkRow};
use arrow::array::{ArrayRef, Int64Builder, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;

#[derive(Default)]
pub(in crate::results) struct Marks {
    numbers: [Vec<i64>; 2],
    name: StringBuilder,
}

impl Marks {
    pub(in crate::results) fn push(&mut self, r: &MarkRow, names: &[String]) {
        self.numbers[0].push(i64::from(r.task));
        self.numbers[1].push(int(r.time.0));
        self.name.append_value(names.get(r.mark as usize).map_or("", String::as_str));
    }
}

impl Columns for Marks {
    const NAME: &'static str = "marks";

    fn schema() -> SchemaRef {
        schema(ints(&["task", "time_ns"]).chain([field("name", DataType::Utf8, false)]))
    }

    fn rows(&self) -> usize {
        self.numbers[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.numbers).collect();
        columns.push(Arc::new(self.name.finish()));
        columns
    }
}

#[derive(Default)]
pub(in crate::results) struct Events {
    time: [Vec<i64>; 1],
    task: Int64Builder,
    kind: StringBuilder,
    text: StringBuilder,
}

impl Events {
    pub(in crate::results) fn push(&mut self, r: &EventRow) {
        self.time[0].push(int(r.time.0));
        self.task.append_option(r.task.map(i64::from));
        self.kind.append_value(r.kind.name());
        self.text.append_value(&r.text);
    }
}

impl Columns for Events {
    const NAME: &'static str = "events";

    fn schema() -> SchemaRef {
        schema(ints(&["time_ns"]).chain([
            field("task", DataType::Int64, true),
            field("kind", DataType::Utf8, false),
            field("text", DataType::Utf8, false),
        ]))
    }

    fn rows(&self) -> usize {
        self.time[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.time).collect();
        columns.push(Arc::new(self.task.finish()));
        columns.push(Arc::new(self.kind.finish()));
        columns.push(Arc::new(self.text.finish()));
        columns
    }
}

#[derive(Default)]
pub(in crate::results) struct CounterRows {
    value: [Vec<i64>; 1],
    name: StringBuilder,
    unit: StringBuilder,
}

impl CounterRows {
    pub(in crate::results) fn push(&mut self, counters: &Counters) {
        for (name, value, unit) in counters.rows() {
            self.value[0].push(int(value));
            self.name.append_value(name);
            self.unit.append_value(unit);
        }
    }
}

impl Columns for CounterRows {
    const NAME: &'static str = "counters";

    fn schema() -> SchemaRef {
        schema(ints(&["value"]).chain([field("name", DataType::Utf8, false), field("unit", DataType::Utf8, false)]))
    }

    fn rows(&self) -> usize {
        self.value[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.value).collect();
        columns.push(Arc::new(self.name.finish()));
        columns.push(Arc::new(self.unit.finish()));
        columns
    }
}
