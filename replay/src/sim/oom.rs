//! Out of memory: when 2.4.11 to 2.4.17 kill, and whom.
//!
//! Source: mm/oom_kill.c (`out_of_memory`, `badness`).

use super::Sim;
use super::task::Wait;
use crate::results::{EventKind, EventRow, ResultSink};
use kreplay_traces::units::Nanos;

/// Slice of a victim (5 * HZ ticks).
const VICTIM_SLICE: Nanos = Nanos::from_secs(5);

impl Sim<'_> {
    /// Reclaim failed at every priority. Kill if swap is full and this has gone on: failures less than 5 s apart, for at
    /// least 1 s, often enough.
    pub(super) fn out_of_memory(&mut self, sink: &mut dyn ResultSink) {
        if self.mm.swap.free() > 0 {
            return;
        }
        let now = self.now;
        let since_last = now.saturating_sub(self.oom.last);
        self.oom.last = now;
        if since_last <= Nanos::from_secs(5) {
            if now.saturating_sub(self.oom.first) < Nanos::from_secs(1) {
                return;
            }
            self.oom.count += 1;
            if self.oom.count < self.config.reclaim.oom_failures {
                return;
            }
            self.oom_kill(sink);
        }
        self.oom.first = now;
        self.oom.count = 0;
    }

    /// `out_of_memory` of 2.4.11 to 2.4.13: no zone above `low`, no swap slot, and less than 2 % of memory in caches.
    pub(super) fn out_of_everything(&self) -> bool {
        let frames: u64 = self.mm.zones.zone.iter().map(|z| z.size).sum();
        self.mm.zones.all_low() && self.mm.swap.free() == 0 && self.mm.cache_pages <= frames / 100 * 2
    }

    pub(super) fn oom_kill(&mut self, sink: &mut dyn ResultSink) {
        let victim = (0..self.program.tasks.len() as u32)
            .filter(|&t| {
                // A victim that has not got round to ending yet may be chosen again.
                !matches!(self.tasks[t as usize].wait, Wait::Ended | Wait::Start)
            })
            .map(|t| (self.badness(t), std::cmp::Reverse(t)))
            .max();
        let Some((points, std::cmp::Reverse(t))) = victim else { return };
        if points > 0 {
            let text = format!(
                "Out of Memory: Killed process {} ({}).",
                self.program.tasks[t as usize].tid, self.program.tasks[t as usize].name
            );
            self.kill(t, &text, sink);
            // So that it ends soon: a long slice. (Its allocations are privileged as long as it is dying.)
            if self.by_goodness() {
                self.give_slice(t, VICTIM_SLICE);
            }
        }
    }

    /// Pages of address space, less for tasks that have run for long.
    fn badness(&self, t: u32) -> u64 {
        let pages = self.mm.spaces.total_pages(t);
        let task = &self.tasks[t as usize];
        let age = self.now.saturating_sub(task.total.start.unwrap_or(self.now));
        let run_units = (age.0 / self.tick_ns()) >> 17;
        pages / run_units.isqrt().isqrt().max(1)
    }

    /// Mark a task killed: it ends when it leaves its operation.
    pub(super) fn kill(&mut self, t: u32, text: &str, sink: &mut dyn ResultSink) {
        self.mm.counters.oom_kills += 1;
        sink.event(&EventRow { time: self.now, task: Some(t), kind: EventKind::OomKill, text: text.to_owned() });
        let task = &mut self.tasks[t as usize];
        task.dying = true;
        task.total.killed = true;
        // A signal ends interruptible waits.
        if matches!(task.wait, Wait::Time | Wait::Channel(_)) {
            self.wake(t);
        }
    }
}
