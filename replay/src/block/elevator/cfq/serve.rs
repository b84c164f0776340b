//! Which queue CFQ serves: slices and their ends, idling, preemption, cooperating queues.

use super::super::super::request::{NIL, Requests};
use super::super::super::{IoClass, RqId};
use super::Cfq;
use super::queue::{IDLE_TREE, Kind, tree_of};

/// Two queues cooperate if their next requests are within this, sectors.
const CLOSE: u64 = 8192;
/// So many requests at a time show that the device queues commands.
const DEEP_DEVICE: u32 = 5;

impl Cfq {
    /// Ends the active slice; `timed_out`: what is left of it is remembered.
    pub(super) fn expire(&mut self, now: u64, timed_out: bool) {
        let Some(id) = self.active else { return };
        if self.q(id).wait_request {
            self.timer = None;
        }
        if timed_out {
            let residue = if self.q(id).slice_new {
                self.scaled_slice(id) as i64
            } else {
                self.q(id).slice_end as i64 - now as i64
            };
            self.q_mut(id).residue = residue;
        }
        self.saved_workload = self.workload_expires.saturating_sub(now);
        let q = self.q_mut(id);
        q.wait_request = false;
        q.split |= q.shared && q.seeky();
        let (on_rr, empty) = (q.on_rr, q.sorted.is_empty());
        if on_rr && empty {
            self.end_rr(id);
        } else if on_rr {
            self.join_tree(id, now, false);
        }
        self.active = None;
        self.active_task = None;
    }

    pub(super) fn should_idle(&self, id: u32, rotational: bool) -> bool {
        let q = self.q(id);
        if self.slice_idle == 0 || q.class == IoClass::Idle {
            return false;
        }
        if q.idle_window && (rotational || self.queues_commands == Some(false)) {
            return true;
        }
        let tree = &self.trees[q.tree];
        let thinks_long = tree.think.valid() && tree.think.mean > self.slice_idle;
        tree.queues.len() == 1 && q.sync && !thinks_long
    }

    /// After the last request of the active queue was done: keep the device for it?
    pub(super) fn arm_timer(&mut self, id: u32, now: u64, rotational: bool) {
        if !rotational && self.queues_commands != Some(false) {
            return;
        }
        let q = self.q(id);
        if !self.should_idle(id, rotational) || q.dispatched > 0 {
            return;
        }
        let Some(task) = self.active_task else { return };
        let think = self.think.get(&task).copied().unwrap_or_default();
        if think.valid() && q.slice_end.saturating_sub(now) < think.mean {
            return;
        }
        self.q_mut(id).wait_request = true;
        self.timer = Some(now + self.slice_idle);
    }

    pub(super) fn run_timer(&mut self, now: u64) {
        if self.timer.is_none_or(|t| now < t) {
            return;
        }
        self.timer = None;
        let Some(id) = self.active else { return };
        if self.q(id).must_dispatch {
            return;
        }
        if !self.q(id).slice_used(now) {
            // Of no use to end the slice while nobody else waits, or if it has something to do.
            if self.busy == 0 || !self.q(id).sorted.is_empty() {
                return;
            }
            self.q_mut(id).deep = false;
        }
        self.expire(now, false);
    }

    /// The queue whose next request lies nearest to the arm, if near enough to go on with instead of idling.
    pub(super) fn cooperator(&self, rqs: &Requests, id: u32) -> Option<u32> {
        let q = self.q(id);
        if q.class == IoClass::Idle || !q.sync || q.seeky() || self.busy <= 1 {
            return None;
        }
        let mut best: Option<(u64, u32)> = None;
        for tree in &self.trees[..IDLE_TREE] {
            for &other in &tree.queues {
                let o = self.q(other);
                if other == id || o.next == NIL || o.level != q.level {
                    continue;
                }
                let distance = rqs[o.next].sector.abs_diff(self.last_position);
                if distance <= CLOSE && best.is_none_or(|(d, _)| distance < d) {
                    best = Some((distance, other));
                }
            }
        }
        let (_, found) = best?;
        let o = self.q(found);
        let same_class = (o.class == IoClass::RealTime) == (q.class == IoClass::RealTime);
        (o.sync && !o.seeky() && same_class).then_some(found)
    }

    /// Two queues are to become one: the processes of one move to the other with their next requests.
    pub(super) fn plan_merge(&mut self, a: u32, b: u32) {
        let mut into = b;
        while let Some(next) = self.q(into).merged_into {
            if next == a {
                return;
            }
            into = next;
        }
        let (ua, ub) = (self.q(a).users, self.q(into).users);
        if ua == 0 || ub == 0 || a == into {
            return;
        }
        if ub >= ua {
            self.q_mut(a).merged_into = Some(into);
        } else {
            self.q_mut(into).merged_into = Some(a);
        }
    }

    pub(super) fn activate(&mut self, id: Option<u32>) {
        if let Some(id) = id {
            let q = self.q_mut(id);
            q.slice_start = 0;
            q.slice_end = 0;
            q.slice_dispatch = 0;
            q.wait_request = false;
            q.must_dispatch = false;
            q.fifo_checked = false;
            q.slice_new = true;
            self.timer = None;
        }
        self.active = id;
        self.active_task = None;
    }

