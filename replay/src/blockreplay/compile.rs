//! Block events to a [`BlockProgram`].
//!
//! One pass, in which what the trace holds is taken to be what it has shown so far: a device has bios of its own or not, the
//! trace shows plug lists and requests being made or not. If the rest of the trace shows that a decision was made on less, a
//! second pass begins with what is known then. What is held between rows is bounded by the bios in flight.

use std::collections::BTreeMap;

use kreplay_traces::error::Error;
use kreplay_traces::event::BlockRow;
use kreplay_traces::store::TraceDir;
use kreplay_traces::units::{Nanos, SECTOR_BYTES, Sectors};
use rustc_hash::FxHashMap;

use super::program::{Action, BlockProgram, BlockTask, Flags, NO_UNPLUG, NONE, RecordedRequest};
use crate::block::Dir;
use crate::config::priority;
use crate::program::DeviceInfo;

/// Without unplug events: a task that queues its next bio later than this has released its plug list.
const BURST: Nanos = Nanos::from_micros(100);
/// With unplug events: so late a task has released its plug list, even if the event is missing.
const FORGOTTEN: Nanos = Nanos::from_millis(10);

/// What the compiler looks at.
const COLUMNS: [&str; 10] =
    ["time_ns", "dev", "action", "rwbs", "sector_512", "len_bytes", "pid", "comm", "text", "line"];

