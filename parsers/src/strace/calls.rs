//! Which argument of which call means what: the typed columns.
//!
//! A call that is not in [`CALLS`] keeps its name, timing and raw arguments. Sources: the manual pages of the calls, the
//! argument order of i386 and x86-64, and strace's own decoding of them.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// Meaning of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing for the columns.
    Skip,
    /// First descriptor, and the path that `-y` gives it.
    Fd,
    /// Second descriptor.
    Fd2,
    /// Directory descriptor before a path; its `-y` path completes a relative one.
    Dir,
    /// Directory descriptor before the second path.
    Dir2,
    /// Path string.
    Path,
    /// Second path string.
    Path2,
    /// Length in bytes.
    Len,
    /// Offset in bytes.
    Off,
    /// Offset behind a pointer: `[4096]`, `[0] => [4096]`, or `NULL`.
    OffAt,
    /// Address.
    Addr,
    /// Words for `flags`; several of them are joined by `|`.
    Words,
    /// Array of `iovec`: the sum of the lengths.
    Iov,
    /// `struct stat`: size into `len_bytes`, mode into `flags`.
    Stat,
    /// `key=value` arguments of clone: the value of `flags=`.
    CloneFlags,
    /// `struct open_how` of openat2: the value of `flags=`.
    OpenHow,
}

/// How a call, or several of the same shape, are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Its names.
    pub(super) names: &'static [&'static str],
    /// Roles of its arguments.
    pub(super) roles: &'static [Role],
    /// Keep the raw arguments too.
    pub(super) keep: bool,
    /// What the result means beyond a number.
    pub(super) result: ResultRole,
}

/// Meaning of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultRole {
    /// A number.
    Plain,
    /// A descriptor: its `-y` path goes to `path2`.
    Fd,
    /// An address: goes to `addr`.
    Addr,
    /// A new thread: the caller becomes its parent.
    Child,
    /// The program was replaced: its path names the process.
    Exec,
}

macro_rules! calls {
    ($($($name:literal)/+ : [$($role:ident),*] $(keep $keep:literal)? $(=> $result:ident)?;)*) => {
        &[$(Call {
            names: &[$($name),+],
            roles: &[$(Role::$role),*],
            keep: calls!(@or false $(, $keep)?),
            result: calls!(@or ResultRole::Plain $(, ResultRole::$result)?),
        }),*]
    };
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
}

