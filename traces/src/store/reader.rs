//! Reading a table back: parts are streamed batch by batch and merged into time order.
//!
//! Parquet readers panic on some damaged files (31 of 34 335 damaged ones did, parquet 60.1), so every call into one
//! runs behind `catch_unwind`; hashes were verified before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::manifest::Manifest;
use crate::error::{Doing, Error, Result};
use crate::schema::{ROW_GROUP_ROWS, RowView, SCHEMA_KEY, SCHEMA_VERSION, Table};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;
/// A row group that claims more uncompressed bytes than this is refused.
const MAX_ROW_GROUP_BYTES: i64 = 4 << 30;

/// Order of a row among all parts: time, source, line, part.
type Key = (i64, usize, i64, usize);

/// Rows of table `T`, one at a time, in order, in constant memory.
///
/// Not an `Iterator`, because each row borrows from the reader:
/// `while let Some(row) = rows.next()? { ... }`.
pub struct TableReader<T: Table> {
    parts: Vec<PartReader<T>>,
    /// Next row of every part except the current one.
    waiting: BinaryHeap<Reverse<Key>>,
    current: Option<usize>,
    rows: u64,
}

impl<T: Table> TableReader<T> {
    pub(super) fn open(dir: &Path, manifest: &Manifest) -> Result<Self> {
        let mut parts = Vec::new();
        let mut waiting = BinaryHeap::new();
        for part in manifest.parts.iter().filter(|p| p.table == T::NAME) {
            let zero_ns = manifest.sources[part.source].zero_ns;
            // A part is opened when its first row is due, so that many parts need few open files.
            let first = part.span_ns.map_or(i64::MIN, |s| s.0.wrapping_sub(zero_ns));
            waiting.push(Reverse((first, part.source, i64::MIN, parts.len())));
            parts.push(PartReader {
                path: dir.join(&part.file),
                source: part.source,
                zero_ns,
                expected_rows: part.rows,
                stream: None,
                view: None,
                batch_rows: 0,
                next: 0,
                last_time: first,
            });
        }
        let rows = manifest.count(T::NAME);
        Ok(Self { parts, waiting, current: None, rows })
    }

    /// Rows in all.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// True if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Index (into the manifest's sources) of the source that the row last returned came from.
    pub fn source(&self) -> Option<usize> {
        self.current.map(|i| self.parts[i].source)
    }

    /// The next row; `None` at the end. Times are nanoseconds since the start of the trace.
    ///
    /// # Errors
    /// If a part turns out to be damaged or cannot be read.
    #[expect(clippy::should_implement_trait, reason = "rows borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<T::Row<'_>>> {
        self.advance()?;
        Ok(self.current())
    }

    /// The row last returned by [`TableReader::next`] or reached by [`TableReader::advance`].
    pub fn current(&self) -> Option<T::Row<'_>> {
        self.parts[self.current?].row()
    }

    /// Go to the next row; false at the end.
    ///
    /// # Errors
    /// As [`TableReader::next`].
    pub fn advance(&mut self) -> Result<bool> {
        if let Some(i) = self.current.take() {
            self.parts[i].next += 1;
            match self.parts[i].key(i)? {
                Some(key) if self.waiting.peek().is_none_or(|w| key <= w.0) => self.current = Some(i),
                Some(key) => self.waiting.push(Reverse(key)),
                None => {}
            }
        }
        while self.current.is_none() {
            let Some(Reverse((_, _, line, i))) = self.waiting.pop() else { return Ok(false) };
            let unopened = line == i64::MIN && self.parts[i].view.is_none();
            match self.parts[i].key(i)? {
                // The manifest's first time put it here; the row itself decides.
                Some(key) if unopened && self.waiting.peek().is_some_and(|w| key > w.0) => {
                    self.waiting.push(Reverse(key));
                }
                Some(_) => self.current = Some(i),
                None => {}
            }
        }
        Ok(true)
    }

    /// Call `f` with every row left.
    ///
    /// # Errors
    /// As [`TableReader::next`].
    pub fn for_each(&mut self, mut f: impl FnMut(T::Row<'_>)) -> Result<()> {
        while let Some(row) = self.next()? {
            f(row);
        }
        Ok(())
    }
}

