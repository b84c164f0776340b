//! Drives queues with recorded events and compares what they decide.

use std::collections::{BTreeMap, VecDeque};

use kreplay_traces::units::{Nanos, Sectors};

use super::super::scores::{RunScores, Score, Tally};
use super::super::traced::Traced;
use super::events::{Act, Event};
use crate::block::elevator::{self, Elevator, End, Verdict};
use crate::block::qos::Qos;
use crate::block::queue::{Limits, Queue};
use crate::block::slots::{self, Slots};
use crate::block::{Bio, BioKind, Dir, RqId};
use crate::config::{Config, WakeRule};

/// More than any queue of the time has: who sleeps when is the trace's matter.
const ENOUGH_SLOTS: u32 = 1 << 16;
const ALL: Option<f64> = Some(100.0);
/// Sleeps had to be inferred.
const MOST: Option<f64> = Some(99.9);

struct Drive {
    queue: Queue,
    slots: Slots,
    wakes: VecDeque<u32>,
    /// Requests listed, by direction.
    listed: [u32; 2],
    in_service: Option<RqId>,
}

struct Player<'a> {
    config: &'a Config,
    slots: u32,
    batch: u32,
    logged: bool,
    /// Sleeps that no line shows.
    inferred: u64,
    drives: BTreeMap<usize, Drive>,
    /// What each process has offered.
    offered: BTreeMap<u32, Event>,
    /// A coalesce that the model has made and the trace has still to show: kept and swallowed request.
    coalesced: Option<(u64, u64)>,
    insert: Score,
    back: Score,
    front: Score,
    coalesce: Score,
    dispatched: Score,
    plug: Score,
    sleep: Score,
}

/// Plays a run's events. `rescans`: who slept for a slot looks at the list again.
pub(super) fn play(run: &Traced, config: &Config, events: &[Event], rescans: bool) -> Result<RunScores, String> {
    let logged = events.iter().any(|e| e.act == Act::Sleep);
    let machine = slots::Machine {
        ram_kib: config.machine.ram,
        usable_kib: config.machine.ram.saturating_sub(config.machine.reserved),
        device_depth: 1,
        scheduler: true,
    };
    let (slots, batch) = slots::sizes(&config.queue, machine, |total| total);
    let mut player = Player {
        config,
        slots,
        batch,
        inferred: 0,
        logged,
        drives: BTreeMap::new(),
        offered: BTreeMap::new(),
        coalesced: None,
        insert: Score::new("insert position", ALL),
        back: Score::new("back merge", ALL),
        front: Score::new("front merge", ALL),
        coalesce: Score::new("coalesce", ALL),
        dispatched: Score::new("dispatched request", ALL),
        plug: Score::new("plug", ALL),
        sleep: Score::new("sleep for a slot", ALL),
    };
    for e in events {
        player.event(e, rescans)?;
    }
    let inferred = player.inferred;
    let mut scores = vec![player.insert, player.back, player.front, player.coalesce, player.dispatched];
    if inferred > 0 {
        for s in &mut scores {
            s.bar_pct = MOST;
            s.note = Some("the trace logs no sleeps for a slot; they are inferred".to_owned());
        }
    }
    scores.extend([player.plug, player.sleep]);
    scores.retain(|s| s.of > 0);
    let tally = |name: &str, count: usize| Tally { name: name.to_owned(), count: count as u64 };
    let count = |f: fn(&Event) -> bool| events.iter().filter(|e| f(e)).count();
    Ok(RunScores {
        run: run.name.clone(),
        variant: run.variant.clone(),
        scores,
        inputs: vec![
            tally("submissions (Q)", count(|e| e.act == Act::Queue)),
            tally("unplugs (U)", count(|e| e.act == Act::Unplug)),
            tally("completions (C)", count(|e| e.act == Act::Complete)),
            tally("sleeps for a slot (S)", count(|e| e.act == Act::Sleep)),
        ],
        hidden: vec![Tally { name: "sleeps inferred from a completion and 300 us".to_owned(), count: inferred }],
        broken: Vec::new(),
    })
}

