//! Tables of `strace -c` (and `-C` without the calls): one row a system call.
//!
//! ```text
//! % time     seconds  usecs/call     calls    errors syscall
//! ------ ----------- ----------- --------- --------- ----------------
//!  54.71    0.003106           2      1247           read
//! ```
//! Columns are known by the names in the header (`-U` chooses them); an empty error column is told by the number of
//! fields. Each row becomes counters of the subject `call NAME`: `calls`, `errors`, `time_ns`, and `shortest_ns`,
//! `longest_ns` where asked for. Shares and averages follow from these and are left out; the total is a note.

use kreplay_traces::event::{CounterRow, EventSink};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, push_text, secs_ns, unquote};

/// The format.
pub struct StraceSummary;

impl Format for StraceSummary {
    fn id(&self) -> &'static str {
        "strace-summary"
    }

    fn about(&self) -> &'static str {
        "strace -c tables: calls, errors and time of each system call"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        // Calls with a table after them (`-C`) are a log of calls, however few: there the table is a note.
        if crate::strace::Strace.sniff(head) >= crate::registry::LEAST_SCORE {
            return 0;
        }
        score_lines(SummaryLines::default(), head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(SummaryLines::default()))
    }
}

static NOT_A_ROW: Reason = Reason {
    code: "strace-summary-not-a-row",
    expected: "a row under a header line with `usecs/call`, `calls` and `syscall`",
    hint: "text between the tables is skipped",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Seconds,
    Shortest,
    Longest,
    Calls,
    Errors,
    Name,
    /// Shares, averages: they follow from the others.
    Derived,
}

fn column(name: &[u8]) -> Option<Column> {
    Some(match name {
        b"seconds" | b"total-time" | b"time-total" => Column::Seconds,
        b"shortest" | b"min" => Column::Shortest,
        b"longest" | b"max" => Column::Longest,
        b"calls" | b"count" => Column::Calls,
        b"errors" | b"error" => Column::Errors,
        b"syscall" | b"name" | b"syscall-name" => Column::Name,
        b"time" | b"usecs/call" | b"avg-time" | b"time-percent" => Column::Derived,
        _ => return None,
    })
}

#[derive(Default)]
struct SummaryLines {
    columns: Vec<Column>,
    subject: String,
    tables: u32,
}

impl SummaryLines {
    fn header(&mut self, text: &[u8]) -> bool {
        // `% time` is one column.
        let names = Fields::new(text).filter(|w| *w != b"%");
        let Some(columns) = names.map(column).collect::<Option<Vec<_>>>() else { return false };
        let is_header = columns.contains(&Column::Calls) && columns.contains(&Column::Name) && columns.len() > 2;
        if is_header {
            self.columns = columns;
            self.tables += 1;
        }
        is_header
    }

    fn row(&mut self, text: &[u8], line: i64, out: &mut dyn EventSink) -> Option<Outcome> {
        let words: Vec<&[u8]> = Fields::new(text).collect();
        let without_errors = words.len() + 1 == self.columns.len() && self.columns.contains(&Column::Errors);
        let columns = self.columns.iter().filter(|c| !(without_errors && **c == Column::Errors));
        if words.last() == Some(&&b"total"[..]) {
            return words[..words.len() - 1].iter().all(|w| w[0].is_ascii_digit()).then_some(Outcome::Note("total"));
        }
        if !without_errors && words.len() != self.columns.len() {
            return None;
        }
        let mut values = Vec::with_capacity(words.len());
        for (column, word) in columns.zip(&words) {
            let (name, value) = match column {
                Column::Seconds => ("time_ns", secs_ns(word)?),
                Column::Shortest => ("shortest_ns", secs_ns(word)?),
                Column::Longest => ("longest_ns", secs_ns(word)?),
                Column::Calls => ("calls", dec_i64(word)?),
                Column::Errors => ("errors", dec_i64(word)?),
                Column::Derived => {
                    secs_ns(word)?;
                    continue;
                }
                Column::Name => {
                    word.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'?' | b'@')).then_some(())?;
                    self.subject.clear();
                    self.subject.push_str("call ");
                    push_text(&mut self.subject, word);
                    continue;
                }
            };
            values.push((name, value));
        }
        for (name, value) in values {
            out.counter(&CounterRow { time_ns: None, subject: &self.subject, name, value, line });
        }
        Some(Outcome::Event)
    }
}

impl LineParser for SummaryLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, _: &mut Diagnostics) -> Outcome {
        let text = unquote(line.bytes).trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        if self.header(text) {
            return Outcome::Note("header");
        }
        if text.starts_with(b"strace: ") {
            return Outcome::Note("strace-message");
        }
        if self.columns.is_empty() {
            return Outcome::Reject(&NOT_A_ROW, None);
        }
        if text.starts_with(b"---") && text.iter().all(|b| matches!(b, b'-' | b' ')) {
            return Outcome::Note("rule");
        }
        let outcome = self.row(text, line.number, out);
        if outcome == Some(Outcome::Note("total")) {
            // Another table may follow; its rows need its header.
            self.columns.clear();
        }
        outcome.unwrap_or(Outcome::Reject(&NOT_A_ROW, None))
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", "none");
        diag.option("tables", self.tables.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(text: &str) -> (Vec<(String, String, i64)>, Diagnostics) {
        let (rows, diag) = crate::parse_all(&StraceSummary, &ParseOptions::default(), text.as_bytes());
        assert!(diag.adds_up());
        (rows.counters.into_iter().map(|c| (c.1, c.2, c.3)).collect(), diag)
    }

    fn row(call: &str, name: &str, value: i64) -> (String, String, i64) {
        (format!("call {call}"), name.to_owned(), value)
    }

    #[test]
    fn rows_with_and_without_errors() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
            54.71    0.003106           2      1247           read\n  1.00    0.000100         100         1         1 access\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.003206                  1248         1 total\nhello\n";
        let (rows, diag) = got(text);
        let expected = [
            row("read", "time_ns", 3_106_000),
            row("read", "calls", 1247),
            row("access", "time_ns", 100_000),
            row("access", "calls", 1),
            row("access", "errors", 1),
        ];
        assert_eq!(rows, expected);
        assert_eq!((diag.events(), diag.note_count("total"), diag.rejected()), (2, 1, 1));
    }

    #[test]
    fn a_header_whose_beginning_was_cut_and_chosen_columns() {
        let (rows, _) = got("time     seconds  usecs/call     calls    errors syscall\n 1.0 0.5 2 3 read\n");
        assert_eq!(rows, [row("read", "time_ns", 500_000_000), row("read", "calls", 3)]);
        let (rows, _) = got("calls shortest longest syscall\n3 0.000001 0.000002 read\n");
        let expected = [row("read", "calls", 3), row("read", "shortest_ns", 1000), row("read", "longest_ns", 2000)];
        assert_eq!(rows, expected);
    }
}
