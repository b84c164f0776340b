//! Ages and the lists of 2.4.5 to 2.4.9 and -ac: active, dirty (here [`Mm::inactive`]) and, by zone, clean.
//!
//! Source: mm/swap.c, mm/vmscan.c, mm/filemap.c of 2.4.5 to 2.4.9; for -ac the patches named in the variants. Pages on a clean list count as free in most tests: an
//! allocation takes them without any further work ([`Mm::reclaim_page`]).

use super::Mm;
use super::page::{List, NIL, flag};
use super::zone::{DMA, NORMAL};
use crate::config::{AgingConfig, CacheHogs, Decay, InactivePlenty, LookupRule, NewPage, Reactivation, UseRule};

impl Mm {
    /// `lru_cache_add`.
    pub(super) fn add_aged(&mut self, id: u32, rules: AgingConfig) {
        match rules.new_page {
            NewPage::Active => {
                let p = self.page_mut(id);
                p.age = if rules.swap_restarts_age { rules.start } else { p.age.max(rules.start) };
                self.active.push_head(&mut self.pages, id);
            }
            NewPage::Inactive => {
                self.page_mut(id).age = 0;
                self.inactive.push_head(&mut self.pages, id);
            }
        }
    }

    /// `age_page_up`.
    pub fn age_up(&mut self, id: u32) {
        let Some(rules) = self.aging else { return };
        let p = self.page_mut(id);
        p.age = p.age.saturating_add(rules.advance).min(rules.most);
    }

    /// `age_page_down`.
    pub fn age_down(&mut self, id: u32) {
        let Some(rules) = self.aging else { return };
        let p = self.page_mut(id);
        p.age = match rules.decay {
            Decay::Halve => p.age / 2,
            Decay::One => p.age.saturating_sub(1),
        };
        self.hot[id as usize] = 0;
    }

    /// Move a page to the head of a list.
    pub fn move_to(&mut self, id: u32, list: List) {
        self.lru_del(id);
        let zone = usize::from(self.page(id).zone);
        match list {
            List::Active => {
                self.active.push_head(&mut self.pages, id);
                self.counters.activated_pages += 1;
            }
            List::Inactive => self.inactive.push_head(&mut self.pages, id),
            List::Clean => self.clean[zone].push_head(&mut self.pages, id),
            List::None | List::AnonActive | List::AnonInactive | List::Generation => {}
        }
        self.hot[id as usize] = 0;
    }

    /// `activate_page`: an inactive page becomes active, with at least the start age.
    pub fn activate_aged(&mut self, id: u32, start: u8) {
        if matches!(self.page(id).list, List::Inactive | List::Clean) {
            self.move_to(id, List::Active);
        }
        let p = self.page_mut(id);
        p.age = p.age.max(start);
    }

    /// An inactive page goes back to the active list because it is in use, with the age that the kernel gives such pages.
    pub fn reactivate_aged(&mut self, id: u32, rules: &AgingConfig) {
        self.move_to(id, List::Active);
        let p = self.page_mut(id);
        p.age = match rules.reactivation {
            Reactivation::Keep => p.age,
            Reactivation::Start => rules.start,
            Reactivation::AtLeastStart => p.age.max(rules.start),
        };
    }

    /// Is an inactive page in use, so that it has to go back to the active list?
    #[inline]
    pub fn must_reactivate(&self, id: u32, rules: &AgingConfig) -> bool {
        let p = self.page(id);
        let held = if rules.buffers_reactivate { !p.any(flag::LOCKED) } else { !p.any(flag::BUFFER) };
        p.any(flag::REFERENCED) || (rules.aged_reactivate && p.age > 0) || (held && p.in_use())
    }

    /// `deactivate_page`: forget its age and mark; an active page that nobody else holds (-ac: any) goes to the dirty list.
    pub fn deactivate_aged(&mut self, id: u32) {
        self.clear(id, flag::REFERENCED);
        self.page_mut(id).age = 0;
        let p = self.page(id);
        let held = p.pins > 1 || p.any(flag::MAPPED | flag::SHARED_MAP);
        if p.list == List::Active && (!held || self.aging.is_some_and(|r| r.deactivate_mapped)) {
            self.move_to(id, List::Inactive);
            self.counters.deactivated_pages += 1;
        }
    }

    /// A lookup of the page cache found this page (read, write, fault, read-ahead).
    #[inline]
    pub fn looked_up(&mut self, id: u32) {
        let Some(rules) = self.aging else { return };
        match rules.lookup {
            LookupRule::Activates if matches!(self.page(id).list, List::Inactive | List::Clean) => {
                self.activate_aged(id, rules.start);
            }
            LookupRule::Marks | LookupRule::Activates => self.set(id, flag::REFERENCED),
            LookupRule::Nothing => {}
        }
    }

    /// A fault or a look into a directory found this page: `mark_page_accessed`, as far as these kernels have it.
    #[inline]
    pub fn accessed_aged(&mut self, id: u32, rules: AgingConfig) {
        self.looked_up(id);
        if rules.use_rule == UseRule::Touch {
            self.used_aged(id, rules);
        }
    }

