//! The commands that a drive holds (TCQ, NCQ), and which of them it serves next: the one that it can begin soonest, with
//! what they have waited taken off; one that has waited too long goes first.
//!
//! Greedy shortest positioning with ageing, after Jacobson and Wilkes, "Disk scheduling algorithms based on rotational
//! position" (HPL-CSP-91-7, 1991); how real firmware weighs age is not published.

use kreplay_traces::units::Nanos;

/// Rules of a command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandQueue {
    /// Of each nanosecond waited, so much counts against the positioning time.
    age_weight: f64,
    /// Whoever has waited for longer goes first, oldest first.
    limit: Nanos,
}

impl CommandQueue {
    pub(super) fn new(age_weight_pct: u32, age_limit_ms: u64) -> Self {
        Self { age_weight: f64::from(age_weight_pct) / 100.0, limit: Nanos(age_limit_ms.saturating_mul(1_000_000)) }
    }

    /// Picks among commands, each with the time since which it has been held and the time to its first sector (ns).
    pub(super) fn pick(&self, now: Nanos, held: impl Iterator<Item = (Nanos, f64)>) -> usize {
        let mut best = (0, f64::MAX);
        let mut oldest: Option<(usize, Nanos)> = None;
        for (k, (since, positioning)) in held.enumerate() {
            let waited = now.saturating_sub(since);
            if waited > self.limit && oldest.is_none_or(|(_, s)| since < s) {
                oldest = Some((k, since));
            }
            let cost = positioning - self.age_weight * waited.get() as f64;
            if cost < best.1 {
                best = (k, cost);
            }
        }
        oldest.map_or(best.0, |(k, _)| k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_goes_first_unless_another_has_waited_too_long() {
        let q = CommandQueue::new(0, 500);
        let now = Nanos::from_millis(1000);
        let held = |old: u64| [(Nanos::from_millis(old), 9e6), (Nanos::from_millis(999), 2e6)].into_iter();
        assert_eq!(q.pick(now, held(600)), 1);
        assert_eq!(q.pick(now, held(499)), 0);
        // 400 ms of waiting, a twentieth of it counted, are worth more than 7 ms of positioning.
        assert_eq!(CommandQueue::new(5, 500).pick(now, held(600)), 0);
    }
}
