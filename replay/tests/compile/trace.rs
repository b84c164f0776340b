//! Writing small traces down.

use kreplay_replay::compile::{CompileOptions, OwnedFile, OwnedSyscall, TraceTables, compile};
use kreplay_replay::program::{FileInfo, Op, Program, TaskProgram};
use kreplay_traces::event::FaultRow;

/// A trace in the making: a call every millisecond, each 10 us long.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) tables: TraceTables,
    now_ns: i64,
}

/// A call that succeeded with 0, of task 1.
pub(crate) fn call(name: &str) -> OwnedSyscall {
    OwnedSyscall { tid: 1, call: name.to_owned(), ret: Some(0), dur_ns: Some(10_000), ..OwnedSyscall::default() }
}

pub(crate) fn open(path: &str, flags: &str, fd: i64) -> OwnedSyscall {
    OwnedSyscall { path: Some(path.to_owned()), flags: Some(flags.to_owned()), ret: Some(fd), ..call("openat") }
}

/// read, write and their kin: `n` bytes asked for and moved.
pub(crate) fn io(name: &str, fd: i64, n: i64) -> OwnedSyscall {
    OwnedSyscall { fd: Some(fd), ret: Some(n), len_bytes: Some(n), ..call(name) }
}

pub(crate) fn close(fd: i64) -> OwnedSyscall {
    OwnedSyscall { fd: Some(fd), ..call("close") }
}

pub(crate) fn clone(child: i64, flags: &str) -> OwnedSyscall {
    OwnedSyscall { ret: Some(child), flags: Some(flags.to_owned()), ..call("clone") }
}

pub(crate) fn on_path(name: &str, path: &str) -> OwnedSyscall {
    OwnedSyscall { path: Some(path.to_owned()), ..call(name) }
}

pub(crate) fn failed(mut c: OwnedSyscall, errno: &str) -> OwnedSyscall {
    c.ret = Some(-1);
    c.errno = Some(errno.to_owned());
    c
}

pub(crate) fn exit() -> OwnedSyscall {
    OwnedSyscall { ret: None, dur_ns: None, ..call("exit_group") }
}

pub(crate) fn by(tid: i64, mut c: OwnedSyscall) -> OwnedSyscall {
    c.tid = tid;
    c
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The next call; starts a millisecond after the one before unless it says when.
    pub(crate) fn then(mut self, mut c: OwnedSyscall) -> Self {
        self.now_ns += 1_000_000;
        if c.time_ns == 0 {
            c.time_ns = self.now_ns;
        }
        c.line = self.tables.syscalls.len() as i64 + self.tables.faults.len() as i64 + 1;
        self.tables.syscalls.push(c);
        self
    }

    pub(crate) fn touch(mut self, addr: i64, count: i64, stride_bytes: i64, write: bool) -> Self {
        self.touch_by(1, addr, count, stride_bytes, write);
        self
    }

    pub(crate) fn touch_by(&mut self, tid: i64, addr: i64, count: i64, stride_bytes: i64, write: bool) {
        self.now_ns += 1_000_000;
        let line = self.tables.syscalls.len() as i64 + self.tables.faults.len() as i64 + 1;
        self.tables.faults.push(FaultRow { time_ns: self.now_ns, tid, addr, count, stride_bytes, write, line });
    }

    pub(crate) fn file(mut self, path: &str, size: i64) -> Self {
        let row = OwnedFile { path: path.to_owned(), size_bytes: Some(size), ..OwnedFile::default() };
        self.tables.side.files.push(row);
        self
    }

    pub(crate) fn compile(self) -> Program {
        self.compile_with(&CompileOptions::default())
    }

    pub(crate) fn compile_with(mut self, opts: &CompileOptions) -> Program {
        compile(&mut self.tables, opts).expect("the trace compiles")
    }
}

pub(crate) fn task(p: &Program, tid: i64) -> &TaskProgram {
    p.tasks.iter().find(|t| t.tid == tid).expect("the task is there")
}

/// A task's operations without the CPU-only ones.
pub(crate) fn ops(p: &Program, tid: i64) -> Vec<Op> {
    task(p, tid).ops.iter().copied().filter(|o| !matches!(o, Op::Cpu { .. })).collect()
}

pub(crate) fn file<'p>(p: &'p Program, path: &str) -> (u32, &'p FileInfo) {
    let i = p.files.iter().position(|f| f.path == path).expect("the file is there");
    (i as u32, &p.files[i])
}

/// How often a note that contains `words` was counted.
pub(crate) fn noted(p: &Program, words: &str) -> u64 {
    let line = p.coverage.notes.iter().find(|n| n.contains(words));
    line.and_then(|n| n.rsplit(": ").next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}
