//! Reading a table back: parts are streamed batch by batch and merged into time order.
//!
//! Large parts are decoded ahead in a thread of their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decode::{Batches, Decoding};
use super::manifest::Manifest;
use crate::error::Result;
use crate::schema::{RowView, Table};

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
    wanted: Wanted,
    /// Shared with the threads that decode ahead, which are counted by it.
    ahead: Arc<()>,
}

/// Columns that are read; `None` = all.
type Wanted = Option<&'static [&'static str]>;

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
                batches: None,
                view: None,
                batch_rows: 0,
                next: 0,
                last_time: first,
            });
        }
        let rows = manifest.count(T::NAME);
        Ok(Self { parts, waiting, current: None, rows, wanted: None, ahead: Arc::new(()) })
    }

    /// Leaves out all columns but these, those of time and line, and what makes rows what they are for the caller has to be among
    /// them: the others say nothing (0, "", false or `None`). To be called before the first row.
    #[must_use]
    pub fn only(mut self, columns: &'static [&'static str]) -> Self {
        self.wanted = Some(columns);
        self
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
            match self.parts[i].key(i, self.wanted, &self.ahead)? {
                Some(key) if self.waiting.peek().is_none_or(|w| key <= w.0) => self.current = Some(i),
                Some(key) => self.waiting.push(Reverse(key)),
                None => {}
            }
        }
        while self.current.is_none() {
            let Some(Reverse((_, _, line, i))) = self.waiting.pop() else { return Ok(false) };
            let unopened = line == i64::MIN && self.parts[i].view.is_none();
            match self.parts[i].key(i, self.wanted, &self.ahead)? {
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
        self.visit(|row| f(*row))
    }

    /// [`TableReader::for_each`] without a copy of each row.
    ///
    /// # Errors
    /// As [`TableReader::next`].
    pub fn visit(&mut self, mut f: impl FnMut(&T::Row<'_>)) -> Result<()> {
        while self.advance()? {
            let Some(i) = self.current else { break };
            let limit = self.waiting.peek().map(|w| w.0);
            self.parts[i].each_until(i, limit, &mut f);
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
    batches: Option<Batches>,
    view: Option<T::View>,
    batch_rows: usize,
    next: usize,
    /// Rows without a time keep the place of the row before them.
    last_time: i64,
}

impl<T: Table> PartReader<T> {
    /// Key of the next row, reading on as needed; `None` at the end.
    fn key(&mut self, part: usize, wanted: Wanted, ahead: &Arc<()>) -> Result<Option<Key>> {
        while self.view.is_none() || self.next >= self.batch_rows {
            let decoding = Decoding { path: &self.path, rows: self.expected_rows };
            let batches = match &mut self.batches {
                Some(batches) => batches,
                None => self.batches.insert(decoding.open::<T>(wanted, ahead)?),
            };
            match batches.next().map_err(|why| decoding.damaged(why))? {
                None => {
                    self.view = None;
                    return Ok(None);
                }
                Some(batch) => {
                    self.batch_rows = batch.num_rows();
                    self.next = 0;
                    self.view =
                        Some(T::View::new(&batch, wanted).ok_or_else(|| decoding.damaged("columns of other types"))?);
                }
            }
        }
        let Some(view) = &self.view else { return Ok(None) };
        let mut row = view.row(self.next);
        T::shift(&mut row, self.zero_ns);
        Ok(Some(key_of::<T>(&row, &mut self.last_time, self.source, part)))
    }

    /// Calls `f` with the current row and those behind it in the batch, up to the first that comes after `limit`, and stays at the
    /// last of them.
    fn each_until(&mut self, part: usize, limit: Option<Key>, f: &mut impl FnMut(&T::Row<'_>)) {
        let Some(view) = &self.view else { return };
        let first = self.next;
        for i in first..self.batch_rows {
            let mut row = view.row(i);
            T::shift(&mut row, self.zero_ns);
            let key = key_of::<T>(&row, &mut self.last_time, self.source, part);
            if i > first && limit.is_some_and(|limit| key > limit) {
                return;
            }
            self.next = i;
            f(&row);
        }
    }

    fn row(&self) -> Option<T::Row<'_>> {
        let mut row = self.view.as_ref()?.row(self.next);
        T::shift(&mut row, self.zero_ns);
        Some(row)
    }
}

/// Key of a row of a part; `last_time` is that of the row before.
#[inline]
fn key_of<T: Table>(row: &T::Row<'_>, last_time: &mut i64, source: usize, part: usize) -> Key {
    if let Some(time) = T::time_ns(row) {
        *last_time = time;
    }
    (*last_time, source, if T::SORTED { T::line(row) } else { 0 }, part)
}
