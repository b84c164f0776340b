//! `elevator_linus` of Linux 2.4 (`drivers/block/elevator.c`, `ll_rw_blk.c`).
//!
//! One list, one-way sorting, and a patience per request that others use up. How it is used up changed: each scan is a
//! file of its own. All share what follows a scan: the merge, the charge on those behind it, coalescing.

mod promote;
mod scan_a;
mod scan_b;
mod scan_cd;
mod scan_first;
mod two_step;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, RqId};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::ElevatorConfig;

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The bio can join this request.
    Merge(RqId, End),
    /// Insert behind this one; `NIL` = at the tail.
    Hint(RqId),
}

/// Which elevator_linus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// 2.4.0.
    TwoStep,
    /// 2.4.1.
    First,
    /// 2.4.2 to 2.4.19.
    A,
    /// 2.4.20.
    C,
    /// 2.4.21 to 2.4.31.
    D,
    /// A with promotion (A. Morton, 20 December 2001).
    ReadLatency,
    /// B with promotion (for 2.4.19-pre5).
    ReadLatency2,
    /// B with promotion, without charges for merges (2.4.18-14 of Red Hat).
    ReadLatency2RedHat,
    /// D with promotion, where no read was looked at on the way (2.4.32).
    ReadLatency2On2432,
}

/// The elevator of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Linus {
    list: List,
    generation: Generation,
    /// Patience of a new request, per direction.
    latency: [i32; 2],
    refused_beside: bool,
    max_bomb_segments: u32,
    seek_cost: i32,
}

impl Linus {
    pub(crate) fn new(config: &ElevatorConfig, generation: Generation) -> Self {
        Self {
            list: List::new(),
            generation,
            latency: [config.read_latency, config.write_latency].map(|l| i32::try_from(l).unwrap_or(i32::MAX)),
            refused_beside: config.refused_beside,
            max_bomb_segments: config.max_bomb_segments,
            seek_cost: i32::try_from(config.seek_cost).unwrap_or(i32::MAX),
        }
    }

    fn scan(&self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Found {
        let list = &self.list;
        let promote = |rqs: &Requests, found| promote::promote(list, rqs, bio, cx, found, self.max_bomb_segments);
        match self.generation {
            Generation::TwoStep => two_step::scan(list, rqs, bio, cx),
            Generation::First => scan_first::scan(list, rqs, bio, cx),
            Generation::A => scan_a::scan(list, rqs, bio, cx),
            Generation::ReadLatency => {
                let found = scan_a::scan(list, rqs, bio, cx);
                promote(rqs, found)
            }
            Generation::ReadLatency2 => {
                let found = scan_b::scan(list, rqs, bio, cx, true);
                promote(rqs, found)
            }
            Generation::ReadLatency2RedHat => {
                let found = scan_b::scan(list, rqs, bio, cx, false);
                promote(rqs, found)
            }
            Generation::C => {
                let (found, _) = scan_cd::scan(list, rqs, bio, cx, false);
                scan_cd::charge(list, rqs, found, self.seek_cost)
            }
            Generation::D => {
                let (found, _) = scan_cd::scan(list, rqs, bio, cx, true);
                scan_cd::charge(list, rqs, found, self.seek_cost)
            }
            Generation::ReadLatency2On2432 => {
                let (found, read_passed) = scan_cd::scan(list, rqs, bio, cx, true);
                let found = scan_cd::charge(list, rqs, found, self.seek_cost);
                // Promotion comes after the charge: those whom the read overtakes do not pay for it.
                if read_passed { found } else { promote(rqs, found) }
            }
        }
    }

    /// Every merge costs those behind it its sectors; later kernels charge in the scan instead.
    fn charges_merges(&self) -> bool {
        use Generation::{A, First, ReadLatency, ReadLatency2};
        matches!(self.generation, A | First | ReadLatency | ReadLatency2)
    }

    fn merge(&mut self, rqs: &mut Requests, bio: &Bio, into: RqId, end: End, cx: &Context) -> Verdict {
        if rqs[into].segments >= cx.max_segments {
            return Verdict::Insert(Spot::refused(into, end, self.refused_beside));
        }
        if self.charges_merges() {
            self.list.charge_behind(rqs, into, i32::try_from(bio.nr).unwrap_or(i32::MAX));
        }
        match end {
            End::Back => rqs.attach_back(into, *bio),
            End::Front => rqs.attach_front(into, *bio),
        }
        let pair = self.list.neighbours(rqs, into, end, cx).filter(|&(a, b)| {
            let patience = rqs[a].seq.min(rqs[b].seq);
            let done = self.list.coalesce(rqs, a, b, cx);
            if done && self.generation != Generation::TwoStep {
                rqs[a].seq = patience;
            }
            done
        });
        match pair {
            Some((a, b)) => Verdict::Merged { into: a, end, absorbed: Some(b) },
            None => Verdict::Merged { into, end, absorbed: None },
        }
    }
}

impl Elevator for Linus {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        if self.list.is_empty() {
            return Verdict::Insert(Spot::Tail);
        }
        match self.scan(rqs, bio, cx) {
            Found::Merge(into, end) => self.merge(rqs, bio, into, end, cx),
            Found::Hint(NIL) => Verdict::Insert(Spot::Tail),
            Found::Hint(at) => Verdict::Insert(Spot::After(at)),
        }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, spot: Spot, cx: &Context) -> bool {
        rqs[rq].seq = self.latency[rqs[rq].dir.index()];
        let spot = if self.generation == Generation::TwoStep { two_step::place(&self.list, rqs, rq, cx) } else { spot };
        self.list.place(rqs, rq, spot)
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

/// What scans know of a bio.
#[derive(Clone, Copy)]
struct Key {
    start: u64,
    end: u64,
    nr: u32,
    partition: u16,
    dir: Dir,
}

impl Key {
    fn of(bio: &Bio) -> Self {
        let start = bio.sector.get();
        Self { start, end: start + u64::from(bio.nr), nr: bio.nr, partition: bio.partition, dir: bio.dir }
    }
}

/// Whether a request at `start` may go between `r` and the one behind it: in order, or at a break of the order.
#[inline]
fn between(rqs: &Requests, r: RqId, start: u64) -> bool {
    let a = &rqs[r];
    if a.next == NIL {
        return false;
    }
    let b = &rqs[a.next];
    if a.partition != b.partition {
        return start > a.sector;
    }
    if b.sector > a.sector {
        return a.sector < start && start < b.sector;
    }
    start > a.sector || start < b.sector
}
