//! The program of a task: fetching operations, pacing them, closing their accounts.

use super::event::Event;
use super::frame::Frame;
use super::sched::Flow;
use super::task::{At, OpCursor, Wait};
use super::{Ofd, Pacing, Sim};
use crate::config::AllocPolicy;
use crate::mm::page::flag;
use crate::program::{Op, TaskProgram};
use crate::results::{Blame, CallOp, CallRow, Cause, EventKind, EventRow, MarkRow, ResultSink};
use kreplay_traces::units::{Bytes, Nanos, PAGE_BYTES};

/// How late a precise sleep may end so that timers fire together (`timer_slack_ns`).
const TIMER_SLACK: Nanos = Nanos::from_micros(50);

impl Sim<'_> {
    /// The operation that a task has in hand.
    pub(super) fn current_op(&self, t: u32) -> Option<Op> {
        let task = &self.tasks[t as usize];
        if !task.in_op {
            return None;
        }
        self.program.tasks.get(t as usize).map(|p| p.ops[task.this_op as usize])
    }

    /// Fetch the next operation, or end the task.
    pub(super) fn step_program(&mut self, t: u32, sink: &mut dyn ResultSink) -> Flow {
        // Back in user mode: a task that was woken meanwhile goes first, since sleepers have the better goodness.
        if std::mem::take(&mut self.resched) && !self.run_queue.is_empty() && self.running.iter().all(Option::is_some) {
            return Flow::Preempt;
        }
        let program: &TaskProgram = &self.program.tasks[t as usize];
        let local = self.local_now();
        let task = &mut self.tasks[t as usize];
        if task.dying {
            return self.end_task(t, sink);
        }
        let i = match task.next_op as usize {
            i if i < program.ops.len() => i,
            _ => match program.repeat_from {
                // A load without end must not spin: what it repeats has to take time.
                Some(from) if (from as usize) < program.ops.len() => from as usize,
                _ => return self.end_task(t, sink),
            },
        };
        if !std::mem::replace(&mut task.paced, true) {
            // First time here for this operation: its pacing.
            let start = match self.pacing {
                Pacing::Closed => {
                    task.total.think += program.think[i];
                    local + program.think[i]
                }
                Pacing::Recorded => program.at[i].max(local),
                Pacing::Scaled(x) => Nanos((program.at[i].0 as f64 * x) as u64).max(local),
            };
            task.next_op = i as u32;
            if start > local {
                return self.sleep_until(t, start);
            }
        }
        task.paced = false;
        task.next_op = i as u32 + 1;
        task.this_op = i as u32;
        task.op_start = local;
        task.since = local;
        task.blame = Blame::ZERO;
        task.in_op = true;
        task.total.start.get_or_insert(local);
        self.begin_op(t, program.ops[i]);
        self.tasks[t as usize].push(Frame::Op);
        Flow::Continue
    }

    fn begin_op(&mut self, t: u32, op: Op) {
        let mut c = OpCursor::default();
        match op {
            Op::Read { ofd, off, len } | Op::Write { ofd, off, len } => {
                c.ofd = ofd;
                c.file = self.ofds[ofd as usize].file;
                (c.pos, c.end, c.start) = (off, off + len, off);
            }
            Op::RecvWrite { ofd, total, .. } => {
                c.ofd = ofd;
                c.file = self.ofds[ofd as usize].file;
                c.outer_end = total;
            }
            Op::Open { ofd, file, .. } => (c.ofd, c.file) = (ofd, file),
            Op::Direct { ofd, .. } => (c.ofd, c.file) = (ofd, self.ofds[ofd as usize].file),
            Op::Advise { ofd, .. } => (c.ofd, c.file) = (ofd, self.ofds[ofd as usize].file),
            Op::Readdir { file, off, len } => {
                c.file = file;
                (c.pos, c.end) = (off, off + len);
            }
            Op::Fsync { file, .. } | Op::Truncate { file, .. } | Op::Unlink { file } | Op::Stat { file, .. } => {
                c.file = file
            }
            Op::Touch { area, first, count, .. } => {
                c.first = self.program.areas[area as usize].first_page + first;
                c.end = u64::from(count);
            }
            _ => {}
        }
        if !matches!(op, Op::Touch { .. }) && !self.program.files.is_empty() {
            c.first = self.program.files[c.file as usize].first_page;
        }
        self.tasks[t as usize].op = c;
    }

    pub(super) fn step_op(&mut self, t: u32, sink: &mut dyn ResultSink) -> Flow {
        let program = self.program;
        let this = self.tasks[t as usize].this_op as usize;
        let op = program.tasks[t as usize].ops[this];
        let flow = match op {
            Op::Read { .. } if self.on_demand() => self.step_filemap_read(t),
            Op::Read { .. } => self.step_read(t),
            Op::Write { .. } => self.step_write(t),
            Op::Direct { off, len, write, .. } => self.step_direct(t, off, len, write),
            Op::RecvWrite { link, client, chunk, .. } => self.step_recv_write(t, link, client, chunk),
            Op::Ask { link, client } => self.step_ask(t, link, client),
            Op::Open { ofd, file, create, truncate } => self.step_open(t, ofd, file, create, truncate),
            Op::Stat { file, negative } => self.step_stat(t, file, negative),
            Op::Readdir { .. } => self.step_readdir(t),
            Op::Truncate { file, len } => {
                self.truncate(file, len);
                None
            }
            Op::Unlink { file } => self.step_unlink(t, file),
            Op::Fsync { file, data_only } if self.balanced() => self.step_file_sync(t, file, data_only),
            Op::Fsync { file, .. } => self.step_fsync(t, file),
            Op::Sync if self.balanced() => self.step_sync_all(t),
            Op::Sync => self.step_sync(t),
            Op::Advise { ofd, off, len, advice } => self.step_advise(t, ofd, off, len, advice),
            Op::AdviseArea { area, first, count, advice } => self.step_advise_area(t, area, first, count, advice),
            Op::Touch { stride, write, .. } => self.step_touch(t, u32::from(stride), write, sink),
            Op::Close { ofd } => {
                let file = self.ofds[ofd as usize].file;
                self.mm.names.release(file);
                self.placement.discard(file, program.files[file as usize].device);
                None
            }
            Op::Seek { ofd } => {
                self.ofds[ofd as usize].reada = false;
                None
            }
            Op::Map { area } => {
                self.map_area(t, area, sink);
                None
            }
            Op::Unmap { area } => {
                self.unmap_area(t, area);
                None
            }
            Op::Share { area, task } => {
                let a = program.areas[area as usize];
                self.mm.share_area(task, area, a.first_page, a.pages);
                None
            }
            Op::Sleep { time } if self.config.machine.precise_sleeps => {
                self.step_timer(t, self.local_now() + time + TIMER_SLACK)
            }
            Op::Sleep { time } => self.step_timer(t, self.timer_at(time)),
            Op::External { time } => self.step_timer(t, self.local_now() + time),
            Op::Pace { after, first } => {
                if self.tasks[t as usize].op.at == At::Begin {
                    let from = if first { self.local_now() } else { self.tasks[t as usize].pace };
                    self.tasks[t as usize].pace = from + after;
                }
                self.step_timer(t, self.tasks[t as usize].pace)
            }
            Op::Cpu { time } => {
                if self.tasks[t as usize].op.at == At::Begin {
                    self.tasks[t as usize].op.pos = time.0;
                    self.tasks[t as usize].op.at = At::Loop;
                }
                let left = self.tasks[t as usize].op.pos;
                let piece = left.min(super::BURST.0);
                self.tasks[t as usize].op.pos = left - piece;
                self.charge(piece);
                self.since_sample.user += Nanos(piece);
                // Long computing is no hang.
                self.progress += 1;
                (left > piece).then_some(Flow::Continue)
            }
            Op::Link { link, bytes } => self.step_link(t, link, bytes),
            Op::Post { channel, n } => {
                self.post(channel, n);
                None
            }
            Op::Await { channel, n } => self.step_await(t, channel, n),
            Op::Spawn { task } => {
                self.spawn(t, task);
                None
            }
            Op::Mark { mark } => {
                sink.mark(&MarkRow { task: t, mark, time: self.local_now() });
                None
            }
        };
        if let Some(flow) = flow {
            return flow;
        }
        if !matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Mark { .. } | Op::Touch { .. } | Op::Share { .. }) {
            self.charge(self.config.machine.syscall_ns);
        }
        self.finish_plug(t);
        self.end_op(t, op, sink);
        Flow::Continue
    }

    fn end_op(&mut self, t: u32, op: Op, sink: &mut dyn ResultSink) {
        let local = self.local_now();
        let program = &self.program.tasks[t as usize];
        let task = &mut self.tasks[t as usize];
        task.account(Cause::Cpu, local);
        task.pop(0);
        task.in_op = false;
        self.progress += 1;
        let dur = local - task.op_start;
        assert_eq!(task.blame.total(), dur, "the causes of a call's time must add up to it ({op:?})");
        task.total.blame.merge(&task.blame);
        let cursor = task.op;
        let (kind, file, offset, len) = match op {
            Op::Open { file, .. } => (CallOp::Open, Some(file), None, None),
            Op::Close { ofd } => (CallOp::Close, Some(self.ofds[ofd as usize].file), None, None),
            Op::Seek { ofd } => (CallOp::Seek, Some(self.ofds[ofd as usize].file), None, None),
            Op::Advise { ofd, off, len, .. } => {
                (CallOp::Advise, Some(self.ofds[ofd as usize].file), Some(off), Some(len))
            }
            Op::Read { off, .. } => {
                let n = cursor.pos.saturating_sub(off);
                task.total.read += n;
                (CallOp::Read, Some(cursor.file), Some(off), Some(n))
            }
            Op::Write { off, .. } => {
                let n = cursor.pos.saturating_sub(off);
                task.total.written += n;
                (CallOp::Write, Some(cursor.file), Some(off), Some(n))
            }
            Op::Direct { off, len, write, .. } => {
                let (total, op) =
                    if write { (&mut task.total.written, CallOp::Write) } else { (&mut task.total.read, CallOp::Read) };
                *total += len;
                (op, Some(cursor.file), Some(off), Some(len))
            }
            Op::RecvWrite { total, .. } => {
                task.total.written += cursor.pos.min(total);
                (CallOp::RecvWrite, Some(cursor.file), Some(0), Some(total))
            }
            Op::Ask { .. } => {
                task.total.read += cursor.pos;
                (CallOp::Ask, None, None, Some(cursor.pos))
            }
            Op::Fsync { file, .. } => (CallOp::Fsync, Some(file), None, None),
            Op::Sync => (CallOp::Sync, None, None, None),
            Op::Truncate { file, len } => (CallOp::Truncate, Some(file), Some(len), None),
            Op::Unlink { file } => (CallOp::Unlink, Some(file), None, None),
            Op::Stat { file, .. } => (CallOp::Stat, Some(file), None, None),
            Op::Readdir { file, off, len } => (CallOp::Readdir, Some(file), Some(off), Some(len)),
            Op::Map { area } => (CallOp::Map, self.program.areas[area as usize].file, None, None),
            Op::Unmap { area } => (CallOp::Unmap, self.program.areas[area as usize].file, None, None),
            Op::AdviseArea { area, first, count, .. } => {
                let [off, len] = [first, count].map(|n| u64::from(n) * PAGE_BYTES);
                (CallOp::Advise, self.program.areas[area as usize].file, Some(off), Some(len))
            }
            Op::Touch { area, count, .. } => {
                (CallOp::Touch, self.program.areas[area as usize].file, None, Some(u64::from(count)))
            }
            Op::Sleep { .. } => (CallOp::Sleep, None, None, None),
            Op::External { .. } | Op::Pace { .. } => (CallOp::External, None, None, None),
            Op::Link { bytes, .. } => (CallOp::Link, None, None, Some(u64::from(bytes))),
            Op::Post { .. } => (CallOp::Post, None, None, None),
            Op::Await { .. } => (CallOp::Await, None, None, None),
            Op::Spawn { .. } => (CallOp::Spawn, None, None, None),
            Op::Share { .. } => return,
            Op::Cpu { .. } => (CallOp::Cpu, None, None, None),
            Op::Mark { .. } => return,
        };
        let i = task.this_op as usize;
        let recorded = program.recorded[i];
        sink.call(&CallRow {
            task: t,
            line: program.line[i],
            op: kind,
            file,
            offset: offset.map(Bytes),
            len: len.map(Bytes),
            start: task.op_start,
            dur,
            recorded: (recorded != Nanos::MAX).then_some(recorded),
            blame: task.blame,
        });
    }

    /// `exit_mm`: the task's address space goes.
    pub(super) fn exit_memory(&mut self, t: u32) {
        for area in self.mm.spaces.areas(t) {
            self.unmap_area(t, area);
        }
    }

    fn end_task(&mut self, t: u32, _sink: &mut dyn ResultSink) -> Flow {
        self.finish_plug(t);
        self.exit_memory(t);
        let program = &self.program.tasks[t as usize];
        let local = self.local_now();
        let task = &mut self.tasks[t as usize];
        task.wait = Wait::Ended;
        task.total.end = Some(local);
        if !program.background {
            self.foreground -= 1;
            if self.foreground == 0 {
                self.ended_at = Some(local);
            }
        }
        if let Some(c) = program.exit_channel {
            self.post(c, 1);
        }
        Flow::Block
    }

    fn step_timer(&mut self, t: u32, at: Nanos) -> Option<Flow> {
        if self.tasks[t as usize].op.at == At::Done {
            return None;
        }
        self.tasks[t as usize].op.at = At::Done;
        if at <= self.local_now() {
            return None;
        }
        Some(self.sleep_until(t, at))
    }

    /// Which cause a timed wait belongs to.
    pub(super) fn time_wait_cause(&self, t: u32) -> Cause {
        match self.current_op(t) {
            Some(Op::External { .. } | Op::Pace { .. } | Op::Link { .. } | Op::RecvWrite { .. } | Op::Ask { .. }) => {
                Cause::Net
            }
            _ => Cause::Sleep,
        }
    }

    fn spawn(&mut self, t: u32, task: u32) {
        if self.tasks[task as usize].wait == Wait::Start {
            self.halve_slice(t, task);
            self.mm.spaces.fork(t, task);
            self.tasks[task as usize].wait = Wait::Time;
            let at = self.local_now() + self.jitter_of(task);
            self.events.push(at, Event::Wake(task));
        }
    }

    pub(super) fn post(&mut self, channel: u32, n: u32) {
        self.channels[channel as usize].count += u64::from(n);
        loop {
            let c = &mut self.channels[channel as usize];
            let Some(&(t, want)) = c.waiting.front() else { return };
            if c.count < u64::from(want) {
                return;
            }
            c.count -= u64::from(want);
            c.waiting.pop_front();
            self.tasks[t as usize].op.at = At::Done;
            let at = self.local_now();
            self.events.push(at, Event::Wake(t));
        }
    }

    fn step_await(&mut self, t: u32, channel: u32, n: u32) -> Option<Flow> {
        if self.tasks[t as usize].op.at == At::Done {
            return None;
        }
        let c = &mut self.channels[channel as usize];
        if c.waiting.is_empty() && c.count >= u64::from(n) {
            c.count -= u64::from(n);
            return None;
        }
        if self.tasks[t as usize].dying {
            return None;
        }
        if !c.waiting.iter().any(|&(w, _)| w == t) {
            c.waiting.push_back((t, n));
        }
        Some(self.block_on(t, Wait::Channel(channel)))
    }

    pub(super) fn new_ofd(&mut self, ofd: u32, file: u32) {
        self.ofds[ofd as usize] = Ofd { file, ..Ofd::default() };
    }

    /// Cut a file: pages beyond are dropped.
    pub(super) fn truncate(&mut self, file: u32, len: u64) {
        let f = &self.program.files[file as usize];
        let keep = len.div_ceil(4096).min(u64::from(f.pages)) as u32;
        let old = self.files[file as usize].size.div_ceil(4096).min(u64::from(f.pages)) as u32;
        for page in keep..old.max(keep) {
            if self.mm.page(f.first_page + page).any(flag::ON_DISK) {
                self.placement.free_page(file, f, page);
            }
            self.mm.truncate_page(f.first_page + page);
        }
        self.extents.cut(file, keep);
        self.files[file as usize].size = len;
        self.note_metadata(file, true, false);
        self.mm.names.set_inode_dirty(file, true);
    }

    /// mmap. The 2.2 and 2.4 kernels refuse anonymous memory if there is less left than the trace goes on to touch of it
    /// (`vm_enough_memory`, which counts the whole mapping); a program that does not get its memory ends here.
    fn map_area(&mut self, t: u32, area: u32, sink: &mut dyn ResultSink) {
        let a = self.program.areas[area as usize];
        let counts = self.config.alloc.policy != AllocPolicy::Watermarks;
        if counts && a.file.is_none() && u64::from(a.pages) >= self.mm.commit_limit() {
            let text = format!("mmap of {} pages refused: {}", a.pages, self.program.tasks[t as usize].name);
            sink.event(&EventRow { time: self.local_now(), task: Some(t), kind: EventKind::AllocFailure, text });
            self.tasks[t as usize].dying = true;
            return;
        }
        self.mm.spaces.map(t, area, a.first_page, a.pages);
    }

    fn unmap_area(&mut self, t: u32, area: u32) {
        let a = self.program.areas[area as usize];
        self.mapping_hints.remove(&area);
        // Threads share their areas, which are kept with the one that mapped them.
        let mapped = self.mm.spaces.unmap(t, area).or_else(|| {
            let spaces = &mut self.mm.spaces;
            if spaces.copied_anywhere(area) { None } else { spaces.unmap(a.task, area) }
        });
        match mapped {
            None => return,
            Some(Some(copied)) => {
                for (id, entry) in (a.first_page..).zip(copied) {
                    if self.mm.drop_copied(id, entry) {
                        self.free_anon(id);
                    }
                }
                return;
            }
            Some(None) => {}
        }
        for id in a.first_page..a.first_page + a.pages {
            self.unmap_page(id, a.file.is_some());
        }
    }
}
