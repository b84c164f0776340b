//! BFQ's queues: the requests of a process or a priority.

use super::super::super::list::List;
use super::super::super::{IoClass, RqId};
use super::super::rbtree::SectorTree;
use super::super::think::Think;
use super::inject::Learnt;
use super::raise::Raise;

/// Why a queue's service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    TooIdle,
    Timeout,
    Exhausted,
    NoMoreRequests,
    Preempted,
}

/// The synchronous requests of a process, or the asynchronous ones of a priority.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) sync: bool,
    /// The process that made it; of asynchronous ones the first.
    pub(super) task: u32,
    /// Several processes share it.
    pub(super) shared: bool,
    pub(super) class: IoClass,
    /// Weight without raising.
    pub(super) weight: u64,
    pub(super) sorted: SectorTree,
    pub(super) fifo: List,
    pub(super) next: RqId,
    pub(super) dispatched: u32,
    pub(super) busy: bool,
    pub(super) max_budget: u64,
    /// In service: when its time is up. Else: since when it has nothing queued or at the device.
    pub(super) timeout: Option<u64>,
    pub(super) fifo_checked: bool,
    pub(super) wait_request: bool,
    /// Its last turn ended because it had no request, and it may go on with its budget.
    pub(super) waits_in_time: bool,
    pub(super) seeks: u32,
    pub(super) last_pos: u64,
    pub(super) think: Think,
    /// Thinks less than half the idling time.
    pub(super) quick: bool,
    pub(super) raise: Raise,
    pub(super) just_created: bool,
    pub(super) counted: bool,
    pub(super) learnt: Learnt,
}

impl Queue {
    pub(super) fn seeky(&self) -> bool {
        self.seeks.count_ones() > 19
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Note {
    pub(super) queue: u32,
    pub(super) deadline: u64,
}
