//! What refault detection and balanced write-out keep beside the page records.
//!
//! Source: mm/workingset.c, mm/swap.c, include/linux/mm_inline.h of 6.1 to 6.18. One lruvec: the tasks of the trace are one
//! memory cgroup. File pages are on [`Mm::active`] and [`Mm::inactive`], anonymous ones on the lists here.

use super::Mm;
use super::generations::{Generations, Place};
use super::lru::Lru;
use super::page::{List, flag};
use kreplay_traces::units::Nanos;

/// Anonymous pages, as an index into pairs; file pages are 1.
pub const ANON: usize = 0;
/// File pages.
pub const FILE: usize = 1;
/// No shadow entry.
const NONE: u64 = u64::MAX;

/// Lists, clock and costs of one lruvec, and dirty pages by file.
#[derive(Clone, Debug)]
pub struct Workingset {
    /// Inactive anonymous pages.
    pub anon_inactive: Lru,
    /// Active anonymous pages.
    pub anon_active: Lru,
    /// Shadow entries by page id: eviction clock x 2 + workingset bit.
    shadows: Vec<u64>,
    /// `nonresident_age`.
    age: u64,
    /// `anon_cost`, `file_cost`.
    pub cost: [u64; 2],
    /// Refaults that were activated, and their number at the end of the last reclaim run.
    pub activations: [u64; 2],
    /// ... at the end of the last reclaim run.
    pub snapshot: [u64; 2],
    /// Pages that came back, anonymous and file (`workingset_refault_*`).
    pub refaults: [u64; 2],
    /// Refaults of pages that had been active.
    pub restored: [u64; 2],
    /// Pages looked at by reclaim at the ends of their lists, and freed.
    pub scanned: [u64; 2],
    /// ... freed.
    pub stolen: [u64; 2],
    /// The same (looked at, freed) by who reclaimed: kswapd, tasks; not under a limit.
    pub reclaimed_by: [(u64, u64); 2],
    /// Swap space is there.
    pub swap: bool,
    /// Generations instead of active and inactive lists.
    pub generations: Option<Box<Generations>>,
    /// Dirty file pages by file, and when each file became dirty.
    pub dirty: Vec<(u32, Nanos)>,
    /// Pages under write-out.
    pub writeback: u64,
    /// Pages that became dirty, and pages whose write-out ended, since the beginning.
    pub dirtied: u64,
    /// ... whose write-out ended.
    pub written: u64,
}

impl Workingset {
    /// Nothing cached, nothing evicted.
    pub fn new(pages: usize, files: usize, swap: bool) -> Self {
        Self {
            anon_inactive: Lru::new(List::AnonInactive),
            anon_active: Lru::new(List::AnonActive),
            shadows: vec![NONE; pages],
            age: 0,
            cost: [0; 2],
            activations: [0; 2],
            snapshot: [0; 2],
            refaults: [0; 2],
            restored: [0; 2],
            scanned: [0; 2],
            stolen: [0; 2],
            reclaimed_by: [(0, 0); 2],
            swap,
            generations: None,
            dirty: vec![(0, Nanos::ZERO); files],
            writeback: 0,
            dirtied: 0,
            written: 0,
        }
    }

    /// A page moved to the active list, or was put back on it by reclaim.
    pub fn aged(&mut self) {
        self.age += 1;
    }
}

/// `inactive_is_low`: the inactive list is short against the active one.
pub fn inactive_is_low(inactive: u64, active: u64) -> bool {
    let gb = (inactive + active) >> 18;
    let ratio = if gb > 0 { (10 * gb).isqrt() } else { 1 };
    inactive * ratio < active
}

impl Mm {
    /// Lengths of the lists: inactive and active anonymous, inactive and active file.
    pub fn list_sizes(&self) -> [u64; 4] {
        if let Some(g) = self.ws.as_ref().and_then(|w| w.generations.as_deref()) {
            let ((aa, ai), (fa, fi)) = (g.sizes(ANON), g.sizes(FILE));
            return [ai, aa, fi, fa];
        }
        let (ai, aa) = self.ws.as_ref().map_or((0, 0), |w| (w.anon_inactive.len(), w.anon_active.len()));
        [ai, aa, self.inactive.len(), self.active.len()].map(u64::from)
    }

    /// `lru_note_cost`.
    pub fn note_cost(&mut self, file: bool, io: u64, rotated: u64) {
        let total: u64 = self.list_sizes().iter().sum();
        let Some(ws) = &mut self.ws else { return };
        ws.cost[usize::from(file)] += 32 * io + rotated;
        if ws.cost[ANON] + ws.cost[FILE] > total / 4 {
            ws.cost = ws.cost.map(|c| c / 2);
        }
    }

    /// The page leaves memory: its shadow entry remembers the clock (`workingset_eviction`).
    pub fn leave_shadow(&mut self, id: u32) {
        let kind = if self.page(id).any(flag::ANON) { ANON } else { FILE };
        if let Some(ws) = &mut self.ws {
            ws.stolen[kind] += 1;
        }
        if let Some(shadow) = self.generation_shadow(id) {
            if let Some(ws) = &mut self.ws {
                ws.shadows[id as usize] = shadow;
            }
            return;
        }
        let was_active = u64::from(self.page(id).any(flag::WORKINGSET));
        let Some(ws) = &mut self.ws else { return };
        ws.shadows[id as usize] = ws.age << 1 | was_active;
        ws.age += 1;
    }

