//! From arguments to the typed columns of one call.

use super::calls::{Call, ResultRole, Role};
use super::lex::{Args, string_end, undecorate};
use super::result::CallResult;
use super::text::{push_string, push_unescaped};
use crate::num::{c_int, push_text};

/// The columns of one call; buffers are kept from call to call, so a call allocates nothing once they have grown.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) fd: Option<i64>,
    pub(super) fd2: Option<i64>,
    pub(super) offset: Option<i64>,
    pub(super) len: Option<i64>,
    pub(super) addr: Option<i64>,
    path: Text,
    path2: Text,
    flags: Text,
    args: Text,
    dir: Text,
    scratch: Vec<u8>,
}

/// A text column: a buffer, and whether it holds a value.
#[derive(Debug, Default)]
struct Text {
    value: String,
    set: bool,
}

impl Text {
    fn clear(&mut self) {
        self.value.clear();
        self.set = false;
    }

    fn get(&self) -> Option<&str> {
        self.set.then_some(self.value.as_str())
    }
}

impl Columns {
    /// Path argument, or what `-y` says of the descriptor.
    pub(super) fn path(&self) -> Option<&str> {
        self.path.get()
    }

    /// Second path.
    pub(super) fn path2(&self) -> Option<&str> {
        self.path2.get()
    }

    /// Flags.
    pub(super) fn flags(&self) -> Option<&str> {
        self.flags.get()
    }

    /// Arguments as printed.
    pub(super) fn args(&self) -> Option<&str> {
        self.args.get()
    }

    /// Fill from a call; `call` is `None` for one without an entry, whose arguments are kept raw.
    pub(super) fn fill(&mut self, call: Option<&Call>, text: &[u8], args: &Args, result: &CallResult<'_>) {
        (self.fd, self.fd2, self.offset, self.len, self.addr) = (None, None, None, None, None);
        self.path.clear();
        self.path2.clear();
        self.flags.clear();
        self.args.clear();
        self.dir.clear();
        let Some(call) = call else { return self.keep(text) };
        if call.keep {
            self.keep(text);
        }
        for (index, role) in call.roles.iter().enumerate() {
            let Some(arg) = args.get(text, index) else { break };
            self.argument(*role, arg);
        }
        match call.result {
            ResultRole::Fd => {
                if let Some(path) = result.path.filter(|_| !self.path2.set) {
                    push_unescaped(&mut self.path2.value, &mut self.scratch, plain(path));
                    self.path2.set = true;
                }
            }
            ResultRole::Addr if result.errno.is_none() && result.ret.is_some() => self.addr = result.ret,
            _ => {}
        }
    }

    fn keep(&mut self, text: &[u8]) {
        push_text(&mut self.args.value, text.trim_ascii());
        self.args.set = true;
    }

