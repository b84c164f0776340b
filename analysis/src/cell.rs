//! One cell: its `cell.json`, its small tables, and access to its large ones.

use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::json;
use crate::manifest::Entry;
use crate::model::{CellProvenance, Definition, TableProvenance, VariantModel};
use crate::tables::{Calls, Evictions, Requests};
use indexmap::IndexMap;
use serde_json::Value;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Version of `cell.json` that is read.
const SCHEMA: u64 = 1;

/// What a task's time went to, in the order of the `t_*_ns` columns of docs/RESULTS.md.
pub(crate) const CAUSES: [&str; 14] = [
    "t_cpu_ns",
    "t_runq_ns",
    "t_pagelock_ns",
    "t_inode_ns",
    "t_read_ns",
    "t_meta_ns",
    "t_slot_ns",
    "t_throttle_ns",
    "t_reclaim_ns",
    "t_swapin_ns",
    "t_sync_ns",
    "t_net_ns",
    "t_sleep_ns",
    "t_dep_ns",
];

/// A row of `clients.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Task {
    /// Index.
    pub task: i64,
    /// Thread id in the recording.
    pub tid: i64,
    /// Process name.
    pub name: String,
    /// Client the task stands for.
    pub client: Option<String>,
    /// The run does not wait for it.
    pub background: bool,
    /// First operation, nanoseconds.
    pub start_ns: i64,
    /// End; `None` if it did not finish.
    pub end_ns: Option<i64>,
    /// Bytes it read.
    pub bytes_read: i64,
    /// Bytes it wrote.
    pub bytes_written: i64,
    /// Computing between calls, as recorded.
    pub think_ns: i64,
    /// One value a cause of [`CAUSES`].
    pub causes_ns: [i64; CAUSES.len()],
    /// Killed for lack of memory.
    pub killed: bool,
}

impl Task {
    /// Name for tables: with the thread id, unless the name has it.
    pub(crate) fn shown_name(&self) -> String {
        let tid = self.tid.to_string();
        if self.name.contains(&tid) { self.name.clone() } else { format!("{} ({tid})", self.name) }
    }
}

/// A finished cell.
#[derive(Clone, Debug)]
pub(crate) struct CellData {
    dir: PathBuf,
    hashes: IndexMap<String, String>,
    /// Name in tables: the variant, with the seed if there are several.
    pub label: String,
    /// Variant.
    pub variant: String,
    /// Seed.
    pub seed: i64,
    /// Trace directory, as the replay knew it.
    pub trace_path: Option<PathBuf>,
    /// The run went on to the end of its foreground tasks.
    pub finished: bool,
    /// Tasks.
    pub tasks: Vec<Task>,
    counters: IndexMap<String, i64>,
    calls: OnceCell<Calls>,
    requests: OnceCell<Requests>,
}

impl CellData {
    /// Opens a finished cell and reads its small tables; returns it with its provenance.
    ///
    /// # Errors
    /// What is wrong with `cell.json` or a table.
    pub(crate) fn open(entry: &Entry) -> Result<(CellData, CellProvenance)> {
        let path = entry.path.join("cell.json");
        let document = json::read(&path)?;
        json::check_schema(&path, &document, SCHEMA)?;
        let provenance = provenance(entry, &document);
        let hashes = provenance.tables.iter().map(|t| (t.name.clone(), t.blake3.clone())).collect();
        let mut cell = CellData {
            dir: entry.path.clone(),
            hashes,
            label: entry.variant.clone(),
            variant: entry.variant.clone(),
            seed: entry.seed,
            trace_path: json::optional_text(&document, "trace_path").map(PathBuf::from),
            finished: provenance.finished.unwrap_or(true),
            tasks: Vec::new(),
            counters: IndexMap::new(),
            calls: OnceCell::new(),
            requests: OnceCell::new(),
        };
        cell.tasks = cell.read_tasks()?;
        cell.counters = cell.read_counters()?;
        Ok((cell, provenance))
    }

