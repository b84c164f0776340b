//! How a task's bios come into the queue: split, on its plug list, past the tags, and after a sleep.

use super::{Engine, Observe, Piece};
use crate::block::{Cause, DevId, Dir, Hints, Submit};
use crate::blockreplay::plug::Bundle;
use crate::blockreplay::program::NONE;
use kreplay_traces::units::Nanos;

impl<O: Observe> Engine<'_, O> {
    /// Splits a bio's data into pieces that fit a request, and hands them to the plug list or straight on.
    pub(super) fn pieces_of(&mut self, flying: u32, to_plug: bool) {
        let a = self.p.actions[self.flying[flying].action as usize];
        let (mut sector, mut left) = (a.sector, a.nr);
        let cause = if a.flags.sync() { Cause::Sync } else { Cause::Writeback };
        let mut hints = Hints { cause, ..self.tasks[a.task as usize].hints };
        if let Some((class, level)) = a.priority {
            (hints.class, hints.level) = (class, level);
        }
        while left > 0 {
            let nr = left.min(self.max_sectors);
            let piece = self.pieces.put(Piece { flying, nr, next: NONE });
            let (dir, kind) = (a.flags.dir(), a.flags.kind());
            let b = Bundle { dev: a.dev, dir, kind, hints, sector, nr, head: piece, tail: piece };
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
                self.pieces[earlier].next = later;
                self.merged(b.dir);
            }
            return true;
        }
        if t.plug.full(self.plug_list) {
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
    pub(super) fn wake_for_tags(&mut self) {
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
                let flying = self.pieces[b.head].flying;
                if !got || self.flying[flying].slept == Nanos::ZERO {
                    self.flying[flying].slept += self.now.saturating_sub(since);
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
    pub(super) fn release(&mut self, task: u32) {
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
    pub(super) fn drain(&mut self, task: u32) {
        if self.tasks[task as usize].asleep.is_some() {
            return;
        }
        while let Some(&b) = self.tasks[task as usize].outbox.front() {
            match self.layer.submit_as(DevId::from(b.dev), b.bio(task), b.hints, self.now) {
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
    pub(super) fn wake(&mut self) -> bool {
        let mut any = false;
        while let Some(task) = self.layer.next_wake() {
            any = true;
            let Some(&b) = self.tasks[task as usize].outbox.front() else { continue };
            let outcome = self.layer.retry_as(DevId::from(b.dev), b.bio(task), b.hints, task, self.now);
            if outcome == Submit::Full {
                continue;
            }
            self.tasks[task as usize].in_queue = false;
            if let Some(since) = self.tasks[task as usize].asleep.take() {
                let mut piece = b.head;
                while piece != NONE {
                    let p = self.pieces[piece];
                    self.flying[p.flying].slept += self.now.saturating_sub(since);
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
    pub(super) fn resume(&mut self, task: u32) {
        while self.tasks[task as usize].asleep.is_none()
            && let Some(action) = self.tasks[task as usize].backlog.pop_front()
        {
            self.issue(action);
        }
        if self.tasks[task as usize].asleep.is_none() && self.tasks[task as usize].unaimed {
            self.aim(task, self.now);
        }
    }
}
