//! Files of btrecord (`DEVICE.replay.N`): the requests that btreplay issues, in bunches.
//!
//! In the byte order of the recording machine, all numbers 64 bits wide but the last: a file header (version, genesis,
//! number of bunches, number of requests); then bunches, each with its number of requests and its time in nanoseconds,
//! followed by as many requests of 24 bytes (sector, bytes, 32 bits of direction: 0 write, 1 read, and 4 of padding).
//! Layout after blktrace's `btreplay/btrecord.h`. The device is not in the file. All requests of a bunch have its time.

use kreplay_traces::event::{BlockRow, EventSink};

use crate::carry::Carry;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::lines::Line;

/// The format.
pub struct Btrecord;

const FILE_HEADER_BYTES: usize = 32;
const BUNCH_HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 24;
/// btreplay's own limit.
const MAX_REQUESTS: u64 = 512;

impl Format for Btrecord {
    fn id(&self) -> &'static str {
        "btrecord"
    }

    fn about(&self) -> &'static str {
        "btrecord's bunches of requests (DEVICE.replay.N)"
    }

    /// There is no magic number: a plausible version, and a first bunch that fits the header.
    fn sniff(&self, head: Head<'_>) -> Score {
        let fits = order_of(head.bytes).is_some_and(|order| {
            let n = |at| order.u64(head.bytes, at);
            let (genesis, bunches, requests) = (n(8), n(16), n(24));
            let first = head.bytes.len() >= FILE_HEADER_BYTES + BUNCH_HEADER_BYTES + REQUEST_BYTES
                && (1..=MAX_REQUESTS).contains(&n(32))
                && n(40) >= genesis
                && order.u32(head.bytes, 64) <= 1;
            first && bunches >= 1 && requests >= bunches && requests <= bunches.saturating_mul(MAX_REQUESTS)
        });
        if fits { 95 } else { 0 }
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(BtrecordParser::default())
    }
}

static BAD_HEADER: Reason = Reason {
    code: "btrecord-bad-header",
    expected: "a file header with a version of btrecord (0.9.x, 1.x), or a bunch of 1 to 512 requests",
    hint: "the file is damaged here; nothing behind this place can be read",
};
static BAD_REQUEST: Reason = Reason {
    code: "btrecord-bad-request",
    expected: "a sector below 2^54, a length below 2^63, direction 0 (write) or 1 (read)",
    hint: "the file is damaged here",
};
static TRUNCATED: Reason = Reason {
    code: "btrecord-truncated",
    expected: "a whole record",
    hint: "the file was cut; all whole records before this place are kept",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word = bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).unwrap_or([0; 8]);
        if self == Self::Little { u64::from_le_bytes(word) } else { u64::from_be_bytes(word) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).unwrap_or([0; 4]);
        if self == Self::Little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    }
}

/// The byte order that makes the version (`major << 16 | minor << 8 | sub`) one of btrecord's.
fn order_of(header: &[u8]) -> Option<Order> {
    (header.len() >= 8).then_some(())?;
    [Order::Little, Order::Big]
        .into_iter()
        .find(|order| matches!(order.u64(header, 0), v @ 0x0900..=0x02_ffff if v & 0xff00 <= 0x6300))
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    FileHeader,
    BunchHeader,
    Requests(u64),
    /// The file cannot be read on.
    Nothing,
}

#[derive(Default)]
struct BtrecordParser {
    pending: Carry,
    next: Next,
    big_endian: bool,
    time_ns: i64,
    last_ns: Option<i64>,
    number: i64,
    offset: i64,
}

