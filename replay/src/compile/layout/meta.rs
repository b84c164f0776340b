//! The pages of a device's metadata file.

use kreplay_traces::units::{SECTORS_PER_PAGE, Sectors};
use rustc_hash::FxHashMap;

use crate::program::Extent;

/// Metadata blocks of one device, numbered in order of use until they are sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct MetaBlocks {
    numbers: FxHashMap<Sectors, u32>,
    sectors: Vec<Sectors>,
}

impl MetaBlocks {
    /// The number of the block at a sector.
    pub(super) fn add(&mut self, sector: Sectors) -> u32 {
        let next = self.sectors.len() as u32;
        let number = *self.numbers.entry(sector).or_insert(next);
        if number == next {
            self.sectors.push(sector);
        }
        number
    }

    /// The numbers of several.
    pub(super) fn add_all(&mut self, sectors: &[Sectors]) -> Vec<u32> {
        sectors.iter().map(|s| self.add(*s)).collect()
    }

    /// The blocks as extents in the order of the disk, and each number's page in that order.
    pub(super) fn sort(self) -> (Vec<Extent>, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.sectors.len() as u32).collect();
        order.sort_unstable_by_key(|n| self.sectors[*n as usize]);
        let mut position = vec![0; order.len()];
        let mut extents: Vec<Extent> = Vec::new();
        for (page, number) in order.into_iter().enumerate() {
            position[number as usize] = page as u32;
            let sector = self.sectors[number as usize];
            match extents.last_mut() {
                Some(e) if e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE == sector.0 => e.pages += 1,
                _ => extents.push(Extent { page: page as u32, pages: 1, sector }),
            }
        }
        (extents, position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_disk() {
        let mut m = MetaBlocks::default();
        assert_eq!(m.add_all(&[80, 16, 8, 16].map(Sectors)), [0, 1, 2, 1]);
        let (extents, position) = m.sort();
        assert_eq!(position, [2, 1, 0]);
        let expected = [(0, 2, 8), (2, 1, 80)].map(|(page, pages, s)| Extent { page, pages, sector: Sectors(s) });
        assert_eq!(extents, expected);
    }
}
