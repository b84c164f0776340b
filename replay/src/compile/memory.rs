//! Address spaces: which mapped area an address belongs to.
//!
//! An area of the program is what one mmap (or one growth of the heap) made. Unmapping a part trims what addresses
//! lead to it; the area itself is unmapped when its last part goes. A fork copies the address space; a child's write
//! to a private anonymous area of its parent makes an area of its own on first touch (copy on write by the area, not
//! by the page: a child that writes one page reserves ids for all, but only touched pages cost memory).

use std::collections::BTreeMap;

use kreplay_traces::units::PAGE_BYTES;

use crate::program::{AreaId, FileId};

/// Index of an address space.
pub(super) type MmId = usize;

/// What an area is, while compiling.
#[derive(Clone, Debug)]
pub(super) struct AreaState {
    /// Task that mapped it.
    pub(super) task: usize,
    /// Pages mapped.
    pub(super) pages: u64,
    /// Pages that touches reach.
    pub(super) reach: u64,
    /// Mapped file and its first page.
    pub(super) file: Option<(FileId, u64)>,
    pub(super) private: bool,
    /// Parts of it that are mapped, over all address spaces.
    pieces: u32,
    /// Address space that made it.
    owner: MmId,
}

/// A stretch of addresses.
#[derive(Clone, Copy, Debug)]
struct Vma {
    end: u64,
    area: AreaId,
    /// Page of the area at the start.
    page: u64,
}

#[derive(Clone, Debug, Default)]
struct Mm {
    vmas: BTreeMap<u64, Vma>,
    /// End of the heap.
    brk: Option<u64>,
    users: u32,
}

/// A piece of a touched range that lies in one area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) area: AreaId,
    /// Page of the area.
    pub(super) page: u64,
    /// Addresses up to this one (exclusive) are in the same stretch.
    pub(super) end: u64,
}

/// All address spaces and areas.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    mms: Vec<Mm>,
    areas: Vec<AreaState>,
}

impl Memory {
    /// An empty address space with one user.
    pub(super) fn new_mm(&mut self) -> MmId {
        self.mms.push(Mm { users: 1, ..Mm::default() });
        self.mms.len() - 1
    }

    /// One more user.
    pub(super) fn share(&mut self, mm: MmId) -> MmId {
        self.mms[mm].users += 1;
        mm
    }

    /// A copy as fork makes it.
    pub(super) fn copy(&mut self, mm: MmId) -> MmId {
        let copy = Mm { users: 1, ..self.mms[mm].clone() };
        for v in copy.vmas.values() {
            self.areas[v.area as usize].pieces += 1;
        }
        self.mms.push(copy);
        self.mms.len() - 1
    }

    /// A user goes; with the last one everything is unmapped. Returns the areas that the space mapped.
    pub(super) fn leave(&mut self, mm: MmId) -> Vec<AreaId> {
        let m = &mut self.mms[mm];
        m.users = m.users.saturating_sub(1);
        if m.users > 0 {
            return Vec::new();
        }
        let vmas = std::mem::take(&mut m.vmas);
        let mut gone: Vec<AreaId> = vmas.values().map(|v| v.area).collect();
        gone.iter().for_each(|a| self.areas[*a as usize].pieces -= 1);
        gone.sort_unstable();
        gone.dedup();
        gone
    }

