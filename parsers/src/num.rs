//! Numbers and fields in bytes: small, allocation-free, and strict.

/// Decimal digits only; `None` for anything else or beyond `u64`.
#[inline]
pub fn dec_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    if text.len() <= 19 {
        for &b in text {
            let digit = b.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Decimal digits that fit `i64`.
#[inline]
pub fn dec_i64(text: &[u8]) -> Option<i64> {
    dec_u64(text).and_then(|v| i64::try_from(v).ok())
}

/// The decimal digits from `at` on, and the index after them; `None` where there is none, or more than 18.
#[inline]
pub fn dec_at(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut value = 0u64;
    let mut end = at;
    while let Some(digit) = text.get(end).map(|b| b.wrapping_sub(b'0')).filter(|d| *d <= 9) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    // Up to 18 digits nothing can wrap.
    (end > at && end - at <= 18).then_some((value as i64, end))
}

/// The number of nine decimal digits from `at` on.
#[inline]
pub fn nine_digits(text: &[u8], at: usize) -> Option<i64> {
    let digits: &[u8; 9] = text.get(at..at + 9)?.first_chunk()?;
    let (eight, last) = (u64::from_le_bytes(*digits.first_chunk()?), digits[8].wrapping_sub(b'0'));
    // All bytes at once (a well-known trick): each must lie between '0' and '9', neighbours are joined to pairs, fours, eight.
    let values = eight.wrapping_sub(0x3030_3030_3030_3030);
    let above = values.wrapping_add(0x7676_7676_7676_7676);
    if (values | above) & 0x8080_8080_8080_8080 != 0 || last > 9 {
        return None;
    }
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff;
    Some(eight as i64 * 10 + i64::from(last))
}

/// Seconds with a fraction of 1 to 9 digits from `at` on as nanoseconds, and the index after them; `None` for anything
/// else, or beyond `i64`.
#[inline]
pub fn secs_ns_at(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let (secs, dot) = dec_at(text, at)?;
    if text.get(dot) != Some(&b'.') {
        return None;
    }
    let (fraction, end) = dec_at(text, dot + 1)?;
    let scale = SCALE_NS.get(end - dot - 1)?;
    Some((secs.checked_mul(1_000_000_000)?.checked_add(fraction * scale)?, end))
}

/// Nanoseconds of a unit in the n-th decimal.
const SCALE_NS: [i64; 10] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Decimal digits with an optional minus that fit `i64`.
#[inline]
pub fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        None => dec_i64(text),
        Some(rest) => match dec_u64(rest)? {
            v if v <= i64::MAX as u64 => Some(-(v as i64)),
            v if v == 1 << 63 => Some(i64::MIN),
            _ => None,
        },
    }
}

/// Hexadecimal digits (without `0x`).
#[inline]
pub fn hex_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    let mut value = 0u64;
    for &b in text {
        value = value << 4 | u64::from((b as char).to_digit(16)?);
    }
    Some(value)
}

/// A C integer as tools print it: decimal with optional minus, or `0x` hexadecimal. Unsigned 64-bit values wrap to the
/// same bits (an address or `~0`).
#[inline]
pub fn c_int(text: &[u8]) -> Option<i64> {
    match text {
        [b'0', b'x', hex @ ..] => hex_u64(hex).map(|v| v as i64),
        [b'-', ..] => signed(text),
        _ => dec_u64(text).map(|v| v as i64),
    }
}

/// `seconds.fraction` (1 to 9 decimals, or none at all) in nanoseconds; `None` beyond `i64`.
#[inline]
pub fn secs_ns(text: &[u8]) -> Option<i64> {
    // A few bytes: a loop is faster than a call.
    let (secs, fraction) = match text.iter().position(|b| *b == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &text[text.len()..]),
    };
    let secs = dec_i64(secs)?.checked_mul(1_000_000_000)?;
    secs.checked_add(fraction_ns(fraction)?)
}

/// As [`secs_ns`] where the locale writes a decimal comma: exactly one comma, no point, and decimals after it.
#[inline]
pub fn secs_ns_with_comma(text: &[u8]) -> Option<i64> {
    let comma = memchr::memchr(b',', text)?;
    let (secs, fraction) = (&text[..comma], &text[comma + 1..]);
    if fraction.is_empty() {
        return None;
    }
    dec_i64(secs)?.checked_mul(1_000_000_000)?.checked_add(fraction_ns(fraction)?)
}

/// Decimals after a point (at most 9) in units of 10^-9; empty is 0.
#[inline]
pub fn fraction_ns(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    Some(dec_i64(text)? * SCALE_NS.get(text.len())?)
}

