//! blkparse's text in its default form: `maj,min cpu seq secs.ns pid action rwbs tail`.
//!
//! Fields are split at blanks, never by column: each of them widens (7-digit pids, 3-digit cpus). Events keep the order
//! of the text. Line forms after blktrace 1.0.5 to 1.3 (`blkparse_fmt.c`) and its trailer of summaries.

mod tail;
mod usual;

use kreplay_traces::event::{BlockRow, EventSink};

use crate::blkformat::FormatLines;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, fraction_ns, unquote};
pub(crate) use tail::Tail;

/// The format.
pub struct Blkparse;

impl Format for Blkparse {
    fn id(&self) -> &'static str {
        "blkparse"
    }

    fn about(&self) -> &'static str {
        "blkparse text, default line form or any -f format"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(BlkparseLines::default(), head)
    }

    fn sniff_with(&self, head: Head<'_>, options: &ParseOptions) -> Score {
        match given(options) {
            Some(Ok(lines)) => score_lines(lines, head),
            _ => self.sniff(head),
        }
    }

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        match given(options) {
            Some(Ok(lines)) => Box::new(Lines::new(lines)),
            _ => Box::new(Lines::new(BlkparseLines::default())),
        }
    }

    fn check(&self, options: &ParseOptions) -> Result<(), String> {
        match given(options) {
            Some(Err(why)) => Err(format!("blkparse format: {why}")),
            _ => Ok(()),
        }
    }
}

/// The reader of the format string that was given.
fn given(options: &ParseOptions) -> Option<Result<FormatLines, crate::blkformat::BadFormat>> {
    options.blkparse_format.as_deref().map(|format| FormatLines::new(format, options.midnight_ns.unwrap_or(0)))
}

static NOT_AN_EVENT: Reason = Reason {
    code: "blkparse-not-an-event",
    expected: "`major,minor cpu sequence seconds.nanoseconds pid action rwbs ...`",
    hint: "text written with -f needs the same format string here",
};
static BAD_FIELD: Reason = Reason {
    code: "blkparse-bad-field",
    expected: "a number for cpu, sequence, time and pid, and a known action letter",
    hint: "text written with -f needs the same format string here",
};
static BAD_TAIL: Reason = Reason {
    code: "blkparse-bad-tail",
    expected: "sector, length and process (or error) as the action has them",
    hint: "the line was cut, or a patched blkparse added columns",
};

/// Seconds that blkparse prints for a time just before its genesis event: the 64-bit difference wraps and its seconds
/// are cut to 32 bits, (2^64 / 10^9) mod 2^32.
const WRAPPED_SECS: i64 = 1_266_874_889;
/// What has to be added to such a time: four times 2^32 seconds less 2^64 nanoseconds.
const WRAPPED_SHIFT_NS: i128 = 17_179_869_184_i128 * 1_000_000_000 - (1_i128 << 64);

#[derive(Default)]
pub(crate) struct BlkparseLines {
    trailer: bool,
    /// The latest time was an ordinary one (below 2^30 seconds).
    small_times: bool,
    wrapped: bool,
    cgroups: bool,
    last_ns: Option<i64>,
    tail: Tail,
    /// An event line that ended too early: a mailer may have wrapped it.
    held: Option<Held>,
}

struct Held {
    bytes: Vec<u8>,
    number: i64,
    offset: i64,
    at: usize,
}

/// The numbers and letters before the tail.
struct Front<'a> {
    dev: i64,
    cpu: i64,
    seq: i64,
    time_ns: i64,
    pid: i64,
    action: &'static str,
    rwbs: &'a str,
}

impl BlkparseLines {
    #[inline]
    fn front<'a>(&mut self, f: &mut Fields<'a>, dev: &'a [u8]) -> Result<Front<'a>, usize> {
        let dev = device(dev).ok_or(0usize)?;
        let number = |f: &mut Fields<'a>| {
            let at = f.position();
            f.next_dec().ok_or(at)
        };
        let cpu = number(f)?;
        let seq = number(f)?;
        let at = f.position();
        let time = f.next().ok_or(at)?;
        let dot = time.iter().position(|b| *b == b'.').ok_or(at)?;
        let secs = dec_i64(&time[..dot]).ok_or(at)?;
        let ns = fraction_ns(&time[dot + 1..]).ok_or(at)?;
        let time_ns = self.time(secs, ns).ok_or(at)?;
        let pid = number(f)?;
        let at = f.position();
        let mut word = f.next().ok_or(at)?;
        if word[0].is_ascii_digit() && device(word).is_some() {
            // The cgroup (newer tools) stands between pid and action.
            self.cgroups = true;
            word = f.next().ok_or(at)?;
        }
        let action = action(word).ok_or(at)?;
        let at = f.position();
        let rwbs = f.next().ok_or(at)?;
        let letters = rwbs.iter().all(u8::is_ascii_uppercase);
        let rwbs = std::str::from_utf8(rwbs).ok().filter(|_| letters).ok_or(at)?;
        Ok(Front { dev, cpu, seq, time_ns, pid, action, rwbs })
    }

    fn time(&mut self, secs: i64, ns: i64) -> Option<i64> {
        let plain = secs.checked_mul(1_000_000_000)?.checked_add(ns)?;
        self.wrapped = self.small_times && (WRAPPED_SECS - 3600..=WRAPPED_SECS).contains(&secs);
        if self.wrapped {
            return i64::try_from(i128::from(plain) + WRAPPED_SHIFT_NS).ok();
        }
        self.small_times = secs < 1 << 30;
        Some(plain)
    }
}

