//! The elevator of Linux 2.2.18 to 2.2.20 (`drivers/block/ll_rw_blk.c`).
//!
//! Patience counts events: each insertion or merge ahead of a request takes one unit, whatever its size. Nothing goes
//! before the last request that has none left.

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::ElevatorConfig;

/// The elevator of one queue.
///
/// While the queue is plugged, a pseudo-request (no direction, sector 0, no patience) is its first element; here that is
/// the element in front of the head, written `NIL`.
#[derive(Clone, Debug)]
pub(crate) struct Linux22 {
    list: List,
    latency: [i32; 2],
}

impl Linux22 {
    pub(crate) fn new(config: &ElevatorConfig) -> Self {
        Self {
            list: List::new(),
            latency: [config.read_latency, config.write_latency].map(|l| i32::try_from(l).unwrap_or(i32::MAX)),
        }
    }

    fn behind(&self, rqs: &Requests, at: RqId) -> RqId {
        if at == NIL { self.list.head } else { rqs[at].next }
    }

    /// The last request from `from` on that is out of patience; `from` if there is none.
    fn barrier(&self, rqs: &Requests, from: RqId) -> RqId {
        let mut last = from;
        let mut at = from;
        loop {
            if at != NIL && rqs[at].seq == 0 {
                last = at;
            }
            at = self.behind(rqs, at);
            if at == NIL {
                return last;
            }
        }
    }

    /// The first element that a bio may be merged with: the driver keeps the first one if it works on it.
    fn first(&self, rqs: &Requests, cx: &Context) -> Option<RqId> {
        let at = match (cx.head_active, cx.plugged) {
            (true, true) | (false, false) => self.list.head,
            (true, false) => rqs[self.list.head].next,
            (false, true) => return Some(NIL),
        };
        (at != NIL).then_some(at)
    }

    fn join(&mut self, rqs: &mut Requests, bio: &Bio, into: RqId, prev: RqId, end: End, cx: &Context) -> Verdict {
        if rqs[into].segments >= cx.max_segments {
            return Verdict::Insert(Spot::Tail);
        }
        let pair = match end {
            End::Back => {
                rqs.attach_back(into, *bio);
                (into, rqs[into].next)
            }
            End::Front => {
                rqs.attach_front(into, *bio);
                rqs[into].seq -= 1;
                (prev, into)
            }
        };
        self.list.charge_behind(rqs, into, 1);
        if pair.0 != NIL && pair.1 != NIL {
            let (a, b) = pair;
            let patience = rqs[a].seq.min(rqs[b].seq);
            if self.list.coalesce(rqs, a, b, cx) {
                rqs[a].seq = patience;
                return Verdict::Merged { into: a, end, absorbed: Some(b) };
            }
        }
        Verdict::Merged { into, end, absorbed: None }
    }
}

impl Elevator for Linux22 {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        if self.list.is_empty() {
            return Verdict::Insert(Spot::Tail);
        }
        let Some(from) = self.first(rqs, cx) else { return Verdict::Insert(Spot::Tail) };
        let barrier = self.barrier(rqs, from);
        let (mut at, mut prev) = (barrier, NIL);
        loop {
            if at != NIL && rqs[at].dir == bio.dir && rqs[at].partition == bio.partition {
                let r = &rqs[at];
                let side = if r.end() == start {
                    Some(End::Back)
                } else if r.sector == end {
                    Some(End::Front)
                } else {
                    None
                };
                if let Some(side) = side {
                    let refused = side == End::Front && at == barrier && r.seq == 0;
                    // An adjacent request ends the search even where it can't take the bio.
                    if r.nr + bio.nr > cx.max_sectors || refused {
                        return Verdict::Insert(Spot::Tail);
                    }
                    return self.join(rqs, bio, at, prev, side, cx);
                }
            }
            prev = at;
            at = self.behind(rqs, at);
            if at == NIL {
                return Verdict::Insert(Spot::Tail);
            }
        }
    }

    /// The place is found here and not in `offer`: after a sleep for a slot 2.2 does not look for a merge again.
    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        rqs[rq].seq = self.latency[rqs[rq].dir.index()];
        if self.list.is_empty() {
            self.list.push_back(rqs, rq);
            return true;
        }
        // The plug belongs to no partition: it sorts before everything.
        let key = |rqs: &Requests, at: RqId| if at == NIL { None } else { Some((rqs[at].partition, rqs[at].sector)) };
        let x = key(rqs, rq);
        let mut p = self.barrier(rqs, if cx.plugged { NIL } else { self.list.head });
        loop {
            let q = self.behind(rqs, p);
            if q == NIL {
                break;
            }
            let (kp, kq) = (key(rqs, p), key(rqs, q));
            let fits = if kp < kq { kp < x && x < kq } else { kp < x || x < kq };
            if fits {
                break;
            }
            p = q;
        }
        self.list.insert_after(rqs, p, rq);
        self.list.charge_behind(rqs, rq, 1);
        self.list.tail == rq
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        self.list.serve(rqs, cx)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        self.list.served(rqs, rq, cx);
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.list.position(rqs, rq)
    }
}
