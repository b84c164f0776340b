//! Allocation and kswapd of 2.2: one set of marks for the whole machine.
//!
//! Source: mm/page_alloc.c (`__get_free_pages`), mm/vmscan.c (`kswapd`) of 2.2.20.

use super::Sim;
use super::frame::{Alloc, Frame, Kswapd};
use super::sched::Flow;
use super::task::Wait;
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::reclaim::Cursor;
use crate::results::ResultSink;
use kreplay_traces::units::Nanos;

impl Sim<'_> {
    fn marks(&self) -> (u64, u64, u64) {
        self.mm.clock.as_ref().map_or((0, 0, 0), |c| c.marks)
    }

    pub(super) fn step_alloc_global(
        &mut self,
        t: u32,
        flags: AllocFlags,
        at: Alloc,
        sink: &mut dyn ResultSink,
    ) -> Flow {
        let (min, low, high) = self.marks();
        let task = &self.tasks[t as usize];
        let privileged = task.memalloc || task.dying;
        match at {
            Alloc::Reclaimed => {
                let task = &mut self.tasks[t as usize];
                task.memalloc = false;
                let freed = task.ret == 1;
                if let Some(kept) = task.reclaim.take().and_then(|c| c.kept) {
                    self.mm.zones.give(usize::from(kept));
                }
                // Requests of users fail unless reclaim found all that it was to find; others take what there is.
                if self.mm.zones.free() <= high && !freed && flags.fs {
                    self.fruitless += 1;
                    return self.refused(t, sink);
                }
            }
            _ if privileged || self.mm.zones.free() > low => {}
            _ => {
                self.wake_daemon(self.kswapd);
                if self.mm.zones.free() <= min && flags.wait {
                    // What may not call into the file system may not do I/O at all here (GFP_BUFFER).
                    let may = AllocFlags { io: flags.fs, ..flags };
                    let cursor = Cursor::new(&self.config.reclaim, NORMAL, may, true);
                    self.reclaim_for(t, cursor, flags, Alloc::Reclaimed);
                    return Flow::Continue;
                }
            }
        }
        match self.mm.zones.take_any() {
            Some(zone) => self.allocated(t, zone),
            None => self.refused(t, sink),
        }
    }

    pub(super) fn step_kswapd_global(&mut self, t: u32, at: Kswapd) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Kswapd { at, class: 0, more: false });
        let (_, _, high) = self.marks();
        match at {
            Kswapd::Sleep => {
                set(self, Kswapd::Look);
                self.block_on(t, Wait::Daemon)
            }
            Kswapd::Ran if self.tasks[t as usize].ret == 0 => {
                set(self, Kswapd::Look);
                let at = self.timeout_at(Nanos::from_millis(self.config.reclaim.kswapd_fail_ms));
                self.sleep_until(t, at)
            }
            _ if self.mm.zones.free() >= high => {
                set(self, Kswapd::Sleep);
                Flow::Continue
            }
            _ => {
                self.mm.counters.kswapd_runs += 1;
                let flags = AllocFlags { wait: false, io: true, fs: true };
                let task = &mut self.tasks[t as usize];
                task.reclaim = Some(Cursor::new(&self.config.reclaim, NORMAL, flags, false));
                set(self, Kswapd::Ran);
                self.tasks[t as usize].push(Frame::Reclaim);
                Flow::Continue
            }
        }
    }
}
