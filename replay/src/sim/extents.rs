//! Write-out runs that end as one, and the extents that delayed allocation makes of them.
//!
//! Source: fs/ext4/page-io.c, fs/ext4/inode.c (`mpage_map_one_extent`, `ext4_da_map_blocks`), fs/ext4/extents.c
//! (`ext4_convert_unwritten_extents`, `ext4_ext_try_to_merge`), fs/ext4/mballoc.c (`ext4_mb_normalize_request`), fs/jbd2/revoke.c
//! (`jbd2_journal_revoke`) of 6.1 to 6.18.
//!
//! Dirty pages in a row on disk are one bio, however many requests the queue makes of it: they are under write-out until
//! the last of these is done. New blocks are mapped as extents that count as unwritten, each for itself; when the data is on
//! the medium a worker converts them, one after the other, in the journal, and only then are the pages clean. While it does,
//! or waits, the file's map is locked: nobody allocates for the file. Four extents fit into the inode; more take a block of
//! their own, which is freed as soon as they fit again, and a freed block of metadata is revoked. The first revoke that a
//! file system ever sees marks the journal's superblock, and waits for it while that is being written.
//! Reduced: one block of extents a file, whose blocks of bitmaps count for themselves only; blocks that truncation and removed
//! directories free are not revoked.

use super::Sim;
use crate::mm::page::flag;
use crate::program::{FileInfo, FileKind};
use kreplay_traces::units::{SECTORS_PER_PAGE, Sectors};
use std::collections::{BTreeMap, VecDeque};

/// Extents that an inode has room for.
const IN_INODE: usize = 4;
/// Longest written extent, pages.
const LONGEST: u32 = 32_768;
const MIB_PAGES: u64 = 256;

/// A run of pages on its way to the disk.
#[derive(Clone, Copy, Debug)]
struct Run {
    file: u32,
    pages: u32,
    /// Pages whose bios are not done.
    left: u32,
    /// Its blocks were allocated for it.
    fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    page: u32,
    pages: u32,
    sector: Sectors,
    written: bool,
}

impl Extent {
    fn meets(&self, next: &Extent) -> bool {
        self.written
            && next.written
            && self.page + self.pages == next.page
            && self.sector + Sectors(u64::from(self.pages) * SECTORS_PER_PAGE) == next.sector
            && self.pages + next.pages <= LONGEST
    }
}

/// A file's extents, in order.
#[derive(Clone, Debug, Default)]
struct Map {
    extents: Vec<Extent>,
    /// They do not fit into the inode.
    deep: bool,
    known: bool,
}

impl Map {
    /// Add an unwritten extent; true if the map outgrows the inode by that.
    fn add(&mut self, e: Extent) -> bool {
        let at = self.extents.partition_point(|o| o.page < e.page);
        self.extents.insert(at, e);
        let grows = !self.deep && self.extents.len() > IN_INODE;
        self.deep |= grows;
        grows
    }

    /// What lies within some pages is written now; true if the map fits into the inode again by that.
    fn convert(&mut self, page: u32, pages: u32) -> bool {
        let mut i = self.extents.partition_point(|e| e.page < page);
        while i < self.extents.len() && self.extents[i].page < page + pages {
            self.extents[i].written = true;
            // To the left, and whatever follows; else to the right.
            let from = if i > 0 && self.extents[i - 1].meets(&self.extents[i]) { i - 1 } else { i };
            while from + 1 < self.extents.len() && self.extents[from].meets(&self.extents[from + 1]) {
                self.extents[from].pages += self.extents.remove(from + 1).pages;
            }
            i = from + 1;
        }
        let fits = self.deep && self.extents.len() <= IN_INODE;
        self.deep &= !fits;
        fits
    }

    fn cut(&mut self, page: u32) {
        self.extents.retain(|e| e.page < page);
        if let Some(e) = self.extents.last_mut() {
            e.pages = e.pages.min(page - e.page);
        }
        self.deep &= self.extents.len() > IN_INODE;
    }
}

