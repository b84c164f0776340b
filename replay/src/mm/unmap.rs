//! Page tables as far as reclaim needs them: which tasks map which areas, and the cursor that walks over them.
//!
//! Source: mm/vmscan.c of 2.4.10 to 2.4.17 (`swap_out`, `swap_out_mm`, `try_to_swap_out`).

use super::Mm;
use super::page::{List, flag};
use super::zone::{AllocFlags, Zones};
use crate::config::{AgedUnmap, AgingConfig, ReclaimConfig, UnmapSkips};
use crate::program::{Program, Start};
use rustc_hash::FxHashMap;

/// One mapped area.
#[derive(Clone, Debug)]
pub(super) struct Vma {
    pub(super) area: u32,
    pub(super) first: u32,
    pub(super) pages: u32,
    /// Entries of its own that a fork copied, by page; elsewhere an area's entries are in the page records.
    pub(super) copied: Option<Box<[Entry]>>,
}

/// A page-table entry that a fork copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Entry {
    /// Nothing.
    None,
    /// Maps the page.
    Mapped,
    /// Holds its swap slot.
    Slot,
}

/// One task's address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    pub(super) vmas: Vec<Vma>,
    /// Where the next scan goes on: (vma, page).
    at: (usize, u32),
    /// Mapped pages, about: what is unmapped by a truncation elsewhere is not subtracted.
    pub(super) rss: u32,
    /// Mapped pages when the processes' sizes were last compared, 0 once the space was gone through (2.2's `swap_cnt`).
    count: u32,
    done: bool,
}

/// All address spaces and the round-robin cursor.
#[derive(Clone, Debug)]
pub struct AddressSpaces {
    pub(super) spaces: Vec<Space>,
    /// The spaces in their turns (the kernel's `mmlist`): a forked one comes right behind its parent's.
    ring: Vec<u32>,
    /// Whose turn it is, in the ring.
    cursor: usize,
    /// Copied entries that map a page, and that hold its slot, of pages that have any.
    pub(super) sharers: FxHashMap<u32, [u16; 2]>,
    /// Spaces with copied entries, once for each area.
    pub(super) copying: Vec<u32>,
}

impl AddressSpaces {
    /// One empty space per task.
    pub fn new(program: &Program) -> Self {
        let spaces = vec![Space::default(); program.tasks.len().max(1)];
        let first = |t: &u32| program.tasks.get(*t as usize).is_none_or(|t| !matches!(t.start, Start::Spawned));
        let ring = (0..spaces.len() as u32).filter(first).collect();
        Self { spaces, ring, cursor: 0, sharers: FxHashMap::default(), copying: Vec::new() }
    }

