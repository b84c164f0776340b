//! The deadline scheduler of 2.6 (`drivers/block/deadline-iosched.c` of 2.6.12): sector order within expiry times.
//!
//! Two directions, each sorted and in order of arrival. A batch runs on while the next request continues the last one;
//! a jump ends it. Without an overdue request a new direction starts from its lowest sector: the sweep goes one way.

use kreplay_traces::units::Nanos;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, RqId};
use super::merge_hash::MergeHash;
use super::sorted::Sorted;
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::DeadlineConfig;

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Deadline26 {
    expire: [Nanos; 2],
    writes_starved: u32,
    fifo_batch: u32,
    front_merges: bool,
    sorted: [Sorted; 2],
    fifo: [List; 2],
    next: [RqId; 2],
    deadlines: Vec<Nanos>,
    hash: MergeHash,
    last_end: u64,
    batching: u32,
    starved: u32,
}

impl Deadline26 {
    pub(crate) fn new(config: &DeadlineConfig) -> Self {
        Self {
            expire: [Nanos::from_millis(config.read_expire_ms), Nanos::from_millis(config.write_expire_ms)],
            writes_starved: config.writes_starved,
            fifo_batch: config.fifo_batch,
            front_merges: config.front_merges,
            sorted: Default::default(),
            fifo: Default::default(),
            next: [NIL; 2],
            deadlines: Vec::new(),
            hash: MergeHash::default(),
            last_end: 0,
            batching: 0,
            starved: 0,
        }
    }

    fn remove(&mut self, rqs: &mut Requests, rq: RqId) {
        let dir = rqs[rq].dir.index();
        self.sorted[dir].remove(rqs[rq].sector, rq);
        self.fifo[dir].remove(rqs, rq);
        self.hash.remove(rq);
    }

    fn candidate(&mut self, rqs: &Requests, bio: &Bio, cx: &Context) -> Option<(RqId, End)> {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let fits = |rq: RqId| {
            let r = &rqs[rq];
            r.dir == bio.dir && r.nr + bio.nr <= cx.max_sectors && r.segments < cx.max_segments
        };
        let back = self.hash.find(start, |_| true);
        if back != NIL && fits(back) {
            return Some((back, End::Back));
        }
        let front = self.sorted[bio.dir.index()].at(end).filter(|&rq| self.front_merges && fits(rq))?;
        Some((front, End::Front))
    }

    fn absorb(&mut self, rqs: &mut Requests, rq: RqId, end: End, cx: &Context) -> Option<(RqId, RqId)> {
        let dir = rqs[rq].dir.index();
        let (a, b) = match end {
            End::Back => (rq, self.sorted[dir].next(rqs, rq)),
            End::Front => (self.sorted[dir].prev(rqs, rq), rq),
        };
        if a == NIL || b == NIL {
            return None;
        }
        let (x, y) = (&rqs[a], &rqs[b]);
        if x.end() != y.sector || x.nr + y.nr > cx.max_sectors || x.segments + y.segments > cx.max_segments {
            return None;
        }
        // The survivor takes over the older deadline and its place.
        if self.deadlines[b as usize] < self.deadlines[a as usize] {
            self.deadlines[a as usize] = self.deadlines[b as usize];
            self.fifo[dir].remove(rqs, a);
            self.fifo[dir].insert_before(rqs, b, a);
        }
        if self.next[dir] == b {
            self.next[dir] = self.sorted[dir].next(rqs, b);
        }
        self.remove(rqs, b);
        rqs.absorb(a, b);
        self.hash.add(rqs[a].end(), a);
        Some((a, b))
    }

    fn choose(&mut self, rqs: &Requests, now: Nanos) -> Option<RqId> {
        let running = self.next.into_iter().find(|&n| n != NIL);
        if let Some(rq) = running {
            // A jump counts as a whole batch.
            self.batching += if rqs[rq].sector == self.last_end { 1 } else { self.fifo_batch };
            if self.batching < self.fifo_batch {
                return Some(rq);
            }
        }
        let waiting = [!self.fifo[0].is_empty(), !self.fifo[1].is_empty()];
        let dir = match waiting {
            [false, false] => return None,
            [true, false] => Dir::Read,
            [true, true] if self.starved < self.writes_starved => {
                self.starved += 1;
                Dir::Read
            }
            _ => {
                self.starved = 0;
                Dir::Write
            }
        }
        .index();
        self.batching = 0;
        let oldest = self.fifo[dir].head;
        Some(if now >= self.deadlines[oldest as usize] {
            oldest
        } else if self.next[dir] != NIL {
            self.next[dir]
        } else {
            self.sorted[dir].from(0)
        })
    }
}

impl Elevator for Deadline26 {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let Some((rq, end)) = self.candidate(rqs, bio, cx) else { return Verdict::Insert(Spot::Tail) };
        match end {
            End::Back => {
                rqs.attach_back(rq, *bio);
                self.hash.add(rqs[rq].end(), rq);
            }
            End::Front => {
                let sorted = &mut self.sorted[bio.dir.index()];
                sorted.remove(rqs[rq].sector, rq);
                rqs.attach_front(rq, *bio);
                sorted.insert(rqs[rq].sector, rq);
            }
        }
        match self.absorb(rqs, rq, end, cx) {
            Some((into, absorbed)) => Verdict::Merged { into, end, absorbed: Some(absorbed) },
            None => Verdict::Merged { into: rq, end, absorbed: None },
        }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let dir = rqs[rq].dir.index();
        let deadline = cx.now + self.expire[dir];
        if self.deadlines.len() <= rq as usize {
            self.deadlines.resize(rq as usize + 1, deadline);
        }
        self.deadlines[rq as usize] = deadline;
        self.sorted[dir].insert(rqs[rq].sector, rq);
        self.fifo[dir].push_back(rqs, rq);
        self.hash.add(rqs[rq].end(), rq);
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        let rq = self.choose(rqs, cx.now)?;
        let dir = rqs[rq].dir.index();
        self.next = [NIL; 2];
        self.next[dir] = self.sorted[dir].next(rqs, rq);
        self.last_end = rqs[rq].end();
        self.remove(rqs, rq);
        Some(rq)
    }

    fn complete(&mut self, _: &mut Requests, _: RqId, _: &Context) {}

    fn len(&self) -> usize {
        self.fifo[0].len() + self.fifo[1].len()
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }
}
