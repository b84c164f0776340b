//! Times that other programs put before each line: `vmstat 1 | ts`, a system log, `date` in a loop.
//!
//! They are looked for only once the banner or header of vmstat has been seen after one, so that a row's own numbers are
//! never taken for a time.

use super::time::zone_offset_s;
use crate::num::{dec_i64, fraction_ns};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// A time before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nanoseconds since 1970 of the time as read, and seconds east of Greenwich where it says so.
    Instant(i64, Option<i64>),
    /// Month, day and nanoseconds since midnight (a system log leaves the year out).
    Date(i8, i8, i64),
    /// Nanoseconds since midnight.
    TimeOfDay(i64),
}

/// Split a line into the time before it and the rest; the words that a system log puts after the time are dropped.
pub(super) fn split(line: &[u8]) -> Option<(Before, &[u8])> {
    let line = line.trim_ascii_start();
    let (bracket, text) = match line.strip_prefix(b"[") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (before, mut rest) = time(text)?;
    if bracket {
        rest = rest.trim_ascii_start().strip_prefix(b"]")?;
    }
    rest = rest.strip_prefix(b":").unwrap_or(rest);
    // `host vmstat[123]:`, or the one of the two that there is.
    let mut words = rest;
    for _ in 0..2 {
        let (word, after) = word(words);
        if word.ends_with(b":") && word.len() > 1 {
            rest = after;
            break;
        }
        words = after;
    }
    (rest.is_empty() || rest[0].is_ascii_whitespace()).then_some((before, rest))
}

fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|b| b.is_ascii_whitespace() || *b == b']').unwrap_or(text.len());
    let end = if text.get(end) == Some(&b']') && text.get(end + 1) == Some(&b':') { end + 2 } else { end };
    text.split_at(end)
}

fn time(text: &[u8]) -> Option<(Before, &[u8])> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    let (first, rest) = word(text);
    let month = |w: &[u8]| MONTHS.iter().position(|m| *m == w).map(|m| m as i8 + 1);
    if let Some((ns, zone)) = time_of_day(first) {
        return (zone.is_none()).then_some((Before::TimeOfDay(ns), rest));
    }
    if first.get(4) == Some(&b'-') {
        let (date, joined) = first.split_at(first.len().min(10));
        let (clock, rest) = if joined.is_empty() { word(rest) } else { (joined.get(1..)?, rest) };
        let (ns, zone) = time_of_day(clock)?;
        let midnight = super::civil_ns(date, b"00:00:00")?;
        return Some((Before::Instant(midnight.checked_add(ns)?, zone), rest));
    }
    if let Some(month) = month(first) {
        let (day, rest) = word(rest);
        let (clock, rest) = word(rest);
        return Some((Before::Date(month, day_of(day)?, time_of_day(clock)?.0), rest));
    }
    if DAYS.contains(&first) {
        // As `date` prints it.
        let (month_word, rest) = word(rest);
        let (day, rest) = word(rest);
        let (clock, rest) = word(rest);
        let (zone, rest) = word(rest);
        let (year, rest) = word(rest);
        let date = format!("{:04}-{:02}-{:02}", dec_i64(year)?, month(month_word)?, day_of(day)?);
        let midnight = super::civil_ns(date.as_bytes(), b"00:00:00")?;
        let zone = std::str::from_utf8(zone).ok().and_then(zone_offset_s);
        return Some((Before::Instant(midnight.checked_add(time_of_day(clock)?.0)?, zone), rest));
    }
    // Seconds since 1970: ten digits from 2001 to 2286.
    let (secs, fraction) = first.split_at(first.iter().position(|b| *b == b'.').unwrap_or(first.len()));
    let secs = (secs.len() == 10).then(|| dec_i64(secs))??;
    let ns = fraction_ns(fraction.get(1..).unwrap_or_default())?;
    Some((Before::Instant(secs.checked_mul(SECOND_NS)?.checked_add(ns)?, Some(0)), rest))
}

fn day_of(word: &[u8]) -> Option<i8> {
    dec_i64(word).and_then(|d| i8::try_from(d).ok()).filter(|d| (1..=31).contains(d))
}

/// `HH:MM:SS`, with decimals and a zone where there are: nanoseconds since midnight, seconds east of Greenwich.
fn time_of_day(word: &[u8]) -> Option<(i64, Option<i64>)> {
    let word = word.strip_suffix(b":").unwrap_or(word);
    let number = |at: usize, below: i64| dec_i64(word.get(at..at + 2)?).filter(|v| *v < below);
    if word.get(2) != Some(&b':') || word.get(5) != Some(&b':') {
        return None;
    }
    let secs = number(0, 24)? * 3600 + number(3, 60)? * 60 + number(6, 61)?;
    let rest = &word[8..];
    let (fraction, zone) = match rest {
        [b'.' | b',', after @ ..] => after.split_at(after.iter().take_while(|b| b.is_ascii_digit()).count()),
        _ => (&rest[..0], rest),
    };
    let zone = match zone {
        b"" => None,
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), digits @ ..] => {
            let digits: Vec<u8> = digits.iter().copied().filter(|b| *b != b':').collect();
            let digits = std::str::from_utf8(&digits).ok()?;
            Some(zone_offset_s(&format!("{}{digits}", char::from(*sign)))?)
        }
        _ => return None,
    };
    Some((secs * SECOND_NS + fraction_ns(fraction)?, zone))
}

