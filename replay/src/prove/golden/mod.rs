//! `prove golden`: what a real kernel's page cache held after every single operation, against the same operations here.
//!
//! Files of the folder, by the beginnings of their names; what follows names the kernel, and with it the variant:
//! - `readahead-`: pages in memory after every read or touch; a case is a pattern, and agrees when every step does. The
//!   recording may be one step late (it looked before the read-ahead was done);
//! - `lru-memcg64M-`: misses of each pass over files under a limit of 64 MiB (1 % may be missing or too many), and pages of
//!   the hot set that outlast a stream (20 % without read-ahead, 5 % with it; what the pass behind the stream reads are those that did not);
//! - `lru-marking-`: list lengths after passes of reads and writes (the kernel's batches of 31 pages may be missing);
//! - `pagecache-semantics-`: what single operations read, dirty and leave in memory.

mod lists;
mod machine;
mod readahead;
mod semantics;

use std::path::Path;

use super::{ExactReport, Verdict};

/// What a case came to: `Err` says what differs first.
type Outcome = Result<(), String>;

/// Reads the cases of one file.
type Cases = fn(&str, &str) -> Result<Vec<(String, Outcome)>, String>;

/// Kinds of files.
const KINDS: [(&str, Cases); 4] = [
    ("readahead-", readahead::cases),
    ("lru-memcg64M-", lists::cases),
    ("lru-marking-", lists::marking),
    ("pagecache-semantics-", semantics::cases),
];

/// Runs all cases of a folder.
///
/// # Errors
/// The folder or one of its files cannot be read, or holds something else.
pub fn run(dir: &Path) -> Result<ExactReport, String> {
    let list = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut files: Vec<_> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    let mut report = ExactReport { kind: "golden", cases: 0, passed: 0, failed: Vec::new(), skipped: Vec::new() };
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some((prefix, cases)) = KINDS.iter().find(|(p, _)| name.starts_with(p)) else { continue };
        let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let kernel = name.strip_prefix(prefix).unwrap_or(&name);
        let variant = kernel.strip_suffix("-ext4").or(kernel.strip_suffix("-xfs")).unwrap_or(kernel);
        for (case, outcome) in cases(variant, &text).map_err(|e| format!("{}: {e}", file.display()))? {
            report.cases += 1;
            match outcome {
                Ok(()) => report.passed += 1,
                Err(why) => report.failed.push(Verdict { case: format!("{name}: {case}"), why }),
            }
        }
    }
    if report.cases == 0 {
        return Err(format!("{}: no file named readahead-*, lru-* or pagecache-semantics-*", dir.display()));
    }
    Ok(report)
}

/// "key=value" or "key value" of a line.
fn number(line: &str, key: &str) -> Option<i64> {
    let at = line.find(key)? + key.len();
    let rest = line[at..].trim_start_matches(['=', ':', '\'', ' ', '+']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}
