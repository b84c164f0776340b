//! What a task says of its use of mappings: madvise(), and the parts of areas that munmap() takes away.
//!
//! Source: mm/madvise.c, mm/filemap.c (`do_sync_mmap_readahead`, `do_async_mmap_readahead`) of 6.1 to 6.18. Advice of order holds
//! for the pages named, until other advice; on older kernels it is noted and changes nothing. Reduced: pages of swapped areas are
//! not read by `MADV_WILLNEED`.

use super::Sim;
use super::sched::Flow;
use super::task::At;
use crate::block::BioKind;
use crate::mm::page::flag;
use crate::program::{Advice, Op};
use crate::readahead::{Hint, Window};
use kreplay_traces::units::PAGE_BYTES;
use std::collections::BTreeMap;

/// Advice of order by area: first page, end, what was said; later advice comes later.
pub(super) type Hints = BTreeMap<u32, Vec<(u32, u32, Hint)>>;

impl Sim<'_> {
    /// One step of a madvise() on `count` pages of an area; `None` when it is done.
    pub(super) fn step_advise_area(
        &mut self,
        t: u32,
        area: u32,
        first: u32,
        count: u32,
        advice: Advice,
    ) -> Option<Flow> {
        let a = self.program.areas[area as usize];
        let (first, end) = (first.min(a.pages), first.saturating_add(count).min(a.pages));
        let hint = match advice {
            Advice::Normal => Hint::Normal,
            Advice::Random => Hint::Random,
            Advice::Sequential => Hint::Sequential,
            Advice::DontNeed => {
                for id in a.first_page + first..a.first_page + end {
                    self.unmap_page(id, a.file.is_some());
                    self.mm.refresh_hot(id);
                }
                return None;
            }
            Advice::WillNeed => {
                let file = a.file.filter(|_| self.on_demand() && self.tasks[t as usize].op.at == At::Begin)?;
                self.tasks[t as usize].op.at = At::Queued;
                let page = u64::from(a.first_page - self.program.files[file as usize].first_page);
                let there = self.files[file as usize].size.div_ceil(PAGE_BYTES);
                let (start, end) = (page + u64::from(first), (page + u64::from(end)).min(there));
                let size = end.saturating_sub(start).min(self.config.readahead.on_demand.advised());
                if size == 0 {
                    return None;
                }
                self.bring_in(t, file, Window { start, size, mark: None, order: 0 }, BioKind::Readahead);
                return Some(Flow::Continue);
            }
        };
        let said = self.mapping_hints.entry(area).or_default();
        said.retain(|(from, until, _)| *from < first || *until > end);
        said.push((first, end, hint));
        None
    }

    /// What the task in hand said of the page of a mapping that it touches.
    pub(super) fn hint_of_touch(&self, t: u32, id: u32) -> Hint {
        let Some(Op::Touch { area, .. }) = self.current_op(t) else { return Hint::Normal };
        let Some(said) = self.mapping_hints.get(&area) else { return Hint::Normal };
        let page = id.wrapping_sub(self.program.areas[area as usize].first_page);
        let found = said.iter().rev().find(|(from, until, _)| (*from..*until).contains(&page));
        found.map_or(Hint::Normal, |(_, _, hint)| *hint)
    }

    /// A page's mapping goes; an anonymous page with it.
    pub(super) fn unmap_page(&mut self, id: u32, of_file: bool) {
        if !of_file {
            self.free_anon(id);
            return;
        }
        let p = *self.mm.page(id);
        if p.any(flag::MAPPED) {
            if p.any(flag::YOUNG) {
                self.mm.mark_accessed(id);
            }
            if p.any(flag::PTE_DIRTY) {
                self.mm.set(id, flag::DIRTY);
            }
            self.mm.clear(id, flag::MAPPED | flag::YOUNG | flag::PTE_DIRTY);
        }
    }
}
