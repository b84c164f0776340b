//! Where new blocks of files go: an ext2-like allocator at the time of the write.
//!
//! Source: fs/ext2/balloc.c and inode.c of 2.4 (`ext2_find_goal`, `ext2_new_block`, preallocation of 8 blocks): the goal
//! is the block after the file's last one, else the start of the block group of the file's inode; the first free block
//! from there on is taken, and up to seven free ones behind it are kept for the same file until it is closed. Files that
//! are written at the same time are thus interleaved in stretches of eight blocks. Free space is what the trace's own
//! files leave: the places that the compiled program holds for what does not exist yet, and what is truncated; with delayed
//! allocation also what lies behind all of them. There small files follow each other whatever their directories, and so do
//! directories (ext4's locality groups: fs/ext4/mballoc.c of 6.1 to 6.18). Larger ones are given aligned pieces, which are kept
//! for them until they are closed; one that has no block yet begins in the first group that holds no file: of a group that was
//! in use when the file system was mounted the allocator has not read what is free. Groups 1 and powers of 3, 5 and 7 begin
//! with a copy of the superblock and of the group descriptors.

use crate::program::{FileInfo, FileKind, Program};
use kreplay_traces::units::{SECTORS_PER_PAGE, Sectors};
use std::collections::BTreeMap;

/// Blocks kept for a file at a time.
const PREALLOCATE: u32 = 8;
/// Blocks in a block group (4 KiB blocks).
const GROUP_BLOCKS: u64 = 32_768;
/// Where small files begin is a multiple of this (ext4's `mb_group_prealloc`), blocks.
const STREAM_BLOCKS: u64 = 512;

/// Groups whose bitmaps and inode tables lie in the first of them (`flex_bg`), and the blocks that these take.
const FLEX_GROUPS: u64 = 16;
const FLEX_BLOCKS: u64 = FLEX_GROUPS * (2 + 512);

/// Where a new block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Near {
    /// Near the inode or behind the file's last block (ext2).
    Inode(Option<Sectors>),
    /// Behind the last one of a stream.
    Stream(Stream),
    /// In a piece of its own, of which so many pages are still to come.
    Piece(u32),
}

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
    /// Per device: the first group without a file, with delayed allocation.
    untouched: Vec<Sectors>,
}

