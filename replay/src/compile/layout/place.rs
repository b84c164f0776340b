//! Giving every file its extents and its metadata blocks.

use kreplay_traces::units::{PAGE_BYTES, SECTORS_PER_PAGE, Sectors};
use rustc_hash::FxHashMap;

use super::ext2::{self, Allocator};
use super::meta::MetaBlocks;
use super::recorded::{self, RecordedFile};
use super::{CompileError, Coverage, Devices, FileState, Placed, SideTables, paths};
use crate::program::{DeviceInfo, Extent};

/// Place all files. Metadata pages are left as pages of their device's metadata file (not yet as page ids). Returns
/// each device's metadata extents.
pub(super) fn place(
    side: &SideTables,
    devices: &mut Devices,
    table: &FxHashMap<&str, RecordedFile>,
    states: &[FileState],
    files: &mut [Placed],
    coverage: &mut Coverage,
) -> Result<Vec<Vec<Extent>>, CompileError> {
    let mut allocators = Vec::new();
    let mut inodes = Vec::new();
    for (info, number) in devices.infos.iter().zip(&devices.numbers) {
        let last_inode = recorded::last_inode(side, *number).max(ext2::FIRST_INODE - 1);
        allocators.push(file_systems(side, info, *number, last_inode));
        inodes.push(last_inode);
    }
    let mut meta = vec![MetaBlocks::default(); devices.infos.len()];
    // Groups of directories that were not recorded.
    let mut homes: Vec<Option<usize>> = vec![None; files.len()];
    // What was there came to its place before what the trace makes.
    let (old, new): (Vec<usize>, Vec<usize>) = (0..files.len()).partition(|i| files[*i].info.exists);
    for i in old.into_iter().chain(new) {
        let (file, state) = (&mut files[i], &states[i]);
        let d = file.info.device as usize;
        let second = second_file_system(side, &state.path).filter(|at| *at < allocators[d].len());
        let (allocator, root) = match second {
            Some(at) => (&mut allocators[d][at], state.path == side.machine.roots[at]),
            None => (&mut allocators[d][0], false),
        };
        let row = if state.first_generation { table.get(state.path.as_str()) } else { None };
        let pages = file.wanted.div_ceil(PAGE_BYTES);
        file.info.pages = u32::try_from(pages)
            .map_err(|_| CompileError::TooLarge { what: format!("pages of one file, {}", state.path) })?;
        let known = row.map(|r| r.extents(pages)).unwrap_or_default();
        let placed: u64 = known.iter().map(|e| u64::from(e.pages)).sum();
        coverage.bytes_placed += placed * PAGE_BYTES;
        coverage.bytes_allocated += (pages - placed) * PAGE_BYTES;
        let home = match row.and_then(|r| r.inode) {
            Some(_) => None,
            None if root => allocator.first_group(),
            None if state.directory => allocator.group_of_directory(),
            None => state.parent.and_then(|p| homes.get(p as usize).copied().flatten()),
        };
        homes[i] = home;
        if known.is_empty() {
            let run = match home {
                Some(group) => allocator.allocate_in(group, pages),
                None => allocator.allocate(pages),
            };
            file.info.extents = run.extents;
            file.info.indirect = meta[d].add_all(&run.indirect);
        } else {
            file.info.indirect = meta[d].add_all(&recorded::indirect_gaps(&known));
            file.info.extents = recorded::fill_gaps(known, pages, allocator);
        }
        let inode_block = match (row.and_then(|r| r.inode), home) {
            (Some(inode), _) => allocator.inode_block(inode),
            (None, Some(group)) => allocator.next_inode_in(group),
            (None, None) => {
                inodes[d] += 1;
                allocator.inode_block(inodes[d])
            }
        };
        file.info.inode_page = Some(meta[d].add(inode_block));
        if row.is_none_or(|r| r.inode.is_none()) {
            let first = file.info.extents.first().map_or(inode_block, |e| e.sector);
            let blocks = allocator.group_blocks(home, first);
            file.info.group = blocks.map(|blocks| blocks.map(|sector| meta[d].add(sector)));
        }
    }
    let mut all = Vec::with_capacity(meta.len());
    for (d, blocks) in meta.into_iter().enumerate() {
        // Blocks were numbered in order of use; the metadata file's pages follow the disk.
        let (extents, position) = blocks.sort();
        let mut end = last_sector(&extents);
        for f in files.iter_mut().filter(|f| f.info.device as usize == d) {
            end = end.max(last_sector(&f.info.extents));
            let group = f.info.group.iter_mut().flatten();
            for block in f.info.indirect.iter_mut().chain(&mut f.info.inode_page).chain(group) {
                *block = position[*block as usize];
            }
        }
        let info = &mut devices.infos[d];
        if info.sectors < end {
            info.sectors = allocators[d][0].group_end(end);
        }
        all.push(extents);
    }
    Ok(all)
}

