//! Generations of pages: the lists of the multi-generational LRU and what its feedback loop counts.
//!
//! Source: mm/vmscan.c (`lru_gen_*`, `read_ctrl_pos`, `inc_max_seq`, `inc_min_seq`), mm/workingset.c (`lru_gen_eviction`,
//! `lru_gen_refault`), include/linux/mm_inline.h (`lru_gen_add_folio`), Documentation/mm/multigen_lru.rst of 6.1 to 6.18.
//! A page's generation is the number under which it was last seen in use, modulo four; uses through descriptors do not move
//! it, they count towards its tier, the logarithm of their number. The oldest generation is evicted; pages of a tier that
//! comes back more often than pages used once are protected.
//! Reduced: a page is a page, not a folio; batches are applied at once.

use super::Mm;
use super::lru::Lru;
use super::page::{List, NIL, Page, flag};
use super::workingset::{ANON, FILE};
use crate::config::GenerationsConfig;

/// Generations that are kept at least, and at most.
pub const MIN_GENS: u64 = 2;
/// ... at most.
pub const MAX_GENS: usize = 4;
/// Tiers.
pub const TIERS: usize = 4;
/// Fewer refaults than this say nothing; pages isolated at a time (`MIN_LRU_BATCH`).
pub const BATCH: u64 = 64;
/// Most pages moved or looked at in a go (`MAX_LRU_BATCH`).
pub const LARGE_BATCH: u64 = 4096;

/// Bits of a page's flags that hold its generation, and those that count its uses through descriptors.
const GEN_SHIFT: u32 = 25;
const USES_SHIFT: u32 = 27;
/// Uses beyond this are not told apart.
const MOST_USES: u32 = 5;
const GEN_MASK: u32 = 3 << GEN_SHIFT;
const USES_MASK: u32 = 7 << USES_SHIFT;

/// Refaults and evictions of a tier, this generation's and the average of those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tier {
    refaulted: u64,
    evicted: u64,
    protected: u64,
    avg_refaulted: u64,
    avg_total: u64,
}

/// One side of a comparison: refaults, evictions, weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Refaults.
    pub refaulted: u64,
    /// Evictions.
    pub total: u64,
    /// Weight.
    pub gain: u64,
}

impl Position {
    /// `positive_ctrl_err`: `other` refaults less than this one, weights taken into account, or too little to tell.
    pub fn outdoes(self, other: Position) -> bool {
        other.refaulted < BATCH
            || other.refaulted * (self.total + BATCH) * self.gain <= (self.refaulted + 1) * other.total * other.gain
    }
}

/// Tier of a page that was used so often.
pub fn tier_of(uses: u32) -> usize {
    match uses {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        _ => 3,
    }
}

/// Generations of both kinds of pages; kinds are numbered as in [`super::workingset`].
#[derive(Clone, Debug)]
pub struct Generations {
    lists: [[Lru; MAX_GENS]; 2],
    tiers: [[Tier; TIERS]; 2],
    /// Youngest generation.
    pub max_seq: u64,
    /// Oldest generation of each kind.
    pub min_seq: [u64; 2],
    cfg: GenerationsConfig,
}

fn kind_of(p: &Page) -> usize {
    if p.any(flag::ANON) { ANON } else { FILE }
}

fn slot(seq: u64) -> usize {
    (seq % MAX_GENS as u64) as usize
}

/// Another use through a descriptor would change nothing.
pub fn is_saturated(p: &Page) -> bool {
    uses(p) >= MOST_USES
}

/// Uses of a page through descriptors.
pub fn uses(p: &Page) -> u32 {
    (p.flags & USES_MASK) >> USES_SHIFT
}

impl Generations {
    /// Empty ones.
    pub fn new(cfg: GenerationsConfig) -> Self {
        Self {
            lists: [[Lru::new(List::Generation); MAX_GENS]; 2],
            tiers: [[Tier::default(); TIERS]; 2],
            max_seq: MIN_GENS + 1,
            min_seq: [0; 2],
            cfg,
        }
    }

