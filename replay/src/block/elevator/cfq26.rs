//! Complete fair queueing of 2.6.12 (`drivers/block/cfq-iosched.c`): a queue per process, served in turn.
//!
//! A round takes one request of each queue, those first that used the device least, until `quantum` requests lie on the
//! dispatch list, which is sorted by sector from where the arm is. Service is device time, or requests once the device
//! was seen to take several at a time.
//!
//! Reduced: no limit on the requests of one process (`queued`), keys are always processes.

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::rbtree::{Nodes, SectorTree};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::Cfq26Config;

/// Service is averaged over this period.
const SERVICE: Nanos = Nanos::from_secs(1);
/// A queue looks for overdue requests this often.
const FIFO_RATE: Nanos = Nanos::from_millis(125);
/// So many requests at the device at a time mean that it queues commands.
const TAGGED: u32 = 4;

/// A process's requests.
#[derive(Clone, Debug, Default)]
struct Queue {
    sorted: SectorTree,
    /// Per direction, in order of arrival.
    fifo: [List; 2],
    next: RqId,
    on_rr: bool,
    /// Device time in ms, or requests.
    used: u64,
    used_since: Option<Nanos>,
    in_flight: u32,
    last_fifo_check: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Note {
    queue: u32,
    queued_at: Nanos,
    /// On the dispatch list.
    out: bool,
}

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Cfq26 {
    quantum: u32,
    expire: [Nanos; 2],
    reach: Reach,
    queues: Vec<Queue>,
    /// Only looked up, never iterated.
    by_task: FxHashMap<u32, u32>,
    /// Busy queues, those served least first.
    rr: Vec<u32>,
    nodes: Nodes,
    notes: Vec<Note>,
    adjacent: Adjacent,
    dispatch: List,
    last_end: u64,
    in_driver: u32,
    tagged: bool,
    queued: usize,
}

impl Cfq26 {
    pub(crate) fn new(c: &Cfq26Config) -> Self {
        Self {
            quantum: c.quantum.max(1),
            expire: [Nanos::from_millis(c.fifo_expire_r_ms), Nanos::from_millis(c.fifo_expire_w_ms)],
            reach: Reach { back_max: c.back_seek_max_kib * 2, penalty: c.back_seek_penalty },
            queues: Vec::new(),
            by_task: FxHashMap::default(),
            rr: Vec::new(),
            nodes: Nodes::default(),
            notes: Vec::new(),
            adjacent: Adjacent::default(),
            dispatch: List::new(),
            last_end: 0,
            in_driver: 0,
            tagged: false,
            queued: 0,
        }
    }

    fn queue_of(&mut self, task: u32) -> u32 {
        let fresh = self.queues.len() as u32;
        let id = *self.by_task.entry(task).or_insert(fresh);
        if id == fresh {
            self.queues.push(Queue { next: NIL, ..Queue::default() });
        }
        id
    }

    fn following(&self, rqs: &Requests, rq: RqId) -> RqId {
        let q = &self.queues[self.notes[rq as usize].queue as usize];
        self.reach.following(rqs, &self.nodes, q.sorted, self.last_end, rq)
    }

    /// Takes a request out of its process's queue.
    fn unqueue(&mut self, rqs: &mut Requests, rq: RqId) {
        let id = self.notes[rq as usize].queue;
        if self.queues[id as usize].next == rq {
            self.queues[id as usize].next = self.following(rqs, rq);
        }
        let q = &mut self.queues[id as usize];
        self.nodes.remove(&mut q.sorted, rq);
        q.fifo[rqs[rq].dir.index()].remove(rqs, rq);
        if q.sorted.is_empty() && q.on_rr {
            q.on_rr = false;
            self.rr.retain(|&r| r != id);
        }
        self.adjacent.remove(rq);
        self.queued -= 1;
    }

    /// Sorts a request into its process's queue. Whoever starts at the same sector goes to the dispatch list.
    fn sort_in(&mut self, rqs: &mut Requests, rq: RqId, now: Nanos) {
        let id = self.notes[rq as usize].queue as usize;
        loop {
            let alias = self.nodes.at(self.queues[id].sorted, rqs[rq].sector);
            if alias == NIL {
                break;
            }
            self.send(rqs, alias);
        }
        self.nodes.insert(&mut self.queues[id].sorted, rqs[rq].sector, rq);
        if !self.queues[id].on_rr {
            let q = &mut self.queues[id];
            q.on_rr = true;
            if q.used_since.is_some_and(|since| now > since + SERVICE) {
                q.used >>= 3;
            }
            self.rr.push(id as u32);
            self.sort_rr(id as u32);
        }
        let q = &self.queues[id];
        let next = self.reach.choose(rqs, self.last_end, q.next, rq);
        self.queues[id].next = next;
    }

    /// Puts a busy queue behind those that were served less. (Among equals it comes first: the kernel means to look at
    /// requests in flight there, but its walk goes on past all of them.)
    fn sort_rr(&mut self, id: u32) {
        let Some(at) = self.rr.iter().position(|&r| r == id) else { return };
        self.rr.remove(at);
        let used = self.queues[id as usize].used;
        let place = self.rr.iter().rposition(|&r| self.queues[r as usize].used < used).map_or(0, |p| p + 1);
        self.rr.insert(place, id);
    }

    /// A busy queue used less than the one before it, or more than the one behind it.
    fn out_of_order(&self, id: u32) -> bool {
        let Some(at) = self.rr.iter().position(|&r| r == id) else { return false };
        let used = |r: u32| self.queues[r as usize].used;
        (at > 0 && used(id) < used(self.rr[at - 1])) || self.rr.get(at + 1).is_some_and(|&n| used(id) > used(n))
    }

