//! Events that a mailer wrapped over several lines.

use kreplay_traces::event::EventSink;

use super::FtraceLines;
use super::front::begins;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::lines::Line;
use crate::num::unquote;

/// A line that may go on in the next one, and why it is no event alone.
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    pub(super) number: i64,
    pub(super) offset: i64,
    pub(super) pieces: usize,
    pub(super) why: (&'static Reason, Option<usize>),
}

/// Lines that one event can have been wrapped over.
const MAX_PIECES: usize = 4;

impl FtraceLines {
    /// Try this line as the rest of the held one. An event's own beginning is never the rest of another.
    pub(super) fn join(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
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
    pub(super) fn release(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if let Some(held) = self.held.take() {
            let line = Line { bytes: &held.bytes, number: held.number, offset: held.offset };
            diag.settle(Outcome::Reject(held.why.0, held.why.1), &line, out);
        }
    }
}
