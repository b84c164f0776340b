//! Processors, the run queue, and the loop that advances a task's frames.

use super::event::Event;
use super::frame::Frame;
use super::task::Wait;
use super::{BURST, Sim};
use crate::results::{Cause, ResultSink};
use kreplay_traces::units::Nanos;

/// What a step of the top frame came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Go on with the (new) top frame.
    Continue,
    /// The task waits; one wait was registered.
    Block,
    /// Let others run first.
    Yield,
    /// Let the best run.
    Preempt,
}

impl Sim<'_> {
    /// Make a waiting task ready.
    pub(super) fn wake(&mut self, t: u32) {
        let now = self.now;
        let task = &mut self.tasks[t as usize];
        if matches!(task.wait, Wait::Nothing | Wait::Ended) {
            return;
        }
        task.account(task.cause, now);
        task.wait = Wait::Nothing;
        self.pressure_of_wake(t);
        let task = &mut self.tasks[t as usize];
        task.ready = true;
        self.run_queue.push_back(t);
        self.note_woken(t);
    }

    /// Give free processors to ready tasks, until all work that can be done now is done.
    pub(super) fn schedule(&mut self, sink: &mut dyn ResultSink) {
        while !self.run_queue.is_empty() {
            let Some(cpu) = self.running.iter().position(Option::is_none) else { return };
            let Some(t) = self.next_task(cpu) else { return };
            let now = self.now;
            self.since_sample.switches += 1;
            let end = self.end_of_slice(now, self.tasks[t as usize].slice);
            let task = &mut self.tasks[t as usize];
            task.ready = false;
            task.account(Cause::RunQueue, now);
            self.running[cpu] = Some(t);
            self.slice_end[cpu] = end;
            self.run_burst(cpu, t, sink);
        }
    }

    /// A processor has worked off a burst.
    pub(super) fn burst_over(&mut self, cpu: usize) {
        let Some(t) = self.running[cpu].take() else { return };
        let left = self.left_of_slice(cpu, self.now);
        let whole = self.whole_slice();
        let by_goodness = self.by_goodness();
        let task = &mut self.tasks[t as usize];
        // What is left of a slice outlasts a sleep; the next one begins when it is used up.
        task.slice = if left == Nanos::ZERO && !by_goodness { whole } else { left };
        if task.wait == Wait::Nothing && !task.ready {
            task.ready = true;
            if by_goodness {
                self.run_queue.push_back(t);
                self.keeps_processor(cpu, t, left);
                return;
            }
            // Within its slice a task goes on before others, unless its kernel lets a woken one interrupt it.
            let preempted = self.config.machine.preempt && std::mem::take(&mut self.resched);
            if left > Nanos::ZERO && !preempted {
                self.run_queue.push_front(t);
            } else {
                self.run_queue.push_back(t);
            }
        }
    }

    /// Run a task until it blocks, or for a burst.
    fn run_burst(&mut self, cpu: usize, t: u32, sink: &mut dyn ResultSink) {
        // A task woken while its last burst was still being worked off (several processors) begins when that ends.
        self.cost = self.tasks[t as usize].since.saturating_sub(self.now);
        let mut began = self.cost;
        self.burst_from = began;
        loop {
            let flow = self.step(t, sink);
            self.drain_wakes();
            match flow {
                Flow::Continue if self.cost - began < BURST => {}
                Flow::Continue => {
                    // Nothing else can happen before this burst is over: go on in place.
                    let end = self.local_now();
                    if self.fruitless == 0
                        && self.run_queue.is_empty()
                        && self.events.next_at().is_none_or(|at| at > end)
                        && self.only_runner(cpu)
                    {
                        self.note_busy(self.cost - began);
                        self.now = end;
                        self.at_this_time = 0;
                        if self.by_goodness() && end >= self.slice_end[cpu] {
                            self.tasks[t as usize].slice = Nanos::ZERO;
                            self.give_slices();
                        }
                        self.cost = Nanos::ZERO;
                        began = Nanos::ZERO;
                        self.burst_from = Nanos::ZERO;
                        continue;
                    }
                    break;
                }
                Flow::Block | Flow::Yield | Flow::Preempt => {
                    let end = self.local_now();
                    self.tasks[t as usize].account(Cause::Cpu, end);
                    if flow != Flow::Block {
                        self.tasks[t as usize].ready = true;
                        self.run_queue.push_back(t);
                    }
                    if flow == Flow::Yield {
                        self.note_yielded(t);
                    }
                    break;
                }
            }
        }
        let end = self.local_now();
        self.tasks[t as usize].account(Cause::Cpu, end);
        self.note_busy(self.cost - began);
        if self.cost == Nanos::ZERO {
            self.burst_over(cpu);
        } else {
            self.events.push(end, Event::CpuFree(cpu as u32));
        }
        self.cost = Nanos::ZERO;
    }

    /// `do_fork`: a child begins with half of what is left of its parent's slice, and the parent keeps the other half. (In
    /// whole ticks, rounded in the child's favour.)
    pub(super) fn halve_slice(&mut self, parent: u32, child: u32) {
        let Some(cpu) = self.running.iter().position(|r| *r == Some(parent)) else { return };
        let tick = self.tick_ns();
        let left = self.left_of_slice(cpu, self.local_now()).get().div_ceil(tick);
        let (theirs, ours) = (left.div_ceil(2), left / 2);
        self.tasks[child as usize].slice = Nanos((theirs * tick).max(tick));
        self.slice_end[cpu] = self.end_of_slice(self.local_now(), Nanos(ours * tick));
        self.resched |= ours == 0 && self.by_goodness();
    }

    /// The burst in hand has had its time: others are to be looked at.
    #[inline]
    pub(super) fn burst_used(&self) -> bool {
        self.cost >= self.burst_from + BURST
    }

    fn only_runner(&self, cpu: usize) -> bool {
        self.running.iter().enumerate().all(|(i, r)| i == cpu || r.is_none())
    }

    fn note_busy(&mut self, time: Nanos) {
        self.since_sample.busy += time;
    }

    /// Register the task's one wait. Time until it is woken goes to the cause that its frames tell.
    pub(super) fn block_on(&mut self, t: u32, wait: Wait) -> Flow {
        let end = self.local_now();
        self.tasks[t as usize].account(Cause::Cpu, end);
        if self.config.queue.task_plugs {
            self.unplug(t);
        }
        let cause = self.cause_of(t, wait);
        let task = &mut self.tasks[t as usize];
        task.wait = wait;
        task.cause = cause;
        self.pressure_of_sleep(t, wait);
        Flow::Block
    }

    /// Sleep until `at`.
    pub(super) fn sleep_until(&mut self, t: u32, at: Nanos) -> Flow {
        let at = at.max(self.local_now());
        self.events.push(at, Event::Wake(t));
        self.block_on(t, Wait::Time)
    }

    /// Wait for a page's lock or buffer: unplugs all queues first, as `sync_page` and `wait_on_buffer` do.
    pub(super) fn wait_on_page(&mut self, t: u32, wait: Wait) -> Flow {
        let (Wait::Page(id) | Wait::Buffer(id)) = wait else { unreachable!("not a page wait: {wait:?}") };
        self.unplug(t);
        let page = self.mm.page_mut(id);
        let first = std::mem::replace(&mut page.waiters, t + 1);
        self.tasks[t as usize].next_waiter = first;
        self.block_on(t, wait)
    }

    /// Wake everybody who waits on a page; each looks again for itself. Newest first, as 2.4's wait queues do it.
    fn wake_page(&mut self, id: u32) {
        let mut next = std::mem::take(&mut self.mm.page_mut(id).waiters);
        while next != 0 {
            let t = next - 1;
            next = std::mem::take(&mut self.tasks[t as usize].next_waiter);
            self.wake(t);
        }
    }

    /// Carry out the wake-ups that memory management and the block layer asked for.
    pub(super) fn drain_wakes(&mut self) {
        while let Some(id) = self.mm.unlocked.pop() {
            self.wake_page(id);
        }
        if std::mem::take(&mut self.mm.wake_bdflush) {
            self.wake_daemon(self.bdflush);
        }
        while let Some(t) = self.block.next_wake() {
            self.wake(t);
        }
    }

    pub(super) fn wake_daemon(&mut self, t: u32) {
        if self.tasks[t as usize].wait == Wait::Daemon {
            self.wake(t);
        }
    }

    /// Which cause a wait belongs to: the outermost frame that explains it.
    fn cause_of(&self, t: u32, wait: Wait) -> Cause {
        let task = &self.tasks[t as usize];
        if let Wait::Slot = wait {
            return Cause::Slot;
        }
        for f in task.chain() {
            match f {
                Frame::Reclaim => return Cause::Reclaim,
                Frame::Balance { .. } | Frame::Throttle { .. } => return Cause::Throttle,
                Frame::SwapIn { .. } => return Cause::SwapIn,
                Frame::Bread { .. } | Frame::Lookup { .. } => return Cause::Meta,
                _ => {}
            }
        }
        match wait {
            Wait::Page(_) | Wait::Buffer(_) => self.page_wait_cause(t, wait),
            Wait::Inode(_) => Cause::Inode,
            Wait::Channel(_) | Wait::Start => Cause::Dep,
            Wait::Time | Wait::Daemon => self.time_wait_cause(t),
            Wait::Rest => Cause::Reclaim,
            Wait::Journal => Cause::Sync,
            Wait::Raw => self.page_wait_cause(t, wait),
            Wait::Slot | Wait::Nothing | Wait::Ended => Cause::Slot,
        }
    }

    /// Advance the top frame of a task.
    fn step(&mut self, t: u32, sink: &mut dyn ResultSink) -> Flow {
        match self.tasks[t as usize].top() {
            Frame::Program => self.step_program(t, sink),
            Frame::Op => self.step_op(t, sink),
            Frame::Readahead { base, done, max, at } => self.step_readahead(t, base, done, max, at),
            Frame::Alloc { flags, at } => self.step_alloc(t, flags, at, sink),
            Frame::Reclaim => self.step_reclaim(t, sink),
            Frame::ReadPage { page, kind, mapped } => self.step_read_page(t, page, kind, mapped),
            Frame::Bread { page, at } => self.step_bread(t, page, at),
            Frame::WriteUnused { at } => self.step_write_unused(t, at),
            Frame::Submit { page, dir, kind, waited } => self.step_submit(t, page, dir, kind, waited),
            Frame::WaitPage { page } => self.step_wait_page(t, page),
            Frame::WaitBuffer { page } => self.step_wait_buffer(t, page),
            Frame::WriteSome { next, len } => self.step_write_some(t, next, len),
            Frame::Balance { at } => self.step_balance(t, at),
            Frame::WriteOut { page, queued } => self.step_write_out(t, page, queued),
            Frame::SwapIn { page, slot, end, at } => self.step_swap_in(t, page, slot, end, at),
            Frame::ReadAround { first, end, at } => self.step_read_around(t, first, end, at),
            Frame::Lookup { file, at } => self.step_lookup(t, file, at),
            Frame::Kswapd { at, class, more } => self.step_kswapd(t, at, class, more, sink),
            Frame::Bdflush { at } => self.step_bdflush(t, at),
            Frame::Kupdate { at } => self.step_kupdate(t, at),
            Frame::Fill { first, n, at, run, mark, kind, state } => {
                self.step_fill(t, first, n, at, run, mark, kind, state)
            }
            Frame::SubmitRun { page, n, dir, kind, waited } => self.step_submit_run(t, page, n, dir, kind, waited),
            Frame::Throttle { look } => self.step_throttle(t, look),
            Frame::Rest { begun } => self.step_rest(t, begun),
            Frame::Flusher { at } => self.step_flusher(t, at),
            Frame::Journal => self.step_journal(t),
            Frame::Commit { at } => self.step_commit(t, at),
        }
    }
}
