//! Rows that own their strings, where one has to outlive the buffer it was read from (reordering, tests, generators).

use crate::event::{BlockRow, SyscallRow};

/// Owned copy of a [`SyscallRow`]; fields as there.
#[allow(missing_docs, reason = "the fields are those of the borrowed row")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedSyscall {
    pub time_ns: i64,
    pub tid: i64,
    pub call: String,
    pub ret: Option<i64>,
    pub errno: Option<String>,
    pub dur_ns: Option<i64>,
    pub fd: Option<i64>,
    pub fd2: Option<i64>,
    pub path: Option<String>,
    pub path2: Option<String>,
    pub offset_bytes: Option<i64>,
    pub len_bytes: Option<i64>,
    pub addr: Option<i64>,
    pub flags: Option<String>,
    pub args: Option<String>,
    pub unfinished: bool,
    pub line: i64,
}

/// Owned copy of a [`BlockRow`]; fields as there.
#[allow(missing_docs, reason = "the fields are those of the borrowed row")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedBlock {
    pub time_ns: i64,
    pub dev: Option<i64>,
    pub cpu: Option<i64>,
    pub seq: Option<i64>,
    pub action: String,
    pub rwbs: String,
    pub sector_512: Option<i64>,
    pub len_bytes: Option<i64>,
    pub pid: Option<i64>,
    pub comm: Option<String>,
    pub error: Option<i64>,
    pub from_dev: Option<i64>,
    pub from_sector_512: Option<i64>,
    pub unplugged: Option<i64>,
    pub text: Option<String>,
    pub line: i64,
}

impl From<&SyscallRow<'_>> for OwnedSyscall {
    fn from(r: &SyscallRow<'_>) -> Self {
        let mut row = Self::default();
        row.set(r);
        row
    }
}

impl OwnedSyscall {
    /// Copy a row into this one; its buffers are reused.
    pub fn set(&mut self, r: &SyscallRow<'_>) {
        self.time_ns = r.time_ns;
        self.tid = r.tid;
        set_text(&mut self.call, r.call);
        self.ret = r.ret;
        set_option(&mut self.errno, r.errno);
        self.dur_ns = r.dur_ns;
        self.fd = r.fd;
        self.fd2 = r.fd2;
        set_option(&mut self.path, r.path);
        set_option(&mut self.path2, r.path2);
        self.offset_bytes = r.offset_bytes;
        self.len_bytes = r.len_bytes;
        self.addr = r.addr;
        set_option(&mut self.flags, r.flags);
        set_option(&mut self.args, r.args);
        self.unfinished = r.unfinished;
        self.line = r.line;
    }

    /// The row as a borrowed view.
    pub fn row(&self) -> SyscallRow<'_> {
        SyscallRow {
            time_ns: self.time_ns,
            tid: self.tid,
            call: &self.call,
            ret: self.ret,
            errno: self.errno.as_deref(),
            dur_ns: self.dur_ns,
            fd: self.fd,
            fd2: self.fd2,
            path: self.path.as_deref(),
            path2: self.path2.as_deref(),
            offset_bytes: self.offset_bytes,
            len_bytes: self.len_bytes,
            addr: self.addr,
            flags: self.flags.as_deref(),
            args: self.args.as_deref(),
            unfinished: self.unfinished,
            line: self.line,
        }
    }
}

impl From<&BlockRow<'_>> for OwnedBlock {
    fn from(r: &BlockRow<'_>) -> Self {
        let mut row = Self::default();
        row.set(r);
        row
    }
}

impl OwnedBlock {
    /// Copy a row into this one; its buffers are reused.
    pub fn set(&mut self, r: &BlockRow<'_>) {
        self.time_ns = r.time_ns;
        self.dev = r.dev;
        self.cpu = r.cpu;
        self.seq = r.seq;
        set_text(&mut self.action, r.action);
        set_text(&mut self.rwbs, r.rwbs);
        self.sector_512 = r.sector_512;
        self.len_bytes = r.len_bytes;
        self.pid = r.pid;
        set_option(&mut self.comm, r.comm);
        self.error = r.error;
        self.from_dev = r.from_dev;
        self.from_sector_512 = r.from_sector_512;
        self.unplugged = r.unplugged;
        set_option(&mut self.text, r.text);
        self.line = r.line;
    }

    /// The row as a borrowed view.
    pub fn row(&self) -> BlockRow<'_> {
        BlockRow {
            time_ns: self.time_ns,
            dev: self.dev,
            cpu: self.cpu,
            seq: self.seq,
            action: &self.action,
            rwbs: &self.rwbs,
            sector_512: self.sector_512,
            len_bytes: self.len_bytes,
            pid: self.pid,
            comm: self.comm.as_deref(),
            error: self.error,
            from_dev: self.from_dev,
            from_sector_512: self.from_sector_512,
            unplugged: self.unplugged,
            text: self.text.as_deref(),
            line: self.line,
        }
    }
}

fn set_text(into: &mut String, text: &str) {
    into.clear();
    into.push_str(text);
}

fn set_option(into: &mut Option<String>, text: Option<&str>) {
    match (into.as_mut(), text) {
        (Some(buffer), Some(text)) => set_text(buffer, text),
        (_, text) => *into = text.map(Into::into),
    }
}
