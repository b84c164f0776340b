//! BFQ's estimate of the device's peak rate (`bfq_update_peak_rate` and neighbours in `block/bfq-iosched.c` of 6.1).
//!
//! Rates are sectors per microsecond with 16 fraction bits.

/// Fraction bits of rates.
const SHIFT: u32 = 16;
/// An interval counts from so many requests and this long, ns.
const MIN_SAMPLES: u64 = 32;
const MIN_INTERVAL: u64 = 300_000_000;
/// Intervals are closed after this, ns.
const REF_INTERVAL: u64 = 1_000_000_000;
/// A pause at the device that ends an interval, ns.
const PAUSE: u64 = 100_000_000;
/// Requests follow each other closely within this, ns.
pub(super) const MIN_THINK: u64 = 2_000_000;
/// Reference rates, and how long an interactive process's start takes on such a device, ms: rotating, flash.
const REFERENCE: [(u64, u64); 2] = [(14_000, 7_600), (33_000, 2_500)];

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    pub(super) rate: u64,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first_dispatch: u64,
    last_dispatch: u64,
    elapsed: u64,
    last_completion: u64,
    reference: (u64, u64),
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> Self {
        let reference = REFERENCE[usize::from(!rotational)];
        Self {
            rate: reference.0 * 2 / 3,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first_dispatch: 0,
            last_dispatch: 0,
            elapsed: 0,
            last_completion: 0,
            reference,
        }
    }

    /// Sectors that the device transfers in `ms` at its peak rate.
    pub(super) fn sectors_in(&self, ms: u64) -> u64 {
        (self.rate * 1000 * ms) >> SHIFT
    }

    /// How long an interactive process's weight stays raised, ns: the longer the slower the device.
    pub(super) fn raising_ns(&self) -> u64 {
        let (rate, ms) = self.reference;
        (rate * ms / self.rate.max(1)).clamp(3_000, 25_000) * 1_000_000
    }

    fn begin(&mut self, now: u64, sectors: u64) {
        self.first_dispatch = now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sectors;
        self.largest = sectors;
    }

    /// Closes an interval.
    fn close(&mut self) {
        if self.samples < MIN_SAMPLES || self.elapsed < MIN_INTERVAL {
            return;
        }
        let elapsed = self.elapsed.max(self.last_completion.saturating_sub(self.first_dispatch));
        let rate = (self.sectors << SHIFT) / (elapsed / 1000).max(1);
        // Lower rates count only if most requests were sequential; more than 10 GB/s is an artefact.
        if (self.sequential < 3 * self.samples / 4 && rate <= self.rate) || rate > 20 << SHIFT {
            return;
        }
        let weight = (9 * self.sequential / self.samples * elapsed / REF_INTERVAL).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
    }

    /// A request goes to the device, which has `in_driver` others.
    pub(super) fn dispatched(&mut self, now: u64, sectors: u64, in_driver: u32, seeky: bool) {
        if self.samples == 0 {
            self.begin(now, sectors);
        } else if now - self.last_dispatch > PAUSE && in_driver == 0 {
            self.close();
            self.begin(now, sectors);
        } else {
            self.samples += 1;
            let close = in_driver > 0 || now.saturating_sub(self.last_completion) < MIN_THINK;
            self.sequential += u64::from(close && !seeky);
            self.sectors += sectors;
            self.largest = if self.samples.is_multiple_of(32) { sectors } else { self.largest.max(sectors) };
            self.elapsed = now - self.first_dispatch;
            if self.elapsed >= REF_INTERVAL {
                self.close();
                self.begin(now, sectors);
            }
        }
        self.last_dispatch = now;
    }

    /// A request is done; one that took very long for its size ends the interval.
    pub(super) fn completed(&mut self, now: u64) {
        let us = now.saturating_sub(self.last_completion) / 1000;
        if us > MIN_THINK / 1000 && (self.largest << SHIFT) / us < 1 << (SHIFT - 10) {
            self.close();
            self.samples = 0;
        }
        self.last_completion = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_second_at_100_mb_s_moves_the_estimate_there() {
        let mut r = PeakRate::new(true);
        assert_eq!(r.rate, 9_333);
        // 128 KiB every 1.28 ms: 0.2 sectors per microsecond.
        for k in 0..8_000u64 {
            r.dispatched(k * 1_280_000, 256, 1, false);
            r.completed(k * 1_280_000 + 1_000_000);
        }
        let want = (1 << SHIFT) / 5;
        assert!(r.rate.abs_diff(want) < want / 50, "{} against {want}", r.rate);
        assert_eq!(r.sectors_in(125), (r.rate * 125_000) >> 16);
        assert!((8_000_000_000..8_300_000_000).contains(&r.raising_ns()), "{}", r.raising_ns());
    }
}
