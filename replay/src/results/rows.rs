//! What a simulation reports while it runs: the rows of the result tables (docs/RESULTS.md), as plain structs.
//!
//! The engine fills them and hands them to a [`super::ResultSink`]; finished requests are
//! [`crate::block::IoRecord`]s. Everything that happens often is `Copy`. Times count from the start of the trace.

use super::vmstat::VmStat;
use crate::program::{FileId, TaskId};
use kreplay_traces::units::{Bytes, Nanos};

/// What the time of a call went to; each is a `t_*_ns` column of `calls` and `clients`.
///
/// A nanosecond belongs to exactly one cause: the innermost thing that the task waited for at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Own work on a processor.
    Cpu,
    /// Ready, but every processor is busy.
    RunQueue,
    /// A page locked by somebody else's I/O or write.
    PageLock,
    /// The inode semaphore of a file that another task writes.
    Inode,
    /// The device, on data reads that the task asked for.
    Read,
    /// The device, on metadata reads (inodes, indirect blocks, directories).
    Meta,
    /// A free request slot.
    Slot,
    /// Dirty limits: writing out, or waiting for, others' dirty pages.
    Throttle,
    /// Waits inside direct reclaim.
    Reclaim,
    /// The device, on swap reads.
    SwapIn,
    /// Completion of writes in fsync and sync.
    Sync,
    /// A network link or another wait outside of the machine.
    Net,
    /// A sleep that the task asked for.
    Sleep,
    /// Another task (pipe, wait, fork).
    Dep,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 14;

    /// All causes in column order.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Cpu,
        Cause::RunQueue,
        Cause::PageLock,
        Cause::Inode,
        Cause::Read,
        Cause::Meta,
        Cause::Slot,
        Cause::Throttle,
        Cause::Reclaim,
        Cause::SwapIn,
        Cause::Sync,
        Cause::Net,
        Cause::Sleep,
        Cause::Dep,
    ];

    /// Column of the cause in `calls` and `clients`.
    pub const fn column(self) -> &'static str {
        match self {
            Cause::Cpu => "t_cpu_ns",
            Cause::RunQueue => "t_runq_ns",
            Cause::PageLock => "t_pagelock_ns",
            Cause::Inode => "t_inode_ns",
            Cause::Read => "t_read_ns",
            Cause::Meta => "t_meta_ns",
            Cause::Slot => "t_slot_ns",
            Cause::Throttle => "t_throttle_ns",
            Cause::Reclaim => "t_reclaim_ns",
            Cause::SwapIn => "t_swapin_ns",
            Cause::Sync => "t_sync_ns",
            Cause::Net => "t_net_ns",
            Cause::Sleep => "t_sleep_ns",
            Cause::Dep => "t_dep_ns",
        }
    }
}

/// How a length of time divides among the causes, nanoseconds; indexed by [`Cause`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blame(pub [u64; Cause::COUNT]);

impl Blame {
    /// Nothing yet.
    pub const ZERO: Self = Self([0; Cause::COUNT]);

    /// Adds a length of time to one cause.
    ///
    /// # Panics
    /// If the sum leaves 64 bits (584 years).
    #[inline]
    pub fn add(&mut self, cause: Cause, time: Nanos) {
        let cell = &mut self.0[cause as usize];
        *cell = cell.checked_add(time.0).expect("blame overflow");
    }

    /// Adds another division, cause by cause.
    ///
    /// # Panics
    /// If a sum leaves 64 bits.
    pub fn merge(&mut self, other: &Blame) {
        for cause in Cause::ALL {
            self.add(cause, other.get(cause));
        }
    }

    /// Time of one cause.
    #[inline]
    pub fn get(&self, cause: Cause) -> Nanos {
        Nanos(self.0[cause as usize])
    }

    /// All causes together; equals the duration of the call it belongs to.
    pub fn total(&self) -> Nanos {
        Nanos(self.0.iter().sum())
    }
}

/// Kind of a finished operation, column `op` of `calls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "named after the operations of crate::program::Op, which document them")]
pub enum CallOp {
    Open,
    Close,
    Seek,
    Advise,
    Read,
    Write,
    Fsync,
    Sync,
    Truncate,
    Unlink,
    Stat,
    Readdir,
    Map,
    Unmap,
    Touch,
    Sleep,
    External,
    Link,
    RecvWrite,
    Ask,
    Post,
    Await,
    Spawn,
    Cpu,
}

