//! fio's I/O logs (`--write_iolog`), versions 1 to 3.
//!
//! Version 1 (before fio 1.20): `rw, offset, length` with 0 for a read and 1 for a write, of one file, without times.
//! Version 2: `file action [offset length]`, times only as `wait` lines (microseconds since the previous `wait`).
//! Version 3: each line begins with microseconds since the start. Offsets and lengths in bytes. After fio 3.4x,
//! `iolog.c`. Each file becomes a device number (major 0) and a row of the file table; sync and datasync become flushes.

use kreplay_traces::event::{BlockRow, EventSink, FileRow};

use crate::csv::{Request, Span};
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::kept::Kept;
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, push_text};

/// The format.
pub struct FioIolog;

impl Format for FioIolog {
    fn id(&self) -> &'static str {
        "fio-iolog"
    }

    fn about(&self) -> &'static str {
        "fio I/O log (write_iolog), versions 1 to 3"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(FioLines::default(), head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(FioLines::default()))
    }
}

static BAD: Reason = Reason {
    code: "fio-bad-line",
    expected: "`[microseconds] file read|write|trim|sync|datasync|wait|add|open|close [offset length]`",
    hint: "offsets and lengths are bytes; lines of version 3 begin with a time, those of version 2 do not",
};
static BAD_VERSION: Reason = Reason {
    code: "fio-bad-version",
    expected: "version 2 or 3",
    hint: "lines of version 1 (`rw, offset, length`) have no line before them that says so",
};

/// Files that get a device number each: minor numbers have 20 bits.
const MAX_FILES: usize = 1 << 20;
/// Device of all files after those.
const OTHERS: i64 = 1 << 20;

/// What is known of a file.
#[derive(Clone, Copy, Default)]
struct File {
    minor: Option<u32>,
    opened: bool,
}

struct FioLines {
    version: Option<u8>,
    /// Version 2: the sum of the waits.
    now_ns: i64,
    files: Kept<File>,
    /// Devices given so far.
    devices: u32,
    span: Span,
}

impl Default for FioLines {
    fn default() -> Self {
        let (files, span) = (Kept::with_room(MAX_FILES), Span::default());
        Self { version: None, now_ns: 0, files, devices: 0, span }
    }
}

impl FioLines {
    fn device(&mut self, name: &[u8], line: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) -> i64 {
        let (next, max) = (self.devices, self.files.room());
        let Some(file) = self.files.of(name) else {
            diag.warn("fio-many-files", Some(line), || {
                format!("more than {max} files: all others stand under device 1:0 together")
            });
            return OTHERS;
        };
        if let Some(minor) = file.minor {
            return i64::from(minor);
        }
        file.minor = Some(next);
        self.devices += 1;
        let dev = i64::from(next);
        let mut path = String::new();
        push_text(&mut path, name);
        out.file(&FileRow { path: &path, dev: Some(dev), ..FileRow::default() });
        dev
    }

    /// Without the first line (cut logs) the version is told by the first field.
    fn guess(&mut self, first: &[u8], diag: &mut Diagnostics) -> u8 {
        let version = if dec_i64(first).is_some() { 3 } else { 2 };
        diag.warn("fio-no-version", Some(1), || {
            format!("the line `fio version N iolog` is missing; version {version} is taken")
        });
        version
    }

