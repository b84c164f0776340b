//! `manifest.json`: which cells a run has and how each ended.

use crate::error::{Error, Result};
use crate::json;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// Version of the manifest that is read.
const SCHEMA: u64 = 1;

/// The manifest of a results directory.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// The folder that holds it.
    pub dir: PathBuf,
    /// The command that made the results.
    pub command: Vec<String>,
    /// Every cell of the run, in the run's order.
    pub cells: Vec<Entry>,
}

/// One cell of the run.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its folder.
    pub path: PathBuf,
    /// Trace id.
    pub trace: String,
    /// Variant name.
    pub variant: String,
    /// Seed.
    pub seed: i64,
    /// `done`, `failed` or `skipped`.
    pub state: String,
    /// Why it failed or was skipped.
    pub why: Option<String>,
}

impl Manifest {
    /// Reads the manifest of `dir`, or of its `results` folder.
    ///
    /// # Errors
    /// [`Error::NotResults`] if there is none, else what is wrong with it.
    pub(crate) fn open(dir: &Path) -> Result<Manifest> {
        let dir = [dir.join("results"), dir.to_path_buf()]
            .into_iter()
            .find(|d| d.join("manifest.json").is_file())
            .ok_or_else(|| Error::NotResults { path: dir.to_path_buf() })?;
        let path = dir.join("manifest.json");
        let document = json::read(&path)?;
        let Some(Value::Array(cells)) = document.get("cells") else {
            // Trace directories have a manifest.json as well; saying "not results" helps more than "no cells".
            return Err(Error::NotResults { path: dir });
        };
        json::check_schema(&path, &document, SCHEMA)?;
        let cells = cells.iter().map(|c| Entry::read(&dir, &path, c)).collect::<Result<Vec<_>>>()?;
        Ok(Manifest { command: json::texts(&document, "command"), dir, cells })
    }
}

impl Entry {
    fn read(dir: &Path, path: &Path, cell: &Value) -> Result<Entry> {
        let relative = PathBuf::from(json::text(path, cell, "path")?);
        if !relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(json::bad(path, format!("cell path `{}` leads out of the results", relative.display())));
        }
        // Relative to the folder of the manifest, or to the output folder above it.
        let folder = [dir.join(&relative), dir.join("..").join(&relative)].into_iter().find(|d| d.is_dir());
        Ok(Entry {
            path: folder.unwrap_or_else(|| dir.join(&relative)),
            trace: json::text(path, cell, "trace")?,
            variant: json::text(path, cell, "variant")?,
            seed: cell
                .get("seed")
                .and_then(Value::as_i64)
                .ok_or_else(|| json::bad(path, "`seed` is no number".into()))?,
            state: json::text(path, cell, "state")?,
            why: json::optional_text(cell, "why"),
        })
    }
}
