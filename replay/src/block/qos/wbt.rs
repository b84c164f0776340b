//! Write-back throttling (`block/blk-wbt.c`, `blk-rq-qos.c` of 6.1): buffered writes get as much depth as reads tolerate.
//!
//! A window of 100 ms is watched: if the fastest read took longer than the target, the depth for writes is lowered a step,
//! else raised. Below the middle the window shrinks; with writes only, the depth may grow beyond it.
//!
//! Within a second after a writer slept in `balance_dirty_pages` all writes get the full depth: it is throttled already
//! (`wb_recent_wait`). A replayed block trace does not tell of such sleeps. Reduced: discards do not occur.

use std::collections::VecDeque;

use super::super::{Bio, Cause, Dir, Hints, RqId, Waiter};
use crate::config::WbtConfig;

const WINDOW: u64 = 100_000_000;
const DEFAULT_DEPTH: u32 = 16;
/// Reads within this mean that somebody competes, ns.
const RECENT: u64 = 100_000_000;
/// A writer's sleep counts for so long, ns.
const SLEPT: u64 = 1_000_000_000;
/// Writes in a window that make it count.
const MIN_WRITES: u32 = 3;
/// Windows that tell nothing before the depth drifts to the middle.
const UNKNOWN: u32 = 5;

/// Which queue of throttled writes.
const BACKGROUND: usize = 0;
const KSWAPD: usize = 1;

fn queue_of(hints: Hints) -> usize {
    if hints.cause == Cause::Reclaim { KSWAPD } else { BACKGROUND }
}

/// What a window said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Exceeded,
    Unknown,
    WritesOnly,
}

/// The depth that a step stands for (`rq_depth_calc_max_depth`), and whether it is the largest.
fn depth_at(step: i32, queue_depth: u32) -> (u32, bool) {
    if queue_depth == 1 {
        return if step > 0 { (1, false) } else { (2, true) };
    }
    let base = DEFAULT_DEPTH.min(queue_depth);
    if step > 0 {
        return (1 + ((base - 1) >> step.min(31)), false);
    }
    if step == 0 {
        return (base, false);
    }
    let most = 3 * queue_depth / 4;
    let wish = 1 + (u64::from(base - 1) << (-step).min(31));
    if wish > u64::from(most) { (most, true) } else { (wish as u32, false) }
}

#[derive(Clone, Copy, Debug)]
struct Sleeper {
    waiter: Waiter,
    hints: Hints,
}

/// The throttle of one queue. Times in ns.
#[derive(Clone, Debug)]
pub(super) struct Wbt {
    min_lat: u64,
    write_cache: bool,
    queue_depth: u32,
    step: i32,
    at_most: bool,
    max_depth: u32,
    normal: u32,
    background: u32,
    in_flight: [u32; 2],
    sleepers: [VecDeque<Sleeper>; 2],
    /// Woken with what they waited for in hand.
    granted: Vec<Waiter>,
    /// Which queue counts a request; `None` = none does.
    tracked: Vec<Option<usize>>,
    last_read: Option<u64>,
    last_sleep: Option<u64>,
    window: u64,
    window_ends: Option<u64>,
    fastest_read: Option<u64>,
    reads: u32,
    writes: u32,
    unknown: u32,
    /// A read that is out, and since when.
    watched: Option<(RqId, u64)>,
}

impl Wbt {
    pub(super) fn new(c: &WbtConfig, queue_depth: u32) -> Self {
        let mut w = Self {
            min_lat: c.min_lat_us * 1000,
            write_cache: c.write_cache,
            queue_depth: queue_depth.max(1),
            step: 0,
            at_most: false,
            max_depth: 0,
            normal: 0,
            background: 0,
            in_flight: [0; 2],
            sleepers: [VecDeque::new(), VecDeque::new()],
            granted: Vec::new(),
            tracked: Vec::new(),
            last_read: None,
            last_sleep: None,
            window: WINDOW,
            window_ends: None,
            fastest_read: None,
            reads: 0,
            writes: 0,
            unknown: 0,
            watched: None,
        };
        w.set_step(0);
        w
    }

