//! Worked examples of the schedulers that no recorded decisions are at hand for, and of what comes before them.

use kreplay_traces::units::{Nanos, Sectors};

use super::tests::{config, disks};
use super::{Bio, BioKind, BlockLayer, Cause, Dir, Hints, IoClass, Started, Submit};
use crate::config::{Config, WakeRule};

fn bio(dir: Dir, sector: u64, tag: u32, task: u32) -> Bio {
    Bio { dir, sector: Sectors(sector), nr: 8, partition: 0, kind: BioKind::Data, tag, task }
}

fn layer(config: &Config) -> BlockLayer {
    BlockLayer::new(config, &disks(1)).expect("config")
}

/// Submits all at time 0, unplugs, runs the disk empty; each request's bios by tag.
fn order(config: &Config, text: &[(Dir, u64, u32)]) -> Vec<Vec<u32>> {
    let mut layer = layer(config);
    for (tag, &(dir, sector, task)) in text.iter().enumerate() {
        assert_ne!(layer.submit(0, bio(dir, sector, tag as u32, task), Nanos::ZERO), Submit::Full);
    }
    layer.unplug_all();
    let (mut now, mut bios, mut out) = (Nanos::ZERO, Vec::new(), Vec::new());
    loop {
        let Some(s) = layer.start(now) else {
            match layer.timer() {
                Some(t) if layer.queue_len(0) > 0 => now = now.max(t),
                _ => return out,
            }
            continue;
        };
        now = s.done_at;
        layer.complete(0, s.rq, now, &mut bios);
        out.push(bios.iter().map(|b| b.tag).collect());
    }
}

/// Writes that merge and close a gap, reads between them; as in the tests of the executed elevators.
fn mixed() -> Vec<(Dir, u64, u32)> {
    use Dir::{Read, Write};
    let places = [
        (Write, 1000),
        (Write, 2000),
        (Write, 1500),
        (Write, 1008),
        (Write, 1024),
        (Write, 1016),
        (Read, 500),
        (Write, 992),
        (Read, 1700),
        (Read, 2500),
    ];
    places.map(|(d, s)| (d, s, 0)).to_vec()
}

#[test]
fn linus_2_4_0_sorts_all_the_way_to_the_head() {
    let c = config("linus-2.4.0");
    assert_eq!(order(&c, &mixed()), [vec![6], vec![7, 0, 3, 5, 4], vec![2], vec![8], vec![1], vec![9]]);
}

#[test]
fn linus_2_4_1_puts_a_write_behind_the_next_higher_one() {
    let c = config("linus-2.4.1");
    let want = [vec![7, 0, 3], vec![1], vec![2], vec![5, 4], vec![6], vec![8], vec![9]];
    assert_eq!(order(&c, &mixed()), want);
}

#[test]
fn linux_2_2_16_keeps_writes_small_while_a_read_waits() {
    let mut c = config("linux-2.2.16");
    c.elevator.read_latency = 128;
    c.elevator.write_latency = 8192;
    c.elevator.max_bomb_segments = 4;
    // 7 would join the four segments at 1000, were there not the read 6.
    let want = [vec![6], vec![7], vec![0, 3, 5, 4], vec![2], vec![8], vec![1], vec![9]];
    assert_eq!(order(&c, &mixed()), want);
    c.elevator.max_bomb_segments = 5;
    assert_eq!(order(&c, &mixed())[1], [7, 0, 3, 5, 4]);
}

#[test]
fn linux_2_2_16_never_lets_more_segments_ahead_than_its_latency() {
    let mut c = config("linux-2.2.16");
    c.elevator.read_latency = 3;
    c.elevator.write_latency = 8192;
    let mut text: Vec<_> = (0..6).map(|k| (Dir::Write, 1000 * (k + 1), 0)).collect();
    // In order it would come last; with three segments of patience it goes to where the walk began, behind the plug.
    text.push((Dir::Read, 90_000, 0));
    assert_eq!(order(&c, &text)[0], [6]);
    c.elevator.read_latency = 100;
    assert_eq!(order(&c, &text)[6], [6]);
}

