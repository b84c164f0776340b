//! No scheduler (blk-mq's `none`, Linux 6.1 `block/blk-mq.c`): first in, first out.
//!
//! The only merging left is that of the submitting task's plug list: a bio joins the request that its task queued last,
//! unless that one has grown to the size at which a plug list is flushed.

use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::{Context, Elevator, End, Spot, Verdict};

/// A request of this size flushes its task's plug list: 128 KiB.
const FLUSH_SECTORS: u32 = 256;

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoScheduler {
    list: List,
    /// The request that each task queued last, while it is listed.
    newest: FxHashMap<u32, RqId>,
}

impl Elevator for NoScheduler {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let Some(&rq) = self.newest.get(&bio.task) else { return Verdict::Insert(Spot::Tail) };
        let r = &rqs[rq];
        let room = r.nr + bio.nr <= cx.max_sectors && r.segments < cx.max_segments && r.nr < FLUSH_SECTORS;
        if !room || r.dir != bio.dir || r.partition != bio.partition {
            return Verdict::Insert(Spot::Tail);
        }
        let start = bio.sector.get();
        let end = if r.end() == start {
            rqs.attach_back(rq, *bio);
            End::Back
        } else if r.sector == start + u64::from(bio.nr) {
            rqs.attach_front(rq, *bio);
            End::Front
        } else {
            return Verdict::Insert(Spot::Tail);
        };
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, _: &Context) -> bool {
        self.list.push_back(rqs, rq);
        self.newest.insert(rqs.life(rq).task, rq);
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, _: &Context) -> Option<RqId> {
        let rq = self.list.head;
        if rq == NIL {
            return None;
        }
        self.list.remove(rqs, rq);
        let task = rqs.life(rq).task;
        if self.newest.get(&task) == Some(&rq) {
            self.newest.remove(&task);
        }
        Some(rq)
    }

    fn complete(&mut self, _: &mut Requests, _: RqId, _: &Context) {}

    fn len(&self) -> usize {
        self.list.len()
    }

    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.list.position(rqs, rq)
    }
}
