//! What the recording itself says: its vmstat log and when its processes ended.
//!
//! Read from the trace directory. One that has moved, is damaged or lacks a table is no error: the report then says that
//! there is nothing to compare with, and why.

use crate::cell::seconds;
use crate::model::{Finding, Level};
use indexmap::IndexMap;
use kreplay_traces::error::Error as TraceError;
use kreplay_traces::event::VmstatRow;
use kreplay_traces::store::{Manifest, SourceInfo, TraceDir};
use std::path::Path;

/// The vmstat columns that are compared: name in the tables, title, what it means, and whether it is a rate.
pub(crate) const COLUMNS: [StripColumn; 8] = [
    StripColumn { column: "free_kib", of: |r| r.free_kib, title: "free", about: "memory not used at all", rate: false },
    StripColumn {
        column: "cache_kib",
        of: |r| r.cache_kib,
        title: "cache",
        about: "file pages in memory",
        rate: false,
    },
    StripColumn {
        column: "buff_kib",
        of: |r| r.buff_kib,
        title: "buff",
        about: "buffers of block devices",
        rate: false,
    },
    StripColumn { column: "swpd_kib", of: |r| r.swpd_kib, title: "swpd", about: "swap space in use", rate: false },
    StripColumn { column: "bi_kib_s", of: |r| r.bi_kib_s, title: "bi", about: "read from disks", rate: true },
    StripColumn { column: "bo_kib_s", of: |r| r.bo_kib_s, title: "bo", about: "written to disks", rate: true },
    StripColumn { column: "si_kib_s", of: |r| r.si_kib_s, title: "si", about: "swapped in", rate: true },
    StripColumn { column: "so_kib_s", of: |r| r.so_kib_s, title: "so", about: "swapped out", rate: true },
];

/// A vmstat column of [`COLUMNS`].
pub(crate) struct StripColumn {
    /// Name in `samples` and in the trace's `vmstat` table.
    pub column: &'static str,
    /// The value in a recorded row.
    pub(crate) of: fn(&VmstatRow) -> Option<i64>,
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
    pub(crate) time_s: Vec<f64>,
    /// One series a column of [`COLUMNS`], as long as `time_s`.
    pub(crate) vmstat: Vec<Vec<Option<f64>>>,
    /// Begin of the first and end of the last call of each thread, by thread id, nanoseconds from the trace's time 0.
    spans_ns: Vec<(i64, (i64, i64))>,
    /// Source of each thread's calls, by thread id, as an index into `sources`.
    logs: Vec<(i64, usize)>,
    /// Names of the recorded logs.
    sources: Vec<String>,
    /// Why something of this is missing, and what the trace's own manifest warns of.
    pub(crate) findings: Vec<Finding>,
    /// Sources, machine and clocks, as `key` and `value` lines.
    pub(crate) provenance: Vec<(String, String)>,
}

impl Recorded {
    /// Reads what `dir` has, if it is the trace `trace_id`.
    pub(crate) fn open(dir: Option<&Path>, trace_id: &str) -> Recorded {
        let mut recorded = Recorded::default();
        let Some(dir) = dir.filter(|d| d.is_dir()) else {
            recorded.note("The trace directory is not where the replay found it, so nothing recorded is shown beside the simulation.");
            return recorded;
        };
        if let Err(error) = recorded.read(dir, trace_id) {
            let text = format!(
                "The recording could not be read, so it is not or not wholly shown beside the simulation: {error}"
            );
            recorded.findings.push(Finding::new(Level::Note, text));
        }
        recorded
    }

    /// How long the recording took for the threads in `tids`: from their first call to the return of their last, seconds.
    pub(crate) fn elapsed_s(&self, tids: impl Iterator<Item = i64> + Clone) -> Option<f64> {
        let begin = self.begin_ns(tids.clone())?;
        tids.filter_map(|tid| self.end_ns(tid)).max().map(|end| seconds(end - begin))
    }

    /// When the first call of these threads began, nanoseconds.
    pub(crate) fn begin_ns(&self, tids: impl Iterator<Item = i64>) -> Option<i64> {
        tids.filter_map(|tid| self.span_ns(tid)).map(|(begin, _)| begin).min()
    }

    /// When the last call of a thread returned, nanoseconds.
    pub(crate) fn end_ns(&self, tid: i64) -> Option<i64> {
        self.span_ns(tid).map(|(_, end)| end)
    }

    fn span_ns(&self, tid: i64) -> Option<(i64, i64)> {
        self.spans_ns.binary_search_by_key(&tid, |(t, _)| *t).ok().map(|i| self.spans_ns[i].1)
    }

    /// Where in the recording a line of a thread's calls stands: `strace.log:812`; `line 812` if the log is not known, nothing
    /// for line 0.
    pub(crate) fn place(&self, tid: i64, line: u32) -> String {
        if line == 0 {
            return String::new();
        }
        let log = self.logs.binary_search_by_key(&tid, |(t, _)| *t).ok().map(|i| self.logs[i].1);
        match log.and_then(|l| self.sources.get(l)) {
            Some(source) => format!("{source}:{line}"),
            None => format!("line {line}"),
        }
    }

    fn note(&mut self, text: &str) {
        self.findings.push(Finding::new(Level::Note, text));
    }

