//! read(): `do_generic_file_read` and the read-ahead of 2.4.
//!
//! Source: mm/filemap.c of 2.4.5 to 2.4.17 (`do_generic_file_read`, `generic_file_readahead`, `page_cache_read`).

use super::Sim;
use super::frame::{Bring, FAILED, Frame};
use super::sched::Flow;
use super::task::{At, Wait};
use crate::block::BioKind;
use crate::config::ReadMark;
use crate::mm::page::{List, flag, noop};
use crate::mm::zone::AllocFlags;
use kreplay_traces::units::PAGE_BYTES;

impl Sim<'_> {
    /// One step of a read; `None` when it is done.
    pub(super) fn step_read(&mut self, t: u32) -> Option<Flow> {
        match self.tasks[t as usize].op.at {
            At::Begin => {
                self.begin_read(t);
                Some(Flow::Continue)
            }
            At::Loop => self.read_loop(t),
            At::Allocated => Some(self.read_allocated(t)),
            At::Queued => Some(self.read_queued(t)),
            At::WaitOwn => {
                // Our own read of this page is under way.
                let id = self.page_in_hand(t);
                if self.mm.page(id).any(flag::LOCKED) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                Some(self.copy_or_retry(t, id))
            }
            At::LockWait => {
                let id = self.page_in_hand(t);
                if self.mm.page(id).any(flag::LOCKED) && !self.mm.page(id).any(flag::UPTODATE) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                Some(self.copy_or_retry(t, id))
            }
            At::Copy => {
                let id = self.page_in_hand(t);
                Some(self.copy_or_retry(t, id))
            }
            at => unreachable!("a read is never at {at:?}"),
        }
    }

    fn begin_read(&mut self, t: u32) {
        let op = &mut self.tasks[t as usize].op;
        if self.ofds[op.ofd as usize].failed && self.program.tasks.get(t as usize).is_some_and(|p| p.gives_up) {
            // This program stopped reading when it got the error.
            (op.end, op.at) = (op.pos, At::Loop);
            return;
        }
        let min = u64::from(self.config.readahead.min_pages);
        let max = u64::from(self.config.readahead.max_pages);
        let op = &mut self.tasks[t as usize].op;
        let o = &mut self.ofds[op.ofd as usize];
        let (index, offset, count) = (op.pos / PAGE_BYTES, op.pos % PAGE_BYTES, op.end - op.pos);
        // Out of the window of what was read and read ahead: not sequential.
        if index > o.raend || index + o.rawin < o.raend {
            op.reada_ok = false;
            (o.raend, o.ralen, o.ramax, o.rawin) = (0, 0, 0, 0);
        } else {
            op.reada_ok = true;
        }
        let partial = u64::from(self.config.readahead.partial_needed);
        // Small reads at the start of a file, such as `file` does them, are no reason to read ahead.
        if index == 0 && offset + count <= PAGE_BYTES / 2 {
            o.ramax = 0;
        } else {
            o.ramax = o.ramax.max((offset + count) / PAGE_BYTES + partial);
            if op.reada_ok {
                o.ramax = o.ramax.max(min);
            }
            o.ramax = o.ramax.min(max);
        }
        op.at = At::Loop;
        self.charge(self.config.machine.syscall_ns);
    }

    pub(super) fn page_in_hand(&self, t: u32) -> u32 {
        let op = &self.tasks[t as usize].op;
        op.first + (op.pos / PAGE_BYTES) as u32
    }

    /// Pages whose reference would change nothing, in one go. Kept out of line: the hot loop of the simulator.
    #[inline(never)]
    fn run_hits(&mut self, t: u32) {
        let op = self.tasks[t as usize].op;
        let o = &self.ofds[op.ofd as usize];
        if !op.pos.is_multiple_of(PAGE_BYTES) {
            return;
        }
        let index = op.pos / PAGE_BYTES;
        let mut n = op.end / PAGE_BYTES - index;
        // Inside the last read-ahead window a reference may start the next one.
        if op.reada_ok && o.ramax > 0 && o.raend >= 1 && index <= o.raend {
            n = n.min(o.raend.saturating_sub(o.ralen).saturating_sub(index));
        }
        self.take_hits(t, n, noop::READ);
    }

    /// Pass over as many of the next `n` pages as have `bit` set: their reference changes nothing but the time.
    #[inline(always)]
    pub(super) fn take_hits(&mut self, t: u32, n: u64, bit: u8) {
        let op = &mut self.tasks[t as usize].op;
        let from = (u64::from(op.first) + op.pos / PAGE_BYTES) as usize;
        let hot = &self.mm.hot[from..from + n as usize];
        let hits = hot.iter().position(|h| h & bit == 0).unwrap_or(hot.len()) as u64;
        self.mm.counters.page_hits += hits;
        op.pos += hits * PAGE_BYTES;
        self.charge(hits * self.config.machine.copy_page_ns);
    }

    fn read_loop(&mut self, t: u32) -> Option<Flow> {
        loop {
            self.run_hits(t);
            let op = self.tasks[t as usize].op;
            if op.pos >= op.end {
                self.ofds[op.ofd as usize].reada = true;
                return None;
            }
            if self.burst_used() {
                return Some(Flow::Continue);
            }
            let id = self.page_in_hand(t);
            self.mm.readopt(id);
            let p = *self.mm.page(id);
            if !p.any(flag::PRESENT) {
                self.mm.counters.page_misses += 1;
                self.tasks[t as usize].op.at = At::Allocated;
                return Some(self.call_alloc(t, AllocFlags::USER));
            }
            if !p.any(flag::UPTODATE) {
                // Somebody's read, perhaps read-ahead of our own, is under way.
                self.mm.counters.page_hits += 1;
                self.pin(t, id);
                let at = if p.any(flag::READAHEAD) { At::WaitOwn } else { At::LockWait };
                self.tasks[t as usize].op.at = at;
                self.plan_readahead(t, id);
                return Some(Flow::Continue);
            }
            self.mm.counters.page_hits += 1;
            if self.plan_readahead(t, id) {
                self.pin(t, id);
                self.tasks[t as usize].op.at = At::Copy;
                return Some(Flow::Continue);
            }
            self.copy_out(t, id);
        }
    }

    pub(super) fn pin(&mut self, t: u32, id: u32) {
        if !std::mem::replace(&mut self.tasks[t as usize].op.pinned, true) {
            self.mm.page_mut(id).pins += 1;
        }
    }

    pub(super) fn unpin(&mut self, t: u32, id: u32) {
        if std::mem::replace(&mut self.tasks[t as usize].op.pinned, false) {
            self.mm.page_mut(id).pins -= 1;
            let p = self.mm.page(id);
            if p.any(flag::ORPHAN) && p.pins == 0 && !p.any(flag::LOCKED | flag::BUF_LOCKED) {
                self.mm.forget(id);
            }
        }
    }

    /// After a wait: copy if the page is (still) good, else look again.
    fn copy_or_retry(&mut self, t: u32, id: u32) -> Flow {
        self.tasks[t as usize].op.at = At::Loop;
        if self.mm.page(id).has(flag::PRESENT | flag::UPTODATE) && !self.mm.page(id).any(flag::ORPHAN) {
            self.copy_out(t, id);
        }
        self.unpin(t, id);
        Flow::Continue
    }

    /// Copy what the read wants of this page to the user, and mark the page used: on every piece (2.4.10), or on the first
    /// piece of a page and on any after an lseek or open.
    fn copy_out(&mut self, t: u32, id: u32) {
        let op = &mut self.tasks[t as usize].op;
        let offset = op.pos % PAGE_BYTES;
        let n = (PAGE_BYTES - offset).min(op.end - op.pos);
        let first_use =
            self.config.reclaim.read_mark == ReadMark::EveryCopy || offset == 0 || !self.ofds[op.ofd as usize].reada;
        op.pos += n;
        match self.mm.aging {
            None if first_use => self.mm.mark_accessed(id),
            None => {}
            Some(rules) => {
                self.mm.looked_up(id);
                self.mm.used_aged(id, rules);
            }
        }
        self.mm.page_mut(id).flags &= !flag::READAHEAD;
        self.mm.refresh_hot(id);
        self.charge(n * self.config.machine.copy_page_ns / PAGE_BYTES);
    }

    fn read_allocated(&mut self, t: u32) -> Flow {
        let id = self.page_in_hand(t);
        let zone = self.tasks[t as usize].ret;
        let op = &mut self.tasks[t as usize].op;
        if zone == FAILED {
            // The read ends short, as the kernel's does; if nothing was read it is an error.
            let ofd = &mut self.ofds[op.ofd as usize];
            ofd.failed |= op.pos == op.start;
            op.end = op.pos;
            op.at = At::Loop;
            return Flow::Continue;
        }
        let ours = self.adopt(id, zone as usize);
        let op = &mut self.tasks[t as usize].op;
        if !ours {
            op.at = At::Loop;
            return Flow::Continue;
        }
        op.at = At::Queued;
        self.pin(t, id);
        self.tasks[t as usize].push(Frame::ReadPage { page: id, kind: BioKind::Data, mapped: false });
        Flow::Continue
    }

    fn read_queued(&mut self, t: u32) -> Flow {
        let id = self.page_in_hand(t);
        if self.mm.page(id).any(flag::UPTODATE) {
            return self.copy_or_retry(t, id);
        }
        self.tasks[t as usize].op.at = At::WaitOwn;
        self.plan_readahead(t, id);
        Flow::Continue
    }

    /// `generic_file_readahead`: decide on a window at the page in hand; pushes its loop and returns true if there is one.
    fn plan_readahead(&mut self, t: u32, id: u32) -> bool {
        let op = self.tasks[t as usize].op;
        let index = op.pos / PAGE_BYTES;
        let end_index = self.files[op.file as usize].size / PAGE_BYTES;
        let locked = self.mm.page(id).any(flag::LOCKED);
        let o = &mut self.ofds[op.ofd as usize];
        let mut base = o.raend;
        let mut max = 0;
        if locked {
            let window = if self.config.readahead.two_windows { o.rawin } else { o.ralen };
            if o.ralen == 0 || index >= base || index + window < base {
                base = index;
                if base < end_index {
                    max = o.ramax;
                }
                o.rawin = 0;
                o.ralen = 1;
                if max == 0 {
                    o.raend = index + o.ralen;
                    o.rawin += o.ralen;
                }
            }
        } else if op.reada_ok && o.ramax > 0 && base >= 1 && index <= base && index + o.ralen >= base {
            base -= 1;
            if base < end_index {
                max = o.ramax + 1;
            }
            if max > 0 {
                o.rawin = o.ralen;
                o.ralen = 0;
            }
        }
        if max == 0 {
            return false;
        }
        self.tasks[t as usize].push(Frame::Readahead { base: base as u32, done: 0, max: max as u16, at: Bring::Next });
        true
    }

    /// The read-ahead loop: each page that is not there is allocated, added and its read queued, without waiting for it.
    pub(super) fn step_readahead(&mut self, t: u32, base: u32, done: u16, max: u16, at: Bring) -> Flow {
        let op = self.tasks[t as usize].op;
        let end_index = self.files[op.file as usize].size / PAGE_BYTES;
        match at {
            Bring::Next => {
                if done == max {
                    return self.readahead_over(t, base, done);
                }
                let done = done + 1;
                let index = u64::from(base) + u64::from(done);
                if index >= end_index || index >= u64::from(self.program.files[op.file as usize].pages) {
                    return self.readahead_over(t, base, done);
                }
                let present = self.mm.page(op.first + index as u32).any(flag::PRESENT);
                if present {
                    self.mm.looked_up(op.first + index as u32);
                }
                let at = if present { Bring::Next } else { Bring::Allocated };
                self.tasks[t as usize].set_top(Frame::Readahead { base, done, max, at });
                if !present {
                    return self.call_alloc(t, AllocFlags::USER);
                }
            }
            Bring::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    return self.readahead_over(t, base, done);
                }
                let id = op.first + base + u32::from(done);
                self.tasks[t as usize].set_top(Frame::Readahead { base, done, max, at: Bring::Next });
                if self.adopt(id, zone as usize) {
                    self.mm.set(id, flag::READAHEAD);
                    self.mm.counters.readahead_pages += 1;
                    self.tasks[t as usize].push(Frame::ReadPage { page: id, kind: BioKind::Readahead, mapped: false });
                }
            }
            Bring::Queued => self.tasks[t as usize].set_top(Frame::Readahead { base, done, max, at: Bring::Next }),
        }
        Flow::Continue
    }

    fn readahead_over(&mut self, t: u32, base: u32, done: u16) -> Flow {
        let max = u64::from(self.config.readahead.max_pages);
        let o = &mut self.ofds[self.tasks[t as usize].op.ofd as usize];
        if done > 0 {
            o.ralen += u64::from(done);
            o.rawin += o.ralen;
            o.raend = u64::from(base) + u64::from(done) + 1;
            o.ramax = (2 * o.ramax).min(max);
        }
        self.finish_plug(t);
        self.tasks[t as usize].pop(0);
        if self.mm.aging.is_some_and(|r| r.drop_behind) && done > 0 {
            self.drop_behind(t);
        }
        Flow::Continue
    }

    /// `drop_behind` of 2.4.5 to 2.4.7 and -ac: a new window was asked for, so what was read before it is deactivated, back to
    /// the first page that is not there (or not active).
    fn drop_behind(&mut self, t: u32) {
        let op = &self.tasks[t as usize].op;
        let window = self.ofds[op.ofd as usize].rawin;
        let (first, index) = (op.first, op.pos / PAGE_BYTES);
        let active_only = self.mm.aging.is_some_and(|r| r.drop_behind_stops_inactive);
        for i in (index.saturating_sub(window)..index).rev() {
            let id = first + i as u32;
            let p = self.mm.page(id);
            if !p.any(flag::PRESENT) || (active_only && p.list != List::Active) {
                break;
            }
            self.mm.deactivate_aged(id);
        }
    }
}
