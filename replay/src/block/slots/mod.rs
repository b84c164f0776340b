//! Request slots: how many a queue has, who sleeps for one, who is woken when one is freed.
//!
//! The rules are those of Linux 2.2 and 2.4 `drivers/block/ll_rw_blk.c` (see [`WakeRule`]). Which process gets a freed
//! slot is what made 2.4 unfair: between a slot's release and the woken sleeper's turn a newcomer may take it.

mod sleep_chain;
mod table22;
mod tags;

use std::collections::VecDeque;

use sleep_chain::SleepChain;
use table22::Table22;
use tags::Tags;

use super::{Dir, Waiter};
use crate::config::{QueueConfig, SlotRule, WakeRule};

/// Someone asleep, or woken and not yet run, for a slot.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    waiter: Waiter,
    awake: bool,
}

/// The slots of a queue (of all queues, where the rule has one table).
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    rule: WakeRule,
    batch: u32,
    /// Free slots per direction; a common pool counts in the first.
    free: [u32; 2],
    /// Freed, but not usable before a batch is complete ([`WakeRule::PendingBatch`]).
    pending: [u32; 2],
    /// Wait lists, front is woken first; a mixed list is the first.
    sleepers: [VecDeque<Sleeper>; 2],
    /// Entries, for [`WakeRule::Table22`].
    table: Table22,
    /// Wait list, for [`WakeRule::SleepChain`].
    chain: SleepChain,
    /// For [`WakeRule::Tags`].
    tags: Tags,
}

impl Slots {
    pub(crate) fn new(rule: WakeRule, total: u32, batch: u32) -> Self {
        let free = match rule {
            WakeRule::Chain | WakeRule::SleepChain => [total, 0],
            WakeRule::Table22 | WakeRule::Tags => [0, 0],
            _ => [total.div_ceil(2), total / 2],
        };
        Self {
            rule,
            batch,
            free,
            pending: [0; 2],
            sleepers: [VecDeque::new(), VecDeque::new()],
            table: Table22::new(if rule == WakeRule::Table22 { total } else { 0 }),
            chain: SleepChain::default(),
            tags: Tags::new(if rule == WakeRule::Tags { total } else { 0 }),
        }
    }

    /// Slots that no request holds.
    #[cfg(test)]
    pub(crate) fn idle(&self) -> u32 {
        self.free[0] + self.free[1] + self.pending[0] + self.pending[1] + self.table.idle() + self.tags.idle()
    }

    /// Whether a table without directions has a free slot.
    pub(crate) fn any_free(&self) -> bool {
        self.free != [0, 0]
    }

    /// One table serves all disks.
    pub(crate) fn shared(rule: WakeRule) -> bool {
        matches!(rule, WakeRule::Table22 | WakeRule::SleepChain)
    }

    fn pool(&self, dir: Dir) -> usize {
        match self.rule {
            WakeRule::Chain | WakeRule::SleepChain => 0,
            _ => dir.index(),
        }
    }

    fn list(&self, dir: Dir) -> usize {
        match self.rule {
            WakeRule::OneFifo | WakeRule::AllPerDirection => dir.index(),
            _ => 0,
        }
    }

    /// Tags in a word of the tag map, if slots are tags.
    pub(crate) fn tag_word(&self) -> Option<u32> {
        (self.rule == WakeRule::Tags).then(|| self.tags.word())
    }

    /// Takes a slot; the number goes back to [`Slots::put`]. `depth`: of each word of tags, how many it may use.
    pub(crate) fn take(&mut self, dir: Dir, depth: u32) -> Option<u32> {
        match self.rule {
            WakeRule::Table22 => return self.table.take(dir),
            WakeRule::Tags => return self.tags.take(depth),
            _ => {}
        }
        let mut pool = self.pool(dir);
        if self.rule == WakeRule::ReadsSteal && self.free[pool] == 0 {
            // Only reads have another list to look at.
            pool = 1;
        }
        if self.free[pool] == 0 {
            return None;
        }
        self.free[pool] -= 1;
        Some(pool as u32)
    }

