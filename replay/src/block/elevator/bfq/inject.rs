//! Requests of others while the device is kept for a queue that has none.
//!
//! A process that waits for another one's request (its *waker*) would be kept waiting by idling for it: the waker's requests go
//! past, and those of whom the queue itself wakes. Others' requests go past up to a limit, which every queue learns: how long its
//! request takes, from arrival to completion, with and without others at the device.

use super::super::super::RqId;
use super::super::super::request::{NIL, Requests};
use super::{Bfq, SHORT};

/// So soon after another queue's completion a request has to come to be woken by it, ns.
const WOKEN_WITHIN: u64 = 4_000_000;
/// So many times in a row ...
const DETECTIONS: u32 = 3;
/// ... and within so many idling times.
const DETECTION_IDLES: u64 = 128;
/// What was learnt is forgotten after this long without a decrease, ns.
const FORGET_AFTER: u64 = 1_000_000_000;
/// A change of the think time makes the limit begin anew after this long, ns.
const ANEW_AFTER: u64 = 100_000_000;
/// Least time from a decrease to the next measurement, ns.
const MEASURE_EVERY: u64 = 10_000_000;

/// What a queue has learnt.
#[derive(Clone, Debug, Default)]
pub(super) struct Learnt {
    /// Requests that may be at the device when another goes past.
    pub(super) limit: u32,
    /// How long a request takes without others, ns; 0 = not known yet.
    pub(super) base: u64,
    /// When the limit last fell or began anew.
    decreased: Option<u64>,
    pub(super) waker: Option<u32>,
    tentative: Option<u32>,
    detections: u32,
    detecting_since: u64,
    /// Queues that have this one as their waker, the last to be found at the end.
    pub(super) woken: Vec<u32>,
}

impl Learnt {
    /// Takes over how many may go past, as another queue learnt it.
    pub(super) fn take_limit(&mut self, of: &Self) {
        self.limit = of.limit;
        self.base = of.base;
        self.decreased = of.decreased;
    }

    fn since_decrease(&self, now: u64, least: u64) -> bool {
        self.decreased.is_none_or(|t| t + least <= now)
    }
}

/// The measurement that is going on, and whose request was the last to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    since: u64,
    /// The next request dispatched for the queue in service is the one to measure.
    awaits_dispatch: bool,
    request: Option<RqId>,
    /// Something went past.
    injected: bool,
    last_done: Option<u32>,
    last_done_at: u64,
}

impl Measured {
    /// The turn of the queue in service ends, and with it what was measured.
    pub(super) fn turn_over(&mut self) {
        self.awaits_dispatch = false;
        self.request = None;
        self.injected = false;
    }
}

impl Bfq {
    /// A process that had no request at all makes a synchronous one.
    pub(super) fn ends_gap(&mut self, id: u32, now: u64) {
        self.look_for_waker(id, now);
        if self.q(id).learnt.since_decrease(now, FORGET_AFTER) {
            self.learn_anew(id, now);
        }
        let q = self.q(id);
        let comparable = q.learnt.base > 0 && self.measured.injected;
        if self.in_service == Some(id)
            && (self.in_driver == 0 || comparable)
            && q.learnt.since_decrease(now, MEASURE_EVERY)
        {
            self.measured.since = now;
            self.measured.awaits_dispatch = true;
            if self.in_driver == 0 {
                self.measured.injected = false;
            }
        }
    }

    /// `bfq_check_waker`: a slow thinker whose request comes right after another queue's was done.
    fn look_for_waker(&mut self, id: u32, now: u64) {
        let Some(done) = self.measured.last_done.filter(|&d| d != id) else { return };
        if self.q(id).quick || now.saturating_sub(self.measured.last_done_at) >= WOKEN_WITHIN {
            return;
        }
        let too_long = DETECTION_IDLES * self.slice_idle;
        let learnt = &mut self.q_mut(id).learnt;
        if learnt.tentative != Some(done) || now > learnt.detecting_since + too_long {
            learnt.tentative = Some(done);
            learnt.detections = 1;
            learnt.detecting_since = now;
        } else {
            learnt.detections += 1;
        }
        if learnt.detections < DETECTIONS {
            return;
        }
        self.woken_by(id, done);
    }

    /// Queue `id` has this waker from now on.
    pub(super) fn woken_by(&mut self, id: u32, waker: u32) {
        let learnt = &mut self.q_mut(id).learnt;
        learnt.tentative = None;
        if let Some(before) = learnt.waker.replace(waker) {
            self.q_mut(before).learnt.woken.retain(|&w| w != id);
        }
        self.q_mut(waker).learnt.woken.push(id);
    }

    /// A queue is no more.
    pub(super) fn wakes_nobody(&mut self, id: u32) {
        for woken in std::mem::take(&mut self.q_mut(id).learnt.woken) {
            self.q_mut(woken).learnt.waker = None;
        }
        if let Some(waker) = self.q(id).learnt.waker {
            self.q_mut(waker).learnt.woken.retain(|&w| w != id);
        }
        if self.measured.last_done == Some(id) {
            self.measured.last_done = None;
        }
    }

