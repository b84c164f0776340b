//! write(): `generic_file_write` with `block_prepare_write` and `generic_commit_write`, and `balance_dirty`.
//!
//! Source: mm/filemap.c and fs/buffer.c of 2.4.10 to 2.4.17. A write of part of a block that is not in memory reads it
//! first, with the page locked and the inode's semaphore held.

use super::Sim;
use super::extents::allocation_end;
use super::frame::{Balance, Bread, FAILED, Frame};
use super::placement::{Near, Stream};
use super::sched::Flow;
use super::task::{At, Wait};
use crate::block::{BioKind, Dir};
use crate::config::{WriteMark, WritebackPolicy};
use crate::mm::page::{flag, noop};
use crate::mm::zone::AllocFlags;
use crate::program::FileKind;
use crate::writeback::{self, DirtyState};
use kreplay_traces::units::{Nanos, PAGE_BYTES};

/// Files up to this size are placed one behind the other, whatever their directories (ext4's `s_mb_stream_request`).
pub(super) const SMALL_BYTES: u64 = 64 << 10;

impl Sim<'_> {
    /// One step of a write; `None` when it is done.
    pub(super) fn step_write(&mut self, t: u32) -> Option<Flow> {
        match self.tasks[t as usize].op.at {
            At::Begin => Some(self.begin_write(t)),
            At::Loop => self.write_loop(t),
            At::Waited => {
                // Somebody else held the page.
                let id = self.written_page(t);
                if self.mm.page(id).any(flag::LOCKED) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                self.unpin(t, id);
                self.tasks[t as usize].op.at = At::Loop;
                Some(Flow::Continue)
            }
            At::Allocated => Some(self.write_allocated(t)),
            At::Mapped => Some(self.prepare_block(t)),
            At::BlockRead => {
                let id = self.written_page(t);
                let task = &mut self.tasks[t as usize];
                task.op.at = At::Filled;
                task.push(Frame::WaitBuffer { page: id });
                Some(Flow::Continue)
            }
            At::Filled => Some(self.commit(t)),
            At::Paused => {
                self.tasks[t as usize].op.at = At::Loop;
                Some(Flow::Continue)
            }
            At::Balanced => {
                self.end_page(t);
                Some(Flow::Continue)
            }
            at => unreachable!("a write is never at {at:?}"),
        }
    }

    /// Page that holds what is written at the task's position.
    fn written_page(&self, t: u32) -> u32 {
        self.mm.buffer_of(self.page_in_hand(t))
    }

    fn begin_write(&mut self, t: u32) -> Flow {
        let file = self.tasks[t as usize].op.file;
        let f = &mut self.files[file as usize];
        match f.writer {
            Some(w) if w == t => {}
            Some(_) => {
                f.waiting.push_back(t);
                return self.block_on(t, Wait::Inode(file));
            }
            None => f.writer = Some(t),
        }
        if self.balanced() && !self.note_change(t, file) {
            return self.block_on(t, Wait::Journal);
        }
        self.tasks[t as usize].op.at = At::Loop;
        self.mm.names.set_inode_dirty(file, true);
        self.charge(self.config.machine.syscall_ns);
        Flow::Continue
    }

    /// `file_update_time`: the inode's time of change moves on with the timer tick. False if its block is on its way into the
    /// journal.
    fn note_change(&mut self, t: u32, file: u32) -> bool {
        let tick = self.local_now().0 / self.tick_ns() + 1;
        if self.files[file as usize].changed == tick {
            return true;
        }
        if self.journal_holds(t, file, false) {
            return false;
        }
        self.files[file as usize].changed = tick;
        self.note_metadata(file, false, false);
        true
    }

    /// Give the inode's semaphore to the next writer.
    pub(super) fn release_inode(&mut self, t: u32, file: u32) {
        let f = &mut self.files[file as usize];
        debug_assert_eq!(f.writer, Some(t));
        f.writer = f.waiting.pop_front();
        if let Some(next) = f.writer {
            self.wake(next);
        }
    }

    #[inline(never)]
    fn run_write_hits(&mut self, t: u32) {
        let op = self.tasks[t as usize].op;
        if op.pos.is_multiple_of(PAGE_BYTES) {
            self.take_hits(t, op.end / PAGE_BYTES - op.pos / PAGE_BYTES, noop::WRITE);
        }
    }

    fn write_loop(&mut self, t: u32) -> Option<Flow> {
        loop {
            self.run_write_hits(t);
            let op = self.tasks[t as usize].op;
            if op.pos >= op.end {
                self.release_inode(t, op.file);
                return None;
            }
            if self.burst_used() {
                return Some(Flow::Continue);
            }
            let id = self.written_page(t);
            self.mm.readopt(id);
            let p = *self.mm.page(id);
            let apart = self.mm.is_twin(id);
            if !p.any(flag::PRESENT) {
                self.mm.counters.page_misses += 1;
                self.tasks[t as usize].op.at = At::Allocated;
                return Some(self.call_alloc(t, if apart { AllocFlags::NOIO } else { AllocFlags::USER }));
            }
            self.mm.counters.page_hits += 1;
            if apart {
                // A buffer found in memory is touched, a new one is not.
                self.mm.set(id, flag::REFERENCED);
            }
            if p.any(flag::LOCKED) {
                self.pin(t, id);
                self.tasks[t as usize].op.at = At::Waited;
                return Some(Flow::Continue);
            }
            self.mm.lock(id);
            // Nothing to read, no block to find: stay in this loop.
            if p.has(flag::UPTODATE | flag::BUFFER) && (!apart || self.indirect_to_read(self.mm.base(id)).is_none()) {
                if self.commit(t) == Flow::Continue && self.tasks[t as usize].op.at == At::Loop {
                    continue;
                }
                return Some(Flow::Continue);
            }
            return Some(self.find_block(t, id));
        }
    }

    fn write_allocated(&mut self, t: u32) -> Flow {
        let id = self.written_page(t);
        let zone = self.tasks[t as usize].ret;
        let apart = self.mm.is_twin(id);
        let op = &mut self.tasks[t as usize].op;
        op.at = At::Loop;
        if zone == FAILED && apart {
            // A buffer is had sooner or later: bdflush has to make room.
            self.fruitless += 1;
            return self.wait_for_bdflush(t);
        }
        if zone == FAILED {
            // The write ends short (ENOMEM).
            op.end = op.pos;
            return Flow::Continue;
        }
        if !self.adopt(id, zone as usize) {
            return Flow::Continue;
        }
        self.mm.refault(id, false);
        self.find_block(t, id)
    }

    /// `get_block`: the indirect block has to be in memory; a block that is allocated now dirties it.
    fn find_block(&mut self, t: u32, id: u32) -> Flow {
        let missing = self.indirect_to_read(self.mm.base(id));
        let task = &mut self.tasks[t as usize];
        task.op.at = At::Mapped;
        if let Some(block) = missing {
            task.push(Frame::Bread { page: block, at: Bread::Look });
        }
        Flow::Continue
    }

    fn prepare_block(&mut self, t: u32) -> Flow {
        let id = self.written_page(t);
        let base = self.mm.base(id);
        let op = &self.tasks[t as usize].op;
        let offset = op.pos % PAGE_BYTES;
        let whole = offset == 0 && op.end - op.pos >= PAGE_BYTES;
        let p = *self.mm.page(id);
        let fresh = !self.mm.page(base).any(flag::ON_DISK);
        if self.balanced() && self.is_unreserved(id) && self.map_holds(t, op.file) {
            return self.block_on(t, Wait::Journal);
        }
        // With delayed allocation a place is found when the page is written.
        if fresh && !self.balanced() {
            self.mm.set(base, flag::ON_DISK);
            self.place(base);
            if let Some(block) = self.indirect_of(base) {
                self.dirty_metadata(block);
            }
        }
        self.mm.attach_buffer(id);
        if p.any(flag::UPTODATE) || whole || fresh {
            return self.commit(t);
        }
        if p.any(flag::BUF_LOCKED) {
            let task = &mut self.tasks[t as usize];
            task.push(Frame::WaitBuffer { page: id });
            return Flow::Continue;
        }
        self.mm.set(id, flag::BUF_LOCKED);
        let task = &mut self.tasks[t as usize];
        task.op.at = At::BlockRead;
        task.push(Frame::Submit { page: id, dir: Dir::Read, kind: BioKind::Data, waited: false });
        Flow::Continue
    }

    pub(super) fn place(&mut self, id: u32) {
        let file = self.mm.file_of(id);
        let program = self.program;
        let info = &program.files[file as usize];
        let inode = info.inode_page.map(|p| {
            let meta = &self.program.files[self.mm.file_of(p) as usize];
            meta.sector_of(p - meta.first_page)
        });
        let page = id - info.first_page;
        let size = self.files[file as usize].size;
        let near = match info.kind {
            _ if !self.balanced() => Near::Inode(inode),
            FileKind::Regular if size <= SMALL_BYTES => Near::Stream(Stream::Files),
            FileKind::Regular => {
                let end = allocation_end(u64::from(page), size.div_ceil(PAGE_BYTES)).max(u64::from(page) + 1);
                Near::Piece((end - u64::from(page)) as u32)
            }
            FileKind::Directory => Near::Stream(Stream::Directories),
            // Tables have their places.
            FileKind::Metadata => return,
        };
        self.placement.allocate(file, info, near, page);
        if let Some([blocks, _, descriptors]) = info.group {
            self.dirty_metadata(blocks);
            self.dirty_metadata(descriptors);
        }
    }

    /// Mark a metadata block dirty that is in memory; one that is not yet is read and written later in reality, here it
    /// costs nothing.
    pub(super) fn dirty_metadata(&mut self, block: u32) -> bool {
        if !self.mm.page(block).has(flag::PRESENT | flag::UPTODATE) {
            return false;
        }
        let at = self.flush_tick();
        self.mm.dirty_buffer(block, at)
    }

    fn flush_tick(&self) -> u32 {
        let age = Nanos::from_millis(self.config.writeback.expire_ms);
        self.tick() + (age.0 / self.tick_ns()) as u32
    }

    /// Copy, mark the buffer dirty, balance.
    fn commit(&mut self, t: u32) -> Flow {
        let id = self.written_page(t);
        let op = self.tasks[t as usize].op;
        let n = (PAGE_BYTES - op.pos % PAGE_BYTES).min(op.end - op.pos);
        self.charge(n * self.config.machine.copy_page_ns / PAGE_BYTES);
        self.mm.readopt(id);
        let balanced = self.balanced();
        self.mm.set(id, flag::UPTODATE);
        if !balanced {
            self.mm.set(self.mm.base(id), flag::ON_DISK);
        }
        let f = &mut self.files[op.file as usize];
        f.size = f.size.max(op.pos + n);
        let at = self.flush_tick();
        let newly = self.mm.dirty_buffer(id, at);
        if balanced {
            self.end_page(t);
            if newly && self.dirtied_one(t) {
                let task = &mut self.tasks[t as usize];
                task.op.at = At::Paused;
                task.push(Frame::Throttle { look: true });
            }
            return Flow::Continue;
        }
        if newly && writeback::over_soft(&self.mm, &self.limits) {
            let task = &mut self.tasks[t as usize];
            task.op.at = At::Balanced;
            task.push(Frame::Balance { at: Balance::Look });
            return Flow::Continue;
        }
        self.end_page(t);
        Flow::Continue
    }

    fn end_page(&mut self, t: u32) {
        let id = self.written_page(t);
        match self.mm.aging {
            // A write is no use of the page.
            None if self.mm.ws.is_some() => {}
            None if self.mm.is_twin(id) => self.update_page(t, self.mm.base(id)),
            None => self.mark_written(t, id),
            Some(rules) => {
                self.mm.looked_up(id);
                let op = &self.tasks[t as usize].op;
                let completes = op.end - op.pos >= PAGE_BYTES - op.pos % PAGE_BYTES;
                if rules.drop_behind && completes {
                    self.mm.deactivate_aged(id);
                } else {
                    self.mm.used_aged(id, rules);
                }
            }
        }
        self.mm.page_mut(id).flags &= !flag::READAHEAD;
        self.mm.unlock(id);
        self.mm.refresh_hot(id);
        let op = &mut self.tasks[t as usize].op;
        op.pos += (PAGE_BYTES - op.pos % PAGE_BYTES).min(op.end - op.pos);
        op.at = At::Loop;
        if self.mm.page(id).any(flag::ORPHAN) && !self.mm.page(id).any(flag::BUF_LOCKED) && self.mm.page(id).pins == 0 {
            self.mm.forget(id);
        }
    }

    /// `update_vm_cache`: what was written to a buffer is copied to the page, if that is in memory. (That it may have to wait
    /// for a read of the page is left out.)
    fn update_page(&mut self, t: u32, page: u32) {
        if self.mm.page(page).any(flag::PRESENT) {
            let op = self.tasks[t as usize].op;
            let n = (PAGE_BYTES - op.pos % PAGE_BYTES).min(op.end - op.pos);
            self.mm.set(page, flag::REFERENCED);
            self.charge(n * self.config.machine.copy_page_ns / PAGE_BYTES);
        }
    }

    /// What a finished write does to its page's mark (two-list kernels).
    fn mark_written(&mut self, t: u32, id: u32) {
        match self.mm.write_mark {
            WriteMark::Referenced => self.mm.set(id, flag::REFERENCED),
            WriteMark::Unreferenced => self.mm.clear(id, flag::REFERENCED),
            WriteMark::Accessed => {
                let op = &self.tasks[t as usize].op;
                if op.pos.is_multiple_of(PAGE_BYTES) || !self.ofds[op.ofd as usize].reada {
                    self.mm.mark_accessed(id);
                }
            }
        }
    }

    /// `balance_dirty`: above the soft limit the writer writes a batch, above the hard one it also waits for a buffer.
    pub(super) fn step_balance(&mut self, t: u32, at: Balance) -> Flow {
        match at {
            Balance::Look => {
                let next = match writeback::state(&self.mm, &self.limits) {
                    DirtyState::Fine => {
                        self.tasks[t as usize].pop(0);
                        return Flow::Continue;
                    }
                    state if self.config.writeback.policy == WritebackPolicy::WaitBdflush => {
                        self.mm.wake_bdflush = true;
                        if state == DirtyState::Soft {
                            self.tasks[t as usize].pop(0);
                            return Flow::Continue;
                        }
                        self.tasks[t as usize].set_top(Frame::Balance { at: Balance::Soft });
                        return self.wait_for_bdflush(t);
                    }
                    state if self.config.writeback.policy != WritebackPolicy::WriteSome => {
                        self.mm.wake_bdflush = true;
                        if state == DirtyState::Soft {
                            self.tasks[t as usize].pop(0);
                            return Flow::Continue;
                        }
                        // Writes a batch as well; without `WakeAndWait` it waits for nothing but request slots.
                        match self.config.writeback.policy {
                            WritebackPolicy::WakeAndWait => Balance::Hard,
                            _ => Balance::Soft,
                        }
                    }
                    DirtyState::Soft => Balance::Soft,
                    DirtyState::Hard => Balance::Hard,
                };
                self.tasks[t as usize].set_top(Frame::Balance { at: next });
                self.write_batch(t);
            }
            Balance::Hard => {
                self.tasks[t as usize].set_top(Frame::Balance { at: Balance::Waited });
                if let Some(page) = writeback::first_locked(&mut self.mm) {
                    self.tasks[t as usize].push(Frame::WaitBuffer { page });
                }
            }
            Balance::Waited => {
                self.mm.wake_bdflush = true;
                self.tasks[t as usize].pop(0);
            }
            Balance::Soft => self.tasks[t as usize].pop(0),
        }
        Flow::Continue
    }

    /// `wakeup_bdflush(1)`: sleep until bdflush has written its share.
    pub(super) fn wait_for_bdflush(&mut self, t: u32) -> Flow {
        self.mm.wake_bdflush = true;
        self.bdflush_waiters.push(t);
        self.block_on(t, Wait::Daemon)
    }

    /// `write_some_buffers`: push the writing of a batch, if there is anything to write. True if the batch was full, so
    /// that there may be more.
    pub(super) fn write_batch(&mut self, t: u32) -> bool {
        let (batch, full) = self.take_batch(t);
        if let Some(batch) = batch {
            self.tasks[t as usize].push(batch);
        }
        full
    }

    /// Begin to write a batch: the frame that submits it (none if nothing is dirty), and whether it was full. For callers
    /// whose own frame depends on the answer and has to be set before the batch goes on top of it.
    pub(super) fn take_batch(&mut self, t: u32) -> (Option<Frame>, bool) {
        self.take_batch_due(t, None)
    }

    /// The same of buffers that are due at a tick.
    pub(super) fn take_batch_due(&mut self, t: u32, due: Option<u32>) -> (Option<Frame>, bool) {
        let batch = &mut self.tasks[t as usize].batch;
        let n = writeback::take_some(&self.config.writeback, &mut self.mm, batch, due);
        let frame = (n > 0).then_some(Frame::WriteSome { next: 0, len: n as u8 });
        (frame, n == self.config.writeback.batch as usize)
    }
}
