//! vmstat of Linux, as a time series: procps 2.0 (2001) to procps-ng 4.
//!
//! The header line names the columns and is the only truth about them; rows are split at blanks, never by width, and a
//! row that a mailer wrapped is joined with its next line. The first row of each run holds averages since boot (rates and
//! percentages); a repeated header does not begin a run, anything that vmstat does not print does.

mod columns;
mod command;
mod time;

use kreplay_traces::event::{EventSink, VmstatRow};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, signed, unquote};
use crate::rows::Discard;
use columns::{Header, HeaderLine, header, is_zone};
use command::{Command, command};
pub(crate) use time::{civil_ns, zone_offset_s};

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
static BAD_STAMP: Reason = Reason {
    code: "vmstat-bad-stamp",
    expected: "`YYYY-MM-DD HH:MM:SS` after the numbers",
    hint: "the header promises time stamps (-t)",
};

/// The most columns that a row has.
const MAX_COLUMNS: usize = 24;

struct VmstatLines {
    header: Option<Header>,
    /// Beginning of a row or header whose rest may come on the next line.
    held: Option<Held>,
    run: i64,
    rows_in_run: i64,
    /// Something stood between the rows that vmstat does not print.
    interrupted: bool,
    interval_ns: Option<i64>,
    start_ns: Option<i64>,
    samples: i64,
    unit_bytes: i64,
    unit_given: bool,
    /// `-y`: the first row is no average since boot.
    no_average: bool,
    utc_offset_s: Option<i64>,
}

struct Held {
    bytes: Vec<u8>,
    number: i64,
    offset: i64,
    is_header: bool,
}

/// A row's numbers, and its stamp.
struct Numbers {
    values: [i64; MAX_COLUMNS],
    count: usize,
    stamp: Option<Option<i64>>,
}

impl VmstatLines {
    fn new(options: &ParseOptions) -> Self {
        Self {
            header: None,
            held: None,
            run: -1,
            rows_in_run: 0,
            interrupted: true,
            interval_ns: options.interval_ns,
            start_ns: options.start_ns,
            samples: 0,
            unit_bytes: options.memory_unit_bytes.unwrap_or(1024),
            unit_given: options.memory_unit_bytes.is_some(),
            no_average: false,
            utc_offset_s: options.utc_offset_s,
        }
    }

    fn take_header(&mut self, new: Header, diag: &mut Diagnostics) -> Outcome {
        diag.option("columns", new.columns.len().to_string());
        if let Some(zone) = &new.zone {
            diag.option("zone", zone.clone());
        }
        let changed = self.header.as_ref().is_some_and(|h| h.columns != new.columns);
        self.interrupted |= changed;
        self.header = Some(new);
        Outcome::Note("header")
    }

    /// Emit a whole row. Negative numbers mean that the kernel's counters began anew between two samples (a reboot, a
    /// restored machine): such a row begins a run, and the numbers are dropped.
    fn row(&mut self, numbers: &Numbers, line: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if numbers.values[..numbers.count].iter().any(|v| *v < 0) {
            self.interrupted = true;
            diag.warn("vmstat-negative", Some(line), || {
                "a row has negative numbers: the counters were reset; they are dropped and a run begins".into()
            });
        }
        if std::mem::take(&mut self.interrupted) {
            self.run += 1;
            self.rows_in_run = 0;
        }
        let Some(header) = &self.header else { return };
        let mut row = VmstatRow {
            run: self.run,
            since_boot: self.rows_in_run == 0 && !self.no_average,
            line,
            ..VmstatRow::default()
        };
        for (column, value) in header.columns.iter().zip(numbers.values).filter(|(_, value)| *value >= 0) {
            let value = if column.is_memory() { self.kib(value) } else { value };
            column.set(&mut row, value);
        }
        row.time_ns = match numbers.stamp {
            Some(stamp) => stamp,
            None => self.interval_ns.map(|i| self.start_ns.unwrap_or(0).saturating_add(self.samples.saturating_mul(i))),
        };
        self.rows_in_run += 1;
        self.samples += 1;
        out.vmstat(&row);
    }

    fn kib(&self, value: i64) -> i64 {
        if self.unit_bytes == 1024 {
            return value;
        }
        i64::try_from(i128::from(value) * i128::from(self.unit_bytes) / 1024).unwrap_or(i64::MAX)
    }

    /// Read a line as numbers with an optional stamp; `None` where it is something else.
    fn numbers(&self, bytes: &[u8], diag: &mut Diagnostics, line: i64) -> Option<Result<Numbers, Outcome>> {
        let mut f = Fields::new(bytes);
        let mut numbers = Numbers { values: [0; MAX_COLUMNS], count: 0, stamp: None };
        loop {
            let at = f.position();
            let Some(word) = f.next() else { break };
            if let Some(value) = signed(word) {
                if numbers.count == MAX_COLUMNS {
                    return None;
                }
                numbers.values[numbers.count] = value;
                numbers.count += 1;
                continue;
            }
            if numbers.count == 0 || word.get(4) != Some(&b'-') {
                return None;
            }
            let Some(mut ns) = civil_ns(word, f.next().unwrap_or_default()) else {
                return Some(Err(Outcome::Reject(&BAD_STAMP, Some(at))));
            };
            let zone_word = f.next();
            if zone_word.is_some_and(|w| !is_zone(w)) || f.next().is_some() {
                return Some(Err(Outcome::Reject(&BAD_STAMP, Some(at))));
            }
            let zone = zone_word.map(|w| String::from_utf8_lossy(w).into_owned());
            let zone = zone.or_else(|| self.header.as_ref().and_then(|h| h.zone.clone())).unwrap_or_default();
            ns = ns.saturating_sub(self.offset_s(&zone, line, diag).saturating_mul(1_000_000_000));
            numbers.stamp = Some(Some(ns));
            break;
        }
        (numbers.count > 0).then_some(Ok(numbers))
    }

