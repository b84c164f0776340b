//! Requests and the bios in them, in slabs.
//!
//! Elevators look at a few fields of many requests, so these lie together in 32 bytes; what only insertion, dispatch
//! and completion need is kept apart. Nothing is allocated once a queue has seen its largest load.

use std::ops::{Index, IndexMut};

use kreplay_traces::units::Nanos;

use super::{Bio, BioKind, Dir, Hints, RqId};

/// No request, no bio.
pub(crate) const NIL: u32 = u32::MAX;

/// What elevators scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// First sector.
    pub(crate) sector: u64,
    /// Towards the head of its list.
    pub(crate) prev: RqId,
    /// Towards the tail of its list; next free entry while free.
    pub(crate) next: RqId,
    /// Length in sectors.
    pub(crate) nr: u32,
    /// Patience left, in the unit of its elevator (2.2 and 2.4: events or sectors that may still go ahead).
    pub(crate) seq: i32,
    /// Partition.
    pub(crate) partition: u16,
    /// Physical segments.
    pub(crate) segments: u16,
    /// Direction.
    pub(crate) dir: Dir,
    /// The device has it.
    pub(crate) started: bool,
}

impl Request {
    /// First sector behind it.
    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.sector + self.nr as u64
    }
}

/// What insertion, dispatch and completion need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// Bios in sector order: first.
    pub(crate) first_bio: u32,
    /// Last.
    pub(crate) last_bio: u32,
    /// How many.
    pub(crate) bios: u32,
    /// Task of the bio that made it.
    pub(crate) task: u32,
    /// Kind of that bio.
    pub(crate) kind: BioKind,
    /// Inserted at the tail.
    pub(crate) tail: bool,
    /// Slot that it holds, as [`super::slots::Slots`] numbers them.
    pub(crate) slot: u32,
    /// What was said of that bio.
    pub(crate) hints: Hints,
    /// First bio queued.
    pub(crate) q: Nanos,
    /// Inserted.
    pub(crate) i: Nanos,
    /// Dispatched.
    pub(crate) d: Nanos,
    /// Dispatches of its queue before its insertion; at dispatch, how many came since.
    pub(crate) passed: u64,
    /// Distance to the request dispatched before it, sectors.
    pub(crate) seek_sectors: i64,
}

#[derive(Clone, Copy, Debug)]
struct BioNode {
    bio: Bio,
    next: u32,
}

/// All requests of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    hot: Vec<Request>,
    life: Vec<Life>,
    bios: Vec<BioNode>,
    free_rq: u32,
    free_bio: u32,
    live: usize,
}

impl Requests {
    pub(crate) fn with_capacity(requests: usize) -> Self {
        Self {
            hot: Vec::with_capacity(requests),
            life: Vec::with_capacity(requests),
            bios: Vec::with_capacity(requests * 4),
            free_rq: NIL,
            free_bio: NIL,
            live: 0,
        }
    }

    /// Requests that are queued or in flight.
    #[cfg(test)]
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Makes a request of one bio. It is on no list yet.
    pub(crate) fn create(&mut self, bio: Bio, slot: u32, now: Nanos) -> RqId {
        let node = self.bio_node(bio);
        let hot = Request {
            sector: bio.sector.get(),
            prev: NIL,
            next: NIL,
            nr: bio.nr,
            seq: 0,
            partition: bio.partition,
            segments: 1,
            dir: bio.dir,
            started: false,
        };
        let life = Life {
            first_bio: node,
            last_bio: node,
            bios: 1,
            task: bio.task,
            kind: bio.kind,
            tail: false,
            slot,
            hints: Hints::default(),
            q: now,
            i: now,
            d: now,
            passed: 0,
            seek_sectors: 0,
        };
        self.live += 1;
        if self.free_rq == NIL {
            self.hot.push(hot);
            self.life.push(life);
            u32::try_from(self.hot.len() - 1).expect("fewer than 2^32 requests")
        } else {
            let id = self.free_rq;
            self.free_rq = self.hot[id as usize].next;
            self.hot[id as usize] = hot;
            self.life[id as usize] = life;
            id
        }
    }

    fn bio_node(&mut self, bio: Bio) -> u32 {
        let node = BioNode { bio, next: NIL };
        if self.free_bio == NIL {
            self.bios.push(node);
            u32::try_from(self.bios.len() - 1).expect("fewer than 2^32 bios")
        } else {
            let id = self.free_bio;
            self.free_bio = self.bios[id as usize].next;
            self.bios[id as usize] = node;
            id
        }
    }

