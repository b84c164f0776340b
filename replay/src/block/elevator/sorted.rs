//! Requests in order of their first sector.
//!
//! A sorted vector, not a tree: schedulers hold a few hundred requests at most, so that moving 16-byte entries costs
//! less than following pointers, and nothing is allocated once it has grown.

use super::super::RqId;
use super::super::request::{NIL, Requests};

/// Requests by first sector; equal ones in order of insertion.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    entries: Vec<(u64, RqId)>,
}

impl Sorted {
    pub(super) fn insert(&mut self, sector: u64, rq: RqId) {
        let at = self.entries.partition_point(|e| e.0 <= sector);
        self.entries.insert(at, (sector, rq));
    }

    fn index(&self, sector: u64, rq: RqId) -> Option<usize> {
        let first = self.entries.partition_point(|e| e.0 < sector);
        self.entries[first..].iter().take_while(|e| e.0 == sector).position(|e| e.1 == rq).map(|k| first + k)
    }

    /// Removes a request that was inserted under `sector`.
    pub(super) fn remove(&mut self, sector: u64, rq: RqId) {
        if let Some(at) = self.index(sector, rq) {
            self.entries.remove(at);
        }
    }

    /// The first request at exactly this sector.
    pub(super) fn at(&self, sector: u64) -> Option<RqId> {
        let first = self.entries.partition_point(|e| e.0 < sector);
        self.entries.get(first).filter(|e| e.0 == sector).map(|e| e.1)
    }

    /// The request behind `rq`, `NIL` at the end.
    pub(super) fn next(&self, rqs: &Requests, rq: RqId) -> RqId {
        self.index(rqs[rq].sector, rq).and_then(|at| self.entries.get(at + 1)).map_or(NIL, |e| e.1)
    }

    /// The request before `rq`, `NIL` at the start.
    pub(super) fn prev(&self, rqs: &Requests, rq: RqId) -> RqId {
        match self.index(rqs[rq].sector, rq) {
            Some(at) if at > 0 => self.entries[at - 1].1,
            _ => NIL,
        }
    }

    /// The first request at or behind `sector`, `NIL` if there is none.
    pub(super) fn from(&self, sector: u64) -> RqId {
        let at = self.entries.partition_point(|e| e.0 < sector);
        self.entries.get(at).map_or(NIL, |e| e.1)
    }
}
