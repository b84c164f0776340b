//! Block events of ftrace, trace-cmd report and perf script, and the text of the `blk` tracer.
//!
//! ```text
//!           dd-123   [001] d..1.  1425.576266: block_rq_issue: 8,0 R 4096 () 67848 + 8 none,0,0 [dd]
//! dmcrypt_write  9587 [004] 6426159.859875:      block:block_bio_queue: 8,16 WFS 4112 + 4 [dmcrypt_write]
//!           dd-123   [001]  1425.576266:   8,0    Q   R 67848 + 8 [dd]
//! ```
//! Payloads after Linux 6.18's `include/trace/events/block.h` print formats and older samples: they are read by shape
//! (byte count and priority are there or not), not by kernel version. Other events are counted as such.

use std::collections::BTreeMap;

use kreplay_traces::event::{BlockRow, EventSink};

use crate::blkparse::{Tail, action, device};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, push_text, secs_ns, secs_ns_with_comma, signed, unquote};

/// The format.
pub struct Ftrace;

impl Format for Ftrace {
    fn id(&self) -> &'static str {
        "ftrace"
    }

    fn about(&self) -> &'static str {
        "block events of ftrace, trace-cmd report or perf script, and the blk tracer (text)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(FtraceLines::default(), head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(FtraceLines::default()))
    }
}

static NOT_AN_EVENT: Reason = Reason {
    code: "ftrace-not-an-event",
    expected: "`comm-pid [cpu] flags seconds: event: ...`",
    hint: "prose and tool output between the events are skipped",
};
static BAD_PAYLOAD: Reason = Reason {
    code: "ftrace-bad-payload",
    expected: "`major,minor rwbs [bytes (cmd)] sector + n [priority] [comm or error]`",
    hint: "the line was cut, or this kernel prints the event in a way not seen before",
};

/// How an event's payload is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `dev rwbs sector + n [comm]`.
    Bio,
    /// `dev rwbs sector + n [error]`.
    BioDone,
    /// `dev rwbs bytes (cmd) sector + n [priority] [comm]`.
    Request,
    /// `dev rwbs (cmd) sector + n [priority] [error]`.
    RequestDone,
    /// `[comm]`.
    Plug,
    /// `[comm] n`.
    Unplug,
    /// `dev rwbs sector / newsector [comm]`.
    Split,
    /// `dev rwbs sector + n <- (dev) sector`.
    Remap,
    /// Counted, not an event of a request's life.
    Other,
}

/// blktrace's letter and the shape of each block event.
fn known(name: &[u8]) -> Option<(&'static str, Shape)> {
    Some(match name {
        b"block_bio_queue" => ("Q", Shape::Bio),
        b"block_getrq" => ("G", Shape::Bio),
        b"block_sleeprq" => ("S", Shape::Bio),
        b"block_bio_backmerge" => ("M", Shape::Bio),
        b"block_bio_frontmerge" => ("F", Shape::Bio),
        b"block_bio_bounce" => ("B", Shape::Bio),
        b"block_bio_complete" => ("C", Shape::BioDone),
        b"block_rq_insert" => ("I", Shape::Request),
        b"block_rq_issue" => ("D", Shape::Request),
        b"block_rq_merge" => ("M", Shape::Request),
        b"block_rq_complete" => ("C", Shape::RequestDone),
        b"block_rq_requeue" => ("R", Shape::RequestDone),
        b"block_plug" => ("P", Shape::Plug),
        b"block_unplug" | b"block_unplug_io" => ("U", Shape::Unplug),
        b"block_unplug_timer" => ("UT", Shape::Unplug),
        b"block_split" => ("X", Shape::Split),
        b"block_bio_remap" | b"block_remap" | b"block_rq_remap" => ("A", Shape::Remap),
        // A failed completion is also a block_rq_complete; the io_ pair is accounting around the same request.
        b"block_rq_error"
        | b"block_io_start"
        | b"block_io_done"
        | b"block_touch_buffer"
        | b"block_dirty_buffer"
        | b"blkdev_zone_mgmt" => ("", Shape::Other),
        _ => return None,
    })
}

