//! What stands before the call on a strace line: thread, clock, relative time, instruction pointer, call number.
//!
//! The order of the parts is fixed (strace 6.1): `[pid N] clock (+ rel) [ip] [nr] body`; which of them are there depends
//! on the options, and is found from each line's own text, because logs mix them (the first lines before a fork carry no
//! `[pid N]`).

use crate::num::{dec_at, dec_i64, fraction_ns, secs_ns, secs_ns_at};

/// A clock reading as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// `-ttt`: nanoseconds since 1970.
    Epoch(i64),
    /// `-t`, `-tt`: nanoseconds since midnight, local time.
    TimeOfDay(i64),
    /// `-r`: nanoseconds since the previous line.
    Relative(i64),
}

/// The parts before the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// Thread, where printed.
    pub(super) tid: Option<i64>,
    /// Its name (`--decode-pids=comm`).
    pub(super) comm: Option<&'a [u8]>,
    /// The clock.
    pub(super) stamp: Option<Stamp>,
    /// The clock has a fraction (`-t` alone has none).
    pub(super) fine: bool,
    /// Byte index of the body.
    pub(super) body: usize,
}

/// Relative stamps and epochs look alike (`0.000123`, `1796035855.358749`); below this many seconds it is relative. Three
/// years: no log line comes so long after the one before, and no epoch is so early.
const EPOCH_FROM_NS: i64 = 100_000_000 * 1_000_000_000;

/// The prefix of `-f -ttt` (`4204 1796035855.358749 `), which most logs have: read in one go. `None` for any other.
#[inline]
fn usual(line: &[u8]) -> Option<Prefix<'_>> {
    let (tid, end) = dec_at(line, skip_blanks(line, 0))?;
    let at = skip_blanks(line, end);
    let (ns, end) = secs_ns_at(line, at).filter(|_| at > end)?;
    let body = skip_blanks(line, end);
    // Brackets would begin another part.
    let is_body = body > end && line.get(body).is_some_and(|b| !matches!(b, b'(' | b'['));
    let (tid, stamp) = (Some(tid), Some(Stamp::Epoch(ns)));
    (is_body && ns >= EPOCH_FROM_NS).then_some(Prefix { tid, comm: None, stamp, fine: true, body })
}

/// Read the prefix of a line. What does not look like a prefix part begins the body.
#[inline]
pub(super) fn prefix(line: &[u8]) -> Prefix<'_> {
    usual(line).unwrap_or_else(|| any(line))
}

fn any(line: &[u8]) -> Prefix<'_> {
    let mut p = Prefix::default();
    let mut at = skip_blanks(line, 0);
    if line[at..].starts_with(b"[pid") {
        if let Some(close) = bracket_end(line, at) {
            let inner = line[at + 4..close].trim_ascii();
            let (digits, comm) = split_comm(inner);
            if let Some(tid) = dec_i64(digits) {
                (p.tid, p.comm) = (Some(tid), comm);
                at = skip_blanks(line, close + 1);
            }
        }
    } else {
        let word = word_end(line, at);
        let digits = digits_end(line, at);
        if digits > at && digits < line.len() && (digits == word || line[digits] == b'<') {
            let (end, comm) = match line[digits] {
                b'<' => comm_end(line, digits).map_or((at, None), |e| (e, Some(&line[digits + 1..e - 1]))),
                _ => (digits, None),
            };
            if end > at
                && let Some(tid) = dec_i64(&line[at..digits])
            {
                (p.tid, p.comm) = (Some(tid), comm);
                at = skip_blanks(line, end);
            }
        }
    }
    if let Some((stamp, fine, end)) = stamp(line, at) {
        (p.stamp, p.fine) = (Some(stamp), fine);
        at = skip_blanks(line, end);
        if line[at..].starts_with(b"(+")
            && let Some(close) = memchr::memchr(b')', &line[at..])
        {
            at = skip_blanks(line, at + close + 1);
        }
    }
    // [ip], then [nr].
    for _ in 0..2 {
        if line.get(at) == Some(&b'[')
            && let Some(close) = bracket_end(line, at)
            && line[at + 1..close].iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b' ' | b'?'))
            && close > at + 1
        {
            at = skip_blanks(line, close + 1);
        }
    }
    p.body = at;
    p
}

#[inline]
fn stamp(line: &[u8], at: usize) -> Option<(Stamp, bool, usize)> {
    let end = word_end(line, at);
    let word = &line[at..end];
    if end == line.len() || !word.first()?.is_ascii_digit() {
        return None;
    }
    if word.len() >= 8 && word[2] == b':' && word[5] == b':' {
        let (h, m, s) = (dec_i64(&word[..2])?, dec_i64(&word[3..5])?, dec_i64(&word[6..8])?);
        let fraction = match word.get(8) {
            None => 0,
            Some(b'.') => fraction_ns(&word[9..])?,
            Some(_) => return None,
        };
        if h > 23 || m > 59 || s > 60 {
            return None;
        }
        let of_day = ((h * 60 + m) * 60 + s) * 1_000_000_000 + fraction;
        return Some((Stamp::TimeOfDay(of_day), word.len() > 8, end));
    }
    memchr::memchr(b'.', word)?;
    let ns = secs_ns(word)?;
    let stamp = if ns >= EPOCH_FROM_NS { Stamp::Epoch(ns) } else { Stamp::Relative(ns) };
    Some((stamp, true, end))
}

