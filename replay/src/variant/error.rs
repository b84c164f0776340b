//! What can be wrong with a variant, as plain data: what, where, and what to do about it.

use std::fmt;

/// A place in a variant file or in a `--set` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File name, or how the text came in ("--set").
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters to underline, at least 1.
    pub width: usize,
    /// The line's text.
    pub text: String,
}

impl Place {
    /// The place of a byte range in a text.
    pub fn of(file: &str, text: &str, range: std::ops::Range<usize>) -> Self {
        let start = (0..=range.start.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_text = text[line_start..].lines().next().unwrap_or("");
        let column = text[line_start..start].chars().count() + 1;
        let left_on_line = line_text.chars().count().saturating_sub(column - 1);
        let wanted = text.get(start..range.end.min(text.len())).map_or(1, |s| s.chars().count());
        Place {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column,
            width: wanted.min(left_on_line).max(1),
            text: line_text.to_owned(),
        }
    }
}

/// A variant that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct VariantError {
    /// One line: what is wrong.
    pub what: String,
    /// Where, if it stands in a file.
    pub place: Option<Place>,
    /// What to do about it.
    pub help: Option<String>,
}

impl VariantError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), place: None, help: None }
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn help_if(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

impl fmt::Display for VariantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(p) = &self.place {
            let margin = p.line.to_string().len();
            write!(f, "\n{:margin$}--> {}:{}:{}", "", p.file, p.line, p.column)?;
            write!(f, "\n{:margin$} |", "")?;
            write!(f, "\n{} | {}", p.line, p.text)?;
            write!(f, "\n{:margin$} | {:indent$}{}", "", "", "^".repeat(p.width), indent = p.column - 1)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\nhelp: {help}")?;
        }
        Ok(())
    }
}

/// The candidate that somebody who wrote `word` most likely meant, if one is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for c in candidates {
        let distance = strsim::damerau_levenshtein(word, c);
        if distance <= word.chars().count().max(3) / 3 && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, c));
        }
    }
    best.map(|(_, c)| c)
}

/// [`nearest`], or the first candidate that begins with `word` (`noop` for `noop-2.4`).
pub fn nearest_or_longer<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    nearest(word, candidates.clone())
        .or_else(|| candidates.into_iter().find(|c| !word.is_empty() && c.starts_with(word)))
}

pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|c| format!("did you mean `{c}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_range_even_after_wide_text() {
        let text = "a = 1\nnäme = \"x\" # more\n";
        let start = text.find("\"x\"").unwrap();
        let place = Place::of("f.toml", text, start..start + 3);
        assert_eq!((place.line, place.column, place.width), (2, 8, 3));
        let shown = VariantError::new("bad name").at(place).help("choose another").to_string();
        assert_eq!(
            shown,
            "bad name\n --> f.toml:2:8\n  |\n2 | näme = \"x\" # more\n  |        ^^^\nhelp: choose another"
        );
    }

    #[test]
    fn a_range_beyond_the_text_points_at_its_end() {
        let place = Place::of("f.toml", "abc", 7..9);
        assert_eq!((place.line, place.column, place.width), (1, 4, 1));
    }

    #[test]
    fn only_near_words_are_suggested() {
        assert_eq!(nearest("read-latancy", ["write-latency", "read-latency"]), Some("read-latency"));
        assert_eq!(nearest("colour", ["read-latency"]), None);
    }
}
