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
        let left = 1 + (drawn >> 1) % whole;
        let kept = left / 2;
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

#[cfg(test)]
mod tests {
    use crate::program::Program;
    use crate::results::MemorySink;
    use crate::sim::{Pacing, Sim};
    use crate::testing::{Builder, config, write_all};
    use kreplay_traces::units::Nanos;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    fn program() -> Program {
        let mut b = Builder::new();
        let (file, ofd) = (b.file(4, 0), b.ofd());
        b.task(write_all(ofd, file, 16 << 10, 4096));
        b.build()
    }

    #[test]
    fn slices_are_drawn_between_one_tick_and_one_and_a_quarter_slices() {
        let program = program();
        let mut sim = Sim::new(&program, &config(), 0, Pacing::Closed).unwrap();
        let (tick, whole) = (sim.tick_ns(), sim.whole_slice().get());
        let drawn: BTreeSet<u64> = (0..200)
            .map(|draw| {
                sim.draw_first_slice(draw);
                let first = sim.tasks[0].slice;
                sim.draw_first_slice(draw);
                assert_eq!(sim.tasks[0].slice, first, "the same number draws the same");
                first.get()
            })
            .collect();
        assert!(
            drawn.iter().all(|s| *s >= tick && *s <= whole + whole / 4 + tick && s.is_multiple_of(tick)),
            "{drawn:?}"
        );
        assert!(drawn.len() > 3 && drawn.contains(&whole), "{drawn:?}");
    }

    #[test]
    fn samples_begin_when_told() {
        let program = program();
        let mut sink = MemorySink::default();
        let mut sim = Sim::new(&program, &config(), 0, Pacing::Closed).unwrap();
        sim.sample_first_at(Nanos::from_millis(300));
        sim.run_on_for(Nanos::from_millis(2500));
        sim.run(&mut sink, &AtomicBool::new(false)).unwrap();
        let times: Vec<u64> = sink.samples.iter().map(|s| s.time.get() / 1_000_000).collect();
        assert_eq!(times[..3], [300, 1300, 2300]);
    }
}
