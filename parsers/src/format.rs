//! What a format is, and what its parser does.

use kreplay_traces::event::EventSink;

use crate::diag::Diagnostics;
use crate::known::KnownFiles;
use crate::lines::{LineParser, Lines};
use crate::rows::Discard;

/// How much a detector sees of an input, bytes (decompressed).
pub const HEAD_BYTES: usize = 64 * 1024;

/// What the user, or the name of the file, says about an input beyond its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Thread whose calls the file holds (`strace -ff` puts it into the file's name).
    pub tid: Option<i64>,
    /// Seconds between vmstat samples in nanoseconds, where the log has no time stamps.
    pub interval_ns: Option<i64>,
    /// Time of the first vmstat sample without a time stamp, nanoseconds.
    pub start_ns: Option<i64>,
    /// Bytes per unit of vmstat's memory columns (`-S k|K|m|M`; 1024 by default).
    pub memory_unit_bytes: Option<i64>,
    /// Seconds east of Greenwich of wall clocks whose zone the log does not give exactly.
    pub utc_offset_s: Option<i64>,
    /// Midnight (nanoseconds since 1970) of the day on which a clock without a date starts.
    pub midnight_ns: Option<i64>,
    /// Directory that relative paths of a file layout belong under.
    pub root: Option<String>,
    /// Device of a file layout, `major << 20 | minor`.
    pub dev: Option<i64>,
    /// A file layout was written after the run: sizes are not those before it, and these files are known already.
    pub after_run: Option<KnownFiles>,
    /// The `-f` string with which blkparse wrote the text.
    pub blkparse_format: Option<String>,
}

/// The beginning of an input.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// At most [`HEAD_BYTES`].
    pub bytes: &'a [u8],
    /// The input ends here.
    pub complete: bool,
}

impl<'a> Head<'a> {
    /// The head without a cut last line.
    pub fn whole_lines(&self) -> &'a [u8] {
        if self.complete {
            return self.bytes;
        }
        match memchr::memrchr(b'\n', self.bytes) {
            Some(end) => &self.bytes[..=end],
            None => self.bytes,
        }
    }
}

/// How well a head fits a format: 0 (not at all) to 100 (every line).
pub type Score = u8;

/// A log format: a value without state, one entry of [`crate::registry::FORMATS`].
pub trait Format: Sync {
    /// Name on the command line (`strace`).
    fn id(&self) -> &'static str;
    /// One line for `kreplay formats`.
    fn about(&self) -> &'static str;
    /// How well the head of an input fits.
    fn sniff(&self, head: Head<'_>) -> Score;
    /// How well the head fits, given what the user says about it.
    fn sniff_with(&self, head: Head<'_>, _options: &ParseOptions) -> Score {
        self.sniff(head)
    }
    /// A parser for one input.
    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser>;
    /// Whether the options can be used; a sentence otherwise. The parser of bad options ignores them.
    ///
    /// # Errors
    /// What is wrong with which option.
    fn check(&self, _options: &ParseOptions) -> Result<(), String> {
        Ok(())
    }
    /// Why inputs of this format are not read: for the look-alikes that are known by name only to be refused.
    fn refusal(&self) -> Option<&'static str> {
        None
    }
}

/// Bytes in, rows and diagnostics out. A parser cannot fail: what it does not understand it rejects and goes on. The
/// rows do not depend on how the input is cut into chunks.
pub trait Parser: Send {
    /// Take the next bytes.
    fn feed(&mut self, chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics);
    /// The input is over.
    fn finish(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics);
}

/// Parse the head with the format's own parser and score the share of lines that it understands. Blank lines do not
/// count; without a single event the score is 0.
pub fn score_lines<P: LineParser>(parser: P, head: Head<'_>) -> Score {
    let mut diag = Diagnostics::new();
    let mut lines = Lines::new(parser);
    lines.feed(head.whole_lines(), &mut Discard, &mut diag);
    lines.finish(&mut Discard, &mut diag);
    let blank = diag.note_count("blank");
    let understood = diag.events() + diag.noted() - blank;
    if diag.events() == 0 { 0 } else { (100 * understood / (diag.lines() - blank)) as Score }
}
