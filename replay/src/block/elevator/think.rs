//! Decaying mean of think times (`ttime` of `block/cfq-iosched.c` and `block/bfq-iosched.c`).

/// A mean counts after this (256 = 1 sample at full weight).
const VALID: u64 = 80;

/// How long a process takes from the end of a request to its next one, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Think {
    /// When its last request was done.
    pub(super) last_end: u64,
    samples: u64,
    total: u64,
    pub(super) mean: u64,
}

impl Think {
    pub(super) fn since(last_end: u64) -> Self {
        Self { last_end, ..Self::default() }
    }

    /// A request comes; times beyond twice the idling time count as that.
    pub(super) fn add(&mut self, now: u64, slice_idle: u64) {
        let elapsed = now.saturating_sub(self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    pub(super) fn valid(&self) -> bool {
        self.samples > VALID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_counts_after_three_samples_and_long_pauses_are_cut() {
        let mut t = Think::since(1_000);
        t.add(2_000, 8_000);
        assert_eq!((t.mean, t.valid()), (1_004, false), "256 x 1000 / 8, rounded, over 32 eighths of a sample");
        t.last_end = 10_000;
        t.add(1_000_000, 8_000);
        assert!(t.mean < 16_000 && t.mean > 8_000, "{}", t.mean);
        assert!(!t.valid());
        t.add(1_000_000, 8_000);
        assert!(t.valid());
    }
}
