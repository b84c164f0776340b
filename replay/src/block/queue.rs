//! One device's request queue: slots, plugging, merging, dispatch, completion.
//!
//! The order of steps is that of Linux 2.4 `__make_request` (`drivers/block/ll_rw_blk.c`): look for a merge, then for a
//! slot; whoever has to sleep for a slot starts again from the merge, with the slot in hand.

use std::collections::VecDeque;

use kreplay_traces::units::Nanos;

use super::elevator::{AnyElevator, Context, Elevator, End, Spot, Verdict};
use super::request::Requests;
use super::slots::Slots;
use super::{Bio, Dir, IoClass, RqId, Submit, Waiter};

/// Fixed properties of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Largest request, sectors.
    pub(crate) max_sectors: u32,
    /// Largest request, segments.
    pub(crate) max_segments: u16,
    /// The request in service stays at the head of the list.
    pub(crate) head_active: bool,
    /// An empty queue is plugged by the first arrival.
    pub(crate) plugging: bool,
    /// Requests at the device at a time.
    pub(crate) depth: u32,
}

/// How a bio was taken in, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Request that has it.
    pub(crate) rq: RqId,
    /// The end where it joined; `None` = it made the request.
    pub(crate) end: Option<End>,
    /// Request swallowed.
    pub(crate) absorbed: Option<RqId>,
}

/// A request queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) rqs: Requests,
    pub(crate) elevator: AnyElevator,
    limits: Limits,
    plugged: bool,
    in_flight: u32,
    dispatched: u64,
    last_end: u64,
    last_taken: Option<Taken>,
    /// Class of the bios offered from now on.
    pub(crate) class: IoClass,
}

impl Queue {
    pub(crate) fn new(elevator: AnyElevator, limits: Limits, slots: u32) -> Self {
        Self {
            rqs: Requests::with_capacity(slots.min(4096) as usize),
            elevator,
            limits,
            plugged: false,
            in_flight: 0,
            dispatched: 0,
            last_end: 0,
            last_taken: None,
            class: IoClass::BestEffort,
        }
    }

    fn context(&self, now: Nanos) -> Context {
        Context {
            now,
            head_active: self.limits.head_active,
            plugged: self.plugged,
            class: self.class,
            head_locked: self.limits.head_active && !self.plugged && self.elevator.len() > 0,
            max_sectors: self.limits.max_sectors,
            max_segments: self.limits.max_segments,
        }
    }

    /// Offers a bio for the first time.
    pub(crate) fn submit(&mut self, slots: &mut Slots, bio: Bio, now: Nanos, wakes: &mut VecDeque<Waiter>) -> Submit {
        match self.look(bio, now) {
            Verdict::Merged { into, end, absorbed } => self.merged(slots, into, end, absorbed, wakes),
            Verdict::Insert(spot) => match slots.take(bio.dir) {
                Some(slot) => self.insert(bio, slot, spot, now),
                None => Submit::Full,
            },
        }
    }

    /// A woken process tries again: slot first, then everything from the start.
    pub(crate) fn retry(
        &mut self,
        slots: &mut Slots,
        bio: Bio,
        waiter: Waiter,
        now: Nanos,
        wakes: &mut VecDeque<Waiter>,
    ) -> Submit {
        let Some(slot) = slots.take_woken(bio.dir, waiter, wakes) else {
            if slots.unplugs_again() {
                self.plugged = false;
            }
            return Submit::Full;
        };
        let verdict = if slots.rescans() { self.look(bio, now) } else { Verdict::Insert(Spot::Tail) };
        let outcome = match verdict {
            Verdict::Merged { into, end, absorbed } => {
                let outcome = self.merged(slots, into, end, absorbed, wakes);
                slots.put(slot, wakes);
                outcome
            }
            Verdict::Insert(spot) => self.insert(bio, slot, spot, now),
        };
        slots.served(wakes);
        outcome
    }

    /// After [`Submit::Full`]: the process unplugs the queue and sleeps.
    pub(crate) fn wait(&mut self, slots: &mut Slots, dir: Dir, waiter: Waiter) {
        self.plugged = false;
        slots.wait(dir, waiter);
    }

    fn look(&mut self, bio: Bio, now: Nanos) -> Verdict {
        if self.elevator.len() == 0 {
            // Only an arrival at an empty queue plugs it; one that is plugged already stays so.
            self.plugged |= self.limits.plugging;
        }
        let cx = self.context(now);
        self.elevator.offer(&mut self.rqs, &bio, &cx)
    }

    fn merged(
        &mut self,
        slots: &mut Slots,
        into: RqId,
        end: End,
        absorbed: Option<RqId>,
        wakes: &mut VecDeque<Waiter>,
    ) -> Submit {
        if let Some(gone) = absorbed {
            slots.put(self.rqs.life(gone).slot, wakes);
            self.rqs.discard(gone);
        }
        self.last_taken = Some(Taken { rq: into, end: Some(end), absorbed });
        Submit::Merged(into)
    }

    fn insert(&mut self, bio: Bio, slot: u32, spot: Spot, now: Nanos) -> Submit {
        let rq = self.rqs.create(bio, slot, now);
        let cx = self.context(now);
        let tail = self.elevator.insert(&mut self.rqs, rq, spot, &cx);
        let life = self.rqs.life_mut(rq);
        life.tail = tail;
        life.passed = self.dispatched;
        self.last_taken = Some(Taken { rq, end: None, absorbed: None });
        Submit::Queued(rq)
    }

    /// The request to start now, if the queue is not plugged, the device has room and the elevator has one.
    pub(crate) fn dispatch(&mut self, now: Nanos) -> Option<RqId> {
        let depth = if self.limits.head_active { 1 } else { self.limits.depth };
        if self.plugged || self.in_flight >= depth {
            return None;
        }
        let cx = self.context(now);
        let rq = self.elevator.dispatch(&mut self.rqs, &cx)?;
        self.in_flight += 1;
        let r = &mut self.rqs[rq];
        r.started = true;
        let (sector, end) = (r.sector, r.end());
        let life = self.rqs.life_mut(rq);
        life.d = now;
        life.passed = self.dispatched - life.passed;
        // Sector numbers of real disks are far below 2^63.
        life.seek_sectors = sector as i64 - self.last_end as i64;
        self.dispatched += 1;
        self.last_end = end;
        Some(rq)
    }

    /// A request that was dispatched is done: frees its slot; its bios go to `out` in sector order.
    pub(crate) fn complete(
        &mut self,
        slots: &mut Slots,
        rq: RqId,
        now: Nanos,
        out: &mut Vec<Bio>,
        wakes: &mut VecDeque<Waiter>,
    ) {
        let cx = self.context(now);
        self.elevator.complete(&mut self.rqs, rq, &cx);
        self.in_flight -= 1;
        slots.put(self.rqs.life(rq).slot, wakes);
        self.rqs.retire(rq, out);
    }

    pub(crate) fn unplug(&mut self) {
        self.plugged = false;
    }

    pub(crate) fn plugged(&self) -> bool {
        self.plugged
    }

    /// The last bio taken in.
    pub(crate) fn last_taken(&self) -> Option<Taken> {
        self.last_taken
    }
}