    #[allow(clippy::too_many_arguments, reason = "a line's parts, from one caller")]
    fn action(
        &mut self,
        time_ns: i64,
        name: &[u8],
        action: &[u8],
        numbers: Option<(i64, i64)>,
        line: i64,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Option<Outcome> {
        let rwbs = match action {
            b"add" => {
                self.device(name, line, out, diag);
                return Some(Outcome::Note("file"));
            }
            b"open" => {
                if let Some(file) = self.files.of(name) {
                    file.opened = true;
                }
                return Some(Outcome::Note("file"));
            }
            b"close" => return Some(Outcome::Note("file")),
            b"wait" => {
                if self.version == Some(2) {
                    self.now_ns = self.now_ns.checked_add(numbers?.0.checked_mul(1000)?)?;
                }
                return Some(Outcome::Note("wait"));
            }
            b"read" => "R",
            b"write" => "W",
            b"trim" => "D",
            b"sync" | b"datasync" | b"sync_file_range" => "FN",
            _ => return None,
        };
        if self.files.of(name).is_some_and(|file| !std::mem::replace(&mut file.opened, true)) {
            diag.warn("fio-not-opened", Some(line), || "a file is used that was not added and opened before".into());
        }
        let dev = self.device(name, line, out, diag);
        if rwbs == "FN" {
            out.block(&BlockRow { time_ns, dev: Some(dev), action: "Q", rwbs, line, ..BlockRow::default() });
            return Some(Outcome::Event);
        }
        let (offset_bytes, len_bytes) = numbers?;
        let request = Request { time_ns, dev: Some(dev), rwbs, offset_bytes, len_bytes, ..Request::default() };
        self.span.take(&request, line, out, diag);
        Some(Outcome::Event)
    }
}

impl LineParser for FioLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let text = line.bytes.trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        if let Some(version) = text.strip_prefix(b"fio version ").and_then(|v| v.strip_suffix(b" iolog")) {
            self.version = match version {
                b"2" => Some(2),
                b"3" => Some(3),
                _ => return Outcome::Reject(&BAD_VERSION, Some(12)),
            };
            diag.option("version", String::from_utf8_lossy(version).into_owned());
            return Outcome::Note("header");
        }
        if self.version.is_none_or(|v| v == 1)
            && let Some(request) = version_1(text)
        {
            if self.version.replace(1).is_none() {
                diag.option("version", "1");
            }
            let dev = self.device(b"file", line.number, out, diag);
            self.span.take(&Request { dev: Some(dev), ..request }, line.number, out, diag);
            return Outcome::Event;
        }
        let mut f = Fields::new(text);
        let (Some(first), second) = (f.next(), f.next()) else { return Outcome::Note("blank") };
        let Some(second) = second else { return Outcome::Reject(&BAD, None) };
        let version = match self.version {
            Some(version) => version,
            None => self.guess(first, diag),
        };
        let parts = if version == 3 {
            dec_i64(first).and_then(|us| us.checked_mul(1000)).zip(f.next()).map(|(ns, action)| (ns, second, action))
        } else {
            Some((self.now_ns, first, second))
        };
        let Some((time_ns, name, action)) = parts else { return Outcome::Reject(&BAD, None) };
        let numbers = f.next().and_then(dec_i64).map(|offset| (offset, f.next().and_then(dec_i64)));
        let numbers = numbers.and_then(|(offset, length)| Some((offset, length.or((action == b"wait").then_some(0))?)));
        let outcome = self.action(time_ns, name, action, numbers, line.number, out, diag);
        if outcome.is_some() {
            self.version = Some(version);
        }
        outcome.unwrap_or(Outcome::Reject(&BAD, Some(f.position())))
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        let timeless = self.version == Some(1);
        diag.option("clock", if timeless { "none" } else { "trace" });
        if timeless {
            diag.warn("no-clock", None, || {
                "version 1 has no times: all requests have time 0, only their order is known".into()
            });
        }
        self.span.report(diag);
    }
}