/// One part, opened when first needed.
struct PartReader<T: Table> {
    path: PathBuf,
    source: usize,
    zero_ns: i64,
    expected_rows: u64,
    stream: Option<ParquetRecordBatchReader>,
    view: Option<T::View>,
    batch_rows: usize,
    next: usize,
    /// Rows without a time keep the place of the row before them.
    last_time: i64,
}

impl<T: Table> PartReader<T> {
    /// Key of the next row, reading on as needed; `None` at the end.
    fn key(&mut self, part: usize) -> Result<Option<Key>> {
        while self.view.is_none() || self.next >= self.batch_rows {
            match self.read_batch()? {
                None => {
                    self.view = None;
                    return Ok(None);
                }
                Some(batch) => {
                    self.batch_rows = batch.num_rows();
                    self.next = 0;
                    self.view = Some(T::View::new(&batch).ok_or_else(|| self.damaged("columns of other types"))?);
                }
            }
        }
        let Some(row) = self.row() else { return Ok(None) };
        let time = T::time_ns(&row);
        let line = if T::SORTED { T::line(&row) } else { 0 };
        if let Some(time) = time {
            self.last_time = time;
        }
        Ok(Some((self.last_time, self.source, line, part)))
    }

    fn row(&self) -> Option<T::Row<'_>> {
        Some(T::shifted(self.view.as_ref()?.row(self.next), self.zero_ns))
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.stream.is_none() {
            self.stream = Some(self.open()?);
        }
        let stream = self.stream.as_mut();
        let read = catch_unwind(AssertUnwindSafe(|| stream.and_then(Iterator::next)));
        match read {
            Ok(None) => Ok(None),
            Ok(Some(Ok(batch))) => Ok(Some(batch)),
            Ok(Some(Err(e))) => Err(self.damaged(e)),
            Err(_) => Err(self.damaged("the Parquet reader gave up")),
        }
    }

    /// Open the file and check that it is what the table's schema says before any row is decoded.
    fn open(&self) -> Result<ParquetRecordBatchReader> {
        let file = File::open(&self.path).map_err(|e| Error::io(&self.path, Doing::Reading, e))?;
        let builder = catch_unwind(AssertUnwindSafe(|| ParquetRecordBatchReaderBuilder::try_new(file)))
            .map_err(|_| self.damaged("the Parquet reader gave up"))?
            .map_err(|e| self.damaged(e))?;
        let meta = builder.metadata();
        let key_values = meta.file_metadata().key_value_metadata();
        let version =
            key_values.into_iter().flatten().find(|kv| kv.key == SCHEMA_KEY).and_then(|kv| kv.value.as_deref());
        if version.and_then(|v| v.parse::<u32>().ok()).is_none_or(|v| v > SCHEMA_VERSION) {
            return Err(self.damaged("its schema version is missing or newer"));
        }
        let schema = T::schema();
        let same = builder.schema().fields().len() == schema.fields().len()
            && builder.schema().fields().iter().zip(schema.fields()).all(|(a, b)| {
                a.name() == b.name() && a.data_type() == b.data_type() && a.is_nullable() == b.is_nullable()
            });
        if !same {
            return Err(self.damaged(format!("its columns are not those of table {}", T::NAME)));
        }
        let oversized = |g: &parquet::file::metadata::RowGroupMetaData| {
            g.num_rows() > ROW_GROUP_ROWS as i64 || !(0..=MAX_ROW_GROUP_BYTES).contains(&g.total_byte_size())
        };
        if meta.row_groups().iter().any(oversized)
            || u64::try_from(meta.file_metadata().num_rows()) != Ok(self.expected_rows)
        {
            return Err(self.damaged("its row groups are not as this program writes them"));
        }
        catch_unwind(AssertUnwindSafe(|| builder.with_batch_size(BATCH_ROWS).build()))
            .map_err(|_| self.damaged("the Parquet reader gave up"))?
            .map_err(|e| self.damaged(e))
    }

    fn damaged(&self, why: impl ToString) -> Error {
        Error::Damaged { path: self.path.clone(), why: why.to_string() }
    }
}
