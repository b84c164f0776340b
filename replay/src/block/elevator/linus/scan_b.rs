//! The scan of read-latency2: a request out of patience stops insertions before it, never merges.

use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::{Bio, Context, End, Found, Key, between};

/// From the tail to the first request that may be touched. `front_costs`: a front merge takes its sectors off the
/// target's patience (not in Red Hat's version).
pub(super) fn scan(list: &List, rqs: &mut Requests, bio: &Bio, cx: &Context, front_costs: bool) -> Found {
    let key = Key::of(bio);
    let fence = list.fence(cx);
    let mut hint = NIL;
    let mut merge_only = false;
    let mut at = list.tail;
    while at != fence {
        let r = &mut rqs[at];
        merge_only |= r.seq <= 0;
        r.seq = r.seq.wrapping_sub(1);
        let r = *r;
        let this = at;
        at = r.prev;
        if r.partition != key.partition {
            continue;
        }
        if !merge_only && hint == NIL && between(rqs, this, key.start) {
            hint = this;
        }
        if r.dir != key.dir || r.nr + key.nr > cx.max_sectors {
            continue;
        }
        merge_only |= (r.seq as u32) < key.nr;
        if r.end() == key.start {
            return Found::Merge(this, End::Back);
        }
        if r.sector == key.end {
            if front_costs {
                let r = &mut rqs[this];
                r.seq = r.seq.wrapping_sub(key.nr as i32);
            }
            return Found::Merge(this, End::Front);
        }
    }
    Found::Hint(hint)
}
