//! Comparing the parsers with a corpus of real logs whose contents were counted independently.
//!
//! The corpus is a directory with a `MANIFEST.tsv`; its first column is a file, its last column says in words and
//! `key=value` pairs what is in it. Every pair that means the same as a count here is compared; a file without one is
//! named as not comparable, with the reason.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use kreplay_traces::input::{Input, InputLimits};

use crate::diag::Diagnostics;
use crate::format::{HEAD_BYTES, Head, ParseOptions};
use crate::registry::DetectError;
use crate::survey::Survey;

/// One file of the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Path inside the corpus.
    pub file: String,
    /// Format that was detected, or why none was.
    pub format: String,
    /// How many counts were compared.
    pub compared: usize,
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

/// What was found in a file.
struct Found {
    format: &'static str,
    diag: Diagnostics,
    survey: Survey,
    /// The file ends inside of an event: its last line, without a newline, is a reject for want of its rest.
    cut_line: bool,
    /// It was read with a format string of its own.
    own_format: bool,
}

fn case(dir: &Path, line: &str) -> Case {
    let columns: Vec<&str> = line.split('\t').collect();
    let (file, written_by) = (columns[0], columns.get(1).copied().unwrap_or_default());
    let counts = columns.last().copied().unwrap_or_default();
    let (format, compared, verdict) = match read(&dir.join(file), written_by) {
        Ok(Ok(found)) => {
            let (compared, verdict) = compare(counts, &found);
            (found.format.to_owned(), compared, verdict)
        }
        Ok(Err(why)) => {
            let nothing = !counts.contains("call_starts=") || counts.contains("call_starts=0");
            let verdict = match (&why, expects_events(counts)) {
                (DetectError::Empty, _) if counts.contains("rows=0") => Verdict::Passed,
                (DetectError::Refused { .. }, _) if nothing => {
                    Verdict::Skipped(format!("nothing to count: refused by name, {why}"))
                }
                (_, true) => Verdict::Failed(why.to_string()),
                (_, false) => Verdict::Skipped(format!("the manifest gives no count of events: {why}")),
            };
            (why.to_string(), usize::from(verdict == Verdict::Passed), verdict)
        }
        Err(why) => ("unreadable".to_owned(), 0, Verdict::Failed(why)),
    };
    Case { file: file.to_owned(), format, compared, verdict }
}

/// The manifest promises events of a kind that is read.
fn expects_events(counts: &str) -> bool {
    ["call_starts=", "events=", "rows=", "records="]
        .iter()
        .any(|key| value(counts, key).is_some_and(|n| n > 0) && !counts.contains("NOT strace"))
}

fn read(path: &Path, written_by: &str) -> Result<Result<Found, DetectError>, String> {
    let mut text = Vec::new();
    let mut input = Input::open(path, InputLimits::default()).map_err(|e| e.to_string())?;
    input.read_to_end(&mut text).map_err(|e| input.explain(e).to_string())?;
    let head = Head { bytes: &text[..text.len().min(HEAD_BYTES)], complete: text.len() <= HEAD_BYTES };
    // A format of the user's own is given to blkparse as it is given to this program.
    let own = written_by.split_once("-f \"").and_then(|(_, rest)| rest.split_once('"')).map(|(f, _)| f.to_owned());
    let options = ParseOptions { blkparse_format: own, ..ParseOptions::default() };
    let format = match crate::registry::detect_with(head, &options) {
        Ok(format) => format,
        Err(why) => return Ok(Err(why)),
    };
    let (mut survey, mut diag) = (Survey::default(), Diagnostics::new());
    let mut parser = format.parser(&options);
    parser.feed(&text, &mut survey, &mut diag);
    parser.finish(&mut survey, &mut diag);
    let last = diag.lines() as i64;
    let wants_more = ["strace-no-end", "strace-no-result", "vmstat-short-row"];
    let cut =
        diag.rejects().iter().any(|r| wants_more.contains(&r.reason.code) && r.count == 1 && r.first_line == last);
    let cut_line = cut && !text.ends_with(b"\n");
    Ok(Ok(Found { format: format.id(), diag, survey, cut_line, own_format: options.blkparse_format.is_some() }))
}

/// A count that both sides have: what, by the manifest, here.
type Pair = (String, u64, u64);

