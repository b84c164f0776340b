//! Wall-clock times in vmstat logs: `-t` stamps, and the zone words that stand over them.

use crate::num::dec_i64;

/// Nanoseconds since 1970 of `YYYY-MM-DD` and `HH:MM:SS`, read as UTC.
pub(crate) fn civil_ns(date: &[u8], time: &[u8]) -> Option<i64> {
    let date = jiff::civil::Date::new(
        dec_i64(date.get(..4)?)?.try_into().ok()?,
        (date.get(4) == Some(&b'-')).then(|| dec_i64(&date[5..7.min(date.len())]))??.try_into().ok()?,
        (date.len() == 10 && date[7] == b'-').then(|| dec_i64(&date[8..]))??.try_into().ok()?,
    )
    .ok()?;
    let time = jiff::civil::Time::new(
        (time.len() == 8 && time[2] == b':' && time[5] == b':').then(|| dec_i64(&time[..2]))??.try_into().ok()?,
        dec_i64(&time[3..5])?.try_into().ok()?,
        dec_i64(&time[6..])?.try_into().ok()?,
        0,
    )
    .ok()?;
    let seconds = jiff::tz::Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?.as_second();
    seconds.checked_mul(1_000_000_000)
}

/// Seconds east of Greenwich of a zone word; `None` for names that mean several zones (IST, CST, BST) or none.
pub(crate) fn zone_offset_s(zone: &str) -> Option<i64> {
    const HOUR: i64 = 3600;
    Some(match zone {
        "UTC" | "GMT" | "WET" => 0,
        "CET" | "WEST" => HOUR,
        "CEST" | "EET" | "SAST" => 2 * HOUR,
        "EEST" | "MSK" => 3 * HOUR,
        "JST" | "KST" => 9 * HOUR,
        "EST" => -5 * HOUR,
        "EDT" => -4 * HOUR,
        "CDT" => -5 * HOUR,
        "MST" => -7 * HOUR,
        "MDT" => -6 * HOUR,
        "PST" => -8 * HOUR,
        "PDT" => -7 * HOUR,
        _ => return numeric_offset_s(zone),
    })
}

/// `+03`, `-0330`.
fn numeric_offset_s(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    match digits.len() {
        2 => Some(sign * dec_i64(digits)? * 3600),
        4 => Some(sign * (dec_i64(&digits[..2])? * 3600 + dec_i64(&digits[2..])? * 60)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_zones() {
        assert_eq!(civil_ns(b"2026-11-30", b"10:50:55"), Some(1_796_035_855_000_000_000));
        assert_eq!(civil_ns(b"1970-01-01", b"00:00:01"), Some(1_000_000_000));
        for (date, time) in
            [("2026-13-01", "00:00:00"), ("2026-1-01", "00:00:00"), ("2026-01-01", "24:00:00"), ("", "")]
        {
            assert_eq!(civil_ns(date.as_bytes(), time.as_bytes()), None, "{date} {time}");
        }
        assert_eq!(zone_offset_s("CEST"), Some(7200));
        assert_eq!(zone_offset_s("-0330"), Some(-12_600));
        assert_eq!(zone_offset_s("+03"), Some(10_800));
        assert_eq!(zone_offset_s("IST"), None);
    }
}
