//! vmstat of Linux, as a time series: procps 2.0 (2001) to procps-ng 4.
//!
//! The header line names the columns and is the only truth about them; rows are split at blanks, never by width, and a
//! row that a mailer wrapped is joined with its next lines. The first row of each run holds averages since boot (rates and
//! percentages); `runs.rs` says what begins one.

mod columns;
mod command;
mod prefix;
mod row;
mod runs;
mod said;
mod time;
mod wrap;

use kreplay_traces::event::{EventSink, VmstatRow};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::lines::{Line, LineParser, Lines};
use crate::num::unquote;
use crate::rows::Discard;
use columns::{Header, HeaderLine, header};
use command::{Command, command};
use prefix::{Before, Clock, split};
use row::{Numbers, Scan, Stamp, scan};
use runs::{Rates, Runs};
use said::{is_banner, is_date, is_terminal};
pub(crate) use time::{civil_ns, zone_offset_s};
use wrap::Held;

/// The format.
pub struct Vmstat;

impl Format for Vmstat {
    fn id(&self) -> &'static str {
        "vmstat"
    }

    fn about(&self) -> &'static str {
        "vmstat of Linux as a time series (procps 2.0 to procps-ng 4, also -a -t -w -n)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        let (mut lines, mut diag) = (Lines::new(VmstatLines::new(&ParseOptions::default())), Diagnostics::new());
        lines.feed(head.whole_lines(), &mut Discard, &mut diag);
        lines.finish(&mut Discard, &mut diag);
        // A header alone is enough to know it by: a log may hold nothing more.
        let blank = diag.note_count("blank");
        let understood = diag.events() + diag.noted() - blank;
        if diag.note_count("header") == 0 { 0 } else { (100 * understood / (diag.lines() - blank)) as Score }
    }

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(VmstatLines::new(options)))
    }
}

static NO_HEADER: Reason = Reason {
    code: "vmstat-no-header",
    expected: "a header line `r b ...` before the first row",
    hint: "columns are known by their names only; add the header line",
};
static SHORT_ROW: Reason = Reason {
    code: "vmstat-short-row",
    expected: "as many numbers as the header has columns",
    hint: "the log may have been cut, or columns were removed",
};
static NOT_A_ROW: Reason = Reason {
    code: "vmstat-not-a-row",
    expected: "a header, or a row of numbers",
    hint: "text between the rows is skipped and begins a new run",
};
static BAD_NUMBER: Reason = Reason {
    code: "vmstat-bad-number",
    expected: "a whole number in each column",
    hint: "the row is left out, the run goes on; vmstat of Linux prints nothing else",
};
static BAD_STAMP: Reason = Reason {
    code: "vmstat-bad-stamp",
    expected: "`YYYY-MM-DD HH:MM:SS` after the numbers",
    hint: "the header promises time stamps (-t)",
};

struct VmstatLines {
    header: Option<Header>,
    /// A header that was just read: the next line may hold its rest.
    fresh: Option<Header>,
    /// Beginning of a row or header whose rest may come on the next lines, and the time before its first line.
    held: Held,
    held_before: Option<Before>,
    runs: Runs,
    interval_ns: Option<i64>,
    start_ns: Option<i64>,
    samples: i64,
    unit_bytes: i64,
    unit_given: bool,
    /// `-y`: the first row is no average since boot.
    no_average: bool,
    utc_offset_s: Option<i64>,
    midnight_ns: Option<i64>,
    /// Each line has a time before it.
    prefixed: bool,
    clock: Clock,
}

impl VmstatLines {
    fn new(options: &ParseOptions) -> Self {
        Self {
            header: None,
            fresh: None,
            held: Held::default(),
            held_before: None,
            runs: Runs::new(),
            interval_ns: options.interval_ns,
            start_ns: options.start_ns,
            samples: 0,
            unit_bytes: options.memory_unit_bytes.unwrap_or(1024),
            unit_given: options.memory_unit_bytes.is_some(),
            no_average: false,
            utc_offset_s: options.utc_offset_s,
            midnight_ns: options.midnight_ns,
            prefixed: false,
            clock: Clock::default(),
        }
    }