impl BlkparseLines {
    /// Take a line of the usual form; its time, or `None` where it has another.
    #[inline]
    fn usual(&mut self, text: &str, line: i64, out: &mut dyn EventSink) -> Option<i64> {
        let mut found = usual::usual(text)?;
        found.row.time_ns = self.time(found.secs, found.ns)?;
        found.row.line = line;
        out.block(&found.row);
        Some(found.row.time_ns)
    }

    fn event<'a>(
        &mut self,
        f: &mut Fields<'a>,
        dev: &'a [u8],
        line: i64,
        out: &mut dyn EventSink,
    ) -> Result<i64, Reject> {
        let front = self.front(f, dev).map_err(|at| (&BAD_FIELD, at))?;
        let mut row = BlockRow {
            time_ns: front.time_ns,
            dev: named_device(front.action, front.dev),
            cpu: Some(front.cpu),
            seq: Some(front.seq),
            action: front.action,
            rwbs: front.rwbs,
            pid: Some(front.pid),
            line,
            ..BlockRow::default()
        };
        self.tail.read(&mut row, f).map_err(|at| (&BAD_TAIL, at))?;
        out.block(&row);
        Ok(front.time_ns)
    }

    fn check(&mut self, time_ns: i64, line: i64, diag: &mut Diagnostics) {
        let after_trailer = std::mem::take(&mut self.trailer);
        if self.wrapped {
            diag.warn("time-wrapped", Some(line), || {
                "an event is earlier than the first one and its time had wrapped; it was put back".into()
            });
        }
        if std::mem::take(&mut self.tail.remark) {
            diag.warn("annotated", Some(line), || {
                "remarks, or columns of a patched blkparse, were dropped from events".into()
            });
        }
        if let Some(below) = self.tail.negative_ns.take() {
            diag.warn("negative-latency", Some(line), || {
                format!("a request takes less than no time ({below} ns below zero): its latency is not known")
            });
        }
        if let Some(last) = self.last_ns.filter(|last| *last > time_ns) {
            let step = last.abs_diff(time_ns);
            // A run ends with its summary and begins with its first event, from which it counts.
            if after_trailer || time_ns == 0 {
                diag.warn("several-runs", Some(line), || {
                    "another run of blkparse begins here, its times begin anew: the runs lie over each other; keep one \
                     of them to replay it"
                        .into()
                });
            }
            diag.warn("time-backwards", Some(line), || format!("an event is {step} ns earlier than the one before it"));
        }
        self.last_ns = Some(time_ns);
    }

    /// Try this line as the rest of a held one (`=` at the end of the first is a mailer's soft break).
    fn join(&mut self, line: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
        let mut f = Fields::new(line);
        if first_field(&mut f).is_none_or(begins_event) {
            return None;
        }
        let held = self.held.take()?;
        let mut joined = held.bytes.strip_suffix(b"=").unwrap_or(&held.bytes).to_vec();
        joined.push(b' ');
        joined.extend_from_slice(line);
        let mut f = Fields::new(&joined);
        let first = first_field(&mut f)?;
        let done = self.event(&mut f, first, held.number, out);
        let Ok(time_ns) = done else {
            self.held = Some(held);
            return None;
        };
        self.check(time_ns, held.number, diag);
        diag.settle(Outcome::Event, &Line { bytes: &held.bytes, number: held.number, offset: held.offset }, out);
        diag.warn("wrapped-lines", Some(held.number), || "events that were wrapped over two lines were joined".into());
        Some(Outcome::Note("continuation"))
    }

    /// A held line stays alone.
    fn release(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if let Some(held) = self.held.take() {
            let line = Line { bytes: &held.bytes, number: held.number, offset: held.offset };
            diag.settle(Outcome::Reject(&BAD_TAIL, Some(held.at)), &line, out);
        }
    }

    /// A line of the default form in a text of another: messages have it whatever the format, and actions that a `-F`
    /// left alone. Summaries and what the tool says are notes; `None` for everything else.
    pub(crate) fn between(
        &mut self,
        line: &Line<'_>,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Option<Outcome> {
        let bytes = unquote(line.bytes);
        let mut f = Fields::new(bytes);
        let first = first_field(&mut f)?;
        if !begins_event(first) {
            return Some(self.other(bytes.trim_ascii())).filter(|o| matches!(o, Outcome::Note(_)));
        }
        let time_ns = self.event(&mut f, first, line.number, out).ok()?;
        self.check(time_ns, line.number, diag);
        Some(Outcome::Event)
    }

    /// A line that does not begin like an event.
    fn other(&mut self, line: &[u8]) -> Outcome {
        // The blk tracer's classic form has ftrace's header.
        if line.starts_with(b"#") {
            return Outcome::Note("comment");
        }
        if (line.starts_with(b"CPU") || line.starts_with(b"Total")) && line.ends_with(b":") {
            self.trailer = true;
            return Outcome::Note("trailer");
        }
        let ends = [&b"Throughput (R/W):"[..], b"Events (", b"Skips:"];
        if ends.iter().any(|e| line.starts_with(e)) {
            return Outcome::Note("trailer");
        }
        if self.trailer && is_summary(line) {
            return Outcome::Note("trailer");
        }
        let said = [&b"Input file "[..], b"Thread ", b"^C", b"=== ", b"Bad fs action", b"discarded traces"];
        if said.iter().any(|s| line.starts_with(s)) {
            return Outcome::Note("tool-message");
        }
        Outcome::Reject(&NOT_AN_EVENT, Some(0))
    }
}