    /// The page's contents are gone for good: nothing to remember.
    pub fn forget_shadow(&mut self, id: u32) {
        if let Some(ws) = &mut self.ws {
            ws.shadows[id as usize] = NONE;
        }
    }

    /// A page that is new in memory and on its inactive list: if it left not long ago, it goes to the active one
    /// (`workingset_refault`). `counts` is false for pages that a write brings in.
    pub fn refault(&mut self, id: u32, counts: bool) {
        let [anon_inactive, anon_active, inactive, active] = self.list_sizes();
        let file = !self.page(id).any(flag::ANON);
        let Some(ws) = &mut self.ws else { return };
        let shadow = std::mem::replace(&mut ws.shadows[id as usize], NONE);
        if shadow == NONE || !counts {
            return;
        }
        let which = usize::from(file);
        ws.refaults[which] += 1;
        if ws.generations.is_some() {
            if self.generation_refault(id, shadow) == Some(true)
                && let Some(ws) = &mut self.ws
            {
                ws.activations[which] += 1;
                ws.restored[which] += 1;
            }
            return;
        }
        let mut room = if file { active } else { active + inactive };
        if ws.swap {
            room += anon_active + if file { anon_inactive } else { 0 };
        }
        if ws.age - (shadow >> 1) > room {
            return;
        }
        ws.age += 1;
        ws.activations[which] += 1;
        let restored = shadow & 1 == 1;
        self.move_to_active(id);
        if restored {
            if let Some(ws) = &mut self.ws {
                ws.restored[which] += 1;
            }
            self.set(id, flag::WORKINGSET);
            self.note_cost(file, 1, 0);
        }
    }

    /// Put an inactive page on the active list of its kind, or an active one at that list's head.
    pub fn move_to_active(&mut self, id: u32) {
        if self.regenerate(id, Place::Youngest).is_some() {
            self.hot[id as usize] = 0;
            return;
        }
        self.lru_del(id);
        match &mut self.ws {
            Some(ws) if self.pages[id as usize].any(flag::ANON) => ws.anon_active.push_head(&mut self.pages, id),
            _ => self.active.push_head(&mut self.pages, id),
        }
        self.hot[id as usize] = 0;
    }

    /// Put a page on the inactive list of its kind: at the head, or where the next scan begins.
    pub fn move_to_inactive(&mut self, id: u32, tail: bool) {
        let place = if tail { Place::OldestTail } else { Place::Second { tail: false } };
        if self.regenerate(id, place).is_some() {
            self.hot[id as usize] = 0;
            return;
        }
        self.lru_del(id);
        let list = match &mut self.ws {
            Some(ws) if self.pages[id as usize].any(flag::ANON) => &mut ws.anon_inactive,
            _ => &mut self.inactive,
        };
        if tail {
            list.push_tail(&mut self.pages, id);
        } else {
            list.push_head(&mut self.pages, id);
        }
        self.hot[id as usize] = 0;
    }

    /// Dirty file pages, not under write-out.
    pub fn dirty_pages(&self) -> u64 {
        u64::from(self.bufs.len(super::buffer::BufList::Dirty))
    }

    /// Frames charged to the limit of the trace's tasks: cache, anonymous memory and slab.
    pub fn charged(&self) -> u64 {
        self.cache_pages - self.swap_cache_pages - self.uncharged_pages + self.anon_pages + self.slab_frames()
    }

    /// A cache page that others use as well: it is on no list, so it stays, and is charged to them.
    pub fn keep_uncharged(&mut self, id: u32) {
        self.lru_del(id);
        self.page_mut(id).pins += 1;
        self.uncharged_pages += 1;
    }

    /// A file page became dirty that was clean.
    pub(super) fn note_dirtied(&mut self, id: u32) {
        if self.ws.is_none() {
            return;
        }
        let file = self.file_of(id) as usize;
        let now = self.now;
        if let Some(ws) = &mut self.ws {
            ws.dirtied += 1;
            let d = &mut ws.dirty[file];
            if d.0 == 0 {
                d.1 = now;
            }
            d.0 += 1;
        }
    }

    /// A dirty file page is clean: written, or cut off.
    pub(super) fn note_cleaned(&mut self, id: u32) {
        if self.ws.is_none() {
            return;
        }
        let file = self.file_of(id) as usize;
        if let Some(ws) = &mut self.ws {
            ws.dirty[file].0 -= 1;
        }
    }

    /// A page's write-out ended: back to the inactive tail if reclaim waits for it (`folio_rotate_reclaimable`).
    pub fn end_writeback(&mut self, id: u32) {
        if let Some(ws) = &mut self.ws {
            ws.writeback -= 1;
            ws.written += 1;
        }
        if self.page(id).any(flag::RECLAIM) {
            self.clear(id, flag::RECLAIM);
            if !self.page(id).any(flag::BUF_DIRTY | flag::LOCKED) && self.page(id).list != List::None {
                self.move_to_inactive(id, true);
            }
        }
    }
}
