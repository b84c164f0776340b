//! mq-deadline as in Linux 6.1 and, with `next-by-place`, 6.18 (`block/mq-deadline.c`, merging as in `block/elevator.c` and `blk-merge.c`).
//!
//! Per priority class and direction a sector-sorted set, a list in order of arrival and a cursor. Batches of up to
//! `fifo_batch` follow the sectors; between batches the direction is chosen and an overdue request is served first.

use kreplay_traces::units::Nanos;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, IoClass, RqId};
use super::adjacent;
use super::merge_hash::MergeHash;
use super::rbtree::{Nodes, SectorTree};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::DeadlineConfig;

const DIRS: [Dir; 2] = [Dir::Read, Dir::Write];

/// When the queue is run again after it gave nothing although requests waited (`BLK_MQ_BUDGET_DELAY`).
const RERUN: Nanos = Nanos::from_millis(3);

/// What the scheduler notes about a request.
#[derive(Clone, Copy, Debug)]
struct Note {
    deadline: Nanos,
    class: IoClass,
    /// Grew to a limit once: takes part in no merge any more.
    no_merge: bool,
}

/// Queued requests of a priority class.
#[derive(Clone, Debug, Default)]
struct Class {
    sorted: [SectorTree; 2],
    fifo: [List; 2],
    /// Next of the running batch, per direction.
    next: [RqId; 2],
    /// Where the last dispatched request of each direction begins.
    place: [u64; 2],
    /// Queued or at the device.
    outstanding: usize,
}

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct MqDeadline {
    expire: [Nanos; 2],
    writes_starved: u32,
    fifo_batch: u32,
    front_merges: bool,
    prio_aging: Nanos,
    async_depth: u32,
    least_tags: u32,
    next_by_place: bool,
    classes: [Class; 3],
    nodes: Nodes,
    notes: Vec<Note>,
    hash: MergeHash,
    last_merge: RqId,
    last_dir: Dir,
    batching: u32,
    starved: u32,
    len: usize,
    /// Only classes that have to wait are left: completions do not run the queue, arrivals and this timer do.
    idle_until: Option<Nanos>,
}

impl MqDeadline {
    pub(crate) fn new(config: &DeadlineConfig) -> Self {
        let class = || Class { next: [NIL; 2], ..Class::default() };
        Self {
            expire: [Nanos::from_millis(config.read_expire_ms), Nanos::from_millis(config.write_expire_ms)],
            writes_starved: config.writes_starved,
            fifo_batch: config.fifo_batch,
            front_merges: config.front_merges,
            prio_aging: Nanos::from_millis(config.prio_aging_expire_ms),
            async_depth: config.async_depth,
            least_tags: config.least_tags,
            next_by_place: config.next_by_place,
            classes: [class(), class(), class()],
            nodes: Nodes::default(),
            notes: Vec::new(),
            hash: MergeHash::default(),
            last_merge: NIL,
            last_dir: Dir::Write,
            batching: 0,
            starved: 0,
            len: 0,
            idle_until: None,
        }
    }

    fn mergeable(&self, rqs: &Requests, rq: RqId) -> bool {
        !rqs[rq].started && !self.notes[rq as usize].no_merge
    }

    fn may_join(&self, rqs: &Requests, rq: RqId, bio: &Bio, class: IoClass) -> bool {
        self.mergeable(rqs, rq) && rqs[rq].dir == bio.dir && self.notes[rq as usize].class == class
    }

    /// The request that a bio adjoins: the one merged last, then by its end, then by its start.
    fn candidate(&mut self, rqs: &Requests, bio: &Bio, class: IoClass) -> Option<(RqId, End)> {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let last = self.last_merge;
        if last != NIL && self.may_join(rqs, last, bio, class) {
            if rqs[last].end() == start {
                return Some((last, End::Back));
            }
            if rqs[last].sector == end {
                return Some((last, End::Front));
            }
        }
        let notes = &self.notes;
        let found = self.hash.find(start, |rq| !rqs[rq].started && !notes[rq as usize].no_merge);
        if found != NIL && self.may_join(rqs, found, bio, class) {
            return Some((found, End::Back));
        }
        if !self.front_merges {
            return None;
        }
        let found = self.nodes.at(self.classes[class as usize].sorted[bio.dir.index()], end);
        (found != NIL && self.may_join(rqs, found, bio, class)).then_some((found, End::Front))
    }