    /// Appends a bio that begins where the request ends.
    pub(crate) fn attach_back(&mut self, rq: RqId, bio: Bio) {
        let node = self.bio_node(bio);
        let life = &mut self.life[rq as usize];
        self.bios[life.last_bio as usize].next = node;
        life.last_bio = node;
        life.bios += 1;
        let r = &mut self.hot[rq as usize];
        r.nr += bio.nr;
        r.segments += 1;
    }

    /// Prepends a bio that ends where the request begins.
    pub(crate) fn attach_front(&mut self, rq: RqId, bio: Bio) {
        let node = self.bio_node(bio);
        let life = &mut self.life[rq as usize];
        self.bios[node as usize].next = life.first_bio;
        life.first_bio = node;
        life.bios += 1;
        let r = &mut self.hot[rq as usize];
        r.nr += bio.nr;
        r.sector = bio.sector.get();
        r.segments += 1;
    }

    /// Moves the bios of `b`, which begins where `a` ends, into `a`. `b` stays allocated: its slot is still taken.
    pub(crate) fn absorb(&mut self, a: RqId, b: RqId) {
        let from = self.life[b as usize];
        let into = &mut self.life[a as usize];
        self.bios[into.last_bio as usize].next = from.first_bio;
        into.last_bio = from.last_bio;
        into.bios += from.bios;
        into.q = into.q.min(from.q);
        let absorbed = self.hot[b as usize];
        let r = &mut self.hot[a as usize];
        r.nr += absorbed.nr;
        r.segments += absorbed.segments;
        self.life[b as usize].bios = 0;
    }

    /// Frees a request, appending its bios to `out` in sector order.
    pub(crate) fn retire(&mut self, rq: RqId, out: &mut Vec<Bio>) {
        let life = self.life[rq as usize];
        if life.bios > 0 {
            let mut node = life.first_bio;
            for _ in 0..life.bios {
                out.push(self.bios[node as usize].bio);
                node = self.bios[node as usize].next;
            }
            self.bios[life.last_bio as usize].next = self.free_bio;
            self.free_bio = life.first_bio;
        }
        self.discard(rq);
    }

    /// Frees a request whose bios went elsewhere.
    pub(crate) fn discard(&mut self, rq: RqId) {
        self.hot[rq as usize].next = self.free_rq;
        self.free_rq = rq;
        self.live -= 1;
    }

    #[inline]
    pub(crate) fn life(&self, rq: RqId) -> &Life {
        &self.life[rq as usize]
    }

    #[inline]
    pub(crate) fn life_mut(&mut self, rq: RqId) -> &mut Life {
        &mut self.life[rq as usize]
    }

    /// Handles of the bios of a request, in sector order.
    pub(crate) fn tags(&self, rq: RqId) -> impl Iterator<Item = u32> + '_ {
        let life = self.life[rq as usize];
        let mut node = life.first_bio;
        (0..life.bios).map(move |_| {
            let n = &self.bios[node as usize];
            node = n.next;
            n.bio.tag
        })
    }
}

impl Index<RqId> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, rq: RqId) -> &Request {
        &self.hot[rq as usize]
    }
}

impl IndexMut<RqId> for Requests {
    #[inline]
    fn index_mut(&mut self, rq: RqId) -> &mut Request {
        &mut self.hot[rq as usize]
    }
}

#[cfg(test)]
mod tests {
    use kreplay_traces::units::Sectors;

    use super::*;

    /// docs/MODEL.md states these.
    #[test]
    fn a_request_takes_112_bytes_and_a_bio_40() {
        assert_eq!(size_of::<Request>(), 32);
        assert!(size_of::<Life>() <= 80, "{}", size_of::<Life>());
        assert!(size_of::<BioNode>() <= 40, "{}", size_of::<BioNode>());
    }

    #[test]
    fn tables_grow_to_the_largest_load_and_no_further() {
        let mut rqs = Requests::with_capacity(0);
        let mut out = Vec::new();
        let bio = |k: u64| Bio {
            dir: Dir::Read,
            sector: Sectors(8 * k),
            nr: 8,
            partition: 0,
            kind: BioKind::Data,
            tag: 0,
            task: 0,
        };
        for round in 0..100 {
            let live: Vec<RqId> = (0..32)
                .map(|k| {
                    let rq = rqs.create(bio(100 * k), 0, Nanos(round));
                    (1..4).for_each(|j| rqs.attach_back(rq, bio(100 * k + j)));
                    rq
                })
                .collect();
            live.into_iter().for_each(|rq| rqs.retire(rq, &mut out));
            out.clear();
        }
        assert_eq!((rqs.hot.len(), rqs.life.len(), rqs.bios.len(), rqs.live()), (32, 32, 128, 0));
    }
}