    /// Frees a slot and wakes whom the rule says.
    pub(crate) fn put(&mut self, slot: u32, wakes: &mut VecDeque<Waiter>) {
        let pool = slot as usize;
        match self.rule {
            WakeRule::PendingBatch => {
                self.pending[pool] += 1;
                if self.pending[pool] >= self.batch {
                    let n = std::mem::take(&mut self.pending[pool]);
                    self.free[pool] += n;
                    self.wake(0, n, wakes);
                }
            }
            WakeRule::AllLifo => {
                self.free[pool] += 1;
                if self.free[pool] >= self.batch {
                    self.wake(0, u32::MAX, wakes);
                }
            }
            WakeRule::OneFifo => {
                self.free[pool] += 1;
                if self.free[pool] >= self.batch {
                    self.wake(pool, 1, wakes);
                }
            }
            WakeRule::AllPerDirection => {
                self.free[pool] += 1;
                if self.free[pool] >= self.batch {
                    self.wake(pool, u32::MAX, wakes);
                }
            }
            WakeRule::Chain => {
                self.free[pool] += 1;
                if self.free[pool] >= self.batch {
                    self.wake(0, 1, wakes);
                }
            }
            WakeRule::ReadsSteal => {
                self.free[pool] += 1;
                self.wake(0, 1, wakes);
            }
            WakeRule::Tags => {
                // Tags that come back while nobody sleeps do not count.
                let sleeps = !self.sleepers[0].is_empty();
                let wake = self.tags.put(slot, self.batch, sleeps);
                self.wake(0, wake, wakes);
            }
            WakeRule::Table22 => {
                self.table.put(slot);
                self.wake(0, u32::MAX, wakes);
            }
            WakeRule::SleepChain => {
                self.free[pool] += 1;
                wakes.extend(self.chain.wake());
            }
        }
    }

    /// A process that may run already does not use up a wake-up: it is passed over.
    fn wake(&mut self, list: usize, most: u32, wakes: &mut VecDeque<Waiter>) {
        let mut left = most;
        for s in &mut self.sleepers[list] {
            if left == 0 {
                break;
            }
            if !s.awake {
                s.awake = true;
                wakes.push_back(s.waiter);
                left -= 1;
            }
        }
    }

    /// Puts a process to sleep that found no slot.
    pub(crate) fn wait(&mut self, dir: Dir, waiter: Waiter) {
        let list = self.list(dir);
        let sleeper = Sleeper { waiter, awake: false };
        match self.rule {
            WakeRule::AllLifo | WakeRule::AllPerDirection | WakeRule::Table22 => {
                self.sleepers[list].push_front(sleeper);
            }
            WakeRule::PendingBatch | WakeRule::OneFifo | WakeRule::Chain | WakeRule::ReadsSteal | WakeRule::Tags => {
                self.sleepers[list].push_back(sleeper);
            }
            WakeRule::SleepChain => self.chain.sleep(waiter),
        }
    }

    /// A woken process runs: a slot and it leaves the wait list, or none and it sleeps on in its old place.
    pub(crate) fn take_woken(
        &mut self,
        dir: Dir,
        depth: u32,
        waiter: Waiter,
        wakes: &mut VecDeque<Waiter>,
    ) -> Option<u32> {
        if self.rule == WakeRule::SleepChain {
            wakes.extend(self.chain.runs(waiter));
            let slot = self.take(dir, depth);
            if slot.is_none() {
                self.chain.sleep(waiter);
            }
            return slot;
        }
        let slot = self.take(dir, depth);
        let list = &mut self.sleepers[self.list(dir)];
        if let Some(at) = list.iter().position(|s| s.waiter == waiter) {
            if slot.is_some() {
                list.remove(at);
            } else {
                list[at].awake = false;
            }
        }
        slot
    }

    /// A process that had slept has queued its bio.
    pub(crate) fn served(&mut self, wakes: &mut VecDeque<Waiter>) {
        if self.rule == WakeRule::Chain {
            self.wake(0, 1, wakes);
        }
    }

    /// A woken process that fails unplugs again before it sleeps on.
    pub(crate) fn unplugs_again(&self) -> bool {
        use WakeRule::{AllPerDirection, Chain, PendingBatch, ReadsSteal, Table22};
        matches!(self.rule, PendingBatch | AllPerDirection | Chain | ReadsSteal | Table22)
    }