/// Words of a line, split at spaces and tabs.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// From the beginning of `text`.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Byte index where the next word begins (or the text's length).
    #[inline]
    pub fn position(&mut self) -> usize {
        while self.at < self.text.len() && matches!(self.text[self.at], b' ' | b'\t') {
            self.at += 1;
        }
        self.at
    }

    /// The next word as decimal digits; `None` for any other word, or none. The word is taken either way.
    #[inline]
    pub fn next_dec(&mut self) -> Option<i64> {
        let start = self.position();
        match dec_at(self.text, start) {
            Some((value, end)) if self.text.get(end).is_none_or(|b| matches!(b, b' ' | b'\t')) => {
                self.at = end;
                Some(value)
            }
            _ => self.next().and_then(dec_i64),
        }
    }

    /// Everything from the next word on.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        let at = self.position();
        &self.text[at..]
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.position();
        while self.at < self.text.len() && !matches!(self.text[self.at], b' ' | b'\t') {
            self.at += 1;
        }
        (self.at > start).then(|| &self.text[start..self.at])
    }
}

/// A line without the quote marks that mailers put before it (`> `, `>> `, `| `).
#[inline]
pub fn unquote(line: &[u8]) -> &[u8] {
    let mut rest = line;
    while let [b'>' | b'|', after @ ..] = rest.trim_ascii_start() {
        rest = after;
    }
    rest
}

/// Bytes as text: borrowed where they are UTF-8, else with the bad bytes written `\xNN`.
pub fn push_text(into: &mut String, bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return into.push_str(text);
    }
    for chunk in bytes.utf8_chunks() {
        into.push_str(chunk.valid());
        for b in chunk.invalid() {
            into.extend(std::ascii::escape_default(*b).map(char::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(dec_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(dec_u64(b"18446744073709551616"), None);
        assert_eq!(dec_u64(b""), None);
        assert_eq!(dec_u64(b"1a"), None);
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"--1"), None);
        assert_eq!(c_int(b"0xffffffffffffffff"), Some(-1));
        assert_eq!(c_int(b"-42"), Some(-42));
        assert_eq!(c_int(b"0x"), None);
    }

    #[test]
    fn seconds() {
        assert_eq!(secs_ns(b"1796035855.358749"), Some(1_796_035_855_358_749_000));
        assert_eq!(secs_ns(b"0.000000001"), Some(1));
        assert_eq!(secs_ns(b"7"), Some(7_000_000_000));
        assert_eq!(secs_ns(b"1.1234567890"), None);
        assert_eq!(secs_ns(b"99999999999999.0"), None);
        assert_eq!(secs_ns(b".5"), None);
    }

    #[test]
    fn nine_digits_at_once() {
        for text in ["000000000", "123456789", "999999999", "100000001", "12345678", "1234567890", "", "98765432a"] {
            let expected = text.get(..9).and_then(|t| dec_i64(t.as_bytes()));
            assert_eq!(nine_digits(format!("x{text}").as_bytes(), 1), expected, "{text}");
        }
        for (place, bad) in (0..9).flat_map(|p| [b'/', b':', b' ', 0, 0x7f, 0xff].map(|b| (p, b))) {
            let mut text = *b"123456789";
            text[place] = bad;
            assert_eq!(nine_digits(&text, 0), None, "{place} {bad}");
        }
    }

    #[test]
    fn numbers_in_place() {
        assert_eq!(dec_at(b"a123 ", 1), Some((123, 4)));
        assert_eq!(dec_at(b"a123", 1), Some((123, 4)));
        assert_eq!((dec_at(b"a123", 0), dec_at(b"a", 1), dec_at(b"1234567890123456789", 0)), (None, None, None));
        for text in ["1796035855.358749", "0.000000001", "7.5", "99999999999999.0", "1.1234567890", "1.", ".5", "7"] {
            let expected = secs_ns(text.as_bytes()).filter(|_| text.contains('.') && !text.ends_with('.'));
            assert_eq!(secs_ns_at(text.as_bytes(), 0), expected.map(|ns| (ns, text.len())), "{text}");
        }
        assert_eq!(secs_ns_at(b"  12.5 x", 2), Some((12_500_000_000, 6)));
    }

    #[test]
    fn fields_know_their_place() {
        let mut f = Fields::new(b"  a \tbc ");
        assert_eq!(f.next(), Some(&b"a"[..]));
        assert_eq!(f.position(), 5);
        assert_eq!(f.rest(), b"bc ");
        assert_eq!(f.next(), Some(&b"bc"[..]));
        assert_eq!(f.next(), None);
    }

    #[test]
    fn words_as_numbers() {
        for word in ["0", "7", "123456789012345678", "1234567890123456789", "99999999999999999999", "1a", "a", "", "-1"]
        {
            let text = format!(" {word} x");
            let mut f = Fields::new(text.as_bytes());
            let expected = Fields::new(text.as_bytes()).next().and_then(dec_i64);
            assert_eq!(f.next_dec(), expected, "{word:?}");
            assert_eq!(f.next(), (!word.is_empty()).then_some(&b"x"[..]), "{word:?}");
        }
        assert_eq!(Fields::new(b"12").next_dec(), Some(12));
        assert_eq!(Fields::new(b"  ").next_dec(), None);
    }

    #[test]
    fn bad_utf8_is_written_out() {
        let mut s = String::new();
        push_text(&mut s, b"a\xffb");
        assert_eq!(s, "a\\xffb");
    }
}
