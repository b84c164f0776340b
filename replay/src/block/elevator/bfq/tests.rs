//! Worked examples of what goes past a queue that the device is kept for.

use kreplay_traces::units::{Nanos, Sectors};

use super::super::super::request::Requests;
use super::super::super::{Bio, BioKind, Dir, IoClass, RqId};
use super::super::{Context, Elevator, Spot};
use super::Bfq;
use crate::config::BfqConfig;

const MS: u64 = 1_000_000;

struct Bench {
    bfq: Bfq,
    rqs: Requests,
    now: u64,
    places: u64,
    rotational: bool,
}

impl Bench {
    fn new() -> Self {
        let bfq = Bfq::new(&BfqConfig { low_latency: false, ..BfqConfig::default() });
        Self { bfq, rqs: Requests::with_capacity(16), now: 0, places: 0, rotational: true }
    }

    fn cx(&self, task: u32) -> Context {
        Context {
            now: Nanos(self.now),
            head_active: false,
            head_locked: false,
            plugged: false,
            class: IoClass::BestEffort,
            // Process 1 weighs twice as much as the others, so its turn is kept for it while it thinks.
            level: if task == 1 { 0 } else { 4 },
            sync: true,
            rotational: self.rotational,
            task_plugs: false,
            max_sectors: 256,
            max_segments: 64,
        }
    }

    /// A read of a process with this priority level.
    fn read(&mut self, task: u32, level: u8, sector: u64, nr: u32) -> RqId {
        let bio = Bio { dir: Dir::Read, sector: Sectors(sector), nr, partition: 0, kind: BioKind::Data, tag: 0, task };
        let rq = self.rqs.create(bio, 0, Nanos(self.now));
        let cx = Context { level, ..self.cx(task) };
        self.bfq.insert(&mut self.rqs, rq, Spot::Tail, &cx);
        rq
    }

    /// A read of a process at a place far from all others.
    fn add(&mut self, task: u32) -> RqId {
        self.places += 1;
        let sector = Sectors(self.places * 10_007 % 97 * 100_000);
        let bio = Bio { dir: Dir::Read, sector, nr: 8, partition: 0, kind: BioKind::Data, tag: 0, task };
        let rq = self.rqs.create(bio, 0, Nanos(self.now));
        let cx = self.cx(task);
        self.bfq.insert(&mut self.rqs, rq, Spot::Tail, &cx);
        rq
    }

    fn take(&mut self) -> Option<RqId> {
        let cx = self.cx(0);
        self.bfq.dispatch(&mut self.rqs, &cx)
    }

    fn done(&mut self, rq: RqId, after_ms: u64) {
        self.now += after_ms * MS;
        let cx = self.cx(0);
        self.bfq.complete(&mut self.rqs, rq, &cx);
        self.rqs.retire(rq, &mut Vec::new());
    }

    /// A request of a process alone: asked for, served, done.
    fn alone(&mut self, task: u32, thinks_ms: u64, takes_ms: u64) {
        self.now += thinks_ms * MS;
        let rq = self.add(task);
        assert_eq!(self.take(), Some(rq));
        self.done(rq, takes_ms);
    }

    /// Serves the next request, after whatever time the device is kept idle before it.
    fn next(&mut self) -> RqId {
        for _ in 0..100 {
            if let Some(rq) = self.take() {
                self.done(rq, 5);
                return rq;
            }
            self.now += MS;
        }
        panic!("nothing for 100 ms");
    }

    /// A request of a process that thinks before it, with nobody else's queued.
    fn one(&mut self, task: u32, thinks_ms: u64) {
        self.now += thinks_ms * MS;
        let rq = self.add(task);
        assert_eq!(self.next(), rq);
    }

    fn queue(&self, task: u32) -> u32 {
        self.bfq.owners.find(task, &self.cx(task)).expect("it has asked for something")
    }
}

#[test]
fn who_is_woken_three_times_running_has_a_waker_which_goes_past_it() {
    let mut b = Bench::new();
    for _ in 0..3 {
        b.alone(1, 20, 5);
    }
    for found in [None, None, Some(())] {
        b.alone(2, 20, 5);
        // Right after the other's request was done, process 1 asks for its own.
        b.alone(1, 1, 5);
        let woken = b.queue(1);
        assert_eq!(b.bfq.q(woken).learnt.waker.map(|_| ()), found);
    }
    let (woken, waker) = (b.queue(1), b.queue(2));
    assert_eq!(b.bfq.q(woken).learnt.waker, Some(waker));
    assert_eq!(b.bfq.q(waker).learnt.woken, [woken]);
    // The waker's own turn ended because it had nothing to do; were it back within three idling times, it would preempt.
    for _ in 0..5 {
        b.alone(1, 1, 5);
    }
    assert_eq!(b.bfq.in_service, Some(woken), "kept for it");
    let wakes = b.add(2);
    b.add(3);
    assert_eq!(b.take(), Some(wakes), "although the other came later, and would go first");
    assert_eq!(b.bfq.in_service, Some(woken));
}