/// An event that is counted, but is no step of a request's life.
pub(crate) fn is_accounting(name: &[u8]) -> bool {
    matches!(known(name), Some((_, Shape::Other)))
}

#[derive(Default)]
struct FtraceLines {
    tail: Tail,
    comm: String,
    seen_stamp: bool,
    no_stamp: bool,
    last_ns: Option<i64>,
    decimal_comma: bool,
    cgroups: bool,
    losses: Option<Losses>,
    /// An event line that ended too early: a mailer may have wrapped it.
    held: Option<Held>,
    /// The line before this one is an event of another subsystem: what follows may be the rest of it.
    after_other: bool,
    wrapped: bool,
    /// Plugs and unplugs, which say no device.
    without_device: u64,
    /// Events that the ring buffers had lost when they were read (`entries-in-buffer/entries-written`).
    overwritten: i64,
    /// First time stamp of each CPU.
    first_ns: BTreeMap<i64, i64>,
}

/// A line that may go on in the next one, and why it is no event alone.
struct Held {
    bytes: Vec<u8>,
    number: i64,
    offset: i64,
    pieces: usize,
    why: (&'static Reason, Option<usize>),
}

/// Lines that one event can have been wrapped over.
const MAX_PIECES: usize = 4;

/// The parts before the payload.
#[derive(Default)]
struct Front<'a> {
    time_ns: Option<i64>,
    cpu: Option<i64>,
    pid: Option<i64>,
    name: &'a [u8],
    payload: usize,
    decimal_comma: bool,
}

impl FtraceLines {
    fn event(&mut self, line: &Line<'_>, bytes: &[u8], f: &Front<'_>, out: &mut dyn EventSink) -> Outcome {
        let cut = line.bytes.len() - bytes.len();
        let mut fields = Fields::new(&bytes[f.payload..]);
        let mut row = BlockRow {
            time_ns: f.time_ns.unwrap_or(0),
            cpu: f.cpu,
            pid: f.pid,
            line: line.number,
            ..BlockRow::default()
        };
        let done = if device(f.name).is_some() {
            row.dev = device(f.name).unwrap_or(0);
            self.tracer(&mut row, &mut fields)
        } else if matches!(f.name, b"blktrace" | b"blk") {
            // trace-cmd names the tracer's own events.
            let at = fields.position();
            match fields.next().and_then(device) {
                Some(dev) => {
                    row.dev = dev;
                    self.tracer(&mut row, &mut fields)
                }
                None => Err(at),
            }
        } else {
            match known(f.name) {
                Some((_, Shape::Other)) => return Outcome::Note("accounting-event"),
                Some((letter, shape)) => {
                    row.action = letter;
                    self.payload(&mut row, shape, &mut fields)
                }
                None => return Outcome::Note("other-event"),
            }
        };
        match done {
            Ok(()) => {
                let without_device = row.dev == 0 && matches!(row.action, "P" | "U" | "UT");
                out.block(&row);
                self.without_device += u64::from(without_device);
                Outcome::Event
            }
            Err(at) => Outcome::Reject(&BAD_PAYLOAD, Some(cut + f.payload + at)),
        }
    }