    /// A process that got its slot after sleeping looks for a merge again.
    pub(crate) fn rescans(&self) -> bool {
        !matches!(self.rule, WakeRule::Table22 | WakeRule::Tags)
    }

    /// Sleeping or woken and not yet run.
    pub(crate) fn waiting(&self) -> usize {
        self.sleepers[0].len() + self.sleepers[1].len() + self.chain.len()
    }
}

/// What the number of slots may depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Memory, KiB.
    pub(crate) ram_kib: u64,
    /// ... of which the kernel's own image and tables leave so much: what it takes for the memory size itself.
    pub(crate) usable_kib: u64,
    /// Requests that the device takes at a time.
    pub(crate) device_depth: u32,
    /// There is a scheduler (blk-mq: without one, the device's tags are all there are).
    pub(crate) scheduler: bool,
}

/// Slots and batch of a queue. `least`: of so many slots, those that the narrowest limit leaves a request.
pub(crate) fn sizes(queue: &QueueConfig, machine: Machine, least: impl Fn(u32) -> u32) -> (u32, u32) {
    // Without a scheduler there is nothing to choose: a request holds one of the device's own tags.
    let tags_only = queue.wake == WakeRule::Tags && !machine.scheduler;
    let rule = if tags_only { SlotRule::Tags } else { queue.slot_rule };
    let slots = if queue.slots == 0 || tags_only { by_rule(rule, machine) } else { queue.slots };
    // One slot a direction is the least that the queue works with; the device takes no more for it.
    let slots = if tags_only { slots.max(2) } else { slots };
    // sbq_calc_wake_batch: whoever is limited to few slots must not wait for more to come back than it may have.
    let usable = if queue.wake == WakeRule::Tags { least(slots).min(slots) } else { slots };
    let batch = usable / queue.batch_divisor;
    let cap = if queue.batch_cap == 0 { u32::MAX } else { queue.batch_cap };
    (slots, batch.clamp(1, cap))
}