impl CallOp {
    /// The value of the column.
    pub const fn name(self) -> &'static str {
        match self {
            CallOp::Open => "open",
            CallOp::Close => "close",
            CallOp::Seek => "seek",
            CallOp::Advise => "advise",
            CallOp::Read => "read",
            CallOp::Write => "write",
            CallOp::Fsync => "fsync",
            CallOp::Sync => "sync",
            CallOp::Truncate => "truncate",
            CallOp::Unlink => "unlink",
            CallOp::Stat => "stat",
            CallOp::Readdir => "readdir",
            CallOp::Map => "map",
            CallOp::Unmap => "unmap",
            CallOp::Touch => "touch",
            CallOp::Sleep => "sleep",
            CallOp::External => "external",
            CallOp::Link => "link",
            CallOp::RecvWrite => "recv-write",
            CallOp::Ask => "ask",
            CallOp::Post => "post",
            CallOp::Await => "await",
            CallOp::Spawn => "spawn",
            CallOp::Cpu => "cpu",
        }
    }
}

/// A finished operation: a row of `calls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// Task that did it.
    pub task: TaskId,
    /// Input line, 0 where the operation stands in no log.
    pub line: u32,
    /// What it was.
    pub op: CallOp,
    /// File it acted on, if any.
    pub file: Option<FileId>,
    /// First byte in that file, where the operation has a place.
    pub offset: Option<Bytes>,
    /// Bytes, where the operation has a length.
    pub len: Option<Bytes>,
    /// Simulated begin.
    pub start: Nanos,
    /// Simulated duration.
    pub dur: Nanos,
    /// Recorded duration, if the trace has it.
    pub recorded: Option<Nanos>,
    /// Where `dur` went; sums to it exactly.
    pub blame: Blame,
}

/// The machine's state at one simulated second: a row of `samples`. vmstat's own columns first.
///
/// Sizes in KiB, rates per second over the second that ends at `time`, processor shares in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are vmstat's own columns, see docs/RESULTS.md")]
pub struct SampleRow {
    /// End of the second.
    pub time: Nanos,
    pub r: u64,
    pub b: u64,
    pub w: u64,
    pub swpd_kib: u64,
    pub free_kib: u64,
    pub buff_kib: u64,
    pub cache_kib: u64,
    pub si_kib_s: u64,
    pub so_kib_s: u64,
    pub bi_kib_s: u64,
    pub bo_kib_s: u64,
    pub in_s: u64,
    pub cs_s: u64,
    pub us_pct: u64,
    pub sy_pct: u64,
    pub id_pct: u64,
    pub wa_pct: u64,
    /// Pages on the active list, KiB.
    pub active_kib: u64,
    /// Pages on the inactive list, KiB.
    pub inactive_kib: u64,
    /// Anonymous pages, KiB.
    pub anon_kib: u64,
    /// Dirty file data not yet under write-out, KiB.
    pub dirty_kib: u64,
    /// Data under write-out, KiB.
    pub writeback_kib: u64,
    /// Kernel objects (dentries, inodes, buffer heads), KiB.
    pub slab_kib: u64,
    /// Dentries in memory.
    pub dentries: u64,
    /// Inodes in memory.
    pub inodes: u64,
    /// Requests queued or in service, all devices.
    pub queue_len: u64,
}

/// Pages of one file beside each other that reclaim threw out in one step: a row of `evictions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionRow {
    /// When.
    pub time: Nanos,
    /// File whose data they held.
    pub file: FileId,
    /// First page within the file (4 KiB each).
    pub page: u32,
    /// How many.
    pub pages: u32,
}

/// What a task did over the whole run: a row of `clients`. Names come from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRow {
    /// Task.
    pub task: TaskId,
    /// First operation began; `None`: the task never started.
    pub start: Option<Nanos>,
    /// Last operation ended; `None`: it had not finished when the run ended.
    pub end: Option<Nanos>,
    /// Bytes that its reads returned.
    pub bytes_read: Bytes,
    /// Bytes that its writes took.
    pub bytes_written: Bytes,
    /// Think time between its calls.
    pub think: Nanos,
    /// Blame of its calls, summed.
    pub blame: Blame,
    /// The out-of-memory killer ended it.
    pub killed: bool,
}

/// A named point in time: a row of `marks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkRow {
    /// Task that reached it.
    pub task: TaskId,
    /// Index into [`crate::program::Program::marks`].
    pub mark: u32,
    /// When.
    pub time: Nanos,
}

