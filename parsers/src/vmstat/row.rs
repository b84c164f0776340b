//! A line of numbers, with the stamp that `-t` adds.

use super::columns::is_zone;
use super::time::civil_ns;
use crate::num::{Fields, signed};

/// The most columns that a row has.
pub(super) const MAX_COLUMNS: usize = 24;

/// A row's numbers, and its stamp.
pub(super) struct Numbers {
    pub(super) values: [i64; MAX_COLUMNS],
    pub(super) count: usize,
    pub(super) stamp: Stamp,
}

/// The stamp of `-t` at the end of a row.
pub(super) enum Stamp {
    None,
    /// The date, whose time of day is missing.
    Begun,
    /// Nanoseconds since 1970 of the local time read as UTC, and the zone word where there is one.
    Whole(i64, Option<String>),
}

/// What a line is, seen as a row.
#[allow(clippy::large_enum_variant, reason = "made once a line and taken apart at once; never stored")]
pub(super) enum Scan {
    Numbers(Numbers),
    /// Numbers, and after them what should be a stamp and is none; the byte where it begins.
    BadStamp(usize),
    /// A row in which one word is no number: its byte, and how many words there are.
    BadNumber(usize, usize),
    /// Something else.
    Other,
}

/// Read a line as numbers with an optional stamp.
pub(super) fn scan(bytes: &[u8]) -> Scan {
    let mut f = Fields::new(bytes);
    let mut numbers = Numbers { values: [0; MAX_COLUMNS], count: 0, stamp: Stamp::None };
    loop {
        let at = f.position();
        let Some(word) = f.next() else { break };
        if let Some(value) = signed(word).filter(|_| numbers.count < MAX_COLUMNS) {
            numbers.values[numbers.count] = value;
            numbers.count += 1;
            continue;
        }
        if numbers.count == 0 || word.get(4) != Some(&b'-') {
            return not_numbers(bytes, at);
        }
        let Some(time) = f.next() else {
            numbers.stamp =
                if civil_ns(word, b"00:00:00").is_some() { Stamp::Begun } else { return Scan::BadStamp(at) };
            break;
        };
        let zone = f.next();
        match civil_ns(word, time) {
            Some(ns) if zone.is_none_or(is_zone) && f.next().is_none() => {
                numbers.stamp = Stamp::Whole(ns, zone.map(|z| String::from_utf8_lossy(z).into_owned()));
            }
            _ => return Scan::BadStamp(at),
        }
        break;
    }
    if numbers.count == 0 { Scan::Other } else { Scan::Numbers(numbers) }
}

/// A line that begins with a number and has mostly numbers is a row that was damaged; anything else stands between rows.
fn not_numbers(bytes: &[u8], at: usize) -> Scan {
    let words = || bytes.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let (all, numbers) = (words().count(), words().filter(|w| signed(w).is_some()).count());
    let is_row = words().next().is_some_and(|w| signed(w).is_some()) && numbers >= 4 && numbers * 4 >= all * 3;
    if is_row { Scan::BadNumber(at, all) } else { Scan::Other }
}
