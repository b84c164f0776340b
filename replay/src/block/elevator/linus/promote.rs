//! Read promotion (read-latency, read-latency2): a read that found no place goes in near the head, not to the tail.

use super::super::super::list::List;
use super::super::super::request::{NIL, Requests};
use super::{Bio, Context, Dir, Found};

/// Sectors of a write that count as a further segment.
const SECTORS_PER_UNIT: u32 = 64;

/// Moves a read's place of insertion forward: right behind the write with which `most` units of writes are ahead of it.
pub(super) fn promote(list: &List, rqs: &Requests, bio: &Bio, cx: &Context, found: Found, most: u32) -> Found {
    let Found::Hint(hint) = found else { return found };
    if most == 0 || bio.dir != Dir::Read {
        return found;
    }
    let mut units = 0;
    let mut at = match list.fence(cx) {
        NIL => list.head,
        locked => rqs[locked].next,
    };
    while at != NIL && at != hint {
        let r = &rqs[at];
        if r.dir == Dir::Write {
            units += 1 + r.nr / SECTORS_PER_UNIT;
            if units >= most {
                return Found::Hint(at);
            }
        }
        at = r.next;
    }
    found
}
