//! Requests by the sector behind them, to find the one that a bio continues (`block/elevator.c`).

use rustc_hash::FxHashMap;

use super::super::RqId;
use super::super::request::NIL;

/// A request's place in its chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    end: u64,
    /// Hashed before it under the same end.
    older: RqId,
    /// Hashed after it.
    newer: RqId,
    hashed: bool,
}

const LOOSE: Link = Link { end: 0, older: NIL, newer: NIL, hashed: false };

/// Chains of requests with the same end, the one hashed last first. Only looked up by key, never iterated.
#[derive(Clone, Debug, Default)]
pub(super) struct MergeHash {
    newest: FxHashMap<u64, RqId>,
    links: Vec<Link>,
}

impl MergeHash {
    /// Hashes a request under its end, anew if it was hashed.
    pub(super) fn add(&mut self, end: u64, rq: RqId) {
        self.remove(rq);
        if self.links.len() <= rq as usize {
            self.links.resize(rq as usize + 1, LOOSE);
        }
        let older = self.newest.insert(end, rq).unwrap_or(NIL);
        if older != NIL {
            self.links[older as usize].newer = rq;
        }
        self.links[rq as usize] = Link { end, older, newer: NIL, hashed: true };
    }

    /// Takes a request out, if it is in.
    pub(super) fn remove(&mut self, rq: RqId) {
        let Some(&link) = self.links.get(rq as usize) else { return };
        if !link.hashed {
            return;
        }
        if link.newer == NIL {
            if link.older == NIL {
                self.newest.remove(&link.end);
            } else {
                self.newest.insert(link.end, link.older);
            }
        } else {
            self.links[link.newer as usize].older = link.older;
        }
        if link.older != NIL {
            self.links[link.older as usize].newer = link.newer;
        }
        self.links[rq as usize] = LOOSE;
    }

    /// The request hashed last under `end` that is usable; unusable ones met on the way are taken out.
    pub(super) fn find(&mut self, end: u64, usable: impl Fn(RqId) -> bool) -> RqId {
        while let Some(&rq) = self.newest.get(&end) {
            if usable(rq) {
                return rq;
            }
            self.remove(rq);
        }
        NIL
    }
}
