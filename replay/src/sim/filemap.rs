//! read() and mapped faults with on-demand read-ahead, and the filling of a window.
//!
//! Source: mm/filemap.c (`filemap_read`, `filemap_get_pages`, `filemap_fault`), mm/readahead.c, fs/mpage.c of 6.1 to 6.18.
//! What a miss or a mark asks for is decided in [`crate::readahead`]; here pages are allocated, put into the cache and read
//! in bios as long as the disk allows. Reduced: folios are looked up and marked as such, but live and die page by page.

use super::Sim;
use super::frame::{FAILED, Fill, Frame};
use super::sched::Flow;
use super::task::{At, Wait};
use crate::block::{Bio, BioKind, Dir, Submit};
use crate::config::ReadaheadPolicy;
use crate::mm::Mm;
use crate::mm::page::{flag, noop};
use crate::mm::zone::AllocFlags;
use crate::program::Op;
use crate::readahead::{self, Hint, Window};
use kreplay_traces::units::{PAGE_BYTES, SECTORS_PER_PAGE, Sectors};

/// A file's pages as the read-ahead asks for them.
struct FileCache<'a> {
    mm: &'a Mm,
    first: u32,
    pages: u64,
}

impl FileCache<'_> {
    fn has(&self, index: u64) -> bool {
        index < self.pages && self.mm.page(self.first + index as u32).any(flag::PRESENT)
    }
}

impl readahead::Cache for FileCache<'_> {
    fn run_before(&self, index: u64, most: u64) -> u64 {
        (1..=most.min(index)).take_while(|k| self.has(index - k)).count() as u64
    }
    fn next_miss(&self, index: u64, most: u64) -> Option<u64> {
        (index..index + most).find(|i| !self.has(*i))
    }
}

