//! An elevator that starves the oldest request, to show that the property tests catch one.

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::{Context, Elevator, Spot, Verdict};

/// Serves the newest request first.
#[derive(Clone, Debug)]
pub(crate) struct NewestFirst {
    list: List,
}

impl NewestFirst {
    pub(crate) const fn new() -> Self {
        Self { list: List::new() }
    }
}

impl Elevator for NewestFirst {
    fn offer(&mut self, _: &mut Requests, _: &Bio, _: &Context) -> Verdict {
        Verdict::Insert(Spot::Tail)
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, _: &Context) -> bool {
        self.list.push_back(rqs, rq);
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, _: &Context) -> Option<RqId> {
        let rq = self.list.tail;
        (rq != NIL).then(|| {
            self.list.remove(rqs, rq);
            rq
        })
    }

    fn complete(&mut self, _: &mut Requests, _: RqId, _: &Context) {}

    fn len(&self) -> usize {
        self.list.len()
    }

    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.list.position(rqs, rq)
    }
}
