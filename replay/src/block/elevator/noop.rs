//! `elevator_noop` of Linux 2.4 (`drivers/block/elevator.c`): merges both ways, sorts nothing.

use super::super::list::List;
use super::super::request::Requests;
use super::super::{Bio, RqId};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::ElevatorConfig;

/// First come, first served, with merging.
#[derive(Clone, Debug)]
pub(crate) struct Noop {
    list: List,
    refused_beside: bool,
}

impl Noop {
    pub(crate) fn new(config: &ElevatorConfig) -> Self {
        Self { list: List::new(), refused_beside: config.refused_beside }
    }
}

impl Elevator for Noop {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let fence = self.list.fence(cx);
        let mut r = self.list.tail;
        while r != fence {
            let q = &rqs[r];
            let joins = if q.end() == start {
                Some(End::Back)
            } else if q.sector == end {
                Some(End::Front)
            } else {
                None
            };
            if let Some(side) = joins
                && q.dir == bio.dir
                && q.partition == bio.partition
                && q.nr + bio.nr <= cx.max_sectors
            {
                return self.join(rqs, bio, r, side, cx);
            }
            r = q.prev;
        }
        Verdict::Insert(Spot::Tail)
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, spot: Spot, _: &Context) -> bool {
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

impl Noop {
    fn join(&mut self, rqs: &mut Requests, bio: &Bio, into: RqId, end: End, cx: &Context) -> Verdict {
        if rqs[into].segments >= cx.max_segments {
            return Verdict::Insert(Spot::refused(into, end, self.refused_beside));
        }
        match end {
            End::Back => rqs.attach_back(into, *bio),
            End::Front => rqs.attach_front(into, *bio),
        }
        let pair = self.list.neighbours(rqs, into, end, cx).filter(|&(a, b)| self.list.coalesce(rqs, a, b, cx));
        match pair {
            Some((a, b)) => Verdict::Merged { into: a, end, absorbed: Some(b) },
            None => Verdict::Merged { into, end, absorbed: None },
        }
    }
}