/// Makes one clock of such times.
#[derive(Default)]
pub(super) struct Clock {
    /// The kind, as the other parsers name it.
    pub(super) kind: Option<&'static str>,
    /// Some time had no zone.
    pub(super) zone_unknown: bool,
    day: i64,
    last: Option<(i64, i64)>,
    leap: bool,
}

impl Clock {
    /// Nanoseconds since 1970, or since the first midnight where the date is not known and `midnight_ns` does not tell it.
    pub(super) fn ns(&mut self, before: Before, utc_offset_s: Option<i64>, midnight_ns: Option<i64>) -> i64 {
        let (ordinal, ns) = match before {
            Before::Instant(ns, zone) => {
                self.kind = Some("epoch");
                self.zone_unknown |= zone.is_none() && utc_offset_s.is_none();
                let offset = zone.or(utc_offset_s).unwrap_or(0);
                return ns.saturating_sub(offset.saturating_mul(SECOND_NS));
            }
            Before::Date(month, day, ns) => {
                self.leap |= (month, day) == (2, 29);
                let year = if self.leap { 2000 } else { 2001 };
                let date = jiff::civil::Date::new(year, month, day).ok();
                (date.map(|d| i64::from(d.day_of_year())), ns)
            }
            Before::TimeOfDay(ns) => (None, ns),
        };
        self.kind = Some("time-of-day");
        if let Some((last_ordinal, last_ns)) = self.last {
            self.day += match ordinal {
                // At the end of a year the count of days begins anew.
                Some(now) if now + 180 < last_ordinal => now + 365 - last_ordinal,
                Some(now) => now - last_ordinal,
                None => i64::from(ns + DAY_NS / 2 < last_ns),
            };
        }
        self.last = Some((ordinal.unwrap_or(0), ns));
        midnight_ns.unwrap_or(0).saturating_add(self.day.saturating_mul(DAY_NS)).saturating_add(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_lines() {
        let ns = 1_796_035_855 * SECOND_NS; // 2026-11-30 10:50:55
        let tod = (10 * 3600 + 50 * 60 + 55) * SECOND_NS;
        let cases = [
            ("2026-11-30T10:50:55 r", Before::Instant(ns, None)),
            ("2026-11-30 10:50:55.25 r", Before::Instant(ns + SECOND_NS / 4, None)),
            ("[2026-11-30 10:50:55] r", Before::Instant(ns, None)),
            ("2026-11-30T10:50:55+01:00 host vmstat[1]: r", Before::Instant(ns, Some(3600))),
            ("2026-11-30T10:50:55,5Z: r", Before::Instant(ns + SECOND_NS / 2, Some(0))),
            ("Nov 30 10:50:55 r", Before::Date(11, 30, tod)),
            ("Nov 30 10:50:55 host vmstat[123]: r", Before::Date(11, 30, tod)),
            ("Nov  3 10:50:55 vmstat: r", Before::Date(11, 3, tod)),
            ("Mon Nov 30 10:50:55 CET 2026 r", Before::Instant(ns, Some(3600))),
            ("10:50:55 r", Before::TimeOfDay(tod)),
            ("[10:50:55] r", Before::TimeOfDay(tod)),
            ("1796035855.5 r", Before::Instant(ns + SECOND_NS / 2, Some(0))),
            ("1796035855 r", Before::Instant(ns, Some(0))),
        ];
        for (line, before) in cases {
            let got = split(line.as_bytes()).map(|(b, rest)| (b, rest.trim_ascii()));
            assert_eq!(got, Some((before, &b"r"[..])), "{line}");
        }
        for line in ["", "r b", "25:00:00 r", "2026-11-31T10:00:00 r", "12 r", "[10:50:55 r", "Nov 10:50:55 r"] {
            assert_eq!(split(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn days_go_on_where_the_year_or_the_date_is_missing() {
        let mut clock = Clock::default();
        let times = [(12, 31, 5), (1, 1, 3), (1, 3, 0)].map(|(m, d, ns)| clock.ns(Before::Date(m, d, ns), None, None));
        assert_eq!(times, [5, DAY_NS + 3, 3 * DAY_NS]);
        let mut clock = Clock::default();
        let late = DAY_NS - 1;
        let times = [late, 5, 4].map(|ns| clock.ns(Before::TimeOfDay(ns), None, Some(DAY_NS)));
        assert_eq!(times, [DAY_NS + late, 2 * DAY_NS + 5, 2 * DAY_NS + 4]);
    }
}
