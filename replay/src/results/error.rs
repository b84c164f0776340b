//! What can go wrong with result files.

use std::path::{Path, PathBuf};

/// A result folder that could not be written or is not what it says.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The file system refused.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// "write", "read", ...
        doing: &'static str,
        /// File or folder.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// Rows could not be encoded.
    #[error("cannot encode {path}: {why}")]
    Encode {
        /// Table file.
        path: PathBuf,
        /// The library's words.
        why: String,
    },
    /// A folder holds something else than the results it should.
    #[error("{path}: {why}")]
    NotOurs {
        /// Folder or file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl ResultError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }

    /// The disk or the quota is full.
    pub fn is_disk_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge),
            Self::Encode { .. } | Self::NotOurs { .. } => false,
        }
    }
}

/// A result of this module.
pub(crate) type Result<T> = std::result::Result<T, ResultError>;
