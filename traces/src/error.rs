//! The one error type of this crate: each variant names the place and, where there is one, the way out.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::input::Compression;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a file operation was doing when it failed; used in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Opening or reading.
    Reading,
    /// Creating, writing, syncing or renaming.
    Writing,
    /// Taking the lock of an output directory.
    Locking,
    /// Removing a leftover.
    Removing,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reading => "cannot read",
            Self::Writing => "cannot write",
            Self::Locking => "cannot lock",
            Self::Removing => "cannot remove",
        })
    }
}

/// Everything that can go wrong while storing, opening or generating a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What was being done.
        doing: Doing,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The disk (or the quota) is full.
    #[error("no space left while writing {}", path.display())]
    NoSpace {
        /// File that could not be written.
        path: PathBuf,
    },
    /// Permission denied, or a read-only file system.
    #[error("{} is not writable: {source}", path.display())]
    NotWritable {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The output path holds something that is not a trace directory of ours.
    #[error("{} exists and was not made by kreplay", path.display())]
    NotOurs {
        /// Directory.
        path: PathBuf,
    },
    /// The output path holds a finished trace and replacing was not asked for.
    #[error("{} already holds a finished trace", path.display())]
    Exists {
        /// Directory.
        path: PathBuf,
    },
    /// Another process writes there.
    #[error("another kreplay is writing {}", path.display())]
    Locked {
        /// Directory.
        path: PathBuf,
    },
    /// Not a trace directory at all.
    #[error("{} is not a trace directory: {why}", path.display())]
    NotATrace {
        /// Directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Written by a later version.
    #[error("{} has schema version {found}, this program reads up to {supported}", path.display())]
    NewerSchema {
        /// Directory.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Highest version that can be read.
        supported: u32,
    },
    /// A file of a trace directory is not what the manifest says.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What differs.
        why: String,
    },
    /// Compressed bytes that cannot be decoded: cut, damaged, or asking for more memory than is allowed.
    #[error(
        "{}: the {compression} data {} byte {at_bytes} ({source}); {text_bytes} bytes of text came before that",
        path.display(), fault(source)
    )]
    Undecodable {
        /// Input.
        path: PathBuf,
        /// Kind of compression.
        compression: Compression,
        /// Stored bytes that the decoder had taken when it failed. The fault lies there, before it in the same block (a
        /// checksum tells only at its end), or for zstd in the block that begins there.
        at_bytes: u64,
        /// Decompressed bytes that came before.
        text_bytes: u64,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A limit on the size of an input was reached.
    #[error("{}: {why}", path.display())]
    InputLimit {
        /// Input.
        path: PathBuf,
        /// Which limit.
        why: String,
    },
    /// A compressed file inside a compressed file.
    #[error("{} is compressed twice", path.display())]
    NestedCompression {
        /// Input.
        path: PathBuf,
    },
    /// Rows could not be turned into Parquet; points to a bug here, not to the input.
    #[error("cannot encode table {table}: {why}")]
    Encode {
        /// Table.
        table: &'static str,
        /// Cause.
        why: String,
    },
    /// The writer was used in the wrong order.
    #[error("{0}")]
    Misuse(&'static str),
    /// A parameter of a workload generator.
    #[error("{load}: {why}")]
    Param {
        /// Load.
        load: String,
        /// What is wrong with which parameter, and what is allowed.
        why: String,
    },
    /// A description of a run could not be understood.
    #[error("{}: {why}", path.display())]
    RunDescription {
        /// File.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// Wrap an I/O error, sorting out the kinds that deserve their own message.
    pub fn io(path: impl AsRef<Path>, doing: Doing, source: io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        if doing != Doing::Reading {
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    return Self::NoSpace { path };
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    return Self::NotWritable { path, source };
                }
                _ => {}
            }
        }
        Self::Io { path, doing, source }
    }

    /// What the user can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSpace { .. } => "free some space and run the same command again",
            Self::NotWritable { .. } => "choose another output directory",
            Self::NotOurs { .. } => "choose a new or empty directory; nothing in it was touched",
            Self::Exists { .. } => "choose another directory, or give --replace",
            Self::Locked { .. } => "wait for it to end, or choose another directory",
            Self::NotATrace { .. } => "make one from logs with `kreplay ingest`",
            Self::NewerSchema { .. } => "use a newer kreplay, or ingest the logs again",
            Self::Damaged { .. } => "ingest the logs again",
            Self::Undecodable { .. } => "what came before that place can be kept; get a whole copy of the file",
            Self::InputLimit { .. } => "raise the limit if the file is what it should be",
            Self::NestedCompression { .. } => "unpack it once by hand",
            Self::Param { .. } => "see `kreplay synth --list`",
            Self::Io { source, doing: Doing::Reading, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path"
            }
            Self::Io { .. } | Self::Encode { .. } | Self::Misuse(_) | Self::RunDescription { .. } => return None,
        })
    }
}

/// What is wrong with compressed data, in words.
fn fault(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => "ends early, at",
        _ if source.to_string().contains("memory") => "asks for more memory than is allowed, at",
        _ => "is damaged near",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_and_read_only_are_told_apart() {
        let full = Error::io("x", Doing::Writing, io::Error::from_raw_os_error(28));
        assert!(matches!(full, Error::NoSpace { .. }), "{full}");
        let read_only = Error::io("x", Doing::Writing, io::Error::from_raw_os_error(30));
        assert!(matches!(read_only, Error::NotWritable { .. }), "{read_only}");
        assert!(read_only.hint().is_some());
        let reading = Error::io("x", Doing::Reading, io::Error::from_raw_os_error(13));
        assert!(matches!(reading, Error::Io { .. }), "{reading}");
    }
}
