//! Page I/O: queueing it, waiting for it, what happens when it is done.

use super::event::Event;
use super::frame::{Bread, Bring, FAILED, Frame};
use super::sched::Flow;
use super::task::{At, Wait};
use super::{InFlight, Sim};
use crate::block::{Bio, BioKind, Cause as IoCause, Dir, Hints, Submit};
use crate::config::MetadataMark;
use crate::mm::page::{List, flag};
use crate::mm::zone::AllocFlags;
use crate::program::Op;
use crate::results::{Cause, ResultSink};
use crate::writeback;
use kreplay_traces::units::{Nanos, SECTORS_PER_PAGE, Sectors};

impl Sim<'_> {
    /// Let the devices start what they can.
    pub(super) fn kick(&mut self) {
        while let Some(s) = self.block.start(self.now) {
            let slot = self.in_flight.iter().position(Option::is_none).unwrap_or_else(|| {
                self.in_flight.push(None);
                self.in_flight.len() - 1
            });
            self.in_flight[slot] = Some(InFlight { dev: s.dev, rq: s.rq });
            let handling = u64::from(s.nr).div_ceil(SECTORS_PER_PAGE) * self.config.machine.completion_page_ns;
            self.events.push(s.done_at + Nanos(handling), Event::IoDone(slot as u32));
        }
        // Whatever could start now has: a timer that is over waits for something else, a completion say.
        if let Some(at) = self.block.timer().filter(|at| *at > self.now)
            && self.block_timer.is_none_or(|t| at < t)
        {
            self.block_timer = Some(at);
            self.events.push(at.max(self.now), Event::BlockTimer);
        }
    }

    /// What a task's bio is for, as schedulers since 2.6 and throttles ask (`wbc_to_write_flags` of 6.1: synchronous what
    /// fsync, sync and the journal write, background what the flusher writes for age or level).
    pub(super) fn hints_of(&self, t: u32, dir: Dir) -> Hints {
        let task = &self.tasks[t as usize];
        let cause = match (dir, task.chain()[0]) {
            (Dir::Read, _) => IoCause::default(),
            (Dir::Write, Frame::Kswapd { .. }) => IoCause::Reclaim,
            (Dir::Write, Frame::Bdflush { .. } | Frame::Kupdate { .. } | Frame::Flusher { .. }) => IoCause::Background,
            (Dir::Write, Frame::Journal) => IoCause::Sync,
            (Dir::Write, _) if task.chain().contains(&Frame::Reclaim) => IoCause::Writeback,
            (Dir::Write, _) => match self.current_op(t) {
                Some(Op::Fsync { .. } | Op::Sync) => IoCause::Sync,
                _ => IoCause::Writeback,
            },
        };
        let (class, level) = self.io_priority[t as usize];
        Hints { class, level, cause, ..Hints::default() }
    }

    /// What tasks hold back goes to the devices: the queues' plugs, or where tasks have lists of their own, this one's.
    pub(super) fn unplug(&mut self, t: u32) {
        if !self.block.any_plugged() {
            return;
        }
        if self.config.queue.task_plugs {
            self.block.flush_plug(t, self.now);
        } else {
            self.block.unplug_all();
        }
        self.kick();
    }

    /// A task has submitted all that it wants to for now (`blk_finish_plug`); queues with a plug of their own know no such
    /// thing.
    pub(super) fn finish_plug(&mut self, t: u32) {
        if self.config.queue.task_plugs && self.block.any_plugged() {
            self.block.finish_plug(t, self.now);
            self.kick();
        }
    }

    /// A device's interrupt: pages become up to date or clean, waiters wake, the next request starts.
    pub(super) fn io_done(&mut self, slot: u32, sink: &mut dyn ResultSink) {
        let Some(InFlight { dev, rq }) = self.in_flight[slot as usize].take() else { return };
        self.since_sample.interrupts += 1;
        self.progress += 1;
        let mut bios = std::mem::take(&mut self.scratch);
        let record = self.block.complete(dev, rq, self.now, &mut bios);
        self.count_io(&record);
        sink.io(&record);
        for b in bios.drain(..) {
            self.bio_done(&b);
        }
        self.scratch = bios;
        self.drain_wakes();
        self.kick();
    }

    fn count_io(&mut self, r: &crate::block::IoRecord) {
        let c = &mut self.mm.counters;
        let bytes = Sectors(u64::from(r.nr)).to_bytes().0;
        let merges = u64::from(r.bios - 1);
        match r.dir {
            Dir::Read => {
                c.disk_read_bytes += bytes;
                c.read_requests += 1;
                c.read_merges += merges;
            }
            Dir::Write => {
                c.disk_write_bytes += bytes;
                c.write_requests += 1;
                c.write_merges += merges;
            }
        }
        if r.seek_sectors == 0 { c.sequential_requests += 1 } else { c.seeks += 1 }
    }

    /// One more page of swap I/O that nobody waits for (`nr_async_pages`).
    fn count_swap_in_flight(&mut self, id: u32) {
        self.mm.set(id, flag::ASYNC_SWAP);
        self.swap_in_flight += 1;
    }

    fn bio_done(&mut self, bio: &Bio) {
        if bio.tag == super::direct::TAG {
            return self.raw_done(bio.task);
        }
        if bio.dir == Dir::Write && self.run_progressed(bio.tag, bio.nr / SECTORS_PER_PAGE as u32) {
            return;
        }
        // Bios of several pages carry pages in a row of one file.
        for k in 0..(bio.nr / SECTORS_PER_PAGE as u32).max(1) {
            self.page_done(bio.tag + k, bio);
        }
    }

    /// A page's write-out is over.
    pub(super) fn written_out(&mut self, id: u32) {
        if self.mm.page(id).any(flag::BUF_LOCKED) {
            self.mm.end_buffer_io(id);
            self.mm.end_writeback(id);
            writeback::refile(&mut self.mm, id);
            self.wake_resting();
        }
        self.forget_orphan(id);
    }

    fn forget_orphan(&mut self, id: u32) {
        let p = self.mm.page(id);
        if p.any(flag::ORPHAN) && p.pins == 0 && !p.any(flag::LOCKED | flag::BUF_LOCKED) {
            self.mm.forget(id);
        }
    }

    fn page_done(&mut self, id: u32, bio: &Bio) {
        if self.mm.page(id).any(flag::ASYNC_SWAP) {
            self.mm.page_mut(id).flags &= !flag::ASYNC_SWAP;
            self.swap_in_flight -= 1;
        }
        if bio.dir == Dir::Read {
            self.mm.set(id, flag::UPTODATE);
        }
        if self.mm.page(id).any(flag::BUF_LOCKED) && bio.kind != BioKind::Swap {
            self.mm.end_buffer_io(id);
            if self.mm.ws.is_some() && bio.dir == Dir::Write {
                self.mm.end_writeback(id);
                writeback::refile(&mut self.mm, id);
                self.wake_resting();
            }
        } else {
            self.mm.unlock(id);
            if self.mm.page(id).has(flag::RECLAIM | flag::ANON) && self.mm.page(id).list != List::None {
                self.mm.clear(id, flag::RECLAIM);
                self.mm.move_to_inactive(id, true);
            }
        }
        self.forget_orphan(id);
    }

    /// Device, partition and first sector of a page: its file's place, or its swap slot.
    pub(super) fn place_of(&self, id: u32) -> (u32, u16, Sectors) {
        let p = self.mm.page(id);
        if p.any(flag::ANON) {
            let swap = self.swap_dev.expect("a page has a swap slot, so there is a swap device");
            return (swap.dev, swap.partition, swap.first + Sectors(u64::from(p.slot) * SECTORS_PER_PAGE));
        }
        let number = self.mm.file_of(id);
        let id = self.mm.base(id);
        let file = &self.program.files[number as usize];
        let sector = self.placement.sector_of(number, file, id - file.first_page);
        let parts = &self.program.devices[file.device as usize].partitions;
        let partition = parts.partition_point(|&s| s <= sector) as u16;
        (file.device, partition, sector)
    }

    pub(super) fn step_submit(&mut self, t: u32, page: u32, dir: Dir, kind: BioKind, waited: bool) -> Flow {
        let (dev, partition, sector) = self.place_of(page);
        let bio = Bio { dir, sector, nr: SECTORS_PER_PAGE as u32, partition, kind, tag: page, task: t };
        if !waited {
            self.charge(self.config.machine.submit_ns);
        }
        if self.submit_bio(dev, bio, waited.then_some(t)) == Submit::Full {
            if !waited {
                self.block.wait_slot(dev, dir, t);
                self.tasks[t as usize].set_top(Frame::Submit { page, dir, kind, waited: true });
            }
            self.kick();
            return self.block_on(t, Wait::Slot);
        }
        self.kick();
        self.tasks[t as usize].pop(0);
        Flow::Continue
    }

    /// `readpage`: a page without a place on disk is zero; others are read where they lie.
    pub(super) fn step_read_page(&mut self, t: u32, page: u32, kind: BioKind, mapped: bool) -> Flow {
        let p = self.mm.page(page);
        if !p.any(flag::ON_DISK) {
            self.mm.set(page, flag::UPTODATE);
            self.mm.unlock(page);
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        if !mapped {
            self.tasks[t as usize].set_top(Frame::ReadPage { page, kind, mapped: true });
            if let Some(block) = self.indirect_to_read(page) {
                self.tasks[t as usize].push(Frame::Bread { page: block, at: Bread::Look });
            }
            return Flow::Continue;
        }
        if self.mm.twins > 0 {
            // What was written lies in a buffer, perhaps newer than the disk: the page is a copy of it.
            let buffer = self.mm.buffer_of(page);
            let b = *self.mm.page(buffer);
            if b.any(flag::PRESENT) {
                self.mm.set(buffer, flag::REFERENCED);
                if !b.any(flag::UPTODATE) && b.any(flag::BUF_LOCKED) {
                    return self.wait_on_page(t, Wait::Buffer(buffer));
                }
                if b.any(flag::UPTODATE) {
                    self.charge(self.config.machine.copy_page_ns);
                    self.mm.set(page, flag::UPTODATE);
                    self.mm.unlock(page);
                    self.tasks[t as usize].pop(0);
                    return Flow::Continue;
                }
            }
        } else {
            self.mm.attach_buffer(page);
        }
        self.tasks[t as usize].set_top(Frame::Submit { page, dir: Dir::Read, kind, waited: false });
        Flow::Continue
    }

    /// `get_block` on a page without a buffer goes through the indirect block that maps it, which counts as a use of that
    /// block; returns it if it has to be brought in first.
    pub(super) fn indirect_to_read(&mut self, page: u32) -> Option<u32> {
        if self.mm.page(page).any(flag::BUFFER) {
            return None;
        }
        let block = self.indirect_of(page)?;
        if !self.mm.page(block).has(flag::PRESENT | flag::UPTODATE) {
            return Some(block);
        }
        self.mark_metadata(block);
        None
    }

    /// A metadata block was found in memory.
    fn mark_metadata(&mut self, page: u32) {
        match self.config.reclaim.metadata_mark {
            MetadataMark::None => {}
            MetadataMark::Referenced => self.mm.set(page, flag::REFERENCED),
            MetadataMark::Accessed => self.mm.mark_accessed(page),
        }
    }

    /// Indirect block that maps a page, if one does.
    pub(super) fn indirect_of(&self, page: u32) -> Option<u32> {
        if self.balanced() {
            // File systems of that time map by extents, in the inode.
            return None;
        }
        let file = &self.program.files[self.mm.file_of(page) as usize];
        let index = self.mm.base(page) - file.first_page;
        let k = index.checked_sub(12)? / 1024;
        file.indirect.get(k as usize).copied()
    }

    /// `bread`: a metadata block, up to date on return.
    pub(super) fn step_bread(&mut self, t: u32, page: u32, at: Bread) -> Flow {
        match at {
            Bread::Look => {
                let p = *self.mm.page(page);
                if p.has(flag::PRESENT | flag::UPTODATE) {
                    self.mark_metadata(page);
                    self.tasks[t as usize].pop(0);
                } else if p.any(flag::PRESENT) {
                    if p.any(flag::BUF_LOCKED) {
                        return self.wait_on_page(t, Wait::Buffer(page));
                    }
                    if p.any(flag::LOCKED) {
                        return self.wait_on_page(t, Wait::Page(page));
                    }
                    self.submit_bread(t, page);
                } else {
                    self.tasks[t as usize].set_top(Frame::Bread { page, at: Bread::Allocated });
                    return self.call_alloc(t, AllocFlags::NOFS);
                }
            }
            Bread::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    // getblk never gives up: yield and try again.
                    self.tasks[t as usize].set_top(Frame::Bread { page, at: Bread::Look });
                    self.charge(self.config.machine.syscall_ns);
                    return Flow::Yield;
                }
                if self.adopt(page, zone as usize) {
                    self.mm.unlock(page);
                    self.submit_bread(t, page);
                } else {
                    self.tasks[t as usize].set_top(Frame::Bread { page, at: Bread::Look });
                }
            }
            Bread::Queued => self.tasks[t as usize].set_top(Frame::Bread { page, at: Bread::Look }),
        }
        Flow::Continue
    }

    fn submit_bread(&mut self, t: u32, page: u32) {
        self.mm.attach_buffer(page);
        if !self.mm.page(page).any(flag::ON_DISK) {
            // A block that the file system allocates now: zeroed in memory, never read.
            self.mm.set(page, flag::ON_DISK | flag::UPTODATE);
            self.dirty_metadata(page);
            self.tasks[t as usize].set_top(Frame::Bread { page, at: Bread::Look });
            return;
        }
        self.mm.set(page, flag::BUF_LOCKED);
        let task = &mut self.tasks[t as usize];
        task.set_top(Frame::Bread { page, at: Bread::Queued });
        task.push(Frame::Submit { page, dir: Dir::Read, kind: BioKind::Meta, waited: false });
    }

    pub(super) fn step_wait_page(&mut self, t: u32, page: u32) -> Flow {
        if self.mm.page(page).any(flag::LOCKED) {
            return self.wait_on_page(t, Wait::Page(page));
        }
        self.tasks[t as usize].pop(0);
        Flow::Continue
    }

    pub(super) fn step_wait_buffer(&mut self, t: u32, page: u32) -> Flow {
        if self.mm.page(page).any(flag::BUF_LOCKED) {
            return self.wait_on_page(t, Wait::Buffer(page));
        }
        self.tasks[t as usize].pop(0);
        Flow::Continue
    }

    pub(super) fn step_write_some(&mut self, t: u32, next: u8, len: u8) -> Flow {
        if next == len {
            self.finish_plug(t);
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        let page = self.tasks[t as usize].batch[next as usize];
        let kind = if self.is_meta(page) { BioKind::Meta } else { BioKind::Data };
        let task = &mut self.tasks[t as usize];
        task.set_top(Frame::WriteSome { next: next + 1, len });
        task.push(Frame::Submit { page, dir: Dir::Write, kind, waited: false });
        Flow::Continue
    }

    /// `writepage` of a page that is locked for it.
    pub(super) fn step_write_out(&mut self, t: u32, page: u32, queued: bool) -> Flow {
        if queued {
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        let p = *self.mm.page(page);
        let left_behind = p.any(flag::SWAP_CACHE) && !p.any(flag::SWAPPED | flag::MAPPED | flag::SHARED);
        if p.any(flag::ORPHAN) || left_behind {
            // Nobody refers to the swap slot any more: no I/O.
            self.mm.unlock(page);
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        if p.forsaken() {
            // The same; from 2.4.10 on the page is given up here, before it stays in the cache, clean.
            if self.mm.aging.is_none() {
                self.mm.set(page, flag::ORPHAN);
            }
            self.mm.unlock(page);
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        let kind = if p.any(flag::ANON) { BioKind::Swap } else { BioKind::Data };
        let mut then = Frame::WriteOut { page, queued: true };
        if kind == BioKind::Swap {
            self.mm.attach_buffer(page);
            self.mm.counters.swap_out_pages += 1;
            self.since_sample.swap_out += 1;
            if self.swap_in_flight > self.swap_flight_limit {
                then = Frame::WaitPage { page };
            } else {
                self.count_swap_in_flight(page);
            }
        }
        let task = &mut self.tasks[t as usize];
        task.set_top(then);
        task.push(Frame::Submit { page, dir: Dir::Write, kind, waited: false });
        Flow::Continue
    }

    /// `swapin_readahead` and `read_swap_cache_async`: the cluster first, then the page itself if it is not in by then.
    pub(super) fn step_swap_in(&mut self, t: u32, page: u32, slot: u32, end: u32, at: Bring) -> Flow {
        let own = self.mm.page(page).slot;
        let target = if slot < end { self.mm.swap.owner(slot) } else { Some(page) };
        let finished = |sim: &mut Self| {
            sim.finish_plug(t);
            sim.tasks[t as usize].pop(0);
            Flow::Continue
        };
        let next = |sim: &mut Self| {
            if slot >= end {
                return finished(sim);
            }
            sim.tasks[t as usize].set_top(Frame::SwapIn { page, slot: slot + 1, end, at: Bring::Next });
            Flow::Continue
        };
        if own == 0 {
            return finished(self);
        }
        match at {
            Bring::Next => match target {
                // The cluster's window was looked up before we slept; a freed slot ends it.
                None => {
                    self.tasks[t as usize].set_top(Frame::SwapIn { page, slot: end, end, at: Bring::Next });
                    Flow::Continue
                }
                Some(_) if slot < end && self.swap_in_flight >= self.swap_flight_limit => {
                    // Reading ahead must not wait: only the page itself is left to read.
                    self.tasks[t as usize].set_top(Frame::SwapIn { page, slot: end, end, at: Bring::Next });
                    Flow::Continue
                }
                Some(id) if self.mm.page(id).any(flag::PRESENT) => {
                    self.mm.looked_up(id);
                    next(self)
                }
                Some(_) => {
                    self.tasks[t as usize].set_top(Frame::SwapIn { page, slot, end, at: Bring::Allocated });
                    self.call_alloc(t, AllocFlags::USER)
                }
            },
            Bring::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    self.tasks[t as usize].pop(FAILED);
                    return Flow::Continue;
                }
                let Some(id) = target.filter(|&id| !self.mm.page(id).any(flag::PRESENT)) else {
                    self.mm.zones.give(zone as usize);
                    return next(self);
                };
                self.mm.add_anon(id, zone as usize);
                self.mm.add_to_swap_cache(id);
                self.mm.lru_add(id);
                self.mm.refault(id, true);
                self.mm.lock(id);
                self.mm.clear(id, flag::UPTODATE | flag::DIRTY | flag::REFERENCED);
                self.mm.attach_buffer(id);
                self.mm.counters.swap_in_pages += 1;
                self.since_sample.swap_in += 1;
                self.count_swap_in_flight(id);
                let task = &mut self.tasks[t as usize];
                task.set_top(Frame::SwapIn { page, slot, end, at: Bring::Queued });
                task.push(Frame::Submit { page: id, dir: Dir::Read, kind: BioKind::Swap, waited: false });
                Flow::Continue
            }
            Bring::Queued => next(self),
        }
    }

    /// A wait on a page, by what the waiter does: its own read, somebody's lock, or a sync.
    pub(super) fn page_wait_cause(&self, t: u32, wait: Wait) -> Cause {
        let task = &self.tasks[t as usize];
        if task.daemon {
            return Cause::Sync;
        }
        match self.current_op(t) {
            Some(Op::Fsync { .. } | Op::Sync) => Cause::Sync,
            Some(Op::Direct { .. }) => Cause::Read,
            Some(Op::Read { .. } | Op::Readdir { .. }) if task.op.at != At::LockWait => Cause::Read,
            Some(Op::Write { .. } | Op::RecvWrite { .. }) if task.op.at == At::Filled => Cause::Read,
            // A fault on a mapped file is a read of it; only anonymous pages come from swap.
            Some(Op::Touch { .. }) => match wait {
                Wait::Page(id) if self.mm.page(id).any(flag::ANON) => Cause::SwapIn,
                _ => Cause::Read,
            },
            _ => Cause::PageLock,
        }
    }
}
