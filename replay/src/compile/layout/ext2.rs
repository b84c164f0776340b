//! Where an empty ext2 would put things: block groups, inode tables, indirect blocks.
//!
//! 4 KiB blocks; a group has 32768 blocks, the first 4 of which hold superblock, group descriptors and bitmaps and the
//! next 256 the inode table (8192 inodes of 128 bytes), as mke2fs of that time made it for one inode per 16 KiB. A
//! file's blocks follow each other; the indirect block lies between the 12th and the 13th data block, the double
//! indirect block and its first child behind 1024 more, and so on: the order in which ext2 allocates them when the file
//! is written from its start (structure as documented for Linux 2.4, `fs/ext2/inode.c`).
//!
//! On a file system whose size is known, a new directory goes to the group with the most free blocks among those that have their
//! share of free inodes, and what is made in it follows it there (`ext2_new_inode` of 2.4, `fs/ext2/ialloc.c`); where that is
//! not known, everything follows what was placed last.

use kreplay_traces::units::{SECTORS_PER_PAGE, Sectors};

use crate::program::Extent;

/// Blocks in a group.
const GROUP_BLOCKS: u64 = 32_768;
/// Superblock, descriptors, bitmaps.
const HEAD_BLOCKS: u64 = 4;
/// Inodes in a group.
const GROUP_INODES: u64 = 8_192;
/// Inodes in a block.
const BLOCK_INODES: u64 = 32;
/// Blocks at a group's start that are not data.
const RESERVED_BLOCKS: u64 = HEAD_BLOCKS + GROUP_INODES / BLOCK_INODES;
/// First inode number of ordinary files.
pub(super) const FIRST_INODE: u64 = 12;
/// Data blocks that the inode itself points to.
pub(super) const DIRECT: u64 = 12;
/// Block numbers in an indirect block.
pub(super) const PER_INDIRECT: u64 = 1_024;

/// What one file got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// Data, ordered by page.
    pub(super) extents: Vec<Extent>,
    /// Its indirect blocks in order (of those that point to data).
    pub(super) indirect: Vec<Sectors>,
}

/// A block group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Blocks used, from its start on without holes.
    blocks: u64,
    /// Inodes used.
    inodes: u64,
}

/// Hands out blocks, in each group in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Allocator {
    base: Sectors,
    groups: Vec<Group>,
    /// Group of what was placed last.
    current: usize,
    /// Blocks of the file system, if directories are spread over it.
    spread: Option<u64>,
}

impl Allocator {
    /// Of a file system that starts at `base`; nothing is given out in groups that begin below `used_to`.
    pub(super) fn new(base: Sectors, used_to: Sectors) -> Self {
        let used = used_to.saturating_sub(base).get().div_ceil(SECTORS_PER_PAGE).div_ceil(GROUP_BLOCKS) as usize;
        let full = Group { blocks: GROUP_BLOCKS, inodes: 0 };
        Self { base, groups: vec![full; used], current: used, spread: None }
    }

    /// The same where directories are spread over a file system of so many sectors, whose inodes up to `last_inode` are used.
    pub(super) fn spread_over(mut self, size: Sectors, last_inode: u64) -> Self {
        let blocks = size.get() / SECTORS_PER_PAGE;
        self.spread = Some(blocks);
        self.reach(blocks.div_ceil(GROUP_BLOCKS).saturating_sub(1) as usize);
        for (group, g) in (0..).zip(&mut self.groups) {
            g.inodes = last_inode.saturating_sub(group * GROUP_INODES).min(GROUP_INODES);
        }
        self
    }

    fn reach(&mut self, group: usize) {
        if group >= self.groups.len() {
            self.groups.resize(group + 1, Group::default());
        }
    }

    /// Where a file system's root directory is; `None` where directories are not spread.
    pub(super) fn first_group(&self) -> Option<usize> {
        self.spread.map(|_| 0)
    }

