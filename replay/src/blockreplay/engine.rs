//! Plays a [`BlockProgram`] under a variant's queue, elevator and device.
//!
//! One thread, integer nanoseconds; at the same time completions come before timers and those before new bios. A task is
//! a line of bios: while one waits for a request slot, those behind it wait too. Bios larger than the queue's limit are
//! split; a task's plug list is that of [`super::plug`] where the queue has none of its own (blk-mq), else the queue is
//! unplugged when the task would have released its list.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use kreplay_traces::units::{Nanos, SECTOR_BYTES, SECTORS_PER_PAGE};
use thiserror::Error;

use super::plug::{Bundle, Plug};
use super::program::{Action, BlockProgram, NO_UNPLUG, NONE};
use crate::block::{Bio, BlockLayer, DevId, Dir, IoRecord, RqId, Submit};
use crate::config::{Config, WakeRule};
use crate::results::Counters;
use crate::sim::Pacing;

/// Lists held for less are released at once: the time between two lines of the kernel.
const AT_ONCE_NS: u32 = 2_000;
/// Events between two looks at the stop flag.
const STOP_CHECK: u64 = 4096;

/// Why a block trace could not be replayed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BlockReplayError {
    /// The variant's queue, elevator or device cannot be built.
    #[error("{0}")]
    Config(String),
    /// The trace holds nothing to replay.
    #[error("the trace has no block events that could be replayed (Q, or D where a device has no Q)")]
    Empty,
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

/// A bio that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// Index into [`BlockProgram::actions`].
    pub action: u32,
    /// Queued (Q).
    pub q: Nanos,
    /// Complete (C).
    pub c: Nanos,
    /// Of that, asleep for a request slot.
    pub slept: Nanos,
}

/// Who is told what happens.
pub trait Observe {
    /// A request is done.
    fn request(&mut self, _: &IoRecord) {}
    /// A bio is done.
    fn bio(&mut self, _: &Action, _: &BioDone) {}
    /// A simulated second ended: bytes read and written in it, requests in the queues and at the devices.
    fn second(&mut self, _: Nanos, _: [u64; 2], _: u64) {}
    /// Rows are being lost: stop.
    fn failed(&self) -> bool {
        false
    }
}

/// Ignores everything.
impl Observe for () {}

/// How a replay ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Time of the last completion.
    pub elapsed: Nanos,
    /// Events processed.
    pub events: u64,
    /// Every bio is done.
    pub finished: bool,
    /// Totals.
    pub counters: Counters,
}

/// Plays a program.
///
/// # Errors
/// See [`BlockReplayError`].
pub fn run<O: Observe>(
    program: &BlockProgram,
    config: &Config,
    pacing: Pacing,
    observer: &mut O,
    abort: &AtomicBool,
) -> Result<Replayed, BlockReplayError> {
    if program.actions.is_empty() {
        return Err(BlockReplayError::Empty);
    }
    let layer = BlockLayer::new(config, &program.devices).map_err(|e| BlockReplayError::Config(e.to_string()))?;
    let mut engine = Engine::new(program, config, pacing, layer, observer);
    engine.play(abort)?;
    Ok(engine.result())
}

/// What happens later. Order among events of one time: as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Complete { dev: DevId, rq: RqId },
    Flushed { flying: u32 },
    Release { task: u32 },
    Issue { action: u32 },
}

/// A bio between Q and C.
#[derive(Clone, Copy, Debug)]
struct Flying {
    action: u32,
    /// Sectors not complete.
    left: u32,
    /// The flush in front of it, and then its data, are still to come.
    flushing: bool,
    issued: Nanos,
    slept: Nanos,
    /// Next free entry while free.
    next: u32,
}

/// A part of a bio that fits a request.
#[derive(Clone, Copy, Debug)]
struct Piece {
    flying: u32,
    nr: u32,
    /// Next piece of the same bundle; next free entry while free.
    next: u32,
}

