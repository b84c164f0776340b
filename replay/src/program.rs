//! The program: a trace compiled once, shared read-only by every variant's simulation.
//!
//! Everything that a variant cannot change is decided here: which task does what in which order, where each file lies,
//! who waits for whom. Files and pages are interned to dense `u32` ids, so that a page reference is an array access.
//! *Page ids* number, in order: each file's pages, each anonymous area's pages; a file's or area's pages are
//! consecutive. Offsets and descriptors are resolved: operations name open file descriptions and byte ranges.

mod memory;
mod summary;
mod validate;

pub use memory::RecordedMemory;
pub use summary::ProgramSummary;
pub use validate::InvalidProgram;

use kreplay_traces::units::{Nanos, Sectors};

/// Index into [`Program::files`].
pub type FileId = u32;
/// Index of an open file description (read-ahead state lives there), dense over the program.
pub type OfdId = u32;
/// Index into [`Program::areas`].
pub type AreaId = u32;
/// A page of the trace: cache page or anonymous page, dense over the program.
pub type PageId = u32;
/// Index into [`Program::tasks`].
pub type TaskId = u32;
/// Index into [`Program::channels`] (a counting event: pipe, fork, wait).
pub type ChannelId = u32;

/// One operation of a task. `Copy` and at most 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Open: one lookup of the file's name; `create` makes it, `truncate` drops its pages and blocks.
    Open {
        /// Descriptor made.
        ofd: OfdId,
        /// File.
        file: FileId,
        /// The open creates the file.
        create: bool,
        /// The open truncates it.
        truncate: bool,
    },
    /// Last close of a descriptor.
    Close {
        /// Descriptor.
        ofd: OfdId,
    },
    /// `lseek` or anything else that tells 2.4's read-ahead "the next read does not continue".
    Seek {
        /// Descriptor.
        ofd: OfdId,
    },
    /// posix_fadvise or readahead on bytes `[off, off+len)`; `len` 0 = to the end.
    Advise {
        /// Descriptor.
        ofd: OfdId,
        /// First byte.
        off: u64,
        /// Bytes.
        len: u64,
        /// What is said.
        advice: Advice,
    },
    /// read/pread: bytes `[off, off+len)`; `len` is what the recorded call returned.
    Read {
        /// Descriptor.
        ofd: OfdId,
        /// First byte.
        off: u64,
        /// Bytes.
        len: u64,
    },
    /// write/pwrite: bytes `[off, off+len)`.
    Write {
        /// Descriptor.
        ofd: OfdId,
        /// First byte.
        off: u64,
        /// Bytes.
        len: u64,
    },
    /// read or write of an O_DIRECT descriptor: bytes `[off, off+len)`.
    Direct {
        /// Descriptor.
        ofd: OfdId,
        /// First byte.
        off: u64,
        /// Bytes.
        len: u64,
        /// To the disk.
        write: bool,
    },
    /// fsync/fdatasync of a file.
    Fsync {
        /// File.
        file: FileId,
        /// fdatasync: times of access and change need not be on the disk.
        data_only: bool,
    },
    /// sync of everything.
    Sync,
    /// Set the size; pages and blocks beyond are dropped.
    Truncate {
        /// File.
        file: FileId,
        /// New size, bytes.
        len: u64,
    },
    /// Remove the name; pages are dropped (once nobody has it open).
    Unlink {
        /// File.
        file: FileId,
    },
    /// Name lookup plus inode (stat, access, a failed open: `negative`).
    Stat {
        /// File.
        file: FileId,
        /// The name does not exist.
        negative: bool,
    },
    /// getdents: reads directory blocks.
    Readdir {
        /// Directory.
        file: FileId,
        /// First byte.
        off: u64,
        /// Bytes.
        len: u64,
    },
    /// mmap of an area (anonymous or of a file): reserves, touches nothing.
    Map {
        /// Area.
        area: AreaId,
    },
    /// munmap: anonymous pages and swap slots are freed, file pages lose this mapping.
    Unmap {
        /// Area.
        area: AreaId,
    },
    /// madvise of an area's pages, or a part of it that is unmapped (as [`Advice::DontNeed`]).
    AdviseArea {
        /// Area.
        area: AreaId,
        /// First page, from the area's start; pages beyond its end count for nothing.
        first: u32,
        /// Pages.
        count: u32,
        /// What is said.
        advice: Advice,
    },
    /// fork: a child that is about to be started maps an anonymous area of its parent as well, with its parent's pages.
    Share {
        /// Area.
        area: AreaId,
        /// Child.
        task: TaskId,
    },
    /// `count` touches of an area's pages, `stride` pages apart.
    Touch {
        /// Area.
        area: AreaId,
        /// First page, from the area's start.
        first: u32,
        /// Touches.
        count: u32,
        /// Pages from one touch to the next.
        stride: u16,
        /// The touches write.
        write: bool,
    },
    /// Sleep for the time asked for (timers round as the variant's kernel does).
    Sleep {
        /// Requested time.
        time: Nanos,
    },
    /// Sleep until `after` has passed since the point of time that the task's last pace named, or since now for the first; not
    /// at all if that is over.
    Pace {
        /// Distance.
        after: Nanos,
        /// The task's first.
        first: bool,
    },
    /// Wait for something outside of the trace (network peer, terminal) for the recorded time.
    External {
        /// Recorded duration.
        time: Nanos,
    },
    /// Send or receive a message over a shared half-duplex first-come-first-served link.
    Link {
        /// Index into [`Program::links`].
        link: u32,
        /// Bytes on the wire.
        bytes: u32,
    },
    /// Receive `total` bytes from a paced link and write them to a file from offset 0, in pieces of
    /// min(`chunk`, what has arrived): the piece sizes depend on the simulated time.
    RecvWrite {
        /// Descriptor written to.
        ofd: OfdId,
        /// Bytes in all.
        total: u64,
        /// Largest piece, bytes.
        chunk: u32,
        /// Index into [`Program::links`].
        link: u16,
        /// Client number on that link.
        client: u16,
    },
    /// Ask a request server again and again, as a client of a link of kind [`LinkKind::Server`], until its time is over.
    Ask {
        /// Index into [`Program::links`].
        link: u32,
        /// Client number on that link.
        client: u32,
    },
    /// Add `n` to a channel.
    Post {
        /// Channel.
        channel: ChannelId,
        /// How much.
        n: u32,
    },
    /// Wait until `n` can be taken from a channel, and take it.
    Await {
        /// Channel.
        channel: ChannelId,
        /// How much.
        n: u32,
    },
    /// Start a task that begins with its creation.
    Spawn {
        /// Task.
        task: TaskId,
    },
    /// A named point in time, for reports and proofs.
    Mark {
        /// Index into [`Program::marks`].
        mark: u32,
    },
    /// A call that costs only CPU here.
    Cpu {
        /// Time.
        time: Nanos,
    },
}