#[test]
fn the_second_race_of_0_01_loses_a_request() {
    for (policy, served) in [("linux-0.01", 1), ("linux-0.01-fixed", 2)] {
        let mut c = config(policy);
        c.queue.plugging = false;
        c.elevator.irq_after_head_load = vec![1];
        let mut layer = layer(&c);
        let mut started = None;
        for (tag, sector) in [1000, 5000, 500].into_iter().enumerate() {
            layer.submit(0, bio(Dir::Write, sector, tag as u32, 0), Nanos::ZERO);
            started = started.or_else(|| layer.start(Nanos::ZERO));
        }
        let (mut tags, mut bios) = (Vec::new(), Vec::new());
        while let Some(s) = started {
            layer.complete(0, s.rq, s.done_at, &mut bios);
            tags.extend(bios.iter().map(|b| b.tag));
            started = layer.start(s.done_at);
        }
        assert_eq!(tags, [0, 2][..served], "{policy}: 1 hangs on an element that was freed");
        assert_eq!(layer.hung(0), served == 1, "{policy}");
    }
}

#[test]
fn the_anticipatory_scheduler_waits_for_the_next_read_of_a_process() {
    let mut c = config("anticipatory");
    c.queue.plugging = false;
    let mut layer = layer(&c);
    let mut bios = Vec::new();
    layer.submit(0, bio(Dir::Read, 0, 0, 1), Nanos::ZERO);
    let first = layer.start(Nanos::ZERO).expect("free");
    layer.submit(0, bio(Dir::Read, 1_000_000, 1, 2), Nanos(1));
    let t = first.done_at;
    layer.complete(0, first.rq, t, &mut bios);
    assert!(layer.start(t).is_none(), "the other process is far away");
    assert_eq!(layer.timer(), Some(t + Nanos::from_millis(6)));
    let t = t + Nanos::from_millis(1);
    layer.submit(0, bio(Dir::Read, 8, 2, 1), t);
    let second = layer.start(t).expect("what it waited for");
    layer.complete(0, second.rq, second.done_at, &mut bios);
    assert_eq!(bios[0].tag, 2);
    assert!(layer.start(second.done_at).is_none());
    let over = layer.timer().expect("waits again");
    assert!(layer.start(over - Nanos(1)).is_none());
    let third = layer.start(over).expect("nothing came");
    layer.complete(0, third.rq, third.done_at, &mut bios);
    assert_eq!(bios[0].tag, 1);
}

#[test]
fn cfq_of_2_6_12_takes_one_request_of_each_process_a_round() {
    let c = config("cfq-2.6.12");
    let text = [(Dir::Read, 5000, 0), (Dir::Read, 6000, 0), (Dir::Read, 100, 1), (Dir::Read, 3000, 2)];
    // Newcomers go first; the dispatch list sweeps on from 3000 and wraps to 100; then the rest of the quantum.
    assert_eq!(order(&c, &text), [[3], [2], [0], [1]]);
}

/// Processes that read sequentially, each asking for its next 4 KiB when it has the last; who was served, in order.
fn readers(config: &Config, starts: &[(u64, Hints)], requests: usize) -> Vec<u32> {
    let mut c = config.clone();
    c.queue.plugging = false;
    let mut layer = layer(&c);
    let mut next: Vec<u64> = starts.iter().map(|s| s.0).collect();
    let (mut now, mut flying, mut bios) = (Nanos::ZERO, Vec::<Started>::new(), Vec::new());
    let mut served = Vec::new();
    let mut submit = |layer: &mut BlockLayer, task: usize, now: Nanos| {
        let hints = starts[task].1;
        let outcome = layer.submit_as(0, bio(Dir::Read, next[task], 0, task as u32), hints, now);
        assert!(matches!(outcome, Submit::Queued(_)));
        next[task] += 8;
    };
    for task in 0..starts.len() {
        submit(&mut layer, task, now);
    }
    while served.len() < requests {
        while let Some(s) = layer.start(now) {
            flying.push(s);
        }
        if flying.is_empty() {
            now = now.max(layer.timer().expect("it waits for something"));
            continue;
        }
        let s = flying.remove(0);
        now = now.max(s.done_at);
        layer.complete(0, s.rq, now, &mut bios);
        let task = bios[0].task;
        served.push(task);
        submit(&mut layer, task as usize, now);
    }
    served
}

fn mean_run(served: &[u32]) -> usize {
    served.len() / (1 + served.windows(2).filter(|w| w[0] != w[1]).count())
}

fn share(served: &[u32], task: u32) -> f64 {
    served.iter().filter(|&&t| t == task).count() as f64 / served.len() as f64
}