    /// A fork: the child's space comes right behind its parent's.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let at = self.ring.iter().position(|s| *s == parent).map_or(self.ring.len(), |i| i + 1);
        self.enter(at, child);
    }

    fn enter(&mut self, at: usize, space: u32) {
        if self.ring.contains(&space) {
            return;
        }
        self.ring.insert(at, space);
        self.cursor += usize::from(at <= self.cursor && self.ring.len() > 1);
    }

    /// A space that nobody of the program forked: the first of all, or the last.
    pub fn enter_bystander(&mut self, space: u32, first: bool) {
        self.enter(if first { 0 } else { self.ring.len() }, space);
        if first {
            self.cursor = 0;
        }
    }

    /// The space whose turn it is.
    fn in_turn(&self) -> usize {
        self.ring[self.cursor] as usize
    }

    fn next_turn(&mut self) {
        self.cursor = (self.cursor + 1) % self.ring.len();
    }

    /// Map an area.
    pub fn map(&mut self, task: u32, area: u32, first: u32, pages: u32) {
        if self.spaces[task as usize].vmas.is_empty() {
            self.enter(self.ring.len(), task);
        }
        self.spaces[task as usize].vmas.push(Vma { area, first, pages, copied: None });
    }

    /// Unmap an area: `None` if it was not mapped, else the entries that a fork had copied, if its entries were copies.
    pub fn unmap(&mut self, task: u32, area: u32) -> Option<Option<Box<[Entry]>>> {
        let s = &mut self.spaces[task as usize];
        let i = s.vmas.iter().position(|v| v.area == area)?;
        let gone = s.vmas.remove(i);
        if gone.copied.is_some()
            && let Some(k) = self.copying.iter().position(|c| *c == task)
        {
            self.copying.swap_remove(k);
        }
        s.rss = if s.vmas.is_empty() { 0 } else { s.rss.saturating_sub(gone.pages) };
        if s.at.0 > i {
            s.at.0 -= 1;
        } else if s.at.0 == i {
            s.at.1 = 0;
        }
        Some(gone.copied)
    }

    /// Some space has entries of this area that a fork copied.
    pub fn copied_anywhere(&self, area: u32) -> bool {
        self.copying.iter().any(|t| self.spaces[*t as usize].vmas.iter().any(|v| v.area == area && v.copied.is_some()))
    }

    /// A page was mapped into a task's space.
    #[inline]
    pub fn page_mapped(&mut self, task: u32) {
        self.spaces[task as usize].rss += 1;
    }

    /// Does any task map one of these pages of a file?
    pub fn map_any(&self, pages: std::ops::Range<u32>) -> bool {
        self.spaces.iter().flat_map(|s| &s.vmas).any(|v| pages.contains(&v.first))
    }

    /// Tasks that map something.
    pub fn living(&self) -> u32 {
        self.spaces.iter().filter(|s| !s.vmas.is_empty()).count() as u32
    }

    /// The space with most pages left to look at; of equals the first.
    pub fn largest(&self) -> Option<usize> {
        let sized = self.spaces.iter().enumerate().filter(|(_, s)| s.rss > 0 && s.count > 0 && !s.vmas.is_empty());
        sized.max_by_key(|(i, s)| (s.count, std::cmp::Reverse(*i))).map(|(i, _)| i)
    }

    /// All spaces are to be looked at again, largest first.
    pub fn refresh_counts(&mut self) {
        self.spaces.iter_mut().for_each(|s| s.count = s.rss);
    }

    /// Areas that a task maps.
    pub fn areas(&self, task: u32) -> Vec<u32> {
        self.spaces[task as usize].vmas.iter().map(|v| v.area).collect()
    }

    /// Pages of the areas that a task maps (`total_vm`).
    pub fn total_pages(&self, task: u32) -> u64 {
        self.spaces[task as usize].vmas.iter().map(|v| u64::from(v.pages)).sum()
    }
}

/// Where a copied entry stands: space, area within it, page.
pub(super) type Place = (usize, usize, u32);

/// What one scan of page tables did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapOut {
    /// Page-table entries looked at.
    pub looked_at: u32,
    /// The wanted number of freeable pages was unmapped.
    pub satisfied: bool,
}

impl Mm {
    /// Unmap up to `want` freeable pages of class `class`, going round the address spaces from where the last call
    /// stopped: each at most about once, or so many as `priority` allows.
    pub fn swap_out(&mut self, cfg: &ReclaimConfig, mut want: u32, priority: u32, class: usize) -> SwapOut {
        self.counters.swap_out_calls += 1;
        let n = self.spaces.ring.len();
        let mut out = SwapOut::default();
        if n == 0 {
            return out;
        }
        let living = self.spaces.spaces.iter().filter(|s| !s.vmas.is_empty()).count() as i64;
        let mut counter =
            if cfg.swap_out_all { living * i64::from(cfg.passes.unmap_rounds) } else { living / i64::from(priority) };
        loop {
            // A space that was scanned to its end begins anew when the cursor comes round, perhaps at once.
            let mut skipped = 0;
            loop {
                let now = self.spaces.in_turn();
                let s = &mut self.spaces.spaces[now];
                if !s.done && !s.vmas.is_empty() {
                    break;
                }
                (s.done, s.at) = (false, (0, 0));
                self.spaces.next_turn();
                skipped += 1;
                if skipped > n {
                    return out;
                }
            }
            self.scan_space(cfg, self.spaces.in_turn(), &mut want, class, &mut out);
            if want == 0 {
                out.satisfied = true;
                return out;
            }
            counter -= 1;
            if counter < 0 {
                return out;
            }
        }
    }

    fn scan_space(&mut self, cfg: &ReclaimConfig, space: usize, want: &mut u32, class: usize, out: &mut SwapOut) {
        let (mut v, mut page) = self.spaces.spaces[space].at;
        while let Some(&Vma { first, pages, ref copied, .. }) = self.spaces.spaces[space].vmas.get(v) {
            let copy = copied.is_some();
            while page < pages {
                if *want == 0 {
                    self.spaces.spaces[space].at = (v, page);
                    return;
                }
                if self.maps(space, v, first, page, copy) {
                    out.looked_at += 1;
                    let place = copy.then_some((space, v, page));
                    *want -= u32::from(self.try_to_swap_out(cfg, first + page, class, place));
                }
                page += 1;
            }
            (v, page) = (v + 1, 0);
        }
        let s = &mut self.spaces.spaces[space];
        (s.at, s.done) = ((0, 0), true);
    }

