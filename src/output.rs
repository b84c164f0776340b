//! The output folder: ours or nobody's, and only one program writes in it at a time.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file that marks a folder as ours and carries the lock.
const MARKER: &str = ".kreplay";
const MARKER_TEXT: &str = "Output of kreplay. This file marks the folder and carries its lock.\n";

/// A folder that this process may write in until it is dropped.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    /// This process made the folder.
    new: bool,
    _lock: File,
}

impl Drop for Output {
    /// A run that failed before it wrote anything leaves no empty folder behind.
    fn drop(&mut self) {
        let only_ours = || {
            let mut entries = fs::read_dir(&self.path).ok()?;
            Some(entries.all(|e| e.is_ok_and(|e| e.file_name() == MARKER)))
        };
        if self.new && only_ours() == Some(true) {
            // If that fails there is an empty folder, no more.
            let _ = fs::remove_file(self.path.join(MARKER)).and_then(|()| fs::remove_dir(&self.path));
        }
    }
}

impl Output {
    /// Takes a folder: new, empty, or one of ours that nobody else writes in.
    pub(crate) fn claim(path: &Path) -> Result<Self> {
        let marker = path.join(MARKER);
        let mut new = false;
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() && !path.is_dir() => return Err(not_ours(path, "a link that leads nowhere")),
            Ok(_) if !path.is_dir() => return Err(not_ours(path, "a file")),
            Ok(_) if !marker.is_file() && !is_empty(path)? => {
                return Err(not_ours(path, "a folder with other things in it"));
            }
            Ok(_) => {}
            Err(_) => {
                fs::create_dir_all(path).map_err(|e| CliError::unwritable(path, &e))?;
                new = true;
            }
        }
        let open = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&marker);
        let mut lock = open.map_err(|e| CliError::unwritable(&marker, &e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CliError::new(Exit::Output, format!("another kreplay writes in {}", path.display()))
                    .help("wait for it to end, or choose another folder with -o"));
            }
            Err(TryLockError::Error(e)) => return Err(CliError::unwritable(&marker, &e)),
        }
        let empty = lock.metadata().is_ok_and(|m| m.len() == 0);
        if empty {
            lock.write_all(MARKER_TEXT.as_bytes()).map_err(|e| CliError::unwritable(&marker, &e))?;
        }
        Ok(Self { path: path.to_owned(), new, _lock: lock })
    }
}

fn not_ours(path: &Path, what: &str) -> CliError {
    CliError::new(Exit::Output, format!("{} is {what}, not an output folder of kreplay", path.display()))
        .note("nothing in it was touched")
        .help("choose a new or an empty folder with -o")
}

fn is_empty(path: &Path) -> Result<bool> {
    let mut entries = fs::read_dir(path).map_err(|e| CliError::unwritable(path, &e))?;
    Ok(entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_empty_and_own_folders_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        drop(Output::claim(&path).unwrap());
        assert!(!path.exists(), "a new folder that nothing was written in goes again");
        let held = Output::claim(&path).unwrap();
        fs::write(path.join("report.md"), "x").unwrap();
        drop(held);
        drop(Output::claim(&path).unwrap());
        assert!(path.join("report.md").is_file());
    }

    #[test]
    fn foreign_folders_and_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "x").unwrap();
        let e = Output::claim(dir.path()).unwrap_err();
        assert_eq!(e.exit, Exit::Output);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let e = Output::claim(&dir.path().join("thesis.tex")).unwrap_err();
        assert!(e.what.contains("is a file"), "{}", e.what);
    }

    #[test]
    fn a_folder_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let _held = Output::claim(&path).unwrap();
        let e = Output::claim(&path).unwrap_err();
        assert!(e.what.contains("another kreplay"), "{}", e.what);
    }
}
