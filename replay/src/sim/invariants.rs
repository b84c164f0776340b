//! Invariants over random programs on a small machine, under every kernel there is a file for.
//!
//! Frames, swap slots and requests are conserved; every page is on the list that its state says and on no other; time goes
//! on; a dirty page is written, still dirty, or was cut off; what nothing can end is reported and not hung on. Run in release
//! as well: `cargo test --release --workspace --lib -- invariants`.

use crate::config::Config;
use crate::mm::page::flag;
use crate::program::Op;
use crate::program::Program;
use crate::results::CallOp;
use crate::results::MemorySink;
use crate::sim::{Pacing, Sim};
use crate::testing::Builder;
use crate::variant::Library;
use kreplay_traces::units::Nanos;
use proptest::prelude::*;
use rayon::prelude::*;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Debug)]
enum Step {
    Read(usize, u64, u64),
    Write(usize, u64, u64),
    Touch(u32, u32, bool),
    Fsync(usize),
    Truncate(usize, u64),
    Sleep(u64),
    Sync,
}

const FILE_PAGES: u32 = 1500;
const AREA_PAGES: u32 = 1200;

fn step() -> impl Strategy<Value = Step> {
    let bytes = u64::from(FILE_PAGES) * 4096;
    let range = (0..bytes - 1, 1u64..400_000).prop_map(move |(off, len)| (off, len.min(bytes - off)));
    prop_oneof![
        4 => (0usize..3, range.clone()).prop_map(|(f, (o, l))| Step::Read(f, o, l)),
        4 => (0usize..3, range).prop_map(|(f, (o, l))| Step::Write(f, o, l)),
        3 => (0..AREA_PAGES - 1, 1..AREA_PAGES, any::<bool>())
            .prop_map(|(first, n, w)| Step::Touch(first, n.min(AREA_PAGES - first), w)),
        1 => (0usize..3).prop_map(Step::Fsync),
        // The first file is never cut off: what was written to it has to be on the disk.
        1 => (1usize..3, 0..bytes).prop_map(|(f, l)| Step::Truncate(f, l)),
        1 => (1u64..3000).prop_map(Step::Sleep),
        1 => Just(Step::Sync),
    ]
}

/// The tasks' steps; where asked for, the first task forks in their midst, and the child looks at its parent's memory.
fn program(tasks: &[Vec<Step>], forks: bool) -> Program {
    let mut b = Builder::new();
    let child = tasks.len() as u32;
    let mut shared = 0;
    let files = [b.file(FILE_PAGES, FILE_PAGES), b.file(FILE_PAGES, 700), b.file(FILE_PAGES, 0)];
    for (t, steps) in tasks.iter().enumerate() {
        let area = b.anon(t as u32, AREA_PAGES);
        let ofds = files.map(|_| b.ofd());
        let mut ops = vec![Op::Map { area }];
        ops.extend((0..3).map(|i| Op::Open { ofd: ofds[i], file: files[i], create: false, truncate: false }));
        ops.extend(steps.iter().map(|s| match *s {
            Step::Read(f, off, len) => Op::Read { ofd: ofds[f], off, len },
            Step::Write(f, off, len) => Op::Write { ofd: ofds[f], off, len },
            Step::Touch(first, count, write) => Op::Touch { area, first, count, stride: 1, write },
            Step::Fsync(f) => Op::Fsync { file: files[f], data_only: false },
            Step::Truncate(f, len) => Op::Truncate { file: files[f], len },
            Step::Sleep(ms) => Op::Sleep { time: Nanos::from_millis(ms) },
            Step::Sync => Op::Sync,
        }));
        ops.push(Op::Sync);
        if t == 0 {
            shared = area;
            if forks {
                let middle = 4 + steps.len() / 2;
                ops.splice(middle..middle, [Op::Share { area, task: child }, Op::Spawn { task: child }]);
            }
        }
        b.task(ops);
    }
    if !forks {
        return b.build();
    }
    let look = Op::Touch { area: shared, first: 0, count: AREA_PAGES / 2, stride: 2, write: false };
    b.task(vec![Op::Sleep { time: Nanos::from_millis(50) }, look, Op::Sleep { time: Nanos::from_millis(900) }]);
    let mut program = b.build();
    program.tasks[child as usize].start = crate::program::Start::Spawned;
    program
}

