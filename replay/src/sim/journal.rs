//! The file system's journal, as far as it costs I/O and time.
//!
//! Source: fs/jbd2/commit.c, fs/jbd2/transaction.c, fs/ext4/fsync.c of 6.1 to 6.18. A transaction holds the metadata blocks
//! that changed since the last commit. One thread commits, at the end of the interval or when an fsync asks for it: where
//! the log was empty the journal's superblock is written first; then a descriptor and the transaction's blocks go in a row
//! into the journal's area, and when they are on the medium the commit block behind them, around which the device is flushed.
//! While a transaction's blocks are on their way (`BH_Shadow`) nobody may change them: whoever has to waits.
//! Reduced: the blocks of a transaction are counted, not named (an inode's block, a directory's, bitmaps and descriptors of
//! the group); checkpoints are not modelled; xfs differs by its interval and by copying what changes (fs/xfs/xfs_log_cil.c).

use super::Sim;
use super::event::Event;
use super::frame::{Commit, Frame};
use super::sched::Flow;
use super::task::Wait;
use crate::block::{BioKind, Dir};
use crate::config::BalancedConfig;
use kreplay_traces::units::{Nanos, SECTORS_PER_PAGE, Sectors};
use std::collections::BTreeSet;

/// Pages of the journal's area (32 MiB), the first of which is its superblock.
const AREA: u64 = 8192;
/// Sectors of a block group (32768 blocks of 4 KiB).
const GROUP_SECTORS: u64 = 32_768 * SECTORS_PER_PAGE;
/// Inodes that share a block of the inode table, and are made one after the other.
const INODES_A_BLOCK: u32 = 16;

/// Metadata that changed together.
#[derive(Clone, Debug, Default)]
struct Transaction {
    /// Files whose inode is part of it, and directories.
    files: BTreeSet<u32>,
    /// Those of which more changed than times: what fdatasync asks for.
    data: BTreeSet<u32>,
    /// Blocks were allocated or freed, in these groups as far as known; names were made or removed.
    allocates: bool,
    groups: BTreeSet<u64>,
    names: bool,
    /// Files whose extents do not fit into the inode; blocks of extents were freed.
    maps: BTreeSet<u32>,
    revokes: bool,
}

impl Transaction {
    /// Blocks that it writes, with its descriptor.
    fn blocks(&self) -> u64 {
        let inodes: BTreeSet<u32> = self.files.iter().map(|f| f / INODES_A_BLOCK).collect();
        let bitmaps = u64::from(self.allocates) * (1 + self.groups.len().max(1) as u64);
        let maps = self.maps.len() as u64 + u64::from(self.revokes);
        1 + inodes.len() as u64 + bitmaps + 3 * u64::from(self.names) + maps
    }

    /// A change of the file's inode, or an allocation, touches one of its blocks.
    fn holds(&self, file: u32, allocates: bool) -> bool {
        let block = file / INODES_A_BLOCK * INODES_A_BLOCK;
        allocates && self.allocates || self.files.range(block..block + INODES_A_BLOCK).next().is_some()
    }
}

/// State of the journal.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// What changed since the last commit, and the number of that transaction.
    running: Transaction,
    number: u32,
    /// When the running transaction is to be committed, once there is one.
    due: Option<Nanos>,
    /// What is being committed.
    committing: Option<Transaction>,
    /// Its blocks are on their way to the log.
    shadow: bool,
    /// Transactions up to this one are asked for.
    wanted: u32,
    /// The log is empty; its superblock is on its way.
    empty: bool,
    superblock: bool,
    /// Nobody waits for blocks on their way.
    copies: bool,
    /// Next page of the area.
    head: u64,
    /// Who waits for a commit, and for blocks that are on their way.
    waiting: Vec<u32>,
    blocked: Vec<u32>,
}

