//! The anticipatory scheduler of 2.6 (`drivers/block/as-iosched.c`; S. Iyer and P. Druschel, SOSP 2001).
//!
//! Batches of synchronous and asynchronous requests take turns by time. After a synchronous request the scheduler may
//! keep the device idle for some milliseconds, because the same process is likely to ask for something near. Whether that
//! pays is guessed from decaying means of each process's think time and seek distance.
//!
//! On a device that takes several commands at a time, asynchronous batches may find their time used up before they begin:
//! if commands of the synchronous batch are still out at the change, the kernel does not set the timer anew. This is kept.
//!
//! Reduced: processes never exit while they are waited for; requests that start at the same sector are sorted one behind
//! the other instead of being chained to the first; times are not rounded to jiffies.

use kreplay_traces::units::Nanos;
use rustc_hash::FxHashMap;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::adjacent::{self, Adjacent, Reach};
use super::rbtree::{Nodes, SectorTree};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::AnticipatoryConfig;

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// The arm may go back by 2^20 sectors, each of which counts twice.
const REACH: Reach = Reach { back_max: 1 << 20, penalty: 2 };
/// Think times are counted up to this.
const MAX_THINK: Nanos = Nanos::from_millis(20);
/// 1.0 in the decaying means.
const ONE: u64 = 256;
/// Distance within which another process's request counts as close at once, sectors.
const CLOSE: u64 = 64;

/// A decaying mean: each sample weighs one eighth.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.samples = (7 * self.samples + ONE) / 8;
        self.total = (7 * self.total + ONE * value) / 8;
        self.mean = (self.total + ONE / 2) / self.samples;
    }
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    /// It has queued a synchronous request.
    started: bool,
    /// One has been completed.
    running: bool,
    last_completion: Nanos,
    last_end: u64,
    queued: u32,
    /// Think time, ns.
    think: Mean,
    /// Seek distance, sectors.
    seek: Mean,
}

/// Where anticipation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Off,
    /// For the end of the last request of the process.
    ForCompletion,
    /// For the next request of the process.
    ForNext,
    Over,
}

#[derive(Clone, Copy, Debug, Default)]
struct Note {
    deadline: Nanos,
    task: u32,
    sync: bool,
}

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Anticipatory {
    fifo_expire: [Nanos; 2],
    batch_expire: [Nanos; 2],
    antic_expire: Nanos,
    sorted: [SectorTree; 2],
    nodes: Nodes,
    fifo: [List; 2],
    next: [RqId; 2],
    last_end: [u64; 2],
    last_fifo_check: [Nanos; 2],
    notes: Vec<Note>,
    adjacent: Adjacent,
    /// Only looked up, never iterated.
    processes: FxHashMap<u32, Process>,
    /// Means of processes that were new.
    new_think: u64,
    new_think_total: u64,
    new_seek: u64,
    new_seek_total: u64,
    /// Out of 256: that a new process was not heard of again.
    exit_prob: u64,
    waiting: Waiting,
    antic_start: Nanos,
    /// Whose synchronous request was dispatched last.
    candidate: Option<u32>,
    /// ... and is done.
    candidate_done: bool,
    batch: usize,
    batch_expires: Nanos,
    /// Waits for the batch before to drain.
    changed_batch: bool,
    /// Waits for the batch's first completion.
    new_batch: bool,
    write_batch: u32,
    writes_left: u32,
    write_batch_idled: bool,
    in_flight: u32,
}

impl Anticipatory {
    pub(crate) fn new(c: &AnticipatoryConfig) -> Self {
        let ms = Nanos::from_millis;
        let write_expire = ms(c.write_batch_expire_ms);
        Self {
            fifo_expire: [ms(c.write_expire_ms), ms(c.read_expire_ms)],
            batch_expire: [write_expire, ms(c.read_batch_expire_ms)],
            antic_expire: Nanos(c.antic_expire_us * 1000),
            sorted: Default::default(),
            nodes: Nodes::default(),
            fifo: Default::default(),
            next: [NIL; 2],
            last_end: [0; 2],
            last_fifo_check: [Nanos::ZERO; 2],
            notes: Vec::new(),
            adjacent: Adjacent::default(),
            processes: FxHashMap::default(),
            new_think: 0,
            new_think_total: 0,
            new_seek: 0,
            new_seek_total: 0,
            exit_prob: 0,
            waiting: Waiting::Off,
            antic_start: Nanos::ZERO,
            candidate: None,
            candidate_done: false,
            batch: SYNC,
            batch_expires: ms(c.read_batch_expire_ms),
            changed_batch: false,
            new_batch: false,
            write_batch: u32::try_from(c.write_batch_expire_ms / 10).unwrap_or(u32::MAX).max(2),
            writes_left: 0,
            write_batch_idled: false,
            in_flight: 0,
        }
    }

