//! Plays a [`BlockProgram`] under a variant's queue, elevator and device.
//!
//! One thread, integer nanoseconds; at the same time completions come before timers and those before new bios. A task is
//! a line of bios: while one waits for a request slot, those behind it wait too. Bios larger than the queue's limit are
//! split; a task's plug list is that of [`super::plug`] where the queue has none of its own (blk-mq), else the queue is
//! unplugged when the task would have released its list.

mod submit;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use kreplay_traces::units::{Nanos, SECTOR_BYTES, SECTORS_PER_PAGE};
use thiserror::Error;

use super::plug::{Bundle, Plug};
use super::program::{Action, BlockProgram, NO_UNPLUG, NONE};
use super::slab::Slab;
use crate::block::{Bio, BlockLayer, DevId, Dir, Hints, IoRecord, RqId};
use crate::config::{Config, PlugList, WakeRule, priority};
use crate::results::Counters;
use crate::sim::Pacing;

/// Lists held for less are released at once: the time between two lines of the kernel.
const AT_ONCE_NS: u32 = 2_000;
const SECOND: Nanos = Nanos::from_secs(1);
/// Of a stretch longer than this in which nothing happens, only the first and the last second are told.
const QUIET: Nanos = Nanos::from_secs(86_400);
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
    /// A simulated second ended (of a day and more in which nothing happens: the first and the last one): bytes read and
    /// written in it, requests in the queues and at the devices.
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
    let mut config = config.clone();
    // Plug lists are the replay's own here: they follow what the trace shows.
    config.queue.task_plugs = false;
    let layer = BlockLayer::new(&config, &program.devices).map_err(|e| BlockReplayError::Config(e.to_string()))?;
    let rules = priority::parse(&config.queue.priorities)
        .map_err(|e| BlockReplayError::Config(format!("queue.priorities: {e}")))?;
    let mut engine = Engine::new(program, &config, pacing, layer, observer);
    for (state, task) in engine.tasks.iter_mut().zip(&program.tasks) {
        if let Some((class, level)) = priority::of(&rules, &task.name, task.pid) {
            state.hints = Hints { class, level, ..Hints::default() };
        }
    }
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
}

/// A part of a bio that fits a request.
#[derive(Clone, Copy, Debug)]
struct Piece {
    flying: u32,
    nr: u32,
    /// Next piece of the same bundle.
    next: u32,
}

#[derive(Clone, Debug, Default)]
struct TaskState {
    /// Its priority.
    hints: Hints,
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
    plug_list: PlugList,
    /// The queue plugs itself; tasks have no lists.
    queue_plugs: bool,
    completion_page_ns: u64,
    now: Nanos,
    tasks: Vec<TaskState>,
    flying: Slab<Flying>,
    pieces: Slab<Piece>,
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
    /// Request slots of a queue.
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
        let slots = layer.slots();
        Self {
            p,
            o,
            layer,
            pacing,
            max_sectors: config.queue.max_sectors,
            plug_list: config.queue.plug_list,
            queue_plugs: config.queue.plugging,
            completion_page_ns: config.machine.completion_page_ns,
            now: Nanos::ZERO,
            tasks: vec![TaskState::default(); p.tasks.len()],
            flying: Slab::default(),
            pieces: Slab::default(),
            heap: BinaryHeap::new(),
            sequence: 0,
            cursor: 0,
            open: 0,
            bios: Vec::new(),
            ready: Vec::new(),
            second: SECOND,
            moved: [0; 2],
            at_device: vec![0; p.devices.len()],
            slots,
            tags: !config.queue.plugging && config.queue.wake == WakeRule::Tags,
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
            let earlier = |a: Option<Nanos>, b: Option<Nanos>| match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let Some(next) = earlier(earlier(bio, event), timer) else {
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
            self.second += SECOND;
            if to.saturating_sub(self.second) > QUIET {
                // Nothing happens before `to`: damaged clocks put decades between two events.
                self.second = Nanos(to.get() / SECOND.get() * SECOND.get());
            }
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
        let flying = self.flying.put(Flying {
            action,
            left: a.nr,
            flushing: a.flags.preflush(),
            issued: self.now,
            slept: Nanos::ZERO,
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
                let p = self.pieces[piece];
                let f = &mut self.flying[p.flying];
                first = first.min(f.issued);
                pieces += 1;
                f.left -= p.nr;
                if f.left == 0 {
                    ready.push(p.flying);
                }
                self.pieces.free(piece);
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
        let f = &mut self.flying[flying];
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
        let f = self.flying[flying];
        let a = self.p.actions[f.action as usize];
        if a.flags.fua() {
            let done = self.layer.flush(DevId::from(a.dev), self.now);
            self.later(done, Event::Flushed { flying });
        } else {
            self.done(flying);
        }
    }

    fn done(&mut self, flying: u32) {
        let f = self.flying[flying];
        self.flying.free(flying);
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
}