    /// The header's last line is over: rows follow it from here on.
    fn take_header(&mut self, diag: &mut Diagnostics) {
        let Some(new) = self.fresh.take() else { return };
        diag.option("columns", new.columns.len().to_string());
        if let Some(zone) = &new.zone {
            diag.option("zone", zone.clone());
        }
        if self.header.as_ref().is_some_and(|h| h.columns != new.columns) {
            self.runs.interrupt();
        }
        self.runs.header();
        self.header = Some(new);
    }

    /// Words of a whole row.
    fn row_words(&self) -> Option<usize> {
        self.header.as_ref().map(|h| h.columns.len() + if h.zone.is_some() { 2 } else { 0 })
    }

    /// Emit a whole row. Negative numbers mean that the kernel's counters began anew between two samples (a reboot, a
    /// restored machine): such a row begins a run, and the numbers are dropped.
    fn row(
        &mut self,
        numbers: &Numbers,
        before: Option<Before>,
        line: i64,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) {
        if numbers.values[..numbers.count].iter().any(|v| *v < 0) {
            self.runs.interrupt();
            diag.warn("vmstat-negative", Some(line), || {
                "a row has negative numbers: the counters were reset; they are dropped and a run begins".into()
            });
        }
        let stamp_ns = self.stamp_ns(numbers, before, line, diag);
        let Some(header) = &self.header else { return };
        let mut rates = Rates::default();
        for (column, value) in header.columns.iter().zip(numbers.values) {
            if column.is_rate() {
                rates.push(value);
            }
        }
        let place = self.runs.row(Some(rates), stamp_ns);
        if let Some(step) = place.back_ns {
            diag.warn("clock-step", Some(line), || {
                format!("the clock steps back by {step} ns (it was set, or summer time ended)")
            });
        }
        if place.inferred {
            diag.warn("vmstat-restart", Some(line), || {
                "vmstat was started anew here: the row is an average since boot and begins a run".into()
            });
        }
        let mut row = VmstatRow {
            time_ns: stamp_ns.or_else(|| self.sample_ns()),
            run: place.run,
            since_boot: place.first && !self.no_average,
            line,
            ..VmstatRow::default()
        };
        for (column, value) in header.columns.iter().zip(numbers.values).filter(|(_, value)| *value >= 0) {
            let value = if column.is_memory() { self.kib(value) } else { value };
            column.set(&mut row, value);
        }
        self.samples += 1;
        out.vmstat(&row);
    }

    /// A row that cannot be read is a sample all the same, perhaps the first of its run.
    fn lost_row(&mut self) {
        self.runs.row(None, None);
        self.samples += 1;
    }

    /// The time of a row by its stamp, or by what stands before its line.
    fn stamp_ns(
        &mut self,
        numbers: &Numbers,
        before: Option<Before>,
        line: i64,
        diag: &mut Diagnostics,
    ) -> Option<i64> {
        if let Stamp::Whole(ns, zone) = &numbers.stamp {
            let of_header = self.header.as_ref().and_then(|h| h.zone.as_deref());
            let zone = zone.as_deref().or(of_header).unwrap_or_default();
            return Some(ns.saturating_sub(self.offset_s(zone, line, diag).saturating_mul(1_000_000_000)));
        }
        Some(self.clock.ns(before?, self.utc_offset_s, self.midnight_ns))
    }

    /// The time of the next row by its number.
    fn sample_ns(&self) -> Option<i64> {
        self.interval_ns.map(|i| self.start_ns.unwrap_or(0).saturating_add(self.samples.saturating_mul(i)))
    }

    fn kib(&self, value: i64) -> i64 {
        if self.unit_bytes == 1024 {
            return value;
        }
        i64::try_from(i128::from(value) * i128::from(self.unit_bytes) / 1024).unwrap_or(i64::MAX)
    }

    fn offset_s(&self, zone: &str, line: i64, diag: &mut Diagnostics) -> i64 {
        self.utc_offset_s.or_else(|| zone_offset_s(zone)).unwrap_or_else(|| {
            diag.warn("zone-unknown", Some(line), || {
                format!("the zone {zone:?} is not known exactly; its times are taken as UTC (say --utc-offset)")
            });
            0
        })
    }

