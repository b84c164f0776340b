//! When two figures count as different, and how that is said.

use crate::matrix::Folded;

/// With one seed, differences below this many percent count as none, unless the caller says otherwise.
pub(crate) const TIE_PCT: f64 = 5.0;

/// The rule by which figures are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// With one seed, differences below this many percent count as none.
    pub tie_pct: f64,
}

impl Rule {
    /// True if `a` and `b` can be told apart: with several seeds on both sides if their ranges do not overlap, otherwise if
    /// they differ by at least the tie threshold, relative to the larger.
    pub(crate) fn differ(self, a: Folded, b: Folded) -> bool {
        if a.seeds > 1 && b.seeds > 1 {
            return a.high < b.low || b.high < a.low;
        }
        let larger = a.median.abs().max(b.median.abs());
        larger > 0.0 && (a.median - b.median).abs() / larger * 100.0 >= self.tie_pct
    }

    /// The rule in words, for runs with `seeds` seeds a variant.
    pub(crate) fn in_words(self, seeds: usize) -> String {
        if seeds > 1 {
            format!(
                "Each variant ran with {seeds} seeds. Two figures are called different only if their ranges over the seeds do not overlap; that is a rule of thumb, not a test of significance."
            )
        } else {
            format!(
                "Each variant ran with one seed, so nothing is known about how far chance alone moves the figures: differences below {} % are called not distinguishable here, and larger ones may still be chance. Run with --seeds 5 to know.",
                self.tie_pct
            )
        }
    }
}

/// "12.4 % earlier", "3.0 % later" for a time `a` against a time `b`.
pub(crate) fn earlier_or_later(a: f64, b: f64) -> String {
    if b <= 0.0 {
        return format!("{a:.2} s against {b:.2} s");
    }
    let pct = (1.0 - a / b) * 100.0;
    if pct >= 0.0 { format!("{pct:.1} % earlier") } else { format!("{:.1} % later", -pct) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(v: f64) -> Folded {
        Folded { median: v, low: v, high: v, seeds: 1 }
    }

    #[test]
    fn one_seed_needs_a_wide_gap() {
        let rule = Rule { tie_pct: 5.0 };
        assert!(!rule.differ(one(100.0), one(104.0)));
        assert!(rule.differ(one(100.0), one(106.0)));
        assert!(!rule.differ(one(0.0), one(0.0)));
        assert!(rule.differ(one(0.0), one(1.0)));
    }

    #[test]
    fn several_seeds_need_ranges_apart() {
        let rule = Rule { tie_pct: 5.0 };
        let range = |low, high| Folded { median: f64::midpoint(low, high), low, high, seeds: 3 };
        assert!(rule.differ(range(1.0, 2.0), range(2.1, 3.0)));
        assert!(!rule.differ(range(1.0, 2.0), range(1.9, 30.0)));
    }

    #[test]
    fn words_follow_the_sign() {
        assert_eq!(earlier_or_later(75.0, 100.0), "25.0 % earlier");
        assert_eq!(earlier_or_later(110.0, 100.0), "10.0 % later");
    }
}
