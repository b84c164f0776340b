//! Page faults: anonymous memory, swap-in, mapped files.
//!
//! Source: mm/memory.c of 2.4.10 to 2.4.17 (`do_anonymous_page`, `do_swap_page`), mm/filemap.c (`filemap_nopage`).

use super::Sim;
use super::frame::{Bring, FAILED, Frame};
use super::sched::Flow;
use super::task::{At, Wait};
use crate::block::BioKind;
use crate::config::SlotFate;
use crate::mm::page::{List, Page, flag, noop};
use crate::mm::zone::AllocFlags;
use crate::results::ResultSink;

impl Sim<'_> {
    /// One step of a run of touches; `None` when it is done.
    pub(super) fn step_touch(&mut self, t: u32, stride: u32, write: bool, sink: &mut dyn ResultSink) -> Option<Flow> {
        let bit = if write { noop::STORE } else { noop::LOAD };
        loop {
            let op = self.tasks[t as usize].op;
            if op.pos >= op.end || self.tasks[t as usize].dying {
                return None;
            }
            if self.burst_used() {
                return Some(Flow::Continue);
            }
            let id = op.first + op.pos as u32 * stride;
            if op.at == At::Begin && self.mm.hot[id as usize] & bit != 0 {
                self.mm.counters.page_hits += 1;
                self.tasks[t as usize].op.pos += 1;
                self.charge(self.config.machine.touch_ns);
                continue;
            }
            let flow = if self.mm.page(id).any(flag::ANON) {
                self.touch_anon(t, id, write, sink)
            } else {
                self.touch_file(t, id, write)
            };
            if let Some(flow) = flow {
                return Some(flow);
            }
            // The touch is done.
            let op = &mut self.tasks[t as usize].op;
            op.pos += 1;
            op.at = At::Begin;
            self.unpin(t, id);
            self.mm.refresh_hot(id);
        }
    }

    fn touch_anon(&mut self, t: u32, id: u32, write: bool, sink: &mut dyn ResultSink) -> Option<Flow> {
        let p = *self.mm.page(id);
        let at = self.tasks[t as usize].op.at;
        match at {
            At::Begin => {
                if p.any(flag::MAPPED) {
                    self.mm.counters.page_hits += 1;
                    if write && p.any(flag::SHARED) {
                        // `do_wp_page`: the first store after a fork copies.
                        self.charge(self.config.machine.fault_ns + self.config.machine.copy_page_ns);
                        self.mm.unshare(id);
                        let left = *self.mm.page(id);
                        if left.any(flag::SWAP_CACHE) && !left.any(flag::LOCKED) && left.pins == 0 {
                            self.leave_swap_cache(id);
                        }
                    }
                    self.use_mapping(id, write);
                    return None;
                }
                if p.any(flag::SHARED) && !p.any(flag::SWAPPED) {
                    if !self.mm.adopt_copied(t, id) {
                        self.mm.unshare(id);
                        self.free_anon(id);
                    }
                    return Some(Flow::Continue);
                }
                if p.any(flag::ORPHAN) || p.forsaken() {
                    // An earlier mapping's page, still being written to swap or left in the swap cache: a new mapping has
                    // nothing to do with it.
                    if p.any(flag::LOCKED) {
                        return Some(self.wait_on_page(t, Wait::Page(id)));
                    }
                    if p.pins > 0 {
                        return Some(Flow::Yield);
                    }
                    self.mm.forget(id);
                    return Some(Flow::Continue);
                }
                if p.any(flag::SWAP_CACHE) && !p.any(flag::SWAPPED) {
                    // Left behind by an earlier mapping of the area: nobody will ask for it.
                    if p.any(flag::LOCKED) {
                        return Some(self.wait_on_page(t, Wait::Page(id)));
                    }
                    if p.pins == 0 {
                        self.mm.forget(id);
                    } else {
                        self.charge(self.config.machine.syscall_ns);
                        return Some(Flow::Yield);
                    }
                    return Some(Flow::Continue);
                }
                self.charge(self.config.machine.fault_ns);
                if p.any(flag::SWAPPED) {
                    self.mm.counters.page_hits += u64::from(p.any(flag::PRESENT));
                    self.mm.counters.page_misses += u64::from(!p.any(flag::PRESENT));
                    let task = &mut self.tasks[t as usize];
                    task.op.at = At::Queued;
                    if p.any(flag::PRESENT) {
                        self.mm.looked_up(id);
                    } else {
                        let window = self.mm.swap.read_cluster(p.slot, self.config.swap.page_cluster);
                        task.push(Frame::SwapIn { page: id, slot: window.start, end: window.end, at: Bring::Next });
                    }
                    return Some(Flow::Continue);
                }
                if !write {
                    // The zero page is mapped; no memory is used.
                    self.mm.set(id, flag::ZERO_MAPPED);
                    return None;
                }
                self.mm.counters.page_misses += 1;
                self.tasks[t as usize].op.at = At::Allocated;
                Some(self.call_alloc(t, AllocFlags::USER))
            }
            At::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    self.kill_at_fault(t, sink);
                    return Some(Flow::Continue);
                }
                self.mm.add_anon(id, zone as usize);
                self.mm.clear(id, flag::ZERO_MAPPED | flag::REFERENCED);
                self.mm.set(id, flag::MAPPED);
                self.mm.spaces.page_mapped(t);
                self.use_mapping(id, true);
                if self.config.reclaim.anon_on_lru {
                    self.mm.lru_add(id);
                    if self.config.reclaim.anon_accessed {
                        self.mm.mark_accessed(id);
                    }
                }
                self.charge(self.config.machine.copy_page_ns);
                if std::mem::take(&mut self.mm.fresh) {
                    self.charge(self.config.machine.fresh_frame_ns);
                }
                None
            }
            At::Queued => {
                // lock_page: the page may be under its swap read, or under a swap write that began earlier.
                if self.tasks[t as usize].ret == FAILED && !p.any(flag::PRESENT) {
                    self.kill_at_fault(t, sink);
                    return Some(Flow::Continue);
                }
                if !p.any(flag::PRESENT) {
                    self.tasks[t as usize].op.at = At::Begin;
                    return Some(Flow::Continue);
                }
                self.pin(t, id);
                if p.any(flag::LOCKED) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                self.map_swapped(id, write);
                self.mm.spaces.page_mapped(t);
                None
            }
            at => unreachable!("a touch of anonymous memory is never at {at:?}"),
        }
    }

    /// The end of `do_swap_page`: map the page; its slot goes when swap is more than half full.
    fn map_swapped(&mut self, id: u32, write: bool) {
        self.mm.clear(id, flag::SWAPPED);
        if self.config.reclaim.swapin_accessed {
            self.mm.mark_accessed(id);
        }
        let frees = match self.config.swap.slot_rule {
            SlotFate::Always => true,
            SlotFate::OnWriteFault => write,
            SlotFate::OnWrite => write || self.swap_cache_full(),
            SlotFate::FreeBelow => self.little_swap_free(),
        };
        let alone = self.mm.page(id).pins <= 1 && !self.mm.page(id).any(flag::SHARED);
        if frees && self.mm.page(id).any(flag::SWAP_CACHE) && alone {
            self.leave_swap_cache(id);
        }
        self.mm.set(id, flag::MAPPED);
        self.use_mapping(id, write);
    }

    /// `vm_swap_full` of 2.4.11 to 2.4.13: more than four fifths of swap are in the swap cache.
    fn swap_cache_full(&self) -> bool {
        self.mm.swap_cache_pages * 5 > u64::from(self.mm.swap.total()) * 4
    }

    /// `delete_from_swap_cache` of a page that nobody shares: its slot is free, the page is dirty; where anonymous pages
    /// are not on the lists, it goes off them as well.
    fn leave_swap_cache(&mut self, id: u32) {
        self.mm.remove_from_swap_cache(id);
        self.mm.set(id, flag::DIRTY);
        if !self.config.reclaim.anon_on_lru && !self.config.reclaim.passes.anon_stays {
            self.mm.lru_del(id);
        }
    }

    pub(super) fn use_mapping(&mut self, id: u32, write: bool) {
        let p = *self.mm.page(id);
        if write
            && matches!(self.config.swap.slot_rule, SlotFate::OnWrite | SlotFate::OnWriteFault)
            && p.has(flag::SWAP_CACHE | flag::MAPPED)
            && !p.any(flag::PTE_DIRTY | flag::LOCKED)
            && p.pins <= 1
        {
            // The write-protection fault of the first store to a page whose slot was kept.
            self.charge(self.config.machine.fault_ns);
            self.leave_swap_cache(id);
        }
        self.mm.set(id, flag::YOUNG | if write { flag::PTE_DIRTY } else { 0 });
        self.charge(self.config.machine.touch_ns);
    }

    /// A touch of a mapped file's page: `filemap_nopage` reads the aligned cluster around a missing one.
    fn touch_file(&mut self, t: u32, id: u32, write: bool) -> Option<Flow> {
        if self.on_demand() {
            return self.touch_mapped(t, id, write);
        }
        let p = *self.mm.page(id);
        if p.has(flag::MAPPED | flag::PRESENT) {
            self.mm.counters.page_hits += 1;
            self.use_mapping(id, write);
            return None;
        }
        match self.tasks[t as usize].op.at {
            At::Begin => {
                self.charge(self.config.machine.fault_ns);
                self.mm.counters.page_hits += u64::from(p.any(flag::PRESENT));
                self.mm.counters.page_misses += u64::from(!p.any(flag::PRESENT));
                self.tasks[t as usize].op.at = At::Queued;
                if !p.any(flag::PRESENT) {
                    self.read_around(t, id);
                }
                Some(Flow::Continue)
            }
            At::Queued => {
                if !p.any(flag::PRESENT) {
                    // Evicted again before we could map it.
                    self.tasks[t as usize].op.at = At::Begin;
                    return Some(Flow::Continue);
                }
                self.pin(t, id);
                if p.any(flag::LOCKED) && !p.any(flag::UPTODATE) {
                    return Some(self.wait_on_page(t, Wait::Page(id)));
                }
                self.mm.set(id, flag::MAPPED);
                self.mm.spaces.page_mapped(t);
                self.mm.page_mut(id).flags &= !flag::READAHEAD;
                if self.config.reclaim.fault_marks {
                    if self.mm.page(id).list == List::Inactive {
                        self.mm.activate(id);
                    }
                    self.mm.set(id, flag::REFERENCED);
                } else if self.config.reclaim.fault_activates && self.mm.page(id).list == List::Inactive {
                    self.mm.activate(id);
                    self.mm.clear(id, flag::REFERENCED);
                } else {
                    self.mm.mark_accessed(id);
                }
                self.use_mapping(id, write);
                None
            }
            at => unreachable!("a touch of a mapped file is never at {at:?}"),
        }
    }

    /// Queue reads for the aligned cluster of a missing page (as a read-ahead loop over its pages).
    fn read_around(&mut self, t: u32, id: u32) {
        let file = self.mm.file_of(id);
        let f = &self.program.files[file as usize];
        let index = id - f.first_page;
        let size = 1u32 << self.config.swap.page_cluster;
        let start = index / size * size;
        let end = (start + size).min(f.pages).min(self.files[file as usize].size.div_ceil(4096) as u32).max(index + 1);
        self.tasks[t as usize].push(Frame::ReadAround {
            first: f.first_page + start,
            end: f.first_page + end,
            at: Bring::Next,
        });
    }

    pub(super) fn step_read_around(&mut self, t: u32, first: u32, end: u32, at: Bring) -> Flow {
        match at {
            Bring::Next if first >= end => {
                self.finish_plug(t);
                self.tasks[t as usize].pop(0);
            }
            Bring::Next if self.mm.page(first).any(flag::PRESENT) => {
                self.tasks[t as usize].set_top(Frame::ReadAround { first: first + 1, end, at });
            }
            Bring::Next => {
                self.tasks[t as usize].set_top(Frame::ReadAround { first, end, at: Bring::Allocated });
                return self.call_alloc(t, AllocFlags::USER);
            }
            Bring::Allocated => {
                let zone = self.tasks[t as usize].ret;
                if zone == FAILED {
                    self.tasks[t as usize].pop(FAILED);
                    return Flow::Continue;
                }
                self.tasks[t as usize].set_top(Frame::ReadAround { first: first + 1, end, at: Bring::Next });
                if self.adopt(first, zone as usize) {
                    self.mm.set(first, flag::READAHEAD);
                    self.tasks[t as usize].push(Frame::ReadPage {
                        page: first,
                        kind: BioKind::Readahead,
                        mapped: false,
                    });
                }
            }
            Bring::Queued => self.tasks[t as usize].set_top(Frame::ReadAround { first, end, at: Bring::Next }),
        }
        Flow::Continue
    }

    /// Does a page stay in the swap cache when its page-table entry goes? (`free_page_and_swap_cache` where the entry maps
    /// it, `swap_free` or `free_swap_and_cache` where it holds the slot.)
    fn stays_cached(&self, p: &Page) -> bool {
        if p.any(flag::LOCKED) || p.pins > 0 {
            return true;
        }
        if p.any(flag::MAPPED) {
            return false;
        }
        !self.config.swap.exit_frees_cache || (p.any(flag::BUFFER) && !self.little_swap_free())
    }

    /// `vm_swap_full`: less than the variant's share of swap is free.
    fn little_swap_free(&self) -> bool {
        let swap = &self.mm.swap;
        u64::from(swap.free()) * 100 < u64::from(swap.total()) * u64::from(self.config.swap.free_slot_below_pct)
    }

    /// A fault that got no frame: the task exits where it stands, and its memory is free before anybody else runs.
    fn kill_at_fault(&mut self, t: u32, sink: &mut dyn ResultSink) {
        let text = format!("VM: killing process {}", self.program.tasks[t as usize].name);
        self.kill(t, &text, sink);
        self.exit_memory(t);
    }

    /// An anonymous page that nobody will use again.
    pub(super) fn free_anon(&mut self, id: u32) {
        let p = *self.mm.page(id);
        if p.any(flag::SHARED) {
            // Others refer to it: only this entry goes.
            if p.any(flag::PTE_DIRTY) {
                self.mm.set(id, flag::DIRTY);
            }
            self.mm.clear(id, flag::MAPPED | flag::YOUNG | flag::PTE_DIRTY | flag::SWAPPED | flag::ZERO_MAPPED);
            return;
        }
        if self.config.swap.exit_keeps_cache && p.has(flag::PRESENT | flag::SWAP_CACHE) {
            self.mm.clear(id, flag::MAPPED | flag::YOUNG | flag::PTE_DIRTY | flag::SWAPPED);
            return;
        }
        let stays = p.any(flag::SWAP_CACHE) && self.stays_cached(&p);
        let dirty = if stays && !p.any(flag::PTE_DIRTY) { 0 } else { flag::DIRTY };
        self.mm.clear(id, flag::MAPPED | flag::YOUNG | flag::PTE_DIRTY | flag::ZERO_MAPPED | dirty);
        if stays && p.any(flag::PTE_DIRTY) {
            self.mm.set(id, flag::DIRTY);
        }
        if p.any(flag::SWAPPED) {
            self.mm.clear(id, flag::SWAPPED);
            if !p.any(flag::SWAP_CACHE) {
                self.mm.free_slot(id);
            }
        }
        if !p.any(flag::PRESENT) || stays {
            return;
        }
        if p.any(flag::LOCKED) || p.pins > 0 {
            self.mm.set(id, flag::ORPHAN);
        } else {
            self.mm.forget(id);
        }
    }
}
