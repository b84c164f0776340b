//! What the recorded machine's memory was used for, beside caches.

use kreplay_traces::event::VmstatRow;
use kreplay_traces::units::Nanos;

/// Memory in use on the recorded machine, from its vmstat log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedMemory {
    /// Memory of the machine, KiB; where the trace does not say it, the most that free memory and caches came to.
    pub total_kib: u64,
    /// Memory that was neither free nor cache nor buffers, KiB, by time, ascending. Empty: nothing is known.
    pub used: Vec<(Nanos, u64)>,
}

impl RecordedMemory {
    /// From the rows of a vmstat log, in time order; rows without a time or without one of the three columns say nothing.
    pub fn of_rows(total_kib: Option<u64>, rows: &[VmstatRow]) -> Self {
        let not_used = |r: &VmstatRow| {
            let sum = r.free_kib?.checked_add(r.buff_kib?)?.checked_add(r.cache_kib?)?;
            Some((Nanos(r.time_ns?.max(0) as u64), u64::try_from(sum).ok()?))
        };
        let known: Vec<(Nanos, u64)> = rows.iter().filter_map(not_used).collect();
        let most = known.iter().map(|(_, kib)| *kib).max().unwrap_or(0);
        let total_kib = total_kib.unwrap_or(most);
        Self { total_kib, used: known.into_iter().map(|(at, kib)| (at, total_kib.saturating_sub(kib))).collect() }
    }

    /// Memory in use at a time, KiB: on the line between two rows, before the first and after the last as they say. `None` if
    /// nothing is known.
    pub fn used_at(&self, at: Nanos) -> Option<u64> {
        let next = self.used.partition_point(|(t, _)| *t <= at);
        let (after, before) = (self.used.get(next), next.checked_sub(1).and_then(|i| self.used.get(i)));
        match (before, after) {
            (Some(&(t0, a)), Some(&(t1, b))) => {
                let (part, whole) = (i128::from((at - t0).0), i128::from((t1 - t0).0.max(1)));
                Some((i128::from(a) + (i128::from(b) - i128::from(a)) * part / whole) as u64)
            }
            (Some(&(_, kib)), None) | (None, Some(&(_, kib))) => Some(kib),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_what_is_neither_free_nor_cache() {
        let row = |s: i64, free, buff, cache| VmstatRow {
            time_ns: Some(s * 1_000_000_000),
            free_kib: Some(free),
            buff_kib: Some(buff),
            cache_kib: Some(cache),
            ..VmstatRow::default()
        };
        let without = VmstatRow { free_kib: None, ..row(3, 0, 0, 0) };
        let rows = [row(-1, 100, 10, 50), row(2, 60, 10, 30), without, row(4, 0, 0, 0)];
        let m = RecordedMemory::of_rows(Some(1000), &rows);
        let at = |ms| m.used_at(Nanos::from_millis(ms));
        assert_eq!(m.used.len(), 3);
        assert_eq!([at(0), at(1000), at(2000), at(3000), at(9000)], [840, 870, 900, 950, 1000].map(Some));
        assert_eq!(RecordedMemory::default().used_at(Nanos::ZERO), None);
        // Without a total, as little as the log allows.
        assert_eq!(RecordedMemory::of_rows(None, &rows[..2]).used_at(Nanos::from_secs(2)), Some(60));
    }
}
