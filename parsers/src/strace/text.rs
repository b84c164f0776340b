//! strace's strings: quotes, C escapes, and `...` after cut ones.

use super::lex::string_end;
use crate::num::push_text;

/// Append the content of a quoted argument (`"a\tb"` or `"cut"...`) to `into`, unescaped. Gives whether there was a
/// string at all, and whether strace had cut it.
pub(super) fn push_string(into: &mut String, scratch: &mut Vec<u8>, arg: &[u8]) -> Option<Cut> {
    if arg.first() != Some(&b'"') {
        return None;
    }
    let end = string_end(arg, 0)?;
    push_unescaped(into, scratch, &arg[1..end - 1]);
    Some(if arg[end..].starts_with(b"...") { Cut::Yes } else { Cut::No })
}

/// Whether strace cut a string short (`-s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Yes,
    No,
}

/// Append text with C escapes (`\n`, `\"`, `\303`, `\xc3`) resolved; bytes that are no UTF-8 come out as `\xNN`.
pub(super) fn push_unescaped(into: &mut String, scratch: &mut Vec<u8>, text: &[u8]) {
    if memchr::memchr(b'\\', text).is_none() {
        return push_text(into, text);
    }
    scratch.clear();
    let mut i = 0;
    while i < text.len() {
        if text[i] != b'\\' || i + 1 == text.len() {
            scratch.push(text[i]);
            i += 1;
            continue;
        }
        i += 1;
        match text[i] {
            b'n' => scratch.push(b'\n'),
            b't' => scratch.push(b'\t'),
            b'r' => scratch.push(b'\r'),
            b'f' => scratch.push(0x0c),
            b'v' => scratch.push(0x0b),
            b'a' => scratch.push(0x07),
            b'b' => scratch.push(0x08),
            b'e' => scratch.push(0x1b),
            b'x' => {
                let digits = run(&text[i + 1..], 2, |b| b.is_ascii_hexdigit());
                scratch.push(number(digits, 16));
                i += digits.len();
            }
            b'0'..=b'7' => {
                let digits = run(&text[i..], 3, |b| (b'0'..=b'7').contains(&b));
                scratch.push(number(digits, 8));
                i += digits.len() - 1;
            }
            other => scratch.push(other),
        }
        i += 1;
    }
    push_text(into, scratch);
}

/// The longest beginning of at most `limit` bytes that all fulfil `is`.
fn run(text: &[u8], limit: usize, is: impl Fn(u8) -> bool) -> &[u8] {
    let length = text.iter().take(limit).take_while(|b| is(**b)).count();
    &text[..length]
}

fn number(digits: &[u8], base: u32) -> u8 {
    digits.iter().fold(0u32, |n, d| n * base + (*d as char).to_digit(base).unwrap_or(0)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let cases: &[(&[u8], &str)] = &[
            (br#""plain""#, "plain"),
            (br#""a\tb\n""#, "a\tb\n"),
            (br#""q\"\\""#, "q\"\\"),
            (br#""\303\244\74x\76""#, "ä<x>"),
            (br#""\xc3\xa4""#, "ä"),
            (br#""\0001""#, "\u{0}1"),
            (br#""\377""#, "\\xff"),
            (br#""tail\q""#, "tailq"),
        ];
        for (arg, expected) in cases {
            let mut s = String::new();
            assert_eq!(push_string(&mut s, &mut Vec::new(), arg), Some(Cut::No));
            assert_eq!(s, *expected);
        }
    }

    #[test]
    fn cut_and_missing_strings() {
        let mut s = String::new();
        assert_eq!(push_string(&mut s, &mut Vec::new(), b"\"abc\"..."), Some(Cut::Yes));
        assert_eq!(push_string(&mut s, &mut Vec::new(), b"NULL"), None);
        assert_eq!(push_string(&mut s, &mut Vec::new(), b"\"open"), None);
        assert_eq!(s, "abc");
    }
}
