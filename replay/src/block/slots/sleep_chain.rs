//! The wait list of Linux 0.01 (`kernel/sched.c`): each sleeper remembers who slept before it.
//!
//! A wake-up readies the newest sleeper and empties the list; that one readies the one before it when it runs, and so
//! on: all are woken in the end, newest first, but each only after the one before it had its turn.

use super::super::Waiter;

/// The list.
#[derive(Clone, Debug, Default)]
pub(super) struct SleepChain {
    top: Option<Waiter>,
    /// Everyone who has not run yet, with the sleeper found on the list.
    before: Vec<(Waiter, Option<Waiter>)>,
}

impl SleepChain {
    pub(super) fn sleep(&mut self, waiter: Waiter) {
        self.before.push((waiter, self.top));
        self.top = Some(waiter);
    }

    /// Whom a wake-up readies.
    pub(super) fn wake(&mut self) -> Option<Waiter> {
        self.top.take()
    }

    /// A woken process runs: whom it readies.
    pub(super) fn runs(&mut self, waiter: Waiter) -> Option<Waiter> {
        let at = self.before.iter().position(|(w, _)| *w == waiter)?;
        self.before.remove(at).1
    }

    pub(super) fn len(&self) -> usize {
        self.before.len()
    }
}
