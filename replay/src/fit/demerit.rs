//! The distance of two distributions.

/// Root of the mean squared horizontal distance between two distribution curves, percent of the first one's mean. Curves
/// of different length are compared at the quantiles of the first.
pub fn demerit_pct(recorded: &[f64], modelled: &[f64]) -> f64 {
    if recorded.is_empty() || modelled.is_empty() {
        return f64::NAN;
    }
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_unstable_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(recorded), sorted(modelled));
    let n = a.len() as f64;
    let squares: f64 = a
        .iter()
        .enumerate()
        .map(|(k, x)| {
            let other = b[((k as f64 + 0.5) / n * b.len() as f64) as usize];
            (x - other).powi(2)
        })
        .sum();
    let mean = a.iter().sum::<f64>() / n;
    100.0 * (squares / n).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_its_own_distance_and_order_does_not_matter() {
        assert_eq!(demerit_pct(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), 0.0);
        assert_eq!(demerit_pct(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]), 50.0);
        assert_eq!(demerit_pct(&[2.0, 2.0], &[3.0]), 50.0);
        assert!(demerit_pct(&[], &[1.0]).is_nan());
    }
}
