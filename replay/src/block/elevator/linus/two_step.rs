//! 2.4.0: one walk looks for a merge, another for the place of a new request.
//!
//! Unlike later versions, a merge that fails for its segments has charged those behind its target all the same, and a
//! request that swallows its neighbour keeps its own patience.

use super::super::super::RqId;
use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::super::Spot;
use super::{Bio, Context, End, Found, Key};

/// From the tail to the first request that may be touched. A request out of patience may still grow at its end.
pub(super) fn scan(list: &List, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Found {
    let key = Key::of(bio);
    let fence = list.fence(cx);
    let mut at = list.tail;
    while at != fence {
        let r = rqs[at];
        let this = at;
        at = r.prev;
        if r.dir != key.dir || r.nr + key.nr > cx.max_sectors || r.partition != key.partition {
            continue;
        }
        let end = if r.end() == key.start {
            End::Back
        } else if r.seq == 0 {
            break;
        } else if r.sector == key.end {
            rqs[this].seq -= 1;
            End::Front
        } else {
            continue;
        };
        list.charge_behind(rqs, this, 1);
        return Found::Merge(this, end);
    }
    Found::Hint(NIL)
}

/// Where a new request goes: behind the first one from the tail that is in order before it or out of patience. Those that
/// it passes lose one.
pub(super) fn place(list: &List, rqs: &mut Requests, rq: RqId, cx: &Context) -> Spot {
    let key = |rqs: &Requests, at: RqId| (rqs[at].partition, rqs[at].sector);
    let new = key(rqs, rq);
    let fence = list.fence(cx);
    let mut at = list.tail;
    while at != fence {
        if key(rqs, at) < new || rqs[at].seq == 0 {
            break;
        }
        rqs[at].seq = rqs[at].seq.wrapping_sub(1);
        at = rqs[at].prev;
    }
    if at == NIL && list.head != NIL {
        Spot::Before(list.head)
    } else if at == NIL {
        Spot::Tail
    } else {
        Spot::After(at)
    }
}
