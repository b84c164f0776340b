//! What follows a call's closing parenthesis: `= value [ERROR (text)] [<duration>]`.

use super::lex::decoration_end;
use crate::num::{c_int, dec_i64, secs_ns_at};

/// A call's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallResult<'a> {
    /// The value; `None` for `?`. A process id of another namespace is that of strace's own, as threads are known by.
    pub(super) ret: Option<i64>,
    /// `ENOENT`, or `ERESTARTSYS` after `?`.
    pub(super) errno: Option<&'a [u8]>,
    /// What `-y` says of a returned descriptor.
    pub(super) path: Option<&'a [u8]>,
    /// `-T`, nanoseconds.
    pub(super) dur_ns: Option<i64>,
}

/// Why a result could not be read, with the byte index in the text after the parenthesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadResult {
    /// No `=` after the parenthesis.
    NoEquals(usize),
    /// Neither a number nor `?`.
    NoValue(usize),
}

/// Read the text after the parenthesis.
#[inline]
pub(super) fn result(text: &[u8]) -> Result<CallResult<'_>, BadResult> {
    let mut at = skip_blanks(text, 0);
    if text.get(at) != Some(&b'=') {
        return Err(BadResult::NoEquals(at));
    }
    at = skip_blanks(text, at + 1);
    let mut end = trimmed_end(text);
    let mut result = CallResult::default();
    if let Some((start, ns)) = duration(&text[..end]) {
        result.dur_ns = Some(ns);
        end = start;
    }
    let end = trimmed_end(&text[..end]).max(at);
    let value_text = &text[at..end];
    let value_end = value_text.iter().position(|b| matches!(b, b' ' | b'<')).unwrap_or(value_text.len());
    let value = &value_text[..value_end];
    let after = &value_text[value_end..];
    if value == b"?" {
        result.errno = error_name(after);
        return Ok(result);
    }
    result.ret = Some(c_int(value).ok_or(BadResult::NoValue(at))?);
    result.ret = outer_id(after).or(result.ret);
    if after.first() == Some(&b'<') {
        result.path = decoration_end(value_text, value_end).map(|e| &value_text[value_end + 1..e - 1]);
    } else if result.ret.is_some_and(|v| v < 0) {
        result.errno = error_name(after);
    }
    Ok(result)
}

/// `--decode-pids=pidns` adds ` /* 1236 in strace's PID NS */`: the same process as strace sees it.
fn outer_id(after: &[u8]) -> Option<i64> {
    let text = after.strip_suffix(b" in strace's PID NS */")?;
    dec_i64(&text[memchr::memmem::rfind(text, b"/* ")? + 3..])
}

/// The word after the value, if it is a symbolic error.
fn error_name(after: &[u8]) -> Option<&[u8]> {
    let word = after.trim_ascii_start();
    let end = word.iter().position(|b| !(b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_'));
    let word = &word[..end.unwrap_or(word.len())];
    (word.len() > 2 && word[0] == b'E').then_some(word)
}

/// A trailing ` <0.000004>`: where it begins, and its nanoseconds.
#[inline]
fn duration(text: &[u8]) -> Option<(usize, i64)> {
    let inner = text.strip_suffix(b">")?;
    if !inner.last()?.is_ascii_digit() {
        return None;
    }
    let open = inner.len() - 1 - inner.iter().rev().take(24).position(|b| *b == b'<')?;
    let (ns, _) = secs_ns_at(inner, open + 1).filter(|(_, end)| *end == inner.len())?;
    (open > 0 && text[open - 1] == b' ').then_some((open, ns))
}

#[inline]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && matches!(text[at], b' ' | b'\t') {
        at += 1;
    }
    at
}

#[inline]
fn trimmed_end(text: &[u8]) -> usize {
    text.trim_ascii_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results() {
        let r = |ret, errno: Option<&'static str>, path: Option<&'static str>, dur_ns| {
            Ok(CallResult { ret, errno: errno.map(str::as_bytes), path: path.map(str::as_bytes), dur_ns })
        };
        let cases = [
            (" = 0", r(Some(0), None, None, None)),
            ("= 0", r(Some(0), None, None, None)),
            ("       = 0x557482851000 <0.000002>", r(Some(0x5574_8285_1000), None, None, Some(2000))),
            (" = -1 ENOENT (No such file or directory) <0.000003>", r(Some(-1), Some("ENOENT"), None, Some(3000))),
            (" = -1 (errno 524)", r(Some(-1), None, None, None)),
            (" = 3</etc/a b> <0.000005>", r(Some(3), None, Some("/etc/a b"), Some(5000))),
            (" = 3</etc/a>", r(Some(3), None, Some("/etc/a"), None)),
            (" = 4<TCP:[1.2.3.4:5->6.7.8.9:1]>", r(Some(4), None, Some("TCP:[1.2.3.4:5->6.7.8.9:1]"), None)),
            (" = ?", r(None, None, None, None)),
            (" = ? <unavailable>", r(None, None, None, None)),
            (" = ? ERESTARTSYS (To be restarted if SA_RESTART is set)", r(None, Some("ERESTARTSYS"), None, None)),
            (
                " = ? ERESTART_RESTARTBLOCK (Interrupted by signal) <1.500000>",
                r(None, Some("ERESTART_RESTARTBLOCK"), None, Some(1_500_000_000)),
            ),
            (" = 0 (Timeout)", r(Some(0), None, None, None)),
            (" = 1 ([{fd=3, revents=POLLIN}]) <0.000010>", r(Some(1), None, None, Some(10_000))),
            (" = 0x8002 (flags O_RDWR|O_LARGEFILE)", r(Some(0x8002), None, None, None)),
            (" = 5 (INJECTED)", r(Some(5), None, None, None)),
            (" = 5 /* 1236 in strace's PID NS */ <0.000010>", r(Some(1236), None, None, Some(10_000))),
            (" = 5<sh> /* 1236 in strace's PID NS */", r(Some(1236), None, Some("sh"), None)),
            (" = 18446744073709551615", r(Some(-1), None, None, None)),
            ("", Err(BadResult::NoEquals(0))),
            ("  x", Err(BadResult::NoEquals(2))),
            (" = ", Err(BadResult::NoValue(3))),
            (" = NULL", Err(BadResult::NoValue(3))),
        ];
        for (text, expected) in cases {
            assert_eq!(result(text.as_bytes()), expected, "{text:?}");
        }
    }
}