    fn set_step(&mut self, step: i32) {
        self.step = step;
        (self.max_depth, self.at_most) = depth_at(step, self.queue_depth);
        (self.normal, self.background) = if self.max_depth <= 2 {
            (self.max_depth, 1)
        } else {
            (self.max_depth.div_ceil(2), self.max_depth.div_ceil(4))
        };
    }

    fn throttles(dir: Dir, hints: Hints) -> bool {
        dir == Dir::Write && hints.cause != Cause::Direct
    }

    fn limit(&self, hints: Hints, now: u64) -> u32 {
        let busy = self.last_read.is_some_and(|t| now < t + RECENT);
        let slept = self.last_sleep.is_some_and(|t| now < t + SLEPT);
        match hints.cause {
            Cause::Sync | Cause::Reclaim => self.max_depth,
            _ if slept => self.max_depth,
            Cause::Background => self.background,
            _ if busy => self.background,
            _ => self.normal,
        }
    }

    pub(super) fn writer_slept(&mut self, now: u64) {
        self.last_sleep = Some(now);
    }

    pub(super) fn pass(&mut self, bio: &Bio, hints: Hints, waiter: Option<Waiter>, now: u64) -> bool {
        if !Self::throttles(bio.dir, hints) {
            if bio.dir == Dir::Read {
                self.last_read = Some(now);
            }
            return true;
        }
        if let Some(at) = waiter.and_then(|w| self.granted.iter().position(|&g| g == w)) {
            self.granted.remove(at);
        } else {
            let q = queue_of(hints);
            let asleep = waiter.is_some_and(|w| self.sleepers[q].iter().any(|s| s.waiter == w));
            if asleep || !self.sleepers[q].is_empty() || self.in_flight[q] >= self.limit(hints, now) {
                return false;
            }
            self.in_flight[q] += 1;
        }
        if self.window_ends.is_none() {
            self.arm(now);
        }
        true
    }

    pub(super) fn wait(&mut self, hints: Hints, waiter: Waiter) {
        let q = queue_of(hints);
        if !self.sleepers[q].iter().any(|s| s.waiter == waiter) {
            self.sleepers[q].push_back(Sleeper { waiter, hints });
        }
    }

    pub(super) fn waits(&self, waiter: Waiter) -> bool {
        self.granted.contains(&waiter) || self.sleepers.iter().flatten().any(|s| s.waiter == waiter)
    }

    pub(super) fn waiting(&self) -> usize {
        self.sleepers[0].len() + self.sleepers[1].len() + self.granted.len()
    }

    /// Wakes in order, for as long as the next one may go on.
    fn wake(&mut self, q: usize, now: u64, wakes: &mut VecDeque<Waiter>) {
        while let Some(s) = self.sleepers[q].front().copied() {
            if self.in_flight[q] >= self.limit(s.hints, now) {
                break;
            }
            self.in_flight[q] += 1;
            self.sleepers[q].pop_front();
            self.granted.push(s.waiter);
            wakes.push_back(s.waiter);
        }
    }

    fn leave(&mut self, q: usize, now: u64, wakes: &mut VecDeque<Waiter>) {
        self.in_flight[q] -= 1;
        let limit = if self.write_cache { 0 } else { self.normal };
        let here = self.in_flight[q];
        if here > 0 && here >= limit {
            return;
        }
        if here == 0 || limit - here >= self.background / 2 {
            self.wake(q, now, wakes);
        }
    }

    pub(super) fn give_back(&mut self, dir: Dir, hints: Hints, now: u64, wakes: &mut VecDeque<Waiter>) {
        if Self::throttles(dir, hints) {
            self.leave(queue_of(hints), now, wakes);
        }
    }

    pub(super) fn queued(&mut self, rq: RqId, dir: Dir, hints: Hints) {
        if self.tracked.len() <= rq as usize {
            self.tracked.resize(rq as usize + 1, None);
        }
        self.tracked[rq as usize] = Self::throttles(dir, hints).then(|| queue_of(hints));
    }

