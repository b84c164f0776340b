//! BFQ (`block/bfq-iosched.c` of 6.1; P. Valente and F. Checconi, "High throughput disk scheduling with fair bandwidth
//! distribution", IEEE ToC 2010): budgets in sectors, fair queueing between processes, idling where order matters.
//!
//! The process in service keeps the device until its budget is used, its time is up, or it has nothing to do and waiting
//! for it does not pay. What it used decides when it comes again ([`wf2q`]); how it used it decides the next budget.
//!
//! Reduced: no groups; queues of cooperating processes are not merged; while the device is kept for a process, one request
//! of others is let through only if that process thinks long (the kernel measures how many do no harm, and looks for
//! processes that wake each other); asynchronous requests of a priority share a queue, as in the kernel.

mod raise;
mod rate;
mod wf2q;

use std::collections::BTreeMap;

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, IoClass, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::rbtree::{Nodes, SectorTree};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::BfqConfig;
use raise::{Burst, Raise};
use rate::PeakRate;
use wf2q::{Engine, Entity, Place};

/// Budgets before enough of them were given out, sectors.
const DEFAULT_BUDGET: u64 = 16 * 1024;
/// ... which is after about so many (256 = one at full weight).
const MIN_BUDGETS: u64 = 194;
/// An asynchronous sector costs so many.
const ASYNC_FACTOR: u64 = 3;
/// A jump beyond this is a seek, sectors; on flash only if the request is shorter than [`SHORT`].
const SEEK: u64 = 800;
const SHORT: u32 = 64;
/// Weight of a priority level above the lowest.
const LEVEL_WEIGHT: u64 = 10;
/// Weight of a process that asked for no priority.
const DEFAULT_WEIGHT: u64 = 40;
/// More requests than this at a time show that the device queues commands.
const DEEP_DEVICE: u32 = 3;
const DEPTH_SAMPLES: u32 = 32;
/// A mean of think times counts after this.
const VALID: u64 = 80;

/// Why a queue's service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    TooIdle,
    Timeout,
    Exhausted,
    NoMoreRequests,
    Preempted,
}

/// The synchronous requests of a process, or the asynchronous ones of a priority.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    sync: bool,
    class: IoClass,
    /// Weight without raising.
    weight: u64,
    sorted: SectorTree,
    fifo: List,
    next: RqId,
    dispatched: u32,
    busy: bool,
    max_budget: u64,
    /// In service: when its time is up. Else: since when it has nothing queued or at the device.
    timeout: Option<u64>,
    fifo_checked: bool,
    wait_request: bool,
    /// Its last turn ended because it had no request, and it may go on with its budget.
    waits_in_time: bool,
    seeks: u32,
    last_pos: u64,
    last_end: u64,
    think_samples: u64,
    think_total: u64,
    think_mean: u64,
    /// Thinks less than half the idling time.
    quick: bool,
    raise: Raise,
    just_created: bool,
    counted: bool,
}

