//! A writer that hashes and counts what passes through, and keeps the operating system's error: Parquet's writers turn
//! some into text, and a full disk must read as a full disk.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parquet::errors::ParquetError;

/// The first error that the operating system gave to a [`HashingWriter`].
#[derive(Clone, Debug, Default)]
pub struct WriteFault(Arc<AtomicI32>);

impl WriteFault {
    fn note(&self, e: &io::Error) {
        if let Some(code) = e.raw_os_error() {
            // Only the first counts: later ones follow from it.
            let _ = self.0.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The I/O error behind a Parquet error; the Parquet error itself if there is none.
    ///
    /// # Errors
    /// Means that `e` came from the encoding, not from the file.
    pub fn behind(&self, e: ParquetError) -> Result<io::Error, ParquetError> {
        match self.0.load(Ordering::Relaxed) {
            0 => match e {
                ParquetError::External(inner) => {
                    inner.downcast::<io::Error>().map(|io| *io).map_err(ParquetError::External)
                }
                other => Err(other),
            },
            code => Ok(io::Error::from_raw_os_error(code)),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct HashingWriter<W> {
    inner: W,
    hasher: blake3::Hasher,
    bytes: u64,
    fault: WriteFault,
}

impl<W: Write> HashingWriter<W> {
    /// Around `inner`, of which nothing was written yet.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: blake3::Hasher::new(), bytes: 0, fault: WriteFault::default() }
    }

    /// Where its first error will be found, also after the writer is gone.
    pub fn fault(&self) -> WriteFault {
        self.fault.clone()
    }

    /// The writer inside.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// The writer inside, the bytes that passed, and their blake3 (hex).
    pub fn finish(self) -> (W, u64, String) {
        (self.inner, self.bytes, self.hasher.finalize().to_hex().to_string())
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf).inspect_err(|e| self.fault.note(e))?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().inspect_err(|e| self.fault.note(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(28))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_systems_error_outlives_its_translation() {
        let mut w = HashingWriter::new(Full);
        let fault = w.fault();
        assert!(w.write_all(b"x").is_err());
        let text = ParquetError::General("fail to get inner writer".into());
        assert_eq!(fault.behind(text).unwrap().kind(), io::ErrorKind::StorageFull);
        assert!(WriteFault::default().behind(ParquetError::General("bad column".into())).is_err());
    }

    #[test]
    fn what_passes_is_counted_and_hashed() {
        let mut w = HashingWriter::new(Vec::new());
        w.write_all(b"abc").unwrap();
        let (inner, bytes, hash) = w.finish();
        assert_eq!((inner.as_slice(), bytes), (&b"abc"[..], 3));
        assert_eq!(hash, blake3::hash(b"abc").to_hex().to_string());
    }
}
