//! No scheduler (blk-mq's `none`, Linux 6.1 `block/blk-mq.c`): first in, first out.
//!
//! Where tasks have no plug lists, the merging of such a list is done here: a bio joins the request that its task queued
//! last, unless that one has grown to the size at which a plug list is flushed. Where they have, a bio may still join one of
//! the newest requests of the software queue (`blk_bio_list_merge`).

use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::{Context, Elevator, End, Spot, Verdict};

/// A request of this size flushes its task's plug list: 128 KiB.
const FLUSH_SECTORS: u32 = 256;

/// Requests of the software queue that a bio may join, from the newest on.
const LOOK_BACK: usize = 8;

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoScheduler {
    list: List,
    /// The request that each task queued last, while it is listed.
    newest: FxHashMap<u32, RqId>,
}

/// Joins a bio to a request that it adjoins, if it fits.
fn join(rqs: &mut Requests, rq: RqId, bio: &Bio, cx: &Context) -> Option<Verdict> {
    let r = &rqs[rq];
    let room = r.nr + bio.nr <= cx.max_sectors && r.segments < cx.max_segments;
    if !room || r.dir != bio.dir || r.partition != bio.partition {
        return None;
    }
    let start = bio.sector.get();
    let end = if r.end() == start {
        rqs.attach_back(rq, *bio);
        End::Back
    } else if r.sector == start + u64::from(bio.nr) {
        rqs.attach_front(rq, *bio);
        End::Front
    } else {
        return None;
    };
    Some(Verdict::Merged { into: rq, end, absorbed: None })
}

impl Elevator for NoScheduler {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        if !cx.task_plugs {
            let newest = self.newest.get(&bio.task).copied().filter(|&rq| rqs[rq].nr < FLUSH_SECTORS);
            return newest.and_then(|rq| join(rqs, rq, bio, cx)).unwrap_or(Verdict::Insert(Spot::Tail));
        }
        let mut at = self.list.tail;
        for _ in 0..LOOK_BACK {
            if at == NIL {
                break;
            }
            if let Some(joined) = join(rqs, at, bio, cx) {
                return joined;
            }
            at = rqs[at].prev;
        }
        Verdict::Insert(Spot::Tail)
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
