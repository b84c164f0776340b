//! Names: stat and its kin, create, remove, rename, and calls that failed.

use kreplay_traces::event::SyscallRow;

use super::fd::has;
use super::waits::is_wait;
use super::{World, args};
use crate::program::{FileId, Op};

impl World<'_> {
    /// Calls that look names up or change them. Returns whether it was one.
    pub(super) fn name_call(&mut self, r: &SyscallRow<'_>) -> bool {
        match r.call {
            "stat" | "lstat" | "stat64" | "lstat64" | "oldstat" | "oldlstat" | "newfstatat" | "fstatat64" | "statx"
            | "fstat" | "fstat64" | "oldfstat" => self.stat(r),
            "access" | "faccessat" | "faccessat2" | "readlink" | "readlinkat" | "statfs" | "statfs64" | "chmod"
            | "fchmodat" | "fchmodat2" | "chown" | "lchown" | "chown32" | "lchown32" | "fchownat" | "utime"
            | "utimes" | "utimensat" | "futimesat" | "getxattr" | "lgetxattr" | "listxattr" | "llistxattr"
            | "setxattr" | "lsetxattr" | "removexattr" | "lremovexattr" | "name_to_handle_at" | "inotify_add_watch"
            | "chroot" => {
                self.look_up(r);
            }
            "chdir" => {
                if let Some(path) = r.path.map(|p| self.locate(r, p, None)) {
                    self.look_up(r);
                    self.tasks.set_cwd(self.task, path);
                }
            }
            "fchdir" => {
                if let Some(file) = self.file_of(r, r.fd, r.path) {
                    let path = self.names.get(file).current.clone();
                    self.tasks.set_cwd(self.task, path);
                }
            }
            "unlink" | "unlinkat" | "rmdir" => self.unlink(r),
            "rename" | "renameat" | "renameat2" => self.rename(r),
            "link" | "linkat" => self.link(r),
            "mkdir" | "mkdirat" => self.create_node(r, r.path, r.fd, true),
            "symlink" => self.create_node(r, r.path2.or(r.path), None, false),
            "symlinkat" => self.create_node(r, r.path2.or(r.path), r.fd2.or(r.fd), false),
            "mknod" | "mknodat" if has(r, "S_IFREG") => self.create_node(r, r.path, r.fd, false),
            _ => return false,
        }
        true
    }

    fn stat(&mut self, r: &SyscallRow<'_>) {
        let on_descriptor = matches!(r.call, "fstat" | "fstat64" | "oldfstat") || has(r, "AT_EMPTY_PATH");
        let by_name = r.path.filter(|p| !p.is_empty() && !on_descriptor);
        let file = match by_name {
            Some(_) => self.look_up(r),
            // The inode of an open file is in memory: no lookup, only what it tells of the size.
            None => self.file_of(r, r.fd, r.path.filter(|p| !p.is_empty())),
        };
        let Some(file) = file else { return };
        if has(r, "S_IFDIR") {
            self.names.get_mut(file).directory = true;
        }
        // The strace parser has the size of a stat in the length column.
        let size = args::number(r.args, "st_size").or_else(|| args::number(r.args, "stx_size")).or(r.len_bytes);
        if let Some(bytes) = size.and_then(|s| u64::try_from(s).ok()) {
            if by_name.is_none() {
                self.survey.seeks(file);
            }
            if !has(r, "S_IFLNK") {
                self.size_seen(file, bytes);
            }
        }
    }

    /// A lookup of the call's path that found it.
    fn look_up(&mut self, r: &SyscallRow<'_>) -> Option<FileId> {
        let path = r.path.filter(|p| !p.is_empty())?;
        let path = self.locate(r, path, r.fd);
        if !self.names.is_modelled(&path) {
            self.outside(r);
            return None;
        }
        let file = self.intern(&path, true);
        self.found(file);
        self.emit(Op::Stat { file, negative: false });
        Some(file)
    }

    fn unlink(&mut self, r: &SyscallRow<'_>) {
        let Some(path) = r.path.map(|p| self.locate(r, p, r.fd)) else { return };
        if !self.names.is_modelled(&path) {
            return self.outside(r);
        }
        let file = self.intern(&path, true);
        self.found(file);
        if r.call == "rmdir" || has(r, "AT_REMOVEDIR") {
            self.names.get_mut(file).directory = true;
        }
        if self.names.remove(file, &path) {
            self.emit(Op::Unlink { file });
        } else {
            self.emit(Op::Stat { file, negative: false });
        }
    }

    fn rename(&mut self, r: &SyscallRow<'_>) {
        let (Some(from), Some(to)) = (r.path, r.path2) else { return };
        let (from, to) = (self.locate(r, from, r.fd), self.locate(r, to, r.fd2));
        if !self.names.is_modelled(&from) || !self.names.is_modelled(&to) {
            self.notes.count("renames into or out of the model (not replayed)");
            return self.outside(r);
        }
        if from == to {
            return;
        }
        let file = self.intern(&from, true);
        self.found(file);
        let target = self.names.lookup(&to).filter(|t| *t != file && !self.names.get(*t).removed);
        if has(r, "RENAME_EXCHANGE") {
            if let Some(other) = target {
                self.names.exchange(file, other);
            }
        } else {
            if let Some(old) = target {
                let there = self.names.get(old).present;
                if self.names.remove(old, &to) && there {
                    self.emit(Op::Unlink { file: old });
                }
            }
            self.names.rename(file, &from, &to);
        }
        self.emit(Op::Stat { file, negative: false });
    }

    fn link(&mut self, r: &SyscallRow<'_>) {
        let (Some(from), Some(to)) = (r.path, r.path2) else { return };
        let (from, to) = (self.locate(r, from, r.fd), self.locate(r, to, r.fd2));
        if !self.names.is_modelled(&from) || !self.names.is_modelled(&to) {
            return self.outside(r);
        }
        let file = self.intern(&from, true);
        self.found(file);
        self.names.link(file, &to);
        self.emit(Op::Stat { file, negative: false });
    }

    /// mkdir and the like: a new inode and a new name, as an open that creates and a close.
    fn create_node(&mut self, r: &SyscallRow<'_>, path: Option<&str>, dirfd: Option<i64>, directory: bool) {
        let Some(path) = path.map(|p| self.locate(r, p, dirfd)) else { return };
        if !self.names.is_modelled(&path) {
            return self.outside(r);
        }
        let file = self.intern(&path, true);
        if let Some(dir) = self.names.get(file).parent {
            self.found(dir);
        }
        self.survey.size(file).absent();
        let state = self.names.get_mut(file);
        state.directory |= directory;
        state.present = true;
        let ofd = self.new_ofd();
        self.emit(Op::Open { ofd, file, create: true, truncate: false });
        self.emit(Op::Close { ofd });
    }

    /// A failed call moved no data; a failed lookup still walked the path, an interrupted wait still took its time.
    pub(super) fn failed(&mut self, r: &SyscallRow<'_>) {
        if is_wait(r.call) {
            if !r.unfinished {
                self.external(r);
            }
            return;
        }
        if !looks_up(r.call) || r.unfinished {
            return;
        }
        let Some(path) = r.path.filter(|p| !p.is_empty()) else { return };
        let path = self.locate(r, path, r.fd);
        if !self.names.is_modelled(&path) {
            return;
        }
        match r.errno {
            Some("ENOENT") => {
                // Creating calls fail so for want of a directory, which says nothing new of the name itself.
                let file = self.intern(&path, false);
                self.survey.size(file).absent();
                self.emit(Op::Stat { file, negative: true });
            }
            Some(
                "EEXIST" | "EISDIR" | "EACCES" | "EPERM" | "ENOTEMPTY" | "EROFS" | "ETXTBSY" | "ELOOP" | "EINVAL"
                | "ENODATA",
            ) => {
                let file = self.intern(&path, true);
                self.found(file);
                if matches!(r.errno, Some("EISDIR" | "ENOTEMPTY")) {
                    self.names.get_mut(file).directory = true;
                }
                self.emit(Op::Stat { file, negative: false });
            }
            _ => {}
        }
    }
}

/// Calls whose path argument is looked up before they can fail.
fn looks_up(call: &str) -> bool {
    matches!(
        call,
        "open"
            | "openat"
            | "openat2"
            | "creat"
            | "stat"
            | "lstat"
            | "stat64"
            | "lstat64"
            | "newfstatat"
            | "fstatat64"
            | "statx"
            | "access"
            | "faccessat"
            | "faccessat2"
            | "readlink"
            | "readlinkat"
            | "unlink"
            | "unlinkat"
            | "rmdir"
            | "mkdir"
            | "mkdirat"
            | "rename"
            | "renameat"
            | "renameat2"
            | "execve"
            | "execveat"
            | "chdir"
            | "truncate"
            | "truncate64"
            | "statfs"
            | "statfs64"
            | "getxattr"
            | "lgetxattr"
            | "listxattr"
            | "llistxattr"
            | "removexattr"
            | "lremovexattr"
    )
}
