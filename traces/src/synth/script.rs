//! Emits the rows of a generated load: tasks with their clocks and descriptors, pipes, sleeps, marks.

use crate::event::{EventSink, FaultRow, FileRow, ProcessRow, SyscallRow};
use crate::store::{DeviceSpec, LinkSpec};
use crate::units::PAGE_BYTES;

/// What every call takes on a task's clock, nanoseconds.
pub const STEP_NS: i64 = 1000;
/// Thread id of a load's first task.
const FIRST_TID: i64 = 100;
/// Address of the first mapping; areas are placed one after the other with a hole between.
const FIRST_ADDR: i64 = 0x4000_0000;

/// What a load made, beside its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// Rows of tables `syscall` and `fault`.
    pub rows: u64,
    /// Links, in the order of their numbers.
    pub links: Vec<LinkSpec>,
    /// Devices that the load's files lie on.
    pub devices: Vec<DeviceSpec>,
}

/// A task being scripted. Dropping it without [`Script::exit`] leaves it without an end (background tasks).
pub(super) struct Task {
    tid: i64,
    parent: Option<i64>,
    time_ns: i64,
    next_fd: i64,
    client: Option<String>,
    background: bool,
    repeat_from_line: Option<i64>,
}

/// A pipe that counts: each byte written lets one read of a byte pass.
pub(super) struct Pipe {
    read_fd: i64,
    write_fd: i64,
    /// When each byte was written.
    posted_ns: Vec<i64>,
    taken: usize,
}

/// A mapping.
#[derive(Clone, Copy)]
pub(super) struct Area {
    addr: i64,
    bytes: i64,
}

/// Emits rows.
pub(super) struct Script<'s> {
    sink: &'s mut dyn EventSink,
    line: i64,
    next_tid: i64,
    next_addr: i64,
    pub(super) made: Generated,
}

impl<'s> Script<'s> {
    pub(super) fn new(sink: &'s mut dyn EventSink) -> Self {
        Self { sink, line: 0, next_tid: FIRST_TID, next_addr: FIRST_ADDR, made: Generated::default() }
    }

    pub(super) fn finish(mut self) -> Generated {
        self.made.rows = self.line.unsigned_abs();
        self.made
    }

    /// A file that exists before the load begins (or whose place is known before it is made: size `None`).
    pub(super) fn file(&mut self, row: &FileRow<'_>) {
        self.sink.file(row);
    }

    /// The first task. It marks `start`.
    pub(super) fn main_task(&mut self) -> Task {
        let mut task = Task {
            tid: self.next_tid,
            parent: None,
            time_ns: 0,
            next_fd: 3,
            client: None,
            background: false,
            repeat_from_line: None,
        };
        self.next_tid += 1;
        self.mark(&mut task, "start");
        task
    }

    /// A task of its own, which nothing starts and nothing waits for: it begins at time 0 (with a seed up to 1 ms later).
    pub(super) fn root_task(&mut self, client: &str) -> Task {
        let tid = self.next_tid;
        self.next_tid += 1;
        Task {
            tid,
            parent: None,
            time_ns: 0,
            next_fd: 3,
            client: Some(client.to_owned()),
            background: false,
            repeat_from_line: None,
        }
    }

    /// Computing: the task wants a processor for so long.
    pub(super) fn compute_us(&mut self, task: &mut Task, us: u64) {
        if us > 0 {
            let until_ns = task.time_ns + us.cast_signed() * 1000;
            self.call_until(task, SyscallRow { call: "x-compute", ret: Some(0), ..SyscallRow::default() }, until_ns);
        }
    }

    /// A file that exists before the load begins, anywhere on the data disk.
    pub(super) fn lying_file(&mut self, path: &str, bytes: u64) {
        self.file(&FileRow {
            path,
            size_bytes: Some(bytes.cast_signed()),
            dev: Some(super::layout::DATA_DEV),
            ..FileRow::default()
        });
    }

    /// A task that `parent` clones now.
    pub(super) fn clone_task(&mut self, parent: &mut Task) -> Task {
        let tid = self.next_tid;
        self.next_tid += 1;
        self.call(
            parent,
            SyscallRow { call: "clone", ret: Some(tid), flags: Some("SIGCHLD"), ..SyscallRow::default() },
        );
        Task {
            tid,
            parent: Some(parent.tid),
            time_ns: parent.time_ns,
            next_fd: parent.next_fd,
            client: None,
            background: false,
            repeat_from_line: None,
        }
    }

