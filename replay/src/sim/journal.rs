//! The file system's journal, as far as it costs I/O.
//!
//! Source: fs/jbd2/commit.c, fs/ext4/fsync.c of 6.1 to 6.18. A transaction holds the metadata blocks that changed since the
//! last commit. A commit writes a descriptor and these blocks in a row into the journal's area, and when they are on the
//! medium its commit block behind them; then the device is flushed. Reduced: the blocks of a transaction are counted, not
//! named (an inode's block, a directory's, bitmaps and descriptors of the group); checkpoints are not modelled.

use super::Sim;
use super::event::Event;
use super::frame::{Commit, Frame};
use super::sched::Flow;
use super::task::Wait;
use crate::block::{BioKind, Dir};
use kreplay_traces::units::{Nanos, SECTORS_PER_PAGE, Sectors};
use std::collections::BTreeSet;

/// Pages of the journal's area (32 MiB).
const AREA: u64 = 8192;

/// State of the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// Files whose inode is part of the running transaction, and directories.
    files: BTreeSet<u32>,
    /// Blocks were allocated or freed; names were made or removed.
    allocates: bool,
    names: bool,
    /// The commit timer is set.
    armed: bool,
    /// Next page of the area.
    head: u64,
    /// Somebody commits; who waits for that to be over.
    busy: bool,
    waiting: Vec<u32>,
}

impl Journal {
    /// Blocks that the running transaction would write, with its descriptor.
    fn blocks(&self) -> u64 {
        // Inode blocks hold 16 inodes, and neighbours are made together.
        let inodes: BTreeSet<u32> = self.files.iter().map(|f| f / 16).collect();
        1 + inodes.len() as u64 + 2 * u64::from(self.allocates) + 3 * u64::from(self.names)
    }
}

impl Sim<'_> {
    fn journals(&self) -> bool {
        self.balanced() && self.config.writeback.balanced.commit_ms > 0
    }

    /// A file's metadata changed: it is part of the running transaction.
    pub(super) fn note_metadata(&mut self, file: u32, allocates: bool, names: bool) {
        if !self.journals() {
            return;
        }
        self.journal.files.insert(file);
        self.journal.allocates |= allocates;
        self.journal.names |= names;
        if !std::mem::replace(&mut self.journal.armed, true) {
            let at = self.local_now() + Nanos::from_millis(self.config.writeback.balanced.commit_ms);
            self.events.push(at, Event::Daemon(self.bdflush + 1));
        }
    }

    /// Push a commit for a task that waits for it; false if `file` (any file) is not part of the transaction.
    pub(super) fn begin_commit(&mut self, t: u32, file: Option<u32>) -> bool {
        let part = file.map_or(!self.journal.files.is_empty(), |f| self.journal.files.contains(&f));
        if part && self.journals() {
            self.tasks[t as usize].push(Frame::Commit { at: Commit::Begin });
            return true;
        }
        false
    }

    /// The commit daemon.
    pub(super) fn step_journal(&mut self, t: u32, begun: bool) -> Flow {
        if begun {
            self.journal.armed = false;
            self.tasks[t as usize].set_top(Frame::Journal { begun: false });
            if self.begin_commit(t, None) {
                return Flow::Continue;
            }
        }
        self.tasks[t as usize].set_top(Frame::Journal { begun: true });
        self.block_on(t, Wait::Daemon)
    }

    /// A commit.
    pub(super) fn step_commit(&mut self, t: u32, at: Commit) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Commit { at });
        match at {
            Commit::Begin if self.journal.busy => {
                // What this task needs may be in the next transaction: it looks again when this one is over.
                self.journal.waiting.push(t);
                return self.block_on(t, Wait::Journal);
            }
            Commit::Begin if self.journal.files.is_empty() => self.tasks[t as usize].pop(0),
            Commit::Begin => {
                let blocks = self.journal.blocks();
                self.journal.files.clear();
                (self.journal.allocates, self.journal.names, self.journal.busy) = (false, false, true);
                set(self, Commit::Write { left: blocks as u32, last: false });
            }
            Commit::Write { left: 0, last } => {
                if let Some(flow) = self.wait_raw(t) {
                    return flow;
                }
                if !last {
                    set(self, Commit::Write { left: 1, last: true });
                    return Flow::Continue;
                }
                self.journal.busy = false;
                self.tasks[t as usize].pop(0);
                for w in std::mem::take(&mut self.journal.waiting) {
                    self.wake(w);
                }
            }
            Commit::Write { left, last } => return self.write_journal(t, left, last),
        }
        Flow::Continue
    }

    /// Queue the next stretch of the journal's area.
    fn write_journal(&mut self, t: u32, left: u32, last: bool) -> Flow {
        let most = u64::from(self.config.queue.max_sectors) / SECTORS_PER_PAGE;
        let n = u64::from(left).min(most.max(1)).min(AREA - self.journal.head);
        // mkfs puts the journal into the middle of the device.
        let middle = self.program.devices[0].sectors.get() / 2 / SECTORS_PER_PAGE * SECTORS_PER_PAGE;
        let sector = Sectors(middle + self.journal.head * SECTORS_PER_PAGE);
        if let Some(flow) = self.submit_raw(t, 0, sector, n, Dir::Write, BioKind::Meta) {
            return flow;
        }
        self.journal.head = (self.journal.head + n) % AREA;
        self.tasks[t as usize].set_top(Frame::Commit { at: Commit::Write { left: left - n as u32, last } });
        Flow::Continue
    }
}