/// `123<comm>` inside `[pid ...]`.
fn split_comm(inner: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'<', inner) {
        Some(at) if inner.ends_with(b">") => (&inner[..at], Some(&inner[at + 1..inner.len() - 1])),
        _ => (inner, None),
    }
}

/// End of a `<comm>` that begins at `at`: strace escapes `<` and `>` inside, so it is the next `>`.
fn comm_end(line: &[u8], at: usize) -> Option<usize> {
    memchr::memchr(b'>', &line[at..]).map(|end| at + end + 1)
}

fn bracket_end(line: &[u8], at: usize) -> Option<usize> {
    memchr::memchr(b']', &line[at..]).map(|end| at + end)
}

#[inline]
fn skip_blanks(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && matches!(line[at], b' ' | b'\t') {
        at += 1;
    }
    at
}

#[inline]
fn word_end(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && !matches!(line[at], b' ' | b'\t') {
        at += 1;
    }
    at
}

#[inline]
fn digits_end(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && line[at].is_ascii_digit() {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn every_combination_of_options() {
        let noon = 12 * 3600 * S;
        let cases: &[(&str, Option<i64>, Option<Stamp>, &str)] = &[
            ("read(3, \"\", 1) = 1", None, None, "read(3, \"\", 1) = 1"),
            ("  rename(\"a\", \"b\") = 0", None, None, "rename(\"a\", \"b\") = 0"),
            (
                "28593 1796035855.358749 brk(NULL)",
                Some(28593),
                Some(Stamp::Epoch(1_796_035_855_358_749_000)),
                "brk(NULL)",
            ),
            (
                "7  1796035855.3 (+     0.000337) [  12] brk(NULL)",
                Some(7),
                Some(Stamp::Epoch(1_796_035_855_300_000_000)),
                "brk(NULL)",
            ),
            ("7 0.5  <... read resumed>", Some(7), Some(Stamp::Relative(S / 2)), "<... read resumed>"),
            ("7 1796035855.5 --- SIGX ---", Some(7), Some(Stamp::Epoch(1_796_035_855 * S + S / 2)), "--- SIGX ---"),
            ("7 1796035855.5x brk(NULL)", Some(7), None, "1796035855.5x brk(NULL)"),
            ("7 1796035855.5", Some(7), None, "1796035855.5"),
            ("6947  brk(NULL)", Some(6947), None, "brk(NULL)"),
            ("[pid    75] brk(NULL)", Some(75), None, "brk(NULL)"),
            ("[pid 75] 12:00:00 brk(NULL)", Some(75), Some(Stamp::TimeOfDay(noon)), "brk(NULL)"),
            ("12:00:00.000001 brk(NULL)", None, Some(Stamp::TimeOfDay(noon + 1000)), "brk(NULL)"),
            ("1796035855.358749 brk(NULL)", None, Some(Stamp::Epoch(1_796_035_855_358_749_000)), "brk(NULL)"),
            ("     0.000337 brk(NULL)", None, Some(Stamp::Relative(337_000)), "brk(NULL)"),
            ("7 0.000337 [00007f1b72efc740] brk(NULL)", Some(7), Some(Stamp::Relative(337_000)), "brk(NULL)"),
            ("7 [????????????????] brk(NULL)", Some(7), None, "brk(NULL)"),
            (
                "4204  12:00:00.000000001 (+     0.000337476) [  12] brk(NULL)",
                Some(4204),
                Some(Stamp::TimeOfDay(noon + 1)),
                "brk(NULL)",
            ),
            ("4204<sh> brk(NULL)", Some(4204), None, "brk(NULL)"),
            ("4204<a b> brk(NULL)", Some(4204), None, "brk(NULL)"),
            ("[pid  9<x y>] brk(NULL)", Some(9), None, "brk(NULL)"),
            ("7 +++ exited with 0 +++", Some(7), None, "+++ exited with 0 +++"),
            ("25:00:00 brk(NULL)", None, None, "25:00:00 brk(NULL)"),
            ("", None, None, ""),
            ("123", None, None, "123"),
            ("[pid 9", None, None, "[pid 9"),
        ];
        for (line, tid, stamp, body) in cases {
            let p = prefix(line.as_bytes());
            assert_eq!((p.tid, p.stamp, &line[p.body..]), (*tid, *stamp, *body), "{line:?}");
        }
    }
}
