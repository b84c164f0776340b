//! fsync() and sync().
//!
//! Source: fs/buffer.c of 2.4.10 to 2.4.17 (`fsync_inode_buffers`, `fsync_dev`, `sync_buffers`).

use super::Sim;
use super::frame::{Bread, Frame};
use super::sched::Flow;
use super::task::At;
use crate::block::{BioKind, Dir};
use crate::mm::buffer::BufList;
use crate::mm::page::flag;
use crate::writeback;

impl Sim<'_> {
    /// fsync: write the file's dirty pages, then its inode's block, then wait for all of them.
    pub(super) fn step_fsync(&mut self, t: u32, file: u32) -> Option<Flow> {
        let f = &self.program.files[file as usize];
        let (first, pages) = (f.first_page, u64::from(f.pages));
        loop {
            let op = self.tasks[t as usize].op;
            match op.at {
                At::Begin => {
                    if op.pos == pages {
                        self.tasks[t as usize].op.at = At::Second;
                        continue;
                    }
                    let id = self.mm.buffer_of(first + op.pos as u32);
                    let p = *self.mm.page(id);
                    if p.any(flag::BUF_DIRTY) && p.any(flag::BUF_LOCKED) {
                        // Dirtied again while under write-out: that write comes first.
                        self.tasks[t as usize].push(Frame::WaitBuffer { page: id });
                        return Some(Flow::Continue);
                    }
                    self.tasks[t as usize].op.pos += 1;
                    if p.any(flag::BUF_DIRTY) {
                        self.mm.begin_buffer_write(id);
                        self.tasks[t as usize].push(Frame::Submit {
                            page: id,
                            dir: Dir::Write,
                            kind: BioKind::Data,
                            waited: false,
                        });
                        return Some(Flow::Continue);
                    }
                }
                At::Second => {
                    self.tasks[t as usize].op.at = At::Third;
                    self.tasks[t as usize].op.pos = 0;
                    if let (true, Some(block)) = (self.mm.names.inode_dirty(file), f.inode_page) {
                        self.mm.names.set_inode_dirty(file, false);
                        self.tasks[t as usize].op.at = At::Mapped;
                        self.tasks[t as usize].push(Frame::Bread { page: block, at: Bread::Look });
                        return Some(Flow::Continue);
                    }
                }
                At::Mapped => {
                    self.tasks[t as usize].op.at = At::Third;
                    let Some(block) = f.inode_page else { continue };
                    self.dirty_metadata(block);
                    if self.mm.page(block).any(flag::BUF_DIRTY) && !self.mm.page(block).any(flag::BUF_LOCKED) {
                        self.mm.begin_buffer_write(block);
                        let task = &mut self.tasks[t as usize];
                        task.push(Frame::WaitBuffer { page: block });
                        task.push(Frame::Submit { page: block, dir: Dir::Write, kind: BioKind::Meta, waited: false });
                        return Some(Flow::Continue);
                    }
                }
                At::Third => {
                    if op.pos == pages {
                        return None;
                    }
                    self.tasks[t as usize].op.pos += 1;
                    let id = self.mm.buffer_of(first + op.pos as u32);
                    if self.mm.page(id).any(flag::BUF_LOCKED) {
                        self.tasks[t as usize].push(Frame::WaitBuffer { page: id });
                        return Some(Flow::Continue);
                    }
                }
                at => unreachable!("an fsync is never at {at:?}"),
            }
        }
    }

    /// sync: write everything without waiting, then inodes, then write what that dirtied and wait for all.
    pub(super) fn step_sync(&mut self, t: u32) -> Option<Flow> {
        match self.tasks[t as usize].op.at {
            At::Begin => {
                if !self.write_batch(t) {
                    let op = &mut self.tasks[t as usize].op;
                    (op.at, op.pos) = (At::Second, 0);
                }
            }
            At::Second => match self.next_dirty_inode(t) {
                Some(block) => {
                    self.tasks[t as usize].op.at = At::Mapped;
                    self.tasks[t as usize].push(Frame::Bread { page: block, at: Bread::Look });
                }
                None => self.tasks[t as usize].op.at = At::Third,
            },
            At::Mapped => {
                self.inode_written(t);
                self.tasks[t as usize].op.at = At::Second;
            }
            At::Third => {
                if !self.write_batch(t) {
                    self.tasks[t as usize].op.at = At::Loop;
                }
            }
            At::Loop => {
                // Dirtied again while under write-out: wait for that, then write.
                let id = self.mm.bufs.first(BufList::Dirty);
                if id != crate::mm::page::NIL && self.mm.page(id).any(flag::BUF_LOCKED) {
                    let task = &mut self.tasks[t as usize];
                    task.op.at = At::Third;
                    task.push(Frame::WaitBuffer { page: id });
                } else {
                    match writeback::first_locked(&mut self.mm) {
                        Some(page) => self.tasks[t as usize].push(Frame::WaitBuffer { page }),
                        None => return None,
                    }
                }
            }
            at => unreachable!("a sync is never at {at:?}"),
        }
        Some(Flow::Continue)
    }
}