/// What an application says of its use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing in particular.
    Normal,
    /// In order.
    Sequential,
    /// In no order.
    Random,
    /// Soon: read it now.
    WillNeed,
    /// Not any more: drop it.
    DontNeed,
}

const _: () = assert!(std::mem::size_of::<Op>() <= 32);

/// A stretch of a file on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First page of the file.
    pub page: u32,
    /// Pages.
    pub pages: u32,
    /// First sector on the device.
    pub sector: Sectors,
}

/// What kind of thing a file is to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Ordinary file.
    Regular,
    /// Directory (its blocks live in the page cache or, on 2.2 and 2.4's ext2, in the buffer cache).
    Directory,
    /// The block device's own pages: inode tables, indirect blocks, bitmaps. One per device, named `[meta]`.
    Metadata,
}

/// One file.
#[derive(Clone, Debug)]
pub struct FileInfo {
    /// Path as recorded.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Index into [`Program::devices`].
    pub device: u32,
    /// First page id.
    pub first_page: PageId,
    /// Pages that any operation may reach (ids reserved).
    pub pages: u32,
    /// Size before the first operation, bytes; 0 where the trace creates it.
    pub initial_size: u64,
    /// It exists before the first operation.
    pub exists: bool,
    /// It was there already and lies on another file system than those whose files the recording has places of.
    pub elsewhere: bool,
    /// Where its pages lie (ordered by `page`, covering all `pages`).
    pub extents: Vec<Extent>,
    /// Containing directory, if modelled.
    pub parent: Option<FileId>,
    /// Page id (of the device's metadata file) of the block with its inode.
    pub inode_page: Option<PageId>,
    /// Page id (of the containing directory's file) of the block with its name.
    pub name_page: Option<PageId>,
    /// Page ids of its indirect blocks in order: entry `k` maps pages `[12 + k*1024, ...)` (4 KiB blocks).
    pub indirect: Vec<PageId>,
    /// Page ids of the blocks that say what is free in its block group: bitmap of blocks, bitmap of inodes, group descriptors.
    pub group: Option<[PageId; 3]>,
}

impl FileInfo {
    /// Sector of a page of this file.
    ///
    /// # Panics
    /// If `page` is not below [`FileInfo::pages`].
    pub fn sector_of(&self, page: u32) -> Sectors {
        let i = self.extents.partition_point(|e| e.page <= page) - 1;
        let e = self.extents[i];
        assert!(page < e.page + e.pages, "page {page} of {} lies in no extent", self.path);
        Sectors(e.sector.0 + u64::from(page - e.page) * kreplay_traces::units::SECTORS_PER_PAGE)
    }
}

/// One mapped area of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaInfo {
    /// Task that maps it.
    pub task: TaskId,
    /// Pages.
    pub pages: u32,
    /// First page id: of its own for an anonymous area, of the file's page at the mapping's start otherwise.
    pub first_page: PageId,
    /// Mapped file; `None` = anonymous.
    pub file: Option<FileId>,
    /// Writes go to private copies.
    pub private: bool,
}