#[test]
fn waking_that_does_not_go_on_counts_from_the_beginning() {
    let mut b = Bench::new();
    for _ in 0..3 {
        b.alone(1, 20, 5);
    }
    for other in [2, 3, 2, 3, 2] {
        b.alone(other, 20, 5);
        b.alone(1, 1, 5);
    }
    let q = b.queue(1);
    assert_eq!(b.bfq.q(q).learnt.waker, None);
    // Too late to have been woken by it.
    for _ in 0..4 {
        b.alone(2, 20, 5);
        b.alone(1, 4, 5);
    }
    assert_eq!(b.bfq.q(q).learnt.waker, None);
}

#[test]
fn how_many_go_past_is_learnt_from_what_it_costs() {
    let mut b = Bench::new();
    for _ in 0..40 {
        b.alone(1, 1, 5);
    }
    // A new turn, long enough for what follows.
    let began = b.bfq.service_began;
    while b.bfq.service_began == began {
        b.alone(1, 1, 5);
    }
    let q = b.queue(1);
    assert!(b.bfq.q(q).seeky() && b.bfq.q(q).quick);
    assert_eq!((b.bfq.q(q).learnt.base, b.bfq.q(q).learnt.limit), (5 * MS, 1), "alone, it takes 5 ms");
    // Another's request goes past while process 1 thinks; its own takes `behind` from then on.
    let past = |b: &mut Bench, behind: u64| {
        let other = b.add(2);
        assert_eq!(b.take(), Some(other));
        b.now += MS;
        let own = b.add(1);
        b.done(other, 1);
        assert_eq!(b.take(), Some(own));
        b.done(own, behind - 1);
        assert_eq!(b.bfq.in_service, Some(q), "kept for it all the time");
        b.bfq.q(q).learnt.limit
    };
    assert_eq!(past(&mut b, 7), 2, "7 ms are less than one and a half times 5");
    // Within 2 ms, after which the device would not be kept for a queue that seeks.
    assert_eq!(past(&mut b, 8), 1, "8 ms are not");
    b.now += MS;
    let other = b.add(2);
    assert_eq!(b.take(), Some(other));
    let third = b.add(3);
    assert_ne!(b.take(), Some(third), "one is at the device");
}

/// The beginning of a recording of 6.18 (its messages name queues, budgets and merges): a process reads two blocks, a kernel
/// worker of another priority reads ahead beside the second one.
#[test]
fn who_reads_beside_another_shares_its_queue_from_the_second_request_on() {
    let mut b = Bench::new();
    b.bfq.low_latency = true;
    let first = b.read(22_771, 4, 67_848, 8);
    assert_eq!(b.take(), Some(first));
    b.done(first, 7);
    let second = b.read(22_771, 4, 2_184, 8);
    assert_eq!(b.take(), Some(second));
    b.done(second, 7);
    b.now += 5 * MS;
    // Alone busy so far, nothing is looked for.
    let apart = b.read(22_979, 2, 2_056, 16);
    let own = b.bfq.notes[apart as usize].queue;
    assert_ne!(own, b.queue(22_771));
    let close = [b.read(22_979, 2, 2_120, 8), b.read(22_979, 2, 2_176, 8)];
    let shared = b.queue(22_771);
    assert_eq!(close.map(|rq| b.bfq.notes[rq as usize].queue), [shared; 2], "merged with the queue in service");
    assert_eq!(b.queue(22_979), shared);
    assert!(b.bfq.q(shared).shared && b.bfq.q(shared).owner.is_none());
    assert_eq!(b.bfq.q(own).processes, 0);
    // As recorded: the request at 2176 first, it is nearer to where the arm stands, then 2120; the first one waits.
    assert_eq!([b.take(), b.take(), b.take()], [Some(close[1]), Some(close[0]), None]);
    b.done(close[1], 6);
    b.done(close[0], 6);
    assert_eq!(b.take(), None, "the device is kept for the shared queue, whose weight is raised");
    b.now += 21 * MS;
    assert_eq!(b.take(), Some(apart));
    b.done(apart, 5);
    assert_eq!(b.bfq.measured_done(), None, "the queue that nobody uses any more is forgotten");
}

