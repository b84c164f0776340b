//! Runs a case: processes, a tick clock and a one-armed device around the queue under test.
//!
//! Order of events in a tick: woken processes, a completion, the unplug timer, due submissions by (time, number).

use std::collections::VecDeque;

use kreplay_traces::units::{Nanos, Sectors};

use super::case::{Case, Dispatch, Op, Rw, Taken};
use super::kernels::{self, Setup};
use crate::block::elevator::{Elevator, End};
use crate::block::queue::Queue;
use crate::block::slots::Slots;
use crate::block::{Bio, BioKind, RqId, Submit};

/// A tick is a millisecond, so that the deadlines of schedulers that have them keep their unit.
const TICK_NS: u64 = 1_000_000;

/// A process: its bios, and how far it is.
struct Process {
    pid: u32,
    bios: Vec<usize>,
    next: usize,
    asleep: bool,
    /// 0.01: until when it waits for its last request; `None` = not known yet.
    waits_for: Option<usize>,
}

struct Machine<'a> {
    case: &'a Case,
    setup: Setup,
    queue: Queue,
    slots: Slots,
    wakes: VecDeque<u32>,
    now: u64,
    processes: Vec<Process>,
    /// Which bio made a request.
    maker: Vec<usize>,
    at_device: VecDeque<(u64, RqId)>,
    arm: u64,
    free_at: u64,
    unplug_at: Option<u64>,
    taken: Vec<Taken>,
    dispatches: Vec<Dispatch>,
    irqs_during_sort: u64,
    scratch: Vec<Bio>,
}

/// Runs a case; the first difference if it does not agree with the record.
pub(super) fn check(case: &Case) -> Result<(), String> {
    let mut m = Machine::new(case)?;
    m.run()?;
    m.compare()
}

impl<'a> Machine<'a> {
    fn new(case: &'a Case) -> Result<Self, String> {
        let setup = kernels::setup(case)?;
        let mut processes: Vec<Process> = Vec::new();
        for (n, r) in case.requests.iter().enumerate() {
            if r.i != n {
                return Err(format!("request {n} of the list has the number {}", r.i));
            }
            match processes.iter_mut().find(|p| p.pid == r.pid) {
                Some(p) => p.bios.push(n),
                None => processes.push(Process { pid: r.pid, bios: vec![n], next: 0, asleep: false, waits_for: None }),
            }
        }
        Ok(Self {
            case,
            queue: setup.queue(case)?,
            slots: setup.slots(case),
            setup,
            wakes: VecDeque::new(),
            now: 0,
            processes,
            maker: Vec::new(),
            at_device: VecDeque::new(),
            arm: 0,
            free_at: 0,
            unplug_at: None,
            taken: Vec::new(),
            dispatches: Vec::new(),
            irqs_during_sort: 0,
            scratch: Vec::new(),
        })
    }

    fn time(&self) -> Nanos {
        Nanos(self.now * TICK_NS)
    }

    fn bio(&self, i: usize) -> Bio {
        let r = &self.case.requests[i];
        Bio {
            dir: r.rw.into(),
            sector: Sectors(r.sector),
            nr: r.nr,
            partition: r.dev,
            kind: BioKind::Data,
            tag: i as u32,
            task: r.pid,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            if let Some(pid) = self.wakes.pop_front() {
                let p = self.processes.iter().position(|p| p.pid == pid).ok_or("a stranger was woken")?;
                self.retry(p)?;
            } else if self.at_device.front().is_some_and(|d| d.0 <= self.now) {
                self.complete();
                self.start();
            } else if self.unplug_at.is_some_and(|t| t <= self.now) {
                self.unplug_at = None;
                self.queue.unplug(&mut self.slots, &mut self.wakes);
                self.start();
            } else if let Some(p) = self.due() {
                self.submit(p)?;
            } else {
                let Some(next) = self.next_time() else { return Ok(()) };
                self.now = next;
            }
        }
    }

