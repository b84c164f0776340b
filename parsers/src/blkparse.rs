//! blkparse's text in its default form: `maj,min cpu seq secs.ns pid action rwbs tail`.
//!
//! Fields are split at blanks, never by column: each of them widens (7-digit pids, 3-digit cpus). Events keep the order
//! of the text. Line forms after blktrace 1.0.5 to 1.3 (`blkparse_fmt.c`) and its trailer of summaries.

use kreplay_traces::event::{BlockRow, EventSink};
use kreplay_traces::units::SECTOR_BYTES;

use crate::blkformat::FormatLines;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, fraction_ns, push_text, signed, unquote};

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

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        match options.blkparse_format.as_deref().map(FormatLines::new) {
            Some(Ok(lines)) => Box::new(Lines::new(lines)),
            _ => Box::new(Lines::new(BlkparseLines::default())),
        }
    }

    fn check(&self, options: &ParseOptions) -> Result<(), String> {
        match options.blkparse_format.as_deref().map(FormatLines::new) {
            Some(Err(why)) => Err(format!("blkparse format: {why}")),
            _ => Ok(()),
        }
    }
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
struct BlkparseLines {
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

/// Reader of what follows the RWBS letters; the blk tracer prints the same.
#[derive(Default)]
pub(crate) struct Tail {
    remark: bool,
    comm: String,
    text: String,
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
            f.next().and_then(dec_i64).ok_or(at)
        };
        let cpu = number(f)?;
        let seq = number(f)?;
        let at = f.position();
        let time = f.next().ok_or(at)?;
        let dot = memchr::memchr(b'.', time).ok_or(at)?;
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

impl Tail {
    /// Fill the row from what follows the RWBS letters; gives the byte index (in the fields' text) of the first surprise.
    #[inline]
    pub(crate) fn read<'s>(&'s mut self, row: &mut BlockRow<'s>, f: &mut Fields<'_>) -> Result<(), usize> {
        let at = f.position();
        let tail = f.rest();
        self.comm.clear();
        self.text.clear();
        match row.action {
            "A" => return remap(row, f),
            "m" => {
                push_text(&mut self.text, tail);
                row.text = Some(&self.text);
                return Ok(());
            }
            _ => {}
        }
        let has_error = matches!(row.action, "C" | "R");
        let open = memchr::memchr(b'[', tail).ok_or(at + tail.len())?;
        let numbers = &tail[..open];
        let close = if has_error { memchr::memchr(b']', tail) } else { memchr::memrchr(b']', tail) };
        let close = close.filter(|c| *c > open).ok_or(at + tail.len())?;
        let inner = &tail[open + 1..close];
        if has_error {
            row.error = Some(signed(inner).ok_or(at + open + 1)?);
        } else {
            push_text(&mut self.comm, inner);
        }
        let after = tail[close + 1..].trim_ascii();
        match row.action {
            "U" | "UT" => row.unplugged = Some(dec_i64(after).ok_or(at + close + 1)?),
            _ if after.is_empty() => {}
            // Zone append (patched tools): the sector where the device wrote.
            "C" if after.starts_with(b"<") && after.ends_with(b">") => {
                row.from_sector_512 = Some(dec_i64(&after[1..after.len() - 1]).ok_or(at + close + 1)?);
            }
            _ if after.starts_with(b"<-")
                || after.starts_with(b">>")
                || after.starts_with(b"#")
                || after.starts_with(b"...") =>
            {
                self.remark = true
            }
            _ => return Err(at + close + 1),
        }
        self.numbers(row, numbers).map_err(|i| at + i)?;
        row.comm = (!has_error && self.comm != "(null)").then_some(self.comm.as_str());
        row.text = (!self.text.is_empty()).then_some(self.text.as_str());
        Ok(())
    }

