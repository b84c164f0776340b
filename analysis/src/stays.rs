//! Stays of pages in memory, from the calls that used them and the rows of `evictions`.
//!
//! A stay ends when reclaim throws the page out; the next use begins another. A call uses its pages evenly over its duration,
//! one after the other. A call that goes on where the same task's last call on the file ended does not use the page there a second
//! time: a file read by pieces of 512 bytes uses each page once. Stays that a file's end or an advice ended are not told apart from
//! the next ones.

use crate::mrc::spread;
use crate::tables::{Calls, Evictions, NONE};
use rustc_hash::FxHashMap;

const PAGE: i64 = 4096;
/// Uses and evictions that are followed; of more a sample by page.
const FOLLOWED: u64 = 4_000_000;

/// How the stays of a run ended, pages; of a sample of the pages where there are very many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stays {
    /// Thrown out.
    pub evicted: u64,
    /// Thrown out after one use at most.
    pub once: u64,
    /// Of these, used again later: the wrong ones.
    pub once_wanted: u64,
    /// Thrown out and used again later, however often used before.
    pub wanted: u64,
    /// With two uses or more, whether they were thrown out or not.
    pub hot: u64,
    /// Of these, thrown out and used again later.
    pub hot_lost: u64,
}

fn pct(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64 * 100.0)
}

impl Stays {
    /// Of the pages thrown out, those that nothing used again, %.
    pub(crate) fn well_evicted_pct(&self) -> Option<f64> {
        pct(self.evicted - self.wanted, self.evicted)
    }

    /// Of the pages thrown out, those with one use at most, %.
    pub(crate) fn once_pct(&self) -> Option<f64> {
        pct(self.once, self.evicted)
    }

    /// Of the pages thrown out after one use at most, those that nothing used again, %.
    pub(crate) fn use_once_pct(&self) -> Option<f64> {
        pct(self.once - self.once_wanted, self.once)
    }

    /// Of the stays with two uses or more, those that were not ended before the page's last use, %.
    pub(crate) fn survival_pct(&self) -> Option<f64> {
        pct(self.hot - self.hot_lost, self.hot)
    }
}

/// What happens to a page. At one moment uses come first: a page that is used cannot have gone at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Use,
    Evict,
}

/// Follows the pages of the calls in `order` (by start) and of `evictions`.
pub(crate) fn stays(calls: &Calls, order: &[usize], evictions: &Evictions) -> Stays {
    let total = order.iter().map(|i| (calls.len[*i] / PAGE) as u64 + 1).sum::<u64>()
        + evictions.pages.iter().map(|p| (*p).max(0) as u64).sum::<u64>();
    let limit = if total > FOLLOWED { (u64::MAX as f64 * FOLLOWED as f64 / total as f64) as u64 } else { u64::MAX };
    let followed = |page: u64| limit == u64::MAX || spread(page) < limit;
    let mut events: Vec<(u64, i64, Event)> = Vec::new();
    let mut ended: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for &i in order {
        let (from, len) = (calls.offset[i].max(0), calls.len[i]);
        let end = from.saturating_add(len);
        let goes_on = ended.insert((calls.task[i], calls.file[i]), end) == Some(from) && from % PAGE > 0;
        let (first, last) = (from / PAGE, (end - 1) / PAGE);
        let count = last - first + 1;
        for page in first + i64::from(goes_on)..=last {
            let id = key(calls.file[i], page);
            if followed(id) {
                let part = i128::from(calls.dur_ns[i]) * i128::from(page - first + 1) / i128::from(count);
                events.push((id, calls.start_ns[i].saturating_add(part as i64), Event::Use));
            }
        }
    }
    let known: FxHashMap<&str, u32> = (0u32..).zip(&calls.files).map(|(i, f)| (f.as_str(), i)).collect();
    for i in 0..evictions.time_ns.len() {
        let path = &evictions.files[evictions.file[i] as usize];
        let file = known.get(path.as_str()).copied().unwrap_or(NO_CALL + evictions.file[i]);
        for page in evictions.page[i]..evictions.page[i].saturating_add(evictions.pages[i]) {
            let id = key(file, page);
            if followed(id) {
                events.push((id, evictions.time_ns[i], Event::Evict));
            }
        }
    }
    events.sort_unstable();
    events.chunk_by(|a, b| a.0 == b.0).fold(Stays::default(), |mut all, page| {
        follow(page, &mut all);
        all
    })
}

