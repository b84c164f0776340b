//! The simulator: one machine, one program, one thread, integer nanoseconds.
//!
//! [`run`] plays a [`Program`] under a [`Config`]. Tasks run in bursts on the machine's processors; I/O completions and
//! timers are events. A burst's I/O is stamped with the burst's beginning; bursts are cut at [`BURST`], which bounds that
//! error. Everything that can block is a [`frame::Frame`]; everything else is synchronous.

pub mod event;
pub mod frame;
pub mod task;

mod advise;
mod aging;
mod alloc;
mod charge;
mod clock;
mod daemons;
mod direct;
mod envelope;
mod extents;
mod fault;
mod filemap;
mod flusher;
mod goodness;
mod initial;
mod io;
mod journal;
mod lookup;
mod net;
mod oom;
mod ops;
mod placement;
mod pressure;
mod read;
mod sample;
mod sched;
mod start;
mod swap_place;
mod sync;
mod unused;
mod write;

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod flusher_tests;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod modern_tests;
#[cfg(test)]
mod signatures;
#[cfg(test)]
mod signatures_aa;
#[cfg(test)]
mod tests;

use crate::block::{Bio, BlockLayer, Hints, IoClass, RqId, Submit};
use crate::config::{Config, WritebackPolicy, priority};
use crate::mm::Mm;
use crate::program::{FileKind, LinkKind, Program, Start};
use crate::results::{ClientRow, EventKind, EventRow, ResultSink};
use crate::writeback::{self, DirtyLimits};
use event::{Event, EventQueue};
use frame::{Bdflush, Flush, Frame, Kswapd, Kupdate};
use kreplay_traces::units::{Bytes, Nanos};
use placement::Placement;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use swap_place::SwapPlace;
use task::Task;

/// Longest stretch of processor time between two looks at the events.
pub const BURST: Nanos = Nanos::from_micros(100);
/// Between two samples.
const SAMPLE_INTERVAL: Nanos = Nanos::from_secs(1);
/// So many events without time moving mean a livelock.
const LIVELOCK_EVENTS: u64 = 2_000_000;
/// So many reclaim runs without a single frame mean that memory will never come.
const FRUITLESS_RECLAIMS: u32 = 100_000;
/// So many simulated seconds without a finished request or operation, while nobody sleeps, mean a deadlock.
const IDLE_SAMPLES: u32 = 120;
/// Events between two looks at the stop flag.
const STOP_CHECK: u64 = 4096;

/// How operations are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// The next operation is issued when the last returned, plus its think time.
    Closed,
    /// Operations are issued when they were recorded, or when the last returned if that is later.
    Recorded,
    /// As recorded, with all times multiplied.
    Scaled(f64),
}

impl std::fmt::Display for Pacing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pacing::Closed => f.write_str("closed"),
            Pacing::Recorded => f.write_str("recorded"),
            Pacing::Scaled(x) => write!(f, "scaled={x}"),
        }
    }
}

impl std::str::FromStr for Pacing {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "closed" => Ok(Pacing::Closed),
            "recorded" => Ok(Pacing::Recorded),
            _ => match s.strip_prefix("scaled=").map(str::parse::<f64>) {
                // Beyond this a replay would simulate years of samples, or none.
                Some(Ok(x)) if (0.001..=1000.0).contains(&x) => Ok(Pacing::Scaled(x)),
                _ => Err(format!("\"{s}\" is no pacing: use closed, recorded or scaled=X with X from 0.001 to 1000")),
            },
        }
    }
}

/// Why a simulation could not run or did not end.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SimError {
    /// The configuration asks for something that does not exist or can't be.
    #[error("{0}")]
    Config(String),
    /// The program is not consistent.
    #[error("the compiled trace is not consistent: {0}")]
    Program(String),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Simulated time at the end of the last foreground task.
    pub elapsed: Nanos,
    /// Events processed.
    pub events: u64,
    /// All foreground tasks ended (else a hang or a livelock was found, see the events table).
    pub finished: bool,
}

