//! One device's request queue: slots, plugging, merging, dispatch, completion.
//!
//! The order of steps is that of Linux 2.4 `__make_request` (`drivers/block/ll_rw_blk.c`): look for a merge, then for a
//! slot; whoever has to sleep for a slot starts again from the merge, with the slot in hand.

use std::collections::VecDeque;

use kreplay_traces::units::Nanos;

use super::elevator::{AnyElevator, Context, Elevator, End, Spot, Verdict};
use super::plug::{Held, Plugs};
use super::qos::Qos;
use super::request::Requests;
use super::slots::Slots;
use super::{Bio, Dir, Hints, RqId, Submit, Waiter};
use crate::config::PlugList;

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
    /// Each task holds its requests back for a while.
    pub(crate) task_plugs: bool,
    /// How.
    pub(crate) plug_list: PlugList,
    /// Requests at the device at a time.
    pub(crate) depth: u32,
    /// One more leaves the elevator and waits for a place at the device.
    pub(crate) ahead: bool,
    /// The device has an arm to move.
    pub(crate) rotational: bool,
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
    /// Out of the elevator's hands, waiting for a place at the device.
    ahead: Option<RqId>,
    in_flight: u32,
    dispatched: u64,
    last_end: u64,
    last_taken: Option<Taken>,
    plugs: Plugs,
    qos: Qos,
    /// The bio refused last was refused by `qos`.
    held_back: Option<Bio>,
    /// Who sleeps for a slot, since when; kept where somebody wants to know.
    slot_sleepers: Vec<(Waiter, Nanos)>,
    now: Nanos,
    /// What is said of the bios offered from now on.
    pub(crate) hints: Hints,
}

impl Queue {
    pub(crate) fn new(elevator: AnyElevator, limits: Limits, slots: u32, qos: Qos) -> Self {
        Self {
            rqs: Requests::with_capacity(slots.min(4096) as usize),
            elevator,
            limits,
            plugged: false,
            ahead: None,
            in_flight: 0,
            dispatched: 0,
            last_end: 0,
            last_taken: None,
            plugs: Plugs::default(),
            qos,
            held_back: None,
            slot_sleepers: Vec::new(),
            now: Nanos::ZERO,
            hints: Hints::default(),
        }
    }

    fn context(&self, now: Nanos, dir: Dir) -> Context {
        Context {
            now,
            head_active: self.limits.head_active,
            plugged: self.plugged,
            class: self.hints.class,
            level: self.hints.level,
            sync: self.hints.sync(dir),
            rotational: self.limits.rotational,
            task_plugs: self.limits.task_plugs,
            head_locked: self.limits.head_active && !self.plugged && self.elevator.len() > 0,
            max_sectors: self.limits.max_sectors,
            max_segments: self.limits.max_segments,
        }
    }

    /// Of each word of scheduler tags, how many the next request may use.
    fn tag_depth(&self, slots: &Slots, dir: Dir) -> u32 {
        slots.tag_word().map_or(0, |word| self.elevator.word_depth(dir, self.hints.sync(dir), word).clamp(1, word))
    }

