//! Journal, small files, initial cache, generations and the kernel's counters, on programs small enough to reason about.

use crate::config::Config;
use crate::program::{Advice, AreaInfo, Op};
use crate::results::MemorySink;
use crate::testing::{Builder, play, read_all, write_all};
use crate::variant::Library;

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

fn kernel(name: &str) -> Config {
    let mut library = Library::builtin().unwrap();
    library.select(&[name.to_owned()], &[], &[]).unwrap().remove(0).config
}

fn requests(sink: &MemorySink) -> u64 {
    sink.counters.unwrap().write_requests
}

/// Overwrites a page of a file again and again, each time with a sync behind it.
fn overwrites(data_only: bool) -> u64 {
    let mut b = Builder::new();
    let (f, o) = (b.file(16, 16), b.ofd());
    let mut ops = vec![Op::Open { ofd: o, file: f, create: false, truncate: false }];
    for _ in 0..10 {
        ops.push(Op::Write { ofd: o, off: 0, len: PAGE });
        ops.push(Op::Fsync { file: f, data_only });
    }
    b.task(ops);
    requests(&play(&b.build(), &kernel("linux-6.18+slowdisk")).1)
}

#[test]
fn fdatasync_of_an_overwrite_commits_nothing() {
    assert_eq!(overwrites(true), 10, "the data alone");
    // A descriptor with the inode's block, and a commit block; the time of change moves on with the tick.
    assert_eq!(overwrites(false), 30);
}

#[test]
fn a_mounted_file_systems_first_commit_writes_the_journals_superblock() {
    let run = |empty: bool| {
        let mut b = Builder::new();
        let (f, o) = (b.file(16, 0), b.ofd());
        let mut ops = write_all(o, f, PAGE, PAGE);
        ops.push(Op::Fsync { file: f, data_only: true });
        b.task(ops);
        let mut c = kernel("linux-6.18+slowdisk");
        c.writeback.balanced.journal_empty = empty;
        requests(&play(&b.build(), &c).1)
    };
    assert_eq!(run(true), run(false) + 1);
}

#[test]
fn small_files_that_are_written_together_are_one_request() {
    let mut b = Builder::new();
    let mut ops = Vec::new();
    for _ in 0..32 {
        // What was read lies between the places that the compiled program holds for what is written.
        let (old, new, o, p) = (b.file(2, 2), b.file(2, 0), b.ofd(), b.ofd());
        ops.extend(read_all(o, old, 2 * PAGE, 2 * PAGE));
        ops.extend(write_all(p, new, 2 * PAGE, 2 * PAGE));
    }
    ops.push(Op::Sync);
    b.task(ops);
    let (_, sink) = play(&b.build(), &kernel("linux-6.18+slowdisk"));
    let c = sink.counters.unwrap();
    // 64 pages in one request of 256 KiB or two, and the commit.
    assert!(c.write_requests <= 5, "{c:?}");
    assert!(c.write_merges >= 30, "{c:?}");
}

#[test]
fn what_was_in_memory_need_not_be_read() {
    let run = |cache: &str| {
        let mut b = Builder::new();
        let (f, o) = (b.file(1024, 1024), b.ofd());
        b.task(read_all(o, f, 4 * MIB, 4096));
        let mut c = kernel("linux-6.18+slowdisk");
        c.machine.cache = cache.to_owned();
        play(&b.build(), &c).1.counters.unwrap().disk_read_bytes
    };
    assert_eq!(run("cold"), 4 * MIB);
    assert_eq!(run("warm"), 0);
    assert_eq!(run("f0:0-511"), 2 * MIB);
}

#[test]
fn counters_have_the_kernels_names() {
    let mut b = Builder::new();
    let (f, o) = (b.file(8192, 8192), b.ofd());
    b.task(read_all(o, f, 32 * MIB, 4096));
    let mut c = kernel("linux-6.18+slowdisk");
    (c.machine.memory_limit, c.machine.ram) = (8 * 1024, 1 << 20);
    let (_, sink) = play(&b.build(), &c);
    let c = sink.counters.unwrap();
    let vm = c.vm.unwrap();
    assert_eq!(vm.pgpgin, 32 * 1024);
    assert_eq!(vm.pgsteal_file, c.evicted_pages);
    assert!(vm.pgscan_file >= vm.pgsteal_file && vm.pgsteal_anon == 0, "{vm:?}");
    assert_eq!((vm.pgscan_direct, vm.pgscan_kswapd), (0, 0), "a limit's reclaim is nobody's");
    assert!(vm.pressure_io_full_us <= vm.pressure_io_some_us, "{vm:?}");
    assert!(vm.pressure_io_some_us > 1_000_000, "the reader waits for the disk most of the time: {vm:?}");
}

