//! Looking things up in arguments as strace prints them.
//!
//! Only calls whose meaning needs more than the columns of a row come here; an argument that is missing or cut
//! (`[...]`) gives `None`, never a guess.

use kreplay_traces::units::Nanos;

/// Whether a `|`-separated word list holds `word`.
pub(super) fn has_word(flags: Option<&str>, word: &str) -> bool {
    flags.is_some_and(|f| f.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|w| w == word))
}

/// The number after `key=` (decimal, `0x` hexadecimal or `0` octal), as in `st_size=258` or `link=0`.
pub(super) fn number(args: Option<&str>, key: &str) -> Option<i64> {
    let args = args?;
    let mut from = 0;
    while let Some(at) = args[from..].find(key) {
        let start = from + at;
        let after = start + key.len();
        let whole = args[..start].chars().next_back().is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'));
        if whole && args[after..].starts_with('=') {
            return leading_number(&args[after + 1..]);
        }
        from = after;
    }
    None
}

/// The integer that `text` starts with.
pub(super) fn leading_number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        u64::from_str_radix(&hex[..end], 16).ok()? as i64
    } else {
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<i64>().ok()?
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// The first `{tv_sec=S, tv_nsec=N}` (or `tv_usec`).
pub(super) fn timespec(args: Option<&str>) -> Option<Nanos> {
    let secs = u64::try_from(number(args, "tv_sec")?).ok()?;
    let sub = match number(args, "tv_nsec") {
        Some(ns) => u64::try_from(ns).ok()?,
        None => u64::try_from(number(args, "tv_usec")?).ok()?.checked_mul(1_000)?,
    };
    secs.checked_mul(1_000_000_000)?.checked_add(sub).map(Nanos)
}

/// The two descriptors of `pipe([3, 4])` or `socketpair(..., [3, 4])`: the last bracketed pair of numbers.
pub(super) fn descriptor_pair(args: Option<&str>) -> Option<(i64, i64)> {
    let args = args?;
    let mut found = None;
    // A bracket after a colon belongs to what -y shows (`pipe:[7]`).
    for (at, _) in args.match_indices('[').filter(|(at, _)| !args[..*at].ends_with(':')) {
        let inner = &args[at + 1..];
        let Some(first) = leading_number(inner) else { continue };
        // With -y a path stands between the number and the comma, and may itself hold commas.
        let Some(second) = inner.match_indices(", ").find_map(|(i, _)| leading_number(&inner[i + 2..])) else {
            continue;
        };
        found = Some((first, second));
    }
    found
}

/// The path that `-y` prints after a word, as in `AT_FDCWD</home>`; escapes in it are not undone.
pub(super) fn angle_path<'a>(args: Option<&'a str>, word: &str) -> Option<&'a str> {
    let args = args?;
    let at = args.find(word)? + word.len();
    let rest = args[at..].strip_prefix('<')?;
    Some(&rest[..rest.find('>')?])
}

/// The `n`-th top-level argument (from 0), trimmed.
pub(super) fn nth(args: Option<&str>, n: usize) -> Option<&str> {
    let args = args?;
    let (mut depth, mut quoted, mut escaped, mut index, mut start) = (0_i32, false, false, 0, 0);
    for (i, c) in args.char_indices() {
        if escaped {
            escaped = false;
        } else if quoted {
            match c {
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
        } else {
            match c {
                '"' => quoted = true,
                '(' | '[' | '{' | '<' => depth += 1,
                ')' | ']' | '}' | '>' => depth -= 1,
                ',' if depth == 0 => {
                    if index == n {
                        return Some(args[start..i].trim());
                    }
                    index += 1;
                    start = i + 1;
                }
                _ => {}
            }
        }
    }
    (index == n && start < args.len()).then(|| args[start..].trim())
}

/// Entries that `getdents` reports in its comment (`/* 28 entries */`).
pub(super) fn entry_count(args: Option<&str>) -> Option<u64> {
    let args = args?;
    let end = args.find(" entries */")?;
    let start = args[..end].rfind("/* ")? + 3;
    args[start..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_match_whole_names_only() {
        assert!(has_word(Some("O_RDWR|O_CREAT"), "O_CREAT"));
        assert!(!has_word(Some("O_CREATE"), "O_CREAT"));
        assert!(has_word(Some("{flags=CLONE_VM|CLONE_FILES, stack=0x7f}"), "CLONE_FILES"));
        let stat = Some("3, {st_mode=S_IFREG|0644, st_size=258, ...}");
        assert_eq!(number(stat, "st_size"), Some(258));
        assert_eq!(number(stat, "size"), None);
        assert_eq!(number(Some("link=0 client=2 chunk=8192"), "client"), Some(2));
        assert_eq!(leading_number("-60, SEEK_CUR"), Some(-60));
        assert_eq!(leading_number("0x1000)"), Some(4096));
        assert_eq!(leading_number("..."), None);
    }

    #[test]
    fn times() {
        let args = Some("CLOCK_REALTIME, 0, {tv_sec=1, tv_nsec=500000}, NULL");
        assert_eq!(timespec(args), Some(Nanos(1_000_500_000)));
        assert_eq!(timespec(Some("{tv_sec=0, tv_usec=20}")), Some(Nanos(20_000)));
        assert_eq!(timespec(Some("0x7ffd")), None);
    }

    #[test]
    fn pairs_and_paths() {
        assert_eq!(descriptor_pair(Some("[3, 4], 0")), Some((3, 4)));
        assert_eq!(descriptor_pair(Some("[3<pipe:[7]>, 4<pipe:[7]>], O_CLOEXEC")), Some((3, 4)));
        assert_eq!(descriptor_pair(Some("[...], 0")), None);
        assert_eq!(angle_path(Some("AT_FDCWD</home/a>, \"x\""), "AT_FDCWD"), Some("/home/a"));
        assert_eq!(nth(Some("0x7f00, 4096, 8192, MREMAP_MAYMOVE"), 2), Some("8192"));
        assert_eq!(nth(Some("\"a,b\", 7"), 1), Some("7"));
        assert_eq!(entry_count(Some("3, 0x55 /* 28 entries */, 32768")), Some(28));
    }
}