impl Journal {
    pub(super) fn new(config: &BalancedConfig) -> Self {
        Self {
            running: Transaction::default(),
            number: 1,
            due: None,
            committing: None,
            shadow: false,
            wanted: 0,
            empty: config.journal_empty,
            superblock: false,
            copies: config.journal_copies,
            head: 1,
            waiting: Vec::new(),
            blocked: Vec::new(),
        }
    }

    /// The journal's superblock is being written, which keeps it locked.
    pub(super) fn superblock_is_writing(&self) -> bool {
        self.superblock
    }

    /// The file's inode is on its way to the log, where it may not be changed.
    pub(super) fn on_its_way(&self, file: u32) -> bool {
        self.shadow && self.committing.as_ref().is_some_and(|c| c.holds(file, false))
    }

    /// A file's extents take a block of their own.
    pub(super) fn map_grew(&mut self, file: u32) {
        self.running.maps.insert(file);
    }

    /// ... and fit into the inode again.
    pub(super) fn map_shrank(&mut self, file: u32) {
        self.running.maps.remove(&file);
        self.running.revokes = true;
    }

    /// A directory's or table's blocks are part of a transaction that is not on the medium yet.
    pub(super) fn holds_blocks_of(&self, file: u32) -> bool {
        let of = |x: &Transaction| x.names || x.files.contains(&file);
        of(&self.running) || self.committing.as_ref().is_some_and(of)
    }
}

