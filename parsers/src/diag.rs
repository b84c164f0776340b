//! What a parser has to say beside its events: counts, rejects, warnings, detected options.
//!
//! Every line (or binary record) of an input ends in exactly one of three ways: it became an event, it is a recognised
//! non-event (a *note*: header, comment, blank, signal, the second half of a call), or it is a reject. The counters here
//! add up to the lines by construction, because [`crate::lines::Lines`] turns each [`Outcome`] into one count.

use std::collections::BTreeMap;

use kreplay_traces::event::{EventSink, RejectRow};

use crate::lines::Line;

/// Why a line could not be understood: one static value per reason, declared by the format that uses it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// Stable kebab-case code, prefixed by the format's id (`strace-no-result`).
    pub code: &'static str,
    /// What was expected at that place, in words.
    pub expected: &'static str,
    /// What the user may do about it.
    pub hint: &'static str,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It became one event, or will (an unfinished call).
    Event,
    /// A recognised non-event, by kind.
    Note(&'static str),
    /// Not understood; the column is a 0-based byte index into the line, where known.
    Reject(&'static Reason, Option<usize>),
    /// Not decided yet: the parser keeps the line and settles it with [`Diagnostics::settle`].
    Later,
}

/// A reason with its count and first place.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectCount {
    /// The reason.
    pub reason: &'static Reason,
    /// Lines rejected for it.
    pub count: u64,
    /// First such line (1-based).
    pub first_line: i64,
    /// Byte offset of that line.
    pub first_byte: i64,
    /// 1-based column in that line, where known.
    pub first_column: Option<i64>,
}

/// Something odd that cost no event, with its count and first place.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Stable kebab-case code (`clock-step`).
    pub code: &'static str,
    /// The sentence, with the figures of the first occurrence.
    pub text: String,
    /// How often.
    pub count: u64,
    /// First line (1-based), where there is one.
    pub first_line: Option<i64>,
}

/// Counters and remarks of one input.
#[derive(Debug, Default)]
pub struct Diagnostics {
    lines: u64,
    events: u64,
    undecided: u64,
    notes: Vec<(&'static str, u64)>,
    rejects: Vec<RejectCount>,
    warnings: Vec<Warning>,
    options: BTreeMap<&'static str, String>,
    strict: bool,
    stopped: bool,
    text: String,
}

impl Diagnostics {
    /// Counters at zero; parsing goes on after rejects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`Diagnostics::new`], but parsing stops at the first reject (`--strict`).
    pub fn strict() -> Self {
        Self { strict: true, ..Self::default() }
    }

    /// Lines (or records) seen.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines that became an event.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Recognised non-events by kind, in the order of their first appearance.
    pub fn notes(&self) -> &[(&'static str, u64)] {
        &self.notes
    }

    /// Recognised non-events of one kind.
    pub fn note_count(&self, kind: &str) -> u64 {
        self.notes.iter().find(|n| n.0 == kind).map_or(0, |n| n.1)
    }

    /// All recognised non-events.
    pub fn noted(&self) -> u64 {
        self.notes.iter().map(|n| n.1).sum()
    }

    /// Rejects by reason, in the order of their first appearance.
    pub fn rejects(&self) -> &[RejectCount] {
        &self.rejects
    }

    /// All rejected lines.
    pub fn rejected(&self) -> u64 {
        self.rejects.iter().map(|r| r.count).sum()
    }

    /// Remarks that cost no event.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Options of the recording tool that the text gives away (`clock` = `epoch`, `columns` = ...).
    pub fn options(&self) -> &BTreeMap<&'static str, String> {
        &self.options
    }

    /// In strict mode: a reject was seen and parsing stopped there.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Whether events, notes and rejects add up to the lines and nothing is undecided.
    pub fn adds_up(&self) -> bool {
        self.undecided == 0 && self.events + self.noted() + self.rejected() == self.lines
    }

    /// Note an option found in the text; the first finding stays.
    pub fn option(&mut self, name: &'static str, value: impl Into<String>) {
        self.options.entry(name).or_insert_with(|| value.into());
    }

    /// Count a remark; `text` is only called for the first of its code.
    pub fn warn(&mut self, code: &'static str, line: Option<i64>, text: impl FnOnce() -> String) {
        match self.warnings.iter_mut().find(|w| w.code == code) {
            Some(w) => w.count += 1,
            None => self.warnings.push(Warning { code, text: text(), count: 1, first_line: line }),
        }
    }