/// Kernels that never swap anonymous memory, by an error of theirs: more of it than fits is a livelock, which has to be
/// reported.
const NEVER_SWAP: [&str; 1] = ["linux-2.4.9-ac15"];

/// Every kernel of the library, whoever added it, on a machine that is too small for the programs.
static KERNELS: LazyLock<Vec<(String, Config)>> = LazyLock::new(kernels);

fn kernels() -> Vec<(String, Config)> {
    let mut library = Library::builtin().unwrap();
    let names: Vec<String> = library.list().filter(|s| !s.profile).map(|s| s.name).collect();
    let small = |name: String| {
        let mut c = library.select(std::slice::from_ref(&name), &[], &[]).unwrap().remove(0).config;
        // Not smaller: below about 1536 pages on the inactive list the rule of 2.4.14 to 2.4.16 never starts to unmap.
        (c.machine.ram, c.machine.reserved, c.machine.swap) = (12 * 1024, 2 * 1024, 32 * 1024);
        (name, c)
    };
    names.into_iter().map(small).collect()
}

/// What no moment of a run may show, besides what [`crate::mm::Mm::audit`] looks for.
fn moment(sim: &Sim<'_>) -> Result<(), String> {
    sim.mm.audit()?;
    let mut dirty = 0;
    for (id, p) in sim.mm.pages.iter().enumerate() {
        let buffer_without_frame = p.any(flag::BUF_DIRTY | flag::BUF_LOCKED | flag::BUFFER) && !p.any(flag::PRESENT);
        if buffer_without_frame || (p.any(flag::DIRTY) && !p.any(flag::PRESENT)) {
            return Err(format!("page {id} has data and no frame: flags {:#x}", p.flags));
        }
        dirty += u64::from(p.any(flag::BUF_DIRTY));
    }
    if dirty > sim.mm.cache_pages {
        return Err(format!("{dirty} dirty pages of {} cached", sim.mm.cache_pages));
    }
    Ok(())
}

fn check(name: &str, config: &Config, tasks: &[Vec<Step>], forks: bool) -> Result<(), String> {
    let ensure = |holds: bool, why: &dyn Fn() -> String| if holds { Ok(()) } else { Err(format!("{name}: {}", why())) };
    let program = program(tasks, forks);
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(&program, config, 0, Pacing::Closed).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    let mut at = Nanos::ZERO;
    let summary = loop {
        at += Nanos::from_millis(250);
        sim.pause_at(at);
        let before = sim.now;
        let s = sim.run(&mut sink, &stop).map_err(|e| e.to_string())?;
        ensure(before <= sim.now, &|| format!("time went from {before} to {}", sim.now))?;
        moment(&sim).map_err(|why| format!("{name} at {at}: {why}"))?;
        if s.finished || sink.counters.is_some() {
            break s;
        }
        ensure(at < Nanos::from_secs(3600), &|| "no end in sight, and nothing said so".to_owned())?;
    };
    if !summary.finished {
        // Never in silence: what is stuck, and who waits for what.
        let text = sink.events.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("; ");
        ensure(!text.is_empty(), &|| "it ended, unfinished, without a finding".to_owned())?;
        let waits = (0..program.tasks.len()).any(|t| text.contains(&format!("t{t}")));
        ensure(waits, &|| format!("the finding does not say who waits: {text}"))?;
        // The list of 0.01 may lock its controller up; that is what it is here for.
        let may_lock_up = config.elevator.policy == "linux-0.01";
        let locked_up = may_lock_up && (0..sim.block.devices()).any(|d| sim.block.hung(d as crate::block::DevId));
        return ensure(locked_up || NEVER_SWAP.contains(&name), &|| text.clone());
    }
    // At most the running tasks hold a frame between two steps.
    let in_hand = sim.mm.frames_in_hand();
    ensure(in_hand <= program.tasks.len() as u64, &|| format!("{in_hand} frames are nobody's"))?;
    let c = sink.counters.ok_or("a run has counters")?;
    let served: u64 = sink.io.iter().map(|r| u64::from(r.nr) * 512).sum();
    ensure(served == c.disk_read_bytes + c.disk_write_bytes, &|| format!("{served} bytes served, counted otherwise"))?;
    ensure(sink.io.windows(2).all(|w| w[0].c <= w[1].c), &|| "requests end out of order".to_owned())?;
    ensure(sink.io.iter().all(|r| r.q <= r.i && r.i <= r.d && r.d <= r.c), &|| "a request's times go back".to_owned())?;
    for call in &sink.calls {
        ensure(call.blame.total() == call.dur, &|| format!("blame of {call:?}"))?;
    }
    written(&program, &sink).map_err(|why| format!("{name}: {why}"))?;
    let mut again = MemorySink::default();
    let mut whole = Sim::new(&program, config, 0, Pacing::Closed).map_err(|e| e.to_string())?;
    whole.run(&mut again, &stop).map_err(|e| e.to_string())?;
    ensure(again.calls == sink.calls, &|| "pausing changes something".to_owned())
}

