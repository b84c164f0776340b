//! What can be wrong with the block part of a variant.

use thiserror::Error;

use crate::config::check::Wrong;

/// A block layer cannot be built from a variant's configuration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// No elevator has this name.
    #[error("elevator.policy: unknown I/O scheduler \"{name}\"{hint}; known: {known}")]
    UnknownElevator {
        /// What was asked for.
        name: String,
        /// " (did you mean ...?)" or empty.
        hint: String,
        /// All names, comma separated.
        known: String,
    },
    /// No built-in parameter set has this name.
    #[error("device.preset: unknown disk \"{name}\"{hint}; known: {known}")]
    UnknownDisk {
        /// What was asked for.
        name: String,
        /// " (did you mean ...?)" or empty.
        hint: String,
        /// All names, comma separated.
        known: String,
    },
    /// A number outside its range.
    #[error("{key}: {what}")]
    OutOfRange {
        /// Dotted key of the variant file.
        key: &'static str,
        /// Its value, and the bound that it misses.
        what: String,
    },
    /// Two settings exclude each other.
    #[error("{what}")]
    Conflict {
        /// Which, and why.
        what: &'static str,
    },
}

impl From<Wrong> for ConfigError {
    fn from((key, what): Wrong) -> Self {
        Self::OutOfRange { key, what }
    }
}

/// What to say about a name that is not among the known ones: a hint, and all of them.
pub(crate) fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> (String, String) {
    let near = known
        .clone()
        .map(|k| (strsim::jaro_winkler(k, name), k))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.map_or_else(String::new, |(_, n)| format!(" (did you mean \"{n}\"?)"));
    (hint, known.collect::<Vec<_>>().join(", "))
}