    fn remove(&mut self, rqs: &mut Requests, rq: RqId) {
        let (class, dir) = (self.notes[rq as usize].class as usize, rqs[rq].dir.index());
        let class = &mut self.classes[class];
        self.nodes.remove(&mut class.sorted[dir], rq);
        class.fifo[dir].remove(rqs, rq);
        self.hash.remove(rq);
        if self.last_merge == rq {
            self.last_merge = NIL;
        }
        self.len -= 1;
    }

    /// Merges whole requests where the bio closed a gap.
    fn absorb_neighbour(&mut self, rqs: &mut Requests, rq: RqId, end: End, cx: &Context) -> Option<(RqId, RqId)> {
        let (class, dir) = (self.notes[rq as usize].class, rqs[rq].dir.index());
        let (a, b) = match end {
            End::Back => (rq, self.nodes.next(rq)),
            End::Front => (self.nodes.prev(rq), rq),
        };
        if a == NIL || b == NIL || !self.mergeable(rqs, a) || !self.mergeable(rqs, b) {
            return None;
        }
        let (x, y) = (&rqs[a], &rqs[b]);
        if x.end() != y.sector || x.nr + y.nr > cx.max_sectors || x.segments + y.segments > cx.max_segments {
            return None;
        }
        let older = self.notes[b as usize].deadline;
        let fifo = &mut self.classes[class as usize].fifo[dir];
        adjacent::take_place(rqs, fifo, (a, &mut self.notes[a as usize].deadline), (b, older));
        let class = &mut self.classes[class as usize];
        if class.next[dir] == b {
            class.next[dir] = self.nodes.next(b);
        }
        class.outstanding -= 1;
        self.remove(rqs, b);
        rqs.absorb(a, b);
        self.hash.add(rqs[a].end(), a);
        self.last_merge = a;
        Some((a, b))
    }

    /// Chooses within a class; side effects on the batch state stay even where nothing comes of it.
    fn select(&mut self, rqs: &mut Requests, class: IoClass, latest_ns: Option<i64>, now: Nanos) -> Option<RqId> {
        let c = &self.classes[class as usize];
        let follows = |d: usize| if self.next_by_place { self.nodes.from(c.sorted[d], c.place[d]) } else { c.next[d] };
        let mut rq = follows(self.last_dir.index());
        if rq == NIL || self.batching >= self.fifo_batch {
            let waiting = DIRS.map(|d| !c.fifo[d.index()].is_empty());
            let dir = match waiting {
                [true, true] => {
                    let old = self.starved;
                    self.starved += 1;
                    if old >= self.writes_starved {
                        self.starved = 0;
                        Dir::Write
                    } else {
                        Dir::Read
                    }
                }
                [true, false] => Dir::Read,
                [false, true] => {
                    self.starved = 0;
                    Dir::Write
                }
                [false, false] => return None,
            };
            let oldest = c.fifo[dir.index()].head;
            let next = follows(dir.index());
            rq = if next == NIL || now >= self.notes[oldest as usize].deadline { oldest } else { next };
            self.last_dir = dir;
            self.batching = 0;
        }
        let dir = rqs[rq].dir.index();
        let queued_ns = self.notes[rq as usize].deadline.get() as i64 - self.expire[dir].get() as i64;
        if latest_ns.is_some_and(|latest| queued_ns > latest) {
            return None;
        }
        self.batching += 1;
        let c = &mut self.classes[class as usize];
        c.next[dir] = self.nodes.next(rq);
        c.place[dir] = rqs[rq].sector;
        self.remove(rqs, rq);
        Some(rq)
    }
}

