//! From rows in any order to parts that are each sorted by (time, line), in bounded memory.
//!
//! Rows arrive nearly in time order: a resumed call is only known when it returns, a block trace's CPUs are merged a
//! little late. Each full batch is sorted; what is not earlier than everything written before goes on in the current
//! part, the rest is set aside, and when enough is set aside it becomes a part of its own. Readers merge the parts.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;

use super::manifest::PartInfo;
use super::part::{PartWriter, join};
use crate::error::{Doing, Error, Result};
use crate::schema::{RowBuilder, Table};

/// Rows in a batch: what is buffered before sorting. A column of it takes 64 KiB: the caches hold a few of them, and the
/// allocator keeps such pieces where it returns larger ones to the system each time.
const BATCH_ROWS: usize = 8 * 1024;
/// Bytes of text after which a batch is full with fewer rows.
pub(super) const BATCH_TEXT_BYTES: usize = 4 << 20;
/// Late rows that are set aside before they become a part of their own.
const LATE_ROWS: usize = 64 * 1024;
/// Rows after which a part is closed and a new one begun.
const PART_ROWS: u64 = 4 * 1024 * 1024;

/// Batches that wait for the encoder at most: enough that parsing and encoding do not wait for each other, few enough
/// that memory stays small.
const QUEUE_BATCHES: usize = 2;

/// Rows of one table and one source on their way to disk.
///
/// Sorting, encoding and compressing take as long as parsing: from the second batch on they run in a thread of their
/// own, batch by batch in the order of writing, so that the files do not depend on it.
pub(super) struct TableBuffer<T: Table> {
    builder: T::Builder,
    rows: usize,
    /// Rows of the batches before.
    flushed: u64,
    /// Rows of the batch so far are in order.
    ordered: bool,
    /// Key of the last row pushed.
    last: (i64, i64),
    /// First and last time of the batch; the first is after the last while there is none.
    batch_ns: (i64, i64),
    /// First and last time of the batches before it.
    span_ns: Option<(i64, i64)>,
    stage: Option<Stage<T>>,
}

/// The span of a batch without times.
const NO_TIMES: (i64, i64) = (i64::MAX, i64::MIN);

/// Where parts go: directory, source, and number of the next part.
#[derive(Clone, Copy)]
pub(super) struct PartPlace<'a> {
    pub(super) dir: &'a Path,
    pub(super) source: usize,
    pub(super) next_number: usize,
}

/// A full batch.
struct Batch {
    rows: RecordBatch,
    ordered: bool,
    span_ns: Option<(i64, i64)>,
}

/// Who makes the parts.
enum Stage<T: Table> {
    /// The caller's thread: it has seen one batch at most.
    Here(Box<Parts<T>>),
    /// A thread of its own.
    There { queue: SyncSender<Batch>, thread: JoinHandle<Result<Finished>> },
}

/// The finished parts of a table, and the number after the last.
pub(super) struct Finished {
    pub(super) parts: Vec<PartInfo>,
    pub(super) next_number: usize,
}

impl<T: Table> TableBuffer<T> {
    pub(super) fn new() -> Self {
        Self {
            builder: T::Builder::with_capacity(0),
            rows: 0,
            flushed: 0,
            ordered: true,
            last: (i64::MIN, i64::MIN),
            batch_ns: NO_TIMES,
            span_ns: None,
            stage: None,
        }
    }

    /// Rows taken so far.
    pub(super) fn total(&self) -> u64 {
        self.flushed + self.rows as u64
    }

    /// Take a row; true if the batch is full and must be flushed.
    #[inline]
    pub(super) fn push(&mut self, row: &T::Row<'_>) -> bool {
        let time = T::time_ns(row);
        if let Some(t) = time {
            self.batch_ns = (self.batch_ns.0.min(t), self.batch_ns.1.max(t));
        }
        if T::SORTED {
            let key = (time.unwrap_or(i64::MIN), T::line(row));
            self.ordered &= key >= self.last;
            self.last = key;
        }
        self.builder.push(row);
        self.rows += 1;
        self.rows >= BATCH_ROWS || self.builder.text_bytes() >= BATCH_TEXT_BYTES
    }

    /// First and last time of all rows that have one.
    pub(super) fn span_ns(&self) -> Option<(i64, i64)> {
        join(self.span_ns, some_span(self.batch_ns))
    }