#[test]
fn schedulers_with_a_view_of_processes_do_not_seesaw_between_readers() {
    let starts = [(0, Hints::default()), (2_000_000, Hints::default())];
    for policy in ["noop-2.4", "deadline-2.6", "mq-deadline", "kyber"] {
        assert_eq!(mean_run(&readers(&config(policy), &starts, 400)), 1, "{policy}");
    }
    for policy in ["anticipatory", "cfq", "bfq"] {
        let mut c = config(policy);
        // While all are raised, BFQ waits for nobody.
        c.elevator.bfq.low_latency = false;
        let served = readers(&c, &starts, 10_000);
        assert!(mean_run(&served) >= 50, "{policy}: {}", mean_run(&served));
        let first = share(&served, 0);
        assert!((0.35..0.65).contains(&first), "{policy}: {first}");
    }
}

#[test]
fn priorities_decide_the_shares() {
    let level = |level| Hints { level, ..Hints::default() };
    let starts = [(0, level(0)), (2_000_000, level(7))];
    // Slices of 180 and 40 ms, less what a change of place costs.
    let cfq = share(&readers(&config("cfq"), &starts, 20_000), 0);
    assert!((0.75..0.88).contains(&cfq), "{cfq}");
    // Weights of 80 and 10.
    let bfq = share(&readers(&config("bfq"), &starts, 40_000), 0);
    assert!((0.82..0.95).contains(&bfq), "{bfq}");
    let class = |class| Hints { class, ..Hints::default() };
    for policy in ["cfq", "bfq"] {
        let starts = [(0, class(IoClass::RealTime)), (2_000_000, class(IoClass::BestEffort))];
        let real_time = share(&readers(&config(policy), &starts, 5_000), 0);
        assert!(real_time > 0.95, "{policy}: {real_time}");
    }
}

#[test]
fn asynchronous_writes_make_way_for_reads() {
    for policy in ["cfq", "bfq"] {
        let mut layer = layer(&config(policy));
        for tag in 0..8 {
            layer.submit(0, bio(Dir::Write, 1000 * u64::from(tag + 1), tag, 9), Nanos::ZERO);
        }
        layer.unplug_all();
        let mut started = layer.start(Nanos::ZERO);
        for tag in 8..12 {
            layer.submit(0, bio(Dir::Read, 200_000 + 1000 * u64::from(tag), tag, 1), Nanos(1));
        }
        let (mut now, mut bios, mut order) = (Nanos(1), Vec::new(), Vec::new());
        while order.len() < 12 {
            match started {
                Some(s) => {
                    now = s.done_at;
                    layer.complete(0, s.rq, now, &mut bios);
                    order.push(bios[0].tag);
                }
                None => now = now.max(layer.timer().expect("it waits for something")),
            }
            started = layer.start(now);
        }
        assert_eq!(order[..5], [0, 8, 9, 10, 11], "{policy}: {order:?}");
    }
}

#[test]
fn the_anticipatory_scheduler_begins_with_reads() {
    let mut text: Vec<_> = (0..8).map(|k| (Dir::Write, 1000 * (k + 1), 9)).collect();
    text.extend((0..4).map(|k| (Dir::Read, 200_000 + 1000 * k, 1)));
    assert_eq!(order(&config("anticipatory"), &text).concat()[..4], [8, 9, 10, 11]);
}

fn plugs(policy: &str) -> Config {
    let mut c = config(policy);
    c.queue.plugging = false;
    c.queue.task_plugs = true;
    c.queue.head_active = false;
    c.queue.wake = WakeRule::Tags;
    c.queue.slots = 64;
    c.queue.max_sectors = 2560;
    let crate::config::DeviceConfig::Rotating { ref mut queue_depth, .. } = c.device else { panic!("fixture") };
    // Without a scheduler the device's tags are all the slots there are.
    *queue_depth = if policy == "none" { 64 } else { 1 };
    c
}

fn drain(layer: &mut BlockLayer) -> Vec<Vec<u32>> {
    let (mut now, mut bios, mut out) = (Nanos::ZERO, Vec::new(), Vec::new());
    while let Some(s) = layer.start(now) {
        now = s.done_at;
        layer.complete(0, s.rq, now, &mut bios);
        out.push(bios.iter().map(|b| b.tag).collect());
    }
    out
}

