//! What can keep a recording from being made.

use std::io;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, RecordError>;

/// Why nothing was recorded. What only makes a recording poorer is no error but a line in [`crate::Recorded::missing`].
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A wish that cannot be met as it stands.
    #[error("{what}")]
    Usage {
        /// What is wrong with it.
        what: String,
        /// What to do instead.
        help: String,
    },
    /// A file of the recording or of the machine.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The command could not be started.
    #[error("cannot start `{command}`: {error}")]
    Start {
        /// Its name.
        command: String,
        /// What the system said.
        error: io::Error,
    },
    /// Something that was wanted cannot be recorded here, and the recording was to be whole (`strict`).
    #[error("not recorded: {0}")]
    Missing(String),
}

impl RecordError {
    pub(crate) fn usage(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), help: help.into() }
    }

    pub(crate) fn io(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::Io { path: path.into(), error }
    }
}