/// State of an open file description: 2.4's read-ahead context (`f_raend` and its kin), in pages.
#[derive(Clone, Copy, Debug, Default)]
struct Ofd {
    file: u32,
    reada: bool,
    raend: u64,
    ralen: u64,
    rawin: u64,
    ramax: u64,
    /// A read returned an error.
    failed: bool,
    /// State of on-demand read-ahead.
    ra: crate::readahead::State,
}

/// State of a file.
#[derive(Clone, Debug, Default)]
struct FileState {
    size: u64,
    /// Timer tick of the last change of its contents, 1 and up.
    changed: u64,
    writer: Option<u32>,
    waiting: VecDeque<u32>,
    /// On-demand read-ahead of faults through mappings.
    map_ra: crate::readahead::State,
}

/// State of a channel.
#[derive(Clone, Debug, Default)]
struct Channel {
    count: u64,
    waiting: VecDeque<(u32, u32)>,
}

/// State of a link.
#[derive(Clone, Debug, Default)]
struct Link {
    busy_until: Nanos,
    last_tick: Nanos,
    budget: u64,
    next_client: u32,
    arrived: Vec<u64>,
}

/// A request that a device works on.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    dev: u32,
    rq: RqId,
}

/// What happened since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct SinceSample {
    read_sectors: u64,
    write_sectors: u64,
    swap_in: u64,
    swap_out: u64,
    interrupts: u64,
    switches: u64,
    busy: Nanos,
    user: Nanos,
}

/// The rule of 2.4.14+ for killing: failures in a row.
#[derive(Clone, Copy, Debug, Default)]
struct OomState {
    first: Nanos,
    last: Nanos,
    count: u32,
}

/// One simulated machine playing one program. `Clone` forks it, state and all.
#[derive(Clone, Debug)]
pub struct Sim<'p> {
    program: &'p Program,
    config: Config,
    pacing: Pacing,
    limits: DirtyLimits,
    /// Memory.
    pub mm: Mm,
    block: BlockLayer,
    tasks: Vec<Task>,
    files: Vec<FileState>,
    ofds: Vec<Ofd>,
    channels: Vec<Channel>,
    links: Vec<Link>,
    events: EventQueue,
    run_queue: VecDeque<u32>,
    running: Vec<Option<u32>>,
    choice: goodness::Choice,
    slice_end: Vec<Nanos>,
    in_flight: Vec<Option<InFlight>>,
    now: Nanos,
    /// Processor time of the burst in hand, and what of it was left over from the one before.
    cost: Nanos,
    burst_from: Nanos,
    foreground: u32,
    since_sample: SinceSample,
    oom: OomState,
    scratch: Vec<Bio>,
    kswapd: u32,
    bdflush: u32,
    swap_dev: Option<SwapPlace>,
    at_this_time: u64,
    block_timer: Option<Nanos>,
    placement: Placement,
    /// A task was woken that 2.4's scheduler would prefer to the running one.
    resched: bool,
    seed: u64,
    tail: Nanos,
    ended_at: Option<Nanos>,
    pause_at: Nanos,
    handled: u64,
    /// Reclaim runs on behalf of allocations since the last frame was had.
    fruitless: u32,
    /// Requests and operations finished, what it was when it last changed, and for how many samples it has not.
    progress: u64,
    progress_seen: u64,
    idle_samples: u32,
    /// Pages under swap I/O that nobody waits for, and how many there may be.
    swap_in_flight: u32,
    swap_flight_limit: u32,
    /// When kswapd's sleep ends by itself, and when memory statistics are due (aging kernels).
    kswapd_deadline: Nanos,
    /// When the next sample is due.
    next_sample: Nanos,
    /// How long kupdate's first sleep is, where that is not its interval.
    first_kupdate: Option<Nanos>,
    next_recalc: Nanos,
    /// Writers that sleep until bdflush has written its share, and what is left of that share (2.2).
    bdflush_waiters: Vec<u32>,
    bdflush_left: u32,
    /// Priority class and level of each task's I/O.
    io_priority: Vec<(IoClass, u8)>,
    /// Tasks that wait for I/O or memory, and for how long some or all did.
    pressure: pressure::Pressure,
    /// The flusher, and who waits for it.
    flushing: flusher::Flushing,
    journal: journal::Journal,
    extents: extents::Extents,
    mapping_hints: advise::Hints,
}