    /// The request to follow `rq`, which is still sorted: its successor, or the lowest, or its predecessor if nearer.
    fn following(&self, rqs: &Requests, rq: RqId) -> RqId {
        let dir = usize::from(self.notes[rq as usize].sync);
        REACH.following(rqs, &self.nodes, self.sorted[dir], self.last_end[dir], rq)
    }

    fn unqueue(&mut self, rqs: &mut Requests, rq: RqId) {
        let Note { sync, task, .. } = self.notes[rq as usize];
        let dir = usize::from(sync);
        if self.next[dir] == rq {
            self.next[dir] = self.following(rqs, rq);
        }
        self.nodes.remove(&mut self.sorted[dir], rq);
        self.fifo[dir].remove(rqs, rq);
        self.adjacent.remove(rq);
        self.processes.entry(task).or_default().queued -= 1;
    }

    fn antic_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.antic_start) >= self.antic_expire
    }

    /// The timer that ends a wait for the next request.
    fn run_timer(&mut self, now: Nanos) {
        if self.waiting == Waiting::ForNext && self.antic_over(now) {
            self.waiting = Waiting::Over;
            let known = self.candidate.is_some_and(|t| self.processes.get(&t).is_some_and(|p| p.think.samples > 0));
            if !known {
                self.exit_prob = (7 * self.exit_prob + ONE) / 8;
            }
        }
    }

    /// A request of another process near enough to where the arm is; nearness is taken the less seriously the longer
    /// the wait lasts.
    fn close(&self, sector: u64, now: Nanos) -> bool {
        let last = self.last_end[self.batch];
        let waited = if self.waiting == Waiting::Off || !self.candidate_done {
            0
        } else {
            now.saturating_sub(self.antic_start).get() / 1_000_000
        };
        let delta = match waited {
            0 | 1 => CLOSE,
            2..=20 if Nanos::from_millis(waited) <= self.antic_expire => CLOSE << (waited - 1),
            _ => return true,
        };
        last.saturating_sub(delta / 2) <= sector && sector <= last + delta
    }

    /// Whether to go on with `rq` (or with whatever comes, `NIL`) instead of waiting for the candidate.
    fn breaks(&mut self, rqs: &Requests, rq: RqId, now: Nanos) -> bool {
        let Some(candidate) = self.candidate else { return true };
        let note = (rq != NIL).then(|| self.notes[rq as usize]);
        if note.is_some_and(|n| n.task == candidate) || (self.candidate_done && self.antic_over(now)) {
            return true;
        }
        let p = self.processes.get(&candidate).copied().unwrap_or_default();
        if p.queued > 0 {
            return true;
        }
        if note.is_some_and(|n| n.sync) && self.close(rqs[rq].sector, now) {
            self.processes.entry(candidate).or_default().last_completion = now;
            return true;
        }
        let limit = self.antic_expire.get();
        let hopeless = if p.think.samples == 0 {
            self.new_think > limit || self.exit_prob > ONE / 2
        } else {
            p.think.mean > limit
        };
        if hopeless {
            return true;
        }
        if rq == NIL {
            return false;
        }
        let expected = if p.seek.samples == 0 { self.new_seek } else { p.seek.mean };
        expected > self.last_end[SYNC].abs_diff(rqs[rq].sector)
    }

    fn anticipates(&mut self, rqs: &Requests, rq: RqId, now: Nanos) -> bool {
        self.candidate.is_some() && self.waiting != Waiting::Over && !self.breaks(rqs, rq, now)
    }

    fn note_history(&mut self, rqs: &Requests, rq: RqId, now: Nanos) {
        let Note { task, sync, .. } = self.notes[rq as usize];
        let (sector, end) = (rqs[rq].sector, rqs[rq].end());
        let p = self.processes.entry(task).or_default();
        if sync {
            if p.running || p.started {
                let idle = p.running && p.queued == 0;
                let think = if idle { now.saturating_sub(p.last_completion).min(MAX_THINK).get() } else { 0 };
                if p.think.samples == 0 {
                    self.new_think_total = (7 * self.new_think_total + ONE * think) / 8;
                    self.new_think = self.new_think_total / ONE;
                    self.exit_prob = 7 * self.exit_prob / 8;
                }
                p.think.add(think);
                let mut seek = p.last_end.abs_diff(sector);
                if p.seek.samples == 0 {
                    self.new_seek_total = (7 * self.new_seek_total + ONE * seek) / 8;
                    self.new_seek = self.new_seek_total / ONE;
                }
                let slack = if p.seek.samples <= 60 { 2 << 20 } else { 2 << 16 };
                seek = seek.min(4 * p.seek.mean + slack);
                p.seek.add(seek);
            }
            p.last_end = end;
            p.started = true;
        }
        p.queued += 1;
    }

    fn stop_waiting(&mut self) {
        if matches!(self.waiting, Waiting::ForCompletion | Waiting::ForNext) {
            self.waiting = Waiting::Over;
        }
    }

    /// The oldest request of a kind is overdue; looked at once per expiry time only, lest all seeks become such.
    fn overdue(&mut self, dir: usize, now: Nanos) -> bool {
        if now.saturating_sub(self.last_fifo_check[dir]) < self.fifo_expire[dir] {
            return false;
        }
        self.last_fifo_check[dir] = now;
        let head = self.fifo[dir].head;
        head != NIL && now > self.notes[head as usize].deadline
    }

    fn batch_over(&self, now: Nanos) -> bool {
        !self.changed_batch
            && !self.new_batch
            && (now > self.batch_expires || (self.batch == ASYNC && self.writes_left == 0))
    }

    /// Makes write batches longer or shorter, so that they take the time meant for them.
    fn tune_write_batch(&mut self, now: Nanos) {
        let target = self.batch_expire[ASYNC];
        let took = (now + target).saturating_sub(self.batch_expires);
        if took > target && !self.write_batch_idled {
            self.write_batch = if took.get() > 3 * target.get() { self.write_batch / 2 } else { self.write_batch - 1 };
        } else if took < target && self.writes_left == 0 {
            self.write_batch =
                if target.get() > 3 * took.get() { self.write_batch.saturating_mul(2) } else { self.write_batch + 1 };
        }
        self.write_batch = self.write_batch.max(1);
    }

    fn choose(&mut self, rqs: &Requests, now: Nanos) -> Option<RqId> {
        let (reads, writes) = (!self.fifo[SYNC].is_empty(), !self.fifo[ASYNC].is_empty());
        if self.batch == ASYNC && !reads && (self.writes_left == 0 || !writes) {
            self.write_batch_idled = true;
        }
        let held = matches!(self.waiting, Waiting::ForCompletion | Waiting::ForNext);
        if !(reads || writes) || held || self.changed_batch {
            return None;
        }
        if !(reads && writes && self.batch_over(now)) {
            let rq = self.next[self.batch];
            if self.batch == SYNC && self.antic_expire > Nanos::ZERO {
                if self.overdue(SYNC, now) {
                    return self.go(self.fifo[SYNC].head, now);
                }
                if self.anticipates(rqs, rq, now) {
                    if self.waiting == Waiting::Off {
                        let done = self.candidate.is_none() || self.candidate_done;
                        self.waiting = if done { Waiting::ForNext } else { Waiting::ForCompletion };
                    }
                    return None;
                }
            }
            if rq != NIL {
                if reads && !writes {
                    self.batch_expires = now + self.batch_expire[SYNC];
                }
                return self.due_or(rq, now);
            }
        }
        if reads && !(writes && self.batch == SYNC) {
            self.changed_batch |= self.batch == ASYNC;
            self.batch = SYNC;
            self.last_fifo_check[SYNC] = now;
            return self.due_or(self.fifo[SYNC].head, now);
        }
        if self.batch == SYNC {
            self.changed_batch = true;
            self.new_batch = false;
        }
        self.batch = ASYNC;
        self.writes_left = self.write_batch;
        self.write_batch_idled = false;
        self.due_or(self.next[ASYNC], now)
    }

    fn due_or(&mut self, rq: RqId, now: Nanos) -> Option<RqId> {
        let rq = if self.overdue(self.batch, now) { self.fifo[self.batch].head } else { rq };
        self.go(rq, now)
    }

    /// Dispatches `rq`, unless its batch has to wait for the one before to drain.
    fn go(&mut self, rq: RqId, now: Nanos) -> Option<RqId> {
        if self.changed_batch {
            if self.in_flight > 0 {
                return None;
            }
            self.changed_batch = false;
            if self.batch == SYNC {
                self.new_batch = true;
            } else {
                self.batch_expires = now + self.batch_expire[ASYNC];
            }
        }
        Some(rq)
    }
}

