//! The worked examples of the elevators (mixed stream, read behind a write flood) and the queue's rules.

use kreplay_traces::units::{Nanos, Sectors};

use super::{Bio, BioKind, BlockLayer, ConfigError, Dir, Submit};
use crate::config::Config;
use crate::program::DeviceInfo;

/// A small variant: one disk, linus-2.4, plugged, 128 slots.
pub(super) fn config(policy: &str) -> Config {
    let text = include_str!("../../tests/fixtures/block/variant.toml");
    let mut config: Config = toml::from_str(text).expect("fixture");
    config.elevator.policy = policy.to_owned();
    config
}

pub(super) fn disks(n: usize) -> Vec<DeviceInfo> {
    (0..n)
        .map(|i| DeviceInfo { name: format!("hd{i}"), sectors: Sectors(4_000_000), partitions: vec![Sectors(0)] })
        .collect()
}

fn bio(dir: Dir, sector: u64, tag: u32) -> Bio {
    Bio { dir, sector: Sectors(sector), nr: 8, partition: 0, kind: BioKind::Data, tag, task: 0 }
}

/// Submits all at time 0, runs the disk empty, and returns each request's bios by tag.
fn drain(layer: &mut BlockLayer) -> Vec<Vec<u32>> {
    layer.unplug_all();
    let (mut now, mut bios, mut out) = (Nanos::ZERO, Vec::new(), Vec::new());
    while let Some(s) = layer.start(now) {
        now = s.done_at;
        layer.complete(s.dev, s.rq, now, &mut bios);
        out.push(bios.iter().map(|b| b.tag).collect());
    }
    out
}

fn stream(text: &[(Dir, u64)], policy: &str) -> Vec<Vec<u32>> {
    stream_with(text, &config(policy))
}

fn stream_with(text: &[(Dir, u64)], config: &Config) -> Vec<Vec<u32>> {
    let mut layer = BlockLayer::new(config, &disks(1)).expect("config");
    for (tag, &(dir, sector)) in text.iter().enumerate() {
        assert_ne!(layer.submit(0, bio(dir, sector, tag as u32), Nanos::ZERO), Submit::Full);
    }
    drain(&mut layer)
}

const MIXED: [(Dir, u64); 10] = [
    (Dir::Write, 1000),
    (Dir::Write, 2000),
    (Dir::Write, 1500),
    (Dir::Write, 1008),
    (Dir::Write, 1024),
    (Dir::Write, 1016),
    (Dir::Read, 500),
    (Dir::Write, 992),
    (Dir::Read, 1700),
    (Dir::Read, 2500),
];

#[test]
fn linus_merges_sorts_and_leaves_the_low_read_last() {
    // 5 joins 4 in front, which closes the gap: 4 is absorbed by 0.
    assert_eq!(stream(&MIXED, "linus-2.4"), [vec![7, 0, 3, 5, 4], vec![2], vec![8], vec![1], vec![9], vec![6]]);
}

#[test]
fn noop_keeps_the_order_of_arrival() {
    assert_eq!(stream(&MIXED, "noop-2.4"), [vec![7, 0, 3], vec![1], vec![2], vec![5, 4], vec![6], vec![8], vec![9]]);
}

#[test]
fn linux_2_2_puts_the_low_read_first_while_plugged() {
    // 5 joins 0 at its end here, which closes the gap to 4.
    assert_eq!(stream(&MIXED, "linux-2.2.20"), [vec![6], vec![7, 0, 3, 5, 4], vec![2], vec![8], vec![1], vec![9]]);
}

/// Twelve writes, a read below all of them, six writes in between.
fn flood() -> Vec<(Dir, u64)> {
    let mut text: Vec<_> = (0..12).map(|i| (Dir::Write, 10_000 + 1000 * i)).collect();
    text.push((Dir::Read, 50));
    text.extend((0..6).map(|i| (Dir::Write, 10_500 + 1000 * i)));
    text
}

#[test]
fn a_read_below_a_write_flood_is_served_last() {
    let order = stream(&flood(), "linus-2.4");
    assert_eq!(order.len(), 19);
    assert_eq!(order.last(), Some(&vec![12]));
}

