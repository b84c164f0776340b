//! The scan of 2.4.20 and later: looking costs nothing, going ahead does.

use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::{Bio, Context, Dir, End, Found, Key, between};

/// From the tail to the first request that may be touched or is out of patience. `grow_spent`: such a request may still
/// take a bio at its end (2.4.21+). Also says whether a read of the same partition was passed on the way.
pub(super) fn scan(list: &List, rqs: &mut Requests, bio: &Bio, cx: &Context, grow_spent: bool) -> (Found, bool) {
    let key = Key::of(bio);
    let fence = list.fence(cx);
    let mut hint = NIL;
    let mut read_passed = false;
    let mut at = list.tail;
    while at != fence {
        let r = rqs[at];
        let this = at;
        at = r.prev;
        let spent = r.seq <= 0;
        if spent && !grow_spent {
            break;
        }
        if r.partition == key.partition {
            read_passed |= r.dir == Dir::Read;
            if !spent && hint == NIL && between(rqs, this, key.start) {
                hint = this;
            }
            if r.dir == key.dir && r.nr + key.nr <= cx.max_sectors {
                if r.end() == key.start {
                    return (Found::Merge(this, End::Back), read_passed);
                }
                if !spent && r.sector == key.end {
                    rqs[this].seq = r.seq.wrapping_sub(1);
                    return (Found::Merge(this, End::Front), read_passed);
                }
            }
        }
        if spent {
            break;
        }
    }
    (Found::Hint(hint), read_passed)
}

/// Charges everyone behind the place found.
pub(super) fn charge(list: &List, rqs: &mut Requests, found: Found, seek_cost: i32) -> Found {
    match found {
        Found::Merge(at, _) => list.charge_behind(rqs, at, 1),
        Found::Hint(NIL) => {}
        Found::Hint(at) => list.charge_behind(rqs, at, seek_cost),
    }
    found
}