    /// Pages of a kind in a generation.
    pub fn len(&self, kind: usize, seq: u64) -> u64 {
        u64::from(self.lists[kind][slot(seq)].len())
    }

    /// Generations of a kind.
    pub fn count(&self, kind: usize) -> u64 {
        self.max_seq + 1 - self.min_seq[kind]
    }

    /// Pages in the youngest two generations, and in the others: what is reported as active and as inactive.
    pub fn sizes(&self, kind: usize) -> (u64, u64) {
        let of = |from: u64, to: u64| (from..=to).map(|s| self.len(kind, s)).sum();
        let young = (self.max_seq - 1).max(self.min_seq[kind]);
        let old = if young > self.min_seq[kind] { of(self.min_seq[kind], young - 1) } else { 0 };
        (of(young, self.max_seq), old)
    }

    /// A kind has more generations than must stay.
    pub fn has_cold(&self, kind: usize) -> bool {
        self.count(kind) > MIN_GENS
    }

    /// Next candidate of a kind's oldest generation, [`NIL`] if it is empty.
    pub fn oldest(&self, kind: usize) -> u32 {
        self.lists[kind][slot(self.min_seq[kind])].tail()
    }

    fn remove(&mut self, pages: &mut [Page], id: u32) {
        let p = &pages[id as usize];
        let at = ((p.flags & GEN_MASK) >> GEN_SHIFT) as usize;
        self.lists[kind_of(p)][at].remove(pages, id);
    }

    fn insert(&mut self, pages: &mut [Page], id: u32, seq: u64, tail: bool) {
        let p = &mut pages[id as usize];
        let (kind, at) = (kind_of(p), slot(seq));
        p.flags = p.flags & !GEN_MASK | (at as u32) << GEN_SHIFT;
        if tail {
            self.lists[kind][at].push_tail(pages, id);
        } else {
            self.lists[kind][at].push_head(pages, id);
        }
    }

    /// Where a page that is new in memory goes (`lru_gen_add_folio`, `lru_gen_folio_seq`).
    fn entry(&self, p: &Page) -> u64 {
        let kind = kind_of(p);
        let (min, max) = (self.min_seq[kind], self.max_seq);
        if p.any(flag::ANON) {
            // Faulted in; since the rework the youngest takes only what had been active before.
            let back = u64::from(self.cfg.reworked && !p.any(flag::WORKINGSET));
            return (max - back).max(min);
        }
        if self.cfg.reworked {
            // By what is known of it: the oldest, one less for each sign of use.
            let age = if p.any(flag::WORKINGSET) { MIN_GENS } else { MAX_GENS as u64 - 1 };
            return max.saturating_sub(age).max(min);
        }
        if self.cfg.enters_second && min + MIN_GENS < max { min + 1 } else { min }
    }

    fn position(&self, kind: usize, tier: usize, gain: u64) -> Position {
        let t = &self.tiers[kind][tier];
        let protected = if tier > 0 { t.protected } else { 0 };
        Position { refaulted: t.avg_refaulted + t.refaulted, total: t.avg_total + t.evicted + protected, gain }
    }

    /// All tiers of a kind together.
    fn sum(&self, kind: usize, gain: u64) -> Position {
        let mut sum = Position { refaulted: 0, total: 0, gain };
        for tier in 0..TIERS {
            let p = self.position(kind, tier, gain);
            (sum.refaulted, sum.total) = (sum.refaulted + p.refaulted, sum.total + p.total);
        }
        sum
    }

    /// The highest tier of a kind that is evicted (`get_tier_idx`).
    pub fn evictable_tier(&self, kind: usize) -> usize {
        let (first, others) = if self.cfg.reworked { (2, 3) } else { (1, 2) };
        let once = self.position(kind, 0, first);
        (1..TIERS).find(|t| !once.outdoes(self.position(kind, *t, others))).unwrap_or(TIERS) - 1
    }

