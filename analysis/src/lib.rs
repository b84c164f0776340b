//! kreplay-analysis