/// The file systems of a device: one a partition of an ext2 disk, else one that has it all.
fn file_systems(side: &SideTables, info: &DeviceInfo, number: Option<i64>, last_inode: u64) -> Vec<Allocator> {
    let starts = &info.partitions;
    let base = starts.first().copied().unwrap_or(Sectors::ZERO);
    let used = |from, to| recorded::end_of_device(side, number, from, to);
    if !side.machine.devices.iter().any(|d| Some(d.dev) == number && d.ext2) || info.sectors <= base {
        return vec![Allocator::new(base, used(Sectors::ZERO, Sectors(u64::MAX)))];
    }
    let ends = starts.iter().skip(1).chain([&info.sectors]);
    let file_system = |(i, (&from, &to)): (usize, (&Sectors, &Sectors))| {
        let inodes = if i == 0 { last_inode } else { ext2::FIRST_INODE - 1 };
        Allocator::new(from, used(from, to)).spread_over(to.saturating_sub(from), inodes)
    };
    starts.iter().zip(ends).enumerate().map(file_system).collect()
}

/// Which partition beyond the first a path lies on: mount points stand in the order of their partitions.
fn second_file_system(side: &SideTables, path: &str) -> Option<usize> {
    let roots = side.machine.roots.iter().enumerate().skip(1);
    roots.filter(|(_, root)| paths::is_under(path, root)).max_by_key(|(_, root)| root.len()).map(|(i, _)| i)
}

fn last_sector(extents: &[Extent]) -> Sectors {
    extents.iter().map(|e| Sectors(e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE)).max().unwrap_or(Sectors::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{DeviceFact, MachineFacts};

    #[test]
    fn each_partition_of_an_ext2_disk_is_a_file_system() {
        let fact = |ext2| DeviceFact {
            dev: 7,
            name: "hda".into(),
            sectors: Some(Sectors(4_000_000)),
            partitions: vec![Sectors(2048), Sectors(2_002_048)],
            ext2,
        };
        let side = |ext2| SideTables {
            machine: MachineFacts {
                roots: vec!["/mnt".into(), "/mnt2".into()],
                devices: vec![fact(ext2)],
                tracer_floor: None,
            },
            ..SideTables::default()
        };
        let info =
            DeviceInfo { name: "hda".into(), sectors: Sectors(4_000_000), partitions: fact(true).partitions.clone() };
        let mut two = file_systems(&side(true), &info, Some(7), 11);
        assert_eq!(two.len(), 2);
        assert_eq!(second_file_system(&side(true), "/mnt2/w"), Some(1));
        assert_eq!(second_file_system(&side(true), "/mnt/w"), None);
        // Superblock, bitmaps and inode table come first.
        assert_eq!(two[1].allocate_in(0, 1).extents[0].sector, Sectors(2_002_048 + 260 * 8));
        assert_eq!(two[0].allocate_in(0, 1).extents[0].sector, Sectors(2048 + 260 * 8));
        let one = file_systems(&side(false), &info, Some(7), 11);
        assert_eq!((one.len(), one[0].group_of_directory()), (1, None));
    }
}