    /// Which kind is evicted first (`get_type_to_scan`).
    pub fn first_kind(&self, swappiness: u64) -> usize {
        if swappiness == 0 {
            return FILE;
        }
        if !self.cfg.reworked {
            if self.min_seq[ANON] < self.min_seq[FILE] {
                return ANON;
            }
            if swappiness == 1 || swappiness >= 200 {
                return if swappiness == 1 { FILE } else { ANON };
            }
        }
        let (a, f) = (swappiness.min(200), 200 - swappiness.min(200));
        let file = if self.cfg.reworked {
            self.sum(ANON, a).outdoes(self.sum(FILE, f))
        } else {
            self.position(ANON, 0, a).outdoes(self.position(FILE, 0, f))
        };
        if file { FILE } else { ANON }
    }

    /// Is another generation to be begun before pages are evicted (`should_run_aging`)? Else pages to look at in full.
    pub fn to_scan(&self, anon: bool, first_priority: bool) -> Option<u64> {
        let first = if anon { ANON } else { FILE };
        let oldest = self.min_seq[first];
        if oldest + MIN_GENS > self.max_seq {
            return None;
        }
        let (mut total, mut young, mut old) = (0, 0, 0);
        for kind in first..=FILE {
            for seq in self.min_seq[kind]..=self.max_seq {
                let n = self.len(kind, seq);
                total += n;
                young += if seq == self.max_seq { n } else { 0 };
                old += if seq + MIN_GENS == self.max_seq { n } else { 0 };
            }
        }
        if oldest + MIN_GENS < self.max_seq || first_priority {
            return Some(total);
        }
        let uneven = young * MIN_GENS > total || old * (MIN_GENS + 2) < total;
        (!self.cfg.reworked && !uneven).then_some(total)
    }

    /// The oldest generation of a kind is over: its figures become part of the averages (`reset_ctrl_pos`).
    fn carry_over(&mut self, kind: usize) {
        for (i, t) in self.tiers[kind].iter_mut().enumerate() {
            let protected = if i > 0 { t.protected } else { 0 };
            t.avg_refaulted = u64::midpoint(t.avg_refaulted, t.refaulted);
            t.avg_total = u64::midpoint(t.avg_total, t.evicted + protected);
            (t.refaulted, t.evicted, t.protected) = (0, 0, 0);
        }
    }

    /// Leave empty oldest generations behind; files' may not be older than anonymous ones' (`try_to_inc_min_seq`).
    pub fn advance_oldest(&mut self, anon: bool) {
        let mut min = self.min_seq;
        for kind in [ANON, FILE].into_iter().skip(usize::from(!anon)) {
            while min[kind] + MIN_GENS <= self.max_seq && self.len(kind, min[kind]) == 0 {
                min[kind] += 1;
            }
        }
        if anon {
            min[ANON] = min[ANON].min(min[FILE]).max(self.min_seq[ANON]);
            min[FILE] = min[FILE].min(min[ANON].max(self.min_seq[FILE])).max(min[ANON]);
        }
        for kind in [ANON, FILE] {
            if min[kind] > self.min_seq[kind] {
                self.carry_over(kind);
                self.min_seq[kind] = min[kind];
            }
        }
    }

    /// Begin a generation (`inc_max_seq`): a kind that has four gives its oldest pages to the next. False if that is not
    /// done in one go.
    fn begin(&mut self, pages: &mut [Page]) -> bool {
        for kind in [ANON, FILE] {
            if self.count(kind) < MAX_GENS as u64 {
                continue;
            }
            let (min, mut left) = (self.min_seq[kind], LARGE_BATCH);
            loop {
                let id = self.oldest(kind);
                if id == NIL {
                    break;
                }
                if left == 0 {
                    return false;
                }
                left -= 1;
                self.remove(pages, id);
                self.insert(pages, id, min + 1, false);
            }
            self.carry_over(kind);
            self.min_seq[kind] += 1;
        }
        self.max_seq += 1;
        true
    }

    /// Every list of the generations that exist, for audits.
    #[cfg(test)]
    fn pages_listed(&self) -> u64 {
        (0..2).flat_map(|k| self.lists[k].iter()).map(|l| u64::from(l.len())).sum()
    }
}

