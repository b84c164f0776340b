//! Frames in the order of a hand that goes round all of memory: 2.2.
//!
//! Source: mm/filemap.c (`shrink_mmap`) and mm/page_alloc.c of 2.2.20. There are no lists of pages: reclaim walks over the
//! array of frames, and what lies in a frame decides. Data of files lie twice in memory: what was read in pages of the page
//! cache, what was written in buffers of their own (here a *twin* of the page, see [`Mm::buffer_of`]). A frame's number is
//! that of the frame freed last, as the kernel's free lists would mostly have it; coalescing is not modelled.

use super::Mm;
use super::page::{NIL, flag};
use crate::config::ClockConfig;

/// All frames, what lies in them, and the hand.
#[derive(Clone, Debug)]
pub struct Clock {
    owner: Vec<u32>,
    unused: Vec<u32>,
    hand: usize,
    rules: ClockConfig,
    /// `freepages.min`, `.low`, `.high` of the whole machine.
    pub marks: (u64, u64, u64),
}

impl Clock {
    /// An empty machine of so many frames, of which the first belong to the kernel; `mask` is the lowest mark.
    pub fn new(frames: u64, kernel: u64, mask: u64, rules: ClockConfig) -> Self {
        Self {
            owner: vec![NIL; frames as usize],
            unused: (kernel as u32..frames as u32).rev().collect(),
            hand: 0,
            rules,
            marks: (mask, 2 * mask, 3 * mask),
        }
    }

    /// Frames of the machine.
    pub fn frames(&self) -> u32 {
        self.owner.len() as u32
    }

    /// Move the hand on and return the page under it, [`NIL`] where there is none.
    pub fn advance(&mut self) -> u32 {
        self.hand = (self.hand + 1) % self.owner.len();
        self.owner[self.hand]
    }

    /// Frames with a page.
    pub fn owned(&self) -> u64 {
        self.owner.iter().filter(|o| **o != NIL).count() as u64
    }
}

impl Mm {
    /// The page whose frame holds what is written to `id`: its twin in the buffer cache where that is apart from the page
    /// cache, else the page itself.
    #[inline]
    pub fn buffer_of(&self, id: u32) -> u32 {
        if self.twins > 0 && id < self.twins && !self.page(id).any(flag::META | flag::ANON) {
            id + self.twins
        } else {
            id
        }
    }

    /// The page of the trace that a page or a twin stands for.
    #[inline]
    pub fn base(&self, id: u32) -> u32 {
        if self.twins > 0 && id >= self.twins { id - self.twins } else { id }
    }

    /// A buffer's twin?
    #[inline]
    pub fn is_twin(&self, id: u32) -> bool {
        self.twins > 0 && id >= self.twins
    }

    /// A page got a frame: the one freed last. (Pages are on no list here, so the list's link can hold its number.)
    pub(super) fn clock_add(&mut self, id: u32) {
        if let Some(clock) = &mut self.clock {
            let Some(frame) = clock.unused.pop() else { return };
            clock.owner[frame as usize] = id;
            self.pages[id as usize].next = frame;
        }
    }

    /// A page lost its frame.
    pub(super) fn clock_remove(&mut self, id: u32) {
        if let Some(clock) = &mut self.clock {
            let frame = std::mem::replace(&mut self.pages[id as usize].next, NIL);
            if frame != NIL {
                clock.owner[frame as usize] = NIL;
                clock.unused.push(frame);
            }
        }
    }

    /// `buffer_under_min`: the buffer cache is so small that reclaim leaves it alone.
    pub fn buffers_under_min(&self) -> bool {
        self.clock
            .as_ref()
            .is_some_and(|c| self.meta_pages * 100 < u64::from(c.frames()) * u64::from(c.rules.buffer_min_pct))
    }

    /// `pgcache_under_min`: the same of the page cache, which contains the swap cache.
    pub fn page_cache_under_min(&self) -> bool {
        let pages = self.cache_pages - self.meta_pages;
        self.clock.as_ref().is_some_and(|c| pages * 100 < u64::from(c.frames()) * u64::from(c.rules.cache_min_pct))
    }
}
