//! The Parquet tables of docs/RESULTS.md: for each, columns that rows are pushed into and taken out as a batch.

mod calls;
mod clients;
mod evictions;
mod io;
mod samples;
mod small;

pub(super) use calls::Calls;
pub(super) use clients::Clients;
pub(super) use evictions::Evictions;
pub(super) use io::Ios;
pub(super) use samples::Samples;
pub(super) use small::{CounterRows, Events, Marks};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::sync::Arc;

/// The columns of one table on their way to disk.
pub(super) trait Columns: Default {
    /// Name of the table and of its file.
    const NAME: &'static str;
    /// Column names and types.
    fn schema() -> SchemaRef;
    /// Rows not yet taken.
    fn rows(&self) -> usize;
    /// All rows, leaving none.
    fn take(&mut self) -> Vec<ArrayRef>;

    /// All rows as a batch, leaving none.
    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Self::schema(), self.take())
    }
}

/// An unsigned number as the tables' signed one; "never" (the largest) stays the largest.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn ints(names: &[&str]) -> impl Iterator<Item = Field> {
    names.iter().map(|n| Field::new(*n, DataType::Int64, false))
}

fn field(name: &str, kind: DataType, nullable: bool) -> Field {
    Field::new(name, kind, nullable)
}

fn schema(fields: impl IntoIterator<Item = Field>) -> SchemaRef {
    Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()))
}

/// Takes the numbers of some columns as arrays.
fn take_ints<const N: usize>(columns: &mut [Vec<i64>; N]) -> impl Iterator<Item = ArrayRef> {
    columns.iter_mut().map(|c| Arc::new(arrow::array::Int64Array::from(std::mem::take(c))) as ArrayRef)
}