    /// `bfq_reset_inject_limit`.
    fn learn_anew(&mut self, id: u32, now: u64) {
        self.measured.request = None;
        let q = self.q_mut(id);
        q.learnt.base = 0;
        q.learnt.limit = u32::from(!q.quick);
        q.learnt.decreased = Some(now);
    }

    /// A queue's process thinks longer than it did, or less long.
    pub(super) fn thinks_otherwise(&mut self, id: u32, now: u64) {
        let q = self.q(id);
        if q.learnt.base == 0 && (q.learnt.since_decrease(now, ANEW_AFTER) || !q.quick) {
            self.learn_anew(id, now);
        }
    }

    /// A request of the queue leaves for the device.
    pub(super) fn measure_from(&mut self, id: u32, rq: RqId) {
        if self.in_service == Some(id) && self.measured.awaits_dispatch {
            self.measured.awaits_dispatch = false;
            self.measured.request = Some(rq);
        }
    }

    /// A request of the queue is done; it counts among those at the device still (`bfq_update_inject_limit`).
    pub(super) fn measure_to(&mut self, id: u32, rq: RqId, now: u64) {
        if self.measured.request == Some(rq) {
            let took = now - self.measured.since;
            let (alone, injected, deepest) = (self.in_driver == 1, self.measured.injected, self.depth_seen);
            let learnt = &mut self.q_mut(id).learnt;
            let before = learnt.limit;
            if learnt.base > 0 && injected {
                let most = learnt.base * 3 / 2;
                if took >= most && before > 0 {
                    learnt.limit -= 1;
                    learnt.decreased = Some(now);
                } else if took < most && before <= deepest {
                    learnt.limit += 1;
                }
            }
            if (learnt.base == 0 && alone) || took < learnt.base {
                if learnt.base == 0 {
                    learnt.limit = before.max(1);
                }
                learnt.base = took;
            } else if !injected && alone {
                learnt.base = took;
            }
            self.measured.request = None;
            self.measured.injected = false;
        }
        // Queues that several processes share complete so often that they would seem to wake everybody.
        self.measured.last_done = (!self.q(id).shared).then_some(id);
        self.measured.last_done_at = now;
    }

    /// The queue whose request was the last to be done, if it may wake others.
    #[cfg(test)]
    pub(super) fn measured_done(&self) -> Option<u32> {
        self.measured.last_done
    }

    fn fits(&self, rqs: &Requests, id: u32) -> bool {
        let q = self.q(id);
        let left = self.engine.entities[id as usize].budget_left();
        q.busy && q.next != NIL && self.cost(rqs, q.next, id) <= left
    }

    /// Whose request may go past the queue in service, which has none.
    pub(super) fn goes_past(&mut self, rqs: &Requests, serving: u32, now: u64) -> Option<u32> {
        // What its own process writes behind its back.
        let own = self.q(serving).owner.and_then(|owner| {
            self.engine.busy().find(|&id| {
                let q = self.q(id);
                !q.sync && self.fits(rqs, id) && rqs.life(q.next).task == owner
            })
        });
        let s = self.q(serving);
        let waker = || s.learnt.waker.filter(|&w| self.fits(rqs, w));
        let woken = || s.learnt.woken.last().copied().filter(|&w| self.fits(rqs, w));
        if let Some(id) = own.or_else(waker).or_else(woken) {
            return Some(id);
        }
        if self.idling_pays(serving) || (s.raise.raised() && self.raised_busy <= 1 && s.quick) {
            return None;
        }
        self.inject(rqs, serving, now)
    }

    /// `bfq_choose_bfqq_for_injection`: anybody's, the queue that came last first.
    fn inject(&mut self, rqs: &Requests, serving: u32, now: u64) -> Option<u32> {
        let s = self.q(serving);
        let own_limit = s.learnt.limit;
        let idle_long = s.wait_request && self.idling_since + self.slice_idle <= now;
        let mut limit = if own_limit == 0 && s.learnt.base == 0 && idle_long { 1 } else { own_limit };
        if self.in_driver >= limit {
            return None;
        }
        let anybody = !s.raise.raised() || !s.quick;
        let mut others: Vec<u32> = self
            .engine
            .busy()
            .filter(|&id| id != serving && (anybody || self.q(id).raise.raised()) && self.fits(rqs, id))
            .collect();
        others.sort_unstable_by_key(|&id| std::cmp::Reverse(self.engine.entities[id as usize].came));
        let chosen = others.into_iter().find(|&id| {
            // On flash one large request at a time is enough to keep the queue's next one waiting.
            let large = !self.rotational && rqs[self.q(id).next].nr >= SHORT;
            limit = if large { limit.min(1) } else { own_limit };
            self.in_driver < limit
        });
        self.measured.injected |= chosen.is_some();
        chosen
    }
}