    pub(super) fn issued(&mut self, rq: RqId, dir: Dir, now: u64) {
        if dir == Dir::Read && self.watched.is_none() {
            self.watched = Some((rq, now));
        }
    }

    pub(super) fn done(&mut self, rq: RqId, dir: Dir, issued: Option<u64>, now: u64, wakes: &mut VecDeque<Waiter>) {
        if self.watched.is_some_and(|(w, _)| w == rq) {
            self.watched = None;
        }
        if let Some(issued) = issued {
            match dir {
                Dir::Read => {
                    self.last_read = Some(now);
                    self.reads += 1;
                    let took = now.saturating_sub(issued);
                    self.fastest_read = Some(self.fastest_read.map_or(took, |f| f.min(took)));
                }
                Dir::Write => self.writes += 1,
            }
        }
        if let Some(q) = self.tracked.get_mut(rq as usize).and_then(Option::take) {
            self.leave(q, now, wakes);
        }
    }

    fn arm(&mut self, now: u64) {
        self.window = if self.step > 0 {
            let n = u64::from((self.step as u32 + 1) << 8);
            (WINDOW << 4) / n.isqrt()
        } else {
            WINDOW
        };
        self.window_ends = Some(now + self.window);
        self.fastest_read = None;
        self.reads = 0;
        self.writes = 0;
    }

    fn status(&self, now: u64) -> Status {
        let out = self.watched.map_or(0, |(_, since)| now.saturating_sub(since));
        if out > self.window || (out > self.min_lat && self.reads == 0) {
            return Status::Exceeded;
        }
        if self.reads == 0 || self.writes < MIN_WRITES {
            let writing = self.writes > 0 || self.in_flight.iter().any(|&n| n > 0);
            return if writing { Status::WritesOnly } else { Status::Unknown };
        }
        if self.fastest_read.is_some_and(|f| f > self.min_lat) { Status::Exceeded } else { Status::Ok }
    }

    fn up(&mut self, now: u64, wakes: &mut VecDeque<Waiter>) {
        if self.at_most {
            return;
        }
        self.set_step(self.step - 1);
        self.unknown = 0;
        self.wake(BACKGROUND, now, wakes);
        self.wake(KSWAPD, now, wakes);
    }

    fn down(&mut self, hard: bool) {
        if self.max_depth == 1 {
            return;
        }
        self.set_step(if self.step < 0 && hard { 0 } else { self.step + 1 });
        self.unknown = 0;
    }

    pub(super) fn run_timer(&mut self, now: u64, wakes: &mut VecDeque<Waiter>) {
        if self.window_ends.is_none_or(|t| now < t) {
            return;
        }
        match self.status(now) {
            Status::Exceeded => self.down(true),
            Status::Ok | Status::WritesOnly => self.up(now, wakes),
            Status::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN {
                    match self.step {
                        1.. => self.up(now, wakes),
                        0 => {}
                        _ => self.down(false),
                    }
                }
            }
        }
        self.window_ends = None;
        if self.step != 0 || self.in_flight.iter().any(|&n| n > 0) {
            self.arm(now);
        }
    }

    /// End of the window.
    pub(super) fn timer(&self) -> Option<u64> {
        self.window_ends
    }
}

#[cfg(test)]
mod tests {
    use kreplay_traces::units::Sectors;

    use super::*;
    use crate::block::BioKind;

    fn bio(dir: Dir) -> Bio {
        Bio { dir, sector: Sectors(0), nr: 8, partition: 0, kind: BioKind::Data, tag: 0, task: 0 }
    }

    fn wbt(depth: u32) -> Wbt {
        Wbt::new(&WbtConfig { min_lat_us: 2_000, write_cache: false, ..WbtConfig::default() }, depth)
    }

