//! The interpreter: follows every call's effect on descriptors, files, memory and tasks, and says what it becomes.
//!
//! It runs twice over the same events and takes the same decisions on identity (which file, description, area, task)
//! both times: the first pass collects evidence ([`Survey`]), the second emits operations with it ([`Known`]).
//!
//! Effects count from a call's start, but for calls that make a descriptor: another task can use the number only after
//! they return, and may have freed it meanwhile; so these are held back to their end.

mod clock;
mod data;
mod fd;
mod namespace;
mod process;
mod pseudo;
mod vm;
mod waits;

use std::collections::BTreeMap;

use kreplay_traces::event::{FaultRow, SyscallRow};
use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use self::clock::Clock;
use super::emit::{Emitter, Origin};
use super::fds::{Descriptors, StreamId, Target};
use super::link::AbsoluteSleep;
use super::memory::Memory;
use super::names::Names;
use super::notes::Notes;
use super::source::{EventRow, OwnedSyscall, SideTables};
use super::survey::{Known, Survey};
use super::tasks::{TaskIndex, Tasks};
use super::{CompileError, CompileOptions, args, paths, sizes};
use crate::program::{ChannelId, Coverage, FileId, OfdId, Op};

/// What the second pass has on top of the first.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) known: Known,
    pub(super) emitter: Emitter,
    /// What each channel begins with.
    pub(super) channels: Vec<u32>,
    pub(super) stream_channels: FxHashMap<StreamId, ChannelId>,
    /// Channels that ends of tasks post to.
    pub(super) exit_channels: FxHashMap<TaskIndex, ChannelId>,
    /// Channels that vfork children post to when they exec or end.
    pub(super) vfork_channels: FxHashMap<TaskIndex, ChannelId>,
    pub(super) marks: indexmap::IndexSet<String>,
    /// Sleeps until a point of time.
    pub(super) absolute: Vec<AbsoluteSleep>,
}

/// State of the interpretation.
pub(super) struct World<'a> {
    opts: &'a CompileOptions,
    side: &'a SideTables,
    /// Side table's size (if any) and kind by path.
    recorded: FxHashMap<&'a str, (Option<u64>, bool)>,
    background: FxHashMap<i64, bool>,
    pub(super) names: Names,
    pub(super) fds: Descriptors,
    pub(super) mem: Memory,
    pub(super) tasks: Tasks,
    pub(super) survey: Survey,
    pub(super) out: Option<Output>,
    pub(super) notes: Notes,
    pub(super) coverage: Coverage,
    /// Calls held back to their end, by (end, order of start), and which one each thread has.
    pending: BTreeMap<(i64, u64), OwnedSyscall>,
    pending_of: FxHashMap<i64, (i64, u64)>,
    sequence: u64,
    /// Task of the current event.
    task: TaskIndex,
    /// Start of the current event.
    now_ns: i64,
    /// Input line of the current event.
    line: i64,
    clock: Clock,
}

impl Output {
    /// What the second pass begins with.
    pub(super) fn new(known: Known, zero_ns: i64, floor: Nanos) -> Self {
        Self {
            known,
            emitter: Emitter::new(zero_ns, floor),
            channels: Vec::new(),
            stream_channels: FxHashMap::default(),
            exit_channels: FxHashMap::default(),
            vfork_channels: FxHashMap::default(),
            marks: indexmap::IndexSet::new(),
            absolute: Vec::new(),
        }
    }

    /// A new channel, empty at the start.
    fn new_channel(&mut self) -> ChannelId {
        self.channels.push(0);
        (self.channels.len() - 1) as ChannelId
    }
}

impl<'a> World<'a> {
    pub(super) fn new(opts: &'a CompileOptions, side: &'a SideTables, out: Option<Output>) -> Self {
        let roots = if opts.roots.is_empty() { &side.machine.roots } else { &opts.roots };
        let mut recorded: FxHashMap<&str, (Option<u64>, bool)> = FxHashMap::default();
        for f in &side.files {
            let slot = recorded.entry(f.path.as_str()).or_default();
            slot.0 = f.size_bytes.and_then(|b| u64::try_from(b).ok()).or(slot.0);
            slot.1 |= f.directory;
        }
        Self {
            opts,
            side,
            recorded,
            background: side.processes.iter().map(|p| (p.tid, p.background)).collect(),
            names: Names::new(roots),
            fds: Descriptors::default(),
            mem: Memory::default(),
            tasks: Tasks::default(),
            survey: Survey::default(),
            out,
            notes: Notes::default(),
            coverage: Coverage::default(),
            pending: BTreeMap::new(),
            pending_of: FxHashMap::default(),
            sequence: 0,
            task: 0,
            now_ns: 0,
            line: 0,
            clock: Clock::new(side.origin_ns),
        }
    }

