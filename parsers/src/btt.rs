//! Averages of btt, for comparison with what is computed from a trace: the table under `All Devices`.
//!
//! ```text
//! ==================== All Devices ====================
//!             ALL           MIN           AVG           MAX           N
//! --------------- ------------- ------------- ------------- -----------
//! Q2Q               0.000000072   0.001203441   1.220033412        1204
//! ```
//! Seconds. Each row becomes counters of that name: `min_ns`, `mean_ns`, `max_ns`, `count`. The other sections of the
//! file (per device, seeks, plugs) are derived from the same trace and are notes.

use kreplay_traces::event::{CounterRow, EventSink};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, push_text, secs_ns};

/// The format.
pub struct Btt;

const MARK: &[u8] = b"==================== All Devices";

impl Format for Btt {
    fn id(&self) -> &'static str {
        "btt"
    }

    fn about(&self) -> &'static str {
        "averages of btt (Q2Q, Q2C, D2C, ... over all devices)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        if memchr::memmem::find(head.bytes, MARK).is_some() { 100 } else { 0 }
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(BttLines::default()))
    }
}

static BAD: Reason = Reason {
    code: "btt-bad-row",
    expected: "`NAME minimum average maximum count` with times in seconds",
    hint: "the line was cut",
};

#[derive(Default)]
struct BttLines {
    averages: bool,
    name: String,
}

impl LineParser for BttLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, _: &mut Diagnostics) -> Outcome {
        let text = line.bytes.trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        if text.starts_with(b"====") {
            self.averages = text.starts_with(MARK);
            return Outcome::Note("section");
        }
        if text.starts_with(b"---") || text.starts_with(b"# ") || text.starts_with(b"ALL ") {
            return Outcome::Note("header");
        }
        if !self.averages {
            return Outcome::Note("other-section");
        }
        let mut f = Fields::new(text);
        let name = f.next().unwrap_or_default();
        let times = [f.next().and_then(secs_ns), f.next().and_then(secs_ns), f.next().and_then(secs_ns)];
        let count = f.next().and_then(dec_i64);
        let ([Some(min), Some(mean), Some(max)], Some(count), None) = (times, count, f.next()) else {
            return Outcome::Reject(&BAD, Some(line.bytes.len() - line.bytes.trim_ascii_start().len()));
        };
        self.name.clear();
        push_text(&mut self.name, name);
        for (name, value) in [("min_ns", min), ("mean_ns", mean), ("max_ns", max), ("count", count)] {
            out.counter(&CounterRow { time_ns: None, subject: &self.name, name, value, line: line.number });
        }
        Outcome::Event
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", "none");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_become_counters() {
        let text = b"==================== All Devices ====================\n\n\
            ALL           MIN           AVG           MAX           N\n--------------- ----- ----- ----- ---\n\n\
            Q2Q               0.000000072   0.001203441   1.220033412        1204\nD2C  0.1 x 1 2\n\n\
            ==================== Device Overhead ====================\n       DEV |       Q2G\n ( 8, 0) | 1.5%\n";
        let (rows, diag) = crate::parse_all(&Btt, &ParseOptions::default(), text);
        assert!(diag.adds_up());
        let got: Vec<_> = rows.counters.iter().map(|c| (c.1.as_str(), c.2.as_str(), c.3)).collect();
        let expected = [
            ("Q2Q", "min_ns", 72),
            ("Q2Q", "mean_ns", 1_203_441),
            ("Q2Q", "max_ns", 1_220_033_412),
            ("Q2Q", "count", 1204),
        ];
        assert_eq!(got, expected);
        assert_eq!((diag.events(), diag.rejected(), diag.note_count("other-section")), (1, 1, 2));
    }
}
