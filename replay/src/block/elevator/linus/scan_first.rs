//! The scan of 2.4.1: the first that looks for a merge and a place in one walk.
//!
//! Its hints are odd: only requests of the bio's direction give one, and a request does if the bio's sector is *below* its
//! own; the new request then goes behind it. A request out of patience ends the walk and overrides the hint.

use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::{Bio, Context, End, Found, Key};

/// From the tail to the first request that may be touched.
pub(super) fn scan(list: &List, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Found {
    let key = Key::of(bio);
    let fence = list.fence(cx);
    let mut hint = NIL;
    let mut at = list.tail;
    while at != fence {
        let r = &mut rqs[at];
        let spent = r.seq <= 0;
        r.seq = r.seq.wrapping_sub(1);
        if spent {
            return Found::Hint(at);
        }
        let r = *r;
        let this = at;
        at = r.prev;
        if r.dir != key.dir || r.partition != key.partition || r.nr + key.nr > cx.max_sectors {
            continue;
        }
        // Compared without sign, as in later versions.
        if (r.seq as u32) < key.nr {
            break;
        }
        if r.end() == key.start {
            return Found::Merge(this, End::Back);
        }
        if r.sector == key.end {
            let r = &mut rqs[this];
            r.seq = r.seq.wrapping_sub(key.nr as i32);
            return Found::Merge(this, End::Front);
        }
        if hint == NIL && key.start < r.sector {
            hint = this;
        }
    }
    Found::Hint(hint)
}