fn compare(counts: &str, found: &Found) -> (usize, Verdict) {
    if !found.diag.adds_up() {
        return (0, Verdict::Failed("events, notes and rejects do not add up to the lines".into()));
    }
    let pairs = comparable(counts, found);
    let differing: Vec<String> = pairs
        .iter()
        .filter(|(_, expected, got)| expected != got)
        .map(|(what, expected, got)| format!("{what}: expected {expected}, got {got}"))
        .collect();
    let verdict = match (pairs.is_empty(), differing.is_empty()) {
        (true, _) => Verdict::Skipped(format!("the manifest's words have no count of {} events", found.format)),
        (false, true) => Verdict::Passed,
        (false, false) => Verdict::Failed(differing.join("; ")),
    };
    (pairs.len(), verdict)
}

/// Every count in the manifest's words that means something here.
fn comparable(counts: &str, found: &Found) -> Vec<Pair> {
    let mut out: Vec<Pair> = Vec::new();
    let d = &found.diag;
    let mut add = |what: &str, expected: Option<u64>, got: u64| {
        out.extend(expected.map(|expected| (what.to_owned(), expected, got)));
    };
    // The manifest counts what begins, also where the end of the file cuts it: that is a reject here.
    let cut = u64::from(found.cut_line);
    match found.format {
        "strace" => {
            // It counts calls where they begin; a second half without a first is an event here.
            let orphans = d.warnings().iter().find(|w| w.code == "strace-orphan-resumed").map_or(0, |w| w.count);
            add("calls", value(counts, "call_starts="), d.events() - orphans + cut);
            if let Some(list) = between(counts, "call_starts=", '[', ']') {
                let calls = found.survey.calls();
                for (name, n) in numbers(list) {
                    // Which call the orphan or the cut line is, the sums do not say.
                    if orphans + cut == 0 {
                        add(name, Some(n), calls.get(name).copied().unwrap_or(0));
                    }
                }
            } else if let Some(list) = counts.strip_prefix("calls: ") {
                let calls = found.survey.calls();
                for (name, n) in numbers(list.split(';').next().unwrap_or_default()) {
                    add(name, Some(n), calls.get(name).copied().unwrap_or(0));
                }
            }
            add("second halves", value(counts, "; resumed="), d.note_count("resumed") + orphans);
            add("exits", value(counts, "; exits="), d.note_count("exit"));
        }
        "blkparse" => {
            // A format of its own has an event on every line.
            let lines = value(counts, "lines=").filter(|_| found.own_format);
            add("events", value(counts, "events=").or(lines), d.events());
            if let Some((_, list)) = counts.split_once("by_action: ") {
                let actions = found.survey.actions();
                for (letter, n) in numbers(list.split(';').next().unwrap_or_default()) {
                    add(letter, Some(n), actions.get(letter).copied().unwrap_or(0));
                }
            }
            if let Some((_, list)) = counts.split_once("devices=") {
                let list = list.split(';').next().unwrap_or_default();
                add("devices", Some(list.split_whitespace().count() as u64), found.survey.devices().len() as u64);
            }
        }
        "blktrace" => {
            let damaged =
                d.rejects().iter().filter(|r| r.reason.code == "blktrace-bad-magic").map(|r| r.count).sum::<u64>();
            let records = value(counts, "; records=").or_else(|| value(counts, "undamaged file="));
            add("records", records, d.lines() - d.rejected() + damaged);
            if let Some((_, list)) = counts.split_once("by_act: ") {
                let actions = found.survey.actions();
                let notes = [("NOTIFY0", "process-name"), ("NOTIFY1", "wall-clock"), ("DRV", "driver-data")];
                for (letter, n) in numbers(list.split(';').next().unwrap_or_default()) {
                    match notes.iter().find(|(name, _)| *name == letter) {
                        Some((_, kind)) => add(letter, Some(n), d.note_count(kind)),
                        None if letter == "NOTIFY2" => add(letter, Some(n), actions.get("m").copied().unwrap_or(0)),
                        // Act codes with the cgroup bit are counted under their letter here.
                        None if counts.contains(" 257=") || counts.contains("257=") => {}
                        None => add(letter, Some(n), actions.get(letter).copied().unwrap_or(0)),
                    }
                }
            }
        }
        "vmstat" => {
            let rows = value(counts, "int fields)=").or_else(|| value(counts, "rows="));
            add("rows", rows, d.events() + cut);
            let joined = counts.contains("joining");
            let headers = value(counts, "column_header_lines=").or_else(|| value(counts, "headers="));
            add("headers", headers.filter(|_| !joined), d.note_count("header"));
        }
        "vmstat-totals" => add("disks", value(counts, "disk_rows="), d.events()),
        "ftrace" => {
            if let Some(list) = counts.strip_prefix("events_by_name:") {
                let accounting = |n: &str| crate::ftrace::is_accounting(n.as_bytes());
                let named = numbers(list);
                let of = |is: &dyn Fn(&str) -> bool| named.iter().filter(|(n, _)| is(n)).map(|(_, c)| c).sum();
                let block = |n: &str| n.starts_with("block_");
                add("block events", Some(of(&|n| block(n) && !accounting(n))), d.events());
                add("accounting events", Some(of(&|n| block(n) && accounting(n))), d.note_count("accounting-event"));
            }
        }
        "fio-iolog" => {
            columns(counts, &[("read", "R"), ("write", "W"), ("trim", "D"), ("sync", "FN")], found, &mut out)
        }
        "cloudphysics-csv" => columns(counts, &[("28", "R"), ("2a", "W")], found, &mut out),
        "msr" => columns(counts, &[("Read", "R"), ("Write", "W")], found, &mut out),
        _ => {}
    }
    out
}