    /// The blk tracer: `dev [cgroup] action rwbs ...` as blkparse has it. The option `blk_cgroup` adds the cgroup, as a
    /// path (`blk_cgname`) or as two numbers.
    fn tracer<'s>(&'s mut self, row: &mut BlockRow<'s>, f: &mut Fields<'s>) -> Result<(), usize> {
        let at = f.position();
        let word = f.next().ok_or(at)?;
        row.action = match action(word) {
            Some(letter) => letter,
            None if word.starts_with(b"/") || word.contains(&b',') => {
                self.cgroups = true;
                f.next().and_then(action).ok_or(at)?
            }
            None => return Err(at),
        };
        row.rwbs = rwbs(f)?;
        self.tail.read(row, f)
    }

    fn payload<'s>(&'s mut self, row: &mut BlockRow<'s>, shape: Shape, f: &mut Fields<'s>) -> Result<(), usize> {
        if matches!(shape, Shape::Plug | Shape::Unplug) {
            row.rwbs = "N";
            return self.tail.read(row, f);
        }
        let at = f.position();
        row.dev = f.next().and_then(device).ok_or(at)?;
        row.rwbs = rwbs(f)?;
        match shape {
            Shape::Bio | Shape::BioDone | Shape::Split => self.tail.read(row, f),
            Shape::Remap => {
                let at = f.position();
                // block_rq_remap adds a count at the end.
                let rest = f.rest();
                let words = rest.split(|b| *b == b' ').filter(|w| !w.is_empty()).count();
                let end = if words > 6 {
                    memchr::memrchr(b' ', rest.trim_ascii_end()).unwrap_or(rest.len())
                } else {
                    rest.len()
                };
                self.tail.read(row, &mut Fields::new(&rest[..end])).map_err(|i| at + i)
            }
            Shape::Request | Shape::RequestDone => self.request(row, shape, f),
            Shape::Plug | Shape::Unplug | Shape::Other => Ok(()),
        }
    }

    fn request<'s>(&'s mut self, row: &mut BlockRow<'s>, shape: Shape, f: &mut Fields<'s>) -> Result<(), usize> {
        let at = f.position();
        let rest = f.rest();
        let open = memchr::memchr(b'(', rest).ok_or(at)?;
        let bytes = dec_i64(rest[..open].trim_ascii());
        let close = open + memchr::memchr(b')', &rest[open..]).ok_or(at + open)?;
        let mut g = Fields::new(&rest[close + 1..]);
        let base = at + close + 1;
        let here = base + g.position();
        let sector = g.next().and_then(crate::num::dec_u64).ok_or(here)?;
        let here = base + g.position();
        (g.next() == Some(b"+")).then_some(()).ok_or(here)?;
        let here = base + g.position();
        let sectors = g.next().and_then(dec_i64).ok_or(here)?;
        // A flush has no place: its sector is printed as -1.
        row.sector_512 = i64::try_from(sector).ok();
        let len = sectors.checked_mul(512).ok_or(here)?;
        row.len_bytes = Some(if len == 0 { bytes.unwrap_or(0) } else { len });
        let here = base + g.position();
        let tail = g.rest().trim_ascii_end();
        // A priority (`none,0,0`, `rt,4`) may stand before the bracket.
        let bracket = memchr::memchr(b'[', tail).ok_or(here)?;
        let before = tail[..bracket].trim_ascii();
        if !before.is_empty() && !before.contains(&b',') && !before.starts_with(b"|") {
            return Err(here);
        }
        let inner = tail.strip_suffix(b"]").ok_or(here + tail.len())?;
        let inner = &inner[bracket + 1..];
        if shape == Shape::RequestDone {
            row.error = Some(signed(inner).ok_or(here + bracket + 1)?);
        } else {
            self.comm.clear();
            push_text(&mut self.comm, inner);
            row.comm = Some(&self.comm);
        }
        Ok(())
    }
}

fn rwbs<'a>(f: &mut Fields<'a>) -> Result<&'a str, usize> {
    let at = f.position();
    let word = f.next().filter(|w| w.iter().all(u8::is_ascii_uppercase)).ok_or(at)?;
    std::str::from_utf8(word).map_err(|_| at)
}

impl FtraceLines {
    /// ` 36/40   #P:4`: entries that are left, entries that were written.
    fn take_counts(&mut self, text: &[u8]) {
        let word = Fields::new(text).next().unwrap_or_default();
        let Some(slash) = memchr::memchr(b'/', word) else { return };
        if let (Some(left), Some(written)) = (dec_i64(&word[..slash]), dec_i64(&word[slash + 1..])) {
            self.overwritten = self.overwritten.saturating_add((written - left).max(0));
        }
    }