#[derive(Clone, Debug, Default)]
struct TaskState {
    /// Bios that wait behind a sleeping one (recorded pacing).
    backlog: VecDeque<u32>,
    /// What has left the plug list and is not in the queue yet.
    outbox: VecDeque<Bundle>,
    plug: Plug,
    /// What waits for a tag, before the plug list.
    pending: VecDeque<Bundle>,
    /// Its list was to be released while it slept.
    owed: bool,
    /// Asleep for a slot since.
    asleep: Option<Nanos>,
    /// It sleeps for a request slot of the queue (else, if it sleeps, for a tag).
    in_queue: bool,
    /// Place in the task's own list (closed pacing).
    next: usize,
    /// The next bio is neither due nor waited for yet: the task has to say when it comes (closed pacing).
    unaimed: bool,
    /// The next bio waits for so many completions more.
    waits: u32,
    /// What its think time counts from.
    base: Nanos,
    /// Completions that later bios than the next wait for: how many, and the last one's time.
    early: BTreeMap<u32, (u32, Nanos)>,
}

struct Engine<'a, O> {
    p: &'a BlockProgram,
    o: &'a mut O,
    layer: BlockLayer,
    pacing: Pacing,
    max_sectors: u32,
    /// The queue plugs itself; tasks have no lists.
    queue_plugs: bool,
    completion_page_ns: u64,
    now: Nanos,
    tasks: Vec<TaskState>,
    flying: Vec<Flying>,
    free_flying: u32,
    pieces: Vec<Piece>,
    free_piece: u32,
    heap: BinaryHeap<Reverse<(Nanos, Event, u64)>>,
    sequence: u64,
    /// Next bio of the whole trace (recorded pacing).
    cursor: usize,
    open: u64,
    bios: Vec<Bio>,
    ready: Vec<u32>,
    second: Nanos,
    moved: [u64; 2],
    /// Requests in service or held by each device.
    at_device: Vec<u32>,
    /// Request slots of a queue; 0 = by memory size, many.
    slots: u32,
    /// Plugged requests have their tags already (blk-mq).
    tags: bool,
    /// Requests in the tasks' lists, by device, and the tasks that wait for a tag.
    held: Vec<u32>,
    waiters: VecDeque<u32>,
    out: Replayed,
}

impl<'a, O: Observe> Engine<'a, O> {
    fn new(p: &'a BlockProgram, config: &Config, pacing: Pacing, layer: BlockLayer, o: &'a mut O) -> Self {
        Self {
            p,
            o,
            layer,
            pacing,
            max_sectors: config.queue.max_sectors,
            queue_plugs: config.queue.plugging,
            completion_page_ns: config.machine.completion_page_ns,
            now: Nanos::ZERO,
            tasks: vec![TaskState::default(); p.tasks.len()],
            flying: Vec::new(),
            free_flying: NONE,
            pieces: Vec::new(),
            free_piece: NONE,
            heap: BinaryHeap::new(),
            sequence: 0,
            cursor: 0,
            open: 0,
            bios: Vec::new(),
            ready: Vec::new(),
            second: Nanos::from_secs(1),
            moved: [0; 2],
            at_device: vec![0; p.devices.len()],
            slots: config.queue.slots,
            tags: !config.queue.plugging && config.queue.slots > 0 && config.queue.wake == WakeRule::Tags,
            held: vec![0; p.devices.len()],
            waiters: VecDeque::new(),
            out: Replayed::default(),
        }
    }

    fn result(self) -> Replayed {
        let mut r = self.out;
        r.finished = self.open == 0 && self.heap.is_empty();
        r.counters.elapsed_ns = r.elapsed.get();
        r.counters.events = r.events;
        r.counters.device_busy_ns = (0..self.p.devices.len()).map(|d| self.layer.device_busy(d as DevId).get()).sum();
        r
    }

    fn at(&self, recorded: Nanos) -> Nanos {
        match self.pacing {
            Pacing::Scaled(x) => Nanos((recorded.get() as f64 * x).round() as u64),
            Pacing::Recorded | Pacing::Closed => recorded,
        }
    }