impl BtrecordParser {
    fn records(&mut self, bytes: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> usize {
        let mut at = 0;
        while !diag.stopped() {
            let length = match self.next {
                Next::FileHeader => FILE_HEADER_BYTES,
                Next::BunchHeader => BUNCH_HEADER_BYTES,
                Next::Requests(_) => REQUEST_BYTES,
                Next::Nothing => return bytes.len(),
            };
            let Some(record) = bytes.get(at..at + length) else { break };
            self.number += 1;
            let outcome = self.record(record, out, diag);
            diag.record(outcome, &Line { bytes: record, number: self.number, offset: self.offset }, out);
            self.offset += length as i64;
            at += length;
        }
        at
    }

    fn record(&mut self, record: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let order = if self.big_endian { Order::Big } else { Order::Little };
        match self.next {
            Next::FileHeader => match order_of(record) {
                Some(order) => {
                    self.big_endian = order == Order::Big;
                    self.next = Next::BunchHeader;
                    let version = order.u64(record, 0);
                    diag.option("version", format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff));
                    Outcome::Note("header")
                }
                None => {
                    self.next = Next::Nothing;
                    Outcome::Reject(&BAD_HEADER, None)
                }
            },
            Next::BunchHeader => {
                let (requests, time) = (order.u64(record, 0), i64::try_from(order.u64(record, 8)));
                match time {
                    Ok(time_ns) if (1..=MAX_REQUESTS).contains(&requests) => {
                        if let Some(last) = self.last_ns.filter(|last| *last > time_ns) {
                            diag.warn("time-backwards", Some(self.number), || {
                                format!("a bunch is {} ns earlier than the one before it", last.abs_diff(time_ns))
                            });
                        }
                        self.last_ns = Some(time_ns);
                        self.time_ns = time_ns;
                        self.next = Next::Requests(requests);
                        Outcome::Note("bunch")
                    }
                    _ => {
                        self.next = Next::Nothing;
                        Outcome::Reject(&BAD_HEADER, None)
                    }
                }
            }
            Next::Requests(left) => {
                self.next = if left > 1 { Next::Requests(left - 1) } else { Next::BunchHeader };
                let sector = i64::try_from(order.u64(record, 0)).ok().filter(|s| *s < 1 << 54);
                let len = i64::try_from(order.u64(record, 8)).ok();
                let rwbs = match order.u32(record, 16) {
                    0 => "W",
                    1 => "R",
                    _ => return Outcome::Reject(&BAD_REQUEST, Some(16)),
                };
                let (Some(sector), Some(len)) = (sector, len) else { return Outcome::Reject(&BAD_REQUEST, Some(0)) };
                out.block(&BlockRow {
                    time_ns: self.time_ns,
                    action: "Q",
                    rwbs,
                    sector_512: Some(sector),
                    len_bytes: Some(len),
                    line: self.number,
                    ..BlockRow::default()
                });
                Outcome::Event
            }
            Next::Nothing => Outcome::Reject(&BAD_HEADER, None),
        }
    }
}

impl Parser for BtrecordParser {
    fn feed(&mut self, chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.feed(chunk, |bytes| self.records(bytes, out, diag));
        self.pending = pending;
    }

    fn finish(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let pending = self.pending.rest();
        if !pending.is_empty() && !diag.stopped() {
            self.number += 1;
            let line = Line { bytes: &pending, number: self.number, offset: self.offset };
            diag.record(Outcome::Reject(&TRUNCATED, None), &line, out);
        }
        diag.option("clock", "trace");
        diag.option("device", "not in the file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(big: bool) -> Vec<u8> {
        let n64 = |n: u64| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let n32 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut v: Vec<u8> = [0x0903u64, 100, 2, 3].into_iter().flat_map(n64).collect();
        for (time, requests) in [(100u64, &[(64u64, 1u32), (72, 0)][..]), (250, &[(8, 1)])] {
            v.extend(n64(requests.len() as u64));
            v.extend(n64(time));
            for (sector, rw) in requests {
                v.extend(n64(*sector));
                v.extend(n64(4096));
                v.extend(n32(*rw));
                v.extend([0; 4]);
            }
        }
        v
    }

    #[test]
    fn both_byte_orders() {
        for big in [false, true] {
            let bytes = file(big);
            assert_eq!(Btrecord.sniff(Head { bytes: &bytes, complete: true }), 95);
            let (rows, diag) = crate::parse_all(&Btrecord, &ParseOptions::default(), &bytes);
            let got: Vec<_> = rows.blocks.iter().map(|b| (b.time_ns, b.rwbs.as_str(), b.sector_512)).collect();
            assert_eq!(got, [(100, "R", Some(64)), (100, "W", Some(72)), (250, "R", Some(8))]);
            assert_eq!((diag.events(), diag.note_count("bunch"), diag.rejected()), (3, 2, 0));
            assert_eq!(diag.options()["version"], "0.9.3");
        }
    }

    #[test]
    fn damage_and_cuts() {
        let bytes = file(false);
        let (rows, diag) = crate::parse_all(&Btrecord, &ParseOptions::default(), &bytes[..60]);
        assert_eq!((rows.blocks.len(), diag.rejects()[0].reason.code), (0, "btrecord-truncated"));
        let mut bad = bytes.clone();
        bad[32] = 0;
        let (rows, diag) = crate::parse_all(&Btrecord, &ParseOptions::default(), &bad);
        assert_eq!((rows.blocks.len(), diag.rejects()[0].first_byte), (0, 32));
        let mut bad = bytes;
        bad[64] = 7;
        assert_eq!(crate::parse_all(&Btrecord, &ParseOptions::default(), &bad).1.rejected(), 1);
        assert_eq!(
            Btrecord.sniff(Head { bytes: b"hello, this is a text and nothing but a text, I say it", complete: true }),
            0
        );
    }
}
