//! Where an empty ext2 would put things: block groups, inode tables, indirect blocks.
//!
//! 4 KiB blocks; a group has 32768 blocks, the first 4 of which hold superblock, group descriptors and bitmaps and the
//! next 256 the inode table (8192 inodes of 128 bytes), as mke2fs of that time made it for one inode per 16 KiB. A
//! file's blocks follow each other; the indirect block lies between the 12th and the 13th data block, the double
//! indirect block and its first child behind 1024 more, and so on: the order in which ext2 allocates them when the file
//! is written from its start (structure as documented for Linux 2.4, `fs/ext2/inode.c`).

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

/// Hands out blocks in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Allocator {
    base: Sectors,
    /// Next block, counted from `base`.
    next: u64,
}

impl Allocator {
    /// Of a file system that starts at `base`; nothing is given out below `used_to`.
    pub(super) fn new(base: Sectors, used_to: Sectors) -> Self {
        let used = used_to.saturating_sub(base).get().div_ceil(SECTORS_PER_PAGE);
        Self { base, next: used.next_multiple_of(GROUP_BLOCKS) }
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
            self.skip_reserved();
            let n = left.min(GROUP_BLOCKS - self.next % GROUP_BLOCKS);
            let sector = self.sector(self.next);
            match extents.last_mut() {
                Some(e)
                    if u64::from(e.page) + u64::from(e.pages) == page
                        && e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE == sector.0 =>
                {
                    e.pages += n as u32;
                }
                _ => extents.push(Extent { page: page as u32, pages: n as u32, sector }),
            }
            self.next += n;
            page += n;
            left -= n;
        }
    }

    fn block(&mut self) -> Sectors {
        self.skip_reserved();
        self.next += 1;
        self.sector(self.next - 1)
    }

    fn skip_reserved(&mut self) {
        let within = self.next % GROUP_BLOCKS;
        if within < RESERVED_BLOCKS {
            self.next += RESERVED_BLOCKS - within;
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
}