    /// Moves a request to the dispatch list, in sector order from where the arm is.
    fn send(&mut self, rqs: &mut Requests, rq: RqId) {
        self.unqueue(rqs, rq);
        let sector = rqs[rq].sector;
        let mut at = self.dispatch.tail;
        while at != NIL {
            let other = rqs[at].sector;
            if sector > other {
                break;
            }
            if other > self.last_end && sector < self.last_end {
                self.last_end = sector;
                break;
            }
            at = rqs[at].prev;
        }
        self.dispatch.insert_after(rqs, at, rq);
        let note = &mut self.notes[rq as usize];
        note.out = true;
        self.queues[note.queue as usize].in_flight += 1;
    }

    fn overdue(&mut self, id: u32, now: Nanos) -> Option<RqId> {
        let q = &mut self.queues[id as usize];
        if now < q.last_fifo_check + FIFO_RATE {
            return None;
        }
        let late = |dir: usize| {
            let head = q.fifo[dir].head;
            (head != NIL && now > self.notes[head as usize].queued_at + self.expire[dir]).then_some(head)
        };
        let found = late(0).or_else(|| late(1));
        if found.is_some() {
            q.last_fifo_check = now;
        }
        found
    }

    /// Rounds over the busy queues until the dispatch list has a quantum of requests.
    fn refill(&mut self, rqs: &mut Requests, now: Nanos) {
        let (mut sent, mut first_round) = (0, true);
        while !self.rr.is_empty() {
            let mut busy = false;
            for id in self.rr.clone() {
                if first_round && self.queues[id as usize].in_flight > 0 {
                    continue;
                }
                let next = self.queues[id as usize].next;
                let rq = self.overdue(id, now).unwrap_or(next);
                self.last_end = rqs[rq].end();
                self.send(rqs, rq);
                busy |= self.queues[id as usize].on_rr;
                sent += 1;
            }
            if sent >= self.quantum || !(busy || first_round) {
                break;
            }
            first_round = false;
        }
    }

    fn charge(&mut self, id: u32, now: Nanos, amount: u64, forget: impl Fn(u64) -> u64) {
        let q = &mut self.queues[id as usize];
        let since = *q.used_since.get_or_insert(now);
        if now > since + SERVICE {
            q.used_since = Some(now);
            q.used = forget(q.used);
        }
        q.used += amount;
        if self.out_of_order(id) {
            self.sort_rr(id);
        }
    }
}

impl Elevator for Cfq26 {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let own = self.by_task.get(&bio.task).copied();
        let (nodes, notes, queues) = (&self.nodes, &self.notes, &self.queues);
        let front = |s| own.map_or(NIL, |id| nodes.at(queues[id as usize].sorted, s));
        let may = |rq: RqId| !notes[rq as usize].out;
        let Some((rq, end)) = self.adjacent.find(rqs, bio, may, front) else { return Verdict::Insert(Spot::Tail) };
        if !adjacent::fits(rqs, rq, bio, cx) {
            return Verdict::Insert(Spot::Tail);
        }
        if let Some((a, b)) = adjacent::attach(rqs, &self.nodes, rq, end, bio, cx) {
            if self.notes[b as usize].queued_at < self.notes[a as usize].queued_at {
                self.notes[a as usize].queued_at = self.notes[b as usize].queued_at;
                let id = self.notes[a as usize].queue as usize;
                let fifo = &mut self.queues[id].fifo[bio.dir.index()];
                fifo.remove(rqs, a);
                fifo.insert_before(rqs, b, a);
            }
            self.unqueue(rqs, b);
            rqs.absorb(a, b);
            self.adjacent.add(rqs, a, true);
            return Verdict::Merged { into: a, end, absorbed: Some(b) };
        }
        if end == End::Front {
            let id = self.notes[rq as usize].queue as usize;
            if self.queues[id].next == rq {
                self.queues[id].next = self.following(rqs, rq);
            }
            self.nodes.remove(&mut self.queues[id].sorted, rq);
            self.sort_in(rqs, rq, cx.now);
        }
        self.adjacent.add(rqs, rq, true);
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let queue = self.queue_of(rqs.life(rq).task);
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, Note::default());
        }
        self.notes[rq as usize] = Note { queue, queued_at: cx.now, out: false };
        self.queues[queue as usize].fifo[rqs[rq].dir.index()].push_back(rqs, rq);
        self.queued += 1;
        self.sort_in(rqs, rq, cx.now);
        self.adjacent.add(rqs, rq, false);
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        if self.dispatch.is_empty() {
            self.refill(rqs, cx.now);
        }
        let rq = self.dispatch.head;
        if rq == NIL {
            return None;
        }
        self.dispatch.remove(rqs, rq);
        let id = self.notes[rq as usize].queue;
        self.queues[id as usize].used_since.get_or_insert(cx.now);
        if self.tagged {
            self.charge(id, cx.now, 1, |used| used / 10);
        }
        self.in_driver += 1;
        self.tagged |= self.in_driver >= TAGGED;
        Some(rq)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let id = self.notes[rq as usize].queue;
        self.in_driver -= 1;
        self.queues[id as usize].in_flight -= 1;
        if !self.tagged {
            let took = cx.now.saturating_sub(rqs.life(rq).d);
            self.charge(id, cx.now, took.get() / 1_000_000, |used| used >> 3);
        }
    }

    fn len(&self) -> usize {
        self.queued + self.dispatch.len()
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }
}