    /// Take the next event.
    pub(super) fn event(&mut self, mut row: EventRow<'_>) -> Result<(), CompileError> {
        if self.clock.mend(&mut row) {
            self.notes.count("clock steps of more than 30 days (taken out of the times behind them)");
        }
        match row {
            EventRow::Fault(f) => {
                self.settle(f.time_ns, f.tid)?;
                self.fault(&f);
                Ok(())
            }
            EventRow::Syscall(r) => {
                self.settle(r.time_ns, r.tid)?;
                if makes_descriptor(r.call) && r.ret.is_some_and(|v| v >= 0) && self.tasks.len() > 1 {
                    let end = r.time_ns.saturating_add(r.dur_ns.unwrap_or(0).max(0));
                    self.sequence += 1;
                    self.pending.insert((end, self.sequence), OwnedSyscall::from(&r));
                    self.pending_of.insert(r.tid, (end, self.sequence));
                    // The task exists from the call's start on.
                    self.enter(r.tid);
                    Ok(())
                } else {
                    self.call(&r)
                }
            }
        }
    }

    /// The last event was taken.
    pub(super) fn finish(&mut self) -> Result<(), CompileError> {
        while let Some((key, row)) = self.pending.pop_first() {
            self.pending_of.remove(&row.tid);
            debug_assert!(key.0 >= row.time_ns);
            self.call(&row.row())?;
        }
        Ok(())
    }

    /// Carry out what ended by `time_ns`, and whatever the thread itself still has open.
    fn settle(&mut self, time_ns: i64, tid: i64) -> Result<(), CompileError> {
        while let Some(entry) = self.pending.first_entry() {
            if entry.key().0 > time_ns {
                break;
            }
            let row = entry.remove();
            self.pending_of.remove(&row.tid);
            self.call(&row.row())?;
        }
        if let Some(row) = self.pending_of.remove(&tid).and_then(|key| self.pending.remove(&key)) {
            self.call(&row.row())?;
        }
        Ok(())
    }

    /// The living task of a thread, made if it is new.
    fn enter(&mut self, tid: i64) -> TaskIndex {
        if let Some(t) = self.tasks.current(tid) {
            return t;
        }
        let (table, mm) = (self.fds.new_table(), self.mem.new_mm());
        self.tasks.add_root(tid, table, mm, paths::UNKNOWN_CWD)
    }

    fn begin(&mut self, tid: i64, start_ns: i64, dur_ns: Option<i64>, line: i64, traced_call: bool) {
        self.task = self.enter(tid);
        self.now_ns = start_ns;
        self.line = line;
        self.survey.event(self.task, start_ns);
        let Some(out) = &mut self.out else { return };
        let Some(task) = out.known.ids[self.task] else { return };
        // Ids follow the order of appearance, so every task up to this one has appeared.
        while out.emitter.len() <= task as usize {
            let state = self.tasks.get(out.known.order[out.emitter.len()]);
            out.emitter.add_task(state.tid, format!("task {}", state.tid), state.spawned_ns);
        }
        out.emitter.begin(Origin { task: task as usize, start_ns, dur_ns, line, traced_call });
    }

    fn call(&mut self, r: &SyscallRow<'_>) -> Result<(), CompileError> {
        if self.tasks.current(r.tid).is_none() && self.tasks.last_of(r.tid).is_some() && r.ret.is_none() {
            // What a killed thread was in when its process ended.
            self.coverage.calls_failed += 1;
            return Ok(());
        }
        self.begin(r.tid, r.time_ns, r.dur_ns, r.line, true);
        let known = if r.call.starts_with("x-") {
            self.pseudo(r)?;
            true
        } else if r.errno.is_some() || r.ret == Some(-1) || (r.ret.is_none() && !ends_task(r.call)) {
            self.failed(r);
            self.coverage.calls_failed += 1;
            self.cpu_if_nothing();
            return Ok(());
        } else {
            self.fd_call(r)
                || self.data_call(r)
                || self.name_call(r)
                || self.vm_call(r)
                || self.process_call(r)
                || self.wait_call(r)
        };
        let silent = self.cpu_if_nothing();
        if known && !silent {
            self.coverage.calls += 1;
        } else {
            self.coverage.calls_cpu_only += 1;
        }
        Ok(())
    }

    fn fault(&mut self, f: &FaultRow) {
        self.survey.faults = true;
        // A script's clock goes on by a step at a touch, which is no thinking; a recorded touch is a point in time.
        let dur_ns = if self.generated() { None } else { Some(0) };
        self.begin(f.tid, f.time_ns, dur_ns, f.line, false);
        self.touch_addresses(f);
        self.cpu_if_nothing();
    }

    /// The trace was made by a generator (known in the second pass).
    fn generated(&self) -> bool {
        self.side.machine.tracer_floor == Some(Nanos::ZERO) || self.out.as_ref().is_some_and(|o| o.known.generated)
    }

    /// Keep a call that acted on nothing as CPU time of zero. Returns whether it was so.
    fn cpu_if_nothing(&mut self) -> bool {
        let nothing = self.out.as_ref().is_some_and(|o| o.emitter.is_first());
        if nothing {
            self.emit(Op::Cpu { time: Nanos::ZERO });
        }
        nothing
    }

