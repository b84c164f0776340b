//! Statistics over plain vectors, each with the definition that is used.

/// The `q`-quantile of `sorted` by nearest rank: the value at 1-based rank `ceil(q * n)`, at least 1. It is always one of the
/// values, never an interpolation. `None` if there are no values or `q` is outside 0..=1.
pub fn quantile(sorted: &[i64], q: f64) -> Option<i64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Count, quantiles and total of one kind of duration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many values.
    pub count: usize,
    /// Median (nearest rank).
    pub p50_ns: i64,
    /// 90th percentile (nearest rank).
    pub p90_ns: i64,
    /// 99th percentile (nearest rank).
    pub p99_ns: i64,
    /// 99.9th percentile (nearest rank).
    pub p999_ns: i64,
    /// Largest value.
    pub max_ns: i64,
    /// Sum of all values.
    pub total_ns: i64,
}

impl Spread {
    /// Summary of `values` (sorted in place); `None` if there are none.
    pub fn of(values: &mut [i64]) -> Option<Spread> {
        values.sort_unstable();
        Some(Spread {
            count: values.len(),
            p50_ns: quantile(values, 0.5)?,
            p90_ns: quantile(values, 0.9)?,
            p99_ns: quantile(values, 0.99)?,
            p999_ns: quantile(values, 0.999)?,
            max_ns: *values.last()?,
            total_ns: values.iter().fold(0i64, |sum, v| sum.saturating_add(*v)),
        })
    }
}

/// Jain's fairness index of `shares`: `(sum x)^2 / (n * sum x^2)`, from `1/n` (one takes all) to 1 (all equal).
///
/// R. Jain, D.-M. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
/// Computer Systems", DEC-TR-301, 1984. `None` if there are no shares, one is negative or not finite, or all are 0.
pub fn jain(shares: &[f64]) -> Option<f64> {
    if shares.iter().any(|x| !x.is_finite() || *x < 0.0) {
        return None;
    }
    // Scaling by the largest share keeps the squares away from overflow and underflow; the index does not change.
    let largest = shares.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let sum: f64 = shares.iter().map(|x| x / largest).sum();
    let squares: f64 = shares.iter().map(|x| (x / largest) * (x / largest)).sum();
    Some((sum * sum / (shares.len() as f64 * squares)).min(1.0))
}

/// Median of `values`: the middle one, or the mean of the two middle ones. `None` if there are none or one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) })
}

/// Arithmetic mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); `None` with fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    Some((values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt())
}

/// The 97.5 % quantile of Student's t distribution with `freedom` degrees of freedom, rounded down to the next tabled one
/// (so intervals are rather too wide than too narrow); infinite below one degree.
pub fn student_975(freedom: f64) -> f64 {
    const FEW: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        f if f.is_nan() || f < 1.0 => f64::INFINITY,
        f if f < 40.0 => FEW[(f as usize).min(FEW.len()) - 1],
        f if f < 60.0 => 2.021,
        f if f < 120.0 => 2.000,
        f if f < 1000.0 => 1.980,
        _ => 1.962,
    }
}

/// A sample, summed up for comparing means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1); 0 for a single value.
    pub deviation: f64,
}

impl Sample {
    /// Sums up `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Sample> {
        Some(Sample { count: values.len(), mean: mean(values)?, deviation: deviation(values).unwrap_or(0.0) })
    }
}

/// 95 % confidence interval of the difference of two means, `a` minus `b`, by Welch's t (B. L. Welch, Biometrika 34, 1947):
/// the variances need not be equal. `None` with fewer than two values on either side, or if neither side varies.
pub fn welch_interval(a: Sample, b: Sample) -> Option<(f64, f64)> {
    if a.count < 2 || b.count < 2 {
        return None;
    }
    let part = |s: Sample| s.deviation * s.deviation / s.count as f64;
    let (va, vb) = (part(a), part(b));
    let squared = va + vb;
    if squared <= 0.0 {
        return None;
    }
    let freedom = squared * squared / (va * va / (a.count - 1) as f64 + vb * vb / (b.count - 1) as f64);
    let half = student_975(freedom) * squared.sqrt();
    let difference = a.mean - b.mean;
    Some((difference - half, difference + half))
}

/// By how many percent `value` is above (positive) or below (negative) `base`; `None` if `base` is not positive.
pub fn percent_above(value: f64, base: f64) -> Option<f64> {
    (base > 0.0 && value.is_finite()).then(|| (value / base - 1.0) * 100.0)
}

/// Thins a series to at most `2 * buckets` points: of each of `buckets` equal stretches of the x axis the lowest and the
/// highest point stay, in order. Peaks survive; what is lost is only how often a value between them occurred.
/// A series that is short enough comes back unchanged. `points` must be sorted by x.
pub fn envelope(points: &[(f64, f64)], buckets: usize) -> Vec<(f64, f64)> {
    if buckets == 0 || points.len() <= 2 * buckets {
        return points.to_vec();
    }
    let first = points[0].0;
    let span = points[points.len() - 1].0 - first;
    let bucket_of =
        |x: f64| if span > 0.0 { (((x - first) / span * buckets as f64) as usize).min(buckets - 1) } else { 0 };
    let mut kept = Vec::with_capacity(2 * buckets);
    let mut start = 0;
    while start < points.len() {
        let bucket = bucket_of(points[start].0);
        let end = start + points[start..].iter().take_while(|p| bucket_of(p.0) == bucket).count();
        let stretch = &points[start..end];
        let low = (0..stretch.len()).min_by(|a, b| stretch[*a].1.total_cmp(&stretch[*b].1)).unwrap_or(0);
        let high = (0..stretch.len()).max_by(|a, b| stretch[*a].1.total_cmp(&stretch[*b].1)).unwrap_or(0);
        kept.push(stretch[low.min(high)]);
        if low != high {
            kept.push(stretch[low.max(high)]);
        }
        start = end;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_against_a_worked_example() {
        // Welch's own kind of case: means 20 and 22, variances 4 and 16, n 10 each: se = sqrt(2), df = 13.2 -> 13.
        let a = Sample { count: 10, mean: 20.0, deviation: 2.0 };
        let b = Sample { count: 10, mean: 22.0, deviation: 4.0 };
        let (low, high) = welch_interval(a, b).unwrap();
        let half = 2.160 * 2.0f64.sqrt();
        assert!((low - (-2.0 - half)).abs() < 1e-9 && (high - (-2.0 + half)).abs() < 1e-9, "{low} {high}");
        assert_eq!(welch_interval(Sample { count: 1, ..a }, b), None);
        assert_eq!(welch_interval(Sample { deviation: 0.0, ..a }, Sample { deviation: 0.0, ..b }), None);
    }

    #[test]
    fn deviation_is_that_of_a_sample() {
        assert!((deviation(&[1.0, 2.0, 3.0, 4.0]).unwrap() - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(deviation(&[1.0]), None);
        assert!(student_975(0.5).is_infinite() && student_975(1.0) > student_975(2.0));
    }
}
