//! Which queue BFQ serves and for how long: idling, ends of service and what they make of the next budget.

use super::super::super::IoClass;
use super::super::super::request::{NIL, Requests};
use super::queue::Reason;
use super::{Bfq, DEFAULT_BUDGET, MIN_BUDGETS, raise, rate};

/// More requests than this at a time show that the device queues commands.
const DEEP_DEVICE: u32 = 3;
const DEPTH_SAMPLES: u32 = 32;

impl Bfq {
    pub(super) fn largest_budget(&self) -> u64 {
        if self.fixed_budget == 0 && self.budgets_assigned < MIN_BUDGETS { DEFAULT_BUDGET } else { self.max_budget }
    }

    pub(super) fn least_budget(&self) -> u64 {
        (self.largest_budget() / 32).max(1)
    }

    /// Keeping the device for a queue makes it faster in sum, and harms nobody who is in a hurry.
    pub(super) fn idling_pays(&self, id: u32) -> bool {
        let q = self.q(id);
        if q.sync && q.processes == 0 {
            return false;
        }
        let queues_commands = self.queues_commands.unwrap_or(true);
        let steady = !q.seeky() && q.bound.io && q.quick;
        let pays = (self.rotational && !queues_commands) || ((self.rotational || !queues_commands) && steady);
        pays && self.raised_busy == 0
    }

    /// Without it others would take the queue's share.
    pub(super) fn idling_is_owed(&self, id: u32) -> bool {
        let q = self.q(id);
        if q.sync && q.processes == 0 {
            return false;
        }
        let total = self.busy_queues();
        (q.raise.raised() && (self.raised_busy < total || self.in_driver >= q.dispatched + 4))
            || self.asymmetric(id)
            || total == 1
    }

    pub(super) fn better_to_idle(&self, id: u32) -> bool {
        let q = self.q(id);
        self.slice_idle > 0 && q.sync && q.class != IoClass::Idle && (self.idling_pays(id) || self.idling_is_owed(id))
    }

    pub(super) fn timed_out(&self, id: u32, now: u64) -> bool {
        self.q(id).timeout.is_some_and(|t| t <= now)
    }

    pub(super) fn may_time_out(&self, id: u32, now: u64) -> bool {
        let e = &self.engine.entities[id as usize];
        (!self.q(id).wait_request || e.budget_left() >= e.budget / 3) && self.timed_out(id, now)
    }

    /// A process that used its time without getting far, and how long that was in ms.
    pub(super) fn slow(&self, id: u32, now: u64, compensate: bool) -> (bool, u64) {
        let q = self.q(id);
        if !q.sync {
            return (false, 0);
        }
        let until = if compensate { self.idling_since } else { now };
        let us = until.saturating_sub(self.service_began) / 1000;
        if us < 1000 {
            let ns = if self.rotational { self.slice_idle } else { rate::MIN_THINK };
            return (q.seeky(), ns / 1_000_000);
        }
        let service = self.engine.entities[id as usize].service;
        (if us > 20_000 { service < self.max_budget / 2 } else { q.seeky() }, us / 1000)
    }

    pub(super) fn next_budget(&self, id: u32, reason: Reason) -> Option<u64> {
        let q = self.q(id);
        let least = self.least_budget();
        let last = if q.raise.raised() { 2 * least } else { q.max_budget };
        if !q.sync {
            return Some(self.max_budget);
        }
        if q.raise.raised() {
            return Some(last);
        }
        Some(match reason {
            Reason::TooIdle if q.dispatched > 0 => (2 * last).min(self.max_budget),
            Reason::TooIdle if last > 5 * least => last - 4 * least,
            Reason::TooIdle => least,
            Reason::Timeout => (2 * last).min(self.max_budget),
            Reason::Exhausted => (4 * last).min(self.max_budget),
            Reason::NoMoreRequests => self.engine.entities[id as usize].service.max(least),
            Reason::Preempted => return None,
        })
    }

