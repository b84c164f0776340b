//! Per-request output of biosnoop (bcc, libbpf-tools) and iosnoop (perf-tools).
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)
//! 0.000004    supervise      1950   xvda1   W 13092560   4096       0.74
//! COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
//! supervise    1809   W    202,1    17039968     4096       1.32
//! ```
//! The header names the columns; the process name may hold blanks, so that rows are read from both ends. biosnoop prints a
//! request when it completes: each line gives a dispatch (D) and a completion (C). bpftrace's biosnoop has no sectors and is
//! rejected line by line.

use kreplay_traces::event::{BlockRow, EventSink};

use crate::blkparse::device;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::kept::Numbers;
use crate::lines::{Line, LineParser, Lines};
use crate::num::{dec_i64, push_text, secs_ns, secs_ns_with_comma, signed};

/// The format.
pub struct Biosnoop;

impl Format for Biosnoop {
    fn id(&self) -> &'static str {
        "biosnoop"
    }

    fn about(&self) -> &'static str {
        "biosnoop (bcc, libbpf) or iosnoop (perf-tools) output"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(BiosnoopLines::default(), head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(BiosnoopLines::default()))
    }
}

static NO_HEADER: Reason = Reason {
    code: "biosnoop-no-header",
    expected: "a header line that names the columns (TIME(s) COMM PID DISK T SECTOR BYTES ...)",
    hint: "add the header line that the tool printed",
};
static NO_SECTOR: Reason = Reason {
    code: "biosnoop-no-sector",
    expected: "a SECTOR (or BLOCK) column",
    hint: "bpftrace's biosnoop prints no addresses: it cannot be replayed",
};
static BAD_ROW: Reason = Reason {
    code: "biosnoop-bad-row",
    expected: "one value for each column of the header",
    hint: "prose and tool output between the rows are skipped",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    TimeS,
    StartS,
    EndS,
    Comm,
    Pid,
    Disk,
    Type,
    Sector,
    Bytes,
    LatMs,
    Other,
}

fn column(name: &[u8]) -> Option<Column> {
    Some(match name {
        b"TIME(s)" => Column::TimeS,
        b"STARTs" => Column::StartS,
        b"ENDs" => Column::EndS,
        b"COMM" => Column::Comm,
        b"PID" => Column::Pid,
        b"DISK" | b"DEV" => Column::Disk,
        b"T" | b"TYPE" => Column::Type,
        b"SECTOR" | b"BLOCK" => Column::Sector,
        b"BYTES" => Column::Bytes,
        b"LAT(ms)" | b"LATms" => Column::LatMs,
        b"QUE(ms)" | b"PATTERN" | b"FLAGS" | b"TIME(ms)" | b"MAJOR" | b"MINOR" => Column::Other,
        _ => return None,
    })
}

/// Disks that get a number each, major 0.
const MAX_DISKS: u32 = 1 << 16;

struct BiosnoopLines {
    columns: Vec<Column>,
    disks: Numbers,
    /// Requests of disks after those.
    others: u64,
    comm: String,
    clock_ns: i64,
    decimal_comma: bool,
}

impl Default for BiosnoopLines {
    fn default() -> Self {
        let disks = Numbers::with_room(MAX_DISKS);
        Self { columns: Vec::new(), disks, others: 0, comm: String::new(), clock_ns: 0, decimal_comma: false }
    }
}

/// The values of a row.
#[derive(Default)]
struct Values<'a> {
    time_ns: Option<i64>,
    start_ns: Option<i64>,
    comm: &'a [u8],
    pid: Option<i64>,
    disk: &'a [u8],
    kind: &'a [u8],
    sector: Option<i64>,
    bytes: Option<i64>,
    latency_ns: Option<i64>,
    decimal_comma: bool,
}

