//! Where the figures of a report came from.

use super::Definition;
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
    /// What the model of each variant covers, what it was held against, and the error: once a variant.
    #[serde(default)]
    pub models: Vec<VariantModel>,
    /// Sources, machine and clocks of each recording, as `key` and `value` lines.
    pub recordings: Vec<(String, String)>,
}

/// What is known of a variant's model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantModel {
    /// Variant.
    pub variant: String,
    /// The rows of docs/MODEL.md about it: the whole kernel first, then its mechanisms.
    pub lines: Vec<ModelLine>,
    /// What its own file says that it was checked against.
    pub checked: Vec<String>,
}

/// One row: a mechanism, or the kernel as a whole ([`ModelLine::WHOLE`]). Texts that the document lacks are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelLine {
    /// Which part of the kernel or machine.
    pub part: String,
    /// The rule that the variant has there, in a few words.
    pub name: String,
    /// What is modelled.
    pub modelled: String,
    /// What is not, or is reduced.
    pub missing: String,
    /// What it was checked against.
    pub checked: String,
    /// The error found, with its unit.
    pub error: String,
    /// Of a whole kernel: the median error of the times of runs, percent, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_error_pct: Option<f64>,
}

impl ModelLine {
    /// Part of the lines about whole kernels.
    pub const WHOLE: &'static str = "whole kernel";

    /// What was compared, with the error; of a line about a whole kernel.
    fn compared(&self) -> String {
        let error = if self.error.is_empty() { String::new() } else { format!(": error {}", self.error) };
        // What is missing of a whole kernel is its own comparison: then the line is about the one that it builds on.
        let itself = if self.missing.is_empty() { String::new() } else { format!("{}: ", self.missing) };
        format!("{itself}{}{error}", self.checked)
    }
}

impl VariantModel {
    /// What the variant was held against: whole recorded runs with the error found, and what its own file says.
    pub fn held_against(&self) -> Vec<String> {
        let whole = self.lines.iter().find(|l| l.part == ModelLine::WHOLE);
        let mut said: Vec<String> = whole.map(ModelLine::compared).into_iter().collect();
        // The document's own line says more than a reference to it.
        let own = self.checked.iter().filter(|c| whole.is_none() || !c.contains("docs/MODEL.md"));
        said.extend(own.cloned());
        said
    }

    /// The model's own error on the time of a run: the median over recorded runs, percent; `None` if no runs were compared.
    pub fn time_error_pct(&self) -> Option<f64> {
        self.lines.iter().find(|l| l.part == ModelLine::WHOLE)?.time_error_pct
    }

    /// Nothing that a real kernel did was ever compared with it.
    pub fn is_unchecked(&self) -> bool {
        self.held_against().iter().all(|c| c.starts_with("nothing recorded"))
    }
}

/// Where the figures of one cell came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellProvenance {
    /// Trace id.
    pub trace: String,
    /// Variant.
    pub variant: String,
    /// What the parts of its name stand for, as their files say it: the kernel first, then the profiles on top of it.
    #[serde(default)]
    pub parts: Vec<Definition>,
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
