//! The structure of one strace call: name, arguments at depth 0, the closing parenthesis.
//!
//! strace prints C-like text without a grammar; what can be relied on is nesting. Strings, descriptor decorations
//! (`3</path>`), comments and brackets are skipped as units, so a comma, a parenthesis or `) = ` inside one of them
//! never cuts an argument.

/// Arguments that are kept apart; no system call has more (a structure is one).
pub(super) const MAX_ARGS: usize = 12;

/// Arguments of a call as byte ranges of the text after its opening parenthesis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Args {
    spans: [(u32, u32); MAX_ARGS],
    count: usize,
}

impl Args {
    fn push(&mut self, start: usize, end: usize) {
        if self.count < MAX_ARGS {
            self.spans[self.count] = (start as u32, end as u32);
            self.count += 1;
        }
    }

    /// The argument at `index`, without the blanks around it.
    #[inline]
    pub(super) fn get<'a>(&self, text: &'a [u8], index: usize) -> Option<&'a [u8]> {
        if index >= self.count {
            return None;
        }
        // The caller may have cut the text shorter than what was scanned.
        let (start, end) = self.spans[index];
        Some(text.get(start as usize..(end as usize).min(text.len()))?.trim_ascii())
    }
}

/// Where a call's argument list ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgList {
    /// The arguments.
    pub(super) args: Args,
    /// Index of the closing parenthesis, or of the end of the text where `closed` is false.
    pub(super) end: usize,
    /// The parenthesis was found.
    pub(super) closed: bool,
    /// Brackets or a string are still open at the end: the text misled the scanner, or was cut inside of them.
    pub(super) broken: bool,
}

/// Bytes that the scanner stops at.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let stops = b"\"()[]{},</";
    let mut i = 0;
    while i < stops.len() {
        table[stops[i] as usize] = true;
        i += 1;
    }
    table
};

/// Scan the text after a call's `(`. Never fails: without its closing parenthesis the list is what was seen.
pub(super) fn arg_list(text: &[u8]) -> ArgList {
    let mut args = Args::default();
    let (mut at, mut depth, mut start) = (0, 0usize, 0);
    // Round brackets among the open ones, to notice one that closes another kind.
    let (mut round, mut mismatch) = (0usize, false);
    while at < text.len() {
        if !SPECIAL[text[at] as usize] {
            at += 1;
            continue;
        }
        match text[at] {
            b'"' => match string_end(text, at) {
                Some(end) => at = end,
                None => {
                    depth += 1;
                    break;
                }
            },
            open @ (b'(' | b'[' | b'{') => {
                depth += 1;
                round += usize::from(open == b'(');
                at += 1;
            }
            b')' if depth == 0 => {
                if at > start || args.count > 0 {
                    args.push(start, at);
                }
                return ArgList { args, end: at, closed: true, broken: false };
            }
            close @ (b')' | b']' | b'}') => {
                depth = depth.saturating_sub(1);
                if close == b')' {
                    mismatch |= round == 0;
                    round = round.saturating_sub(1);
                }
                at += 1;
            }
            b',' => {
                if depth == 0 {
                    args.push(start, at);
                    start = at + 1;
                }
                at += 1;
            }
            b'<' => at = decoration_end(text, at).unwrap_or(at + 1),
            b'/' => at = comment_end(text, at).unwrap_or(at + 1),
            _ => unreachable!("all special bytes have an arm"),
        }
    }
    args.push(start.min(text.len()), text.len());
    ArgList { args, end: text.len(), closed: false, broken: depth > 0 || mismatch }
}

/// Index after the string that begins at `at` (on its quote), or `None` where it does not end.
#[inline]
pub(super) fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut i = at + 1;
    loop {
        i += memchr::memchr2(b'"', b'\\', &text[i..])?;
        if text[i] == b'"' {
            return Some(i + 1);
        }
        i += 2;
        if i > text.len() {
            return None;
        }
    }
}

/// Index after the `<...>` that begins at `at`, where it is a decoration: of a descriptor (`3</a>`, `AT_FDCWD</a>`, also
/// with another inside: `</dev/null<char 1:3>>`), of a socket (`<TCP:[a->b]>`), or strace's own `<... `.
#[inline]
pub(super) fn decoration_end(text: &[u8], at: usize) -> Option<usize> {
    let content = &text[at + 1..];
    let decorates = content.starts_with(b"... ")
        || at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_') && content.first() != Some(&b'<');
    if !decorates {
        return None;
    }
    if content.first() != Some(&b'/') {
        let colon = memchr::memmem::find(&content[..content.len().min(24)], b":[");
        if colon.is_some() {
            return memchr::memmem::find(content, b"]>").map(|end| at + 1 + end + 2);
        }
    }
    let mut depth = 1;
    let mut i = at + 1;
    loop {
        i += memchr::memchr2(b'<', b'>', &text[i..])?;
        depth = if text[i] == b'<' { depth + 1 } else { depth - 1 };
        i += 1;
        if depth == 0 {
            return Some(i);
        }
    }
}