impl Player<'_> {
    fn event(&mut self, e: &Event, rescans: bool) -> Result<(), String> {
        if e.act == Act::Unplug {
            for d in self.drives.values_mut() {
                d.queue.unplug(&mut d.slots, &mut d.wakes);
                d.start();
            }
            return Ok(());
        }
        if !self.drives.contains_key(&e.dev) {
            self.drives.insert(e.dev, Drive::new(self.config)?);
        }
        let (dev, line) = (e.dev, e.line);
        match e.act {
            Act::Queue => {
                self.offered.insert(e.pid, *e);
                if e.late && !self.logged && self.may_sleep(e) {
                    self.inferred += 1;
                    if rescans {
                        self.first_look(e);
                    }
                }
            }
            Act::Sleep => {
                let Some(q) = self.offered.get(&e.pid).copied() else { return Ok(()) };
                self.check_sleep(&q, true, line);
                if rescans {
                    self.first_look(&q);
                }
            }
            Act::Insert { .. } | Act::Back { .. } | Act::Front { .. } => self.decide(e),
            Act::Coalesce { gone } => {
                let made = self.coalesced.take();
                self.coalesce.count(made == Some((e.sector, gone)), || {
                    format!("line {line}: kernel {} swallows {gone}, model {made:?}", e.sector)
                });
            }
            Act::Plug => {
                // The queue is empty, and the look that follows will plug it.
                let d = self.drive(dev);
                let empty = d.queue.elevator.len() == 0;
                self.plug.count(empty, || format!("line {line}: plugged, the model's queue is not empty"));
            }
            Act::Complete => self.complete(e),
            Act::Unplug => {}
        }
        Ok(())
    }

    fn drive(&mut self, dev: usize) -> &mut Drive {
        self.drives.get_mut(&dev).expect("made when first named")
    }

    /// What a process does before it finds that there is no slot: it looks, and those that it looked at are charged.
    fn first_look(&mut self, q: &Event) {
        let line = q.line;
        let verdict = self.drive(q.dev).queue.look(bio(q), Nanos::ZERO);
        self.insert.count(matches!(verdict, Verdict::Insert(_)), || {
            format!("line {line}: kernel sleeps for a slot, model merges")
        });
    }

    fn share(&self, dir: Dir) -> u32 {
        if dir == Dir::Read { self.slots.div_ceil(2) } else { self.slots / 2 }
    }

    /// Could all slots of its direction be in use, or freed but not yet handed out (which is done by the batch)?
    fn may_sleep(&mut self, q: &Event) -> bool {
        self.drive(q.dev).listed[q.dir.index()] + self.batch > self.share(q.dir)
    }

    /// Does sleeping or not agree with the slots in use?
    fn check_sleep(&mut self, q: &Event, slept: bool, line: usize) {
        if !self.logged || !matches!(self.config.queue.wake, WakeRule::AllLifo | WakeRule::OneFifo) {
            return;
        }
        let share = self.share(q.dir);
        let used = self.drive(q.dev).listed[q.dir.index()];
        self.sleep.count((used >= share) == slept, || {
            format!(
                "line {line}: {used} of {share} slots in use, the kernel's process {}",
                if slept { "slept" } else { "went on" }
            )
        });
    }

    fn decide(&mut self, e: &Event) {
        let Some(q) = self.offered.remove(&e.pid) else { return };
        if let Some((kept, gone)) = self.coalesced.take() {
            self.coalesce.count(false, || format!("before line {}: model {kept} swallows {gone}, kernel not", e.line));
        }
        if matches!(e.act, Act::Insert { .. }) && !q.slept {
            self.check_sleep(&q, false, e.line);
        }
        let d = self.drive(e.dev);
        let before = d.queue.elevator.len();
        d.queue.submit(&mut d.slots, bio(&q), Nanos::ZERO, &mut d.wakes);
        let Some(taken) = d.queue.last_taken() else { return };
        let r = d.queue.rqs[taken.rq];
        let model = match taken.end {
            None => {
                d.listed[r.dir.index()] += 1;
                let pos = d.queue.elevator.position(&d.queue.rqs, taken.rq).unwrap_or(usize::MAX);
                Act::Insert { pos, qlen: before }
            }
            Some(end) => {
                if let Some(gone) = taken.absorbed {
                    d.listed[r.dir.index()] -= 1;
                    // A swallowed request's record is kept until it is used again.
                    self.coalesced = Some((r.sector, d.queue.rqs[gone].sector));
                }
                match end {
                    End::Back => Act::Back { into: r.sector },
                    End::Front => Act::Front { into: q.sector + u64::from(q.nr) },
                }
            }
        };
        let score = match e.act {
            Act::Insert { .. } => &mut self.insert,
            Act::Back { .. } => &mut self.back,
            _ => &mut self.front,
        };
        score.count(model == e.act, || format!("line {}: kernel {:?}, model {model:?}", e.line, e.act));
        self.drive(e.dev).start();
    }

    fn complete(&mut self, e: &Event) {
        let d = self.drive(e.dev);
        d.start();
        let Some(rq) = d.in_service.take() else {
            self.dispatched.count(false, || format!("line {}: kernel {} is done, model serves none", e.line, e.sector));
            return;
        };
        let r = d.queue.rqs[rq];
        d.listed[r.dir.index()] -= 1;
        let mut bios = Vec::new();
        d.queue.complete(&mut d.slots, rq, Nanos::ZERO, &mut bios, &mut d.wakes);
        d.wakes.clear();
        d.start();
        self.dispatched.count((r.sector, r.nr, r.dir) == (e.sector, e.nr, e.dir), || {
            format!("line {}: kernel {}+{}, model {}+{}", e.line, e.sector, e.nr, r.sector, r.nr)
        });
    }
}

impl Drive {
    fn new(config: &Config) -> Result<Self, String> {
        let limits = Limits {
            max_sectors: config.queue.max_sectors,
            max_segments: u16::try_from(config.queue.max_segments).unwrap_or(u16::MAX),
            head_active: config.queue.head_active,
            plugging: config.queue.plugging,
            task_plugs: config.queue.task_plugs,
            plug_list: config.queue.plug_list,
            depth: 1,
            ahead: false,
            rotational: true,
        };
        let elevator = elevator::build(&config.elevator).map_err(|e| e.to_string())?;
        Ok(Self {
            queue: Queue::new(elevator, limits, ENOUGH_SLOTS, Qos::default()),
            slots: Slots::new(WakeRule::OneFifo, ENOUGH_SLOTS, 1),
            wakes: VecDeque::new(),
            listed: [0; 2],
            in_service: None,
        })
    }

    fn start(&mut self) {
        if self.in_service.is_none() {
            self.in_service = self.queue.dispatch(Nanos::ZERO);
        }
    }
}

fn bio(q: &Event) -> Bio {
    Bio { dir: q.dir, sector: Sectors(q.sector), nr: q.nr, partition: 0, kind: BioKind::Data, tag: 0, task: q.pid }
}
