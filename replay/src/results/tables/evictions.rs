//! `evictions.parquet`.

use super::{Columns, field, int, ints, schema, take_ints};
use crate::program::FileInfo;
use crate::results::rows::EvictionRow;
use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use std::sync::Arc;

#[derive(Default)]
pub(in crate::results) struct Evictions {
    numbers: [Vec<i64>; 3],
    file: StringBuilder,
}

impl Evictions {
    pub(in crate::results) fn push(&mut self, r: &EvictionRow, files: &[FileInfo]) {
        let row = [int(r.time.0), i64::from(r.page), i64::from(r.pages)];
        self.numbers.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        self.file.append_value(files.get(r.file as usize).map_or("", |f| f.path.as_str()));
    }
}

impl Columns for Evictions {
    const NAME: &'static str = "evictions";

    fn schema() -> SchemaRef {
        schema(ints(&["time_ns", "page", "pages"]).chain([field("file", DataType::Utf8, false)]))
    }

    fn rows(&self) -> usize {
        self.numbers[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = take_ints(&mut self.numbers).collect();
        columns.push(Arc::new(self.file.finish()));
        columns
    }
}