impl Sim<'_> {
    /// A journal that costs I/O.
    pub(super) fn journals(&self) -> bool {
        self.balanced() && self.config.writeback.balanced.commit_ms > 0
    }

    /// A file's metadata changed: it is part of the running transaction.
    pub(super) fn note_metadata(&mut self, file: u32, allocates: bool, names: bool) {
        if !self.journals() {
            return;
        }
        let j = &mut self.journal;
        j.running.files.insert(file);
        if allocates || names {
            j.running.data.insert(file);
        }
        j.running.allocates |= allocates;
        j.running.names |= names;
        if self.journal.due.is_none() {
            let at = self.local_now() + Nanos::from_millis(self.config.writeback.balanced.commit_ms);
            self.journal.due = Some(at);
            self.events.push(at, Event::Daemon(self.bdflush + 1));
        }
    }

    /// Blocks of pages of a file were allocated: the groups' bitmaps change.
    pub(super) fn note_groups(&mut self, first: u32, pages: u32) {
        if self.journals() {
            let groups = [first, first + pages - 1].map(|id| self.place_of(id).2.0 / GROUP_SECTORS);
            self.journal.running.groups.extend(groups);
        }
    }

    /// A transaction's blocks are on their way to the log.
    pub(super) fn journal_is_writing(&self) -> bool {
        self.journal.shadow
    }

    /// May a task change a file's inode, or allocate for it, now? If not it is noted as waiting.
    pub(super) fn journal_holds(&mut self, t: u32, file: u32, allocates: bool) -> bool {
        let j = &mut self.journal;
        let held = j.shadow && j.committing.as_ref().is_some_and(|c| c.holds(file, allocates));
        if held {
            j.blocked.push(t);
        }
        held
    }

    /// Push the wait for the commit that makes a file's inode (any file's) stable, or all of it but its times; false if it is
    /// part of none.
    pub(super) fn begin_commit(&mut self, t: u32, file: Option<u32>, data_only: bool) -> bool {
        let part = |x: &Transaction| {
            let files = if data_only { &x.data } else { &x.files };
            file.map_or(!files.is_empty(), |f| files.contains(&f))
        };
        let j = &self.journal;
        let number = match &j.committing {
            _ if part(&j.running) => j.number,
            Some(c) if part(c) => j.number - 1,
            _ => return false,
        };
        if self.journals() {
            self.tasks[t as usize].push(Frame::Commit { at: Commit::Await { number } });
            return true;
        }
        false
    }

    /// Transactions up to this one are on the medium.
    fn committed(&self) -> u32 {
        self.journal.number - 1 - u32::from(self.journal.committing.is_some())
    }

    /// The journal's thread.
    pub(super) fn step_journal(&mut self, t: u32) -> Flow {
        let now = self.local_now();
        let j = &self.journal;
        if !j.running.files.is_empty() && (j.wanted >= j.number || j.due.is_some_and(|due| due <= now)) {
            self.tasks[t as usize].push(Frame::Commit { at: Commit::Begin });
            return Flow::Continue;
        }
        self.block_on(t, Wait::Daemon)
    }

    /// A commit, or the wait for one.
    pub(super) fn step_commit(&mut self, t: u32, at: Commit) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Commit { at });
        match at {
            Commit::Await { number } => {
                if self.committed() >= number {
                    self.tasks[t as usize].pop(0);
                    return Flow::Continue;
                }
                self.journal.wanted = self.journal.wanted.max(number);
                self.journal.waiting.push(t);
                self.wake_daemon(self.bdflush + 1);
                return self.block_on(t, Wait::Journal);
            }
            Commit::Begin if self.journal.empty => {
                self.journal.superblock = true;
                if let Some(flow) = self.write_area(t, 0) {
                    return flow;
                }
                self.journal.empty = false;
                set(self, Commit::Begin);
            }
            Commit::Begin => {
                // The superblock, if it was written, is on the medium before the transaction is closed.
                if let Some(flow) = self.wait_raw(t) {
                    return flow;
                }
                self.journal.superblock = false;
                self.convert_finished();
                let j = &mut self.journal;
                let transaction = std::mem::take(&mut j.running);
                let blocks = transaction.blocks();
                j.committing = Some(transaction);
                (j.number, j.due, j.shadow) = (j.number + 1, None, !j.copies);
                set(self, Commit::Write { left: blocks as u32, last: false });
            }
            Commit::Write { left: 0, last } => {
                if let Some(flow) = self.wait_raw(t) {
                    return flow;
                }
                let j = &mut self.journal;
                if !last {
                    j.shadow = false;
                    let blocked = std::mem::take(&mut j.blocked);
                    self.wake_all(blocked);
                    self.convert_finished();
                }
                set(self, Commit::Flushed { last });
                if let Some(flow) = self.wait_flush(t, 0) {
                    return flow;
                }
            }
            Commit::Flushed { last: false } => set(self, Commit::Write { left: 1, last: true }),
            Commit::Flushed { last: true } => {
                let j = &mut self.journal;
                j.committing = None;
                let waiting = std::mem::take(&mut j.waiting);
                self.tasks[t as usize].pop(0);
                self.wake_all(waiting);
            }
            Commit::Write { left, last } => {
                // A bio a block; the plug list puts them together.
                let head = self.journal.head;
                if let Some(flow) = self.write_area(t, head) {
                    return flow;
                }
                self.journal.head = if head + 1 == AREA { 1 } else { head + 1 };
                set(self, Commit::Write { left: left - 1, last });
            }
        }
        Flow::Continue
    }

    fn wake_all(&mut self, tasks: Vec<u32>) {
        for t in tasks {
            if self.tasks[t as usize].wait == Wait::Journal {
                self.wake(t);
            }
        }
    }

    /// Wait until the device has on its medium what it took; `None` if it has.
    pub(super) fn wait_flush(&mut self, t: u32, dev: u32) -> Option<Flow> {
        let at = self.block.flush(dev, self.now);
        (at > self.local_now()).then(|| self.sleep_until(t, at))
    }

    /// Queue a block of the journal's area.
    fn write_area(&mut self, t: u32, page: u64) -> Option<Flow> {
        // mkfs puts the journal into the middle of the device.
        let middle = self.program.devices[0].sectors.get() / 2 / SECTORS_PER_PAGE * SECTORS_PER_PAGE;
        let sector = Sectors(middle + page * SECTORS_PER_PAGE);
        self.submit_raw(t, 0, sector, 1, Dir::Write, BioKind::Meta)
    }
}
