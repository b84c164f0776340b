//! What A. Arcangeli's kernels of 2001 and A. Morton's patches must be seen to do, as reported when they were posted.
//!
//! As in [`super::signatures`]: small machines, and figures compared between kernels.

use std::sync::atomic::AtomicBool;

use kreplay_traces::units::Nanos;

use super::signatures::{MIB, Seen, hog, kernel, see, stream};
use super::{Pacing, Sim};
use crate::program::{Op, Program};
use crate::results::MemorySink;
use crate::testing::{Builder, read_all, write_all};

/// Names looked up, then a process that needs most of memory.
fn names_then_hog(names: u32, mib: u32) -> Program {
    let mut b = Builder::new();
    let files: Vec<u32> = (0..names).map(|_| b.file(1, 1)).collect();
    let area = b.anon(0, mib * 256);
    let mut ops: Vec<Op> = files.iter().map(|&file| Op::Stat { file, negative: false }).collect();
    ops.push(Op::Map { area });
    ops.push(Op::Touch { area, first: 0, count: mib * 256, stride: 1, write: true });
    b.task(ops);
    b.build()
}

/// Files of `mib` MiB each that as many writers overwrite `passes` times, a little at a time, with `pause_ms` between pieces:
/// what a file server does with what its clients send.
fn clients(writers: u32, mib: u64, passes: usize) -> Program {
    let mut b = Builder::new();
    for _ in 0..writers {
        let pages = (mib * 256) as u32;
        let f = b.file(pages, 0);
        let mut ops = Vec::new();
        for _ in 0..passes {
            let o = b.ofd();
            ops.extend(write_all(o, f, mib * MIB / 5000 * 5000, 5000));
        }
        b.task(ops);
    }
    b.build()
}

/// Seconds that a reader of `mib` MiB takes beside a task that writes for as long.
fn read_under_flood(name: &str, mib: u64) -> f64 {
    let mut b = Builder::new();
    let (f, o) = (b.file(2048, 2048), b.ofd());
    let mut ops = vec![Op::Sleep { time: Nanos::from_secs(2) }];
    ops.extend(read_all(o, f, mib * MIB, 4096));
    b.task(ops);
    let (w, o) = (b.file(102_400, 0), b.ofd());
    b.task(write_all(o, w, 400 * MIB, 65536));
    let seen = see_clients(&b.build(), name, 64);
    seen[0] - 2.0
}

/// When each task ended, seconds.
fn see_clients(program: &Program, name: &str, mib: u64) -> Vec<f64> {
    let mut sink = MemorySink::default();
    let config = kernel(name, mib);
    Sim::new(program, &config, 0, Pacing::Closed).unwrap().run(&mut sink, &AtomicBool::new(false)).unwrap();
    let mut ends: Vec<_> = sink.clients.iter().map(|c| (c.task, c.end.unwrap_or_default().as_secs_f64())).collect();
    ends.sort_unstable_by_key(|(task, _)| *task);
    ends.into_iter().map(|(_, end)| end).collect()
}

/// The largest share of its dentries that a kernel drops within a millisecond, and what is left of them, percent.
fn largest_drop(name: &str) -> (f64, f64) {
    let program = names_then_hog(4000, 24);
    let config = kernel(name, 32);
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(&program, &config, 0, Pacing::Closed).unwrap();
    let stop = AtomicBool::new(false);
    let (mut at, mut before, mut drop, mut most) = (Nanos::ZERO, 0.0, 0.0_f64, 0.0_f64);
    loop {
        at += Nanos::from_micros(100);
        sim.pause_at(at);
        let s = sim.run(&mut sink, &stop).unwrap();
        let now = sim.mm.names.dentries() as f64;
        if now < before {
            drop = drop.max((before - now) / before);
        }
        (before, most) = (now, most.max(now));
        if s.finished || sink.counters.is_some() {
            return (drop * 100.0, before * 100.0 / most.max(1.0));
        }
    }
}

#[test]
fn names_go_by_an_eighth_at_a_time_on_2_4_17pre_aa() {
    let (drop, left) = largest_drop("2.4.17pre-aa");
    eprintln!("pre-aa {drop} {left}, 2.4.17 {:?}", largest_drop("2.4.17"));
    assert!((10.0..=13.0).contains(&drop), "{drop:.1} % at once");
    assert!(left < 50.0, "{left:.0} % are left");
}

#[test]
fn reads_wait_less_behind_a_flood_of_writes_on_2_4_17pre_aa_and_with_promoted_reads() {
    let plain = read_under_flood("2.4.17-pre8", 4);
    let aa = read_under_flood("2.4.17pre-aa", 4);
    let promoted = read_under_flood("akpm-1127", 4);
    let before = read_under_flood("2.4.16", 4);
    eprintln!("pre8 {plain} aa {aa} 16 {before} 1127 {promoted}");
    assert!(aa < plain * 0.8, "2.4.17-pre8 {plain:.1} s, -aa {aa:.1} s");
    assert!(promoted < before * 0.5, "2.4.16 {before:.1} s, with promotion {promoted:.1} s");
}

#[test]
fn less_is_swapped_beside_a_stream_on_2_4_17pre_aa() {
    let beside = |name: &str| {
        let mut b = Builder::new();
        hog(&mut b, 0, 16, 3);
        let (f, o) = (b.file(15360, 15360), b.ofd());
        b.task(read_all(o, f, 60 * MIB, 65536));
        see(&b.build(), &kernel(name, 32)).c.swap_out_pages
    };
    let (plain, aa) = (beside("2.4.17"), beside("2.4.17pre-aa"));
    eprintln!("swap 2.4.17 {plain} aa {aa}");
    assert!(aa <= plain, "2.4.17 {plain} pages, -aa {aa}");
}