fn by_rule(rule: SlotRule, machine: Machine) -> u32 {
    const KIB_PER_SLOT: u64 = 512;
    let ram_kib = machine.ram_kib;
    let mib = ram_kib / 1024;
    let slots = match rule {
        SlotRule::Fixed if mib <= 32 => 64,
        SlotRule::Fixed => 128,
        SlotRule::Ram247 => (ram_kib.next_multiple_of(32 * 1024) / KIB_PER_SLOT).min(8192),
        SlotRule::PerMib => (machine.usable_kib / KIB_PER_SLOT / 16 * 16).clamp(32, 1024),
        SlotRule::Pool if mib < 30 => 512,
        SlotRule::Pool => 1024,
        SlotRule::Fixed256 => 256,
        SlotRule::Tags if machine.scheduler => 2 * u64::from(machine.device_depth.min(128)),
        SlotRule::Tags => u64::from(machine.device_depth),
    };
    u32::try_from(slots).expect("at most 8192, or a device's depth")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_gives_the_slots_that_each_kernel_says() {
        let machine = |kib| Machine { ram_kib: kib, usable_kib: kib - kib / 20, device_depth: 32, scheduler: true };
        let at = |rule, mib: u64| by_rule(rule, machine(mib * 1024));
        assert_eq!([32, 33].map(|m| at(SlotRule::Fixed, m)), [64, 128]);
        assert_eq!([60, 64, 128, 256].map(|m| at(SlotRule::Ram247, m)), [128, 128, 256, 512]);
        // Recorded boots of 32 and 64 MiB said "48 slots per queue, batch=12" and "112 slots per queue, batch=28".
        assert_eq!([4, 32, 64, 4096].map(|m| at(SlotRule::PerMib, m)), [32, 48, 112, 1024]);
        assert_eq!([24, 64].map(|m| at(SlotRule::Pool, m)), [512, 1024]);
        assert_eq!([24, 64].map(|m| at(SlotRule::Fixed256, m)), [256, 256]);
        assert_eq!(at(SlotRule::Tags, 64), 64);
        let none = Machine { ram_kib: 65_536, usable_kib: 65_536, device_depth: 1023, scheduler: false };
        assert_eq!(by_rule(SlotRule::Tags, none), 1023);
        assert_eq!(by_rule(SlotRule::Tags, Machine { scheduler: true, ..none }), 256);
    }

    /// Puts `n` write slots back and says who was woken.
    fn freed(s: &mut Slots, n: usize) -> Vec<Waiter> {
        let mut wakes = VecDeque::new();
        for _ in 0..n {
            s.put(1, &mut wakes);
        }
        wakes.into()
    }

    /// No write slot free, writers 10 and 11 and the reader 12 asleep in this order.
    fn crowded(rule: WakeRule) -> Slots {
        let mut s = Slots::new(rule, 16, 2);
        while s.take(Dir::Write, 0).is_some() {}
        for (waiter, dir) in [(10, Dir::Write), (11, Dir::Write), (12, Dir::Read)] {
            s.wait(dir, waiter);
        }
        s
    }

    #[test]
    fn pending_slots_become_free_by_the_batch_and_wake_as_many() {
        let mut s = crowded(WakeRule::PendingBatch);
        assert!(freed(&mut s, 1).is_empty());
        assert_eq!(s.take(Dir::Write, 0), None, "freed, but pending");
        assert_eq!(freed(&mut s, 1), [10, 11]);
        assert!(s.take(Dir::Write, 0).is_some());
    }

    #[test]
    fn each_rule_wakes_in_its_own_order() {
        assert_eq!(freed(&mut crowded(WakeRule::AllLifo), 2), [12, 11, 10]);
        assert_eq!(freed(&mut crowded(WakeRule::OneFifo), 2), [10]);
        assert_eq!(freed(&mut crowded(WakeRule::OneFifo), 3), [10, 11]);
        assert_eq!(freed(&mut crowded(WakeRule::AllPerDirection), 2), [11, 10]);
    }

    #[test]
    fn a_sleeper_that_finds_nothing_keeps_its_place() {
        let mut s = crowded(WakeRule::AllLifo);
        let mut wakes = VecDeque::from(freed(&mut s, 2));
        assert!(s.take_woken(Dir::Write, 0, 11, &mut wakes).is_some());
        assert!(s.take(Dir::Write, 0).is_some(), "a newcomer");
        assert_eq!(s.take_woken(Dir::Write, 0, 10, &mut wakes), None);
        assert_eq!(s.waiting(), 2);
        assert_eq!(freed(&mut s, 2), [10], "12 is awake already");
    }

    #[test]
    fn reads_of_2_4_0_take_write_slots_and_give_them_back_there() {
        let mut s = Slots::new(WakeRule::ReadsSteal, 4, 1);
        let got: Vec<_> = (0..4).map(|_| s.take(Dir::Read, 0)).collect();
        assert_eq!(got, [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(s.take(Dir::Write, 0), None);
        s.wait(Dir::Write, 7);
        let mut wakes = VecDeque::new();
        s.put(0, &mut wakes);
        assert_eq!(s.take_woken(Dir::Write, 0, 7, &mut wakes), None, "woken for a slot that it cannot use");
        s.put(1, &mut wakes);
        assert_eq!((s.take_woken(Dir::Write, 0, 7, &mut wakes), wakes), (Some(1), VecDeque::from([7, 7])));
    }

    #[test]
    fn sleepers_of_0_01_wake_one_another() {
        let mut s = Slots::new(WakeRule::SleepChain, 1, 1);
        assert!(s.take(Dir::Read, 0).is_some());
        for waiter in [1, 2, 3] {
            s.wait(Dir::Read, waiter);
        }
        let mut wakes = VecDeque::new();
        s.put(0, &mut wakes);
        assert_eq!(wakes, [3], "the newest only");
        assert!(s.take_woken(Dir::Read, 0, 3, &mut wakes).is_some());
        assert_eq!(wakes, [3, 2], "it readies the one before it");
        assert_eq!(s.take_woken(Dir::Read, 0, 2, &mut wakes), None);
        assert_eq!((wakes, s.waiting()), (VecDeque::from([3, 2, 1]), 2));
    }
}
