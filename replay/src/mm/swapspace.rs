//! Swap slots: allocation in runs of 256, use counts, read clusters.
//!
//! Source: mm/swapfile.c of 2.4.5 to 2.4.17 (`scan_swap_map`, `valid_swaphandles`), re-described in docs/MODEL.md.

const RUN: u32 = 256;

/// One swap area. Slot 0 is its header and never used.
#[derive(Clone, Debug)]
pub struct SwapSpace {
    /// Page that owns each slot, `u32::MAX` = free.
    owner: Vec<u32>,
    free: u32,
    total: u32,
    lowest: u32,
    run_next: u32,
    run_left: u32,
}

impl SwapSpace {
    /// An area of so many 4 KiB slots (the header is one of them).
    pub fn new(slots: u32) -> Self {
        let total = slots.saturating_sub(1);
        Self { owner: vec![u32::MAX; slots as usize], free: total, total, lowest: 1, run_next: 1, run_left: 0 }
    }

    /// Free slots.
    pub fn free(&self) -> u32 {
        self.free
    }
    /// Slots in all, without the header.
    pub fn total(&self) -> u32 {
        self.total
    }
    /// Slots in use.
    pub fn used(&self) -> u32 {
        self.total - self.free
    }

    /// Give a page a slot: the next of the current run; else the start of the lowest empty run of 256; else the lowest
    /// free slot. `None` when swap is full.
    pub fn allocate(&mut self, page: u32) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let end = self.owner.len() as u32;
        while self.run_left > 0 && self.run_next < end {
            let s = self.run_next;
            self.run_next += 1;
            if self.is_free(s) {
                self.run_left -= 1;
                return Some(self.take(s, page));
            }
        }
        self.run_left = RUN;
        let mut start = self.lowest;
        while start + RUN <= end {
            match (start..start + RUN).rev().find(|&s| !self.is_free(s)) {
                Some(s) => start = s + 1,
                None => return Some(self.take(start, page)),
            }
        }
        let s = (self.lowest..end).find(|&s| self.is_free(s))?;
        self.lowest = s + 1;
        Some(self.take(s, page))
    }

    fn is_free(&self, slot: u32) -> bool {
        self.owner[slot as usize] == u32::MAX
    }

    fn take(&mut self, slot: u32, page: u32) -> u32 {
        self.owner[slot as usize] = page;
        self.free -= 1;
        self.run_next = slot + 1;
        if slot == self.lowest {
            self.lowest += 1;
        }
        slot
    }

    /// Free a slot.
    ///
    /// # Panics
    /// If it is free already.
    pub fn release(&mut self, slot: u32) {
        assert!(!self.is_free(slot), "swap slot {slot} freed twice");
        self.owner[slot as usize] = u32::MAX;
        self.free += 1;
        self.lowest = self.lowest.min(slot);
    }

    /// Page that owns a slot.
    pub fn owner(&self, slot: u32) -> Option<u32> {
        self.owner.get(slot as usize).copied().filter(|&p| p != u32::MAX)
    }

    /// Slots read around `slot`: from the start of its aligned window of `2^page_cluster` up to the first free one.
    pub fn read_cluster(&self, slot: u32, page_cluster: u32) -> std::ops::Range<u32> {
        if page_cluster == 0 {
            return slot..slot;
        }
        let window = slot >> page_cluster << page_cluster;
        let first = window.max(1);
        let end = (window + (1 << page_cluster)).min(self.owner.len() as u32);
        let stop = (first..end).find(|&s| self.is_free(s)).unwrap_or(end);
        first..stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_in_runs_and_come_back() {
        let mut s = SwapSpace::new(1024);
        let first: Vec<_> = (0..300).map(|p| s.allocate(p).unwrap()).collect();
        assert_eq!(first, (1..=300).collect::<Vec<_>>());
        s.release(5);
        assert_eq!(s.allocate(900), Some(301), "the current run goes on before holes are filled");
        assert_eq!(s.used(), 300);
        assert_eq!(s.owner(301), Some(900));
    }

    #[test]
    fn a_read_cluster_stops_at_the_first_hole() {
        let mut s = SwapSpace::new(64);
        for p in 0..20 {
            s.allocate(p);
        }
        s.release(12);
        assert_eq!(s.read_cluster(10, 3), 8..12);
        assert_eq!(s.read_cluster(3, 3), 1..8);
        assert_eq!(s.read_cluster(13, 3), 8..12);
    }

    #[test]
    fn full_swap_says_so() {
        let mut s = SwapSpace::new(3);
        assert!(s.allocate(0).is_some() && s.allocate(1).is_some());
        assert_eq!(s.allocate(2), None);
    }
}