    /// The blk tracer with its option `blk_classic`: `dev cpu seconds.nanoseconds pid action rwbs ...`, blkparse's line
    /// without the sequence number.
    fn classic(&mut self, line: &Line<'_>, bytes: &[u8], out: &mut dyn EventSink) -> Option<Outcome> {
        let mut f = Fields::new(bytes);
        let dev = device(f.next()?)?;
        let cpu = dec_i64(f.next()?)?;
        let stamp = f.next()?;
        memchr::memchr(b'.', stamp)?;
        let time_ns = secs_ns(stamp)?;
        let pid = dec_i64(f.next()?)?;
        let mut row =
            BlockRow { time_ns, dev, cpu: Some(cpu), pid: Some(pid), line: line.number, ..BlockRow::default() };
        self.seen_stamp = true;
        let cut = line.bytes.len() - bytes.len();
        Some(match self.tracer(&mut row, &mut f) {
            Ok(()) => {
                out.block(&row);
                Outcome::Event
            }
            Err(at) => Outcome::Reject(&BAD_PAYLOAD, Some(cut + at)),
        })
    }
}

/// What the ring buffers lost.
#[derive(Default)]
struct Losses {
    first_line: i64,
    places: u64,
    events: u64,
    /// At one place at least only that there was a loss.
    uncounted: bool,
}

/// `CPU:3 [LOST 123 EVENTS]` of the kernel, `CPU:7 [204600 EVENTS DROPPED]` of trace-cmd; both also without the number.
fn lost_events(text: &[u8]) -> Option<Option<u64>> {
    let inner = text.strip_prefix(b"CPU:")?.strip_suffix(b"]")?;
    let inner = &inner[memchr::memchr(b'[', inner)? + 1..];
    let number = match inner.strip_prefix(b"LOST ") {
        Some(rest) => rest.strip_suffix(b"EVENTS")?,
        None => inner.strip_suffix(b"EVENTS DROPPED")?,
    };
    Some(crate::num::dec_u64(number.trim_ascii()))
}

/// Find time and event name; the comm before them may hold anything.
fn front(bytes: &[u8]) -> Option<Front<'_>> {
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

impl FtraceLines {
    /// A line by itself.
    fn alone(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = unquote(line.bytes);
        let text = bytes.trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        if let Some(counts) = text.strip_prefix(b"# entries-in-buffer/entries-written:") {
            self.take_counts(counts);
        }
        if let Some(outcome) = self.classic(line, bytes, out) {
            return outcome;
        }
        if text.starts_with(b"#") || text.starts_with(b"cpus=") || text.starts_with(b"version =") {
            return Outcome::Note("header");
        }
        if text.starts_with(b"=>") || (bytes[0] == b'\t' && text[0].is_ascii_hexdigit()) {
            return Outcome::Note("stack");
        }
        if let Some(lost) = lost_events(text) {
            let losses = self.losses.get_or_insert_with(|| Losses { first_line: line.number, ..Losses::default() });
            losses.places += 1;
            losses.events = losses.events.saturating_add(lost.unwrap_or(0));
            losses.uncounted |= lost.is_none();
            return Outcome::Note("lost-events");
        }
        if text.starts_with(b"CPU ") && text.ends_with(b" is empty") {
            return Outcome::Note("header");
        }
        let skip = bytes.len() - bytes.trim_ascii_start().len();
        let Some(mut front) = front(&bytes[skip..]) else { return Outcome::Reject(&NOT_AN_EVENT, None) };
        front.payload += skip;
        self.seen_stamp |= front.time_ns.is_some();
        self.no_stamp |= front.time_ns.is_none();
        self.decimal_comma |= front.decimal_comma;
        if let (Some(cpu), Some(now)) = (front.cpu, front.time_ns) {
            // Whatever is written there: Linux has 8192 CPUs at most.
            if self.first_ns.len() < 8192 || self.first_ns.contains_key(&cpu) {
                self.first_ns.entry(cpu).or_insert(now);
            }
        }
        if let (Some(last), Some(now)) = (self.last_ns, front.time_ns)
            && now < last
        {
            diag.warn("time-backwards", Some(line.number), || {
                format!("an event is {} ns earlier than the one before it", last.abs_diff(now))
            });
        }
        self.last_ns = front.time_ns.or(self.last_ns);
        self.event(line, bytes, &front, out)
    }

