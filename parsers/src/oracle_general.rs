//! libCacheSim's oracleGeneral: cache requests in records of 24 bytes.
//!
//! Little-endian: u32 time in seconds, u64 object, u32 size in bytes, i64 index of the object's next request (-1: none).
//! Objects are not places on a disk: they become `sector_512` as they are, each request a read.

use kreplay_traces::event::{BlockRow, EventSink};

use crate::csv::Span;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::fixed::{FixedLines, FixedRecord};
use crate::format::{Format, Head, ParseOptions, Parser, Score};

/// The format.
pub struct OracleGeneral;

/// Length of a record, bytes.
pub const RECORD_BYTES: usize = 24;

impl Format for OracleGeneral {
    fn id(&self) -> &'static str {
        "oracle-general"
    }

    fn about(&self) -> &'static str {
        "libCacheSim oracleGeneral cache trace (binary)"
    }

    /// There is no magic number: times must not fall, and each next request must lie ahead (or be none).
    fn sniff(&self, head: Head<'_>) -> Score {
        let records: Vec<Record> = head.bytes.chunks_exact(RECORD_BYTES).map(record).collect();
        let fits = crate::fixed::enough_records(head, RECORD_BYTES)
            && records.len() >= 2
            && records.windows(2).all(|w| w[0].time_s <= w[1].time_s)
            && records.iter().enumerate().all(|(i, r)| r.next < 0 || r.next as u64 > i as u64)
            && records.iter().all(|r| r.size > 0 && r.size < 1 << 30 && r.next < 1 << 40 && r.next >= -2)
            && records.last().is_some_and(|last| last.time_s - records[0].time_s < 10 * 365 * 86_400);
        if fits { 60 } else { 0 }
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(FixedLines::new(Records::default()))
    }
}

static BAD: Reason = Reason {
    code: "oracle-general-bad-record",
    expected: "an object below 2^63",
    hint: "objects are kept as sector numbers, which are signed",
};

struct Record {
    time_s: u32,
    object: u64,
    size: u32,
    next: i64,
}

fn record(b: &[u8]) -> Record {
    Record {
        time_s: u32::from_le_bytes(b[..4].try_into().unwrap_or([0; 4])),
        object: u64::from_le_bytes(b[4..12].try_into().unwrap_or([0; 8])),
        size: u32::from_le_bytes(b[12..16].try_into().unwrap_or([0; 4])),
        next: i64::from_le_bytes(b[16..24].try_into().unwrap_or([0; 8])),
    }
}

#[derive(Default)]
struct Records {
    span: Span,
}

impl FixedRecord for Records {
    const BYTES: usize = RECORD_BYTES;

    fn record(&mut self, bytes: &[u8], number: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let r = record(bytes);
        let Ok(sector) = i64::try_from(r.object) else { return Outcome::Reject(&BAD, None) };
        let time_ns = i64::from(r.time_s) * 1_000_000_000;
        self.span.seen(time_ns, number, diag);
        out.block(&BlockRow {
            time_ns,
            action: "Q",
            rwbs: "R",
            sector_512: Some(sector),
            len_bytes: Some(i64::from(r.size)),
            line: number,
            ..BlockRow::default()
        });
        Outcome::Event
    }

    fn end(&mut self, diag: &mut Diagnostics) {
        diag.option("clock", "trace");
        self.span.report(diag);
        diag.warn("objects-as-sectors", None, || {
            "objects of a cache trace stand for sectors; they have no place on a disk".into()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
        let mut v = time.to_le_bytes().to_vec();
        v.extend(object.to_le_bytes());
        v.extend(size.to_le_bytes());
        v.extend(next.to_le_bytes());
        v
    }

    #[test]
    fn records() {
        let bytes = [make(1, 7, 512, 1), make(2, 7, 512, -1), make(2, u64::MAX, 1, -1)].concat();
        let (rows, diag) = crate::parse_all(&OracleGeneral, &ParseOptions::default(), &bytes);
        let got: Vec<_> = rows.blocks.iter().map(|b| (b.time_ns, b.sector_512, b.len_bytes)).collect();
        assert_eq!(got, [(1_000_000_000, Some(7), Some(512)), (2_000_000_000, Some(7), Some(512))]);
        assert_eq!((diag.events(), diag.rejected()), (2, 1));
    }

    #[test]
    fn milliseconds_taken_for_seconds_are_suspect() {
        let codes = |step: u32| {
            let bytes: Vec<u8> = (0..200).flat_map(|i| make(i * step, 7, 512, -1)).collect();
            let (_, diag) = crate::parse_all(&OracleGeneral, &ParseOptions::default(), &bytes);
            diag.warnings().iter().map(|w| w.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(1), ["objects-as-sectors"]);
        assert_eq!(codes(1000), ["unit-suspect", "objects-as-sectors"]);
    }

    #[test]
    fn a_cut_file_is_known_by_its_whole_records() {
        let mut bytes: Vec<u8> = (0..6).flat_map(|i| make(i, 7, 512, i64::from(i) + 1)).collect();
        bytes.extend([0; 11]);
        assert_eq!(OracleGeneral.sniff(Head { bytes: &bytes, complete: true }), 60);
        // Two records and a rest may be anything.
        assert_eq!(OracleGeneral.sniff(Head { bytes: &bytes[..59], complete: true }), 0);
    }

    #[test]
    fn detection() {
        let good = [make(1, 7, 512, 1), make(2, 7, 512, -1)].concat();
        assert_eq!(OracleGeneral.sniff(Head { bytes: &good, complete: true }), 60);
        for bad in [
            [make(2, 7, 512, 1), make(1, 7, 512, -1)].concat(),
            [make(1, 7, 512, -1), make(1, 7, 512, 1)].concat(),
            vec![b'a'; 48],
        ] {
            assert_eq!(OracleGeneral.sniff(Head { bytes: &bad, complete: true }), 0);
        }
    }
}
