//! Record batches to Parquet, for the tables of a trace and of results.
//!
//! The general writer of the `parquet` crate hashes every value of every column that it writes by dictionary; here the
//! columns are few and of four kinds, so each takes the cheapest encoding that keeps the file small: differences for
//! integers that rise, a dictionary for the others as long as it pays, words by the dictionary that the row builder has
//! made already, bits for booleans. A column that compression hardly shrinks is stored as it is. Page headers, file
//! metadata and the file's frame are those of the `parquet` crate.
//!
//! The same rows in the same batches give the same bytes.

mod bits;
mod chunk;
mod column;
mod delta;
mod dictionary;

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::Encoding;
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use chunk::Zstd;
use column::ColumnEncoder;

/// Rows in a page.
const PAGE_ROWS: usize = 16 * 1024;

/// Writes one Parquet file.
///
/// Of the properties it heeds creator, key-value metadata, rows in a row group, and per column DELTA_BINARY_PACKED and
/// statistics.
pub struct TableEncoder<W: Write + Send> {
    schema: SchemaRef,
    properties: Arc<WriterProperties>,
    columns_of: SchemaDescriptor,
    file: SerializedFileWriter<W>,
    columns: Vec<ColumnEncoder>,
    /// Rows in the row group so far.
    rows: usize,
    group_rows: usize,
    zstd: Zstd,
}

impl<W: Write + Send> TableEncoder<W> {
    /// Begin a file. Columns are 64-bit integers, booleans, texts, or dictionaries of texts with 32-bit keys.
    ///
    /// # Errors
    /// If the sink fails, or the schema has no Parquet form.
    pub fn new(sink: W, schema: SchemaRef, mut properties: WriterProperties) -> Result<Self> {
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let properties = Arc::new(properties);
        let columns_of = ArrowSchemaConverter::new().convert(&schema)?;
        let file = SerializedFileWriter::new(sink, columns_of.root_schema_ptr(), Arc::clone(&properties))?;
        let group_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX).max(1);
        Ok(Self { schema, properties, columns_of, file, columns: Vec::new(), rows: 0, group_rows, zstd: Zstd::new()? })
    }

    /// Append a batch of the file's schema.
    ///
    /// # Errors
    /// If the sink fails or the batch is of another schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut at = 0;
        while at < batch.num_rows() {
            let rows = (batch.num_rows() - at).min(PAGE_ROWS).min(self.group_rows - self.rows);
            if self.columns.is_empty() {
                self.begin_group();
            }
            for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
                column.page(&array.slice(at, rows), &mut self.zstd)?;
            }
            at += rows;
            self.rows += rows;
            if self.rows == self.group_rows {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Finish the file.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> Result<W> {
        self.end_group()?;
        self.file.into_inner()
    }

    fn begin_group(&mut self) {
        let column = |(index, field): (usize, &Arc<arrow::datatypes::Field>)| {
            let descr = self.columns_of.column(index);
            let delta = self.properties.encoding(descr.path()) == Some(Encoding::DELTA_BINARY_PACKED);
            let bounds = self.properties.statistics_enabled(descr.path()) != EnabledStatistics::None;
            ColumnEncoder::new(descr, field.data_type(), field.is_nullable(), delta, bounds)
        };
        self.columns = self.schema.fields().iter().enumerate().map(column).collect();
    }

    fn end_group(&mut self) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let mut group = self.file.next_row_group()?;
        for column in std::mem::take(&mut self.columns) {
            let (bytes, close) = column.finish(&mut self.zstd)?;
            group.append_column(&bytes, close)?;
        }
        group.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