/// Block rows in time order, to be read more than once.
pub trait Rows {
    /// Calls `visit` with every row.
    ///
    /// # Errors
    /// If the rows cannot be read.
    fn each(&mut self, visit: &mut dyn FnMut(&BlockRow<'_>)) -> Result<(), Error>;
}

impl Rows for &TraceDir {
    fn each(&mut self, visit: &mut dyn FnMut(&BlockRow<'_>)) -> Result<(), Error> {
        self.blocks()?.only(&COLUMNS).visit(visit)
    }
}

impl Rows for &[BlockRow<'_>] {
    fn each(&mut self, visit: &mut dyn FnMut(&BlockRow<'_>)) -> Result<(), Error> {
        self.iter().for_each(visit);
        Ok(())
    }
}

/// What a trace shows of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Bios.
    queued: u64,
    /// Requests that went to the device.
    dispatched: u64,
}

impl Seen {
    /// Its requests stand for its bios, of which the trace has none.
    fn stands(self) -> bool {
        self.queued == 0
    }
}

/// What a trace shows on the whole.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Devices by number.
    devices: BTreeMap<i64, Seen>,
    /// Tasks' plug lists (P).
    plugs: bool,
    /// Requests being made (G).
    gets: bool,
}

impl Facts {
    fn note(&mut self, row: &BlockRow<'_>) {
        match row.action {
            "Q" => self.devices.entry(row.device()).or_default().queued += 1,
            "D" => self.devices.entry(row.device()).or_default().dispatched += 1,
            "P" => self.plugs = true,
            "G" => self.gets = true,
            _ => {}
        }
    }

    /// A device that queues bios but never dispatches, beside one that does, passes them on: its bios are queued again below.
    /// Driving both would move everything twice.
    fn driven(&self, s: Seen) -> bool {
        s.dispatched > 0 || (s.queued > 0 && self.devices.values().all(|d| d.dispatched == 0))
    }
}

/// Compiles the block events of a trace. `known` names devices (number, name, sectors) that the trace describes.
///
/// # Errors
/// If the rows cannot be read.
pub fn compile(
    trace_id: &str,
    known: &[(i64, Option<String>, Option<u64>)],
    mut rows: impl Rows,
) -> Result<BlockProgram, Error> {
    let mut c = Compiler::default();
    rows.each(&mut |row| {
        c.facts.note(row);
        c.row(row);
    })?;
    if c.mistaken() {
        let facts = std::mem::take(&mut c.facts);
        c = Compiler { seen: Some((facts.plugs, facts.gets)), facts, ..Compiler::default() };
        let driven: Vec<_> =
            c.facts.devices.iter().filter(|(_, s)| c.facts.driven(**s)).map(|(n, s)| (*n, *s)).collect();
        for (number, s) in driven {
            c.add_device(number, s.stands());
        }
        rows.each(&mut |row| c.row(row))?;
    }
    c.finish();
    let Compiler { mut program, facts, devices, .. } = c;
    program.trace_id = trace_id.to_owned();
    program.coverage.plugs = facts.plugs;
    for (number, s) in &facts.devices {
        match devices.get(number) {
            Some((_, stands)) => program.coverage.from_dispatches += u64::from(*stands),
            None => program.coverage.stacked += s.queued,
        }
    }
    name_devices(&mut program, &devices, known);
    Ok(program)
}

/// Gives the devices their names, and the order of their numbers.
fn name_devices(
    program: &mut BlockProgram,
    devices: &FxHashMap<i64, (u16, bool)>,
    known: &[(i64, Option<String>, Option<u64>)],
) {
    let mut numbers: Vec<(i64, u16)> = devices.iter().map(|(&number, &(index, _))| (number, index)).collect();
    numbers.sort_unstable();
    let mut place = vec![0; numbers.len()];
    let reached: Vec<Sectors> = program.devices.iter().map(|d| d.sectors).collect();
    program.devices.clear();
    for (at, (number, index)) in numbers.into_iter().enumerate() {
        place[usize::from(index)] = at as u16;
        let fact = known.iter().find(|k| k.0 == number);
        let name = fact.and_then(|f| f.1.clone()).unwrap_or_else(|| format!("{}:{}", number >> 20, number & 0xf_ffff));
        let sectors = reached[usize::from(index)].max(Sectors(fact.and_then(|f| f.2).unwrap_or(0)));
        program.devices.push(DeviceInfo { name, sectors, partitions: vec![Sectors::ZERO] });
    }
    if !place.is_sorted() {
        program.actions.iter_mut().for_each(|a| a.dev = place[usize::from(a.dev)]);
        program.requests.iter_mut().for_each(|r| r.dev = place[usize::from(r.dev)]);
    }
}

/// So many guesses can be withdrawn.
const MOST_GUESSED: usize = 1 << 20;

/// From a bio to the release of its task's list, ns.
fn hold(queued: Nanos, released: Nanos) -> u32 {
    u32::try_from(released.saturating_sub(queued).get()).unwrap_or(u32::MAX).min(NO_UNPLUG - 1)
}

/// Last sector that a device can have here: 8 EiB; beyond it a line is damaged.
const LAST_SECTOR: u64 = 1 << 54;

/// State of a task between rows.
#[derive(Debug, Default)]
struct TaskState {
    /// Its last bio.
    last: Option<u32>,
    /// Sectors of that bio that no request has taken yet.
    left: u64,
    /// When that bio was queued, or a request took of it: a task that slept for a tag has been busy until then.
    busy: Nanos,
    /// The plug list holds something.
    plugged: bool,
    /// A release was seen that is not certain: index of the bio before it, hold time before.
    doubtful: Option<(u32, u32)>,
    /// Completions since the last bio: how many, the last one's time, and the bios.
    completed: Vec<u32>,
    completed_at: Nanos,
}

#[derive(Default)]
struct Compiler {
    program: BlockProgram,
    /// What the trace has shown so far.
    facts: Facts,
    /// Second pass: whether it shows plug lists, and requests being made.
    seen: Option<(bool, bool)>,
    /// A decision was made for good on not having seen a P, or a G.
    without: (bool, bool),
    /// Bios whose release was guessed, having seen no P yet, and what is known of it without the guess.
    guessed: Vec<(u32, u32)>,
    /// Device number to index, and whether its requests stand for its bios.
    devices: FxHashMap<i64, (u16, bool)>,
    tasks: FxHashMap<i64, u32>,
    states: Vec<TaskState>,
    /// Bios not complete yet: (device, first sector, number) to sectors left.
    open: BTreeMap<(u16, u64, u32), u64>,
    /// Keys of those that a completion finishes.
    done: Vec<(u16, u64, u32)>,
    /// Longest of them ever, sectors: how far back an overlapping one can begin.
    longest: u64,
    /// Flushes not complete yet, oldest first.
    flushes: Vec<u32>,
    /// Requests at the device: (device, first sector, write) to index.
    flying: BTreeMap<(u16, u64, bool), u32>,
}

impl Compiler {
    fn add_device(&mut self, number: i64, stands: bool) -> Option<(u16, bool)> {
        let index = u16::try_from(self.program.devices.len()).ok().filter(|i| *i < u16::MAX)?;
        self.program.devices.push(DeviceInfo { name: String::new(), sectors: Sectors::ZERO, partitions: Vec::new() });
        self.devices.insert(number, (index, stands));
        Some((index, stands))
    }

    /// The device of a row. In the first pass the first Q or D of a device says what it is taken for.
    fn device(&mut self, row: &BlockRow<'_>) -> Option<(u16, bool)> {
        if let Some(&known) = self.devices.get(&row.device()) {
            return Some(known);
        }
        match row.action {
            "Q" | "D" if self.seen.is_none() => self.add_device(row.device(), row.action == "D"),
            _ => None,
        }
    }

    /// The first pass took something for what it is not.
    fn mistaken(&self) -> bool {
        let wrong = |(number, s): (&i64, &Seen)| {
            let taken = self.devices.get(number).map(|d| d.1);
            taken != self.facts.driven(*s).then(|| s.stands())
        };
        let (plugs, gets) = self.without;
        (plugs && self.facts.plugs) || (gets && self.facts.gets) || self.facts.devices.iter().any(wrong)
    }

    /// Whether the trace shows plug lists.
    fn shows_plugs(&self) -> bool {
        self.seen.map_or(self.facts.plugs, |s| s.0)
    }

    /// The trace shows its first plug list: what was guessed of earlier ones was wrong.
    fn withdraw(&mut self) {
        for (action, hold) in std::mem::take(&mut self.guessed) {
            self.program.actions[action as usize].hold_ns = hold;
        }
    }

    /// Whether it shows requests being made.
    fn shows_gets(&mut self) -> bool {
        let shown = self.seen.map_or(self.facts.gets, |s| s.1);
        self.without.1 |= !shown;
        shown
    }

    fn row(&mut self, row: &BlockRow<'_>) {
        if row.action == "P" {
            self.withdraw();
        }
        let at = Nanos(u64::try_from(row.time_ns).unwrap_or(0));
        if row.dev.is_none() {
            // ftrace names no device: a task has one plug list, whatever lies in it.
            match row.action {
                "P" => return self.plug(row),
                "U" | "UT" => return self.unplug(row, at),
                _ => {}
            }
        }
        let Some((dev, from_dispatches)) = self.device(row) else { return };
        let nr = row.len_bytes.and_then(|l| u64::try_from(l).ok()).unwrap_or(0) / SECTOR_BYTES;
        let sector = row.sector_512.and_then(|s| u64::try_from(s).ok());
        match row.action {
            "Q" if !from_dispatches => self.queue(row, dev, at, sector, nr),
            "G" | "M" | "F" => {
                if let Some(task) = self.known_task(row) {
                    let t = &mut self.states[task as usize];
                    t.left = t.left.saturating_sub(nr);
                    t.busy = at;
                    // Between a release and this one a new request was made: the release was the task's own.
                    t.doubtful = None;
                }
            }
            "P" => self.plug(row),
            "U" | "UT" => self.unplug(row, at),
            "I" => self.prioritise(row, dev, sector, nr),
            "D" => {
                self.dispatch(row, dev, at, sector, nr, from_dispatches);
                self.prioritise(row, dev, sector, nr);
            }
            "C" => self.complete(row, dev, at, sector, nr),
            _ => {}
        }
    }

    fn known_task(&self, row: &BlockRow<'_>) -> Option<u32> {
        self.tasks.get(&row.pid.unwrap_or(-1)).copied()
    }

    fn task(&mut self, row: &BlockRow<'_>) -> u32 {
        let pid = row.pid.unwrap_or(-1);
        if let Some(&t) = self.tasks.get(&pid) {
            return t;
        }
        let t = self.program.tasks.len() as u32;
        let name = row.comm.filter(|c| !c.is_empty()).map_or_else(|| format!("pid {pid}"), str::to_owned);
        self.program.tasks.push(BlockTask { pid, name, actions: Vec::new() });
        self.states.push(TaskState::default());
        self.tasks.insert(pid, t);
        t
    }

    fn queue(&mut self, row: &BlockRow<'_>, dev: u16, at: Nanos, sector: Option<u64>, nr: u64) {
        let flags = Flags::from_rwbs(row.rwbs);
        let Some(flags) = flags.filter(|f| f.preflush() || (nr > 0 && sector.is_some())) else {
            self.program.coverage.not_modelled += 1;
            return;
        };
        let nr = u32::try_from(nr).unwrap_or(u32::MAX);
        let sector = sector.unwrap_or(0);
        if sector > LAST_SECTOR {
            self.program.coverage.not_modelled += 1;
            return;
        }
        let task = self.task(row);
        let number = self.program.actions.len() as u32;
        if number == NONE {
            return;
        }
        self.program.reach(dev, sector + u64::from(nr));
        self.before(task, number, at);
        let state = &mut self.states[task as usize];
        let waits = state.completed.len() as u32;
        // While it slept for a tag of its last bio it did not think.
        let since = state.last.map_or(Nanos::ZERO, |l| self.program.actions[l as usize].at.max(state.busy));
        let think = at.saturating_sub(if waits > 0 { since.max(state.completed_at) } else { since });
        for done in state.completed.drain(..) {
            self.program.actions[done as usize].waited_by = number;
        }
        state.last = Some(number);
        state.left = u64::from(nr);
        let hold_ns = if state.plugged { NO_UNPLUG } else { 0 };
        let line = u32::try_from(row.line).unwrap_or(0);
        let done = Nanos::MAX;
        self.program.actions.push(Action {
            at,
            done,
            sector,
            think,
            nr,
            task,
            waits,
            waited_by: NONE,
            hold_ns,
            line,
            dev,
            flags,
            priority: None,
        });
        self.program.tasks[task as usize].actions.push(number);
        self.program.coverage.bios += 1;
        if nr == 0 || flags.preflush() || flags.fua() {
            self.flushes.push(number);
        } else {
            self.open.insert((dev, sector, number), u64::from(nr));
            self.longest = self.longest.max(u64::from(nr));
        }
    }

    /// A task queues its next bio: settles what its last one's plug list came to.
    fn before(&mut self, task: u32, number: u32, at: Nanos) {
        let state = &mut self.states[task as usize];
        state.doubtful = None;
        let Some(last) = state.last.filter(|&l| l < number) else { return };
        let plugs = self.shows_plugs();
        let state = &mut self.states[task as usize];
        let a = &mut self.program.actions[last as usize];
        let gap = at.saturating_sub(state.busy.max(a.at));
        if !plugs {
            if self.seen.is_none() && self.guessed.len() < MOST_GUESSED {
                self.guessed.push((last, a.hold_ns));
            } else {
                self.without.0 = true;
            }
            a.hold_ns = if gap <= BURST { NO_UNPLUG } else { 0 };
        } else if a.hold_ns == NO_UNPLUG && gap > FORGOTTEN {
            a.hold_ns = FORGOTTEN.get() as u32;
            state.plugged = false;
        }
    }

    fn plug(&mut self, row: &BlockRow<'_>) {
        let Some(task) = self.known_task(row) else { return };
        let state = &mut self.states[task as usize];
        if let Some((bio, hold)) = state.doubtful.take() {
            // Released because the last request was large, and filled again at once: the queue's own rule.
            self.program.actions[bio as usize].hold_ns = hold;
        }
        state.plugged = true;
        if let Some(last) = state.last {
            self.program.actions[last as usize].hold_ns = NO_UNPLUG;
        }
    }

    fn unplug(&mut self, row: &BlockRow<'_>, at: Nanos) {
        let Some(task) = self.known_task(row) else { return };
        let state = &mut self.states[task as usize];
        let Some(last) = state.last else { return };
        state.plugged = false;
        // In the middle of a bio the list is released by rule, which the replay has itself: for its size, or before the task
        // sleeps for a tag.
        if state.left > 0 && self.shows_gets() {
            return;
        }
        let state = &mut self.states[task as usize];
        let a = &mut self.program.actions[last as usize];
        state.doubtful = Some((last, a.hold_ns));
        a.hold_ns = hold(a.at, at);
    }

    fn dispatch(&mut self, row: &BlockRow<'_>, dev: u16, at: Nanos, sector: Option<u64>, nr: u64, stands: bool) {
        let (Some(sector), Some(flags)) = (sector, Flags::from_rwbs(row.rwbs)) else {
            self.program.coverage.not_modelled += u64::from(stands);
            return;
        };
        if nr == 0 {
            return;
        }
        let key = (dev, sector, flags.dir() == Dir::Write);
        if let Some(&again) = self.flying.get(&key)
            && u64::from(self.program.requests[again as usize].nr) == nr
        {
            // Requeued and dispatched again: what counts is the time that led to the completion.
            self.program.requests[again as usize].d = at;
            return;
        }
        if stands {
            self.queue(row, dev, at, Some(sector), nr);
        }
        let index = self.program.requests.len() as u32;
        let nr = u32::try_from(nr).unwrap_or(u32::MAX);
        self.program.requests.push(RecordedRequest { dev, dir: flags.dir(), sector, nr, d: at, c: None });
        self.flying.insert(key, index);
    }

    /// The trace says which priority a request has; so had its bios, as only those of one priority are merged.
    fn prioritise(&mut self, row: &BlockRow<'_>, dev: u16, sector: Option<u64>, nr: u64) {
        let Some(said) = row.text.and_then(|t| priority::class_and_level(t).ok()) else { return };
        let (Some(sector), Some(flags)) = (sector, Flags::from_rwbs(row.rwbs)) else { return };
        let from = (dev, sector.saturating_sub(self.longest), 0);
        let open = self.open.range(from..(dev, sector.saturating_add(nr), 0)).map(|(&(_, _, number), _)| number);
        for number in open.chain(self.flushes.iter().copied()) {
            let a = &mut self.program.actions[number as usize];
            let meets = a.dev == dev && a.sector < sector.saturating_add(nr) && a.sector + u64::from(a.nr) > sector;
            if meets && a.flags.dir() == flags.dir() {
                a.priority = Some(said);
            }
        }
    }

    fn complete(&mut self, row: &BlockRow<'_>, dev: u16, at: Nanos, sector: Option<u64>, nr: u64) {
        let Some(flags) = Flags::from_rwbs(row.rwbs) else { return };
        let Some(sector) = sector else { return };
        if nr == 0 || flags.preflush() || flags.fua() {
            // A flush, or a write with flushes around it, as its task sees it.
            let found = self.flushes.iter().position(|&f| {
                let a = &self.program.actions[f as usize];
                a.dev == dev && (a.sector == sector || a.nr == 0)
            });
            if let Some(k) = found {
                let f = self.flushes.remove(k);
                self.finished(f, at);
            }
        }
        if nr == 0 {
            return;
        }
        if let Some(r) = self.flying.remove(&(dev, sector, flags.dir() == Dir::Write)) {
            self.program.requests[r as usize].c = Some(at);
        }
        let end = sector.saturating_add(nr);
        let from = (dev, sector.saturating_sub(self.longest), 0);
        let mut done = std::mem::take(&mut self.done);
        for (&(d, s, number), left) in self.open.range_mut(from..(dev, end, 0)) {
            let a = &self.program.actions[number as usize];
            let overlap = end.min(s + u64::from(a.nr)).saturating_sub(sector.max(s));
            if overlap > 0 && a.flags.dir() == flags.dir() {
                *left = left.saturating_sub(overlap);
                if *left == 0 {
                    done.push((d, s, number));
                }
            }
        }
        for key in done.drain(..) {
            self.open.remove(&key);
            self.finished(key.2, at);
        }
        self.done = done;
    }

    fn finished(&mut self, number: u32, at: Nanos) {
        let a = &mut self.program.actions[number as usize];
        a.done = at;
        if a.flags.sync() {
            let state = &mut self.states[a.task as usize];
            state.completed.push(number);
            state.completed_at = at;
        }
    }

    fn finish(&mut self) {
        for state in &self.states {
            if let Some(last) = state.last {
                let a = &mut self.program.actions[last as usize];
                if a.hold_ns == NO_UNPLUG {
                    a.hold_ns = 0;
                }
            }
        }
    }
}
