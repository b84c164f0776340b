//! The lines that nearly every text consists of, read in one pass without taking them apart first.
//!
//! `8,0 1 42 0.000107800 1004 Q R 2048 + 8 [tar]`, with an error instead of the process where a request completes, and
//! plugs and unplugs without a place. Whatever differs from that in any way is left to the general reader, which gives
//! the same rows for these lines.

use kreplay_traces::event::BlockRow;
use kreplay_traces::units::SECTOR_BYTES;

use super::{action, named_device};
use crate::num::{dec_at, nine_digits};

/// A line, with the time still in the two numbers that were printed.
pub(super) struct Usual<'a> {
    pub(super) row: BlockRow<'a>,
    pub(super) secs: i64,
    pub(super) ns: i64,
}

/// Read a usual line; `None` for any other.
#[inline]
pub(super) fn usual(line: &str) -> Option<Usual<'_>> {
    let text = line.as_bytes();
    let (major, at) = dec_at(text, blanks(text, 0))?;
    let (minor, at) = dec_at(text, after(text, at, b',')?)?;
    if major >= 1 << 32 || minor >= 1 << 20 {
        return None;
    }
    let (cpu, at) = dec_at(text, gap(text, at)?)?;
    let (seq, at) = dec_at(text, gap(text, at)?)?;
    let (secs, dot) = dec_at(text, gap(text, at)?)?;
    let ns = nine_digits(text, after(text, dot, b'.')?)?;
    let at = dot + 10;
    let (pid, at) = dec_at(text, gap(text, at)?)?;
    let start = gap(text, at)?;
    let end = word_end(text, start);
    let action = action(&text[start..end])?;
    let start = gap(text, end)?;
    let end = word_end(text, start);
    let rwbs = line.get(start..end).filter(|w| w.bytes().all(|b| b.is_ascii_uppercase()))?;
    let at = gap(text, end)?;
    let mut row = BlockRow {
        dev: named_device(action, major << 20 | minor),
        cpu: Some(cpu),
        seq: Some(seq),
        action,
        rwbs,
        pid: Some(pid),
        ..BlockRow::default()
    };
    let at = match action {
        "P" | "U" | "UT" => at,
        "Q" | "G" | "I" | "D" | "M" | "F" | "C" => {
            let (sector, at) = dec_at(text, at)?;
            let (sectors, at) = dec_at(text, gap(text, after(text, gap(text, at)?, b'+')?)?)?;
            row.sector_512 = Some(sector);
            row.len_bytes = Some(sectors.checked_mul(SECTOR_BYTES as i64)?);
            gap(text, at)?
        }
        _ => return None,
    };
    let inner = after(text, at, b'[')?;
    match action {
        "C" => {
            let (error, end) = dec_at(text, inner)?;
            row.error = Some(error);
            (after(text, end, b']')? == text.len()).then_some(())?;
        }
        "U" | "UT" => {
            let close = inner + memchr::memrchr(b']', &text[inner..])?;
            row.comm = name(line.get(inner..close)?);
            let (unplugged, end) = dec_at(text, gap(text, close + 1)?)?;
            row.unplugged = Some(unplugged);
            (end == text.len()).then_some(())?;
        }
        _ => row.comm = name(line.get(inner..)?.strip_suffix(']')?),
    }
    Some(Usual { row, secs, ns })
}

fn name(comm: &str) -> Option<&str> {
    (comm != "(null)").then_some(comm)
}

/// The index after this byte, which must stand at `at`.
#[inline]
fn after(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    (text.get(at) == Some(&byte)).then_some(at + 1)
}

#[inline]
fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

/// The index after at least one blank.
#[inline]
fn gap(text: &[u8], at: usize) -> Option<usize> {
    let end = blanks(text, at);
    (end > at).then_some(end)
}

#[inline]
fn word_end(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|b| *b != b' ') {
        at += 1;
    }
    at
}