    /// Try this line as the rest of the held one. An event's own beginning is never the rest of another.
    fn join(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
        let rest = unquote(line.bytes).trim_ascii();
        if rest.is_empty() || rest.starts_with(b"#") || begins(rest) {
            return None;
        }
        let mut held = self.held.take()?;
        let kept = held.bytes.len();
        if held.bytes.ends_with(b"=") {
            held.bytes.pop();
        }
        held.bytes.push(b' ');
        held.bytes.extend_from_slice(rest);
        let joined = Line { bytes: &held.bytes, number: held.number, offset: held.offset };
        match self.alone(&joined, out, diag) {
            Outcome::Reject(..) => {
                held.pieces += 1;
                if held.pieces >= MAX_PIECES || !begins(&held.bytes) {
                    held.bytes.truncate(kept);
                    self.held = Some(held);
                    return None;
                }
                // Its end may be further on; until it is there the pieces count as such.
                self.held = Some(held);
                Some(Outcome::Note("continuation"))
            }
            outcome => {
                diag.settle(outcome, &joined, out);
                self.wrapped = true;
                self.after_other = outcome == Outcome::Note("other-event");
                diag.warn("wrapped-lines", Some(held.number), || {
                    "events that were wrapped over lines were joined".into()
                });
                Some(Outcome::Note("continuation"))
            }
        }
    }

    /// A held line stays alone.
    fn release(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if let Some(held) = self.held.take() {
            let line = Line { bytes: &held.bytes, number: held.number, offset: held.offset };
            diag.settle(Outcome::Reject(held.why.0, held.why.1), &line, out);
        }
    }
}

