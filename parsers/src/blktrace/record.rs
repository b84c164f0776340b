//! The binary record of blktrace, versions 7 (48 bytes) and 8 (64 bytes), in either byte order.
//!
//! Version 7 after Linux' `include/uapi/linux/blktrace_api.h`; version 8 (6.19) swaps pid and action and widens the
//! action to 64 bits.

use std::sync::OnceLock;

/// Bytes of a version 7 record before its payload.
pub(super) const V1_BYTES: usize = 48;
/// Bytes of a version 8 record before its payload.
pub(super) const V2_BYTES: usize = 64;

/// Byte order and version, as the magic number tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) big_endian: bool,
    pub(super) version: u8,
}

impl Layout {
    /// From the first four bytes of a record; `None` where they are no magic.
    pub(super) fn of(magic: &[u8]) -> Option<Self> {
        match *magic {
            [version, 0x74, 0x61, 0x65, ..] => Some(Self { big_endian: false, version }),
            [0x65, 0x61, 0x74, version, ..] => Some(Self { big_endian: true, version }),
            _ => None,
        }
    }

    /// Bytes before the payload; `None` for a version that is not known.
    #[inline]
    pub(super) fn header_bytes(self) -> Option<usize> {
        match self.version {
            7 => Some(V1_BYTES),
            8 => Some(V2_BYTES),
            _ => None,
        }
    }

    /// A 32-bit number at `at`; 0 where the bytes end before it.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        self.number(bytes, at, u32::from_le_bytes, u32::from_be_bytes)
    }

    /// Length of the payload, from a whole header.
    #[inline]
    pub(super) fn payload_bytes(self, header: &[u8]) -> usize {
        let at = if self.version == 8 { 50 } else { 46 };
        usize::from(self.number(header, at, u16::from_le_bytes, u16::from_be_bytes))
    }

    /// Time, device and sequence of a whole header: what records are merged by.
    #[inline]
    pub(super) fn key(self, header: &[u8]) -> (u64, u32, u32) {
        let device = if self.version == 8 { 40 } else { 36 };
        let u32 = |at| self.number(header, at, u32::from_le_bytes, u32::from_be_bytes);
        (self.number(header, 8, u64::from_le_bytes, u64::from_be_bytes), u32(device), u32(4))
    }

    /// The number at `at`, in the layout's byte order.
    #[inline]
    fn number<const N: usize, T>(self, bytes: &[u8], at: usize, le: fn([u8; N]) -> T, be: fn([u8; N]) -> T) -> T {
        let bytes = bytes.get(at..at + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N]);
        if self.big_endian { be(bytes) } else { le(bytes) }
    }

    /// The record of a whole header; an empty one of a shorter text. Always inlined: a call would carry the record through
    /// memory, which takes as long as everything else that is done with it.
    #[inline(always)]
    pub(super) fn record(self, header: &[u8]) -> Record {
        // Written out for each layout: one test a record instead of one a number, and every number at a fixed place.
        let record = match (self.version, self.big_endian) {
            (8, false) => header.first_chunk().map(version_8::<false>),
            (8, true) => header.first_chunk().map(version_8::<true>),
            (_, false) => header.first_chunk().map(version_7::<false>),
            (_, true) => header.first_chunk().map(version_7::<true>),
        };
        record.unwrap_or_default()
    }
}

#[inline(always)]
fn version_7<const BIG: bool>(header: &[u8; V1_BYTES]) -> Record {
    Record {
        action: u64::from(u32_at::<BIG>(header, 28)),
        pid: u32_at::<BIG>(header, 32),
        device: u32_at::<BIG>(header, 36),
        cpu: u32_at::<BIG>(header, 40),
        error: u16_at::<BIG>(header, 44),
        ..beginning::<BIG>(header)
    }
}

#[inline(always)]
fn version_8<const BIG: bool>(header: &[u8; V2_BYTES]) -> Record {
    Record {
        pid: u32_at::<BIG>(header, 28),
        action: u64_at::<BIG>(header, 32),
        device: u32_at::<BIG>(header, 40),
        cpu: u32_at::<BIG>(header, 44),
        error: u16_at::<BIG>(header, 48),
        ..beginning::<BIG>(header)
    }
}

/// What both versions begin with.
#[inline(always)]
fn beginning<const BIG: bool>(header: &[u8]) -> Record {
    Record {
        sequence: u32_at::<BIG>(header, 4),
        time_ns: u64_at::<BIG>(header, 8),
        sector: u64_at::<BIG>(header, 16),
        bytes: u32_at::<BIG>(header, 24),
        ..Record::default()
    }
}

