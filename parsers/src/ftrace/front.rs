//! The parts of a line before the payload, and lines about lost events.

use crate::blkparse::device;
use crate::num::{Fields, dec_i64, secs_ns, secs_ns_with_comma};

/// The parts before the payload.
#[derive(Default)]
pub(super) struct Front<'a> {
    pub(super) time_ns: Option<i64>,
    pub(super) cpu: Option<i64>,
    pub(super) pid: Option<i64>,
    pub(super) name: &'a [u8],
    pub(super) payload: usize,
    pub(super) decimal_comma: bool,
}

/// `CPU:3 [LOST 123 EVENTS]` of the kernel, `CPU:7 [204600 EVENTS DROPPED]` of trace-cmd; both also without the number.
pub(super) fn lost_events(text: &[u8]) -> Option<Option<u64>> {
    let inner = text.strip_prefix(b"CPU:")?.strip_suffix(b"]")?;
    let inner = &inner[memchr::memchr(b'[', inner)? + 1..];
    let number = match inner.strip_prefix(b"LOST ") {
        Some(rest) => rest.strip_suffix(b"EVENTS")?,
        None => inner.strip_suffix(b"EVENTS DROPPED")?,
    };
    Some(crate::num::dec_u64(number.trim_ascii()))
}

/// Find time and event name; the comm before them may hold anything.
pub(super) fn front(bytes: &[u8]) -> Option<Front<'_>> {
    let mut f = Fields::new(bytes);
    loop {
        let at = f.position();
        let word = f.next()?;
        let Some(stamp) = word.strip_suffix(b":") else { continue };
        if at == 0 && stamp.starts_with(b"block_") {
            return Some(Front { name: stamp, payload: word.len(), ..Front::default() });
        }
        let point = memchr::memchr(b'.', stamp).and_then(|_| secs_ns(stamp));
        // A locale with a decimal comma shows in perf script; it always prints 6 or 9 decimals.
        let comma = || {
            let decimals = stamp.len() - memchr::memchr(b',', stamp)? - 1;
            secs_ns_with_comma(stamp).filter(|_| matches!(decimals, 6 | 9))
        };
        let Some(time_ns) = point.or_else(comma) else { continue };
        let decimal_comma = point.is_none();
        let (cpu, pid) = task(&bytes[..at]);
        let name = f.next()?;
        let payload = f.position();
        let name = match name.strip_suffix(b":") {
            Some(name) => name.strip_prefix(b"block:").unwrap_or(name),
            None if device(name).is_some() => name,
            None => return None,
        };
        return Some(Front { time_ns: Some(time_ns), cpu, pid, name, payload, decimal_comma });
    }
}

/// cpu and pid of `comm-pid (tgid) [cpu] flags` or `comm pid/tid [cpu]`.
fn task(text: &[u8]) -> (Option<i64>, Option<i64>) {
    let close = memchr::memrchr(b']', text);
    let open = close.and_then(|c| memchr::memrchr(b'[', &text[..c]));
    let (cpu, before) = match (open, close) {
        (Some(open), Some(close)) => (dec_i64(&text[open + 1..close]), &text[..open]),
        _ => (None, text),
    };
    let mut before = before.trim_ascii_end();
    // The thread group: `(  123)` or `(-----)`.
    if before.ends_with(b")")
        && let Some(open) = memchr::memrchr(b'(', before)
    {
        before = before[..open].trim_ascii_end();
    }
    let start = before.iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |i| i + 1);
    let pid = dec_i64(&before[start..]);
    (cpu, pid)
}

/// A line begins like an event: a task and a CPU, and a time unless it was wrapped before that.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let mut f = Fields::new(bytes);
    loop {
        let at = f.position();
        let Some(word) = f.next() else { return false };
        let is_cpu = word.len() > 2
            && word
                .strip_prefix(b"[")
                .and_then(|w| w.strip_suffix(b"]"))
                .is_some_and(|w| w.iter().all(u8::is_ascii_digit));
        let before = bytes[..at].trim_ascii();
        // `[001]` after the task; a process may also be named so, but not where the sector stands before it.
        if is_cpu && names_task(before) && !before.contains(&b'+') {
            return true;
        }
        if word.strip_suffix(b":").is_some_and(|w| w.contains(&b'.') && secs_ns(w).is_some()) {
            return names_task(before);
        }
    }
}

/// `comm-pid`, `comm pid` or `comm-pid (tgid)`, also with the CPU and the flags behind it.
fn names_task(before: &[u8]) -> bool {
    if before.contains(&b'[') {
        return task(before).1.is_some();
    }
    let before = match memchr::memrchr(b'(', before) {
        Some(open) if before.ends_with(b")") => before[..open].trim_ascii_end(),
        _ => before,
    };
    let digits = before.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let comm = &before[..before.len() - digits];
    digits > 0 && comm.len() > 1 && matches!(comm.last(), Some(b'-' | b' '))
}
