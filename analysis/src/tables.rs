//! The large result tables of a cell as plain vectors, read once and shared by all metrics.

use crate::cell::{CAUSES, CellData};
use crate::error::Result;

/// Stands for "no place in a file" and "no recorded duration".
pub(crate) const NONE: i64 = i64::MIN;

/// Columns of causes that are read at a time: each reading decodes the file anew, each column takes memory.
const GROUP: usize = 5;

/// Operations of a replay that are no calls to the kernel.
pub(crate) const NO_CALLS: [&str; 4] = ["cpu", "await", "external", "sleep"];

/// `calls.parquet` by columns; one entry a finished operation, in the file's order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// Task.
    pub task: Vec<u32>,
    /// Input line, 0 where there is none.
    pub line: Vec<u32>,
    /// Index into [`Calls::ops`].
    pub op: Vec<u16>,
    /// The kinds of operation, sorted.
    pub ops: Vec<String>,
    /// Index into [`Calls::files`].
    pub file: Vec<u32>,
    /// Paths, sorted; the first is empty if some operation has no file.
    pub files: Vec<String>,
    /// First byte, or [`NONE`].
    pub offset: Vec<i64>,
    /// Bytes; 0 if the operation has no length.
    pub len: Vec<i64>,
    /// Start, nanoseconds.
    pub start_ns: Vec<i64>,
    /// Duration, nanoseconds.
    pub dur_ns: Vec<i64>,
    /// Every part of a duration that is not the task's own work: call, index into [`CAUSES`], nanoseconds. By call.
    pub waits: Vec<Wait>,
}

/// A part of a call's duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Index of the call.
    pub call: u32,
    /// Index into [`CAUSES`].
    pub cause: u8,
    /// How long.
    pub ns: i64,
}

impl Calls {
    /// Reads the table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(cell: &CellData) -> Result<Calls> {
        // In groups, so that never more than a few columns are there twice.
        let frame = cell.table("calls", &["op", "file", "task", "line"])?;
        let (op, file) = (frame.split("op")?, frame.split("file")?);
        let small = |name: &str| -> Result<Vec<u32>> {
            Ok(frame.ints(name)?.into_iter().map(|v| u32::try_from(v.unwrap_or(0)).unwrap_or(u32::MAX)).collect())
        };
        let (task, line) = (small("task")?, small("line")?);
        let frame = cell.table("calls", &["offset_bytes", "len_bytes", "start_ns", "dur_ns"])?;
        let column = |name: &str, none: i64| -> Result<Vec<i64>> {
            Ok(frame.ints(name)?.into_iter().map(|v| v.unwrap_or(none)).collect())
        };
        let mut calls = Calls {
            task,
            line,
            op: op.of_row.iter().map(|o| *o as u16).collect(),
            ops: op.labels,
            file: file.of_row,
            files: file.labels,
            offset: column("offset_bytes", NONE)?,
            len: column("len_bytes", 0)?,
            start_ns: column("start_ns", 0)?,
            dur_ns: column("dur_ns", 0)?,
            waits: Vec::new(),
        };
        drop(frame);
        // The first cause is the task's own work.
        for (group, names) in CAUSES[1..].chunks(GROUP).enumerate() {
            let frame = cell.table("calls", names)?;
            for (i, name) in names.iter().enumerate() {
                let cause = (1 + group * GROUP + i) as u8;
                let found = frame.ints(name)?.into_iter().enumerate().filter(|(_, ns)| ns.is_some_and(|ns| ns > 0));
                calls.waits.extend(found.map(|(call, ns)| Wait { call: call as u32, cause, ns: ns.unwrap_or(0) }));
            }
        }
        calls.waits.sort_unstable_by_key(|w| (w.call, w.cause));
        Ok(calls)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.task.len()
    }

    /// The kind of call `i`.
    pub(crate) fn op_of(&self, i: usize) -> &str {
        self.ops.get(usize::from(self.op[i])).map_or("", String::as_str)
    }

    /// The file of call `i`, empty if it has none.
    pub(crate) fn file_of(&self, i: usize) -> &str {
        self.files.get(self.file[i] as usize).map_or("", String::as_str)
    }

    /// For each kind whether it is a call to the kernel.
    pub(crate) fn is_call(&self) -> Vec<bool> {
        self.ops.iter().map(|o| !NO_CALLS.contains(&o.as_str())).collect()
    }

    /// For each kind whether it moves a file's bytes.
    pub(crate) fn moves_bytes(&self) -> Vec<bool> {
        self.ops.iter().map(|o| matches!(o.as_str(), "read" | "write" | "recv-write")).collect()
    }

    /// The waits of call `i`.
    pub(crate) fn waits_of(&self, i: usize) -> &[Wait] {
        let from = self.waits.partition_point(|w| (w.call as usize) < i);
        let to = from + self.waits[from..].partition_point(|w| w.call as usize == i);
        &self.waits[from..to]
    }
}

