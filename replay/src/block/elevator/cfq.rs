//! CFQ with time slices (`block/cfq-iosched.c` of 3.x and 4.x): each process's synchronous requests get the disk for a while.
//!
//! Queues wait on service trees by class and kind of work; the tree whose first queue is due comes next and lasts for its
//! share of the target latency, a queue for its slice. A queue that runs dry keeps the device idle for `slice_idle` if its
//! process thinks little and reads nearby. Asynchronous writes of all processes share one queue per priority, wait while
//! synchronous requests are at the device, and get deeper only the longer no read was late.
//!
//! Reduced: one group and so no group idling; processes do not exit; times are not rounded to jiffies; a cooperator is
//! the nearest queue within reach, found by looking at all of them.

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, BioKind, IoClass, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::rbtree::{Nodes, SectorTree};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::CfqConfig;

/// A queue of the idle class is due so long after the one before it.
const IDLE_DELAY: i64 = 200_000_000;
/// A preempting queue is put so far before the first one.
const TO_FRONT: i64 = 1_000_000_000;
/// A jump beyond this makes a request count as a seek, sectors.
const SEEK: u64 = 800;
/// On flash, a request shorter than this does.
const SHORT: u32 = 64;
/// Two queues cooperate if their next requests are within this, sectors.
const CLOSE: u64 = 8192;
/// So many requests at a time show that the device queues commands.
const DEEP_DEVICE: u32 = 5;
/// A mean of think times counts after this (256 = 1 sample at full weight).
const VALID: u64 = 80;
/// Priority levels of a class.
const LEVELS: i64 = 8;
/// Least slice of a kind of work.
const MIN_WORKLOAD: u64 = 2_000_000;

/// Kind of work: index of a service tree within its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Async,
    /// Synchronous, but not waited for: seeks or thinks long.
    SyncNoIdle,
    Sync,
}

const KINDS: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];

/// Decaying mean of think times, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Think {
    last_end: u64,
    samples: u64,
    total: u64,
    mean: u64,
}

