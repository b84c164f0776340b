//! The disk image of the recorded 2.2 and 2.4 runs: where its files lie.
//!
//! The image is an ext2 file system of 4 KiB blocks, filled in one go, so files lie one after the other: 12 data
//! blocks, the indirect block, 1024 data blocks, the double indirect block, then an indirect block before each further
//! 1024. Sizes and geometry were worked out from the disk logs of the runs: the first sectors read of `hot`, `r0` and
//! `small` fix the whole chain (see the tests). Block groups have 32768 blocks; their metadata takes 96 blocks, 98 in
//! groups with a backup of the superblock (1 and powers of 3, 5, 7).

use crate::event::FileRow;
use crate::store::DeviceSpec;

use super::script::Script;

/// `hdc`, the data disk.
pub(super) const DATA_DEV: i64 = 22 << 20;
/// `hdd`, the swap disk.
pub(super) const SWAP_DEV: i64 = 22 << 20 | 64;
/// First sectors of the two partitions, where the data disk has any.
pub(super) const PARTITIONS: [u64; 2] = [2048, 5_122_048];
/// Sectors in a file-system block.
const BLOCK_SECTORS: u64 = 8;
const BLOCK_BYTES: u64 = 4096;
/// Blocks in a block group.
pub(super) const GROUP_BLOCKS: u64 = 32_768;
/// Inodes in a block group.
pub(super) const GROUP_INODES: u64 = 3008;
/// Block of the root directory.
const ROOT_BLOCK: u64 = 98;
/// Block of the first file.
const FIRST_BLOCK: u64 = 103;
/// First block of `w`, the file that `base` and `wr16` make: the first free one.
const W_BLOCK: u64 = 304_581;
/// The same on the second partition, from that partition's start.
const W_BLOCK_SECOND: u64 = 243;
/// Pointers in an indirect block.
const POINTERS: u64 = 1024;
const DIRECT: u64 = 12;

/// Files in the order of their place on disk: name, MiB. Inodes count from 12 in the same order.
const FILES: [(&str, u64); 11] = [
    ("big", 640),
    ("f0", 60),
    ("f1", 60),
    ("f2", 60),
    ("f3", 60),
    ("f4", 60),
    ("hot", 64),
    ("r0", 16),
    ("r1", 16),
    ("r2", 16),
    ("r3", 16),
];
const FIRST_INODE: i64 = 12;

/// Inode of `small`; its directories and files follow depth first.
pub(super) const SMALL_INODE: i64 = FIRST_INODE + FILES.len() as i64;

/// A stretch of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    offset_bytes: u64,
    block: u64,
    blocks: u64,
}

fn group_metadata(group: u64) -> u64 {
    let power_of = |base: u64| {
        let mut n = base;
        while n < group {
            n *= base;
        }
        n == group
    };
    if group <= 1 || power_of(3) || power_of(5) || power_of(7) { 98 } else { 96 }
}

/// The block that follows `block` in the order of allocation.
fn after(block: u64) -> u64 {
    let next = block + 1;
    if next.is_multiple_of(GROUP_BLOCKS) { next + group_metadata(next / GROUP_BLOCKS) } else { next }
}

/// Lay out `bytes` from `block` on; the stretches, and the block after the file.
fn lay_out(bytes: u64, mut block: u64) -> (Vec<Stretch>, u64) {
    let mut out: Vec<Stretch> = Vec::new();
    for n in 0..bytes.div_ceil(BLOCK_BYTES) {
        if n == DIRECT || (n > DIRECT && (n - DIRECT).is_multiple_of(POINTERS)) {
            block = after(block);
            if n == DIRECT + POINTERS {
                block = after(block); // the double indirect block comes before its first indirect block
            }
        }
        match out.last_mut() {
            Some(last) if last.block + last.blocks == block => last.blocks += 1,
            _ => out.push(Stretch { offset_bytes: n * BLOCK_BYTES, block, blocks: 1 }),
        }
        block = after(block);
    }
    (out, block)
}

fn first_block(name: &str) -> Option<(u64, u64, i64)> {
    let mut block = FIRST_BLOCK;
    for (i, (file, mib)) in FILES.iter().enumerate() {
        if *file == name {
            return Some((block, mib << 20, FIRST_INODE + i as i64));
        }
        block = lay_out(mib << 20, block).1;
    }
    None
}

/// The image, on a whole disk or on the first of two partitions.
#[derive(Clone, Copy)]
pub(super) struct Image {
    partitioned: bool,
}

impl Image {
    /// Declare the disks and the root directory.
    pub(super) fn mount(script: &mut Script<'_>, partitioned: bool) -> Self {
        let image = Self { partitioned };
        let partitions = if partitioned { PARTITIONS.to_vec() } else { Vec::new() };
        let sectors = if partitioned { Some((3200 << 20) / 512) } else { Some((2500 << 20) / 512) };
        script.made.devices = vec![
            DeviceSpec { dev: DATA_DEV, name: Some("hdc".into()), sectors, scheduler: None, swap: false, partitions },
            DeviceSpec { dev: SWAP_DEV, name: Some("hdd".into()), swap: true, ..DeviceSpec::default() },
        ];
        image.directory(script, "/mnt", 2, &[ROOT_BLOCK]);
        image
    }