    fn offset_s(&self, zone: &str, line: i64, diag: &mut Diagnostics) -> i64 {
        self.utc_offset_s.or_else(|| zone_offset_s(zone)).unwrap_or_else(|| {
            diag.warn("zone-unknown", Some(line), || {
                format!("the zone {zone:?} is not known exactly; its times are taken as UTC (say --utc-offset)")
            });
            0
        })
    }

    /// Decide what a held half is, now that it will not be joined.
    fn release(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if let Some(held) = self.held.take() {
            let line = Line { bytes: &held.bytes, number: held.number, offset: held.offset };
            self.interrupted |= held.is_header;
            diag.settle(Outcome::Reject(&SHORT_ROW, Some(held.bytes.len())), &line, out);
        }
    }

    /// Try to complete the held half with this line.
    fn join(&mut self, bytes: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
        let held = self.held.as_ref()?;
        let number = held.number;
        let mut joined = held.bytes.clone();
        joined.push(b' ');
        joined.extend_from_slice(bytes);
        let outcome = if held.is_header {
            let Some(HeaderLine::Whole(h)) = header(&joined) else { return None };
            self.take_header(h, diag)
        } else {
            let expected = self.header.as_ref()?.columns.len();
            let numbers = self.numbers(&joined, diag, number)?.ok().filter(|n| n.count == expected)?;
            self.row(&numbers, number, out, diag);
            Outcome::Event
        };
        let held = self.held.take()?;
        diag.settle(outcome, &Line { bytes: &held.bytes, number: held.number, offset: held.offset }, out);
        diag.warn("wrapped-rows", Some(held.number), || "rows that were wrapped over two lines were joined".into());
        Some(Outcome::Note("continuation"))
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
        match command(line) {
            Some(command) => {
                self.take_command(&command, diag);
                Outcome::Note("command")
            }
            None => Outcome::Reject(&NOT_A_ROW, None),
        }
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

    fn hold(&mut self, bytes: &[u8], line: &Line<'_>, is_header: bool) -> Outcome {
        self.held = Some(Held { bytes: bytes.to_vec(), number: line.number, offset: line.offset, is_header });
        Outcome::Later
    }
}

impl LineParser for VmstatLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = plain(unquote(line.bytes)).trim_ascii();
        if self.held.is_some() {
            if let Some(outcome) = self.join(bytes, out, diag) {
                return outcome;
            }
            self.release(out, diag);
        }
        if bytes.is_empty() {
            return Outcome::Note("blank");
        }
        // A row begins with a number; headers and banners are looked for in what does not.
        if !bytes[0].is_ascii_digit() {
            match header(bytes) {
                Some(HeaderLine::Whole(header)) => return self.take_header(header, diag),
                Some(HeaderLine::Begun) => return self.hold(bytes, line, true),
                None => {}
            }
            if is_banner(bytes) {
                return Outcome::Note("banner");
            }
        }
        let numbers = match self.numbers(bytes, diag, line.number) {
            Some(Ok(numbers)) => numbers,
            Some(Err(outcome)) => return outcome,
            None => {
                self.interrupted = true;
                return self.other(bytes, line.number, diag);
            }
        };
        let Some(header) = &self.header else { return Outcome::Reject(&NO_HEADER, None) };
        match numbers.count.cmp(&header.columns.len()) {
            std::cmp::Ordering::Equal if header.zone.is_some() && numbers.stamp.is_none() => {
                Outcome::Reject(&BAD_STAMP, Some(line.bytes.len()))
            }
            std::cmp::Ordering::Equal => {
                self.row(&numbers, line.number, out, diag);
                Outcome::Event
            }
            std::cmp::Ordering::Less => self.hold(bytes, line, false),
            std::cmp::Ordering::Greater => Outcome::Reject(&SHORT_ROW, None),
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.release(out, diag);
        let clock = match &self.header {
            Some(Header { zone: Some(_), .. }) => "epoch",
            _ if self.interval_ns.is_some() => "samples",
            _ => "none",
        };
        diag.option("clock", clock);
        diag.option("runs", (self.run + 1).to_string());
    }
}

/// The line over the header: `procs memory swap io system cpu`, with or without dashes.
fn is_banner(line: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    // A mailer leaves the last word alone on its line.
    line == b"cpu" || has(b"procs") && has(b"memory") && has(b"swap")
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

/// The output of `date`: `Thu Feb 11 10:00:01 IST 2016`.
fn is_date(line: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    DAYS.iter().any(|d| line.starts_with(d)) && line.iter().filter(|b| **b == b':').count() == 2
}

#[cfg(test)]
mod tests;