    #[inline]
    fn argument(&mut self, role: Role, arg: &[u8]) {
        match role {
            Role::Skip => {}
            Role::Fd => {
                let (word, path) = undecorate(arg);
                self.fd = c_int(word).map(as_fd);
                if let Some(path) = path {
                    push_unescaped(&mut self.path.value, &mut self.scratch, plain(path));
                    self.path.set = true;
                }
            }
            Role::Fd2 => {
                let (word, path) = undecorate(arg);
                self.fd2 = c_int(word).map(as_fd);
                if let Some(path) = path {
                    push_unescaped(&mut self.path2.value, &mut self.scratch, plain(path));
                    self.path2.set = true;
                }
            }
            Role::Dir | Role::Dir2 => {
                let (word, path) = undecorate(arg);
                if role == Role::Dir {
                    self.fd = c_int(word).map(as_fd);
                } else {
                    self.fd2 = c_int(word).map(as_fd);
                }
                self.dir.clear();
                if let Some(path) = path {
                    push_unescaped(&mut self.dir.value, &mut self.scratch, plain(path));
                    self.dir.set = true;
                }
            }
            Role::Path => complete(&mut self.path, &mut self.dir, &mut self.scratch, arg),
            Role::Path2 => complete(&mut self.path2, &mut self.dir, &mut self.scratch, arg),
            Role::Len => self.len = c_int(word(arg)).or_else(|| length_before_output(arg)),
            Role::Off => self.offset = c_int(word(arg)),
            Role::OffAt => self.offset = arg.strip_prefix(b"[").and_then(leading_int),
            Role::Addr => self.addr = if arg == b"NULL" { Some(0) } else { c_int(word(arg)) },
            Role::Words => self.words(arg),
            Role::Iov => self.len = field_sum(arg, b"iov_len=").or_else(|| vector_sum(arg)),
            Role::Stat => {
                self.len = field(arg, b"st_size=").or_else(|| field(arg, b"stx_size=")).and_then(leading_int);
                if let Some(mode) = field(arg, b"st_mode=").or_else(|| field(arg, b"stx_mode=")) {
                    self.words(leading_word(mode));
                }
            }
            Role::CloneFlags => {
                if let Some(flags) = field(arg, b"flags=") {
                    self.words(leading_word(flags));
                }
            }
            Role::OpenHow => {
                if let Some(flags) = field(arg, b"flags=") {
                    self.words(leading_word(flags));
                }
            }
        }
    }

    fn words(&mut self, arg: &[u8]) {
        if self.flags.set {
            self.flags.value.push('|');
        }
        push_text(&mut self.flags.value, word(arg));
        self.flags.set = true;
    }
}

/// A descriptor argument: negative ones are printed as such or as their 32-bit pattern.
fn as_fd(value: i64) -> i64 {
    if value == 0xffff_ffff { -1 } else { value }
}

/// A path argument; a relative one is completed by the directory that `-y` named, an empty one (`AT_EMPTY_PATH`) is that
/// directory itself.
fn complete(path: &mut Text, dir: &mut Text, scratch: &mut Vec<u8>, arg: &[u8]) {
    let is_string = push_string(&mut path.value, scratch, arg).is_some();
    path.set = is_string;
    if dir.set && (!is_string && arg == b"NULL" || is_string && !path.value.starts_with('/')) {
        let relative = std::mem::take(&mut path.value);
        path.value.push_str(&dir.value);
        if !relative.is_empty() {
            if !path.value.ends_with('/') {
                path.value.push('/');
            }
            path.value.push_str(&relative);
        }
        path.set = true;
        // The buffer of the relative part is kept for the next call.
        dir.value = relative;
    }
    dir.clear();
}

/// An argument up to a comment after it (`0x7f /* 37 vars */`).
#[inline]
fn word(arg: &[u8]) -> &[u8] {
    match memchr::memchr(b'/', arg) {
        Some(at) if arg[at..].starts_with(b"/*") => arg[..at].trim_ascii_end(),
        _ => arg,
    }
}

/// The digits at the beginning of an argument that program output was printed into (`33done`).
fn length_before_output(arg: &[u8]) -> Option<i64> {
    c_int(&arg[..arg.iter().take_while(|b| b.is_ascii_digit()).count()])
}

/// The integer at the beginning of a text.
fn leading_int(text: &[u8]) -> Option<i64> {
    let end = text.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'-')).unwrap_or(text.len());
    c_int(&text[..end])
}

/// The text up to the next comma, bracket or blank.
fn leading_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|b| matches!(b, b',' | b'}' | b')' | b' ')).unwrap_or(text.len());
    &text[..end]
}

/// What follows the first `key=` outside of strings.
fn field<'a>(arg: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut at = 0;
    while at < arg.len() {
        if arg[at] == b'"' {
            at = string_end(arg, at)?;
            continue;
        }
        if arg[at..].starts_with(key) && (at == 0 || !(arg[at - 1].is_ascii_alphanumeric() || arg[at - 1] == b'_')) {
            return Some(&arg[at + key.len()..]);
        }
        at += 1;
    }
    None
}