    fn sector(self, partition: usize, block: u64) -> i64 {
        let start = if self.partitioned { PARTITIONS[partition] } else { 0 };
        (start + block * BLOCK_SECTORS).cast_signed()
    }

    /// A file of the image, named without its directory.
    pub(super) fn existing(self, script: &mut Script<'_>, name: &str) {
        let Some((block, bytes, inode)) = first_block(name) else { return };
        self.stretches(script, &format!("/mnt/{name}"), Some(bytes), Some(inode), 0, &lay_out(bytes, block).0);
    }

    /// The place of `w`, which the load makes with `bytes` bytes in one go; the path.
    pub(super) fn written(self, script: &mut Script<'_>, bytes: u64) -> &'static str {
        let (path, partition, block) =
            if self.partitioned { ("/mnt2/w", 1, W_BLOCK_SECOND) } else { ("/mnt/w", 0, W_BLOCK) };
        self.stretches(script, path, None, None, partition, &lay_out(bytes, block).0);
        path
    }

    /// Everything that the image holds (of `small` only its last file), so that new files come behind it as they did.
    pub(super) fn everything(self, script: &mut Script<'_>) {
        FILES.iter().for_each(|(name, _)| self.existing(script, name));
        let last = Stretch { offset_bytes: 0, block: W_BLOCK - 1, blocks: 1 };
        self.stretches(script, super::tree::LAST_FILE, Some(BLOCK_BYTES), Some(super::tree::LAST_INODE), 0, &[last]);
    }

    fn stretches(
        self,
        script: &mut Script<'_>,
        path: &str,
        size: Option<u64>,
        inode: Option<i64>,
        partition: usize,
        stretches: &[Stretch],
    ) {
        for s in stretches {
            script.file(&FileRow {
                path,
                size_bytes: size.map(u64::cast_signed),
                dev: Some(DATA_DEV),
                inode,
                extent_offset_bytes: Some(s.offset_bytes.cast_signed()),
                extent_sector_512: Some(self.sector(partition, s.block)),
                extent_len_bytes: Some((s.blocks * BLOCK_BYTES).cast_signed()),
                directory: false,
            });
        }
    }

    /// A directory whose blocks are known.
    pub(super) fn directory(self, script: &mut Script<'_>, path: &str, inode: i64, blocks: &[u64]) {
        for (i, block) in blocks.iter().enumerate() {
            script.file(&FileRow {
                path,
                size_bytes: Some((blocks.len() as u64 * BLOCK_BYTES).cast_signed()),
                dev: Some(DATA_DEV),
                inode: Some(inode),
                extent_offset_bytes: Some((i as u64 * BLOCK_BYTES).cast_signed()),
                extent_sector_512: Some(self.sector(0, *block)),
                extent_len_bytes: Some(BLOCK_BYTES.cast_signed()),
                directory: true,
            });
        }
    }

    /// An empty file.
    pub(super) fn empty(self, script: &mut Script<'_>, path: &str, inode: i64) {
        let row = FileRow { path, size_bytes: Some(0), dev: Some(DATA_DEV), inode: Some(inode), ..FileRow::default() };
        script.file(&row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First sectors that the runs' disk logs show for the first read of each file.
    #[test]
    fn the_chain_of_files_meets_the_recorded_places() {
        let sector = |name| first_block(name).unwrap().0 * BLOCK_SECTORS;
        assert_eq!(sector("big"), 824);
        assert_eq!(sector("hot"), 1_933_312);
        assert_eq!(sector("r0"), 2_064_520);
        // The receivers' first partial write is in the third page, which was therefore the first one read.
        assert_eq!(sector("f0") + 2 * BLOCK_SECTORS, 1_316_736);
        assert_eq!(sector("f1") + 2 * BLOCK_SECTORS, 1_439_744);
        assert_eq!(sector("f4") + 2 * BLOCK_SECTORS, 1_809_536);
        let (r3, bytes, inode) = first_block("r3").unwrap();
        assert_eq!(lay_out(bytes, r3).1, super::super::tree::SMALL_BLOCK);
        assert_eq!(inode, 22);
        // The first inode that a run gives to a new file is 15124.
        assert_eq!(super::super::tree::LAST_INODE, 15_123);
    }

    #[test]
    fn a_file_leaves_out_its_indirect_blocks_and_the_groups_metadata() {
        let (stretches, end) = lay_out(16 << 20, first_block("r0").unwrap().0);
        assert_eq!(stretches[0], Stretch { offset_bytes: 0, block: 258_065, blocks: 12 });
        assert_eq!(stretches[1], Stretch { offset_bytes: 12 * 4096, block: 258_078, blocks: 1024 });
        // Two blocks before the second thousand: double indirect and indirect.
        assert_eq!(stretches[2].block, 258_078 + 1024 + 2);
        assert_eq!(stretches.iter().map(|s| s.blocks).sum::<u64>(), 4096);
        // Group 8 begins at block 262144 with 96 blocks of metadata.
        assert!(stretches.iter().any(|s| s.block == 262_240), "{stretches:?}");
        assert!(end > 262_240);
    }
}
