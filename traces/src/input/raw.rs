//! The stored bytes of an input: counted, hashed, and watched for change.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream itself.
pub(super) struct Raw {
    reader: Box<dyn Read + Send>,
    hasher: blake3::Hasher,
    bytes: u64,
    failed: bool,
}

impl Raw {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self { reader, hasher: blake3::Hasher::new(), bytes: 0, failed: false }
    }
}

/// The stream shared between the decoder, which reads it, and the input, which wants its hash. The lock is taken once
/// a buffer.
#[derive(Clone)]
pub(super) struct SharedRaw(Arc<Mutex<Raw>>);

impl SharedRaw {
    pub(super) fn new(raw: Raw) -> Self {
        Self(Arc::new(Mutex::new(raw)))
    }

    fn lock(&self) -> MutexGuard<'_, Raw> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes read.
    pub(super) fn bytes_taken(&self) -> u64 {
        self.lock().bytes
    }

    /// The stream itself gave an error (as opposed to the decoder).
    pub(super) fn failed(&self) -> bool {
        self.lock().failed
    }

    /// Hash of the bytes read, hex.
    pub(super) fn hash(&self) -> String {
        self.lock().hasher.finalize().to_hex().to_string()
    }
}

impl Read for SharedRaw {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let raw = &mut *self.lock();
        match raw.reader.read(buf) {
            Ok(n) => {
                raw.hasher.update(&buf[..n]);
                raw.bytes += n as u64;
                Ok(n)
            }
            Err(e) => {
                raw.failed = e.kind() != io::ErrorKind::Interrupted;
                Err(e)
            }
        }
    }
}

/// What tells whether a file is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    pub(super) len: u64,
    modified_ns: (i64, i64),
    inode: (u64, u64),
}

impl FileState {
    pub(super) fn of(file: &File) -> Option<Self> {
        let meta = file.metadata().ok()?;
        Some(Self { len: meta.len(), modified_ns: (meta.mtime(), meta.mtime_nsec()), inode: (meta.dev(), meta.ino()) })
    }

    /// How a file differs from what it was, in words; `read` = bytes that were read of it, if to its end.
    pub(super) fn difference(self, after: Option<Self>, read: Option<u64>) -> Option<String> {
        let Some(after) = after else { return Some("it was removed while it was read".into()) };
        if self.inode != after.inode {
            return Some("it was replaced by another file while it was read".into());
        }
        if self.len != after.len {
            return Some(format!("its length changed from {} to {} bytes while it was read", self.len, after.len));
        }
        if self.modified_ns != after.modified_ns {
            return Some("it was written to while it was read".into());
        }
        match read {
            Some(read) if read != self.len => Some(format!("it has {} bytes, but {read} were read", self.len)),
            _ => None,
        }
    }
}
