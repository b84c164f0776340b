//! When two figures count as different, and how that is said.

use crate::matrix::Folded;
use crate::stats::welch_interval;

/// With one seed, differences below this many percent count as none, unless the caller says otherwise.
pub(crate) const TIE_PCT: f64 = 5.0;

/// With several seeds, differences below this many percent never count, however steady: nobody acts on them.
pub(crate) const NEGLIGIBLE_PCT: f64 = 1.0;

/// The rule by which figures are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// With one seed, differences below this many percent count as none.
    pub tie_pct: f64,
}

impl Rule {
    /// True if `a` and `b` can be told apart: with several seeds on both sides if the confidence interval of the difference
    /// of their means leaves out 0 and the medians differ by at least [`NEGLIGIBLE_PCT`]; otherwise, and where the seeds move
    /// neither, if the medians differ by at least the tie threshold. Percentages are of the larger.
    pub(crate) fn differ(self, a: Folded, b: Folded) -> bool {
        let larger = a.median.abs().max(b.median.abs());
        let by_pct = if larger > 0.0 { (a.median - b.median).abs() / larger * 100.0 } else { 0.0 };
        match welch_interval(a.sample, b.sample) {
            Some((low, high)) => (low > 0.0 || high < 0.0) && by_pct >= NEGLIGIBLE_PCT,
            None => larger > 0.0 && by_pct >= self.tie_pct,
        }
    }

    /// The rule in words, for runs with `seeds` seeds a variant.
    pub(crate) fn in_words(self, seeds: usize) -> String {
        if seeds > 1 {
            format!(
                "Each variant ran with {seeds} seeds. Two figures are called different only if the 95 % confidence interval of the difference of their means (Welch) leaves out 0 and it is {NEGLIGIBLE_PCT} % or more: of figures that do not differ at all, one comparison in twenty will still be called different. Where the seeds move neither figure, differences below {} % are called not distinguishable.",
                self.tie_pct
            )
        } else {
            format!(
                "Each variant ran with one seed, so nothing is known about how far chance alone moves the figures: differences below {} % are called not distinguishable here, and larger ones may still be chance. Run with --seeds 5 to know.",
                self.tie_pct
            )
        }
    }

    /// The same of two runs with `a` and `b` seeds.
    pub(crate) fn of_both_in_words(self, a: usize, b: usize) -> String {
        if a == b {
            return self.in_words(a);
        }
        format!(
            "The first run has {a} seed(s) a variant and the second {b}. Where one side has a single run nothing is known about how far chance alone moves it: differences below {} % are called not distinguishable, and larger ones may still be chance.",
            self.tie_pct
        )
    }
}

/// What the seeds say of the difference of `a` and `b`, for brackets: its confidence interval in percent of `b`'s mean, or that
/// they hardly move it; empty if there are no seeds to say anything.
pub(crate) fn seeds_in_words(a: Folded, b: Folded) -> String {
    let Some((low, high)) = welch_interval(a.sample, b.sample).filter(|_| b.sample.mean > 0.0) else {
        return String::new();
    };
    let (low, high) = (low / b.sample.mean * 100.0, high / b.sample.mean * 100.0);
    if high - low < 0.1 {
        return "the same with every seed".to_string();
    }
    // Both ends in the sense of the words before the brackets, which have no sign.
    let (from, to) = if a.median < b.median { (-high, -low) } else { (low, high) };
    format!("95 % interval of the seeds alone {from:.1} to {to:.1} %")
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

    fn of(values: &[f64]) -> Folded {
        Folded::of(values).unwrap()
    }

    fn one(v: f64) -> Folded {
        of(&[v])
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
    fn several_seeds_need_an_interval_without_zero() {
        let rule = Rule { tie_pct: 5.0 };
        assert!(rule.differ(of(&[10.0, 10.1, 10.2]), of(&[10.5, 10.6, 10.7])), "small but steady");
        assert!(!rule.differ(of(&[10.0, 14.0, 18.0]), of(&[12.0, 16.0, 20.0])), "large but unsteady");
        assert!(!rule.differ(of(&[10.0, 10.0]), of(&[10.1, 10.1])), "seeds that move nothing say nothing");
        assert!(!rule.differ(of(&[10.0, 10.001]), of(&[10.05, 10.051])), "steady, but nobody acts on half a percent");
        assert_eq!(seeds_in_words(one(1.0), one(2.0)), "");
        let words = seeds_in_words(of(&[10.0, 10.1, 10.2]), of(&[20.5, 20.6, 20.7]));
        assert_eq!(words, "95 % interval of the seeds alone 49.9 to 52.1 %");
        assert_eq!(seeds_in_words(of(&[10.0, 10.0001]), of(&[20.0, 20.0001])), "the same with every seed");
    }

    #[test]
    fn words_follow_the_sign() {
        assert_eq!(earlier_or_later(75.0, 100.0), "25.0 % earlier");
        assert_eq!(earlier_or_later(110.0, 100.0), "10.0 % later");
    }
}
