//! CloudPhysics traces of a VMware vSCSI layer: the CSV `version,time,op,size,lbn` and its binary twins.
//!
//! CSV: time in whole seconds, op a SCSI opcode in hexadecimal, size in bytes, lbn in 512-byte blocks. Binary, version 1
//! (32 bytes) and 2 (40 bytes, with a response time), little-endian, times in microseconds. Layout after libCacheSim's
//! `reader/customizedReader/vscsi.h`, the only public description.

use kreplay_traces::event::EventSink;

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, Span};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::fixed::{FixedLines, FixedRecord};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::num::{dec_i64, hex_u64};

/// The text form.
pub static CLOUDPHYSICS_CSV: CsvTrace<CloudphysicsLines> = CsvTrace::new();
/// The binary form, version 1.
pub struct VscsiV1;
/// The binary form, version 2.
pub struct VscsiV2;

static BAD: Reason = Reason {
    code: "cloudphysics-bad-line",
    expected: "`version,seconds,SCSI opcode in hexadecimal,size bytes,block`",
    hint: "the line was cut, or the columns are those of another trace",
};
static BAD_OPCODE: Reason = Reason {
    code: "vscsi-bad-record",
    expected: "a read or write opcode (28, 2a, 88, 8a, a8, aa, 08, 0a) and a version of 1 or 2",
    hint: "the file is damaged, or no vSCSI trace",
};

/// Read or write of a SCSI opcode (SBC-3): the 6, 10, 12 and 16 byte forms.
fn opcode(code: u64) -> Option<&'static str> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some("R"),
        0x0a | 0x2a | 0x8a | 0xaa => Some("W"),
        _ => None,
    }
}

/// Lines of the text form.
#[derive(Default)]
pub struct CloudphysicsLines;

impl CsvFormat for CloudphysicsLines {
    const ID: &'static str = "cloudphysics-csv";
    const ABOUT: &'static str = "CloudPhysics vSCSI trace (CSV: version,time,op,size,lbn)";
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "trace";

    fn is_header(&self, line: &[u8]) -> bool {
        line == b"version,time,op,size,lbn"
    }

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        if !matches!(f[0], b"1" | b"2") {
            return Err(0);
        }
        Ok(Request {
            time_ns: dec_i64(f[1]).and_then(|s| s.checked_mul(1_000_000_000)).ok_or(1usize)?,
            rwbs: hex_u64(f[2]).and_then(opcode).ok_or(2usize)?,
            len_bytes: dec_i64(f[3]).ok_or(3usize)?,
            offset_bytes: crate::csv::sectors(f[4]).ok_or(4usize)?,
            ..Request::default()
        })
    }
}

/// Records of the binary forms.
#[derive(Default)]
struct Vscsi<const V: u8> {
    span: Span,
}

fn u16_at(r: &[u8], at: usize) -> u64 {
    u64::from(u16::from_le_bytes([r[at], r[at + 1]]))
}

fn u32_at(r: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(r[at..at + 4].try_into().unwrap_or([0; 4])))
}

fn u64_at(r: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(r[at..at + 8].try_into().unwrap_or([0; 8]))
}

/// A request of a whole record; `None` where it cannot be one.
fn vscsi(version: u8, r: &[u8]) -> Option<Request<'static>> {
    let (command, ver, len, block, micros, latency) = match version {
        1 => (u16_at(r, 12), u16_at(r, 14), u32_at(r, 4), u64_at(r, 16), u64_at(r, 24), None),
        _ => (u16_at(r, 0), u16_at(r, 2), u32_at(r, 8), u64_at(r, 16), u64_at(r, 24), Some(u64_at(r, 32))),
    };
    if ver >> 8 != u64::from(version) {
        return None;
    }
    let ns = |us: u64| i64::try_from(us).ok()?.checked_mul(1000);
    Some(Request {
        time_ns: ns(micros)?,
        rwbs: opcode(command)?,
        offset_bytes: i64::try_from(block).ok()?.checked_mul(512)?,
        len_bytes: len as i64,
        latency_ns: match latency {
            Some(us) => Some(ns(us)?),
            None => None,
        },
        ..Request::default()
    })
}

impl<const V: u8> FixedRecord for Vscsi<V> {
    const BYTES: usize = if V == 1 { 32 } else { 40 };

