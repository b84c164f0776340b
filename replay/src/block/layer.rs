//! The facade: a queue, an elevator and a device per disk of the trace.

use std::collections::VecDeque;

use kreplay_traces::units::Nanos;

use super::device::{self, AnyDevice, Device, HeldCommand, Transfer};
use super::elevator::{self, Elevator};
use super::error::ConfigError;
use super::qos::Qos;
use super::queue::{Limits, Queue};
use super::slots::{self, Slots};
use super::watermark::Watermark;
use super::{Bio, DevId, Dir, Hints, IoRecord, RqId, Started, Submit, Waiter};
use crate::config::{Config, DeviceConfig, check};
use crate::program::DeviceInfo;

/// One disk.
#[derive(Clone, Debug)]
struct Unit {
    queue: Queue,
    device: AnyDevice,
    /// Commands that a reordering device holds and has not begun, and whose they are.
    held: Vec<HeldCommand>,
    held_for: Vec<RqId>,
    /// Such a device works on one.
    serving: bool,
    busy: Nanos,
    /// When the device last began to work, and for how long: decides who gets a shared channel.
    last_start: Nanos,
    last_service: Nanos,
}

/// Every disk of a simulation, with the queues before them.
///
/// It keeps no clock and sleeps for nobody: each call says what time it is, [`BlockLayer::start`] says when a request
/// will be done, and the caller calls [`BlockLayer::complete`] then. All answers are deterministic.
#[derive(Clone, Debug)]
pub struct BlockLayer {
    /// Request slots that a queue has, both directions together.
    slots_each: u32,
    units: Vec<Unit>,
    /// One per disk, or one for all.
    slots: Vec<Slots>,
    wakes: VecDeque<Waiter>,
    shared_channel: bool,
    in_flight: usize,
    plugged: usize,
    /// The disk that used the shared channel last.
    channel_user: usize,
    /// Limit on what is queued on all disks together.
    watermark: Option<Watermark>,
}

impl Unit {
    /// A device that chooses among its commands: fills its queue, and names the one that it begins if it is idle, and since
    /// when it has held it.
    fn choose(&mut self, now: Nanos) -> Option<(RqId, Nanos)> {
        while let Some(rq) = self.queue.dispatch(now) {
            let r = &self.queue.rqs[rq];
            self.held.push(self.device.hold(Transfer { dir: r.dir, sector: r.sector, nr: r.nr }, now));
            self.held_for.push(rq);
        }
        if self.serving || self.held.is_empty() {
            return None;
        }
        let at = self.device.pick(now, &self.held);
        let chosen = (self.held_for.remove(at), self.held.remove(at).since);
        self.serving = true;
        Some(chosen)
    }
}

impl BlockLayer {
    /// Request slots of a queue, both directions together, as configured or as memory or the device's tags give them.
    pub(crate) fn slots(&self) -> u32 {
        self.slots_each
    }