    /// `sector + n`, `sector / newsector`, `sector`, `bytes (cdb)`, or nothing; the elapsed time may follow in
    /// parentheses (`-t`).
    #[inline]
    fn numbers(&mut self, row: &mut BlockRow<'_>, numbers: &[u8]) -> Result<(), usize> {
        let mut numbers_end = numbers.len();
        if let Some(open) = memchr::memchr(b'(', numbers) {
            let inner = &numbers[open + 1..];
            let close = memchr::memchr(b')', inner).ok_or(open)?;
            let inner = inner[..close].trim_ascii();
            if dec_i64(inner).is_none() || inner.len() == 2 {
                push_text(&mut self.text, inner);
            }
            numbers_end = open;
        }
        let mut f = Fields::new(&numbers[..numbers_end]);
        let Some(mut first) = f.next() else { return Ok(()) };
        // Patched tools (the 2019-2020 trace extension) put an I/O priority here: `N`, or `BEST 4 0`.
        if first.iter().all(u8::is_ascii_uppercase) {
            let words = usize::from(first.len() > 1);
            first = f.nth(words).ok_or(0usize)?;
            self.remark = true;
        }
        let first = dec_i64(first).ok_or(0usize)?;
        let at = f.position();
        match f.next() {
            // A packet command has its length in bytes and no sector; a completion without a length has its sector.
            None if matches!(row.action, "Q" | "D" | "I" | "B") => row.len_bytes = Some(first),
            None => row.sector_512 = Some(first),
            Some(b"+") => {
                row.sector_512 = Some(first);
                row.len_bytes = Some(bytes_of(f.next()).ok_or(at)?);
            }
            Some(b"/") => {
                row.sector_512 = Some(first);
                row.from_sector_512 = Some(f.next().and_then(dec_i64).ok_or(at)?);
            }
            Some(_) => return Err(at),
        }
        let at = f.position();
        if f.next().is_some() { Err(at) } else { Ok(()) }
    }
}

