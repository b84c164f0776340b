//! CFQ's service trees: when a queue is due, how long its slice is, and which tree is served for how long.

use super::queue::{IDLE_TREE, KINDS, Kind, tree_of};
use super::{Cfq, IoClass};

/// A queue of the idle class is due so long after the one before it.
const IDLE_DELAY: i64 = 200_000_000;
/// A preempting queue is put so far before the first one.
const TO_FRONT: i64 = 1_000_000_000;
/// Least slice of a kind of work.
const MIN_WORKLOAD: u64 = 2_000_000;

impl Cfq {
    pub(super) fn base_slice(&self, sync: bool, level: i64) -> i64 {
        let base = self.slice[usize::from(sync)] as i64;
        base + base / 5 * (4 - level)
    }

    pub(super) fn busy_in(&self, class: IoClass) -> u64 {
        let n: usize = match class {
            IoClass::Idle => self.trees[IDLE_TREE].queues.len(),
            _ => KINDS.iter().map(|&k| self.trees[tree_of(class, k)].queues.len()).sum(),
        };
        n as u64
    }

    /// A queue's slice, less where many queues have to fit into the target latency.
    pub(super) fn scaled_slice(&mut self, id: u32) -> u64 {
        let (sync, level, class) = (self.q(id).sync, self.q(id).level, self.q(id).class);
        let slice = self.base_slice(sync, level).max(0) as u64;
        if !self.low_latency {
            return slice;
        }
        let busy = self.busy_in(class);
        let avg = &mut self.busy_avg[class as usize];
        *avg = (3 * busy.max(*avg) + busy.min(*avg) + 2) / 4;
        let expected = self.slice[1] * *avg;
        if expected <= self.target_latency {
            return slice;
        }
        let least = slice.min(2 * self.slice_idle * slice / self.slice[1]);
        (slice * self.target_latency / expected).max(least)
    }

    pub(super) fn leave_tree(&mut self, id: u32) {
        let tree = self.q(id).tree;
        self.trees[tree].queues.retain(|&q| q != id);
    }

    /// Lists a queue on its service tree, by when it is due.
    pub(super) fn join_tree(&mut self, id: u32, now: u64, front: bool) {
        let q = self.q(id);
        let tree = tree_of(q.class, q.kind());
        let first = self.trees[tree].queues.first().map(|&f| self.q(f).key);
        let last = self.trees[tree].queues.last().filter(|&&l| l != id).map(|&l| self.q(l).key);
        let key = if q.class == IoClass::Idle {
            IDLE_DELAY + last.unwrap_or(now as i64)
        } else if front {
            first.unwrap_or(now as i64) - TO_FRONT
        } else {
            let others = i64::from(self.busy.max(1)) - 1;
            let offset = others * (self.base_slice(true, 0) - self.base_slice(q.sync, q.level));
            let key = offset + now as i64 - q.residue;
            self.q_mut(id).residue = 0;
            key
        };
        self.leave_tree(id);
        let q = self.q_mut(id);
        q.tree = tree;
        q.key = key;
        let at = self.trees[tree].queues.partition_point(|&o| self.queues[o as usize].key <= key);
        self.trees[tree].queues.insert(at, id);
    }

    pub(super) fn begin_rr(&mut self, id: u32, now: u64) {
        let q = self.q_mut(id);
        q.on_rr = true;
        let sync = q.sync;
        self.busy += 1;
        self.busy_sync += u32::from(sync);
        self.join_tree(id, now, false);
    }

    pub(super) fn end_rr(&mut self, id: u32) {
        self.leave_tree(id);
        let q = self.q_mut(id);
        q.on_rr = false;
        let sync = q.sync;
        self.busy -= 1;
        self.busy_sync -= u32::from(sync);
        if self.busy == 0 {
            self.saved_workload = 0;
        }
    }

    /// Chooses class and kind of work, and how long it may last.
    pub(super) fn choose_workload(&mut self, now: u64) {
        self.workload_expires = if self.saved_workload > 0 { now + self.saved_workload } else { 0 };
        let before = self.serving_class;
        self.serving_class = match () {
            () if self.busy_in(IoClass::RealTime) > 0 => IoClass::RealTime,
            () if self.busy_in(IoClass::BestEffort) > 0 => IoClass::BestEffort,
            () => {
                self.serving_class = IoClass::Idle;
                self.workload_expires = now + 1;
                return;
            }
        };
        let class = self.serving_class;
        let here = self.trees[tree_of(class, self.serving_kind)].queues.len();
        if before == class && here > 0 && now <= self.workload_expires {
            return;
        }
        let first_key = |k: Kind| self.trees[tree_of(class, k)].queues.first().map(|&q| self.q(q).key);
        let mut best: Option<(i64, Kind)> = None;
        for kind in KINDS {
            if let Some(key) = first_key(kind)
                && best.is_none_or(|(b, _)| key < b)
            {
                best = Some((key, kind));
            }
        }
        self.serving_kind = best.map_or(Kind::SyncNoIdle, |(_, k)| k);
        let count = self.trees[tree_of(class, self.serving_kind)].queues.len() as u64;
        let all = self.busy_avg[class as usize].max(self.busy_in(class)).max(1);
        let mut slice = self.target_latency * count / all;
        if self.serving_kind == Kind::Async {
            let asyncs: usize = [IoClass::RealTime, IoClass::BestEffort]
                .iter()
                .map(|&c| self.trees[tree_of(c, Kind::Async)].queues.len())
                .sum();
            slice = slice.min(self.target_latency * asyncs as u64 / u64::from(self.busy.max(1)));
            slice = slice * self.slice[0] / self.slice[1];
        } else {
            slice = slice.max(2 * self.slice_idle);
        }
        self.workload_expires = now + slice.max(MIN_WORKLOAD);
    }
}
