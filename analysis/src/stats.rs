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
