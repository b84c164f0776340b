//! B-WF2Q+, the fair queueing under BFQ (`block/bfq-wf2q.c` of 6.1; P. Valente, "Reducing the execution time of fair-queueing
//! packet schedulers", 2014).
//!
//! Each class has a virtual time that advances with the service given, divided by the weights that compete. A queue gets a
//! start and a finish time for its budget; of those that may start, the one that finishes first is served.

use super::super::super::IoClass;

/// Fraction bits of virtual times.
const SHIFT: u32 = 22;
/// The idle class is served at least this often, ns.
const IDLE_CLASS_EVERY: u64 = 200_000_000;

/// Where an entity is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Nowhere,
    Active,
    /// Without work, but its finish time is still to come: it must not start anew before that.
    Idle,
    InService,
}

/// A queue as the engine sees it. Times are virtual; service and budget in sectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    pub(super) start: u64,
    pub(super) finish: u64,
    pub(super) budget: u64,
    pub(super) service: u64,
    pub(super) weight: u64,
    /// Weight to have from its next activation on.
    pub(super) new_weight: u64,
    pub(super) place: Place,
    pub(super) class: usize,
    /// Number of its last insertion among those that wait to be served.
    pub(super) came: u64,
}

impl Entity {
    pub(super) fn new(class: IoClass, weight: u64) -> Self {
        Self { weight, new_weight: weight, class: class as usize, ..Self::default() }
    }

    fn finish_after(&mut self, service: u64) {
        self.finish = self.start + (service << SHIFT) / self.weight;
    }

    pub(super) fn budget_left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }
}

#[derive(Clone, Debug, Default)]
struct Class {
    vtime: u64,
    weights: u64,
    active: Vec<u32>,
    idle: Vec<u32>,
}

impl Class {
    /// `bfq_forget_idle`: once the virtual time has passed the last queue that waits idle, it goes *back* to that one's finish if
    /// nobody else wants service; and the first idle queue that has been passed is forgotten (one at a time, as in the kernel).
    fn forget_idle(&mut self, entities: &mut [Entity]) {
        let finish = |i: &u32| entities[*i as usize].finish;
        if self.active.is_empty()
            && let Some(last) = self.idle.iter().map(finish).max()
            && last <= self.vtime
        {
            self.vtime = last;
        }
        if let Some(at) = (0..self.idle.len()).min_by_key(|&k| finish(&self.idle[k]))
            && finish(&self.idle[at]) <= self.vtime
        {
            let e = &mut entities[self.idle.remove(at) as usize];
            e.place = Place::Nowhere;
            self.weights -= e.weight;
        }
    }
}

/// The service trees of the three classes.
///
/// Who is next is kept, not looked up when it is asked for (`bfq_update_next_in_service`): a queue that comes replaces the
/// next one only if it may start and finishes sooner, and if there is none it is the next one at once. The virtual time
/// jumps to the earliest start only where a look-up finds nobody in service.
#[derive(Clone, Debug, Default)]
pub(super) struct Engine {
    classes: [Class; 3],
    pub(super) entities: Vec<Entity>,
    in_service: Option<u32>,
    next: Option<u32>,
    idle_class_served: u64,
    insertions: u64,
    /// Now, ns; to be set before a call.
    pub(super) now: u64,
}

impl Engine {
    fn enqueue(&mut self, id: u32, backshifted: bool, raise: u64) {
        let e = &mut self.entities[id as usize];
        let class = &mut self.classes[e.class];
        class.weights = class.weights - e.weight + e.new_weight;
        e.weight = e.new_weight;
        e.finish_after(e.budget);
        if backshifted && class.vtime > e.finish {
            let delta = (class.vtime - e.finish) / raise.max(1);
            e.start += delta;
            e.finish += delta;
        }
        e.place = Place::Active;
        self.insertions += 1;
        e.came = self.insertions;
        class.active.push(id);
    }