    /// Count one line's outcome and pass a reject on to the sink.
    #[inline]
    pub fn record(&mut self, outcome: Outcome, line: &Line<'_>, out: &mut dyn EventSink) {
        self.lines += 1;
        match outcome {
            Outcome::Event => self.events += 1,
            Outcome::Later => self.undecided += 1,
            other => self.decide(other, line, out),
        }
    }

    /// Decide a line whose outcome was [`Outcome::Later`].
    pub fn settle(&mut self, outcome: Outcome, line: &Line<'_>, out: &mut dyn EventSink) {
        self.undecided -= 1;
        match outcome {
            Outcome::Event => self.events += 1,
            Outcome::Later => self.undecided += 1,
            other => self.decide(other, line, out),
        }
    }

    fn decide(&mut self, outcome: Outcome, line: &Line<'_>, out: &mut dyn EventSink) {
        match outcome {
            Outcome::Note(kind) => match self.notes.iter_mut().find(|n| n.0 == kind) {
                Some(n) => n.1 += 1,
                None => self.notes.push((kind, 1)),
            },
            Outcome::Reject(reason, column) => self.reject(reason, column, line, out),
            Outcome::Event | Outcome::Later => unreachable!("counted by the callers"),
        }
    }

    fn reject(&mut self, reason: &'static Reason, column: Option<usize>, line: &Line<'_>, out: &mut dyn EventSink) {
        let column = column.map(|c| c as i64 + 1);
        match self.rejects.iter_mut().find(|r| r.reason.code == reason.code) {
            Some(r) => r.count += 1,
            None => self.rejects.push(RejectCount {
                reason,
                count: 1,
                first_line: line.number,
                first_byte: line.offset,
                first_column: column,
            }),
        }
        self.stopped |= self.strict;
        escape_into(&mut self.text, line.bytes);
        out.reject(&RejectRow {
            line: line.number,
            byte_offset: line.offset,
            column,
            reason: reason.code,
            expected: reason.expected,
            text: &self.text,
        });
    }
}

/// Longest piece of a rejected line that is kept, bytes.
pub const REJECT_TEXT_BYTES: usize = 200;

/// The first [`REJECT_TEXT_BYTES`] of a line with everything but printable ASCII escaped.
fn escape_into(text: &mut String, line: &[u8]) {
    text.clear();
    for &b in &line[..line.len().min(REJECT_TEXT_BYTES)] {
        text.extend(std::ascii::escape_default(b).map(char::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    static REASON: Reason = Reason { code: "x-reason", expected: "something", hint: "do so" };

    fn line(number: i64) -> Line<'static> {
        Line { bytes: b"a\tb\xff", number, offset: 10 * number }
    }

    #[test]
    fn outcomes_add_up_and_keep_the_first_place() {
        let mut d = Diagnostics::new();
        let mut rows = Rows::default();
        d.record(Outcome::Event, &line(1), &mut rows);
        d.record(Outcome::Note("blank"), &line(2), &mut rows);
        d.record(Outcome::Later, &line(3), &mut rows);
        assert!(!d.adds_up());
        d.settle(Outcome::Reject(&REASON, Some(1)), &line(3), &mut rows);
        d.record(Outcome::Reject(&REASON, None), &line(4), &mut rows);
        assert!(d.adds_up());
        assert_eq!((d.lines(), d.events(), d.noted(), d.rejected()), (4, 1, 1, 2));
        assert_eq!((d.rejects()[0].first_line, d.rejects()[0].first_column), (3, Some(2)));
        assert_eq!(rows.rejects[0].text, "a\\tb\\xff");
        assert!(!d.stopped());
    }

    #[test]
    fn strict_stops_at_the_first_reject() {
        let mut d = Diagnostics::strict();
        d.record(Outcome::Reject(&REASON, None), &line(1), &mut Rows::default());
        assert!(d.stopped());
    }

    #[test]
    fn a_warning_is_worded_once_and_counted() {
        let mut d = Diagnostics::new();
        d.warn("w", Some(3), || "first".into());
        d.warn("w", Some(4), || panic!("not worded again"));
        assert_eq!(d.warnings(), [Warning { code: "w", text: "first".into(), count: 2, first_line: Some(3) }]);
    }
}
