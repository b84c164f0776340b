//! Descriptors: open, close, dup, pipe and what resolves a descriptor argument.

use kreplay_traces::event::SyscallRow;

use super::{World, args, paths};
use crate::compile::fds::{DescId, Target};
use crate::program::{FileId, Op};

impl World<'_> {
    /// Calls that make or drop descriptors. Returns whether it was one.
    pub(super) fn fd_call(&mut self, r: &SyscallRow<'_>) -> bool {
        match r.call {
            "open" | "openat" | "openat2" | "creat" => self.open(r),
            "close" => {
                if let Some(fd) = r.fd {
                    let table = self.table();
                    let gone = self.fds.close(table, fd);
                    self.closed(gone);
                }
            }
            "close_range" => {
                let first = args::nth(r.args, 0).and_then(args::leading_number).or(r.fd);
                let last = args::nth(r.args, 1).and_then(args::leading_number).or(r.fd2);
                // "To the last one" is printed as ~0U, which is -1 as a descriptor.
                let last = last.filter(|l| *l >= 0);
                if let Some(first) = first {
                    let table = self.table();
                    for fd in self.fds.range(table, first, last.unwrap_or(i64::MAX)) {
                        let gone = self.fds.close(table, fd);
                        self.closed(gone);
                    }
                }
            }
            "dup" | "dup2" | "dup3" => self.duplicate(r, has(r, "O_CLOEXEC")),
            "fcntl" | "fcntl64" => self.fcntl(r),
            "pipe" | "pipe2" => {
                let pair = r.fd.zip(r.fd2).or_else(|| args::descriptor_pair(r.args));
                if let Some((reader, writer)) = pair {
                    let stream = self.fds.new_stream();
                    let cloexec = has(r, "O_CLOEXEC");
                    self.put(reader, Target::Stream { read: Some(stream), write: None }, cloexec);
                    self.put(writer, Target::Stream { read: None, write: Some(stream) }, cloexec);
                }
            }
            "socketpair" => {
                // r.fd may be one of the arguments before the pair, so the printed pair is preferred.
                if let Some((a, b)) = args::descriptor_pair(r.args).or_else(|| r.fd.zip(r.fd2)) {
                    let (ab, ba) = (self.fds.new_stream(), self.fds.new_stream());
                    let cloexec = has(r, "SOCK_CLOEXEC");
                    self.put(a, Target::Stream { read: Some(ba), write: Some(ab) }, cloexec);
                    self.put(b, Target::Stream { read: Some(ab), write: Some(ba) }, cloexec);
                }
            }
            "eventfd" | "eventfd2" => {
                let stream = self.fds.new_stream();
                self.put_result(r, Target::Stream { read: Some(stream), write: Some(stream) }, has(r, "EFD_CLOEXEC"));
            }
            "accept" | "accept4" => {
                self.put_result(r, Target::Other, has(r, "SOCK_CLOEXEC"));
                self.external(r);
            }
            "socket" | "epoll_create" | "epoll_create1" | "signalfd" | "signalfd4" | "timerfd_create"
            | "inotify_init" | "inotify_init1" | "memfd_create" | "userfaultfd" | "perf_event_open" | "pidfd_open"
            | "io_uring_setup" | "bpf" | "fanotify_init" => {
                if r.call == "io_uring_setup" {
                    self.notes.count("io_uring seen: its requests are invisible to system-call traces");
                }
                self.put_result(r, Target::Other, r.flags.is_some_and(|f| f.contains("CLOEXEC")));
            }
            _ => return false,
        }
        true
    }

    fn table(&self) -> usize {
        self.tasks.get(self.task).table
    }

    fn put(&mut self, fd: i64, target: Target, cloexec: bool) {
        let table = self.table();
        let (_, gone) = self.fds.install(table, fd, target, cloexec);
        self.closed(gone);
    }

    fn put_result(&mut self, r: &SyscallRow<'_>, target: Target, cloexec: bool) {
        if let Some(fd) = r.ret {
            self.put(fd, target, cloexec);
        }
    }

    fn open(&mut self, r: &SyscallRow<'_>) {
        let Some(fd) = r.ret else { return };
        let cloexec = has(r, "O_CLOEXEC");
        // What -y says of the result has symbolic links resolved; the argument has not.
        let resolved = r.path2.map(paths::without_deleted).filter(|p| p.starts_with('/') || paths::is_special(p));
        let path = match resolved {
            Some(p) if !p.starts_with('/') => p.to_owned(),
            Some(p) => paths::absolute("/", p),
            None => match r.path {
                Some(p) => self.locate(r, p, r.fd),
                None => return self.put(fd, Target::Other, cloexec),
            },
        };
        if !self.names.is_modelled(&path) {
            self.put(fd, Target::Other, cloexec);
            return self.outside(r);
        }
        let create_flag = has(r, "O_CREAT") || r.call == "creat";
        let truncate_flag = has(r, "O_TRUNC") || r.call == "creat";
        let file = if has(r, "O_TMPFILE") {
            let file = self.intern_anonymous(format!("{path}/(unnamed)"));
            self.survey.size(file).absent();
            self.survey.seeks(file);
            file
        } else {
            self.intern(&path, true)
        };
        if has(r, "O_DIRECTORY") && !has(r, "O_TMPFILE") {
            self.names.get_mut(file).directory = true;
        }
        let create = !self.names.get(file).present && (create_flag || has(r, "O_TMPFILE") || self.out.is_some());
        if create_flag && has(r, "O_EXCL") {
            self.survey.size(file).absent();
        } else if create_flag {
            self.survey.size(file).opened_to_create();
        } else {
            self.survey.size(file).found();
        }
        let parent = self.names.get(file).parent;
        if let Some(dir) = parent {
            self.found(dir);
        }
        let state = self.names.get_mut(file);
        state.present = true;
        if truncate_flag {
            state.set_size(0);
            self.survey.size(file).set();
        }
        let ofd = self.new_ofd();
        let sync = has(r, "O_SYNC") || has(r, "O_DSYNC");
        let direct = has(r, "O_DIRECT");
        let append = has(r, "O_APPEND");
        self.emit(Op::Open { ofd, file, create, truncate: truncate_flag && !create });
        self.put(fd, Target::File { ofd, file, offset: 0, append, sync, direct }, cloexec);
    }

    fn duplicate(&mut self, r: &SyscallRow<'_>, cloexec: bool) {
        let (Some(from), Some(to)) = (r.fd, r.ret) else { return };
        if from == to {
            return;
        }
        let Some(desc) = self.resolve(r, from, r.path) else { return };
        let table = self.table();
        let gone = self.fds.alias(table, desc, to, cloexec);
        self.closed(gone);
    }

    fn fcntl(&mut self, r: &SyscallRow<'_>) {
        let Some(fd) = r.fd else { return };
        let table = self.table();
        if has(r, "F_DUPFD") || has(r, "F_DUPFD_CLOEXEC") {
            self.duplicate(r, has(r, "F_DUPFD_CLOEXEC"));
        } else if has(r, "F_SETFD") {
            self.fds.set_cloexec(table, fd, has(r, "FD_CLOEXEC"));
        } else if has(r, "F_SETFL") {
            if let Some(desc) = self.fds.desc(table, fd)
                && let Target::File { append, .. } = self.fds.target_mut(desc)
            {
                *append = has(r, "O_APPEND");
            }
        } else if has(r, "F_SETLKW") || has(r, "F_SETLKW64") || has(r, "F_OFD_SETLKW") {
            self.external(r);
        }
    }

    /// What a descriptor argument refers to. `shown` is what `-y` says of it: where that contradicts what was
    /// reconstructed, it is right.
    pub(super) fn resolve(&mut self, r: &SyscallRow<'_>, fd: i64, shown: Option<&str>) -> Option<DescId> {
        if fd < 0 {
            return None;
        }
        let table = self.table();
        let shown = shown.filter(|p| p.starts_with('/') || (paths::is_special(p) && p.contains(':')));
        match (self.fds.desc(table, fd), shown) {
            (Some(desc), None) => Some(desc),
            (Some(desc), Some(path)) => {
                if self.agrees(desc, path) {
                    return Some(desc);
                }
                self.notes.count("descriptors that had come to mean another file unseen (the traced path was taken)");
                Some(self.open_unseen(fd, path))
            }
            (None, Some(path)) => {
                self.notes.count("descriptors from before the trace");
                Some(self.open_unseen(fd, path))
            }
            (None, None) => {
                let target = if fd <= 2 {
                    Target::Other
                } else {
                    self.coverage.unknown_fds += 1;
                    let file = self.intern_anonymous(format!("unknown:{}:{fd}", r.tid));
                    self.survey.size(file).found();
                    let ofd = self.new_ofd();
                    Target::File { ofd, file, offset: 0, append: false, sync: false, direct: false }
                };
                Some(self.fds.install(table, fd, target, false).0)
            }
        }
    }

    fn agrees(&mut self, desc: DescId, shown: &str) -> bool {
        match self.fds.target(desc) {
            Target::File { file, .. } => {
                let path = paths::without_deleted(shown);
                let state = self.names.get(file);
                state.current == path || state.guessed || self.names.lookup(path) == Some(file)
            }
            Target::Stream { read, write } => {
                if shown.starts_with("pipe:[")
                    && let Some(stream) = read.or(write)
                {
                    self.fds.name_stream(shown, stream);
                }
                paths::is_special(shown)
            }
            Target::Other => {
                shown.starts_with("socket:") || !shown.starts_with("pipe:[") && !self.names.is_modelled(shown)
            }
        }
    }

    /// A descriptor whose opening the trace does not have.
    fn open_unseen(&mut self, fd: i64, shown: &str) -> DescId {
        let path = paths::without_deleted(shown);
        let target = if shown.starts_with("pipe:[") {
            let stream = self.fds.named_stream(shown);
            Target::Stream { read: Some(stream), write: Some(stream) }
        } else if self.names.is_modelled(path) {
            let file = self.intern(path, path.len() == shown.len());
            self.survey.size(file).found();
            self.names.get_mut(file).present = true;
            let ofd = self.new_ofd();
            Target::File { ofd, file, offset: 0, append: false, sync: false, direct: false }
        } else {
            Target::Other
        };
        let table = self.table();
        let (desc, gone) = self.fds.install(table, fd, target, false);
        self.closed(gone);
        desc
    }

    /// The file of a descriptor argument, if it is one.
    pub(super) fn file_of(&mut self, r: &SyscallRow<'_>, fd: Option<i64>, shown: Option<&str>) -> Option<FileId> {
        let desc = self.resolve(r, fd?, shown)?;
        match self.fds.target(desc) {
            Target::File { file, .. } => Some(file),
            _ => None,
        }
    }
}

/// A word among a call's flags or, for calls whose flags are not (all) a column, its arguments.
pub(super) fn has(r: &SyscallRow<'_>, word: &str) -> bool {
    args::has_word(r.flags, word) || args::has_word(r.args, word)
}