impl BlkparseLines {
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
            dev: front.dev,
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
        self.trailer = false;
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
        if let Some(last) = self.last_ns.filter(|last| *last > time_ns) {
            let step = last - time_ns;
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

    /// A line that does not begin like an event.
    fn other(&mut self, line: &[u8]) -> Outcome {
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
    first[0].is_ascii_digit() && memchr::memchr(b',', first).is_some()
}

/// `sector + n <- (maj,min) sector`.
fn remap(row: &mut BlockRow<'_>, f: &mut Fields<'_>) -> Result<(), usize> {
    let mut word = |expected: &[u8]| {
        let at = f.position();
        f.next().filter(|w| expected.is_empty() || *w == expected).map(|w| (w, at)).ok_or(at)
    };
    let number = |(word, at): (&[u8], usize)| dec_i64(word).ok_or(at);
    row.sector_512 = Some(number(word(b"")?)?);
    word(b"+")?;
    let (sectors, at) = word(b"")?;
    row.len_bytes = Some(bytes_of(Some(sectors)).ok_or(at)?);
    word(b"<-")?;
    let (dev, at) = word(b"")?;
    let dev = dev.strip_prefix(b"(").and_then(|d| d.strip_suffix(b")")).and_then(device);
    row.from_dev = Some(dev.ok_or(at)?);
    row.from_sector_512 = Some(number(word(b"")?)?);
    Ok(())
}

fn bytes_of(sectors: Option<&[u8]>) -> Option<i64> {
    dec_i64(sectors?)?.checked_mul(SECTOR_BYTES as i64)
}

/// `major,minor` as one number.
#[inline]
pub(crate) fn device(text: &[u8]) -> Option<i64> {
    let comma = memchr::memchr(b',', text)?;
    let (major, minor) = (dec_i64(&text[..comma])?, dec_i64(&text[comma + 1..])?);
    (major < 1 << 32 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// The action letters that blkparse prints.
#[inline]
pub(crate) fn action(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        b"Q" => "Q",
        b"G" => "G",
        b"I" => "I",
        b"D" => "D",
        b"C" => "C",
        b"M" => "M",
        b"F" => "F",
        b"P" => "P",
        b"U" => "U",
        b"UT" => "UT",
        b"A" => "A",
        b"X" => "X",
        b"R" => "R",
        b"S" => "S",
        b"B" => "B",
        b"m" => "m",
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
mod tests {
    use super::*;
    use crate::rows::Block;

    const PREFIX: &str = "  8,0    1       19     2.000000123  4321  ";

    fn parse(text: &str) -> (crate::rows::Rows, Diagnostics) {
        let parsed = crate::parse_all(&Blkparse, &ParseOptions::default(), text.as_bytes());
        assert!(parsed.1.adds_up(), "{text}");
        parsed
    }

    fn base(action: &str, rwbs: &str) -> Block {
        Block {
            time_ns: 2_000_000_123,
            dev: 8 << 20,
            cpu: Some(1),
            seq: Some(19),
            action: action.into(),
            rwbs: rwbs.into(),
            pid: Some(4321),
            line: 1,
            ..Block::default()
        }
    }

    #[test]
    fn every_action() {
        let io = |action, rwbs, sector, sectors: i64, comm: &str| Block {
            sector_512: Some(sector),
            len_bytes: Some(sectors * 512),
            comm: Some(comm.into()),
            ..base(action, rwbs)
        };
        let done = |action, rwbs, sector, len_bytes, error| Block {
            sector_512: sector,
            len_bytes,
            error: Some(error),
            ..base(action, rwbs)
        };
        let cases: Vec<(&str, Block)> = vec![
            ("Q   R 67848 + 8 [wl]", io("Q", "R", 67848, 8, "wl")),
            ("Q  WS 1 + 8 [kworker/u8:0]", io("Q", "WS", 1, 8, "kworker/u8:0")),
            ("G RAM 1 + 2 [a b]", io("G", "RAM", 1, 2, "a b")),
            ("I FWFSM 1 + 8 [dmcrypt_write/2]", io("I", "FWFSM", 1, 8, "dmcrypt_write/2")),
            ("D   W 1 + 8 [x]y]", io("D", "W", 1, 8, "x]y")),
            ("D   W 1 + 8 [[x]", io("D", "W", 1, 8, "[x")),
            ("D   W 1 + 8 [(null)]", Block { comm: None, ..io("D", "W", 1, 8, "") }),
            ("D   W 1 + 8 [1234]", io("D", "W", 1, 8, "1234")),
            ("M  RA 1 + 32 [wl]", io("M", "RA", 1, 32, "wl")),
            ("F   W 331344 + 176 [kworker/u8:0]", io("F", "W", 331_344, 176, "kworker/u8:0")),
            ("S   W 5 + 8 [wl]", io("S", "W", 5, 8, "wl")),
            ("B   W 5 + 8 [wl]", io("B", "W", 5, 8, "wl")),
            ("D   W 1 + 8 (     512) [wl]", io("D", "W", 1, 8, "wl")),
            ("Q  FN [jbd2/sda-8]", Block { comm: Some("jbd2/sda-8".into()), ..base("Q", "FN") }),
            ("P   N [wl]", Block { comm: Some("wl".into()), ..base("P", "N") }),
            ("U   N [wl] 3", Block { comm: Some("wl".into()), unplugged: Some(3), ..base("U", "N") }),
            ("UT   N [swapper] 1", Block { comm: Some("swapper".into()), unplugged: Some(1), ..base("UT", "N") }),
            ("C   R 64 + 8 [0]", done("C", "R", Some(64), Some(4096), 0)),
            ("C   W 64 + 8 [-5]", done("C", "W", Some(64), Some(4096), -5)),
            ("C   W 64 + 8 [65531]", done("C", "W", Some(64), Some(4096), 65531)),
            ("C   W 64 + 8 (  120031) [0]", done("C", "W", Some(64), Some(4096), 0)),
            ("C  WS 64 [0]", done("C", "WS", Some(64), None, 0)),
            ("C   N [0]", done("C", "N", None, None, 0)),
            ("R   W 64 + 8 [0]", done("R", "W", Some(64), Some(4096), 0)),
            (
                "C ZAS 262144 + 8 [0] <262152>",
                Block { from_sector_512: Some(262_152), ..done("C", "ZAS", Some(262_144), Some(4096), 0) },
            ),
            (
                "D   R 36 (12 00 00 00 24 00 ..) [udevd]",
                Block {
                    len_bytes: Some(36),
                    comm: Some("udevd".into()),
                    text: Some("12 00 00 00 24 00 ..".into()),
                    ..base("D", "R")
                },
            ),
            ("D   R 4 [dmraid]", Block { len_bytes: Some(4), comm: Some("dmraid".into()), ..base("D", "R") }),
            ("C   R (12 00 ..) [0]", Block { text: Some("12 00 ..".into()), ..done("C", "R", None, None, 0) }),
            (
                "X   W 335872 / 336896 [kworker/u8:0]",
                Block {
                    sector_512: Some(335_872),
                    from_sector_512: Some(336_896),
                    comm: Some("kworker/u8:0".into()),
                    ..base("X", "W")
                },
            ),
            (
                "A   W 2048 + 8 <- (8,1) 0",
                Block {
                    sector_512: Some(2048),
                    len_bytes: Some(4096),
                    from_dev: Some(8 << 20 | 1),
                    from_sector_512: Some(0),
                    ..base("A", "W")
                },
            ),
            ("m   N bfq [x] y", Block { text: Some("bfq [x] y".into()), ..base("m", "N") }),
            ("1,0  m   N cfq 1", Block { text: Some("cfq 1".into()), ..base("m", "N") }),
        ];
        for (tail, expected) in cases {
            let (rows, diag) = parse(&format!("{PREFIX}{tail}\n"));
            assert_eq!(rows.blocks, [expected], "{tail}: {:?}", diag.rejects());
        }
    }

    #[test]
    fn rejects_name_the_column() {
        let cases = [
            ("hello world", "blkparse-not-an-event", 1),
            ("8,x 1 1 0.1 5 Q R 1 + 8 [a]", "blkparse-bad-field", 1),
            ("8,0 x 1 0.1 5 Q R 1 + 8 [a]", "blkparse-bad-field", 5),
            ("8,0 1 1 0 5 Q R 1 + 8 [a]", "blkparse-bad-field", 9),
            ("8,0 1 1 0.1 5 K R 1 + 8 [a]", "blkparse-bad-field", 15),
            ("8,0 1 1 0.1 5 Q r 1 + 8 [a]", "blkparse-bad-field", 17),
            ("8,0 1 1 0.1 5 Q", "blkparse-bad-field", 16),
            ("8,0 1 1 0.1 5 Q R 1 + 8", "blkparse-bad-tail", 24),
            ("8,0 1 1 0.1 5 Q R 1 + 8 [a", "blkparse-bad-tail", 27),
            ("8,0 1 1 0.1 5 C R 1 + 8 [a]", "blkparse-bad-tail", 26),
            ("8,0 1 1 0.1 5 I W 1 - 8 [a]", "blkparse-bad-tail", 21),
            ("8,0 1 1 0.1 5 A W 1 + 8 <- 8,0 4", "blkparse-bad-tail", 28),
            ("8,0 1 1 0.1 5 U N [a] x", "blkparse-bad-tail", 22),
            ("8,0 1 1 99999999999.1 5 U N [a] 1", "blkparse-bad-field", 9),
        ];
        for (text, reason, column) in cases {
            let (rows, _) = parse(text);
            let got = rows.rejects.first().map(|r| (r.reason.as_str(), r.column));
            assert_eq!(got, Some((reason, Some(column))), "{text}");
        }
    }

    #[test]
    fn the_trailer_and_the_tool_are_no_events() {
        let text = "8,0 1 1 0.000000001 5 P N [a]\n\
            CPU0 (8,0):\n Reads Queued:          13,       52KiB\t Writes Queued:           0,        0KiB\n\
            \x20Read depth:             4\t Write depth:            0\n IO unplugs:             7\t Timer unplugs: 0\n\n\
            Total (8,0):\n Reads Completed: 1, 1KiB\n\nThroughput (R/W): 3KiB/s / 0KiB/s\n\
            Events (8,0): 30 entries\nSkips: 0 forward (0 -   0.0%)\nInput file x.blktrace.0 added\n\
            8,0 1 1 0.000000001 5 P N [a]\n Reads Queued: 1\n";
        let (rows, diag) = parse(text);
        assert_eq!(rows.blocks.len(), 2);
        assert_eq!((diag.note_count("trailer"), diag.note_count("tool-message")), (9, 1));
        assert_eq!(rows.rejects.len(), 1, "a summary line outside of a trailer");
    }

    #[test]
    fn times_before_the_genesis_are_put_back() {
        let text = "259,0 1 1 0.000000000 5 P N [a]\n259,0 1 2 1266874889.709450585 5 P N [a]\n";
        let (rows, diag) = parse(text);
        assert_eq!(rows.blocks[1].time_ns, -101_031);
        let codes: Vec<_> = diag.warnings().iter().map(|w| w.code).collect();
        assert_eq!(codes, ["time-wrapped", "time-backwards"]);
    }

    #[test]
    fn wrapped_events_are_joined() {
        let text = "8,0 1 1 0.1 5 D W 64 + 8 \n[kworker/18:1H]\n>> 8,0 1 2 0.2 5 A W 64 + 8 <- (9,127) =\n274432\n\
            8,0 1 3 0.3 5 D W 64 + 8\n8,0 1 4 0.4 5 P N [a]\n8,0 1 5 0.5 5 D W 64 + 8\n";
        let (rows, diag) = parse(text);
        let got: Vec<_> = rows.blocks.iter().map(|b| (b.action.as_str(), b.line, b.from_sector_512)).collect();
        assert_eq!(got, [("D", 1, None), ("A", 3, Some(274_432)), ("P", 6, None)]);
        assert_eq!((diag.note_count("continuation"), diag.rejected()), (2, 2));
    }

    #[test]
    fn quotes_and_remarks_are_dropped() {
        let text = ">> 8,0 1 1 0.1 5 P N [a]\n8,0 1 1 0.1 5 C R 1 + 8 [0] <-- here\n[b] 8,0 1 1 0.1 5 Q FN [x]\t>> none\n\
            8,0 1 1 0.1 5 I WZS BEST 4 0 + 8 [a]\n8,0 1 1 0.1 5 Q ZAS N 64 + 8 [a]\n";
        let (rows, diag) = parse(text);
        assert_eq!(rows.blocks.len(), 5, "{:?}", diag.rejects());
        assert_eq!((rows.blocks[3].sector_512, rows.blocks[4].sector_512), (Some(0), Some(64)));
        assert_eq!(diag.warnings()[0].code, "annotated");
    }
}