/// One device of the trace. The model behind it is the variant's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name in reports (`hdc`, `7:0`).
    pub name: String,
    /// Capacity.
    pub sectors: Sectors,
    /// First sectors of its partitions, ascending; the elevator never merges or sorts across partitions that its
    /// kernel tells apart.
    pub partitions: Vec<Sectors>,
}

/// How a link hands out bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// One message at a time, in order of request.
    Fifo,
    /// A timer tick adds `rate` x elapsed to a budget (capped), handed out in segments round robin to clients whose
    /// untaken bytes stay within the window.
    Segments {
        /// Segment size, bytes.
        mss: u32,
        /// Window per client, bytes.
        window: u32,
        /// Largest budget, bytes.
        burst: u32,
        /// Sleep between hand-outs as asked for.
        tick: Nanos,
    },
    /// Clients of a request server; times in ms.
    Server(ServerLoad),
}

/// What clients ask of a request server, see [`crate::net::nfsd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in the trace's manifest")]
pub struct ServerLoad {
    pub threads: u32,
    pub window: u32,
    pub service_ms: u32,
    pub reply_bytes: u32,
    pub send_buffer_bytes: u32,
    pub congested: (u32, u32, u32),
    pub duration_ms: u32,
}

/// A network link shared by tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Discipline.
    pub kind: LinkKind,
    /// Bytes per second.
    pub rate_bytes_s: u64,
    /// Clients.
    pub clients: u32,
}

/// When a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At a time since the trace's start.
    At(Nanos),
    /// When another task spawns it.
    Spawned,
}

/// One task's operations, structure of arrays; all vectors have the same length.
#[derive(Clone, Debug)]
pub struct TaskProgram {
    /// Thread id of the recording.
    pub tid: i64,
    /// Name in reports.
    pub name: String,
    /// Client it stands for, if the trace says so.
    pub client: Option<String>,
    /// Beginning.
    pub start: Start,
    /// Ends with the last task that is not in the background.
    pub background: bool,
    /// After the last operation go on at this one.
    pub repeat_from: Option<u32>,
    /// Once a read failed it reads no more from that descriptor.
    pub gives_up: bool,
    /// What it does.
    pub ops: Vec<Op>,
    /// Think time before each operation (closed pacing).
    pub think: Vec<Nanos>,
    /// Recorded start of each operation (recorded pacing).
    pub at: Vec<Nanos>,
    /// Recorded duration, `Nanos::MAX` where unknown.
    pub recorded: Vec<Nanos>,
    /// Input line of each operation.
    pub line: Vec<u32>,
    /// Channel that gets one post when the task ends.
    pub exit_channel: Option<ChannelId>,
}

impl TaskProgram {
    /// A task that does nothing yet.
    pub fn new(tid: i64, name: impl Into<String>, start: Start) -> Self {
        Self {
            tid,
            name: name.into(),
            client: None,
            start,
            background: false,
            repeat_from: None,
            gives_up: false,
            ops: Vec::new(),
            think: Vec::new(),
            at: Vec::new(),
            recorded: Vec::new(),
            line: Vec::new(),
            exit_channel: None,
        }
    }
}

/// How much of the program rests on assumptions; printed in reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// Calls compiled into operations.
    pub calls: u64,
    /// Calls that act on nothing modelled (kept as CPU time).
    pub calls_cpu_only: u64,
    /// Calls skipped because they failed or never returned.
    pub calls_failed: u64,
    /// Descriptors that had to be guessed.
    pub unknown_fds: u64,
    /// Bytes whose place on disk was recorded.
    pub bytes_placed: u64,
    /// Bytes whose place on disk was allocated by rule.
    pub bytes_allocated: u64,
    /// Notes in words (io_uring seen, mmap faults assumed, ...).
    pub notes: Vec<String>,
}

/// A compiled trace.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Content hash of the trace directory it was compiled from (hex).
    pub trace_id: String,
    /// Files by id.
    pub files: Vec<FileInfo>,
    /// Areas by id.
    pub areas: Vec<AreaInfo>,
    /// Devices by index; 0 holds the files unless they say otherwise.
    pub devices: Vec<DeviceInfo>,
    /// Links by index.
    pub links: Vec<LinkInfo>,
    /// Tasks by id.
    pub tasks: Vec<TaskProgram>,
    /// Number of open file descriptions.
    pub ofds: u32,
    /// Number of channels, and what each begins with.
    pub channels: Vec<u32>,
    /// Mark names.
    pub marks: Vec<String>,
    /// Page ids in use (files and areas).
    pub pages: u32,
    /// What the recorded machine's memory was used for.
    pub memory: RecordedMemory,
    /// How much of it rests on assumptions.
    pub coverage: Coverage,
}
