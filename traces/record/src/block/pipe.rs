//! Reading a trace pipe in a thread, to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::fcntl::OFlag;

/// How long to wait for more when the pipe is empty: short beside the time in which a buffer fills.
const PAUSE: Duration = Duration::from_millis(20);

/// What becomes of a line of the pipe (without its end): written, or left out.
pub(super) trait Lines: Send + 'static {
    /// Appends what is to be written of a line; false leaves it out.
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool;
}

/// Every line as it is, without comments.
pub(super) struct AsItIs;

impl Lines for AsItIs {
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(line);
        !line.is_empty() && line[0] != b'#'
    }
}

/// A pipe being read.
pub(super) struct Pipe {
    stop: Arc<AtomicBool>,
    lines: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
    target: PathBuf,
}

impl Pipe {
    /// Begins to read `source` to `target`.
    pub(super) fn start(source: &Path, target: &Path, lines: impl Lines) -> io::Result<Self> {
        let pipe = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(source)?;
        let file = File::create(target)?;
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (flag, counter) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::Builder::new()
            .name("trace-pipe".into())
            .spawn(move || copy(pipe, file, lines, &flag, &counter))?;
        Ok(Self { stop, lines: count, thread: Some(thread), target: target.to_owned() })
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Reads on until the pipe is empty, and ends.
    pub(super) fn finish(&mut self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(self.lines()) };
        match thread.join() {
            Ok(Ok(())) => Ok(self.lines()),
            Ok(Err(e)) => Err(format!("{}: {e}", self.target.display())),
            Err(_) => Err(format!("{}: its thread ended early", self.target.display())),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn copy(
    mut pipe: impl Read,
    file: File,
    mut lines: impl Lines,
    stop: &AtomicBool,
    count: &AtomicU64,
) -> io::Result<()> {
    let (mut chunk, mut rest, mut text) = (vec![0_u8; 64 << 10], Vec::new(), Vec::new());
    let mut file = BufWriter::with_capacity(256 << 10, file);
    loop {
        // Asked before reading: what was written before the stop is still read.
        let last = stop.load(Ordering::Acquire);
        let got = match pipe.read(&mut chunk) {
            Ok(n) => n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(e) => return Err(e),
        };
        if got == 0 {
            if last {
                break;
            }
            file.flush()?;
            std::thread::sleep(PAUSE);
            continue;
        }
        let mut start = 0;
        while let Some(end) = chunk[start..got].iter().position(|b| *b == b'\n') {
            rest.extend_from_slice(&chunk[start..start + end]);
            emit(&mut lines, &rest, &mut text, &mut file, count)?;
            rest.clear();
            start += end + 1;
        }
        rest.extend_from_slice(&chunk[start..got]);
    }
    if !rest.is_empty() {
        emit(&mut lines, &rest, &mut text, &mut file, count)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

fn emit(
    lines: &mut impl Lines,
    line: &[u8],
    text: &mut Vec<u8>,
    file: &mut impl Write,
    count: &AtomicU64,
) -> io::Result<()> {
    text.clear();
    if lines.line(line, text) {
        text.push(b'\n');
        file.write_all(text)?;
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its pieces one by one, then nothing.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let piece = self.0.remove(0);
            buf[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn lines_cut_over_reads_come_out_whole_and_comments_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let (stop, count) = (AtomicBool::new(true), AtomicU64::new(0));
        let pieces = Pieces(vec![b"# head\nfir", b"st\nse", b"cond\nlast"]);
        copy(pieces, File::create(&path).unwrap(), AsItIs, &stop, &count).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first\nsecond\nlast\n");
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_pipe_that_breaks_is_an_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("t")).unwrap();
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        assert!(copy(Broken, file, AsItIs, &stop, &count).is_err());
    }
}
