//! Quoted-printable (RFC 2045, section 6.7): logs pasted into a mail that was saved as it was sent.
//!
//! Decoding a text that is not encoded would damage it (`write(1, "a=3D", 4) = 4` is a call as it stands), so it is done
//! on two grounds only: a mail header says so, or all of the text's beginning is consistent with it: lines as short as
//! mailers make them, and not one `=` that an encoder would not have written. An encoded text has no plain `=`, where a
//! strace log has one in every call.

/// How much of a text is looked at before it is decided, bytes.
pub(crate) const DETECT_BYTES: usize = 64 * 1024;
/// The longest line of an encoded text. The standard says 76; mailers that quote add their mark to it.
const MAX_LINE: usize = 80;
/// The shortest line that a mailer breaks: words that would have been too long for it are rare in logs.
const MIN_BROKEN: usize = 60;
/// The header field that tells.
const FIELD: &[u8] = b"content-transfer-encoding:";

/// Takes an encoded text line by line.
#[derive(Debug)]
pub(crate) struct Decoder {
    decoding: bool,
    /// What a header says that is not over yet.
    announced: Option<bool>,
}

impl Decoder {
    /// A decoder for a text that begins like this, or `None` where it is not encoded.
    pub(crate) fn detect(head: &[u8], complete: bool) -> Option<Self> {
        let whole = match memchr::memrchr(b'\n', head) {
            _ if complete => head,
            Some(end) => &head[..=end],
            None => return None,
        };
        if whole.split(|b| *b == b'\n').any(|line| announces(line) == Some(true)) {
            return Some(Self { decoding: false, announced: None });
        }
        is_consistent(whole).then_some(Self { decoding: true, announced: None })
    }

    /// Append a line (without its line end) decoded; true if the next line belongs to it.
    pub(crate) fn line(&mut self, line: &[u8], into: &mut Vec<u8>) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(encoded) = announces(line) {
            self.announced = Some(encoded);
        }
        // A header ends with a blank line; each part of a mail has one of its own.
        if line.is_empty()
            && let Some(encoded) = self.announced.take()
        {
            self.decoding = encoded;
        }
        if !self.decoding {
            into.extend_from_slice(line);
            return false;
        }
        // Blanks at the end of an encoded line are none of the text's: something on the way has added them.
        let line = line.trim_ascii_end();
        let (line, goes_on) = line.strip_suffix(b"=").map_or((line, false), |line| (line, true));
        let mut rest = line;
        while let Some(at) = memchr::memchr(b'=', rest) {
            into.extend_from_slice(&rest[..at]);
            match escape(&rest[at..]) {
                // A line end is never part of a line.
                Some(byte) if !matches!(byte, b'\n' | b'\r') => {
                    into.push(byte);
                    rest = &rest[at + 3..];
                }
                _ => {
                    into.push(b'=');
                    rest = &rest[at + 1..];
                }
            }
        }
        into.extend_from_slice(rest);
        goes_on
    }
}

/// What a header field says about what follows the header: encoded or not. `None` for any other line.
fn announces(line: &[u8]) -> Option<bool> {
    let (name, value) = line.split_at_checked(FIELD.len())?;
    name.eq_ignore_ascii_case(FIELD).then(|| value.trim_ascii().eq_ignore_ascii_case(b"quoted-printable"))
}

/// The byte that `=XX` at the beginning stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| (*text.get(at)? as char).to_digit(16);
    Some((digit(1)? << 4 | digit(2)?) as u8)
}

/// Every line is short, every `=` is what an encoder writes, and there is one that shows that there was need to encode.
fn is_consistent(text: &[u8]) -> bool {
    let mut needed = false;
    for line in text.split(|b| *b == b'\n') {
        if line.len() > MAX_LINE {
            return false;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        for at in memchr::memchr_iter(b'=', line) {
            let after = line.get(at + 3..).unwrap_or_default();
            match escape(&line[at..]) {
                Some(b'=') => needed = true,
                // Blanks are encoded at the end of a line, where they would be lost.
                Some(b' ' | b'\t') if matches!(after, b"" | b"=") => needed = true,
                Some(0x80..) => {}
                // A shorter line was not broken by a mailer: more of the text would have found room.
                None if at + 1 == line.len() => needed |= line.len() >= MIN_BROKEN,
                // An old custom: "From" at the beginning of a line would look like the next mail.
                Some(b'F') if at == 0 && after.starts_with(b"rom ") => {}
                _ => return false,
            }
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Option<Vec<String>> {
        let mut decoder = Decoder::detect(text.as_bytes(), true)?;
        let (mut lines, mut line) = (Vec::new(), Vec::new());
        for raw in text.trim_end_matches('\n').split('\n') {
            if !decoder.line(raw.as_bytes(), &mut line) {
                lines.push(String::from_utf8(std::mem::take(&mut line)).unwrap());
            }
        }
        Some(lines)
    }

    #[test]
    fn a_consistent_text_is_decoded() {
        let lines = decoded("brk(NULL) =3D 0\nwrite(1, \"=C3=A4\", =\n2) =3D 2 =20\n\n=46rom here=\r\n on\n").unwrap();
        assert_eq!(lines, ["brk(NULL) = 0", "write(1, \"ä\", 2) = 2  ", "", "From here on"]);
    }

    #[test]
    fn a_text_with_an_equals_sign_of_its_own_is_left_alone() {
        for text in [
            "write(1, \"a=3D\", 4) = 4\n",
            "write(1, \"a=3D\", 4) =3D 4\nbrk(NULL) = 0\n",
            "8,0 sector=20 size=8192\n",
            "block_dirty_buffer: 8,0 sector=3D0 size=4096\n",
            "no sign at all\n",
            "=C3=A4 alone shows no need\n",
            "=ZZ\n",
            "exit(0) =\n+++ exited with 0 +++\n",
        ] {
            assert_eq!(decoded(text), None, "{text}");
        }
        let long = format!("{} =3D 0\n", "x".repeat(90));
        assert_eq!(decoded(&long), None);
    }

    #[test]
    fn a_header_decides_for_the_part_below_it() {
        let text = "Subject: a=b\nContent-Transfer-Encoding: Quoted-Printable\nX: y=3D\n\na =3D 1\n--x\n\
            Content-Transfer-encoding: 7bit\n\nb =3D 2\n";
        let lines = decoded(text).unwrap();
        assert_eq!(lines[4..], ["a = 1", "--x", "Content-Transfer-encoding: 7bit", "", "b =3D 2"]);
        assert_eq!(lines[2], "X: y=3D");
    }

    #[test]
    fn what_is_no_escape_stays() {
        let text = "Content-Transfer-Encoding: quoted-printable\n\na = 1 =0A =3d =\nx\n";
        assert_eq!(decoded(text).unwrap()[2..], ["a = 1 =0A = x"]);
    }
}
