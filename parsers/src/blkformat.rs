//! blkparse text written with a format string of the user's (`blkparse -f`).
//!
//! The same string that blkparse was given (`%T.%t;%M;%m;%c;%a;%d;%S;%n;%p;%C\n`) tells how to read each line. Specifiers
//! after blktrace's `blkparse.1`; those that carry nothing for a replay are skipped over. What is between two specifiers
//! separates them; blanks match any number of blanks. A process name may hold what separates it from the next specifier:
//! then the shortest name counts with which the rest of the line fits. Messages, summaries and what the tool says have
//! their own form whatever the format; they are read as in the default text.

use kreplay_traces::event::{BlockRow, EventSink};
use nom::branch::alt;
use nom::bytes::complete::{tag, take, take_while};
use nom::combinator::{opt, value};
use nom::sequence::preceded;
use nom::{IResult, Parser as _};

use crate::blkparse::{BlkparseLines, action, device};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::lines::{Line, LineParser};
use crate::num::{dec_i64, dec_u64, fraction_ns, push_text, secs_ns, signed};

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
    /// Midnight of the current day, where the format has the wall clock (`%z`) as its only time.
    midnight_ns: i64,
    last_of_day_ns: Option<i64>,
    /// Reader of what has its own form in every format.
    plain: BlkparseLines,
    comm: String,
    text: String,
}

/// Letters of which a format string must have one, and what they are called.
const NEEDED: [(&[u8], &str); 2] = [(b"Tz", "seconds (%T) or wall clock (%z)"), (b"a", "action (%a)")];
/// Specifiers whose text may hold what separates them from the next one: process name and payload.
const FREE: &[u8] = b"CP";
/// Ends of such a text that are tried on one line; a name has 16 bytes at most.
const MAX_TRIES: usize = 256;
const DAY_NS: i64 = 86_400_000_000_000;
/// `%u` is microseconds of a 64-bit count of nanoseconds: above this one the count was below zero.
const MAX_ELAPSED_US: u64 = (1 << 63) / 1000;

impl FormatLines {
    /// Read a format string.
    ///
    /// # Errors
    /// [`BadFormat`] says what is wrong with it.
    pub fn new(format: &str, midnight_ns: i64) -> Result<Self, BadFormat> {
        let pieces = pieces(format.as_bytes())?;
        for (letters, name) in NEEDED {
            if !letters.iter().any(|letter| pieces.contains(&Piece::Field(*letter))) {
                return Err(BadFormat::Missing(name));
            }
        }
        let (comm, text) = (String::new(), String::new());
        Ok(Self { pieces, midnight_ns, last_of_day_ns: None, plain: BlkparseLines::default(), comm, text })
    }

    /// The format's only time is the wall clock.
    fn has_wall_clock(&self) -> bool {
        !self.pieces.contains(&Piece::Field(b'T'))
    }

    /// A time of the wall clock, with a day added where it passes midnight.
    fn of_day(&mut self, ns: i64, line: i64, diag: &mut Diagnostics) -> i64 {
        if self.last_of_day_ns.is_some_and(|last| last - ns > DAY_NS / 2) {
            self.midnight_ns = self.midnight_ns.saturating_add(DAY_NS);
            diag.warn("clock-midnight", Some(line), || "the clock passes midnight; a day was added".into());
        }
        self.last_of_day_ns = Some(ns);
        self.midnight_ns.saturating_add(ns)
    }

