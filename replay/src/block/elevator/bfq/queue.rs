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
    /// The process whose synchronous requests it holds, if it is one.
    pub(super) owner: Option<u32>,
    /// Processes whose synchronous requests come here.
    pub(super) processes: u32,
    /// The queue that its processes go over to, each with its next request.
    pub(super) joins: Option<u32>,
    /// Processes were merged into it (`coop`); and it seeks too much for that (`split_coop`).
    pub(super) shared: bool,
    pub(super) to_split: bool,
    /// When it was made, ns.
    pub(super) created: u64,
    /// When it was parted from a shared queue.
    pub(super) parted: Option<u64>,
    pub(super) class: IoClass,
    pub(super) level: u8,
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
    pub(super) bound: Bound,
    pub(super) raise: Raise,
    pub(super) just_created: bool,
    pub(super) counted: bool,
    pub(super) learnt: Learnt,
}

/// Whether a process waits for its I/O for at least four fifths of its time (`bfq_update_io_intensity`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    since: u64,
    idle: u64,
    pub(super) io: bool,
}

impl Bound {
    /// Times are halved once they span so much, ns.
    const SPAN: u64 = 200_000_000;

    pub(super) fn since(now: u64) -> Self {
        Self { since: now, idle: 0, io: true }
    }

    /// A request comes to a queue that has had none, queued or at the device, for `idle`. `first`: it is its first one.
    pub(super) fn arrival(&mut self, now: u64, idle: u64, first: bool) {
        self.idle += idle;
        if first {
            return;
        }
        let total = now.saturating_sub(self.since);
        self.io = self.idle * 5 <= total;
        if total > Self::SPAN {
            self.since = now - total / 2;
            self.idle /= 2;
        }
    }
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
