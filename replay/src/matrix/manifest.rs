//! `manifest.json`: which cells a command had, and how each ended.

use super::plan::Plan;
use crate::results::ResultError;
use indexmap::IndexMap;
use serde::Serialize;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Name of the manifest in the results folder.
pub const MANIFEST_FILE: &str = "manifest.json";
const SCHEMA: u32 = 1;

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellState {
    /// Its folder is complete.
    Done,
    /// The simulation could not run, panicked, or its results could not be written.
    Failed,
    /// Not run: the command was stopped before.
    Skipped,
}

/// One cell's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellOutcome {
    /// Folder, relative to the manifest's.
    pub path: String,
    /// Trace id.
    pub trace: String,
    /// Variant.
    pub variant: String,
    /// Seed.
    pub seed: u64,
    /// How it ended.
    pub state: CellState,
    /// Why it failed or was skipped.
    pub why: Option<String>,
    /// It was there already and was not simulated again.
    #[serde(skip)]
    pub reused: bool,
}

#[derive(Serialize)]
struct Manifest<'a> {
    schema: u32,
    command: &'a [String],
    cells: &'a [CellOutcome],
    recorded: IndexMap<&'a str, String>,
}

/// Writes the manifest by rename.
pub(super) fn write(dir: &Path, plan: &Plan, command: &[String], cells: &[CellOutcome]) -> Result<(), ResultError> {
    let recorded = plan
        .traces
        .iter()
        .filter_map(|t| Some((t.program.trace_id.as_str(), t.path.as_ref()?.display().to_string())))
        .collect();
    let path = dir.join(MANIFEST_FILE);
    let manifest = Manifest { schema: SCHEMA, command, cells, recorded };
    let mut text = serde_json::to_string_pretty(&manifest)
        .map_err(|e| ResultError::Encode { path: path.clone(), why: e.to_string() })?;
    text.push('\n');
    let fail = |e| ResultError::io("write", &path, e);
    let mut file = tempfile::Builder::new()
        .prefix(crate::results::TEMP_PREFIX)
        .permissions(Permissions::from_mode(0o666)) // as an ordinary file: less the user's umask
        .tempfile_in(dir)
        .map_err(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    file.persist(&path).map_err(|e| fail(e.error))?;
    Ok(())
}