/// Each task ends with a sync: every page of the first file (the one that is never cut off) that a write call touched has to have been
/// written to its place after that call began.
fn written(program: &Program, sink: &MemorySink) -> Result<(), String> {
    let file = &program.files[0];
    let start = file.extents[0].sector.0;
    let mut last = vec![Nanos::ZERO; file.pages as usize];
    for r in sink.io.iter().filter(|r| r.dir == crate::block::Dir::Write && r.dev == 0) {
        for s in (r.sector.0..r.sector.0 + u64::from(r.nr)).step_by(8) {
            if let Some(page) = s.checked_sub(start).and_then(|d| last.get_mut((d / 8) as usize)) {
                *page = (*page).max(r.c);
            }
        }
    }
    for call in sink.calls.iter().filter(|c| c.op == CallOp::Write && c.file == Some(0)) {
        let (Some(offset), Some(len)) = (call.offset, call.len) else { continue };
        for page in offset.0 / 4096..=(offset.0 + len.0.max(1) - 1) / 4096 {
            if last[page as usize] < call.start {
                return Err(format!("page {page} was written to at {} and never to the disk after that", call.start));
            }
        }
    }
    Ok(())
}

fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step(), 1..25), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_time: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn memory_requests_and_time_are_conserved(
        tasks in programs(),
        kernel in any::<prop::sample::Index>(),
        forks in any::<bool>(),
    ) {
        let (name, config) = kernel.get(&KERNELS);
        check(name, config, &tasks, forks).map_err(TestCaseError::fail)?;
    }
}

/// No kernel is left out: each plays the same few programs, the same ones every time.
#[test]
fn every_kernel_conserves_them() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let tasks: Vec<_> = (0..4).map(|_| programs().new_tree(&mut runner).unwrap().current()).collect();
    assert!(KERNELS.len() > 30, "{}", KERNELS.len());
    let failed: Vec<String> = KERNELS
        .par_iter()
        .flat_map(|(name, c)| {
            tasks
                .iter()
                .zip([false, true].into_iter().cycle())
                .filter_map(|(t, forks)| check(name, c, t, forks).err())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(failed, Vec::<String>::new());
}

/// A program that locks 0.01's controller up: a finding, not a failure; with the correction it ends.
#[test]
fn the_lock_up_of_0_01_is_found_and_its_correction_ends() {
    let tasks = [vec![Step::Read(0, 0, 131_073), Step::Touch(0, 250, false), Step::Read(0, 262_144, 1)]];
    let ended = |name: &str| {
        let (name, config) = KERNELS.iter().find(|(n, _)| *n == name).expect("built in");
        assert_eq!(check(name, config, &tasks, false), Ok(()));
        let mut sink = MemorySink::default();
        let program = program(&tasks, false);
        let mut sim = Sim::new(&program, config, 0, Pacing::Closed).expect("a sound configuration");
        sim.run(&mut sink, &AtomicBool::new(false)).expect("runs").finished
    };
    assert!(!ended("linux-0.01"));
    assert!(ended("linux-0.01-fixed"));
}