type Reject = (&'static Reason, usize);

impl LineParser for BlkparseLines {
    #[inline]
    fn text_line(&mut self, line: &Line<'_>, text: &str, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        if self.held.is_none()
            && let Some(time_ns) = self.usual(text, line.number, out)
        {
            self.check(time_ns, line.number, diag);
            return Outcome::Event;
        }
        self.line(line, out, diag)
    }

    #[inline]
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = unquote(line.bytes);
        let cut = line.bytes.len() - bytes.len();
        if self.held.is_some() {
            if let Some(outcome) = self.join(bytes, out, diag) {
                return outcome;
            }
            self.release(out, diag);
        }
        let mut f = Fields::new(bytes);
        let Some(first) = first_field(&mut f) else { return Outcome::Note("blank") };
        if !begins_event(first) {
            return self.other(bytes.trim_ascii());
        }
        match self.event(&mut f, first, line.number, out) {
            Ok(time_ns) => {
                self.check(time_ns, line.number, diag);
                Outcome::Event
            }
            Err((reason, at)) if reason.code == BAD_TAIL.code && memchr::memchr(b']', bytes).is_none() => {
                let bytes = bytes.trim_ascii_end().to_vec();
                self.held = Some(Held { bytes, number: line.number, offset: line.offset, at: cut + at });
                Outcome::Later
            }
            Err((reason, at)) => Outcome::Reject(reason, Some(cut + at)),
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.release(out, diag);
        diag.option("clock", "trace");
        if self.cgroups {
            diag.option("cgroup-column", "present");
        }
    }
}

/// The first field, after a label (`[a]`) that somebody put before the line.
#[inline]
fn first_field<'a>(f: &mut Fields<'a>) -> Option<&'a [u8]> {
    let first = f.next()?;
    if first[0] == b'[' && first.ends_with(b"]") { f.next().or(Some(first)) } else { Some(first) }
}

/// `8,0`.
#[inline]
fn begins_event(first: &[u8]) -> bool {
    first[0].is_ascii_digit() && first.contains(&b',')
}

/// `major,minor` as one number.
#[inline]
pub(crate) fn device(text: &[u8]) -> Option<i64> {
    let comma = text.iter().position(|b| *b == b',')?;
    let (major, minor) = (dec_i64(&text[..comma])?, dec_i64(&text[comma + 1..])?);
    (major < 1 << 32 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// The device of an event. Linux has no plug of device 0,0: it stands for none, where ftrace's plugs were exported.
#[inline]
fn named_device(action: &str, dev: i64) -> Option<i64> {
    (dev != 0 || !matches!(action, "P" | "U" | "UT")).then_some(dev)
}

/// The action letters that blkparse prints.
#[inline]
pub(crate) fn action(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        [letter] => match letter {
            b'Q' => "Q",
            b'G' => "G",
            b'I' => "I",
            b'D' => "D",
            b'C' => "C",
            b'M' => "M",
            b'F' => "F",
            b'P' => "P",
            b'U' => "U",
            b'A' => "A",
            b'X' => "X",
            b'R' => "R",
            b'S' => "S",
            b'B' => "B",
            b'm' => "m",
            _ => return None,
        },
        b"UT" => "UT",
        _ => return None,
    })
}

/// A line of the summary blocks, also one half of a line that a mailer wrapped.
fn is_summary(line: &[u8]) -> bool {
    let keys = [
        &b"Reads "[..],
        b"Read ",
        b"Writes ",
        b"Write ",
        b"PC Reads ",
        b"PC Read ",
        b"PC Writes ",
        b"PC Write ",
        b"IO unplugs:",
        b"Timer unplugs:",
        b"Allocation wait:",
        b"Dispatch wait:",
        b"Completion wait:",
    ];
    keys.iter().any(|k| line.starts_with(k)) || line.ends_with(b"iB") || line.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests;