    /// Private anonymous areas of an address space, in the order of their addresses, each once.
    pub(super) fn private_areas(&self, mm: MmId) -> Vec<AreaId> {
        let mut out: Vec<AreaId> = Vec::new();
        for v in self.mms[mm].vmas.values() {
            let a = &self.areas[v.area as usize];
            if a.private && a.file.is_none() && out.last() != Some(&v.area) {
                out.push(v.area);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    pub(super) fn area(&self, area: AreaId) -> &AreaState {
        &self.areas[area as usize]
    }

    pub(super) fn area_mut(&mut self, area: AreaId) -> &mut AreaState {
        &mut self.areas[area as usize]
    }

    pub(super) fn areas(&self) -> &[AreaState] {
        &self.areas
    }

    /// Whether an area was made in this address space (else it came with a fork).
    pub(super) fn owns(&self, mm: MmId, area: AreaId) -> bool {
        self.areas[area as usize].owner == mm
    }

    /// The replayed task of this space maps the area: it made the mapping, or a fork shared it.
    pub(super) fn replayed(&self, mm: MmId, area: AreaId) -> bool {
        let a = &self.areas[area as usize];
        a.owner == mm || (a.private && a.file.is_none())
    }

    /// Map `[addr, addr + len)`. Returns the area, and those that it replaced in full.
    pub(super) fn map(
        &mut self,
        mm: MmId,
        task: usize,
        addr: u64,
        len: u64,
        file: Option<(FileId, u64)>,
        private: bool,
    ) -> (AreaId, Vec<AreaId>) {
        let pages = len.div_ceil(PAGE_BYTES).max(1);
        let gone = self.unmap(mm, addr, pages * PAGE_BYTES);
        let area = u32::try_from(self.areas.len()).expect("fewer than 2^32 mappings");
        self.areas.push(AreaState { task, pages, reach: 0, file, private, pieces: 1, owner: mm });
        self.mms[mm].vmas.insert(addr, Vma { end: addr.saturating_add(pages * PAGE_BYTES), area, page: 0 });
        (area, gone)
    }

    /// Map an anonymous area around an address that is not mapped: as much of `[start, start + len)` as is free beside
    /// it. Returns the area and its bytes.
    pub(super) fn map_around(&mut self, mm: MmId, task: usize, addr: u64, start: u64, len: u64) -> (AreaId, u64) {
        let vmas = &self.mms[mm].vmas;
        let below = vmas.range(..=addr).next_back().map_or(0, |(_, v)| v.end);
        let above = vmas.range(addr..).next().map_or(u64::MAX, |(s, _)| *s);
        let from = start.max(below);
        let to = start.saturating_add(len).min(above);
        let (area, _) = self.map(mm, task, from, to - from, None, true);
        (area, to - from)
    }

    /// Unmap `[addr, addr + len)`. Returns the areas that the space maps no more.
    pub(super) fn unmap(&mut self, mm: MmId, addr: u64, len: u64) -> Vec<AreaId> {
        let mut gone: Vec<AreaId> = Vec::new();
        for (_, v) in self.take(mm, addr, len) {
            // Several parts of one area count once.
            gone.extend(self.drop_piece(mm, v.area).filter(|a| !gone.contains(a)));
        }
        gone
    }

    /// Move a mapping (mremap). Returns the areas that the target replaced in full, and whether anything was there.
    pub(super) fn remap(&mut self, mm: MmId, old: u64, old_len: u64, new: u64, new_len: u64) -> (Vec<AreaId>, bool) {
        let moved = self.take(mm, old, old_len);
        let found = !moved.is_empty();
        let mut gone = self.unmap(mm, new, new_len);
        for (start, v) in moved {
            let at = new.saturating_add(start - old);
            if start - old >= new_len {
                gone.extend(self.drop_piece(mm, v.area));
                continue;
            }
            let end = at.saturating_add(v.end - start).min(new.saturating_add(new_len));
            self.mms[mm].vmas.insert(at, Vma { end, ..v });
        }
        // Growth continues the last stretch: the area gets the pages behind it.
        let end = new.saturating_add(new_len);
        if let Some((start, v)) = self.mms[mm].vmas.range_mut(new..end).next_back() {
            v.end = end;
            let needed = v.page + (end - start).div_ceil(PAGE_BYTES);
            let area = &mut self.areas[v.area as usize];
            area.pages = area.pages.max(needed);
        }
        (gone, found)
    }

    /// Where an address lies.
    pub(super) fn find(&self, mm: MmId, addr: u64) -> Option<Hit> {
        let (start, v) = self.mms[mm].vmas.range(..=addr).next_back()?;
        (addr < v.end).then(|| Hit { area: v.area, page: v.page + (addr - start) / PAGE_BYTES, end: v.end })
    }

    /// Parts of areas that lie in `[addr, addr + len)`: area, first page of it, pages.
    pub(super) fn parts(&self, mm: MmId, addr: u64, len: u64) -> Vec<(AreaId, u64, u64)> {
        let end = addr.saturating_add(len.next_multiple_of(PAGE_BYTES));
        let vmas = &self.mms[mm].vmas;
        let first = vmas.range(..addr).next_back().filter(|(_, v)| v.end > addr).map_or(addr, |(s, _)| *s);
        let part = |(start, v): (&u64, &Vma)| {
            let (from, to) = ((*start).max(addr), v.end.min(end));
            (v.area, v.page + (from - start) / PAGE_BYTES, (to - from).div_ceil(PAGE_BYTES))
        };
        vmas.range(first..end.max(first)).map(part).filter(|p| p.2 > 0).collect()
    }

    /// Replace what leads to `area` in `mm` by an area of its own of the same size. Returns the new area, and the old
    /// one, which the space maps no more.
    pub(super) fn privatise(&mut self, mm: MmId, task: usize, area: AreaId) -> (AreaId, Option<AreaId>) {
        let own = u32::try_from(self.areas.len()).expect("fewer than 2^32 mappings");
        let template = self.areas[area as usize].clone();
        let mut pieces = 0;
        for v in self.mms[mm].vmas.values_mut().filter(|v| v.area == area) {
            v.area = own;
            pieces += 1;
        }
        let old = &mut self.areas[area as usize];
        old.pieces -= pieces;
        let gone = Some(area);
        self.areas.push(AreaState { task, reach: 0, pieces, owner: mm, ..template });
        (own, gone)
    }

    /// End of the heap, if known, and set it.
    pub(super) fn set_brk(&mut self, mm: MmId, end: u64) -> Option<u64> {
        self.mms[mm].brk.replace(end)
    }

    /// File mapped at an address range's start.
    pub(super) fn file_at(&self, mm: MmId, addr: u64) -> Option<FileId> {
        self.find(mm, addr).and_then(|h| self.areas[h.area as usize].file).map(|(f, _)| f)
    }

    /// A part of an area is unmapped in a space; the area if the space has no other part of it.
    fn drop_piece(&mut self, mm: MmId, area: AreaId) -> Option<AreaId> {
        let a = &mut self.areas[area as usize];
        a.pieces -= 1;
        (a.pieces == 0 || !self.mms[mm].vmas.values().any(|v| v.area == area)).then_some(area)
    }

    /// Take the stretches of a range out, splitting those that reach beyond it.
    fn take(&mut self, mm: MmId, addr: u64, len: u64) -> Vec<(u64, Vma)> {
        let end = addr.saturating_add(len.next_multiple_of(PAGE_BYTES));
        let vmas = &mut self.mms[mm].vmas;
        let first = vmas.range(..addr).next_back().filter(|(_, v)| v.end > addr).map_or(addr, |(s, _)| *s);
        let overlapping: Vec<u64> = vmas.range(first..end).map(|(s, _)| *s).collect();
        let mut taken = Vec::new();
        for start in overlapping {
            let Some(v) = vmas.remove(&start) else { continue };
            let page_at = |at: u64| v.page + (at - start) / PAGE_BYTES;
            let (from, to) = (start.max(addr), v.end.min(end));
            if start < from {
                vmas.insert(start, Vma { end: from, ..v });
                self.areas[v.area as usize].pieces += 1;
            }
            if to < v.end {
                vmas.insert(to, Vma { end: v.end, area: v.area, page: page_at(to) });
                self.areas[v.area as usize].pieces += 1;
            }
            taken.push((from, Vma { end: to, area: v.area, page: page_at(from) }));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: u64 = PAGE_BYTES;

    #[test]
    fn partial_unmap_keeps_the_area_until_the_last_part() {
        let mut m = Memory::default();
        let mm = m.new_mm();
        let (a, gone) = m.map(mm, 0, 10 * P, 8 * P, None, true);
        assert!(gone.is_empty());
        assert!(m.unmap(mm, 12 * P, 2 * P).is_empty());
        assert_eq!(m.find(mm, 12 * P), None);
        assert_eq!(m.find(mm, 14 * P + 5), Some(Hit { area: a, page: 4, end: 18 * P }));
        assert!(m.unmap(mm, 10 * P, 2 * P).is_empty());
        assert_eq!(m.unmap(mm, 0, 100 * P), vec![a]);
    }

    #[test]
    fn fixed_mapping_replaces_and_fork_copies() {
        let mut m = Memory::default();
        let mm = m.new_mm();
        let (a, _) = m.map(mm, 0, 10 * P, 2 * P, None, true);
        let child = m.copy(mm);
        let (b, gone) = m.map(mm, 0, 10 * P, 2 * P, None, true);
        assert_eq!(gone, [a], "the child still maps the old area, its parent no more");
        assert_eq!(m.find(mm, 10 * P).map(|h| h.area), Some(b));
        let (own, old) = m.privatise(child, 1, a);
        assert_eq!(old, Some(a));
        assert_eq!(m.find(child, 11 * P), Some(Hit { area: own, page: 1, end: 12 * P }));
        assert_eq!(m.leave(child), vec![own]);
    }

    #[test]
    fn moving_and_growing_keeps_pages() {
        let mut m = Memory::default();
        let mm = m.new_mm();
        let (a, _) = m.map(mm, 0, 10 * P, 2 * P, None, true);
        let (gone, found) = m.remap(mm, 10 * P, 2 * P, 50 * P, 4 * P);
        assert!(gone.is_empty() && found);
        assert_eq!(m.find(mm, 10 * P), None);
        assert_eq!(m.find(mm, 53 * P), Some(Hit { area: a, page: 3, end: 54 * P }));
        assert_eq!(m.area(a).pages, 4);
    }
}
