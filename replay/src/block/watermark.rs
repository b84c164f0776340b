//! The limit of 2.4.1 to 2.4.7 on what is queued (`ll_rw_block` in `drivers/block/ll_rw_blk.c`).
//!
//! Whoever submits buffers while two thirds of memory are queued, on all disks together, runs `tq_disk` and sleeps until a
//! third of that (but at least all but 128 MiB of it) is left. Reads of file data go past it: they use `submit_bh`.

use std::collections::VecDeque;

use super::{Bio, BioKind, Dir, Waiter};

/// The limit and who sleeps at it.
#[derive(Clone, Debug)]
pub(crate) struct Watermark {
    high: u64,
    low: u64,
    /// Sectors queued or at the devices.
    queued: u64,
    /// Newest first, with whether it was woken.
    sleepers: Vec<(Waiter, bool)>,
    refused: bool,
}

impl Watermark {
    pub(crate) fn new(ram_kib: u64) -> Self {
        const MOST_APART_KIB: u64 = 128 * 1024;
        let high = ram_kib * 2 / 3;
        let mut low = high / 3;
        if high - low > MOST_APART_KIB {
            low = high - MOST_APART_KIB;
        }
        Self { high: 2 * high, low: 2 * low, queued: 0, sleepers: Vec::new(), refused: false }
    }

    /// Whether a bio may be submitted now.
    pub(crate) fn pass(&mut self, bio: &Bio) -> bool {
        let buffer = bio.dir == Dir::Write || bio.kind == BioKind::Meta;
        self.refused = buffer && self.queued >= self.high;
        !self.refused
    }

    /// A process goes to sleep whose bio was refused; false if it was refused by somebody else.
    pub(crate) fn wait(&mut self, waiter: Waiter) -> bool {
        let here = std::mem::take(&mut self.refused);
        if here {
            self.sleepers.insert(0, (waiter, false));
        }
        here
    }

    pub(crate) fn waits(&self, waiter: Waiter) -> bool {
        self.sleepers.iter().any(|s| s.0 == waiter)
    }

    /// A woken process looks again; true if it may go on, and it is off the list then.
    pub(crate) fn retry(&mut self, waiter: Waiter) -> bool {
        let go = self.queued < self.low;
        if go {
            self.sleepers.retain(|s| s.0 != waiter);
        } else {
            for s in self.sleepers.iter_mut().filter(|s| s.0 == waiter) {
                s.1 = false;
            }
        }
        go
    }

    pub(crate) fn queued(&mut self, sectors: u32) {
        self.queued += u64::from(sectors);
    }

    /// A request is done; whether that wakes everybody.
    pub(crate) fn done(&mut self, sectors: u32, wakes: &mut VecDeque<Waiter>) {
        self.queued = self.queued.saturating_sub(u64::from(sectors));
        if self.queued < self.low {
            for s in self.sleepers.iter_mut().filter(|s| !s.1) {
                s.1 = true;
                wakes.push_back(s.0);
            }
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.sleepers.len()
    }
}

#[cfg(test)]
mod tests {
    use kreplay_traces::units::Sectors;

    use super::*;

    #[test]
    fn writers_sleep_at_two_thirds_of_memory_and_wake_at_a_third_of_that() {
        let bio = |dir, kind| Bio { dir, sector: Sectors(0), nr: 8, partition: 0, kind, tag: 0, task: 0 };
        let write = bio(Dir::Write, BioKind::Data);
        // 3 MiB of memory: 2 MiB = 4096 sectors, and 1365 of them.
        let mut w = Watermark::new(3 * 1024);
        for _ in 0..512 {
            assert!(w.pass(&write));
            w.queued(8);
        }
        assert!(w.pass(&bio(Dir::Read, BioKind::Data)), "file data is read past it");
        assert!(!w.wait(5), "nobody was refused");
        assert!(!w.pass(&write));
        assert!(w.wait(1));
        assert!(!w.pass(&write) && w.wait(2));
        let mut wakes = VecDeque::new();
        for _ in 0..341 {
            w.done(8, &mut wakes);
        }
        assert!(wakes.is_empty() && !w.retry(1));
        w.done(8, &mut wakes);
        assert_eq!(wakes, [2, 1], "newest first");
        assert!(w.retry(1) && w.waits(2) && w.waiting() == 1);
    }

    #[test]
    fn on_large_machines_the_marks_are_128_mib_apart() {
        let w = Watermark::new(1 << 20);
        assert_eq!(w.high - w.low, 2 * 128 * 1024);
    }
}
