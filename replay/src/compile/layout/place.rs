//! Giving every file its extents and its metadata blocks.

use kreplay_traces::units::{PAGE_BYTES, SECTORS_PER_PAGE, Sectors};
use rustc_hash::FxHashMap;

use super::ext2::{self, Allocator};
use super::meta::MetaBlocks;
use super::recorded::{self, RecordedFile};
use super::{CompileError, Coverage, Devices, FileState, Placed, SideTables};
use crate::program::Extent;

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
        let base = info.partitions.first().copied().unwrap_or(Sectors::ZERO);
        allocators.push(Allocator::new(base, recorded::end_of_device(side, *number)));
        inodes.push(recorded::last_inode(side, *number).max(ext2::FIRST_INODE - 1));
    }
    let mut meta = vec![MetaBlocks::default(); devices.infos.len()];
    // What was there came to its place before what the trace makes.
    let (old, new): (Vec<usize>, Vec<usize>) = (0..files.len()).partition(|i| files[*i].info.exists);
    for i in old.into_iter().chain(new) {
        let (file, state) = (&mut files[i], &states[i]);
        let d = file.info.device as usize;
        let row = if state.first_generation { table.get(state.path.as_str()) } else { None };
        let pages = file.wanted.div_ceil(PAGE_BYTES);
        file.info.pages = u32::try_from(pages)
            .map_err(|_| CompileError::TooLarge { what: format!("pages of one file, {}", state.path) })?;
        let known = row.map(|r| r.extents(pages)).unwrap_or_default();
        let placed: u64 = known.iter().map(|e| u64::from(e.pages)).sum();
        coverage.bytes_placed += placed * PAGE_BYTES;
        coverage.bytes_allocated += (pages - placed) * PAGE_BYTES;
        if known.is_empty() {
            let run = allocators[d].allocate(pages);
            file.info.extents = run.extents;
            file.info.indirect = meta[d].add_all(&run.indirect);
        } else {
            file.info.indirect = meta[d].add_all(&recorded::indirect_gaps(&known));
            file.info.extents = recorded::fill_gaps(known, pages, &mut allocators[d]);
        }
        let inode = row.and_then(|r| r.inode).unwrap_or_else(|| {
            inodes[d] += 1;
            inodes[d]
        });
        file.info.inode_page = Some(meta[d].add(allocators[d].inode_block(inode)));
    }
    let mut all = Vec::with_capacity(meta.len());
    for (d, blocks) in meta.into_iter().enumerate() {
        // Blocks were numbered in order of use; the metadata file's pages follow the disk.
        let (extents, position) = blocks.sort();
        let mut end = last_sector(&extents);
        for f in files.iter_mut().filter(|f| f.info.device as usize == d) {
            end = end.max(last_sector(&f.info.extents));
            for block in f.info.indirect.iter_mut().chain(&mut f.info.inode_page) {
                *block = position[*block as usize];
            }
        }
        let info = &mut devices.infos[d];
        if info.sectors < end {
            info.sectors = allocators[d].group_end(end);
        }
        all.push(extents);
    }
    Ok(all)
}

fn last_sector(extents: &[Extent]) -> Sectors {
    extents.iter().map(|e| Sectors(e.sector.0 + u64::from(e.pages) * SECTORS_PER_PAGE)).max().unwrap_or(Sectors::ZERO)
}