/// Runs on their way, and the files' maps.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    /// By the number of the first page.
    runs: BTreeMap<u32, Run>,
    maps: Vec<Map>,
    /// Runs whose data is on the medium: first page. The worker has the first in hand.
    finished: VecDeque<u32>,
    /// The run in hand is converted, but its block of extents not revoked yet.
    revoking: bool,
    /// No block was ever revoked.
    untouched: bool,
    /// Extents count as unwritten first, in a journal that lets those wait who change what is on its way.
    converts: bool,
    /// Who waits for a file's map.
    waiting: Vec<u32>,
}

impl Extents {
    pub(super) fn new(config: &crate::config::BalancedConfig, files: usize) -> Self {
        Self {
            runs: BTreeMap::new(),
            maps: vec![Map::default(); files],
            finished: VecDeque::new(),
            revoking: false,
            untouched: config.journal_new,
            converts: config.commit_ms > 0 && !config.journal_copies,
            waiting: Vec::new(),
        }
    }

    /// A file ends before this page now.
    pub(super) fn cut(&mut self, file: u32, page: u32) {
        self.maps[file as usize].cut(page);
    }
}

/// Page before which an allocation for a file of so many pages ends that begins at `page` (`ext4_mb_normalize_request`): small
/// files are given a power of two, larger ones pieces of 2, 4 or 8 MiB.
pub(super) fn allocation_end(page: u64, file_pages: u64) -> u64 {
    let piece = match file_pages {
        n if n <= MIB_PAGES => return n.max(page + 1).max(4).next_power_of_two(),
        n if n <= 4 * MIB_PAGES => 2 * MIB_PAGES,
        n if n <= 8 * MIB_PAGES => 4 * MIB_PAGES,
        _ => 8 * MIB_PAGES,
    };
    (page / piece + 1) * piece
}

impl Sim<'_> {
    /// Pages of a file in a row go to the disk as one; `fresh` if their blocks were allocated for it.
    pub(super) fn begin_run(&mut self, file: u32, first: u32, pages: u32, fresh: bool) {
        let info = &self.program.files[file as usize];
        let fresh = fresh && self.extents.converts && info.kind == FileKind::Regular;
        self.count_out(file, pages);
        self.extents.runs.insert(first, Run { file, pages, left: pages, fresh });
        if !fresh {
            return;
        }
        let mut map = std::mem::take(&mut self.extents.maps[file as usize]);
        if !std::mem::replace(&mut map.known, true) {
            map.extents = recorded(info);
        }
        let first = first - info.first_page;
        for e in self.placement.stretches(file, info, first, pages) {
            if map.add(Extent { page: e.0, pages: e.2, sector: e.1, written: false }) {
                self.journal.map_grew(file);
            }
        }
        self.extents.maps[file as usize] = map;
    }

    /// A bio of such a run is done; false if the pages are none of a run.
    pub(super) fn run_progressed(&mut self, page: u32, pages: u32) -> bool {
        let Some((&first, run)) = self.extents.runs.range_mut(..=page).next_back() else { return false };
        if page >= first + run.pages {
            return false;
        }
        run.left = run.left.saturating_sub(pages);
        if run.left == 0 && run.fresh {
            self.extents.finished.push_back(first);
            self.convert_finished();
        } else if run.left == 0 {
            self.end_run(first);
        }
        true
    }

    fn end_run(&mut self, first: u32) {
        let Some(run) = self.extents.runs.remove(&first) else { return };
        for id in first..first + run.pages {
            self.written_out(id);
        }
        self.count_back(run.file, run.pages);
    }

    /// The worker that converts extents: goes on as long as nothing in the journal makes it wait.
    pub(super) fn convert_finished(&mut self) {
        while let Some(&first) = self.extents.finished.front() {
            let Some(&Run { file, pages, .. }) = self.extents.runs.get(&first) else {
                self.extents.finished.pop_front();
                continue;
            };
            if !self.extents.revoking {
                if self.journal.on_its_way(file) {
                    return;
                }
                let page = first - self.program.files[file as usize].first_page;
                let fits = self.extents.maps[file as usize].convert(page, pages);
                self.note_metadata(file, true, false);
                self.extents.revoking = fits;
            }
            if self.extents.revoking {
                if self.extents.untouched && self.journal.superblock_is_writing() {
                    return;
                }
                (self.extents.untouched, self.extents.revoking) = (false, false);
                self.journal.map_shrank(file);
            }
            self.extents.finished.pop_front();
            self.end_run(first);
        }
        for t in std::mem::take(&mut self.extents.waiting) {
            if self.tasks[t as usize].wait == super::task::Wait::Journal {
                self.wake(t);
            }
        }
    }

    /// The worker waits with this file's map in hand.
    pub(super) fn map_is_locked(&self, file: u32) -> bool {
        let hand = self.extents.finished.front().and_then(|first| self.extents.runs.get(first));
        hand.is_some_and(|run| run.file == file)
    }

    /// Is the file's map locked, so that nothing can be allocated? If so the task is noted as waiting.
    pub(super) fn map_holds(&mut self, t: u32, file: u32) -> bool {
        let held = self.map_is_locked(file);
        if held {
            self.extents.waiting.push(t);
        }
        held
    }

    /// A page has neither a place on disk nor one set aside for it.
    pub(super) fn is_unreserved(&self, id: u32) -> bool {
        !self.mm.page(id).any(flag::ON_DISK | flag::BUF_DIRTY | flag::BUF_LOCKED)
    }
}