    /// A queue got work. `in_time`: its request came so soon that it goes on where it stopped; `raise`: by what its weight
    /// is multiplied.
    pub(super) fn activate(&mut self, id: u32, in_time: bool, raise: u64) {
        let e = &mut self.entities[id as usize];
        let class = &mut self.classes[e.class];
        let backshifted = in_time && class.vtime > e.finish;
        let earliest = if backshifted { e.finish } else { class.vtime };
        if e.place == Place::Idle {
            class.idle.retain(|&i| i != id);
            e.start = earliest.max(e.finish);
        } else {
            e.start = earliest;
            class.weights += e.weight;
        }
        self.enqueue(id, backshifted, raise);
        self.update_next(Some(id), false);
    }

    /// The turn of the queue in service is over, but it has more to do.
    pub(super) fn requeue(&mut self, id: u32, raise: u64) {
        let e = &mut self.entities[id as usize];
        e.finish_after(e.service);
        e.start = e.finish;
        self.enqueue(id, false, raise);
        self.update_next(Some(id), true);
        self.in_service = None;
    }

    /// Queues that have work: the one in service, and those that wait for it.
    pub(super) fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.in_service.into_iter().chain(self.classes.iter().flat_map(|c| c.active.iter().copied()))
    }

    /// The budget of a waiting queue changed.
    pub(super) fn rebudget(&mut self, id: u32, raise: u64) {
        let class = self.entities[id as usize].class;
        self.classes[class].active.retain(|&i| i != id);
        self.enqueue(id, false, raise);
        self.update_next(Some(id), false);
    }

    /// A queue has nothing to do; if it was in service its turn is over.
    pub(super) fn deactivate(&mut self, id: u32) {
        let served = self.in_service == Some(id);
        if served {
            self.in_service = None;
        }
        let e = &mut self.entities[id as usize];
        let class = &mut self.classes[e.class];
        e.finish_after(e.service);
        if e.place == Place::Active {
            e.service = 0;
            class.active.retain(|&i| i != id);
        }
        if e.finish > class.vtime {
            e.place = Place::Idle;
            class.idle.push(id);
        } else {
            e.place = Place::Nowhere;
            class.weights -= e.weight;
        }
        if self.next == Some(id) {
            self.update_next(None, served);
        }
    }

    /// Sectors went to a queue of this class.
    pub(super) fn served(&mut self, id: u32, sectors: u64) {
        let e = &mut self.entities[id as usize];
        e.service += sectors;
        let class = &mut self.classes[e.class];
        class.vtime += (sectors << SHIFT) / class.weights.max(1);
        class.forget_idle(&mut self.entities);
    }

    /// Takes the queue to serve next off its tree.
    pub(super) fn next(&mut self) -> Option<u32> {
        let id = self.next.or_else(|| self.look_up(true))?;
        let e = &mut self.entities[id as usize];
        e.place = Place::InService;
        self.classes[e.class].active.retain(|&i| i != id);
        self.in_service = Some(id);
        self.update_next(None, false);
        Some(id)
    }

    /// Who is next, now that `changed` came or moved. `over`: the turn of the queue in service has just ended.
    fn update_next(&mut self, changed: Option<u32>, over: bool) {
        let takes_over = changed.filter(|&c| Some(c) != self.next).is_some_and(|c| {
            let new = &self.entities[c as usize];
            self.next.is_none_or(|n| {
                let next = &self.entities[n as usize];
                new.class == next.class && new.start <= self.classes[new.class].vtime && next.finish > new.finish
            })
        });
        self.next = if takes_over { changed } else { self.look_up(over) };
    }

    /// The queue that finishes first of those that may start, in the first class that has any.
    fn look_up(&mut self, over: bool) -> Option<u32> {
        let idle = IoClass::Idle as usize;
        let mut from = 0;
        if self.now > self.idle_class_served + IDLE_CLASS_EVERY {
            if !self.classes[idle].active.is_empty() {
                from = idle;
            }
            self.idle_class_served = self.now;
        }
        let class = (from..3).find(|&c| !self.classes[c].active.is_empty())?;
        let (entities, c) = (&mut self.entities, &mut self.classes[class]);
        let first = c.active.iter().map(|&i| entities[i as usize].start).min()?;
        let vtime = c.vtime.max(first);
        if vtime > c.vtime && (self.in_service.is_none() || over) {
            c.vtime = vtime;
            c.forget_idle(entities);
        }
        let may_start = |i: &u32| entities[*i as usize].start <= vtime;
        c.active.iter().copied().filter(may_start).min_by_key(|&i| entities[i as usize].finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(weights: &[u64]) -> Engine {
        let mut e = Engine::default();
        for (id, &w) in weights.iter().enumerate() {
            e.entities.push(Entity { budget: 1000, ..Entity::new(IoClass::BestEffort, w) });
            e.activate(id as u32, false, 1);
        }
        e
    }

    #[test]
    fn service_is_in_proportion_to_weights() {
        let mut e = engine(&[10, 20, 40]);
        let mut got = [0; 3];
        for _ in 0..700 {
            let id = e.next().expect("busy");
            e.served(id, 1000);
            got[id as usize] += 1;
            e.requeue(id, 1);
            e.entities[id as usize].service = 0;
        }
        assert_eq!(got, [100, 200, 400]);
    }

    #[test]
    fn who_was_idle_gets_no_credit_for_it() {
        let mut e = engine(&[10, 10]);
        let id = e.next().expect("busy");
        e.served(id, 1000);
        e.deactivate(id);
        for _ in 0..5 {
            let other = e.next().expect("busy");
            assert_ne!(other, id);
            e.served(other, 1000);
            e.requeue(other, 1);
            e.entities[other as usize].service = 0;
        }
        e.entities[id as usize].service = 0;
        e.activate(id, false, 1);
        let turns: Vec<u32> = (0..4)
            .map(|_| {
                let id = e.next().expect("busy");
                e.served(id, 1000);
                e.requeue(id, 1);
                e.entities[id as usize].service = 0;
                id
            })
            .collect();
        assert_eq!(turns.iter().filter(|&&t| t == id).count(), 2, "{turns:?}");
    }

    #[test]
    fn the_idle_class_comes_last_but_every_200_ms() {
        let mut e = engine(&[10]);
        e.entities.push(Entity { budget: 1000, ..Entity::new(IoClass::Idle, 10) });
        e.activate(1, false, 1);
        e.now = 100_000_000;
        assert_eq!(e.next(), Some(0));
        e.now = 250_000_000;
        e.requeue(0, 1);
        assert_eq!(e.next(), Some(1));
    }

    /// Numbers of a recorded BFQ (its messages show start and finish of every queue): a queue of weight 60 and a raised one.
    #[test]
    fn virtual_time_goes_back_to_the_last_idle_queue_and_does_not_jump_for_a_lone_one() {
        let mut e = Engine::default();
        let queue = |e: &mut Engine, weight, budget| {
            e.entities.push(Entity { budget, ..Entity::new(IoClass::RealTime, weight) });
            let id = e.entities.len() as u32 - 1;
            e.activate(id, false, 1);
            id
        };
        let span = |e: &Engine, id: u32| (e.entities[id as usize].start, e.entities[id as usize].finish);
        let raised = queue(&mut e, 1200, 1024);
        assert_eq!(span(&e, raised), (0, 3_579_139));
        assert_eq!(e.next(), Some(raised));
        e.served(raised, 8);
        e.served(raised, 8);
        let second = queue(&mut e, 60, 10_922);
        assert_eq!(span(&e, second), (55_924, 763_559_062));
        e.served(raised, 8);
        e.served(raised, 8);
        e.deactivate(raised);
        assert_eq!(span(&e, raised), (0, 111_848));
        assert_eq!(e.next(), Some(second));
        e.served(second, 16);
        e.deactivate(second);
        assert_eq!(span(&e, second), (55_924, 1_174_405));
        let writer = queue(&mut e, 60, 10_922);
        assert_eq!(span(&e, writer), (111_848, 763_614_986));
        assert_eq!(e.next(), Some(writer));
        for _ in 0..3 {
            e.served(writer, 3072);
        }
        e.entities[writer as usize].budget = 16_384;
        e.requeue(writer, 1);
        assert_eq!(span(&e, writer), (644_356_942, 1_789_681_554));
        // It is served on although its start lies ahead of the virtual time: a reader that comes now starts before it.
        assert_eq!(e.next(), Some(writer));
        let reader = queue(&mut e, 1200, 1024);
        assert_eq!(span(&e, reader).0, 430_671_133);
    }
}
