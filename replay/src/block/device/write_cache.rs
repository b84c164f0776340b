//! What a drive has acknowledged and not yet written: dirty stretches, neighbours joined.

use std::collections::BTreeMap;

/// Dirty stretches by first sector.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteCache {
    /// First sector to (behind the last one, when it came: ns).
    dirty: BTreeMap<u64, (u64, f64)>,
    sectors: u64,
    capacity: u64,
}

impl WriteCache {
    pub(super) fn new(bytes: u64) -> Self {
        Self { capacity: bytes / kreplay_traces::units::SECTOR_BYTES, ..Self::default() }
    }

    /// A write of this length can ever be held.
    pub(super) fn takes(&self, nr: u64) -> bool {
        nr <= self.capacity
    }

    /// It has room now.
    pub(super) fn has_room(&self, nr: u64) -> bool {
        self.sectors + nr <= self.capacity
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Sectors held.
    #[cfg(test)]
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Takes a write; what it overwrites or touches becomes one stretch with it.
    pub(super) fn add(&mut self, first: u64, end: u64, now: f64) {
        let (mut from, mut to) = (first, end);
        while let Some((&f, &(e, _))) = self.dirty.range(..=to).next_back().filter(|(_, (e, _))| *e >= from) {
            self.dirty.remove(&f);
            self.sectors -= e - f;
            from = from.min(f);
            to = to.max(e);
        }
        self.dirty.insert(from, (to, now));
        self.sectors += to - from;
    }

    /// A read that lies in a stretch as a whole.
    pub(super) fn holds(&self, first: u64, end: u64) -> bool {
        self.dirty.range(..=first).next_back().is_some_and(|(_, (e, _))| *e >= end)
    }

    /// The first stretch that has any of these sectors.
    pub(super) fn overlapping(&self, first: u64, end: u64) -> Option<u64> {
        self.dirty.range(..end).next_back().filter(|(_, (e, _))| *e > first).map(|(f, _)| *f)
    }

    /// When the oldest stretch came.
    pub(super) fn oldest(&self) -> Option<f64> {
        self.dirty.values().map(|v| v.1).min_by(f64::total_cmp)
    }

    /// First sectors of what had come by `now`.
    pub(super) fn ready(&self, now: f64) -> impl Iterator<Item = u64> + '_ {
        self.dirty.iter().filter(move |(_, (_, came))| *came <= now).map(|(f, _)| *f)
    }

    /// Takes a stretch out, at most `most` sectors of it from its beginning; its length.
    pub(super) fn take(&mut self, first: u64, most: u64) -> u64 {
        let Some((end, came)) = self.dirty.remove(&first) else { return 0 };
        let nr = (end - first).min(most);
        if first + nr < end {
            self.dirty.insert(first + nr, (end, came));
        }
        self.sectors -= nr;
        nr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_overwritten_sectors_are_one_stretch() {
        let mut c = WriteCache::new(1 << 20);
        c.add(100, 108, 0.0);
        c.add(116, 124, 1.0);
        assert_eq!(c.sectors(), 16);
        c.add(104, 116, 2.0);
        assert_eq!((c.sectors(), c.holds(100, 124), c.holds(99, 101)), (24, true, false));
        assert_eq!((c.overlapping(90, 101), c.overlapping(90, 100)), (Some(100), None));
        assert_eq!((c.take(100, 10), c.sectors(), c.take(110, 100), c.is_empty()), (10, 14, 14, true));
    }
}