#[inline(always)]
fn u16_at<const BIG: bool>(header: &[u8], at: usize) -> u16 {
    let bytes = header[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

#[inline(always)]
fn u32_at<const BIG: bool>(header: &[u8], at: usize) -> u32 {
    let bytes = header[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[inline(always)]
fn u64_at<const BIG: bool>(header: &[u8], at: usize) -> u64 {
    let bytes = header[at..].first_chunk().copied().unwrap_or_default();
    if BIG { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u32,
    pub(super) time_ns: u64,
    pub(super) sector: u64,
    pub(super) bytes: u32,
    pub(super) action: u64,
    pub(super) pid: u32,
    pub(super) device: u32,
    pub(super) cpu: u32,
    pub(super) error: u16,
}

/// Bits of the category half of an action.
pub(super) mod category {
    pub(in crate::blktrace) const READ: u64 = 1 << 16;
    pub(in crate::blktrace) const WRITE: u64 = 1 << 17;
    pub(in crate::blktrace) const FLUSH: u64 = 1 << 18;
    pub(in crate::blktrace) const SYNC: u64 = 1 << 19;
    pub(in crate::blktrace) const PC: u64 = 1 << 25;
    pub(in crate::blktrace) const NOTIFY: u64 = 1 << 26;
    pub(in crate::blktrace) const AHEAD: u64 = 1 << 27;
    pub(in crate::blktrace) const META: u64 = 1 << 28;
    pub(in crate::blktrace) const DISCARD: u64 = 1 << 29;
    pub(in crate::blktrace) const FUA: u64 = 1 << 31;
}

/// Act codes that have a meaning of their own here.
pub(super) mod act {
    pub(in crate::blktrace) const REQUEUE: u64 = 6;
    pub(in crate::blktrace) const COMPLETE: u64 = 8;
    pub(in crate::blktrace) const PLUG: u64 = 9;
    pub(in crate::blktrace) const UNPLUG: u64 = 10;
    pub(in crate::blktrace) const UNPLUG_TIMER: u64 = 11;
    pub(in crate::blktrace) const SPLIT: u64 = 13;
    pub(in crate::blktrace) const REMAP: u64 = 15;
}

impl Record {
    /// The act code without the cgroup bit.
    #[inline]
    pub(super) fn act(&self) -> u64 {
        self.action & 0xff
    }

    /// The payload begins with a cgroup id.
    #[inline]
    pub(super) fn has_cgroup(&self) -> bool {
        self.action & 0x100 != 0
    }

    /// A category bit is set.
    #[inline]
    pub(super) fn is(&self, bit: u64) -> bool {
        self.action & bit != 0
    }

    /// The process is an action with its categories, and the action none: they have changed places.
    pub(super) fn is_swapped(&self) -> bool {
        let pid = u64::from(self.pid);
        pid >> 16 != 0 && matches!(pid & 0xff, 1..=17)
    }

    /// The letter that blkparse prints for the act code; `None` for codes without one.
    #[inline]
    pub(super) fn letter(&self) -> Option<&'static str> {
        Some(match self.act() {
            1 => "Q",
            2 => "M",
            3 => "F",
            4 => "G",
            5 => "S",
            6 => "R",
            7 => "D",
            8 => "C",
            9 => "P",
            10 => "U",
            11 => "UT",
            12 => "I",
            13 => "X",
            14 => "B",
            15 => "A",
            _ => return None,
        })
    }

    /// The RWBS letters, in blkparse's order.
    #[inline]
    pub(super) fn rwbs(&self) -> &'static str {
        static ALL: OnceLock<Vec<String>> = OnceLock::new();
        let bit = |bit, place: u32| usize::from(self.is(bit)) << place;
        let kind = match () {
            () if self.is(category::DISCARD) => 0,
            () if self.is(category::WRITE) => 1,
            () if self.bytes > 0 || self.is(category::READ) && self.is(category::PC) => 2,
            () => 3,
        };
        let flags = bit(category::FLUSH, 0) | bit(category::FUA, 1) | bit(category::AHEAD, 2);
        let flags = flags | bit(category::SYNC, 3) | bit(category::META, 4);
        ALL.get_or_init(|| (0..KINDS.len() << 5).map(|i| spelled(i >> 5, i & 31)).collect())
            .get(kind << 5 | flags)
            .map_or("", String::as_str)
    }
}

/// Letters of what a request does: discard, write, read, nothing.
const KINDS: [char; 4] = ['D', 'W', 'R', 'N'];

/// RWBS letters of a kind and flags: flush before it, forced unit access, read-ahead, sync, metadata.
fn spelled(kind: usize, flags: usize) -> String {
    let mut out = String::new();
    out.extend((flags & 1 != 0).then_some('F'));
    out.push(KINDS[kind]);
    out.extend(['F', 'A', 'S', 'M'].iter().enumerate().filter(|(i, _)| flags >> (i + 1) & 1 != 0).map(|(_, c)| *c));
    out
}