    /// Hand the batch over.
    pub(super) fn flush(&mut self, place: PartPlace<'_>) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = self.builder.finish().map_err(arrow_error::<T>)?;
        let span_ns = some_span(std::mem::replace(&mut self.batch_ns, NO_TIMES));
        self.span_ns = join(self.span_ns, span_ns);
        let batch = Batch { rows, ordered: std::mem::replace(&mut self.ordered, true), span_ns };
        self.flushed += self.rows as u64;
        self.rows = 0;
        self.last = (i64::MIN, i64::MIN);
        let stage = match self.stage.take() {
            None => {
                let mut parts = Box::new(Parts::<T>::new(place));
                parts.take(batch)?;
                Stage::Here(parts)
            }
            Some(Stage::Here(parts)) => parts.in_a_thread(batch)?,
            Some(Stage::There { queue, thread }) => match queue.send(batch) {
                Ok(()) => Stage::There { queue, thread },
                // It takes no more because it has failed: its end tells why.
                Err(_) => return join_thread::<T>(thread).map(|_| ()),
            },
        };
        self.stage = Some(stage);
        Ok(())
    }

    /// Write what is left and close the parts.
    pub(super) fn finish(mut self, place: PartPlace<'_>) -> Result<Finished> {
        self.flush(place)?;
        match self.stage.take() {
            None => Ok(Finished { parts: Vec::new(), next_number: place.next_number }),
            Some(Stage::Here(parts)) => parts.finish(),
            Some(Stage::There { queue, thread }) => {
                drop(queue);
                join_thread::<T>(thread)
            }
        }
    }

    /// Give up: what was finished of it is told, to be removed.
    pub(super) fn abandon(mut self) -> Vec<PartInfo> {
        match self.stage.take() {
            None => Vec::new(),
            Some(Stage::Here(parts)) => parts.finished,
            Some(Stage::There { queue, thread }) => {
                drop(queue);
                join_thread::<T>(thread).map_or_else(|_| Vec::new(), |finished| finished.parts)
            }
        }
    }
}

impl<T: Table> Drop for TableBuffer<T> {
    /// No thread outlives the buffer: it would write into a directory that may be gone.
    fn drop(&mut self) {
        if let Some(Stage::There { queue, thread }) = self.stage.take() {
            drop(queue);
            let _ = thread.join();
        }
    }
}

fn some_span(span: (i64, i64)) -> Option<(i64, i64)> {
    (span.0 <= span.1).then_some(span)
}

fn join_thread<T: Table>(thread: JoinHandle<Result<Finished>>) -> Result<Finished> {
    let died = || Err(Error::Encode { table: T::NAME, why: "the encoder panicked".to_owned() });
    thread.join().unwrap_or_else(|_| died())
}

/// The parts of a table and source: rows in order go on in the current one, late rows are set aside for one of their own.
struct Parts<T: Table> {
    dir: PathBuf,
    source: usize,
    next_number: usize,
    finished: Vec<PartInfo>,
    /// Greatest key written to the current part.
    written: Option<(i64, i64)>,
    part: Option<PartWriter>,
    late: Vec<RecordBatch>,
    late_rows: usize,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> Parts<T> {
    fn new(place: PartPlace<'_>) -> Self {
        Self {
            dir: place.dir.to_path_buf(),
            source: place.source,
            next_number: place.next_number,
            finished: Vec::new(),
            written: None,
            part: None,
            late: Vec::new(),
            late_rows: 0,
            table: PhantomData,
        }
    }

    /// Go on in a thread, with this batch first.
    fn in_a_thread(mut self: Box<Self>, batch: Batch) -> Result<Stage<T>> {
        let (queue, batches) = sync_channel::<Batch>(QUEUE_BATCHES);
        let dir = self.dir.clone();
        let thread = std::thread::Builder::new()
            .name(format!("encode {}", T::NAME))
            .spawn(move || {
                self.take(batch)?;
                for batch in batches {
                    self.take(batch)?;
                }
                self.finish()
            })
            .map_err(|e| Error::io(dir, Doing::Writing, e))?;
        Ok(Stage::There { queue, thread })
    }

    fn take(&mut self, batch: Batch) -> Result<()> {
        if !T::SORTED {
            return self.write(&batch.rows, batch.span_ns);
        }
        let rows = if batch.ordered { batch.rows } else { sorted::<T>(&batch.rows)? };
        let late = match self.written {
            Some(written) => rows_before(&rows, written),
            None => 0,
        };
        if late > 0 {
            // A copy: a slice would keep the whole batch in memory for the sake of a few rows.
            self.late.push(picked::<T>(&rows, &UInt32Array::from_iter_values(0..late as u32))?);
            self.late_rows += late;
        }
        if late < rows.num_rows() {
            let rest = rows.slice(late, rows.num_rows() - late);
            self.written = Some(key_at(&rest, rest.num_rows() - 1));
            self.write(&rest, span_of(&rest))?;
        }
        if self.late_rows >= LATE_ROWS {
            self.write_late()?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<PartWriter> {
        let part = PartWriter::create::<T>(&self.dir, self.next_number, self.source)?;
        self.next_number += 1;
        Ok(part)
    }

    fn write(&mut self, batch: &RecordBatch, span: Option<(i64, i64)>) -> Result<()> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.begin()?,
        };
        part.write(batch, span)?;
        if part.rows() >= PART_ROWS {
            self.finished.push(part.finish()?);
        } else {
            self.part = Some(part);
        }
        Ok(())
    }

    fn write_late(&mut self) -> Result<()> {
        if self.late.is_empty() {
            return Ok(());
        }
        let all = concat_batches(&T::schema(), &self.late).map_err(arrow_error::<T>)?;
        self.late.clear();
        self.late_rows = 0;
        let all = sorted::<T>(&all)?;
        let mut part = self.begin()?;
        part.write(&all, span_of(&all))?;
        self.finished.push(part.finish()?);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Finished> {
        self.write_late()?;
        if let Some(part) = self.part.take() {
            self.finished.push(part.finish()?);
        }
        Ok(Finished { parts: self.finished, next_number: self.next_number })
    }
}

fn arrow_error<T: Table>(e: ArrowError) -> Error {
    Error::Encode { table: T::NAME, why: e.to_string() }
}

fn int_column<'a>(batch: &'a RecordBatch, name: &str) -> &'a Int64Array {
    // The builders of sorted tables always make these two columns.
    batch
        .column_by_name(name)
        .and_then(|c| c.as_primitive_opt::<Int64Type>())
        .expect("sorted tables have time and line")
}