    /// The process whose next bio is due first.
    fn due(&self) -> Option<usize> {
        let ready = |p: &Process| !p.asleep && p.waits_for.is_none() && p.next < p.bios.len();
        (0..self.processes.len())
            .filter(|&k| ready(&self.processes[k]))
            .map(|k| (k, self.processes[k].bios[self.processes[k].next]))
            .filter(|&(_, i)| self.case.requests[i].t <= self.now)
            .min_by_key(|&(_, i)| (self.case.requests[i].t, i))
            .map(|(k, _)| k)
    }

    fn next_time(&self) -> Option<u64> {
        let submissions = self
            .processes
            .iter()
            .filter(|p| !p.asleep && p.waits_for.is_none() && p.next < p.bios.len())
            .map(|p| self.case.requests[p.bios[p.next]].t);
        submissions.chain(self.at_device.front().map(|d| d.0)).chain(self.unplug_at).min()
    }

    fn submit(&mut self, p: usize) -> Result<(), String> {
        let i = self.processes[p].bios[self.processes[p].next];
        self.queue.hints.class = self.case.requests[i].class()?;
        self.interrupt_sorting(i);
        let was_plugged = self.queue.plugged();
        let (bio, now) = (self.bio(i), self.time());
        let outcome = self.queue.submit(&mut self.slots, bio, now, &mut self.wakes);
        self.note_plug(was_plugged);
        match outcome {
            Submit::Full => {
                self.processes[p].asleep = true;
                self.queue.wait(&mut self.slots, bio.dir, self.processes[p].pid, &mut self.wakes);
                self.unplugged_by_waiter();
                self.start();
            }
            Submit::Merged(_) | Submit::Queued(_) => self.record(p, i, false),
        }
        Ok(())
    }

    fn retry(&mut self, p: usize) -> Result<(), String> {
        let i = self.processes[p].bios[self.processes[p].next];
        self.queue.hints.class = self.case.requests[i].class()?;
        let was_plugged = self.queue.plugged();
        let (bio, now, pid) = (self.bio(i), self.time(), self.processes[p].pid);
        let outcome = self.queue.retry(&mut self.slots, bio, pid, now, &mut self.wakes);
        self.note_plug(was_plugged);
        match outcome {
            Submit::Full => {
                self.unplugged_by_waiter();
                self.start();
            }
            Submit::Merged(_) | Submit::Queued(_) => {
                self.processes[p].asleep = false;
                self.record(p, i, true);
            }
        }
        Ok(())
    }

    /// 0.01: the disk's interrupt arrives right after the flag was set, if a command is out.
    fn interrupt_sorting(&mut self, i: usize) {
        if !self.case.requests[i].irq_during_sort || !self.slots.any_free() {
            return;
        }
        if let Some(&(at, _)) = self.at_device.front() {
            self.now = self.now.max(at);
            self.queue.elevator.begin_sorting();
            self.complete();
            self.irqs_during_sort += 1;
        }
    }

    fn note_plug(&mut self, was_plugged: bool) {
        if self.queue.plugged() && !was_plugged && self.unplug_at.is_none() {
            self.unplug_at = Some(self.now + self.case.params.unplug_delay);
        }
    }

    fn unplugged_by_waiter(&mut self) {
        if self.setup.waiter_runs_tq_disk {
            self.unplug_at = None;
        }
    }