    /// Reads some columns of a table, after its hash was checked.
    ///
    /// # Errors
    /// [`Error::MissingTable`], [`Error::Damaged`] or [`Error::Column`].
    pub(crate) fn table(&self, name: &str, columns: &[&str]) -> Result<Frame> {
        let path = self.dir.join(format!("{name}.parquet"));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(Error::MissingTable { path }),
            Err(source) => return Err(Error::Io { path, source }),
        };
        if let Some(expected) = self.hashes.get(name).filter(|h| !h.is_empty())
            && blake3::hash(&bytes).to_hex().as_str() != expected
        {
            return Err(Error::Damaged { path, why: "its hash is not the one in cell.json".to_string() });
        }
        Frame::from_bytes(&path, bytes, columns)
    }

    /// The finished operations; read at the first use.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub(crate) fn calls(&self) -> Result<&Calls> {
        if self.calls.get().is_none() {
            let read = Calls::read(self)?;
            let _ = self.calls.set(read);
        }
        Ok(self.calls.get_or_init(Calls::default))
    }

    /// The block requests; read at the first use.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub(crate) fn requests(&self) -> Result<&Requests> {
        if self.requests.get().is_none() {
            let read = Requests::read(self)?;
            let _ = self.requests.set(read);
        }
        Ok(self.requests.get_or_init(Requests::default))
    }

    /// What reclaim threw out; `None` of results that were made before there was such a table.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub(crate) fn evictions(&self) -> Result<Option<Evictions>> {
        self.hashes.contains_key("evictions").then(|| Evictions::read(self)).transpose()
    }

    /// A counter of `counters.parquet`, if the run counted it.
    pub(crate) fn counter(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }

    /// The tasks that the run waits for.
    pub(crate) fn foreground(&self) -> impl Iterator<Item = &Task> + Clone {
        self.tasks.iter().filter(|t| !t.background)
    }

    /// When the first foreground task began, nanoseconds from the trace's time 0, which a log that begins earlier (vmstat's)
    /// may have set.
    pub(crate) fn begin_ns(&self) -> i64 {
        let began = self.foreground().filter(|t| t.end_ns.is_some() || t.start_ns > 0);
        began.map(|t| t.start_ns).min().unwrap_or(0)
    }

    /// Simulated time from the beginning of the first foreground task until the last one ended, seconds.
    pub(crate) fn elapsed_s(&self) -> Option<f64> {
        self.counter("elapsed_ns").map(|ns| seconds(ns - self.begin_ns()))
    }

    fn read_tasks(&self) -> Result<Vec<Task>> {
        let mut columns = vec![
            "task",
            "tid",
            "name",
            "client",
            "background",
            "start_ns",
            "end_ns",
            "bytes_read",
            "bytes_written",
            "think_ns",
            "killed",
        ];
        columns.extend(CAUSES);
        let frame = self.table("clients", &columns)?;
        let (names, clients) = (frame.texts("name")?, frame.texts("client")?);
        let (background, killed) = (frame.bools("background")?, frame.bools("killed")?);
        let (task, tid, start, end) =
            (frame.whole("task")?, frame.whole("tid")?, frame.ints("start_ns")?, frame.ints("end_ns")?);
        let (read, written, think) =
            (frame.whole("bytes_read")?, frame.whole("bytes_written")?, frame.whole("think_ns")?);
        let causes = CAUSES.iter().map(|c| frame.whole(c)).collect::<Result<Vec<_>>>()?;
        Ok((0..frame.rows())
            .map(|i| Task {
                task: task[i],
                tid: tid[i],
                name: names[i].clone().unwrap_or_default(),
                client: clients[i].clone(),
                background: background[i],
                start_ns: start[i].unwrap_or(0),
                end_ns: end[i],
                bytes_read: read[i],
                bytes_written: written[i],
                think_ns: think[i],
                causes_ns: std::array::from_fn(|c| causes[c][i]),
                killed: killed[i],
            })
            .collect())
    }

    fn read_counters(&self) -> Result<IndexMap<String, i64>> {
        let frame = self.table("counters", &["name", "value"])?;
        let (names, values) = (frame.texts("name")?, frame.ints("value")?);
        Ok(names.into_iter().zip(values).filter_map(|(n, v)| Some((n?, v?))).collect())
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Nanoseconds as milliseconds.
pub(crate) fn millis(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Bytes as MiB.
pub(crate) fn mib(bytes: i64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The provenance of a cell whose `cell.json` is `document`.
fn provenance(entry: &Entry, document: &Value) -> CellProvenance {
    let tables = match document.get("tables") {
        Some(Value::Object(tables)) => tables
            .iter()
            .map(|(name, t)| TableProvenance {
                name: name.clone(),
                rows: t.get("rows").and_then(Value::as_i64).unwrap_or(0),
                blake3: json::optional_text(t, "blake3").unwrap_or_default(),
            })
            .collect(),
        _ => Vec::new(),
    };
    CellProvenance {
        pacing: json::optional_text(document, "pacing"),
        finished: document.get("finished").and_then(Value::as_bool),
        tasks: document.get("tasks").and_then(Value::as_i64),
        config_hash: json::optional_text(document, "config_hash"),
        code_version: json::optional_text(document, "code_version"),
        checked_against: json::texts(document, "checked_against"),
        assumptions: json::texts(document, "assumptions"),
        parts: parts(document),
        coverage: json::flatten(document.get("coverage")),
        config: json::flatten(document.get("config")),
        tables,
        ..bare_provenance(entry)
    }
}

/// What the parts of the variant's name stand for; results of before they were kept have none.
fn parts(document: &Value) -> Vec<Definition> {
    let part = |p: &Value| Some(Definition::new(&json::optional_text(p, "name")?, &json::optional_text(p, "about")?));
    document.get("parts").and_then(Value::as_array).map_or_else(Vec::new, |all| all.iter().filter_map(part).collect())
}

/// What the parts of the names of some cells' variants stand for; see [`crate::legend::parts`].
pub(crate) fn parts_of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Result<Vec<Definition>> {
    let mut of: IndexMap<&str, Vec<Definition>> = IndexMap::new();
    for entry in entries {
        if !of.contains_key(entry.variant.as_str()) {
            of.insert(&entry.variant, parts(&json::read(&entry.path.join("cell.json"))?));
        }
    }
    Ok(crate::legend::parts(of.values().map(Vec::as_slice)))
}

/// What `cell.json` says of the cell's model.
pub(crate) fn model_of(entry: &Entry) -> Result<VariantModel> {
    let path = entry.path.join("cell.json");
    let document = json::read(&path)?;
    json::check_schema(&path, &document, SCHEMA)?;
    let lines = document.get("model").cloned().unwrap_or_default();
    Ok(VariantModel {
        variant: entry.variant.clone(),
        // Results of before the lines were kept have none.
        lines: serde_json::from_value(lines).unwrap_or_default(),
        checked: json::texts(&document, "checked_against"),
    })
}

/// The models of some cells, each variant once.
pub(crate) fn models_of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Result<Vec<VariantModel>> {
    let mut models: Vec<VariantModel> = Vec::new();
    for entry in entries {
        if models.iter().all(|m| m.variant != entry.variant) {
            models.push(model_of(entry)?);
        }
    }
    Ok(models)
}

/// Models, each variant once.
pub(crate) fn each_once<'m>(all: impl Iterator<Item = &'m VariantModel>) -> Vec<VariantModel> {
    let mut models: Vec<VariantModel> = Vec::new();
    for model in all {
        if models.iter().all(|m| m.variant != model.variant) {
            models.push(model.clone());
        }
    }
    models
}

/// What the manifest alone says of a cell.
pub(crate) fn bare_provenance(entry: &Entry) -> CellProvenance {
    CellProvenance {
        trace: entry.trace.clone(),
        variant: entry.variant.clone(),
        seed: entry.seed,
        state: entry.state.clone(),
        why: entry.why.clone(),
        ..CellProvenance::default()
    }
}

/// The last component of a path, for people.
pub(crate) fn short_name(path: &Path) -> Option<String> {
    path.file_name().map(|n| n.to_string_lossy().into_owned())
}
