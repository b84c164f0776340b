//! Binary traces of records of one length without a magic number.

use kreplay_traces::event::EventSink;

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Head, Parser};
use crate::lines::Line;

/// Whole records that a cut file must have to be known by them: a rest that is no record speaks against the format.
const CUT_RECORDS: usize = 4;

/// The head is nothing but records of this length, or has enough of them before its cut end.
pub(crate) fn enough_records(head: Head<'_>, record_bytes: usize) -> bool {
    let length = head.bytes.len();
    !head.complete || length.is_multiple_of(record_bytes) || length / record_bytes >= CUT_RECORDS
}

/// A record format.
pub(crate) trait FixedRecord: Send {
    /// Length of a record, bytes.
    const BYTES: usize;
    /// Take a whole record.
    fn record(&mut self, record: &[u8], number: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome;
    /// The input is over.
    fn end(&mut self, diag: &mut Diagnostics);
}

static TRUNCATED: Reason = Reason {
    code: "record-truncated",
    expected: "a whole record",
    hint: "the file was cut; all whole records before this place are kept",
};

/// Cuts the input into records.
pub(crate) struct FixedLines<R> {
    records: R,
    pending: Vec<u8>,
    number: i64,
}

impl<R: FixedRecord> FixedLines<R> {
    pub(crate) fn new(records: R) -> Self {
        Self { records, pending: Vec::new(), number: 0 }
    }

    fn one(&mut self, bytes: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if diag.stopped() {
            return;
        }
        let line = Line { bytes, number: self.number + 1, offset: self.number * R::BYTES as i64 };
        self.number += 1;
        let outcome = if bytes.len() == R::BYTES {
            self.records.record(bytes, self.number, out, diag)
        } else {
            Outcome::Reject(&TRUNCATED, None)
        };
        diag.record(outcome, &line, out);
    }
}

impl<R: FixedRecord> Parser for FixedLines<R> {
    fn feed(&mut self, mut chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if !self.pending.is_empty() {
            let take = chunk.len().min(R::BYTES - self.pending.len());
            self.pending.extend_from_slice(&chunk[..take]);
            chunk = &chunk[take..];
            if self.pending.len() < R::BYTES {
                return;
            }
            let pending = std::mem::take(&mut self.pending);
            self.one(&pending, out, diag);
        }
        let mut records = chunk.chunks_exact(R::BYTES);
        for record in records.by_ref() {
            self.one(record, out, diag);
        }
        self.pending.extend_from_slice(records.remainder());
    }

    fn finish(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.one(&pending, out, diag);
        }
        self.records.end(diag);
    }
}
