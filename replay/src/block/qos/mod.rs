//! What may hold a bio back before it gets a request (`block/blk-rq-qos.c`): write-back throttling and cost-based sharing.

mod iocost;
mod wbt;

use std::collections::VecDeque;

use kreplay_traces::units::Nanos;

use super::{Bio, Dir, Hints, RqId, Waiter};
use crate::config::QueueConfig;
use iocost::IoCost;
use wbt::Wbt;

/// The throttles of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Qos {
    wbt: Option<Box<Wbt>>,
    iocost: Option<Box<IoCost>>,
}

impl Qos {
    /// `depth`: requests that the device takes at a time.
    pub(crate) fn new(queue: &QueueConfig, depth: u32) -> Self {
        let wbt = (queue.wbt.min_lat_us > 0).then(|| Box::new(Wbt::new(&queue.wbt, depth)));
        let iocost = (!queue.iocost.weights.is_empty()).then(|| Box::new(IoCost::new(&queue.iocost)));
        Self { wbt, iocost }
    }

    /// Nothing is ever held back.
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.wbt.is_none() && self.iocost.is_none()
    }

    /// Whether a bio may go on; if it may, it is counted.
    pub(crate) fn pass(&mut self, bio: &Bio, hints: Hints, waiter: Option<Waiter>, now: Nanos) -> bool {
        if let Some(c) = &mut self.iocost
            && !c.pass(bio, hints, waiter, now.get())
        {
            return false;
        }
        match &mut self.wbt {
            Some(w) => w.pass(bio, hints, waiter, now.get()),
            None => true,
        }
    }

    /// Puts a process to sleep whose bio was refused.
    pub(crate) fn wait(&mut self, bio: &Bio, hints: Hints, waiter: Waiter, now: Nanos) {
        if let Some(c) = &mut self.iocost
            && c.refused(waiter, bio, hints, now.get())
        {
            return;
        }
        if let Some(w) = &mut self.wbt {
            w.wait(hints, waiter);
        }
    }

    /// A writer is throttled before it comes here.
    pub(crate) fn writer_slept(&mut self, now: Nanos) {
        if let Some(w) = &mut self.wbt {
            w.writer_slept(now.get());
        }
    }

    /// Whether this process sleeps here.
    pub(crate) fn waits(&self, waiter: Waiter) -> bool {
        self.iocost.as_ref().is_some_and(|c| c.waits(waiter)) || self.wbt.as_ref().is_some_and(|w| w.waits(waiter))
    }

    /// Processes that sleep here.
    pub(crate) fn waiting(&self) -> usize {
        self.iocost.as_ref().map_or(0, |c| c.waiting()) + self.wbt.as_ref().map_or(0, |w| w.waiting())
    }

    /// A bio that had passed was merged after all: it holds nothing.
    pub(crate) fn give_back(&mut self, bio: &Bio, hints: Hints, now: Nanos, wakes: &mut VecDeque<Waiter>) {
        if let Some(w) = &mut self.wbt {
            w.give_back(bio.dir, hints, now.get(), wakes);
        }
    }

    /// A bio joined a request that was queued.
    pub(crate) fn merged(&mut self, bio: &Bio, hints: Hints, now: Nanos) {
        if let Some(c) = &mut self.iocost {
            c.merged(bio, hints, now.get());
        }
    }

    /// A bio that had passed became this request.
    pub(crate) fn queued(&mut self, rq: RqId, dir: Dir, hints: Hints) {
        if let Some(w) = &mut self.wbt {
            w.queued(rq, dir, hints);
        }
    }

    /// A request goes to the device.
    pub(crate) fn issued(&mut self, rq: RqId, dir: Dir, now: Nanos) {
        if let Some(w) = &mut self.wbt {
            w.issued(rq, dir, now.get());
        }
    }

    /// A request is done, or was merged into another (`issued` is none then).
    pub(crate) fn done(&mut self, rq: RqId, dir: Dir, issued: Option<Nanos>, now: Nanos, wakes: &mut VecDeque<Waiter>) {
        if let Some(w) = &mut self.wbt {
            w.done(rq, dir, issued.map(Nanos::get), now.get(), wakes);
        }
    }

    /// Somebody had to wait for a request slot, for so long.
    pub(crate) fn slot_wait(&mut self, ns: u64) {
        if let Some(c) = &mut self.iocost {
            c.slot_wait(ns);
        }
    }

    /// Does what is due.
    pub(crate) fn run_timers(&mut self, now: Nanos, wakes: &mut VecDeque<Waiter>) {
        if let Some(w) = &mut self.wbt {
            w.run_timer(now.get(), wakes);
        }
        if let Some(c) = &mut self.iocost {
            c.run_timer(now.get(), wakes);
        }
    }

    /// When something is due.
    pub(crate) fn timer(&self) -> Option<Nanos> {
        let w = self.wbt.as_ref().and_then(|w| w.timer());
        let c = self.iocost.as_ref().and_then(|c| c.timer());
        w.into_iter().chain(c).min().map(Nanos)
    }
}