    fn read(&mut self, dir: &Path, trace_id: &str) -> Result<(), TraceError> {
        let trace = TraceDir::open(dir)?;
        if trace.manifest().trace_id != trace_id {
            let text = "The trace directory holds another trace than the one that was replayed, so nothing recorded is shown beside the simulation.";
            self.findings.push(Finding::new(Level::Note, text.to_string()));
            return Ok(());
        }
        self.read_manifest(trace.manifest());
        self.read_vmstat(&trace)?;
        self.sources = short_names(trace.manifest().sources.iter().map(|s| s.path.as_str()));
        self.read_ends(&trace)
    }

    fn read_vmstat(&mut self, trace: &TraceDir) -> Result<(), TraceError> {
        let mut unplaced = 0;
        let mut rows: Vec<(i64, [Option<i64>; COLUMNS.len()])> = Vec::new();
        trace.vmstats()?.for_each(|row| {
            // The first row of a run holds averages since boot, not a sample.
            match row.time_ns.filter(|_| !row.since_boot) {
                Some(time) if time >= 0 => rows.push((time, std::array::from_fn(|c| (COLUMNS[c].of)(&row)))),
                None if !row.since_boot => unplaced += 1,
                _ => {}
            }
        })?;
        rows.sort_by_key(|(time, _)| *time);
        self.time_s = rows.iter().map(|(time, _)| seconds(*time)).collect();
        let column = |c: usize| rows.iter().map(|(_, values)| values[c].map(|v| v as f64)).collect();
        self.vmstat = (0..COLUMNS.len()).map(column).collect();
        if unplaced > 0 {
            self.note(&format!("{unplaced} rows of the vmstat log carry no time and are left out."));
        } else if rows.is_empty() {
            self.note("The recording has no vmstat log.");
        }
        Ok(())
    }

    fn read_ends(&mut self, trace: &TraceDir) -> Result<(), TraceError> {
        let mut threads: IndexMap<i64, (i64, i64, usize)> = IndexMap::new();
        let mut rows = trace.syscalls()?;
        while rows.advance()? {
            let (Some(row), Some(source)) = (rows.current(), rows.source()) else { break };
            let end = row.time_ns.saturating_add(row.dur_ns.unwrap_or(0));
            let span = threads.entry(row.tid).or_insert((row.time_ns, end, source));
            (span.0, span.1) = (row.time_ns.min(span.0), end.max(span.1));
        }
        self.logs = threads.iter().map(|(tid, (_, _, source))| (*tid, *source)).collect();
        self.logs.sort_unstable();
        // The times of a generated load are its script's, nothing took that long anywhere.
        if trace.manifest().sources.iter().all(|s| s.format == "synth") {
            return Ok(());
        }
        self.spans_ns = threads.into_iter().map(|(tid, (begin, end, _))| (tid, (begin, end))).collect();
        self.spans_ns.sort_unstable();
        if self.spans_ns.is_empty() {
            self.note("The recording has no system calls, so its duration is not known.");
        }
        Ok(())
    }

    fn read_manifest(&mut self, manifest: &Manifest) {
        self.provenance.push(("trace".to_string(), manifest.trace_id.chars().take(16).collect()));
        for source in &manifest.sources {
            let rejected: u64 = source.rejects.values().sum();
            let value = format!("{}, {} lines, {rejected} rejected", source.format, source.lines);
            self.provenance.push((format!("source {}", source.path), value));
            self.findings.extend(rejects(source));
            self.findings
                .extend(source.notes.iter().map(|n| Finding::new(Level::Note, format!("{}: {n}", source.path))));
        }
        let machine = &manifest.machine;
        let facts = [
            ("recorded kernel", machine.kernel.clone()),
            ("recorded memory", machine.ram_kib.map(|k| format!("{} MiB", k / 1024))),
            ("recorded swap", machine.swap_kib.map(|k| format!("{} MiB", k / 1024))),
            ("recorded processors", machine.cpus.map(|c| c.to_string())),
        ];
        self.provenance.extend(facts.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
        if manifest.clock.assumed {
            self.note("The clocks of the recorded logs were laid together by assuming that their first events coincide: recorded series may be shifted against each other.");
        }
        self.findings.extend(manifest.warnings.iter().map(|w| Finding::new(Level::Warning, w.clone())));
    }
}

/// The last component of each path, or the whole path where that would be ambiguous.
fn short_names<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let last = |p: &'a str| p.rsplit('/').next().filter(|n| !n.is_empty()).unwrap_or(p);
    let twice = |name: &str| paths.clone().filter(|p| last(p) == name).count() > 1;
    paths.clone().map(|p| if twice(last(p)) { p.to_string() } else { last(p).to_string() }).collect()
}

/// Share of a log's lines that may be missing before figures can mislead.
const FEW: f64 = 0.01;

/// Lines of a log that were not understood: a warning if they are more than [`FEW`].
fn rejects(source: &SourceInfo) -> Option<Finding> {
    let total: u64 = source.rejects.values().sum();
    let reasons: Vec<String> = source.rejects.iter().map(|(reason, n)| format!("{reason}: {n}")).collect();
    (total > 0).then(|| {
        let text = format!(
            "{}: {total} of {} lines were not understood and are missing from the replay ({}).",
            source.path,
            source.lines,
            reasons.join(", ")
        );
        let few = (total as f64) <= source.lines as f64 * FEW;
        Finding::new(if few { Level::Note } else { Level::Warning }, text)
    })
}
