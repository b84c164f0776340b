//! A cell as the figures of claims see it: its tables, each read once and only if asked for.

use crate::cell::CellData;
use crate::error::Result;
use crate::manifest::Entry;
use std::cell::OnceCell;

/// Points in time.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub name: String,
    pub time_ns: i64,
}

/// A finding of the run.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub time_ns: i64,
    pub kind: String,
    pub text: String,
}

/// Columns of `io.parquet`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Io {
    pub q_ns: Vec<i64>,
    pub d_ns: Vec<i64>,
    pub c_ns: Vec<i64>,
    pub read: Vec<bool>,
    pub len_bytes: Vec<i64>,
    pub task: Vec<i64>,
    pub swap: Vec<bool>,
    pub meta: Vec<bool>,
    pub passed: Vec<i64>,
    pub tail: Vec<bool>,
}

/// Columns of `calls.parquet`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub task: Vec<i64>,
    pub line: Vec<i64>,
    pub start_ns: Vec<i64>,
    pub dur_ns: Vec<i64>,
    pub len_bytes: Vec<Option<i64>>,
    pub ops: Vec<String>,
    pub op: Vec<u32>,
    /// Time in disk reads, data and metadata.
    pub read_ns: Vec<i64>,
    /// Time in disk reads of metadata.
    pub meta_ns: Vec<i64>,
}

/// A cell and what was read of it.
pub(crate) struct View {
    pub cell: CellData,
    config: Vec<(String, String)>,
    marks: OnceCell<Vec<Mark>>,
    events: OnceCell<Vec<Event>>,
    io: OnceCell<Io>,
    calls: OnceCell<Calls>,
    samples: OnceCell<Vec<(&'static str, Vec<i64>)>>,
}

/// Columns of `samples.parquet` that figures use.
pub(crate) const SAMPLES: [&str; 13] = [
    "time_ns",
    "swpd_kib",
    "free_kib",
    "buff_kib",
    "cache_kib",
    "si_kib_s",
    "so_kib_s",
    "bi_kib_s",
    "bo_kib_s",
    "active_kib",
    "inactive_kib",
    "dentries",
    "inodes",
];

/// What is kept in `cell`, made on the first call.
fn kept<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}

impl View {
    /// Opens a finished cell.
    pub(crate) fn open(entry: &Entry) -> Result<View> {
        let (cell, provenance) = CellData::open(entry)?;
        Ok(View {
            cell,
            config: provenance.config,
            marks: OnceCell::new(),
            events: OnceCell::new(),
            io: OnceCell::new(),
            calls: OnceCell::new(),
            samples: OnceCell::new(),
        })
    }

    /// A key of the resolved configuration, as text.
    pub(crate) fn config(&self, key: &str) -> Option<&str> {
        self.config.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    pub(crate) fn marks(&self) -> Result<&[Mark]> {
        kept(&self.marks, || {
            let frame = self.cell.table("marks", &["name", "time_ns"])?;
            let (names, times) = (frame.texts("name")?, frame.whole("time_ns")?);
            let mut marks: Vec<Mark> = names
                .into_iter()
                .zip(times)
                .map(|(name, time_ns)| Mark { name: name.unwrap_or_default(), time_ns })
                .collect();
            marks.sort_by_key(|m| m.time_ns);
            Ok(marks)
        })
        .map(Vec::as_slice)
    }

    /// Time of the first mark of that name.
    pub(crate) fn mark(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.marks()?.iter().find(|m| m.name == name).map(|m| m.time_ns))
    }

    pub(crate) fn events(&self) -> Result<&[Event]> {
        kept(&self.events, || {
            let frame = self.cell.table("events", &["time_ns", "kind", "text"])?;
            let (times, kinds, texts) = (frame.whole("time_ns")?, frame.texts("kind")?, frame.texts("text")?);
            Ok(times
                .into_iter()
                .zip(kinds)
                .zip(texts)
                .map(|((time_ns, kind), text)| Event {
                    time_ns,
                    kind: kind.unwrap_or_default(),
                    text: text.unwrap_or_default(),
                })
                .collect())
        })
        .map(Vec::as_slice)
    }

    pub(crate) fn io(&self) -> Result<&Io> {
        kept(&self.io, || {
            let columns = ["q_ns", "d_ns", "c_ns", "dir", "len_bytes", "task", "kind", "passed", "tail"];
            let frame = self.cell.table("io", &columns)?;
            let is = |name: &str, wanted: &str| -> Result<Vec<bool>> {
                let split = frame.split(name)?;
                Ok(split.of_row.iter().map(|&i| split.labels[i as usize] == wanted).collect())
            };
            // A request that a daemon queued has no task.
            let task = frame.ints("task")?.into_iter().map(|t| t.unwrap_or(-1)).collect();
            Ok(Io {
                q_ns: frame.whole("q_ns")?,
                d_ns: frame.whole("d_ns")?,
                c_ns: frame.whole("c_ns")?,
                read: is("dir", "R")?,
                len_bytes: frame.whole("len_bytes")?,
                task,
                swap: is("kind", "swap")?,
                meta: is("kind", "meta")?,
                passed: frame.whole("passed")?,
                tail: frame.bools("tail")?,
            })
        })
    }

    pub(crate) fn calls(&self) -> Result<&Calls> {
        kept(&self.calls, || {
            let frame = self
                .cell
                .table("calls", &["task", "line", "start_ns", "dur_ns", "len_bytes", "op", "t_read_ns", "t_meta_ns"])?;
            let split = frame.split("op")?;
            let (data, meta) = (frame.whole("t_read_ns")?, frame.whole("t_meta_ns")?);
            Ok(Calls {
                task: frame.whole("task")?,
                line: frame.whole("line")?,
                start_ns: frame.whole("start_ns")?,
                dur_ns: frame.whole("dur_ns")?,
                len_bytes: frame.ints("len_bytes")?,
                ops: split.labels,
                op: split.of_row,
                read_ns: data.iter().zip(&meta).map(|(a, b)| a + b).collect(),
                meta_ns: meta,
            })
        })
    }

    /// A column of the samples, one of [`SAMPLES`].
    pub(crate) fn samples(&self, column: &str) -> Result<&[i64]> {
        let columns = kept(&self.samples, || {
            let frame = self.cell.table("samples", &SAMPLES)?;
            SAMPLES
                .iter()
                .map(|c| Ok((*c, frame.ints(c)?.into_iter().map(|v| v.unwrap_or(0)).collect())))
                .collect::<Result<Vec<_>>>()
        })?;
        Ok(columns.iter().find(|(name, _)| *name == column).map_or(&[][..], |(_, values)| values))
    }

    /// Indices of the tasks whose client, or else name, begins so; all foreground tasks for an empty text.
    pub(crate) fn tasks(&self, beginning: &str) -> Vec<i64> {
        let named = |t: &&crate::cell::Task| {
            if beginning.is_empty() {
                !t.background
            } else {
                t.client.as_deref().unwrap_or(&t.name).starts_with(beginning)
            }
        };
        self.cell.tasks.iter().filter(named).map(|t| t.task).collect()
    }
}
