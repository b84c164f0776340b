//! kswapd, bdflush, kupdate of 2.4.10 to 2.4.17.
//!
//! Source: mm/vmscan.c (`kswapd`), fs/buffer.c (`bdflush`, `kupdate`, `sync_old_buffers`).

use super::Sim;
use super::frame::{Balance, Bdflush, Bread, Frame, Kswapd, Kupdate};
use super::sched::Flow;
use super::task::Wait;
use crate::config::{OomRule, ReclaimPolicy, WritebackPolicy};
use crate::mm::buffer::BufList;
use crate::mm::page::NIL;
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::reclaim::Cursor;
use crate::results::ResultSink;
use crate::writeback::{self, DirtyState};
use kreplay_traces::units::Nanos;

impl Sim<'_> {
    pub(super) fn step_kswapd(&mut self, t: u32, at: Kswapd, class: u8, more: bool, sink: &mut dyn ResultSink) -> Flow {
        if self.config.reclaim.policy == ReclaimPolicy::Aging {
            return self.step_kswapd_aging(t, at, sink);
        }
        if self.config.reclaim.policy == ReclaimPolicy::Clock {
            return self.step_kswapd_global(t, at);
        }
        let set = |sim: &mut Self, at, class, more| sim.tasks[t as usize].set_top(Frame::Kswapd { at, class, more });
        match at {
            Kswapd::Look | Kswapd::Ran => unreachable!("states of the aging kernels' kswapd"),
            Kswapd::Sleep => {
                if !self.mm.zones.zone.iter().any(|z| z.need_balance) {
                    return self.block_on(t, Wait::Daemon);
                }
                self.mm.counters.kswapd_runs += 1;
                set(self, Kswapd::Zone, NORMAL as u8, false);
            }
            Kswapd::Zone => {
                if !self.mm.zones.zone[class as usize].need_balance {
                    return self.next_zone(t, class, more, sink);
                }
                let cursor = Cursor::new(&self.config.reclaim, class as usize, AllocFlags::USER, false);
                let task = &mut self.tasks[t as usize];
                task.reclaim = Some(cursor);
                set(self, Kswapd::Reclaimed, class, more);
                self.tasks[t as usize].push(Frame::Reclaim);
            }
            Kswapd::Reclaimed => {
                let zone = class as usize;
                if self.tasks[t as usize].ret == 0 {
                    self.mm.zones.zone[zone].need_balance = false;
                    set(self, Kswapd::Rested, class, more);
                    let at = self.timeout_at(Nanos::from_millis(self.config.reclaim.kswapd_fail_ms));
                    return self.sleep_until(t, at);
                }
                let balanced = self.mm.zones.balanced(zone);
                if balanced {
                    self.mm.zones.zone[zone].need_balance = false;
                }
                return self.next_zone(t, class, more || !balanced, sink);
            }
            Kswapd::Rested => return self.next_zone(t, class, more, sink),
        }
        Flow::Continue
    }

    fn next_zone(&mut self, t: u32, class: u8, more: bool, sink: &mut dyn ResultSink) -> Flow {
        if (class, more) == (0, true) && self.config.reclaim.oom == OomRule::Kswapd && self.out_of_everything() {
            self.oom_kill(sink);
        }
        let next = match (class, more) {
            (0, true) => Frame::Kswapd { at: Kswapd::Zone, class: NORMAL as u8, more: false },
            (0, false) => {
                // Balanced: run tq_disk and sleep.
                self.unplug(t);
                Frame::Kswapd { at: Kswapd::Sleep, class: 0, more: false }
            }
            _ => Frame::Kswapd { at: Kswapd::Zone, class: class - 1, more },
        };
        self.tasks[t as usize].set_top(next);
        Flow::Continue
    }

    pub(super) fn step_bdflush(&mut self, t: u32, at: Bdflush) -> Flow {
        match at {
            Bdflush::Write => {
                let (batch, full) = self.take_batch(t);
                let task = &mut self.tasks[t as usize];
                task.set_top(Frame::Bdflush { at: Bdflush::Wrote { full, wrote: batch.is_some() } });
                if let Some(batch) = batch {
                    task.push(batch);
                }
            }
            Bdflush::Wrote { full, wrote } if self.config.writeback.policy == WritebackPolicy::WaitBdflush => {
                self.bdflush_left = self.bdflush_left.saturating_sub(self.config.writeback.batch);
                if full && self.bdflush_left > 0 {
                    self.tasks[t as usize].set_top(Frame::Bdflush { at: Bdflush::Write });
                    return Flow::Continue;
                }
                // Its share is written, or nothing more is dirty.
                let share = self.config.writeback.flush_buffers;
                let anything = wrote || self.bdflush_left + self.config.writeback.batch < share;
                self.bdflush_left = share;
                self.block.unplug_all();
                self.kick();
                for waiter in std::mem::take(&mut self.bdflush_waiters) {
                    self.wake(waiter);
                }
                let goes_on = anything && writeback::state(&self.mm, &self.limits) != DirtyState::Fine;
                let at = if goes_on { Bdflush::Write } else { Bdflush::Waited };
                self.tasks[t as usize].set_top(Frame::Bdflush { at });
                // Those who were woken go first.
                return if goes_on { Flow::Yield } else { Flow::Continue };
            }
            Bdflush::Wrote { full, wrote } => {
                let policy = self.config.writeback.policy;
                let goes_on = match policy {
                    WritebackPolicy::Hysteresis => return self.bdflush_goes_on(t, full),
                    WritebackPolicy::WriteSome | WritebackPolicy::WakeAndWait => full,
                    WritebackPolicy::WakeBdflush | WritebackPolicy::WaitBdflush | WritebackPolicy::Balanced => {
                        full || wrote
                    }
                };
                if goes_on && writeback::state(&self.mm, &self.limits) != DirtyState::Fine {
                    self.tasks[t as usize].set_top(Frame::Bdflush { at: Bdflush::Write });
                    return Flow::Continue;
                }
                self.tasks[t as usize].set_top(Frame::Bdflush { at: Bdflush::Waited });
                if policy != WritebackPolicy::WriteSome {
                    self.unplug(t);
                    return Flow::Continue;
                }
                if let Some(page) = writeback::first_locked(&mut self.mm) {
                    self.tasks[t as usize].push(Frame::WaitBuffer { page });
                }
            }
            Bdflush::Waited => {
                self.tasks[t as usize].set_top(Frame::Bdflush { at: Bdflush::Write });
                self.tasks[t as usize].op.pos = 0;
                return self.block_on(t, Wait::Daemon);
            }
        }
        Flow::Continue
    }

    /// bdflush with hysteresis, after a batch: it looks at the level only when it has written its number of buffers, which
    /// the task's cursor counts, and sleeps when that is low or nothing is left to write.
    fn bdflush_goes_on(&mut self, t: u32, full: bool) -> Flow {
        let wb = &self.config.writeback;
        let (most, batch) = (u64::from(wb.bdflush_buffers), u64::from(wb.batch));
        let task = &mut self.tasks[t as usize];
        task.op.pos += batch;
        let mut next = Bdflush::Write;
        if !full {
            next = Bdflush::Waited;
        } else if task.op.pos >= most {
            task.op.pos = 0;
            if writeback::may_stop(&self.mm, &self.limits) {
                next = Bdflush::Waited;
            }
        }
        task.set_top(Frame::Bdflush { at: next });
        Flow::Continue
    }

    pub(super) fn step_kupdate(&mut self, t: u32, at: Kupdate) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Kupdate { at });
        match at {
            Kupdate::Begin => {
                set(self, Kupdate::Sleep);
                if self.config.writeback.policy != WritebackPolicy::WriteSome {
                    self.unplug(t);
                    return Flow::Continue;
                }
                if let Some(page) = writeback::first_locked(&mut self.mm) {
                    self.tasks[t as usize].push(Frame::WaitBuffer { page });
                }
            }
            Kupdate::Sleep => {
                set(self, Kupdate::Inodes);
                self.tasks[t as usize].op.pos = 0;
                let interval = Nanos::from_millis(self.config.writeback.interval_ms);
                let at = self.first_kupdate.take().unwrap_or(interval);
                let at = self.timeout_at(at);
                return self.sleep_until(t, at);
            }
            Kupdate::Inodes => match self.next_dirty_inode(t) {
                Some(block) => {
                    set(self, Kupdate::InodeRead);
                    self.tasks[t as usize].push(Frame::Bread { page: block, at: Bread::Look });
                }
                None => set(self, Kupdate::Buffers),
            },
            Kupdate::InodeRead => {
                set(self, Kupdate::Inodes);
                self.inode_written(t);
            }
            Kupdate::Buffers => {
                let oldest = self.mm.bufs.first(BufList::Dirty);
                if oldest == NIL || self.mm.bufs.flush_at(oldest) > self.tick() {
                    set(self, Kupdate::Begin);
                    return Flow::Continue;
                }
                // Where one that is due takes a batch with it, younger ones go as well.
                let due = (self.config.writeback.policy != WritebackPolicy::WriteSome).then(|| self.tick());
                let (batch, full) = self.take_batch_due(t, due);
                if !full {
                    // Fewer than a batch: that was all.
                    set(self, Kupdate::Begin);
                }
                if let Some(batch) = batch {
                    self.tasks[t as usize].push(batch);
                }
            }
        }
        Flow::Continue
    }

    /// `sync_inodes`: the next dirty inode's block, from the task's cursor on. Inodes without a block are clean at once.
    pub(super) fn next_dirty_inode(&mut self, t: u32) -> Option<u32> {
        let from = self.tasks[t as usize].op.pos as u32;
        for file in from..self.program.files.len() as u32 {
            if self.mm.names.inode_dirty(file) {
                match self.program.files[file as usize].inode_page {
                    Some(block) => {
                        self.tasks[t as usize].op.pos = u64::from(file);
                        return Some(block);
                    }
                    None => self.mm.names.set_inode_dirty(file, false),
                }
            }
        }
        None
    }

    /// The inode at the task's cursor goes into its block; whoever makes a buffer dirty looks at the level (`mark_buffer_dirty`).
    pub(super) fn inode_written(&mut self, t: u32) {
        let file = self.tasks[t as usize].op.pos as u32;
        self.mm.names.set_inode_dirty(file, false);
        let newly = self.program.files[file as usize].inode_page.is_some_and(|block| self.dirty_metadata(block));
        self.tasks[t as usize].op.pos += 1;
        if newly && !self.balanced() && writeback::over_soft(&self.mm, &self.limits) {
            self.tasks[t as usize].push(Frame::Balance { at: Balance::Look });
        }
    }
}