    /// Offers a bio for the first time.
    pub(crate) fn submit(&mut self, slots: &mut Slots, bio: Bio, now: Nanos, wakes: &mut VecDeque<Waiter>) -> Submit {
        self.now = now;
        if self.limits.task_plugs {
            let Limits { max_sectors, max_segments, .. } = self.limits;
            if let Some((rq, end)) = self.plugs.merge(&mut self.rqs, &bio, max_sectors, max_segments) {
                self.qos.merged(&bio, self.hints, now);
                self.last_taken = Some(Taken { rq, end: Some(end), absorbed: None });
                return Submit::Merged(rq);
            }
        }
        match self.look(bio, now) {
            Verdict::Merged { into, end, absorbed } => {
                self.qos.merged(&bio, self.hints, now);
                self.merged(slots, into, end, absorbed, wakes)
            }
            Verdict::Insert(spot) => {
                if !self.qos.is_off() && !self.qos.pass(&bio, self.hints, None, now) {
                    self.held_back = Some(bio);
                    return Submit::Full;
                }
                let depth = self.tag_depth(slots, bio.dir);
                match slots.take(bio.dir, depth) {
                    Some(slot) => self.insert(slots, bio, slot, spot, wakes),
                    None => Submit::Full,
                }
            }
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
        self.now = now;
        let depth = self.tag_depth(slots, bio.dir);
        if !self.qos.is_off() && self.qos.waits(waiter) {
            if !self.qos.pass(&bio, self.hints, Some(waiter), now) {
                return Submit::Full;
            }
            // Past the throttle it may have to sleep once more, for a slot.
            return match slots.take(bio.dir, depth) {
                Some(slot) => self.insert(slots, bio, slot, Spot::Tail, wakes),
                None => {
                    self.wait_slot(slots, bio.dir, waiter, wakes);
                    Submit::Full
                }
            };
        }
        let Some(slot) = slots.take_woken(bio.dir, depth, waiter, wakes) else {
            if slots.unplugs_again() {
                self.plugged = false;
            }
            return Submit::Full;
        };
        if let Some(at) = self.slot_sleepers.iter().position(|s| s.0 == waiter) {
            let (_, since) = self.slot_sleepers.remove(at);
            self.qos.slot_wait(now.saturating_sub(since).get());
        }
        let verdict = if slots.rescans() { self.look(bio, now) } else { Verdict::Insert(Spot::Tail) };
        let outcome = match verdict {
            Verdict::Merged { into, end, absorbed } => {
                self.qos.give_back(&bio, self.hints, now, wakes);
                let outcome = self.merged(slots, into, end, absorbed, wakes);
                slots.put(slot, wakes);
                outcome
            }
            Verdict::Insert(spot) => self.insert(slots, bio, slot, spot, wakes),
        };
        slots.served(wakes);
        outcome
    }

    /// After [`Submit::Full`]: the process unplugs the queue (its own list, where tasks have lists) and sleeps.
    pub(crate) fn wait(&mut self, slots: &mut Slots, dir: Dir, waiter: Waiter, wakes: &mut VecDeque<Waiter>) {
        match self.held_back.take() {
            Some(bio) => {
                self.goes_to_sleep(slots, waiter, wakes);
                self.qos.wait(&bio, self.hints, waiter, self.now);
            }
            None => self.wait_slot(slots, dir, waiter, wakes),
        }
    }

    fn goes_to_sleep(&mut self, slots: &mut Slots, waiter: Waiter, wakes: &mut VecDeque<Waiter>) {
        self.plugged = false;
        self.finish_plug(slots, waiter, true, self.now, wakes);
    }

    fn wait_slot(&mut self, slots: &mut Slots, dir: Dir, waiter: Waiter, wakes: &mut VecDeque<Waiter>) {
        self.goes_to_sleep(slots, waiter, wakes);
        slots.wait(dir, waiter);
        if !self.qos.is_off() {
            self.slot_sleepers.push((waiter, self.now));
        }
    }

    /// Processes that a throttle holds back.
    pub(crate) fn held_back(&self) -> usize {
        self.qos.waiting()
    }

    /// A writer is throttled before it comes here.
    pub(crate) fn writer_slept(&mut self, now: Nanos) {
        self.qos.writer_slept(now);
    }

    /// Does what is due by the clock.
    pub(crate) fn run_timers(&mut self, now: Nanos, wakes: &mut VecDeque<Waiter>) {
        if !self.qos.is_off() {
            self.qos.run_timers(now, wakes);
        }
    }

    /// When to come back, if requests or processes are held back on purpose.
    pub(crate) fn timer(&self) -> Option<Nanos> {
        let t = self.elevator.timer();
        if self.qos.is_off() { t } else { t.into_iter().chain(self.qos.timer()).min() }
    }

    /// What every bio begins with: it plugs an empty queue, is merged, or learns where it would go; whoever is looked at is
    /// charged for it.
    pub(crate) fn look(&mut self, bio: Bio, now: Nanos) -> Verdict {
        if self.elevator.len() == 0 {
            // Only an arrival at an empty queue plugs it; one that is plugged already stays so.
            self.plugged |= self.limits.plugging;
        }
        let cx = self.context(now, bio.dir);
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
            self.drop_request(slots, gone, wakes);
        }
        self.last_taken = Some(Taken { rq: into, end: Some(end), absorbed });
        Submit::Merged(into)
    }

    /// A request was swallowed by another.
    fn drop_request(&mut self, slots: &mut Slots, gone: RqId, wakes: &mut VecDeque<Waiter>) {
        if !self.qos.is_off() {
            self.qos.done(gone, self.rqs[gone].dir, None, self.now, wakes);
        }
        slots.put(self.rqs.life(gone).slot, wakes);
        self.rqs.discard(gone);
    }