impl Elevator for MqDeadline {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let Some((rq, end)) = self.candidate(rqs, bio, cx.class) else { return Verdict::Insert(Spot::Tail) };
        if rqs[rq].nr + bio.nr > cx.max_sectors || rqs[rq].segments >= cx.max_segments {
            self.notes[rq as usize].no_merge = true;
            if self.last_merge == rq {
                self.last_merge = NIL;
            }
            return Verdict::Insert(Spot::Tail);
        }
        match end {
            End::Back => rqs.attach_back(rq, *bio),
            End::Front => rqs.attach_front(rq, *bio),
        }
        if let Some((into, absorbed)) = self.absorb_neighbour(rqs, rq, end, cx) {
            return Verdict::Merged { into, end, absorbed: Some(absorbed) };
        }
        // Sorted anew only now: while neighbours are looked for, the tree still has the request in its old place.
        match end {
            End::Back => self.hash.add(rqs[rq].end(), rq),
            End::Front => {
                let sorted = &mut self.classes[cx.class as usize].sorted[bio.dir.index()];
                self.nodes.remove(sorted, rq);
                self.nodes.insert(sorted, rqs[rq].sector, rq);
            }
        }
        self.last_merge = rq;
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let dir = rqs[rq].dir.index();
        let note = Note { deadline: cx.now + self.expire[dir], class: cx.class, no_merge: false };
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, note);
        }
        self.notes[rq as usize] = note;
        let class = &mut self.classes[cx.class as usize];
        self.nodes.insert(&mut class.sorted[dir], rqs[rq].sector, rq);
        class.fifo[dir].push_back(rqs, rq);
        class.outstanding += 1;
        self.hash.add(rqs[rq].end(), rq);
        if self.last_merge == NIL {
            self.last_merge = rq;
        }
        self.len += 1;
        self.idle_until = None;
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        if self.len == 0 || self.idle_until.is_some_and(|until| cx.now < until) {
            return None;
        }
        self.idle_until = None;
        if self.classes.iter().filter(|c| c.outstanding > 0).count() >= 2 {
            let latest = cx.now.get() as i64 - self.prio_aging.get() as i64;
            for class in [IoClass::BestEffort, IoClass::Idle] {
                if let Some(rq) = self.select(rqs, class, Some(latest), cx.now) {
                    return Some(rq);
                }
            }
        }
        for class in [IoClass::RealTime, IoClass::BestEffort, IoClass::Idle] {
            let rq = self.select(rqs, class, None, cx.now);
            if rq.is_some() || self.classes[class as usize].outstanding > 0 {
                if rq.is_none() {
                    self.idle_until = Some(cx.now + RERUN);
                }
                return rq;
            }
        }
        None
    }

    fn timer(&self) -> Option<Nanos> {
        self.idle_until
    }

    fn complete(&mut self, _: &mut Requests, rq: RqId, _: &Context) {
        self.classes[self.notes[rq as usize].class as usize].outstanding -= 1;
    }

    fn len(&self) -> usize {
        self.len
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }

    /// `dd_limit_depth`, with `async-depth` counted per word of 64 tags.
    fn word_depth(&self, dir: Dir, sync: bool, word: u32) -> u32 {
        if self.async_depth == 0 || (sync && dir == Dir::Read) { word } else { self.async_depth.clamp(1, word) }
    }

    fn least_tags(&self, total: u32) -> u32 {
        if self.least_tags == 0 { total } else { self.least_tags }
    }

    /// `elv_attempt_insert_merge`: behind the request merged last, then behind whichever ends there; then what follows.
    fn append(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) -> Option<RqId> {
        let fits = |s: &Self, a: RqId| {
            let (x, y) = (&rqs[a], &rqs[rq]);
            s.mergeable(rqs, a)
                && s.notes[a as usize].class == cx.class
                && x.dir == y.dir
                && x.end() == y.sector
                && x.nr + y.nr <= cx.max_sectors
                && x.segments + y.segments <= cx.max_segments
        };
        let last = self.last_merge;
        let into = if last != NIL && fits(self, last) {
            last
        } else {
            let notes = &self.notes;
            let found = self.hash.find(rqs[rq].sector, |r| !rqs[r].started && !notes[r as usize].no_merge);
            if found == NIL || !fits(self, found) {
                return None;
            }
            found
        };
        rqs.absorb(into, rq);
        self.hash.add(rqs[into].end(), into);
        self.last_merge = into;
        Some(into)
    }
}