impl Queue {
    fn seeky(&self) -> bool {
        self.seeks.count_ones() > 19
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Note {
    queue: u32,
    deadline: u64,
}

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Bfq {
    expire_after: [u64; 2],
    reach: Reach,
    slice_idle: u64,
    timeout_ms: u64,
    fixed_budget: u64,
    low_latency: bool,
    queues: Vec<Queue>,
    engine: Engine,
    /// Only looked up, never iterated.
    by_task: FxHashMap<u32, u32>,
    by_prio: FxHashMap<(IoClass, u8), u32>,
    nodes: Nodes,
    notes: Vec<Note>,
    adjacent: Adjacent,
    in_service: Option<u32>,
    busy: [u32; 3],
    raised_busy: u32,
    /// Queues with requests, raised ones excepted, by weight.
    weights: BTreeMap<u64, u32>,
    queued: usize,
    in_driver: u32,
    last_position: u64,
    timer: Option<u64>,
    idling_since: u64,
    service_began: u64,
    budgets_assigned: u64,
    max_budget: u64,
    rate: Option<PeakRate>,
    queues_commands: Option<bool>,
    depth_seen: u32,
    depth_samples: u32,
    burst: Burst,
    rotational: bool,
}

impl Bfq {
    pub(crate) fn new(c: &BfqConfig) -> Self {
        let ms = |n: u64| n * 1_000_000;
        Self {
            expire_after: [ms(c.fifo_expire_async_ms), ms(c.fifo_expire_sync_ms)],
            reach: Reach { back_max: c.back_seek_max_kib * 2, penalty: c.back_seek_penalty },
            slice_idle: ms(c.slice_idle_ms),
            timeout_ms: c.timeout_sync_ms.max(1),
            fixed_budget: c.max_budget,
            low_latency: c.low_latency,
            queues: Vec::new(),
            engine: Engine::default(),
            by_task: FxHashMap::default(),
            by_prio: FxHashMap::default(),
            nodes: Nodes::default(),
            notes: Vec::new(),
            adjacent: Adjacent::default(),
            in_service: None,
            busy: [0; 3],
            raised_busy: 0,
            weights: BTreeMap::new(),
            queued: 0,
            in_driver: 0,
            last_position: 0,
            timer: None,
            idling_since: 0,
            service_began: 0,
            budgets_assigned: 0,
            max_budget: if c.max_budget == 0 { DEFAULT_BUDGET } else { c.max_budget },
            rate: None,
            queues_commands: None,
            depth_seen: 0,
            depth_samples: 0,
            burst: Burst::default(),
            rotational: true,
        }
    }

    #[inline]
    fn q(&self, id: u32) -> &Queue {
        &self.queues[id as usize]
    }

    #[inline]
    fn q_mut(&mut self, id: u32) -> &mut Queue {
        &mut self.queues[id as usize]
    }

    fn e(&mut self, id: u32) -> &mut Entity {
        &mut self.engine.entities[id as usize]
    }

    fn largest_budget(&self) -> u64 {
        if self.fixed_budget == 0 && self.budgets_assigned < MIN_BUDGETS { DEFAULT_BUDGET } else { self.max_budget }
    }

    fn least_budget(&self) -> u64 {
        (self.largest_budget() / 32).max(1)
    }

    fn raising_ns(&self) -> u64 {
        self.rate.map_or(0, |r| r.raising_ns())
    }

    fn create(&mut self, cx: &Context) -> u32 {
        let weight = LEVEL_WEIGHT * (8 - u64::from(cx.level.min(7)));
        let max_budget = 2 * self.largest_budget() / 3;
        self.queues.push(Queue {
            sync: cx.sync,
            class: cx.class,
            weight,
            sorted: SectorTree::default(),
            fifo: List::new(),
            next: NIL,
            dispatched: 0,
            busy: false,
            max_budget,
            timeout: None,
            fifo_checked: false,
            wait_request: false,
            waits_in_time: false,
            seeks: 1,
            last_pos: 0,
            last_end: cx.now.get(),
            think_samples: 0,
            think_total: 0,
            think_mean: 0,
            quick: cx.sync && cx.class != IoClass::Idle,
            raise: Raise::default(),
            just_created: true,
            counted: false,
        });
        self.engine.entities.push(Entity::new(cx.class, weight));
        self.queues.len() as u32 - 1
    }

    fn queue_for(&mut self, task: u32, cx: &Context) -> u32 {
        let known = if cx.sync { self.by_task.get(&task) } else { self.by_prio.get(&(cx.class, cx.level)) };
        if let Some(&id) = known {
            return id;
        }
        let id = self.create(cx);
        if cx.sync {
            self.by_task.insert(task, id);
        } else {
            self.by_prio.insert((cx.class, cx.level), id);
        }
        id
    }

    fn busy_queues(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// Queues compete whose shares differ, so that order has to be enforced.
    fn asymmetric(&self, id: u32) -> bool {
        let lightest = self.weights.first_key_value().map(|(&w, _)| w);
        let is_lightest = self.q(id).counted && lightest == Some(self.q(id).weight);
        let varied = !is_lightest && self.weights.len() > 1;
        let classes = self.busy.iter().filter(|&&b| b > 0).count();
        varied || classes > 1
    }

    fn cost(&self, rqs: &Requests, rq: RqId, id: u32) -> u64 {
        let sectors = u64::from(rqs[rq].nr);
        let q = self.q(id);
        if q.sync || q.raise.raised() || self.asymmetric(id) { sectors } else { sectors * ASYNC_FACTOR }
    }

    /// Keeps count of weights that compete.
    fn count(&mut self, id: u32) {
        let q = self.q_mut(id);
        let wanted = (q.busy || q.dispatched > 0) && !q.raise.raised();
        if wanted == q.counted {
            return;
        }
        q.counted = wanted;
        let weight = q.weight;
        if wanted {
            *self.weights.entry(weight).or_default() += 1;
        } else if let Some(n) = self.weights.get_mut(&weight) {
            *n -= 1;
            if *n == 0 {
                self.weights.remove(&weight);
            }
        }
    }

    /// Runs a change of a queue's raising and keeps the counts right.
    fn reraise(&mut self, id: u32, change: impl FnOnce(&mut Raise)) {
        let before = self.q(id).raise.raised();
        change(&mut self.q_mut(id).raise);
        let q = self.q(id);
        let (after, busy, weight) = (q.raise.raised(), q.busy, q.weight * q.raise.coefficient);
        if busy && before != after {
            self.raised_busy = self.raised_busy + u32::from(after) - u32::from(before);
        }
        self.e(id).new_weight = weight;
        self.count(id);
    }

    fn following(&self, rqs: &Requests, rq: RqId, now: u64) -> RqId {
        let id = self.notes[rq as usize].queue;
        let q = self.q(id);
        if !q.fifo_checked {
            let head = q.fifo.head;
            if head != NIL && head != rq && now >= self.notes[head as usize].deadline {
                return head;
            }
        }
        let mut next = self.nodes.next(rq);
        if next == NIL {
            next = self.nodes.from(q.sorted, 0);
            if next == rq {
                next = NIL;
            }
        }
        self.reach.choose(rqs, rqs[rq].end(), next, self.nodes.prev(rq))
    }

    fn unqueue(&mut self, rqs: &mut Requests, rq: RqId, now: u64) {
        let id = self.notes[rq as usize].queue;
        if self.q(id).next == rq {
            let next = self.following(rqs, rq, now);
            let q = self.q_mut(id);
            q.fifo_checked = true;
            q.next = next;
            self.next_changed(rqs, id);
        }
        let q = &mut self.queues[id as usize];
        self.nodes.remove(&mut q.sorted, rq);
        q.fifo.remove(rqs, rq);
        self.adjacent.remove(rq);
        self.queued -= 1;
        let q = self.q(id);
        if q.sorted.is_empty() && q.busy && self.in_service != Some(id) {
            self.end_busy(id);
            let e = self.e(id);
            e.budget = 0;
            e.service = 0;
        }
    }

    /// A waiting queue's budget has to do for its next request.
    fn next_changed(&mut self, rqs: &Requests, id: u32) {
        let next = self.q(id).next;
        if next == NIL || self.in_service == Some(id) || self.engine.entities[id as usize].place != Place::Active {
            return;
        }
        let budget = self.q(id).max_budget.max(self.cost(rqs, next, id)).max(self.engine.entities[id as usize].service);
        let raise = self.q(id).raise.coefficient;
        if self.e(id).budget != budget {
            self.e(id).budget = budget;
            self.engine.rebudget(id, raise);
        }
    }

    fn end_busy(&mut self, id: u32) {
        let q = self.q_mut(id);
        q.busy = false;
        let (class, raised) = (q.class as usize, q.raise.raised());
        self.busy[class] -= 1;
        self.raised_busy -= u32::from(raised);
        self.engine.deactivate(id);
        self.count(id);
    }

    /// A queue that had no request gets one.
    fn begin_busy(&mut self, rqs: &Requests, id: u32, now: u64) {
        let q = self.q(id);
        let idle_long = q.dispatched == 0 && q.timeout.is_none_or(|t| t + raise::MIN_IDLE < now);
        let in_time = now <= q.last_end + 3 * self.slice_idle;
        let default_weight = q.weight == DEFAULT_WEIGHT;
        let soft_rt = q.seeks != u32::MAX
            && !q.raise.in_burst
            && q.raise.soft_rt_from < now
            && q.dispatched == 0
            && default_weight;
        let interactive = !q.raise.in_burst && idle_long && default_weight;
        let deserves = self.low_latency && (q.raise.raised() || (q.sync && (interactive || soft_rt)));
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
        self.q_mut(id).just_created = false;
        if self.low_latency {
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
        let heavier = if n.class == s.class {
            n.weight * n.raise.coefficient > s.weight * s.raise.coefficient
        } else {
            n.class < s.class
        };
        if (preempts && n.raise.coefficient >= s.raise.coefficient) || heavier || !self.better_to_idle(serving) {
            self.expire(rqs, serving, now, Reason::Preempted, false);
        }
    }

    /// Keeping the device for a queue makes it faster in sum, and harms nobody who is in a hurry.
    fn idling_pays(&self, id: u32) -> bool {
        let q = self.q(id);
        let queues_commands = self.queues_commands.unwrap_or(true);
        let steady = !q.seeky() && q.quick;
        let pays = (self.rotational && !queues_commands) || ((self.rotational || !queues_commands) && steady);
        pays && self.raised_busy == 0
    }

    /// Without it others would take the queue's share.
    fn idling_is_owed(&self, id: u32) -> bool {
        let q = self.q(id);
        let total = self.busy_queues();
        (q.raise.raised() && (self.raised_busy < total || self.in_driver >= q.dispatched + 4))
            || self.asymmetric(id)
            || total == 1
    }

    fn better_to_idle(&self, id: u32) -> bool {
        let q = self.q(id);
        self.slice_idle > 0 && q.sync && q.class != IoClass::Idle && (self.idling_pays(id) || self.idling_is_owed(id))
    }

    fn timed_out(&self, id: u32, now: u64) -> bool {
        self.q(id).timeout.is_some_and(|t| t <= now)
    }

    fn may_time_out(&self, id: u32, now: u64) -> bool {
        let e = &self.engine.entities[id as usize];
        (!self.q(id).wait_request || e.budget_left() >= e.budget / 3) && self.timed_out(id, now)
    }

    /// A process that used its time without getting far, and how long that was in ms.
    fn slow(&self, id: u32, now: u64, compensate: bool) -> (bool, u64) {
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

    fn next_budget(&self, id: u32, reason: Reason) -> Option<u64> {
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
    fn expire(&mut self, rqs: &Requests, id: u32, now: u64, reason: Reason, compensate: bool) {
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

    fn arm_timer(&mut self, id: u32, now: u64) {
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

    fn run_timer(&mut self, rqs: &Requests, now: u64) {
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

    fn set_in_service(&mut self, now: u64) -> Option<u32> {
        let id = self.engine.next(now)?;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        let timeout = self.timeout_ms * 1_000_000;
        let e = self.engine.entities[id as usize];
        let q = self.q_mut(id);
        q.fifo_checked = false;
        let longer = if q.raise.lasts == raise::SOFT_RT_TIME { 1 } else { (e.weight / q.weight.max(1)).max(1) };
        q.timeout = Some(now + timeout * longer);
        self.service_began = now;
        self.in_service = Some(id);
        Some(id)
    }

    /// While the device is kept for a process that thinks long, somebody else's request may go.
    fn injection(&self, rqs: &Requests, serving: u32) -> Option<u32> {
        let s = self.q(serving);
        if s.quick || self.in_driver >= 1 {
            return None;
        }
        (0..self.queues.len() as u32).find(|&id| {
            let q = self.q(id);
            let fits = |rq| self.cost(rqs, rq, id) <= self.engine.entities[id as usize].budget_left();
            id != serving && q.busy && q.next != NIL && fits(q.next)
        })
    }

    /// The queue to take a request from; `None`: nothing now, which may mean that the device is kept idle.
    fn select(&mut self, rqs: &Requests, now: u64) -> Option<u32> {
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
                    if self.idling_pays(id) || (self.q(id).raise.raised() && self.raised_busy <= 1 && self.q(id).quick)
                    {
                        return None;
                    }
                    return self.injection(rqs, id);
                } else {
                    reason = Reason::NoMoreRequests;
                }
            }
            self.expire(rqs, id, now, reason, false);
            expire = false;
            current = None;
        }
    }

    fn is_seek(&self, last: u64, rqs: &Requests, rq: RqId) -> bool {
        rqs[rq].sector.abs_diff(last) > SEEK && (self.rotational || rqs[rq].nr < SHORT)
    }

    fn watch_depth(&mut self) {
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

    fn think(&mut self, id: u32, now: u64) {
        let slice_idle = self.slice_idle;
        let q = self.q_mut(id);
        if q.dispatched > 0 || q.busy {
            return;
        }
        let elapsed = now.saturating_sub(q.last_end).min(2 * slice_idle);
        q.think_samples = (7 * q.think_samples + 256) / 8;
        q.think_total = (7 * q.think_total + 256 * elapsed) / 8;
        q.think_mean = (q.think_total + 128) / q.think_samples;
    }
}

impl Elevator for Bfq {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let own = if cx.sync { self.by_task.get(&bio.task) } else { self.by_prio.get(&(cx.class, cx.level)) };
        let Some(&own) = own else { return Verdict::Insert(Spot::Tail) };
        let (nodes, notes, queues) = (&self.nodes, &self.notes, &self.queues);
        let may = |rq: RqId| notes[rq as usize].queue == own && !rqs[rq].started;
        let found = self.adjacent.find(rqs, bio, may, |s| nodes.at(queues[own as usize].sorted, s));
        let Some((rq, end)) = found else { return Verdict::Insert(Spot::Tail) };
        if !adjacent::fits(rqs, rq, bio, cx) {
            return Verdict::Insert(Spot::Tail);
        }
        let (a, b) = match end {
            End::Back => {
                rqs.attach_back(rq, *bio);
                (rq, self.nodes.next(rq))
            }
            End::Front => {
                rqs.attach_front(rq, *bio);
                (self.nodes.prev(rq), rq)
            }
        };
        if a != NIL && b != NIL && adjacent::joinable(rqs, a, b, cx) {
            let older = self.notes[b as usize].deadline;
            if older < self.notes[a as usize].deadline {
                self.notes[a as usize].deadline = older;
                let fifo = &mut self.queues[own as usize].fifo;
                fifo.remove(rqs, a);
                fifo.insert_before(rqs, b, a);
            }
            if self.q(own).next == b {
                self.q_mut(own).next = a;
            }
            self.unqueue(rqs, b, cx.now.get());
            rqs.absorb(a, b);
            self.adjacent.add(rqs, a, true);
            self.next_changed(rqs, own);
            return Verdict::Merged { into: a, end, absorbed: Some(b) };
        }
        if end == End::Front {
            let (reach, last) = (self.reach, self.last_position);
            let q = &mut self.queues[own as usize];
            self.nodes.remove(&mut q.sorted, rq);
            self.nodes.insert(&mut q.sorted, rqs[rq].sector, rq);
            q.next = reach.choose(rqs, last, q.next, rq);
        }
        self.adjacent.add(rqs, rq, true);
        self.next_changed(rqs, own);
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let now = cx.now.get();
        self.rotational = cx.rotational;
        self.rate.get_or_insert_with(|| PeakRate::new(cx.rotational));
        self.run_timer(rqs, now);
        let id = self.queue_for(rqs.life(rq).task, cx);
        if self.q(id).just_created && self.q(id).sync {
            self.burst.created(id, now, &mut self.queues);
        }
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, Note::default());
        }
        let deadline = now + self.expire_after[usize::from(cx.sync)];
        self.notes[rq as usize] = Note { queue: id, deadline };
        self.think(id, now);
        let seek = self.is_seek(self.q(id).last_pos, rqs, rq);
        let (lasts, slice_idle) = (self.raising_ns(), self.slice_idle);
        let q = self.q_mut(id);
        q.seeks = q.seeks << 1 | u32::from(seek);
        if q.sync && q.class != IoClass::Idle && slice_idle > 0 {
            q.quick = !(q.think_samples > VALID && q.think_mean > slice_idle / 2);
        }
        if q.seeks == u32::MAX {
            self.reraise(id, |r| r.seeks_only(now, lasts));
        }

        let (reach, last) = (self.reach, self.last_position);
        let q = &mut self.queues[id as usize];
        q.fifo.push_back(rqs, rq);
        self.nodes.insert(&mut q.sorted, rqs[rq].sector, rq);
        let before = q.next;
        q.next = reach.choose(rqs, last, q.next, rq);
        q.last_pos = rqs[rq].end();
        let (changed, busy, old) = (q.next != before, q.busy, q.raise);
        self.adjacent.add(rqs, rq, false);
        self.queued += 1;
        let mut interactive = false;
        if busy {
            let q = self.q(id);
            if self.low_latency && !q.raise.raised() && !q.sync && q.raise.since + raise::MIN_INTER_ARRIVAL_ASYNC < now
            {
                self.reraise(id, |r| {
                    r.coefficient = raise::COEFFICIENT;
                    r.lasts = lasts;
                });
            }
            if changed {
                self.next_changed(rqs, id);
            }
        } else {
            let q = self.q(id);
            interactive = !q.raise.in_burst
                && q.dispatched == 0
                && q.weight == DEFAULT_WEIGHT
                && q.timeout.is_none_or(|t| t + raise::MIN_IDLE < now);
            self.begin_busy(rqs, id, now);
        }
        if self.low_latency && (!old.raised() || !self.q(id).raise.raised() || interactive) {
            self.q_mut(id).raise.since = now;
        }

        if self.in_service == Some(id) && self.q(id).wait_request {
            let small = self.q(id).fifo.len() == 1 && rqs[rq].nr < 32;
            let over = self.timed_out(id, now);
            if !(small && self.idling_pays(id) && !over) {
                self.q_mut(id).wait_request = false;
                self.timer = None;
                if over {
                    self.expire(rqs, id, now, Reason::Timeout, false);
                }
            }
        }
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        let now = cx.now.get();
        self.run_timer(rqs, now);
        if self.busy_queues() == 0 {
            return None;
        }
        let id = self.select(rqs, now)?;
        let rq = self.q(id).next;
        let cost = self.cost(rqs, rq, id);
        self.engine.served(id, cost);
        let seeky = self.is_seek(self.last_position, rqs, rq);
        if let Some(r) = &mut self.rate {
            r.dispatched(now, u64::from(rqs[rq].nr), self.in_driver, seeky);
            if self.fixed_budget == 0 && self.budgets_assigned >= MIN_BUDGETS {
                self.max_budget = r.sectors_in(self.timeout_ms).max(1);
            }
        }
        self.last_position = rqs[rq].end();
        self.q_mut(id).dispatched += 1;
        self.in_driver += 1;
        self.unqueue(rqs, rq, now);
        self.count(id);
        let lasts = self.raising_ns();
        if self.in_service == Some(id) {
            self.reraise(id, |r| r.served(now, cost, lasts));
            if self.busy_queues() > 1 && self.q(id).class == IoClass::Idle {
                self.expire(rqs, id, now, Reason::Exhausted, false);
            }
        }
        Some(rq)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let now = cx.now.get();
        self.run_timer(rqs, now);
        self.watch_depth();
        let id = self.notes[rq as usize].queue;
        self.in_driver -= 1;
        let slice_idle = self.slice_idle;
        let q = self.q_mut(id);
        q.dispatched -= 1;
        q.last_end = now;
        if q.dispatched == 0 && !q.busy {
            q.timeout = Some(now);
        }
        if q.raise.soft_rt_pending
            && q.dispatched == 0
            && q.sorted.is_empty()
            && q.raise.coefficient != raise::COEFFICIENT
        {
            q.raise.next_soft_rt(now, slice_idle);
        }
        self.count(id);
        if let Some(r) = &mut self.rate {
            r.completed(now);
        }
        if self.in_service != Some(id) {
            return;
        }
        let (empty, dispatched) = (self.q(id).sorted.is_empty(), self.q(id).dispatched);
        if empty && self.better_to_idle(id) {
            if dispatched == 0 {
                self.arm_timer(id, now);
            }
        } else if self.may_time_out(id, now) {
            self.expire(rqs, id, now, Reason::Timeout, false);
        } else if empty && (dispatched == 0 || !self.better_to_idle(id)) {
            self.expire(rqs, id, now, Reason::NoMoreRequests, false);
        }
    }

    fn len(&self) -> usize {
        self.queued
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }

    fn timer(&self) -> Option<Nanos> {
        (self.queued > 0).then_some(self.timer).flatten().map(Nanos)
    }

    /// `bfq_limit_depth`: half of the tags for asynchronous requests, three quarters for synchronous writes; less while
    /// somebody's weight is raised.
    fn word_depth(&self, dir: Dir, sync: bool, word: u32) -> u32 {
        match (dir, sync, self.raised_busy > 0) {
            (Dir::Read, true, _) => word,
            (_, false, false) => (word / 2).max(1),
            (_, true, false) => (word * 3 / 4).max(1),
            (_, false, true) => (word * 3 / 16).max(1),
            (_, true, true) => (word * 6 / 16).max(1),
        }
    }
}
