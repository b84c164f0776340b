//! Getting frames under watermarks and a memory limit.
//!
//! Source: mm/memcontrol.c (`try_charge_memcg`), mm/page_alloc.c (`__alloc_pages_slowpath`) of 6.1 to 6.18, order 0.

use super::Sim;
use super::frame::{Alloc, Frame};
use super::sched::Flow;
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::reclaim::Cursor;
use crate::results::ResultSink;

/// Reclaim runs without a freed page before somebody is killed (MAX_RECLAIM_RETRIES).
const RETRIES: u8 = 16;

impl Sim<'_> {
    /// Frames that the limit leaves; `None` without a limit.
    pub(super) fn under_limit(&self) -> Option<i64> {
        let m = &self.config.machine;
        (m.memory_limit > 0)
            .then(|| (m.memory_limit / 4) as i64 - (m.limit_reserved / 4) as i64 - self.mm.charged() as i64)
    }

    pub(super) fn step_charge(&mut self, t: u32, flags: AllocFlags, at: Alloc, sink: &mut dyn ResultSink) -> Flow {
        match at {
            Alloc::Again | Alloc::Helped | Alloc::Yielded | Alloc::Last => {
                unreachable!("states of the aging kernels' allocator")
            }
            Alloc::Try => {
                if self.under_limit().is_none_or(|left| left > 0) {
                    if let Some(zone) = self.mm.zones.take_low() {
                        return self.charged(t, zone);
                    }
                    self.mm.zones.zone[NORMAL].need_balance = true;
                    self.wake_daemon(self.kswapd);
                    if let Some(zone) = self.mm.zones.take_min(flags) {
                        return self.charged(t, zone);
                    }
                }
                self.tasks[t as usize].set_top(Frame::Alloc { flags, at: Alloc::Rebalance });
            }
            Alloc::Rebalance => {
                let task = &self.tasks[t as usize];
                if task.memalloc || task.dying {
                    return match self.mm.zones.take_any() {
                        Some(zone) => self.charged(t, zone),
                        None => self.allocation_failed(t),
                    };
                }
                if !flags.wait {
                    return self.allocation_failed(t);
                }
                let cursor = Cursor::new(&self.config.reclaim, NORMAL, flags, false);
                self.reclaim_for(t, cursor, flags, Alloc::Reclaimed);
            }
            Alloc::Reclaimed => {
                let task = &mut self.tasks[t as usize];
                task.memalloc = false;
                task.reclaim = None;
                if task.ret == 1 {
                    task.fruitless = 0;
                } else {
                    task.fruitless += 1;
                    self.fruitless += 1;
                    self.charge(self.config.machine.syscall_ns);
                }
                if self.tasks[t as usize].fruitless >= RETRIES {
                    self.tasks[t as usize].fruitless = 0;
                    self.oom_kill(sink);
                    if self.tasks[t as usize].dying {
                        return self.allocation_failed(t);
                    }
                }
                self.tasks[t as usize].set_top(Frame::Alloc { flags, at: Alloc::Try });
            }
        }
        Flow::Continue
    }

    fn charged(&mut self, t: u32, zone: usize) -> Flow {
        self.tasks[t as usize].fruitless = 0;
        self.allocated(t, zone)
    }
}
