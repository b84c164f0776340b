//! Which file a name means at a point of the trace.
//!
//! A file is identified by its path with a generation: after an unlink, a rename away or over it, the next creation of
//! the name is another file, while descriptors of the old one keep it. Renaming a directory moves every name in it.

use rustc_hash::FxHashMap;

use super::paths;
use crate::program::FileId;

/// What the trace shows of one file so far.
#[derive(Clone, Debug)]
pub(super) struct FileState {
    /// Path at its first use, as reported.
    pub(super) path: String,
    /// Path now.
    pub(super) current: String,
    /// Containing directory at its first use.
    pub(super) parent: Option<FileId>,
    /// Seen to be a directory.
    pub(super) directory: bool,
    /// Its last name was removed.
    pub(super) removed: bool,
    /// The name is there now (meaningful in the second pass, which knows what was there before).
    pub(super) present: bool,
    /// Size now, bytes.
    pub(super) size: u64,
    /// Largest size ever.
    pub(super) max_size: u64,
    /// End of the furthest byte that an operation reaches.
    pub(super) reach: u64,
    /// Input line of that operation.
    pub(super) reach_line: i64,
    /// First file of its name, so that the side table speaks of it.
    pub(super) first_generation: bool,
    /// A descriptor that the trace does not explain; not a file unless it is seen to seek.
    pub(super) guessed: bool,
    /// Names that lead to it.
    pub(super) links: u32,
}

impl FileState {
    /// The operation of input line `line` reaches up to `end`.
    pub(super) fn reaches(&mut self, end: u64, line: i64) {
        if end > self.reach {
            (self.reach, self.reach_line) = (end, line);
        }
    }

    /// Set the size.
    pub(super) fn set_size(&mut self, bytes: u64) {
        self.size = bytes;
        self.max_size = self.max_size.max(bytes);
    }

    /// The file is at least this large now.
    pub(super) fn grow_to(&mut self, bytes: u64) {
        if bytes > self.size {
            self.set_size(bytes);
        }
    }
}

/// All files and the names that lead to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    files: Vec<FileState>,
    by_path: FxHashMap<String, FileId>,
    roots: Vec<String>,
}

impl Names {
    /// Only files under `roots` are of the model; empty = all.
    pub(super) fn new(roots: &[String]) -> Self {
        Self { roots: roots.iter().map(|r| paths::absolute("/", r)).collect(), ..Self::default() }
    }

    /// Whether files of this absolute path are simulated.
    pub(super) fn is_modelled(&self, path: &str) -> bool {
        !paths::is_special(path) && (self.roots.is_empty() || self.roots.iter().any(|r| paths::is_under(path, r)))
    }

    pub(super) fn get(&self, file: FileId) -> &FileState {
        &self.files[file as usize]
    }

    pub(super) fn get_mut(&mut self, file: FileId) -> &mut FileState {
        &mut self.files[file as usize]
    }

    pub(super) fn files(&self) -> &[FileState] {
        &self.files
    }

    /// The file that has this name, or had it last.
    pub(super) fn lookup(&self, path: &str) -> Option<FileId> {
        self.by_path.get(path).copied()
    }

    /// The file of this name, made known (with its directories first) if it is new. `successor`: a removed file is
    /// not meant, a new one of its name is.
    pub(super) fn intern(&mut self, path: &str, successor: bool) -> FileId {
        let known = self.lookup(path);
        match known {
            Some(file) if !(successor && self.get(file).removed) => return file,
            _ => {}
        }
        let parent = match paths::parent(path) {
            Some(dir) if self.is_modelled(dir) => {
                let dir = self.intern(dir, true);
                self.get_mut(dir).directory = true;
                Some(dir)
            }
            _ => None,
        };
        let file = self.push(path.to_owned(), parent, known.is_none());
        self.by_path.insert(path.to_owned(), file);
        file
    }

    /// A file without a name (unknown descriptor).
    pub(super) fn anonymous(&mut self, label: String) -> FileId {
        let file = self.push(label, None, false);
        self.get_mut(file).guessed = true;
        file
    }

    fn push(&mut self, path: String, parent: Option<FileId>, first_generation: bool) -> FileId {
        let id = u32::try_from(self.files.len()).expect("file count is checked by the caller through CompileError");
        self.files.push(FileState {
            current: path.clone(),
            path,
            parent,
            directory: false,
            removed: false,
            present: false,
            size: 0,
            max_size: 0,
            reach: 0,
            reach_line: 0,
            first_generation,
            guessed: false,
            links: 1,
        });
        id
    }

    /// Remove a name. Returns whether it was the file's last.
    pub(super) fn remove(&mut self, file: FileId, path: &str) -> bool {
        let state = self.get_mut(file);
        if state.links > 1 {
            state.links -= 1;
            self.by_path.remove(path);
            return false;
        }
        state.removed = true;
        state.present = false;
        true
    }

    /// Another name for `file`.
    pub(super) fn link(&mut self, file: FileId, path: &str) {
        self.by_path.insert(path.to_owned(), file);
        self.get_mut(file).links += 1;
    }

    /// Give `file` the name `to`, which is free (the caller removed what was there); names below a directory follow.
    pub(super) fn rename(&mut self, file: FileId, from: &str, to: &str) {
        self.by_path.remove(from);
        self.by_path.insert(to.to_owned(), file);
        to.clone_into(&mut self.get_mut(file).current);
        if !self.get(file).directory {
            return;
        }
        let mut below: Vec<String> =
            self.by_path.keys().filter(|p| p.as_str() != from && paths::is_under(p, from)).cloned().collect();
        below.sort_unstable();
        for old in below {
            let Some(child) = self.by_path.remove(&old) else { continue };
            let new = format!("{to}{}", &old[from.len()..]);
            if self.get(child).current == old {
                new.clone_into(&mut self.get_mut(child).current);
            }
            self.by_path.insert(new, child);
        }
    }

    /// Exchange two names (RENAME_EXCHANGE).
    pub(super) fn exchange(&mut self, a: FileId, b: FileId) {
        let (pa, pb) = (self.get(a).current.clone(), self.get(b).current.clone());
        self.by_path.insert(pa.clone(), b);
        self.by_path.insert(pb.clone(), a);
        self.get_mut(a).current = pb;
        self.get_mut(b).current = pa;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_and_directory_renames() {
        let mut n = Names::new(&["/d".to_owned()]);
        let a = n.intern("/d/s/a", true);
        assert_eq!(n.files().len(), 3, "the root and the directory come first");
        assert_eq!(n.intern("/d/s/a", true), a);
        assert!(n.remove(a, "/d/s/a"));
        assert_eq!(n.intern("/d/s/a", false), a, "a failed lookup means the file that was there");
        let b = n.intern("/d/s/a", true);
        assert_ne!(a, b);
        let dir = n.lookup("/d/s").expect("interned as parent");
        n.rename(dir, "/d/s", "/d/t");
        assert_eq!(n.lookup("/d/t/a"), Some(b));
        assert_eq!(n.lookup("/d/s/a"), None);
        assert_eq!(n.get(b).current, "/d/t/a");
        assert_eq!(n.get(b).path, "/d/s/a");
        assert!(!n.is_modelled("/e") && !n.is_modelled("/dev/sda"));
    }
}
