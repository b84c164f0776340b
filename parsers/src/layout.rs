//! Where files lie on their device: the `layout*.txt` of a recording, and `filefrag -v` output.
//!
//! ```text
//! # ./client.0 ino 12 size 8388608
//!    0:        0..   16383:     270336..    286719:  16384:             last,eof
//! ```
//! One row per extent: `index: first..last logical: first..last physical: length:`, in 512-byte units unless filefrag's
//! own heading (`... blocks of 4096 bytes`) says otherwise. Each extent becomes a file row; a file without extents one
//! row with its size alone.

use kreplay_traces::event::{EventSink, FileRow};
use kreplay_traces::units::SECTOR_BYTES;

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::known::KnownFiles;
use crate::lines::{Line, LineParser, Lines};
use crate::num::{dec_i64, push_text};

/// The format.
pub struct Layout;

impl Format for Layout {
    fn id(&self) -> &'static str {
        "layout"
    }

    fn about(&self) -> &'static str {
        "where files lie on disk (layout.txt of a recording, filefrag -v)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(LayoutLines::new(&ParseOptions::default()), head)
    }

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(LayoutLines::new(options)))
    }
}

static NOT_LAYOUT: Reason = Reason {
    code: "layout-not-a-line",
    expected: "`# path ino N size N` or `i: a..b: c..d: n:`",
    hint: "write it with `filefrag -v`, or with the recording helper",
};
static NO_FILE: Reason = Reason {
    code: "layout-no-file",
    expected: "a line that names the file before its extents",
    hint: "write it with `filefrag -v`, or with the recording helper",
};

struct LayoutLines {
    root: Option<String>,
    dev: Option<i64>,
    unit_bytes: i64,
    after_run: Option<KnownFiles>,
    file: Option<Named>,
}

struct Named {
    path: String,
    inode: Option<i64>,
    size: Option<i64>,
    extents: u64,
    /// Another layout has it already.
    known: bool,
}

struct Extent {
    offset: i64,
    physical: i64,
    length: i64,
}

impl LayoutLines {
    fn new(options: &ParseOptions) -> Self {
        let after_run = options.after_run.clone();
        Self { root: options.root.clone(), dev: options.dev, unit_bytes: SECTOR_BYTES as i64, after_run, file: None }
    }

    fn row<'a>(&self, named: &'a Named) -> FileRow<'a> {
        FileRow {
            path: &named.path,
            size_bytes: named.size,
            dev: self.dev,
            inode: named.inode,
            directory: named.path.ends_with('/'),
            ..FileRow::default()
        }
    }

    /// Begin a file; the one before, if it had no extents, is a row of its own.
    fn begin(&mut self, path: &[u8], inode: Option<i64>, size: Option<i64>, out: &mut dyn EventSink) {
        self.end_file(out);
        let mut text = String::new();
        push_text(&mut text, path);
        let path = match (&self.root, text.strip_prefix("./")) {
            (Some(root), Some(relative)) => format!("{}/{relative}", root.trim_end_matches('/')),
            (None, Some(relative)) => relative.to_owned(),
            _ => text,
        };
        let known = self.after_run.as_ref().is_some_and(|known| known.has(&path));
        let size = size.filter(|_| self.after_run.is_none());
        self.file = Some(Named { path, inode, size, extents: 0, known });
    }

    fn end_file(&mut self, out: &mut dyn EventSink) {
        if let Some(named) = self.file.take().filter(|n| n.extents == 0 && !n.known) {
            out.file(&self.row(&named));
        }
    }

    /// Emit an extent of the file at hand; false for a file that another layout has.
    fn extent(&mut self, e: &Extent, out: &mut dyn EventSink) -> Option<bool> {
        let mut named = self.file.take()?;
        named.extents += 1;
        if named.known {
            self.file = Some(named);
            return Some(false);
        }
        let row = FileRow {
            extent_offset_bytes: Some(e.offset.checked_mul(self.unit_bytes)?),
            extent_sector_512: Some(e.physical.checked_mul(self.unit_bytes / SECTOR_BYTES as i64)?),
            extent_len_bytes: Some(e.length.checked_mul(self.unit_bytes)?),
            ..self.row(&named)
        };
        out.file(&row);
        self.file = Some(named);
        Some(true)
    }
}

impl LineParser for LayoutLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = line.bytes.trim_ascii();
        if bytes.is_empty() {
            return Outcome::Note("blank");
        }
        if let Some((path, inode, size)) = bytes.strip_prefix(b"# ").and_then(heading) {
            self.begin(path, inode, size, out);
            return Outcome::Note("file");
        }
        if let Some((path, size, unit_bytes)) = filefrag_heading(bytes) {
            self.unit_bytes = unit_bytes;
            diag.option("block-bytes", unit_bytes.to_string());
            self.begin(path, None, Some(size), out);
            return Outcome::Note("file");
        }
        if bytes.starts_with(b"Filesystem type is:")
            || bytes.starts_with(b"ext:")
            || bytes.ends_with(b" extent found")
            || bytes.ends_with(b" extents found")
        {
            return Outcome::Note("header");
        }
        let Some(extent) = extent(bytes) else { return Outcome::Reject(&NOT_LAYOUT, None) };
        match self.extent(&extent, out) {
            Some(true) => Outcome::Event,
            Some(false) => Outcome::Note("known-file"),
            None => Outcome::Reject(&NO_FILE, None),
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.end_file(out);
        if let Some(known) = self.after_run.as_ref().filter(|k| k.missed() > 0) {
            diag.warn("layout-many-files", None, || {
                format!(
                    "the layout before the run has more than {} files: {} of its lines may come again",
                    known.len(),
                    known.missed()
                )
            });
        }
        diag.option("clock", "none");
    }
}

