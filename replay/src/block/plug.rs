//! Plug lists of tasks (`blk_start_plug`, `block/blk-mq.c` and `blk-merge.c` of 6.1).
//!
//! A task holds back the requests that it makes; the next bio may join the newest of them without a look at the scheduler.
//! The list goes down when the task sleeps or says so, when it is full, or when its newest (6.13+: oldest) request is large.
//!
//! Reduced: a list per task and device instead of one per task.

use super::elevator::End;
use super::request::Requests;
use super::{Bio, RqId};
use crate::config::PlugList;

/// Requests on a list.
const MOST: usize = 32;
/// A request of 128 KiB sends the list down before the next one is added, sectors.
const LARGE: u32 = 256;

/// A task's list, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    task: u32,
    pub(crate) rqs: Vec<RqId>,
}

/// The lists of all tasks that hold something back, in the order in which they began to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plugs {
    lists: Vec<Held>,
}

impl Plugs {
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Joins a bio to the request that its task made last.
    pub(crate) fn merge(
        &self,
        rqs: &mut Requests,
        bio: &Bio,
        max_sectors: u32,
        max_segments: u16,
    ) -> Option<(RqId, End)> {
        let list = self.lists.iter().find(|l| l.task == bio.task)?;
        let &rq = list.rqs.last()?;
        let r = rqs[rq];
        if r.dir != bio.dir || r.partition != bio.partition || r.nr + bio.nr > max_sectors || r.segments >= max_segments
        {
            return None;
        }
        if r.end() == bio.sector.get() {
            rqs.attach_back(rq, *bio);
            Some((rq, End::Back))
        } else if r.sector == bio.sector.get() + u64::from(bio.nr) {
            rqs.attach_front(rq, *bio);
            Some((rq, End::Front))
        } else {
            None
        }
    }

    /// Adds a request; the list that has to go down first, if it is full.
    pub(crate) fn add(&mut self, rqs: &Requests, task: u32, rq: RqId, kind: PlugList) -> Option<Held> {
        let Some(list) = self.lists.iter_mut().find(|l| l.task == task) else {
            self.lists.push(Held { task, rqs: vec![rq] });
            return None;
        };
        let telling = match kind {
            PlugList::Stack => list.rqs.last(),
            PlugList::Fifo => list.rqs.first(),
        };
        let full = list.rqs.len() >= MOST || telling.is_some_and(|&r| rqs[r].nr >= LARGE);
        let down = full.then(|| Held { task, rqs: std::mem::take(&mut list.rqs) });
        list.rqs.push(rq);
        down
    }

    /// Takes a task's list.
    pub(crate) fn finish(&mut self, task: u32) -> Option<Held> {
        let at = self.lists.iter().position(|l| l.task == task)?;
        Some(self.lists.remove(at))
    }

    /// Takes all lists.
    pub(crate) fn take_all(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.lists)
    }
}
