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

use arrow::array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
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

    /// All rows as a batch, leaving none. Words are a dictionary in memory, and texts in the file.
    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.take();
        let schema = Self::schema();
        let fields = schema.fields().iter().zip(&columns);
        let fields: Vec<Field> =
            fields.map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone())).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
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
    columns.iter_mut().map(take_numbers)
}

/// Takes the numbers of a column; it keeps as much room as it had needed.
fn take_numbers(column: &mut Vec<i64>) -> ArrayRef {
    let room = Vec::with_capacity(column.len());
    Arc::new(Int64Array::from(std::mem::replace(column, room)))
}

/// Words of a small set, each kept once.
#[derive(Default)]
struct Words {
    keys: Vec<i32>,
    words: Vec<&'static str>,
}

impl Words {
    #[inline]
    fn push(&mut self, word: &'static str) {
        let key = self.words.iter().position(|w| *w == word).unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        });
        self.keys.push(key as i32);
    }

    fn take(&mut self) -> ArrayRef {
        let room = Vec::with_capacity(self.keys.len());
        let keys = Int32Array::from(std::mem::replace(&mut self.keys, room));
        Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from_iter_values(&self.words))))
    }
}

/// Numbers that are often zero in a whole table, as most causes of waiting are: zeros before the first other number are only
/// counted.
#[derive(Default)]
struct Sparse {
    zeros: usize,
    values: Vec<i64>,
}

impl Sparse {
    #[inline]
    fn push(&mut self, value: i64) {
        if self.values.is_empty() {
            if value == 0 {
                self.zeros += 1;
                return;
            }
            self.values.resize(std::mem::take(&mut self.zeros), 0);
        }
        self.values.push(value);
    }

    fn take(&mut self) -> ArrayRef {
        if self.values.is_empty() {
            return Arc::new(Int64Array::from(vec![0; std::mem::take(&mut self.zeros)]));
        }
        take_numbers(&mut self.values)
    }
}