    fn record(&mut self, r: &[u8], number: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        match vscsi(V, r) {
            Some(request) => {
                self.span.take(&request, number, out, diag);
                Outcome::Event
            }
            None => Outcome::Reject(&BAD_OPCODE, None),
        }
    }

    fn end(&mut self, diag: &mut Diagnostics) {
        diag.option("clock", "trace");
        self.span.report(diag);
    }
}

/// Share of the head's records that are requests; all of the first 16 must be.
fn sniff(version: u8, size: usize, head: Head<'_>) -> Score {
    let mut records = head.bytes.chunks_exact(size).take(256).map(|r| vscsi(version, r).is_some());
    let first = records.by_ref().take(16).collect::<Vec<_>>();
    let plausible = !first.is_empty() && first.iter().all(|ok| *ok) && crate::fixed::enough_records(head, size);
    if plausible && records.all(|ok| ok) { 95 } else { 0 }
}

impl Format for VscsiV1 {
    fn id(&self) -> &'static str {
        "vscsi1"
    }

    fn about(&self) -> &'static str {
        "CloudPhysics vSCSI trace (binary, version 1)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        sniff(1, 32, head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(FixedLines::new(Vscsi::<1>::default()))
    }
}

impl Format for VscsiV2 {
    fn id(&self) -> &'static str {
        "vscsi2"
    }

    fn about(&self) -> &'static str {
        "CloudPhysics vSCSI trace (binary, version 2)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        sniff(2, 40, head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(FixedLines::new(Vscsi::<2>::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        let text =
            b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633898,28,6656,40409911\n1,5633898,12,36,0\n";
        let (rows, diag) = crate::parse_all(&CLOUDPHYSICS_CSV, &ParseOptions::default(), text);
        let got: Vec<_> = rows.blocks.iter().map(|b| (b.rwbs.as_str(), b.sector_512, b.len_bytes)).collect();
        assert_eq!(got, [("W", Some(42_932_745), Some(512)), ("R", Some(40_409_911), Some(6656))]);
        assert_eq!((diag.rejected(), rows.rejects[0].column), (1, Some(11)));
    }

    #[test]
    fn binary() {
        let mut v1 = Vec::new();
        v1.extend(1u32.to_le_bytes());
        v1.extend(512u32.to_le_bytes());
        v1.extend(1u32.to_le_bytes());
        v1.extend(0x2au16.to_le_bytes());
        v1.extend(0x0100u16.to_le_bytes());
        v1.extend(42_932_745u64.to_le_bytes());
        v1.extend(5_633_898_368_802u64.to_le_bytes());
        let head = Head { bytes: &v1, complete: true };
        assert_eq!((VscsiV1.sniff(head), VscsiV2.sniff(head)), (95, 0));
        let (rows, diag) = crate::parse_all(&VscsiV1, &ParseOptions::default(), &[&v1[..], &v1[..20]].concat());
        let b = &rows.blocks[0];
        assert_eq!((b.rwbs.as_str(), b.sector_512, b.time_ns), ("W", Some(42_932_745), 5_633_898_368_802_000));
        assert_eq!((diag.events(), diag.rejected()), (1, 1));

        let cut = [&v1.repeat(4)[..], &v1[..20]].concat();
        assert_eq!(VscsiV1.sniff(Head { bytes: &cut, complete: true }), 95);
        assert_eq!(VscsiV1.sniff(Head { bytes: &cut[64..], complete: true }), 0);

        let mut v2 = Vec::new();
        v2.extend(0x28u16.to_le_bytes());
        v2.extend(0x0200u16.to_le_bytes());
        v2.extend([0; 4]);
        v2.extend(4096u32.to_le_bytes());
        v2.extend([0; 4]);
        v2.extend(8u64.to_le_bytes());
        v2.extend(10u64.to_le_bytes());
        v2.extend(7u64.to_le_bytes());
        assert_eq!(VscsiV2.sniff(Head { bytes: &v2, complete: true }), 95);
        let (rows, _) = crate::parse_all(&VscsiV2, &ParseOptions::default(), &v2);
        let got: Vec<_> = rows.blocks.iter().map(|b| (b.action.as_str(), b.time_ns)).collect();
        assert_eq!(got, [("Q", 10_000), ("C", 17_000)]);
    }
}
