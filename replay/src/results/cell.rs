//! `cell.json`: what a cell is and what its folder holds.

use super::error::{Result, ResultError};
use super::table_file::TableInfo;
use crate::config::Config;
use crate::model::ModelLine;
use crate::program::{Coverage, Program};
use crate::variant::NamePart;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

/// Version of `cell.json` and of the tables.
pub const SCHEMA: u32 = 1;
/// Name of the file.
pub const CELL_FILE: &str = "cell.json";
/// A longer `cell.json` is not read, bytes.
const MAX_CELL_BYTES: u64 = 16 << 20;

/// What identifies a cell, known before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellHeader {
    /// Content hash of everything that decides the result, hex; see [`crate::matrix::CellSpec::id`].
    pub id: String,
    /// Content hash of the trace, hex.
    pub trace: String,
    /// Where the trace directory was, for overlays in reports.
    pub trace_path: Option<String>,
    /// Variant name.
    pub variant: String,
    /// What the parts of that name stand for, in words.
    #[serde(default)]
    pub parts: Vec<NamePart>,
    /// Seed of the simulation's random choices.
    pub seed: u64,
    /// Pacing in words.
    pub pacing: String,
    /// The resolved configuration.
    pub config: Config,
    /// Its hash.
    pub config_hash: String,
    /// Version of the code that simulated.
    pub code_version: String,
    /// What the variant was checked against.
    pub checked_against: Vec<String>,
    /// What is modelled of it, what was compared, the error; see [`crate::model`].
    #[serde(default)]
    pub model: Vec<ModelLine>,
    /// Choices that rest on conclusions.
    pub assumptions: Vec<String>,
}

/// The whole of `cell.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellInfo {
    /// Version of this document.
    pub schema: u32,
    /// Identity.
    #[serde(flatten)]
    pub header: CellHeader,
    /// How much of the program rests on assumptions.
    pub coverage: Coverage,
    /// Tables by name.
    pub tables: IndexMap<String, TableInfo>,
    /// Tasks in the program.
    pub tasks: usize,
    /// All foreground tasks ended.
    pub finished: bool,
}

impl CellInfo {
    pub(super) fn new(
        header: CellHeader,
        program: &Program,
        tables: IndexMap<String, TableInfo>,
        finished: bool,
    ) -> Self {
        let coverage = program.coverage.clone();
        Self { schema: SCHEMA, header, coverage, tables, tasks: program.tasks.len(), finished }
    }

    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(CELL_FILE);
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|e| ResultError::Encode { path: path.clone(), why: e.to_string() })?;
        text.push('\n');
        let mut file = File::create_new(&path).map_err(|e| ResultError::io("create", &path, e))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| ResultError::io("write", &path, e))
    }

    /// Reads the `cell.json` of a folder.
    ///
    /// # Errors
    /// If there is none, or it is of another version or damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(CELL_FILE);
        let bad = |why: String| ResultError::NotOurs { path: path.clone(), why };
        let length = fs::metadata(&path).map_err(|e| ResultError::io("read", &path, e))?.len();
        if length > MAX_CELL_BYTES {
            return Err(bad(format!("{length} bytes are too many for it")));
        }
        let text = fs::read_to_string(&path).map_err(|e| ResultError::io("read", &path, e))?;
        let info: Self = serde_json::from_str(&text).map_err(|e| bad(format!("not understood: {e}")))?;
        if info.schema != SCHEMA {
            return Err(bad(format!("version {} is not {SCHEMA}", info.schema)));
        }
        Ok(info)
    }

    /// Compares each table's bytes with the hash kept of it.
    ///
    /// # Errors
    /// If a table is missing, unreadable or changed.
    pub fn verify(&self, dir: &Path) -> Result<()> {
        for (name, info) in &self.tables {
            let path = dir.join(format!("{name}.parquet"));
            if hash_file(&path)? != info.blake3 {
                return Err(ResultError::NotOurs { path, why: format!("its hash is not the one in {CELL_FILE}") });
            }
        }
        Ok(())
    }
}

fn hash_file(path: &Path) -> Result<String> {
    let fail = |e| ResultError::io("read", path, e);
    let mut file = File::open(path).map_err(fail)?;
    let mut hash = blake3::Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer).map_err(fail)? {
            0 => return Ok(hash.finalize().to_hex().to_string()),
            n => hash.update(&buffer[..n]),
        };
    }
}
