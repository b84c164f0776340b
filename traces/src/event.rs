//! The rows of a trace, as borrowed views: what a parser emits and a store writes.
//!
//! Conventions of every table: signed 64-bit integers with the unit in the name; `None` means that the source does not
//! say (never 0 or -1); `line` leads back to the input (1-based line of a text, 1-based record of a binary), so that
//! each simulated anomaly can be shown in the log that it came from. `time_ns` is absolute in the source's own clock
//! while parsing; the store shifts all tables of a trace to the trace's start (see the manifest's clock section).

/// One system call (strace), entry and result together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SyscallRow<'a> {
    /// Entry time, nanoseconds.
    pub time_ns: i64,
    /// Thread (strace prints thread ids).
    pub tid: i64,
    /// Name as strace prints it (`pread64`), or a workload generator's pseudo-call (name starts with `x-`).
    pub call: &'a str,
    /// Return value; `None` where strace printed `?` or the call never returned.
    pub ret: Option<i64>,
    /// Symbolic error (`ENOENT`) of a failed call.
    pub errno: Option<&'a str>,
    /// Duration (`-T`, or from the resumed line), nanoseconds.
    pub dur_ns: Option<i64>,
    /// First file-descriptor argument.
    pub fd: Option<i64>,
    /// Second file descriptor (dup2's target, sendfile's source, the descriptor an open returned stays in `ret`).
    pub fd2: Option<i64>,
    /// Path argument, or what `-y` says of `fd` (unescaped).
    pub path: Option<&'a str>,
    /// Second path (rename, link), or what `-y` says of `fd2` or of the returned descriptor.
    pub path2: Option<&'a str>,
    /// Explicit file offset (pread64, lseek's request, mmap's offset, fadvise), bytes.
    pub offset_bytes: Option<i64>,
    /// Requested length (count, mmap length, truncate length), bytes.
    pub len_bytes: Option<i64>,
    /// Address argument or result (mmap, munmap, brk, madvise).
    pub addr: Option<i64>,
    /// Flags, mode, whence or advice words as printed, separated by `|`.
    pub flags: Option<&'a str>,
    /// Arguments as printed, kept for calls whose meaning needs more than the columns above (clone, wait4, poll, ...).
    pub args: Option<&'a str>,
    /// The call was never seen to return (end of log or of process).
    pub unfinished: bool,
    /// Line of the entry.
    pub line: i64,
}

/// One block-layer event (blktrace vocabulary).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockRow<'a> {
    /// Time, nanoseconds.
    pub time_ns: i64,
    /// Device, `major << 20 | minor`; `None` where the log has none (a plug of ftrace, a trace of one unnamed device).
    pub dev: Option<i64>,
    /// CPU that logged the event.
    pub cpu: Option<i64>,
    /// The tool's own sequence number.
    pub seq: Option<i64>,
    /// Action letters: Q G I D C M F P U UT A X R S B m.
    pub action: &'a str,
    /// RWBS letters as printed.
    pub rwbs: &'a str,
    /// First sector, 512-byte units.
    pub sector_512: Option<i64>,
    /// Length, bytes.
    pub len_bytes: Option<i64>,
    /// Process id.
    pub pid: Option<i64>,
    /// Process name.
    pub comm: Option<&'a str>,
    /// Error of a completion.
    pub error: Option<i64>,
    /// Device before a remap (A).
    pub from_dev: Option<i64>,
    /// Sector before a remap (A), or where a split continues (X).
    pub from_sector_512: Option<i64>,
    /// Requests counted by an unplug (U, UT).
    pub unplugged: Option<i64>,
    /// Text of a message (m) or a packet command's bytes.
    pub text: Option<&'a str>,
    /// Input line or record.
    pub line: i64,
}

impl BlockRow<'_> {
    /// The device as a number to group by: all events that name none belong to one, 0:0.
    pub fn device(&self) -> i64 {
        self.dev.unwrap_or(0)
    }
}