    /// Where a new directory goes; `None` where directories are not spread.
    pub(super) fn group_of_directory(&self) -> Option<usize> {
        let blocks = self.spread?;
        let free_inodes = |g: &Group| GROUP_INODES.saturating_sub(g.inodes);
        let share = self.groups.iter().map(free_inodes).sum::<u64>() / (self.groups.len() as u64).max(1);
        let mut best: Option<(u64, usize)> = None;
        for (n, g) in self.groups.iter().enumerate() {
            let size = blocks.saturating_sub(n as u64 * GROUP_BLOCKS).min(GROUP_BLOCKS);
            let free = size.saturating_sub(g.blocks.max(RESERVED_BLOCKS));
            if free_inodes(g) > 0 && free_inodes(g) >= share && best.is_none_or(|(most, _)| free > most) {
                best = Some((free, n));
            }
        }
        best.map(|(_, n)| n)
    }

    /// Blocks for a file of so many pages in a group, or behind it.
    pub(super) fn allocate_in(&mut self, group: usize, pages: u64) -> Run {
        let last = std::mem::replace(&mut self.current, group);
        let run = self.allocate(pages);
        self.current = last;
        run
    }

    /// Sector of the inode-table block of the next inode of a group.
    pub(super) fn next_inode_in(&mut self, group: usize) -> Sectors {
        self.reach(group);
        let g = &mut self.groups[group];
        let index = g.inodes.min(GROUP_INODES - 1);
        g.inodes += 1;
        self.inode_block(group as u64 * GROUP_INODES + index + 1)
    }

    /// Sectors of a group's bitmaps of blocks and of inodes, and of the first descriptors, all of which change with what is made
    /// there: of the group given, else of the one that `sector` lies in. `None` where directories are not spread.
    pub(super) fn group_blocks(&self, group: Option<usize>, sector: Sectors) -> Option<[Sectors; 3]> {
        self.spread?;
        let of_sector = sector.saturating_sub(self.base).get() / SECTORS_PER_PAGE / GROUP_BLOCKS;
        let start = group.map_or(of_sector, |g| g as u64) * GROUP_BLOCKS;
        Some([start + 2, start + 3, 1].map(|block| self.sector(block)))
    }

    /// Sector of the inode-table block that holds an inode.
    pub(super) fn inode_block(&self, inode: u64) -> Sectors {
        let index = inode.max(1) - 1;
        let block = index / GROUP_INODES * GROUP_BLOCKS + HEAD_BLOCKS + index % GROUP_INODES / BLOCK_INODES;
        self.sector(block)
    }

    /// The end of the group that holds the sector before `end`.
    pub(super) fn group_end(&self, end: Sectors) -> Sectors {
        let blocks = end.saturating_sub(self.base).get().div_ceil(SECTORS_PER_PAGE);
        self.sector(blocks.next_multiple_of(GROUP_BLOCKS))
    }

    /// Blocks for a file of so many pages.
    pub(super) fn allocate(&mut self, pages: u64) -> Run {
        let mut run = Run::default();
        let mut page = 0;
        while page < pages {
            let chunk = if page < DIRECT { DIRECT - page } else { PER_INDIRECT - (page - DIRECT) % PER_INDIRECT };
            if page >= DIRECT {
                let leaf = (page - DIRECT) / PER_INDIRECT;
                // A double indirect block before the second leaf and each 1024 further, a triple one when those end.
                if leaf >= 1 && (leaf - 1).is_multiple_of(PER_INDIRECT) {
                    self.block();
                    if leaf == 1 + PER_INDIRECT {
                        self.block();
                    }
                }
                run.indirect.push(self.block());
            }
            self.data(&mut run.extents, page, chunk.min(pages - page));
            page += chunk;
        }
        run
    }

    /// Blocks for `pages` pages from `page` on, without indirect blocks.
    pub(super) fn data(&mut self, extents: &mut Vec<Extent>, page: u64, pages: u64) {
        let (mut page, mut left) = (page, pages);
        while left > 0 {
            let (block, n) = self.take(left);
            let sector = self.sector(block);
            match extents.last_mut() {
                Some(e)
                    if u64::from(e.page) + u64::from(e.pages) == page
                        && e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE == sector.0 =>
                {
                    e.pages += n as u32;
                }
                _ => extents.push(Extent { page: page as u32, pages: n as u32, sector }),
            }
            page += n;
            left -= n;
        }
    }

