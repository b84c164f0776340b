//! What the recording itself says: its vmstat log and when its processes ended.
//!
//! Read from the trace directory (`<dir>/<table>/part-*.parquet`). A directory that has moved or lacks a table is not an
//! error: the report then says that there is nothing to compare with.

use crate::cell::seconds;
use crate::error::{Error, Result};
use crate::frame::Frame;
use std::path::{Path, PathBuf};

/// The vmstat columns that are compared: name in the tables, title, what it means, and whether it is a rate.
pub(crate) const COLUMNS: [StripColumn; 8] = [
    StripColumn { column: "free_kib", title: "free", about: "memory not used at all", rate: false },
    StripColumn { column: "cache_kib", title: "cache", about: "file pages in memory", rate: false },
    StripColumn { column: "buff_kib", title: "buff", about: "buffers of block devices", rate: false },
    StripColumn { column: "swpd_kib", title: "swpd", about: "swap space in use", rate: false },
    StripColumn { column: "bi_kib_s", title: "bi", about: "read from disks", rate: true },
    StripColumn { column: "bo_kib_s", title: "bo", about: "written to disks", rate: true },
    StripColumn { column: "si_kib_s", title: "si", about: "swapped in", rate: true },
    StripColumn { column: "so_kib_s", title: "so", about: "swapped out", rate: true },
];

/// A vmstat column of [`COLUMNS`].
pub(crate) struct StripColumn {
    /// Name in `samples` and in the trace's `vmstat` table.
    pub column: &'static str,
    /// vmstat's own heading.
    pub title: &'static str,
    /// In a few words.
    pub about: &'static str,
    /// KiB/s; otherwise KiB.
    pub rate: bool,
}

/// What is known of the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Time of each vmstat row, seconds from the start of the trace, increasing.
    pub time_s: Vec<f64>,
    /// One series a column of [`COLUMNS`], as long as `time_s`.
    pub vmstat: Vec<Vec<Option<f64>>>,
    /// vmstat rows that could not be placed in time.
    pub unplaced: usize,
    /// End of the last call of each thread, by thread id, nanoseconds from the start of the trace.
    pub ends_ns: Vec<(i64, i64)>,
    /// Why something of this is missing, in words.
    pub notes: Vec<String>,
}

impl Recorded {
    /// Reads what `dir` has.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Column`] if a table is there but cannot be read.
    pub(crate) fn open(dir: Option<&Path>) -> Result<Recorded> {
        let mut recorded = Recorded::default();
        let Some(dir) = dir.filter(|d| d.is_dir()) else {
            recorded.notes.push(
                "The trace directory is not where the replay found it, so nothing recorded is shown beside the simulation."
                    .to_string(),
            );
            return Ok(recorded);
        };
        recorded.read_vmstat(dir)?;
        recorded.read_ends(dir)?;
        Ok(recorded)
    }

    /// End of the recording for the threads in `tids`: when the last of their calls returned, seconds.
    pub(crate) fn elapsed_s(&self, tids: impl Iterator<Item = i64>) -> Option<f64> {
        tids.filter_map(|tid| self.end_ns(tid)).max().map(seconds)
    }

    /// When the last call of a thread returned, nanoseconds.
    pub(crate) fn end_ns(&self, tid: i64) -> Option<i64> {
        self.ends_ns.binary_search_by_key(&tid, |(t, _)| *t).ok().map(|i| self.ends_ns[i].1)
    }

    fn read_vmstat(&mut self, dir: &Path) -> Result<()> {
        let mut wanted = vec!["time_ns", "since_boot"];
        wanted.extend(COLUMNS.iter().map(|c| c.column));
        let Some(frame) = read_parts(&dir.join("vmstat"), &wanted)? else {
            self.notes.push("The recording has no vmstat log.".to_string());
            return Ok(());
        };
        let (times, since_boot) = (frame.ints("time_ns")?, frame.bools("since_boot")?);
        let columns = COLUMNS.iter().map(|c| frame.ints(c.column)).collect::<Result<Vec<_>>>()?;
        // The first row of a run holds averages since boot, not a sample.
        let mut order: Vec<(i64, usize)> =
            times.iter().enumerate().filter(|(i, _)| !since_boot[*i]).filter_map(|(i, t)| Some(((*t)?, i))).collect();
        self.unplaced = times.iter().zip(&since_boot).filter(|(t, boot)| t.is_none() && !**boot).count();
        order.retain(|(t, _)| *t >= 0);
        order.sort_unstable();
        self.time_s = order.iter().map(|(t, _)| seconds(*t)).collect();
        self.vmstat =
            columns.iter().map(|values| order.iter().map(|(_, i)| values[*i].map(|v| v as f64)).collect()).collect();
        if self.unplaced > 0 {
            self.notes.push(format!("{} rows of the vmstat log carry no time and are left out.", self.unplaced));
        }
        Ok(())
    }

    fn read_ends(&mut self, dir: &Path) -> Result<()> {
        match read_parts(&dir.join("syscall"), &["tid", "time_ns", "dur_ns"])? {
            Some(frame) => self.ends_ns = frame.with_sum("time_ns", "dur_ns", "end_ns")?.max_by("tid", "end_ns")?,
            None => self.notes.push("The recording has no system calls, so its duration is not known.".to_string()),
        }
        Ok(())
    }
}

/// All parts of a table, or `None` if there are none.
fn read_parts(folder: &Path, columns: &[&str]) -> Result<Option<Frame>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let mut parts: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "parquet"))
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("part-")))
        .collect();
    parts.sort();
    let mut all: Option<Frame> = None;
    for part in parts {
        let bytes = std::fs::read(&part).map_err(|source| Error::Io { path: part.clone(), source })?;
        let frame = Frame::from_bytes(&part, bytes, columns)?;
        all = Some(match all {
            Some(before) => before.append(&frame)?,
            None => frame,
        });
    }
    Ok(all)
}