/// `rw, offset, length`.
fn version_1(text: &[u8]) -> Option<Request<'static>> {
    let mut parts = text.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let rwbs = match parts.next()? {
        b"0" => "R",
        b"1" => "W",
        _ => return None,
    };
    let (offset_bytes, len_bytes) = (dec_i64(parts.next()?)?, dec_i64(parts.next()?)?);
    parts.next().is_none().then(|| Request { rwbs, offset_bytes, len_bytes, ..Request::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn parse(text: &str) -> (Rows, Diagnostics) {
        let parsed = crate::parse_all(&FioIolog, &ParseOptions::default(), text.as_bytes());
        assert!(parsed.1.adds_up());
        parsed
    }

    type Row = (i64, i64, String, Option<i64>, Option<i64>);

    fn rows(text: &str) -> Vec<Row> {
        parse(text)
            .0
            .blocks
            .into_iter()
            .map(|b| (b.time_ns, b.dev.unwrap(), b.rwbs, b.sector_512, b.len_bytes))
            .collect()
    }

    #[test]
    fn files_beyond_those_told_apart_lose_no_request() {
        let text = "fio version 3 iolog\n1 a add\n1 a open\n2 a read 0 512\n3 b read 0 512\n4 c read 0 512\n5 d read 0 512\n6 b read 0 512\n";
        let mut parser = Lines::new(FioLines { files: Kept::with_room(2), ..FioLines::default() });
        let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
        parser.feed(text.as_bytes(), &mut rows, &mut diag);
        parser.finish(&mut rows, &mut diag);
        let devices: Vec<_> = rows.blocks.iter().filter_map(|b| b.dev).collect();
        assert_eq!((devices, rows.files.len()), (vec![0, 1, OTHERS, OTHERS, 1], 2));
        assert!(diag.warnings().iter().any(|w| w.code == "fio-many-files" && w.count == 2), "{:?}", diag.warnings());
    }

    #[test]
    fn version_3_has_microseconds() {
        let text = "fio version 3 iolog\n17 a b add\n";
        assert_eq!(parse(text).1.rejected(), 1, "names with blanks are not possible");
        let text = "fio version 3 iolog\n1 f add\n2 f open\n3 f read 4096 512\n4 g open\n5 g write 0 1024\n6 f sync 0 0\n7 f trim 0 512\n\
            8 f datasync\n9 f close\n";
        let expected = [
            (3000, 0, "R".into(), Some(8), Some(512)),
            (5000, 1, "W".into(), Some(0), Some(1024)),
            (6000, 0, "FN".into(), None, None),
            (7000, 0, "D".into(), Some(0), Some(512)),
            (8000, 0, "FN".into(), None, None),
        ];
        assert_eq!(rows(text), expected);
        let files: Vec<_> = parse(text).0.files.into_iter().map(|f| f.0).collect();
        assert_eq!(files, ["f", "g"]);
    }

    #[test]
    fn version_2_has_waits() {
        let text = "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 100 0\nf write 512 512\nf wait 50\nf read 0 512\n";
        let times: Vec<_> = rows(text).into_iter().map(|r| r.0).collect();
        assert_eq!(times, [0, 100_000, 150_000]);
    }

    #[test]
    fn version_1_has_no_times() {
        let text = "0, 4096, 4096\n1,8192,512\n";
        let expected = [(0, 0, "R".into(), Some(8), Some(4096)), (0, 0, "W".into(), Some(16), Some(512))];
        assert_eq!(rows(text), expected);
        assert_eq!(FioIolog.sniff(Head { bytes: text.as_bytes(), complete: true }), 100);
        let (rows, diag) = parse("0, 4096, 4096\n2, 0, 512\n1, 0\n");
        assert_eq!(
            (rows.rejects.len(), diag.warnings()[0].code, diag.options()["version"].as_str()),
            (2, "no-clock", "1")
        );
    }

    #[test]
    fn odd_logs() {
        let (_, diag) = parse("/dev/sdhu add\n/dev/sdhu open\n/dev/sdhu read 129521664 2048\n");
        assert_eq!((diag.events(), diag.warnings()[0].code), (1, "fio-no-version"));
        let (_, diag) = parse("fio version 3 iolog\n100 /dev/nvme0n1 read 1000 4096\n");
        let codes: Vec<_> = diag.warnings().iter().map(|w| w.code).collect();
        assert_eq!(codes, ["fio-not-opened", "not-sector-aligned"]);
        let (_, diag) = parse("fio version 3 iolog\n1 f open\n1000007 f read 0 512\n1 f read 0 512\n");
        assert_eq!(diag.warnings()[0].code, "time-backwards");
        let (rows, _) = parse("fio version 1 iolog\n1 f read\n1 f jump 0 1\nx f read 0 1\n");
        let reasons: Vec<_> = rows.rejects.iter().map(|r| r.reason.as_str()).collect();
        assert_eq!(reasons, ["fio-bad-version", "fio-bad-line", "fio-bad-line", "fio-bad-line"]);
    }
}
