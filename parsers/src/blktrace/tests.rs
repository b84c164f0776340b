use std::io::Read;

use super::merge::Merged;
use super::*;
use crate::rows::{Block, Rows};

/// A record under construction.
#[derive(Clone, Default)]
struct Make {
    seq: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    cpu: u32,
    error: u16,
    pdu: Vec<u8>,
}

const DEV: u32 = 8 << 20;

impl Make {
    fn v7(&self, big: bool) -> Vec<u8> {
        let mut v = Vec::new();
        let n32 = |x: u32| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        let n64 = |x: u64| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        let n16 = |x: u16| if big { x.to_be_bytes() } else { x.to_le_bytes() };
        v.extend(n32(0x6561_7407));
        v.extend(n32(self.seq));
        v.extend(n64(self.time));
        v.extend(n64(self.sector));
        v.extend(n32(self.bytes));
        v.extend(n32(self.action as u32));
        v.extend(n32(self.pid));
        v.extend(n32(DEV));
        v.extend(n32(self.cpu));
        v.extend(n16(self.error));
        v.extend(n16(self.pdu.len() as u16));
        v.extend(&self.pdu);
        v
    }

    fn v8(&self) -> Vec<u8> {
        let mut v = self.v7(false);
        v[0] = 8;
        v.splice(28..48, {
            let mut tail = self.pid.to_le_bytes().to_vec();
            tail.extend(self.action.to_le_bytes());
            tail.extend(DEV.to_le_bytes());
            tail.extend(self.cpu.to_le_bytes());
            tail.extend(self.error.to_le_bytes());
            tail.extend((self.pdu.len() as u16).to_le_bytes());
            tail.extend([0; 12]);
            tail
        });
        v
    }
}

const READ: u64 = category::READ;
const WRITE: u64 = category::WRITE;

fn parse(bytes: &[u8]) -> (Rows, Diagnostics) {
    let parsed = crate::parse_all(&Blktrace, &ParseOptions::default(), bytes);
    assert!(parsed.1.adds_up());
    parsed
}

fn queue(time: u64, seq: u32, cpu: u32) -> Make {
    Make { seq, time, sector: 64, bytes: 4096, action: 1 | READ, pid: 5, cpu, ..Make::default() }
}

fn row() -> Block {
    Block {
        time_ns: 10,
        dev: Some(i64::from(DEV)),
        cpu: Some(1),
        seq: Some(3),
        action: "Q".into(),
        rwbs: "R".into(),
        sector_512: Some(64),
        len_bytes: Some(4096),
        pid: Some(5),
        line: 1,
        ..Block::default()
    }
}

#[test]
fn both_versions_and_byte_orders_give_the_same_row() {
    let make = queue(10, 3, 1);
    for bytes in [make.v7(false), make.v7(true), make.v8()] {
        assert_eq!(parse(&bytes).0.blocks, [row()]);
    }
}

#[test]
fn actions_and_their_payloads() {
    let base = queue(10, 3, 1);
    let be = |n: u64| n.to_be_bytes().to_vec();
    let mut remap = (8u32 << 20 | 1).to_be_bytes().to_vec();
    remap.extend(DEV.to_be_bytes());
    remap.extend(be(8));
    let cases: Vec<(Make, Block)> = vec![
        (
            Make { action: 7 | WRITE | category::SYNC, ..base.clone() },
            Block { action: "D".into(), rwbs: "WS".into(), ..row() },
        ),
        (
            Make { action: 8 | WRITE, error: 65531, ..base.clone() },
            Block { action: "C".into(), rwbs: "W".into(), error: Some(-5), ..row() },
        ),
        (
            Make { action: 10, pdu: be(4), bytes: 0, sector: 0, ..base.clone() },
            Block {
                action: "U".into(),
                rwbs: "N".into(),
                unplugged: Some(4),
                sector_512: None,
                len_bytes: None,
                ..row()
            },
        ),
        (
            Make { action: 9, bytes: 0, sector: 0, ..base.clone() },
            Block { action: "P".into(), rwbs: "N".into(), sector_512: None, len_bytes: None, ..row() },
        ),
        (
            Make { action: 15 | READ, pdu: remap, ..base.clone() },
            Block { action: "A".into(), from_dev: Some(8 << 20 | 1), from_sector_512: Some(8), ..row() },
        ),
        (
            Make { action: 13 | READ, pdu: be(72), ..base.clone() },
            Block { action: "X".into(), from_sector_512: Some(72), ..row() },
        ),
        (Make { action: 1 | 0x100 | READ, pdu: be(9), ..base.clone() }, row()),
        (
            Make { action: 1 | WRITE | category::FLUSH | category::FUA | category::META, ..base.clone() },
            Block { rwbs: "FWFM".into(), ..row() },
        ),
        (
            Make { action: 1 | WRITE | category::DISCARD | category::SYNC, ..base.clone() },
            Block { rwbs: "DS".into(), ..row() },
        ),
        (Make { action: 1 | READ | category::AHEAD, ..base.clone() }, Block { rwbs: "RA".into(), ..row() }),
        (
            Make { action: 7 | READ | category::PC, bytes: 36, pdu: vec![0x12, 0, 0xab], ..base.clone() },
            Block { action: "D".into(), sector_512: None, len_bytes: Some(36), text: Some("12 00 ab".into()), ..row() },
        ),
        (
            Make { action: 2 | category::NOTIFY, pdu: b"hello\n".to_vec(), ..base.clone() },
            Block {
                action: "m".into(),
                rwbs: "N".into(),
                sector_512: None,
                len_bytes: None,
                text: Some("hello".into()),
                ..row()
            },
        ),
    ];
    for (make, expected) in cases {
        assert_eq!(parse(&make.v7(false)).0.blocks, [expected], "action {:#x}", make.action);
    }
}

