//! Pages that a fork shares between parent and child, until one of them writes.
//!
//! A page has one record and one set of bits for its own entry, that of the task that mapped its area. The entries that a fork
//! copies stand beside the copying space's area, one byte a page, and the record says only that there are some: a shared page
//! has more users than its own entry, so unmapping one of them frees nothing, and its swap slot stays while any of them
//! holds it.
//!
//! Source: mm/memory.c of 2.4 (`copy_page_range`, `do_wp_page`). Left out: whoever reads through a copied entry uses the page's
//! own; after a write of the parent the copy that only a child keeps takes no memory (a child that writes gets pages of its
//! own when the trace is compiled).

use super::Mm;
use super::page::flag;
use super::unmap::{AddressSpaces, Entry, Place, Vma};

impl Mm {
    /// Fork: the child maps an area of its parent as well. Only anonymous pages have entries worth copying; those of files
    /// are faulted in again.
    pub fn share_area(&mut self, child: u32, area: u32, first: u32, pages: u32) {
        let mut copied = vec![Entry::None; pages as usize].into_boxed_slice();
        let mut mapped = 0;
        for (entry, id) in copied.iter_mut().zip(first..first + pages) {
            let p = *self.page(id);
            *entry = match () {
                () if p.has(flag::ANON | flag::MAPPED) => Entry::Mapped,
                () if p.has(flag::ANON | flag::SWAPPED) => Entry::Slot,
                () => Entry::None,
            };
            mapped += u32::from(*entry == Entry::Mapped);
            self.count_entry(id, *entry, true);
        }
        let space = &mut self.spaces.spaces[child as usize];
        space.rss += mapped;
        space.vmas.push(Vma { area, first, pages, copied: Some(copied) });
        self.spaces.copying.push(child);
    }

    /// Give up a copied entry of a page. True if nobody refers to the page any more; then the reference is left as the page's
    /// own, for the caller to drop as such.
    pub fn drop_copied(&mut self, id: u32, entry: Entry) -> bool {
        if entry == Entry::None {
            return false;
        }
        self.count_entry(id, entry, false);
        let last = !self.page(id).any(flag::MAPPED | flag::SWAPPED | flag::SHARED);
        if last {
            self.set(id, if entry == Entry::Mapped { flag::MAPPED } else { flag::SWAPPED });
        }
        last
    }

    /// The page's own entry is gone, with the task whose it was: the copied entry of a task that now uses the page takes its
    /// place. False if the task has none.
    pub fn adopt_copied(&mut self, task: u32, id: u32) -> bool {
        let space = &mut self.spaces.spaces[task as usize];
        let mut entries = space.vmas.iter_mut().filter_map(|v| {
            let at = id.wrapping_sub(v.first) as usize;
            v.copied.as_mut()?.get_mut(at)
        });
        let Some(entry) = entries.find(|e| **e != Entry::None) else { return false };
        let was = std::mem::replace(entry, Entry::None);
        self.count_entry(id, was, false);
        self.set(id, if was == Entry::Mapped { flag::MAPPED } else { flag::SWAPPED });
        true
    }

    /// A store to a shared page: the writer goes on with a page of its own, for which this record stands from now on.
    pub fn unshare(&mut self, id: u32) {
        self.replace_copied(id, |_| Entry::None);
        self.spaces.sharers.remove(&id);
        self.clear(id, flag::SHARED);
        if self.page(id).slot != 0 && !self.page(id).any(flag::SWAP_CACHE | flag::SWAPPED) {
            self.free_slot(id);
        }
    }

    /// `try_to_unmap`, where pages know their entries: those that a fork copied hold the slot from now on, which the page has.
    pub fn unmap_copied(&mut self, id: u32) {
        if !self.page(id).any(flag::SHARED_MAP) {
            return;
        }
        self.replace_copied(id, |e| if e == Entry::Mapped { Entry::Slot } else { e });
        let counts = self.spaces.sharers.entry(id).or_default();
        *counts = [0, counts[0].saturating_add(counts[1])];
        self.clear(id, flag::SHARED_MAP);
        self.set(id, flag::SHARED_SLOT);
    }

    /// Replace all copied entries of a page, without counting.
    fn replace_copied(&mut self, id: u32, to: impl Fn(Entry) -> Entry) {
        let AddressSpaces { spaces, copying, .. } = &mut self.spaces;
        for &space in copying.iter() {
            let space = &mut spaces[space as usize];
            for v in &mut space.vmas {
                if let Some(entry) = v.copied.as_mut().and_then(|c| c.get_mut(id.wrapping_sub(v.first) as usize)) {
                    let was = std::mem::replace(entry, to(*entry));
                    let unmapped = was == Entry::Mapped && *entry != Entry::Mapped;
                    space.rss = space.rss.saturating_sub(u32::from(unmapped));
                }
            }
        }
    }

    /// Replace a copied entry.
    pub(super) fn set_entry(&mut self, (space, vma, page): Place, id: u32, to: Entry) {
        let Some(copied) = self.spaces.spaces[space].vmas[vma].copied.as_mut() else { return };
        let from = std::mem::replace(&mut copied[page as usize], to);
        self.count_entry(id, to, true);
        self.count_entry(id, from, false);
    }

    fn count_entry(&mut self, id: u32, entry: Entry, more: bool) {
        let (i, bit) = match entry {
            Entry::None => return,
            Entry::Mapped => (0, flag::SHARED_MAP),
            Entry::Slot => (1, flag::SHARED_SLOT),
        };
        let counts = self.spaces.sharers.entry(id).or_default();
        counts[i] = if more { counts[i].saturating_add(1) } else { counts[i].saturating_sub(1) };
        let counts = *counts;
        if counts == [0, 0] {
            self.spaces.sharers.remove(&id);
        }
        if counts[i] > 0 {
            self.set(id, bit);
            self.hot[id as usize] = 0;
        } else {
            self.clear(id, bit);
        }
    }
}
