//! Cost-based sharing between groups (`block/blk-iocost.c` of 6.1): each bio has a price in device time, each group an
//! income by its weight.
//!
//! The price comes from a linear model (a random or a sequential operation, and so much per page). The device's virtual
//! clock runs at a rate that is lowered when requests wait for slots and raised when groups would like more. The root
//! group is never held back.
//!
//! Reduced: weights are flat; groups that do nothing for a period give their share to the others, but no group lends a
//! part of its share (donation); no debts; latency percentiles are not looked at, as in the kernel's defaults.

use std::collections::VecDeque;

use super::super::{Bio, Hints, Waiter};
use crate::config::{IocostConfig, IocostModel};

/// Virtual time per second.
const VTIME_PER_SEC: u64 = 1 << 37;
/// Sectors of a page.
const PAGE: u64 = 8;
/// A jump beyond so many pages makes an operation random.
const RANDOM_PAGES: u64 = 4096;
/// Share of its time that a request may wait for a slot before the device counts as saturated, percent.
const BUSY_PCT: u64 = 5;
/// Most of a period's income that a group starts with, percent.
const START_PCT: u64 = 50;
/// Change of the rate by how long the device was saturated, or not, in periods; percent.
const ADJUST: [u64; 53] = {
    let mut t = [1; 53];
    let mut i = 0;
    while i < 53 {
        t[i] = match i {
            0..=3 => 0,
            4..=19 => 1,
            20..=35 => 2,
            36..=43 => 4,
            44..=51 => 8,
            _ => 16,
        };
        i += 1;
    }
    t
};

/// Bytes per second, sequential and random operations per second, of reads and of writes; latency target in us.
struct Preset {
    params: [[u64; 3]; 2],
    latency_us: u64,
}

const fn preset(model: IocostModel) -> Preset {
    match model {
        IocostModel::Hdd => {
            Preset { params: [[174_019_176, 41_708, 370], [178_075_866, 42_705, 378]], latency_us: 250_000 }
        }
        IocostModel::SsdQd1 => {
            Preset { params: [[245_855_193, 61_575, 6_946], [141_365_009, 33_716, 26_796]], latency_us: 25_000 }
        }
        IocostModel::SsdDefault => {
            Preset { params: [[488_636_629, 8_932, 8_518], [427_891_549, 28_755, 21_940]], latency_us: 25_000 }
        }
        IocostModel::SsdFast => {
            Preset { params: [[3_102_524_156, 724_816, 778_122], [1_742_780_862, 425_702, 443_193]], latency_us: 5_000 }
        }
    }
}