    fn emit(&mut self, op: Op) {
        if let Some(out) = &mut self.out {
            out.emitter.push(op);
        }
    }

    /// The file of a path, with what is known of it from outside of the trace.
    fn intern(&mut self, path: &str, successor: bool) -> FileId {
        let before = self.names.files().len();
        let file = self.names.intern(path, successor);
        self.initialise_from(before);
        file
    }

    /// A file without a name.
    fn intern_anonymous(&mut self, label: String) -> FileId {
        let before = self.names.files().len();
        let file = self.names.anonymous(label);
        self.initialise_from(before);
        file
    }

    fn initialise_from(&mut self, first_new: usize) {
        for i in first_new..self.names.files().len() {
            let id = i as FileId;
            let state = self.names.get_mut(id);
            let side = if state.first_generation { self.recorded.get(state.path.as_str()).copied() } else { None };
            if let Some((size, directory)) = side {
                state.directory |= directory;
                // A row without a size tells where the file lies, perhaps only after the trace.
                if let Some(bytes) = size {
                    *self.survey.size(id) = sizes::SizeEvidence::recorded(bytes);
                }
            } else if !state.first_generation && !state.guessed {
                self.survey.size(id).absent();
            }
            match &self.out {
                Some(out) => {
                    let initial = out.known.initial[i];
                    state.present = initial.exists;
                    state.set_size(initial.bytes);
                }
                None => state.set_size(side.and_then(|(size, _)| size).unwrap_or(0)),
            }
        }
    }

    /// A call found the file there, and so its directories.
    fn found(&mut self, file: FileId) {
        let mut next = Some(file);
        while let Some(f) = next {
            self.survey.size(f).found();
            let state = self.names.get_mut(f);
            state.present = true;
            next = state.parent;
        }
    }

    /// The absolute path of an argument: relative ones start at `dirfd`, or at the working directory.
    fn locate(&mut self, r: &SyscallRow<'_>, path: &str, dirfd: Option<i64>) -> String {
        if path.starts_with('/') {
            return paths::absolute("/", paths::without_deleted(path));
        }
        if let Some(fd) = dirfd.filter(|fd| *fd >= 0) {
            let table = self.tasks.get(self.task).table;
            if let Some(Target::File { file, .. }) = self.fds.desc(table, fd).map(|d| self.fds.target(d)) {
                return paths::absolute(&self.names.get(file).current, path);
            }
            if let Some(dir) = args::angle_path(r.args, &format!("{fd}")) {
                return paths::absolute(dir, path);
            }
        } else if let Some(cwd) = args::angle_path(r.args, "AT_FDCWD") {
            let cwd = paths::absolute("/", cwd);
            if self.tasks.cwd(self.task) != cwd {
                self.tasks.set_cwd(self.task, cwd);
            }
        }
        paths::absolute(self.tasks.cwd(self.task), path)
    }

    /// Emit what the last close of a description does.
    fn closed(&mut self, target: Option<Target>) {
        if let Some(Target::File { ofd, file, .. }) = target
            && self.is_real(file)
        {
            self.emit(Op::Close { ofd });
        }
    }

    /// A guess that was not borne out is no file.
    fn is_real(&self, file: FileId) -> bool {
        self.out.as_ref().is_none_or(|o| o.known.real[file as usize])
    }

    fn end_ns(r: &SyscallRow<'_>) -> i64 {
        r.dur_ns.map_or(i64::MAX, |d| r.time_ns.saturating_add(d.max(0)))
    }

    /// A wait for something outside of the model, for as long as it took.
    fn external(&mut self, r: &SyscallRow<'_>) {
        let time = Nanos(r.dur_ns.and_then(|d| u64::try_from(d).ok()).unwrap_or(0));
        self.emit(Op::External { time });
    }

    /// A call on something outside of the model: CPU, or a wait if it took long enough to have been one.
    fn outside(&mut self, r: &SyscallRow<'_>) {
        self.notes.count("calls on files outside of the model (taken as cached, or as waits if they took long)");
        let time = r.dur_ns.and_then(|d| u64::try_from(d).ok()).unwrap_or(0);
        if time >= self.opts.outside_wait.get() {
            self.emit(Op::External { time: Nanos(time) });
        }
    }

    fn new_ofd(&mut self) -> OfdId {
        self.fds.new_ofd()
    }
}

fn makes_descriptor(call: &str) -> bool {
    matches!(
        call,
        "open"
            | "openat"
            | "openat2"
            | "creat"
            | "dup"
            | "pipe"
            | "pipe2"
            | "socket"
            | "accept"
            | "accept4"
            | "socketpair"
    ) || (call == "fcntl" || call == "fcntl64")
}

fn ends_task(call: &str) -> bool {
    matches!(call, "exit" | "exit_group" | "_exit")
}