const fn assert_clone_send<T: Clone + Send + 'static>() {}
const _: () = assert_clone_send::<Sim<'static>>();

/// Play a program.
///
/// # Errors
/// A configuration that can't be, an inconsistent program, or an interruption. Hangs and livelocks of the simulated
/// kernel are findings, not errors: they go to the sink's events and make [`RunSummary::finished`] false.
pub fn run(
    program: &Program,
    config: &Config,
    seed: u64,
    pacing: Pacing,
    sink: &mut dyn ResultSink,
    stop: &AtomicBool,
) -> Result<RunSummary, SimError> {
    let mut sim = Sim::new(program, config, seed, pacing)?;
    sim.draw_state(seed);
    sim.run(sink, stop)
}

impl<'p> Sim<'p> {
    /// A machine at time zero.
    ///
    /// # Errors
    /// See [`run`].
    pub fn new(program: &'p Program, config: &Config, seed: u64, pacing: Pacing) -> Result<Self, SimError> {
        crate::config::check::ranges(config).map_err(|(key, what)| SimError::Config(format!("{key}: {what}")))?;
        if program.tasks.is_empty() {
            return Err(SimError::Program("it has no tasks".into()));
        }
        let mut devices = program.devices.clone();
        let swap_dev = SwapPlace::attach(config, &mut devices);
        let mut config = config.clone();
        config.swap.page_cluster = config.swap_cluster();
        let swap_flight_limit = match config.swap.max_in_flight_clusters {
            0 => u32::MAX,
            n => n << config.swap.page_cluster,
        };
        let config = &config;
        let block = BlockLayer::new(config, &devices).map_err(|e| SimError::Config(e.to_string()))?;
        let mm = Mm::new(program, config);
        let slice = Nanos::from_millis(u64::from(config.machine.slice_ms));
        let mut tasks: Vec<Task> = program.tasks.iter().map(|_| Task::new(Frame::Program, false, slice)).collect();
        let kswapd = tasks.len() as u32;
        tasks.push(Task::new(Frame::Kswapd { at: Kswapd::Sleep, class: 0, more: false }, true, slice));
        tasks[kswapd as usize].memalloc = true;
        let bdflush = tasks.len() as u32;
        let balanced = config.writeback.policy == WritebackPolicy::Balanced;
        let (flusher, by_age) = if balanced {
            (Frame::Flusher { at: Flush::Idle }, Frame::Journal)
        } else {
            (Frame::Bdflush { at: Bdflush::Write }, Frame::Kupdate { at: Kupdate::Begin })
        };
        tasks.push(Task::new(flusher, true, slice));
        tasks.push(Task::new(by_age, true, slice));
        let cpus = config.machine.cpus as usize;
        let mut sim = Self {
            limits: writeback::limits(&config.writeback, &mm),
            files: program
                .files
                .iter()
                .map(|f| FileState { size: if f.exists { f.initial_size } else { 0 }, ..FileState::default() })
                .collect(),
            ofds: vec![Ofd::default(); program.ofds as usize],
            channels: program
                .channels
                .iter()
                .map(|&n| Channel { count: u64::from(n), waiting: VecDeque::new() })
                .collect(),
            links: program
                .links
                .iter()
                .map(|l| Link { arrived: vec![0; l.clients as usize], ..Link::default() })
                .collect(),
            foreground: program.tasks.iter().filter(|t| !t.background).count() as u32,
            program,
            config: config.clone(),
            pacing,
            mm,
            block,
            tasks,
            events: EventQueue::default(),
            run_queue: VecDeque::new(),
            running: vec![None; cpus],
            choice: goodness::Choice::new(config.machine.scheduler, cpus),
            slice_end: vec![Nanos::ZERO; cpus],
            in_flight: Vec::new(),
            now: Nanos::ZERO,
            cost: Nanos::ZERO,
            burst_from: Nanos::ZERO,
            since_sample: SinceSample::default(),
            oom: OomState::default(),
            scratch: Vec::new(),
            kswapd,
            bdflush,
            swap_dev,
            at_this_time: 0,
            block_timer: None,
            placement: Placement::new(program, balanced),
            resched: false,
            seed,
            tail: Nanos::ZERO,
            ended_at: None,
            pause_at: Nanos::MAX,
            handled: 0,
            fruitless: 0,
            progress: 0,
            progress_seen: 0,
            idle_samples: 0,
            kswapd_deadline: Nanos::ZERO,
            next_sample: SAMPLE_INTERVAL,
            first_kupdate: None,
            next_recalc: Nanos::ZERO,
            bdflush_waiters: Vec::new(),
            bdflush_left: config.writeback.flush_buffers,
            pressure: pressure::Pressure::default(),
            io_priority: io_priorities(program, &config.queue.priorities)?,
            flushing: flusher::Flushing::new(config, program.files.len()),
            journal: journal::Journal::new(&config.writeback.balanced),
            mapping_hints: advise::Hints::new(),
            extents: extents::Extents::new(&config.writeback.balanced, program.files.len()),
            swap_in_flight: 0,
            swap_flight_limit,
        };
        if balanced {
            sim.forget_unused_inode_blocks();
        }
        sim.fill_cache()?;
        sim.start_tasks();
        Ok(sim)
    }