/// Every call with typed columns.
#[rustfmt::skip]
pub(super) static CALLS: &[Call] = calls! {
    // Descriptors.
    "open": [Path, Words, Skip] => Fd;
    "creat": [Path, Skip] => Fd;
    "openat": [Dir, Path, Words, Skip] => Fd;
    "openat2": [Dir, Path, OpenHow, Skip] => Fd;
    "close": [Fd];
    "close_range": [Fd, Fd2, Words];
    "dup": [Fd] => Fd;
    "dup2" / "dup3": [Fd, Fd2, Words] => Fd;
    "fcntl" / "fcntl64": [Fd, Words] keep true => Fd;
    "pipe" / "pipe2" / "socketpair": [] keep true;
    "socket": [] keep true => Fd;
    "accept" / "accept4": [Fd] keep true => Fd;
    "eventfd" / "eventfd2" / "epoll_create" / "epoll_create1" / "inotify_init" / "inotify_init1" / "timerfd_create": [] keep true => Fd;
    "memfd_create": [Path, Words] keep true => Fd;
    "ioctl": [Fd, Words] keep true;
    "flock": [Fd, Words];
    // Data.
    "read" / "write": [Fd, Skip, Len];
    "pread" / "pread64" / "pwrite" / "pwrite64": [Fd, Skip, Len, Off];
    "readv" / "writev": [Fd, Iov];
    "preadv" / "pwritev": [Fd, Iov, Skip, Off];
    "preadv2" / "pwritev2": [Fd, Iov, Skip, Off, Words];
    "lseek": [Fd, Off, Words];
    "_llseek": [Fd, Off, Skip, Words] keep true;
    "sendfile" / "sendfile64": [Fd, Fd2, OffAt, Len] keep true;
    "copy_file_range": [Fd, OffAt, Fd2, Skip, Len] keep true;
    "splice": [Fd, OffAt, Fd2, Skip, Len, Words] keep true;
    "tee": [Fd, Fd2, Len, Words];
    "readahead": [Fd, Off, Len];
    "fadvise64" / "fadvise64_64" / "posix_fadvise": [Fd, Off, Len, Words];
    "fallocate": [Fd, Words, Off, Len];
    "io_submit" / "io_getevents" / "io_uring_enter" / "io_uring_setup": [] keep true;
    // Durability.
    "fsync" / "fdatasync" / "syncfs": [Fd];
    "sync": [];
    "sync_file_range": [Fd, Off, Len, Words];
    "msync": [Addr, Len, Words];
    // Names and metadata.
    "truncate" / "truncate64": [Path, Len];
    "ftruncate" / "ftruncate64": [Fd, Len];
    "unlink" / "rmdir" / "chdir" / "chroot": [Path];
    "unlinkat": [Dir, Path, Words];
    "mkdir" / "mknod" / "chmod" / "chown" / "lchown" / "utime" / "utimes": [Path];
    "mkdirat" / "mknodat" / "fchmodat" / "fchownat" / "utimensat" / "futimesat": [Dir, Path];
    "rename" / "link" / "symlink": [Path, Path2];
    "renameat" / "renameat2": [Dir, Path, Dir2, Path2, Words];
    "linkat": [Dir, Path, Dir2, Path2, Words];
    "symlinkat": [Path, Dir2, Path2];
    "stat" / "stat64" / "lstat" / "lstat64" / "oldstat" / "oldlstat": [Path, Stat];
    "fstat" / "fstat64" / "oldfstat": [Fd, Stat];
    "newfstatat" / "fstatat64": [Dir, Path, Stat, Words];
    "statx": [Dir, Path, Words, Skip, Stat];
    "access": [Path, Words];
    "faccessat" / "faccessat2": [Dir, Path, Words];
    "readlink": [Path, Skip, Len];
    "readlinkat": [Dir, Path, Skip, Len];
    "getdents" / "getdents64": [Fd, Skip, Len];
    "readdir": [Fd];
    "fchdir" / "fchmod" / "fchown" / "fstatfs" / "fstatfs64": [Fd];
    "statfs" / "statfs64": [Path];
    "getxattr" / "lgetxattr" / "setxattr" / "lsetxattr" / "removexattr" / "listxattr" / "llistxattr": [Path];
    "fgetxattr" / "fsetxattr" / "fremovexattr" / "flistxattr": [Fd];
    "swapon" / "swapoff" / "umount" / "umount2": [Path] keep true;
    "mount": [Path, Path2] keep true;
    // Memory.
    "mmap" / "old_mmap" / "mmap2": [Addr, Len, Words, Words, Fd, Off] => Addr;
    "munmap": [Addr, Len];
    "mremap": [Addr, Skip, Len, Words] keep true => Addr;
    "madvise": [Addr, Len, Words];
    "mprotect" / "pkey_mprotect": [Addr, Len, Words];
    "mlock" / "munlock": [Addr, Len];
    "mlock2": [Addr, Len, Words];
    "mlockall": [Words];
    "mincore": [Addr, Len];
    "brk": [Addr] => Addr;
    "shmat": [] keep true => Addr;
    "shmdt": [Addr];
    // Tasks.
    "fork" / "vfork": [] => Child;
    "clone": [CloneFlags, CloneFlags, CloneFlags] keep true => Child;
    "clone3": [CloneFlags] keep true => Child;
    "execve": [Path] keep true => Exec;
    "execveat": [Dir, Path] keep true => Exec;
    "exit" / "_exit" / "exit_group": [] keep true;
    "wait4" / "waitpid" / "waitid": [] keep true;
    "kill" / "tkill" / "tgkill": [] keep true;
    "prctl": [Words] keep true;
    // Waiting.
    "nanosleep" / "clock_nanosleep" / "poll" / "ppoll" / "select" / "pselect6" / "_newselect" / "futex" / "restart_syscall": [] keep true;
    "epoll_wait" / "epoll_pwait" / "epoll_pwait2" / "epoll_ctl": [Fd] keep true;
    // Sockets.
    "connect" / "bind" / "listen" / "shutdown" / "sendmsg" / "recvmsg" / "setsockopt" / "getsockopt": [Fd] keep true;
    "sendto" / "send" / "recvfrom" / "recv": [Fd, Skip, Len];
};

/// The entry of a call by its name as printed, and that name.
#[inline]
pub(super) fn find(name: &[u8]) -> Option<(&'static str, &'static Call)> {
    type Index = FxHashMap<&'static [u8], (&'static str, &'static Call)>;
    static INDEX: OnceLock<Index> = OnceLock::new();
    let index =
        INDEX.get_or_init(|| CALLS.iter().flat_map(|c| c.names.iter().map(move |n| (n.as_bytes(), (*n, c)))).collect());
    index.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for call in CALLS {
            for name in call.names {
                let found = find(name.as_bytes()).expect("in the index");
                assert!(std::ptr::eq(found.1, call), "{name} stands twice in the table");
            }
        }
        assert!(find(b"no_such_call").is_none());
    }
}