/// A line begins like an event: a task and a CPU, and a time unless it was wrapped before that.
fn begins(bytes: &[u8]) -> bool {
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

impl LineParser for FtraceLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        if self.held.is_some() {
            if let Some(outcome) = self.join(line, out, diag) {
                return outcome;
            }
            self.release(out, diag);
        }
        let after_other = std::mem::take(&mut self.after_other);
        match self.alone(line, out, diag) {
            Outcome::Reject(reason, at) if begins(unquote(line.bytes)) => {
                let bytes = unquote(line.bytes).trim_ascii_end().to_vec();
                let (number, offset) = (line.number, line.offset);
                self.held = Some(Held { bytes, number, offset, pieces: 1, why: (reason, at) });
                Outcome::Later
            }
            // The rest of an event that is none of the block layer, in a text that was wrapped.
            Outcome::Reject(..) if after_other && self.wrapped => {
                self.after_other = true;
                Outcome::Note("continuation")
            }
            Outcome::Note("other-event") => {
                self.after_other = true;
                Outcome::Note("other-event")
            }
            outcome => outcome,
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.release(out, diag);
        if let Some(losses) = self.losses.take() {
            diag.warn("events-lost", Some(losses.first_line), || {
                let more = if losses.uncounted { " or more" } else { "" };
                format!("{}{more} events were lost, at {} places", losses.events, losses.places)
            });
        }
        if self.no_stamp && diag.events() > 0 {
            diag.warn("no-clock", None, || "events without time stamps have time 0: only their order is known".into());
        }
        diag.option("clock", if self.seen_stamp { "trace" } else { "none" });
        if self.decimal_comma {
            diag.option("decimal-sign", "comma");
        }
        if self.cgroups {
            diag.option("cgroup-column", "present");
        }
        if self.overwritten > 0 {
            // Each CPU has a buffer of its own: the window is whole only from the latest beginning on.
            let latest = self.first_ns.iter().max_by_key(|(cpu, first)| (**first, **cpu));
            let overwritten = self.overwritten;
            diag.warn("buffer-overwritten", None, || match latest {
                Some((cpu, first)) => format!(
                    "{overwritten} events were overwritten in the ring buffers before they were read; CPU {cpu} begins last, \
                     at {}.{:09} s: before it the trace is only partly there",
                    first / 1_000_000_000,
                    first % 1_000_000_000
                ),
                None => format!("{overwritten} events were overwritten in the ring buffers before they were read"),
            });
        }
        if self.without_device > 0 {
            let n = self.without_device;
            diag.warn("plug-without-device", None, || {
                format!("{n} plugs and unplugs say no device (ftrace prints none); they stand under device 0:0")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Block, Rows};

    fn parse(text: &str) -> (Rows, Diagnostics) {
        let parsed = crate::parse_all(&Ftrace, &ParseOptions::default(), text.as_bytes());
        assert!(parsed.1.adds_up(), "{text}");
        parsed
    }

    fn row(action: &str, rwbs: &str) -> Block {
        Block {
            time_ns: 1_425_576_266_000,
            dev: 8 << 20,
            cpu: Some(1),
            action: action.into(),
            rwbs: rwbs.into(),
            pid: Some(123),
            line: 1,
            ..Block::default()
        }
    }

    #[test]
    fn payloads() {
        let io = |action, rwbs, comm: &str| Block {
            sector_512: Some(64),
            len_bytes: Some(4096),
            comm: Some(comm.into()),
            ..row(action, rwbs)
        };
        let done = |action, rwbs, error| Block { error: Some(error), comm: None, ..io(action, rwbs, "") };
        let cases: Vec<(&str, Block)> = vec![
            ("block_bio_queue: 8,0 R 64 + 8 [dd]", io("Q", "R", "dd")),
            ("block_getrq: 8,0 WS 64 + 8 [a b]", io("G", "WS", "a b")),
            ("block_bio_backmerge: 8,0 WS 64 + 8 [dd]", io("M", "WS", "dd")),
            ("block_bio_frontmerge: 8,0 WS 64 + 8 [dd]", io("F", "WS", "dd")),
            ("block_bio_complete: 8,0 WS 64 + 8 [0]", done("C", "WS", 0)),
            ("block_rq_insert: 8,0 R 4096 () 64 + 8 [dd]", io("I", "R", "dd")),
            ("block_rq_issue: 8,0 R 0 () 64 + 8 [dd]", io("D", "R", "dd")),
            ("block_rq_issue: 8,0 WFSU 4096 () 64 + 8 none,0,0 [xfs_io]", io("D", "WFSU", "xfs_io")),
            ("block_rq_issue: 8,0 WS 4096 () 64 + 8 rt,4 [highpool[1]]", io("D", "WS", "highpool[1]")),
            ("block_rq_complete: 8,0 WS () 64 + 8 none,0,0 [0]", done("C", "WS", 0)),
            ("block_rq_complete: 8,0 WS () 64 + 8 [-5]", done("C", "WS", -5)),
            ("block_rq_requeue: 8,0 WS () 64 + 8 [0]", done("R", "WS", 0)),
            (
                "block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]",
                Block { sector_512: None, len_bytes: Some(0), ..done("C", "FF", 0) },
            ),
            ("block_plug: [dd]", Block { dev: 0, comm: Some("dd".into()), ..row("P", "N") }),
            ("block_unplug: [dd] 3", Block { dev: 0, comm: Some("dd".into()), unplugged: Some(3), ..row("U", "N") }),
            (
                "block_split: 8,0 R 64 / 72 [dd]",
                Block { len_bytes: None, from_sector_512: Some(72), ..io("X", "R", "dd") },
            ),
            (
                "block_bio_remap: 8,0 WS 64 + 8 <- (8,1) 8",
                Block { comm: None, from_dev: Some(8 << 20 | 1), from_sector_512: Some(8), ..io("A", "WS", "") },
            ),
            (
                "block_rq_remap: 8,0 WS 64 + 8 <- (8,1) 8 1",
                Block { comm: None, from_dev: Some(8 << 20 | 1), from_sector_512: Some(8), ..io("A", "WS", "") },
            ),
            ("  8,0    Q   R 64 + 8 [dd]", io("Q", "R", "dd")),
        ];
        for (payload, expected) in cases {
            for front in [
                "dd-123   [001] d..1.  1425.576266: ",
                "  dd-123 (  99) [001] 1425.576266: ",
                "dd 123 [001] 1425.576266: ",
            ] {
                let (rows, diag) = parse(&format!("{front}{payload}\n"));
                assert_eq!(rows.blocks, std::slice::from_ref(&expected), "{front}{payload} {:?}", diag.rejects());
            }
        }
    }

    #[test]
    fn fronts() {
        let pid =
            |front: &str| parse(&format!("{front} 1.5: block_plug: [x]\n")).0.blocks.first().map(|b| (b.pid, b.cpu));
        assert_eq!(pid("kworker/0:1H-1090    [000] ....."), Some((Some(1090), Some(0))));
        assert_eq!(pid("<...>-1297  [007]"), Some((Some(1297), Some(7))));
        assert_eq!(pid("a b [x]-9 [002] d...",), Some((Some(9), Some(2))));
        assert_eq!(pid("swapper     0 [000]"), Some((Some(0), Some(0))));
        assert_eq!(pid("fio  12/34 [003]"), Some((Some(34), Some(3))));
        let (rows, _) = parse("  dd 1 [000] 5.123456789:   block:block_plug: [x]\n");
        assert_eq!(rows.blocks[0].time_ns, 5_123_456_789);
        let (rows, diag) = parse("> block_bio_queue: 8,0 R 64 + 8 [dd]\n");
        assert_eq!((rows.blocks.len(), diag.warnings()[0].code), (1, "no-clock"));
    }

    #[test]
    fn the_blk_tracer_in_its_shapes() {
        let lines = [
            "dd-123   [001] d..1.  1425.576266:   8,0    Q   R 64 + 8 [dd]",
            "dd-123   [001] d..1.  1425.576266:   8,0 /user.slice   Q   R 64 + 8 [dd]",
            "dd-123   [001] d..1.  1425.576266:   8,0 1,2d   Q   R 64 + 8 [dd]",
            "dd-123   [001]  1425.576266: blktrace:   8,0    Q   R 64 + 8 [dd]",
            "  8,0    1  1425.576266000   123  Q   R 64 + 8 [dd]",
        ];
        for line in lines {
            let (rows, diag) = parse(line);
            assert_eq!(rows.blocks.len(), 1, "{line}: {:?}", diag.rejects());
            let b = &rows.blocks[0];
            assert_eq!((b.time_ns, b.dev, b.cpu, b.pid), (1_425_576_266_000, 8 << 20, Some(1), Some(123)), "{line}");
            assert_eq!((b.action.as_str(), b.sector_512, b.comm.as_deref()), ("Q", Some(64), Some("dd")), "{line}");
        }
        // blkparse's own line has a sequence number before the time.
        assert_eq!(parse("  8,0    1        1  1425.576266000   123  Q   R 64 + 8 [dd]").1.rejected(), 1);
    }

    #[test]
    fn losses_are_summed_up() {
        let warning = |text: &str| {
            let (_, diag) = parse(text);
            assert_eq!(diag.rejected(), 0);
            diag.warnings().iter().find(|w| w.code == "events-lost").map(|w| (w.first_line, w.text.clone()))
        };
        let text = "cpus=8\nCPU:7 [204600 EVENTS DROPPED]\nCPU:3 [LOST 5 EVENTS]\n";
        assert_eq!(warning(text), Some((Some(2), "204605 events were lost, at 2 places".into())));
        assert!(warning(&format!("{text}CPU:1 [LOST EVENTS]\n")).unwrap().1.starts_with("204605 or more"));
    }

    #[test]
    fn events_wrapped_over_lines_are_joined_at_any_width() {
        let events = [
            "     kworker/0:1H-1090    [000] d..1.  1425.576266: block_rq_issue: 8,0 WFSU 4096 () 64 + 8 none,0,0 [kworker/0:1H]",
            "              dd-123      [001] d..1.  1425.576267: block_bio_queue: 8,0 R 67848 + 8 [my dd]",
            "          <idle>-0        [001] d..1.  1425.576268: block_rq_complete: 8,0 WS () 64 + 8 none,0,0 [0]",
            "              dd-123      [001] d..1.  1425.576269: ext4_mark_inode_dirty: dev 259,5 ino 12 caller something+0x3",
            "              dd-123      [001] d..1.  1425.576270: block_unplug: [dd] 3",
            "              dd-123      [001] d..1.  1425.576271: block_bio_remap: 8,0 WS 64 + 8 <- (8,1) 8",
        ];
        let rows_of = |text: &str| {
            let (rows, diag) = parse(text);
            let rows: Vec<Block> = rows.blocks.into_iter().map(|b| Block { line: 0, ..b }).collect();
            (rows, diag)
        };
        let (whole, _) = rows_of(&events.join("\n"));
        assert_eq!(whole.len(), 5);
        for width in 50..100 {
            let text: String = events.iter().map(|e| wrap(e, width)).collect();
            let (rows, diag) = rows_of(&text);
            assert_eq!(rows, whole, "{width}: {text}{:?}", diag.rejects());
            assert_eq!(diag.rejected(), 0, "{width}: {text}");
            let head = Head { bytes: text.as_bytes(), complete: true };
            assert_eq!(crate::registry::detect(head).map(|f| f.id()).ok(), Some("ftrace"), "{width}");
        }
    }

    /// As a mailer wraps a line: at the last blank before the width.
    fn wrap(line: &str, width: usize) -> String {
        let (mut out, mut rest) = (String::new(), line);
        while rest.len() > width {
            let Some(at) = rest[..width].rfind(' ').filter(|at| !rest[..*at].trim().is_empty()) else { break };
            out.push_str(&rest[..at]);
            out.push('\n');
            rest = rest[at..].trim_start();
        }
        out + rest + "\n"
    }

    #[test]
    fn a_line_that_nothing_completes_is_a_reject_of_its_own() {
        let text = "dd-1 [000] 1.5: block_bio_queue: 8,0 R 64 +\ndd-1 [000] 1.6: block_plug: [dd]\ndd-1 [000] 1.7: block_bio_queue: 8,0\n";
        let (rows, diag) = parse(text);
        assert_eq!((rows.blocks.len(), diag.rejected(), diag.rejects()[0].first_line), (1, 2, 1));
        assert!(diag.warnings().iter().any(|w| w.code == "plug-without-device"));
    }

    #[test]
    fn overwritten_buffers_and_decimal_commas() {
        let text = "# entries-in-buffer/entries-written: 3/10   #P:2\n\
            dd-1 [000] 1.500000: block_plug: [dd]\ndd-1 [001] 2.250000: block_plug: [dd]\n\
            dd 1 [000] 3,000001: block:block_plug: [dd]\n";
        let (rows, diag) = parse(text);
        assert_eq!(rows.blocks[2].time_ns, 3_000_001_000);
        let warning = &diag.warnings()[0];
        assert_eq!(warning.code, "buffer-overwritten");
        assert!(
            warning.text.starts_with("7 events") && warning.text.contains("CPU 1 begins last, at 2.250000000 s"),
            "{}",
            warning.text
        );
        assert_eq!(diag.options()["decimal-sign"], "comma");
    }

    #[test]
    fn what_is_no_block_event() {
        let cases = [
            ("# tracer: nop", "header"),
            ("", "blank"),
            (" => blk_start_request", "stack"),
            ("CPU:3 [LOST 123 EVENTS]", "lost-events"),
            ("CPU:3 [LOST EVENTS]", "lost-events"),
            ("CPU:7 [204600 EVENTS DROPPED]", "lost-events"),
            ("CPU:7 [EVENTS DROPPED]", "lost-events"),
            ("CPU 1 is empty", "header"),
            ("x-1 [001] 1.5: ext4_mark_inode_dirty: dev 259,5 ino 12", "other-event"),
            ("x-1 [001] 1.5: block_touch_buffer: 259,5 sector=135 size=4096", "accounting-event"),
            ("x-1 [001] 1.5: block_io_done: 8,16 R 0 () 98400 + 0 [swapper/2]", "accounting-event"),
        ];
        for (line, kind) in cases {
            assert_eq!(parse(&format!("{line}\n")).1.note_count(kind), 1, "{line}");
        }
        for line in [
            "hello",
            "x-1 [001] 1.5: block_rq_issue: 8,0 R 0 64 + 8 [dd]",
            "x-1 [001] 1.5: block_rq_complete: 8,0 R () 64 + 8 [dd]",
        ] {
            assert_eq!(parse(line).1.rejected(), 1, "{line}");
        }
    }
}