    /// ext4 makes inodes in a block of unused ones without reading it.
    fn forget_unused_inode_blocks(&mut self) {
        let used: rustc_hash::FxHashSet<u32> =
            self.program.files.iter().filter(|f| f.exists).filter_map(|f| f.inode_page).collect();
        for page in self.program.files.iter().filter_map(|f| f.inode_page).filter(|p| !used.contains(p)) {
            self.mm.page_mut(page).flags &= !crate::mm::page::flag::ON_DISK;
        }
    }

    /// Seeds above 0 let tasks that begin together begin up to 1 ms apart: chaotic loads then differ, and more so by the state
    /// that [`Self::draw_state`] draws.
    fn jitter_of(&self, task: u32) -> Nanos {
        Nanos(if self.seed == 0 { 0 } else { splitmix(self.seed ^ u64::from(task) << 32) % 1_000_000 })
    }

    fn start_tasks(&mut self) {
        for (i, t) in self.program.tasks.iter().enumerate() {
            if let Start::At(at) = t.start {
                let at = match self.pacing {
                    Pacing::Scaled(x) => Nanos((at.0 as f64 * x) as u64),
                    _ => at,
                };
                self.tasks[i].wait = Wait::Time;
                self.events.push(at + self.jitter_of(i as u32), Event::Wake(i as u32));
            }
        }
        for d in self.kswapd..self.tasks.len() as u32 {
            self.tasks[d as usize].wait = Wait::Daemon;
            if d > self.bdflush {
                self.tasks[d as usize].wait = Wait::Time;
                self.events.push(Nanos::ZERO, Event::Wake(d));
            }
        }
        self.start_kswapd_timer();
        for (i, l) in self.program.links.iter().enumerate() {
            if matches!(l.kind, LinkKind::Segments { .. }) {
                self.events.push(Nanos::ZERO, Event::LinkTick(i as u32));
            }
        }
        self.events.push(self.next_sample, Event::Sample);
        self.start_envelope();
    }

    /// Let the machine run on after the last foreground task has ended: daemons and devices go on, background tasks end.
    pub fn run_on_for(&mut self, tail: Nanos) {
        self.tail = tail;
    }

    /// Play up to a point in simulated time only; another [`Sim::run`] goes on from there. The state between can be cloned.
    pub fn pause_at(&mut self, at: Nanos) {
        self.pause_at = at;
    }

    /// The last foreground task has ended: is the run over?
    fn over(&mut self) -> bool {
        let now = self.now;
        let ended = *self.ended_at.get_or_insert(now);
        for (t, p) in self.tasks.iter_mut().zip(&self.program.tasks) {
            t.dying |= p.background;
        }
        now >= ended + self.tail
    }

