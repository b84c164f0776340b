//! Where the figures of a report came from.

use serde::{Deserialize, Serialize};

/// Everything needed to judge and to repeat the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command that made the results, word by word.
    pub command: Vec<String>,
    /// Version of the code that made this report.
    pub analysis_version: String,
    /// When two figures count as different, in words.
    pub comparison_rule: String,
    /// One entry a cell, failed and skipped ones included.
    pub cells: Vec<CellProvenance>,
    /// Sources, machine and clocks of each recording, as `key` and `value` lines.
    pub recordings: Vec<(String, String)>,
}

/// Where the figures of one cell came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellProvenance {
    /// Trace id.
    pub trace: String,
    /// Variant.
    pub variant: String,
    /// Seed.
    pub seed: i64,
    /// `done`, `failed` or `skipped`.
    pub state: String,
    /// Why it failed or was skipped.
    pub why: Option<String>,
    /// How calls were issued.
    pub pacing: Option<String>,
    /// False if the run ended before its foreground tasks did.
    pub finished: Option<bool>,
    /// Tasks that were replayed.
    pub tasks: Option<i64>,
    /// Hash of the resolved configuration.
    pub config_hash: Option<String>,
    /// Version of the simulator.
    pub code_version: Option<String>,
    /// What the variant was checked against, with what error.
    pub checked_against: Vec<String>,
    /// What the model assumed because the trace does not say.
    pub assumptions: Vec<String>,
    /// How much of the trace could be used: rejects, unsupported calls.
    pub coverage: Vec<(String, String)>,
    /// The resolved configuration as `key` and `value` lines.
    pub config: Vec<(String, String)>,
    /// The result tables.
    pub tables: Vec<TableProvenance>,
}

/// One result table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableProvenance {
    /// Name without `.parquet`.
    pub name: String,
    /// Rows.
    pub rows: i64,
    /// BLAKE3 of the file.
    pub blake3: String,
}