/// `path ino N size N`; the path may hold blanks.
fn heading(text: &[u8]) -> Option<(&[u8], Option<i64>, Option<i64>)> {
    let size_at = memchr::memmem::rfind(text, b" size ")?;
    let size = dec_i64(&text[size_at + 6..])?;
    let ino_at = memchr::memmem::rfind(&text[..size_at], b" ino ")?;
    let inode = dec_i64(&text[ino_at + 5..size_at])?;
    Some((&text[..ino_at], Some(inode), Some(size)))
}

/// `File size of path is N (M blocks of B bytes)`.
fn filefrag_heading(text: &[u8]) -> Option<(&[u8], i64, i64)> {
    let rest = text.strip_prefix(b"File size of ")?;
    let is = memchr::memmem::rfind(rest, b" is ")?;
    let tail = &rest[is + 4..];
    let blank = memchr::memchr(b' ', tail)?;
    let size = dec_i64(&tail[..blank])?;
    let of = memchr::memmem::rfind(tail, b" of ")?;
    let unit = tail[of + 4..].strip_suffix(b" bytes)").and_then(dec_i64)?;
    (unit > 0 && unit % SECTOR_BYTES as i64 == 0).then_some((&rest[..is], size, unit))
}

/// `i: a..b: c..d: n: ...`.
fn extent(text: &[u8]) -> Option<Extent> {
    let mut parts = text.split(|b| *b == b':').map(<[u8]>::trim_ascii);
    dec_i64(parts.next()?)?;
    let offset = range_start(parts.next()?)?;
    let physical = range_start(parts.next()?)?;
    Some(Extent { offset, physical, length: dec_i64(parts.next()?)? })
}

fn range_start(text: &[u8]) -> Option<i64> {
    let dots = memchr::memmem::find(text, b"..")?;
    dec_i64(text[dots + 2..].trim_ascii())?;
    dec_i64(text[..dots].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn parse(root: Option<&str>, text: &str) -> (Rows, Diagnostics) {
        let options = ParseOptions { root: root.map(Into::into), ..ParseOptions::default() };
        let (rows, diag) = crate::parse_all(&Layout, &options, text.as_bytes());
        assert!(diag.adds_up());
        (rows, diag)
    }

    #[test]
    fn a_recordings_layout() {
        let text = "# ./a b ino 14 size 1048576\n\
            \x20  0:        0..     255:     265728..    265983:    256:            \n\
            \x20  1:      256..    2047:     267264..    269055:   1792:     265984: last,eof\n\
            # ./empty ino 15 size 0\n";
        let (rows, diag) = parse(Some("/mnt/disk/"), text);
        let file =
            |offset, sector, len| ("/mnt/disk/a b".to_owned(), Some(1_048_576), Some(14), Some((offset, sector, len)));
        let empty = ("/mnt/disk/empty".to_owned(), Some(0), Some(15), None);
        assert_eq!(rows.files, [file(0, 265_728, 131_072), file(131_072, 267_264, 917_504), empty]);
        assert_eq!((diag.events(), diag.note_count("file")), (2, 2));
        assert_eq!(parse(None, text).0.files[0].0, "a b");
    }

    #[test]
    fn a_layout_after_the_run_adds_new_files_without_sizes() {
        let text = b"# ./old ino 1 size 512\n 0: 0..0: 8..8: 1:\n# ./new ino 2 size 512\n 0: 0..0: 9..9: 1:\n";
        let mut known = KnownFiles::default();
        known.file(&FileRow { path: "old", ..FileRow::default() });
        let options = ParseOptions { after_run: Some(known), ..ParseOptions::default() };
        let (rows, diag) = crate::parse_all(&Layout, &options, text);
        assert_eq!(rows.files, [("new".to_owned(), None, Some(2), Some((0, 9, 512)))]);
        assert_eq!((diag.events(), diag.note_count("known-file")), (1, 1));
    }

    #[test]
    fn filefrags_own_output() {
        let text = "Filesystem type is: ef53\nFile size of /f is 8192 (2 blocks of 4096 bytes)\n \
            ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
            0:        0..       1:      33792..     33793:      2:             last,eof\n/f: 1 extent found\n";
        let (rows, diag) = parse(None, text);
        assert_eq!(rows.files, [("/f".to_owned(), Some(8192), None, Some((0, 33_792 * 8, 8192)))]);
        assert_eq!(diag.rejected(), 0);
    }

    #[test]
    fn rejects() {
        let (rows, _) = parse(None, "hello\n 0: 0..1: 2..3: 2:\n# x\n 0: 0..x: 2..3: 2:\n");
        let reasons: Vec<_> = rows.rejects.iter().map(|r| r.reason.as_str()).collect();
        assert_eq!(reasons, ["layout-not-a-line", "layout-no-file", "layout-not-a-line", "layout-not-a-line"]);
    }
}
