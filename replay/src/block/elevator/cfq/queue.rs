//! CFQ's queues: the requests of a process or a priority, and the service trees on which queues wait.

use super::super::super::list::List;
use super::super::super::request::NIL;
use super::super::super::{IoClass, RqId};
use super::super::rbtree::SectorTree;
use super::super::think::Think;

/// Priority levels of a class.
pub(super) const LEVELS: i64 = 8;

/// Kind of work: index of a service tree within its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Async,
    /// Synchronous, but not waited for: seeks or thinks long.
    SyncNoIdle,
    Sync,
}

pub(super) const KINDS: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];

/// Queues of a class and kind that have work, first due first.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) queues: Vec<u32>,
    pub(super) think: Think,
}

/// The synchronous requests of a process, or the asynchronous ones of a priority.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) sync: bool,
    pub(super) class: IoClass,
    pub(super) level: i64,
    pub(super) sorted: SectorTree,
    pub(super) fifo: List,
    pub(super) next: RqId,
    /// Metadata requests among them.
    pub(super) meta: u32,
    pub(super) dispatched: u32,
    pub(super) on_rr: bool,
    /// The tree where it waits.
    pub(super) tree: usize,
    pub(super) key: i64,
    pub(super) residue: i64,
    pub(super) slice_new: bool,
    pub(super) slice_start: u64,
    pub(super) slice_end: u64,
    pub(super) slice_dispatch: u32,
    pub(super) wait_request: bool,
    pub(super) must_dispatch: bool,
    pub(super) fifo_checked: bool,
    pub(super) idle_window: bool,
    pub(super) deep: bool,
    pub(super) seeks: u32,
    pub(super) last_pos: u64,
    /// Processes that use it.
    pub(super) users: u32,
    pub(super) merged_into: Option<u32>,
    pub(super) shared: bool,
    pub(super) split: bool,
}

impl Queue {
    pub(super) fn new(sync: bool, class: IoClass, level: u8) -> Self {
        Self {
            sync,
            class,
            level: if class == IoClass::Idle { LEVELS - 1 } else { i64::from(level.min(7)) },
            sorted: SectorTree::default(),
            fifo: List::new(),
            next: NIL,
            meta: 0,
            dispatched: 0,
            on_rr: false,
            tree: 0,
            key: 0,
            residue: 0,
            slice_new: false,
            slice_start: 0,
            slice_end: 0,
            slice_dispatch: 0,
            wait_request: false,
            must_dispatch: false,
            fifo_checked: false,
            idle_window: sync && class != IoClass::Idle,
            deep: false,
            seeks: 0,
            last_pos: 0,
            users: 0,
            merged_into: None,
            shared: false,
            split: false,
        }
    }

    pub(super) fn seeky(&self) -> bool {
        self.seeks.count_ones() > 4
    }

    pub(super) fn kind(&self) -> Kind {
        match (self.sync, self.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }

    pub(super) fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Note {
    pub(super) queue: u32,
    pub(super) task: u32,
    pub(super) deadline: u64,
    pub(super) queued_at: u64,
    pub(super) sync: bool,
    pub(super) meta: bool,
}

/// The idle class has one tree, behind those of the other two.
pub(super) const IDLE_TREE: usize = 6;

pub(super) fn tree_of(class: IoClass, kind: Kind) -> usize {
    match class {
        IoClass::RealTime => kind as usize,
        IoClass::BestEffort => 3 + kind as usize,
        IoClass::Idle => IDLE_TREE,
    }
}
