//! What a request that comes tells BFQ about its process, and what becomes of a queue that had none.

use super::super::super::request::Requests;
use super::super::super::{Bio, IoClass, RqId};
use super::queue::Reason;
use super::{Bfq, DEFAULT_WEIGHT, raise};

impl Bfq {
    /// A queue without requests that was idle for so long that its process looks interactive.
    pub(super) fn interactive(&self, id: u32, now: u64) -> bool {
        let q = self.q(id);
        let idle_long = q.dispatched == 0 && q.timeout.is_none_or(|t| t + raise::MIN_IDLE < now);
        !q.raise.in_burst && idle_long && q.weight == DEFAULT_WEIGHT
    }

    /// A queue that had no request gets one.
    pub(super) fn begin_busy(&mut self, rqs: &Requests, id: u32, now: u64, interactive: bool) {
        let q = self.q(id);
        let in_time = now <= q.think.last_end + 3 * self.slice_idle;
        let soft_rt = q.seeks != u32::MAX
            && !q.raise.in_burst
            && q.raise.soft_rt_from < now
            && q.dispatched == 0
            && q.weight == DEFAULT_WEIGHT;
        let whose = q.owner.is_some() || self.process(rqs.life(q.next).task).joined;
        let deserves = self.low_latency && (q.raise.raised() || (q.sync && whose && (interactive || soft_rt)));
        let outlived =
            !q.just_created && q.dispatched == 0 && q.timeout.is_none_or(|t| t + raise::OUTLIVES_BURST < now);
        let (next, waits) = (q.next, q.waits_in_time);
        let left = self.engine.entities[id as usize].budget_left();
        let preempts = waits && in_time && left > 0;
        let max_budget = q.max_budget;
        let budget = if preempts { left.min(max_budget) } else { max_budget.max(self.cost(rqs, next, id)) };
        let e = self.e(id);
        e.budget = budget;
        e.service = 0;
        if !preempts {
            self.q_mut(id).waits_in_time = false;
        }
        if outlived {
            self.burst.leave(id);
            self.q_mut(id).raise.in_burst = false;
        }
        self.q_mut(id).just_created = false;
        if self.low_latency && !self.just_parted(id, now) {
            let lasts = self.raising_ns();
            let mut started = false;
            self.reraise(id, |r| started = r.arrival(now, deserves, interactive, soft_rt, lasts));
            if started {
                let most = 2 * self.least_budget();
                let e = self.e(id);
                e.budget = e.budget.min(most);
            }
        }
        let q = self.q_mut(id);
        q.raise.backlogged_at = now;
        q.raise.backlogged_service = 0;
        q.raise.soft_rt_pending = false;
        q.busy = true;
        q.waits_in_time = false;
        let (class, raised, coefficient) = (q.class as usize, q.raise.raised(), q.raise.coefficient);
        self.busy[class] += 1;
        self.raised_busy += u32::from(raised);
        self.engine.activate(id, preempts, coefficient);
        self.count(id);

        let Some(serving) = self.in_service else { return };
        let (n, s) = (self.q(id), self.q(serving));
        let weight = |id: u32| self.engine.entities[id as usize].weight;
        // As the kernel has it: a lower class with a higher weight counts as heavier, too.
        let heavier = n.class < s.class || weight(id) > weight(serving);
        if (preempts && n.raise.coefficient >= s.raise.coefficient) || heavier || !self.better_to_idle(serving) {
            self.expire(rqs, serving, now, Reason::Preempted, false);
        }
    }

    /// Something is queued that such a bio is held against, so that its process's queue is looked at.
    pub(super) fn may_join_any(&mut self, rqs: &Requests, bio: &Bio, own: u32) -> bool {
        let (nodes, notes, queues) = (&self.nodes, &self.notes, &self.queues);
        let may = |rq: RqId| queues[notes[rq as usize].queue as usize].sync && !rqs[rq].started;
        self.adjacent.newest(rqs, bio, may)
            || self.adjacent.find(rqs, bio, may, |s| nodes.at(queues[own as usize].sorted, s)).is_some()
    }

    /// What a request tells about its process before it is queued.
    pub(super) fn note_arrival(&mut self, rqs: &Requests, id: u32, rq: RqId, now: u64) {
        let seek = self.is_seek(self.q(id).last_pos, rqs, rq);
        let (lasts, slice_idle) = (self.raising_ns(), self.slice_idle);
        let just_parted = self.just_parted(id, now);
        let q = self.q_mut(id);
        if q.dispatched == 0 && !q.busy {
            q.think.add(now, slice_idle);
        }
        let mut other = false;
        if q.sync && q.class != IoClass::Idle && slice_idle > 0 && !just_parted {
            let before = std::mem::replace(&mut q.quick, !(q.think.valid() && q.think.mean > slice_idle / 2));
            other = before != q.quick;
        }
        q.seeks = q.seeks << 1 | u32::from(seek);
        let only_seeks = q.seeks == u32::MAX;
        if other {
            self.thinks_otherwise(id, now);
        }
        if only_seeks {
            self.reraise(id, |r| r.seeks_only(now, lasts));
        }
        if !self.q(id).sync {
            return;
        }
        if self.process(rqs.life(rq).task).requests <= 1 {
            self.ends_gap(id, now);
        }
        let q = self.q_mut(id);
        let idle = if q.sorted.is_empty() && q.dispatched == 0 { now.saturating_sub(q.think.last_end) } else { 0 };
        let first = q.just_created;
        q.bound.arrival(now, idle, first);
    }
}
