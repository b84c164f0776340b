//! The working directory of an ingest: `NAME.partial` beside the final `NAME`, with a lock and a journal.
//!
//! The journal lists the finished sources and their parts. An ingest that was killed leaves the directory; the next
//! one keeps what the journal vouches for and removes everything else. The final directory appears by rename.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::manifest::{FORMAT, MANIFEST_FILE, PartInfo, SourceInfo};
use crate::error::{Doing, Error, Result};
use crate::publish;
use crate::schema::{SCHEMA_VERSION, TABLES};

/// Journal of a working directory, and by that its marker.
const JOURNAL_FILE: &str = "ingest.json";
const LOCK_FILE: &str = "ingest.lock";

/// What is finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    format: String,
    schema_version: u32,
    /// Finished sources.
    pub(super) sources: Vec<SourceInfo>,
    /// Their parts; `source` indexes `sources`.
    pub(super) parts: Vec<PartInfo>,
}

impl Journal {
    fn new() -> Self {
        Self { format: FORMAT.to_owned(), schema_version: SCHEMA_VERSION, sources: Vec::new(), parts: Vec::new() }
    }
}

/// A locked working directory.
pub(super) struct WorkDir {
    target: PathBuf,
    path: PathBuf,
    _lock: File,
    /// What an earlier, unfinished run left.
    pub(super) found: Journal,
}

impl WorkDir {
    /// Lock the working directory for `target`, after checking that `target` may be written.
    ///
    /// With `fresh`, what an earlier run left is thrown away.
    pub(super) fn open(target: &Path, replace: bool, fresh: bool) -> Result<Self> {
        let target = without_trailing_slash(target);
        check_target(&target, replace)?;
        publish::create_dirs(publish::parent_of(&target))?;
        let path = partial_path(&target);
        let lock = lock(&path, &target)?;
        let found = match read_journal(&path)? {
            Some(journal) if !fresh => journal,
            _ => Journal::new(),
        };
        let dir = Self { target, path, _lock: lock, found };
        dir.sweep()?;
        dir.write_journal(&dir.found)?;
        Ok(dir)
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Record what is finished.
    pub(super) fn write_journal(&self, journal: &Journal) -> Result<()> {
        let json =
            serde_json::to_vec_pretty(journal).map_err(|e| Error::Encode { table: "journal", why: e.to_string() })?;
        publish::write_atomically(self.path.join(JOURNAL_FILE), &json)
    }

    /// A journal of the sources and parts given.
    pub(super) fn journal(sources: &[SourceInfo], parts: &[PartInfo]) -> Journal {
        Journal { sources: sources.to_vec(), parts: parts.to_vec(), ..Journal::new() }
    }

    /// Remove every file that the journal does not vouch for.
    fn sweep(&self) -> Result<()> {
        publish::remove_leftovers(&self.path)?;
        match fs::remove_file(self.path.join(MANIFEST_FILE)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(self.path.join(MANIFEST_FILE), Doing::Removing, e));
            }
            _ => {}
        }
        for table in TABLES {
            let dir = self.path.join(table);
            if !dir.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&dir).map_err(|e| Error::io(&dir, Doing::Reading, e))? {
                let entry = entry.map_err(|e| Error::io(&dir, Doing::Reading, e))?;
                let name = format!("{table}/{}", entry.file_name().to_string_lossy());
                if !self.found.parts.iter().any(|p| p.file == name) {
                    fs::remove_file(entry.path()).map_err(|e| Error::io(entry.path(), Doing::Removing, e))?;
                }
            }
        }
        Ok(())
    }

    /// Remove parts of an earlier run that this one did not take over.
    pub(super) fn remove_unused(&self, used: &[PartInfo]) -> Result<()> {
        for part in self.found.parts.iter().filter(|p| !used.iter().any(|u| u.file == p.file)) {
            let path = self.path.join(&part.file);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io(path, Doing::Removing, e)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Give the directory its final name. The manifest must have been written.
    pub(super) fn publish(self) -> Result<PathBuf> {
        let old = self.target.with_file_name(format!("{}.old", file_name(&self.target)));
        let replacing = self.target.join(MANIFEST_FILE).exists();
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(|e| Error::io(to, Doing::Writing, e));
        if replacing {
            remove_tree(&old)?;
            rename(&self.target, &old)?;
        }
        rename(&self.path, &self.target)?;
        publish::sync_dir(publish::parent_of(&self.target))?;
        if replacing {
            remove_tree(&old)?;
        }
        // Only now: a kill before the rename must find the journal, and while the lock file existed nobody else could
        // begin to write here.
        for name in [JOURNAL_FILE, LOCK_FILE] {
            let path = self.target.join(name);
            fs::remove_file(&path).map_err(|e| Error::io(&path, Doing::Removing, e))?;
        }
        Ok(self.target)
    }

    /// Remove the working directory.
    pub(super) fn discard(self) -> Result<()> {
        remove_tree(&self.path)
    }
}

/// The working directory's name for a target.
pub(super) fn partial_path(target: &Path) -> PathBuf {
    target.with_file_name(format!("{}.partial", file_name(target)))
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "trace".to_owned(), |n| n.to_string_lossy().into_owned())
}

fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(path, Doing::Removing, e)),
        _ => Ok(()),
    }
}

/// Refuse targets that are not ours, and finished ones unless they may be replaced.
fn check_target(target: &Path, replace: bool) -> Result<()> {
    let ours = match fs::symlink_metadata(target) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(target, Doing::Writing, e)),
        Ok(meta) if !meta.is_dir() => false,
        Ok(_) => {
            let mut entries = fs::read_dir(target).map_err(|e| Error::io(target, Doing::Reading, e))?;
            if entries.next().is_none() {
                return Ok(());
            }
            is_marked(&target.join(MANIFEST_FILE))
        }
    };
    match (ours, replace) {
        (false, _) => Err(Error::NotOurs { path: target.to_path_buf() }),
        (true, false) => Err(Error::Exists { path: target.to_path_buf() }),
        (true, true) => Ok(()),
    }
}

/// The file is JSON with our format marker.
fn is_marked(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Marker {
        format: String,
    }
    fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok())
        .is_some_and(|m| m.format == FORMAT)
}

/// Take the lock, making the directory if need be.
fn lock(path: &Path, target: &Path) -> Result<File> {
    let lock_path = path.join(LOCK_FILE);
    // The directory may be renamed away between opening and locking; then the lock is on a file that has another name.
    for _ in 0..100 {
        match fs::create_dir(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let foreign = !path.is_dir()
                    || (!lock_path.exists()
                        && !is_marked(&path.join(JOURNAL_FILE))
                        && fs::read_dir(path).is_ok_and(|mut d| d.next().is_some()));
                if foreign {
                    return Err(Error::NotOurs { path: path.to_path_buf() });
                }
            }
            Err(e) => return Err(Error::io(path, Doing::Writing, e)),
        }
        let file = match File::options().create(true).truncate(false).write(true).open(&lock_path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|e| Error::io(&lock_path, Doing::Locking, e))?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: target.to_path_buf() }),
            Err(TryLockError::Error(e)) => return Err(Error::io(&lock_path, Doing::Locking, e)),
        }
        let locked = file.metadata().map_err(|e| Error::io(&lock_path, Doing::Locking, e))?.ino();
        if fs::metadata(&lock_path).is_ok_and(|m| m.ino() == locked) {
            return Ok(file);
        }
    }
    Err(Error::Locked { path: target.to_path_buf() })
}

/// The journal of an earlier run, unless there is none, it is damaged, or it is of another version.
fn read_journal(path: &Path) -> Result<Option<Journal>> {
    let file = path.join(JOURNAL_FILE);
    let bytes = match fs::read(&file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|e| Error::io(&file, Doing::Reading, e))?,
    };
    let journal = serde_json::from_slice::<Journal>(&bytes).ok();
    Ok(journal.filter(|j| j.format == FORMAT && j.schema_version == SCHEMA_VERSION && j.parts_are_whole(path)))
}

impl Journal {
    /// All parts exist with their length; their content is verified when the trace is opened.
    fn parts_are_whole(&self, dir: &Path) -> bool {
        self.parts.iter().all(|p| fs::metadata(dir.join(&p.file)).is_ok_and(|m| m.is_file() && m.len() == p.bytes))
    }
}