    fn block(&mut self) -> Sectors {
        let (block, _) = self.take(1);
        self.sector(block)
    }

    /// At most `most` blocks in a row: the first of them, and how many.
    fn take(&mut self, most: u64) -> (u64, u64) {
        loop {
            self.reach(self.current);
            let g = &mut self.groups[self.current];
            g.blocks = g.blocks.max(RESERVED_BLOCKS);
            if g.blocks < GROUP_BLOCKS {
                let first = self.current as u64 * GROUP_BLOCKS + g.blocks;
                let n = most.min(GROUP_BLOCKS - g.blocks);
                g.blocks += n;
                return (first, n);
            }
            self.current += 1;
        }
    }

    fn sector(&self, block: u64) -> Sectors {
        Sectors(self.base.0 + block * SECTORS_PER_PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_follow_each_other() {
        let mut a = Allocator::new(Sectors(63), Sectors(0));
        let first = a.allocate(12);
        assert_eq!(first.extents, [Extent { page: 0, pages: 12, sector: Sectors(63 + 260 * 8) }]);
        assert!(first.indirect.is_empty());
        let second = a.allocate(1);
        assert_eq!(second.extents[0].sector, Sectors(63 + 272 * 8));
    }

    #[test]
    fn indirect_blocks_lie_between_the_data() {
        let mut a = Allocator::new(Sectors(0), Sectors(0));
        let run = a.allocate(12 + 1024 + 1);
        let block = |i: usize| (run.extents[i].page, run.extents[i].pages, run.extents[i].sector.0 / 8);
        assert_eq!(run.extents.len(), 3);
        assert_eq!([block(0), block(1), block(2)], [(0, 12, 260), (12, 1024, 273), (1036, 1, 1299)]);
        assert_eq!(run.indirect, [Sectors(272 * 8), Sectors(1298 * 8)], "1297 is the double indirect block");
    }

    #[test]
    fn group_heads_are_skipped() {
        let mut a = Allocator::new(Sectors(0), Sectors(8));
        assert_eq!(a.allocate(1).extents[0].sector, Sectors((32_768 + 260) * 8), "behind what is used");
        let mut extents = Vec::new();
        a.data(&mut extents, 0, 32_768);
        assert_eq!(extents.len(), 2);
        assert_eq!(extents[1].sector, Sectors((2 * 32_768 + 260) * 8));
        assert_eq!(a.inode_block(12), Sectors(4 * 8));
        assert_eq!(a.inode_block(8_193 + 32), Sectors((32_768 + 5) * 8));
        assert_eq!(a.group_end(Sectors(8)), Sectors(32_768 * 8));
    }

    #[test]
    fn directories_are_spread_over_the_emptiest_groups() {
        // Groups 0 and 1 are in use, 2 and 3 are free, 4 is cut short by the file system's end.
        let size = Sectors((4 * 32_768 + 1000) * 8);
        let mut a = Allocator::new(Sectors(0), Sectors((32_768 + 5) * 8)).spread_over(size, 100);
        let mut places = Vec::new();
        for _ in 0..3 {
            let group = a.group_of_directory().unwrap();
            places.push((group, a.allocate_in(group, 1).extents[0].sector.0 / 8, a.next_inode_in(group).0 / 8));
        }
        let head = |g: u64| g * 32_768;
        let expected =
            [(2, head(2) + 260, head(2) + 4), (3, head(3) + 260, head(3) + 4), (2, head(2) + 261, head(2) + 4)];
        assert_eq!(places, expected);
        // What is made in a directory follows it, and everything else goes on where it was.
        assert_eq!(a.allocate_in(3, 2).extents[0].sector.0 / 8, head(3) + 261);
        assert_eq!(a.allocate(1).extents[0].sector.0 / 8, head(2) + 262);
        assert_eq!(Allocator::new(Sectors(0), Sectors(0)).group_of_directory(), None);
    }
}
