//! CFQ with time slices (`block/cfq-iosched.c` of 3.x and 4.x): each process's synchronous requests get the disk for a while.
//!
//! Queues wait on service trees by class and kind of work; the tree whose first queue is due comes next and lasts for its
//! share of the target latency, a queue for its slice. A queue that runs dry keeps the device idle for `slice_idle` if its
//! process thinks little and reads nearby. Asynchronous writes of all processes share one queue per priority, wait while
//! synchronous requests are at the device, and get deeper only the longer no read was late.
//!
//! Reduced: one group and so no group idling; processes do not exit; times are not rounded to jiffies; a cooperator is
//! the nearest queue within reach, found by looking at all of them.

mod queue;
mod serve;
mod trees;

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::request::Requests;
use super::super::{Bio, BioKind, IoClass, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::owners::Owners;
use super::rbtree::Nodes;
use super::think::Think;
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::CfqConfig;
use queue::{Kind, LEVELS, Note, Queue, Tree, tree_of};

/// A jump beyond this makes a request count as a seek, sectors.
const SEEK: u64 = 800;
/// On flash, a request shorter than this does.
const SHORT: u32 = 64;

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Cfq {
    quantum: u32,
    expire: [u64; 2],
    reach: Reach,
    /// Base slices: asynchronous, synchronous.
    slice: [u64; 2],
    slice_async_rq: u32,
    slice_idle: u64,
    low_latency: bool,
    target_latency: u64,
    queues: Vec<Queue>,
    owners: Owners,
    /// Only looked up, never iterated.
    think: FxHashMap<u32, Think>,
    trees: [Tree; 7],
    busy_avg: [u64; 3],
    busy: u32,
    busy_sync: u32,
    active: Option<u32>,
    /// Whose request was the first of the active slice.
    active_task: Option<u32>,
    serving_class: IoClass,
    serving_kind: Kind,
    workload_expires: u64,
    /// What was left of the workload's slice when its queue's slice ended.
    saved_workload: u64,
    timer: Option<u64>,
    nodes: Nodes,
    notes: Vec<Note>,
    adjacent: Adjacent,
    queued: usize,
    last_position: u64,
    in_driver: u32,
    in_flight: [u32; 2],
    last_delayed_sync: u64,
    queues_commands: Option<bool>,
    depth_seen: u32,
    depth_samples: u32,
}

impl Cfq {
    pub(crate) fn new(c: &CfqConfig) -> Self {
        let ms = |n: u64| n * 1_000_000;
        Self {
            quantum: c.quantum.max(1),
            expire: [ms(c.fifo_expire_async_ms), ms(c.fifo_expire_sync_ms)],
            reach: Reach { back_max: c.back_seek_max_kib * 2, penalty: c.back_seek_penalty },
            slice: [ms(c.slice_async_ms.max(1)), ms(c.slice_sync_ms.max(1))],
            slice_async_rq: c.slice_async_rq.max(1),
            slice_idle: ms(c.slice_idle_ms),
            low_latency: c.low_latency,
            target_latency: ms(c.target_latency_ms.max(1)),
            queues: Vec::new(),
            owners: Owners::default(),
            think: FxHashMap::default(),
            trees: Default::default(),
            busy_avg: [0; 3],
            busy: 0,
            busy_sync: 0,
            active: None,
            active_task: None,
            serving_class: IoClass::BestEffort,
            serving_kind: Kind::Async,
            workload_expires: 0,
            saved_workload: 0,
            timer: None,
            nodes: Nodes::default(),
            notes: Vec::new(),
            adjacent: Adjacent::default(),
            queued: 0,
            last_position: 0,
            in_driver: 0,
            in_flight: [0; 2],
            last_delayed_sync: 0,
            queues_commands: None,
            depth_seen: 0,
            depth_samples: 0,
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

    fn create(&mut self, task: u32, cx: &Context) -> u32 {
        let id = self.queues.len() as u32;
        self.queues.push(Queue { users: u32::from(cx.sync), ..Queue::new(cx.sync, cx.class, cx.level) });
        self.owners.set(task, cx, id);
        id
    }

    /// The queue that a task's next request goes to.
    fn queue_for(&mut self, task: u32, cx: &Context) -> u32 {
        let Some(id) = self.owners.find(task, cx) else { return self.create(task, cx) };
        if self.q(id).shared && self.q(id).split {
            // It seeks too much for a queue of cooperators.
            if self.q(id).users > 1 {
                self.q_mut(id).users -= 1;
                return self.create(task, cx);
            }
            let q = self.q_mut(id);
            q.shared = false;
            q.split = false;
        }
        let Some(into) = self.q(id).merged_into else { return id };
        self.q_mut(id).users -= 1;
        let q = self.q_mut(into);
        q.users += 1;
        q.shared = true;
        self.owners.set(task, cx, into);
        into
    }

    fn following(&self, rqs: &Requests, rq: RqId) -> RqId {
        let tree = self.q(self.notes[rq as usize].queue).sorted;
        self.reach.following(rqs, &self.nodes, tree, self.last_position, rq)
    }

    fn unqueue(&mut self, rqs: &mut Requests, rq: RqId) {
        let Note { queue, meta, .. } = self.notes[rq as usize];
        if self.q(queue).next == rq {
            let next = self.following(rqs, rq);
            self.q_mut(queue).next = next;
        }
        let q = &mut self.queues[queue as usize];
        self.nodes.remove(&mut q.sorted, rq);
        q.fifo.remove(rqs, rq);
        q.meta -= u32::from(meta);
        self.adjacent.remove(rq);
        self.queued -= 1;
    }
}

impl Elevator for Cfq {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let Some(own) = self.owners.find(bio.task, cx) else { return Verdict::Insert(Spot::Tail) };
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
            self.unqueue(rqs, b);
            rqs.absorb(a, b);
            self.adjacent.add(rqs, a, true);
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
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let now = cx.now.get();
        self.run_timer(now);
        let (task, kind) = (rqs.life(rq).task, rqs.life(rq).kind);
        let id = self.queue_for(task, cx);
        let meta = kind == BioKind::Meta && cx.sync;
        let deadline = now + self.expire[usize::from(cx.sync)];
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, Note::default());
        }
        self.notes[rq as usize] = Note { queue: id, task, deadline, queued_at: now, sync: cx.sync, meta };
        let (reach, last) = (self.reach, self.last_position);
        let q = &mut self.queues[id as usize];
        q.fifo.push_back(rqs, rq);
        self.nodes.insert(&mut q.sorted, rqs[rq].sector, rq);
        q.next = reach.choose(rqs, last, q.next, rq);
        q.meta += u32::from(meta);
        let on_rr = q.on_rr;
        if !on_rr {
            self.begin_rr(id, now);
        }
        self.adjacent.add(rqs, rq, false);
        self.queued += 1;

        if cx.sync {
            let slice_idle = self.slice_idle;
            self.think.entry(task).or_insert(Think::since(now)).add(now, slice_idle);
            let tree = self.q(id).tree;
            self.trees[tree].think.add(now, slice_idle);
        }
        let q = self.q_mut(id);
        let jump = if q.last_pos == 0 { 0 } else { q.last_pos.abs_diff(rqs[rq].sector) };
        let seek = if cx.rotational { jump > SEEK } else { rqs[rq].nr < SHORT };
        q.seeks = q.seeks << 1 | u32::from(seek);
        q.last_pos = rqs[rq].end();
        self.update_idle_window(id, task);

        if self.active == Some(id) {
            if self.q(id).wait_request {
                if rqs[rq].nr > 8 || self.busy > 1 {
                    self.timer = None;
                    self.q_mut(id).wait_request = false;
                } else {
                    self.q_mut(id).must_dispatch = true;
                }
            }
        } else if self.preempts(rqs, id, rq, now, cx.rotational) {
            self.preempt(id, now);
        }
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        let now = cx.now.get();
        self.run_timer(now);
        if self.busy == 0 {
            return None;
        }
        let id = self.select(rqs, now, cx.rotational)?;
        if self.q(id).sorted.is_empty() || !self.may_dispatch(id, now, cx.rotational) {
            return None;
        }
        let head = self.q(id).fifo.head;
        let late = !self.q(id).fifo_checked && now >= self.notes[head as usize].deadline;
        let q = self.q_mut(id);
        q.fifo_checked = true;
        let rq = if late { head } else { q.next };
        let next = self.following(rqs, rq);
        self.q_mut(id).next = next;
        self.unqueue(rqs, rq);
        let note = self.notes[rq as usize];
        let q = self.q_mut(id);
        q.dispatched += 1;
        q.slice_dispatch += 1;
        q.must_dispatch = false;
        let (sync, spent) = (q.sync, q.slice_dispatch);
        let most = 2 * u64::from(self.slice_async_rq) * (LEVELS - self.q(id).level) as u64;
        self.in_flight[usize::from(sync)] += 1;
        self.in_driver += 1;
        self.last_position = rqs[rq].end();
        self.active_task.get_or_insert(note.task);
        let class = self.q(id).class;
        if self.busy > 1 && ((!sync && u64::from(spent) >= most) || class == IoClass::Idle) {
            self.q_mut(id).slice_end = now + 1;
            self.expire(now, false);
        }
        Some(rq)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let now = cx.now.get();
        self.run_timer(now);
        self.watch_depth();
        let note = self.notes[rq as usize];
        let id = note.queue;
        self.in_driver -= 1;
        let q = self.q_mut(id);
        q.dispatched -= 1;
        let sync = q.sync;
        self.in_flight[usize::from(sync)] -= 1;
        if note.sync {
            self.think.entry(note.task).or_default().last_end = now;
            let tree = if self.q(id).on_rr { self.q(id).tree } else { tree_of(self.q(id).class, self.q(id).kind()) };
            self.trees[tree].think.last_end = now;
            if note.queued_at + self.expire[1] <= now {
                self.last_delayed_sync = now;
            }
        }
        if self.active != Some(id) {
            return;
        }
        if self.q(id).slice_new {
            let slice = self.scaled_slice(id);
            let q = self.q_mut(id);
            q.slice_start = now;
            q.slice_end = now + slice;
            q.slice_new = false;
        }
        if self.q(id).slice_used(now) || self.q(id).class == IoClass::Idle {
            self.expire(now, true);
        } else if note.sync && self.q(id).sorted.is_empty() && self.cooperator(rqs, id).is_none() {
            self.arm_timer(id, now, cx.rotational);
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
}
