//! What the compiler reads: side tables, and events in time order, twice.
//!
//! The compiler makes two passes, so that it holds no rows: a source only has to be able to hand out its events again.
//! [`TraceTables`] is the in-memory source (tests, generators), [`StoredTrace`](super::StoredTrace) the one on disk.

use kreplay_traces::event::{FaultRow, FileRow, ProcessRow, SyscallRow};
pub use kreplay_traces::owned::OwnedSyscall;
use kreplay_traces::units::{Nanos, Sectors};

use super::CompileError;
use crate::program::{LinkInfo, RecordedMemory};

/// An event handed to the compiler.
#[derive(Clone, Copy, Debug)]
pub enum EventRow<'a> {
    /// A system call.
    Syscall(SyscallRow<'a>),
    /// Page touches.
    Fault(FaultRow),
}

/// A callback that takes events; its error ends the reading.
pub type Visit<'v> = dyn FnMut(EventRow<'_>) -> Result<(), CompileError> + 'v;

/// A trace that can be read twice.
pub trait TraceSource {
    /// Everything but the events.
    fn side(&self) -> &SideTables;

    /// Hand every event to `visit`, ascending by entry time (`time_ns`), events of the same time in input order.
    ///
    /// # Errors
    /// What `visit` returned, or a failure to read.
    fn events(&mut self, visit: &mut Visit<'_>) -> Result<(), CompileError>;
}

/// A device as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFact {
    /// `major << 20 | minor`, as in [`FileRow::dev`].
    pub dev: i64,
    /// Name in reports.
    pub name: String,
    /// Capacity, where known.
    pub sectors: Option<Sectors>,
    /// First sectors of its partitions, ascending; empty = the file system starts at sector 0.
    pub partitions: Vec<Sectors>,
    /// Its files are an ext2 file system.
    pub ext2: bool,
}

/// What is known of the recorded machine as far as compiling needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Mount points whose files the trace is about; empty = unknown.
    pub roots: Vec<String>,
    /// Devices; the first holds the files that do not say otherwise.
    pub devices: Vec<DeviceFact>,
    /// Time that the tracer itself adds between two calls of a task, where known (0 for generated traces).
    pub tracer_floor: Option<Nanos>,
}

/// Everything of a trace but its events.
#[derive(Clone, Debug, Default)]
pub struct SideTables {
    /// Content hash of the trace (hex), copied into the program.
    pub trace_id: String,
    /// `time_ns` of the trace's start; `None` = that of the first event.
    pub origin_ns: Option<i64>,
    /// Processes.
    pub processes: Vec<OwnedProcess>,
    /// Files: several rows with the same path are the extents of one file.
    pub files: Vec<OwnedFile>,
    /// Links that `x-link` and `x-recvwrite` name by index.
    pub links: Vec<LinkInfo>,
    /// The machine.
    pub machine: MachineFacts,
    /// Its memory in use, from a vmstat log.
    pub memory: RecordedMemory,
}

/// [`ProcessRow`] that owns its strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of ProcessRow")]
pub struct OwnedProcess {
    pub tid: i64,
    pub parent_tid: Option<i64>,
    pub comm: Option<String>,
    pub client: Option<String>,
    pub background: bool,
    pub repeat_from_line: Option<i64>,
    pub gives_up: bool,
}

impl From<&ProcessRow<'_>> for OwnedProcess {
    fn from(r: &ProcessRow<'_>) -> Self {
        Self {
            tid: r.tid,
            parent_tid: r.parent_tid,
            comm: r.comm.map(str::to_owned),
            client: r.client.map(str::to_owned),
            background: r.background,
            repeat_from_line: r.repeat_from_line,
            gives_up: r.gives_up,
        }
    }
}

/// [`FileRow`] that owns its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of FileRow")]
pub struct OwnedFile {
    pub path: String,
    pub size_bytes: Option<i64>,
    pub dev: Option<i64>,
    pub inode: Option<i64>,
    pub extent_offset_bytes: Option<i64>,
    pub extent_sector_512: Option<i64>,
    pub extent_len_bytes: Option<i64>,
    pub directory: bool,
}

impl From<&FileRow<'_>> for OwnedFile {
    fn from(r: &FileRow<'_>) -> Self {
        Self {
            path: r.path.to_owned(),
            size_bytes: r.size_bytes,
            dev: r.dev,
            inode: r.inode,
            extent_offset_bytes: r.extent_offset_bytes,
            extent_sector_512: r.extent_sector_512,
            extent_len_bytes: r.extent_len_bytes,
            directory: r.directory,
        }
    }
}

/// A whole trace in memory, its events in any order.
#[derive(Clone, Debug, Default)]
pub struct TraceTables {
    /// Everything but the events.
    pub side: SideTables,
    /// System calls.
    pub syscalls: Vec<OwnedSyscall>,
    /// Page touches.
    pub faults: Vec<FaultRow>,
}

impl TraceSource for TraceTables {
    fn side(&self) -> &SideTables {
        &self.side
    }

    fn events(&mut self, visit: &mut Visit<'_>) -> Result<(), CompileError> {
        self.syscalls.sort_by_key(|r| (r.time_ns, r.line));
        self.faults.sort_by_key(|r| (r.time_ns, r.line));
        let mut faults = self.faults.iter().peekable();
        for call in &self.syscalls {
            while let Some(f) = faults.next_if(|f| (f.time_ns, f.line) <= (call.time_ns, call.line)) {
                visit(EventRow::Fault(*f))?;
            }
            visit(EventRow::Syscall(call.row()))?;
        }
        faults.try_for_each(|f| visit(EventRow::Fault(*f)))
    }
}
