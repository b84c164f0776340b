//! kreplay-reports
