//! What each kernel must be seen to do: the observable marks by which the 2.4 variants were told apart on the list.
//!
//! Small machines and loads, so that a mark is one mechanism's and not a coincidence of many. Figures are compared between
//! kernels or with what the rule says, never with a wall clock.

use std::sync::atomic::AtomicBool;

use kreplay_traces::units::Nanos;

use super::{Pacing, Sim};
use crate::config::Config;
use crate::mm::page::{List, flag};
use crate::program::{Op, Program};
use crate::results::{Counters, MemorySink};
use crate::testing::{Builder, read_all, write_all};
use crate::variant::Library;

pub(super) const MIB: u64 = 1 << 20;

/// A kernel on a machine of `mib` MiB.
pub(super) fn kernel(name: &str, mib: u64) -> Config {
    let name = format!("linux-{name}");
    let mut c = Library::builtin().unwrap().select(&[name], &[], &[]).unwrap().remove(0).config;
    (c.machine.ram, c.machine.reserved, c.machine.swap) = (mib * 1024, 2500, 64 * 1024);
    c
}

/// What was seen at the end and on the way, every 10 ms.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) finished: bool,
    pub(super) c: Counters,
    pub(super) messages: Vec<String>,
    /// Most swap pages written at a time, as far as a limit counts them.
    pub(super) swap_in_flight: u32,
    /// Most active pages of files.
    pub(super) active_files: usize,
    /// Pages swapped out a second: seconds with any, and the most.
    pub(super) swap_seconds: usize,
    pub(super) most_swapped_in_a_second: u64,
    /// Least dentries after the most.
    pub(super) names_left: u64,
    pub(super) seconds: f64,
}

pub(super) fn see(program: &Program, config: &Config) -> Seen {
    let mut sink = MemorySink::default();
    let mut sim = Sim::new(program, config, 0, Pacing::Closed).unwrap();
    let stop = AtomicBool::new(false);
    let (mut seen, mut at) = (Seen::default(), Nanos::ZERO);
    let (mut second, mut swapped, mut names) = (0, 0, 0);
    loop {
        at += Nanos::from_millis(10);
        sim.pause_at(at);
        let s = sim.run(&mut sink, &stop).unwrap();
        seen.swap_in_flight = seen.swap_in_flight.max(sim.swap_in_flight);
        let active = |p: &&crate::mm::page::Page| p.list == List::Active && !p.any(flag::ANON | flag::META);
        seen.active_files = seen.active_files.max(sim.mm.pages.iter().filter(active).count());
        let now = sim.mm.names.dentries() as u64;
        if now >= names {
            (names, seen.names_left) = (now, now);
        }
        seen.names_left = seen.names_left.min(now);
        if at.0 / 1_000_000_000 > second || sink.counters.is_some() {
            second = at.0 / 1_000_000_000;
            let out = sim.mm.counters.swap_out_pages - swapped;
            swapped += out;
            seen.swap_seconds += usize::from(out > 0);
            seen.most_swapped_in_a_second = seen.most_swapped_in_a_second.max(out);
        }
        if s.finished || sink.counters.is_some() {
            seen.finished = s.finished;
            break;
        }
        assert!(at < Nanos::from_secs(3600), "no end in sight");
    }
    sim.mm.audit().unwrap();
    seen.c = sink.counters.unwrap();
    seen.seconds = sink.clients.iter().filter_map(|c| c.end).max().unwrap_or_default().as_secs_f64();
    seen.messages = sink.events.iter().map(|e| e.text.clone()).collect();
    seen
}

/// One reader, once through a file of `mib` MiB in pieces of `chunk` bytes.
pub(super) fn stream(mib: u64, chunk: u64) -> Program {
    let mut b = Builder::new();
    let pages = (mib * 256) as u32;
    let (f, o) = (b.file(pages, pages), b.ofd());
    b.task(read_all(o, f, mib * MIB, chunk));
    b.build()
}