#[test]
fn promotion_puts_that_read_behind_six_writes() {
    for policy in ["read-latency", "read-latency2", "read-latency2-rh", "read-latency2-2.4.32"] {
        let mut cfg = config(policy);
        cfg.elevator.max_bomb_segments = 6;
        let order = stream_with(&flood(), &cfg);
        assert_eq!(order[6], [12], "{policy}");
        assert!(order[..6].iter().flatten().all(|&w| w < 6), "{policy}: later writes go behind it");
    }
    assert_eq!(stream(&flood(), "linux-2.2.20")[0], [12]);
}

#[test]
fn linux_0_01_sorts_behind_the_second_request() {
    let text = [1000, 5000, 500, 3000, 400, 9000, 4600, 600].map(|s| (Dir::Write, s));
    let mut cfg = config("linux-0.01");
    cfg.queue.plugging = false;
    assert_eq!(stream_with(&text, &cfg).concat(), [0, 1, 4, 2, 7, 3, 6, 5]);
}

#[test]
fn linux_0_01_locks_up_when_the_interrupt_meets_the_sorting() {
    let text = [1000, 5000, 500].map(|s| (Dir::Write, s));
    for (policy, served) in [("linux-0.01", 1), ("linux-0.01-fixed", 3)] {
        let mut cfg = config(policy);
        cfg.queue.plugging = false;
        cfg.elevator.irq_during_sort = vec![2];
        let mut layer = BlockLayer::new(&cfg, &disks(1)).expect("config");
        let mut first = None;
        for (tag, &(dir, sector)) in text.iter().enumerate() {
            layer.submit(0, bio(dir, sector, tag as u32), Nanos::ZERO);
            first = first.or(layer.start(Nanos::ZERO));
        }
        let s = first.expect("started");
        layer.complete(0, s.rq, s.done_at, &mut Vec::new());
        assert_eq!(1 + drain(&mut layer).len(), served, "{policy}");
        assert_eq!(layer.hung(0), served == 1, "{policy}");
    }
}

#[test]
fn the_head_in_service_is_not_merged_with() {
    let mut layer = BlockLayer::new(&config("linus-2.4"), &disks(1)).expect("config");
    let first = layer.submit(0, bio(Dir::Write, 1000, 0), Nanos::ZERO);
    assert!(matches!(first, Submit::Queued(_)));
    assert!(layer.start(Nanos::ZERO).is_none(), "plugged");
    assert!(layer.any_plugged());
    layer.unplug_all();
    let s = layer.start(Nanos::ZERO).expect("unplugged");
    assert!(matches!(layer.submit(0, bio(Dir::Write, 1008, 1), Nanos(1)), Submit::Queued(_)));
    assert!(layer.start(Nanos(1)).is_none(), "one request at a time");
    let mut bios = Vec::new();
    let rec = layer.complete(s.dev, s.rq, s.done_at, &mut bios);
    assert_eq!((rec.nr, rec.bios, rec.q, rec.d, rec.c), (8, 1, Nanos(0), Nanos(0), s.done_at));
    assert_eq!(layer.queue_len(0), 1);
    assert!(layer.start(s.done_at).is_some());
}

#[test]
fn reads_and_writes_have_their_own_slots_and_sleepers_are_woken_newest_first() {
    let mut cfg = config("linus-2.4");
    cfg.queue.slots = 8;
    cfg.queue.batch_divisor = 4;
    let mut layer = BlockLayer::new(&cfg, &disks(1)).expect("config");
    let write = |k: u64| bio(Dir::Write, 1000 * (k + 1), k as u32);
    for k in 0..4 {
        assert!(matches!(layer.submit(0, write(k), Nanos::ZERO), Submit::Queued(_)));
    }
    for k in 4..6 {
        assert_eq!(layer.submit(0, write(k), Nanos::ZERO), Submit::Full);
        layer.wait_slot(0, Dir::Write, k as u32);
    }
    assert!(!layer.any_plugged(), "a sleeper unplugs");
    assert!(matches!(layer.submit(0, bio(Dir::Read, 5, 90), Nanos::ZERO), Submit::Queued(_)));
    let mut bios = Vec::new();
    for woken in [vec![], vec![5, 4]] {
        let s = layer.start(Nanos::ZERO).expect("work");
        layer.complete(0, s.rq, s.done_at, &mut bios);
        assert_eq!(std::iter::from_fn(|| layer.next_wake()).collect::<Vec<_>>(), woken);
    }
    assert!(matches!(layer.retry(0, write(5), 5, Nanos(1)), Submit::Queued(_)));
    assert!(matches!(layer.submit(0, write(9), Nanos(1)), Submit::Queued(_)), "a newcomer overtakes");
    assert_eq!(layer.retry(0, write(4), 4, Nanos(1)), Submit::Full);
    assert_eq!(layer.slot_waiters(0), 1);
}

