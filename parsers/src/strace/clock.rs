//! The clock of a strace log, whichever of its forms.

use crate::diag::Diagnostics;
use crate::format::ParseOptions;

use super::prefix::{Prefix, Stamp};

const DAY_NS: i64 = 86_400_000_000_000;

/// Turns printed stamps into nanoseconds.
#[derive(Debug)]
pub(super) struct Clock {
    kind: Kind,
    fine: bool,
    /// Latest time of any line.
    now_ns: i64,
    /// Midnight of the current day (`-t`, `-tt`), or the sum of the gaps (`-r`).
    base_ns: i64,
    last_of_day_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Epoch,
    TimeOfDay,
    Relative,
}

impl Clock {
    pub(super) fn new(options: &ParseOptions) -> Self {
        let base_ns = options.midnight_ns.unwrap_or(0);
        Self { kind: Kind::None, fine: false, now_ns: 0, base_ns, last_of_day_ns: None }
    }

    /// The clock has fractions of a second, so that a call's end minus its begin means something.
    pub(super) fn fine(&self) -> bool {
        self.fine
    }

    /// The time of a line. A line without a stamp has the time of the one before. `last_ns` is the thread's latest time;
    /// a step back in one thread is warned of and kept as it is.
    #[inline]
    pub(super) fn read(&mut self, p: &Prefix<'_>, line: i64, last_ns: &mut i64, diag: &mut Diagnostics) -> i64 {
        let time_ns = match p.stamp {
            None => self.now_ns,
            Some(Stamp::Epoch(ns)) => {
                self.kind = Kind::Epoch;
                ns
            }
            Some(Stamp::TimeOfDay(ns)) => {
                self.kind = Kind::TimeOfDay;
                // Half a day back can only be midnight; less is a step of the clock or an order across threads.
                if self.last_of_day_ns.is_some_and(|last| last - ns > DAY_NS / 2) {
                    self.base_ns = self.base_ns.saturating_add(DAY_NS);
                    diag.warn("clock-midnight", Some(line), || "the clock passes midnight; a day was added".into());
                }
                self.last_of_day_ns = Some(ns);
                self.base_ns.saturating_add(ns)
            }
            Some(Stamp::Relative(ns)) => {
                self.kind = Kind::Relative;
                self.base_ns = self.base_ns.saturating_add(ns);
                self.base_ns
            }
        };
        self.fine |= p.fine;
        self.now_ns = time_ns;
        if time_ns < *last_ns {
            let step = last_ns.abs_diff(time_ns);
            diag.warn("clock-step", Some(line), || format!("the clock steps back by {step} ns within one thread"));
        }
        *last_ns = time_ns;
        time_ns
    }

    pub(super) fn report(&self, diag: &mut Diagnostics) {
        let name = match self.kind {
            Kind::None => {
                if diag.events() > 0 {
                    diag.warn("no-clock", None, || {
                        "the log has no time stamps: all calls have time 0, only their order is known (record with -ttt)"
                            .into()
                    });
                }
                "none"
            }
            Kind::Epoch => "epoch",
            Kind::TimeOfDay => "time-of-day",
            Kind::Relative => "relative",
        };
        diag.option("clock", name);
        if self.kind == Kind::TimeOfDay && !self.fine {
            diag.warn("clock-seconds", None, || "the clock has whole seconds only (-t); use -ttt".into());
        }
    }
}
