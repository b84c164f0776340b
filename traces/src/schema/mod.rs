//! Arrow schemas of the event tables, version 1.
//!
//! Rules: quantities are signed 64-bit with the unit in the column name (a 32-bit column summed in a notebook wraps
//! without a word in some engines); small closed sets are dictionaries; null means that the source does not say;
//! monotone columns are delta-encoded. The columns are those of the row types in [`crate::event`], in their order.

mod column;
mod tables;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::basic::Encoding;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

pub use tables::{Blocks, Counters, Faults, Files, Processes, Rejects, Syscalls, Vmstats};

/// Version of the tables and of the manifest. Readers refuse a higher one.
pub const SCHEMA_VERSION: u32 = 1;
/// Rows in a row group.
pub const ROW_GROUP_ROWS: usize = 256 * 1024;
/// Names of all tables, in the order in which they are listed everywhere.
pub const TABLES: [&str; 8] = [
    Syscalls::NAME,
    Blocks::NAME,
    Vmstats::NAME,
    Faults::NAME,
    Processes::NAME,
    Files::NAME,
    Counters::NAME,
    Rejects::NAME,
];
/// Metadata key that holds [`SCHEMA_VERSION`].
pub const SCHEMA_KEY: &str = "kreplay.schema";
/// Metadata key that holds the table's name.
pub const TABLE_KEY: &str = "kreplay.table";
/// `created_by` of every file: fixed, so that the same rows give the same bytes.
pub const CREATED_BY: &str = "kreplay";

/// One column of a table.
pub struct Column {
    /// Name, unit included.
    pub name: &'static str,
    /// Arrow's type in the file.
    pub data_type: arrow::datatypes::DataType,
    /// Arrow's type in memory when it is read.
    pub read_as: arrow::datatypes::DataType,
    /// May be null.
    pub nullable: bool,
    /// Monotone or nearly so: delta-encoded instead of by dictionary.
    pub delta: bool,
}

/// A table: ties a row type to its columns.
pub trait Table: Sized + 'static {
    /// Name of the table and of its folder.
    const NAME: &'static str;
    /// Rows come in time order when read; otherwise in the order in which they were written.
    const SORTED: bool;
    /// The borrowed row.
    type Row<'a>: Copy;
    /// Collects rows.
    type Builder: RowBuilder<Self>;
    /// Gives rows back.
    type View: RowView<Self>;

    /// The columns in order.
    fn columns() -> Vec<Column>;
    /// Time in the row's own clock, where it has one.
    fn time_ns(row: &Self::Row<'_>) -> Option<i64>;
    /// The row's input line (0 where the table has none).
    fn line(row: &Self::Row<'_>) -> i64;
    /// Moves the row's time so that `zero_ns` becomes 0.
    fn shift(row: &mut Self::Row<'_>, zero_ns: i64);

    /// Arrow schema.
    fn schema() -> SchemaRef {
        let fields: Vec<Field> =
            Self::columns().into_iter().map(|c| Field::new(c.name, c.data_type, c.nullable)).collect();
        Arc::new(Schema::new(fields))
    }

    /// Arrow schema of the batches that are read.
    fn read_schema() -> SchemaRef {
        let fields: Vec<Field> =
            Self::columns().into_iter().map(|c| Field::new(c.name, c.read_as, c.nullable)).collect();
        Arc::new(Schema::new(fields))
    }

    /// How the table is written to Parquet.
    fn writer_properties() -> WriterProperties {
        let mut props = WriterProperties::builder()
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(Some(vec![
                KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA_VERSION.to_string()),
                KeyValue::new(TABLE_KEY.to_owned(), Self::NAME.to_owned()),
            ]));
        // Only a time range is ever asked for; the other columns' bounds would cost more than they save.
        props = props.set_column_statistics_enabled(ColumnPath::from("time_ns"), EnabledStatistics::Chunk);
        for column in Self::columns().iter().filter(|c| c.delta) {
            let path = ColumnPath::from(column.name);
            props = props
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        props.build()
    }
}

/// Collects rows of a table into record batches.
pub trait RowBuilder<T: Table>: Send {
    /// Room for about `rows` rows.
    fn with_capacity(rows: usize) -> Self;
    /// Append a row.
    fn push(&mut self, row: &T::Row<'_>);
    /// Bytes of text (paths, arguments) of the rows so far. A batch must not hold more than 2^31 in one column: finish
    /// it long before.
    fn text_bytes(&self) -> usize;
    /// The rows so far; the builder begins anew.
    ///
    /// # Errors
    /// Arrow's message, if the columns do not fit the schema.
    fn finish(&mut self) -> Result<RecordBatch, arrow::error::ArrowError>;
}

/// Rows of a record batch.
pub trait RowView<T: Table>: Sized {
    /// View of a batch; `None` if a column is missing or of another type. Of the columns that `wanted` does not name, rows say
    /// nothing (0, "", false or `None`), whether the batch has them or not.
    fn new(batch: &RecordBatch, wanted: Option<&[&str]>) -> Option<Self>;
    /// Row `i`, which must be below the batch's number of rows.
    fn row(&self, i: usize) -> T::Row<'_>;
}

#[cfg(test)]
mod tests;
