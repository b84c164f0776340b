//! kreplay-parsers
