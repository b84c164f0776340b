//! Laying the clocks of several sources onto one time line.
//!
//! A source keeps its own time stamps on disk; its `zero_ns` says which of them is time 0 of the trace, and readers
//! subtract it. Where the caller gave `zero_ns` (a recording knows its clocks at the start), that holds, also for
//! every other source with the same shared clock. Else sources that share a clock share the zero that makes their
//! first event 0; different clocks are laid together by their first events, and that is marked as assumed.

use super::manifest::{ClockInfo, ClockKind, SourceInfo};

/// Settle each source's `zero_ns` and say when the trace starts.
pub(super) fn align(sources: &mut [SourceInfo], warnings: &mut Vec<String>) -> ClockInfo {
    // Laid together are the clocks as they would be without being behind.
    shift(sources, 1);
    let clock = align_shifted(sources, warnings);
    shift(sources, -1);
    clock
}

fn shift(sources: &mut [SourceInfo], sign: i64) {
    for s in sources.iter_mut().filter(|s| s.behind_ns != 0) {
        let by = s.behind_ns.saturating_mul(sign);
        s.span_ns = s.span_ns.map(|(first, last)| (first.saturating_add(by), last.saturating_add(by)));
        s.zero_ns = s.zero_ns.saturating_add(by);
    }
}

/// Names of sources that a warning lists one by one.
const LISTED: usize = 5;

fn align_shifted(sources: &mut [SourceInfo], warnings: &mut Vec<String>) -> ClockInfo {
    spread_known_zeros(sources);
    assume_the_rest(sources);
    start_at_first_event(sources);
    let timed: Vec<&SourceInfo> = sources.iter().filter(|s| s.span_ns.is_some()).collect();
    // With a single clock there is nothing to lay together: that its first event is 0 is a choice, not an assumption.
    let assumed = timed.iter().any(|s| s.zero_assumed) && timed.iter().any(|s| !shares_clock(s, timed[0]));
    if assumed {
        let of_one_kind = timed.iter().all(|s| s.clock == timed[0].clock);
        let clocks = if of_one_kind {
            "clocks that each count from a beginning of their own"
        } else {
            "clocks of different kinds"
        };
        let laid: Vec<&&SourceInfo> = timed.iter().filter(|s| s.zero_assumed).collect();
        let names: Vec<String> =
            laid.iter().take(LISTED).map(|s| format!("{} ({:?} clock)", s.path, s.clock)).collect();
        let more = laid.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        warnings.push(format!(
            "{clocks} were laid together by their first events, which was assumed for {}{more}",
            names.join(", ")
        ));
    }
    let zero_of = |kind| timed.iter().find(|s| s.clock == kind).map(|s| s.zero_ns);
    ClockInfo {
        start_realtime_ns: zero_of(ClockKind::Realtime),
        start_monotonic_ns: zero_of(ClockKind::Monotonic),
        assumed,
        duration_ns: timed.iter().filter_map(|s| Some(s.span_ns?.1.saturating_sub(s.zero_ns))).max().unwrap_or(0),
    }
}

fn shares_clock(a: &SourceInfo, b: &SourceInfo) -> bool {
    std::ptr::eq(a, b) || (a.clock == b.clock && a.clock != ClockKind::Relative)
}

fn spread_known_zeros(sources: &mut [SourceInfo]) {
    for kind in [ClockKind::Realtime, ClockKind::Monotonic, ClockKind::Trace] {
        let known = sources.iter().find(|s| s.clock == kind && !s.zero_assumed).map(|s| s.zero_ns);
        let known = known.or((kind == ClockKind::Trace).then_some(0));
        if let Some(zero_ns) = known {
            for s in sources.iter_mut().filter(|s| s.clock == kind && s.zero_assumed) {
                (s.zero_ns, s.zero_assumed) = (zero_ns, false);
            }
        }
    }
}

fn assume_the_rest(sources: &mut [SourceInfo]) {
    for kind in [ClockKind::Realtime, ClockKind::Monotonic, ClockKind::TimeOfDay] {
        let of_kind = |s: &&mut SourceInfo| s.clock == kind && s.zero_assumed;
        let first = sources.iter().filter(|s| s.clock == kind && s.zero_assumed).filter_map(|s| s.span_ns).map(|s| s.0);
        if let Some(first) = first.min() {
            sources.iter_mut().filter(of_kind).for_each(|s| s.zero_ns = first);
        }
    }
    for s in sources.iter_mut().filter(|s| s.clock == ClockKind::Relative && s.zero_assumed) {
        s.zero_ns = s.span_ns.map_or(0, |s| s.0);
    }
}

