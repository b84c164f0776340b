//! Requests per second through queue, elevator and device, one core.
//!
//! `cargo bench -p kreplay-replay --bench block`. The null device with noop measures the queue alone; the rotating
//! device is kept 128 requests deep, which is where an elevator that scans its list pays.

use divan::Bencher;
use divan::counter::ItemsCount;
use kreplay_replay::block::{Bio, BioKind, BlockLayer, Dir, Submit, policies};
use kreplay_replay::blockreplay;
use kreplay_replay::config::{Config, DeviceConfig, WakeRule};
use kreplay_replay::program::DeviceInfo;
use kreplay_replay::sim::Pacing;
use kreplay_traces::event::BlockRow;
use kreplay_traces::units::{Nanos, Sectors};
use std::sync::atomic::AtomicBool;

const REQUESTS: u64 = 100_000;

fn main() {
    divan::main();
}

fn config(policy: &str, slots: u32) -> Config {
    let mut c: Config = toml::from_str(include_str!("../tests/fixtures/block/variant.toml")).expect("fixture");
    c.elevator.policy = policy.to_owned();
    c.queue.slots = slots;
    c
}

fn layer(config: &Config) -> BlockLayer {
    let disk = DeviceInfo { name: "hda".to_owned(), sectors: Sectors(1 << 32), partitions: vec![Sectors(0)] };
    BlockLayer::new(config, &[disk]).expect("config")
}

/// Scattered, so that hardly anything merges: a multiplicative walk over 2^32 sectors.
fn bio(k: u64) -> Bio {
    let sector = (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36) * 16;
    let dir = if k.is_multiple_of(2) { Dir::Read } else { Dir::Write };
    Bio { dir, sector: Sectors(sector), nr: 8, partition: 0, kind: BioKind::Data, tag: k as u32, task: 0 }
}

/// Keeps `depth` requests queued until `REQUESTS` are done.
fn run(layer: &mut BlockLayer, depth: usize) -> Nanos {
    let (mut now, mut next, mut bios) = (Nanos::ZERO, 0, Vec::with_capacity(64));
    let mut done = 0;
    while done < REQUESTS {
        while next < REQUESTS && layer.queue_len(0) < depth {
            if layer.submit(0, bio(next), now) == Submit::Full {
                break;
            }
            next += 1;
        }
        layer.unplug_all();
        if layer.in_flight() == 0
            && let Some(at) = layer.timer()
        {
            now = now.max(at);
        }
        while let Some(s) = layer.start(now) {
            now = s.done_at;
            done += u64::from(layer.complete(s.dev, s.rq, now, &mut bios).bios);
            if layer.queue_len(0) < depth && next < REQUESTS {
                break;
            }
        }
    }
    now
}

#[divan::bench]
fn noop_on_null(bencher: Bencher) {
    let mut c = config("noop-2.4", 1024);
    c.device = DeviceConfig::Null { queue_depth: 1 };
    bencher.counter(ItemsCount::new(REQUESTS)).with_inputs(|| layer(&c)).bench_local_refs(|layer| run(layer, 1));
}

/// Every registered scheduler that this load cannot lock up, on a device of its time.
fn schedulers() -> impl Iterator<Item = &'static str> {
    policies().iter().map(|p| p.name).filter(|n| !n.starts_with("linux-0.01"))
}

#[divan::bench(args = schedulers())]
fn rotating_128_deep(bencher: Bencher, policy: &str) {
    let mut c = config(policy, 1024);
    if policies().iter().any(|p| p.name == policy && p.idles) {
        // Idling is for processes that ask one by one; this load would make them time out for ever.
        c.elevator.cfq.slice_idle_ms = 0;
        c.elevator.bfq.slice_idle_ms = 0;
        c.elevator.anticipatory.antic_expire_us = 0;
    }
    bencher.counter(ItemsCount::new(REQUESTS)).with_inputs(|| layer(&c)).bench_local_refs(|layer| run(layer, 128));
}

/// Tags, plug lists and write-back throttling, as a queue of 6.1 has them.
#[divan::bench]
fn mq_deadline_with_tags_plugs_and_wbt(bencher: Bencher) {
    let mut c = config("mq-deadline", 256);
    c.queue.wake = WakeRule::Tags;
    c.queue.plugging = false;
    c.queue.task_plugs = true;
    c.queue.head_active = false;
    c.queue.wbt.min_lat_us = 75_000;
    bencher.counter(ItemsCount::new(REQUESTS)).with_inputs(|| layer(&c)).bench_local_refs(|layer| run(layer, 128));
}

/// 128 processes, each of which queues its next bio when its last one is done, as block events.
fn events() -> Vec<BlockRow<'static>> {
    const TASKS: u64 = 128;
    let row = |action, k: u64, at: u64| {
        let b = bio(k);
        BlockRow {
            time_ns: at as i64 * 1000,
            action,
            rwbs: if b.dir == Dir::Read { "R" } else { "WS" },
            sector_512: Some(b.sector.get() as i64),
            len_bytes: Some(i64::from(b.nr) * 512),
            pid: Some((k % TASKS) as i64),
            ..BlockRow::default()
        }
    };
    (0..REQUESTS)
        .flat_map(|k| [k.checked_sub(TASKS).map(|done| row("C", done, k)), Some(row("Q", k, k))])
        .flatten()
        .collect()
}

/// A whole replay of a block trace, compiled before: tasks, queue, elevator, device, per-bio records.
#[divan::bench(args = [("noop-2.4", true), ("linus-2.4", false), ("mq-deadline", false)])]
fn replay_of_a_trace(bencher: Bencher, (policy, null): (&str, bool)) {
    let program = blockreplay::compile("bench", &[], events().as_slice()).expect("in memory");
    let mut c = config(policy, 1024);
    c.queue.plugging = false;
    if null {
        c.device = DeviceConfig::Null { queue_depth: 1 };
    }
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        blockreplay::run(&program, &c, Pacing::Closed, &mut (), &AtomicBool::new(false)).expect("runs")
    });
}