/// Extents of what a file held when the trace began.
fn recorded(info: &FileInfo) -> Vec<Extent> {
    let existing = if info.exists { info.initial_size.div_ceil(4096) as u32 } else { 0 };
    let mut out: Vec<Extent> = Vec::new();
    for e in info.extents.iter().filter(|e| e.page < existing) {
        let e = Extent { page: e.page, pages: e.pages.min(existing - e.page), sector: e.sector, written: true };
        match out.last_mut() {
            Some(last) if last.meets(&e) => last.pages += e.pages,
            _ => out.push(e),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(page: u32, pages: u32) -> Extent {
        Extent { page, pages, sector: Sectors(u64::from(page) * SECTORS_PER_PAGE), written: false }
    }

    #[test]
    fn pieces_in_flight_stay_apart_and_written_ones_join() {
        let mut m = Map::default();
        for i in 0..4 {
            assert!(!m.add(extent(i * 10, 10)));
        }
        assert!(m.add(extent(40, 10)), "a fifth does not fit into the inode");
        assert!(!m.convert(0, 10));
        assert!(m.convert(10, 10), "four fit again");
        assert_eq!(m.extents[0], Extent { page: 0, pages: 20, sector: Sectors(0), written: true });
    }

    #[test]
    fn a_piece_that_comes_late_joins_both_its_neighbours() {
        let mut m = Map::default();
        for i in 0..3 {
            m.add(extent(i * 10, 10));
        }
        m.convert(0, 10);
        m.convert(20, 10);
        assert_eq!(m.extents.len(), 3);
        m.convert(10, 10);
        assert_eq!(m.extents.len(), 1);
    }

    #[test]
    fn places_apart_and_the_longest_extent_do_not_join() {
        let mut m = Map::default();
        m.add(extent(0, LONGEST));
        m.add(extent(LONGEST, 10));
        m.add(Extent { sector: Sectors(1 << 30), ..extent(LONGEST + 10, 10) });
        m.convert(0, LONGEST + 20);
        assert_eq!(m.extents.len(), 3);
        m.cut(LONGEST + 5);
        assert_eq!(m.extents[1].pages, 5);
    }

    #[test]
    fn large_files_are_given_blocks_in_aligned_pieces() {
        assert_eq!(allocation_end(100, 200), 256);
        assert_eq!(allocation_end(600, 1000), 1024);
        assert_eq!(allocation_end(600, 2000), 1024);
        assert_eq!(allocation_end(1030, 2048), 2048);
        assert_eq!(allocation_end(2048, 5000), 4096);
    }
}
