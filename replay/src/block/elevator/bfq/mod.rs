//! BFQ (`block/bfq-iosched.c` of 6.1; P. Valente and F. Checconi, "High throughput disk scheduling with fair bandwidth
//! distribution", IEEE ToC 2010): budgets in sectors, fair queueing between processes, idling where order matters.
//!
//! The process in service keeps the device until its budget is used, its time is up, or it has nothing to do and waiting
//! for it does not pay. What it used decides when it comes again ([`wf2q`]); how it used it decides the next budget.
//!
//! While the device is kept for a process, requests of others go past it as far as that does no harm ([`inject`]).
//!
//! Processes that work together share a queue ([`cooperate`]).
//!
//! Reduced: no groups, one actuator; processes keep their priority and never end; times are not rounded to jiffies.

mod arrive;
mod cooperate;
mod inject;
mod queue;
mod raise;
mod rate;
mod serve;
#[cfg(test)]
mod tests;
mod wf2q;

use std::collections::BTreeMap;

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, IoClass, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::owners::Owners;
use super::rbtree::{Nodes, SectorTree};
use super::think::Think;
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::BfqConfig;
use cooperate::Process;
use inject::{Learnt, Measured};
use queue::{Bound, Note, Queue, Reason};
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

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Bfq {
    expire_after: [u64; 2],
    reach: Reach,
    slice_idle: u64,
    timeout_ms: u64,
    fixed_budget: u64,
    low_latency: bool,
    least_tags: u32,
    queues: Vec<Queue>,
    engine: Engine,
    owners: Owners,
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
    measured: Measured,
    /// By task; only looked up, never iterated.
    processes: FxHashMap<u32, Process>,
    /// The synchronous queue that new ones may join.
    last_created: Option<u32>,
    /// End of the last request of the queue in service, 0 at the beginning of its turn.
    served_to: u64,
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
            least_tags: c.least_tags,
            queues: Vec::new(),
            engine: Engine::default(),
            owners: Owners::default(),
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
            measured: Measured::default(),
            processes: FxHashMap::default(),
            last_created: None,
            served_to: 0,
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

    fn raising_ns(&self) -> u64 {
        self.rate.map_or(0, |r| r.raising_ns())
    }

    fn create(&mut self, task: u32, cx: &Context) -> u32 {
        let weight = LEVEL_WEIGHT * (8 - u64::from(cx.level.min(7)));
        let max_budget = 2 * self.largest_budget() / 3;
        self.queues.push(Queue {
            sync: cx.sync,
            owner: cx.sync.then_some(task),
            processes: 1,
            joins: None,
            shared: false,
            to_split: false,
            created: cx.now.get(),
            parted: None,
            class: cx.class,
            level: cx.level,
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
            think: Think::since(cx.now.get()),
            quick: cx.sync && cx.class != IoClass::Idle,
            bound: Bound::since(cx.now.get()),
            raise: Raise::default(),
            just_created: true,
            counted: false,
            learnt: Learnt::default(),
        });
        self.engine.entities.push(Entity::new(cx.class, weight));
        self.queues.len() as u32 - 1
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
        self.reach.following(rqs, &self.nodes, q.sorted, rqs[rq].end(), rq)
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

    fn is_seek(&self, last: u64, rqs: &Requests, rq: RqId) -> bool {
        rqs[rq].sector.abs_diff(last) > SEEK && (self.rotational || rqs[rq].nr < SHORT)
    }
}

impl Elevator for Bfq {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let Some(mut own) = self.owners.find(bio.task, cx) else { return Verdict::Insert(Spot::Tail) };
        let now = cx.now.get();
        if cx.sync && self.may_join_any(rqs, bio, own) {
            let to = self.cooperator(rqs, own, bio.task, bio.sector.get(), now);
            own = to.map_or(own, |to| self.go_over(bio.task, own, to, now));
        }
        let (nodes, notes, queues) = (&self.nodes, &self.notes, &self.queues);
        let may = |rq: RqId| notes[rq as usize].queue == own && !rqs[rq].started;
        let found = self.adjacent.find(rqs, bio, may, |s| nodes.at(queues[own as usize].sorted, s));
        let Some((rq, end)) = found else { return Verdict::Insert(Spot::Tail) };
        if !adjacent::fits(rqs, rq, bio, cx) {
            return Verdict::Insert(Spot::Tail);
        }
        if let Some((a, b)) = adjacent::attach(rqs, &self.nodes, rq, end, bio, cx) {
            let older = self.notes[b as usize].deadline;
            let fifo = &mut self.queues[own as usize].fifo;
            adjacent::take_place(rqs, fifo, (a, &mut self.notes[a as usize].deadline), (b, older));
            if self.q(own).next == b {
                self.q_mut(own).next = a;
            }
            self.unqueue(rqs, b, cx.now.get());
            self.process_mut(rqs.life(b).task).requests -= 1;
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
        self.engine.now = now;
        self.run_timer(rqs, now);
        let task = rqs.life(rq).task;
        let mut id = self.queue_for(task, cx, now);
        self.process_mut(task).requests += 1;
        let q = self.q_mut(id);
        if q.sync && q.processes == 1 && q.joins.is_none() {
            q.owner = Some(task);
        }
        if self.q(id).just_created && self.q(id).sync {
            let alone = self.busy_queues() == 0;
            self.burst.created(id, now, alone, &mut self.queues);
        }
        if self.q(id).sync
            && let Some(to) = self.cooperator(rqs, id, task, rqs[rq].sector, now)
        {
            let old = id;
            self.q_mut(old).just_created = false;
            id = if self.owners.find(task, cx) == Some(old) { self.go_over(task, old, to, now) } else { to };
        }
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, Note::default());
        }
        let deadline = now + self.expire_after[usize::from(cx.sync)];
        self.notes[rq as usize] = Note { queue: id, deadline };
        self.note_arrival(rqs, id, rq, now);

        let (reach, last, lasts) = (self.reach, self.last_position, self.raising_ns());
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
            interactive = self.interactive(id, now);
            self.begin_busy(rqs, id, now, interactive);
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
        self.engine.now = now;
        self.run_timer(rqs, now);
        if self.busy_queues() == 0 {
            return None;
        }
        let id = self.select(rqs, now)?;
        let rq = self.q(id).next;
        let cost = self.cost(rqs, rq, id);
        self.engine.served(id, cost);
        self.measure_from(id, rq);
        let seeky = self.is_seek(self.last_position, rqs, rq);
        if let Some(r) = &mut self.rate {
            r.dispatched(now, u64::from(rqs[rq].nr), self.in_driver, seeky);
            if self.fixed_budget == 0 && self.budgets_assigned >= MIN_BUDGETS {
                self.max_budget = r.sectors_in(self.timeout_ms).max(1);
            }
        }
        self.last_position = rqs[rq].end();
        if self.in_service == Some(id) {
            self.served_to = self.last_position;
        }
        self.q_mut(id).raise.got(now, cost);
        self.q_mut(id).dispatched += 1;
        self.in_driver += 1;
        self.unqueue(rqs, rq, now);
        self.count(id);
        let lasts = self.raising_ns();
        if self.in_service == Some(id) {
            self.reraise(id, |r| r.served(now, lasts));
            if self.busy_queues() > 1 && self.q(id).class == IoClass::Idle {
                self.expire(rqs, id, now, Reason::Exhausted, false);
            }
        }
        Some(rq)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let now = cx.now.get();
        self.engine.now = now;
        self.run_timer(rqs, now);
        let id = self.notes[rq as usize].queue;
        self.process_mut(rqs.life(rq).task).requests -= 1;
        self.measure_to(id, rq, now);
        self.watch_depth();
        self.in_driver -= 1;
        let slice_idle = self.slice_idle;
        let q = self.q_mut(id);
        q.dispatched -= 1;
        q.think.last_end = now;
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
        self.forget_if_done(id);
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

    fn least_tags(&self, total: u32) -> u32 {
        if self.least_tags == 0 { (total * 3 / 16).max(1) } else { self.least_tags }
    }
}
