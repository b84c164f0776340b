//! The line pump that all text formats share.
//!
//! It cuts chunks of bytes at `\n`, wherever the chunks begin and end; a line that lies whole in a chunk is borrowed
//! from it. Carriage returns before the newline, a missing last newline and a UTF-8 byte order mark are no concern of the
//! formats. Lines over [`MAX_LINE_BYTES`] and lines with NUL bytes are rejected here. UTF-16 (a log saved by a Windows
//! editor) is recognised by its byte order mark and decoded; so is quoted-printable (a log in a saved mail), see
//! `quoted_printable.rs`: there the lines that a mailer broke are one line again, and its pieces but the first are
//! notes of their own.

use kreplay_traces::event::EventSink;

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::Parser;
use crate::quoted_printable::{DETECT_BYTES, Decoder};
use crate::utf16::Utf16;

/// Longest line that is parsed, bytes. strace strings are the longest that occur; 1 MiB is 16 times its usual `-s 65536`.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Reject reason of over-long lines.
pub static LINE_TOO_LONG: Reason = Reason {
    code: "line-too-long",
    expected: "a line of at most 1 MiB",
    hint: "the input may be binary, or a log without newlines",
};
/// Reject reason of lines with NUL bytes.
pub static LINE_HAS_NUL: Reason = Reason {
    code: "line-has-nul",
    expected: "text without NUL bytes",
    hint: "a log that was truncated while being written, or a binary file; the other lines are kept",
};

/// One line of the input, without its line end.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// 1-based number.
    pub number: i64,
    /// Byte offset of its first byte in the (decompressed) input.
    pub offset: i64,
}

/// What a text format implements: one line in, one outcome out.
pub trait LineParser: Send {
    /// Take a line that is neither over-long nor has NUL bytes; blank lines come too.
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome;
    /// The same, with the line as text: long pieces of an input are checked for UTF-8 at once, which is faster than line
    /// by line. Must come to the same as [`LineParser::line`].
    #[inline]
    fn text_line(&mut self, line: &Line<'_>, _: &str, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        self.line(line, out, diag)
    }
    /// The input is over: emit what is still open.
    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics);
}

/// A [`LineParser`] behind the pump: the [`Parser`] of a text format.
pub struct Lines<P> {
    parser: P,
    pump: Pump,
    utf16: Option<Utf16>,
    head: Vec<u8>,
    started: bool,
}

impl<P: LineParser> Lines<P> {
    /// Put `parser` behind a fresh pump.
    pub fn new(parser: P) -> Self {
        Self { parser, pump: Pump::default(), utf16: None, head: Vec::new(), started: false }
    }

    /// Look at the beginning for a byte order mark and for a mail's encoding; gives the bytes to go on with.
    fn start(&mut self, chunk: &[u8], last: bool, diag: &mut Diagnostics) -> Option<Vec<u8>> {
        self.head.extend_from_slice(chunk);
        if self.head.len() < DETECT_BYTES && !last {
            return None;
        }
        self.started = true;
        let mut head = std::mem::take(&mut self.head);
        // The beginning ends at the same byte however it came.
        let mut beginning = head.len().min(DETECT_BYTES);
        if let Some(utf16) = Utf16::from_mark(&head) {
            diag.option("encoding", utf16.name());
            diag.warn("utf-16", None, || format!("the text is {}; byte offsets count its UTF-8 form", utf16.name()));
            self.utf16 = Some(utf16);
            head.drain(..2);
        } else if head.starts_with(b"\xef\xbb\xbf") {
            diag.option("encoding", "utf-8 with byte order mark");
            self.pump.offset = 3;
            head.drain(..3);
            beginning -= 3;
        }
        if self.utf16.is_none()
            && let Some(decoder) = Decoder::detect(&head[..beginning], last)
        {
            diag.option("transfer-encoding", "quoted-printable");
            diag.warn("quoted-printable", None, || {
                "the text is quoted-printable, as mails are; its soft line breaks and =XX are decoded".into()
            });
            self.pump.mail = Some(Mail { decoder, text: Vec::new(), pieces: Vec::new() });
        }
        Some(head)
    }

    fn pump(&mut self, chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let parser = &mut self.parser;
        match &mut self.utf16 {
            Some(utf16) => {
                let text = utf16.decode(chunk);
                self.pump.feed(&text, parser, out, diag);
            }
            None => self.pump.feed(chunk, parser, out, diag),
        }
    }
}

impl<P: LineParser> Parser for Lines<P> {
    fn feed(&mut self, chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if self.started {
            self.pump(chunk, out, diag);
        } else if let Some(head) = self.start(chunk, false, diag) {
            self.pump(&head, out, diag);
        }
    }