#[test]
fn disks_on_one_channel_take_turns() {
    let mut cfg = config("noop-2.4");
    let crate::config::DeviceConfig::Rotating { ref mut shared_channel, .. } = cfg.device else { panic!("fixture") };
    *shared_channel = true;
    let mut layer = BlockLayer::new(&cfg, &disks(2)).expect("config");
    for k in 0..4 {
        for dev in 0..2 {
            layer.submit(dev, bio(Dir::Read, 10_000 * k, 0), Nanos::ZERO);
        }
    }
    layer.unplug_all();
    let (mut now, mut served, mut bios) = (Nanos::ZERO, Vec::new(), Vec::new());
    while let Some(s) = layer.start(now) {
        assert!(layer.start(now).is_none(), "the channel is busy");
        now = s.done_at;
        layer.complete(s.dev, s.rq, now, &mut bios);
        served.push(s.dev);
    }
    assert_eq!(served.len(), 8);
    assert_eq!(served.iter().filter(|&&d| d == 0).count(), 4);
    assert!(served[..4].contains(&0) && served[..4].contains(&1));
    assert_eq!(now, Nanos(layer.device_busy(0).get() + layer.device_busy(1).get()));
}

#[test]
fn rotating_disk_follows_its_formula() {
    let mut cfg = config("noop-2.4");
    cfg.queue.plugging = false;
    let mut layer = BlockLayer::new(&cfg, &disks(1)).expect("config");
    let mut serve = |sector: u64, now: u64| {
        layer.submit(0, bio(Dir::Read, sector, 0), Nanos(now));
        let s = layer.start(Nanos(now)).expect("free");
        layer.complete(0, s.rq, s.done_at, &mut Vec::new());
        s.done_at.get() - now
    };
    // 0.1 ms overhead, 8 sectors at 20 MB/s = 204.8 us, no gap.
    assert_eq!(serve(0, 0), 304_800);
    // A gap of 256 sectors is read over: 131 072 bytes at 20 MB/s.
    assert_eq!(serve(8 + 256, 1_000_000), 304_800 + 6_553_600);
    // One sector more is a seek: 1 ms + 9 ms x sqrt(distance / 2 GiB) + 4.17 ms.
    let far = 8 + 256 + 8 + 4096;
    let seek = 1_000_000 + (9_000_000.0 * (4096.0f64 / 4_194_304.0).sqrt()).round() as u64 + 4_170_000;
    assert_eq!(serve(far, 20_000_000), 304_800 + seek);
    // Backwards too.
    let seek = 1_000_000 + (9_000_000.0 * ((far + 8) as f64 / 4_194_304.0).sqrt()).round() as u64 + 4_170_000;
    assert_eq!(serve(0, 40_000_000), 304_800 + seek);
}

#[test]
fn a_misspelt_elevator_is_named_with_a_hint() {
    let err = BlockLayer::new(&config("linus-2.3"), &disks(1)).expect_err("unknown");
    assert!(matches!(&err, ConfigError::UnknownElevator { .. }));
    assert!(err.to_string().contains("did you mean \"linus-2.4"), "{err}");
    let mut cfg = config("linus-2.4");
    cfg.queue.max_sectors = 0;
    let err = BlockLayer::new(&cfg, &disks(1)).expect_err("zero");
    assert!(err.to_string().contains("queue.max-sectors"), "{err}");
}
