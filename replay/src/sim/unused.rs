//! Reclaim that writes inodes so that they can be freed later.
//!
//! Source: fs/inode.c of 2.4.5 to 2.4.9 (`try_to_sync_unused_inodes`, `try_to_sync_unused_list`).

use super::Sim;
use super::frame::{Balance, Bread, Frame, WriteUnused};
use super::sched::Flow;
use crate::block::{BioKind, Dir};
use crate::mm::page::flag;
use crate::writeback;

impl Sim<'_> {
    /// Each goes into its block, which is read for it. With fewer free frames than `low` only one is written, and waited for.
    pub(super) fn step_write_unused(&mut self, t: u32, at: WriteUnused) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::WriteUnused { at });
        match at {
            WriteUnused::Next => {
                let Some(file) = self.mm.names.first_dirty_unused() else {
                    self.tasks[t as usize].pop(0);
                    return Flow::Continue;
                };
                let (_, low, _) = self.mm.free_marks();
                let only = self.mm.zones.free() < low;
                self.mm.names.set_inode_dirty(file, false);
                match self.program.files[file as usize].inode_page {
                    Some(block) => {
                        set(self, WriteUnused::Read { block, only });
                        self.tasks[t as usize].push(Frame::Bread { page: block, at: Bread::Look });
                    }
                    None if only => set(self, WriteUnused::Over),
                    None => {}
                }
            }
            WriteUnused::Read { block, only } => {
                set(self, if only { WriteUnused::Over } else { WriteUnused::Next });
                let newly = self.dirty_metadata(block);
                let p = *self.mm.page(block);
                if only && p.any(flag::BUF_DIRTY) && !p.any(flag::BUF_LOCKED) {
                    self.mm.begin_buffer_write(block);
                    let task = &mut self.tasks[t as usize];
                    task.push(Frame::WaitBuffer { page: block });
                    task.push(Frame::Submit { page: block, dir: Dir::Write, kind: BioKind::Meta, waited: false });
                }
                // Whoever makes a buffer dirty looks at the level (`mark_buffer_dirty`).
                if newly && !self.balanced() && writeback::over_soft(&self.mm, &self.limits) {
                    self.tasks[t as usize].push(Frame::Balance { at: Balance::Look });
                }
            }
            WriteUnused::Over => self.tasks[t as usize].pop(0),
        }
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::{CompileOptions, StoredTrace, compile};
    use crate::program::Program;
    use crate::results::MemorySink;
    use crate::sim::{Pacing, Sim};
    use crate::variant::Library;
    use kreplay_traces::store::{TraceDir, WriterOptions};
    use kreplay_traces::synth::{LOADS, Params, write_trace};
    use std::sync::atomic::AtomicBool;

    fn untar() -> Program {
        let load = LOADS.iter().find(|l| l.name == "untar").unwrap();
        let mut params = Params::defaults(load);
        params.set("directories", 10).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("trace");
        write_trace(load, &params, None, &path, WriterOptions::default()).unwrap();
        let trace = TraceDir::open(&path).unwrap();
        compile(&mut StoredTrace::new(&trace).unwrap(), &CompileOptions::default()).unwrap()
    }

    #[test]
    fn writing_unused_inodes_reads_their_blocks_while_files_are_still_being_made() {
        let program = untar();
        let mut variant = Library::builtin().unwrap().select(&["linux-2.4.9".to_owned()], &[], &[]).unwrap().remove(0);
        variant.config.machine.ram = 16 * 1024;
        let seen = [true, false].map(|writes| {
            variant.config.reclaim.aging.writes_unused_inodes = writes;
            let mut sink = MemorySink::default();
            let mut sim = Sim::new(&program, &variant.config, 0, Pacing::Closed).unwrap();
            assert!(sim.run(&mut sink, &AtomicBool::new(false)).unwrap().finished);
            let files = program.marks.iter().position(|m| m == "untar files").unwrap() as u32;
            let made = sink.marks.iter().find(|m| m.mark == files).unwrap().time;
            // All inodes are clean at the end: none was lost on the way.
            let dirty = (0..program.files.len() as u32).filter(|f| sim.mm.names.inode_dirty(*f)).count();
            (made, dirty, sink.counters.unwrap().disk_write_bytes)
        });
        assert!(seen[0].0 > seen[1].0, "{seen:?}");
        assert_eq!((seen[0].1, seen[1].1), (0, 0));
        assert!(seen[0].2 >= seen[1].2, "{seen:?}");
    }
}