impl Mm {
    /// The generations, where pages have them.
    pub fn generations(&mut self) -> Option<&mut Generations> {
        self.ws.as_mut()?.generations.as_deref_mut()
    }

    /// A new page; true if pages have generations.
    pub(super) fn add_to_generation(&mut self, id: u32) -> bool {
        let Some(g) = self.ws.as_mut().and_then(|w| w.generations.as_deref_mut()) else { return false };
        let p = &mut self.pages[id as usize];
        p.flags &= !USES_MASK;
        let seq = g.entry(p);
        g.insert(&mut self.pages, id, seq, false);
        true
    }

    pub(super) fn remove_from_generation(&mut self, id: u32) {
        if let Some(g) = self.ws.as_mut().and_then(|w| w.generations.as_deref_mut()) {
            g.remove(&mut self.pages, id);
        }
    }

    /// A use through a descriptor (`folio_inc_refs`); true if pages have generations.
    pub(super) fn use_in_generation(&mut self, id: u32) -> bool {
        if self.ws.as_ref().is_none_or(|w| w.generations.is_none()) {
            return false;
        }
        let p = &mut self.pages[id as usize];
        let n = (uses(p) + 1).min(MOST_USES);
        p.flags = p.flags & !USES_MASK | n << USES_SHIFT | flag::REFERENCED;
        if n == if self.generations().is_some_and(|g| g.cfg.reworked) { MOST_USES } else { 2 } {
            self.set(id, flag::WORKINGSET);
        }
        true
    }

    /// Move a page to the youngest generation, to the tail of the oldest one, or one generation on. `None`: pages have no
    /// generations.
    pub fn regenerate(&mut self, id: u32, to: Place) -> Option<()> {
        let g = self.ws.as_mut()?.generations.as_deref_mut()?;
        let p = self.pages[id as usize];
        let (kind, listed) = (kind_of(&p), p.list == List::Generation);
        if listed {
            g.remove(&mut self.pages, id);
        }
        let (seq, tail) = match to {
            Place::Youngest => (g.max_seq, false),
            Place::OldestTail => (g.min_seq[kind], true),
            Place::Second { tail } => (g.min_seq[kind] + 1, tail),
        };
        g.insert(&mut self.pages, id, seq, tail);
        Some(())
    }

    /// Protect the candidate at the oldest tail: its tier comes back too often.
    pub fn protect(&mut self, id: u32) {
        let p = self.pages[id as usize];
        if let Some(g) = self.generations() {
            g.tiers[kind_of(&p)][tier_of(uses(&p))].protected += 1;
        }
        self.regenerate(id, Place::Second { tail: true });
    }

    /// What is remembered of a page that leaves: the oldest generation and its uses.
    pub(super) fn generation_shadow(&mut self, id: u32) -> Option<u64> {
        let p = self.pages[id as usize];
        let g = self.generations()?;
        let kind = kind_of(&p);
        g.tiers[kind][tier_of(uses(&p))].evicted += 1;
        Some(g.min_seq[kind] << 4 | u64::from(uses(&p)))
    }

    /// A page came back whose shadow is still recent: its tier pays for it. True if the page had been used often.
    pub(super) fn generation_refault(&mut self, id: u32, shadow: u64) -> Option<bool> {
        let p = self.pages[id as usize];
        let g = self.generations()?;
        let kind = kind_of(&p);
        let (seq, uses) = (shadow >> 4, (shadow & 15) as u32);
        let recent = if g.cfg.reworked { g.max_seq.abs_diff(seq) < MAX_GENS as u64 } else { seq == g.min_seq[kind] };
        if !recent {
            return Some(false);
        }
        g.tiers[kind][tier_of(uses)].refaulted += 1;
        let often = uses >= MOST_USES || p.any(flag::ANON);
        if often {
            self.pages[id as usize].flags |= flag::WORKINGSET | uses << USES_SHIFT;
        }
        Some(often)
    }