impl Sim<'_> {
    /// Reads are decided by a miss or a mark.
    pub(super) fn on_demand(&self) -> bool {
        self.config.readahead.policy == ReadaheadPolicy::OnDemand
    }

    /// One step of a read; `None` when it is done.
    pub(super) fn step_filemap_read(&mut self, t: u32) -> Option<Flow> {
        match self.tasks[t as usize].op.at {
            At::Begin => {
                self.tasks[t as usize].op.at = At::Loop;
                self.charge(self.config.machine.syscall_ns);
                Some(Flow::Continue)
            }
            At::Loop => self.filemap_loop(t),
            At::Queued => {
                // The window is under way; without its first page the read ends short, as the kernel's does.
                let id = self.page_in_hand(t);
                let op = &mut self.tasks[t as usize].op;
                op.at = At::Loop;
                if self.tasks[t as usize].ret == FAILED && !self.mm.page(id).any(flag::PRESENT) {
                    let op = &mut self.tasks[t as usize].op;
                    op.end = op.pos;
                }
                Some(Flow::Continue)
            }
            At::WaitOwn => {
                let id = self.page_in_hand(t);
                if self.mm.page(id).any(flag::LOCKED) && !self.mm.page(id).any(flag::UPTODATE) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                self.unpin(t, id);
                self.tasks[t as usize].op.at = At::Loop;
                Some(Flow::Continue)
            }
            at => unreachable!("a read is never at {at:?}"),
        }
    }

    fn filemap_loop(&mut self, t: u32) -> Option<Flow> {
        loop {
            let op = self.tasks[t as usize].op;
            if op.pos.is_multiple_of(PAGE_BYTES) && op.end > op.pos {
                self.take_hits(t, (op.end - op.pos) / PAGE_BYTES, noop::READ);
            }
            let op = self.tasks[t as usize].op;
            if op.pos >= op.end {
                self.ofds[op.ofd as usize].ra.prev_pos = Some(op.pos);
                return None;
            }
            if self.burst_used() {
                return Some(Flow::Continue);
            }
            let id = self.page_in_hand(t);
            self.mm.readopt(id);
            let index = op.pos / PAGE_BYTES;
            let want = op.end.div_ceil(PAGE_BYTES) - index;
            if !self.mm.page(id).any(flag::PRESENT) {
                self.mm.counters.page_misses += 1;
                let cfg = self.config.readahead.on_demand;
                let mut ra = self.ofds[op.ofd as usize].ra;
                let w = ra.miss(&cfg, index, want, &self.file_cache(op.file));
                self.ofds[op.ofd as usize].ra = ra;
                self.tasks[t as usize].op.at = At::Queued;
                self.bring_in(t, op.file, w, BioKind::Data);
                return Some(Flow::Continue);
            }
            if let Some(flow) = self.meet_mark(t, op.file, op.ofd, id, index, want) {
                return Some(flow);
            }
            if !self.mm.page(id).any(flag::UPTODATE) {
                // Somebody's read, perhaps read-ahead of our own, is under way.
                self.pin(t, id);
                self.tasks[t as usize].op.at = At::WaitOwn;
                return Some(Flow::Continue);
            }
            self.mm.counters.page_hits += 1;
            self.copy_page(t, id);
        }
    }

    fn file_cache(&self, file: u32) -> FileCache<'_> {
        let f = &self.program.files[file as usize];
        FileCache { mm: &self.mm, first: f.first_page, pages: u64::from(f.pages) }
    }

    /// First page of the folio that a page belongs to.
    fn head_of(&self, file: u32, id: u32) -> u32 {
        let first = self.program.files[file as usize].first_page;
        let order = self.mm.page(id).age.min(16);
        first + ((id - first) >> order << order)
    }

    /// The page's folio carries the mark: the next window is due.
    fn meet_mark(&mut self, t: u32, file: u32, ofd: u32, id: u32, index: u64, want: u64) -> Option<Flow> {
        let head = self.head_of(file, id);
        let h = *self.mm.page(head);
        if !h.has(flag::PRESENT | flag::READAHEAD) || h.any(flag::BUF_LOCKED) {
            return None;
        }
        self.mm.clear(head, flag::READAHEAD);
        let back = u64::from(id - head);
        let cfg = self.config.readahead.on_demand;
        let mut ra = self.ofds[ofd as usize].ra;
        let w = ra.marked(&cfg, index - back, u32::from(h.age), want + back, &self.file_cache(file));
        self.ofds[ofd as usize].ra = ra;
        let w = w?;
        self.tasks[t as usize].op.at = At::Queued;
        self.bring_in(t, file, w, BioKind::Readahead);
        Some(Flow::Continue)
    }

    /// Copy what the read wants of this page; mark it used unless the last read through this descriptor ended in it.
    fn copy_page(&mut self, t: u32, id: u32) {
        let op = &mut self.tasks[t as usize].op;
        let n = (PAGE_BYTES - op.pos % PAGE_BYTES).min(op.end - op.pos);
        let prev = self.ofds[op.ofd as usize].ra.prev_pos;
        let again = prev.is_some_and(|p| p > 0 && (p - 1) / PAGE_BYTES == op.pos / PAGE_BYTES);
        op.pos += n;
        if !again {
            self.mm.mark_accessed(id);
        }
        self.mm.refresh_hot(id);
        self.charge(n * self.config.machine.copy_page_ns / PAGE_BYTES);
    }

    /// Push the filling of a window, clipped to the file. Sets the folio orders of the pages that are missing.
    pub(super) fn bring_in(&mut self, t: u32, file: u32, w: Window, kind: BioKind) {
        let f = &self.program.files[file as usize];
        let size = self.files[file as usize].size;
        let Some(last) = size.checked_sub(1).map(|b| (b / PAGE_BYTES).min(u64::from(f.pages).saturating_sub(1))) else {
            self.tasks[t as usize].ret = FAILED;
            return;
        };
        if w.start > last || f.pages == 0 {
            self.tasks[t as usize].ret = FAILED;
            return;
        }
        let end = (w.start + w.size).min(last + 1).min(w.start + u64::from(u16::MAX));
        let largest = self.config.readahead.on_demand.folio_order;
        let mut mark = u16::MAX;
        let mut i = w.start;
        while i < end {
            let order = readahead::folio_order(w.order, w.size, largest, i, end - 1);
            let after = i + (1 << order);
            for k in i..after {
                let p = self.mm.page_mut(f.first_page + k as u32);
                if !p.any(flag::PRESENT) {
                    p.age = order as u8;
                }
            }
            if w.mark.is_some_and(|m| (i..after).contains(&m)) {
                mark = (i - w.start) as u16;
            }
            i = after;
        }
        self.tasks[t as usize].ret = 0;
        self.tasks[t as usize].push(Frame::Fill {
            first: f.first_page + w.start as u32,
            n: (end - w.start) as u16,
            at: 0,
            run: 0,
            mark,
            kind,
            state: Fill::Next,
        });
    }

    /// Fill a window: pages that are there split it; the rest is allocated, locked and read.
    #[expect(clippy::too_many_arguments, reason = "the fields of the frame")]
    pub(super) fn step_fill(
        &mut self,
        t: u32,
        first: u32,
        n: u16,
        at: u16,
        run: u16,
        mark: u16,
        kind: BioKind,
        state: Fill,
    ) -> Flow {
        let set = |sim: &mut Self, at, run, state| {
            sim.tasks[t as usize].set_top(Frame::Fill { first, n, at, run, mark, kind, state });
        };
        let id = first + u32::from(at);
        match state {
            Fill::Next if at == n || self.mm.page(id).any(flag::PRESENT) => {
                if run < at {
                    set(self, at, at, Fill::Next);
                    self.read_run(t, first + u32::from(run), at - run, kind);
                } else if at == n {
                    self.finish_plug(t);
                    self.tasks[t as usize].pop(0);
                } else {
                    set(self, at + 1, at + 1, Fill::Next);
                }
            }
            Fill::Next => {
                set(self, at, run, Fill::Allocated);
                return self.call_alloc(t, AllocFlags::USER);
            }
            Fill::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    set(self, at, at, Fill::Failed);
                    if run < at {
                        self.read_run(t, first + u32::from(run), at - run, kind);
                    }
                    return Flow::Continue;
                }
                if !self.adopt(id, zone as usize) {
                    // Somebody else brought it in while we slept.
                    set(self, at, run, Fill::Next);
                    return Flow::Continue;
                }
                self.mm.refault(id, true);
                if at == mark {
                    self.mm.set(id, flag::READAHEAD);
                }
                if kind == BioKind::Readahead {
                    self.mm.counters.readahead_pages += 1;
                }
                if self.mm.page(id).any(flag::ON_DISK) {
                    set(self, at + 1, run, Fill::Next);
                    return Flow::Continue;
                }
                // A hole: zeroes.
                self.mm.set(id, flag::UPTODATE);
                self.mm.unlock(id);
                set(self, at + 1, at + 1, Fill::Next);
                if run < at {
                    self.read_run(t, first + u32::from(run), at - run, kind);
                }
            }
            Fill::Failed => {
                self.finish_plug(t);
                self.tasks[t as usize].pop(FAILED);
            }
        }
        Flow::Continue
    }

    fn read_run(&mut self, t: u32, page: u32, n: u16, kind: BioKind) {
        self.tasks[t as usize].push(Frame::SubmitRun { page, n, dir: Dir::Read, kind, waited: false });
    }

    /// Queue the I/O of pages in a row of one file: a bio for each stretch that lies in a row on disk.
    pub(super) fn step_submit_run(&mut self, t: u32, page: u32, n: u16, dir: Dir, kind: BioKind, waited: bool) -> Flow {
        let (dev, partition, sector) = self.place_of(page);
        let most = (u64::from(self.config.queue.max_sectors) / SECTORS_PER_PAGE).clamp(1, 32_768) as u16;
        let follows = |k: u16| Sectors(sector.0 + u64::from(k) * SECTORS_PER_PAGE);
        let mut k = 1;
        while k < n.min(most) && self.place_of(page + u32::from(k)) == (dev, partition, follows(k)) {
            k += 1;
        }
        let nr = u32::from(k) * SECTORS_PER_PAGE as u32;
        let bio = Bio { dir, sector, nr, partition, kind, tag: page, task: t };
        if !waited {
            self.charge(self.config.machine.submit_ns);
        }
        if self.submit_bio(dev, bio, waited.then_some(t)) == Submit::Full {
            if !waited {
                self.block.wait_slot(dev, dir, t);
                self.tasks[t as usize].set_top(Frame::SubmitRun { page, n, dir, kind, waited: true });
            }
            self.kick();
            return self.block_on(t, Wait::Slot);
        }
        self.kick();
        if k == n {
            self.tasks[t as usize].pop(0);
        } else {
            let (page, n) = (page + u32::from(k), n - k);
            self.tasks[t as usize].set_top(Frame::SubmitRun { page, n, dir, kind, waited: false });
        }
        Flow::Continue
    }

    /// A fault through a mapping of a file: decide what to read (`do_sync_mmap_readahead`, `do_async_mmap_readahead`).
    /// True if a window was pushed.
    pub(super) fn fault_window(&mut self, t: u32, id: u32) -> bool {
        let file = self.mm.file_of(id);
        let index = u64::from(id - self.program.files[file as usize].first_page);
        let cfg = self.config.readahead.on_demand;
        let mut ra = self.files[file as usize].map_ra;
        let hint = self.hint_of_touch(t, id);
        if !self.mm.page(id).any(flag::PRESENT) {
            let w = match hint {
                Hint::Random => Window { start: index, size: 1, mark: None, order: 0 },
                Hint::Sequential => {
                    let want = readahead::State::fault_want(&cfg);
                    ra.miss(&cfg, index, want, &self.file_cache(file))
                }
                Hint::Normal => ra.fault(&cfg, index),
            };
            self.files[file as usize].map_ra = ra;
            self.bring_in(t, file, w, BioKind::Data);
            return true;
        }
        ra.fault_hit();
        self.files[file as usize].map_ra = ra;
        let head = self.head_of(file, id);
        let h = *self.mm.page(head);
        if hint == Hint::Random || !h.has(flag::PRESENT | flag::READAHEAD) || h.any(flag::BUF_LOCKED) {
            return false;
        }
        self.mm.clear(head, flag::READAHEAD);
        let want = readahead::State::fault_want(&cfg);
        let at = index - u64::from(id - head);
        let w = ra.marked(&cfg, at, u32::from(h.age), want, &self.file_cache(file));
        self.files[file as usize].map_ra = ra;
        let Some(w) = w else { return false };
        self.bring_in(t, file, w, BioKind::Readahead);
        true
    }

    /// A touch of a mapped file's page (`filemap_fault`, `filemap_map_pages`). A store to a shared mapping dirties the page
    /// at the fault (`page_mkwrite`).
    pub(super) fn touch_mapped(&mut self, t: u32, id: u32, write: bool) -> Option<Flow> {
        let p = *self.mm.page(id);
        let shared = match self.current_op(t) {
            Some(Op::Touch { area, .. }) => !self.program.areas[area as usize].private,
            _ => true,
        };
        if p.has(flag::MAPPED | flag::PRESENT) && (!write || !shared || p.any(flag::BUF_DIRTY)) {
            self.mm.counters.page_hits += 1;
            self.mm.set(id, flag::YOUNG);
            self.charge(self.config.machine.touch_ns);
            return None;
        }
        match self.tasks[t as usize].op.at {
            At::Begin => {
                self.charge(self.config.machine.fault_ns);
                self.mm.counters.page_hits += u64::from(p.any(flag::PRESENT));
                self.mm.counters.page_misses += u64::from(!p.any(flag::PRESENT));
                self.tasks[t as usize].op.at = At::Queued;
                self.tasks[t as usize].ret = 0;
                self.fault_window(t, id);
                Some(Flow::Continue)
            }
            At::Queued => {
                if !p.any(flag::PRESENT) {
                    // No frame, or dropped again before it could be mapped.
                    self.tasks[t as usize].op.at = At::Begin;
                    return Some(Flow::Yield);
                }
                self.pin(t, id);
                if p.any(flag::LOCKED) && !p.any(flag::UPTODATE) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                self.mm.set(id, flag::MAPPED | flag::YOUNG);
                self.mm.spaces.page_mapped(t);
                self.map_around(id);
                if write && shared && self.mm.dirty_buffer(id, 0) && self.balanced() && self.dirtied_one(t) {
                    self.tasks[t as usize].op.at = At::Paused;
                    self.tasks[t as usize].push(Frame::Throttle { look: true });
                    return Some(Flow::Continue);
                }
                None
            }
            At::Paused => None,
            at => unreachable!("a touch of a mapped file is never at {at:?}"),
        }
    }

    /// Cached pages of the aligned 64 KiB around a fault are mapped with it, not yet used.
    fn map_around(&mut self, id: u32) {
        let file = self.mm.file_of(id);
        let f = &self.program.files[file as usize];
        let index = id - f.first_page;
        let start = index / 16 * 16;
        for k in start..(start + 16).min(f.pages) {
            let p = self.mm.page_mut(f.first_page + k);
            if p.has(flag::PRESENT | flag::UPTODATE) && !p.any(flag::LOCKED) {
                p.flags |= flag::MAPPED;
            }
        }
    }

    /// posix_fadvise() and readahead().
    pub(super) fn step_advise(
        &mut self,
        t: u32,
        ofd: u32,
        off: u64,
        len: u64,
        advice: crate::program::Advice,
    ) -> Option<Flow> {
        use crate::program::Advice;
        if self.tasks[t as usize].op.at == At::Queued {
            return None;
        }
        let file = self.ofds[ofd as usize].file;
        let size = self.files[file as usize].size;
        let ra = &mut self.ofds[ofd as usize].ra;
        match advice {
            Advice::Normal => ra.hint = Hint::Normal,
            Advice::Random => ra.hint = Hint::Random,
            Advice::Sequential => ra.hint = Hint::Sequential,
            Advice::WillNeed if self.on_demand() => {
                let start = off / PAGE_BYTES;
                let end = if len == 0 { size } else { off.saturating_add(len).min(size) };
                let n = end.div_ceil(PAGE_BYTES).saturating_sub(start).min(self.config.readahead.on_demand.advised());
                self.tasks[t as usize].op.at = At::Queued;
                if n > 0 {
                    self.bring_in(t, file, Window { start, size: n, mark: None, order: 0 }, BioKind::Readahead);
                    return Some(Flow::Continue);
                }
            }
            Advice::WillNeed => {}
            Advice::DontNeed => return self.drop_pages(t, file, off, len),
        }
        None
    }

    /// `generic_fadvise(POSIX_FADV_DONTNEED)`: start to write what is dirty, then drop clean whole pages of the range.
    fn drop_pages(&mut self, t: u32, file: u32, off: u64, len: u64) -> Option<Flow> {
        let f = &self.program.files[file as usize];
        let size = self.files[file as usize].size;
        let end = if len == 0 { size } else { off.saturating_add(len).min(size) };
        let last = (if end >= size { end.div_ceil(PAGE_BYTES) } else { end / PAGE_BYTES }).min(u64::from(f.pages));
        let ids = f.first_page + off.div_ceil(PAGE_BYTES).min(last) as u32..f.first_page + last as u32;
        if self.tasks[t as usize].op.at == At::Begin && ids.clone().any(|id| self.mm.page(id).any(flag::BUF_DIRTY)) {
            self.tasks[t as usize].op.at = At::Second;
            self.tasks[t as usize].op.pos = u64::from(ids.start - f.first_page);
            self.tasks[t as usize].op.end = u64::from(ids.end - f.first_page);
        }
        if self.tasks[t as usize].op.at == At::Second && self.write_next_run(t, file) {
            return Some(Flow::Continue);
        }
        self.finish_plug(t);
        for id in ids {
            if !self.drop_if_idle(id) && self.mm.page(id).any(flag::PRESENT) {
                self.mm.clear(id, flag::REFERENCED);
                if self.mm.page(id).any(flag::BUF_LOCKED | flag::BUF_DIRTY) {
                    self.mm.set(id, flag::RECLAIM);
                }
            }
        }
        None
    }
}
