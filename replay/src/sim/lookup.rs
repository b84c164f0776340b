//! Names: open, stat, readdir, unlink, and the directory and inode blocks that they need.

use super::Sim;
use super::frame::{Bread, Frame, Lookup};
use super::sched::Flow;
use super::task::At;
use crate::mm::page::flag;

impl Sim<'_> {
    fn call_lookup(&mut self, t: u32, file: u32) -> Flow {
        self.call_lookup_from(t, file, Lookup::Look)
    }

    fn call_lookup_from(&mut self, t: u32, file: u32, at: Lookup) -> Flow {
        let task = &mut self.tasks[t as usize];
        task.op.at = At::Second;
        task.push(Frame::Lookup { file, at });
        Flow::Continue
    }

    /// Find a name: in the dentry cache, else in its directory's block and its inode's.
    pub(super) fn step_lookup(&mut self, t: u32, file: u32, at: Lookup) -> Flow {
        let f = &self.program.files[file as usize];
        let next = match at {
            Lookup::Look | Lookup::New if self.mm.names.has_dentry(file) => None,
            // `ext2_new_inode` makes the inode in memory; its block is read when the inode is written.
            Lookup::New => Some((Lookup::Inode, f.name_page)),
            Lookup::Look => Some((Lookup::Directory, f.name_page)),
            Lookup::Directory if self.mm.names.has_inode(file) => None,
            Lookup::Directory => Some((Lookup::Inode, f.inode_page)),
            Lookup::Inode => None,
        };
        let task = &mut self.tasks[t as usize];
        match next {
            None => {
                task.pop(0);
                self.mm.names.touch(file);
                self.mm.limit_inodes();
                self.mm.settle_slab();
            }
            Some((at, block)) => {
                task.set_top(Frame::Lookup { file, at });
                if let Some(page) = block {
                    task.push(Frame::Bread { page, at: Bread::Look });
                }
            }
        }
        Flow::Continue
    }

    pub(super) fn step_stat(&mut self, t: u32, file: u32, negative: bool) -> Option<Flow> {
        match self.tasks[t as usize].op.at {
            At::Begin if negative => {
                // Only the directory is searched.
                let task = &mut self.tasks[t as usize];
                task.op.at = At::Second;
                if let Some(page) = self.program.files[file as usize].name_page {
                    task.push(Frame::Bread { page, at: Bread::Look });
                }
                Some(Flow::Continue)
            }
            At::Begin => Some(self.call_lookup(t, file)),
            _ => None,
        }
    }

    pub(super) fn step_open(&mut self, t: u32, ofd: u32, file: u32, create: bool, truncate: bool) -> Option<Flow> {
        let at = self.tasks[t as usize].op.at;
        if at == At::Begin {
            // Today's kernels (ext4) need the inode's block at once.
            let from = if create && !self.balanced() { Lookup::New } else { Lookup::Look };
            return Some(self.call_lookup_from(t, file, from));
        }
        if create && let Some(page) = self.missing_bitmap(file) {
            self.tasks[t as usize].push(Frame::Bread { page, at: Bread::Look });
            return Some(Flow::Continue);
        }
        self.new_ofd(ofd, file);
        self.mm.names.hold(file);
        if create {
            self.touch_directory(file);
        }
        if truncate && self.files[file as usize].size > 0 {
            self.truncate(file, 0);
        }
        None
    }

    /// A bitmap of the file's block group that has to be read before anything can be made there.
    fn missing_bitmap(&self, file: u32) -> Option<u32> {
        self.program.files[file as usize]
            .group?
            .into_iter()
            .find(|p| !self.mm.page(*p).has(flag::PRESENT | flag::UPTODATE))
    }

    /// A name was added or removed: its directory block and inode are dirty, and what says which inodes are free.
    fn touch_directory(&mut self, file: u32) {
        if let Some([_, inodes, descriptors]) = self.program.files[file as usize].group {
            self.dirty_metadata(inodes);
            self.dirty_metadata(descriptors);
        }
        self.mm.names.set_inode_dirty(file, true);
        self.note_metadata(file, false, true);
        let f = &self.program.files[file as usize];
        if let Some(block) = f.name_page {
            self.dirty_metadata(block);
        }
        if let Some(dir) = f.parent {
            self.mm.names.set_inode_dirty(dir, true);
        }
    }

    pub(super) fn step_unlink(&mut self, t: u32, file: u32) -> Option<Flow> {
        if self.tasks[t as usize].op.at == At::Begin {
            return Some(self.call_lookup(t, file));
        }
        self.touch_directory(file);
        self.truncate(file, 0);
        None
    }

    /// getdents: the directory's blocks one by one.
    pub(super) fn step_readdir(&mut self, t: u32) -> Option<Flow> {
        let op = self.tasks[t as usize].op;
        let pages = self.program.files[op.file as usize].pages;
        let index = (op.pos / 4096) as u32;
        if op.pos >= op.end || index >= pages {
            return None;
        }
        let page = op.first + index;
        let task = &mut self.tasks[t as usize];
        task.op.pos = u64::from(index + 1) * 4096;
        if self.mm.page(page).has(flag::PRESENT | flag::UPTODATE) {
            self.mm.counters.page_hits += 1;
            self.mm.mark_accessed(page);
        } else {
            self.mm.counters.page_misses += 1;
            task.push(Frame::Bread { page, at: Bread::Look });
        }
        Some(Flow::Continue)
    }
}
