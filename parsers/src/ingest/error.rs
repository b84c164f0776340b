//! What stops an ingest.

use std::path::PathBuf;

use crate::diag::RejectCount;
use crate::registry::DetectError;

/// Why inputs could not be ingested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Reading or writing failed.
    #[error(transparent)]
    Store(#[from] kreplay_traces::error::Error),
    /// A directory could not be listed.
    #[error("cannot list {}: {why}", path.display())]
    Walk {
        /// Directory or file.
        path: PathBuf,
        /// Cause.
        why: String,
    },
    /// Nothing is in the directory.
    #[error("{} is empty", path.display())]
    EmptyDirectory {
        /// Directory.
        path: PathBuf,
    },
    /// Files are there, but none is a log.
    #[error("no known log among the {files} files of {}", path.display())]
    NoLogs {
        /// Directory.
        path: PathBuf,
        /// Files looked at.
        files: usize,
        /// What was said of each, in words (`name: reason`).
        reasons: Vec<String>,
    },
    /// A file that was named has no known format.
    #[error("{}: {why}", path.display())]
    Undetected {
        /// File.
        path: PathBuf,
        /// Why.
        why: DetectError,
    },
    /// The format asked for does not exist.
    #[error("unknown format {0:?}")]
    UnknownFormat(String),
    /// An option does not fit the format.
    #[error("{}: {why}", path.display())]
    BadOption {
        /// File.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `--strict`, and a line was rejected.
    #[error(
        "{}:{}{}: {}: expected {}",
        path.display(), reject.first_line, column(reject), reject.reason.code, reject.reason.expected
    )]
    Strict {
        /// File.
        path: PathBuf,
        /// The reject.
        reject: Box<RejectCount>,
    },
    /// `--strict`, and an input ended early.
    #[error("{} ends early, after {lines} lines: {cut}", path.display())]
    Cut {
        /// File.
        path: PathBuf,
        /// Lines (or records) that could be read.
        lines: u64,
        /// Why it ended.
        cut: Box<kreplay_traces::error::Error>,
    },
    /// The inputs are logs by their form, but hold no event.
    #[error("{}: no event in {}{}", path.display(), of(*.inputs), says(.said))]
    NoEvents {
        /// The first of them.
        path: PathBuf,
        /// How many inputs.
        inputs: usize,
        /// What it says instead.
        said: Option<String>,
    },
    /// Standard input was named more than once.
    #[error("standard input (-) can be read only once")]
    StdinTwice,
    /// A pattern that no file fits.
    #[error("no file fits {pattern:?}")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

fn of(inputs: usize) -> String {
    if inputs == 1 { "this log".to_owned() } else { format!("any of the {inputs} logs") }
}

fn says(said: &Option<String>) -> String {
    said.as_ref().map_or_else(String::new, |s| format!(" ({s})"))
}

fn column(reject: &RejectCount) -> String {
    reject.first_column.map_or_else(String::new, |c| format!(":{c}"))
}

impl IngestError {
    /// What the user can do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Store(e) => e.hint()?.to_owned(),
            Self::EmptyDirectory { .. } => "give a directory with strace, blktrace or vmstat logs".into(),
            Self::NoLogs { reasons, .. } => {
                let shown: Vec<&str> = reasons.iter().take(5).map(String::as_str).collect();
                let more = reasons.len().saturating_sub(5);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                format!("{}{more}; name the format of a file with --format", shown.join("; "))
            }
            Self::Undetected { .. } | Self::UnknownFormat(_) => "`kreplay formats` lists what can be read".into(),
            Self::Strict { reject, .. } => reject.reason.hint.to_owned(),
            Self::Cut { cut, .. } => cut.hint()?.to_owned(),
            Self::NoEvents { .. } => {
                "check that the whole log is there and its format is right (--format); --allow-empty takes it as it is"
                    .into()
            }
            Self::StdinTwice => "give each stream a file of its own, or join them with cat".into(),
            Self::NoMatch { .. } => "check the path".into(),
            Self::Interrupted => "run the same command again".into(),
            Self::Walk { .. } | Self::BadOption { .. } => return None,
        })
    }
}
