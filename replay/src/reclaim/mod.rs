//! Page replacement policies.
//!
//! A policy never blocks: [`step`] runs until it needs something that takes time and says what; the simulator does it and
//! calls again. All that a reclaim run has to remember stands in its [`Cursor`], which lives with the task, so two tasks
//! can be inside reclaim at once (they are, on real kernels). A new policy is one file and one arm in [`step`].

pub mod aging;
#[cfg(test)]
mod aging_tests;
mod buffers;
mod clock;
pub mod generations;
pub(crate) mod twolist;
pub mod workingset;

use crate::config::{ReclaimConfig, ReclaimPolicy};
use crate::mm::Mm;
use crate::mm::zone::AllocFlags;
use crate::writeback::DirtyLimits;

/// What a policy needs before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: the run is over, with or without success.
    Done(bool),
    /// Write this locked page out (`writepage`); the page is pinned.
    WritePage(u32),
    /// Write this page's buffer, begun already; the page is locked and pinned.
    WriteBuffer(u32),
    /// Wait until this page is unlocked; it is pinned.
    WaitPage(u32),
    /// Wait until this page's buffer is unlocked; the page is locked and pinned.
    WaitBuffer(u32),
    /// Write inodes that are dirty and unused.
    WriteUnusedInodes,
    /// Every pass failed: apply the rule for killing, then ask again.
    OutOfMemory,
    /// Only dirty pages that nobody writes were met: wake the flusher, sleep until some are written or for the longest wait.
    Throttle,
}

/// How a pass goes on after one page of the inactive list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The pass goes on.
    On,
    /// The pass is over: the list is empty, or it had all it wanted, or all it may look at.
    Over,
    /// Something that takes time has to be done first.
    Needs(Need),
}

/// Where a policy stands within a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// A new priority begins.
    #[default]
    Pass,
    /// Scanning; no page in hand.
    Scan,
    /// The page in hand was written by `writepage`.
    Written,
    /// The page in hand was waited for.
    Waited,
    /// The buffer in hand was submitted.
    BufferWritten,
    /// The buffer in hand was waited for.
    BufferWaited,
    /// The buffer in hand was submitted, and waited for.
    BufferWrittenOut,
    /// Dirty unused inodes were written.
    InodesWritten,
    /// All priorities failed.
    Failed,
}

/// One reclaim run (`try_to_free_pages`), plain data.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Class of zones to free frames in.
    pub class: usize,
    /// What the run may do.
    pub flags: AllocFlags,
    /// Where it stands.
    pub phase: Phase,
    /// Priority, from the gentlest down to 1.
    pub priority: u32,
    /// Frames still wanted.
    pub want: i64,
    /// Steps left in this pass.
    pub scan_left: i64,
    /// Mapped pages that this pass may still meet.
    pub mapped_left: i64,
    /// Page in hand.
    pub page: u32,
    /// The task keeps the first frame that it frees for itself.
    pub keeps_first: bool,
    /// That frame's zone.
    pub kept: Option<u8>,
    /// Unmapping after a pass found all the pages it wanted: the run counts as a success.
    pub unmapped: bool,
    /// Task whose own address space is unmapped first (aging kernels); kswapd has none.
    pub task: Option<u32>,
    /// Rounds so far (aging kernels).
    pub round: u32,
    /// What is short (aging kernels).
    pub short: aging::Short,
    /// The second pass over the dirty list is under way, and so many of its buffers may still be written unwaited.
    pub second_pass: Option<u32>,
    /// Once these are used up the second pass waits: it is a task's own, and the first had cleaned nothing.
    pub waits: bool,
    /// Unused inodes that are still to go (aging kernels).
    pub inodes_wanted: u32,
    /// Pages made clean or inactive.
    pub cleaned: u32,
    /// Pages that laundering could not clean (aging kernels).
    pub failed: u32,
    /// Passes begun (`reclaim.passes.count`), and scans of the pass in hand.
    pub passes: u32,
    /// ... scans.
    pub scans: u32,
    /// Unmapping failed in this run and is not tried again.
    pub unmap_failed: bool,
    /// Pages looked at since the simulator last charged for it.
    pub scanned: u32,
    /// Shares of the lists still to be scanned (refault-aware lists).
    pub run: workingset::Run,
    /// Batch in hand (generations).
    pub generation_batch: generations::Batch,
}

impl Cursor {
    /// A run that begins.
    pub fn new(cfg: &ReclaimConfig, class: usize, flags: AllocFlags, keeps_first: bool) -> Self {
        Self {
            class,
            flags,
            phase: Phase::Pass,
            priority: cfg.def_priority,
            want: i64::from(cfg.cluster),
            scan_left: 0,
            mapped_left: 0,
            page: 0,
            keeps_first,
            kept: None,
            unmapped: false,
            task: None,
            round: 0,
            short: aging::Short::default(),
            second_pass: None,
            waits: false,
            inodes_wanted: 0,
            cleaned: 0,
            failed: 0,
            passes: 0,
            scans: 0,
            unmap_failed: cfg.passes.unmap_fails_once && !flags.io,
            scanned: 0,
            run: workingset::Run::default(),
            generation_batch: generations::Batch::default(),
        }
    }

    /// The frame of page `id` was freed: keep it or give it back. Returns false when nothing more is wanted.
    fn freed(&mut self, mm: &mut Mm, id: u32, zone: usize) -> bool {
        if self.keeps_first && self.kept.is_none() {
            self.kept = Some(zone as u8);
        } else {
            mm.zones.give(zone);
        }
        mm.note_evicted(id);
        self.want -= 1;
        self.want > 0
    }
}

/// Advance a reclaim run.
pub fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Need {
    match cfg.policy {
        ReclaimPolicy::TwoList => twolist::step(cfg, mm, cur, limits),
        ReclaimPolicy::Aging => aging::step(cfg, mm, cur),
        ReclaimPolicy::Clock => clock::step(cfg, mm, cur, limits),
        ReclaimPolicy::Workingset => workingset::step(cfg, mm, cur),
        ReclaimPolicy::Generations => generations::step(cfg, mm, cur),
    }
}
