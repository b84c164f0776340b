//! Allocation and kswapd of 2.4.5 to 2.4.9 and -ac: frames from the free and the clean lists, reclaim for all zones.
//!
//! Source: mm/page_alloc.c (`__alloc_pages`), mm/vmscan.c (`kswapd`, `kreclaimd`). Reduced: kreclaimd does its work at once
//! when it is woken (it never waits).

use super::Sim;
use super::frame::{Alloc, Frame, Kswapd};
use super::sched::Flow;
use super::task::Wait;
use crate::config::{AgingDriver, BackgroundAging, ReclaimPolicy};
use crate::mm::zone::{AllocFlags, DMA, NORMAL};
use crate::reclaim::{Cursor, aging};
use crate::results::ResultSink;
use kreplay_traces::units::Nanos;

/// Which of a zone's marks an attempt goes by.
#[derive(Clone, Copy)]
enum Mark {
    Min,
    Low,
    High,
}

/// kswapd wakes at least this often.
pub(super) const KSWAPD_INTERVAL: Nanos = Nanos::from_secs(1);

impl Sim<'_> {
    pub(super) fn step_alloc_aging(&mut self, t: u32, flags: AllocFlags, at: Alloc, sink: &mut dyn ResultSink) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Alloc { flags, at });
        let retries = at == Alloc::Again;
        match at {
            Alloc::Try | Alloc::Again => {
                if !retries {
                    self.mm.zones.pressure += 1;
                }
                let found = self
                    .take_free()
                    .or_else(|| self.take_available(Mark::High, flags.wait))
                    .or_else(|| self.take_available(Mark::Low, flags.wait));
                if let Some(zone) = found {
                    return self.allocated(t, zone);
                }
                self.wake_daemon(self.kswapd);
                if flags.wait && self.config.reclaim.aging.alloc_reclaims && !self.tasks[t as usize].memalloc {
                    return self.aged_reclaim_for(t, flags, Alloc::Helped);
                }
                set(self, Alloc::Yielded);
                if flags.wait { Flow::Yield } else { Flow::Continue }
            }
            Alloc::Helped => {
                let task = &mut self.tasks[t as usize];
                task.memalloc = false;
                task.reclaim = None;
                set(self, Alloc::Yielded);
                Flow::Continue
            }
            Alloc::Yielded => {
                if let Some(zone) = self.take_available(Mark::Min, flags.wait) {
                    return self.allocated(t, zone);
                }
                let task = &self.tasks[t as usize];
                if task.memalloc || task.dying || !flags.wait {
                    set(self, Alloc::Last);
                    return Flow::Continue;
                }
                self.aged_reclaim_for(t, flags, Alloc::Reclaimed)
            }
            Alloc::Reclaimed => {
                let task = &mut self.tasks[t as usize];
                task.memalloc = false;
                task.reclaim = None;
                let progress = task.ret == 1;
                if !progress && !flags.fs && self.config.reclaim.aging.nofs_gives_up {
                    // Such a request fails without a word.
                    return self.allocation_failed(t);
                }
                self.fruitless += 1;
                self.charge(self.config.machine.syscall_ns);
                set(self, Alloc::Again);
                Flow::Continue
            }
            Alloc::Last => {
                let privileged = self.tasks[t as usize].memalloc || self.tasks[t as usize].dying;
                for zone in [NORMAL, DMA] {
                    if flags.wait && self.mm.reclaim_page(zone) {
                        return self.allocated(t, zone);
                    }
                    let z = &mut self.mm.zones.zone[zone];
                    if z.free > 0 && (privileged || z.free >= z.min / 4) {
                        z.free -= 1;
                        return self.allocated(t, zone);
                    }
                }
                self.refused(t, sink)
            }
            Alloc::Rebalance => unreachable!("a state of the classzone allocator"),
        }
    }

    /// The same with the task's own address space first.
    fn aged_reclaim_for(&mut self, t: u32, flags: AllocFlags, then: Alloc) -> Flow {
        let mut cursor = Cursor::new(&self.config.reclaim, NORMAL, flags, false);
        cursor.task = Some(t);
        self.reclaim_for(t, cursor, flags, then);
        Flow::Continue
    }

    /// A frame of a zone with at least `low` free; zones below `min` have kreclaimd refill them.
    fn take_free(&mut self) -> Option<usize> {
        for zone in [NORMAL, DMA] {
            let z = &mut self.mm.zones.zone[zone];
            if z.size == 0 {
                continue;
            }
            if z.free >= z.low && z.free > 0 {
                z.free -= 1;
                return Some(zone);
            }
            if z.free < z.min {
                self.kreclaimd();
            }
        }
        None
    }

    /// A frame of a zone whose free and clean pages reach a mark: a clean page's first, if the caller may wait.
    fn take_available(&mut self, mark: Mark, direct: bool) -> Option<usize> {
        for zone in [NORMAL, DMA] {
            let z = self.mm.zones.zone[zone];
            let level = match mark {
                Mark::Min => z.min,
                Mark::Low => z.low,
                Mark::High => z.high,
            };
            if z.size == 0 || self.mm.available(zone) < level {
                continue;
            }
            if direct && self.mm.reclaim_page(zone) {
                return Some(zone);
            }
            let z = &mut self.mm.zones.zone[zone];
            if z.free > 0 {
                z.free -= 1;
                return Some(zone);
            }
        }
        None
    }

    /// Clean pages become free ones, up to `low` of each zone.
    fn kreclaimd(&mut self) {
        for zone in [DMA, NORMAL] {
            while self.mm.zones.zone[zone].free < self.mm.zones.zone[zone].low && self.mm.reclaim_page(zone) {
                self.mm.zones.give(zone);
            }
        }
    }

    /// kswapd of these kernels has looked once a second since the machine began, whether anybody woke it or not.
    pub(super) fn start_kswapd_timer(&mut self) {
        if self.config.reclaim.policy == ReclaimPolicy::Aging {
            self.wake_kswapd_in(KSWAPD_INTERVAL);
        }
    }

    /// kswapd's sleep before the load's start ends after this time, unless somebody wakes it earlier.
    pub(crate) fn wake_kswapd_in(&mut self, first: Nanos) {
        self.events.push(first, super::event::Event::Wake(self.kswapd));
    }

    pub(super) fn step_kswapd_aging(&mut self, t: u32, at: Kswapd, sink: &mut dyn ResultSink) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Kswapd { at, class: 0, more: false });
        let driver = self.config.reclaim.aging.driver;
        match at {
            Kswapd::Sleep => {
                set(self, Kswapd::Look);
                self.kswapd_deadline = self.timeout_at(KSWAPD_INTERVAL);
                self.events.push(self.kswapd_deadline, super::event::Event::Wake(t));
                self.block_on(t, Wait::Daemon)
            }
            Kswapd::Look => {
                self.once_a_second();
                let short = aging::shortage(&self.config.reclaim.aging, &self.mm);
                let runs = short.free || (short.inactive && !self.config.reclaim.aging.kswapd_free_only);
                if driver != AgingDriver::Rounds && !runs {
                    set(self, Kswapd::Ran);
                    return Flow::Continue;
                }
                self.mm.counters.kswapd_runs += 1;
                let flags = AllocFlags { wait: false, io: true, fs: true };
                let task = &mut self.tasks[t as usize];
                task.reclaim = Some(Cursor::new(&self.config.reclaim, NORMAL, flags, false));
                task.ret = 1;
                set(self, Kswapd::Ran);
                self.tasks[t as usize].push(Frame::Reclaim);
                Flow::Continue
            }
            Kswapd::Ran => {
                let short = aging::shortage(&self.config.reclaim.aging, &self.mm);
                let rests = match driver {
                    AgingDriver::Rounds => self.tasks[t as usize].ret == 1 || !(short.free || short.inactive),
                    AgingDriver::Stages | AgingDriver::ZoneStages => !short.free || !short.inactive,
                };
                let unplugs = !self.config.reclaim.aging.kswapd_free_only;
                if unplugs && (driver != AgingDriver::Rounds || rests) {
                    self.unplug(t);
                }
                if rests {
                    set(self, Kswapd::Sleep);
                    return Flow::Continue;
                }
                self.charge(self.config.machine.syscall_ns);
                set(self, Kswapd::Look);
                if self.out_of_clean_memory() {
                    // It steps aside, so that the victim can end.
                    self.oom_kill(sink);
                    return Flow::Yield;
                }
                // It goes round again without sleeping.
                Flow::Preempt
            }
            Kswapd::Zone | Kswapd::Reclaimed | Kswapd::Rested => {
                unreachable!("a state of the classzone kernels' kswapd")
            }
        }
    }

    /// `recalculate_vm_stats` and background aging.
    fn once_a_second(&mut self) {
        if self.now < self.next_recalc {
            return;
        }
        self.next_recalc = self.now + Nanos::from_secs(1);
        self.mm.zones.pressure -= self.mm.zones.pressure >> 6;
        if self.config.reclaim.aging.background != BackgroundAging::None {
            let scanned = aging::age_in_background(&self.config.reclaim, &mut self.mm);
            self.charge(u64::from(scanned) * self.config.machine.scan_page_ns);
        }
    }

    /// `out_of_memory` of 2.4.5 to 2.4.9 and -ac.
    fn out_of_clean_memory(&self) -> bool {
        let (min, low, _) = self.mm.free_marks();
        let frames: u64 = self.mm.zones.zone.iter().map(|z| z.size).sum();
        let cache = self.mm.cache_pages - self.mm.swap_cache_pages;
        self.mm.zones.free() <= min
            && self.mm.available_all() <= low
            && cache * 100 <= frames * 4
            && self.mm.swap.free() == 0
    }
}
