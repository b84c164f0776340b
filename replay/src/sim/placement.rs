//! Where new blocks of files go: an ext2-like allocator at the time of the write.
//!
//! Source: fs/ext2/balloc.c and inode.c of 2.4 (`ext2_find_goal`, `ext2_new_block`, preallocation of 8 blocks): the goal
//! is the block after the file's last one, else the start of the block group of the file's inode; the first free block
//! from there on is taken, and up to seven free ones behind it are kept for the same file until it is closed. Files that
//! are written at the same time are thus interleaved in stretches of eight blocks. Free space is what the trace's own
//! files leave: the places that the compiled program holds for what does not exist yet, and what is truncated; with delayed
//! allocation also what lies behind all of them. There small files follow each other whatever their directories, and so do
//! directories (ext4's locality groups: fs/ext4/mballoc.c of 6.1 to 6.18).

use crate::program::{FileInfo, FileKind, Program};
use kreplay_traces::units::{SECTORS_PER_PAGE, Sectors};
use std::collections::BTreeMap;

/// Blocks kept for a file at a time.
const PREALLOCATE: u32 = 8;
/// Blocks in a block group (4 KiB blocks).
const GROUP_BLOCKS: u64 = 32_768;
/// Where small files begin is a multiple of this (ext4's `mb_group_prealloc`), blocks.
const STREAM_BLOCKS: u64 = 512;

/// A stretch kept for a file.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    page: u32,
    sector: u64,
    left: u32,
}

/// Placement of one file's pages that were allocated while it ran.
#[derive(Clone, Debug, Default)]
struct Placed {
    /// First page of a stretch -> (sector, pages).
    stretches: BTreeMap<u32, (u64, u32)>,
    kept: Kept,
}

/// What follows itself on disk with delayed allocation, whatever the directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Small files.
    Files,
    /// Directories, a group away from them.
    Directories,
}

/// Free space of all devices, and what was placed in it.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Per device: first sector -> pages.
    free: Vec<BTreeMap<u64, u64>>,
    files: Vec<Placed>,
    /// Per device: where the next small file and the next directory go, with delayed allocation.
    streams: Vec<[Sectors; 2]>,
}

impl Placement {
    /// With `all`, what lies behind the files' places is free as well.
    pub(super) fn new(program: &Program, all: bool) -> Self {
        let mut p = Self {
            free: vec![BTreeMap::new(); program.devices.len()],
            files: vec![Placed::default(); program.files.len()],
            streams: vec![[Sectors::ZERO; 2]; program.devices.len()],
        };
        if all {
            p.free_the_rest(program);
        }
        for f in program.files.iter().filter(|f| f.kind == FileKind::Regular) {
            let existing = if f.exists { f.initial_size.div_ceil(4096) } else { 0 };
            for e in &f.extents {
                let skip = existing.saturating_sub(u64::from(e.page)).min(u64::from(e.pages));
                let pages = u64::from(e.pages) - skip;
                p.give(f.device, e.sector.0 + skip * SECTORS_PER_PAGE, pages);
            }
        }
        p
    }

    fn free_the_rest(&mut self, program: &Program) {
        for (d, info) in (0u32..).zip(&program.devices) {
            let of = program.files.iter().filter(|f| f.device == d).flat_map(|f| &f.extents);
            let used = of.map(|e| e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE).max().unwrap_or(0);
            let group = GROUP_BLOCKS * SECTORS_PER_PAGE;
            let begin = used.next_multiple_of(STREAM_BLOCKS * SECTORS_PER_PAGE);
            let end = info.sectors.0.max(begin + 2 * group);
            self.give(d, begin, (end - begin) / SECTORS_PER_PAGE);
            self.streams[d as usize] = [Sectors(begin), Sectors((begin + group).min(end - group))];
        }
    }

    /// Sector of a page of a file.
    pub(super) fn sector_of(&self, file: u32, info: &FileInfo, page: u32) -> Sectors {
        let placed = &self.files[file as usize].stretches;
        match placed.range(..=page).next_back() {
            Some((&first, &(sector, pages))) if page < first + pages => {
                Sectors(sector + u64::from(page - first) * SECTORS_PER_PAGE)
            }
            _ => info.sector_of(page),
        }
    }

    /// Pages of a file as stretches in a row on disk: first page, its sector, pages.
    pub(super) fn stretches(&self, file: u32, info: &FileInfo, first: u32, pages: u32) -> Vec<(u32, Sectors, u32)> {
        let mut out: Vec<(u32, Sectors, u32)> = Vec::new();
        for page in first..first + pages {
            let at = self.sector_of(file, info, page);
            match out.last_mut() {
                Some((_, sector, n)) if *sector + Sectors(u64::from(*n) * SECTORS_PER_PAGE) == at => *n += 1,
                _ => out.push((page, at, 1)),
            }
        }
        out
    }

