//! I/O schedulers ("elevators"): where a bio goes among the queued requests, and which request the device gets next.
//!
//! One file a scheduler. A new one is a file with a type that implements [`Elevator`], an arm of [`AnyElevator`] and a
//! line in [`REGISTRY`].

mod adjacent;
mod anticipatory;
mod bfq;
#[cfg(test)]
mod canary;
mod cfq;
mod cfq26;
mod deadline26;
mod kyber;
mod linus;
mod linux001;
mod linux22;
mod linux2216;
mod merge_hash;
mod mq_deadline;
mod none;
mod noop;
mod owners;
mod rbtree;
mod sorted;
mod think;

use kreplay_traces::units::Nanos;

use super::error::{ConfigError, suggest};
use super::list::List;
use super::request::{NIL, Requests};
use super::{Bio, Dir, IoClass, RqId};
use crate::config::ElevatorConfig;

/// What an elevator may know of its queue when it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Now.
    pub(crate) now: Nanos,
    /// The driver leaves the request in service listed.
    pub(crate) head_active: bool,
    /// ... and works on it, so that nothing may be merged into it or go before it.
    pub(crate) head_locked: bool,
    /// The queue is plugged.
    pub(crate) plugged: bool,
    /// Priority class of the bio.
    pub(crate) class: IoClass,
    /// Its level within the class, 0 to 7.
    pub(crate) level: u8,
    /// Somebody waits for it: a read, or a write that is to be on the disk before its writer goes on.
    pub(crate) sync: bool,
    /// The device has an arm to move.
    pub(crate) rotational: bool,
    /// Bios are merged in their tasks' plug lists first.
    pub(crate) task_plugs: bool,
    /// Largest request, sectors.
    pub(crate) max_sectors: u32,
    /// Largest request, segments.
    pub(crate) max_segments: u16,
}

/// Which end of a request a bio joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Back,
    Front,
}

/// Where a new request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Last.
    Tail,
    /// Behind this one.
    After(RqId),
    /// In front of this one.
    Before(RqId),
}

impl Spot {
    /// Where 2.4 puts a bio that had found its request, which then had no segment left.
    pub(crate) fn refused(into: RqId, end: End, beside: bool) -> Self {
        match end {
            _ if !beside => Spot::Tail,
            End::Back => Spot::After(into),
            End::Front => Spot::Before(into),
        }
    }
}

/// What an elevator made of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The bio is part of `into` now. `absorbed`, if any, has been merged into it too and is on no list any more.
    Merged { into: RqId, end: End, absorbed: Option<RqId> },
    /// It needs a request of its own.
    Insert(Spot),
}

/// An I/O scheduler. It owns the order of the queued requests; slots, plugging and the device are the queue's matter.
pub(crate) trait Elevator {
    /// Merges a bio, or says where its request goes. Called again, with the same effects, after a sleep for a slot.
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict;
    /// Lists a new request; true if it is the last now.
    fn insert(&mut self, rqs: &mut Requests, rq: RqId, spot: Spot, cx: &Context) -> bool;
    /// The next request for the device.
    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId>;
    /// The device is done with it.
    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context);
    /// Requests listed (with `head_active` the one in service among them).
    fn len(&self) -> usize;
    /// Place in the list, 0 = next; `None` where the scheduler keeps no single list or the request left it.
    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize>;
    /// When to ask again, if it holds requests back on purpose.
    fn timer(&self) -> Option<Nanos> {
        None
    }
    /// Of each `word` scheduler tags, how many such a request may use (blk-mq's `limit_depth`).
    fn word_depth(&self, _dir: Dir, _sync: bool, word: u32) -> u32 {
        word
    }
    /// Of so many scheduler tags, those that its narrowest limit leaves.
    fn least_tags(&self, total: u32) -> u32 {
        total
    }
    /// Appends a request that comes from a task's plug list to one that is queued, if it continues it; which one has it.
    fn append(&mut self, _rqs: &mut Requests, _rq: RqId, _cx: &Context) -> Option<RqId> {
        None
    }
}

