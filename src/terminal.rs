//! What standard output can show: its width, and whether it takes colour.

use std::env;
use std::io::IsTerminal as _;

/// Width where nothing says it (a file, a pipe), columns.
const UNKNOWN: usize = 100;
/// Widths that are believed, columns.
const BELIEVED: std::ops::RangeInclusive<usize> = 20..=1000;

/// Columns of standard output: `COLUMNS` if it is set, else the terminal's.
pub(crate) fn width() -> usize {
    let said = env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(asked).filter(|w| BELIEVED.contains(w)).unwrap_or(UNKNOWN)
}

/// Standard output is a terminal that takes colour, and nobody said no (`NO_COLOR`, see no-color.org).
pub(crate) fn color() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|t| t == "dumb");
    std::io::stdout().is_terminal() && !refused && !dumb
}