    /// A queue, an elevator and a device per entry of `devices`, all of the kinds that `config` names.
    ///
    /// # Errors
    /// An unknown elevator, or a limit of zero.
    pub fn new(config: &Config, devices: &[DeviceInfo]) -> Result<Self, ConfigError> {
        let queue = &config.queue;
        check::queue(queue)?;
        let attached = device::build(&config.device)?;
        let scheduler = config.elevator.policy != "none";
        let machine = slots::Machine {
            ram_kib: config.machine.ram,
            usable_kib: config.machine.ram.saturating_sub(config.machine.reserved),
            device_depth: attached.queue_depth,
            scheduler,
        };
        let least = elevator::build(&config.elevator)?;
        let (slots, batch) = slots::sizes(queue, machine, |total| least.least_tags(total));
        if slots < 2 {
            let what = format!("{slots}: one slot per direction is the least that can work (0 = by memory size)");
            return Err(ConfigError::OutOfRange { key: "queue.slots", what });
        }
        let limits = Limits {
            max_sectors: queue.max_sectors,
            max_segments: u16::try_from(queue.max_segments).unwrap_or(u16::MAX),
            head_active: queue.head_active,
            plugging: queue.plugging,
            task_plugs: queue.task_plugs,
            plug_list: queue.plug_list,
            depth: attached.queue_depth,
            ahead: queue.dispatch_ahead && scheduler && !queue.head_active,
            rotational: !matches!(config.device, DeviceConfig::Ssd { .. } | DeviceConfig::Null { .. }),
        };
        let elevator = elevator::build(&config.elevator)?;
        let unit = Unit {
            queue: Queue::new(
                elevator,
                limits,
                slots,
                Qos::new(queue, queue.wbt.queue_depth(attached.queue_depth, slots)),
            ),
            device: attached.device,
            held: Vec::new(),
            held_for: Vec::new(),
            serving: false,
            busy: Nanos::ZERO,
            last_start: Nanos::ZERO,
            last_service: Nanos::ZERO,
        };
        Ok(Self {
            slots_each: slots,
            units: vec![unit; devices.len()],
            slots: vec![
                Slots::new(queue.wake, slots, batch);
                if Slots::shared(queue.wake) { 1 } else { devices.len() }
            ],
            wakes: VecDeque::new(),
            shared_channel: attached.shared_channel,
            in_flight: 0,
            plugged: 0,
            channel_user: 0,
            watermark: queue.queued_limit.then(|| Watermark::new(config.machine.ram)),
        })
    }

    /// Offers a bio. A queue that was empty and unplugged gets plugged, where the variant's kernel plugs.
    pub fn submit(&mut self, dev: DevId, bio: Bio, now: Nanos) -> Submit {
        self.submit_as(dev, bio, Hints::default(), now)
    }

    /// [`BlockLayer::submit`] with what the submitter says of the bio.
    pub fn submit_as(&mut self, dev: DevId, bio: Bio, hints: Hints, now: Nanos) -> Submit {
        if let Some(w) = &mut self.watermark
            && !w.pass(&bio)
        {
            return Submit::Full;
        }
        let unit = &mut self.units[dev as usize];
        let before = unit.queue.plugged();
        let slots = slots_of(&mut self.slots, dev);
        unit.queue.hints = hints;
        let outcome = unit.queue.submit(slots, bio, now, &mut self.wakes);
        self.plugged = self.plugged + usize::from(unit.queue.plugged()) - usize::from(before);
        self.count(&bio, outcome);
        outcome
    }

    fn count(&mut self, bio: &Bio, outcome: Submit) {
        if let Some(w) = &mut self.watermark
            && outcome != Submit::Full
        {
            w.queued(bio.nr);
        }
    }

    /// After [`Submit::Full`]: the caller goes to sleep for a slot. The queue is unplugged, the waiter listed.
    pub fn wait_slot(&mut self, dev: DevId, dir: Dir, waiter: Waiter) {
        if self.watermark.as_mut().is_some_and(|w| w.wait(waiter)) {
            self.unplug_all();
            return;
        }
        if self.slots.len() < self.units.len() {
            // One table for all disks: whoever waits for it runs tq_disk, not one queue's part of it.
            self.unplug_all();
        }
        let unit = &mut self.units[dev as usize];
        let before = unit.queue.plugged();
        unit.queue.wait(slots_of(&mut self.slots, dev), dir, waiter, &mut self.wakes);
        self.plugged = self.plugged + usize::from(unit.queue.plugged()) - usize::from(before);
    }

    /// A waiter that [`BlockLayer::next_wake`] named tries again with its bio.
    ///
    /// With a slot in hand the elevator looks again from the start (and charges again); the bio may now merge, and the
    /// slot goes back. [`Submit::Full`]: no slot, the waiter sleeps on and must not call [`BlockLayer::wait_slot`].
    pub fn retry(&mut self, dev: DevId, bio: Bio, waiter: Waiter, now: Nanos) -> Submit {
        self.retry_as(dev, bio, Hints::default(), waiter, now)
    }

