//! The event heap: ordered by time, then by the order of insertion.
//!
//! One `u128` per event (time, sequence, what) in the standard heap: measured faster than a tuple (see
//! docs/decisions). Equal times keep their order of insertion, so a run is deterministic.

use kreplay_traces::units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sleeping task's time has come.
    Wake(u32),
    /// A processor has finished a task's burst.
    CpuFree(u32),
    /// The request in this slot of the in-flight table is done.
    IoDone(u32),
    /// The device layer asked to be called.
    BlockTimer,
    /// A paced link hands out.
    LinkTick(u32),
    /// Another second is over.
    Sample,
    /// A daemon's time has come, if it still sleeps as one.
    Daemon(u32),
    /// A reclaimer's longest rest may be over.
    Rested(u32),
    /// What was written lately is to be counted.
    Estimate,
    /// What the rest of the machine takes of memory is to be looked at.
    Envelope,
}

const ID_BITS: u32 = 20;
const SEQ_BITS: u32 = 40;

impl Event {
    fn pack(self) -> u128 {
        let (kind, id) = match self {
            Event::Wake(i) => (0, i),
            Event::CpuFree(i) => (1, i),
            Event::IoDone(i) => (2, i),
            Event::BlockTimer => (3, 0),
            Event::LinkTick(i) => (4, i),
            Event::Sample => (5, 0),
            Event::Daemon(i) => (6, i),
            Event::Rested(i) => (7, i),
            Event::Estimate => (8, 0),
            Event::Envelope => (9, 0),
        };
        assert!(id < 1 << ID_BITS, "id {id} does not fit an event");
        u128::from(kind << ID_BITS | id)
    }

    fn unpack(low: u32) -> Self {
        let id = low & ((1 << ID_BITS) - 1);
        match low >> ID_BITS {
            0 => Event::Wake(id),
            1 => Event::CpuFree(id),
            2 => Event::IoDone(id),
            3 => Event::BlockTimer,
            4 => Event::LinkTick(id),
            5 => Event::Sample,
            6 => Event::Daemon(id),
            7 => Event::Rested(id),
            8 => Event::Estimate,
            _ => Event::Envelope,
        }
    }
}

/// Pending events.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    seq: u64,
}

impl EventQueue {
    /// Something happens at `at`.
    pub fn push(&mut self, at: Nanos, event: Event) {
        self.seq += 1;
        debug_assert!(self.seq < 1 << SEQ_BITS);
        self.heap.push(Reverse(u128::from(at.0) << 64 | u128::from(self.seq) << 24 | event.pack()));
    }

    /// Time of the next event.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(k)| Nanos((k >> 64) as u64))
    }

    /// Take the next event.
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        self.heap.pop().map(|Reverse(k)| (Nanos((k >> 64) as u64), Event::unpack(k as u32 & 0xff_ffff)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut q = EventQueue::default();
        q.push(Nanos(5), Event::Wake(7));
        q.push(Nanos(3), Event::IoDone(1));
        q.push(Nanos(5), Event::Sample);
        q.push(Nanos(5), Event::CpuFree(2));
        let all: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        assert_eq!(
            all,
            [
                (Nanos(3), Event::IoDone(1)),
                (Nanos(5), Event::Wake(7)),
                (Nanos(5), Event::Sample),
                (Nanos(5), Event::CpuFree(2))
            ]
        );
    }
}
