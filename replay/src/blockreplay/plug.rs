//! A task's plug list (Linux 6.1 `block/blk-mq.c`, `blk_add_rq_to_plug`, and `block/blk-merge.c`,
//! `blk_attempt_plug_merge`): requests that a task collects before it hands them over together.

use crate::block::{Bio, BioKind, Dir, Hints};
use crate::config::PlugList;
use kreplay_traces::units::Sectors;

/// A list of so many requests is released.
const MOST: usize = 32;
/// A request of this many sectors releases the list when the next one comes: 128 KiB.
const LARGE: u32 = 256;

/// Bios of a task that are contiguous, on their way to the queue as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) dev: u16,
    pub(super) dir: Dir,
    pub(super) kind: BioKind,
    /// Of its first bio.
    pub(super) hints: Hints,
    pub(super) sector: u64,
    pub(super) nr: u32,
    /// First and last of its pieces.
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl Bundle {
    pub(super) fn bio(&self, task: u32) -> Bio {
        Bio {
            dir: self.dir,
            sector: Sectors(self.sector),
            nr: self.nr,
            partition: 0,
            kind: self.kind,
            tag: self.head,
            task,
        }
    }
}

/// Which end of the newest request a bundle may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Back,
    Front,
}

/// The list.
#[derive(Clone, Debug, Default)]
pub(super) struct Plug {
    held: Vec<Bundle>,
}

impl Plug {
    /// Where `b` may join the newest request: only that one is looked at.
    pub(super) fn joins(&self, b: &Bundle, max_sectors: u32) -> Option<Join> {
        let last = self.held.last()?;
        if last.dev != b.dev || last.dir != b.dir || last.nr.saturating_add(b.nr) > max_sectors {
            None
        } else if last.sector + u64::from(last.nr) == b.sector {
            Some(Join::Back)
        } else if b.sector + u64::from(b.nr) == last.sector {
            Some(Join::Front)
        } else {
            None
        }
    }

    /// Joins `b` to the newest request; the pieces that have to be linked: (earlier, later).
    pub(super) fn join(&mut self, b: &Bundle, at: Join) -> Option<(u32, u32)> {
        let last = self.held.last_mut()?;
        last.nr += b.nr;
        Some(match at {
            Join::Back => {
                let link = (last.tail, b.head);
                last.tail = b.tail;
                link
            }
            Join::Front => {
                let link = (b.tail, last.head);
                last.head = b.head;
                last.sector = b.sector;
                link
            }
        })
    }

    /// The list has to be released before another request is added.
    pub(super) fn full(&self, kind: PlugList) -> bool {
        let telling = match kind {
            PlugList::Stack => self.held.last(),
            PlugList::Fifo => self.held.first(),
        };
        self.held.len() >= MOST || telling.is_some_and(|b| b.nr >= LARGE)
    }

    pub(super) fn push(&mut self, b: Bundle) {
        self.held.push(b);
    }

    /// Everything, in order.
    pub(super) fn release(&mut self) -> std::vec::Drain<'_, Bundle> {
        self.held.drain(..)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
