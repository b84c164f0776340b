//! I/O past the page cache: transfers that carry no cached page, and O_DIRECT.
//!
//! Source: mm/filemap.c (`kiocb_write_and_wait`, `kiocb_invalidate_pages`), fs/iomap/direct-io.c of 6.1 to 6.18. Cached pages
//! of the range are written and waited for first; a write drops them. Pieces that are not whole pages are taken as whole.

use super::Sim;
use super::frame::Frame;
use super::sched::Flow;
use super::task::{At, Wait};
use crate::block::{Bio, BioKind, Dir, Submit};
use crate::mm::page::flag;
use kreplay_traces::units::{PAGE_BYTES, SECTORS_PER_PAGE, Sectors};

/// Handle of bios that carry no cached page; their task waits for them.
pub(super) const TAG: u32 = u32::MAX;

impl Sim<'_> {
    /// Queue a transfer of whole pages in a row on disk; `None` once it is queued.
    pub(super) fn submit_raw(
        &mut self,
        t: u32,
        dev: u32,
        sector: Sectors,
        pages: u64,
        dir: Dir,
        kind: BioKind,
    ) -> Option<Flow> {
        let nr = (pages * SECTORS_PER_PAGE) as u32;
        let parts = &self.program.devices[dev as usize].partitions;
        let partition = parts.partition_point(|&s| s <= sector) as u16;
        let bio = Bio { dir, sector, nr, partition, kind, tag: TAG, task: t };
        let waited = self.tasks[t as usize].wait_slot;
        if self.submit_bio(dev, bio, waited.then_some(t)) == Submit::Full {
            if !waited {
                self.block.wait_slot(dev, dir, t);
                self.tasks[t as usize].wait_slot = true;
            }
            self.kick();
            return Some(self.block_on(t, Wait::Slot));
        }
        self.tasks[t as usize].wait_slot = false;
        self.tasks[t as usize].raw_pending += 1;
        self.charge(self.config.machine.submit_ns);
        self.kick();
        None
    }

    /// Wait for the task's own transfers; `None` if there are none on their way.
    pub(super) fn wait_raw(&mut self, t: u32) -> Option<Flow> {
        self.finish_plug(t);
        (self.tasks[t as usize].raw_pending > 0).then(|| self.block_on(t, Wait::Raw))
    }

    /// One of a task's transfers is done.
    pub(super) fn raw_done(&mut self, t: u32) {
        let task = &mut self.tasks[t as usize];
        task.raw_pending -= 1;
        if task.raw_pending == 0 && task.wait == Wait::Raw {
            self.wake(t);
        }
    }

    /// One step of an O_DIRECT transfer; `None` when it is done.
    pub(super) fn step_direct(&mut self, t: u32, off: u64, len: u64, write: bool) -> Option<Flow> {
        let op = self.tasks[t as usize].op;
        let f = &self.program.files[op.file as usize];
        let (first, end) = (off / PAGE_BYTES, (off + len).div_ceil(PAGE_BYTES).min(u64::from(f.pages)));
        let ids = f.first_page + first as u32..f.first_page + end as u32;
        match op.at {
            At::Begin => {
                let op = &mut self.tasks[t as usize].op;
                (op.pos, op.end, op.at) = (first, end, At::Second);
            }
            At::Second => {
                if self.balanced() && self.write_next_run(t, op.file) {
                    return Some(Flow::Continue);
                }
                self.finish_plug(t);
                if let Some(page) = ids.clone().find(|id| self.mm.page(*id).any(flag::BUF_LOCKED)) {
                    self.tasks[t as usize].push(Frame::WaitBuffer { page });
                    return Some(Flow::Continue);
                }
                if write {
                    self.invalidate(ids);
                }
                let op = &mut self.tasks[t as usize].op;
                (op.pos, op.at) = (first, At::Third);
            }
            At::Third if op.pos < end => {
                let id = f.first_page + op.pos as u32;
                if !self.mm.page(id).any(flag::ON_DISK) {
                    if !write {
                        // A hole: zeroes.
                        self.tasks[t as usize].op.pos += 1;
                        return Some(Flow::Continue);
                    }
                    self.mm.set(id, flag::ON_DISK);
                    self.place(id);
                    self.note_metadata(op.file, true, false);
                }
                let (dev, _, sector) = self.place_of(id);
                let most = (u64::from(self.config.queue.max_sectors) / SECTORS_PER_PAGE).max(1).min(end - op.pos);
                let mut k = 1;
                while k < most
                    && self.mm.page(id + k as u32).any(flag::ON_DISK)
                    && self.place_of(id + k as u32).2 == Sectors(sector.0 + k * SECTORS_PER_PAGE)
                {
                    k += 1;
                }
                let dir = if write { Dir::Write } else { Dir::Read };
                if let Some(flow) = self.submit_raw(t, dev, sector, k, dir, BioKind::Data) {
                    return Some(flow);
                }
                self.tasks[t as usize].op.pos += k;
            }
            At::Third => {
                if let Some(flow) = self.wait_raw(t) {
                    return Some(flow);
                }
                let size = &mut self.files[op.file as usize].size;
                *size = if write { (*size).max(off + len) } else { *size };
                return None;
            }
            at => unreachable!("a direct transfer is never at {at:?}"),
        }
        Some(Flow::Continue)
    }

    /// Drop the clean pages of a range that nobody uses.
    pub(super) fn invalidate(&mut self, ids: std::ops::Range<u32>) {
        for id in ids {
            self.drop_if_idle(id);
        }
    }

    /// Drop a page of the page cache that is clean and that nobody uses; false if it stays, or is not there.
    pub(super) fn drop_if_idle(&mut self, id: u32) -> bool {
        let p = self.mm.page(id);
        let busy = p.any(flag::LOCKED | flag::BUF_LOCKED | flag::BUF_DIRTY | flag::MAPPED) || p.pins > 0;
        let drops = p.any(flag::PRESENT) && !busy;
        if drops {
            self.mm.forget_shadow(id);
            self.mm.forget(id);
        }
        drops
    }
}