/// The sum of the values of one column of a table-like log, against the events.
fn columns(counts: &str, values: &[(&str, &str)], found: &Found, out: &mut Vec<Pair>) {
    let Some(list) = counts.split("; col").nth(1) else { return };
    let named: BTreeMap<&str, u64> = numbers(list).into_iter().collect();
    let expected = values.iter().filter_map(|(name, _)| named.get(name)).sum();
    out.push(("requests".to_owned(), expected, found.diag.events()));
}

/// The number after the first `key`.
fn value(text: &str, key: &str) -> Option<u64> {
    number(&text[text.find(key)? + key.len()..])
}

/// What is between two brackets after `key`.
fn between<'a>(text: &'a str, key: &str, open: char, close: char) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    let (_, rest) = rest.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// All `name=number` of a list.
fn numbers(text: &str) -> Vec<(&str, u64)> {
    text.split([' ', ',']).filter_map(|w| w.split_once('=')).filter_map(|(k, v)| Some((k, number(v)?))).collect()
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::detect;

    fn pairs(counts: &str, text: &str) -> Vec<Pair> {
        let format = detect(Head { bytes: text.as_bytes(), complete: true }).unwrap();
        let (mut survey, mut diag) = (Survey::default(), Diagnostics::new());
        let mut parser = format.parser(&ParseOptions::default());
        parser.feed(text.as_bytes(), &mut survey, &mut diag);
        parser.finish(&mut survey, &mut diag);
        comparable(counts, &Found { format: format.id(), diag, survey, cut_line: false, own_format: false })
    }

    #[test]
    fn the_manifests_words_are_understood() {
        let text = "7 1.5 close(3) = 0\n7 1.6 +++ exited with 0 +++\n";
        let counts = "lines=2; call_starts=1 [close=1, ...] distinct=1; unfinished=0; resumed=0; signals=0; exits=1";
        let named: Vec<String> =
            pairs(counts, text).into_iter().map(|(what, a, b)| format!("{what} {a} {b}")).collect();
        assert_eq!(named, ["calls 1 1", "close 1 1", "second halves 0 0", "exits 1 1"]);
        let text = "  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\n";
        let got = pairs("events=2; by_action: Q=1 C=1; devices=8,0; summary_blocks(Reads Queued)=0", text);
        assert_eq!(got.iter().filter(|(_, a, b)| a != b).count(), 2, "{got:?}");
        assert_eq!(pairs("see the notes", text), []);
    }

    #[test]
    fn a_small_corpus() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("good", "7 1.5 close(3) = 0\n");
        write("bad", "7 1.5 close(3) = 0\n");
        write("words", "7 1.5 close(3) = 0\n");
        write("cut", "7 1.5 close(3) = 0\n7 1.6 read(3, \"x");
        write("empty", "");
        write(
            "MANIFEST.tsv",
            "file\tcounts\ngood\tcall_starts=1\nbad\tcall_starts=2\nwords\tsee text\nmissing\tcall_starts=1\n\
             cut\tcall_starts=2 [close=1, read=1]\nempty\trows=0\n",
        );
        let verdicts: Vec<_> = check(dir.path()).unwrap().into_iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts[0], Verdict::Passed);
        assert_eq!(verdicts[1], Verdict::Failed("calls: expected 2, got 1".into()));
        assert!(matches!(verdicts[2], Verdict::Skipped(_)));
        assert!(matches!(verdicts[3], Verdict::Failed(_)));
        assert_eq!(verdicts[4..], [Verdict::Passed, Verdict::Passed]);
        assert!(check(&dir.path().join("none")).is_err());
    }
}