    /// `swap_out_process` of 2.2: from where the last call stopped, until a page was unmapped that has to be written, which
    /// is returned locked, or the space's end. Also returns the entries looked at.
    pub fn swap_out_process(&mut self, space: usize, flags: AllocFlags) -> (Option<u32>, u32) {
        let mut looked_at = 0;
        let (mut v, mut page) = self.spaces.spaces[space].at;
        while let Some(&Vma { first, pages, ref copied, .. }) = self.spaces.spaces[space].vmas.get(v) {
            let copy = copied.is_some();
            while page < pages {
                let (id, at) = (first + page, page);
                page += 1;
                if self.maps(space, v, first, at, copy) {
                    looked_at += 1;
                    let written = self.try_to_swap_out_at_once(id, flags, copy.then_some((space, v, at)));
                    if !self.maps(space, v, first, at, copy) {
                        let s = &mut self.spaces.spaces[space];
                        s.rss = s.rss.saturating_sub(1);
                    }
                    if written {
                        self.spaces.spaces[space].at = (v, page);
                        return (Some(id), looked_at);
                    }
                }
            }
            (v, page) = (v + 1, 0);
        }
        let s = &mut self.spaces.spaces[space];
        (s.at, s.count) = ((0, 0), 0);
        (None, looked_at)
    }

    /// `try_to_swap_out` of 2.2: a dirty page is written as soon as it is unmapped. True if this one is to be, locked.
    fn try_to_swap_out_at_once(&mut self, id: u32, flags: AllocFlags, copy: Option<Place>) -> bool {
        let p = *self.page(id);
        if copy.is_none() && p.any(flag::YOUNG) {
            self.clear(id, flag::YOUNG);
            self.set(id, flag::REFERENCED);
            return false;
        }
        if p.any(flag::LOCKED) {
            return false;
        }
        let clean = !p.any(flag::PTE_DIRTY | flag::DIRTY);
        if clean && !p.any(flag::ANON) && self.page_cache_under_min() {
            return false;
        }
        if !clean && !flags.io {
            return false;
        }
        if !self.unmap_entry(id, copy) || clean || !self.page(id).any(flag::PRESENT) {
            return false;
        }
        self.clear(id, flag::DIRTY);
        self.lock(id);
        true
    }

    /// `swap_out` of 2.4.5 to 2.4.9: entries of the task's own space, then of the next spaces in turn, a share of each.
    /// Returns the entries looked at.
    pub fn swap_out_aging(&mut self, rules: &AgingConfig, task: Option<u32>, priority: u32) -> u32 {
        self.counters.swap_out_calls += 1;
        let mut looked_at = 0;
        // A daemon that reclaims has no space of its own.
        let own = task.filter(|t| rules.own_space_first && (*t as usize) < self.spaces.spaces.len());
        if let Some(t) = own {
            looked_at += self.scan_share(rules, t as usize);
        }
        let living = self.spaces.spaces.iter().filter(|s| !s.vmas.is_empty()).count() as u32;
        if living == 0 {
            return looked_at;
        }
        for _ in 0..=((living * rules.spaces_64ths) >> priority) {
            while self.spaces.spaces[self.spaces.in_turn()].vmas.is_empty() {
                self.spaces.next_turn();
            }
            looked_at += self.scan_share(rules, self.spaces.in_turn());
            self.spaces.next_turn();
        }
        looked_at
    }

    /// 1/32 of a space's mapped pages, at least 8, from where its last scan stopped; its end is not passed.
    fn scan_share(&mut self, rules: &AgingConfig, space: usize) -> u32 {
        let rss = self.spaces.spaces[space].rss;
        let share = (rss >> 5).max(8.min(rss));
        let mut left = share;
        let (mut v, mut page) = self.spaces.spaces[space].at;
        while let Some(&Vma { first, pages, ref copied, .. }) = self.spaces.spaces[space].vmas.get(v) {
            let copy = copied.is_some();
            while page < pages && left > 0 {
                let id = first + page;
                if self.maps(space, v, first, page, copy) {
                    left -= 1;
                    let place = copy.then_some((space, v, page));
                    if self.try_to_unmap_aged(rules, id, place) {
                        self.spaces.spaces[space].rss = self.spaces.spaces[space].rss.saturating_sub(1);
                    }
                }
                page += 1;
            }
            if left == 0 {
                self.spaces.spaces[space].at = (v, page);
                return share;
            }
            (v, page) = (v + 1, 0);
        }
        self.spaces.spaces[space].at = (0, 0);
        share - left
    }