#[test]
fn a_finished_plug_list_without_a_scheduler_is_issued_backwards() {
    let submit = |layer: &mut BlockLayer| {
        for tag in 0..4 {
            layer.submit(0, bio(Dir::Read, 1000 * u64::from(tag), tag, 7), Nanos::ZERO);
        }
        assert!(layer.start(Nanos::ZERO).is_none() && layer.any_plugged());
    };
    let mut finished = layer(&plugs("none"));
    submit(&mut finished);
    finished.finish_plug(7, Nanos::ZERO);
    assert_eq!(drain(&mut finished), [[3], [2], [1], [0]]);
    let mut slept = layer(&plugs("none"));
    submit(&mut slept);
    slept.unplug_all();
    assert_eq!(drain(&mut slept), [[0], [1], [2], [3]]);
}

#[test]
fn plug_lists_merge_with_their_newest_and_go_down_when_full_or_large() {
    let mut layer = layer(&plugs("none"));
    // 32 KiB each: four make 128 KiB, and the next one sends the list down.
    let piece = |k: u64| Bio { nr: 64, ..bio(Dir::Read, 64 * k, k as u32, 1) };
    assert!(matches!(layer.submit(0, piece(0), Nanos::ZERO), Submit::Queued(_)));
    assert!((1..4).all(|k| matches!(layer.submit(0, piece(k), Nanos::ZERO), Submit::Merged(_))));
    assert!(layer.start(Nanos::ZERO).is_none());
    assert!(matches!(layer.submit(0, piece(9), Nanos::ZERO), Submit::Queued(_)));
    assert!(layer.start(Nanos::ZERO).is_some(), "256 sectors went down before the next request");
    let mut layer = self::layer(&plugs("none"));
    for k in 0..33u32 {
        assert!(layer.start(Nanos::ZERO).is_none());
        layer.submit(0, bio(Dir::Read, 1000 * u64::from(k), k, 1), Nanos::ZERO);
    }
    assert!(layer.start(Nanos::ZERO).is_some(), "the 33rd sends 32 down");
}

#[test]
fn what_a_plug_list_brings_is_appended_to_queued_requests() {
    let mut layer = layer(&plugs("mq-deadline"));
    layer.submit(0, bio(Dir::Write, 100, 0, 1), Nanos::ZERO);
    layer.finish_plug(1, Nanos::ZERO);
    // When it is submitted, it has no neighbour; when its list goes down, it continues what has grown by then.
    layer.submit(0, bio(Dir::Write, 116, 1, 2), Nanos::ZERO);
    layer.submit(0, bio(Dir::Write, 500, 2, 2), Nanos::ZERO);
    layer.submit(0, bio(Dir::Write, 108, 3, 3), Nanos::ZERO);
    assert_eq!(layer.queue_len(0), 1);
    layer.finish_plug(2, Nanos::ZERO);
    assert_eq!(drain(&mut layer), [vec![0, 3, 1], vec![2]]);
}

#[test]
fn throttled_writers_wait_and_come_back() {
    let mut c = plugs("mq-deadline");
    c.queue.task_plugs = false;
    c.queue.wbt.min_lat_us = 75_000;
    let mut layer = layer(&c);
    let mut asleep = Vec::new();
    for tag in 0..6u32 {
        // One command at a time: a depth of two, one of it in the background.
        let b = bio(Dir::Write, 10_000 * u64::from(tag + 1), tag, tag);
        if layer.submit(0, b, Nanos::ZERO) == Submit::Full {
            layer.wait_slot(0, Dir::Write, tag);
            asleep.push(tag);
        }
    }
    assert_eq!(asleep, [2, 3, 4, 5]);
    assert_eq!(layer.slot_waiters(0), 4);
    let read = bio(Dir::Read, 5, 90, 90);
    assert_ne!(layer.submit(0, read, Nanos::ZERO), Submit::Full, "reads go past it");
    let direct = Hints { cause: Cause::Direct, ..Hints::default() };
    assert_ne!(layer.submit_as(0, bio(Dir::Write, 7_000_000, 91, 91), direct, Nanos::ZERO), Submit::Full);
    let (mut now, mut bios, mut done) = (Nanos::ZERO, Vec::new(), Vec::new());
    while let Some(s) = layer.start(now) {
        now = s.done_at;
        layer.complete(0, s.rq, now, &mut bios);
        done.extend(bios.iter().map(|b| b.tag));
        while let Some(w) = layer.next_wake() {
            let b = bio(Dir::Write, 10_000 * u64::from(w + 1), w, w);
            assert!(matches!(layer.retry(0, b, w, now), Submit::Queued(_)));
        }
    }
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 3, 4, 5, 90, 91]);
}

