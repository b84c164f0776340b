//! Opening an input: a path or standard input, decompressed by content, within limits, hashed on the way.
//!
//! The kind of compression is told from the first bytes, never from the name. One level only: a compressed file inside
//! a compressed file is refused. Decompression stops at a size limit, and when the output is out of all proportion to
//! the input (a bomb); zstd windows are limited to 2^27 bytes and xz to 256 MiB of memory.

mod compression;
mod raw;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use compression::Compression;

use crate::error::{Doing, Error, Result};
use compression::{Decoder, MAGIC_BYTES};
use raw::{FileState, Raw, SharedRaw};

/// Limits on what may come out of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Most bytes after decompression.
    pub max_text_bytes: u64,
    /// Most bytes out for one byte in, once [`InputLimits::ratio_from_bytes`] have come out. Real logs reach about 100.
    pub max_ratio: u64,
    /// Output below this is never called a bomb.
    pub ratio_from_bytes: u64,
}

impl Default for InputLimits {
    fn default() -> Self {
        Self { max_text_bytes: u64::MAX, max_ratio: 2000, ratio_from_bytes: 1 << 30 }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFacts {
    /// Name as given (`-` for standard input).
    pub name: String,
    /// How it was compressed.
    pub compression: Compression,
    /// Hash of the bytes as stored, hex.
    pub blake3: String,
    /// Length as stored, bytes.
    pub bytes: u64,
    /// Length after decompression, bytes.
    pub text_bytes: u64,
    /// The file changed while it was read: how. Its rows are a mixture and should not be trusted.
    pub changed: Option<String>,
}

/// An open input: reads as decompressed bytes.
///
/// ```
/// use std::io::Read;
/// use kreplay_traces::input::{Compression, Input, InputLimits};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("log");
/// std::fs::write(&path, zstd::encode_all(&b"hello\n"[..], 1)?)?;
/// let mut input = Input::open(&path, InputLimits::default())?;
/// let mut text = String::new();
/// input.read_to_string(&mut text)?;
/// let facts = input.finish()?;
/// assert_eq!((text.as_str(), facts.compression), ("hello\n", Compression::Zstd));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Input {
    name: String,
    compression: Compression,
    decoder: Decoder,
    raw: SharedRaw,
    limits: InputLimits,
    /// Decompressed bytes looked at to refuse nested compression.
    head: Vec<u8>,
    head_taken: usize,
    text_bytes: u64,
    limit_hit: Option<String>,
    /// The error that ended reading: decoders that have failed once may claim afterwards that the stream is over.
    failed: Option<io::Error>,
    /// The file and its state when it was opened; `None` for a stream.
    before: Option<(PathBuf, FileState)>,
}

impl Input {
    /// Open a file, or standard input for `-`.
    ///
    /// # Errors
    /// If it cannot be opened, is a directory, or is compressed twice.
    pub fn open(path: &Path, limits: InputLimits) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::from_reader("-", Box::new(io::stdin()), limits);
        }
        let meta = fs::metadata(path).map_err(|e| Error::io(path, Doing::Reading, e))?;
        if meta.is_dir() {
            let e = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
            return Err(Error::io(path, Doing::Reading, e));
        }
        let file = fs::File::open(path).map_err(|e| Error::io(path, Doing::Reading, e))?;
        let before = FileState::of(&file).filter(|_| meta.is_file());
        let mut input = Self::from_reader(&path.to_string_lossy(), Box::new(file), limits)?;
        input.before = before.map(|state| (path.to_owned(), state));
        Ok(input)
    }

    /// Read from any stream; `name` is for messages.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or it is compressed twice.
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>, limits: InputLimits) -> Result<Self> {
        let raw = SharedRaw::new(Raw::new(reader));
        let mut magic = raw.clone();
        let first = read_up_to(&mut magic, MAGIC_BYTES).map_err(|e| Error::io(name, Doing::Reading, e))?;
        let compression = Compression::of(&first);
        let decoder = compression.decoder(first, raw.clone()).map_err(|e| Error::io(name, Doing::Reading, e))?;
        let mut input = Self {
            name: name.to_owned(),
            compression,
            decoder,
            raw,
            limits,
            head: Vec::new(),
            head_taken: 0,
            text_bytes: 0,
            limit_hit: None,
            failed: None,
            before: None,
        };
        if compression != Compression::None {
            // An error here is kept for the reads, which give what came before it first.
            input.head = vec![0; MAGIC_BYTES];
            let mut filled = 0;
            while filled < MAGIC_BYTES && input.failed.is_none() {
                match input.decode_into_head(filled) {
                    0 => break,
                    n => filled += n,
                }
            }
            input.head.truncate(filled);
            if Compression::of(&input.head) != Compression::None {
                return Err(Error::NestedCompression { path: name.into() });
            }
        }
        Ok(input)
    }

    /// Name as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Bytes read so far as stored, for progress.
    pub fn bytes_read(&self) -> u64 {
        self.raw.bytes_taken()
    }

    /// Length as stored, if it is an ordinary file.
    pub fn bytes_expected(&self) -> Option<u64> {
        self.before.as_ref().map(|(_, state)| state.len)
    }

    /// Turn an error that a read gave into one that names the input and the cause.
    pub fn explain(&self, error: io::Error) -> Error {
        let path = self.name.clone().into();
        if let Some(why) = &self.limit_hit {
            return Error::InputLimit { path, why: why.clone() };
        }
        if self.raw.failed() || self.compression == Compression::None {
            return Error::io(path, Doing::Reading, error);
        }
        Error::Undecodable {
            path,
            compression: self.compression,
            at_bytes: self.raw.bytes_taken().saturating_sub(self.decoder.waiting_bytes()),
            text_bytes: self.text_bytes,
            source: error,
        }
    }

    /// End: reads what is left of the stored bytes (for the hash) and checks that the file did not change meanwhile.
    ///
    /// # Errors
    /// If the rest cannot be read.
    pub fn finish(self) -> Result<InputFacts> {
        let fail = |e| Error::io(&self.name, Doing::Reading, e);
        // After a hit limit the rest may be endless.
        if self.limit_hit.is_none() {
            io::copy(&mut self.raw.clone(), &mut io::sink()).map_err(fail)?;
        }
        let changed = match &self.before {
            Some((path, before)) => {
                let after = fs::File::open(path).ok().and_then(|f| FileState::of(&f));
                before.difference(after, self.limit_hit.is_none().then(|| self.raw.bytes_taken()))
            }
            None => None,
        };
        Ok(InputFacts {
            compression: self.compression,
            blake3: self.raw.hash(),
            bytes: self.raw.bytes_taken(),
            text_bytes: self.text_bytes,
            changed,
            name: self.name,
        })
    }

    /// Decode into the head behind its first `filled` bytes; gives how many came.
    fn decode_into_head(&mut self, filled: usize) -> usize {
        let mut head = std::mem::take(&mut self.head);
        let n = self.decode(&mut head[filled..]);
        self.head = head;
        n
    }

    /// Decode into `buf`; gives how many bytes came, and keeps an error for the call after the last of them.
    fn decode(&mut self, buf: &mut [u8]) -> usize {
        loop {
            let (n, result) = self.decoder.decode(buf);
            match result {
                Err(e) if n == 0 && e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => self.failed = Some(e),
                Ok(()) => {}
            }
            return n;
        }
    }

    fn check_limits(&mut self) -> io::Result<()> {
        let stored = self.raw.bytes_taken();
        let limits = self.limits;
        let why = if self.text_bytes > limits.max_text_bytes {
            format!("more than {} bytes after decompression", limits.max_text_bytes)
        } else if self.text_bytes > limits.ratio_from_bytes && self.text_bytes / limits.max_ratio > stored {
            format!("{stored} bytes became more than {} bytes: this looks like a decompression bomb", self.text_bytes)
        } else {
            return Ok(());
        };
        self.limit_hit = Some(why.clone());
        Err(io::Error::other(why))
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(why) = &self.limit_hit {
            return Err(io::Error::other(why.clone()));
        }
        let n = if self.head_taken < self.head.len() {
            let n = (&self.head[self.head_taken..]).read(buf)?;
            self.head_taken += n;
            n
        } else if self.failed.is_none() {
            self.decode(buf)
        } else {
            0
        };
        // Whoever reads on after the error gets it again, never an end.
        if n == 0
            && !buf.is_empty()
            && let Some(e) = &self.failed
        {
            return Err(io::Error::new(e.kind(), e.to_string()));
        }
        self.text_bytes += n as u64;
        self.check_limits()?;
        Ok(n)
    }
}

/// Up to `n` bytes, fewer only at the end.
fn read_up_to(reader: &mut impl Read, n: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(n);
    reader.take(n as u64).read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests;