    /// The task goes on as another program: nothing of the memory that it shares with its parent since the clone stays mapped.
    /// Without a path the program's own code is not part of the load.
    pub(super) fn exec(&mut self, task: &mut Task, path: Option<&str>) {
        self.call(task, SyscallRow { call: "execve", path, ret: Some(0), ..SyscallRow::default() });
    }

    /// A task that `parent` clones now and that is a program of its own.
    pub(super) fn run(&mut self, parent: &mut Task, path: Option<&str>) -> Task {
        let mut task = self.clone_task(parent);
        self.exec(&mut task, path);
        task
    }

    /// End of a task that nobody waits for, or whose end others wait for by [`Script::wait`].
    pub(super) fn exit(&mut self, task: &mut Task) {
        self.call(task, SyscallRow { call: "exit_group", args: Some("0"), ..SyscallRow::default() });
        self.process(task);
    }

    /// The main task's end: mark `workload`, exit.
    pub(super) fn end(&mut self, task: &mut Task) {
        self.mark(task, "workload");
        self.exit(task);
    }

    /// A task that goes on until the load ends.
    pub(super) fn background(&mut self, task: &mut Task) {
        task.background = true;
        self.process(task);
    }

    fn process(&mut self, task: &Task) {
        self.sink.process(&ProcessRow {
            tid: task.tid,
            parent_tid: task.parent,
            comm: Some("load"),
            client: task.client.as_deref(),
            background: task.background,
            repeat_from_line: task.repeat_from_line,
            // The recorded programs read until they have it all or a read returns no byte.
            gives_up: true,
        });
    }

    /// Line that the next row will have: where an endless loop begins.
    pub(super) fn next_line(&self) -> i64 {
        self.line + 1
    }

    /// Wait for the end of a child.
    pub(super) fn wait(&mut self, task: &mut Task, child: &Task) {
        let row = SyscallRow {
            call: "wait4",
            ret: Some(child.tid),
            args: Some("-1, NULL, 0, NULL"),
            ..SyscallRow::default()
        };
        self.call_until(task, row, child.time_ns);
    }

    fn call(&mut self, task: &mut Task, row: SyscallRow<'_>) {
        self.call_until(task, row, i64::MIN);
    }

    /// Emit a call that lasts a step, or until `until_ns` if that is later.
    fn call_until(&mut self, task: &mut Task, row: SyscallRow<'_>, until_ns: i64) {
        self.line += 1;
        let end = (task.time_ns + STEP_NS).max(until_ns);
        let dur_ns = Some(end - task.time_ns);
        self.sink.syscall(&SyscallRow { time_ns: task.time_ns, tid: task.tid, dur_ns, line: self.line, ..row });
        task.time_ns = end;
    }

    /// A named point in time.
    pub(super) fn mark(&mut self, task: &mut Task, name: &str) {
        self.call(task, SyscallRow { call: "x-mark", path: Some(name), ret: Some(0), ..SyscallRow::default() });
    }

    /// Open a file; the descriptor.
    pub(super) fn open(&mut self, task: &mut Task, path: &str, flags: &str) -> i64 {
        let fd = task.next_fd;
        task.next_fd += 1;
        let row =
            SyscallRow { call: "openat", path: Some(path), ret: Some(fd), flags: Some(flags), ..SyscallRow::default() };
        self.call(task, row);
        fd
    }

    /// Close the descriptor opened last.
    pub(super) fn close(&mut self, task: &mut Task, fd: i64) {
        if fd + 1 == task.next_fd {
            task.next_fd = fd;
        }
        self.fd_call(task, "close", fd);
    }

    /// A call whose only argument is a descriptor.
    pub(super) fn fd_call(&mut self, task: &mut Task, call: &str, fd: i64) {
        self.call(task, SyscallRow { call, fd: Some(fd), ret: Some(0), ..SyscallRow::default() });
    }

    /// A call without arguments that matter.
    pub(super) fn plain_call(&mut self, task: &mut Task, call: &str) {
        self.call(task, SyscallRow { call, ret: Some(0), ..SyscallRow::default() });
    }

