use std::sync::atomic::AtomicBool;

use kreplay_traces::event::BlockRow;
use kreplay_traces::units::Nanos;
use proptest::prelude::*;

use super::*;
use crate::block::IoRecord;
use crate::config::{Config, DeviceConfig, PlugList, WakeRule};
use crate::sim::Pacing;

fn modern(policy: &str) -> Config {
    let mut c: Config = toml::from_str(include_str!("../../tests/fixtures/block/variant.toml")).expect("fixture");
    c.elevator.policy = policy.to_owned();
    c.queue.slots = 256;
    c.queue.wake = WakeRule::Tags;
    c.queue.head_active = false;
    c.queue.plugging = false;
    c.queue.max_sectors = 1024;
    c
}

fn row(us: i64, action: &'static str, rwbs: &'static str, sector: i64, nr: i64, pid: i64) -> BlockRow<'static> {
    BlockRow {
        time_ns: us * 1000,
        dev: Some(8 << 20),
        action,
        rwbs,
        sector_512: Some(sector),
        len_bytes: (nr > 0).then_some(nr * 512),
        pid: Some(pid),
        comm: Some("x"),
        ..BlockRow::default()
    }
}

fn bare(us: i64, action: &'static str, pid: i64) -> BlockRow<'static> {
    BlockRow { sector_512: None, ..row(us, action, "N", 0, 0, pid) }
}

fn program(rows: &[BlockRow<'_>]) -> BlockProgram {
    compile("t", &[], rows).expect("rows")
}

#[derive(Default)]
struct Seen {
    requests: Vec<IoRecord>,
    bios: Vec<BioDone>,
}

impl Observe for Seen {
    fn request(&mut self, r: &IoRecord) {
        self.requests.push(*r);
    }
    fn bio(&mut self, _: &Action, b: &BioDone) {
        self.bios.push(*b);
    }
}

fn play(p: &BlockProgram, c: &Config, pacing: Pacing) -> (Seen, Replayed) {
    let mut seen = Seen::default();
    let end = run(p, c, pacing, &mut seen, &AtomicBool::new(false)).expect("runs");
    (seen, end)
}

#[test]
fn a_bio_larger_than_a_request_is_split_and_done_with_its_last_piece() {
    let p = program(&[row(0, "Q", "W", 0, 2500, 1)]);
    let (seen, end) = play(&p, &modern("none"), Pacing::Recorded);
    assert_eq!(seen.requests.iter().map(|r| r.nr).collect::<Vec<_>>(), [1024, 1024, 452]);
    assert_eq!((seen.bios.len(), seen.bios[0].c, end.finished), (1, end.elapsed, true));
}

#[test]
fn a_plug_list_merges_what_its_task_queues_before_it_is_released() {
    let rows = [
        row(0, "Q", "R", 100, 8, 1),
        row(1, "G", "R", 100, 8, 1),
        bare(1, "P", 1),
        row(5, "Q", "R", 108, 8, 1),
        row(6, "M", "R", 108, 8, 1),
        row(7, "Q", "R", 500, 8, 1),
        row(7, "G", "R", 500, 8, 1),
        bare(20, "U", 1),
    ];
    let (seen, _) = play(&program(&rows), &modern("none"), Pacing::Recorded);
    assert_eq!(seen.requests.iter().map(|r| (r.sector.0, r.nr)).collect::<Vec<_>>(), [(100, 16), (500, 8)]);
    // Queued at 0, handed over at 20 us.
    assert_eq!((seen.requests[0].q, seen.requests[0].i), (Nanos(0), Nanos(20_000)));
    assert_eq!(seen.requests[0].bios, 2);
}

#[test]
fn a_task_without_a_slot_sleeps_and_its_later_bios_wait_behind() {
    let rows: Vec<_> = (0..8).map(|k| row(k * 10, "Q", "W", k * 5000, 8, 1)).collect();
    let mut c = modern("none");
    let DeviceConfig::Rotating { ref mut queue_depth, .. } = c.device else { panic!("fixture") };
    *queue_depth = 2;
    let (seen, end) = play(&program(&rows), &c, Pacing::Recorded);
    assert!(end.finished);
    assert_eq!(seen.bios.len(), 8);
    // One behind the other: each found its slot before the next one was queued.
    assert!(seen.bios.windows(2).all(|w| w[0].q + w[0].slept <= w[1].q), "{:?}", seen.bios);
    assert!(seen.bios.iter().filter(|b| b.slept > Nanos::ZERO).count() >= 5);
}

#[test]
fn closed_pacing_waits_for_what_the_task_waited_for() {
    // Two reads, one after the other's completion plus 1 ms; recorded on a device that took 100 us.
    let rows = [
        row(0, "Q", "R", 0, 8, 1),
        row(0, "D", "R", 0, 8, 1),
        row(100, "C", "R", 0, 8, 0),
        row(1100, "Q", "R", 100_000, 8, 1),
        row(1100, "D", "R", 100_000, 8, 1),
        row(1200, "C", "R", 100_000, 8, 0),
    ];
    let p = program(&rows);
    assert_eq!((p.actions[1].waits, p.actions[1].think, p.actions[0].waited_by), (1, Nanos::from_millis(1), 1));
    let (seen, _) = play(&p, &modern("none"), Pacing::Closed);
    assert_eq!(seen.bios[1].q, seen.bios[0].c + Nanos::from_millis(1));
    let (open, _) = play(&p, &modern("none"), Pacing::Recorded);
    assert_eq!(open.bios[1].q, Nanos::from_micros(1100));
}

#[test]
fn a_device_without_queued_bios_is_driven_by_its_dispatches() {
    let rows = [row(0, "D", "R", 0, 8, 1), row(5, "D", "R", 0, 8, 1), row(50, "C", "R", 0, 8, 0)];
    let p = program(&rows);
    // The second D is the same request again.
    assert_eq!((p.actions.len(), p.requests.len(), p.coverage.from_dispatches), (1, 1, 1));
    assert_eq!((p.requests[0].d, p.requests[0].c), (Nanos(5_000), Some(Nanos(50_000))));
}

#[test]
fn a_write_with_flushes_is_complete_after_the_second_one() {
    let rows = [
        row(0, "Q", "FWFSM", 64, 8, 1),
        row(100, "D", "WSM", 64, 8, 1),
        row(200, "C", "WSM", 64, 8, 0),
        row(300, "C", "WSM", 64, 0, 0),
        row(400, "Q", "FWS", 0, 0, 1),
        row(450, "C", "WS", 0, 0, 0),
    ];
    let p = program(&rows);
    assert_eq!(p.actions[0].done, Nanos::from_micros(300));
    assert_eq!(p.actions[1].done, Nanos::from_micros(450));
    let (seen, end) = play(&p, &modern("mq-deadline"), Pacing::Closed);
    assert!(end.finished);
    assert_eq!((seen.bios.len(), seen.requests.len()), (2, 1));
}

#[test]
fn decades_between_two_events_are_not_told_second_by_second() {
    #[derive(Default)]
    struct Seconds(Vec<u64>);
    impl Observe for Seconds {
        fn second(&mut self, at: Nanos, _: [u64; 2], _: u64) {
            self.0.push(at.get() / 1_000_000_000);
        }
    }
    let seconds = |gap_s: i64| {
        let rows = [row(0, "Q", "R", 0, 8, 1), row(gap_s * 1_000_000, "Q", "R", 5_000, 8, 1)];
        let mut seen = Seconds::default();
        run(&program(&rows), &modern("none"), Pacing::Recorded, &mut seen, &AtomicBool::new(false)).expect("runs");
        seen.0
    };
    assert_eq!(seconds(3), [1, 2, 3]);
    assert_eq!(seconds(1_000_000_000), [1, 1_000_000_000]);
}

#[test]
fn an_empty_trace_is_an_error() {
    let p = program(&[]);
    let end = run(&p, &modern("none"), Pacing::Closed, &mut (), &AtomicBool::new(false));
    assert_eq!(end.unwrap_err(), BlockReplayError::Empty);
}

#[test]
fn the_oldest_or_the_newest_request_of_a_plug_list_tells_when_it_has_to_go() {
    // A small request first, then two of 128 KiB; the list is never released by an event before 90 us.
    let rows = [
        row(0, "Q", "R", 10_000, 8, 1),
        row(0, "G", "R", 10_000, 8, 1),
        bare(0, "P", 1),
        row(10, "Q", "R", 100, 256, 1),
        row(20, "Q", "R", 5_000, 256, 1),
        row(20, "G", "R", 5_000, 256, 1),
        bare(90, "U", 1),
    ];
    let inserted = |kind: PlugList| {
        let mut c = modern("none");
        c.queue.plug_list = kind;
        play(&program(&rows), &c, Pacing::Recorded).0.requests.iter().map(|r| r.i.get() / 1000).collect::<Vec<_>>()
    };
    assert_eq!(inserted(PlugList::Fifo), [90, 90, 90]);
    assert_eq!(inserted(PlugList::Stack), [20, 20, 90]);
}

#[test]
fn what_a_trace_shows_late_counts_from_the_start() {
    // Two bios close to each other before the first P, the device's D before its Q, and a device that only passes bios on.
    let above = |us: i64, sector: i64| BlockRow { dev: Some(9 << 20), ..row(us, "Q", "R", sector, 8, 1) };
    let mut rows = vec![
        row(0, "D", "R", 700, 8, 7),
        above(1, 90),
        row(10, "Q", "R", 100, 8, 1),
        row(20, "Q", "R", 300, 8, 1),
        row(30, "Q", "R", 500, 8, 2),
        row(31, "G", "R", 500, 8, 2),
        bare(32, "P", 2),
        bare(90, "U", 2),
    ];
    let shown = program(&rows);
    assert_eq!(shown.actions.iter().map(|a| a.hold_ns).collect::<Vec<_>>(), [0, 0, 60_000]);
    assert_eq!((shown.devices.len(), shown.coverage.stacked, shown.coverage.from_dispatches), (1, 1, 0));
    let once = program(&rows[2..]);
    assert_eq!(once.actions.iter().map(|a| a.hold_ns).collect::<Vec<_>>(), [0, 0, 60_000]);
    rows.truncate(5);
    let hidden = program(&rows);
    assert_eq!(hidden.actions.iter().map(|a| a.hold_ns).collect::<Vec<_>>(), [NO_UNPLUG, 0, 0]);
}

#[test]
fn one_request_leaves_the_scheduler_ahead_of_the_device() {
    // A disk that takes one command: the second request (far away) is out of the scheduler's hands when a nearer one comes.
    let rows = [row(0, "Q", "R", 0, 8, 1), row(10, "Q", "R", 1_000_000, 8, 2), row(20, "Q", "R", 500_000, 8, 3)];
    let order = |ahead: bool| {
        let mut c = modern("mq-deadline");
        c.queue.dispatch_ahead = ahead;
        c.elevator.deadline.next_by_place = true;
        if let DeviceConfig::Rotating { queue_depth, .. } = &mut c.device {
            *queue_depth = 1;
        }
        let mut seen = play(&program(&rows), &c, Pacing::Recorded).0.requests;
        seen.sort_by_key(|r| r.d);
        seen.iter().map(|r| r.sector.get()).collect::<Vec<_>>()
    };
    assert_eq!(order(false), [0, 500_000, 1_000_000]);
    assert_eq!(order(true), [0, 1_000_000, 500_000]);
}

#[test]
fn priorities_of_tasks_reach_the_scheduler() {
    let named = |us: i64, sector: i64, comm: &'static str, pid: i64| BlockRow {
        comm: Some(comm),
        ..row(us, "Q", "R", sector, 8, pid)
    };
    let rows = [named(0, 0, "x", 1), named(10, 1_000, "idler", 2), named(20, 9_000_000, "urgent", 3)];
    let mut c = modern("mq-deadline");
    if let DeviceConfig::Rotating { queue_depth, .. } = &mut c.device {
        *queue_depth = 1;
    }
    c.queue.priorities = "idler=idle urg*=rt:2".to_owned();
    let mut seen = play(&program(&rows), &c, Pacing::Recorded).0.requests;
    seen.sort_by_key(|r| r.d);
    assert_eq!(seen.iter().map(|r| r.sector.get()).collect::<Vec<_>>(), [0, 9_000_000, 1_000]);
    // What the trace says of a request goes before a rule that names its task.
    let said =
        |us: i64, sector: i64, text: &'static str| BlockRow { text: Some(text), ..row(us, "I", "R", sector, 8, 9) };
    let mut more = rows.to_vec();
    more.extend([said(21, 1_000, "rt:0"), said(22, 9_000_000, "idle:7"), said(23, 0, "no priority")]);
    let mut seen = play(&program(&more), &c, Pacing::Recorded).0.requests;
    seen.sort_by_key(|r| r.d);
    assert_eq!(seen.iter().map(|r| r.sector.get()).collect::<Vec<_>>(), [0, 1_000, 9_000_000]);
    c.queue.priorities = "nonsense".to_owned();
    let end = run(&program(&rows), &c, Pacing::Recorded, &mut (), &AtomicBool::new(false));
    assert!(matches!(end, Err(BlockReplayError::Config(why)) if why.contains("nonsense")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every bio is done once, not before it was queued; the device sees every sector once; the same again is the same.
    #[test]
    fn bios_and_bytes_are_conserved(
        wishes in prop::collection::vec((0..3000i64, any::<bool>(), 0..500i64, 1..300i64, 0..4i64), 1..120),
        policy in 0..8usize, slots in 2..40u32, closed in any::<bool>(), null in any::<bool>(), old in any::<bool>(),
        plugs in any::<bool>(),
    ) {
        let policy =
            ["none", "mq-deadline", "kyber", "linus-2.4", "bfq", "cfq", "anticipatory", "deadline-2.6"][policy];
        let mut c = modern(policy);
        c.queue.slots = slots;
        c.queue.plugging = old;
        c.queue.max_sectors = 128;
        if null {
            c.device = DeviceConfig::Null { queue_depth: 4 };
        }
        let mut at = 0;
        let mut rows = Vec::new();
        for (gap, write, place, nr, pid) in wishes {
            at += gap;
            rows.push(row(at, "Q", if write { "WS" } else { "R" }, place * 8, nr, pid));
            if plugs {
                rows.push(bare(at, "P", pid));
            }
            rows.push(row(at + 300, "C", if write { "WS" } else { "R" }, place * 8, nr, 0));
        }
        rows.sort_by_key(|r| r.time_ns);
        let p = program(&rows);
        let pacing = if closed { Pacing::Closed } else { Pacing::Recorded };
        let (seen, end) = play(&p, &c, pacing);
        prop_assert!(end.finished, "{:?}", end);
        prop_assert_eq!(seen.bios.len(), p.actions.len());
        let mut done: Vec<u32> = seen.bios.iter().map(|b| b.action).collect();
        done.sort_unstable();
        prop_assert!(done.iter().enumerate().all(|(k, &a)| a as usize == k));
        prop_assert!(seen.bios.iter().all(|b| b.q <= b.c && b.slept <= b.c - b.q));
        let asked: u64 = p.actions.iter().map(|a| u64::from(a.nr)).sum();
        let served: u64 = seen.requests.iter().map(|r| u64::from(r.nr)).sum();
        prop_assert_eq!(asked, served);
        prop_assert!(seen.requests.iter().all(|r| r.nr <= 128 && r.q <= r.i && r.i <= r.d && r.d <= r.c));
        let (again, _) = play(&p, &c, pacing);
        prop_assert_eq!(again.requests, seen.requests);
    }
}

#[test]
fn the_lock_up_of_0_01_needs_a_command_in_service() {
    let config = |hits: Vec<u64>| {
        let mut c: Config = toml::from_str(include_str!("../../tests/fixtures/block/variant.toml")).expect("fixture");
        c.elevator.policy = "linux-0.01".to_owned();
        c.elevator.irq_during_sort = hits;
        c.queue.head_active = true;
        c.queue.plugging = false;
        c
    };
    // Each read comes when the one before is done long since, but for the third, which comes while the second is served.
    let rows: Vec<_> =
        [0, 1_000_000, 1_000_100, 2_000_000].into_iter().map(|us| row(us, "Q", "R", us, 8, us)).collect();
    let done = |hits: Vec<u64>| {
        let (seen, end) = play(&program(&rows), &config(hits), Pacing::Recorded);
        (seen.bios.len(), end.finished)
    };
    assert_eq!(done(vec![1]), (4, true), "the disk idles at submission 1: no interrupt meets it");
    assert_eq!(done(vec![2]), (2, false), "at submission 2 it works: nothing is started any more");
}

#[test]
fn plugs_without_a_device_count_for_their_task() {
    // As blktrace prints them, and as ftrace does.
    let rows = |dev: Option<i64>| {
        let bare = |us, action, pid| BlockRow { dev, ..bare(us, action, pid) };
        [
            row(0, "Q", "W", 0, 8, 1),
            bare(1, "P", 1),
            row(2, "Q", "W", 8, 8, 1),
            row(5, "Q", "R", 900, 8, 2),
            row(30, "Q", "W", 16, 8, 1),
            bare(90, "U", 1),
        ]
    };
    let (named, unnamed) = (program(&rows(Some(8 << 20))), program(&rows(None)));
    assert_eq!(named.actions, unnamed.actions);
    assert_eq!((unnamed.actions[3].hold_ns, unnamed.devices.len()), (60_000, 1));
}