    /// The queue to serve; `None`: nothing now, which may mean that the device is kept idle.
    pub(super) fn select(&mut self, rqs: &Requests, now: u64, rotational: bool) -> Option<u32> {
        let mut chosen = None;
        if let Some(id) = self.active {
            if self.queued == 0 {
                return None;
            }
            let over = self.q(id).slice_used(now) && !self.q(id).must_dispatch;
            if !over {
                if !self.q(id).sorted.is_empty() {
                    return Some(id);
                }
                chosen = self.cooperator(rqs, id);
                if let Some(other) = chosen {
                    if self.q(id).merged_into.is_none() {
                        self.plan_merge(id, other);
                    }
                } else {
                    if self.timer.is_some() {
                        return None;
                    }
                    let q = self.q_mut(id);
                    let left = q.slice_end.saturating_sub(now);
                    if q.seeky() && q.idle_window && (q.slice_new || left > now - q.slice_start) {
                        q.deep = false;
                        q.idle_window = false;
                    }
                    if self.q(id).dispatched > 0 && self.should_idle(id, rotational) {
                        return None;
                    }
                }
            }
            self.expire(now, false);
        }
        if chosen.is_none() && self.busy > 0 {
            self.choose_workload(now);
            chosen = self.trees[tree_of(self.serving_class, self.serving_kind)].queues.first().copied();
        }
        self.activate(chosen);
        chosen
    }

    pub(super) fn may_dispatch(&self, id: u32, now: u64, rotational: bool) -> bool {
        let q = self.q(id);
        if self.should_idle(id, rotational) && self.in_flight[0] > 0 {
            return false;
        }
        if self.in_flight[1] > 0 && !q.sync {
            return false;
        }
        let mut most = (self.quantum / 2).max(1);
        if q.class == IoClass::Idle {
            most = 1;
        }
        if q.dispatched >= most {
            if q.class == IoClass::Idle {
                return false;
            }
            let only_sync = q.sync && self.busy_sync == 1;
            let soon = q.slice_new || now + self.slice_idle * u64::from(q.dispatched) > q.slice_end;
            if self.busy > 1 && soon && !only_sync {
                return false;
            }
            most = if self.busy == 1 || only_sync { u32::MAX } else { self.quantum };
        }
        if !q.sync && self.low_latency {
            let since = now.saturating_sub(self.last_delayed_sync);
            let mut depth = u32::try_from(since / self.slice[1]).unwrap_or(u32::MAX);
            if depth == 0 && q.dispatched == 0 {
                depth = 1;
            }
            most = most.min(depth);
        }
        q.dispatched < most
    }

    pub(super) fn update_idle_window(&mut self, id: u32, task: u32) {
        if !self.q(id).sync || self.q(id).class == IoClass::Idle {
            return;
        }
        let think = self.think.get(&task).copied().unwrap_or_default();
        let slice_idle = self.slice_idle;
        let q = self.q_mut(id);
        q.deep |= q.fifo.len() >= 4;
        if slice_idle == 0 || (!q.deep && q.seeky()) {
            q.idle_window = false;
        } else if think.valid() {
            q.idle_window = think.mean <= slice_idle;
        }
    }

    pub(super) fn preempts(&self, rqs: &Requests, new: u32, rq: RqId, now: u64, rotational: bool) -> bool {
        let Some(active) = self.active else { return false };
        let (n, a) = (self.q(new), self.q(active));
        let note = self.notes[rq as usize];
        if n.class == IoClass::Idle {
            return false;
        }
        if a.class == IoClass::Idle {
            return true;
        }
        if a.class == IoClass::RealTime && n.class != IoClass::RealTime {
            return false;
        }
        if (note.sync && !a.sync) || a.slice_used(now) {
            return true;
        }
        let no_idle = self.serving_kind == Kind::SyncNoIdle && n.kind() == Kind::SyncNoIdle;
        if no_idle && self.trees[n.tree].queues.len() == 2 && a.sorted.is_empty() {
            return true;
        }
        if (note.meta && a.meta == 0) || (n.class == IoClass::RealTime && a.class != IoClass::RealTime) {
            return true;
        }
        if a.sorted.is_empty() && !self.should_idle(active, rotational) {
            return true;
        }
        self.active_task.is_some() && a.wait_request && rqs[rq].sector.abs_diff(self.last_position) <= CLOSE
    }

    pub(super) fn preempt(&mut self, new: u32, now: u64) {
        let was = self.active.map(|a| self.q(a).kind());
        self.expire(now, true);
        if was != Some(self.q(new).kind()) {
            self.saved_workload = 0;
        }
        self.join_tree(new, now, true);
        let q = self.q_mut(new);
        q.slice_end = 0;
        q.slice_new = true;
    }

    /// Watches whether the device takes several commands at a time.
    pub(super) fn watch_depth(&mut self) {
        self.depth_seen = self.depth_seen.max(self.in_driver);
        if self.queues_commands == Some(true) || (self.queued <= DEEP_DEVICE as usize && self.in_driver <= DEEP_DEVICE)
        {
            return;
        }
        if let Some(id) = self.active {
            let q = self.q(id);
            if q.idle_window && q.dispatched + (q.fifo.len() as u32) < DEEP_DEVICE && self.in_driver < DEEP_DEVICE {
                return;
            }
        }
        self.depth_samples += 1;
        if self.depth_samples > 50 {
            self.queues_commands = Some(self.depth_seen >= DEEP_DEVICE);
        }
    }
}