    /// [`BlockLayer::retry`] with what the submitter says of the bio.
    pub fn retry_as(&mut self, dev: DevId, bio: Bio, hints: Hints, waiter: Waiter, now: Nanos) -> Submit {
        if let Some(w) = &mut self.watermark
            && w.waits(waiter)
        {
            if !w.retry(waiter) {
                return Submit::Full;
            }
            let outcome = self.submit_as(dev, bio, hints, now);
            if outcome == Submit::Full {
                self.wait_slot(dev, bio.dir, waiter);
            }
            return outcome;
        }
        let unit = &mut self.units[dev as usize];
        let before = unit.queue.plugged();
        let slots = slots_of(&mut self.slots, dev);
        unit.queue.hints = hints;
        let outcome = unit.queue.retry(slots, bio, waiter, now, &mut self.wakes);
        self.plugged = self.plugged + usize::from(unit.queue.plugged()) - usize::from(before);
        self.count(&bio, outcome);
        outcome
    }

    /// Unplugs every queue (2.4: runs `tq_disk`; blk-mq: the plug lists of all tasks go down, as if these slept).
    pub fn unplug_all(&mut self) {
        if self.plugged > 0 {
            for (dev, unit) in self.units.iter_mut().enumerate() {
                unit.queue.unplug(slots_of(&mut self.slots, dev as DevId), &mut self.wakes);
            }
            self.plugged = 0;
        }
    }

    /// A task has submitted all that it wants to for now: its plug lists go down (`blk_finish_plug`).
    pub fn finish_plug(&mut self, task: u32, now: Nanos) {
        self.send_down(task, false, now);
    }

    /// A task goes to sleep with whatever it has on its plug lists: they go down (`blk_flush_plug` from the scheduler).
    pub fn flush_plug(&mut self, task: u32, now: Nanos) {
        self.send_down(task, true, now);
    }

    fn send_down(&mut self, task: u32, sleeps: bool, now: Nanos) {
        if self.plugged == 0 {
            return;
        }
        for (dev, unit) in self.units.iter_mut().enumerate() {
            let before = unit.queue.plugged();
            unit.queue.finish_plug(slots_of(&mut self.slots, dev as DevId), task, sleeps, now, &mut self.wakes);
            self.plugged = self.plugged + usize::from(unit.queue.plugged()) - usize::from(before);
        }
    }

    /// Whether [`BlockLayer::unplug_all`] would do anything.
    #[inline]
    pub fn any_plugged(&self) -> bool {
        self.plugged > 0
    }

    /// Starts one request that a device can take now; to be called until it answers `None`.
    pub fn start(&mut self, now: Nanos) -> Option<Started> {
        for unit in &mut self.units {
            unit.queue.run_timers(now, &mut self.wakes);
        }
        if !self.shared_channel {
            return (0..self.units.len()).find_map(|dev| self.start_on(dev, now));
        }
        // One channel: nothing starts while any of its disks works.
        if self.in_flight > 0 {
            return None;
        }
        // As 2.4's IDE layer chooses: who last began longest ago, with twice its last service time on top so that a
        // disk with long requests waits for longer; on a tie the one that had the channel keeps it.
        let n = self.units.len();
        let mut order: Option<(Nanos, usize)> = None;
        for k in 0..n {
            let dev = (self.channel_user + k) % n;
            let unit = &self.units[dev];
            if unit.queue.plugged() || unit.queue.len() == 0 {
                continue;
            }
            let due = unit.last_start + unit.last_service + unit.last_service;
            if order.is_none_or(|(best, _)| due < best) {
                order = Some((due, dev));
            }
        }
        let (_, first) = order?;
        self.start_on(first, now).or_else(|| (0..n).find_map(|dev| self.start_on(dev, now)))
    }

    fn start_on(&mut self, dev: usize, now: Nanos) -> Option<Started> {
        let unit = &mut self.units[dev];
        let (rq, since) = if unit.device.reorders() { unit.choose(now)? } else { (unit.queue.dispatch(now)?, now) };
        let r = &unit.queue.rqs[rq];
        let nr = r.nr;
        let served = unit.device.serve_held(now, since, Transfer { dir: r.dir, sector: r.sector, nr });
        unit.queue.elevator.serves_until(served.done_at);
        unit.busy += served.service;
        unit.last_start = now;
        unit.last_service = served.service;
        self.in_flight += 1;
        self.channel_user = dev;
        Some(Started { dev: dev as DevId, rq, done_at: served.done_at, nr })
    }