    /// Decide what held lines are, now that nothing will be joined to them.
    fn release(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if self.held.is_empty() {
            return;
        }
        if self.held.is_header {
            self.runs.interrupt();
            return self.held.reject(&SHORT_ROW, out, diag);
        }
        self.lost_row();
        let whole = self.header.as_ref().map(|h| h.columns.len());
        let reason = match scan(&self.held.joined) {
            Scan::Numbers(n) if Some(n.count) == whole => &BAD_STAMP,
            Scan::BadNumber(..) => &BAD_NUMBER,
            _ => &SHORT_ROW,
        };
        self.held.reject(reason, out, diag);
    }

    /// Try to go on with what is held; `None` where this line is no part of it.
    fn join(
        &mut self,
        bytes: &[u8],
        line: &Line<'_>,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Option<Outcome> {
        if bytes.is_empty() {
            return None;
        }
        let joined = self.held.with(bytes);
        if self.held.is_header {
            match header(&joined)? {
                HeaderLine::Whole(header) => self.fresh = Some(header),
                HeaderLine::Begun => return self.held.has_room().then(|| self.held.push(bytes, line)),
            }
            self.held.accept(Outcome::Note("header"), out, diag);
            return Some(Outcome::Note("continuation"));
        }
        let whole = self.row_words()?;
        let words = joined.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).count();
        match scan(&joined) {
            Scan::Numbers(numbers) if self.is_whole(&numbers) && self.is_likely(&numbers) => {
                let (number, before) = (self.held.number(), self.held_before.take());
                self.row(&numbers, before, number, out, diag);
                self.held.accept(Outcome::Event, out, diag);
                Some(Outcome::Note("continuation"))
            }
            Scan::BadNumber(..) if words == whole => {
                self.lost_row();
                self.held.reject(&BAD_NUMBER, out, diag);
                Some(Outcome::Reject(&BAD_NUMBER, None))
            }
            Scan::Numbers(_) | Scan::BadNumber(..) if words < whole && self.held.has_room() => {
                Some(self.held.push(bytes, line))
            }
            _ => None,
        }
    }

    /// All columns are there, and the stamp where the header promises one.
    fn is_whole(&self, numbers: &Numbers) -> bool {
        let stamped = matches!(numbers.stamp, Stamp::Whole(..));
        let begun = matches!(numbers.stamp, Stamp::Begun);
        self.header
            .as_ref()
            .is_some_and(|h| h.columns.len() == numbers.count && !begun && (stamped || h.zone.is_none()))
    }

    /// No share of the processors' time is over 100 %: halves of two rows, joined, would show by that.
    fn is_likely(&self, numbers: &Numbers) -> bool {
        let columns = self.header.iter().flat_map(|h| &h.columns);
        columns.zip(numbers.values).all(|(column, value)| !column.is_share() || value <= 100)
    }

    /// A line between the rows that scripts and people write.
    fn other(&mut self, line: &[u8], number: i64, diag: &mut Diagnostics) -> Outcome {
        if is_date(line) {
            return Outcome::Note("date");
        }
        if line.starts_with(b"vmstat: ") {
            diag.warn("vmstat-error", Some(number), || String::from_utf8_lossy(line).into_owned());
            return Outcome::Note("tool-message");
        }
        if let Some(command) = command(line) {
            self.take_command(&command, diag);
            return Outcome::Note("command");
        }
        if is_terminal(line) { Outcome::Note("terminal") } else { Outcome::Reject(&NOT_A_ROW, None) }
    }

    /// A command line that stands in the log says what the rows do not.
    fn take_command(&mut self, command: &Command, diag: &mut Diagnostics) {
        self.no_average = command.no_average;
        if let Some(seconds) = command.delay_s {
            diag.option("interval", format!("{seconds} s"));
            self.interval_ns = self.interval_ns.or(seconds.checked_mul(1_000_000_000));
        }
        if let Some(bytes) = command.unit_bytes.filter(|_| !self.unit_given) {
            diag.option("memory-unit", format!("{bytes} bytes"));
            self.unit_bytes = bytes;
        }
    }

    fn hold(&mut self, bytes: &[u8], line: &Line<'_>, is_header: bool, before: Option<Before>) -> Outcome {
        self.held.is_header = is_header;
        self.held_before = before;
        self.held.push(bytes, line)
    }

    /// The time that stands before a line, and the line without it.
    fn unprefixed<'a>(&mut self, bytes: &'a [u8]) -> (Option<Before>, &'a [u8]) {
        if !self.prefixed && memchr::memmem::find(bytes, b"swpd").or(memchr::memmem::find(bytes, b"memory")).is_none() {
            return (None, bytes);
        }
        match split(bytes) {
            Some((before, rest)) => {
                let rest = rest.trim_ascii();
                self.prefixed |= is_banner(rest) || header(rest).is_some();
                if self.prefixed { (Some(before), rest) } else { (None, bytes) }
            }
            None => (None, bytes),
        }
    }
}

