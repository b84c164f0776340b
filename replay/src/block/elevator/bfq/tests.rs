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
}

impl Bench {
    fn new() -> Self {
        let bfq = Bfq::new(&BfqConfig { low_latency: false, ..BfqConfig::default() });
        Self { bfq, rqs: Requests::with_capacity(16), now: 0, places: 0 }
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
            rotational: true,
            task_plugs: false,
            max_sectors: 256,
            max_segments: 64,
        }
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
    b.now += MS;
    assert_eq!(past(&mut b, 8), 1, "8 ms are not");
    b.now += MS;
    let other = b.add(2);
    assert_eq!(b.take(), Some(other));
    let third = b.add(3);
    assert_ne!(b.take(), Some(third), "one is at the device");
}
