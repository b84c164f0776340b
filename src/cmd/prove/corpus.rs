//! `kreplay prove corpus`: what the parsers find in real logs against counts that were worked out without them.

use kreplay_parsers::corpus::{self, Verdict as Ended};
use kreplay_replay::prove::{ExactReport, Verdict};
use std::path::Path;

/// Compares every file of the corpus.
///
/// # Errors
/// If the folder has no readable MANIFEST.tsv.
pub(super) fn run(dir: &Path) -> Result<ExactReport, String> {
    let cases = corpus::check(dir)?;
    let mut report =
        ExactReport { kind: "corpus", cases: cases.len(), passed: 0, failed: Vec::new(), skipped: Vec::new() };
    for case in cases {
        match case.verdict {
            Ended::Passed => report.passed += 1,
            Ended::Failed(why) => report.failed.push(Verdict { case: case.file, why }),
            Ended::Skipped(why) => report.skipped.push(Verdict { case: case.file, why }),
        }
    }
    Ok(report)
}
