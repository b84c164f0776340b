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
    lock: Option<File>,
    /// It was not there before.
    made: bool,
}

impl Output {
    /// Takes a folder: new, empty, or one of ours that nobody else writes in.
    pub(crate) fn claim(path: &Path) -> Result<Self> {
        let marker = path.join(MARKER);
        let made = fs::symlink_metadata(path).is_err();
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() && !path.is_dir() => return Err(not_ours(path, "a link that leads nowhere")),
            Ok(_) if !path.is_dir() => return Err(not_ours(path, "a file")),
            Ok(_) if !marker.is_file() && !is_empty(path)? => {
                return Err(not_ours(path, "a folder with other things in it"));
            }
            Ok(_) => {}
            Err(_) => {
                fs::create_dir_all(path).map_err(|e| CliError::unwritable(path, &e))?;
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
        Ok(Self { path: path.to_owned(), lock: Some(lock), made })
    }
}

impl Drop for Output {
    /// A run that failed before it wrote anything leaves no folder behind.
    fn drop(&mut self) {
        if !self.made {
            return;
        }
        // Only succeeds where it is empty.
        let _ = fs::remove_dir(self.path.join("traces"));
        let only_marker = fs::read_dir(&self.path)
            .is_ok_and(|entries| entries.flatten().all(|e| e.file_name().as_encoded_bytes() == MARKER.as_bytes()));
        if only_marker {
            self.lock = None;
            let _ = fs::remove_file(self.path.join(MARKER));
            let _ = fs::remove_dir(&self.path);
        }
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
        let output = Output::claim(&path).unwrap();
        fs::create_dir(path.join("traces")).unwrap();
        drop(output);
        assert!(!path.exists(), "nothing was written into it");
        let output = Output::claim(&path).unwrap();
        fs::write(path.join("report.md"), "x").unwrap();
        drop(output);
        drop(Output::claim(&path).unwrap());
        assert!(path.join("report.md").exists());
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
