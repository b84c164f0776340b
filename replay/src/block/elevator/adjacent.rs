//! What the per-process schedulers share: finding a queued request that a bio adjoins, and choosing the nearest one.
//!
//! Merging is that of `drivers/block/elevator.c` (2.6.12) and `block/elevator.c` (6.1): the request merged last, then by
//! its end, then by its start. The choice is `as_choose_req`, `cfq_choose_req` and `bfq_choose_req`, which are one rule.

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::merge_hash::MergeHash;
use super::rbtree::{Nodes, SectorTree};
use super::{Context, End};

/// Requests by their end, and the one that was merged last.
#[derive(Clone, Debug)]
pub(super) struct Adjacent {
    hash: MergeHash,
    last: RqId,
}

impl Default for Adjacent {
    fn default() -> Self {
        Self { hash: MergeHash::default(), last: NIL }
    }
}

impl Adjacent {
    /// The request that a bio adjoins among those that it `may` join. `front`: the one that begins at a sector.
    pub(super) fn find(
        &mut self,
        rqs: &Requests,
        bio: &Bio,
        may: impl Fn(RqId) -> bool,
        front: impl FnOnce(u64) -> RqId,
    ) -> Option<(RqId, End)> {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let same = |rq: RqId| rqs[rq].dir == bio.dir && rqs[rq].partition == bio.partition && may(rq);
        if self.last != NIL && same(self.last) {
            if rqs[self.last].end() == start {
                return Some((self.last, End::Back));
            }
            if rqs[self.last].sector == end {
                return Some((self.last, End::Front));
            }
        }
        let back = self.hash.find(start, |_| true);
        if back != NIL && same(back) {
            return Some((back, End::Back));
        }
        let found = front(end);
        (found != NIL && same(found)).then_some((found, End::Front))
    }

    /// There is a request merged last that such a bio `may` be held against, wherever it lies.
    pub(super) fn newest(&self, rqs: &Requests, bio: &Bio, may: impl Fn(RqId) -> bool) -> bool {
        self.last != NIL && rqs[self.last].dir == bio.dir && rqs[self.last].partition == bio.partition && may(self.last)
    }

    /// A request was queued, or has another end now.
    pub(super) fn add(&mut self, rqs: &Requests, rq: RqId, merged: bool) {
        self.hash.add(rqs[rq].end(), rq);
        if merged || self.last == NIL {
            self.last = rq;
        }
    }

    /// A request left the queue.
    pub(super) fn remove(&mut self, rq: RqId) {
        self.hash.remove(rq);
        if self.last == rq {
            self.last = NIL;
        }
    }
}

/// A bio does not make a request too long.
pub(super) fn fits(rqs: &Requests, rq: RqId, bio: &Bio, cx: &Context) -> bool {
    rqs[rq].nr + bio.nr <= cx.max_sectors && rqs[rq].segments < cx.max_segments
}

/// Makes a sorted request longer by a bio at its `end`. Two requests that now touch and may be one: the front, the back one.
pub(super) fn attach(
    rqs: &mut Requests,
    nodes: &Nodes,
    rq: RqId,
    end: End,
    bio: &Bio,
    cx: &Context,
) -> Option<(RqId, RqId)> {
    let (a, b) = match end {
        End::Back => {
            rqs.attach_back(rq, *bio);
            (rq, nodes.next(rq))
        }
        End::Front => {
            rqs.attach_front(rq, *bio);
            (nodes.prev(rq), rq)
        }
    };
    (a != NIL && b != NIL && joinable(rqs, a, b, cx)).then_some((a, b))
}

/// Request `a` is about to swallow `b`: if `b` expires earlier, `a` takes over its deadline and its place in the FIFO (what
/// `*_merged_requests` of all these schedulers do). True if it did.
pub(super) fn take_place<T: PartialOrd>(
    rqs: &mut Requests,
    fifo: &mut List,
    (a, deadline): (RqId, &mut T),
    (b, older): (RqId, T),
) -> bool {
    let takes = older < *deadline;
    if takes {
        *deadline = older;
        fifo.remove(rqs, a);
        fifo.insert_before(rqs, b, a);
    }
    takes
}

/// Request `b` begins where `a` ends, and both make one within the limits.
fn joinable(rqs: &Requests, a: RqId, b: RqId, cx: &Context) -> bool {
    let (x, y) = (&rqs[a], &rqs[b]);
    x.end() == y.sector
        && x.dir == y.dir
        && x.partition == y.partition
        && x.nr + y.nr <= cx.max_sectors
        && x.segments + y.segments <= cx.max_segments
}

/// How far back a scheduler lets the arm go, and at what price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// Sectors.
    pub(super) back_max: u64,
    /// A sector back counts as so many ahead.
    pub(super) penalty: u64,
}

impl Reach {
    /// Cost of going from `last` to `sector`; `None` = out of reach behind.
    fn cost(self, last: u64, sector: u64) -> Option<u64> {
        if sector >= last {
            Some(sector - last)
        } else if sector + self.back_max >= last {
            Some((last - sector).saturating_mul(self.penalty))
        } else {
            None
        }
    }

    /// The better of two requests for an arm at `last`; `NIL` stands for none. Of two out of reach the lower one.
    pub(super) fn choose(self, rqs: &Requests, last: u64, a: RqId, b: RqId) -> RqId {
        if a == NIL || b == NIL || a == b {
            return if a == NIL { b } else { a };
        }
        let (s1, s2) = (rqs[a].sector, rqs[b].sector);
        let first = match (self.cost(last, s1), self.cost(last, s2)) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => s1 <= s2,
            (Some(d1), Some(d2)) => d1 < d2 || (d1 == d2 && s1 >= s2),
        };
        if first { a } else { b }
    }

    /// The request to follow one that is still sorted in `tree`, for an arm at `last`: its successor, or the lowest, or its
    /// predecessor if nearer; `NIL` if it is alone.
    pub(super) fn following(self, rqs: &Requests, nodes: &Nodes, tree: SectorTree, last: u64, rq: RqId) -> RqId {
        let mut next = nodes.next(rq);
        if next == NIL {
            next = nodes.from(tree, 0);
            if next == rq {
                next = NIL;
            }
        }
        self.choose(rqs, last, next, nodes.prev(rq))
    }
}

#[cfg(test)]
mod tests {
    use kreplay_traces::units::{Nanos, Sectors};

    use super::*;
    use crate::block::{BioKind, Dir};

    #[test]
    fn ahead_is_cheaper_than_back_and_far_behind_comes_last() {
        let mut rqs = Requests::with_capacity(4);
        let mut at = |sector| {
            let dir = Dir::Read;
            let bio = Bio { dir, sector: Sectors(sector), nr: 8, partition: 0, kind: BioKind::Data, tag: 0, task: 0 };
            rqs.create(bio, 0, Nanos::ZERO)
        };
        let (low, back, ahead, far) = (at(10), at(990), at(1015), at(5000));
        let reach = Reach { back_max: 100, penalty: 2 };
        assert_eq!(reach.choose(&rqs, 1000, back, ahead), ahead, "10 back cost 20, 15 ahead cost 15");
        assert_eq!(reach.choose(&rqs, 1000, back, far), back);
        assert_eq!(reach.choose(&rqs, 1000, low, far), far, "990 back are out of reach");
        assert_eq!(reach.choose(&rqs, 6000, low, far), low, "of two out of reach the lower one: the sweep restarts");
        assert_eq!(reach.choose(&rqs, 1000, NIL, low), low);
    }
}