/// Index after the comment that begins at `at`, if one does.
#[inline]
fn comment_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at + 1) != Some(&b'*') {
        return None;
    }
    memchr::memmem::find(&text[at + 2..], b"*/").map(|end| at + 2 + end + 2)
}

/// An argument cut into its word and its decoration: `3</a>` gives (`3`, `/a`).
#[inline]
pub(super) fn undecorate(arg: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'<', arg) {
        Some(at) if at > 0 && arg[0] != b'"' => match decoration_end(arg, at) {
            Some(end) => (&arg[..at], Some(&arg[at + 1..end - 1])),
            None => (arg, None),
        },
        _ => (arg, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<&str>, &str) {
        let list = arg_list(text.as_bytes());
        let args = (0..MAX_ARGS)
            .map_while(|i| list.args.get(text.as_bytes(), i))
            .map(|a| std::str::from_utf8(a).unwrap())
            .collect();
        (args, if list.closed { &text[list.end + 1..] } else { "UNCLOSED" })
    }

    #[test]
    fn arguments_are_cut_at_depth_zero_only() {
        let cases: &[(&str, &[&str], &str)] = &[
            (") = 0", &[], " = 0"),
            ("NULL) = 0", &["NULL"], " = 0"),
            ("3, \"a,b)\", 5) = 5", &["3", "\"a,b)\"", "5"], " = 5"),
            (r#"3, "q\")\\", 5) = 5"#, &["3", r#""q\")\\""#, "5"], " = 5"),
            ("3, \"cut\"..., 32) = 32", &["3", "\"cut\"...", "32"], " = 32"),
            ("3</a,b (1)>, x) = 0", &["3</a,b (1)>", "x"], " = 0"),
            ("0</dev/null<char 1:3>>, x) = 0", &["0</dev/null<char 1:3>>", "x"], " = 0"),
            ("4<TCP:[1.2.3.4:5->6.7.8.9:10]>, x) = 0", &["4<TCP:[1.2.3.4:5->6.7.8.9:10]>", "x"], " = 0"),
            ("5<UNIX-STREAM:[1->2, \"/s\"]>, x) = 0", &["5<UNIX-STREAM:[1->2, \"/s\"]>", "x"], " = 0"),
            ("AT_FDCWD</x y>, \"f\") = 0", &["AT_FDCWD</x y>", "\"f\""], " = 0"),
            ("{a=1, b=[2, 3], ...}, 4) = 0", &["{a=1, b=[2, 3], ...}", "4"], " = 0"),
            (
                "[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 9",
                &["[{WIFEXITED(s) && WEXITSTATUS(s) == 0}]", "0", "NULL"],
                " = 9",
            ),
            ("0x7f /* 37 vars, (a) */) = 0", &["0x7f /* 37 vars, (a) */"], " = 0"),
            ("1<<20, 2) = 0", &["1<<20", "2"], " = 0"),
            ("<... resuming interrupted nanosleep ...>) = 0", &["<... resuming interrupted nanosleep ...>"], " = 0"),
            ("a / b) = 0", &["a / b"], " = 0"),
            ("3, \"never ends", &["3", "\"never ends"], "UNCLOSED"),
            ("3, {a", &["3", "{a"], "UNCLOSED"),
            ("3, \"\\", &["3", "\"\\"], "UNCLOSED"),
        ];
        for (text, args, rest) in cases {
            assert_eq!(split(text), (args.to_vec(), *rest), "{text}");
        }
    }

    #[test]
    fn decorations_come_off() {
        assert_eq!(undecorate(b"3</a b>"), (&b"3"[..], Some(&b"/a b"[..])));
        assert_eq!(undecorate(b"0</dev/null<char 1:3>>"), (&b"0"[..], Some(&b"/dev/null<char 1:3>"[..])));
        assert_eq!(undecorate(b"3"), (&b"3"[..], None));
        assert_eq!(undecorate(b"\"a<b>\""), (&b"\"a<b>\""[..], None));
    }
}