    /// Ends a queue's service. `compensate`: the time that the device was kept idle for it does not count.
    pub(super) fn expire(&mut self, rqs: &Requests, id: u32, now: u64, reason: Reason, compensate: bool) {
        let (slow, ms) = self.slow(id, now, compensate);
        let e = self.engine.entities[id as usize];
        let raised = self.q(id).raise.raised();
        if !raised && (slow || (reason == Reason::Timeout && e.budget_left() >= e.budget / 3)) {
            let by_time = self.max_budget * ms.min(self.timeout_ms) / self.timeout_ms;
            let total = by_time.max(e.service);
            let entity = self.e(id);
            entity.budget = entity.budget.max(total);
            self.engine.served(id, total - e.service);
        }
        let slice_idle = self.slice_idle;
        let low_latency = self.low_latency;
        let q = self.q_mut(id);
        if low_latency {
            if !raised {
                q.raise.since = now;
            }
            if q.sorted.is_empty() {
                if q.dispatched == 0 {
                    q.raise.next_soft_rt(now, slice_idle);
                } else {
                    q.raise.soft_rt_pending = true;
                }
            }
        }
        self.measured.turn_over();
        if let Some(budget) = self.next_budget(id, reason) {
            let most =
                if self.fixed_budget == 0 && self.budgets_assigned >= MIN_BUDGETS { self.max_budget } else { u64::MAX };
            self.q_mut(id).max_budget = budget.min(most);
            let next = self.q(id).next;
            if next != NIL {
                let budget = self.q(id).max_budget.max(self.cost(rqs, next, id));
                self.e(id).budget = budget;
            }
        }
        self.timer = None;
        self.in_service = None;
        let owed = reason == Reason::Preempted && self.idling_is_owed(id);
        let q = self.q_mut(id);
        q.wait_request = false;
        q.to_split |= q.shared && q.seeky();
        if q.sorted.is_empty() && !owed {
            if q.dispatched == 0 {
                q.timeout = Some(now);
            }
            self.end_busy(id);
        } else {
            let raise = q.raise.coefficient;
            self.engine.requeue(id, raise);
        }
        let q = self.q_mut(id);
        if !q.busy && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            q.waits_in_time = true;
        } else {
            self.e(id).service = 0;
        }
    }

    pub(super) fn arm_timer(&mut self, id: u32, now: u64) {
        let asymmetric = self.asymmetric(id);
        let q = self.q_mut(id);
        q.wait_request = true;
        let (seeky, raised) = (q.seeky(), q.raise.raised());
        let idle = if seeky && !raised && !asymmetric {
            self.slice_idle.min(rate::MIN_THINK)
        } else if raised {
            self.slice_idle.max(20_000_000)
        } else {
            self.slice_idle
        };
        self.idling_since = now;
        self.timer = Some(now + idle);
    }

    pub(super) fn run_timer(&mut self, rqs: &Requests, now: u64) {
        if self.timer.is_none_or(|t| now < t) {
            return;
        }
        self.timer = None;
        let Some(id) = self.in_service else { return };
        self.q_mut(id).wait_request = false;
        if self.timed_out(id, now) {
            self.expire(rqs, id, now, Reason::Timeout, false);
        } else if self.q(id).sorted.is_empty() {
            self.expire(rqs, id, now, Reason::TooIdle, true);
        }
    }

    pub(super) fn set_in_service(&mut self, now: u64) -> Option<u32> {
        let id = self.engine.next()?;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        let timeout = self.timeout_ms * 1_000_000;
        let e = self.engine.entities[id as usize];
        let q = self.q_mut(id);
        q.fifo_checked = false;
        q.raise.turn_begins(now, q.timeout);
        let longer = if q.raise.lasts == raise::SOFT_RT_TIME { 1 } else { (e.weight / q.weight.max(1)).max(1) };
        q.timeout = Some(now + timeout * longer);
        self.service_began = now;
        self.served_to = 0;
        self.in_service = Some(id);
        Some(id)
    }

    /// The queue to take a request from; `None`: nothing now, which may mean that the device is kept idle.
    pub(super) fn select(&mut self, rqs: &Requests, now: u64) -> Option<u32> {
        let mut reason = Reason::Timeout;
        let mut current = self.in_service;
        let mut expire = false;
        if let Some(id) = current {
            expire = self.may_time_out(id, now) && !(self.q(id).sorted.is_empty() && self.better_to_idle(id));
        }
        loop {
            let Some(id) = current else {
                current = Some(self.set_in_service(now)?);
                continue;
            };
            if !expire {
                let next = self.q(id).next;
                if next != NIL {
                    if self.cost(rqs, next, id) <= self.engine.entities[id as usize].budget_left() {
                        self.q_mut(id).wait_request = false;
                        self.timer = None;
                        return Some(id);
                    }
                    reason = Reason::Exhausted;
                } else if self.q(id).wait_request || (self.q(id).dispatched > 0 && self.better_to_idle(id)) {
                    return self.goes_past(rqs, id, now);
                } else {
                    reason = Reason::NoMoreRequests;
                }
            }
            self.expire(rqs, id, now, reason, false);
            expire = false;
            current = None;
        }
    }

    pub(super) fn watch_depth(&mut self) {
        self.depth_seen = self.depth_seen.max(self.in_driver);
        if self.queues_commands == Some(true) || self.in_driver as usize + self.queued <= DEEP_DEVICE as usize {
            return;
        }
        if let Some(id) = self.in_service {
            let q = self.q(id);
            if q.quick && q.dispatched + (q.fifo.len() as u32) < DEEP_DEVICE && self.in_driver < DEEP_DEVICE {
                return;
            }
        }
        self.depth_samples += 1;
        if self.depth_samples > DEPTH_SAMPLES {
            self.queues_commands = Some(self.depth_seen > DEEP_DEVICE);
            self.depth_seen = 0;
            self.depth_samples = 0;
        }
    }
}
