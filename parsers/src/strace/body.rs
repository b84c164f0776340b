//! What stands on a line after its prefix: a call, half of one, or something that strace says.

/// Lines that strace itself says and that are no call.
pub(super) fn remark(line: &[u8], body: &[u8]) -> Option<&'static str> {
    let word = line.trim_ascii();
    if word.starts_with(b"> ") && word.ends_with(b"]") && memchr::memmem::find(word, b" [0x").is_some() {
        return Some("stack");
    }
    match body[0] {
        b's' if word.starts_with(b"strace: ") => Some("strace-message"),
        b'P' if body.starts_with(b"Process ") => {
            let said = [&b" attached"[..], b" detached", b" suspended", b" resumed", b" terminated"];
            said.iter().any(|s| memchr::memmem::find(body, s).is_some()).then_some("strace-message")
        }
        b'[' if body.starts_with(b"[ Process PID=") => Some("strace-message"),
        _ => None,
    }
}

/// Index of the parenthesis after a call's name, if the body begins like a call.
#[inline]
pub(super) fn call_paren(body: &[u8]) -> Option<usize> {
    let end = body.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'?')))?;
    (end > 0 && body[end] == b'(').then_some(end)
}

/// Where the arguments of an unfinished call end, or `None` for a whole one.
#[inline]
pub(super) fn unfinished_end(body: &[u8]) -> Option<usize> {
    let trimmed = body.trim_ascii_end();
    if !trimmed.ends_with(b">") || trimmed.len() < 16 {
        return None;
    }
    if trimmed.ends_with(b"<unfinished ...>") {
        return Some(trimmed.len() - 16);
    }
    if trimmed.ends_with(b"<detached ...>") {
        return Some(trimmed.len() - 14);
    }
    if trimmed.ends_with(b" ...>") {
        let open = memchr::memmem::rfind(trimmed, b"<unfinished #")?;
        let number = &trimmed[open + 13..trimmed.len() - 5];
        return number.iter().all(u8::is_ascii_digit).then_some(open);
    }
    None
}

/// Where the arguments of an `execve` end that goes on in another file (`strace -ff`): `<pid changed to 27667 ...>`. It is
/// printed when the call has succeeded, because the thread has the id of its group's first thread from then on.
pub(super) fn moved_end(body: &[u8]) -> Option<usize> {
    let inner = body.trim_ascii_end().strip_suffix(b" ...>")?;
    let open = memchr::memmem::rfind(inner, b" <pid changed to ")?;
    inner[open + 17..].iter().all(u8::is_ascii_digit).then_some(open)
}

/// The thread that `+++ superseded by execve in pid 27774 +++` names.
pub(super) fn superseded_by(body: &[u8]) -> Option<i64> {
    let number = body.strip_prefix(b"+++ superseded by execve in pid ")?.trim_ascii_end().strip_suffix(b" +++")?;
    crate::num::dec_i64(number)
}

/// `<... name resumed>rest`, also `<... name resumed> rest` and `<... name resumed #N>rest`: name and rest.
pub(super) fn resumed_parts(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = body.strip_prefix(b"<... ")?;
    let name_end = memchr::memchr(b' ', inner)?;
    let tail = inner[name_end..].strip_prefix(b" resumed")?;
    let close = memchr::memchr(b'>', tail)?;
    let mark = &tail[..close];
    let fits = mark.is_empty() || mark.strip_prefix(b" #").is_some_and(|n| n.iter().all(u8::is_ascii_digit));
    fits.then_some((&inner[..name_end], &tail[close + 1..]))
}

/// Index of the parenthesis of the last `) = ` (any blanks) in the text.
pub(super) fn last_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'=', text).find_map(|at| {
        let before = text[..at].trim_ascii_end();
        (before.len() < at && before.ends_with(b")")).then(|| before.len() - 1)
    })
}