fn key_at(batch: &RecordBatch, i: usize) -> (i64, i64) {
    (int_column(batch, "time_ns").value(i), int_column(batch, "line").value(i))
}

fn span_of(sorted: &RecordBatch) -> Option<(i64, i64)> {
    let times = int_column(sorted, "time_ns");
    (!times.is_empty()).then(|| (times.value(0), times.value(times.len() - 1)))
}

/// How many rows of a sorted batch come before `key`.
fn rows_before(sorted: &RecordBatch, key: (i64, i64)) -> usize {
    let (mut low, mut high) = (0, sorted.num_rows());
    while low < high {
        let mid = low.midpoint(high);
        if key_at(sorted, mid) < key { low = mid + 1 } else { high = mid }
    }
    low
}

/// Stable sort by (time, line), rows without a time first.
fn sorted<T: Table>(batch: &RecordBatch) -> Result<RecordBatch> {
    let (times, lines) = (int_column(batch, "time_ns"), int_column(batch, "line"));
    let time = |i: usize| if times.is_null(i) { i64::MIN } else { times.value(i) };
    let mut keys: Vec<Key> = (0..batch.num_rows()).map(|i| (time(i), lines.value(i), i as u32)).collect();
    if !sort_nearly_sorted(&mut keys) {
        keys.sort_unstable();
    }
    picked::<T>(batch, &UInt32Array::from_iter_values(keys.into_iter().map(|key| key.2)))
}

/// Time, line, and index in the batch.
type Key = (i64, i64, u32);

/// Sort by insertion: calls that overlap end a few places from where they began. Gives up, with the keys in some order,
/// where that takes more moves than a general sort.
fn sort_nearly_sorted(keys: &mut [Key]) -> bool {
    let mut moves = keys.len() * 8;
    for i in 1..keys.len() {
        let key = keys[i];
        let mut at = i;
        while at > 0 && keys[at - 1] > key {
            keys[at] = keys[at - 1];
            at -= 1;
        }
        keys[at] = key;
        match moves.checked_sub(i - at) {
            Some(left) => moves = left,
            None => return false,
        }
    }
    true
}

/// Copies of these rows, in this order.
fn picked<T: Table>(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    let columns: std::result::Result<Vec<ArrayRef>, ArrowError> =
        batch.columns().iter().map(|c| take(c, rows, None)).collect();
    RecordBatch::try_new(batch.schema(), columns.map_err(arrow_error::<T>)?).map_err(arrow_error::<T>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_sorted_keys_are_sorted_and_others_left() {
        let near: Vec<Key> = (0..1000).map(|i| (i64::from(i / 3 * 3 + (7 - i % 7)), 0, i as u32)).collect();
        let mut keys = near.clone();
        assert!(sort_nearly_sorted(&mut keys));
        let mut expected = near;
        expected.sort_unstable();
        assert_eq!(keys, expected);
        let mut far: Vec<Key> = (0..1000).rev().map(|i| (i, 0, 0)).collect();
        assert!(!sort_nearly_sorted(&mut far));
        far.sort_unstable();
        assert!(far.iter().map(|k| k.0).eq(0..1000), "none is lost");
    }
}
