//! Getting frames: `__alloc_pages` of 2.4.10 to 2.4.17, order 0, and the reclaim runs on its behalf.

use super::Sim;
use super::frame::{Alloc, FAILED, Frame, WriteUnused};
use super::sched::Flow;
use crate::block::{BioKind, Dir};
use crate::config::AllocPolicy;
use crate::mm::zone::AllocFlags;
use crate::reclaim::{self, Cursor, Need};
use crate::results::{EventKind, EventRow, ResultSink};

impl Sim<'_> {
    /// Push a frame that gets a page frame; its zone is returned.
    pub(super) fn call_alloc(&mut self, t: u32, flags: AllocFlags) -> Flow {
        self.tasks[t as usize].push(Frame::Alloc { flags, at: Alloc::Try });
        Flow::Continue
    }

    pub(super) fn step_alloc(&mut self, t: u32, flags: AllocFlags, at: Alloc, sink: &mut dyn ResultSink) -> Flow {
        if self.config.alloc.policy == AllocPolicy::ThreeList {
            return self.step_alloc_aging(t, flags, at, sink);
        }
        if self.config.alloc.policy == AllocPolicy::Global {
            return self.step_alloc_global(t, flags, at, sink);
        }
        if self.config.alloc.policy == AllocPolicy::Watermarks {
            return self.step_charge(t, flags, at, sink);
        }
        match at {
            Alloc::Again | Alloc::Helped | Alloc::Yielded | Alloc::Last => {
                unreachable!("states of the aging kernels' allocator")
            }
            Alloc::Try => {
                if let Some(zone) = self.mm.zones.take_low() {
                    return self.allocated(t, zone);
                }
                let class = self.mm.zones.classzone();
                self.mm.zones.zone[class].need_balance = true;
                self.wake_daemon(self.kswapd);
                if let Some(zone) = self.mm.zones.take_min(flags) {
                    return self.allocated(t, zone);
                }
                self.tasks[t as usize].set_top(Frame::Alloc { flags, at: Alloc::Rebalance });
            }
            Alloc::Rebalance => {
                let task = &self.tasks[t as usize];
                if task.memalloc || task.dying {
                    match self.mm.zones.take_any() {
                        Some(zone) => return self.allocated(t, zone),
                        None => return self.allocation_failed(t),
                    }
                }
                if !flags.wait {
                    return self.refused(t, sink);
                }
                let class = self.mm.zones.classzone();
                let cursor = Cursor::new(&self.config.reclaim, class, flags, true);
                self.reclaim_for(t, cursor, flags, Alloc::Reclaimed);
            }
            Alloc::Reclaimed => {
                let task = &mut self.tasks[t as usize];
                task.memalloc = false;
                let freed = task.ret == 1;
                if let Some(kept) = task.reclaim.take().and_then(|c| c.kept) {
                    if freed {
                        return self.allocated(t, usize::from(kept));
                    }
                    self.mm.zones.give(usize::from(kept));
                }
                let gives_up = self.config.alloc.policy == AllocPolicy::ClasszoneFail;
                let found = if gives_up && !freed {
                    // Somebody else may have been killed or have ended meanwhile.
                    self.mm.zones.take_high()
                } else {
                    self.mm.zones.take_min(AllocFlags::USER)
                };
                if let Some(zone) = found {
                    return self.allocated(t, zone);
                }
                if gives_up && !freed {
                    return self.refused(t, sink);
                }
                self.fruitless += 1;
                self.charge(self.config.machine.syscall_ns);
                self.tasks[t as usize].set_top(Frame::Alloc { flags, at: Alloc::Rebalance });
                if gives_up {
                    // 2.4.10 goes round without a yield; the event queue must see other tasks all the same.
                    return Flow::Continue;
                }
                // These kernels never give up a single frame: yield to kswapd and try again.
                return Flow::Yield;
            }
        }
        Flow::Continue
    }

    pub(super) fn allocated(&mut self, t: u32, zone: usize) -> Flow {
        self.mm.note_free();
        self.fruitless = 0;
        self.tasks[t as usize].pop(zone as u32);
        Flow::Continue
    }

    /// The request fails, loudly where the kernel says so.
    pub(super) fn refused(&mut self, t: u32, sink: &mut dyn ResultSink) -> Flow {
        if !matches!(self.config.alloc.policy, AllocPolicy::ClasszoneRetry | AllocPolicy::Global) {
            let mask = match self.tasks[t as usize].top() {
                Frame::Alloc { flags, .. } => flags.mask(),
                _ => AllocFlags::USER.mask(),
            };
            let text = format!("__alloc_pages: 0-order allocation failed (gfp={mask:#x})");
            sink.event(&EventRow { time: self.now, task: Some(t), kind: EventKind::AllocFailure, text });
        }
        self.allocation_failed(t)
    }

    pub(super) fn allocation_failed(&mut self, t: u32) -> Flow {
        self.mm.counters.alloc_failures += 1;
        self.tasks[t as usize].pop(FAILED);
        Flow::Continue
    }

    /// Reclaim on behalf of an allocation, which goes on at `then`; what that allocates comes from the reserve (PF_MEMALLOC).
    pub(super) fn reclaim_for(&mut self, t: u32, cursor: Cursor, flags: AllocFlags, then: Alloc) {
        self.mm.counters.direct_reclaim_calls += 1;
        let task = &mut self.tasks[t as usize];
        task.memalloc = true;
        task.reclaim = Some(cursor);
        task.set_top(Frame::Alloc { flags, at: then });
        task.push(Frame::Reclaim);
    }

    /// A frame came back for a page of the page cache: use it, unless somebody else was faster. True if the page is the
    /// caller's to fill.
    pub(super) fn adopt(&mut self, id: u32, zone: usize) -> bool {
        let ours = self.mm.adopt_frame(id, zone);
        if ours {
            self.charge(self.config.machine.page_cache_add_ns);
        }
        ours
    }

    /// Pages looked at and freed by reclaim until now (refault-aware lists).
    fn reclaimed_so_far(&self) -> (u64, u64) {
        self.mm.ws.as_ref().map_or((0, 0), |w| (w.scanned[0] + w.scanned[1], w.stolen[0] + w.stolen[1]))
    }

    /// What a task's step of reclaim did counts as its own, except under a limit.
    fn note_reclaimed(&mut self, t: u32, before: (u64, u64)) {
        let direct = t != self.kswapd;
        let after = self.reclaimed_so_far();
        if direct && self.config.machine.memory_limit > 0 {
            return;
        }
        if let Some(ws) = &mut self.mm.ws {
            let by = &mut ws.reclaimed_by[usize::from(direct)];
            *by = (by.0 + after.0 - before.0, by.1 + after.1 - before.1);
        }
    }

    pub(super) fn step_reclaim(&mut self, t: u32, sink: &mut dyn ResultSink) -> Flow {
        let Some(mut cur) = self.tasks[t as usize].reclaim else { unreachable!("a reclaim frame without its cursor") };
        let before = self.reclaimed_so_far();
        let need = reclaim::step(&self.config.reclaim, &mut self.mm, &mut cur, &self.limits);
        self.note_reclaimed(t, before);
        let scanned = std::mem::take(&mut cur.scanned);
        self.tasks[t as usize].reclaim = Some(cur);
        self.charge(u64::from(scanned) * self.config.machine.scan_page_ns);
        match need {
            Need::Done(ok) => self.tasks[t as usize].pop(u32::from(ok)),
            Need::WritePage(page) => self.tasks[t as usize].push(Frame::WriteOut { page, queued: false }),
            Need::WriteBuffer(page) => {
                let kind = if self.is_meta(page) { BioKind::Meta } else { BioKind::Data };
                self.tasks[t as usize].push(Frame::Submit { page, dir: Dir::Write, kind, waited: false });
            }
            Need::WaitPage(page) => self.tasks[t as usize].push(Frame::WaitPage { page }),
            Need::WaitBuffer(page) => self.tasks[t as usize].push(Frame::WaitBuffer { page }),
            Need::WriteUnusedInodes => self.tasks[t as usize].push(Frame::WriteUnused { at: WriteUnused::Next }),
            Need::OutOfMemory => self.out_of_memory(sink),
            Need::Throttle => self.tasks[t as usize].push(Frame::Rest { begun: false }),
        }
        Flow::Continue
    }
}
