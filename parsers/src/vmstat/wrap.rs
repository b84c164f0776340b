//! Rows and headers that a mailer broke over several lines.

use kreplay_traces::event::EventSink;

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::lines::Line;

/// The most lines that a row or header is broken into; the widest has 140 characters.
const MAX_PIECES: usize = 8;

/// The first lines of a row or header whose rest has not come yet. Each of them is counted when it is decided what they
/// are.
#[derive(Default)]
pub(super) struct Held {
    /// All of it so far, as one line.
    pub(super) joined: Vec<u8>,
    pub(super) is_header: bool,
    pieces: Vec<Piece>,
}

struct Piece {
    bytes: Vec<u8>,
    number: i64,
    offset: i64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of the first line.
    pub(super) fn number(&self) -> i64 {
        self.pieces.first().map_or(0, |p| p.number)
    }

    pub(super) fn has_room(&self) -> bool {
        self.pieces.len() < MAX_PIECES
    }

    /// What there is, and this line after it.
    pub(super) fn with(&self, bytes: &[u8]) -> Vec<u8> {
        let mut joined = self.joined.clone();
        if !joined.is_empty() {
            joined.push(b' ');
        }
        joined.extend_from_slice(bytes);
        joined
    }

    /// Keep this line too.
    pub(super) fn push(&mut self, bytes: &[u8], line: &Line<'_>) -> Outcome {
        self.joined = self.with(bytes);
        self.pieces.push(Piece { bytes: bytes.to_vec(), number: line.number, offset: line.offset });
        Outcome::Later
    }

    /// The lines were one thing: the first counts for it, the others are its continuation.
    pub(super) fn accept(&mut self, outcome: Outcome, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        warn(self.number(), diag);
        let mut outcome = outcome;
        for p in self.pieces.drain(..) {
            diag.settle(outcome, &Line { bytes: &p.bytes, number: p.number, offset: p.offset }, out);
            outcome = Outcome::Note("continuation");
        }
        self.joined.clear();
    }

    /// Their rest will not come.
    pub(super) fn reject(&mut self, reason: &'static Reason, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        for p in self.pieces.drain(..) {
            let line = Line { bytes: &p.bytes, number: p.number, offset: p.offset };
            diag.settle(Outcome::Reject(reason, Some(p.bytes.len())), &line, out);
        }
        self.joined.clear();
    }
}

/// Something that was wrapped, from this line on, was joined.
pub(super) fn warn(line: i64, diag: &mut Diagnostics) {
    diag.warn("wrapped-rows", Some(line), || "rows or headers that were wrapped over several lines were joined".into());
}