    /// Age: pages that page tables used since move to the youngest generation, then a new one begins (`try_to_inc_max_seq`).
    pub fn begin_generation(&mut self) -> bool {
        let all = self.ws.as_ref().and_then(|w| w.generations.as_deref());
        let young: Vec<u32> = all.map_or_else(Vec::new, |g| {
            let lists = g.lists.iter().flatten();
            lists.flat_map(|l| l.iter_from_tail(&self.pages)).filter(|id| self.page(*id).any(flag::YOUNG)).collect()
        });
        for id in young {
            self.clear(id, flag::YOUNG);
            self.regenerate(id, Place::Youngest);
            self.hot[id as usize] = 0;
        }
        match self.ws.as_mut().and_then(|w| w.generations.as_deref_mut()) {
            Some(g) => g.begin(&mut self.pages),
            None => false,
        }
    }
}

/// Where a page goes among the generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The head of the youngest.
    Youngest,
    /// The tail of the oldest: the next candidate.
    OldestTail,
    /// The one after the oldest.
    Second {
        /// Its tail.
        tail: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pages(n: usize) -> Vec<Page> {
        vec![Page::default(); n]
    }

    #[test]
    fn tiers_are_the_logarithm_of_uses() {
        assert_eq!([0, 1, 2, 3, 4, 5, 7].map(tier_of), [0, 0, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_tier_that_comes_back_twice_as_often_is_protected() {
        let mut g = Generations::new(GenerationsConfig::default());
        assert_eq!(g.evictable_tier(FILE), TIERS - 1, "nothing is known");
        g.tiers[FILE][0] = Tier { refaulted: 100, evicted: 1000, ..Tier::default() };
        g.tiers[FILE][1] = Tier { refaulted: 500, evicted: 1000, ..Tier::default() };
        assert_eq!(g.evictable_tier(FILE), 0);
        g.tiers[FILE][1].refaulted = 63;
        assert_eq!(g.evictable_tier(FILE), TIERS - 1, "too few to tell");
    }

    #[test]
    fn the_averages_halve_with_each_generation() {
        let mut g = Generations::new(GenerationsConfig::default());
        g.tiers[FILE][1] = Tier { refaulted: 80, evicted: 100, protected: 60, ..Tier::default() };
        g.carry_over(FILE);
        assert_eq!(g.tiers[FILE][1], Tier { avg_refaulted: 40, avg_total: 80, ..Tier::default() });
        g.carry_over(FILE);
        assert_eq!(g.tiers[FILE][1], Tier { avg_refaulted: 20, avg_total: 40, ..Tier::default() });
    }

    proptest! {
        #[test]
        fn no_page_is_lost_and_generations_stay_within_bounds(
            steps in proptest::collection::vec((0u32..64, 0u8..5), 1..400), reworked: bool
        ) {
            let mut ps = pages(64);
            let mut g = Generations::new(GenerationsConfig { reworked, ..GenerationsConfig::default() });
            let mut listed = 0;
            for (id, what) in steps {
                let p = ps[id as usize];
                match what {
                    0 | 1 if p.list == List::None => {
                        if what == 0 {
                            ps[id as usize].flags |= flag::ANON;
                        } else {
                            ps[id as usize].flags &= !flag::ANON;
                        }
                        let seq = g.entry(&ps[id as usize]);
                        g.insert(&mut ps, id, seq, false);
                        listed += 1;
                    }
                    2 if p.list != List::None => {
                        g.remove(&mut ps, id);
                        listed -= 1;
                    }
                    3 => {
                        g.begin(&mut ps);
                    }
                    4 => g.advance_oldest(id % 2 == 0),
                    _ => {}
                }
                prop_assert_eq!(g.pages_listed(), listed);
                for kind in [ANON, FILE] {
                    prop_assert!((MIN_GENS..=MAX_GENS as u64).contains(&g.count(kind)), "{:?}", g);
                    let (young, old) = g.sizes(kind);
                    let of = ps.iter().filter(|p| p.list != List::None && kind_of(p) == kind).count();
                    prop_assert_eq!(young + old, of as u64);
                }
            }
        }
    }
}