#[test]
fn too_late_or_too_far_no_queues_are_merged() {
    for (wait, sector, merged) in [(0, 1_100, true), (0, 200_000, false), (150, 1_100, false)] {
        let mut b = Bench::new();
        let first = b.read(1, 4, 1_000, 8);
        assert_eq!(b.take(), Some(first));
        b.now += wait * MS;
        let far = b.read(2, 4, 900_000, 8);
        let near = b.read(3, 4, sector, 8);
        assert_eq!(b.queue(3) == b.queue(1), merged, "{wait} ms later at {sector}");
        assert_ne!(b.bfq.notes[far as usize].queue, b.queue(1));
        assert_eq!(b.bfq.notes[near as usize].queue, b.queue(3));
    }
}

#[test]
fn a_shared_queue_that_seeks_is_parted_and_everyone_gets_back_what_he_had() {
    let mut b = Bench::new();
    for _ in 0..4 {
        b.alone(1, 20, 5);
    }
    assert!(!b.bfq.q(b.queue(1)).quick, "thinks 20 ms");
    let far = b.read(9, 4, 5_000_000, 8);
    let one = b.read(1, 4, 1_000, 8);
    let two = b.read(2, 4, 1_100, 8);
    let shared = b.queue(1);
    assert_eq!(b.queue(2), shared);
    let mut served = [b.next(), b.next(), b.next()];
    served.sort_unstable();
    assert_eq!(served, [far, one, two]);
    b.bfq.q_mut(shared).seeks = u32::MAX >> 1;
    b.bfq.q_mut(shared).to_split = true;
    b.now += 50 * MS;
    b.add(2);
    let parted = b.queue(2);
    assert_ne!(parted, shared);
    assert_eq!(b.bfq.q(parted).owner, Some(2));
    assert_eq!(b.bfq.q(shared).processes, 1);
    // The last one keeps the queue.
    b.add(1);
    assert_eq!(b.queue(1), shared);
    assert!(!b.bfq.q(shared).shared && !b.bfq.q(shared).to_split);
    assert!(!b.bfq.q(shared).quick, "as it was before");
}

#[test]
fn queues_made_together_become_one_for_good_once_they_are_old_and_idling_does_not_pay() {
    let mut b = Bench::new();
    b.one(2, 0);
    b.one(3, 300);
    b.one(4, 10);
    for _ in 0..40 {
        b.one(4, 20);
    }
    assert_ne!(b.queue(3), b.queue(4), "made more than 180 ms after the first, it did not become the one to join");
    let mut b = Bench::new();
    b.one(2, 0);
    b.one(3, 100);
    for _ in 0..40 {
        b.one(3, 20);
    }
    assert_eq!(b.queue(3), b.queue(2), "600 ms old, and it seeks");
    assert!(b.bfq.process(2).joined && b.bfq.process(3).joined);
    let shared = b.queue(2);
    b.bfq.q_mut(shared).to_split = true;
    b.one(2, 20);
    assert_eq!((b.queue(2), b.queue(3)), (shared, shared), "never parted again");
}

#[test]
fn on_flash_queues_made_together_are_one_at_once() {
    let mut b = Bench::new();
    b.rotational = false;
    b.one(2, 0);
    b.one(3, 100);
    b.one(4, 300);
    assert_eq!(b.queue(3), b.queue(2));
    assert_ne!(b.queue(4), b.queue(2));
}

#[test]
fn a_burst_is_eight_queues_in_a_row_begun_on_an_idle_disk() {
    let members = |busy_first: bool| {
        let mut b = Bench::new();
        if busy_first {
            b.read(99, 4, 9_000_000, 8);
            b.now += 1000 * MS;
        }
        for task in 1..=10 {
            b.now += 10 * MS;
            b.read(task, 4, u64::from(task) * 100_000, 8);
        }
        (1..=10).filter(|&t| b.bfq.q(b.queue(t)).raise.in_burst).count()
    };
    assert_eq!(members(false), 10);
    assert_eq!(members(true), 0, "somebody else is busy when it begins");
}

#[test]
fn who_idles_more_than_a_fifth_of_the_time_is_not_bound_by_its_requests() {
    let mut b = Bench::new();
    for _ in 0..4 {
        b.alone(1, 1, 9);
    }
    assert!(b.bfq.q(b.queue(1)).bound.io, "a tenth");
    for _ in 0..8 {
        b.alone(1, 4, 9);
    }
    assert!(!b.bfq.q(b.queue(1)).bound.io, "a third");
}