    fn finish(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if !self.started
            && let Some(head) = self.start(&[], true, diag)
        {
            self.pump(&head, out, diag);
        }
        self.pump.finish(&mut self.parser, out, diag);
        self.parser.end(out, diag);
    }
}

#[derive(Default)]
struct Pump {
    /// Beginning of a line whose end has not come yet; at most `MAX_LINE_BYTES + 1` of it.
    carry: Vec<u8>,
    /// Real length of that beginning.
    carried: usize,
    number: i64,
    /// Offset of the first byte of the next line.
    offset: i64,
    mail: Option<Mail>,
}

/// A quoted-printable text on its way through the pump.
struct Mail {
    decoder: Decoder,
    /// The decoded line so far; at most `MAX_LINE_BYTES` and one piece.
    text: Vec<u8>,
    /// Number and offset of each line that it was broken into.
    pieces: Vec<(i64, i64)>,
}

impl Pump {
    fn feed<P: LineParser>(&mut self, mut chunk: &[u8], p: &mut P, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if self.carried > 0 && !diag.stopped() {
            let Some(end) = memchr::memchr(b'\n', chunk) else { return self.keep(chunk) };
            self.keep(&chunk[..end]);
            chunk = &chunk[end + 1..];
            self.flush(1, p, out, diag);
        }
        let has_nul = memchr::memchr(0, chunk).is_some();
        let whole = memchr::memrchr(b'\n', chunk).map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&chunk[..whole]).ok();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            if diag.stopped() {
                return;
            }
            let bytes = &chunk[start..end];
            let text = text.and_then(|text| text.get(start..end));
            start = end + 1;
            self.deliver(bytes, text, bytes.len(), 1, has_nul, p, out, diag);
        }
        self.keep(&chunk[start..]);
    }

    fn finish<P: LineParser>(&mut self, p: &mut P, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        if self.carried > 0 && !diag.stopped() {
            diag.option("last-newline", "missing");
            self.flush(0, p, out, diag);
        }
        // The text ended with a soft break.
        if let Some(mail) = self.mail.as_mut().filter(|_| !diag.stopped()) {
            mail.deliver(p, out, diag);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.carry.len());
        self.carry.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.carried += bytes.len();
    }

    fn flush<P: LineParser>(&mut self, newline: usize, p: &mut P, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let carry = std::mem::take(&mut self.carry);
        self.deliver(&carry, None, self.carried, newline, true, p, out, diag);
        self.carry = carry;
        self.carry.clear();
        self.carried = 0;
    }

    #[allow(clippy::too_many_arguments, reason = "one private call, kept flat for speed")]
    #[inline]
    fn deliver<P: LineParser>(
        &mut self,
        bytes: &[u8],
        text: Option<&str>,
        length: usize,
        newline: usize,
        may_have_nul: bool,
        p: &mut P,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) {
        self.number += 1;
        let offset = self.offset;
        self.offset += (length + newline) as i64;
        if self.mail.is_some() {
            return self.mail(bytes, offset, p, out, diag);
        }
        let line = Line { bytes: bytes.strip_suffix(b"\r").unwrap_or(bytes), number: self.number, offset };
        let outcome = if length > MAX_LINE_BYTES {
            Outcome::Reject(&LINE_TOO_LONG, Some(MAX_LINE_BYTES))
        } else if may_have_nul && let Some(at) = memchr::memchr(0, line.bytes) {
            Outcome::Reject(&LINE_HAS_NUL, Some(at))
        } else if let Some(text) = text {
            p.text_line(&line, text.strip_suffix('\r').unwrap_or(text), out, diag)
        } else {
            p.line(&line, out, diag)
        };
        diag.record(outcome, &line, out);
    }

    /// Take a line of a quoted-printable text.
    #[cold]
    fn mail<P: LineParser>(&mut self, raw: &[u8], at: i64, p: &mut P, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let Some(mail) = &mut self.mail else { return };
        mail.pieces.push((self.number, at));
        let goes_on = mail.decoder.line(raw, &mut mail.text);
        if !goes_on || mail.text.len() > MAX_LINE_BYTES {
            mail.deliver(p, out, diag);
        }
    }
}

