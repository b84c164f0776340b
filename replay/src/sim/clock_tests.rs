//! Rules of 2.2, one small program each.

use crate::config::Config;
use crate::mm::Mm;
use crate::mm::page::{NIL, flag};
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::program::Op;
use crate::reclaim::{Cursor, Need, step};
use crate::results::Cause;
use crate::testing::{Builder, play, read_all, write_all};
use crate::variant::Library;
use crate::writeback;

const MIB: u64 = 1 << 20;

fn config() -> Config {
    Library::builtin().unwrap().select(&["linux-2.2.20".to_owned()], &[], &[]).unwrap().remove(0).config
}

/// A machine with a file (pages 0 to 999) and two processes with 1000 anonymous pages each behind it.
fn machine() -> (Config, Mm) {
    let mut b = Builder::new();
    b.file(1000, 1000);
    b.anon(0, 1000);
    b.anon(1, 1000);
    b.task(Vec::new());
    b.task(Vec::new());
    let c = config();
    let mm = Mm::new(&b.build(), &c);
    (c, mm)
}

fn cached(mm: &mut Mm, id: u32) {
    let zone = mm.zones.take_any().unwrap();
    assert!(mm.adopt_frame(id, zone));
    mm.set(id, flag::UPTODATE);
    mm.unlock(id);
}

fn anonymous(mm: &mut Mm, task: u32, first: u32, pages: u32) {
    mm.spaces.map(task, task, first, 1000);
    for id in first..first + pages {
        let zone = mm.zones.take_any().unwrap();
        mm.add_anon(id, zone);
        mm.set(id, flag::MAPPED | flag::PTE_DIRTY);
        mm.spaces.page_mapped(task);
    }
}

/// Steps of a reclaim run up to its end or its first wish.
fn first_need(c: &Config, mm: &mut Mm, flags: AllocFlags) -> Need {
    let limits = writeback::limits(&c.writeback, mm);
    step(&c.reclaim, mm, &mut Cursor::new(&c.reclaim, NORMAL, flags, false), &limits)
}

#[test]
fn the_hand_spares_a_referenced_page_once() {
    let (mut c, mut mm) = machine();
    c.reclaim.cluster = 400;
    c.reclaim.clock.cache_min_pct = 0;
    mm = {
        let mut fresh = mm.clone();
        fresh.clock = Some(crate::mm::clock::Clock::new(16_384, 0, 128, c.reclaim.clock));
        fresh
    };
    (0..800).for_each(|id| cached(&mut mm, id));
    (0..400).for_each(|id| mm.set(id, flag::REFERENCED));
    assert_eq!(first_need(&c, &mut mm, AllocFlags::USER), Need::Done(true));
    let left: Vec<u32> = (0..800).filter(|&id| mm.page(id).any(flag::PRESENT)).collect();
    assert_eq!(left, (0..400).collect::<Vec<_>>(), "those in use stay, without their marks");
    // The hand begins behind the first frame.
    assert!(left[1..].iter().all(|&id| !mm.page(id).any(flag::REFERENCED)));
    assert_eq!(first_need(&c, &mut mm, AllocFlags::USER), Need::Done(true));
    assert_eq!(mm.cache_pages, 0);
}

#[test]
fn two_percent_of_page_cache_stay() {
    let (c, mut mm) = machine();
    (0..1000).for_each(|id| cached(&mut mm, id));
    while first_need(&c, &mut mm, AllocFlags::USER) == Need::Done(true) {}
    // 16384 frames: below 327.68 pages nothing goes.
    assert_eq!(mm.cache_pages, 327);
    mm.audit().unwrap();
}

#[test]
fn a_dirty_buffer_is_noted_first_and_written_then() {
    let (c, mut mm) = machine();
    for id in 0..400 {
        let buffer = mm.buffer_of(id);
        assert_ne!(buffer, id);
        cached(&mut mm, buffer);
        mm.dirty_buffer(buffer, 3000);
    }
    assert_eq!(mm.meta_pages, 400, "buffers count as buffer cache");
    assert!(!mm.page(0).any(flag::PRESENT), "not as page cache");
    // Without leave to do I/O nothing comes of it.
    assert_eq!(first_need(&c, &mut mm, AllocFlags::NOIO), Need::Done(false));
    let Need::WriteBuffer(id) = first_need(&c, &mut mm, AllocFlags::USER) else { panic!("nothing is written") };
    assert!(mm.is_twin(id) && mm.page(id).any(flag::BUF_LOCKED));
    assert!(!mm.wake_bdflush, "fewer are dirty than wake bdflush");
}

