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

/// The service trees of the three classes.
#[derive(Clone, Debug, Default)]
pub(super) struct Engine {
    classes: [Class; 3],
    pub(super) entities: Vec<Entity>,
    idle_class_served: u64,
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
    }

    /// A queue's turn is over, but it has more to do.
    pub(super) fn requeue(&mut self, id: u32, raise: u64) {
        let e = &mut self.entities[id as usize];
        e.finish_after(e.service);
        e.start = e.finish;
        self.enqueue(id, false, raise);
    }

    /// The budget of a waiting queue changed.
    pub(super) fn rebudget(&mut self, id: u32, raise: u64) {
        let class = self.entities[id as usize].class;
        self.classes[class].active.retain(|&i| i != id);
        self.enqueue(id, false, raise);
    }

    /// A queue has nothing to do.
    pub(super) fn deactivate(&mut self, id: u32) {
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
    }

    /// Sectors went to a queue of this class.
    pub(super) fn served(&mut self, id: u32, sectors: u64) {
        let e = &mut self.entities[id as usize];
        e.service += sectors;
        let class = &mut self.classes[e.class];
        class.vtime += (sectors << SHIFT) / class.weights.max(1);
        if class.active.is_empty()
            && let Some(last) = class.idle.iter().map(|&i| self.entities[i as usize].finish).max()
        {
            class.vtime = class.vtime.max(last);
        }
        let (vtime, entities) = (class.vtime, &mut self.entities);
        let mut gone = 0;
        class.idle.retain(|&i| {
            let e = &mut entities[i as usize];
            let stays = e.finish > vtime;
            if !stays {
                e.place = Place::Nowhere;
                gone += e.weight;
            }
            stays
        });
        class.weights -= gone;
    }

    /// Takes the queue to serve next off its tree.
    pub(super) fn next(&mut self, now: u64) -> Option<u32> {
        let idle = IoClass::Idle as usize;
        let mut from = 0;
        if now > self.idle_class_served + IDLE_CLASS_EVERY {
            if !self.classes[idle].active.is_empty() {
                from = idle;
            }
            self.idle_class_served = now;
        }
        let class = (from..3).find(|&c| !self.classes[c].active.is_empty())?;
        let (entities, c) = (&mut self.entities, &mut self.classes[class]);
        let first = c.active.iter().map(|&i| entities[i as usize].start).min()?;
        c.vtime = c.vtime.max(first);
        let id = c
            .active
            .iter()
            .copied()
            .filter(|&i| entities[i as usize].start <= c.vtime)
            .min_by_key(|&i| (entities[i as usize].finish, i))?;
        c.active.retain(|&i| i != id);
        entities[id as usize].place = Place::InService;
        Some(id)
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
            let id = e.next(0).expect("busy");
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
        let id = e.next(0).expect("busy");
        e.served(id, 1000);
        e.deactivate(id);
        for _ in 0..5 {
            let other = e.next(0).expect("busy");
            assert_ne!(other, id);
            e.served(other, 1000);
            e.requeue(other, 1);
            e.entities[other as usize].service = 0;
        }
        e.entities[id as usize].service = 0;
        e.activate(id, false, 1);
        let turns: Vec<u32> = (0..4)
            .map(|_| {
                let id = e.next(0).expect("busy");
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
        assert_eq!(e.next(100_000_000), Some(0));
        e.requeue(0, 1);
        assert_eq!(e.next(250_000_000), Some(1));
    }
}
