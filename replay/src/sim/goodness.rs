//! Which ready task gets a processor: by goodness, as Linux 2.2 and 2.4 choose, or in turn.
//!
//! Goodness is what is left of a task's slice, in ticks, and a little more for the address space that is loaded; a task that
//! has nothing left waits until all ready ones have nothing left, then everybody gets a whole slice and half of what a sleeper
//! had kept. Of equals goes first who was woken last, since woken tasks stand at the head of the run queue and stay in their
//! place when their slice ends. A woken task interrupts the running one only if it is the better one.
//!
//! Source: kernel/sched.c of 2.4.5 to 2.4.18 (`goodness`, `reschedule_idle`, `schedule`), and of 2.2.20, which does the same with
//! longer slices. A slice is used up by ticks, which find whoever runs just then (kernel/timer.c, `update_process_times`). Left
//! out: nice values, the bonus for a task's last processor.

use super::Sim;
use super::frame::Frame;
use super::task::Wait;
use crate::config::{ReclaimPolicy, Scheduler};
use crate::program::Op;
use kreplay_traces::units::Nanos;

/// What every task with time left has beside its ticks (20 - nice).
const BASE: i64 = 20;

/// What is known of a processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Processor {
    /// Task whose address space is loaded.
    loaded: Option<u32>,
    /// The task that goes on, since nothing asked for another choice.
    keeps: Option<u32>,
}

/// State of the choice.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    by_goodness: bool,
    processors: Vec<Processor>,
    /// Task that let all others go first (`SCHED_YIELD`), until the next choice.
    yielded: Option<u32>,
    /// Place of the task that was woken last; higher is nearer to the head of the run queue.
    last_place: u64,
}

impl Choice {
    pub(super) fn new(scheduler: Scheduler, cpus: usize) -> Self {
        let processors = vec![Processor::default(); cpus];
        Self { by_goodness: scheduler == Scheduler::Goodness, processors, yielded: None, last_place: 0 }
    }
}

impl Sim<'_> {
    pub(super) fn by_goodness(&self) -> bool {
        self.choice.by_goodness
    }

    /// A task was woken: its place, and whether it interrupts a running one.
    pub(super) fn note_woken(&mut self, t: u32) {
        if !self.by_goodness() {
            self.resched = true;
            return;
        }
        self.choice.last_place += 1;
        self.tasks[t as usize].place = self.choice.last_place;
        let margin = i64::from(self.config.machine.preempt_margin);
        for cpu in 0..self.running.len() {
            let Some(current) = self.running[cpu] else { continue };
            let left = self.left_of_slice(cpu, self.local_now());
            let theirs = self.goodness_of(current, left, cpu);
            if self.goodness_of(t, self.tasks[t as usize].slice, cpu) - theirs > margin {
                self.resched = true;
            }
        }
    }

    /// A task gave way to all others.
    pub(super) fn note_yielded(&mut self, t: u32) {
        self.choice.yielded = Some(t);
    }

    /// A burst of a task that is still ready is over, with `left` of its slice: does it keep its processor? In the kernel it
    /// does, whatever waits, but for scans that look for themselves.
    pub(super) fn keeps_processor(&mut self, cpu: usize, t: u32, left: Nanos) {
        let interruptible = self.config.machine.preempt
            || match self.tasks[t as usize].top() {
                Frame::Program => true,
                Frame::Op => matches!(self.current_op(t), Some(Op::Touch { .. } | Op::Cpu { .. })),
                Frame::Reclaim => self.config.reclaim.policy == ReclaimPolicy::TwoList,
                _ => false,
            };
        self.resched |= left == Nanos::ZERO;
        if !(interruptible && std::mem::take(&mut self.resched)) {
            self.choice.processors[cpu].keeps = Some(t);
        }
    }

    /// Take the next task for a processor out of the run queue.
    pub(super) fn next_task(&mut self, cpu: usize) -> Option<u32> {
        if !self.by_goodness() {
            return self.run_queue.pop_front();
        }
        let t = match self.choice.processors[cpu].keeps.take() {
            Some(t) => self.run_queue.iter().position(|r| *r == t),
            None => self.best(cpu),
        }?;
        let t = self.run_queue.remove(t)?;
        if !self.tasks[t as usize].daemon {
            self.choice.processors[cpu].loaded = Some(t);
        }
        Some(t)
    }

    /// Where in the run queue the best task for a processor is.
    fn best(&mut self, cpu: usize) -> Option<usize> {
        loop {
            let candidates = self.run_queue.iter().enumerate().map(|(i, &t)| {
                let task = &self.tasks[t as usize];
                let goodness = if self.choice.yielded == Some(t) { -1 } else { self.goodness_of(t, task.slice, cpu) };
                (goodness, task.place, i)
            });
            let (goodness, _, i) = candidates.max()?;
            if goodness != 0 {
                self.choice.yielded = None;
                return Some(i);
            }
            self.give_slices();
        }
    }

    /// Nobody who is ready has any time left: a whole slice for each task, and half of what it had.
    pub(super) fn give_slices(&mut self) {
        let tick = self.tick_ns();
        let whole = self.whole_slice().get() / tick;
        let more = |left: Nanos| Nanos((left.get().div_ceil(tick) / 2 + whole.max(1)) * tick);
        for task in self.tasks.iter_mut().filter(|t| t.wait != Wait::Ended) {
            task.slice = more(task.slice);
        }
        for cpu in 0..self.running.len() {
            if self.running[cpu].is_some() {
                let left = self.left_of_slice(cpu, self.now);
                self.slice_end[cpu] = self.end_of_slice(self.now, more(left));
            }
        }
    }

    /// A task has this much of its slice left now.
    pub(super) fn give_slice(&mut self, t: u32, left: Nanos) {
        self.tasks[t as usize].slice = left;
        if let Some(cpu) = self.running.iter().position(|r| *r == Some(t)) {
            self.slice_end[cpu] = self.end_of_slice(self.local_now(), left);
        }
    }

    /// When a slice of which so much is left ends, if its task runs from `from` on. By goodness the timer takes a tick from
    /// whoever runs as it comes (`update_process_times`): who sleeps then has run for nothing.
    pub(super) fn end_of_slice(&self, from: Nanos, left: Nanos) -> Nanos {
        if !self.by_goodness() {
            return from + left;
        }
        let tick = self.tick_ns();
        Nanos((from.get() / tick + left.get().div_ceil(tick)) * tick)
    }

    /// What is left at `at` of the slice of a processor's task.
    pub(super) fn left_of_slice(&self, cpu: usize, at: Nanos) -> Nanos {
        let end = self.slice_end[cpu];
        if !self.by_goodness() {
            return end.saturating_sub(at);
        }
        let tick = self.tick_ns();
        Nanos(end.get().saturating_sub(at.get() / tick * tick))
    }

    pub(super) fn whole_slice(&self) -> Nanos {
        Nanos::from_millis(u64::from(self.config.machine.slice_ms))
    }

    fn goodness_of(&self, t: u32, left: Nanos, cpu: usize) -> i64 {
        let ticks = left.get().div_ceil(self.tick_ns()) as i64;
        if ticks == 0 {
            return 0;
        }
        let loaded = self.tasks[t as usize].daemon || self.choice.processors[cpu].loaded == Some(t);
        BASE + ticks + i64::from(loaded)
    }
}