    /// `try_to_swap_out` of 2.4.5 to 2.4.9; true if the page was unmapped.
    fn try_to_unmap_aged(&mut self, rules: &AgingConfig, id: u32, copy: Option<Place>) -> bool {
        let p = *self.page(id);
        // A copied entry begins old, and who reads through it uses the page's own.
        let young = copy.is_none() && p.any(flag::YOUNG);
        let plenty = rules.zone_plenty && self.inactive_plenty(usize::from(p.zone));
        match rules.unmap {
            AgedUnmap::NotYoung if plenty => return false,
            AgedUnmap::NotYoung | AgedUnmap::Aged if young => {
                self.clear(id, flag::YOUNG);
                self.age_up(id);
                return false;
            }
            AgedUnmap::NotYoung => {}
            AgedUnmap::Aged => {
                if p.list != List::Active {
                    self.age_down(id);
                }
                if plenty || self.page(id).age > 0 {
                    return false;
                }
            }
            // The entry is gone before its bit is looked at.
            AgedUnmap::AgedAnyYoung if plenty || p.age > 0 => return false,
            AgedUnmap::AgedAnyYoung => {}
        }
        if p.any(flag::LOCKED) || !self.unmap_entry(id, copy) {
            return false;
        }
        if copy.is_none() {
            self.clear(id, flag::YOUNG);
        }
        if self.page(id).any(flag::PRESENT) && self.page(id).age == 0 {
            self.deactivate_aged(id);
        }
        true
    }

    /// Unmap one page if nobody used it lately; true if that made it freeable.
    fn try_to_swap_out(&mut self, cfg: &ReclaimConfig, id: u32, class: usize, copy: Option<Place>) -> bool {
        let p = *self.page(id);
        // A copied entry begins old, and who reads through it uses the page's own.
        if copy.is_none() && p.any(flag::YOUNG) {
            self.clear(id, flag::YOUNG);
            if cfg.young_accessed {
                self.mark_accessed(id);
            }
            return false;
        }
        let spared = match cfg.unmap_skips {
            UnmapSkips::None => false,
            UnmapSkips::Active => p.list == List::Active,
            UnmapSkips::ActiveOrReferenced => {
                p.list == List::Active || (p.list == List::Inactive && p.any(flag::REFERENCED))
            }
        };
        let wanted_zone = Zones::in_class(p.zone, class);
        if spared || (!wanted_zone && !cfg.unmap_foreign) || p.any(flag::LOCKED) {
            return false;
        }
        self.unmap_entry(id, copy) && !self.page(id).in_use() && wanted_zone
    }

    /// Does a page-table entry of an area map its page?
    fn maps(&self, space: usize, vma: usize, first: u32, page: u32, copy: bool) -> bool {
        if copy {
            let copied = self.spaces.spaces[space].vmas[vma].copied.as_deref();
            return copied.is_some_and(|c| c[page as usize] == Entry::Mapped);
        }
        self.page(first + page).any(flag::MAPPED)
    }

    /// Replace a page's entry: by its swap slot, which a dirty anonymous page gets here, or by nothing. False if there is no
    /// slot left.
    fn unmap_entry(&mut self, id: u32, copy: Option<Place>) -> bool {
        let p = *self.page(id);
        let dirty = p.any(flag::PTE_DIRTY | flag::DIRTY);
        if p.any(flag::ANON) && !p.any(flag::SWAP_CACHE) && dirty {
            if !self.allocate_slot(id) {
                return false;
            }
            self.add_to_swap_cache(id);
            self.clear(id, flag::REFERENCED);
            self.set(id, flag::UPTODATE);
            if p.list == List::None {
                self.lru_add(id);
            }
        }
        if dirty {
            self.set(id, flag::DIRTY);
        }
        if let Some(place) = copy {
            let cached = self.page(id).any(flag::SWAP_CACHE);
            self.set_entry(place, id, if cached { Entry::Slot } else { Entry::None });
        } else {
            self.clear(id, flag::MAPPED | flag::PTE_DIRTY);
        }
        if p.any(flag::ANON) {
            if self.page(id).any(flag::SWAP_CACHE) {
                if copy.is_none() {
                    self.set(id, flag::SWAPPED);
                }
            } else if !self.page(id).any(flag::MAPPED | flag::SHARED_MAP) {
                // Never written since it was zeroed: the frame simply goes.
                let zone = self.remove_anon(id);
                self.zones.give(zone);
            }
        }
        true
    }
}
