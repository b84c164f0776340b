//! Block events of ftrace, trace-cmd report and perf script, and the text of the `blk` tracer.
//!
//! ```text
//!           dd-123   [001] d..1.  1425.576266: block_rq_issue: 8,0 R 4096 () 67848 + 8 none,0,0 [dd]
//! dmcrypt_write  9587 [004] 6426159.859875:      block:block_bio_queue: 8,16 WFS 4112 + 4 [dmcrypt_write]
//!           dd-123   [001]  1425.576266:   8,0    Q   R 67848 + 8 [dd]
//! ```
//! Payloads after Linux 6.18's `include/trace/events/block.h` print formats and older samples: they are read by shape
//! (byte count and priority are there or not), not by kernel version. Other events are counted as such.

mod front;
mod payload;
mod shape;
#[cfg(test)]
mod tests;
mod wrap;

use std::collections::BTreeMap;

use kreplay_traces::event::EventSink;

use crate::blkparse::Tail;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, unquote};
use front::{begins, front, lost_events};
pub(crate) use shape::is_accounting;
use wrap::Held;

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

/// What the ring buffers lost.
#[derive(Default)]
struct Losses {
    first_line: i64,
    places: u64,
    events: u64,
    /// At one place at least only that there was a loss.
    uncounted: bool,
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
                format!("{n} plugs and unplugs say no device (ftrace prints none): they belong to their process")
            });
        }
    }
}
