//! What can be wrong with the block part of a variant.

use thiserror::Error;

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
    /// A number outside its range.
    #[error("{key} = {value}: {why}")]
    OutOfRange {
        /// Dotted key of the variant file.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The range, and what depends on it.
        why: &'static str,
    },
    /// Two settings exclude each other.
    #[error("{what}")]
    Conflict {
        /// Which, and why.
        what: &'static str,
    },
}