impl LineParser for VmstatLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let (before, bytes) = self.unprefixed(plain(unquote(line.bytes)).trim_ascii());
        if !self.held.is_empty() {
            if let Some(outcome) = self.join(bytes, line, out, diag) {
                return outcome;
            }
            self.release(out, diag);
        }
        if bytes.is_empty() {
            return Outcome::Note("blank");
        }
        if let Some(longer) = self.fresh.as_ref().and_then(|h| h.continued(bytes)) {
            self.fresh = Some(longer);
            wrap::warn(line.number, diag);
            return Outcome::Note("continuation");
        }
        self.take_header(diag);
        // A row begins with a number; headers and banners are looked for in what does not.
        if !bytes[0].is_ascii_digit() {
            match header(bytes) {
                Some(HeaderLine::Whole(header)) => {
                    self.fresh = Some(header);
                    return Outcome::Note("header");
                }
                Some(HeaderLine::Begun) => return self.hold(bytes, line, true, before),
                None => {}
            }
            if is_banner(bytes) {
                return Outcome::Note("banner");
            }
        }
        let scanned = scan(bytes);
        if matches!(scanned, Scan::Other) {
            self.runs.interrupt();
            return self.other(bytes, line.number, diag);
        }
        let Some(whole) = self.row_words() else { return Outcome::Reject(&NO_HEADER, None) };
        let columns = self.header.as_ref().map_or(0, |h| h.columns.len());
        match scanned {
            Scan::Numbers(numbers) if self.is_whole(&numbers) => {
                self.row(&numbers, before, line.number, out, diag);
                Outcome::Event
            }
            Scan::Numbers(numbers) if numbers.count <= columns => self.hold(bytes, line, false, before),
            Scan::BadNumber(_, words) if words < whole => self.hold(bytes, line, false, before),
            Scan::BadNumber(at, _) => {
                self.lost_row();
                Outcome::Reject(&BAD_NUMBER, Some(line.bytes.len() - line.bytes.trim_ascii_start().len() + at))
            }
            Scan::BadStamp(at) => {
                self.lost_row();
                Outcome::Reject(&BAD_STAMP, Some(at))
            }
            _ => {
                self.lost_row();
                Outcome::Reject(&SHORT_ROW, None)
            }
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.release(out, diag);
        self.take_header(diag);
        let clock = match &self.header {
            Some(Header { zone: Some(_), .. }) => "epoch",
            _ if self.clock.kind.is_some() => self.clock.kind.unwrap_or_default(),
            _ if self.interval_ns.is_some() => "samples",
            _ => "none",
        };
        if self.clock.zone_unknown {
            diag.warn("zone-unknown", None, || {
                "the times before the lines have no zone; they are taken as UTC (say --utc-offset)".into()
            });
        }
        diag.option("clock", clock);
        diag.option("runs", self.runs.count().to_string());
    }
}

/// A line without what tools and people put before each: a comment sign with a line number, stress-ng's prefix.
fn plain(line: &[u8]) -> &[u8] {
    let text = line.trim_ascii_start();
    if text.starts_with(b"stress-ng:")
        && let Some(at) = memchr::memmem::find(text, b"vmstat:")
    {
        return &text[at + 7..];
    }
    let Some(comment) = text.strip_prefix(b"#") else { return line };
    let comment = comment.trim_ascii_start();
    let digits = comment.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits > 0 && comment.get(digits).is_some_and(u8::is_ascii_whitespace) { &comment[digits..] } else { line }
}

#[cfg(test)]
mod tests;