impl Elevator for Anticipatory {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let (sorted, nodes, notes) = (&self.sorted, &self.nodes, &self.notes);
        let sync = cx.sync;
        let may = |rq: RqId| notes[rq as usize].sync == sync;
        let Some((rq, end)) = self.adjacent.find(rqs, bio, may, |s| nodes.at(sorted[usize::from(sync)], s)) else {
            return Verdict::Insert(Spot::Tail);
        };
        if !adjacent::fits(rqs, rq, bio, cx) {
            return Verdict::Insert(Spot::Tail);
        }
        let dir = usize::from(sync);
        if let Some((a, b)) = adjacent::attach(rqs, &self.nodes, rq, end, bio, cx) {
            let (older, task) = (self.notes[b as usize].deadline, self.notes[b as usize].task);
            let note = &mut self.notes[a as usize];
            if adjacent::take_place(rqs, &mut self.fifo[dir], (a, &mut note.deadline), (b, older)) {
                // The survivor belongs to the process whose deadline it took over.
                let was = std::mem::replace(&mut self.notes[a as usize].task, task);
                self.processes.entry(was).or_default().queued -= 1;
                self.processes.entry(task).or_default().queued += 1;
            }
            self.unqueue(rqs, b);
            rqs.absorb(a, b);
            self.adjacent.add(rqs, a, true);
            return Verdict::Merged { into: a, end, absorbed: Some(b) };
        }
        if end == End::Front {
            self.nodes.remove(&mut self.sorted[dir], rq);
            self.nodes.insert(&mut self.sorted[dir], rqs[rq].sector, rq);
        }
        self.adjacent.add(rqs, rq, true);
        Verdict::Merged { into: rq, end, absorbed: None }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        self.run_timer(cx.now);
        let dir = usize::from(cx.sync);
        let note = Note { deadline: cx.now + self.fifo_expire[dir], task: rqs.life(rq).task, sync: cx.sync };
        if self.notes.len() <= rq as usize {
            self.notes.resize(rq as usize + 1, Note::default());
        }
        self.notes[rq as usize] = note;
        self.note_history(rqs, rq, cx.now);
        self.nodes.insert(&mut self.sorted[dir], rqs[rq].sector, rq);
        self.fifo[dir].push_back(rqs, rq);
        self.adjacent.add(rqs, rq, false);
        self.next[dir] = REACH.choose(rqs, self.last_end[dir], rq, self.next[dir]);
        if matches!(self.waiting, Waiting::ForCompletion | Waiting::ForNext) && self.breaks(rqs, rq, cx.now) {
            self.stop_waiting();
        }
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        self.run_timer(cx.now);
        let rq = self.choose(rqs, cx.now)?;
        let Note { sync, task, .. } = self.notes[rq as usize];
        let dir = usize::from(sync);
        self.waiting = Waiting::Off;
        self.last_end[dir] = rqs[rq].end();
        if sync {
            self.candidate = Some(task);
        } else {
            self.candidate = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
        self.candidate_done = false;
        self.next[dir] = self.following(rqs, rq);
        self.unqueue(rqs, rq);
        self.in_flight += 1;
        Some(rq)
    }

    fn complete(&mut self, _: &mut Requests, rq: RqId, cx: &Context) {
        let Note { sync, task, .. } = self.notes[rq as usize];
        if self.changed_batch && self.in_flight == 1 {
            self.changed_batch = false;
            self.new_batch |= self.batch == SYNC;
        }
        self.in_flight -= 1;
        if self.new_batch && (self.batch == SYNC) == sync {
            self.tune_write_batch(cx.now);
            self.batch_expires = cx.now + self.batch_expire[SYNC];
            self.new_batch = false;
        }
        if self.candidate == Some(task) {
            self.antic_start = cx.now;
            self.candidate_done = true;
            if self.waiting == Waiting::ForCompletion {
                self.waiting = Waiting::ForNext;
            }
        }
        let p = self.processes.entry(task).or_default();
        if sync {
            p.running = true;
            p.last_completion = cx.now;
        }
    }

    fn len(&self) -> usize {
        self.fifo[ASYNC].len() + self.fifo[SYNC].len()
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }

    fn timer(&self) -> Option<Nanos> {
        (self.waiting == Waiting::ForNext).then(|| self.antic_start + self.antic_expire)
    }
}