/// A task that writes all of `mib` MiB of its own, `passes` times.
pub(super) fn hog(b: &mut Builder, task: u32, mib: u32, passes: usize) {
    let area = b.anon(task, mib * 256);
    let mut ops = vec![Op::Map { area }];
    ops.extend((0..passes).map(|_| Op::Touch { area, first: 0, count: mib * 256, stride: 1, write: true }));
    b.task(ops);
}

fn hogs(mib: u32, passes: usize) -> Program {
    let mut b = Builder::new();
    hog(&mut b, 0, mib, passes);
    b.build()
}

#[test]
fn what_2_4_7_has_read_or_written_goes_inactive_behind_the_window() {
    let seen = see(&stream(40, 4096), &kernel("2.4.7", 32));
    assert!(seen.active_files < 600, "{} active pages of 10 240: {seen:?}", seen.active_files);
    let mut b = Builder::new();
    let (f, o) = (b.file(2048, 0), b.ofd());
    b.task(write_all(o, f, 8 * MIB, 4096));
    let seen = see(&b.build(), &kernel("2.4.7", 32));
    assert!(seen.active_files < 100, "{} active pages of 2048 written", seen.active_files);
}

#[test]
fn streams_die_on_the_inactive_list_of_2_4_8_without_being_active() {
    let seen = see(&stream(40, 4096), &kernel("2.4.8", 32));
    assert!(seen.active_files < 100 && seen.c.evicted_pages > 2000, "{seen:?}");
}

#[test]
fn small_pieces_fill_the_active_list_of_2_4_9_and_2_4_10_only() {
    let pieces = |name: &str| see(&stream(20, 512), &kernel(name, 32)).active_files;
    let pages = |name: &str| see(&stream(20, 4096), &kernel(name, 32)).active_files;
    for name in ["2.4.9", "2.4.10"] {
        assert!(pieces(name) > 4500, "{name}: {} of 5120", pieces(name));
        assert!(pages(name) < 100, "{name}, whole pages: {}", pages(name));
    }
    for name in ["2.4.8", "2.4.11-pre6", "2.4.12", "2.4.13", "2.4.16", "2.4.17"] {
        assert!(pieces(name) < 100, "{name}: {} of 5120", pieces(name));
    }
}

#[test]
fn reclaim_of_2_4_9_takes_many_small_rounds() {
    let rounds = |name: &str| see(&hogs(48, 2), &kernel(name, 32)).c.shrink_calls;
    let (long, short) = (rounds("2.4.8"), rounds("2.4.9"));
    assert!(short > 4 * long, "2.4.8 {long}, 2.4.9 {short}");
}

#[test]
fn only_kernels_with_a_limit_keep_it() {
    for (name, limit) in [("2.4.7", 128), ("2.4.10", 128), ("2.4.9-ac14", 128), ("2.4.13", 64)] {
        let seen = see(&hogs(56, 2), &kernel(name, 40));
        assert!(seen.c.swap_out_pages > 4000, "{name}: {seen:?}");
        // The write that finds more than the limit waits for its end; kswapd and the task may both be about to find out.
        assert!((1..=limit + 2).contains(&seen.swap_in_flight), "{name}: {} in flight", seen.swap_in_flight);
    }
    for name in ["2.4.9-ac14+aging", "2.4.14", "2.4.16"] {
        let c = kernel(name, 32);
        assert_eq!(c.swap.max_in_flight_clusters, 0, "{name}");
    }
}

#[test]
fn bursts_of_the_launder_patches_are_larger_and_fewer_than_those_of_ac14() {
    // A process larger than memory next to a reader.
    let program = || {
        let mut b = Builder::new();
        hog(&mut b, 0, 40, 2);
        let (f, o) = (b.file(2560, 2560), b.ofd());
        b.task(read_all(o, f, 10 * MIB, 65536));
        b.build()
    };
    let smooth = see(&program(), &kernel("2.4.9-ac14", 32));
    let bursts = see(&program(), &kernel("2.4.9-ac15+aging+launder", 32));
    assert!(smooth.c.swap_out_pages > 500 && bursts.c.swap_out_pages > 500, "{smooth:?} {bursts:?}");
    assert!(
        bursts.most_swapped_in_a_second > smooth.most_swapped_in_a_second,
        "ac14 at most {} pages a second, launder {}",
        smooth.most_swapped_in_a_second,
        bursts.most_swapped_in_a_second
    );
}

