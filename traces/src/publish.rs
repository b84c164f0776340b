//! Publishing files so that a reader never sees half of one.
//!
//! A file is written under a temporary name in its own directory, synced, renamed over the final name, and the
//! directory is synced. After a kill or a power cut the final name holds either the old content, or the new one, or
//! nothing. Leftovers have names beginning with [`TEMP_PREFIX`].

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Doing, Error, Result};

/// Beginning of every temporary name.
pub const TEMP_PREFIX: &str = ".tmp-";

/// A file being written that appears under its name only when [`AtomicFile::commit`] succeeds; dropped without that,
/// it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temp: tempfile::NamedTempFile,
}

impl AtomicFile {
    /// Begin to write `target`, whose directory must exist.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let target = target.into();
        let dir = parent_of(&target);
        let temp = tempfile::Builder::new()
            .prefix(TEMP_PREFIX)
            .permissions(Permissions::from_mode(0o666)) // as an ordinary file: less the user's umask
            .tempfile_in(dir)
            // The crate's own error names the temporary file, which means nothing to anybody.
            .map_err(|e| Error::io(&target, Doing::Writing, io::Error::from(e.kind())))?;
        Ok(Self { target, temp })
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
        let Self { target, mut temp } = self;
        temp.flush().and_then(|()| temp.as_file().sync_all()).map_err(|e| Error::io(&target, Doing::Writing, e))?;
        temp.persist(&target).map_err(|e| Error::io(&target, Doing::Writing, e.error))?;
        sync_dir(parent_of(&target))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.temp.as_file_mut().write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.temp.as_file_mut().flush()
    }
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
