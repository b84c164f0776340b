//! Mapped memory.

use kreplay_replay::compile::{CompileOptions, OwnedSyscall};
use kreplay_replay::program::{Advice, Op};

use crate::trace::*;

const P: i64 = 4096;

fn anonymous(addr: i64, pages: i64) -> OwnedSyscall {
    OwnedSyscall {
        ret: Some(addr),
        len_bytes: Some(pages * P),
        fd: Some(-1),
        flags: Some("PROT_READ|PROT_WRITE|MAP_PRIVATE|MAP_ANONYMOUS".into()),
        ..call("mmap")
    }
}

fn touch(area: u32, first: u32, count: u32, stride: u16, write: bool) -> Op {
    Op::Touch { area, first, count, stride, write }
}

#[test]
fn touches_find_their_area() {
    let p = Trace::new()
        .then(anonymous(100 * P, 8))
        .then(OwnedSyscall { call: "old_mmap".into(), ..anonymous(108 * P, 8) })
        .touch(102 * P, 10, P, true)
        .touch(115 * P, 3, -P, false)
        .touch(100 * P, 64, 256, false)
        .then(OwnedSyscall { addr: Some(100 * P), len_bytes: Some(8 * P), ..call("munmap") })
        .compile();
    assert_eq!(
        ops(&p, 1),
        [
            Op::Map { area: 0 },
            Op::Map { area: 1 },
            touch(0, 2, 6, 1, true),
            touch(1, 0, 4, 1, true),
            touch(1, 7, 1, 1, false),
            touch(1, 6, 1, 1, false),
            touch(1, 5, 1, 1, false),
            touch(0, 0, 4, 1, false),
            Op::Unmap { area: 0 },
        ]
    );
    assert_eq!(p.areas[0].first_page + 8, p.areas[1].first_page, "areas are numbered one after the other");
}

#[test]
fn mapped_files_share_the_files_pages() {
    let map = OwnedSyscall {
        ret: Some(1000 * P),
        len_bytes: Some(16 * P),
        offset_bytes: Some(2 * P),
        fd: Some(3),
        flags: Some("PROT_READ|MAP_SHARED".into()),
        ..call("mmap")
    };
    let p = Trace::new()
        .file("/a", 10 * P)
        .then(open("/a", "O_RDONLY", 3))
        .then(map)
        .touch(1001 * P, 3, P, false)
        .compile();
    let (id, info) = file(&p, "/a");
    assert_eq!(p.areas[0].file, Some(id));
    assert_eq!(p.areas[0].first_page, info.first_page + 2);
    assert_eq!(p.areas[0].pages, 8, "the file ends there");
    assert_eq!(ops(&p, 1)[2], touch(0, 1, 3, 1, false));
}

#[test]
fn a_childs_writes_after_fork_are_its_own() {
    let mut t = Trace::new().then(anonymous(100 * P, 4)).touch(100 * P, 4, P, true).then(clone(2, "SIGCHLD"));
    t.touch_by(2, 100 * P, 1, P, false);
    t.touch_by(2, 101 * P, 2, P, true);
    let p = t.then(exit()).compile();
    let own = [Op::Unmap { area: 0 }, Op::Map { area: 1 }, touch(1, 1, 2, 1, true)];
    assert_eq!(ops(&p, 2)[..4], [&[touch(0, 0, 1, 1, false)][..], &own].concat());
    assert!(ops(&p, 1).contains(&Op::Share { area: 0, task: 1 }), "until then it has its parent's");
    assert_eq!((p.areas[1].task, p.areas[1].pages), (1, 3));
    assert!(ops(&p, 1).contains(&Op::Unmap { area: 0 }));
}

#[test]
fn the_heap_grows_and_shrinks() {
    let brk = |at: i64| OwnedSyscall { ret: Some(at), ..call("brk") };
    let p = Trace::new().then(brk(10 * P)).then(brk(14 * P)).touch(13 * P, 1, P, true).then(brk(10 * P)).compile();
    assert_eq!(ops(&p, 1), [Op::Map { area: 0 }, touch(0, 3, 1, 1, true), Op::Unmap { area: 0 }]);
}

#[test]
fn without_any_touches_they_are_assumed_and_counted() {
    let reserve =
        OwnedSyscall { flags: Some("PROT_NONE|MAP_PRIVATE|MAP_ANONYMOUS".into()), ..anonymous(9000 * P, 100) };
    let build = || Trace::new().then(anonymous(100 * P, 8)).then(anonymous(20_000 * P, 10_000)).then(reserve.clone());
    let p = build().compile();
    assert_eq!(
        ops(&p, 1),
        [
            Op::Map { area: 0 },
            touch(0, 0, 8, 1, true),
            Op::Map { area: 1 },
            touch(1, 0, 6000, 1, true),
            Op::Map { area: 2 }
        ]
    );
    assert_eq!(noted(&p, "anonymous pages assumed"), 6008);
    assert_eq!(p.areas[2].pages, 0, "a reservation needs no page ids");
    let none = build().compile_with(&CompileOptions { assume_touches: false, ..CompileOptions::default() });
    assert!(ops(&none, 1).iter().all(|o| matches!(o, Op::Map { .. })));
}

#[test]
fn touches_of_memory_that_no_call_mapped_get_an_area() {
    let p = Trace::new().then(call("getpid")).touch(512 * P + 5, 2, P, true).compile();
    assert_eq!(ops(&p, 1), [Op::Map { area: 0 }, touch(0, 0, 2, 1, true)]);
    assert_eq!(noted(&p, "made up"), 1);
}

#[test]
fn advice_and_partial_unmapping_name_pages_of_their_area() {
    let at = |name: &str, first: i64, pages: i64| OwnedSyscall {
        addr: Some(first * P),
        len_bytes: Some(pages * P),
        ..call(name)
    };
    let advise = |first, pages, word: &str| OwnedSyscall { flags: Some(word.into()), ..at("madvise", first, pages) };
    let p = Trace::new()
        .then(anonymous(100 * P, 8))
        .then(anonymous(108 * P, 8))
        .touch(100 * P, 16, P, true)
        .then(advise(106, 4, "MADV_DONTNEED"))
        .then(advise(100, 2, "MADV_SEQUENTIAL"))
        .then(advise(100, 2, "MADV_HUGEPAGE"))
        .then(at("munmap", 104, 2))
        .then(at("munmap", 100, 8))
        .compile();
    let said = |area, first, count, advice| Op::AdviseArea { area, first, count, advice };
    assert_eq!(
        ops(&p, 1)[4..],
        [
            said(0, 6, 2, Advice::DontNeed),
            said(1, 0, 2, Advice::DontNeed),
            said(0, 0, 2, Advice::Sequential),
            said(0, 4, 2, Advice::DontNeed),
            Op::Unmap { area: 0 },
        ]
    );
}