macro_rules! any_elevator {
    ($($(#[$attr:meta])* $variant:ident($ty:ty)),+ $(,)?) => {
        /// Every elevator. An enum, not a trait object: one predictable branch, and a queue stays `Clone`.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyElevator {
            $($(#[$attr])* $variant($ty)),+
        }

        impl Elevator for AnyElevator {
            #[inline]
            fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
                match self { $($(#[$attr])* Self::$variant(e) => e.offer(rqs, bio, cx)),+ }
            }
            #[inline]
            fn insert(&mut self, rqs: &mut Requests, rq: RqId, spot: Spot, cx: &Context) -> bool {
                match self { $($(#[$attr])* Self::$variant(e) => e.insert(rqs, rq, spot, cx)),+ }
            }
            #[inline]
            fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
                match self { $($(#[$attr])* Self::$variant(e) => e.dispatch(rqs, cx)),+ }
            }
            #[inline]
            fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
                match self { $($(#[$attr])* Self::$variant(e) => e.complete(rqs, rq, cx)),+ }
            }
            #[inline]
            fn len(&self) -> usize {
                match self { $($(#[$attr])* Self::$variant(e) => e.len()),+ }
            }
            fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
                match self { $($(#[$attr])* Self::$variant(e) => e.position(rqs, rq)),+ }
            }
            fn timer(&self) -> Option<Nanos> {
                match self { $($(#[$attr])* Self::$variant(e) => e.timer()),+ }
            }
            #[inline]
            fn word_depth(&self, dir: Dir, sync: bool, word: u32) -> u32 {
                match self { $($(#[$attr])* Self::$variant(e) => e.word_depth(dir, sync, word)),+ }
            }
            fn least_tags(&self, total: u32) -> u32 {
                match self { $($(#[$attr])* Self::$variant(e) => e.least_tags(total)),+ }
            }
            fn append(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) -> Option<RqId> {
                match self { $($(#[$attr])* Self::$variant(e) => e.append(rqs, rq, cx)),+ }
            }
        }
    };
}

any_elevator! {
    Linus(linus::Linus),
    Noop(noop::Noop),
    Linux001(linux001::Linux001),
    Linux22(linux22::Linux22),
    Linux2216(linux2216::Linux2216),
    Anticipatory(Box<anticipatory::Anticipatory>),
    Cfq26(Box<cfq26::Cfq26>),
    Cfq(Box<cfq::Cfq>),
    Bfq(Box<bfq::Bfq>),
    Deadline26(Box<deadline26::Deadline26>),
    NoScheduler(none::NoScheduler),
    Kyber(Box<kyber::Kyber>),
    MqDeadline(Box<mq_deadline::MqDeadline>),
    #[cfg(test)]
    NewestFirst(canary::NewestFirst),
}

impl AnyElevator {
    /// 0.01 only: a process has its slot and begins to insert; see [`linux001`].
    pub(crate) fn begin_sorting(&mut self) {
        if let Self::Linux001(e) = self {
            e.begin_sorting();
        }
    }

    /// When the command that was started now will be done; only 0.01 cares.
    pub(crate) fn serves_until(&mut self, done_at: kreplay_traces::units::Nanos) {
        if let Self::Linux001(e) = self {
            e.serves_until(done_at);
        }
    }

    /// 0.01 only: the controller idles and will never be started again.
    pub(crate) fn hung(&self) -> bool {
        matches!(self, Self::Linux001(e) if e.hung())
    }
}

/// A scheduler's row in the registry.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// Name for `elevator.policy`.
    pub name: &'static str,
    /// Kernels, and what sets it apart.
    pub about: &'static str,
    /// It may keep a free device idle while requests wait, and says until when.
    pub idles: bool,
    /// A request may wait for as long as others keep coming: nothing in the policy bounds it.
    pub starves: bool,
    build: fn(&ElevatorConfig) -> AnyElevator,
}

/// All schedulers by name.
static REGISTRY: &[PolicyInfo] = &[
    PolicyInfo {
        name: "linux-0.01",
        about: "0.01: sorted insertion behind the second request; may lock up when an interrupt meets the sorting",
        idles: false,
        starves: true,
        build: |c| AnyElevator::Linux001(linux001::Linux001::new(c, false)),
    },
    PolicyInfo {
        name: "linux-0.01-fixed",
        about: "0.01 with the lock-up corrected",
        idles: false,
        starves: true,
        build: |c| AnyElevator::Linux001(linux001::Linux001::new(c, true)),
    },
    PolicyInfo {
        name: "linux-2.2.20",
        about: "2.2.18 to 2.2.20: latency in events, requests out of patience are barriers",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linux22(linux22::Linux22::new(c)),
    },
    PolicyInfo {
        name: "linux-2.2.16",
        about: "2.2.16 and 2.2.17: latency in segments, small write requests while reads wait (max-bomb-segments)",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linux2216(linux2216::Linux2216::new(c)),
    },
    PolicyInfo {
        name: "linus-2.4.0",
        about: "elevator_linus of 2.4.0: sorted insertion from the tail, merging in a walk of its own",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::TwoStep)),
    },
    PolicyInfo {
        name: "linus-2.4.1",
        about: "elevator_linus of 2.4.1: one walk; hints from requests of the same direction, behind a higher sector",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::First)),
    },
    PolicyInfo {
        name: "linus-2.4",
        about: "elevator_linus of 2.4.2 to 2.4.19: charged for what is looked at, latency in requests and sectors",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::A)),
    },
    PolicyInfo {
        name: "linus-2.4.20",
        about: "elevator_linus of 2.4.20: charged for what goes ahead",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::C)),
    },
    PolicyInfo {
        name: "linus-2.4.21",
        about: "elevator_linus of 2.4.21 to 2.4.31: a request out of patience may still grow at its end",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::D)),
    },
    PolicyInfo {
        name: "noop-2.4",
        about: "elevator_noop of 2.4: merges, appends otherwise",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Noop(noop::Noop::new(c)),
    },
    PolicyInfo {
        name: "read-latency",
        about: "linus-2.4 with the read promotion of December 2001",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::ReadLatency)),
    },
    PolicyInfo {
        name: "read-latency2",
        about: "read-latency2 of 2.4.19-pre5: promotion, and merging beyond requests out of patience",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::ReadLatency2)),
    },
    PolicyInfo {
        name: "read-latency2-rh",
        about: "read-latency2 as in Red Hat's 2.4.18: merges cost nothing",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::ReadLatency2RedHat)),
    },
    PolicyInfo {
        name: "read-latency2-2.4.32",
        about: "read-latency2 on 2.4.32: no promotion past other reads",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Linus(linus::Linus::new(c, linus::Generation::ReadLatency2On2432)),
    },
    PolicyInfo {
        name: "anticipatory",
        about: "anticipatory scheduler of 2.6: batches by time, waits for the next request of whoever read last",
        idles: true,
        starves: false,
        build: |c| AnyElevator::Anticipatory(Box::new(anticipatory::Anticipatory::new(&c.anticipatory))),
    },
    PolicyInfo {
        name: "cfq-2.6.12",
        about: "CFQ of 2.6.12: a queue per process, in turn by service received",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Cfq26(Box::new(cfq26::Cfq26::new(&c.cfq_2_6))),
    },
    PolicyInfo {
        name: "cfq",
        about: "CFQ of 3.x and 4.x: time slices per process, idling for sequential readers",
        idles: true,
        starves: false,
        build: |c| AnyElevator::Cfq(Box::new(cfq::Cfq::new(&c.cfq))),
    },
    PolicyInfo {
        name: "bfq",
        about: "BFQ of 6.1: budgets in sectors, fair queueing, weight raising for interactive processes",
        idles: true,
        starves: false,
        build: |c| AnyElevator::Bfq(Box::new(bfq::Bfq::new(&c.bfq))),
    },
    PolicyInfo {
        name: "deadline-2.6",
        about: "deadline of 2.6.12: one-way sweeps per direction, bounded by deadlines",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Deadline26(Box::new(deadline26::Deadline26::new(&c.deadline))),
    },
    PolicyInfo {
        name: "none",
        about: "blk-mq without a scheduler: first in, first out, merging within a task's plug list",
        idles: false,
        starves: false,
        build: |_| AnyElevator::NoScheduler(none::NoScheduler::default()),
    },
    PolicyInfo {
        name: "kyber",
        about: "Kyber of 6.1: first in, first out per direction, throttled by latency targets",
        idles: false,
        starves: false,
        build: |c| AnyElevator::Kyber(Box::new(kyber::Kyber::new(&c.kyber))),
    },
    PolicyInfo {
        name: "mq-deadline",
        about: "mq-deadline of 6.1: sector order in batches, bounded by deadlines, three priority classes",
        idles: true,
        starves: false,
        build: |c| AnyElevator::MqDeadline(Box::new(mq_deadline::MqDeadline::new(&c.deadline))),
    },
    #[cfg(test)]
    PolicyInfo {
        name: "newest-first",
        about: "starves on purpose",
        idles: false,
        starves: true,
        build: |_| AnyElevator::NewestFirst(canary::NewestFirst::new()),
    },
];

/// All schedulers that `elevator.policy` can name.
pub fn policies() -> &'static [PolicyInfo] {
    REGISTRY
}

/// Builds the elevator that the variant names.
pub(crate) fn build(config: &ElevatorConfig) -> Result<AnyElevator, ConfigError> {
    let name = config.policy.as_str();
    if let Some(info) = REGISTRY.iter().find(|p| p.name == name) {
        return Ok((info.build)(config));
    }
    let (hint, known) = suggest(name, REGISTRY.iter().map(|p| p.name));
    Err(ConfigError::UnknownElevator { name: name.to_owned(), hint, known })
}

/// What every elevator does that keeps one list in service order (all of 0.01 to 2.4).
impl List {
    /// The request to serve: taken off, or with `head_active` left at the head and marked.
    pub(crate) fn serve(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        let head = self.head;
        if head == NIL || rqs[head].started {
            return None;
        }
        if !cx.head_active {
            self.remove(rqs, head);
        }
        Some(head)
    }

    /// Unlists a finished request that was left at the head.
    pub(crate) fn served(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        if cx.head_active {
            self.remove(rqs, rq);
        }
    }

    /// Lists a request; true if it is the last now.
    pub(crate) fn place(&mut self, rqs: &mut Requests, rq: RqId, spot: Spot) -> bool {
        match spot {
            Spot::Tail => self.push_back(rqs, rq),
            Spot::After(at) => self.insert_after(rqs, at, rq),
            Spot::Before(at) => self.insert_before(rqs, at, rq),
        }
        self.tail == rq
    }

    /// Place of a request, 0 = head.
    pub(crate) fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.iter(rqs).position(|r| r == rq)
    }

    /// The first element that may be touched lies behind this one; `NIL` = all may.
    #[inline]
    pub(crate) fn fence(&self, cx: &Context) -> RqId {
        if cx.head_locked { self.head } else { NIL }
    }

    /// Merges `b` into its predecessor `a` if they are adjacent on the disk and the limits allow it, unlisting `b`.
    pub(crate) fn coalesce(&mut self, rqs: &mut Requests, a: RqId, b: RqId, cx: &Context) -> bool {
        let (x, y) = (&rqs[a], &rqs[b]);
        let fits = x.end() == y.sector
            && x.dir == y.dir
            && x.partition == y.partition
            && x.nr + y.nr <= cx.max_sectors
            && x.segments + y.segments <= cx.max_segments;
        if fits {
            self.remove(rqs, b);
            rqs.absorb(a, b);
        }
        fits
    }

    /// After a merge at one end of `target`: the pair (survivor, swallowed) that lies there, if it may be touched.
    pub(crate) fn neighbours(&self, rqs: &Requests, target: RqId, end: End, cx: &Context) -> Option<(RqId, RqId)> {
        match end {
            End::Back => Some(rqs[target].next).filter(|&n| n != NIL).map(|n| (target, n)),
            End::Front => Some(rqs[target].prev).filter(|&p| p != NIL && p != self.fence(cx)).map(|p| (p, target)),
        }
    }
}
