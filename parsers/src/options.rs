//! Parser options as people write them.

use crate::num::{dec_i64, secs_ns};

/// A span of time in nanoseconds: plain seconds (`5`, `0.5`), or with a unit (`100ms`, `2m`, `1h`). At least 1 ns.
///
/// # Errors
/// A sentence with what was expected.
pub fn seconds_ns(text: &str) -> Result<i64, String> {
    let (number, factor) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        number if number.len() == text.len() => (number, 1_000_000_000),
        number => {
            let factor = match &text[number.len()..] {
                "ns" => 1,
                "us" => 1000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" | "min" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                unit => return Err(format!("{unit:?} is no unit of time (ns, us, ms, s, m, h)")),
            };
            (number, factor)
        }
    };
    let parts = secs_ns(number.trim().as_bytes()).ok_or("expected a number of seconds, such as 5 or 0.5")?;
    let ns = i128::from(parts) * factor / 1_000_000_000;
    i64::try_from(ns).ok().filter(|n| *n > 0).ok_or_else(|| "the time is out of range".to_owned())
}

/// Bytes in a unit of vmstat's memory columns: `k`, `K`, `m`, `M` as its `-S` has them, or a number of bytes.
///
/// # Errors
/// A sentence with what was expected.
pub fn memory_unit_bytes(text: &str) -> Result<i64, String> {
    match text {
        "k" => Ok(1000),
        "K" => Ok(1024),
        "m" => Ok(1_000_000),
        "M" => Ok(1 << 20),
        "b" | "B" | "bytes" => Ok(1),
        _ => dec_i64(text.as_bytes())
            .filter(|n| (1..=1 << 30).contains(n))
            .ok_or_else(|| "expected k (1000), K (1024), m, M (1048576), or a number of bytes up to 1 GiB".to_owned()),
    }
}

/// Seconds east of Greenwich: `+02:00`, `-0330`, `+2`, `UTC`. Between -14 and +14 hours.
///
/// # Errors
/// A sentence with what was expected.
pub fn utc_offset_s(text: &str) -> Result<i64, String> {
    let expected = || format!("expected an offset such as +02:00 or -0330, not {text:?}");
    if matches!(text, "UTC" | "GMT" | "Z" | "utc" | "z") {
        return Ok(0);
    }
    let (sign, digits) = match text.as_bytes() {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        rest => (1, rest),
    };
    let (hours, minutes): (&[u8], &[u8]) = match digits {
        [hours @ .., b':', _, _] => (hours, &digits[digits.len() - 2..]),
        [_, _, _, _] => digits.split_at(2),
        hours => (hours, b"0"),
    };
    let hours = dec_i64(hours).filter(|h| *h <= 14 && hours.len() <= 2).ok_or_else(expected)?;
    let minutes = dec_i64(minutes).filter(|m| *m < 60).ok_or_else(expected)?;
    Ok(sign * (hours * 3600 + minutes * 60))
}

/// Midnight of a day, `YYYY-MM-DD`, in nanoseconds since 1970, read as UTC.
///
/// # Errors
/// A sentence with what was expected.
pub fn date_ns(text: &str) -> Result<i64, String> {
    let date: jiff::civil::Date = text.parse().map_err(|_| format!("expected a day as YYYY-MM-DD, not {text:?}"))?;
    civil_ns(date.to_datetime(jiff::civil::Time::midnight()))
}

/// A time, `YYYY-MM-DDTHH:MM:SS` (a blank for the T is fine, a fraction too), in nanoseconds since 1970, read as UTC.
///
/// # Errors
/// A sentence with what was expected.
pub fn instant_ns(text: &str) -> Result<i64, String> {
    let time: jiff::civil::DateTime =
        text.parse().map_err(|_| format!("expected a time as YYYY-MM-DDTHH:MM:SS, not {text:?}"))?;
    civil_ns(time)
}

fn civil_ns(time: jiff::civil::DateTime) -> Result<i64, String> {
    let stamp = jiff::tz::Offset::UTC.to_timestamp(time).map_err(|e| e.to_string())?;
    i64::try_from(stamp.as_nanosecond()).map_err(|_| "the time is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (text, ns) in [
            ("5", 5_000_000_000),
            ("0.5", 500_000_000),
            ("100ms", 100_000_000),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("7ns", 7),
        ] {
            assert_eq!(seconds_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "x", "5 parsecs", "-1", "0", "99999999999h"] {
            assert!(seconds_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn units_and_zones() {
        assert_eq!((memory_unit_bytes("K"), memory_unit_bytes("M")), (Ok(1024), Ok(1 << 20)));
        assert_eq!(memory_unit_bytes("4096"), Ok(4096));
        assert!(memory_unit_bytes("q").is_err() && memory_unit_bytes("0").is_err());
        for (text, seconds) in
            [("+02:00", 7200), ("-0330", -12_600), ("+2", 7200), ("UTC", 0), ("5:30", 19_800), ("-11", -39_600)]
        {
            assert_eq!(utc_offset_s(text), Ok(seconds), "{text}");
        }
        for text in ["", "+15", "x", "+02:60", "+1234567"] {
            assert!(utc_offset_s(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days_and_times() {
        assert_eq!(date_ns("2023-11-14"), Ok(1_699_920_000_000_000_000));
        assert_eq!(instant_ns("2023-11-14T22:13:20"), Ok(1_700_000_000_000_000_000));
        assert_eq!(instant_ns("2023-11-14 22:13:20.5"), Ok(1_700_000_000_500_000_000));
        assert!(date_ns("14.11.2023").is_err() && instant_ns("yesterday").is_err() && date_ns("9999-12-31").is_err());
    }
}
