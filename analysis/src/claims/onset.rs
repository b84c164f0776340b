//! Where reads begin in a load that only writes, and which writes asked for them.

use super::view::View;
use crate::error::Result;

/// Reads below this rate are names and metadata, KiB/s.
const READING_KIB_S: i64 = 128;
/// The cache has stopped growing when it has reached this share of the most that it will ever hold, percent.
const FULL_PCT: i64 = 95;
/// Samples that are averaged on each side.
const AROUND: usize = 5;

/// A write that had to read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadingWrite {
    /// Line of the trace.
    pub line: i64,
    /// Time it waited for reads, ns.
    pub read_ns: i64,
    /// When it began, ns.
    pub start_ns: i64,
    /// Bytes that it wrote.
    pub len_bytes: i64,
}

/// The moment at which a writing load begins to read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Onset {
    /// First sample with reads.
    pub reads_sample: usize,
    /// Its time, ns.
    pub reads_ns: i64,
    /// First sample with the cache at its height.
    pub cache_full_sample: usize,
    /// Mean bo after the onset over mean bo before it.
    pub bo_after_over_before: Option<f64>,
}

impl Onset {
    /// Looks for it in the samples; `None` if the load never reads.
    pub(crate) fn find(view: &View) -> Result<Option<Onset>> {
        let (times, bi, bo) = (view.samples("time_ns")?, view.samples("bi_kib_s")?, view.samples("bo_kib_s")?);
        let cache = view.samples("cache_kib")?;
        Ok(find(times, bi, bo, cache))
    }
}

fn find(times: &[i64], bi: &[i64], bo: &[i64], cache: &[i64]) -> Option<Onset> {
    let reads_sample = bi.iter().position(|v| *v >= READING_KIB_S)?;
    let most = cache.iter().copied().max()?;
    let cache_full_sample = cache.iter().position(|v| *v * 100 >= most * FULL_PCT)?;
    let mean = |range: &[i64]| (!range.is_empty()).then(|| range.iter().sum::<i64>() as f64 / range.len() as f64);
    let before = mean(&bo[reads_sample.saturating_sub(AROUND)..reads_sample]);
    let after = mean(&bo[reads_sample..(reads_sample + AROUND).min(bo.len())]);
    // Where nothing was written before, nothing dropped: it counts as 1 KiB/s.
    let ratio = before.zip(after).map(|(b, a)| a / b.max(1.0));
    Some(Onset { reads_sample, reads_ns: times[reads_sample], cache_full_sample, bo_after_over_before: ratio })
}

/// Writes that waited for reads of data, in the order of their beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadingWrites {
    /// The first of them. The pieces of one traced call have its line.
    pub first: Vec<ReadingWrite>,
    /// How many there are.
    pub count: usize,
    /// Writes that waited for reads of metadata only.
    pub metadata_only: usize,
}

/// The writes of a cell that had to read; at most `most` are told one by one.
pub(crate) fn reading_writes(view: &View, most: usize) -> Result<ReadingWrites> {
    let calls = view.calls()?;
    let is_write = |i: &usize| matches!(calls.ops[calls.op[*i] as usize].as_str(), "write" | "recv-write");
    let (mut first, mut metadata_only) = (Vec::new(), 0);
    for i in (0..calls.op.len()).filter(|i| calls.read_ns[*i] > 0).filter(is_write) {
        if calls.read_ns[i] == calls.meta_ns[i] {
            metadata_only += 1;
            continue;
        }
        first.push(ReadingWrite {
            line: calls.line[i],
            read_ns: calls.read_ns[i],
            start_ns: calls.start_ns[i],
            len_bytes: calls.len_bytes[i].unwrap_or(0),
        });
    }
    first.sort_by_key(|w| (w.start_ns, w.line));
    let count = first.len();
    first.truncate(most);
    Ok(ReadingWrites { first, count, metadata_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_begin_where_the_cache_is_full() {
        let times: Vec<i64> = (0..8).map(|s| s * 1_000_000_000).collect();
        let bi = [0, 0, 4, 0, 900, 1000, 800, 900];
        let bo = [900, 900, 900, 900, 300, 300, 300, 300];
        let cache = [10, 40, 70, 99, 100, 100, 100, 100];
        let onset = find(&times, &bi, &bo, &cache).unwrap();
        assert_eq!((onset.reads_sample, onset.cache_full_sample), (4, 3));
        assert_eq!(onset.reads_ns, 4_000_000_000);
        assert!((onset.bo_after_over_before.unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(find(&times, &[0; 8], &bo, &cache), None);
        // Nothing written before the reads is no drop.
        let quiet = find(&times, &bi, &[0, 0, 0, 0, 300, 300, 300, 300], &cache).unwrap();
        assert!(quiet.bo_after_over_before.unwrap() > 1.0);
    }
}
