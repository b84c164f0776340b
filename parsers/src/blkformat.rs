//! blkparse text written with a format string of the user's (`blkparse -f`).
//!
//! The same string that blkparse was given (`%T.%t;%M;%m;%c;%a;%d;%S;%n;%p;%C\n`) tells how to read each line. Specifiers
//! after blktrace's `blkparse.1`; those that carry nothing for a replay are skipped over. What is between two specifiers
//! separates them; blanks match any number of blanks.

use kreplay_traces::event::{BlockRow, EventSink};
use nom::branch::alt;
use nom::bytes::complete::{tag, take, take_while};
use nom::combinator::{opt, value};
use nom::sequence::preceded;
use nom::{IResult, Parser as _};

use crate::blkparse::{action, device};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::lines::{Line, LineParser};
use crate::num::{dec_i64, fraction_ns, push_text, signed};

static NO_MATCH: Reason = Reason {
    code: "blkparse-format-mismatch",
    expected: "a line as the given format string prints it",
    hint: "check the format string; lines of actions with a format of their own (-F) need a separate run",
};

/// A piece of the format string.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Text between specifiers.
    Text(Vec<u8>),
    /// Any number of blanks.
    Blanks,
    /// A specifier's letter.
    Field(u8),
}

/// Why a format string cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFormat {
    /// No such specifier.
    #[error("%{0} is no specifier of blkparse")]
    Unknown(char),
    /// Two specifiers touch, so that nobody can tell where one ends.
    #[error("nothing stands between %{0} and %{1}")]
    Touching(char, char),
    /// Without action or time a line is no event.
    #[error("the format has no {0}")]
    Missing(&'static str),
}

/// Parser of lines in a format of the user's.
pub struct FormatLines {
    pieces: Vec<Piece>,
    comm: String,
    text: String,
}

/// A letter that a format string must have, and what it is called.
const NEEDED: [(u8, &str); 2] = [(b'T', "seconds (%T)"), (b'a', "action (%a)")];

impl FormatLines {
    /// Read a format string.
    ///
    /// # Errors
    /// [`BadFormat`] says what is wrong with it.
    pub fn new(format: &str) -> Result<Self, BadFormat> {
        let pieces = pieces(format.as_bytes())?;
        for (letter, name) in NEEDED {
            if !pieces.contains(&Piece::Field(letter)) {
                return Err(BadFormat::Missing(name));
            }
        }
        Ok(Self { pieces, comm: String::new(), text: String::new() })
    }

    fn event<'s>(&'s mut self, line: &Line<'_>, rwbs: &'s mut String) -> Result<BlockRow<'s>, usize> {
        let bytes = line.bytes;
        let mut at = 0;
        let mut f = Found::default();
        for (i, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Blanks => at += blanks(&bytes[at..]),
                Piece::Text(text) => {
                    bytes[at..].starts_with(text).then_some(()).ok_or(at)?;
                    at += text.len();
                }
                Piece::Field(letter) => {
                    at += blanks(&bytes[at..]);
                    let end = match self.pieces.get(i + 1) {
                        None => bytes.len(),
                        Some(Piece::Text(stop)) => {
                            at + memchr::memmem::find(&bytes[at..], stop).unwrap_or(bytes.len() - at)
                        }
                        Some(_) => {
                            at + bytes[at..].iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(bytes.len() - at)
                        }
                    };
                    f.put(*letter, bytes[at..end].trim_ascii()).ok_or(at)?;
                    at = end;
                }
            }
        }
        rwbs.clear();
        push_text(rwbs, f.rwbs);
        self.comm.clear();
        push_text(&mut self.comm, f.comm);
        let dev = f.dev.or_else(|| Some(f.major? << 20 | f.minor?));
        let has_error = matches!(f.action, "C" | "R");
        Ok(BlockRow {
            time_ns: f.secs.checked_mul(1_000_000_000).and_then(|s| s.checked_add(f.ns)).ok_or(0usize)?,
            dev: dev.unwrap_or(0),
            cpu: f.cpu,
            seq: f.seq,
            action: f.action,
            rwbs,
            sector_512: f.sector,
            len_bytes: f.bytes.or_else(|| f.sectors.and_then(|n| n.checked_mul(512))),
            pid: f.pid,
            comm: (!f.comm.is_empty() && !has_error && self.comm != "(null)").then_some(self.comm.as_str()),
            error: f.error.filter(|_| has_error),
            unplugged: f.unplugged.filter(|_| f.action.starts_with('U')),
            line: line.number,
            ..BlockRow::default()
        })
    }
}

#[derive(Default)]
struct Found<'a> {
    secs: i64,
    ns: i64,
    dev: Option<i64>,
    major: Option<i64>,
    minor: Option<i64>,
    cpu: Option<i64>,
    seq: Option<i64>,
    pid: Option<i64>,
    sector: Option<i64>,
    sectors: Option<i64>,
    bytes: Option<i64>,
    error: Option<i64>,
    unplugged: Option<i64>,
    action: &'static str,
    rwbs: &'a [u8],
    comm: &'a [u8],
}

