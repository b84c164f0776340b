//! What a writer is told about the sources that it takes rows from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{Doing, Error, Result};
use crate::input::InputFacts;

/// How a trace directory is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterOptions {
    /// A finished trace of ours under the same name may be replaced.
    pub replace: bool,
    /// Throw away what an unfinished run left, instead of resuming it.
    pub fresh: bool,
}

/// What identifies a source: the same key and the same content give the same rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceKey {
    /// Name as the user gave it.
    pub path: String,
    /// Format id.
    pub format: String,
    /// Options given to the parser.
    pub options: BTreeMap<String, String>,
}

/// What is known about a source once it has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// Hash of the bytes as stored, hex.
    pub blake3: Option<String>,
    /// Length as stored, bytes.
    pub bytes: Option<u64>,
    /// Length after decompression, bytes.
    pub text_bytes: Option<u64>,
    /// Lines or records.
    pub lines: u64,
    /// Recognised lines that are no events, by kind.
    pub non_events: BTreeMap<String, u64>,
    /// Time in the source's own clock that is time 0 of the trace, if the caller knows it.
    pub zero_ns: Option<i64>,
    /// See [`SourceInfo::births`](super::SourceInfo::births).
    pub births: Vec<(i64, i64)>,
    /// Remarks, in words.
    pub notes: Vec<String>,
}

impl SourceFacts {
    /// The part that the input knows: hash, lengths, and a note if the file changed while it was read.
    pub fn of(input: &InputFacts) -> Self {
        Self {
            blake3: Some(input.blake3.clone()),
            bytes: Some(input.bytes),
            text_bytes: Some(input.text_bytes),
            notes: input.changed.iter().cloned().collect(),
            ..Self::default()
        }
    }
}

/// Hash of a file's bytes, hex.
///
/// # Errors
/// If it cannot be read.
pub fn hash_file(path: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = fs::File::open(path).map_err(|e| Error::io(path, Doing::Reading, e))?;
    std::io::copy(&mut file, &mut hasher).map_err(|e| Error::io(path, Doing::Reading, e))?;
    Ok(hasher.finalize().to_hex().to_string())
}
