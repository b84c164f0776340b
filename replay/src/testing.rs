//! What tests of several modules share: a configuration, and programs written by hand.

use crate::config::Config;
use crate::program::{AreaInfo, DeviceInfo, Extent, FileInfo, FileKind, Op, Program, Start, TaskProgram};
use crate::results::MemorySink;
use crate::sim::{Pacing, RunSummary, Sim};
use kreplay_traces::units::{Nanos, Sectors};
use std::sync::atomic::AtomicBool;

/// A 64 MiB machine of linux-2.4.16 over the disk of the emulated machine that docs/MODEL.md describes.
pub(crate) fn config() -> Config {
    toml::from_str(include_str!("testing.toml")).expect("the test configuration parses")
}

/// Builds small programs.
#[derive(Default)]
pub(crate) struct Builder {
    program: Program,
    next_sector: u64,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let mut b = Self { next_sector: 2_000_000, ..Self::default() };
        b.program.devices.push(DeviceInfo {
            name: "hdc".into(),
            sectors: Sectors(5_120_000),
            partitions: vec![Sectors(0)],
        });
        b
    }

    /// A file of so many pages, of which `existing` are on disk.
    pub(crate) fn file(&mut self, pages: u32, existing: u32) -> u32 {
        let sector = Sectors(self.next_sector);
        self.next_sector += u64::from(pages) * 8;
        self.program.files.push(FileInfo {
            path: format!("f{}", self.program.files.len()),
            kind: FileKind::Regular,
            device: 0,
            first_page: self.program.pages,
            pages,
            initial_size: u64::from(existing) * 4096,
            exists: existing > 0,
            elsewhere: false,
            extents: vec![Extent { page: 0, pages, sector }],
            parent: None,
            inode_page: None,
            name_page: None,
            indirect: Vec::new(),
            group: None,
        });
        self.program.pages += pages;
        self.program.files.len() as u32 - 1
    }

    /// An anonymous area of a task.
    pub(crate) fn anon(&mut self, task: u32, pages: u32) -> u32 {
        let area = AreaInfo { task, pages, first_page: self.program.pages, file: None, private: true };
        self.program.areas.push(area);
        self.program.pages += pages;
        self.program.areas.len() as u32 - 1
    }

    pub(crate) fn ofd(&mut self) -> u32 {
        self.program.ofds += 1;
        self.program.ofds - 1
    }

    pub(crate) fn task(&mut self, ops: Vec<Op>) -> u32 {
        let n = ops.len();
        self.program.tasks.push(TaskProgram {
            ops,
            think: vec![Nanos::ZERO; n],
            at: vec![Nanos::ZERO; n],
            recorded: vec![Nanos::MAX; n],
            line: (1..=n as u32).collect(),
            ..TaskProgram::new(
                100 + self.program.tasks.len() as i64,
                format!("t{}", self.program.tasks.len()),
                Start::At(Nanos::ZERO),
            )
        });
        self.program.tasks.len() as u32 - 1
    }

    pub(crate) fn build(self) -> Program {
        self.program
    }

    /// For what the other methods don't set.
    pub(crate) fn program(&mut self) -> &mut Program {
        &mut self.program
    }
}

/// Read a file once in pieces of `chunk` bytes.
pub(crate) fn read_all(ofd: u32, file: u32, bytes: u64, chunk: u64) -> Vec<Op> {
    let mut ops = vec![Op::Open { ofd, file, create: false, truncate: false }];
    ops.extend((0..bytes / chunk).map(|i| Op::Read { ofd, off: i * chunk, len: chunk }));
    ops.push(Op::Close { ofd });
    ops
}

/// Write a file once in pieces of `chunk` bytes.
pub(crate) fn write_all(ofd: u32, file: u32, bytes: u64, chunk: u64) -> Vec<Op> {
    let mut ops = vec![Op::Open { ofd, file, create: false, truncate: false }];
    ops.extend((0..bytes / chunk).map(|i| Op::Write { ofd, off: i * chunk, len: chunk }));
    ops
}

/// Play a program, audit the memory at the end.
pub(crate) fn play(program: &Program, config: &Config) -> (RunSummary, MemorySink) {
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(program, config, 0, Pacing::Closed).expect("the configuration is good");
    let summary = sim.run(&mut sink, &AtomicBool::new(false)).expect("the run ends");
    sim.mm.audit().expect("memory is consistent");
    (summary, sink)
}
