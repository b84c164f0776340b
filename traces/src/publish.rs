//! Publishing files so that a reader never sees half of one.
//!
//! A file is written under a temporary name in its own directory, synced, renamed over the final name, and the
//! directory is synced. After a kill or a power cut the final name holds either the old content, or the new one, or
//! nothing. Leftovers have names beginning with [`TEMP_PREFIX`].

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error, Result};

/// Beginning of every temporary name.
pub const TEMP_PREFIX: &str = ".tmp-";

/// A file being written that appears under its name only when [`AtomicFile::commit`] succeeds; dropped without that,
/// it leaves nothing. A symbolic link stays one: the file that it leads to is replaced. What is no file but a way to a
/// reader (a FIFO, a character device, an open descriptor such as `/dev/stdout`) is written to as it is.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// A new file, and the name that it will have.
    File(tempfile::NamedTempFile, PathBuf),
    /// A device, FIFO or descriptor.
    Stream(File),
}

impl AtomicFile {
    /// Begin to write `target`, whose directory must exist.
    ///
    /// # Errors
    /// If the directory cannot be written, a link leads nowhere it could be made, or `target` is a directory, a socket or a
    /// block device: these are neither files nor ways to a reader.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let target = target.into();
        let fail = |e| Error::io(&target, Doing::Writing, e);
        let to = match resolve(&target).map_err(fail)? {
            Place::Stream => To::Stream(File::options().append(true).open(&target).map_err(fail)?),
            Place::File(place) => {
                let temp = tempfile::Builder::new()
                    .prefix(TEMP_PREFIX)
                    .permissions(Permissions::from_mode(0o666)) // as an ordinary file: less the user's umask
                    .tempfile_in(parent_of(&place))
                    // The crate's own error names the temporary file, which means nothing to anybody.
                    .map_err(|e| fail(io::Error::from(e.kind())))?;
                To::File(temp, place)
            }
        };
        Ok(Self { target, to })
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Sync, rename to the final name, sync the directory.
    ///
    /// # Errors
    /// If any of the three fails; the temporary file is then removed.
    pub fn commit(self) -> Result<()> {
        let Self { target, to } = self;
        let fail = |e| Error::io(&target, Doing::Writing, e);
        match to {
            To::Stream(mut stream) => stream.flush().map_err(fail),
            To::File(mut temp, place) => {
                temp.flush().and_then(|()| temp.as_file().sync_all()).map_err(fail)?;
                temp.persist(&place).map_err(|e| fail(e.error))?;
                sync_dir(parent_of(&place))
            }
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::File(temp, _) => temp.as_file_mut().write(buf),
            To::Stream(stream) => stream.write(buf),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::File(temp, _) => temp.as_file_mut().flush(),
            To::Stream(stream) => stream.flush(),
        }
    }
}

/// Where an output goes.
enum Place {
    /// Under this name, by rename.
    File(PathBuf),
    /// Into what is there.
    Stream,
}

/// Follow links to the name that is to be written.
fn resolve(target: &Path) -> io::Result<Place> {
    let mut place = target.to_path_buf();
    // As many links as the kernel follows.
    for _ in 0..40 {
        let meta = match fs::symlink_metadata(&place) {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Place::File(place)),
            Err(e) => return Err(e),
        };
        let kind = meta.file_type();
        if kind.is_symlink() {
            // Links to open descriptors only look like paths; whatever is behind them must not be replaced.
            let dir = fs::canonicalize(parent_of(&place))?;
            if dir.starts_with("/proc") {
                return Ok(Place::Stream);
            }
            place = dir.join(fs::read_link(&place)?);
        } else if kind.is_char_device() || kind.is_fifo() {
            return Ok(Place::Stream);
        } else if kind.is_file() {
            return Ok(Place::File(place));
        } else if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        } else {
            let what = "a socket or block device, which is no place for a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links"))
}

/// Write a whole file atomically.
///
/// # Errors
/// As [`AtomicFile`].
///
/// ```
/// let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("report.md");
/// kreplay_traces::publish::write_atomically(&path, b"# Report\n").unwrap();
/// assert_eq!(std::fs::read(&path).unwrap(), b"# Report\n");
/// ```
pub fn write_atomically(target: impl AsRef<Path>, content: &[u8]) -> Result<()> {
    let target = target.as_ref();
    let mut file = AtomicFile::create(target)?;
    file.write_all(content).map_err(|e| Error::io(target, Doing::Writing, e))?;
    file.commit()
}

/// Create a directory and its parents.
///
/// # Errors
/// If one cannot be made.
pub fn create_dirs(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| Error::io(dir, Doing::Writing, e))
}

/// Make the names in a directory durable.
///
/// # Errors
/// If it cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> Result<()> {
    let sync = File::open(dir).and_then(|d| d.sync_all());
    match sync {
        // Some file systems cannot sync a directory; there renames are as durable as they get.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(|e| Error::io(dir, Doing::Writing, e)),
    }
}

/// Remove what a killed process left under temporary names in `dir` (not below it).
///
/// # Errors
/// If the directory cannot be read or a leftover cannot be removed.
pub fn remove_leftovers(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).map_err(|e| Error::io(dir, Doing::Reading, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(dir, Doing::Reading, e))?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            fs::remove_file(entry.path()).map_err(|e| Error::io(entry.path(), Doing::Removing, e))?;
        }
    }
    Ok(())
}

/// The directory a path lies in (`.` for a bare name).
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uncommitted_file_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_committed_file_replaces_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/file"), "old").unwrap();
        std::os::unix::fs::symlink("sub/file", at("link")).unwrap();
        std::os::unix::fs::symlink(at("link"), at("second")).unwrap();
        std::os::unix::fs::symlink("sub/new", at("dangling")).unwrap();
        write_atomically(at("second"), b"new").unwrap();
        write_atomically(at("dangling"), b"made").unwrap();
        assert!(["link", "second", "dangling"].iter().all(|n| fs::symlink_metadata(at(n)).unwrap().is_symlink()));
        assert_eq!(
            (fs::read(at("sub/file")).unwrap(), fs::read(at("sub/new")).unwrap()),
            (b"new".into(), b"made".into())
        );
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        assert!(write_atomically(at("loop"), b"").is_err());
    }

    #[test]
    fn open_descriptors_directories_and_sockets_are_not_replaced() {
        use std::os::fd::AsRawFd;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "before ").unwrap();
        let held = File::options().append(true).open(&path).unwrap();
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", held.as_raw_fd()), dir.path().join("out")).unwrap();
        write_atomically(dir.path().join("out"), b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before after");
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(write_atomically(&socket, b"x").is_err());
        assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
        assert!(write_atomically(dir.path(), b"x").is_err());
    }

    #[test]
    fn a_fifo_s_reader_gets_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|s| s.success()), "mkfifo is part of every system");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path)
        });
        write_atomically(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"text");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn leftovers_go_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".tmp-abc"), b"x").unwrap();
        fs::write(dir.path().join("keep"), b"x").unwrap();
        remove_leftovers(dir.path()).unwrap();
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["keep"]);
    }

    #[test]
    fn a_missing_directory_is_an_error_with_its_path() {
        let e = write_atomically("/nonexistent-dir/x", b"").unwrap_err();
        assert!(e.to_string().contains("/nonexistent-dir/x"), "{e}");
    }
}