#[test]
fn the_largest_process_is_unmapped_and_its_page_written_at_once() {
    let (c, mut mm) = machine();
    anonymous(&mut mm, 0, 1000, 100);
    anonymous(&mut mm, 1, 2000, 200);
    let need = first_need(&c, &mut mm, AllocFlags::USER);
    assert_eq!(need, Need::WritePage(2000));
    let p = mm.page(2000);
    assert!(p.has(flag::SWAP_CACHE | flag::SWAPPED | flag::LOCKED) && !p.any(flag::MAPPED | flag::DIRTY));
    // Pages used lately give their mark to the frame first.
    let (c, mut mm) = machine();
    anonymous(&mut mm, 0, 1000, 100);
    (1000..1100).for_each(|id| mm.set(id, flag::YOUNG));
    assert_eq!(first_need(&c, &mut mm, AllocFlags::NOIO), Need::Done(false));
    assert!((1000..1100).all(|id| mm.page(id).has(flag::MAPPED) && !mm.page(id).any(flag::YOUNG)));
}

#[test]
fn frames_are_used_again_in_the_order_of_their_freeing() {
    let (_, mut mm) = machine();
    (0..10).for_each(|id| cached(&mut mm, id));
    let frame = mm.page(5).next;
    let zone = mm.remove_from_page_cache(5);
    mm.zones.give(zone);
    assert_eq!(mm.page(5).next, NIL);
    cached(&mut mm, 20);
    assert_eq!(mm.page(20).next, frame);
}

#[test]
fn what_was_written_is_read_without_the_disk_but_lies_twice_in_memory() {
    let mut b = Builder::new();
    let (f, o, p) = (b.file(1024, 0), b.ofd(), b.ofd());
    let mut ops = write_all(o, f, 4 * MIB, 65_536);
    ops.extend(read_all(p, f, 4 * MIB, 4096));
    ops.push(Op::Sleep { time: kreplay_traces::units::Nanos::from_millis(1500) });
    b.task(ops);
    let (_, sink) = play(&b.build(), &config());
    assert_eq!(sink.counters.unwrap().disk_read_bytes, 0);
    let end = sink.samples.last().unwrap();
    assert!(end.buff_kib >= 4096 && end.cache_kib >= 4096, "{end:?}");
}

#[test]
fn part_of_a_block_is_read_from_disk_although_its_page_is_in_memory() {
    let mut b = Builder::new();
    let (f, o, p) = (b.file(64, 64), b.ofd(), b.ofd());
    let mut ops = read_all(o, f, 64 * 4096, 4096);
    ops.push(Op::Open { ofd: p, file: f, create: false, truncate: false });
    ops.extend((0..64).map(|i| Op::Write { ofd: p, off: i * 4096, len: 1000 }));
    b.task(ops);
    let (_, sink) = play(&b.build(), &config());
    assert_eq!(sink.counters.unwrap().disk_read_bytes, 2 * 64 * 4096);
}

#[test]
fn a_writer_sleeps_until_bdflush_has_written_its_share() {
    let mut b = Builder::new();
    let (f, o) = (b.file(40_960, 0), b.ofd());
    b.task(write_all(o, f, 160 * MIB, 65_536));
    let (summary, sink) = play(&b.build(), &config());
    assert!(summary.finished, "{:?}", sink.events);
    let throttled: u64 = sink.calls.iter().map(|c| c.blame.get(Cause::Throttle).0).sum();
    assert!(throttled > summary.elapsed.0 / 2, "{throttled} of {}", summary.elapsed);
    let c = sink.counters.unwrap();
    assert!(c.dirty_max_kib <= 64 * 1024 * 41 / 100, "{}", c.dirty_max_kib);
}

#[test]
fn more_memory_than_there_is_comes_back_from_swap() {
    let mut b = Builder::new();
    let area = b.anon(0, 80 * 256);
    let touch = Op::Touch { area, first: 0, count: 80 * 256, stride: 1, write: true };
    b.task(vec![Op::Map { area }, touch, touch, Op::Unmap { area }]);
    let (summary, sink) = play(&b.build(), &config());
    assert!(summary.finished);
    let c = sink.counters.unwrap();
    // A slot goes when its page is written to: only what is out has one.
    assert!(c.swap_out_pages > 20 * 256 && c.max_swpd_kib < 40 * 1024, "{c:?}");
}
