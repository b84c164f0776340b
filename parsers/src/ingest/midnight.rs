//! The days of logs of single threads whose clocks show the time of day (`strace -ff -tt`).
//!
//! Each file passes midnight on its own; a thread that begins after it has nothing in its file that says so. Its day is
//! that of the call that made it, where that is in another file of the set, else that of the file before it in the order
//! of the thread ids. As within a file, half a day back can only be midnight.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kreplay_traces::store::{ClockKind, SourceInfo, TraceWriter};

const DAY_NS: i64 = 86_400_000_000_000;

/// A file of a set: its thread, its index among the sources, its first event.
struct File {
    tid: i64,
    source: usize,
    first_ns: i64,
}

/// Give the sources that begin after the midnight of their set the day that they are behind.
pub(super) fn settle_days(writer: &mut TraceWriter) {
    let mut behind = Vec::new();
    for files in sets(writer.sources()) {
        let days = days(&files, writer.sources());
        behind.extend(files.iter().zip(days).filter(|(_, days)| *days > 0).map(|(f, days)| (f.source, days)));
    }
    let Some((first, _)) = behind.first() else { return };
    writer.warn(format!(
        "{} logs of single threads begin after midnight of the day on which the others begin, {} first: days were added; \
         record with -ttt",
        behind.len(),
        writer.sources()[*first].path
    ));
    for (source, days) in behind {
        writer.set_behind(source, days * DAY_NS);
    }
}

/// The sets of files that strace wrote for one thread each, in the order of the thread ids.
fn sets(sources: &[SourceInfo]) -> Vec<Vec<File>> {
    let mut sets: BTreeMap<(PathBuf, ClockKind), Vec<File>> = BTreeMap::new();
    for (source, s) in sources.iter().enumerate() {
        let of_day =
            s.clock == ClockKind::TimeOfDay || s.clock == ClockKind::Realtime && s.options.contains_key("midnight_ns");
        let tid = s.options.get("tid").and_then(|tid| tid.parse().ok());
        if let (true, "strace", Some(tid), Some((first_ns, _))) = (of_day, s.format.as_str(), tid, s.span_ns) {
            let set = Path::new(&s.path).with_extension("");
            sets.entry((set, s.clock)).or_default().push(File { tid, source, first_ns });
        }
    }
    let mut sets: Vec<Vec<File>> = sets.into_values().collect();
    sets.iter_mut().for_each(|files| files.sort_by_key(|f| f.tid));
    sets
}

/// The days to be added to each file.
fn days(files: &[File], sources: &[SourceInfo]) -> Vec<i64> {
    let place: BTreeMap<i64, usize> = files.iter().enumerate().map(|(i, f)| (f.tid, i)).collect();
    // Of each file the one that has its birth, and when.
    let mut born: Vec<Option<(usize, i64)>> = vec![None; files.len()];
    for (parent, f) in files.iter().enumerate() {
        for (child, time_ns) in &sources[f.source].births {
            if let Some(child) = place.get(child).filter(|child| **child != parent) {
                born[*child].get_or_insert((parent, *time_ns));
            }
        }
    }
    let mut days: Vec<Option<i64>> = vec![None; files.len()];
    for i in 0..files.len() {
        // Up to a file whose day is known, or that nobody made; a circle of reused ids ends where it began.
        let mut line = Vec::new();
        let mut at = i;
        while days[at].is_none() && !line.contains(&at) {
            line.push(at);
            match born[at] {
                Some((parent, _)) => at = parent,
                None => break,
            }
        }
        for at in line.into_iter().rev() {
            let known = born[at].and_then(|(parent, time_ns)| Some(days[parent]? * DAY_NS + time_ns));
            let before = || at.checked_sub(1).and_then(|b| Some(days[b]? * DAY_NS + files[b].first_ns));
            let since_ns = known.or_else(before);
            days[at] = Some(since_ns.map_or(0, |since| days_since(since, files[at].first_ns)));
        }
    }
    days.into_iter().map(|d| d.unwrap_or(0)).collect()
}

/// Days to be added to `first_ns` so that it is no more than half a day before `since_ns`.
fn days_since(since_ns: i64, first_ns: i64) -> i64 {
    let short = since_ns.saturating_sub(DAY_NS / 2).saturating_sub(first_ns);
    if short <= 0 { 0 } else { (short - 1) / DAY_NS + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = DAY_NS / 24;

    #[test]
    fn days_are_added_over_half_a_day_back() {
        for (since_h, first_h, days) in
            [(10, 10, 0), (23, 1, 1), (10, 9, 0), (23, 12, 0), (47, 1, 2), (25, 2, 1), (1, 23, 0)]
        {
            assert_eq!(days_since(since_h * HOUR_NS, first_h * HOUR_NS), days, "{since_h} {first_h}");
        }
    }
}
