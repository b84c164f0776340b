//! Opening a trace directory.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::activity::ActivityReader;
use super::manifest::{FORMAT, MANIFEST_FILE, Manifest, PartInfo};
use super::reader::TableReader;
use super::source::hash_file;
use crate::error::{Doing, Error, Result};
use crate::schema::{
    Blocks, Counters, Faults, Files, Processes, Rejects, SCHEMA_VERSION, Syscalls, TABLES, Table, Vmstats,
};

/// A manifest longer than this is not read.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// A finished trace, verified.
#[derive(Clone, Debug)]
pub struct TraceDir {
    path: PathBuf,
    manifest: Manifest,
}

impl TraceDir {
    /// Open a trace directory and verify every part's length and hash.
    ///
    /// # Errors
    /// If it is not a trace directory, of a newer version, or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let trace = Self::open_unverified(path)?;
        for part in &trace.manifest.parts {
            let file = trace.path.join(&part.file);
            if hash_file(&file)? != part.blake3 {
                return Err(Error::Damaged { path: file, why: "its hash is not the manifest's".into() });
            }
        }
        Ok(trace)
    }

    /// Open a trace directory, checking the manifest and the parts' presence and length, but no hashes: for looking
    /// at the manifest only.
    ///
    /// # Errors
    /// As [`TraceDir::open`].
    pub fn open_unverified(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let manifest = read_manifest(&path)?;
        for part in &manifest.parts {
            check_part(&path, part, manifest.sources.len())?;
        }
        Ok(Self { path, manifest })
    }

    /// True if the path is a directory with a manifest of ours (of any version, maybe damaged otherwise).
    pub fn is_trace(path: impl AsRef<Path>) -> bool {
        match read_manifest(path.as_ref()) {
            Ok(_) | Err(Error::NewerSchema { .. }) => true,
            Err(_) => false,
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Rows of a table, in time order (tables without times: in the order in which they were written).
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn rows<T: Table>(&self) -> Result<TableReader<T>> {
        TableReader::open(&self.path, &self.manifest)
    }

    /// System calls in time order.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn syscalls(&self) -> Result<TableReader<Syscalls>> {
        self.rows()
    }
    /// System calls and page touches in one stream, in time order.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn activity(&self) -> Result<ActivityReader> {
        ActivityReader::open(self)
    }
    /// Block events in time order.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn blocks(&self) -> Result<TableReader<Blocks>> {
        self.rows()
    }
    /// vmstat rows; several logs are merged by time.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn vmstats(&self) -> Result<TableReader<Vmstats>> {
        self.rows()
    }
    /// Page touches in time order.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn faults(&self) -> Result<TableReader<Faults>> {
        self.rows()
    }
    /// Processes.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn processes(&self) -> Result<TableReader<Processes>> {
        self.rows()
    }
    /// Files.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn files(&self) -> Result<TableReader<Files>> {
        self.rows()
    }
    /// Totals and averages of summaries.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn counters(&self) -> Result<TableReader<Counters>> {
        self.rows()
    }
    /// Rejected lines; [`TableReader::source`] tells of which source.
    ///
    /// # Errors
    /// If a part cannot be opened.
    pub fn rejects(&self) -> Result<TableReader<Rejects>> {
        self.rows()
    }
}

fn not_a_trace(path: &Path, why: impl Into<String>) -> Error {
    Error::NotATrace { path: path.to_path_buf(), why: why.into() }
}

fn read_manifest(dir: &Path) -> Result<Manifest> {
    let file = dir.join(MANIFEST_FILE);
    let meta = match fs::metadata(&file) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let why = if dir.is_dir() { "it has no manifest.json" } else { "no such directory" };
            return Err(not_a_trace(dir, why));
        }
        other => other.map_err(|e| Error::io(&file, Doing::Reading, e))?,
    };
    // A manifest that is a pipe or a device would block or never end.
    if !meta.is_file() || meta.len() > MAX_MANIFEST_BYTES {
        return Err(not_a_trace(dir, "its manifest.json is not an ordinary file of reasonable size"));
    }
    let bytes = fs::read(&file).map_err(|e| Error::io(&file, Doing::Reading, e))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| Error::Damaged { path: file.clone(), why: format!("not JSON: {e}") })?;
    if value.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
        return Err(not_a_trace(dir, "its manifest.json is not of kreplay"));
    }
    let found = value.get("schema_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found > u64::from(SCHEMA_VERSION) {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        return Err(Error::NewerSchema { path: dir.to_path_buf(), found, supported: SCHEMA_VERSION });
    }
    serde_json::from_value(value).map_err(|e| Error::Damaged { path: file, why: e.to_string() })
}

/// The part lies inside the directory, is an ordinary file of the right length, and belongs to a table and a source.
fn check_part(dir: &Path, part: &PartInfo, sources: usize) -> Result<()> {
    let inside = Path::new(&part.file).components().all(|c| matches!(c, Component::Normal(_)));
    if !inside || !TABLES.contains(&part.table.as_str()) || part.source >= sources {
        let why = format!("impossible entry for part {:?}", part.file);
        return Err(Error::Damaged { path: dir.join(MANIFEST_FILE), why });
    }
    let file = dir.join(&part.file);
    let damaged = |why: String| Error::Damaged { path: file.clone(), why };
    let meta = fs::symlink_metadata(&file).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => damaged("it is missing".into()),
        _ => Error::io(&file, Doing::Reading, e),
    })?;
    if !meta.is_file() {
        return Err(damaged("it is not an ordinary file".into()));
    }
    if meta.len() != part.bytes {
        return Err(damaged(format!("it has {} bytes, the manifest says {}", meta.len(), part.bytes)));
    }
    Ok(())
}