    fn insert(&mut self, slots: &mut Slots, bio: Bio, slot: u32, spot: Spot, wakes: &mut VecDeque<Waiter>) -> Submit {
        let rq = self.rqs.create(bio, slot, self.now);
        self.qos.queued(rq, bio.dir, self.hints);
        self.last_taken = Some(Taken { rq, end: None, absorbed: None });
        if self.limits.task_plugs {
            self.rqs.life_mut(rq).hints = self.hints;
            if let Some(down) = self.plugs.add(&self.rqs, bio.task, rq, self.limits.plug_list) {
                self.send_down(slots, down, false, wakes);
            }
        } else {
            self.list(rq, spot);
        }
        Submit::Queued(rq)
    }

    /// Hands a request to the elevator.
    fn list(&mut self, rq: RqId, spot: Spot) {
        let cx = self.context(self.now, self.rqs[rq].dir);
        let tail = self.elevator.insert(&mut self.rqs, rq, spot, &cx);
        let (now, dispatched) = (self.now, self.dispatched);
        let life = self.rqs.life_mut(rq);
        life.i = now;
        life.tail = tail;
        life.passed = dispatched;
    }

    /// Hands a task's plug list to the elevator. Without one, a list that is kept as a stack and was finished (not cut short by
    /// a sleep) is issued from its newest request to its oldest.
    fn send_down(&mut self, slots: &mut Slots, list: Held, sleeps: bool, wakes: &mut VecDeque<Waiter>) {
        let hints = self.hints;
        let mut rqs = list.rqs;
        let stack = self.limits.plug_list == PlugList::Stack;
        if stack && !sleeps && matches!(self.elevator, AnyElevator::NoScheduler(_)) {
            rqs.reverse();
        }
        for rq in rqs {
            self.hints = self.rqs.life(rq).hints;
            let cx = self.context(self.now, self.rqs[rq].dir);
            if self.elevator.append(&mut self.rqs, rq, &cx).is_some() {
                self.drop_request(slots, rq, wakes);
            } else {
                self.list(rq, Spot::Tail);
            }
        }
        self.hints = hints;
    }

    /// A task says that it has submitted all it wants to for now, or it goes to sleep.
    pub(crate) fn finish_plug(
        &mut self,
        slots: &mut Slots,
        task: u32,
        sleeps: bool,
        now: Nanos,
        wakes: &mut VecDeque<Waiter>,
    ) {
        self.now = now;
        if let Some(list) = self.plugs.finish(task) {
            self.send_down(slots, list, sleeps, wakes);
        }
    }

    /// The request to start now, if the queue is not plugged, the device has room and the elevator has one.
    pub(crate) fn dispatch(&mut self, now: Nanos) -> Option<RqId> {
        let depth = if self.limits.head_active { 1 } else { self.limits.depth };
        self.now = now;
        if self.in_flight >= depth {
            if self.limits.ahead && self.ahead.is_none() {
                self.ahead = self.take(now);
            }
            return None;
        }
        let rq = self.ahead.take().or_else(|| self.take(now))?;
        self.in_flight += 1;
        if !self.qos.is_off() {
            self.qos.issued(rq, self.rqs[rq].dir, now);
        }
        let r = &self.rqs[rq];
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

    /// Takes a request off the elevator: from now on nothing joins it.
    fn take(&mut self, now: Nanos) -> Option<RqId> {
        if self.plugged {
            return None;
        }
        let cx = self.context(now, Dir::Read);
        let rq = self.elevator.dispatch(&mut self.rqs, &cx)?;
        self.rqs[rq].started = true;
        Some(rq)
    }

    /// Requests that wait for the device: the elevator's, and the one taken ahead.
    pub(crate) fn len(&self) -> usize {
        self.elevator.len() + usize::from(self.ahead.is_some())
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
        self.now = now;
        let cx = self.context(now, self.rqs[rq].dir);
        self.elevator.complete(&mut self.rqs, rq, &cx);
        self.in_flight -= 1;
        if !self.qos.is_off() {
            self.qos.done(rq, self.rqs[rq].dir, Some(self.rqs.life(rq).d), now, wakes);
        }
        slots.put(self.rqs.life(rq).slot, wakes);
        self.rqs.retire(rq, out);
    }

    /// Lets go what is held back: somebody is going to sleep.
    pub(crate) fn unplug(&mut self, slots: &mut Slots, wakes: &mut VecDeque<Waiter>) {
        self.plugged = false;
        if !self.plugs.is_empty() {
            for list in self.plugs.take_all() {
                self.send_down(slots, list, true, wakes);
            }
        }
    }

    /// Requests are held back until somebody waits.
    pub(crate) fn plugged(&self) -> bool {
        self.plugged || !self.plugs.is_empty()
    }

    /// The last bio taken in.
    pub(crate) fn last_taken(&self) -> Option<Taken> {
        self.last_taken
    }
}
