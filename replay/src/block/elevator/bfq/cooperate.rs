//! Queues of processes that work together become one, and are parted again (`block/bfq-iosched.c` of 6.1:
//! `bfq_setup_cooperator`, `bfq_do_or_sched_stable_merge`, `bfq_merge_bfqqs`, `bfq_get_bfqq_handle_split`).
//!
//! Three ways to become one: a process asks for something close to where another one's queue is at, soon after its first I/O; on a
//! device that is fast at random access a queue joins the one made just before it; on others it does so later, if keeping the
//! device idle for it does not pay. A shared queue that seeks too much is parted, each process taking back the state that it
//! had, unless they were joined for having been made together.
//!
//! Processes never end here, and a process keeps its priority.

use super::super::super::IoClass;
use super::super::super::request::{NIL, Requests};
use super::super::Context;
use super::super::think::Think;
use super::Bfq;
use super::inject::Learnt;
use super::queue::Bound;
use super::raise::{BURST_GAP, COEFFICIENT, MIN_IDLE, Raise};

/// Requests within this distance are close, sectors.
const CLOSE: u64 = 8 * 1024;
/// Queues cooperate within this time from the first service of their backlog on, ns.
const EARLY: u64 = 100_000_000;
/// Made within this time of the last one, a queue does not take its place as the one to join, ns.
const TOGETHER: u64 = 600_000_000;
/// A queue has to be this old to join the one made before it, ns.
const LATE: u64 = 600_000_000;

/// What belongs to a process, whichever queue its requests go to.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// Its requests, queued and at the device, synchronous or not.
    pub(super) requests: u32,
    /// The queue that its own may join later, as it was made just before.
    partner: Option<u32>,
    /// Joined for good.
    pub(super) joined: bool,
    saved: Option<Saved>,
}

/// State of a queue that went into a shared one.
#[derive(Clone, Debug)]
struct Saved {
    learnt: Learnt,
    think: Think,
    quick: bool,
    bound: Bound,
    raise: Raise,
    listed: bool,
}

impl Bfq {
    /// Random access is as fast as any, and the device queues: nothing is gained by order.
    fn fast_at_random(&self) -> bool {
        !self.rotational && self.queues_commands.unwrap_or(true)
    }

    /// The queue for a new request of a process. `now` in ns.
    pub(super) fn queue_for(&mut self, task: u32, cx: &Context, now: u64) -> u32 {
        let Some(id) = self.owners.find(task, cx) else { return self.new_queue(task, cx, now) };
        let q = self.q(id);
        if !q.sync || !q.shared || !q.to_split || self.process(task).joined {
            return id;
        }
        self.part(id, task, cx, now)
    }

    fn new_queue(&mut self, task: u32, cx: &Context, now: u64) -> u32 {
        let id = self.create(task, cx);
        self.owners.set(task, cx, id);
        if !cx.sync {
            return id;
        }
        let q = self.q(id);
        let like = |l: &u32| {
            let l = self.q(*l);
            l.created + TOGETHER >= now && l.level == q.level && l.class == q.class
        };
        let Some(last) = self.last_created.filter(like) else {
            self.last_created = Some(id);
            return id;
        };
        if self.q(last).created + BURST_GAP < now {
            return id;
        }
        if !self.fast_at_random() {
            self.process_mut(task).partner = Some(last);
            return id;
        }
        match self.set_up(id, last) {
            Some(to) => {
                self.join_for_good(task, to);
                self.go_over(task, id, to, now)
            }
            None => id,
        }
    }

    pub(super) fn process(&self, task: u32) -> &Process {
        static NONE: Process = Process { requests: 0, partner: None, joined: false, saved: None };
        self.processes.get(&task).unwrap_or(&NONE)
    }

    pub(super) fn process_mut(&mut self, task: u32) -> &mut Process {
        self.processes.entry(task).or_default()
    }

    fn join_for_good(&mut self, task: u32, to: u32) {
        self.process_mut(task).joined = true;
        if let Some(owner) = self.q(to).owner {
            self.process_mut(owner).joined = true;
        }
    }

