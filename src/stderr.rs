//! Standard error: for people. One that is closed or full is no reason to fail.

use kreplay_reports::escape;
use std::io::Write as _;

/// Says a text; what cannot be said is dropped, and what a name in it could do to a terminal becomes visible instead.
pub(crate) fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(escape::lines(text).as_bytes()).and_then(|()| err.flush());
}
