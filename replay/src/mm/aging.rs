//! Ages and the lists of 2.4.5 to 2.4.9: active, dirty (here [`Mm::inactive`]) and, by zone, clean.
//!
//! Source: mm/swap.c, mm/vmscan.c, mm/filemap.c of 2.4.5 to 2.4.9. Pages on a clean list count as free in most tests: an
//! allocation takes them without any further work ([`Mm::reclaim_page`]).

use super::Mm;
use super::page::{List, NIL, flag};
use super::zone::{DMA, NORMAL};
use crate::config::{AgingConfig, NewPage, UseRule};

impl Mm {
    /// `lru_cache_add`.
    pub(super) fn add_aged(&mut self, id: u32, rules: AgingConfig) {
        match rules.new_page {
            NewPage::Active => {
                let p = self.page_mut(id);
                p.age = p.age.max(rules.start);
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
        self.page_mut(id).age /= 2;
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
            List::None => {}
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

    /// `deactivate_page`: forget its age and mark; an active page that nobody else holds goes to the dirty list.
    pub fn deactivate_aged(&mut self, id: u32) {
        self.clear(id, flag::REFERENCED);
        self.page_mut(id).age = 0;
        if self.page(id).list == List::Active && self.page(id).pins <= 1 && !self.page(id).any(flag::MAPPED) {
            self.move_to(id, List::Inactive);
            self.counters.deactivated_pages += 1;
        }
    }

    /// A lookup of the page cache found this page (read, write, fault, read-ahead): marks it referenced on these kernels.
    #[inline]
    pub fn looked_up(&mut self, id: u32) {
        if self.aging.is_some() {
            self.set(id, flag::REFERENCED);
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

    /// `zone_inactive_plenty`: more than a third of the zone is free or inactive.
    pub fn inactive_plenty(&self, zone: usize) -> bool {
        self.zones.zone[zone].size > 0 && self.inactive_in(zone) > self.zones.zone[zone].size / 3
    }

    /// `zone_free_plenty`: more than twice `high` is free or clean.
    pub fn free_plenty(&self, zone: usize) -> bool {
        self.available(zone) > 2 * self.zones.zone[zone].high
    }

    /// `freepages.min`, `.low`, `.high`: the zones' marks added up.
    pub fn free_marks(&self) -> (u64, u64, u64) {
        self.zones.zone.iter().fold((0, 0, 0), |(a, b, c), z| (a + z.min, b + z.low, c + z.high))
    }

    /// `inactive_target`: what allocations of the last minute ask for, at most a quarter of memory.
    pub fn inactive_target(&self) -> u64 {
        let frames: u64 = self.zones.zone.iter().map(|z| z.size).sum();
        (self.zones.pressure >> 6).min(frames / 4)
    }

    /// Free and clean frames of the machine.
    pub fn available_all(&self) -> u64 {
        self.available(DMA) + self.available(NORMAL)
    }

    /// `reclaim_page`: take the frame of the oldest clean page of a zone that is still unused. The frame is the caller's.
    pub fn reclaim_page(&mut self, zone: usize) -> bool {
        let start = self.aging.map_or(2, |r| r.start);
        for _ in 0..self.clean[zone].len() {
            let id = self.clean[zone].tail();
            if id == NIL {
                return false;
            }
            let p = *self.page(id);
            if p.any(flag::REFERENCED) || (!p.any(flag::BUFFER) && p.in_use()) {
                self.move_to(id, List::Active);
                self.page_mut(id).age = start;
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
            self.page_mut(id).age = start;
            self.counters.evicted_pages += 1;
            self.zones.pressure += 1;
            return true;
        }
        false
    }
}