    fn too_late(&self, id: u32, now: u64) -> bool {
        let r = &self.q(id).raise;
        r.backlogged_service > 0 && r.first_io + EARLY < now
    }

    fn may_cooperate(&self, id: u32, with: u32, now: u64) -> bool {
        let (a, b) = (self.q(id), self.q(with));
        !self.too_late(with, now)
            && a.class != IoClass::Idle
            && a.class == b.class
            && !a.seeky()
            && !b.seeky()
            && a.sync
            && b.sync
    }

    /// The queue that `id` is to become one with, when its process asks for something at sector `at`.
    pub(super) fn cooperator(&mut self, rqs: &Requests, id: u32, task: u32, at: u64, now: u64) -> Option<u32> {
        if let Some(mut to) = self.q(id).joins {
            while let Some(further) = self.q(to).joins {
                to = further;
            }
            return Some(to);
        }
        if self.fast_at_random() {
            return None;
        }
        let q = self.q(id);
        if q.sync
            && !q.just_created
            && let Some(partner) = self.process(task).partner
            && q.parted.is_none_or(|t| t + LATE < now)
            && q.created + LATE < now
        {
            let both = q.processes.min(self.q(partner).processes) > 0;
            self.process_mut(task).partner = None;
            if self.idling_pays(id) || !both {
                return None;
            }
            let to = self.set_up(id, partner)?;
            self.join_for_good(task, to);
            return Some(to);
        }
        if self.too_late(id, now) || self.busy_queues() == 1 {
            return None;
        }
        if let Some(serving) = self.in_service.filter(|&s| s != id)
            && self.served_to.abs_diff(at) <= CLOSE
            && self.may_cooperate(id, serving, now)
            && let Some(to) = self.set_up(id, serving)
        {
            return Some(to);
        }
        let close = self.closest(rqs, at, now).filter(|&c| c != id)?;
        if self.may_cooperate(id, close, now) { self.set_up(id, close) } else { None }
    }

    /// `bfqq_find_close`: the queue whose next request is nearest. (The kernel looks at the neighbours in a tree, so that of two
    /// that are close either may be found.)
    fn closest(&self, rqs: &Requests, at: u64, now: u64) -> Option<u32> {
        self.engine
            .busy()
            .filter(|&id| {
                let q = self.q(id);
                q.next != NIL && q.class != IoClass::Idle && !self.too_late(id, now)
            })
            .map(|id| (rqs[self.q(id).next].sector.abs_diff(at), id))
            .filter(|&(distance, _)| distance <= CLOSE)
            .min()
            .map(|(_, id)| id)
    }

    /// Says that the processes of `id` will go over to another queue, or to the one that it goes over to itself.
    fn set_up(&mut self, id: u32, mut to: u32) -> Option<u32> {
        while let Some(further) = self.q(to).joins {
            if further == id {
                return None;
            }
            to = further;
        }
        let processes = self.q(id).processes;
        if to == id || processes == 0 || self.q(to).processes == 0 {
            return None;
        }
        self.q_mut(id).joins = Some(to);
        self.q_mut(to).processes += processes;
        Some(to)
    }

    /// A process goes over from its queue to the one at the end of the chain.
    pub(super) fn go_over(&mut self, task: u32, mut id: u32, to: u32, now: u64) -> u32 {
        while id != to
            && let Some(next) = self.q(id).joins
        {
            self.save(id, now);
            self.save(next, now);
            self.hand_over(id, next);
            self.owners.go_over(task, next);
            if self.process(task).partner == Some(next) {
                self.process_mut(task).partner = None;
            }
            let q = self.q_mut(next);
            q.shared = true;
            q.owner = None;
            self.q_mut(id).owner = None;
            if self.last_created == Some(id) {
                self.last_created = Some(next);
            }
            self.leave(id);
            id = next;
        }
        id
    }