/// One vmstat row. Memory in KiB, rates per second as printed, CPU in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are vmstat's own columns; see docs/FORMATS.md for each unit")]
pub struct VmstatRow {
    /// Time of the sample, nanoseconds; `None` where the log has neither stamps nor a known interval.
    pub time_ns: Option<i64>,
    /// Which run inside the file (a restart begins a new one), from 0.
    pub run: i64,
    /// First row of its run: rates are averages since boot.
    pub since_boot: bool,
    pub r: Option<i64>,
    pub b: Option<i64>,
    pub w: Option<i64>,
    pub swpd_kib: Option<i64>,
    pub free_kib: Option<i64>,
    pub buff_kib: Option<i64>,
    pub cache_kib: Option<i64>,
    pub inact_kib: Option<i64>,
    pub active_kib: Option<i64>,
    pub si_kib_s: Option<i64>,
    pub so_kib_s: Option<i64>,
    pub bi_kib_s: Option<i64>,
    pub bo_kib_s: Option<i64>,
    pub in_s: Option<i64>,
    pub cs_s: Option<i64>,
    pub us_pct: Option<i64>,
    pub sy_pct: Option<i64>,
    pub id_pct: Option<i64>,
    pub wa_pct: Option<i64>,
    pub st_pct: Option<i64>,
    pub gu_pct: Option<i64>,
    /// Input line.
    pub line: i64,
}

/// Page touches by a task: what no system call shows (anonymous memory, mapped files).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRow {
    /// Time, nanoseconds.
    pub time_ns: i64,
    /// Thread.
    pub tid: i64,
    /// First address touched.
    pub addr: i64,
    /// How many touches, `stride_bytes` apart.
    pub count: i64,
    /// Distance between touches, bytes (4096: each page once).
    pub stride_bytes: i64,
    /// The touches write.
    pub write: bool,
    /// Input line.
    pub line: i64,
}

/// A process or thread of the trace (side table).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessRow<'a> {
    /// Thread id, the key.
    pub tid: i64,
    /// Creator's thread id.
    pub parent_tid: Option<i64>,
    /// Name, where known.
    pub comm: Option<&'a str>,
    /// Name of the client this task stands for in reports ("client 3"), where a generator or recording says so.
    pub client: Option<&'a str>,
    /// Ends with the last task that is not in the background.
    pub background: bool,
    /// After its last event the task starts again at this `line` of its own events (a load without end).
    pub repeat_from_line: Option<i64>,
    /// Once a read returned an error this task reads no more from that descriptor.
    pub gives_up: bool,
}

/// A file of the trace (side table).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FileRow<'a> {
    /// Path, the key.
    pub path: &'a str,
    /// Size before the trace starts, bytes.
    pub size_bytes: Option<i64>,
    /// Device it lies on, `major << 20 | minor`.
    pub dev: Option<i64>,
    /// Inode number.
    pub inode: Option<i64>,
    /// Where a part of it lies: first byte of the extent in the file.
    pub extent_offset_bytes: Option<i64>,
    /// ... first sector of that extent on `dev`, 512-byte units.
    pub extent_sector_512: Option<i64>,
    /// ... its length, bytes.
    pub extent_len_bytes: Option<i64>,
    /// It is a directory.
    pub directory: bool,
}

/// One total or average of a summary (`vmstat -s`, `strace -c`, btt): what a log says beside its events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterRow<'a> {
    /// When it was read, nanoseconds; `None` where the log does not say.
    pub time_ns: Option<i64>,
    /// What it belongs to (`disk sda`, `call read`, `Q2C`), or empty for the whole machine.
    pub subject: &'a str,
    /// What it counts, with its unit where it is no plain count (`read_sectors`, `total_memory_kib`, `mean_ns`).
    pub name: &'a str,
    /// The value.
    pub value: i64,
    /// Input line.
    pub line: i64,
}

/// An input line or record that could not be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RejectRow<'a> {
    /// 1-based line (or record).
    pub line: i64,
    /// Byte offset of the line's first byte in the (decompressed) input.
    pub byte_offset: i64,
    /// 1-based column (bytes) where it went wrong, if known.
    pub column: Option<i64>,
    /// Stable kebab-case code of the reason (`strace-no-result`).
    pub reason: &'a str,
    /// What was expected, in words.
    pub expected: &'a str,
    /// The first bytes of the line (at most 200), control characters escaped.
    pub text: &'a str,
}

/// Where rows go: a trace-directory writer, a counter, a test's vectors.
///
/// Methods cannot fail; a sink that does I/O remembers its first error and reports it when it is finished.
pub trait EventSink {
    /// Take a system call.
    fn syscall(&mut self, row: &SyscallRow<'_>);
    /// Take a block event.
    fn block(&mut self, row: &BlockRow<'_>);
    /// Take a vmstat row.
    fn vmstat(&mut self, row: &VmstatRow);
    /// Take page touches.
    fn fault(&mut self, row: &FaultRow);
    /// Take a process.
    fn process(&mut self, row: &ProcessRow<'_>);
    /// Take a file.
    fn file(&mut self, row: &FileRow<'_>);
    /// Take a total or average.
    fn counter(&mut self, row: &CounterRow<'_>);
    /// Take a reject.
    fn reject(&mut self, row: &RejectRow<'_>);
}