    fn event<'s>(
        &'s mut self,
        line: &Line<'_>,
        rwbs: &'s mut String,
        diag: &mut Diagnostics,
    ) -> Result<BlockRow<'s>, usize> {
        let (mut furthest, mut tries) = (0, 0);
        let f = fit(&self.pieces, line.bytes, 0, Found::default(), &mut furthest, &mut tries).ok_or(furthest)?;
        let time_ns = if self.has_wall_clock() {
            self.of_day(f.of_day_ns, line.number, diag)
        } else {
            f.secs.checked_mul(1_000_000_000).and_then(|s| s.checked_add(f.ns)).ok_or(0usize)?
        };
        if f.elapsed_us.is_some_and(|us| us > MAX_ELAPSED_US) {
            diag.warn("negative-latency", Some(line.number), || {
                "a request takes less than no time: its latency is not known".into()
            });
        }
        rwbs.clear();
        push_text(rwbs, f.rwbs);
        self.comm.clear();
        push_text(&mut self.comm, f.comm);
        let dev = f.dev.or_else(|| Some(f.major? << 20 | f.minor?));
        let has_error = matches!(f.action, "C" | "R");
        Ok(BlockRow {
            time_ns,
            dev,
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

/// Fit the pieces to the rest of a line; `furthest` is where the best try went wrong.
fn fit<'a>(
    pieces: &[Piece],
    bytes: &'a [u8],
    mut at: usize,
    mut f: Found<'a>,
    furthest: &mut usize,
    tries: &mut usize,
) -> Option<Found<'a>> {
    for (i, piece) in pieces.iter().enumerate() {
        *furthest = (*furthest).max(at);
        match piece {
            Piece::Blanks => at += blanks(&bytes[at..]),
            Piece::Text(text) => {
                if !bytes[at..].starts_with(text) {
                    return None;
                }
                at += text.len();
            }
            Piece::Field(letter) => {
                at += blanks(&bytes[at..]);
                *furthest = (*furthest).max(at);
                let mut end = separator(pieces.get(i + 1), bytes, at);
                while FREE.contains(letter) && end < bytes.len() {
                    *tries += 1;
                    if *tries > MAX_TRIES {
                        return None;
                    }
                    let mut tried = f;
                    tried.put(*letter, bytes[at..end].trim_ascii())?;
                    if let Some(found) = fit(&pieces[i + 1..], bytes, end, tried, furthest, tries) {
                        return Some(found);
                    }
                    end = separator(pieces.get(i + 1), bytes, end + 1);
                }
                f.put(*letter, bytes[at..end].trim_ascii())?;
                at = end;
            }
        }
    }
    *furthest = (*furthest).max(at);
    bytes[at..].trim_ascii().is_empty().then_some(f)
}

/// Where the text from `at` meets what separates a specifier from the next piece, or the end of the line.
fn separator(next: Option<&Piece>, bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = match next {
        None => None,
        Some(Piece::Text(stop)) => memchr::memmem::find(rest, stop),
        Some(_) => rest.iter().position(|b| matches!(b, b' ' | b'\t')),
    };
    end.map_or(bytes.len(), |end| at + end)
}

/// `HH:MM:SS.uuuuuu`, nanoseconds since midnight.
fn wall_clock(word: &[u8]) -> Option<i64> {
    let mut parts = word.splitn(3, |b| *b == b':');
    let (h, m) = (dec_i64(parts.next()?)?, dec_i64(parts.next()?)?);
    let seconds = secs_ns(parts.next()?)?;
    (h < 24 && m < 60 && seconds < 61_000_000_000).then_some((h * 60 + m) * 60_000_000_000 + seconds)
}