    #[test]
    fn steps_give_the_depths_that_the_kernel_computes() {
        let at = |qd| [3, 2, 1, 0, -1, -2].map(|step| depth_at(step, qd).0);
        assert_eq!(at(32), [2, 4, 8, 16, 24, 24]);
        assert_eq!(at(1023), [2, 4, 8, 16, 31, 61]);
        assert_eq!([1, 0, -1].map(|s| depth_at(s, 1)), [(1, false), (2, true), (2, true)]);
        let w = wbt(32);
        assert_eq!((w.max_depth, w.normal, w.background), (16, 8, 4));
    }

    #[test]
    fn buffered_writes_wait_at_half_the_depth_and_at_a_quarter_beside_reads() {
        let hints = Hints::default();
        let mut w = wbt(32);
        let alone = (0..20).filter(|_| w.pass(&bio(Dir::Write), hints, None, 0)).count();
        assert_eq!(alone, 8);
        let mut w = wbt(32);
        assert!(w.pass(&bio(Dir::Read), hints, None, 0));
        let beside = (0..20).filter(|_| w.pass(&bio(Dir::Write), hints, None, 50_000_000)).count();
        assert_eq!(beside, 4);
        let sync = Hints { cause: Cause::Sync, ..hints };
        assert_eq!((0..20).filter(|_| w.pass(&bio(Dir::Write), sync, None, 50_000_000)).count(), 12, "up to 16 in all");
        let direct = Hints { cause: Cause::Direct, ..hints };
        assert!((0..100).all(|_| w.pass(&bio(Dir::Write), direct, None, 50_000_000)));
    }

    #[test]
    fn slow_reads_take_depth_from_writes_and_fast_ones_give_it_back() {
        let hints = Hints::default();
        let mut w = wbt(32);
        let mut wakes = VecDeque::new();
        let mut window = |w: &mut Wbt, from: u64, read_ns: u64| {
            for k in 0..4u32 {
                assert!(w.pass(&bio(Dir::Write), Hints { cause: Cause::Sync, ..hints }, None, from));
                w.queued(k, Dir::Write, hints);
                w.done(k, Dir::Write, Some(from), from + 1000, &mut wakes);
            }
            w.issued(9, Dir::Read, from);
            w.done(9, Dir::Read, Some(from), from + read_ns, &mut wakes);
            let end = w.window_ends.expect("armed");
            w.run_timer(end, &mut wakes);
            end
        };
        let t = window(&mut w, 0, 5_000_000);
        assert_eq!((w.step, w.max_depth, t), (1, 8, WINDOW));
        let t = window(&mut w, t, 5_000_000);
        assert_eq!((w.step, w.max_depth), (2, 4));
        // 100 ms * 16 / isqrt(512) = 16 / 22 of the window.
        assert_eq!(t, WINDOW + (WINDOW << 4) / 22);
        let t = window(&mut w, t, 1_000_000);
        let t = window(&mut w, t, 1_000_000);
        assert_eq!(w.step, 0);
        window(&mut w, t, 1_000_000);
        assert_eq!((w.step, w.max_depth, w.at_most), (-1, 24, true));
    }

    #[test]
    fn sleepers_are_woken_with_what_they_waited_for() {
        let hints = Hints::default();
        let mut w = wbt(32);
        for k in 0..8 {
            assert!(w.pass(&bio(Dir::Write), hints, None, 0));
            w.queued(k, Dir::Write, hints);
        }
        assert!(!w.pass(&bio(Dir::Write), hints, None, 0));
        w.wait(hints, 70);
        let mut wakes = VecDeque::new();
        w.done(0, Dir::Write, Some(0), 1, &mut wakes);
        assert!(wakes.is_empty(), "one below the limit is not worth it");
        w.done(1, Dir::Write, Some(0), 2, &mut wakes);
        assert_eq!(wakes, [70]);
        assert!(!w.waits(71) && w.waits(70));
        assert!(w.pass(&bio(Dir::Write), hints, Some(70), 3));
        assert_eq!((w.in_flight[0], w.waiting()), (7, 0));
    }
}
