//! What a recording tells of the machine that its load began on, and what it does not.
//!
//! A real kernel had been up for a while: its daemons' timers were somewhere in their intervals, and whoever started the load
//! had some ticks of its slice left, which its children share (`do_fork`). Chaotic loads (several processes that thrash) come
//! out differently for each such state, as they do on the real machine from one recording to the next.

use super::aging::KSWAPD_INTERVAL;
use super::{Sim, splitmix};
use crate::config::{ReclaimPolicy, Scheduler, WritebackPolicy};
use crate::program::Start;
use crate::sim::event::Event;
use kreplay_traces::units::Nanos;

impl Sim<'_> {
    /// Draw the state of the machine that the load begins on, which a trace does not tell; the same seed draws the same. Seed
    /// 0 is the machine that was started together with the load.
    ///
    /// Drawn are where the timers of kupdate and, in the aging kernels, of kswapd are in their intervals (of today's daemons
    /// none runs without work), and what those that begin by themselves have left of their slices where `schedule` chooses by
    /// it. Beginnings are up to a millisecond apart besides.
    pub(super) fn draw_state(&mut self, seed: u64) {
        if seed == 0 {
            return;
        }
        if self.config.writeback.policy != WritebackPolicy::Balanced {
            let interval = Nanos::from_millis(self.config.writeback.interval_ms);
            self.wake_kupdate_in(within(interval, seed ^ 0x6b75_7064));
        }
        if self.config.reclaim.policy == ReclaimPolicy::Aging {
            self.wake_kswapd_in(within(KSWAPD_INTERVAL, seed ^ 0x6b73_7761));
        }
        if self.config.machine.scheduler == Scheduler::Goodness {
            for (t, task) in self.program.tasks.iter().enumerate() {
                if matches!(task.start, Start::At(_)) {
                    self.draw_slice(t, seed ^ (t as u64) << 32);
                }
            }
        }
    }

    /// Draw what the first task, which forked somebody before the load began, has left of its slice; the same number draws
    /// the same.
    pub(crate) fn draw_first_slice(&mut self, draw: u64) {
        self.draw_slice(0, draw);
    }

    /// What a task that forked somebody before the load began has left of its slice.
    ///
    /// It had worked, and so had 1 tick up to a whole slice (when all are used up, everybody gets a new one); the child took
    /// half, rounded up; then it slept, and if the child used up what it had meanwhile, which is as likely as not, everybody
    /// got a whole slice more than half of what they had (`schedule`). Without a tick left it gets one in any case.
    fn draw_slice(&mut self, t: usize, draw: u64) {
        let (drawn, tick) = (splitmix(draw ^ 0x5151_7174), self.tick_ns());
        let whole = (self.whole_slice().get() / tick).max(1);
        let left = 1 + (drawn >> 1) % whole;
        let kept = left / 2;
        let ticks = if kept == 0 || drawn & 1 == 1 { whole + kept / 2 } else { kept };
        if let Some(task) = self.tasks.get_mut(t) {
            task.slice = Nanos(ticks * tick);
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

/// A time above 0 within an interval, evenly.
fn within(interval: Nanos, draw: u64) -> Nanos {
    Nanos(1 + splitmix(draw) % interval.get().max(1))
}

#[cfg(test)]
mod tests {
    use crate::config::Scheduler;
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
    fn seeds_draw_states_and_seed_0_none() {
        let program = program();
        let mut config = config();
        config.machine.scheduler = Scheduler::Goodness;
        let state = |seed: u64| {
            let mut sim = Sim::new(&program, &config, 0, Pacing::Closed).unwrap();
            sim.draw_state(seed);
            (sim.first_kupdate, sim.tasks[0].slice)
        };
        let whole = Sim::new(&program, &config, 0, Pacing::Closed).unwrap().tasks[0].slice;
        assert_eq!(state(0), (None, whole));
        let interval = Nanos::from_millis(config.writeback.interval_ms);
        let drawn: BTreeSet<_> = (1..40).map(state).collect();
        assert!(drawn.iter().all(|(kupdate, _)| kupdate.is_some_and(|k| k > Nanos::ZERO && k <= interval)));
        let halves = drawn.iter().filter(|(kupdate, _)| kupdate.is_some_and(|k| k.get() * 2 < interval.get())).count();
        assert!((10..30).contains(&halves), "evenly over the interval: {halves} of 39");
        assert_eq!(state(7), state(7));
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