/// The sum of all `key=number`; `None` where there is none or the array was cut (`...` as an element).
fn field_sum(arg: &[u8], key: &[u8]) -> Option<i64> {
    let (mut rest, mut sum, mut any) = (arg, 0i64, false);
    while let Some(value) = field(rest, key) {
        sum = sum.checked_add(leading_int(value)?)?;
        (rest, any) = (value, true);
    }
    (any && !rest.ends_with(b", ...]")).then_some(sum)
}

/// The sum of the lengths of a vector as strace printed it before 4.20: `[{"abc"..., 3}, {0x7ffe, 10}]`.
fn vector_sum(arg: &[u8]) -> Option<i64> {
    let mut rest = arg.strip_prefix(b"[")?;
    let mut sum = 0i64;
    loop {
        rest = rest.strip_prefix(b"{")?;
        let after = if rest.first() == Some(&b'"') { string_end(rest, 0)? } else { 0 };
        let comma = after + memchr::memchr(b',', &rest[after..])?;
        let close = comma + memchr::memchr(b'}', &rest[comma..])?;
        sum = sum.checked_add(c_int(rest[comma + 1..close].trim_ascii())?)?;
        rest = &rest[close + 1..];
        match rest.strip_prefix(b", ") {
            Some(more) => rest = more,
            None => return (rest == b"]").then_some(sum),
        }
    }
}

/// A path without the kind and number of a device that `-yy` puts behind it: `/dev/sda<block 8:0>`.
fn plain(path: &[u8]) -> &[u8] {
    let device = || {
        let inner = path.strip_suffix(b">")?;
        let open = memchr::memrchr(b'<', inner)?;
        let number = inner[open + 1..].strip_prefix(b"block ").or_else(|| inner[open + 1..].strip_prefix(b"char "))?;
        let is_number = number.iter().all(|b| b.is_ascii_digit() || *b == b':');
        (open > 0 && is_number && number.contains(&b':')).then(|| &path[..open])
    };
    device().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_outside_of_strings_only() {
        assert_eq!(field(b"{a=\"st_size=9\", st_size=3}", b"st_size=").and_then(leading_int), Some(3));
        assert_eq!(field(b"{xst_size=9}", b"st_size="), None);
        assert_eq!(
            field_sum(b"[{iov_base=\"iov_len=7\", iov_len=5}, {iov_base=\"\"..., iov_len=6}]", b"iov_len="),
            Some(11)
        );
        assert_eq!(field_sum(b"[{iov_base=\"\", iov_len=5}, ...]", b"iov_len="), None);
        assert_eq!(field_sum(b"0x7ffe", b"iov_len="), None);
    }

    #[test]
    fn vectors_of_old_versions() {
        assert_eq!(vector_sum(br#"[{"abc", 3}]"#), Some(3));
        assert_eq!(vector_sum(br#"[{"a, 7}"..., 300}, {0x7ffe, 10}, {NULL, 0}]"#), Some(310));
        for cut in [&br#"[{"abc", 3}, ...]"#[..], b"[]", b"0x7ffe", b"[{\"abc", b"[{1, x}]", b"[{1, 2} 3]"] {
            assert_eq!(vector_sum(cut), None, "{}", String::from_utf8_lossy(cut));
        }
    }

    #[test]
    fn devices_come_without_their_kind_and_number() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"/dev/sda<block 8:0>", b"/dev/sda"),
            (b"/dev/pts/3<char 136:3>", b"/dev/pts/3"),
            (b"/a<b>", b"/a<b>"),
            (b"/a<block 8>", b"/a<block 8>"),
            (b"<block 8:0>", b"<block 8:0>"),
            (b"TCP:[1.2.3.4:5->6.7.8.9:1]", b"TCP:[1.2.3.4:5->6.7.8.9:1]"),
        ];
        for (printed, path) in cases {
            assert_eq!(plain(printed), path);
        }
    }
}