    fn later(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at, event, self.sequence)));
    }

    fn play(&mut self, abort: &AtomicBool) -> Result<(), BlockReplayError> {
        let closed = self.pacing == Pacing::Closed;
        if closed {
            for task in 0..self.tasks.len() {
                self.aim(task as u32, Nanos::ZERO);
            }
        }
        loop {
            if self.out.events.is_multiple_of(STOP_CHECK) {
                if abort.load(Ordering::Relaxed) {
                    return Err(BlockReplayError::Interrupted);
                }
                if self.o.failed() {
                    return Ok(());
                }
            }
            let bio = if closed { None } else { self.p.actions.get(self.cursor).map(|a| self.at(a.at)) };
            let event = self.heap.peek().map(|Reverse((t, ..))| *t);
            // Whatever could start at this time has: a timer that is over waits for something else, a completion say.
            let timer = self.layer.timer().filter(|t| *t > self.now);
            let Some(next) = [bio, event, timer].into_iter().flatten().min() else {
                if self.unstick() {
                    continue;
                }
                return Ok(());
            };
            self.advance(next.max(self.now));
            self.out.events += 1;
            if event == Some(next) {
                if let Some(Reverse((_, event, _))) = self.heap.pop() {
                    self.happen(event);
                }
            } else if bio == Some(next) && timer != Some(next) {
                let action = self.cursor as u32;
                self.cursor += 1;
                self.come(action);
            }
            self.start();
        }
    }

    /// Nothing is due: whatever a plug or a sleeping unplug holds back has to go. False if there is nothing.
    fn unstick(&mut self) -> bool {
        let mut released = self.layer.any_plugged();
        self.layer.unplug_all();
        for task in 0..self.tasks.len() as u32 {
            if !self.tasks[task as usize].plug.is_empty() {
                self.release(task);
                released = true;
            }
        }
        if !self.waiters.is_empty() {
            let before = self.waiters.len();
            self.wake_for_tags();
            released |= self.waiters.len() < before;
        }
        self.start();
        released
    }

    fn advance(&mut self, to: Nanos) {
        while self.second <= to {
            let queued = (0..self.at_device.len()).map(|d| u64::from(self.in_use(d as u16))).sum();
            self.o.second(self.second, self.moved, queued);
            self.moved = [0; 2];
            self.second += Nanos::from_secs(1);
        }
        self.now = to;
    }

    /// Requests that a device's queue and the device have.
    fn in_use(&self, dev: u16) -> u32 {
        self.layer.queue_len(DevId::from(dev)) as u32 + self.at_device[usize::from(dev)]
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Complete { dev, rq } => self.complete(dev, rq),
            Event::Flushed { flying } => self.flushed(flying),
            Event::Release { task } => self.release(task),
            Event::Issue { action } => self.come(action),
        }
    }

    fn start(&mut self) {
        loop {
            while let Some(s) = self.layer.start(self.now) {
                self.at_device[s.dev as usize] += 1;
                let handling = u64::from(s.nr).div_ceil(SECTORS_PER_PAGE) * self.completion_page_ns;
                self.later(s.done_at + Nanos(handling), Event::Complete { dev: s.dev, rq: s.rq });
            }
            // A merge that gave its slot back, or a throttle's timer, may have woken somebody.
            if !self.wake() {
                return;
            }
        }
    }

    /// A bio is due; it is queued unless its task sleeps.
    fn come(&mut self, action: u32) {
        let task = &mut self.tasks[self.p.actions[action as usize].task as usize];
        if task.asleep.is_some() || !task.backlog.is_empty() {
            task.backlog.push_back(action);
        } else {
            self.issue(action);
        }
    }

    /// A task queues a bio.
    fn issue(&mut self, action: u32) {
        let a = self.p.actions[action as usize];
        let flying = self.fly(Flying {
            action,
            left: a.nr,
            flushing: a.flags.preflush(),
            issued: self.now,
            slept: Nanos::ZERO,
            next: NONE,
        });
        self.open += 1;
        if a.flags.preflush() {
            let done = self.layer.flush(DevId::from(a.dev), self.now);
            self.later(done, Event::Flushed { flying });
        } else {
            self.pieces_of(flying, !self.queue_plugs);
        }
        if self.queue_plugs || a.hold_ns < AT_ONCE_NS {
            self.drain(a.task);
        }
        match a.hold_ns {
            NO_UNPLUG => {}
            ns if ns < AT_ONCE_NS => self.release(a.task),
            ns => self.later(self.now + Nanos(u64::from(ns)), Event::Release { task: a.task }),
        }
        if self.pacing == Pacing::Closed {
            self.tasks[a.task as usize].unaimed = true;
            if self.tasks[a.task as usize].asleep.is_none() {
                self.aim(a.task, self.now);
            }
        }
    }

    /// Splits a bio's data into pieces that fit a request, and hands them to the plug list or straight on.
    fn pieces_of(&mut self, flying: u32, to_plug: bool) {
        let a = self.p.actions[self.flying[flying as usize].action as usize];
        let (mut sector, mut left) = (a.sector, a.nr);
        while left > 0 {
            let nr = left.min(self.max_sectors);
            let piece = self.piece(Piece { flying, nr, next: NONE });
            let b =
                Bundle { dev: a.dev, dir: a.flags.dir(), kind: a.flags.kind(), sector, nr, head: piece, tail: piece };
            sector += u64::from(nr);
            left -= nr;
            let task = &mut self.tasks[a.task as usize];
            if !to_plug {
                task.outbox.push_back(b);
            } else if !task.pending.is_empty() || !self.list(a.task, b) {
                self.wait_for_tag(a.task, b);
            }
        }
    }

    /// Puts a bundle on its task's plug list; false if it needs a tag and there is none. What is on a list has its tag.
    fn list(&mut self, task: u32, b: Bundle) -> bool {
        let t = &mut self.tasks[task as usize];
        if let Some(join) = t.plug.joins(&b, self.max_sectors) {
            if let Some((earlier, later)) = t.plug.join(&b, join) {
                self.pieces[earlier as usize].next = later;
                self.merged(b.dir);
            }
            return true;
        }
        if t.plug.full() {
            self.hand_over(task);
        }
        if self.tags && !self.tag_free(b.dev) {
            // Before it sleeps a task lets go of what it holds, which may merge into what is queued.
            self.hand_over(task);
            if !self.tag_free(b.dev) {
                return false;
            }
        }
        self.held[usize::from(b.dev)] += 1;
        self.tasks[task as usize].plug.push(b);
        true
    }

    fn tag_free(&self, dev: u16) -> bool {
        self.in_use(dev) + self.held[usize::from(dev)] < self.slots
    }

    fn hand_over(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        t.outbox.extend(t.plug.release());
        self.drain(task);
    }

    /// A task sleeps until a tag is free for its next bundle.
    fn wait_for_tag(&mut self, task: u32, b: Bundle) {
        let t = &mut self.tasks[task as usize];
        t.pending.push_back(b);
        t.asleep.get_or_insert(self.now);
        // It may sleep for a request slot already, for what it had to let go before.
        if !self.waiters.contains(&task) {
            self.waiters.push_back(task);
        }
    }

    /// Tags may have become free: those that wait for one get it, in the order in which they came.
    fn wake_for_tags(&mut self) {
        let mut turns = self.waiters.len();
        while turns > 0
            && let Some(&task) = self.waiters.front()
        {
            if self.tasks[task as usize].in_queue {
                self.waiters.rotate_left(1);
                turns -= 1;
                continue;
            }
            // Awake while it tries, so that it can hand over what it holds.
            let since = self.tasks[task as usize].asleep.take().unwrap_or(self.now);
            let mut got = false;
            while let Some(&b) = self.tasks[task as usize].pending.front() {
                if !self.list(task, b) {
                    break;
                }
                self.tasks[task as usize].pending.pop_front();
                let flying = self.pieces[b.head as usize].flying;
                if !got || self.flying[flying as usize].slept == Nanos::ZERO {
                    self.flying[flying as usize].slept += self.now.saturating_sub(since);
                }
                got = true;
            }
            let t = &mut self.tasks[task as usize];
            if !t.pending.is_empty() {
                t.asleep = Some(if got { self.now } else { since });
                if !got {
                    return;
                }
                // It had its turn: whoever sleeps again does so behind the others.
                self.waiters.rotate_left(1);
                continue;
            }
            turns -= 1;
            self.waiters.pop_front();
            if std::mem::take(&mut self.tasks[task as usize].owed) {
                self.release(task);
            }
            self.resume(task);
        }
    }

    fn merged(&mut self, dir: Dir) {
        match dir {
            Dir::Read => self.out.counters.read_merges += 1,
            Dir::Write => self.out.counters.write_merges += 1,
        }
    }

    /// A task hands over what its plug list holds, or unplugs the queue.
    fn release(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        if self.tags && t.asleep.is_some() {
            t.owed = true;
            return;
        }
        self.hand_over(task);
        if self.queue_plugs {
            self.layer.unplug_all();
        }
    }

    /// Queues what a task has let go, until it sleeps.
    fn drain(&mut self, task: u32) {
        if self.tasks[task as usize].asleep.is_some() {
            return;
        }
        while let Some(&b) = self.tasks[task as usize].outbox.front() {
            match self.layer.submit(DevId::from(b.dev), b.bio(task), self.now) {
                Submit::Full => {
                    self.sleep(task, b);
                    return;
                }
                outcome => self.taken(task, b.dir, outcome),
            }
        }
    }

    fn taken(&mut self, task: u32, dir: Dir, outcome: Submit) {
        if let Some(b) = self.tasks[task as usize].outbox.pop_front() {
            let held = &mut self.held[usize::from(b.dev)];
            *held = held.saturating_sub(1);
        }
        match outcome {
            Submit::Merged(_) => self.merged(dir),
            Submit::Queued(_) | Submit::Full => {}
        }
    }

    fn sleep(&mut self, task: u32, b: Bundle) {
        let t = &mut self.tasks[task as usize];
        // Before it sleeps a task lets go of what it holds.
        t.outbox.extend(t.plug.release());
        t.asleep = Some(self.now);
        t.in_queue = true;
        self.layer.wait_slot(DevId::from(b.dev), b.dir, task);
    }

    /// Those that a freed slot woke try again. True if there was anybody.
    fn wake(&mut self) -> bool {
        let mut any = false;
        while let Some(task) = self.layer.next_wake() {
            any = true;
            let Some(&b) = self.tasks[task as usize].outbox.front() else { continue };
            let outcome = self.layer.retry(DevId::from(b.dev), b.bio(task), task, self.now);
            if outcome == Submit::Full {
                continue;
            }
            self.tasks[task as usize].in_queue = false;
            if let Some(since) = self.tasks[task as usize].asleep.take() {
                let mut piece = b.head;
                while piece != NONE {
                    let p = self.pieces[piece as usize];
                    self.flying[p.flying as usize].slept += self.now.saturating_sub(since);
                    piece = p.next;
                }
            }
            self.taken(task, b.dir, outcome);
            self.drain(task);
            let t = &mut self.tasks[task as usize];
            if !t.pending.is_empty() {
                // What it sleeps for now is a tag.
                t.asleep.get_or_insert(self.now);
            }
            self.resume(task);
        }
        if any && !self.waiters.is_empty() {
            self.wake_for_tags();
        }
        any
    }

    /// A task that slept goes on with the bios behind.
    fn resume(&mut self, task: u32) {
        while self.tasks[task as usize].asleep.is_none()
            && let Some(action) = self.tasks[task as usize].backlog.pop_front()
        {
            self.issue(action);
        }
        if self.tasks[task as usize].asleep.is_none() && self.tasks[task as usize].unaimed {
            self.aim(task, self.now);
        }
    }

    fn complete(&mut self, dev: DevId, rq: RqId) {
        let mut bios = std::mem::take(&mut self.bios);
        let mut rec = self.layer.complete(dev, rq, self.now, &mut bios);
        self.at_device[dev as usize] -= 1;
        self.out.elapsed = self.now;
        let (mut first, mut pieces) = (rec.q, 0);
        let mut ready = std::mem::take(&mut self.ready);
        for bio in &bios {
            let mut piece = bio.tag;
            while piece != NONE {
                let p = self.pieces[piece as usize];
                let f = &mut self.flying[p.flying as usize];
                first = first.min(f.issued);
                pieces += 1;
                f.left -= p.nr;
                if f.left == 0 {
                    ready.push(p.flying);
                }
                self.pieces[piece as usize].next = self.free_piece;
                self.free_piece = piece;
                piece = p.next;
            }
        }
        rec.q = first;
        rec.bios = pieces;
        self.count(&rec);
        self.o.request(&rec);
        self.bios = bios;
        for flying in ready.drain(..) {
            self.landed(flying);
        }
        self.ready = ready;
        self.wake();
        if !self.waiters.is_empty() {
            self.wake_for_tags();
        }
    }

    fn count(&mut self, rec: &IoRecord) {
        let bytes = u64::from(rec.nr) * SECTOR_BYTES;
        let c = &mut self.out.counters;
        match rec.dir {
            Dir::Read => {
                c.disk_read_bytes += bytes;
                c.read_requests += 1;
            }
            Dir::Write => {
                c.disk_write_bytes += bytes;
                c.write_requests += 1;
            }
        }
        self.moved[rec.dir.index()] += bytes;
        if rec.seek_sectors == 0 {
            c.sequential_requests += 1;
        } else {
            c.seeks += 1;
        }
    }

    /// A flush is done: the data behind it go to the queue, or the bio is done.
    fn flushed(&mut self, flying: u32) {
        let f = &mut self.flying[flying as usize];
        let task = self.p.actions[f.action as usize].task;
        if f.flushing && f.left > 0 {
            f.flushing = false;
            self.pieces_of(flying, !self.queue_plugs);
            self.release(task);
        } else {
            self.done(flying);
        }
    }

    /// A bio's data are with the device; forced unit access is a flush behind them, as for disks that do not offer it.
    fn landed(&mut self, flying: u32) {
        let f = self.flying[flying as usize];
        let a = self.p.actions[f.action as usize];
        if a.flags.fua() {
            let done = self.layer.flush(DevId::from(a.dev), self.now);
            self.later(done, Event::Flushed { flying });
        } else {
            self.done(flying);
        }
    }

    fn done(&mut self, flying: u32) {
        let f = self.flying[flying as usize];
        self.flying[flying as usize].next = self.free_flying;
        self.free_flying = flying;
        self.open -= 1;
        self.out.elapsed = self.now;
        let a = &self.p.actions[f.action as usize];
        self.o.bio(a, &BioDone { action: f.action, q: f.issued, c: self.now, slept: f.slept });
        if self.pacing == Pacing::Closed && a.waited_by != NONE {
            self.tell(a.task, a.waited_by);
        }
    }

    /// A completion that a later bio of the task waits for.
    fn tell(&mut self, task: u32, waiter: u32) {
        let now = self.now;
        let t = &mut self.tasks[task as usize];
        let aimed = self.p.tasks[task as usize].actions.get(t.next) == Some(&waiter) && t.waits > 0;
        if aimed {
            t.waits -= 1;
            t.base = t.base.max(now);
            if t.waits == 0 {
                let at = t.base + self.p.actions[waiter as usize].think;
                self.later(at, Event::Issue { action: waiter });
                self.tasks[task as usize].next += 1;
            }
        } else {
            let e = t.early.entry(waiter).or_insert((0, now));
            e.0 += 1;
            e.1 = e.1.max(now);
        }
    }

    /// Closed pacing: when a task's next bio comes, or what it waits for.
    fn aim(&mut self, task: u32, base: Nanos) {
        let t = &mut self.tasks[task as usize];
        t.unaimed = false;
        let Some(&action) = self.p.tasks[task as usize].actions.get(t.next) else { return };
        let a = &self.p.actions[action as usize];
        let (done, last) = t.early.remove(&action).unwrap_or((0, base));
        t.waits = a.waits.saturating_sub(done);
        t.base = base.max(last);
        if t.waits == 0 {
            t.next += 1;
            // Without a completion between, the think time counts from the bio before.
            let at = if a.waits > 0 { t.base.max(last) } else { base } + a.think;
            self.later(at, Event::Issue { action });
        }
    }

    fn fly(&mut self, f: Flying) -> u32 {
        if self.free_flying == NONE {
            self.flying.push(f);
            (self.flying.len() - 1) as u32
        } else {
            let id = self.free_flying;
            self.free_flying = self.flying[id as usize].next;
            self.flying[id as usize] = f;
            id
        }
    }

    fn piece(&mut self, p: Piece) -> u32 {
        if self.free_piece == NONE {
            self.pieces.push(p);
            (self.pieces.len() - 1) as u32
        } else {
            let id = self.free_piece;
            self.free_piece = self.pieces[id as usize].next;
            self.pieces[id as usize] = p;
            id
        }
    }
}