impl Placement {
    /// With `all`, what lies behind the files' places is free as well.
    pub(super) fn new(program: &Program, all: bool) -> Self {
        let mut p = Self {
            free: vec![BTreeMap::new(); program.devices.len()],
            files: vec![Placed::default(); program.files.len()],
            streams: vec![[Sectors::ZERO; 2]; program.devices.len()],
            untouched: vec![Sectors(if all { 0 } else { u64::MAX }); program.devices.len()],
        };
        if all {
            p.free_the_rest(program);
        }
        for f in program.files.iter().filter(|f| f.kind == FileKind::Regular) {
            let existing = if f.exists { f.initial_size.div_ceil(4096) } else { 0 };
            for e in &f.extents {
                let skip = existing.saturating_sub(u64::from(e.page)).min(u64::from(e.pages));
                let begin = e.sector.0 + skip * SECTORS_PER_PAGE;
                // From there on everything is free already.
                let end = (e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE).min(p.untouched[f.device as usize].0);
                p.give(f.device, begin, end.saturating_sub(begin) / SECTORS_PER_PAGE);
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
            self.streams[d as usize] = [Sectors(begin), Sectors((begin + group).min(end - group))];
            // Directories and tables whose places are made up lie in the first group.
            let held = program.files.iter().filter(|f| f.device == d && f.exists && f.kind == FileKind::Regular);
            let held = held.flat_map(|f| {
                let pages = f.initial_size.div_ceil(4096);
                f.extents
                    .iter()
                    .filter(move |e| u64::from(e.page) < pages)
                    .map(move |e| e.sector.0 + u64::from(e.pages).min(pages - u64::from(e.page)) * SECTORS_PER_PAGE)
            });
            let first = held.max().unwrap_or(0).div_ceil(group);
            let first = if first.is_multiple_of(FLEX_GROUPS) { first + 1 } else { first };
            self.untouched[d as usize] = Sectors(first * group);
            let groups = end.div_ceil(group);
            for g in first..groups {
                let from = g * group + head_of(g, groups) * SECTORS_PER_PAGE;
                let until = ((g + 1) * group).min(end);
                self.give(d, from, until.saturating_sub(from) / SECTORS_PER_PAGE);
            }
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
    pub(super) fn allocate(&mut self, file: u32, info: &FileInfo, near: Near, page: u32) {
        let kept = self.files[file as usize].kept;
        let sector = if kept.left > 0 && kept.page == page {
            kept.sector
        } else {
            self.discard(file, info.device);
            let before = page.checked_sub(1).filter(|p| self.is_placed(file, *p));
            let goal = match (near, before) {
                (_, Some(p)) => self.sector_of(file, info, p).0 + SECTORS_PER_PAGE,
                (Near::Stream(stream), None) => self.streams[info.device as usize][stream as usize].0,
                (Near::Piece(_), None) => self.untouched[info.device as usize].0,
                (Near::Inode(inode), None) => {
                    let near = inode.unwrap_or_else(|| info.sector_of(page)).0;
                    near / (GROUP_BLOCKS * SECTORS_PER_PAGE) * GROUP_BLOCKS * SECTORS_PER_PAGE
                }
            };
            let taken = match near {
                Near::Piece(pages) => self.take_piece(info.device, goal, pages),
                _ => self.take(info.device, goal, PREALLOCATE),
            };
            let Some((sector, pages)) = taken else {
                return; // no free space is known: the compiled place stands
            };
            self.files[file as usize].kept = Kept { page, sector, left: pages };
            sector
        };
        if let Near::Stream(stream) = near {
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

    /// A piece of so many pages: what follows `goal` if that is free, else one that begins at a multiple of its own length, if
    /// there is one.
    fn take_piece(&mut self, device: u32, goal: u64, pages: u32) -> Option<(u64, u32)> {
        let free = &self.free[device as usize];
        let at_goal = free.range(..=goal).next_back().is_some_and(|(s, n)| *s + *n * SECTORS_PER_PAGE > goal);
        let step = u64::from(pages.next_power_of_two()) * SECTORS_PER_PAGE;
        let aligned = free.range(goal..).map(|(s, n)| (s.next_multiple_of(step), *s + *n * SECTORS_PER_PAGE));
        let whole = aligned.clone().find(|(s, end)| s + u64::from(pages) * SECTORS_PER_PAGE <= *end);
        let from = if at_goal { goal } else { whole.map_or(goal, |(s, _)| s) };
        self.take(device, from, pages)
    }

    /// The first free stretch from `goal` on (then from the start of the device), at most so many pages of it.
    fn take(&mut self, device: u32, goal: u64, most: u32) -> Option<(u64, u32)> {
        let free = &mut self.free[device as usize];
        let around = free.range(..goal).next_back().filter(|(s, n)| **s + **n * SECTORS_PER_PAGE > goal);
        let (&start, &pages) = around.or_else(|| free.range(goal..).next()).or_else(|| free.iter().next())?;
        let skip = goal.saturating_sub(start).div_ceil(SECTORS_PER_PAGE);
        let skip = if skip < pages { skip } else { 0 };
        let taken = (pages - skip).min(u64::from(most));
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

/// Blocks at the beginning of a group that are not for files (mke2fs: `flex_bg`, `sparse_super`, `resize_inode`).
fn head_of(group: u64, groups: u64) -> u64 {
    let power_of = |base: u64| {
        let mut n = group;
        while n > 1 && n.is_multiple_of(base) {
            n /= base;
        }
        n == 1
    };
    if group.is_multiple_of(FLEX_GROUPS) {
        return FLEX_BLOCKS;
    }
    // The superblock, and descriptors for a file system 1024 times as large, 64 in a block.
    if power_of(3) || power_of(5) || power_of(7) { 1 + (groups * 1024).div_ceil(64).min(1024) } else { 0 }
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
            p.allocate(f, a, Near::Inode(None), page);
            p.allocate(g, c, Near::Inode(None), page);
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
    fn groups_with_copies_of_the_superblock_begin_later() {
        assert_eq!([1, 2, 3, 4, 9, 15, 16].map(|g| head_of(g, 16)), [257, 0, 257, 0, 257, 0, FLEX_BLOCKS]);
    }

    #[test]
    fn a_large_file_begins_in_an_untouched_group_and_jumps_over_the_copies() {
        let group = GROUP_BLOCKS * SECTORS_PER_PAGE;
        let mut b = Builder::new();
        let (_, g) = (b.file(16, 16), b.file(40_000, 0));
        let mut program = b.build();
        program.devices[0].sectors = Sectors(16 * group);
        program.files[0].extents[0].sector = Sectors(group + 4096);
        let mut p = Placement::new(&program, true);
        for page in 0..40_000 {
            p.allocate(g, &program.files[g as usize], Near::Piece(2048 - page % 2048), page);
        }
        let found = p.stretches(g, &program.files[g as usize], 0, 40_000);
        let piece = 2048 * SECTORS_PER_PAGE;
        let expected = [(0, Sectors(2 * group), 32_768), (32_768, Sectors(3 * group + piece), 40_000 - 32_768)];
        assert_eq!(found, expected);
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
            p.allocate(g, &program.files[g as usize], Near::Inode(None), page);
            p.allocate(f, &program.files[f as usize], Near::Inode(None), page);
            assert!(seen.insert(p.sector_of(g, &program.files[g as usize], page)));
            assert!(seen.insert(p.sector_of(f, &program.files[f as usize], page)));
        }
        assert_eq!(seen.len(), 32);
        assert!(p.free[0].is_empty());
    }
}
