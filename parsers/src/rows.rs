//! A sink that keeps owned copies of all rows, for tests and for looking at a log without storing it.

use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};
pub use kreplay_traces::owned::{OwnedBlock as Block, OwnedSyscall as Syscall};

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
