//! Page references per second of the whole engine: where reads hit, and in a mixed load with reclaim and I/O.
//!
//! `cargo bench -p kreplay-replay --bench engine` prints references per second (items) per case.

use kreplay_replay::config::Config;
use kreplay_replay::program::{DeviceInfo, Extent, FileInfo, FileKind, Op, Program, Start, TaskProgram};
use kreplay_replay::results::{CallRow, ClientRow, Counters, EventRow, EvictionRow, MarkRow, ResultSink, SampleRow};
use kreplay_replay::sim::{Pacing, Sim};
use kreplay_replay::variant::Library;
use kreplay_traces::units::{Nanos, Sectors};
use rand::{RngExt, SeedableRng};
use std::sync::atomic::AtomicBool;

fn main() {
    divan::main();
}

/// Drops everything.
struct Nothing;

impl ResultSink for Nothing {
    fn io(&mut self, _: &kreplay_replay::block::IoRecord) {}
    fn call(&mut self, _: &CallRow) {}
    fn sample(&mut self, _: &SampleRow) {}
    fn mark(&mut self, _: &MarkRow) {}
    fn event(&mut self, _: &EventRow) {}
    fn evicted(&mut self, _: &EvictionRow) {}
    fn client(&mut self, _: &ClientRow) {}
    fn counters(&mut self, _: &Counters) {}
}

fn config(variant: &str) -> Config {
    let mut library = Library::builtin().expect("built-in variants parse");
    library.select(&[variant.to_owned()], &[], &[]).expect("the variant exists")[0].config.clone()
}

fn program(file_pages: &[u32], tasks: Vec<Vec<Op>>) -> Program {
    let mut p = Program { ofds: (tasks.len() * file_pages.len()) as u32, ..Program::default() };
    p.devices.push(DeviceInfo { name: "d".into(), sectors: Sectors(1 << 24), partitions: vec![Sectors(0)] });
    for (i, &pages) in file_pages.iter().enumerate() {
        p.files.push(FileInfo {
            path: format!("f{i}"),
            kind: FileKind::Regular,
            device: 0,
            first_page: p.pages,
            pages,
            initial_size: u64::from(pages) * 4096,
            exists: true,
            elsewhere: false,
            extents: vec![Extent { page: 0, pages, sector: Sectors(u64::from(p.pages) * 8 + 4096) }],
            parent: None,
            inode_page: None,
            name_page: None,
            indirect: Vec::new(),
            group: None,
        });
        p.pages += pages;
    }
    for ops in tasks {
        let n = ops.len();
        p.tasks.push(TaskProgram {
            ops,
            think: vec![Nanos::ZERO; n],
            at: vec![Nanos::ZERO; n],
            recorded: vec![Nanos::MAX; n],
            line: vec![0; n],
            ..TaskProgram::new(p.tasks.len() as i64, "t", Start::At(Nanos::ZERO))
        });
    }
    p
}

/// Repeated reads of `pages` cached pages each.
fn hits(pages: u64) -> (Program, u64) {
    let ops = 4_000_000 / pages;
    let mut list = vec![Op::Open { ofd: 0, file: 0, create: false, truncate: false }];
    let span = 1024;
    list.extend((0..ops).map(|i| Op::Read { ofd: 0, off: (i * pages % span) * 4096, len: pages * 4096 }));
    (program(&[1024], vec![list]), ops * pages)
}

/// 32 tasks, 30 % writes, 95 % of the operations begin in the first sixth of a file three times as large as memory.
fn mixed() -> (Program, u64) {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let pages = 48_000u32;
    let mut refs = 0;
    let tasks = (0..32u32)
        .map(|t| {
            let mut ops = vec![Op::Open { ofd: t, file: 0, create: false, truncate: false }];
            for _ in 0..4000 {
                let n = 1 + rng.random_range(0..16u64);
                let hot = rng.random_range(0..100) < 95;
                let at = u64::from(rng.random_range(0..if hot { 8000 } else { pages - 32 }));
                refs += n;
                let (off, len) = (at * 4096, n * 4096);
                ops.push(match rng.random_range(0..10) < 3 {
                    true => Op::Write { ofd: t, off, len },
                    false => Op::Read { ofd: t, off, len },
                });
            }
            ops
        })
        .collect();
    (program(&[pages], tasks), refs)
}

fn play(program: &Program, config: &Config) -> u64 {
    let mut sim = Sim::new(program, config, 0, Pacing::Closed).expect("a good configuration");
    sim.run(&mut Nothing, &AtomicBool::new(false)).expect("the run ends").events
}

#[divan::bench(args = [1, 16, 256])]
fn read_hits(bencher: divan::Bencher<'_, '_>, pages: u64) {
    let (program, refs) = hits(pages);
    let config = config("linux-2.4.16");
    bencher.counter(divan::counter::ItemsCount::new(refs)).bench(|| play(&program, &config));
}

#[divan::bench(sample_count = 10)]
fn mixed_load(bencher: divan::Bencher<'_, '_>) {
    let (program, refs) = mixed();
    let config = config("linux-2.4.16");
    bencher.counter(divan::counter::ItemsCount::new(refs)).bench(|| play(&program, &config));
}
