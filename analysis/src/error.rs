//! What can go wrong while results are read; each error names the place and what to do.

use std::path::{Path, PathBuf};

/// An error of the analysis, with the path it is about and a hint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory has no `manifest.json`: not a results directory, or a run that never finished a cell.
    #[error("{}: not a results directory of kreplay (no manifest.json)", path.display())]
    NotResults {
        /// What was given.
        path: PathBuf,
    },
    /// A file or directory could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A JSON document is not one, or not in the documented shape.
    #[error("{}: {why}", path.display())]
    Json {
        /// The document.
        path: PathBuf,
        /// What is wrong, with line and column where known.
        why: String,
    },
    /// The document was written by a later version.
    #[error("{}: schema {found}, this version reads {known}", path.display())]
    Schema {
        /// The document.
        path: PathBuf,
        /// The version it states.
        found: u64,
        /// The version read here.
        known: u64,
    },
    /// A Parquet table is missing.
    #[error("{}: the table is missing", path.display())]
    MissingTable {
        /// Where it should be.
        path: PathBuf,
    },
    /// A Parquet table is not what was written.
    #[error("{}: damaged: {why}", path.display())]
    Damaged {
        /// The table.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// A table lacks a column or has it in another type.
    #[error("{}: column `{column}`: {why}", path.display())]
    Column {
        /// The table.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no finished cell to report on.
    #[error("{}: no finished cell ({failed} failed, {skipped} skipped)", path.display())]
    NoCells {
        /// The results directory.
        path: PathBuf,
        /// Cells that failed.
        failed: usize,
        /// Cells that were skipped.
        skipped: usize,
    },
    /// The folder given as the trace is none, or another one than was replayed.
    #[error("{}: not the trace of these results: {why}", path.display())]
    NotTheTrace {
        /// What was given.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// The variant to compare with is not among the results.
    #[error("no variant `{name}` in the results; there are: {known}")]
    NoReference {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A figure of the Pareto set is not among the columns of the matrix.
    #[error("no figure `{name}` to weigh by; there are: {known}")]
    NoFigure {
        /// What was asked for.
        name: String,
        /// Columns with a good end.
        known: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::NotResults { .. } => {
                "give the folder that `kreplay replay -o` or `kreplay run -o` wrote, or its `results` folder"
            }
            Error::Io { .. } => "check that the path exists and may be read",
            Error::Json { .. } => "the file was changed or cut after it was written; replay again into a new folder",
            Error::Schema { .. } => "read these results with the version of kreplay that wrote them, or replay again",
            Error::MissingTable { .. } | Error::Damaged { .. } => {
                "remove the cell's folder and run the same replay again: it makes only what is missing"
            }
            Error::Column { .. } => "the table was written by another version; replay again with this one",
            Error::NoCells { .. } => "the reasons are in manifest.json; replay again when they are mended",
            Error::NotTheTrace { .. } => "give the trace directory that was replayed, wherever it is now",
            Error::NoReference { .. } => "name one of the variants of the results",
            Error::NoFigure { .. } => "name columns of the comparison, as the CSV report heads them",
        }
    }

    /// The path the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::NotResults { path }
            | Error::Io { path, .. }
            | Error::Json { path, .. }
            | Error::Schema { path, .. }
            | Error::MissingTable { path }
            | Error::Damaged { path, .. }
            | Error::Column { path, .. }
            | Error::NoCells { path, .. }
            | Error::NotTheTrace { path, .. } => Some(path),
            Error::NoReference { .. } | Error::NoFigure { .. } => None,
        }
    }
}

/// Result of the analysis.
pub type Result<T> = std::result::Result<T, Error>;