impl Think {
    fn add(&mut self, now: u64, slice_idle: u64) {
        let elapsed = now.saturating_sub(self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    fn valid(&self) -> bool {
        self.samples > VALID
    }
}

/// Queues of a class and kind that have work, first due first.
#[derive(Clone, Debug, Default)]
struct Tree {
    queues: Vec<u32>,
    think: Think,
}

/// The synchronous requests of a process, or the asynchronous ones of a priority.
#[derive(Clone, Debug)]
struct Queue {
    sync: bool,
    class: IoClass,
    level: i64,
    sorted: SectorTree,
    fifo: List,
    next: RqId,
    /// Metadata requests among them.
    meta: u32,
    dispatched: u32,
    on_rr: bool,
    /// The tree where it waits.
    tree: usize,
    key: i64,
    residue: i64,
    slice_new: bool,
    slice_start: u64,
    slice_end: u64,
    slice_dispatch: u32,
    wait_request: bool,
    must_dispatch: bool,
    fifo_checked: bool,
    idle_window: bool,
    deep: bool,
    seeks: u32,
    last_pos: u64,
    /// Processes that use it.
    users: u32,
    merged_into: Option<u32>,
    shared: bool,
    split: bool,
}

impl Queue {
    fn new(sync: bool, class: IoClass, level: u8) -> Self {
        Self {
            sync,
            class,
            level: if class == IoClass::Idle { LEVELS - 1 } else { i64::from(level.min(7)) },
            sorted: SectorTree::default(),
            fifo: List::new(),
            next: NIL,
            meta: 0,
            dispatched: 0,
            on_rr: false,
            tree: 0,
            key: 0,
            residue: 0,
            slice_new: false,
            slice_start: 0,
            slice_end: 0,
            slice_dispatch: 0,
            wait_request: false,
            must_dispatch: false,
            fifo_checked: false,
            idle_window: sync && class != IoClass::Idle,
            deep: false,
            seeks: 0,
            last_pos: 0,
            users: 0,
            merged_into: None,
            shared: false,
            split: false,
        }
    }

    fn seeky(&self) -> bool {
        self.seeks.count_ones() > 4
    }

    fn kind(&self) -> Kind {
        match (self.sync, self.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }

    fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Note {
    queue: u32,
    task: u32,
    deadline: u64,
    queued_at: u64,
    sync: bool,
    meta: bool,
}

/// The idle class has one tree, behind those of the other two.
const IDLE_TREE: usize = 6;

fn tree_of(class: IoClass, kind: Kind) -> usize {
    match class {
        IoClass::RealTime => kind as usize,
        IoClass::BestEffort => 3 + kind as usize,
        IoClass::Idle => IDLE_TREE,
    }
}

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
    /// Synchronous queues by task, asynchronous ones by priority. Only looked up, never iterated.
    by_task: FxHashMap<u32, u32>,
    by_prio: FxHashMap<(IoClass, u8), u32>,
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
            by_task: FxHashMap::default(),
            by_prio: FxHashMap::default(),
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

    fn create(&mut self, sync: bool, cx: &Context) -> u32 {
        self.queues.push(Queue::new(sync, cx.class, cx.level));
        self.queues.len() as u32 - 1
    }

    /// The queue that a task's next request goes to.
    fn queue_for(&mut self, task: u32, cx: &Context) -> u32 {
        if !cx.sync {
            if let Some(&id) = self.by_prio.get(&(cx.class, cx.level)) {
                return id;
            }
            let id = self.create(false, cx);
            self.by_prio.insert((cx.class, cx.level), id);
            return id;
        }
        if let Some(&id) = self.by_task.get(&task) {
            if self.q(id).shared && self.q(id).split {
                // It seeks too much for a queue of cooperators.
                if self.q(id).users > 1 {
                    self.q_mut(id).users -= 1;
                    return self.adopt(task, cx);
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
            self.by_task.insert(task, into);
            return into;
        }
        self.adopt(task, cx)
    }

    fn adopt(&mut self, task: u32, cx: &Context) -> u32 {
        let id = self.create(true, cx);
        self.q_mut(id).users = 1;
        self.by_task.insert(task, id);
        id
    }

    fn base_slice(&self, sync: bool, level: i64) -> i64 {
        let base = self.slice[usize::from(sync)] as i64;
        base + base / 5 * (4 - level)
    }

    fn busy_in(&self, class: IoClass) -> u64 {
        let n: usize = match class {
            IoClass::Idle => self.trees[IDLE_TREE].queues.len(),
            _ => KINDS.iter().map(|&k| self.trees[tree_of(class, k)].queues.len()).sum(),
        };
        n as u64
    }

    /// A queue's slice, less where many queues have to fit into the target latency.
    fn scaled_slice(&mut self, id: u32) -> u64 {
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

    fn leave_tree(&mut self, id: u32) {
        let tree = self.q(id).tree;
        self.trees[tree].queues.retain(|&q| q != id);
    }

    /// Lists a queue on its service tree, by when it is due.
    fn join_tree(&mut self, id: u32, now: u64, front: bool) {
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

    fn begin_rr(&mut self, id: u32, now: u64) {
        let q = self.q_mut(id);
        q.on_rr = true;
        let sync = q.sync;
        self.busy += 1;
        self.busy_sync += u32::from(sync);
        self.join_tree(id, now, false);
    }

    fn end_rr(&mut self, id: u32) {
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

    /// The request to follow one that is still sorted: its successor, or the lowest, or its predecessor if nearer.
    fn following(&self, rqs: &Requests, rq: RqId) -> RqId {
        let tree = self.q(self.notes[rq as usize].queue).sorted;
        let mut next = self.nodes.next(rq);
        if next == NIL {
            next = self.nodes.from(tree, 0);
            if next == rq {
                next = NIL;
            }
        }
        self.reach.choose(rqs, self.last_position, next, self.nodes.prev(rq))
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

    /// Ends the active slice; `timed_out`: what is left of it is remembered.
    fn expire(&mut self, now: u64, timed_out: bool) {
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

    fn should_idle(&self, id: u32, rotational: bool) -> bool {
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
    fn arm_timer(&mut self, id: u32, now: u64, rotational: bool) {
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

    fn run_timer(&mut self, now: u64) {
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
    fn cooperator(&self, rqs: &Requests, id: u32) -> Option<u32> {
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
    fn plan_merge(&mut self, a: u32, b: u32) {
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

    /// Chooses class and kind of work, and how long it may last.
    fn choose_workload(&mut self, now: u64) {
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

    fn activate(&mut self, id: Option<u32>) {
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
    fn select(&mut self, rqs: &Requests, now: u64, rotational: bool) -> Option<u32> {
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

    fn may_dispatch(&self, id: u32, now: u64, rotational: bool) -> bool {
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

    fn update_idle_window(&mut self, id: u32, task: u32) {
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

    fn preempts(&self, rqs: &Requests, new: u32, rq: RqId, now: u64, rotational: bool) -> bool {
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

    fn preempt(&mut self, new: u32, now: u64) {
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
    fn watch_depth(&mut self) {
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

impl Elevator for Cfq {
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
            self.think.entry(task).or_insert(Think { last_end: now, ..Think::default() }).add(now, slice_idle);
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
