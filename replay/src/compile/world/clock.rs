//! The recorded clock: steps that no load can have slept through are taken out.

use crate::compile::EventRow;

/// A pause in the whole log, or a call, of more than this is a step of the recording machine's clock: replaying it would
/// simulate years of idle seconds. Longer than any pause in a recording that one would replay.
const STEP_NS: i64 = 30 * 86_400 * 1_000_000_000;

/// Follows the times of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    last_ns: Option<i64>,
    shift_ns: i64,
}

impl Clock {
    /// A log that begins at `origin_ns`, where known.
    pub(super) fn new(origin_ns: Option<i64>) -> Self {
        Self { last_ns: origin_ns, shift_ns: 0 }
    }

    /// Take the steps so far out of an event's time, and a duration that is one. True if a step was found here.
    pub(super) fn mend(&mut self, row: &mut EventRow<'_>) -> bool {
        let mut stepped = false;
        let time_ns = match row {
            EventRow::Syscall(r) => {
                if r.dur_ns.is_some_and(|d| d > STEP_NS) {
                    r.dur_ns = None;
                    stepped = true;
                }
                &mut r.time_ns
            }
            EventRow::Fault(f) => &mut f.time_ns,
        };
        let gap = time_ns.saturating_sub(self.last_ns.unwrap_or(*time_ns));
        if gap > STEP_NS {
            self.shift_ns = self.shift_ns.saturating_add(gap);
            stepped = true;
        }
        self.last_ns = Some(*time_ns);
        *time_ns = time_ns.saturating_sub(self.shift_ns);
        stepped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreplay_traces::event::SyscallRow;

    fn at(clock: &mut Clock, time_ns: i64, dur_ns: Option<i64>) -> (i64, Option<i64>, bool) {
        let mut row = EventRow::Syscall(SyscallRow { time_ns, dur_ns, call: "read", ..SyscallRow::default() });
        let stepped = clock.mend(&mut row);
        let EventRow::Syscall(r) = row else { unreachable!() };
        (r.time_ns, r.dur_ns, stepped)
    }

    #[test]
    fn a_step_moves_everything_behind_it() {
        let mut c = Clock::new(Some(0));
        assert_eq!(at(&mut c, 5, Some(1)), (5, Some(1), false));
        let years = 20 * 365 * 86_400 * 1_000_000_000;
        assert_eq!(at(&mut c, years, Some(1)), (5, Some(1), true), "the step itself takes no time");
        assert_eq!(at(&mut c, years + 7, None), (12, None, false));
        assert_eq!(at(&mut c, years + 8, Some(years)), (13, None, true), "a call of years has no duration");
    }

    #[test]
    fn a_long_pause_stays() {
        let mut c = Clock::new(None);
        assert_eq!(at(&mut c, 100, None).0, 100, "without an origin the first event sets it");
        let days = 3 * 86_400 * 1_000_000_000;
        assert_eq!(at(&mut c, days, None), (days, None, false));
    }
}