    /// A call whose argument is a path.
    pub(super) fn path_call(&mut self, task: &mut Task, call: &str, path: &str) {
        self.call(task, SyscallRow { call, path: Some(path), ret: Some(0), ..SyscallRow::default() });
    }

    /// `read` or `write` of `len` bytes, all of them.
    pub(super) fn io(&mut self, task: &mut Task, call: &str, fd: i64, len: u64) {
        let len = len.cast_signed();
        let row = SyscallRow { call, fd: Some(fd), len_bytes: Some(len), ret: Some(len), ..SyscallRow::default() };
        self.call(task, row);
    }

    /// `getdents64` with a 4 KiB buffer that returns `ret` bytes.
    pub(super) fn getdents(&mut self, task: &mut Task, fd: i64, ret: i64) {
        let row = SyscallRow {
            call: "getdents64",
            fd: Some(fd),
            len_bytes: Some(4096),
            ret: Some(ret),
            ..SyscallRow::default()
        };
        self.call(task, row);
    }

    /// `lseek` to an absolute offset.
    pub(super) fn seek(&mut self, task: &mut Task, fd: i64, offset: u64) {
        let offset = Some(offset.cast_signed());
        let row = SyscallRow {
            call: "lseek",
            fd: Some(fd),
            offset_bytes: offset,
            ret: offset,
            flags: Some("SEEK_SET"),
            ..SyscallRow::default()
        };
        self.call(task, row);
    }

    /// Sleep; the kernel replayed rounds it as its timers do.
    pub(super) fn sleep_ms(&mut self, task: &mut Task, ms: u64) {
        let args = format!("CLOCK_REALTIME, 0, {{tv_sec={}, tv_nsec={}}}, NULL", ms / 1000, ms % 1000 * 1_000_000);
        self.line += 1;
        let dur = ms.cast_signed() * 1_000_000;
        self.sink.syscall(&SyscallRow {
            time_ns: task.time_ns,
            tid: task.tid,
            call: "clock_nanosleep",
            ret: Some(0),
            dur_ns: Some(dur),
            args: Some(&args),
            line: self.line,
            ..SyscallRow::default()
        });
        task.time_ns += dur;
    }

    /// A pipe; tasks cloned later inherit it.
    pub(super) fn pipe(&mut self, task: &mut Task) -> Pipe {
        let (read_fd, write_fd) = (task.next_fd, task.next_fd + 1);
        task.next_fd += 2;
        let row =
            SyscallRow { call: "pipe2", fd: Some(read_fd), fd2: Some(write_fd), ret: Some(0), ..SyscallRow::default() };
        self.call(task, row);
        Pipe { read_fd, write_fd, posted_ns: Vec::new(), taken: 0 }
    }

    /// Write a byte to a pipe.
    pub(super) fn post(&mut self, task: &mut Task, pipe: &mut Pipe) {
        self.io(task, "write", pipe.write_fd, 1);
        pipe.posted_ns.push(task.time_ns);
    }

    /// Read a byte from a pipe. The byte must have been posted before in the script (whatever the clocks say).
    pub(super) fn take(&mut self, task: &mut Task, pipe: &mut Pipe) {
        let posted = pipe.posted_ns[pipe.taken];
        pipe.taken += 1;
        let row = SyscallRow {
            call: "read",
            fd: Some(pipe.read_fd),
            len_bytes: Some(1),
            ret: Some(1),
            ..SyscallRow::default()
        };
        self.call_until(task, row, posted);
    }

    /// Map anonymous memory.
    pub(super) fn map_anonymous(&mut self, task: &mut Task, bytes: u64) -> Area {
        self.map(task, bytes, None, "PROT_READ|PROT_WRITE|MAP_PRIVATE|MAP_ANONYMOUS")
    }

    /// Map the beginning of a file, read-only and shared.
    pub(super) fn map_file(&mut self, task: &mut Task, fd: i64, bytes: u64) -> Area {
        self.map(task, bytes, Some(fd), "PROT_READ|MAP_SHARED")
    }

