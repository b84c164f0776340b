//! Properties that hold for any input.

use kreplay_analysis::stats::{Spread, envelope, jain, median, percent_above, quantile};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_quantile_has_the_stated_share_at_or_below_it(mut v in prop::collection::vec(any::<i64>(), 1..200), q in 0.0f64..=1.0) {
        v.sort_unstable();
        let x = quantile(&v, q).unwrap();
        let at_or_below = v.iter().filter(|y| **y <= x).count();
        let below = v.iter().filter(|y| **y < x).count();
        prop_assert!(at_or_below as f64 >= q * v.len() as f64 - 1e-9);
        prop_assert!(below as f64 <= q * v.len() as f64 + 1e-9);
        prop_assert!(v.contains(&x));
    }

    #[test]
    fn quantiles_are_in_order(mut v in prop::collection::vec(0i64..1_000_000_000_000, 1..200)) {
        let s = Spread::of(&mut v).unwrap();
        prop_assert!(s.p50_ns <= s.p90_ns && s.p90_ns <= s.p99_ns && s.p99_ns <= s.p999_ns && s.p999_ns <= s.max_ns);
        prop_assert_eq!(s.total_ns, v.iter().sum::<i64>());
    }

    #[test]
    fn jain_stays_in_its_range_and_ignores_scale(v in prop::collection::vec(0.001f64..1e9, 1..40), scale in 0.01f64..1e6) {
        let j = jain(&v).unwrap();
        prop_assert!(j <= 1.0 && j >= 1.0 / v.len() as f64 - 1e-9);
        let scaled: Vec<f64> = v.iter().map(|x| x * scale).collect();
        prop_assert!((jain(&scaled).unwrap() - j).abs() < 1e-9);
    }

    #[test]
    fn the_median_lies_between_the_ends(v in prop::collection::vec(-1e12f64..1e12, 1..100)) {
        let m = median(&v).unwrap();
        prop_assert!(m >= v.iter().copied().fold(f64::INFINITY, f64::min));
        prop_assert!(m <= v.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }

    #[test]
    fn an_envelope_keeps_extremes_order_and_bound(y in prop::collection::vec(-1e6f64..1e6, 1..2000), buckets in 1usize..100) {
        let points: Vec<(f64, f64)> = y.iter().enumerate().map(|(i, y)| (i as f64, *y)).collect();
        let thin = envelope(&points, buckets);
        prop_assert!(thin.len() <= 2 * buckets || thin.len() == points.len());
        prop_assert!(thin.windows(2).all(|w| w[0].0 < w[1].0));
        prop_assert!(thin.iter().all(|p| points.contains(p)));
        let ends = |p: &[(f64, f64)]| p.iter().fold((f64::MAX, f64::MIN), |(l, h), (_, y)| (l.min(*y), h.max(*y)));
        prop_assert_eq!(ends(&thin), ends(&points));
    }
}

#[test]
fn known_values() {
    assert_eq!(quantile(&[10, 20, 30, 40], 0.5), Some(20));
    assert_eq!(quantile(&[10, 20, 30, 40], 0.51), Some(30));
    assert_eq!(quantile(&[10, 20, 30, 40], 0.0), Some(10));
    assert_eq!(quantile(&[10, 20, 30, 40], 1.0), Some(40));
    assert_eq!(quantile(&[], 0.5), None);
    assert_eq!(quantile(&[1], 1.5), None);
    assert_eq!(jain(&[1.0, 1.0, 1.0]), Some(1.0));
    assert!((jain(&[1.0, 0.0, 0.0, 0.0]).unwrap() - 0.25).abs() < 1e-12);
    assert_eq!(jain(&[]), None);
    assert_eq!(jain(&[0.0, 0.0]), None);
    assert_eq!(jain(&[1.0, -1.0]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(percent_above(110.0, 0.0), None);
    assert!((percent_above(110.0, 100.0).unwrap() - 10.0).abs() < 1e-9);
}
