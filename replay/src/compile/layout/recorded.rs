//! Recorded layout: the extents of the side table.

use kreplay_traces::units::{PAGE_BYTES, SECTOR_BYTES, SECTORS_PER_PAGE, Sectors};
use rustc_hash::FxHashMap;

use super::SideTables;
use super::ext2::{Allocator, DIRECT, PER_INDIRECT};
use crate::program::Extent;

/// What the side table has of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedFile {
    pub(super) dev: Option<i64>,
    pub(super) inode: Option<u64>,
    /// (first byte, sector, bytes), ascending.
    pub(super) pieces: Vec<(u64, u64, u64)>,
}

/// The side table by path.
pub(super) fn by_path(side: &SideTables) -> FxHashMap<&str, RecordedFile> {
    let mut table: FxHashMap<&str, RecordedFile> = FxHashMap::default();
    for f in &side.files {
        let file: &mut RecordedFile = table.entry(f.path.as_str()).or_default();
        file.dev = f.dev.or(file.dev);
        file.inode = f.inode.and_then(|i| u64::try_from(i).ok()).or(file.inode);
        if let Some(piece) = piece(f.extent_offset_bytes, f.extent_sector_512, f.extent_len_bytes) {
            let at = file.pieces.partition_point(|p| *p < piece);
            file.pieces.insert(at, piece);
        }
    }
    table
}

fn piece(offset: Option<i64>, sector: Option<i64>, len: Option<i64>) -> Option<(u64, u64, u64)> {
    Some((u64::try_from(offset?).ok()?, u64::try_from(sector?).ok()?, u64::try_from(len?).ok()?))
}

/// Sector behind the last recorded extent of a device (of extents without a device: of all) that begins in `from..to`.
pub(super) fn end_of_device(side: &SideTables, dev: Option<i64>, from: Sectors, to: Sectors) -> Sectors {
    let on_device = side.files.iter().filter(|f| f.dev.is_none() || dev.is_none() || f.dev == dev);
    let ends = on_device.filter_map(|f| {
        let (_, sector, len) = piece(f.extent_offset_bytes, f.extent_sector_512, f.extent_len_bytes)?;
        if sector < from.0 || sector >= to.0 {
            return None;
        }
        Some(sector.saturating_add(len.div_ceil(SECTOR_BYTES)))
    });
    Sectors(ends.max().unwrap_or(0))
}

/// Largest recorded inode number of a device.
pub(super) fn last_inode(side: &SideTables, dev: Option<i64>) -> u64 {
    let on_device = side.files.iter().filter(|f| f.dev.is_none() || dev.is_none() || f.dev == dev);
    on_device.filter_map(|f| u64::try_from(f.inode?).ok()).max().unwrap_or(0)
}

impl RecordedFile {
    /// Its first `pages` pages as far as they were recorded: whole pages, ordered, not overlapping.
    pub(super) fn extents(&self, pages: u64) -> Vec<Extent> {
        let mut out: Vec<Extent> = Vec::new();
        let mut next = 0;
        for &(offset, sector, len) in &self.pieces {
            let first = offset.div_ceil(PAGE_BYTES).max(next);
            let end = (offset + len).div_ceil(PAGE_BYTES).min(pages);
            if first >= end {
                continue;
            }
            let at = sector + (first * PAGE_BYTES - offset) / SECTOR_BYTES;
            match out.last_mut() {
                Some(e) if u64::from(e.page + e.pages) == first && end_sector(*e) == at => {
                    e.pages += (end - first) as u32
                }
                _ => out.push(Extent { page: first as u32, pages: (end - first) as u32, sector: Sectors(at) }),
            }
            next = end;
        }
        out
    }
}

fn end_sector(e: Extent) -> u64 {
    e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE
}

/// Indirect blocks that recorded extents leave room for, as ext2 does: one block before page 12, two before page 1036
/// (the double indirect block and its child), one before each 1024 further. Empty unless all of them are there.
pub(super) fn indirect_gaps(extents: &[Extent]) -> Vec<Sectors> {
    let Some(last) = extents.last() else { return Vec::new() };
    let pages = u64::from(last.page) + u64::from(last.pages);
    let mut found = Vec::new();
    let mut boundary = DIRECT;
    while boundary < pages {
        let i = extents.partition_point(|e| u64::from(e.page) < boundary);
        let leaf = (boundary - DIRECT) / PER_INDIRECT;
        let room = if leaf >= 1 && (leaf - 1).is_multiple_of(PER_INDIRECT) { 2 } else { 1 };
        match (i.checked_sub(1).map(|p| extents[p]), extents.get(i)) {
            (Some(before), Some(at))
                if u64::from(at.page) == boundary && end_sector(before) + room * SECTORS_PER_PAGE == at.sector.0 =>
            {
                found.push(Sectors(at.sector.0 - SECTORS_PER_PAGE));
            }
            _ => return Vec::new(),
        }
        boundary += PER_INDIRECT;
    }
    found
}

/// Place what lies between and behind recorded extents.
pub(super) fn fill_gaps(known: Vec<Extent>, pages: u64, allocator: &mut Allocator) -> Vec<Extent> {
    let mut out = Vec::with_capacity(known.len());
    let mut page = 0;
    for e in known {
        let start = u64::from(e.page);
        allocator.data(&mut out, page, start - page);
        out.push(e);
        page = start + u64::from(e.pages);
    }
    allocator.data(&mut out, page, pages - page);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(page: u32, pages: u32, block: u64) -> Extent {
        Extent { page, pages, sector: Sectors(block * 8) }
    }

    #[test]
    fn pieces_become_whole_pages() {
        let f =
            RecordedFile { pieces: vec![(0, 800, 8192), (8192, 816, 4096), (16_384, 80, 100)], ..Default::default() };
        assert_eq!(f.extents(10), [extent(0, 3, 100), extent(4, 1, 10)]);
        assert_eq!(f.extents(2), [extent(0, 2, 100)]);
        let filled = fill_gaps(f.extents(10), 6, &mut Allocator::new(Sectors(0), Sectors(8)));
        assert_eq!(filled.iter().map(|e| e.page).collect::<Vec<_>>(), [0, 3, 4, 5]);
    }

    #[test]
    fn gaps_of_ext2_are_indirect_blocks() {
        let ext2 = [extent(0, 12, 100), extent(12, 1024, 113), extent(1036, 5, 1139)];
        assert_eq!(indirect_gaps(&ext2), [Sectors(112 * 8), Sectors(1138 * 8)]);
        assert_eq!(indirect_gaps(&[extent(0, 100, 100)]), []);
    }
}