#[test]
fn notes_name_processes_and_the_wall_clock() {
    let mut name = b"fio".to_vec();
    name.resize(16, 0);
    let mut wall = 1_700_000_000u32.to_le_bytes().to_vec();
    wall.extend(500u32.to_le_bytes());
    let mut bytes = Make { time: 10, action: 1 | category::NOTIFY, pdu: wall, ..Make::default() }.v7(false);
    bytes.extend(Make { pid: 5, action: category::NOTIFY, pdu: name, ..Make::default() }.v7(false));
    bytes.extend(queue(30, 1, 0).v7(false));
    let (rows, diag) = parse(&bytes);
    assert_eq!((rows.blocks[0].comm.as_deref(), rows.blocks[0].time_ns), (Some("fio"), 1_700_000_000_000_000_520));
    assert_eq!((diag.note_count("process-name"), diag.note_count("wall-clock")), (1, 1));
    assert_eq!(diag.options()["clock"], "epoch");
    assert_eq!(rows.processes, [(5, None, Some("fio".into()))]);
}

#[test]
fn damage_is_rejected_and_reading_goes_on() {
    let good = queue(10, 1, 0).v7(false);
    let mut bytes = good.clone();
    bytes.extend([0u8; 11]);
    bytes.extend(queue(11, 2, 0).v7(false));
    bytes.extend(&good[..20]);
    let (rows, diag) = parse(&bytes);
    assert_eq!(rows.blocks.len(), 2);
    let rejects: Vec<_> = rows.rejects.iter().map(|r| (r.reason.as_str(), r.byte_offset)).collect();
    assert_eq!(rejects, [("blktrace-bad-magic", 48), ("blktrace-truncated", 107)]);
    assert_eq!(diag.warnings()[0].code, "blktrace-resync");

    let mut unknown = good;
    unknown[0] = 9;
    assert_eq!(parse(&unknown).0.rejects[0].reason, "blktrace-bad-version");
}

#[test]
fn versions_do_not_mix_and_swapped_fields_are_named() {
    let mut bytes = queue(10, 1, 0).v7(false);
    bytes.extend(queue(11, 2, 0).v8());
    let (rows, diag) = parse(&bytes);
    assert_eq!((rows.blocks.len(), rows.rejects[0].reason.as_str()), (1, "blktrace-mixed-versions"));
    assert_eq!((rows.rejects[0].byte_offset, diag.options()["version"].as_str()), (48, "7"));
    let swapped = Make { action: 4321, pid: (1 | READ) as u32, ..queue(10, 1, 0) };
    assert_eq!(parse(&swapped.v7(false)).0.rejects[0].reason, "blktrace-swapped");
}

#[test]
fn lost_events_are_counted() {
    let bytes: Vec<u8> = [1, 2, 5].into_iter().flat_map(|seq| queue(u64::from(seq), seq, 0).v7(false)).collect();
    let (_, diag) = parse(&bytes);
    assert_eq!(diag.warnings()[0].code, "events-lost");
    assert!(diag.warnings()[0].text.starts_with("2 events"), "{:?}", diag.warnings());
}

#[test]
fn files_are_merged_by_time_and_any_split_is_the_same() {
    let file = |cpu: u32, times: &[u64]| -> Vec<u8> {
        times.iter().enumerate().flat_map(|(i, t)| queue(*t, i as u32 + 1, cpu).v7(cpu == 1)).collect()
    };
    let files = [file(0, &[1, 4, 9]), file(1, &[2, 3, 10]), vec![], file(2, &[5])];
    let mut merged = Vec::new();
    Merged::new(files.iter().map(|f| &f[..]).collect()).read_to_end(&mut merged).unwrap();
    let (rows, diag) = parse(&merged);
    let order: Vec<_> = rows.blocks.iter().map(|b| (b.time_ns, b.cpu.unwrap())).collect();
    assert_eq!(order, [(1, 0), (2, 1), (3, 1), (4, 0), (5, 2), (9, 0), (10, 1)]);
    assert_eq!(diag.warnings(), []);
    for size in [1, 7, 47, 48, 49, 100] {
        let (mut split, mut d) = (Rows::default(), Diagnostics::new());
        let mut parser = Blktrace.parser(&ParseOptions::default());
        merged.chunks(size).for_each(|c| parser.feed(c, &mut split, &mut d));
        parser.finish(&mut split, &mut d);
        assert_eq!(split, rows, "chunks of {size}");
    }
}

#[test]
fn what_came_before_a_read_error_is_given_first_and_records_stay_whole() {
    struct Broken<'a>(&'a [u8]);
    impl Read for Broken<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() { Err(std::io::Error::other("broken")) } else { self.0.read(buf) }
        }
    }
    let bytes = [queue(10, 1, 0).v7(false), queue(11, 2, 0).v7(false)].concat();
    let mut buf = [0; 60];
    let mut merged = Merged::new(vec![Broken(&bytes)]);
    for expected in [&bytes[..48], &bytes[48..]] {
        let n = merged.read(&mut buf).unwrap();
        assert_eq!(&buf[..n], expected);
    }
    assert_eq!(merged.read(&mut buf).unwrap_err().to_string(), "broken");
}