    fn record(&mut self, p: usize, i: usize, waited: bool) {
        self.processes[p].next += 1;
        let Some(taken) = self.queue.last_taken() else { return };
        if taken.end.is_none() {
            if self.maker.len() <= taken.rq as usize {
                self.maker.resize(taken.rq as usize + 1, usize::MAX);
            }
            self.maker[taken.rq as usize] = i;
        }
        if self.setup.waits_for_completion {
            self.processes[p].waits_for = Some(i);
        }
        self.start();
        let listed = self.setup.listed;
        let position = self.queue.elevator.position(&self.queue.rqs, taken.rq).map_or(-1, |p| p as i64);
        self.taken.push(Taken {
            i,
            t: self.now,
            op: match taken.end {
                None => Op::Insert,
                Some(End::Back) => Op::BackMerge,
                Some(End::Front) => Op::FrontMerge,
            },
            into: self.maker[taken.rq as usize],
            pos: listed.then_some(position),
            qlen: listed.then(|| self.queue.elevator.len()),
            coalesced: taken.absorbed.map(|rq| self.maker[rq as usize]),
            waited,
            do_hd: self.setup.waits_for_completion.then(|| !self.at_device.is_empty() || self.queue.elevator.hung()),
        });
    }

    fn start(&mut self) {
        while let Some(rq) = self.queue.dispatch(self.time()) {
            let r = self.queue.rqs[rq];
            let p = &self.case.params;
            // The recording laid its drives end to end.
            let start = r.sector + u64::from(self.setup.drive_sectors) * u64::from(r.partition);
            let distance = start.abs_diff(self.arm);
            let seek = if distance > 0 { p.svc_seek + distance / p.svc_seek_div } else { 0 };
            self.free_at = self.free_at.max(self.now) + p.svc_base + p.svc_per_sector * u64::from(r.nr) + seek;
            self.arm = start + u64::from(r.nr);
            self.at_device.push_back((self.free_at, rq));
            self.dispatches.push(Dispatch {
                t: self.now,
                id: self.maker[rq as usize],
                sector: r.sector,
                nr: r.nr,
                rw: Rw::from(r.dir),
                members: self.setup.merges.then(|| self.queue.rqs.tags(rq).map(|t| t as usize).collect()),
            });
        }
    }

    fn complete(&mut self) {
        let Some((_, rq)) = self.at_device.pop_front() else { return };
        self.scratch.clear();
        let (now, maker) = (self.time(), self.maker[rq as usize]);
        self.queue.complete(&mut self.slots, rq, now, &mut self.scratch, &mut self.wakes);
        for p in &mut self.processes {
            if p.waits_for == Some(maker) {
                p.waits_for = None;
            }
        }
    }

    fn compare(&self) -> Result<(), String> {
        first_difference("operation", &self.case.expected, &self.taken)?;
        first_difference("dispatch", &self.case.expected_dispatches, &self.dispatches)?;
        let order: Vec<usize> = self.dispatches.iter().map(|d| d.id).collect();
        first_difference("dispatched request", &self.case.expected_dispatch_order, &order)?;
        let stuck = self.processes.iter().filter(|p| p.asleep || p.waits_for.is_some()).count();
        let ends = [
            ("end_time", self.case.end_time, self.now),
            ("left_in_queue", self.case.left_in_queue as u64, self.queue.elevator.len() as u64),
            ("stuck_tasks", self.case.stuck_tasks as u64, stuck as u64),
            ("hung", self.case.hung.map_or(0, u64::from), u64::from(self.queue.elevator.hung())),
            ("irqs_during_sort", self.case.irqs_during_sort.unwrap_or(0), self.irqs_during_sort),
        ];
        match ends.iter().find(|(_, want, got)| want != got) {
            Some((what, want, got)) => Err(format!("{what}: kernel {want}, simulated {got}")),
            None => Ok(()),
        }
    }
}

fn first_difference<T: PartialEq + std::fmt::Debug>(what: &str, want: &[T], got: &[T]) -> Result<(), String> {
    if let Some(k) = (0..want.len().min(got.len())).find(|&k| want[k] != got[k]) {
        return Err(format!("{what} {k}: kernel {:?}, simulated {:?}", want[k], got[k]));
    }
    if want.len() != got.len() {
        return Err(format!("{what}s: kernel {}, simulated {}", want.len(), got.len()));
    }
    Ok(())
}
