//! What a recording tells of the machine that its load began on, and what it does not.
//!
//! A real kernel had been up for a while: its daemons' timers were somewhere in their intervals, and whoever started the load
//! had some ticks of its slice left, which its children share (`do_fork`). Chaotic loads (several processes that thrash) come
//! out differently for each such state, as they do on the real machine from one recording to the next.

use super::{Sim, splitmix};
use crate::sim::event::Event;
use kreplay_traces::units::Nanos;

impl Sim<'_> {
    /// Draw what the first task, which forked somebody before the load began, has left of its slice; the same number draws
    /// the same.
    ///
    /// It had worked, and so had 1 tick up to a whole slice (when all are used up, everybody gets a new one); the child took
    /// half, rounded up; then it slept, and if the child used up what it had meanwhile, which is as likely as not, everybody
    /// got a whole slice more than half of what they had (`schedule`). Without a tick left it gets one in any case.
    pub(crate) fn draw_first_slice(&mut self, draw: u64) {
        let (drawn, tick) = (splitmix(draw ^ 0x5151_7174), self.tick_ns());
        let whole = (self.whole_slice().get() / tick).max(1);
        let kept = (1 + (drawn >> 1) % whole) / 2;
        let ticks = if kept == 0 || drawn & 1 == 1 { whole + kept / 2 } else { kept };
        if let Some(first) = self.tasks.first_mut() {
            first.slice = Nanos(ticks * tick);
        }
    }

    /// kupdate's first sleep ends after this time.
    pub(crate) fn wake_kupdate_in(&mut self, first: Nanos) {
        self.first_kupdate = Some(first);
    }

    /// Take the first sample at this time, and the others once a second from then on.
    pub(crate) fn sample_first_at(&mut self, first: Nanos) {
        self.next_sample = first;
        self.events.push(first, Event::Sample);
    }
}
