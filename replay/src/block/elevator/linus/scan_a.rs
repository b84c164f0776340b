//! The scan of 2.4.2 to 2.4.19: every request looked at is charged one, whether or not anything comes of it.

use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::{Bio, Context, End, Found, Key, between};

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
            break;
        }
        let r = *r;
        let this = at;
        at = r.prev;
        if r.partition != key.partition {
            continue;
        }
        if hint == NIL && between(rqs, this, key.start) {
            hint = this;
        }
        if r.dir != key.dir || r.nr + key.nr > cx.max_sectors {
            continue;
        }
        // Its patience does not suffice for this many sectors: nothing before it may be looked at either. The kernel
        // compares without sign, so that a request already below zero does not stop the scan here.
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
    }
    Found::Hint(hint)
}
