//! Comparing the parsers with a corpus of real logs whose contents were counted independently.
//!
//! The corpus is a directory with a `MANIFEST.tsv`; its first column is a file, its last column says in words and
//! `key=value` pairs what is in it. The pairs that mean the same as a count here are compared, the rest is named as not
//! comparable.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use kreplay_traces::input::{Input, InputLimits};

use crate::diag::Diagnostics;
use crate::format::{HEAD_BYTES, Head, ParseOptions};
use crate::registry::{DetectError, detect};
use crate::rows::Discard;

/// One file of the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Path inside the corpus.
    pub file: String,
    /// Format that was detected, or why none was.
    pub format: String,
    /// How it ended.
    pub verdict: Verdict,
}

/// How a file of the corpus compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All comparable counts agree.
    Passed,
    /// They differ, or the file could not be read: how.
    Failed(String),
    /// Nothing in the manifest can be compared: why.
    Skipped(String),
}

/// Compare every file of a corpus.
///
/// # Errors
/// A sentence, when the manifest cannot be read.
pub fn check(dir: &Path) -> Result<Vec<Case>, String> {
    let manifest = dir.join("MANIFEST.tsv");
    let text = std::fs::read_to_string(&manifest).map_err(|e| format!("cannot read {}: {e}", manifest.display()))?;
    Ok(text.lines().skip(1).filter(|l| !l.trim().is_empty()).map(|line| case(dir, line)).collect())
}

fn case(dir: &Path, line: &str) -> Case {
    let columns: Vec<&str> = line.split('\t').collect();
    let (file, counts) = (columns[0], columns.last().copied().unwrap_or_default());
    let (format, verdict) = match read(&dir.join(file)) {
        Ok(Ok((format, diag))) => (format.to_owned(), compare(format, counts, &diag)),
        Ok(Err(why @ (DetectError::Refused { .. } | DetectError::Empty))) => {
            (why.to_string(), Verdict::Skipped("refused by name".into()))
        }
        Ok(Err(why)) => {
            let expects_rows =
                expected("strace", counts).or_else(|| expected("blkparse", counts)).is_some_and(|n| n > 0);
            let verdict = if expects_rows {
                Verdict::Failed(why.to_string())
            } else {
                Verdict::Skipped("no log of a known format".into())
            };
            (why.to_string(), verdict)
        }
        Err(why) => ("unreadable".to_owned(), Verdict::Failed(why)),
    };
    Case { file: file.to_owned(), format, verdict }
}

type Parsed = (&'static str, Diagnostics);

fn read(path: &Path) -> Result<Result<Parsed, DetectError>, String> {
    let mut text = Vec::new();
    let mut input = Input::open(path, InputLimits::default()).map_err(|e| e.to_string())?;
    input.read_to_end(&mut text).map_err(|e| input.explain(e).to_string())?;
    let format = match detect(Head { bytes: &text[..text.len().min(HEAD_BYTES)], complete: text.len() <= HEAD_BYTES }) {
        Ok(format) => format,
        Err(why) => return Ok(Err(why)),
    };
    let mut diag = Diagnostics::new();
    let mut parser = format.parser(&ParseOptions::default());
    parser.feed(&text, &mut Discard, &mut diag);
    parser.finish(&mut Discard, &mut diag);
    Ok(Ok((format.id(), diag)))
}

fn compare(format: &str, counts: &str, diag: &Diagnostics) -> Verdict {
    if !diag.adds_up() {
        return Verdict::Failed("events, notes and rejects do not add up to the lines".into());
    }
    let Some(expected) = expected(format, counts) else {
        return Verdict::Skipped("the manifest has no comparable count".into());
    };
    // The manifest counts calls where they begin; a second half without a first is an event here.
    let orphans = diag.warnings().iter().find(|w| w.code == "strace-orphan-resumed").map_or(0, |w| w.count);
    let got = match format {
        "strace" => diag.events() - orphans,
        "blktrace" => {
            diag.lines() - diag.rejected()
                + diag.rejects().iter().filter(|r| r.reason.code == "blktrace-bad-magic").map(|r| r.count).sum::<u64>()
        }
        _ => diag.events(),
    };
    if got == expected { Verdict::Passed } else { Verdict::Failed(format!("expected {expected}, got {got}")) }
}

/// The number of events that the manifest's words mean for a format.
fn expected(format: &str, counts: &str) -> Option<u64> {
    let after = |key: &str| number(&counts[counts.find(key)? + key.len()..]);
    match format {
        "strace" => after("call_starts="),
        "blkparse" => after("events="),
        "blktrace" => after("; records=").or_else(|| after("undamaged file=")),
        "vmstat" => after("int fields)=").or_else(|| after("rows=")),
        "ftrace" => {
            let pairs = pairs(counts.strip_prefix("events_by_name:")?);
            let accounting =
                ["block_touch_buffer", "block_dirty_buffer", "block_io_start", "block_io_done", "block_rq_error"];
            Some(pairs.iter().filter(|(n, _)| n.starts_with("block_") && !accounting.contains(n)).map(|(_, c)| c).sum())
        }
        "fio-iolog" => {
            let pairs = pairs(counts.split("; col").nth(1)?);
            Some(["read", "write", "trim", "sync", "datasync"].iter().filter_map(|n| pairs.get(n)).sum())
        }
        "cloudphysics-csv" => {
            let pairs = pairs(counts.split("; col").nth(1)?);
            Some(["2a", "28"].iter().filter_map(|n| pairs.get(n)).sum())
        }
        "msr" => {
            let pairs = pairs(counts.split("; col").nth(1)?);
            Some(["Read", "Write"].iter().filter_map(|n| pairs.get(n)).sum())
        }
        _ => None,
    }
}

fn pairs(text: &str) -> BTreeMap<&str, u64> {
    text.split_whitespace().filter_map(|w| w.split_once('=')).filter_map(|(k, v)| Some((k, number(v)?))).collect()
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_words_are_understood() {
        assert_eq!(expected("strace", "lines=9; call_starts=7 [read=7] distinct=1; unfinished=0"), Some(7));
        assert_eq!(expected("vmstat", "data_rows(>=12 int fields)=6; column_header_lines=1"), Some(6));
        assert_eq!(expected("vmstat", "rows=26 after joining"), Some(26));
        assert_eq!(expected("ftrace", "events_by_name: block_rq_issue=2 block_rq_error=2 ext4_x=5"), Some(2));
        assert_eq!(expected("fio-iolog", "lines=15; col3: read=9 write=3 3=1 add=1 open=1"), Some(12));
        assert_eq!(expected("msr", "see the notes"), None);
    }

    #[test]
    fn a_small_corpus() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("good", "7 1.5 close(3) = 0\n");
        write("bad", "7 1.5 close(3) = 0\n");
        write("words", "7 1.5 close(3) = 0\n");
        write(
            "MANIFEST.tsv",
            "file\tcounts\ngood\tcall_starts=1\nbad\tcall_starts=2\nwords\tsee text\nmissing\tcall_starts=1\n",
        );
        let verdicts: Vec<_> = check(dir.path()).unwrap().into_iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts[0], Verdict::Passed);
        assert_eq!(verdicts[1], Verdict::Failed("expected 2, got 1".into()));
        assert!(matches!(verdicts[2], Verdict::Skipped(_)));
        assert!(matches!(verdicts[3], Verdict::Failed(_)));
        assert!(check(&dir.path().join("none")).is_err());
    }
}
