//! The request list of Linux 0.01 (`kernel/hd.c`), with its lock-up.
//!
//! No merging. A request is inserted in order of (drive, cylinder, head, sector), which is the order of (drive, sector),
//! but never before the second one listed. A flag marks that a process is sorting; a completion that finds it set does
//! not start the next command, and forgets to say that the controller is idle, so nobody ever starts it again.
//!
//! A second race needs a list of one element, the one in service: if its interrupt comes after the inserting process has
//! read the head of the list and before it has linked its request to it, the request hangs on an element that was freed,
//! and is lost. The correction of the first does not close this window.

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, RqId};
use super::{Context, Elevator, Spot, Verdict};
use crate::config::ElevatorConfig;
use kreplay_traces::units::Nanos;

/// The list of all drives (a drive is a `partition` here).
#[derive(Clone, Debug)]
pub(crate) struct Linux001 {
    list: List,
    /// The early return marks the controller idle, as the corrected kernel does.
    fixed: bool,
    /// A process is inserting.
    sorting: bool,
    /// An insertion was hit by the interrupt of the command in service, which is to be reported at its time.
    interrupted: bool,
    /// The controller is idle and nobody knows.
    hung: bool,
    /// Numbers of submissions that an interrupt hits.
    hits: Vec<u64>,
    /// Numbers of those that it hits between reading the head and linking.
    late_hits: Vec<u64>,
    /// The current one is such a submission.
    head_read: bool,
    /// Time to look at one listed request, and when the command in service will interrupt.
    element: Nanos,
    serves_until: Nanos,
    submissions: u64,
}

impl Linux001 {
    pub(crate) fn new(config: &ElevatorConfig, fixed: bool) -> Self {
        Self {
            list: List::new(),
            fixed,
            sorting: false,
            interrupted: false,
            hung: false,
            hits: config.irq_during_sort.clone(),
            late_hits: config.irq_after_head_load.clone(),
            head_read: false,
            element: Nanos(config.sort_element_ns),
            serves_until: Nanos::ZERO,
            submissions: 0,
        }
    }

    /// Sets the flag as a process does that has a slot and begins to insert; the insertion clears it.
    pub(crate) fn begin_sorting(&mut self) {
        self.sorting = true;
    }

    /// The command that was started now will interrupt then.
    pub(crate) fn serves_until(&mut self, done_at: Nanos) {
        self.serves_until = done_at;
    }

    /// How long an insertion takes: the requests between the second one and the place are looked at.
    fn sorting_time(&self, rqs: &Requests, x: (u16, u64)) -> Nanos {
        let listed = self.list.len() as u64;
        let mut looked = listed.min(2);
        if listed > 2 {
            let key = |at: RqId| (rqs[at].partition, rqs[at].sector);
            let mut p = rqs[self.list.head].next;
            while rqs[p].next != NIL && !((key(p) < x || key(p) >= key(rqs[p].next)) && x < key(rqs[p].next)) {
                p = rqs[p].next;
                looked += 1;
            }
        }
        Nanos(self.element.0 * looked)
    }

    /// No command will ever be started again.
    pub(crate) fn hung(&self) -> bool {
        self.hung
    }
}

impl Elevator for Linux001 {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let late = self.late_hits.contains(&self.submissions);
        let mut hit = late || self.hits.contains(&self.submissions);
        if self.element > Nanos::ZERO && self.serves_until > cx.now {
            let sorting = self.sorting_time(rqs, (bio.partition, bio.sector.get()));
            hit |= self.serves_until <= cx.now + sorting;
        }
        self.submissions += 1;
        self.head_read = false;
        // The interrupt of the command in service arrives during this insertion: its completion will find the flag.
        if hit && self.list.head != NIL && rqs[self.list.head].started {
            self.interrupted = true;
            self.head_read = late;
        }
        Verdict::Insert(Spot::Tail)
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, _: &Context) -> bool {
        if std::mem::take(&mut self.head_read) && self.list.len() == 1 {
            // Linked to an element that the interrupt freed: on no list, never served, its slot never freed.
            self.sorting = false;
            return false;
        }
        let key = |at: RqId| (rqs[at].partition, rqs[at].sector);
        let x = key(rq);
        let place = match self.list.len() {
            0 => NIL,
            1 => self.list.head,
            _ => {
                let mut p = rqs[self.list.head].next;
                loop {
                    let n = rqs[p].next;
                    if n == NIL || ((key(p) < x || key(p) >= key(n)) && x < key(n)) {
                        break p;
                    }
                    p = n;
                }
            }
        };
        self.list.insert_after(rqs, place, rq);
        self.sorting = false;
        self.list.tail == rq
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        if self.hung || self.sorting { None } else { self.list.serve(rqs, cx) }
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let met_sorting = std::mem::take(&mut self.interrupted) || self.sorting;
        self.hung |= met_sorting && !self.fixed;
        self.list.served(rqs, rq, cx);
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.list.position(rqs, rq)
    }
}