    /// A writer goes to sleep in `balance_dirty_pages`.
    pub fn writer_slept(&mut self, now: Nanos) {
        for unit in &mut self.units {
            unit.queue.writer_slept(now);
        }
    }

    /// A flush command, which goes past the queue: when everything that the device took before `now` is on its medium.
    pub fn flush(&mut self, dev: DevId, now: Nanos) -> Nanos {
        self.units[dev as usize].device.flush(now)
    }

    /// When requests or processes are held back on purpose: the time at which to call [`BlockLayer::start`] again, and then
    /// to ask [`BlockLayer::next_wake`].
    pub fn timer(&self) -> Option<Nanos> {
        self.units.iter().filter_map(|u| u.queue.timer()).min()
    }

    /// A started request is done: frees its slot, replaces `bios` by its bios in sector order, returns its record.
    pub fn complete(&mut self, dev: DevId, rq: RqId, now: Nanos, bios: &mut Vec<Bio>) -> IoRecord {
        bios.clear();
        let unit = &mut self.units[dev as usize];
        let r = unit.queue.rqs[rq];
        let life = *unit.queue.rqs.life(rq);
        unit.queue.complete(slots_of(&mut self.slots, dev), rq, now, bios, &mut self.wakes);
        unit.serving = false;
        self.in_flight -= 1;
        if let Some(w) = &mut self.watermark {
            w.done(r.nr, &mut self.wakes);
        }
        IoRecord {
            dev,
            dir: r.dir,
            sector: kreplay_traces::units::Sectors(r.sector),
            nr: r.nr,
            bios: life.bios,
            task: life.task,
            kind: life.kind,
            q: life.q,
            i: life.i,
            d: life.d,
            c: now,
            passed: u32::try_from(life.passed).unwrap_or(u32::MAX),
            tail: life.tail,
            seek_sectors: life.seek_sectors,
        }
    }

    /// Next waiter that a freed slot woke, in the order in which they are to run.
    pub fn next_wake(&mut self) -> Option<Waiter> {
        self.wakes.pop_front()
    }

    /// Requests that wait for the device (with an active head, the one in service among them).
    pub fn queue_len(&self, dev: DevId) -> usize {
        self.units[dev as usize].queue.len()
    }

    /// Requests at the devices.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Processes that sleep for a request slot of a device or are held back before it, or were woken and have not tried again
    /// yet.
    pub fn slot_waiters(&self, dev: DevId) -> usize {
        let slots = self.slots.get(dev as usize).unwrap_or(&self.slots[0]).waiting();
        slots + self.units[dev as usize].queue.held_back() + self.watermark.as_ref().map_or(0, Watermark::waiting)
    }

    /// Linux 0.01 only: the controller idles with requests queued, and nothing will ever start it again.
    pub fn hung(&self, dev: DevId) -> bool {
        self.units[dev as usize].queue.elevator.hung()
    }

    /// Slots free, and requests that hold one, of a disk that shares its slots with nobody.
    #[cfg(test)]
    pub(super) fn slots_and_requests(&self, dev: DevId) -> (u32, usize) {
        (self.slots[dev as usize].idle(), self.units[dev as usize].queue.rqs.live())
    }

    /// Number of disks.
    pub fn devices(&self) -> u32 {
        self.units.len() as u32
    }

    /// Time that a device has worked, requests in service counted in full.
    pub fn device_busy(&self, dev: DevId) -> Nanos {
        self.units[dev as usize].busy
    }
}

fn slots_of(slots: &mut [Slots], dev: DevId) -> &mut Slots {
    let at = if slots.len() == 1 { 0 } else { dev as usize };
    &mut slots[at]
}