/// No event may lie before time 0: known zeros move back as far as the earliest event asks for, all alike.
fn start_at_first_event(sources: &mut [SourceInfo]) {
    let earliest = sources.iter().filter_map(|s| Some(s.span_ns?.0.saturating_sub(s.zero_ns))).min();
    if let Some(early) = earliest.filter(|t| *t < 0) {
        sources.iter_mut().for_each(|s| s.zero_ns = s.zero_ns.saturating_add(early));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, clock: ClockKind, span: (i64, i64), zero: Option<i64>) -> SourceInfo {
        SourceInfo {
            path: path.into(),
            blake3: None,
            bytes: None,
            text_bytes: None,
            format: "x".into(),
            options: Default::default(),
            lines: 0,
            events: Default::default(),
            rejects: Default::default(),
            non_events: Default::default(),
            clock,
            zero_ns: zero.unwrap_or(0),
            zero_assumed: zero.is_none(),
            span_ns: Some(span),
            births: Vec::new(),
            behind_ns: 0,
            notes: Vec::new(),
        }
    }

    #[test]
    fn one_clock_needs_no_assumption() {
        let mut s =
            [source("a", ClockKind::Realtime, (1000, 2000), None), source("b", ClockKind::Realtime, (900, 1500), None)];
        let mut warnings = Vec::new();
        let clock = align(&mut s, &mut warnings);
        assert_eq!((s[0].zero_ns, s[1].zero_ns), (900, 900));
        assert_eq!((clock.assumed, clock.start_realtime_ns, clock.duration_ns), (false, Some(900), 1100));
        assert!(warnings.is_empty());
    }

    #[test]
    fn different_clocks_are_laid_together_by_their_first_events() {
        let mut s = [
            source("a", ClockKind::Realtime, (1000, 2000), None),
            source("b", ClockKind::Monotonic, (7, 50), None),
            source("c", ClockKind::Relative, (3, 9), None),
        ];
        let mut warnings = Vec::new();
        let clock = align(&mut s, &mut warnings);
        assert_eq!((s[0].zero_ns, s[1].zero_ns, s[2].zero_ns), (1000, 7, 3));
        assert!(clock.assumed);
        assert!(warnings[0].contains("a (Realtime clock), b (Monotonic clock)"), "{warnings:?}");
    }

    #[test]
    fn clocks_that_show_the_time_of_day_are_one_clock() {
        let mut s = [
            source("log.7", ClockKind::TimeOfDay, (1000, 2000), None),
            source("log.8", ClockKind::TimeOfDay, (1500, 1600), None),
        ];
        let clock = align(&mut s, &mut Vec::new());
        assert_eq!((s[0].zero_ns, s[1].zero_ns, clock.assumed), (1000, 1000, false));
    }

    #[test]
    fn many_clocks_of_one_kind_are_told_in_short() {
        let mut s: Vec<_> = (0..51).map(|i| source(&format!("log.{i}"), ClockKind::Relative, (0, 9), None)).collect();
        let mut warnings = Vec::new();
        align(&mut s, &mut warnings);
        assert!(
            !warnings[0].contains("different kinds") && warnings[0].ends_with("log.4 (Relative clock) and 46 more"),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_clock_that_is_behind_is_laid_where_it_belongs() {
        let day = 86_400_000_000_000;
        let mut s = [
            source("log.7", ClockKind::TimeOfDay, (day - 5, day + 9), None),
            source("log.8", ClockKind::TimeOfDay, (3, 7), None),
        ];
        s[1].behind_ns = day;
        let clock = align(&mut s, &mut Vec::new());
        assert_eq!((s[0].zero_ns, s[1].zero_ns, s[1].span_ns), (day - 5, -5, Some((3, 7))));
        assert_eq!((clock.assumed, clock.duration_ns), (false, 14));
    }

    #[test]
    fn known_zeros_hold_and_spread_to_sources_with_the_same_clock() {
        let mut s = [
            source("a", ClockKind::Realtime, (1000, 2000), Some(990)),
            source("b", ClockKind::Monotonic, (60, 70), Some(50)),
            source("c", ClockKind::Realtime, (995, 1500), None),
        ];
        let clock = align(&mut s, &mut Vec::new());
        assert_eq!((s[0].zero_ns, s[1].zero_ns, s[2].zero_ns), (990, 50, 990));
        assert!(!clock.assumed);
        assert_eq!(clock.start_monotonic_ns, Some(50));
    }

    #[test]
    fn an_event_before_the_known_zero_moves_all_zeros() {
        let mut s = [
            source("a", ClockKind::Realtime, (1000, 2000), Some(1000)),
            source("b", ClockKind::Monotonic, (40, 70), Some(50)),
        ];
        align(&mut s, &mut Vec::new());
        assert_eq!((s[0].zero_ns, s[1].zero_ns), (990, 40));
    }
}
