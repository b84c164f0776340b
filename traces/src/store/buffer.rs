//! From rows in any order to parts that are each sorted by (time, line), in bounded memory.
//!
//! Rows arrive nearly in time order: a resumed call is only known when it returns, a block trace's CPUs are merged a
//! little late. Each full batch is sorted; what is not earlier than everything written before goes on in the current
//! part, the rest is set aside, and when enough is set aside it becomes a part of its own. Readers merge the parts.

use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;

use super::manifest::PartInfo;
use super::part::{PartWriter, join};
use crate::error::{Error, Result};
use crate::schema::{RowBuilder, Table};

/// Rows in a batch: what is buffered before sorting.
const BATCH_ROWS: usize = 64 * 1024;
/// Rows after which a part is closed and a new one begun.
const PART_ROWS: u64 = 4 * 1024 * 1024;

/// Rows of one table and one source on their way to disk.
pub(super) struct TableBuffer<T: Table> {
    builder: T::Builder,
    rows: usize,
    total: u64,
    /// Rows of the batch so far are in order.
    ordered: bool,
    /// Key of the last row pushed.
    last: (i64, i64),
    /// First and last time of the batch.
    span_ns: Option<(i64, i64)>,
    /// Greatest key written to the current part.
    written: Option<(i64, i64)>,
    part: Option<PartWriter>,
    late: Vec<RecordBatch>,
    late_rows: usize,
}

/// Where parts go: directory, their numbers, and the list of finished ones.
pub(super) struct PartSink<'a> {
    pub(super) dir: &'a Path,
    pub(super) source: usize,
    pub(super) next_number: &'a mut usize,
    pub(super) finished: &'a mut Vec<PartInfo>,
}

impl PartSink<'_> {
    fn begin<T: Table>(&mut self) -> Result<PartWriter> {
        let part = PartWriter::create::<T>(self.dir, *self.next_number, self.source)?;
        *self.next_number += 1;
        Ok(part)
    }
}

impl<T: Table> TableBuffer<T> {
    pub(super) fn new() -> Self {
        Self {
            builder: T::Builder::with_capacity(0),
            rows: 0,
            total: 0,
            ordered: true,
            last: (i64::MIN, i64::MIN),
            span_ns: None,
            written: None,
            part: None,
            late: Vec::new(),
            late_rows: 0,
        }
    }

    /// Rows taken so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Take a row; true if the batch is full and must be flushed.
    #[inline]
    pub(super) fn push(&mut self, row: &T::Row<'_>) -> bool {
        let time = T::time_ns(row);
        if let Some(t) = time {
            self.span_ns = join(self.span_ns, Some((t, t)));
        }
        if T::SORTED {
            let key = (time.unwrap_or(i64::MIN), T::line(row));
            self.ordered &= key >= self.last;
            self.last = key;
        }
        self.builder.push(row);
        self.rows += 1;
        self.total += 1;
        self.rows >= BATCH_ROWS
    }

    /// Write the batch.
    pub(super) fn flush(&mut self, sink: &mut PartSink<'_>) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let batch = self.builder.finish().map_err(arrow_error::<T>)?;
        let span = self.span_ns.take();
        let ordered = std::mem::replace(&mut self.ordered, true);
        self.rows = 0;
        self.last = (i64::MIN, i64::MIN);
        if !T::SORTED {
            return self.write(batch, span, sink);
        }
        let batch = if ordered { batch } else { sorted::<T>(&batch)? };
        let late = match self.written {
            Some(written) => rows_before(&batch, written),
            None => 0,
        };
        if late > 0 {
            self.late.push(batch.slice(0, late));
            self.late_rows += late;
        }
        if late < batch.num_rows() {
            let rest = batch.slice(late, batch.num_rows() - late);
            self.written = Some(key_at(&rest, rest.num_rows() - 1));
            let span = span_of(&rest);
            self.write(rest, span, sink)?;
        }
        if self.late_rows >= BATCH_ROWS {
            self.write_late(sink)?;
        }
        Ok(())
    }

    fn write(&mut self, batch: RecordBatch, span: Option<(i64, i64)>, sink: &mut PartSink<'_>) -> Result<()> {
        let part = match &mut self.part {
            Some(part) => part,
            none => none.insert(sink.begin::<T>()?),
        };
        let accepted = part.write(batch, span);
        // A part that takes no more has failed: closing it tells why.
        if (!accepted || part.rows() >= PART_ROWS)
            && let Some(part) = self.part.take()
        {
            sink.finished.push(part.finish()?);
        }
        Ok(())
    }

    fn write_late(&mut self, sink: &mut PartSink<'_>) -> Result<()> {
        if self.late.is_empty() {
            return Ok(());
        }
        let all = concat_batches(&T::schema(), &self.late).map_err(arrow_error::<T>)?;
        self.late.clear();
        self.late_rows = 0;
        let all = sorted::<T>(&all)?;
        let mut part = sink.begin::<T>()?;
        let span = span_of(&all);
        part.write(all, span);
        sink.finished.push(part.finish()?);
        Ok(())
    }

    /// Write what is left and close the parts.
    pub(super) fn finish(mut self, sink: &mut PartSink<'_>) -> Result<()> {
        self.flush(sink)?;
        self.write_late(sink)?;
        if let Some(part) = self.part.take() {
            sink.finished.push(part.finish()?);
        }
        Ok(())
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
    let key = |i: u32| {
        let i = i as usize;
        (if times.is_null(i) { i64::MIN } else { times.value(i) }, lines.value(i))
    };
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.sort_by_cached_key(|i| key(*i));
    let order = UInt32Array::from(order);
    let columns: std::result::Result<Vec<ArrayRef>, ArrowError> =
        batch.columns().iter().map(|c| take(c, &order, None)).collect();
    RecordBatch::try_new(batch.schema(), columns.map_err(arrow_error::<T>)?).map_err(arrow_error::<T>)
}
