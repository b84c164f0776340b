//! A sink that keeps owned copies of all rows, for tests and for looking at a log without storing it.

use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
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

impl Syscall {
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

impl Block {
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

/// A counter row, owned: time, subject, name, value, line.
pub type Counter = (Option<i64>, String, String, i64, i64);

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
    /// Totals: subject, name, value, line.
    pub counters: Vec<Counter>,
    /// Rejects.
    pub rejects: Vec<Reject>,
}

impl EventSink for Rows {
    fn syscall(&mut self, r: &SyscallRow<'_>) {
        let mut row = Syscall::default();
        row.set(r);
        self.syscalls.push(row);
    }

    fn block(&mut self, r: &BlockRow<'_>) {
        let mut row = Block::default();
        row.set(r);
        self.blocks.push(row);
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

    fn counter(&mut self, r: &CounterRow<'_>) {
        self.counters.push((r.time_ns, r.subject.into(), r.name.into(), r.value, r.line));
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
    fn counter(&mut self, _: &CounterRow<'_>) {}
    fn reject(&mut self, _: &RejectRow<'_>) {}
}
