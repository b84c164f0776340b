//! The one place where untrusted text (process names, paths, variant names) is made safe for a format.
//!
//! Control characters, C1 controls, bidirectional overrides and invisible characters first become visible (`\x1b`,
//! `\u{202e}`), in every format but JSON, where they become `\u` escapes. Then each format's own special characters are escaped.

/// Longest text shown in a page, characters; the JSON has texts in full.
const LONGEST: usize = 200;
/// Longest sentence in Markdown, characters.
const LONGEST_SENTENCE: usize = 2000;

/// True for characters that change what the rest of a line looks like, or that cannot be seen.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Makes unseen characters visible: `\n`, `\t`, `\x1b`, `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unseen(c) && (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if is_unseen(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// [`visible`] for a text of several lines of our own: newlines stay. Names inside of a line need [`visible`] first.
pub fn lines(text: &str) -> String {
    if !text.chars().any(|c| is_unseen(c) && c != '\n') {
        return text.to_owned();
    }
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Takes characters out of the middle until at most `limit` are left, one of them the mark of the gap.
pub fn shorten(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_string();
    }
    let kept = limit.saturating_sub(1);
    let head = kept - kept / 2;
    let mut out: String = text.chars().take(head).collect();
    out.push('…');
    out.extend(text.chars().skip(count - kept / 2));
    out
}

/// For a terminal: visible and at most `limit` characters.
pub fn terminal(text: &str, limit: usize) -> String {
    shorten(&visible(text), limit)
}

/// For HTML text and quoted attributes, and for SVG text.
pub fn html(text: &str) -> String {
    html_full(&shorten(&visible(text), LONGEST))
}

/// [`html`] without a limit of length, for sentences of our own that contain names.
pub fn html_full(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// For Markdown (CommonMark with GitHub's tables, links and math): nothing in the text takes effect.
pub fn markdown(text: &str) -> String {
    let text = shorten(&visible(text), LONGEST_SENTENCE);
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = ['\0'; 3];
    let mut leading_digits = true;
    for (i, (at, c)) in text.char_indices().enumerate() {
        let escaped = match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '$' | '@' | '!' | '{' | '}' => true,
            '&' => {
                out.push_str("&amp;");
                before = [before[1], before[2], c];
                continue;
            }
            '-' | '+' | '=' => i == 0,
            // "1." and "1)" begin a list at the start of a line.
            ')' => leading_digits && i > 0,
            '.' => (leading_digits && i > 0) || before == ['w', 'w', 'w'],
            // "http://" and "mailto:" would become links.
            ':' => text[at + 1..].starts_with("//") || before == ['l', 't', 'o'] || before == ['m', 'p', 'p'],
            _ => false,
        };
        leading_digits &= c.is_ascii_digit();
        if escaped {
            out.push('\\');
        }
        out.push(c);
        before = [before[1], before[2], c.to_ascii_lowercase()];
    }
    out
}

/// For a CSV field: quoted, and with an apostrophe in front where a spreadsheet would take it for a formula.
pub fn csv(text: &str, raw: bool) -> String {
    let text = if raw { text.to_string() } else { visible(text) };
    let first = text.trim_start().chars().next();
    let formula = matches!(first, Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠'));
    // `visible` has turned a leading tab or carriage return into a backslash escape.
    let mark = if formula && !raw { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// For a JSON document that may be shown on a terminal or put into a page: unseen characters beyond ASCII, and `<`, `>`, `&`, as `\u` escapes.
pub fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        // Outside of strings a JSON document of serde_json has only newlines among these.
        if (is_unseen(c) && c != '\n') || matches!(c, '<' | '>' | '&') {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A file name or anchor made from `text`: `[a-z0-9._-]`, at most 80 characters, never empty, never hidden.
pub fn file_id(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(80) {
        let c = c.to_ascii_lowercase();
        let safe = c.is_ascii_alphanumeric() || ((c == '.' || c == '_' || c == '-') && !out.is_empty());
        out.push(if safe { c } else { '-' });
    }
    if out.is_empty() { "x".to_string() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unseen_characters_become_visible() {
        assert_eq!(visible("a\x1b[2J\u{202e}b\u{9b}\n"), "a\\x1b[2J\\u{202e}b\\x9b\\n");
        assert_eq!(visible("plain – text ü"), "plain – text ü");
        assert_eq!(lines("a\nb\x1b[0m\n"), "a\nb\\x1b[0m\n");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(shorten("abcdefghij", 5), "ab…ij");
        assert_eq!(shorten("abc", 5), "abc");
        assert_eq!(shorten("abc", 1), "…");
        assert_eq!(shorten("abc", 0), "…");
    }

    #[test]
    fn formulas_are_defused_and_numbers_are_not_ours() {
        for bad in ["=1", "+cmd", "-1+1", "@SUM", " \u{a0}=1", "\u{3000}=1"] {
            assert!(csv(bad, false).starts_with("\"'"), "{bad:?}");
        }
        assert_eq!(csv("\t=1", false), "\"\\t=1\"");
        assert_eq!(csv("\n=1", false), "\"\\n=1\"");
        assert_eq!(csv("a\"b", false), "\"a\"\"b\"");
        assert_eq!(csv("=1", true), "\"=1\"");
    }

    #[test]
    fn markdown_has_no_effect() {
        assert_eq!(markdown("| a | `b`"), "\\| a \\| \\`b\\`");
        assert_eq!(markdown("[x](javascript:1)"), "\\[x\\](javascript:1)");
        assert_eq!(markdown("1. no list"), "1\\. no list");
        assert_eq!(markdown("www.x"), "www\\.x");
        assert_eq!(markdown("http://x mailto:y"), "http\\://x mailto\\:y");
        assert_eq!(markdown("A: b"), "A: b");
        assert_eq!(markdown("40.20 s"), "40\\.20 s");
        assert_eq!(markdown("in 40.20 s"), "in 40.20 s");
    }

    proptest! {
        #[test]
        fn no_format_lets_markup_or_controls_through(text in any::<String>()) {
            let page = html(&text);
            prop_assert!(!page.contains('<') && !page.contains('>') && !page.contains('"') && !page.contains('\''));
            for out in [page, terminal(&text, 50), markdown(&text), csv(&text, false), json(&text)] {
                prop_assert!(!out.chars().any(|c| is_unseen(c) && c != '\n'), "{:?}", out);
            }
            prop_assert!(terminal(&text, 50).chars().count() <= 50);
        }

        #[test]
        fn json_means_the_same(text in any::<String>()) {
            let document = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&json(&document)).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn file_ids_are_safe(text in any::<String>()) {
            let id = file_id(&text);
            prop_assert!(!id.is_empty() && id.len() <= 80 && !id.starts_with('.'));
            prop_assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c)));
        }
    }
}