/// Kind of a finding, column `kind` of `events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// A page could not be had and the caller was told so.
    AllocFailure,
    /// A task was killed for lack of memory.
    OomKill,
    /// Tasks run, nothing advances.
    Livelock,
    /// Tasks wait for something that will not come.
    Hung,
}

impl EventKind {
    /// The value of the column.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::AllocFailure => "alloc-failure",
            EventKind::OomKill => "oom-kill",
            EventKind::Livelock => "livelock",
            EventKind::Hung => "hung",
        }
    }
}

/// A finding of the run: a row of `events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// When.
    pub time: Nanos,
    /// Task it happened to, if one.
    pub task: Option<TaskId>,
    /// What happened.
    pub kind: EventKind,
    /// The kernel's own words where it had any.
    pub text: String,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $unit:literal,)*) => {
        /// Totals of a run: the rows of `counters`, one a field.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            /// The kernel's own counters, of kernels with refault detection.
            pub vm: Option<VmStat>,
        }

        impl Counters {
            /// (name, value, unit) of every counter in table order; the unit is "1" for plain numbers.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
                [$((stringify!($name), self.$name, $unit),)*].into_iter().chain(self.vm.iter().flat_map(VmStat::rows))
            }
        }
    };
}

counters! {
    /// Bytes read from data devices and swap.
    disk_read_bytes: "B",
    /// Bytes written to data devices and swap.
    disk_write_bytes: "B",
    /// Pages read from swap.
    swap_in_pages: "pages",
    /// Pages written to swap.
    swap_out_pages: "pages",
    /// Read requests served.
    read_requests: "1",
    /// Write requests served.
    write_requests: "1",
    /// Read bios merged into a queued request.
    read_merges: "1",
    /// Write bios merged into a queued request.
    write_merges: "1",
    /// Page references that found the page in memory.
    page_hits: "1",
    /// Page references that did not.
    page_misses: "1",
    /// Pages read ahead.
    readahead_pages: "pages",
    /// Pages dropped from memory by reclaim.
    evicted_pages: "pages",
    /// Pages that reclaim sent to be written.
    laundered_pages: "pages",
    /// Moves to the active list.
    activated_pages: "pages",
    /// Moves to the inactive list.
    deactivated_pages: "pages",
    /// Passes over the active list.
    refill_calls: "1",
    /// Passes over the inactive list.
    shrink_calls: "1",
    /// Scans of page tables.
    swap_out_calls: "1",
    /// Reclaim runs by tasks that wanted memory.
    direct_reclaim_calls: "1",
    /// Wake-ups of the reclaim daemon.
    kswapd_runs: "1",
    /// Pages that reclaim dropped while the name caches shrank from their largest size to half of it; 0: they never did.
    names_half_life_pages: "pages",
    /// Allocations that failed.
    alloc_failures: "1",
    /// Tasks killed for lack of memory.
    oom_kills: "1",
    /// Lowest free memory seen at any allocation.
    min_free_kib: "KiB",
    /// Most swap in use.
    max_swpd_kib: "KiB",
    /// Largest page cache.
    max_cache_kib: "KiB",
    /// Most dirty file data.
    dirty_max_kib: "KiB",
    /// Requests that did not begin where the one before on the device ended.
    seeks: "1",
    /// Requests that did.
    sequential_requests: "1",
    /// Time that devices worked, summed over devices.
    device_busy_ns: "ns",
    /// Simulated time until the last foreground task ended.
    elapsed_ns: "ns",
    /// Events that the engine processed.
    events: "1",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_adds_up_and_each_cause_has_its_own_column() {
        let mut blame = Blame::ZERO;
        for (i, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, i);
            blame.add(cause, Nanos(1 << i));
        }
        assert_eq!(blame.total(), Nanos((1 << Cause::COUNT) - 1));
        let mut twice = blame;
        twice.merge(&blame);
        assert_eq!(twice.get(Cause::Dep), Nanos(2 << 13));
        let mut columns: Vec<_> = Cause::ALL.iter().map(|c| c.column()).collect();
        columns.sort_unstable();
        columns.dedup();
        assert_eq!(columns.len(), Cause::COUNT);
    }

    #[test]
    fn counters_keep_name_and_unit() {
        let c = Counters { min_free_kib: 7, ..Counters::default() };
        let row = c.rows().find(|r| r.0 == "min_free_kib");
        assert_eq!(row, Some(("min_free_kib", 7, "KiB")));
        assert_eq!(c.rows().count(), 32);
    }
}