    fn map(&mut self, task: &mut Task, bytes: u64, fd: Option<i64>, flags: &str) -> Area {
        let area = Area { addr: self.next_addr, bytes: bytes.cast_signed() };
        self.next_addr += bytes.next_multiple_of(PAGE_BYTES).cast_signed() + PAGE_BYTES.cast_signed();
        let row = SyscallRow {
            call: "mmap",
            ret: Some(area.addr),
            addr: Some(area.addr),
            len_bytes: Some(area.bytes),
            fd,
            offset_bytes: Some(0),
            flags: Some(flags),
            ..SyscallRow::default()
        };
        self.call(task, row);
        area
    }

    /// Unmap an area.
    pub(super) fn unmap(&mut self, task: &mut Task, area: Area) {
        let row = SyscallRow {
            call: "munmap",
            addr: Some(area.addr),
            len_bytes: Some(area.bytes),
            ret: Some(0),
            ..SyscallRow::default()
        };
        self.call(task, row);
    }

    /// Touch `count` pages of an area from page `first` on, `stride` pages apart.
    pub(super) fn touch(&mut self, task: &mut Task, area: Area, first: u64, count: u64, stride: u64, write: bool) {
        let page = |n: u64| n.cast_signed() * PAGE_BYTES.cast_signed();
        debug_assert!(count == 0 || page(first + (count - 1) * stride) < area.bytes, "touch outside of its area");
        self.line += 1;
        self.sink.fault(&FaultRow {
            time_ns: task.time_ns,
            tid: task.tid,
            addr: area.addr + page(first),
            count: count.cast_signed(),
            stride_bytes: page(stride),
            write,
            line: self.line,
        });
        task.time_ns += STEP_NS;
    }

    /// Touch every page of an area in order.
    pub(super) fn touch_all(&mut self, task: &mut Task, area: Area, write: bool) {
        self.touch(task, area, 0, area.bytes.unsigned_abs().div_ceil(PAGE_BYTES), 1, write);
    }

    /// Add a link; its number.
    pub(super) fn link(&mut self, link: LinkSpec) -> usize {
        self.made.links.push(link);
        self.made.links.len() - 1
    }

    /// Send or receive a message over a first-come-first-served link.
    pub(super) fn message(&mut self, task: &mut Task, link: usize, bytes: u64) {
        let args = format!("link={link}");
        let row = SyscallRow {
            call: "x-link",
            len_bytes: Some(bytes.cast_signed()),
            ret: Some(0),
            args: Some(&args),
            ..SyscallRow::default()
        };
        self.call(task, row);
    }

    /// Ask a request server as client `client` of a link of its kind, until its time is over.
    pub(super) fn ask(&mut self, task: &mut Task, link: usize, client: u64) {
        let args = format!("link={link} client={client}");
        self.call(task, SyscallRow { call: "x-ask", ret: Some(0), args: Some(&args), ..SyscallRow::default() });
    }

    /// Receive `total` bytes from a paced link and write them from the file's current offset.
    pub(super) fn receive(&mut self, task: &mut Task, fd: i64, total: u64, link: usize, client: u64, chunk: u64) {
        let args = format!("link={link} client={client} chunk={chunk}");
        let total = Some(total.cast_signed());
        let row = SyscallRow {
            call: "x-recvwrite",
            fd: Some(fd),
            len_bytes: total,
            ret: total,
            args: Some(&args),
            ..SyscallRow::default()
        };
        self.call(task, row);
    }

    /// Read `bytes` of a file in pieces of `chunk`; `mark` gives a name after every `every` bytes (0: never).
    pub(super) fn read_file(
        &mut self,
        task: &mut Task,
        fd: i64,
        bytes: u64,
        chunk: u64,
        every: u64,
        mark: impl Fn(u64) -> String,
    ) {
        let (mut done, mut next_mark) = (0, every);
        while done < bytes {
            self.io(task, "read", fd, chunk);
            done += chunk;
            if every > 0 && done >= next_mark {
                self.mark(task, &mark(done >> 20));
                next_mark += every;
            }
        }
    }
}

impl Task {
    /// Name the client that the task stands for in reports.
    pub(super) fn set_client(&mut self, name: String) {
        self.client = Some(name);
    }

    /// After its last row the task goes on at this line.
    pub(super) fn repeat_from(&mut self, line: i64) {
        self.repeat_from_line = Some(line);
    }
}

/// No marks.
pub(super) fn unmarked(_: u64) -> String {
    String::new()
}
