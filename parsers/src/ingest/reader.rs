//! One input, whether it is a file or the per-CPU files of a binary trace.

use std::io::{self, Read};
use std::path::PathBuf;

use kreplay_traces::error::{Doing, Error};
use kreplay_traces::input::{Input, InputFacts};

use crate::blktrace::merge::Merged;

/// Where bytes come from.
pub enum Reader {
    /// A file or stream.
    One(Box<Input>),
    /// Files merged record by record.
    Merged {
        /// Name of the set.
        name: PathBuf,
        /// The files.
        files: Merged<Input>,
    },
}

impl From<Input> for Reader {
    fn from(input: Input) -> Self {
        Self::One(Box::new(input))
    }
}

impl Reader {
    /// Bytes read so far, as stored.
    pub fn bytes_read(&self) -> u64 {
        match self {
            Self::One(input) => input.bytes_read(),
            Self::Merged { files, .. } => files.inputs().map(Input::bytes_read).sum(),
        }
    }

    /// An error of a read, with place and cause.
    pub fn explain(&self, error: io::Error) -> Error {
        match self {
            Self::One(input) => input.explain(error),
            Self::Merged { name, .. } => Error::io(name, Doing::Reading, error),
        }
    }

    /// Close: hash, lengths, and whether anything changed meanwhile. A set's hash is that of its files' hashes.
    ///
    /// # Errors
    /// If the rest of a file cannot be read.
    pub fn finish(self) -> Result<InputFacts, Error> {
        let (name, files) = match self {
            Self::One(input) => return input.finish(),
            Self::Merged { name, files } => (name, files),
        };
        let parts = files.into_inner().into_iter().map(Input::finish).collect::<Result<Vec<_>, _>>()?;
        let mut hash = blake3::Hasher::new();
        for part in &parts {
            hash.update(part.blake3.as_bytes());
        }
        Ok(InputFacts {
            name: name.to_string_lossy().into_owned(),
            compression: parts.first().map_or(kreplay_traces::input::Compression::None, |p| p.compression),
            blake3: hash.finalize().to_hex().to_string(),
            bytes: parts.iter().map(|p| p.bytes).sum(),
            text_bytes: parts.iter().map(|p| p.text_bytes).sum(),
            changed: parts.into_iter().find_map(|p| p.changed.map(|how| format!("{}: {how}", p.name))),
        })
    }
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::One(input) => input.read(buf),
            Self::Merged { files, .. } => files.read(buf),
        }
    }
}