    /// Give a page that has none a place on disk.
    pub(super) fn allocate(
        &mut self,
        file: u32,
        info: &FileInfo,
        inode_group: Option<Sectors>,
        stream: Option<Stream>,
        page: u32,
    ) {
        let kept = self.files[file as usize].kept;
        let sector = if kept.left > 0 && kept.page == page {
            kept.sector
        } else {
            self.discard(file, info.device);
            let before = page.checked_sub(1).filter(|p| self.is_placed(file, *p));
            let goal = match (stream, before) {
                (_, Some(p)) => self.sector_of(file, info, p).0 + SECTORS_PER_PAGE,
                (Some(stream), None) => self.streams[info.device as usize][stream as usize].0,
                (None, None) => {
                    let near = inode_group.unwrap_or_else(|| info.sector_of(page)).0;
                    near / (GROUP_BLOCKS * SECTORS_PER_PAGE) * GROUP_BLOCKS * SECTORS_PER_PAGE
                }
            };
            let Some((sector, pages)) = self.take(info.device, goal) else {
                return; // no free space is known: the compiled place stands
            };
            self.files[file as usize].kept = Kept { page, sector, left: pages };
            sector
        };
        if let Some(stream) = stream {
            self.streams[info.device as usize][stream as usize] = Sectors(sector + SECTORS_PER_PAGE);
        }
        let f = &mut self.files[file as usize];
        f.kept = Kept { page: page + 1, sector: sector + SECTORS_PER_PAGE, left: f.kept.left - 1 };
        if let Some((&first, stretch)) = f.stretches.range_mut(..=page).next_back()
            && first + stretch.1 == page
            && stretch.0 + u64::from(stretch.1) * SECTORS_PER_PAGE == sector
        {
            stretch.1 += 1;
            return;
        }
        f.stretches.insert(page, (sector, 1));
    }

    /// The last close gives back what was kept.
    pub(super) fn discard(&mut self, file: u32, device: u32) {
        let kept = std::mem::take(&mut self.files[file as usize].kept);
        self.give(device, kept.sector, u64::from(kept.left));
    }

    /// A page of the file is cut off: its place is free.
    pub(super) fn free_page(&mut self, file: u32, info: &FileInfo, page: u32) {
        self.discard(file, info.device);
        let sector = self.sector_of(file, info, page).0;
        self.give(info.device, sector, 1);
        let f = &mut self.files[file as usize];
        let Some((&first, &(at, pages))) = f.stretches.range(..=page).next_back() else { return };
        if page >= first + pages {
            return;
        }
        f.stretches.remove(&first);
        if page > first {
            f.stretches.insert(first, (at, page - first));
        }
        if first + pages > page + 1 {
            f.stretches
                .insert(page + 1, (at + u64::from(page + 1 - first) * SECTORS_PER_PAGE, first + pages - page - 1));
        }
    }

    fn is_placed(&self, file: u32, page: u32) -> bool {
        let placed = &self.files[file as usize].stretches;
        placed.range(..=page).next_back().is_some_and(|(first, (_, pages))| page < first + pages)
    }

    /// The first free stretch from `goal` on (then from the start of the device), at most [`PREALLOCATE`] pages of it.
    fn take(&mut self, device: u32, goal: u64) -> Option<(u64, u32)> {
        let free = &mut self.free[device as usize];
        let around = free.range(..goal).next_back().filter(|(s, n)| **s + **n * SECTORS_PER_PAGE > goal);
        let (&start, &pages) = around.or_else(|| free.range(goal..).next()).or_else(|| free.iter().next())?;
        let skip = goal.saturating_sub(start).div_ceil(SECTORS_PER_PAGE);
        let skip = if skip < pages { skip } else { 0 };
        let taken = (pages - skip).min(u64::from(PREALLOCATE));
        free.remove(&start);
        if skip > 0 {
            free.insert(start, skip);
        }
        let at = start + skip * SECTORS_PER_PAGE;
        if skip + taken < pages {
            free.insert(at + taken * SECTORS_PER_PAGE, pages - skip - taken);
        }
        Some((at, taken as u32))
    }

    fn give(&mut self, device: u32, mut sector: u64, mut pages: u64) {
        if pages == 0 {
            return;
        }
        let free = &mut self.free[device as usize];
        if let Some((&before, &n)) = free.range(..sector).next_back()
            && before + n * SECTORS_PER_PAGE == sector
        {
            free.remove(&before);
            (sector, pages) = (before, pages + n);
        }
        if let Some(n) = free.remove(&(sector + pages * SECTORS_PER_PAGE)) {
            pages += n;
        }
        free.insert(sector, pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;

    #[test]
    fn two_writers_interleave_by_eight_blocks() {
        let mut b = Builder::new();
        let (f, g) = (b.file(64, 0), b.file(64, 0));
        let program = b.build();
        let (a, c) = (&program.files[f as usize], &program.files[g as usize]);
        let mut p = Placement::new(&program, false);
        for page in 0..16 {
            p.allocate(f, a, None, None, page);
            p.allocate(g, c, None, None, page);
        }
        let at = |p: &Placement, file, info, page| (p.sector_of(file, info, page).0 - a.extents[0].sector.0) / 8;
        let of_f: Vec<u64> = (0..16).map(|i| at(&p, f, a, i)).collect();
        let of_g: Vec<u64> = (0..16).map(|i| at(&p, g, c, i)).collect();
        assert_eq!(of_f[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of_g[..8], [8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(of_f[8], 16);
        assert_eq!(of_g[8], 24);
    }

    #[test]
    fn what_is_cut_off_is_used_again_and_nothing_twice() {
        let mut b = Builder::new();
        let (f, g) = (b.file(16, 16), b.file(16, 0));
        let program = b.build();
        let mut p = Placement::new(&program, false);
        for page in 0..16 {
            p.free_page(f, &program.files[f as usize], page);
        }
        let mut seen = std::collections::BTreeSet::new();
        for page in 0..16 {
            p.allocate(g, &program.files[g as usize], None, None, page);
            p.allocate(f, &program.files[f as usize], None, None, page);
            assert!(seen.insert(p.sector_of(g, &program.files[g as usize], page)));
            assert!(seen.insert(p.sector_of(f, &program.files[f as usize], page)));
        }
        assert_eq!(seen.len(), 32);
        assert!(p.free[0].is_empty());
    }
}