impl Mail {
    /// The line is whole.
    fn deliver<P: LineParser>(&mut self, p: &mut P, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let text = std::mem::take(&mut self.text);
        let mut pieces = self.pieces.drain(..).map(|(number, offset)| Line { bytes: &text, number, offset });
        if let Some(line) = pieces.next() {
            let outcome = match memchr::memchr(0, line.bytes) {
                _ if text.len() > MAX_LINE_BYTES => Outcome::Reject(&LINE_TOO_LONG, None),
                Some(_) => Outcome::Reject(&LINE_HAS_NUL, None),
                None => p.line(&line, out, diag),
            };
            diag.record(outcome, &line, out);
        }
        for line in pieces {
            diag.record(Outcome::Note("continuation"), &line, out);
        }
        self.text = text;
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    #[derive(Default)]
    struct Collect(Vec<(i64, i64, String)>);

    impl LineParser for Collect {
        fn line(&mut self, line: &Line<'_>, _: &mut dyn EventSink, _: &mut Diagnostics) -> Outcome {
            self.0.push((line.number, line.offset, String::from_utf8_lossy(line.bytes).into_owned()));
            Outcome::Event
        }
        fn end(&mut self, _: &mut dyn EventSink, _: &mut Diagnostics) {}
    }

    fn pump(chunks: &[&[u8]]) -> (Vec<(i64, i64, String)>, Rows, Diagnostics) {
        let mut lines = Lines::new(Collect::default());
        let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
        for c in chunks {
            lines.feed(c, &mut rows, &mut diag);
        }
        lines.finish(&mut rows, &mut diag);
        assert!(diag.adds_up());
        (lines.parser.0, rows, diag)
    }

    fn texts(chunks: &[&[u8]]) -> Vec<String> {
        pump(chunks).0.into_iter().map(|l| l.2).collect()
    }

    #[test]
    fn lines_do_not_depend_on_chunks() {
        let whole = pump(&[b"one\r\ntwo\n\nfour"]).0;
        assert_eq!(whole[3], (4, 10, "four".into()));
        assert_eq!(pump(&[b"o", b"ne\r", b"\ntwo", b"\n", b"\nfo", b"ur"]).0, whole);
    }

    #[test]
    fn the_last_newline_may_be_missing_and_is_noted() {
        assert_eq!(pump(&[b"a\n"]).2.options().get("last-newline"), None);
        assert_eq!(pump(&[b"a\nb"]).2.options()["last-newline"], "missing");
        assert_eq!(texts(&[b""]), Vec::<String>::new());
        assert_eq!(texts(&[b"\n"]), [""]);
    }

    #[test]
    fn nul_bytes_and_endless_lines_are_rejects() {
        let (lines, rows, diag) = pump(&[b"good\nb\0d\ngood\n"]);
        assert_eq!(lines.len(), 2);
        assert_eq!((rows.rejects[0].line, rows.rejects[0].column), (2, Some(2)));
        assert_eq!(diag.rejects()[0].reason.code, "line-has-nul");

        let long = vec![b'x'; MAX_LINE_BYTES + 5];
        for chunks in [vec![&long[..], b"\nok\n"], vec![&long[..9], &long[9..], b"\nok\n"]] {
            let (lines, rows, _) = pump(&chunks);
            assert_eq!(lines, [(2, long.len() as i64 + 1, "ok".to_owned())]);
            assert_eq!((rows.rejects[0].line, rows.rejects[0].reason.as_str()), (1, "line-too-long"));
        }
    }

    #[test]
    fn byte_order_marks_are_understood() {
        assert_eq!(texts(&[b"\xef\xbb", b"\xbfa\n"]), ["a"]);
        let utf16: Vec<u8> = "\u{feff}ab\nä\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (a, b) = utf16.split_at(5);
        assert_eq!(texts(&[a, b]), ["ab", "ä"]);
    }

    #[test]
    fn a_mail_s_lines_are_whole_again_and_counted_one_by_one() {
        let text = b"a =3D 1\nb =3D =\n=\n2\n\nc=\n";
        let (lines, _, diag) = pump(&[text]);
        let expected = [(1, 0, "a = 1"), (2, 8, "b = 2"), (5, 20, ""), (6, 21, "c")];
        assert_eq!(lines, expected.map(|(n, o, t)| (n, o, t.to_owned())));
        assert_eq!((diag.lines(), diag.events(), diag.note_count("continuation")), (6, 4, 2));
        assert_eq!(diag.warnings()[0].code, "quoted-printable");
        let bytewise: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(pump(&bytewise).0, lines);
    }

    #[test]
    fn strict_stops_where_the_reject_is() {
        let mut lines = Lines::new(Collect::default());
        let (mut rows, mut diag) = (Rows::default(), Diagnostics::strict());
        lines.feed(b"a\n\0\nb\nc\n", &mut rows, &mut diag);
        lines.finish(&mut rows, &mut diag);
        assert_eq!((diag.lines(), diag.events(), diag.rejected()), (2, 1, 1));
    }
}