/// Misses of a hot set of a quarter of memory, used in turn with a stream of four times as much.
fn hot_misses(name: &str) -> u64 {
    const HOT: u64 = 512;
    let mut b = Builder::new();
    let (hot, stream, h, s) = (b.file(HOT as u32, HOT as u32), b.file(8192, 8192), b.ofd(), b.ofd());
    let mut ops = vec![
        Op::Open { ofd: h, file: hot, create: false, truncate: false },
        Op::Open { ofd: s, file: stream, create: false, truncate: false },
        Op::Advise { ofd: h, off: 0, len: 0, advice: crate::program::Advice::Random },
    ];
    let read_hot = || (0..HOT).map(move |i| Op::Read { ofd: h, off: i * PAGE, len: PAGE });
    for _ in 0..6 {
        ops.extend(read_hot());
    }
    for i in 0..8192 {
        ops.push(Op::Read { ofd: s, off: i * PAGE, len: PAGE });
        ops.push(Op::Read { ofd: h, off: i % HOT * PAGE, len: PAGE });
    }
    b.task(ops);
    let mut c = kernel(name);
    (c.machine.memory_limit, c.machine.ram) = (8 * 1024, 1 << 20);
    let (summary, sink) = play(&b.build(), &c);
    assert!(summary.finished);
    (sink.counters.unwrap().disk_read_bytes - 32 * MIB) / PAGE
}

#[test]
fn a_hot_set_outlasts_a_stream_in_generations() {
    for name in ["linux-6.1-mglru+slowdisk", "linux-6.12-mglru+slowdisk", "linux-6.18-mglru+slowdisk"] {
        let misses = hot_misses(name);
        // Used 22 times each; without protection nearly each use in the stream's second half would miss.
        assert!(misses < 4 * 512, "{name}: {misses}");
    }
}

/// Touches pages of a mapped file that lie apart, after saying how.
fn mapped_reads(advice: Option<Advice>) -> u64 {
    let mut b = Builder::new();
    let f = b.file(4096, 4096);
    let first_page = b.program().files[f as usize].first_page;
    b.program().areas.push(AreaInfo { task: 0, pages: 4096, first_page, file: Some(f), private: false });
    let mut ops = vec![Op::Map { area: 0 }];
    ops.extend(advice.map(|advice| Op::AdviseArea { area: 0, first: 0, count: 4096, advice }));
    ops.extend((0..16).map(|i| Op::Touch { area: 0, first: 100 + i * 200, count: 1, stride: 1, write: false }));
    b.task(ops);
    play(&b.build(), &kernel("linux-6.18+slowdisk")).1.counters.unwrap().disk_read_bytes / PAGE
}

#[test]
fn advice_of_order_decides_what_a_fault_reads_around() {
    assert_eq!(mapped_reads(None), 16 * 32, "read-around");
    assert_eq!(mapped_reads(Some(Advice::Random)), 16, "the pages alone");
    assert_eq!(mapped_reads(Some(Advice::WillNeed)), 320 + 14 * 32, "as much as one request, then as without");
}

#[test]
fn memory_that_is_not_needed_is_free_and_comes_back_empty() {
    let mut b = Builder::new();
    let area = b.anon(0, 1024);
    let touch = Op::Touch { area, first: 0, count: 1024, stride: 1, write: true };
    let drop = Op::AdviseArea { area, first: 256, count: 512, advice: Advice::DontNeed };
    b.task(vec![Op::Map { area }, touch, drop, touch, Op::Unmap { area }]);
    let c = play(&b.build(), &kernel("linux-6.18+slowdisk")).1.counters.unwrap();
    assert_eq!((c.page_misses, c.page_hits), (1024 + 512, 512));
}