#[test]
fn many_small_files_take_longer_on_2_4_17pre_aa() {
    let untar = |name: &str| {
        let mut b = Builder::new();
        let files: Vec<u32> = (0..3000).map(|_| b.file(3, 0)).collect();
        let mut ops = Vec::new();
        for &file in &files {
            let ofd = b.ofd();
            ops.push(Op::Open { ofd, file, create: true, truncate: false });
            ops.push(Op::Write { ofd, off: 0, len: 12_000 });
            ops.push(Op::Close { ofd });
        }
        ops.push(Op::Sync);
        b.task(ops);
        see(&b.build(), &kernel(name, 64)).seconds
    };
    eprintln!("untar pre7 {} aa {} rc1aa {}", untar("2.4.17-pre7"), untar("2.4.17pre-aa"), untar("2.4.17rc1aa1"));
}

#[test]
fn frames_are_refused_by_2_4_13_pre2_aa1_when_memory_is_full_of_dirty_pages() {
    let flood = |name: &str| {
        let mut c = kernel(name, 24);
        c.machine.swap = 0;
        see(&clients(5, 12, 2), &c)
    };
    let short = |s: &Seen| (s.c.alloc_failures, s.c.oom_kills, s.messages.len());
    eprintln!("13pre2aa1 {:?} 13 {:?}", short(&flood("2.4.13-pre2-aa1")), short(&flood("2.4.13")));
}

#[test]
fn what_is_overwritten_is_read_again_only_while_it_does_not_fit() {
    for name in ["2.4.13-pre2-aa1", "2.4.17pre-aa", "2.4.17rc1aa1", "2.4.23", "akpm-1127", "akpm-1211"] {
        let many = see(&clients(5, 8, 3), &kernel(name, 32));
        let one = see(&clients(1, 40, 3), &kernel(name, 32));
        let ample = see(&clients(5, 8, 3), &kernel(name, 96));
        eprintln!(
            "{name} {} {} {}",
            many.c.disk_read_bytes / MIB,
            one.c.disk_read_bytes / MIB,
            ample.c.disk_read_bytes
        );
        assert_eq!(ample.c.disk_read_bytes, 0, "{name}");
        assert!(many.c.disk_read_bytes > MIB, "{name}: {} bytes read", many.c.disk_read_bytes);
    }
}

#[test]
fn small_pieces_leave_the_active_list_alone_and_failures_are_told_on_aa() {
    for name in ["2.4.11-pre6aa1", "2.4.13-pre2-aa1", "2.4.17pre-aa", "2.4.23", "akpm-1211"] {
        let seen = see(&stream(20, 512), &kernel(name, 32));
        eprintln!("{name} active {}", seen.active_files);
        assert!(seen.active_files < 100, "{name}: {} of 5120", seen.active_files);
    }
}

#[test]
fn names_go_before_pages_with_akpm_1211() {
    let left = |name: &str| {
        let mut b = Builder::new();
        let files: Vec<u32> = (0..3000).map(|_| b.file(1, 1)).collect();
        let mut ops: Vec<Op> = files.iter().map(|&file| Op::Stat { file, negative: false }).collect();
        let (f, o) = (b.file(15360, 15360), b.ofd());
        ops.extend(read_all(o, f, 60 * MIB, 65536));
        b.task(ops);
        see(&b.build(), &kernel(name, 32)).names_left
    };
    let (plain, first) = (left("2.4.17-pre8"), left("akpm-1211"));
    eprintln!("names pre8 {plain} 1211 {first}");
    assert!(plain >= 2900 && first < 300, "2.4.17-pre8 keeps {plain} of 3000 dentries, with names first {first}");
}

#[test]
fn the_active_list_gives_pages_up_to_anonymous_memory_with_akpm_1211_only() {
    // A file used twice is active; then a process that fills memory, most of it inactive.
    let left = |name: &str| {
        let mut b = Builder::new();
        let f = b.file(256, 256);
        let mut ops = Vec::new();
        for _ in 0..2 {
            let o = b.ofd();
            ops.extend(read_all(o, f, MIB, 4096));
        }
        let area = b.anon(0, 40 * 256);
        ops.push(Op::Map { area });
        ops.push(Op::Touch { area, first: 0, count: 40 * 256, stride: 1, write: true });
        let o = b.ofd();
        ops.extend(read_all(o, f, MIB, 4096));
        b.task(ops);
        see(&b.build(), &kernel(name, 32)).c.disk_read_bytes
    };
    let (frozen, moved) = (left("2.4.17-pre8"), left("akpm-1211"));
    eprintln!("frozen {frozen} moved {moved}");
    assert!(moved > frozen, "2.4.17-pre8 read {frozen} bytes, akpm-1211 {moved}");
}

#[test]
fn writers_are_slowed_down_earlier_with_akpm_1127() {
    let most = |name: &str| {
        let mut b = Builder::new();
        let (f, o) = (b.file(20480, 0), b.ofd());
        b.task(write_all(o, f, 80 * MIB, 65536));
        see(&b.build(), &kernel(name, 64)).c.dirty_max_kib
    };
    let (plain, counted) = (most("2.4.16"), most("akpm-1127"));
    eprintln!("dirty 16 {plain} 1127 {counted}");
    assert!(counted < plain, "2.4.16 {plain} KiB dirty at most, akpm-1127 {counted} KiB");
}