#[derive(Clone, Copy, Default)]
struct Found<'a> {
    secs: i64,
    ns: i64,
    of_day_ns: i64,
    elapsed_us: Option<u64>,
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
            b'z' => self.of_day_ns = wall_clock(word)?,
            // Events without an end have none.
            b'u' => self.elapsed_us = dec_u64(word),
            // Process group, payload: not needed.
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
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        if line.bytes.trim_ascii().is_empty() {
            return Outcome::Note("blank");
        }
        let mut rwbs = std::mem::take(&mut self.text);
        let done = self.event(line, &mut rwbs, diag).map(|row| out.block(&row));
        self.text = rwbs;
        match done {
            Ok(()) => Outcome::Event,
            Err(at) => self.plain.between(line, out, diag).unwrap_or(Outcome::Reject(&NO_MATCH, Some(at))),
        }
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", if self.has_wall_clock() { "time-of-day" } else { "trace" });
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
            dev: Some(8 << 20 | 52),
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
    fn names_with_what_separates_the_fields() {
        let name = |format: &str, text: &str| {
            let (rows, diag) = parse(format, text);
            assert_eq!(diag.rejected(), 0, "{format}: {text}");
            let b = &rows.blocks[0];
            (b.comm.clone().unwrap(), b.sector_512, b.len_bytes)
        };
        let named = |n: &str| (n.to_owned(), Some(64), Some(4096));
        assert_eq!(name("%T.%t %a %d %C %S %n", "1.5 D W my prog 64 8"), named("my prog"));
        assert_eq!(name("%T.%t %a %d %-16C %S %n", "1.5 D W my  4 prog      64 8"), named("my  4 prog"));
        assert_eq!(name("%T.%t %C %a %d %S %n", "1.5 x y z D W 64 8"), named("x y z"));
        assert_eq!(name("%T.%t %a %d [%C] %S + %n", "1.5 D W [a] b] 64 + 8"), named("a] b"));
        assert_eq!(name("%T.%t,%C,%a,%d,%S,%n", "1.5,a,b,D,W,64,8"), named("a,b"));
        // An endless name is no endless search.
        let long = format!("1.5 D W {} 64\n", "a ".repeat(100_000));
        assert_eq!(parse("%T.%t %a %d %C %S %n", &long).1.rejected(), 1);
    }

    #[test]
    fn summaries_and_messages_have_their_own_form() {
        let text = "1.5 Q R 64 8\n\
            \x20 8,0    1        0     1.600000000     0  m   N cfq workload slice:100\n\
            Input file x.blktrace.0 added\n\
            CPU0 (x):\n Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB\n\
            Total (x):\n IO unplugs:             1        \t Timer unplugs:           0\n\n\
            Throughput (R/W): 5KiB/s / 0KiB/s\nEvents (x): 2 entries\nSkips: 0 forward (0 -   0.0%)\nhello\n";
        let (rows, diag) = parse("%T.%t %a %d %S %n", text);
        assert_eq!(rows.blocks.len(), 2);
        assert_eq!((rows.blocks[1].action.as_str(), rows.blocks[1].time_ns), ("m", 1_600_000_000));
        assert_eq!((diag.note_count("trailer"), diag.note_count("tool-message"), diag.rejected()), (7, 1, 1));
    }

    #[test]
    fn the_wall_clock_is_a_time_too() {
        let (rows, diag) =
            parse("%z %a %d %S %n", "23:59:59.500000 Q R 64 8\n00:00:00.250000 C R 64 8\n24:00:00.0 Q R 1 8\n");
        let times: Vec<_> = rows.blocks.iter().map(|b| b.time_ns).collect();
        assert_eq!(times, [86_399_500_000_000, 86_400_250_000_000]);
        assert_eq!((diag.options()["clock"].as_str(), diag.warnings()[0].code), ("time-of-day", "clock-midnight"));
        assert_eq!(diag.rejected(), 1);
    }

    #[test]
    fn elapsed_times_below_zero_are_no_latencies() {
        let (rows, diag) = parse("%T.%t %a %S %n %u", "1.5 C 64 8 18446744071823058\n1.6 C 64 8 12\n");
        assert_eq!((rows.blocks.len(), diag.warnings()[0].code, diag.warnings()[0].count), (2, "negative-latency", 1));
    }

    #[test]
    fn a_format_that_fits_no_line_is_told_with_the_place() {
        let options = ParseOptions { blkparse_format: Some("%T.%t %a %S".into()), ..ParseOptions::default() };
        let head = crate::format::Head { bytes: b"\n1 000000002 Q 5\n", complete: true };
        let error = crate::registry::detect_with(head, &options).err().unwrap().to_string();
        assert!(error.contains("\"1 000000002 Q 5\" and differs at column 1"), "{error}");
        assert!(!error.contains("name one with --format"), "{error}");
    }

    #[test]
    fn bad_formats() {
        let error = |format| FormatLines::new(format, 0).err();
        assert_eq!(error("%T.%t %q"), Some(BadFormat::Unknown('q')));
        assert_eq!(error("%T%t %a"), Some(BadFormat::Touching('T', 't')));
        assert_eq!(error("%T.%t"), Some(BadFormat::Missing("action (%a)")));
        assert_eq!(error("%a"), Some(BadFormat::Missing("seconds (%T) or wall clock (%z)")));
        assert_eq!(error("%T %a %"), Some(BadFormat::Unknown('%')));
    }
}