#[test]
fn kyber_leaves_a_quarter_of_the_tags_to_synchronous_requests() {
    let mut c = plugs("kyber");
    c.queue.task_plugs = false;
    let mut layer = layer(&c);
    let taken = |layer: &mut BlockLayer, dir: Dir, from: u32| {
        (from..from + 100)
            .take_while(|&k| layer.submit(0, bio(dir, 1000 * u64::from(k), k, 0), Nanos::ZERO) != Submit::Full)
            .count()
    };
    assert_eq!(taken(&mut layer, Dir::Write, 0), 48);
    assert_eq!(taken(&mut layer, Dir::Read, 1000), 16);
}

/// Writes of the first class keep coming while a read of the same class waits; how many go before the read.
fn writes_before_a_read(lower_class_waits: bool) -> usize {
    let mut c = plugs("mq-deadline");
    c.queue.task_plugs = false;
    c.elevator.deadline.fifo_batch = 4;
    let mut layer = layer(&c);
    let urgent = Hints { class: IoClass::RealTime, ..Hints::default() };
    for k in 0..40 {
        layer.submit_as(0, bio(Dir::Write, 1000 + 100 * k, k as u32, 1), urgent, Nanos::ZERO);
    }
    let first = layer.start(Nanos::ZERO).expect("the device is free");
    if lower_class_waits {
        layer.submit_as(0, bio(Dir::Write, 500_000, 98, 2), Hints::default(), Nanos::ZERO);
    }
    layer.submit_as(0, bio(Dir::Read, 10, 99, 3), urgent, Nanos::ZERO);
    let (mut running, mut bios, mut writes) = (vec![first], Vec::new(), 0);
    while let Some(s) = running.pop() {
        layer.complete(0, s.rq, s.done_at, &mut bios);
        if bios.iter().any(|b| b.tag == 99) {
            return writes;
        }
        writes += 1;
        running.extend(layer.start(s.done_at));
    }
    usize::MAX
}

#[test]
fn a_look_at_an_aged_lower_class_begins_the_batch_of_mq_deadline_anew() {
    assert_eq!(writes_before_a_read(false), 4, "a batch");
    // The look finds nothing old enough, but has set direction and length of the batch by then.
    assert_eq!(writes_before_a_read(true), 40, "all of them");
}

#[test]
fn mq_deadline_of_6_5_goes_on_by_place_before_it_by_the_next_request_of_then() {
    let order = |by_place: bool| {
        let mut c = plugs("mq-deadline");
        c.queue.task_plugs = false;
        c.elevator.deadline.next_by_place = by_place;
        let mut layer = layer(&c);
        for (tag, sector) in [1000, 3000].into_iter().enumerate() {
            layer.submit(0, bio(Dir::Write, sector, tag as u32, 1), Nanos::ZERO);
        }
        let first = layer.start(Nanos::ZERO).expect("the device is free");
        // Between the place of the first and the second, and too late to be the second's predecessor.
        layer.submit(0, bio(Dir::Write, 2000, 2, 1), Nanos::ZERO);
        let mut bios = Vec::new();
        layer.complete(0, first.rq, first.done_at, &mut bios);
        let next = layer.start(first.done_at).expect("two are left");
        layer.complete(0, next.rq, next.done_at, &mut bios);
        bios[0].tag
    };
    assert_eq!([order(false), order(true)], [1, 2]);
}

#[test]
fn a_lower_class_waits_until_nothing_above_it_is_under_way() {
    let mut c = config("mq-deadline");
    c.queue.head_active = false;
    if let crate::config::DeviceConfig::Rotating { queue_depth, .. } = &mut c.device {
        *queue_depth = 4;
    }
    let mut layer = layer(&c);
    let class = |class| Hints { class, ..Hints::default() };
    for (sector, tag, hints) in [(0, 1, class(IoClass::RealTime)), (1000, 2, class(IoClass::BestEffort))] {
        assert_ne!(layer.submit_as(0, bio(Dir::Write, sector, tag, 0), hints, Nanos::ZERO), Submit::Full);
    }
    layer.unplug_all();
    let first = layer.start(Nanos::ZERO).expect("the real-time one");
    assert!(layer.start(Nanos::ZERO).is_none(), "the other has to wait");
    // Its end does not run the queue; a new arrival or the timer does.
    let mut done = Vec::new();
    layer.complete(0, first.rq, Nanos::from_millis(1), &mut done);
    assert!(layer.start(Nanos::from_millis(1)).is_none());
    let again = layer.timer().expect("it is looked at again");
    assert_eq!(again, Nanos::from_millis(3));
    assert!(layer.start(again).is_some());
}