    /// Play until the last foreground task has ended, or until the pause that was asked for (then the summary is not
    /// `finished`, and neither clients nor counters are reported).
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    pub fn run(&mut self, sink: &mut dyn ResultSink, stop: &AtomicBool) -> Result<RunSummary, SimError> {
        let finished = loop {
            self.schedule(sink);
            if self.foreground == 0 && self.over() {
                break true;
            }
            if self.events.next_at().is_some_and(|at| at > self.pause_at) {
                return Ok(RunSummary { elapsed: self.now, events: self.handled, finished: false });
            }
            let before = self.now;
            let Some((at, event)) = self.events.pop() else {
                self.report_hang(sink, EventKind::Hung, "no event is pending");
                break false;
            };
            debug_assert!(at >= self.now, "time runs backwards");
            if at > before && self.mm.ws.is_some() {
                self.pressure_until(at);
            }
            self.now = at;
            self.mm.now = at;
            self.handle(event, sink);
            if !self.mm.evictions.is_empty() {
                self.tell_evictions(sink);
            }
            self.handled += 1;
            self.at_this_time = if self.now > before { 0 } else { self.at_this_time + 1 };
            if self.at_this_time > LIVELOCK_EVENTS {
                self.report_hang(sink, EventKind::Livelock, "time does not advance");
                break false;
            }
            if self.fruitless > FRUITLESS_RECLAIMS {
                self.report_hang(sink, EventKind::Livelock, "no memory can be freed");
                break false;
            }
            if self.handled.is_multiple_of(STOP_CHECK) && (stop.load(Ordering::Relaxed) || sink.failed()) {
                return Err(SimError::Interrupted);
            }
            if matches!(event, Event::Sample) && self.foreground > 0 && (self.all_stuck() || self.deadlocked()) {
                self.report_hang(sink, EventKind::Hung, "nothing can wake the tasks that are left");
                break false;
            }
        };
        self.tell_evictions(sink);
        let elapsed = self.ended_at.unwrap_or(self.now);
        self.finish(sink, elapsed);
        Ok(RunSummary { elapsed, events: self.handled, finished })
    }

    fn tell_evictions(&mut self, sink: &mut dyn ResultSink) {
        self.mm.take_evictions().iter().for_each(|row| sink.evicted(row));
    }

    fn handle(&mut self, event: Event, sink: &mut dyn ResultSink) {
        match event {
            // An earlier sleep's timer must not cut the one in hand short.
            Event::Wake(t) if t == self.kswapd && self.now < self.kswapd_deadline => {}
            Event::Wake(t) => self.wake(t),
            Event::Daemon(t) => self.wake_daemon(t),
            Event::Rested(t) => self.rested(t),
            Event::Estimate => self.estimate_late(),
            Event::CpuFree(c) => self.burst_over(c as usize),
            Event::IoDone(slot) => self.io_done(slot, sink),
            Event::BlockTimer => {
                self.block_timer = None;
                self.kick();
                self.drain_wakes();
            }
            Event::LinkTick(l) => self.link_tick(l as usize),
            Event::Envelope => self.follow_envelope(),
            // One that another time was set for since.
            Event::Sample if self.now != self.next_sample => {}
            Event::Sample => {
                let row = self.sample();
                sink.sample(&row);
                self.next_sample = self.now + SAMPLE_INTERVAL;
                self.events.push(self.next_sample, Event::Sample);
            }
        }
    }

    /// Local time of the task that runs: the burst's beginning plus what it has used.
    #[inline]
    fn local_now(&self) -> Nanos {
        self.now + self.cost
    }

    #[inline]
    fn charge(&mut self, ns: u64) {
        self.cost += Nanos(ns);
    }

    /// Current timer tick.
    fn tick(&self) -> u32 {
        (self.now.0 / self.tick_ns()) as u32
    }

    fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.config.machine.hz)
    }

    /// When a process that asks now to sleep for `time` wakes: whole ticks, plus the one that is under way (`sys_nanosleep`).
    fn timer_at(&self, time: Nanos) -> Nanos {
        Nanos(self.timeout_at(time).0 + self.tick_ns())
    }

    /// When a kernel thread wakes that sleeps from now on until so many ticks have come (`schedule_timeout`).
    fn timeout_at(&self, time: Nanos) -> Nanos {
        let tick = self.tick_ns();
        Nanos((self.local_now().0 / tick + time.0.div_ceil(tick)) * tick)
    }

    /// Counts samples without progress; true when the tasks that are left wait for each other.
    fn deadlocked(&mut self) -> bool {
        let moved = std::mem::replace(&mut self.progress_seen, self.progress) != self.progress;
        let sleeping = |t: &Task| !t.daemon && t.wait == Wait::Time;
        if moved || self.tasks.iter().any(sleeping) {
            self.idle_samples = 0;
        } else {
            self.idle_samples += 1;
        }
        self.idle_samples >= IDLE_SAMPLES
    }

    fn all_stuck(&self) -> bool {
        self.run_queue.is_empty()
            && self.running.iter().all(Option::is_none)
            && self.block.in_flight() == 0
            && !self.block.any_plugged()
            && self.tasks.iter().filter(|t| !t.daemon).all(|t| {
                matches!(
                    t.wait,
                    Wait::Ended
                        | Wait::Start
                        | Wait::Channel(_)
                        | Wait::Inode(_)
                        | Wait::Page(_)
                        | Wait::Buffer(_)
                        | Wait::Slot
                )
            })
    }

    fn report_hang(&self, sink: &mut dyn ResultSink, kind: EventKind, why: &str) {
        let waiting: Vec<String> = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, t)| !t.daemon && t.wait != Wait::Ended)
            .take(8)
            .map(|(i, t)| format!("{}: {:?} in {:?}", self.program.tasks[i].name, t.wait, t.chain()))
            .collect();
        let text = format!("{why}; {}; memory: {}", waiting.join("; "), self.mm.census());
        sink.event(&EventRow { time: self.now, task: None, kind, text });
    }

    fn finish(&mut self, sink: &mut dyn ResultSink, elapsed: Nanos) {
        let c = &mut self.mm.counters;
        c.elapsed_ns = elapsed.0;
        c.events = self.handled;
        c.device_busy_ns = (0..self.block.devices()).map(|d| self.block.device_busy(d).0).sum();
        for (i, t) in self.tasks.iter().enumerate().take(self.program.tasks.len()) {
            sink.client(&ClientRow {
                task: i as u32,
                start: t.total.start,
                end: t.total.end,
                bytes_read: Bytes(t.total.read),
                bytes_written: Bytes(t.total.written),
                think: t.total.think,
                blame: t.total.blame,
                killed: t.total.killed,
            });
        }
        self.mm.counters.vm = self.vmstat();
        sink.counters(&self.mm.counters);
    }

    /// Offer a bio; counts what vmstat counts, which is at submission.
    fn submit_bio(&mut self, dev: u32, bio: Bio, retry: Option<u32>) -> Submit {
        let now = self.now;
        let hints = self.hints_of(bio.task, bio.dir);
        let s = match retry {
            Some(t) => self.block.retry_as(dev, bio, hints, t, now),
            None => self.block.submit_as(dev, bio, hints, now),
        };
        if s != Submit::Full {
            let n = u64::from(bio.nr);
            match bio.dir {
                crate::block::Dir::Read => self.since_sample.read_sectors += n,
                crate::block::Dir::Write => self.since_sample.write_sectors += n,
            }
        }
        s
    }

    fn is_meta(&self, page: u32) -> bool {
        self.program.files[self.mm.file_of(page) as usize].kind != FileKind::Regular
    }
}

use task::Wait;

/// Priorities of the program's tasks by their names, and of kswapd, flusher and journal by their kernel threads' names.
fn io_priorities(program: &Program, rules: &str) -> Result<Vec<(IoClass, u8)>, SimError> {
    let rules = priority::parse(rules).map_err(|what| SimError::Config(format!("queue.priorities: {what}")))?;
    let daemons = ["kswapd0", "kworker/flush", "jbd2/journal"];
    let names = program.tasks.iter().map(|t| t.name.as_str()).chain(daemons);
    let usual = (Hints::default().class, Hints::default().level);
    // Simulated tasks have no process number that a rule could name.
    Ok(names.map(|name| priority::of(&rules, name, -1).unwrap_or(usual)).collect())
}

/// splitmix64, for start jitter.
fn splitmix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