#[test]
fn plain_ac15_rereads_its_files_and_never_swaps() {
    let program = || {
        let mut b = Builder::new();
        let area = b.anon(0, 22 * 256);
        let mut ops = vec![Op::Map { area }];
        for _ in 0..40 {
            ops.push(Op::Touch { area, first: 0, count: 22 * 256, stride: 1, write: true });
            ops.push(Op::Sleep { time: Nanos::from_millis(100) });
        }
        b.task(ops);
        let f = b.file(3072, 3072);
        let mut ops = Vec::new();
        for _ in 0..4 {
            let o = b.ofd();
            ops.extend(read_all(o, f, 12 * MIB, 65536));
        }
        b.task(ops);
        b.build()
    };
    let thrash = see(&program(), &kernel("2.4.9-ac15", 32));
    assert_eq!(thrash.c.swap_out_pages, 0, "{thrash:?}");
    assert!(thrash.c.disk_read_bytes > 24 * MIB, "{} bytes of 12 MiB read", thrash.c.disk_read_bytes);
}

#[test]
fn frames_are_refused_by_2_4_10_and_not_by_2_4_12() {
    let failures = |name: &str| see(&stream(40, 512), &kernel(name, 32));
    let loud = failures("2.4.10");
    assert!(loud.c.alloc_failures > 0, "{loud:?}");
    assert!(loud.messages.iter().any(|m| m.contains("0-order allocation failed")), "{:?}", loud.messages);
    for name in ["2.4.11-pre6", "2.4.12", "2.4.13", "2.4.16", "2.4.17"] {
        let quiet = failures(name);
        assert_eq!((quiet.c.alloc_failures, quiet.messages.len()), (0, 0), "{name}: {quiet:?}");
    }
}

#[test]
fn vm_tweaks_swap_no_more_than_2_4_10() {
    let plain = see(&hogs(48, 3), &kernel("2.4.10", 32));
    let tweaked = see(&hogs(48, 3), &kernel("2.4.10-aa1", 32));
    assert!(tweaked.c.swap_out_pages <= plain.c.swap_out_pages * 11 / 10, "{plain:?} {tweaked:?}");
}

#[test]
fn dirty_data_climbs_to_40_percent_from_2_4_13_on() {
    let most = |name: &str| {
        let mut b = Builder::new();
        let (f, o) = (b.file(20480, 0), b.ofd());
        b.task(write_all(o, f, 80 * MIB, 65536));
        see(&b.build(), &kernel(name, 64)).c.dirty_max_kib
    };
    let all = 64 * 1024;
    let (before, after) = (most("2.4.12"), most("2.4.13"));
    assert!(before < all * 40 / 100, "2.4.12: {before} KiB");
    assert!(after > before, "2.4.12 {before} KiB, 2.4.13 {after} KiB");
    assert!(after > all * 33 / 100, "2.4.13: {after} KiB of {all}");
}

#[test]
fn swap_is_read_by_eight_pages_from_2_4_13_on() {
    let pages_a_read = |name: &str| {
        let seen = see(&hogs(56, 3), &kernel(name, 40));
        seen.c.disk_read_bytes as f64 / 4096.0 / seen.c.read_requests as f64
    };
    let (wide, narrow) = (pages_a_read("2.4.12"), pages_a_read("2.4.13"));
    assert!(wide > 10.0 && (6.0..9.0).contains(&narrow), "2.4.12 {wide:.1}, 2.4.13 {narrow:.1} pages a read");
}