    /// What a queue has learnt about its process counts for the one that the process goes to.
    fn hand_over(&mut self, id: u32, to: u32) {
        let from = self.q_mut(id);
        let io = std::mem::replace(&mut from.bound.io, false);
        let (raise, waker) = (from.raise, from.learnt.waker);
        self.q_mut(to).bound.io |= io;
        if let Some(waker) = waker.filter(|&w| w != to)
            && self.q(to).learnt.waker.is_none()
        {
            self.woken_by(to, waker);
        }
        if raise.raised() {
            if !self.q(to).raise.raised() {
                self.reraise(to, |r| {
                    r.coefficient = raise.coefficient;
                    r.lasts = raise.lasts;
                    r.since = raise.since;
                    r.interactive_since = raise.interactive_since;
                });
            }
            self.reraise(id, |r| r.coefficient = 1);
        }
    }

    fn save(&mut self, id: u32, now: u64) {
        let Some(owner) = self.q(id).owner else { return };
        let lasts = self.raising_ns();
        let q = self.q(id);
        let mut raise = q.raise;
        if q.just_created && !raise.in_burst && self.low_latency {
            // It would have been raised with its first request.
            raise.coefficient = COEFFICIENT;
            raise.interactive_since = None;
            raise.lasts = lasts;
            raise.since = now;
        }
        let saved = Saved {
            learnt: q.learnt.clone(),
            think: q.think,
            quick: q.quick,
            bound: q.bound,
            raise,
            listed: self.burst.lists(id),
        };
        self.process_mut(owner).saved = Some(saved);
    }

    /// A process's requests go elsewhere from now on (`bfq_release_process_ref`).
    fn leave(&mut self, id: u32) {
        self.q_mut(id).processes -= 1;
        let q = self.q(id);
        if q.busy && q.sorted.is_empty() && self.in_service != Some(id) {
            self.end_busy(id);
        }
        if self.last_created == Some(id) {
            self.last_created = None;
        }
        self.forget_if_done(id);
    }

    /// A queue without processes and requests is no more: it wakes nobody.
    pub(super) fn forget_if_done(&mut self, id: u32) {
        let q = self.q(id);
        if !q.sync || q.processes > 0 || q.dispatched > 0 || !q.sorted.is_empty() {
            return;
        }
        self.burst.leave(id);
        self.wakes_nobody(id);
    }

    /// Parts a process from a shared queue that seeks too much; its queue from now on.
    fn part(&mut self, id: u32, task: u32, cx: &Context, now: u64) -> u32 {
        let in_burst = self.q(id).raise.in_burst;
        let waker = self.q(id).learnt.waker.filter(|&w| self.q(w).processes > 0);
        let alone = self.q(id).processes == 1 && self.q(id).joins.is_none();
        let mine = if alone {
            let q = self.q_mut(id);
            (q.shared, q.to_split) = (false, false);
            id
        } else {
            let new = self.create(task, cx);
            self.owners.set(task, cx, new);
            self.leave(id);
            if let Some(waker) = waker {
                self.woken_by(new, waker);
            }
            self.q_mut(new).parted = Some(now);
            new
        };
        let Some(mut saved) = self.process_mut(task).saved.take() else { return mine };
        saved.raise.in_burst |= in_burst;
        if !alone {
            self.q_mut(mine).raise.in_burst = saved.raise.in_burst || (saved.listed && self.burst.large);
            if saved.listed && !self.q(mine).raise.in_burst {
                self.burst.rejoin(mine);
            }
        }
        self.resume(mine, saved, now);
        mine
    }

    /// `bfq_bfqq_resume_state`.
    fn resume(&mut self, id: u32, saved: Saved, now: u64) {
        let (low_latency, lasts) = (self.low_latency, self.raising_ns());
        let q = self.q_mut(id);
        q.quick = saved.quick;
        q.bound = saved.bound;
        q.think = saved.think;
        q.learnt.take_limit(&saved.learnt);
        let old = saved.raise;
        self.reraise(id, |r| {
            if low_latency {
                r.coefficient = old.coefficient;
            }
            r.service = old.service;
            r.interactive_since = old.interactive_since;
            r.since = old.since;
            r.lasts = old.lasts;
            r.resumes(now, lasts);
        });
    }

    /// What was learnt before the parting is not yet overruled.
    pub(super) fn just_parted(&self, id: u32, now: u64) -> bool {
        self.q(id).parted.is_some_and(|t| now <= t + MIN_IDLE)
    }
}
