//! A doubly linked list of requests, through the links inside them.

use super::RqId;
use super::request::{NIL, Requests};

/// A list; the head is served next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: RqId,
    pub(crate) tail: RqId,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    pub(crate) const fn new() -> Self {
        Self { head: NIL, tail: NIL, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_back(&mut self, rqs: &mut Requests, rq: RqId) {
        rqs[rq].prev = self.tail;
        rqs[rq].next = NIL;
        if self.tail == NIL {
            self.head = rq;
        } else {
            rqs[self.tail].next = rq;
        }
        self.tail = rq;
        self.len += 1;
    }

    /// Behind `at`; `NIL` = at the head.
    pub(crate) fn insert_after(&mut self, rqs: &mut Requests, at: RqId, rq: RqId) {
        let next = if at == NIL { self.head } else { rqs[at].next };
        if next == NIL {
            self.push_back(rqs, rq);
            return;
        }
        rqs[rq].prev = at;
        rqs[rq].next = next;
        rqs[next].prev = rq;
        if at == NIL {
            self.head = rq;
        } else {
            rqs[at].next = rq;
        }
        self.len += 1;
    }

    /// In front of `at`.
    pub(crate) fn insert_before(&mut self, rqs: &mut Requests, at: RqId, rq: RqId) {
        let prev = rqs[at].prev;
        self.insert_after(rqs, prev, rq);
    }

    pub(crate) fn remove(&mut self, rqs: &mut Requests, rq: RqId) {
        let (prev, next) = (rqs[rq].prev, rqs[rq].next);
        if prev == NIL {
            self.head = next;
        } else {
            rqs[prev].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            rqs[next].prev = prev;
        }
        self.len -= 1;
    }

    /// Head to tail.
    pub(crate) fn iter<'a>(&self, rqs: &'a Requests) -> impl Iterator<Item = RqId> + 'a {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let rq = at;
            (rq != NIL).then(|| {
                at = rqs[rq].next;
                rq
            })
        })
    }

    /// Everything behind `at` loses `n` of its patience.
    pub(crate) fn charge_behind(&self, rqs: &mut Requests, at: RqId, n: i32) {
        let mut r = rqs[at].next;
        while r != NIL {
            let q = &mut rqs[r];
            q.seq = q.seq.wrapping_sub(n);
            r = q.next;
        }
    }
}
