//! A sink that keeps owned copies of all rows, for tests and for looking at a log without storing it.

use kreplay_traces::event::{
    BlockRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};

/// Owned copy of a [`SyscallRow`]; fields as there.
#[allow(missing_docs, reason = "the fields are those of the borrowed row")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Syscall {
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
pub struct Block {
    pub time_ns: i64,
    pub dev: i64,
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

/// Owned copy of a [`RejectRow`]; fields as there.
#[allow(missing_docs, reason = "the fields are those of the borrowed row")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reject {
    pub line: i64,
    pub byte_offset: i64,
    pub column: Option<i64>,
    pub reason: String,
    pub expected: String,
    pub text: String,
}

/// A process row, owned: thread, parent, name.
pub type Process = (i64, Option<i64>, Option<String>);

/// A file row, owned: path, size, inode, and extent (offset in the file, sector, length).
pub type File = (String, Option<i64>, Option<i64>, Option<(i64, i64, i64)>);

/// All rows of a parse, by table and in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// System calls.
    pub syscalls: Vec<Syscall>,
    /// Block events.
    pub blocks: Vec<Block>,
    /// vmstat rows.
    pub vmstats: Vec<VmstatRow>,
    /// Page touches.
    pub faults: Vec<FaultRow>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Files.
    pub files: Vec<File>,
    /// Rejects.
    pub rejects: Vec<Reject>,
}

impl EventSink for Rows {
    fn syscall(&mut self, r: &SyscallRow<'_>) {
        self.syscalls.push(Syscall {
            time_ns: r.time_ns,
            tid: r.tid,
            call: r.call.into(),
            ret: r.ret,
            errno: r.errno.map(Into::into),
            dur_ns: r.dur_ns,
            fd: r.fd,
            fd2: r.fd2,
            path: r.path.map(Into::into),
            path2: r.path2.map(Into::into),
            offset_bytes: r.offset_bytes,
            len_bytes: r.len_bytes,
            addr: r.addr,
            flags: r.flags.map(Into::into),
            args: r.args.map(Into::into),
            unfinished: r.unfinished,
            line: r.line,
        });
    }

    fn block(&mut self, r: &BlockRow<'_>) {
        self.blocks.push(Block {
            time_ns: r.time_ns,
            dev: r.dev,
            cpu: r.cpu,
            seq: r.seq,
            action: r.action.into(),
            rwbs: r.rwbs.into(),
            sector_512: r.sector_512,
            len_bytes: r.len_bytes,
            pid: r.pid,
            comm: r.comm.map(Into::into),
            error: r.error,
            from_dev: r.from_dev,
            from_sector_512: r.from_sector_512,
            unplugged: r.unplugged,
            text: r.text.map(Into::into),
            line: r.line,
        });
    }

    fn vmstat(&mut self, r: &VmstatRow) {
        self.vmstats.push(*r);
    }

    fn fault(&mut self, r: &FaultRow) {
        self.faults.push(*r);
    }

    fn process(&mut self, r: &ProcessRow<'_>) {
        self.processes.push((r.tid, r.parent_tid, r.comm.map(Into::into)));
    }

    fn file(&mut self, r: &FileRow<'_>) {
        let extent = r.extent_offset_bytes.zip(r.extent_sector_512).zip(r.extent_len_bytes);
        self.files.push((r.path.into(), r.size_bytes, r.inode, extent.map(|((o, s), l)| (o, s, l))));
    }

    fn reject(&mut self, r: &RejectRow<'_>) {
        self.rejects.push(Reject {
            line: r.line,
            byte_offset: r.byte_offset,
            column: r.column,
            reason: r.reason.into(),
            expected: r.expected.into(),
            text: r.text.into(),
        });
    }
}

/// A sink that drops everything: for detection and for measuring a parser alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl EventSink for Discard {
    fn syscall(&mut self, _: &SyscallRow<'_>) {}
    fn block(&mut self, _: &BlockRow<'_>) {}
    fn vmstat(&mut self, _: &VmstatRow) {}
    fn fault(&mut self, _: &FaultRow) {}
    fn process(&mut self, _: &ProcessRow<'_>) {}
    fn file(&mut self, _: &FileRow<'_>) {}
    fn reject(&mut self, _: &RejectRow<'_>) {}
}
