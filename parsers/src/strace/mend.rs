//! Calls that something was printed into: a terminal shows strace and the traced program together.
//!
//! A call without an end is held until a line ends it. What stands between is the program's output, or a message of
//! strace's own (`fsync(3strace: Process 9 attached`, then ` <unfinished ...>`).

use kreplay_traces::event::EventSink;

use super::body::{call_paren, last_end, remark};
use super::prefix::prefix;
use super::{NOT_A_CALL, Start, StraceLines, result};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::lines::Line;

/// Lines that a cut call may span: program output is mostly one.
const CUT_LINES: usize = 16;

/// A held line and what followed it.
pub(super) struct Cut {
    pub(super) text: Vec<u8>,
    pub(super) number: i64,
    pub(super) offset: i64,
    pub(super) paren: usize,
    pub(super) body: usize,
    pub(super) start: Start,
    pub(super) reason: &'static Reason,
    pub(super) at: usize,
    pub(super) more: Vec<Vec<u8>>,
}

impl StraceLines {
    /// strace's own message at the end of a cut line, `... Process N attached`: the line without it.
    pub(super) fn without_message<'b>(&mut self, body: &'b [u8]) -> &'b [u8] {
        let Some(at) = memchr::memmem::rfind(body, b"Process ") else { return body };
        let Some(tid) = body[at + 8..].strip_suffix(b" attached").and_then(crate::num::dec_i64) else { return body };
        self.tasks.seen(tid);
        let head = &body[..at];
        head.strip_suffix(b"strace: ").unwrap_or(head)
    }

    /// Try this line as the rest of a held call. A terminal shows `write(1, "done\n", 5done` and then `) = 5`.
    pub(super) fn mend(&mut self, line: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
        let cut = self.cut.as_mut()?;
        let p = prefix(line);
        let own = call_paren(&line[p.body..]).is_some() || line[p.body..].starts_with(b"<... ");
        // A line that is a call by itself is none of the program's output; neither is one with a prefix.
        if own || (p.stamp.is_some() && cut.text.first() != line.first()) || cut.more.len() == CUT_LINES {
            return None;
        }
        if line.trim_ascii() == b"<unfinished ...>" {
            let cut = self.cut.take()?;
            let (name, args) = (&cut.text[..cut.paren], &cut.text[cut.paren + 1..]);
            self.tasks.open(cut.start.tid, name, args, cut.start.time_ns, cut.number);
            self.settle_cut(&cut, Outcome::Event, out, diag);
            return Some(Outcome::Note("continuation"));
        }
        let end = last_end(line).filter(|end| result::result(&line[end + 1..]).is_ok());
        let Some(end) = end else {
            cut.more.push(line.to_vec());
            return Some(Outcome::Later);
        };
        let cut = self.cut.take()?;
        let mut joined = cut.text.clone();
        for piece in &cut.more {
            joined.push(b'\n');
            joined.extend_from_slice(piece);
        }
        joined.push(b'\n');
        joined.extend_from_slice(&line[..end]);
        joined.extend_from_slice(&line[end..]);
        let done = self.call(&joined, cut.paren, cut.start, None, out);
        let outcome = match done {
            Ok(()) => Outcome::Event,
            Err(_) => Outcome::Reject(cut.reason, Some(cut.body + cut.at)),
        };
        self.settle_cut(&cut, outcome, out, diag);
        diag.warn("program-output", Some(cut.number), || {
            "output of the traced program was printed into a call; the call was put together again".into()
        });
        Some(Outcome::Note("program-output"))
    }

    /// Decide a held call's own line; the lines after it were the program's output.
    fn settle_cut(&self, cut: &Cut, outcome: Outcome, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.settle(outcome, &Line { bytes: &cut.text, number: cut.number, offset: cut.offset }, out);
        for (i, piece) in cut.more.iter().enumerate() {
            let line = Line { bytes: piece, number: cut.number + 1 + i as i64, offset: cut.offset };
            diag.settle(Outcome::Note("program-output"), &line, out);
        }
    }

    /// A held call has no end: it is a reject, and so is what followed it.
    pub(super) fn give_up(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let Some(cut) = self.cut.take() else { return };
        let line = Line { bytes: &cut.text, number: cut.number, offset: cut.offset };
        diag.settle(Outcome::Reject(cut.reason, Some(cut.body + cut.at)), &line, out);
        let mut offset = cut.offset + cut.text.len() as i64;
        for (i, piece) in cut.more.iter().enumerate() {
            let line = Line { bytes: piece, number: cut.number + 1 + i as i64, offset };
            let outcome = match piece.trim_ascii() {
                b"" => Outcome::Note("blank"),
                text => remark(piece, text).map_or(Outcome::Reject(&NOT_A_CALL, None), Outcome::Note),
            };
            diag.settle(outcome, &line, out);
            offset += piece.len() as i64 + 1;
        }
    }
}