/// Prices of one direction, virtual time.
#[derive(Clone, Copy, Debug)]
struct Prices {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Prices {
    fn new([bps, sequential, random]: [u64; 3]) -> Self {
        let page = VTIME_PER_SEC.div_ceil((bps / 4096).max(1));
        let operation = |iops: u64| VTIME_PER_SEC.div_ceil(iops.max(1)).saturating_sub(page);
        Self { page, sequential: operation(sequential), random: operation(random) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sleeper {
    waiter: Waiter,
    cost: u64,
}

/// A group.
#[derive(Clone, Debug, Default)]
struct Group {
    weight: u64,
    vtime: u64,
    /// End of its last bio.
    cursor: u64,
    active: bool,
    used_in_period: bool,
    sleepers: VecDeque<Sleeper>,
    granted: Vec<Waiter>,
}

/// The controller of one queue. Times in ns unless virtual.
#[derive(Clone, Debug)]
pub(super) struct IoCost {
    prices: [Prices; 2],
    groups: Vec<Group>,
    period: u64,
    /// Percent of the nominal rate.
    rate_pct: u64,
    rate_bounds: (u64, u64),
    /// Virtual time at `since`.
    vbase: u64,
    since: u64,
    period_ends: Option<u64>,
    slot_wait: u64,
    shortages: bool,
    busy_level: i64,
}

impl IoCost {
    pub(super) fn new(c: &IocostConfig) -> Self {
        let p = preset(c.model);
        let groups = c.weights.iter().map(|&w| Group { weight: u64::from(w.max(1)), ..Group::default() }).collect();
        let least = u64::from(c.vrate_min_pct.max(1));
        Self {
            prices: p.params.map(Prices::new),
            groups,
            period: (2 * p.latency_us * 1000).clamp(1_000_000, 1_000_000_000),
            rate_pct: 100,
            rate_bounds: (least, u64::from(c.vrate_max_pct).max(least)),
            vbase: VTIME_PER_SEC,
            since: 0,
            period_ends: None,
            slot_wait: 0,
            shortages: false,
            busy_level: 0,
        }
    }

    /// Virtual time of `ns` at the present rate.
    fn virtual_of(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(VTIME_PER_SEC) / 1_000_000_000 * u128::from(self.rate_pct) / 100) as u64
    }

    fn vnow(&self, now: u64) -> u64 {
        self.vbase + self.virtual_of(now.saturating_sub(self.since))
    }

    /// The group of a bio that may be held back.
    fn group(&self, hints: Hints) -> Option<usize> {
        let g = usize::from(hints.group).checked_sub(1)?;
        (g < self.groups.len()).then_some(g)
    }

    fn price(&self, bio: &Bio, cursor: u64, merge: bool) -> u64 {
        let p = self.prices[bio.dir.index()];
        let pages = (u64::from(bio.nr) / PAGE).max(1);
        let jump = if cursor == 0 { 0 } else { bio.sector.get().abs_diff(cursor) / PAGE };
        let operation = match () {
            () if merge => 0,
            () if jump > RANDOM_PAGES => p.random,
            () => p.sequential,
        };
        operation + pages * p.page
    }

    /// What a price comes to for a group: its share of the device decides.
    fn cost(&self, group: usize, price: u64) -> u64 {
        let all: u64 = self.groups.iter().filter(|g| g.active).map(|g| g.weight).sum();
        (u128::from(price) * u128::from(all) / u128::from(self.groups[group].weight)) as u64
    }

    fn activate(&mut self, group: usize, now: u64) {
        if self.period_ends.is_none() {
            self.period_ends = Some(now + self.period);
        }
        let (vnow, start) = (self.vnow(now), self.virtual_of(self.period) * START_PCT / 100);
        let g = &mut self.groups[group];
        g.used_in_period = true;
        if !g.active {
            g.active = true;
            g.vtime = vnow.saturating_sub(start);
        }
    }

    pub(super) fn pass(&mut self, bio: &Bio, hints: Hints, waiter: Option<Waiter>, now: u64) -> bool {
        let Some(id) = self.group(hints) else { return true };
        if let Some(at) = waiter.and_then(|w| self.groups[id].granted.iter().position(|&g| g == w)) {
            self.groups[id].granted.remove(at);
            return true;
        }
        self.activate(id, now);
        let price = self.price(bio, self.groups[id].cursor, false);
        let cost = self.cost(id, price);
        let vnow = self.vnow(now);
        let g = &mut self.groups[id];
        if !g.sleepers.is_empty() || g.vtime + cost > vnow {
            return false;
        }
        g.vtime += cost;
        g.cursor = bio.sector.get() + u64::from(bio.nr);
        true
    }

    /// If a bio is refused for its cost, its process is put to sleep; false if that was not the reason.
    pub(super) fn refused(&mut self, waiter: Waiter, bio: &Bio, hints: Hints, now: u64) -> bool {
        let Some(id) = self.group(hints) else { return false };
        if self.groups[id].sleepers.iter().any(|s| s.waiter == waiter) {
            return true;
        }
        let price = self.price(bio, self.groups[id].cursor, false);
        let (cost, vnow) = (self.cost(id, price), self.vnow(now));
        let g = &mut self.groups[id];
        if g.sleepers.is_empty() && g.vtime + cost <= vnow {
            return false;
        }
        g.cursor = bio.sector.get() + u64::from(bio.nr);
        g.sleepers.push_back(Sleeper { waiter, cost: price });
        self.shortages = true;
        true
    }

    pub(super) fn merged(&mut self, bio: &Bio, hints: Hints, now: u64) {
        let Some(id) = self.group(hints) else { return };
        self.activate(id, now);
        let price = self.price(bio, self.groups[id].cursor, true);
        // Merging is not put off: the group pays later.
        self.groups[id].vtime += self.cost(id, price);
        self.groups[id].cursor = bio.sector.get() + u64::from(bio.nr);
    }

    pub(super) fn waits(&self, waiter: Waiter) -> bool {
        self.groups.iter().any(|g| g.granted.contains(&waiter) || g.sleepers.iter().any(|s| s.waiter == waiter))
    }

    pub(super) fn waiting(&self) -> usize {
        self.groups.iter().map(|g| g.sleepers.len() + g.granted.len()).sum()
    }

    pub(super) fn slot_wait(&mut self, ns: u64) {
        self.slot_wait += ns;
    }

    fn end_period(&mut self, now: u64) {
        let wait_pct = 100 * self.slot_wait / self.period;
        if wait_pct > BUSY_PCT {
            self.busy_level = self.busy_level.max(0) + 1;
        } else if wait_pct <= BUSY_PCT * 75 / 100 && self.shortages {
            self.busy_level = self.busy_level.min(0) - 1;
        } else {
            self.busy_level = 0;
        }
        self.busy_level = self.busy_level.clamp(-1000, 1000);
        self.vbase = self.vnow(now);
        self.since = now;
        let change = ADJUST[(self.busy_level.unsigned_abs() as usize).min(ADJUST.len() - 1)];
        let pct = if self.busy_level > 0 { 100 - change } else { 100 + change };
        if change > 0 {
            let (least, most) = self.rate_bounds;
            self.rate_pct = (self.rate_pct * pct).div_ceil(100).clamp(least, most);
        }
        self.slot_wait = 0;
        self.shortages = false;
        let vnow = self.vbase;
        let most = self.virtual_of(self.period);
        for g in &mut self.groups {
            if !g.used_in_period && g.sleepers.is_empty() {
                g.active = false;
            }
            g.used_in_period = false;
            // Income of more than a period is not saved up.
            g.vtime = g.vtime.max(vnow.saturating_sub(most));
            self.shortages |= !g.sleepers.is_empty();
        }
        self.period_ends = self.groups.iter().any(|g| g.active).then_some(now + self.period);
    }

    pub(super) fn run_timer(&mut self, now: u64, wakes: &mut VecDeque<Waiter>) {
        while let Some(end) = self.period_ends.filter(|&e| e <= now) {
            self.end_period(end);
        }
        let vnow = self.vnow(now);
        for id in 0..self.groups.len() {
            while let Some(s) = self.groups[id].sleepers.front().copied() {
                let cost = self.cost(id, s.cost);
                let g = &mut self.groups[id];
                if g.vtime + cost > vnow {
                    break;
                }
                g.vtime += cost;
                g.used_in_period = true;
                g.sleepers.pop_front();
                g.granted.push(s.waiter);
                wakes.push_back(s.waiter);
            }
        }
    }

    pub(super) fn timer(&self) -> Option<u64> {
        let mut due: Option<u64> = None;
        for (id, g) in self.groups.iter().enumerate() {
            if let Some(s) = g.sleepers.front() {
                let lack = (g.vtime + self.cost(id, s.cost)).saturating_sub(self.vbase);
                let per_sec = u128::from(VTIME_PER_SEC) * u128::from(self.rate_pct) / 100;
                let ns = (u128::from(lack) * 1_000_000_000).div_ceil(per_sec.max(1)) as u64 + 1;
                let at = self.since + ns;
                due = Some(due.map_or(at, |d| d.min(at)));
            }
        }
        due.map(|d| self.period_ends.map_or(d, |p| d.min(p)))
    }
}

#[cfg(test)]
mod tests {
    use kreplay_traces::units::Sectors;

    use super::*;
    use crate::block::{BioKind, Dir};

    fn bio(dir: Dir, sector: u64, nr: u32) -> Bio {
        Bio { dir, sector: Sectors(sector), nr, partition: 0, kind: BioKind::Data, tag: 0, task: 0 }
    }

    fn controller(weights: &[u32]) -> IoCost {
        IoCost::new(&IocostConfig { weights: weights.to_vec(), ..IocostConfig::default() })
    }

    #[test]
    fn prices_follow_the_linear_model() {
        let c = controller(&[100]);
        // 174 019 176 bytes a second are 42 485 pages; 370 random operations a second.
        let page = VTIME_PER_SEC.div_ceil(42_485);
        assert_eq!(c.prices[0].page, page);
        assert_eq!(c.price(&bio(Dir::Read, 0, 8), 0, false), VTIME_PER_SEC.div_ceil(41_708));
        let random = c.price(&bio(Dir::Read, 1 << 20, 8), 8, false);
        assert_eq!(random, VTIME_PER_SEC.div_ceil(370));
        assert_eq!(c.price(&bio(Dir::Read, 8, 64), 8, true), 8 * page, "a merge costs its pages only");
    }

    #[test]
    fn groups_get_bandwidth_by_weight_and_the_root_is_free() {
        let mut c = controller(&[100, 300]);
        let root = bio(Dir::Read, 77, 8);
        assert!((0..10_000).all(|_| c.pass(&root, Hints::default(), None, 0)));
        let (mut done, mut wakes) = ([0u64; 2], VecDeque::new());
        // Every bio is far from the one before it.
        let place = |n: u64| 8 + (n % 2) * (1 << 30);
        for ms in 0..4_000u64 {
            let now = ms * 1_000_000;
            wakes.clear();
            c.run_timer(now, &mut wakes);
            for g in 0..2u16 {
                let hints = Hints { group: g + 1, ..Hints::default() };
                while c.pass(&bio(Dir::Read, place(done[usize::from(g)]), 8), hints, None, now) {
                    done[usize::from(g)] += 1;
                }
                if ms == 0 && g == 1 {
                    // The first one had the device to itself for a moment.
                    done = [0; 2];
                }
            }
        }
        // 370 random reads a second for four seconds.
        let total = done[0] + done[1];
        assert!((1350..1600).contains(&total), "{done:?}");
        assert!((2.6..3.4).contains(&(done[1] as f64 / done[0] as f64)), "{done:?}");
    }

    #[test]
    fn waiting_for_slots_lowers_the_rate_and_shortage_raises_it() {
        let mut c = controller(&[100]);
        let hints = Hints { group: 1, ..Hints::default() };
        let mut wakes = VecDeque::new();
        let mut now = 0;
        for _ in 0..10 {
            c.pass(&bio(Dir::Read, 8, 8), hints, None, now);
            c.slot_wait(c.period / 10);
            now += c.period;
            c.run_timer(now, &mut wakes);
        }
        assert!(c.rate_pct < 100, "{}", c.rate_pct);
        let low = c.rate_pct;
        for k in 0..10 {
            while c.pass(&bio(Dir::Read, 8, 2048), hints, None, now) {}
            c.refused(k, &bio(Dir::Read, 8, 2048), hints, now);
            now += c.period;
            c.run_timer(now, &mut wakes);
        }
        assert!(c.rate_pct > low, "{} {low}", c.rate_pct);
        assert!(!wakes.is_empty());
    }
}