#[test]
fn name_caches_vanish_at_the_first_shortage_of_ac14_and_outlast_a_stream_on_2_4_10() {
    let left = |name: &str| {
        let mut b = Builder::new();
        let files: Vec<u32> = (0..3000).map(|_| b.file(1, 1)).collect();
        let mut ops: Vec<Op> = files.iter().map(|&file| Op::Stat { file, negative: false }).collect();
        let (f, o) = (b.file(15360, 15360), b.ofd());
        ops.extend(read_all(o, f, 60 * MIB, 65536));
        b.task(ops);
        see(&b.build(), &kernel(name, 32)).names_left
    };
    let (all, none) = (left("2.4.9-ac14"), left("2.4.10"));
    assert!(all < 100 && none >= 2900, "ac14 keeps {all} of 3000 dentries, 2.4.10 {none}");
}

#[test]
fn the_killer_of_2_4_16_waits_for_a_second_of_failures_with_swap_full() {
    // Two are promised what only one of them can have; neither is done within its first slice.
    let program = || {
        let mut b = Builder::new();
        for task in 0..2 {
            let area = b.anon(task, 28 * 256);
            let touch = Op::Touch { area, first: 0, count: 28 * 256, stride: 1, write: true };
            let mut ops = vec![Op::Map { area }, Op::Sleep { time: Nanos::from_millis(50) }];
            ops.extend([touch; 100]);
            b.task(ops);
        }
        b.build()
    };
    let mut c = kernel("2.4.16", 32);
    c.machine.swap = 8 * 1024;
    let seen = see(&program(), &c);
    assert!(seen.c.oom_kills == 1 && seen.c.max_swpd_kib >= 8 * 1024 - 8, "{seen:?}");
    assert!(seen.seconds > 1.0, "killed after {} s", seen.seconds);
    let mut c = kernel("2.4.10", 32);
    c.machine.swap = 8 * 1024;
    let seen = see(&program(), &c);
    assert!(seen.c.oom_kills == 1 && seen.c.alloc_failures > 0, "{seen:?}");
}

#[test]
fn swapping_begins_earlier_on_2_4_17() {
    // A process that just does not fit beside a file that is read: how soon anything is swapped out.
    let out = |name: &str| {
        let mut b = Builder::new();
        hog(&mut b, 0, 14, 1);
        let (f, o) = (b.file(10240, 10240), b.ofd());
        b.task(read_all(o, f, 40 * MIB, 65536));
        see(&b.build(), &kernel(name, 24)).c.swap_out_pages
    };
    let (late, early) = (out("2.4.16"), out("2.4.17"));
    assert!(early >= late, "2.4.16 swapped {late} pages out, 2.4.17 {early}");
}

#[test]
fn a_slot_is_given_up_at_swap_in_by_2_4_10_only() {
    let most = |name: &str| see(&hogs(44, 3), &kernel(name, 32)).c.max_swpd_kib;
    let (freed, kept) = (most("2.4.10"), most("2.4.16"));
    assert!(kept > freed * 3 / 2, "2.4.10 {freed} KiB, 2.4.16 {kept} KiB of swap in use at most");
}

#[test]
fn overwriting_in_ragged_pieces_reads_only_when_memory_is_short() {
    // As a file server gets it: unaligned writes, several files, again and again.
    let program = || {
        let mut b = Builder::new();
        for _ in 0..3 {
            let (f, pages) = (b.file(2048, 0), 8 * MIB);
            let mut ops = Vec::new();
            for _ in 0..3 {
                let o = b.ofd();
                ops.extend(write_all(o, f, pages / 5000 * 5000, 5000));
            }
            b.task(ops);
        }
        b.build()
    };
    for name in ["2.4.9", "2.4.10", "2.4.12", "2.4.16", "2.4.17"] {
        let short = see(&program(), &kernel(name, 16));
        let ample = see(&program(), &kernel(name, 96));
        assert_eq!(ample.c.disk_read_bytes, 0, "{name}");
        assert!(short.c.disk_read_bytes > MIB, "{name}: {} bytes read", short.c.disk_read_bytes);
    }
}