/// `evictions.parquet` by columns; one entry a run of pages, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evictions {
    /// When.
    pub time_ns: Vec<i64>,
    /// Index into [`Evictions::files`].
    pub file: Vec<u32>,
    /// Paths, sorted.
    pub files: Vec<String>,
    /// First page within the file.
    pub page: Vec<i64>,
    /// How many.
    pub pages: Vec<i64>,
}

impl Evictions {
    /// Reads the table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(cell: &CellData) -> Result<Evictions> {
        let frame = cell.table("evictions", &["time_ns", "file", "page", "pages"])?;
        let file = frame.split("file")?;
        Ok(Evictions {
            time_ns: frame.whole("time_ns")?,
            file: file.of_row,
            files: file.labels,
            page: frame.whole("page")?,
            pages: frame.whole("pages")?,
        })
    }
}

/// `io.parquet` by columns; one entry a request, in order of completion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Request made (its slot was got).
    pub q_ns: Vec<i64>,
    /// Inserted into the elevator's queue.
    pub i_ns: Vec<i64>,
    /// Dispatched to the device.
    pub d_ns: Vec<i64>,
    /// Completed.
    pub c_ns: Vec<i64>,
    /// Device.
    pub dev: Vec<u32>,
    /// A read; otherwise a write.
    pub read: Vec<bool>,
    /// First sector.
    pub sector_512: Vec<i64>,
    /// Bytes.
    pub len_bytes: Vec<i64>,
    /// Task that queued the first bio.
    pub task: Vec<i64>,
    /// Index into [`Requests::kinds`].
    pub kind: Vec<u32>,
    /// What requests are for, sorted.
    pub kinds: Vec<String>,
    /// Bios that it carries.
    pub bios: Vec<i64>,
    /// Requests dispatched while it waited.
    pub passed: Vec<i64>,
    /// Distance from the end of the request before, sectors.
    pub seek_sectors: Vec<i64>,
}

impl Requests {
    /// Reads the table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(cell: &CellData) -> Result<Requests> {
        let frame = cell.table("io", &["dir", "kind", "dev", "task", "q_ns", "i_ns", "d_ns", "c_ns"])?;
        let rest = cell.table("io", &["sector_512", "len_bytes", "bios", "passed", "seek_sectors"])?;
        let (dir, kind) = (frame.split("dir")?, frame.split("kind")?);
        let q_ns = frame.whole("q_ns")?;
        // A stamp that is missing counts as the one before it: the phase is then empty.
        let after = |name: &str, before: &[i64]| -> Result<Vec<i64>> {
            Ok(frame.ints(name)?.into_iter().zip(before).map(|(v, b)| v.unwrap_or(*b)).collect())
        };
        let i_ns = after("i_ns", &q_ns)?;
        let d_ns = after("d_ns", &i_ns)?;
        let c_ns = after("c_ns", &d_ns)?;
        let plain =
            |name: &str| -> Result<Vec<i64>> { Ok(rest.ints(name)?.into_iter().map(|v| v.unwrap_or(0)).collect()) };
        Ok(Requests {
            dev: frame.ints("dev")?.into_iter().map(|v| v.unwrap_or(0) as u32).collect(),
            read: dir.of_row.iter().map(|l| dir.labels[*l as usize] == "R").collect(),
            task: frame.ints("task")?.into_iter().map(|v| v.unwrap_or(-1)).collect(),
            kind: kind.of_row,
            kinds: kind.labels,
            sector_512: plain("sector_512")?,
            len_bytes: plain("len_bytes")?,
            bios: plain("bios")?,
            passed: plain("passed")?,
            seek_sectors: plain("seek_sectors")?,
            q_ns,
            i_ns,
            d_ns,
            c_ns,
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.q_ns.len()
    }

    /// What request `i` is for.
    pub(crate) fn kind_of(&self, i: usize) -> &str {
        self.kinds.get(self.kind[i] as usize).map_or("", String::as_str)
    }
}
