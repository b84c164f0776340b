//! Request slots: how many a queue has, who sleeps for one, who is woken when one is freed.
//!
//! The rules are those of Linux 2.2 and 2.4 `drivers/block/ll_rw_blk.c` (see [`WakeRule`]). Which process gets a freed
//! slot is what made 2.4 unfair: between a slot's release and the woken sleeper's turn a newcomer may take it.

mod sleep_chain;
mod table22;

use std::collections::VecDeque;

use sleep_chain::SleepChain;
use table22::Table22;

use super::{Dir, Waiter};
use crate::config::{QueueConfig, WakeRule};

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
}

impl Slots {
    pub(crate) fn new(rule: WakeRule, total: u32, batch: u32) -> Self {
        let free = match rule {
            WakeRule::Chain | WakeRule::SleepChain | WakeRule::Tags => [total, 0],
            WakeRule::Table22 => [0, 0],
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
        }
    }

    /// Slots that no request holds.
    #[cfg(test)]
    pub(crate) fn idle(&self) -> u32 {
        self.free[0] + self.free[1] + self.pending[0] + self.pending[1] + self.table.idle()
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
            WakeRule::Chain | WakeRule::SleepChain | WakeRule::Tags => 0,
            _ => dir.index(),
        }
    }

    fn list(&self, dir: Dir) -> usize {
        match self.rule {
            WakeRule::OneFifo | WakeRule::AllPerDirection => dir.index(),
            _ => 0,
        }
    }

    /// Takes a slot; the number goes back to [`Slots::put`].
    pub(crate) fn take(&mut self, dir: Dir) -> Option<u32> {
        if self.rule == WakeRule::Table22 {
            return self.table.take(dir);
        }
        let pool = self.pool(dir);
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
            WakeRule::Tags => {
                self.free[pool] += 1;
                self.wake(0, 1, wakes);
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
            WakeRule::PendingBatch | WakeRule::OneFifo | WakeRule::Chain | WakeRule::Tags => {
                self.sleepers[list].push_back(sleeper);
            }
            WakeRule::SleepChain => self.chain.sleep(waiter),
        }
    }

    /// A woken process runs: a slot and it leaves the wait list, or none and it sleeps on in its old place.
    pub(crate) fn take_woken(&mut self, dir: Dir, waiter: Waiter, wakes: &mut VecDeque<Waiter>) -> Option<u32> {
        if self.rule == WakeRule::SleepChain {
            wakes.extend(self.chain.runs(waiter));
            let slot = self.take(dir);
            if slot.is_none() {
                self.chain.sleep(waiter);
            }
            return slot;
        }
        let slot = self.take(dir);
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
        matches!(self.rule, WakeRule::PendingBatch | WakeRule::AllPerDirection | WakeRule::Chain | WakeRule::Table22)
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

/// Slots and batch of a queue of a machine with `ram_kib` of memory.
pub(crate) fn sizes(queue: &QueueConfig, ram_kib: u64) -> (u32, u32) {
    let slots = if queue.slots == 0 { by_memory(ram_kib) } else { queue.slots };
    let batch = slots / queue.batch_divisor;
    let cap = if queue.batch_cap == 0 { u32::MAX } else { queue.batch_cap };
    (slots, batch.clamp(1, cap))
}

/// Slots of a 2.4.8 to 2.4.18 queue when the variant leaves them to memory size.
fn by_memory(ram_kib: u64) -> u32 {
    if ram_kib <= 32 * 1024 { 64 } else { 128 }
}