    /// What a use of the page does after the copy (`generic_file_read`'s "use once" of 2.4.8 and 2.4.9).
    #[inline]
    pub fn used_aged(&mut self, id: u32, rules: AgingConfig) {
        let (age, list) = (self.page(id).age, self.page(id).list);
        match rules.use_rule {
            UseRule::LookupOnly => {}
            UseRule::FirstAges if age == 0 => self.first_use(id, rules.start),
            UseRule::FirstAges => {}
            UseRule::SecondActivates if list == List::Active => {}
            UseRule::SecondActivates if age > 0 => self.activate_aged(id, rules.start),
            UseRule::SecondActivates => self.first_use(id, rules.start),
            UseRule::Touch if list == List::Clean => self.activate_aged(id, rules.start),
            UseRule::Touch => self.set(id, flag::REFERENCED),
        }
    }

    fn first_use(&mut self, id: u32, start: u8) {
        self.clear(id, flag::REFERENCED);
        self.page_mut(id).age = start;
    }

    /// Free and clean frames of a zone.
    pub fn available(&self, zone: usize) -> u64 {
        self.zones.zone[zone].free + u64::from(self.clean[zone].len())
    }

    /// Free, clean and dirty-list frames of a zone.
    pub fn inactive_in(&self, zone: usize) -> u64 {
        self.available(zone) + u64::from(self.inactive.of_zone(zone))
    }

    /// `zone_inactive_plenty`: more than a third of the zone is free or inactive (or what the kernel takes for plenty).
    pub fn inactive_plenty(&self, zone: usize) -> bool {
        let size = self.zones.zone[zone].size;
        let plenty = match self.aging.map(|r| r.plenty) {
            Some(InactivePlenty::TwoFifths) => size * 2 / 5,
            Some(InactivePlenty::Third) | None => size / 3,
        };
        size > 0 && self.inactive_in(zone) > plenty
    }

    /// Pages of files in the cache, without metadata.
    fn page_cache(&self) -> u64 {
        self.cache_pages - self.swap_cache_pages - self.meta_pages
    }

    /// Does aging deactivate this active page whatever its age: a buffer page too many, or a page of a cache that is too
    /// large (`too_many_buffers`, `pagecache_too_large`, `page_mapping_notused` of -ac)?
    pub fn is_hog(&self, id: u32, rules: &AgingConfig) -> bool {
        let p = self.page(id);
        let frames: u64 = self.zones.zone.iter().map(|z| z.size).sum();
        if rules.buffers_pct > 0 && p.has(flag::META | flag::BUFFER) {
            return self.meta_pages * 100 > frames * u64::from(rules.buffers_pct);
        }
        if p.any(flag::META) || !p.has_mapping() {
            return false;
        }
        match rules.cache_hogs {
            CacheHogs::None => false,
            CacheHogs::Large => !p.any(flag::MAPPED | flag::ANON) && self.page_cache() * 2 > frames,
            CacheHogs::NotSmall if p.any(flag::ANON) => !p.any(flag::MAPPED | flag::SHARED_MAP),
            CacheHogs::NotSmall => (self.meta_pages + self.page_cache()) * 2 >= frames,
            CacheHogs::LargeFiles if p.any(flag::ANON) => false,
            CacheHogs::LargeFiles => {
                let file = self.file_of(id);
                let mapped = || self.spaces.map_any(self.pages_of_file(file));
                u64::from(self.file_pages[file as usize]) * 20 > self.page_cache() && !mapped()
            }
        }
    }

    /// `zone_free_plenty`: more than twice `high` is free or clean.
    pub fn free_plenty(&self, zone: usize) -> bool {
        self.available(zone) > 2 * self.zones.zone[zone].high
    }

    /// `freepages.min`, `.low`, `.high`: the zones' marks added up.
    pub fn free_marks(&self) -> (u64, u64, u64) {
        self.zones.zone.iter().fold((0, 0, 0), |(a, b, c), z| (a + z.min, b + z.low, c + z.high))
    }

    /// `inactive_target`: what allocations of the last minute ask for, at most a quarter of memory; or a fixed share.
    pub fn inactive_target(&self) -> u64 {
        let frames: u64 = self.zones.zone.iter().map(|z| z.size).sum();
        match self.aging.map_or(0, |r| u64::from(r.target_divisor)) {
            0 => (self.zones.pressure >> 6).min(frames / 4),
            n => frames / n,
        }
    }

    /// Free and clean frames of the machine.
    pub fn available_all(&self) -> u64 {
        self.available(DMA) + self.available(NORMAL)
    }

    /// `reclaim_page`: take the frame of the oldest clean page of a zone that is still unused. The frame is the caller's.
    pub fn reclaim_page(&mut self, zone: usize) -> bool {
        let Some(rules) = self.aging else { return false };
        self.zones.pressure += u64::from(rules.pressure_per_attempt);
        for _ in 0..self.clean[zone].len() {
            let id = self.clean[zone].tail();
            if id == NIL {
                return false;
            }
            let p = *self.page(id);
            if self.must_reactivate(id, &rules) {
                self.reactivate_aged(id, &rules);
                continue;
            }
            if p.any(flag::BUFFER | flag::DIRTY | flag::LOCKED) {
                self.move_to(id, List::Inactive);
                continue;
            }
            if p.any(flag::SWAP_CACHE) {
                self.remove_from_swap_cache(id);
                self.remove_anon(id);
            } else {
                self.remove_from_page_cache(id);
            }
            self.page_mut(id).age = rules.start;
            self.note_evicted(id);
            self.zones.pressure += u64::from(!rules.pressure_per_attempt);
            return true;
        }
        false
    }
}
