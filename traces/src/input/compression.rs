//! Kinds of compression, told by their first bytes.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::raw::SharedRaw;

/// Bytes needed to tell the kinds apart.
pub(super) const MAGIC_BYTES: usize = 10;
/// Largest zstd window, log2 of bytes.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Most memory an xz stream may ask for, bytes.
const XZ_MEMORY_LIMIT: u64 = 256 << 20;
/// Compressed bytes read at a time.
const BUFFER_BYTES: usize = 128 * 1024;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one or more members.
    Gzip,
    /// Zstandard, one or more frames.
    Zstd,
    /// xz, one or more streams.
    Xz,
    /// bzip2, one or more streams.
    Bzip2,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        })
    }
}

impl Compression {
    /// The kind that these first bytes belong to. Magic numbers: RFC 1952, RFC 8878 (frames and skippable frames), the
    /// .xz file format, bzip2 (a level digit and the first block's or the end's mark).
    pub fn of(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Self::Bzip2,
            _ => Self::None,
        }
    }

    /// The kind that a file's name claims (`log.gz`).
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        let known = [("gz", Self::Gzip), ("zst", Self::Zstd), ("xz", Self::Xz), ("bz2", Self::Bzip2)];
        known.into_iter().find(|(name, _)| extension.eq_ignore_ascii_case(name)).map(|(_, kind)| kind)
    }

    /// A decoder for a stream that begins with `first`.
    pub(super) fn decoder(self, first: Vec<u8>, rest: SharedRaw) -> io::Result<Decoder> {
        let stored = Cursor::new(first).chain(rest);
        if self == Self::None {
            return Ok(Decoder::None(stored));
        }
        let stored = BufReader::with_capacity(BUFFER_BYTES, stored);
        Ok(match self {
            Self::None | Self::Gzip => Decoder::Gzip(flate2::bufread::MultiGzDecoder::new(stored)),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Decoder::Zstd(decoder)
            }
            Self::Xz => {
                let concatenated = liblzma::stream::CONCATENATED;
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_LIMIT, concatenated)?;
                Decoder::Xz(liblzma::bufread::XzDecoder::new_stream(stored, stream))
            }
            Self::Bzip2 => Decoder::Bzip2(bzip2::bufread::MultiBzDecoder::new(stored)),
        })
    }
}

type Stored = io::Chain<Cursor<Vec<u8>>, SharedRaw>;

/// A decoder of one of the kinds.
pub(super) enum Decoder {
    None(Stored),
    Gzip(flate2::bufread::MultiGzDecoder<BufReader<Stored>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Stored>>),
    Xz(liblzma::bufread::XzDecoder<BufReader<Stored>>),
    Bzip2(bzip2::bufread::MultiBzDecoder<BufReader<Stored>>),
}

impl Decoder {
    /// Stored bytes that were read and that the decoder has not taken.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let stored = match self {
            Self::None(_) => return 0,
            Self::Gzip(d) => d.get_ref(),
            Self::Zstd(d) => d.get_ref(),
            Self::Xz(d) => d.get_ref(),
            Self::Bzip2(d) => d.get_ref(),
        };
        let (first, _) = stored.get_ref().get_ref();
        let unread = first.get_ref().len() as u64 - first.position().min(first.get_ref().len() as u64);
        stored.buffer().len() as u64 + unread
    }

    /// Decode into `buf`: how many bytes came, and the error that stopped it, if one did. Bytes may come with the error:
    /// the xz decoder fills the buffer and only then meets what it cannot decode.
    pub(super) fn decode(&mut self, buf: &mut [u8]) -> (usize, io::Result<()>) {
        let before = match self {
            Self::Xz(d) => d.total_out(),
            _ => 0,
        };
        let read = match self {
            Self::None(d) => d.read(buf),
            Self::Gzip(d) => d.read(buf),
            Self::Zstd(d) => d.read(buf),
            Self::Xz(d) => d.read(buf),
            Self::Bzip2(d) => d.read(buf),
        };
        match (read, &*self) {
            (Ok(n), _) => (n, Ok(())),
            (Err(e), Self::Xz(d)) => {
                let came = usize::try_from(d.total_out().saturating_sub(before)).unwrap_or(0);
                (came.min(buf.len()), Err(e))
            }
            (Err(e), _) => (0, Err(e)),
        }
    }
}