impl BiosnoopLines {
    /// Take the words on both sides of the name; what is left between them is the name.
    fn values<'a>(&self, line: &'a [u8]) -> Option<Values<'a>> {
        let mut values = Values::default();
        let mut rest = line.trim_ascii();
        let comm = self.columns.iter().position(|c| *c == Column::Comm)?;
        for column in &self.columns[..comm] {
            let end = rest.iter().position(u8::is_ascii_whitespace)?;
            values.put(*column, &rest[..end])?;
            rest = rest[end..].trim_ascii_start();
        }
        for column in self.columns[comm + 1..].iter().rev() {
            let start = rest.iter().rposition(u8::is_ascii_whitespace)? + 1;
            values.put(*column, &rest[start..])?;
            rest = rest[..start].trim_ascii_end();
        }
        values.comm = rest;
        Some(values)
    }

    fn disk(&mut self, name: &[u8]) -> i64 {
        if let Some(dev) = device(name) {
            return dev;
        }
        let number = self.disks.of(name);
        self.others += u64::from(number.is_none());
        i64::from(number.unwrap_or(self.disks.room()))
    }

    fn row(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        if self.columns.is_empty() {
            return Outcome::Reject(&NO_HEADER, None);
        }
        if !self.columns.contains(&Column::Sector) {
            return Outcome::Reject(&NO_SECTOR, None);
        }
        let Some(v) = self.values(line.bytes) else { return Outcome::Reject(&BAD_ROW, None) };
        let Some(rwbs) = std::str::from_utf8(v.kind).ok().filter(|k| k.bytes().all(|b| b.is_ascii_uppercase())) else {
            return Outcome::Reject(&BAD_ROW, None);
        };
        self.decimal_comma |= v.decimal_comma;
        if let Some(latency) = v.latency_ns.filter(|l| *l < 0) {
            diag.warn("negative-latency", Some(line.number), || {
                format!(
                    "a request ends {} ns before it begins: its latency is not known, its time is that of its line",
                    latency.unsigned_abs()
                )
            });
        }
        let known = v.latency_ns.filter(|l| *l >= 0);
        let latency = known.unwrap_or(0);
        let (start, end) = match (v.start_ns, v.time_ns) {
            (Some(start), _) => (start, start.saturating_add(latency)),
            (None, Some(end)) => (end.saturating_sub(latency), end),
            // iosnoop without -ts: no clock at all.
            (None, None) => (self.clock_ns, self.clock_ns),
        };
        let dev = self.disk(v.disk);
        self.comm.clear();
        push_text(&mut self.comm, v.comm);
        let dispatch = BlockRow {
            time_ns: start,
            dev: Some(dev),
            action: "D",
            rwbs,
            sector_512: v.sector,
            len_bytes: v.bytes,
            pid: v.pid,
            comm: (v.comm != b"?").then_some(self.comm.as_str()),
            line: line.number,
            ..BlockRow::default()
        };
        out.block(&dispatch);
        if known.is_some() {
            out.block(&BlockRow { time_ns: end, action: "C", comm: None, error: Some(0), ..dispatch });
        }
        Outcome::Event
    }
}

impl<'a> Values<'a> {
    fn put(&mut self, column: Column, word: &'a [u8]) -> Option<()> {
        match column {
            Column::TimeS | Column::EndS => self.time_ns = Some(self.seconds(word)?),
            Column::StartS => self.start_ns = Some(self.seconds(word)?),
            Column::Pid => self.pid = Some(signed(word)?),
            Column::Disk => self.disk = word,
            Column::Type => self.kind = word,
            Column::Sector => self.sector = Some(dec_i64(word)?),
            Column::Bytes => self.bytes = Some(dec_i64(word)?),
            Column::LatMs => {
                // Clocks of two CPUs may differ: the tools print what comes out.
                let text = word.strip_prefix(b"-").unwrap_or(word);
                let ns = self.seconds(text)? / 1000;
                self.latency_ns = Some(if text.len() == word.len() { ns } else { -ns });
            }
            Column::Comm | Column::Other => {}
        }
        Some(())
    }

    /// A number with decimals; some locales write a comma.
    fn seconds(&mut self, word: &[u8]) -> Option<i64> {
        secs_ns(word).or_else(|| {
            let ns = secs_ns_with_comma(word)?;
            self.decimal_comma = true;
            Some(ns)
        })
    }
}