/// Numbers of files that no call names.
const NO_CALL: u32 = 1 << 22;

/// A page: its file in the upper bits.
fn key(file: u32, page: i64) -> u64 {
    u64::from(file) << 40 | (page as u64 & ((1 << 40) - 1))
}

/// The events of one page, by time.
fn follow(events: &[(u64, i64, Event)], all: &mut Stays) {
    let last_use = events.iter().rposition(|e| e.2 == Event::Use);
    let mut uses = 0u32;
    let mut gone = true;
    for (at, event) in events.iter().enumerate() {
        match event.2 {
            Event::Use => {
                gone = false;
                uses += 1;
            }
            Event::Evict => {
                let wanted = last_use.is_some_and(|last| last > at);
                all.evicted += 1;
                all.wanted += u64::from(wanted);
                if uses <= 1 {
                    all.once += 1;
                    all.once_wanted += u64::from(wanted);
                } else {
                    all.hot += 1;
                    all.hot_lost += u64::from(wanted);
                }
                uses = 0;
                gone = true;
            }
        }
    }
    all.hot += u64::from(!gone && uses > 1);
}

/// A call has a place that can be followed.
pub(crate) fn has_place(calls: &Calls, i: usize) -> bool {
    calls.len[i] > 0 && calls.offset[i] != NONE && !calls.file_of(i).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(events: &[(i64, Event)]) -> Stays {
        let events: Vec<_> = events.iter().map(|(t, e)| (7, *t, *e)).collect();
        let mut all = Stays::default();
        follow(&events, &mut all);
        all
    }

    #[test]
    fn a_stay_is_judged_by_its_uses_and_by_what_comes_after() {
        use Event::{Evict, Use};
        let s = page(&[(1, Use), (2, Evict), (3, Use), (4, Use), (5, Evict), (6, Use), (7, Use), (9, Evict)]);
        // Used once and wanted back; twice and wanted back; twice and no more.
        assert_eq!((s.evicted, s.once, s.once_wanted, s.wanted, s.hot, s.hot_lost), (3, 1, 1, 2, 2, 1));
        assert_eq!((s.use_once_pct(), s.survival_pct()), (Some(0.0), Some(50.0)));
        let kept = page(&[(1, Use), (2, Use)]);
        assert_eq!((kept.evicted, kept.hot, kept.survival_pct(), kept.well_evicted_pct()), (0, 1, Some(100.0), None));
        // Read ahead for nothing.
        assert_eq!(page(&[(1, Evict)]).use_once_pct(), Some(100.0));
    }

    #[test]
    fn a_file_read_in_small_pieces_uses_each_page_once() {
        let piece = |k: i64| (k * 512, 512, k * 10);
        let n = 32;
        let calls = Calls {
            task: vec![0; n],
            file: vec![0; n],
            files: vec!["/f".to_string()],
            offset: (0..n as i64).map(|k| piece(k).0).collect(),
            len: vec![512; n],
            start_ns: (0..n as i64).map(|k| piece(k).2).collect(),
            dur_ns: vec![1; n],
            ..Calls::default()
        };
        let order: Vec<usize> = (0..n).collect();
        let out = Evictions {
            time_ns: vec![1_000],
            file: vec![0],
            files: vec!["/f".to_string()],
            page: vec![0],
            pages: vec![4],
        };
        let s = stays(&calls, &order, &out);
        assert_eq!((s.evicted, s.once, s.wanted, s.hot), (4, 4, 0, 0));
    }
}
