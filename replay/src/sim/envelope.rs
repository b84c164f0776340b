//! Memory that the rest of the recorded machine took: key `machine.envelope`.
//!
//! How much that is at a time: what the recorded vmstat log shows as neither free nor cache nor buffers, less what the model
//! accounts for itself: its kernel's memory and objects, and what the trace's tasks hold, in memory or in swap. The frames are
//! reserved and released as time goes on, ten times a second; reserving takes frames as an ordinary allocation would, above
//! the low watermark, and wakes kswapd where that fails.

use super::Sim;
use super::event::Event;
use crate::config::Envelope;
use kreplay_traces::units::Nanos;

/// How often the envelope is looked at.
const INTERVAL: Nanos = Nanos::from_millis(100);

impl Sim<'_> {
    pub(super) fn start_envelope(&mut self) {
        if self.config.machine.envelope != Envelope::None && !self.program.memory.used.is_empty() {
            self.events.push(Nanos::ZERO, Event::Envelope);
        }
    }

    /// Reserve or release frames for the rest of the machine.
    pub(super) fn follow_envelope(&mut self) {
        let target = self.envelope_frames();
        while self.mm.held.iter().sum::<u64>() > target {
            let zone = usize::from(self.mm.held[1] > 0);
            self.mm.held[zone] -= 1;
            self.mm.zones.give(zone);
        }
        while self.mm.held.iter().sum::<u64>() < target {
            let Some(zone) = self.mm.zones.take_low() else {
                let class = self.mm.zones.classzone();
                self.mm.zones.zone[class].need_balance = true;
                self.wake_daemon(self.kswapd);
                break;
            };
            self.mm.held[zone] += 1;
        }
        self.mm.note_free();
        self.events.push(self.now + INTERVAL, Event::Envelope);
    }

    /// Frames that the rest of the machine takes now, at most seven eighths of all.
    fn envelope_frames(&self) -> u64 {
        let memory = &self.program.memory;
        let Some(used) = memory.used_at(self.now) else { return 0 };
        let ram = self.config.machine.ram;
        let used = match self.config.machine.envelope {
            Envelope::Scaled => (u128::from(used) * u128::from(ram) / u128::from(memory.total_kib.max(1))) as u64,
            Envelope::None | Envelope::Recorded => used,
        };
        let mm = &self.mm;
        let swapped = u64::from(mm.swap.used()).saturating_sub(mm.swap_cache_pages);
        let own = mm.kernel_frames() + mm.slab_frames();
        let most = (ram / 4 * 7 / 8).saturating_sub(own);
        (used / 4).saturating_sub(own + mm.anon_pages + swapped).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::RecordedMemory;
    use crate::results::MemorySink;
    use crate::sim::Pacing;
    use crate::testing::{Builder, config, read_all};
    use proptest::prelude::*;
    use std::sync::atomic::AtomicBool;

    /// A reader of 40 MiB on a machine of 64 MiB whose others use `used` (seconds, KiB): the most that was held at a time, the
    /// most that was cached at once after the first second, KiB, and the state at the end.
    fn play(used: &[(u64, u64)], envelope: Envelope, total_kib: u64) -> Result<(u64, u64, u64), String> {
        let mut b = Builder::new();
        let (f, o) = (b.file(10_240, 10_240), b.ofd());
        b.task(read_all(o, f, 40 << 20, 65_536));
        let mut program = b.build();
        program.memory =
            RecordedMemory { total_kib, used: used.iter().map(|(s, kib)| (Nanos::from_secs(*s), *kib)).collect() };
        let mut c = config();
        c.machine.envelope = envelope;
        let mut sink = MemorySink::default();
        let mut sim = Sim::new(&program, &c, 0, Pacing::Closed).map_err(|e| e.to_string())?;
        let (stop, mut most, mut cached, mut at) = (AtomicBool::new(false), 0, 0, Nanos::ZERO);
        loop {
            at += Nanos::from_millis(50);
            sim.pause_at(at);
            let over = sim.run(&mut sink, &stop).map_err(|e| e.to_string())?.finished;
            sim.mm.audit()?;
            most = most.max(sim.mm.held.iter().sum::<u64>() * 4);
            cached = cached.max(sim.mm.cache_pages * 4);
            if !over && sink.counters.is_some() {
                return Err(format!("it hangs: {:?}", sink.events));
            }
            if over {
                return Ok((most, cached, sim.mm.held.iter().sum::<u64>() * 4));
            }
        }
    }

    #[test]
    fn the_rest_of_the_machine_takes_its_share_and_gives_it_back() {
        let (held, cached, _) = play(&[(0, 60_000)], Envelope::None, 65_536).unwrap();
        assert!(held == 0 && cached > 38_000, "{held} {cached}");
        let (held, cached, at_end) = play(&[(0, 40_000)], Envelope::Recorded, 65_536).unwrap();
        let kernel = config().machine.reserved;
        assert!((40_000 - kernel - 600..=40_000 - kernel).contains(&held), "{held} KiB held, the kernel has {kernel}");
        assert!(cached < 65_536 - 40_000 + 600, "{cached} KiB cached");
        // Buffer heads come out of the same memory.
        assert!((held - 600..=held).contains(&at_end), "{at_end} held at the end");
        // Twice the memory recorded: half of the use.
        let (scaled, ..) = play(&[(0, 80_000)], Envelope::Scaled, 131_072).unwrap();
        assert_eq!(scaled, held);
        let (most, _, at_end) = play(&[(0, 50_000), (1, 10_000)], Envelope::Recorded, 65_536).unwrap();
        assert!(most > 40_000 && at_end < 10_000, "{most} KiB at most, {at_end} at the end");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
        #[test]
        fn frames_are_conserved_whatever_the_log_says(
            used in proptest::collection::vec((0..4u64, 0..200_000u64), 1..6),
            scaled in any::<bool>(),
        ) {
            let mut used = used;
            used.sort_unstable();
            let envelope = if scaled { Envelope::Scaled } else { Envelope::Recorded };
            let (most, ..) = play(&used, envelope, 200_000).map_err(TestCaseError::fail)?;
            prop_assert!(most <= 65_536 * 7 / 8);
        }
    }
}