impl LineParser for BiosnoopLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let text = line.bytes.trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        let words = text.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let columns: Option<Vec<Column>> = words.map(column).collect();
        if let Some(columns) = columns.filter(|c| c.contains(&Column::Comm) && c.contains(&Column::Pid)) {
            self.columns = columns;
            return Outcome::Note("header");
        }
        // iosnoop says how it begins, and how a key ended it.
        if [&b"Tracing "[..], b"Ending tracing", b"^C"].iter().any(|said| text.starts_with(said)) {
            return Outcome::Note("tool-message");
        }
        self.row(line, out, diag)
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        let timed = self.columns.iter().any(|c| matches!(c, Column::TimeS | Column::StartS | Column::EndS));
        diag.option("clock", if timed { "trace" } else { "none" });
        if self.decimal_comma {
            diag.option("decimal-sign", "comma");
        }
        if self.others > 0 {
            let (room, others) = (self.disks.room(), self.others);
            diag.warn("biosnoop-many-disks", None, || {
                format!("more than {room} disks: {others} requests of all others stand under device 0:{room} together")
            });
        }
        if !timed && diag.events() > 0 {
            diag.warn("no-clock", None, || {
                "the rows have no time (iosnoop without -ts): only their order is known".into()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn parse(text: &str) -> (Rows, Diagnostics) {
        let parsed = crate::parse_all(&Biosnoop, &ParseOptions::default(), text.as_bytes());
        assert!(parsed.1.adds_up());
        parsed
    }

    fn got(text: &str) -> Vec<(String, i64, i64, Option<i64>, String)> {
        parse(text).0.blocks.into_iter().map(|b| (b.action, b.time_ns, b.dev.unwrap(), b.sector_512, b.rwbs)).collect()
    }

    #[test]
    fn biosnoop_prints_completions() {
        let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n\
            0.001000    a b c          1950   xvda1   W 13092560   4096       0.25\n\
            0.002000    ?              0      xvdb    R 8          512        0.50\n";
        let expected = [
            ("D".into(), 750_000, 0, Some(13_092_560), "W".into()),
            ("C".into(), 1_000_000, 0, Some(13_092_560), "W".into()),
            ("D".into(), 1_500_000, 1, Some(8), "R".into()),
            ("C".into(), 2_000_000, 1, Some(8), "R".into()),
        ];
        assert_eq!(got(text), expected);
        let (rows, _) = parse(text);
        assert_eq!((rows.blocks[0].comm.as_deref(), rows.blocks[0].pid), (Some("a b c"), Some(1950)));
        assert_eq!(rows.blocks[2].comm, None);
    }

    #[test]
    fn other_columns() {
        let text = "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.001 x 1 sda WS 8 512 0.1 0.5\n";
        assert_eq!(got(text)[0], ("D".into(), 500_000, 0, Some(8), "WS".into()));
        let text = "STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\n1.0 2.0 x y 1 W 202,1 8 512 1000.0\n";
        assert_eq!(got(text)[1], ("C".into(), 2_000_000_000, 202 << 20 | 1, Some(8), "W".into()));
        let (_, diag) =
            parse("Tracing block I/O. Ctrl-C to end.\nCOMM PID TYPE DEV BLOCK BYTES LATms\nx 1 W 202,1 8 512 1.0\n");
        assert_eq!((diag.events(), diag.warnings()[0].code), (1, "no-clock"));
    }

    #[test]
    fn disks_beyond_those_that_are_told_apart_stand_together() {
        let mut text = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n".to_owned();
        for i in (0..MAX_DISKS + 2).chain([1]) {
            text += &format!("0.001 x 1 d{i} R 8 512 0.5\n");
        }
        let (rows, diag) = parse(&text);
        let of = |i: u32| rows.blocks[2 * i as usize].dev.unwrap();
        assert_eq!([of(1), of(MAX_DISKS), of(MAX_DISKS + 1), of(MAX_DISKS + 2)], [1, 1 << 16, 1 << 16, 1]);
        assert_eq!((diag.events(), diag.warnings()[0].code), (u64::from(MAX_DISKS) + 3, "biosnoop-many-disks"));
        assert!(diag.warnings()[0].text.contains(": 2 requests"), "{}", diag.warnings()[0].text);
    }

    #[test]
    fn how_a_key_ended_iosnoop_is_a_note() {
        let (_, diag) = parse("COMM PID TYPE DEV BLOCK BYTES LATms\nx 1 W 202,1 8 512 1.0\n^C\nEnding tracing...\n");
        assert_eq!((diag.events(), diag.note_count("tool-message"), diag.rejected()), (1, 2, 0));
    }

    #[test]
    fn negative_latencies_and_decimal_commas() {
        let header = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
        let text = format!("{header}0.001 x 1 sda W 8 512 -0.5\n0,002 x 1 sda W 16 512 0,5\n1,0,0 x 1 sda W 8 512 1\n");
        let (rows, diag) = parse(&text);
        let got: Vec<_> = rows.blocks.iter().map(|b| (b.action.as_str(), b.time_ns)).collect();
        assert_eq!(got, [("D", 1_000_000), ("D", 1_500_000), ("C", 2_000_000)]);
        assert_eq!((diag.warnings()[0].code, diag.rejected()), ("negative-latency", 1));
        assert_eq!(diag.options()["decimal-sign"], "comma");
    }

    #[test]
    fn rejects() {
        let reason = |text: &str| parse(text).0.rejects.first().map(|r| r.reason.clone());
        assert_eq!(reason("0.1 x 1 sda W 8 512 0.5\n").as_deref(), Some("biosnoop-no-header"));
        assert_eq!(
            reason("TIME(ms) MAJOR MINOR COMM PID LAT(ms)\n1 8 0 x 1 2\n").as_deref(),
            Some("biosnoop-no-sector")
        );
        assert_eq!(
            reason("TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\nhello world\n").as_deref(),
            Some("biosnoop-bad-row")
        );
    }
}
