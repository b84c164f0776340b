//! Pressure: time in which tasks waited for I/O or for memory, and in which nothing else ran.
//!
//! Source: kernel/sched/psi.c of 6.1 to 6.18. Reduced: one state for all processors instead of one each, weighed by what is not
//! idle; waits for pages that were active before they were evicted do not count as memory's; a task inside reclaim that runs
//! counts as running.

use super::Sim;
use super::frame::Frame;
use super::task::Wait;
use crate::results::{Cause, VmStat};
use kreplay_traces::units::Nanos;

/// What a sleeping task counts as.
const IO: u8 = 1;
const MEMORY: u8 = 2;

/// Tasks by state, and the times so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pressure {
    io: u32,
    memory: u32,
    since: Nanos,
    /// I/O: some, full; memory: some, full.
    times: [Nanos; 4],
}

impl Sim<'_> {
    /// A task goes to sleep.
    pub(super) fn pressure_of_sleep(&mut self, t: u32, wait: Wait) {
        let task = &mut self.tasks[t as usize];
        let throttled = wait == Wait::Time && matches!(task.top(), Frame::Throttle { .. });
        let io = throttled || matches!(wait, Wait::Page(_) | Wait::Buffer(_) | Wait::Slot | Wait::Raw);
        let memory = matches!(task.cause, Cause::Reclaim | Cause::SwapIn);
        task.pressure = if io { IO } else { 0 } | if memory { MEMORY } else { 0 };
        self.pressure.io += u32::from(io);
        self.pressure.memory += u32::from(memory);
    }

    /// It wakes.
    pub(super) fn pressure_of_wake(&mut self, t: u32) {
        let was = std::mem::take(&mut self.tasks[t as usize].pressure);
        self.pressure.io -= u32::from(was & IO > 0);
        self.pressure.memory -= u32::from(was & MEMORY > 0);
    }

    /// Time moves on to `now`: the states since the last call count until then.
    pub(super) fn pressure_until(&mut self, now: Nanos) {
        let runs = !self.run_queue.is_empty() || self.running.iter().any(Option::is_some);
        let p = &mut self.pressure;
        let span = now.saturating_sub(p.since);
        p.since = now;
        for (i, waiting) in [p.io, p.memory].into_iter().enumerate() {
            if waiting > 0 {
                p.times[2 * i] += span;
                if !runs {
                    p.times[2 * i + 1] += span;
                }
            }
        }
    }

    /// What /proc/vmstat and /proc/pressure would show.
    pub(super) fn vmstat(&self) -> Option<VmStat> {
        let ws = self.mm.ws.as_ref()?;
        let c = &self.mm.counters;
        let us = self.pressure.times.map(|t| t.get() / 1000);
        let by = |who: usize| ws.reclaimed_by[who];
        Some(VmStat {
            pgpgin: c.disk_read_bytes / 1024,
            pgpgout: c.disk_write_bytes / 1024,
            pswpin: c.swap_in_pages,
            pswpout: c.swap_out_pages,
            pgscan_kswapd: by(0).0,
            pgscan_direct: by(1).0,
            pgsteal_kswapd: by(0).1,
            pgsteal_direct: by(1).1,
            pgscan_anon: ws.scanned[0],
            pgscan_file: ws.scanned[1],
            pgsteal_anon: ws.stolen[0],
            pgsteal_file: ws.stolen[1],
            pgactivate: c.activated_pages,
            pgdeactivate: c.deactivated_pages,
            workingset_refault_anon: ws.refaults[0],
            workingset_refault_file: ws.refaults[1],
            workingset_activate_anon: ws.activations[0],
            workingset_activate_file: ws.activations[1],
            workingset_restore_anon: ws.restored[0],
            workingset_restore_file: ws.restored[1],
            nr_dirtied: ws.dirtied,
            nr_written: ws.written,
            pressure_io_some_us: us[0],
            pressure_io_full_us: us[1],
            pressure_memory_some_us: us[2],
            pressure_memory_full_us: us[3],
        })
    }
}
