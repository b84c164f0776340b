//! Counters of what was assumed or left out, in words.

use std::collections::BTreeMap;

/// Occurrences by their description, printed in the description's alphabetical order.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(BTreeMap<&'static str, u64>);

impl Notes {
    /// One more.
    pub(super) fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// So many more.
    pub(super) fn add(&mut self, what: &'static str, n: u64) {
        if n > 0 {
            *self.0.entry(what).or_default() += n;
        }
    }

    /// As lines of a report.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.0.into_iter().map(|(what, n)| format!("{what}: {n}")).collect()
    }
}
