//! A simulated machine that is asked what it holds after each step.

use std::sync::atomic::AtomicBool;

use crate::config::{Config, DeviceConfig};
use crate::mm::page::flag;
use crate::program::{AreaInfo, DeviceInfo, Extent, FileInfo, FileKind, Op, Program, Start, TaskProgram};
use crate::results::MemorySink;
use crate::sim::{Pacing, Sim};
use crate::variant::Library;
use kreplay_traces::units::{Nanos, Sectors};

/// Time from the beginning of a step to that of the next: whatever a step starts is over by then, but nothing gets old.
const STEP: Nanos = Nanos::from_secs(4);

/// Steps of one task on files that are not in memory at first.
pub(super) struct Script {
    program: Program,
    ops: Vec<(u64, Op)>,
    steps: u64,
}

impl Script {
    /// Files of so many pages, all on disk, each open.
    pub(super) fn new(files: &[u32]) -> Self {
        Self::with_room(&files.iter().map(|n| (*n, *n)).collect::<Vec<_>>())
    }

    /// Files of so many pages on disk, each with room to grow to so many.
    pub(super) fn with_room(files: &[(u32, u32)]) -> Self {
        let device = DeviceInfo { name: "disk".into(), sectors: Sectors(1 << 32), partitions: vec![Sectors(0)] };
        let mut program = Program { devices: vec![device], ..Program::default() };
        for (i, &(existing, pages)) in (0u32..).zip(files) {
            let sector = Sectors(u64::from(program.pages) * 8);
            program.files.push(FileInfo {
                path: format!("file{i}"),
                kind: FileKind::Regular,
                device: 0,
                first_page: program.pages,
                pages,
                initial_size: u64::from(existing) * 4096,
                exists: true,
                elsewhere: false,
                extents: vec![Extent { page: 0, pages, sector }],
                parent: None,
                inode_page: None,
                name_page: None,
                indirect: Vec::new(),
                group: None,
            });
            program.areas.push(AreaInfo { task: 0, pages, first_page: program.pages, file: Some(i), private: false });
            program.pages += pages;
            program.ofds += 1;
        }
        let mut s = Self { program, ops: Vec::new(), steps: 0 };
        for (i, _) in (0u32..).zip(files) {
            s.add(Op::Open { ofd: i, file: i, create: false, truncate: false });
            s.add(Op::Map { area: i });
        }
        s.step();
        s
    }

    /// One more operation of the step in hand.
    pub(super) fn add(&mut self, op: Op) {
        self.ops.push((self.steps, op));
    }

    /// The step in hand is over.
    pub(super) fn step(&mut self) {
        self.steps += 1;
    }

    /// Read pages `first .. first + n` of a file in one call.
    pub(super) fn read(&mut self, file: u32, first: u64, n: u64) {
        self.add(Op::Read { ofd: file, off: first * 4096, len: n * 4096 });
    }

    /// Plays all steps; calls `look` after each but the opening one.
    pub(super) fn play(mut self, config: &Config, mut look: impl FnMut(usize, &Sim<'_>)) -> Result<(), String> {
        let n = self.ops.len();
        self.add(Op::Cpu { time: Nanos(1) });
        self.program.tasks.push(TaskProgram {
            ops: self.ops.iter().map(|o| o.1).collect(),
            think: vec![Nanos::ZERO; n + 1],
            at: self.ops.iter().map(|o| Nanos(o.0 * STEP.0)).collect(),
            recorded: vec![Nanos::MAX; n + 1],
            line: (0..=n as u32).collect(),
            ..TaskProgram::new(1, "reader", Start::At(Nanos::ZERO))
        });
        let mut sim = Sim::new(&self.program, config, 0, Pacing::Recorded).map_err(|e| e.to_string())?;
        let mut sink = MemorySink::default();
        for k in 1..self.steps {
            sim.pause_at(Nanos((k + 1) * STEP.0 - 1));
            sim.run(&mut sink, &AtomicBool::new(false)).map_err(|e| e.to_string())?;
            look(k as usize - 1, &sim);
        }
        Ok(())
    }
}

/// The variant on a device that answers at once, which keeps transfer times out of the picture.
pub(super) fn config(variant: &str) -> Result<Config, String> {
    let mut library = Library::builtin().map_err(|e| e.to_string())?;
    let found = library.select(&[variant.to_owned()], &[], &[]).map_err(|e| e.to_string())?;
    let mut c = found.into_iter().next().ok_or("no such variant")?.config;
    c.device = DeviceConfig::Null { queue_depth: 4 };
    Ok(c)
}

/// Runs of the page ids `first .. first + pages` that are in memory, as (first, last) of the file that begins there.
pub(super) fn cached(sim: &Sim<'_>, first: u32, pages: u32) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for i in 0..pages {
        if sim.mm.page(first + i).has(flag::PRESENT | flag::UPTODATE) {
            match runs.last_mut() {
                Some(r) if r.1 + 1 == i => r.1 = i,
                _ => runs.push((i, i)),
            }
        }
    }
    runs
}

/// Parses "[(0, 3), (8, 9)]".
pub(super) fn parse_runs(text: &str) -> Option<Vec<(u32, u32)>> {
    let inner = text[text.find('[')? + 1..].split(']').next()?;
    let numbers: Option<Vec<u32>> =
        inner.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty()).map(|w| w.parse().ok()).collect();
    let numbers = numbers?;
    Some(numbers.chunks_exact(2).map(|p| (p[0], p[1])).collect())
}