impl<'a> Found<'a> {
    fn put(&mut self, letter: u8, word: &'a [u8]) -> Option<()> {
        let number = || dec_i64(word);
        match letter {
            b'T' => self.secs = number()?,
            b't' => self.ns = fraction_ns(word)?,
            b'D' => self.dev = Some(device(word)?),
            b'M' => self.major = Some(number()?),
            b'm' => self.minor = Some(number()?),
            b'c' => self.cpu = Some(number()?),
            b's' => self.seq = Some(number()?),
            b'p' => self.pid = Some(number()?),
            b'S' => self.sector = Some(number()?),
            b'n' => self.sectors = Some(number()?),
            b'N' => self.bytes = Some(number()?),
            b'e' => self.error = Some(signed(word)?),
            b'U' => self.unplugged = Some(number()?),
            b'a' => self.action = action(word)?,
            b'd' => self.rwbs = word,
            b'C' => self.comm = word,
            // Process group, payload, elapsed time, wall clock: not needed.
            _ => {}
        }
        Some(())
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// What a format string is made of, as `blkparse.1` gives its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// `%`, a width and a letter; `%` again where the string ends.
    Field(u8),
    /// A byte that is printed.
    Byte(u8),
    /// What prints nothing within a line: its end, a return or backspace.
    Nothing,
}

fn token(input: &[u8]) -> IResult<&[u8], Token> {
    let byte = |b: &[u8]| b.first().copied();
    let width = take_while(|b: u8| b.is_ascii_digit() || b == b'-');
    let field = preceded((tag("%"), width), opt(take(1_usize)))
        .map(|letter: Option<&[u8]>| Token::Field(letter.and_then(byte).unwrap_or(b'%')));
    let escape = preceded(tag("\\"), opt(take(1_usize))).map(|after: Option<&[u8]>| match after.and_then(byte) {
        Some(b't') => Token::Byte(b'\t'),
        Some(b'n' | b'r' | b'b') | None => Token::Nothing,
        Some(other) => Token::Byte(other),
    });
    let end = value(Token::Nothing, tag("\n"));
    let plain = take(1_usize).map(|b: &[u8]| byte(b).map_or(Token::Nothing, Token::Byte));
    alt((field, escape, end, plain)).parse(input)
}

/// Cut a format string into its pieces.
fn pieces(format: &[u8]) -> Result<Vec<Piece>, BadFormat> {
    const LETTERS: &[u8] = b"acCdDeghMmnNpPsStTuUz";
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = format;
    while let Ok((after, token)) = token(rest) {
        rest = after;
        match (token, out.last_mut()) {
            (Token::Nothing, _) | (Token::Byte(b' ' | b'\t'), Some(Piece::Blanks)) => {}
            (Token::Byte(b' ' | b'\t'), _) => out.push(Piece::Blanks),
            (Token::Byte(b), Some(Piece::Text(text))) => text.push(b),
            (Token::Byte(b), _) => out.push(Piece::Text(vec![b])),
            (Token::Field(letter), _) if !LETTERS.contains(&letter) => {
                return Err(BadFormat::Unknown(char::from(letter)));
            }
            (Token::Field(letter), Some(Piece::Field(before))) => {
                return Err(BadFormat::Touching(char::from(*before), char::from(letter)));
            }
            (Token::Field(letter), _) => out.push(Piece::Field(letter)),
        }
    }
    Ok(out)
}

impl LineParser for FormatLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, _: &mut Diagnostics) -> Outcome {
        if line.bytes.trim_ascii().is_empty() {
            return Outcome::Note("blank");
        }
        let mut rwbs = std::mem::take(&mut self.text);
        let outcome = match self.event(line, &mut rwbs) {
            Ok(row) => {
                out.block(&row);
                Outcome::Event
            }
            Err(at) => Outcome::Reject(&NO_MATCH, Some(at)),
        };
        self.text = rwbs;
        outcome
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", "trace");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Format, ParseOptions};
    use crate::rows::Block;

    fn parse(format: &str, text: &str) -> (crate::rows::Rows, Diagnostics) {
        let options = ParseOptions { blkparse_format: Some(format.into()), ..ParseOptions::default() };
        assert_eq!(crate::blkparse::Blkparse.check(&options), Ok(()));
        crate::parse_all(&crate::blkparse::Blkparse, &options, text.as_bytes())
    }

    #[test]
    fn lines_of_other_formats() {
        let expected = Block {
            time_ns: 1_000_000_002,
            dev: 8 << 20 | 52,
            cpu: Some(3),
            action: "D".into(),
            rwbs: "DS".into(),
            sector_512: Some(64),
            len_bytes: Some(4096),
            pid: Some(276),
            comm: Some("kworker/0:1H".into()),
            line: 1,
            ..Block::default()
        };
        let cases = [
            ("%T.%t;%M;%m;%c;%a;%d;%S;%n;%p;%C\\n", "1.000000002;8;52;3;D;DS;64;8;276;kworker/0:1H"),
            (
                "%D %2c %5T.%9t %5p %2a %3d %S + %n [%C]\\n",
                "  8,52   3     1.000000002   276  D  DS 64 + 8 [kworker/0:1H]",
            ),
            ("%a|%d|%T.%t|%D|%c|%S|%N|%p|%C", "D|DS|1.000000002|8,52|3|64|4096|276|kworker/0:1H"),
        ];
        for (format, text) in cases {
            let (rows, diag) = parse(format, text);
            assert_eq!(rows.blocks, std::slice::from_ref(&expected), "{format}: {:?}", diag.rejects());
        }
        let (rows, _) = parse("%T.%t %a %e", "1.5 C 0\n1.5 Q 0\nhello\n\n");
        assert_eq!((rows.blocks[0].error, rows.blocks[1].error, rows.rejects.len()), (Some(0), None, 1));
    }

    #[test]
    fn bad_formats() {
        let error = |format| FormatLines::new(format).err();
        assert_eq!(error("%T.%t %q"), Some(BadFormat::Unknown('q')));
        assert_eq!(error("%T%t %a"), Some(BadFormat::Touching('T', 't')));
        assert_eq!(error("%T.%t"), Some(BadFormat::Missing("action (%a)")));
        assert_eq!(error("%a"), Some(BadFormat::Missing("seconds (%T)")));
        assert_eq!(error("%T %a %"), Some(BadFormat::Unknown('%')));
    }
}
