//! Writing a trace directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::align;
use super::buffer::{PartPlace, TableBuffer};
use super::manifest::{ClockKind, FORMAT, LinkSpec, MANIFEST_FILE, MachineInfo, Manifest, PartInfo, SourceInfo};
use super::part::join;
use super::source::{SourceFacts, SourceKey, WriterOptions, hash_file};
use super::workdir::WorkDir;
use crate::error::{Doing, Error, Result};
use crate::event::{BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow};
use crate::publish;
use crate::schema::{
    Blocks, Counters, Faults, Files, Processes, Rejects, SCHEMA_VERSION, Syscalls, TABLES, Table, Vmstats,
};

/// A source being written.
struct Open {
    key: SourceKey,
    clock: ClockKind,
    parts_before: usize,
    rejects: BTreeMap<String, u64>,
    syscalls: TableBuffer<Syscalls>,
    blocks: TableBuffer<Blocks>,
    vmstats: TableBuffer<Vmstats>,
    faults: TableBuffer<Faults>,
    processes: TableBuffer<Processes>,
    files: TableBuffer<Files>,
    counters: TableBuffer<Counters>,
    reject_rows: TableBuffer<Rejects>,
}

/// Writes a trace directory: one source after the other, each row once, in bounded memory.
///
/// Between [`begin_source`](Self::begin_source) and [`finish_source`](Self::finish_source) it takes rows as an
/// [`EventSink`]; the first error met on the way is returned by `finish_source`. Nothing is visible under the final
/// name before [`finish`](Self::finish) has succeeded. Dropped before that, the working directory `NAME.partial` stays
/// and a later writer for the same name reuses its finished sources (see [`reuse_source`](Self::reuse_source)).
///
/// ```
/// use kreplay_traces::event::{EventSink, SyscallRow};
/// use kreplay_traces::store::{ClockKind, SourceFacts, SourceKey, TraceDir, TraceWriter, WriterOptions};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("trace");
/// let mut writer = TraceWriter::create(&path, WriterOptions::default())?;
/// let key = SourceKey { path: "strace.log".into(), format: "strace".into(), options: Default::default() };
/// writer.begin_source(key, ClockKind::Realtime)?;
/// writer.syscall(&SyscallRow { time_ns: 1_000_000_007, tid: 1, call: "sync", line: 1, ..Default::default() });
/// writer.finish_source(SourceFacts { lines: 1, ..Default::default() })?;
/// writer.finish()?;
///
/// let trace = TraceDir::open(&path)?;
/// let mut rows = trace.syscalls()?;
/// let row = rows.next()?.unwrap();
/// assert_eq!((row.time_ns, row.call), (0, "sync"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TraceWriter {
    dir: WorkDir,
    sources: Vec<SourceInfo>,
    parts: Vec<PartInfo>,
    /// Next part number of each table, in the order of [`TABLES`].
    numbers: [usize; TABLES.len()],
    open: Option<Box<Open>>,
    error: Option<Error>,
    machine: MachineInfo,
    links: Vec<LinkSpec>,
    warnings: Vec<String>,
}

/// Index of a table in [`TABLES`].
fn table_index(name: &str) -> usize {
    TABLES.iter().position(|t| *t == name).expect("every table is listed")
}

impl TraceWriter {
    /// Begin to write `path`.
    ///
    /// # Errors
    /// If `path` holds something else, a finished trace (and `replace` is not set), or another process writes it; if
    /// it cannot be written.
    pub fn create(path: &Path, options: WriterOptions) -> Result<Self> {
        let dir = WorkDir::open(path, options.replace, options.fresh)?;
        // Numbers begin behind those of the run before: its parts keep their names.
        let mut numbers = [0; TABLES.len()];
        for part in &dir.found.parts {
            let number = part.file.split('-').next_back().and_then(|n| n.strip_suffix(".parquet")?.parse().ok());
            let slot = &mut numbers[table_index(&part.table)];
            *slot = number.map_or(*slot, |n: usize| (*slot).max(n + 1));
        }
        Ok(Self {
            dir,
            sources: Vec::new(),
            parts: Vec::new(),
            numbers,
            open: None,
            error: None,
            machine: MachineInfo::default(),
            links: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// Take over a source that an unfinished run has finished, if there is one with this key and `file` is still the
    /// same (length and hash). True if so: the source must then not be read again.
    ///
    /// # Errors
    /// If `file` cannot be read although the earlier run could.
    pub fn reuse_source(&mut self, key: &SourceKey, file: &Path) -> Result<bool> {
        let same = |s: &SourceInfo| s.path == key.path && s.format == key.format && s.options == key.options;
        let Some(index) = self.dir.found.sources.iter().position(same) else { return Ok(false) };
        let found = &self.dir.found.sources[index];
        let length = fs::metadata(file).map_err(|e| Error::io(file, Doing::Reading, e))?.len();
        if found.bytes != Some(length) || found.blake3 != Some(hash_file(file)?) {
            return Ok(false);
        }
        let source = self.sources.len();
        self.sources.push(found.clone());
        self.parts.extend(
            self.dir.found.parts.iter().filter(|p| p.source == index).cloned().map(|p| PartInfo { source, ..p }),
        );
        Ok(true)
    }

    /// Begin a source; rows that follow belong to it.
    ///
    /// # Errors
    /// If a source is open.
    pub fn begin_source(&mut self, key: SourceKey, clock: ClockKind) -> Result<()> {
        if self.open.is_some() {
            return Err(Error::Misuse("begin_source while a source is open"));
        }
        self.open = Some(Box::new(Open {
            key,
            clock,
            parts_before: self.parts.len(),
            rejects: BTreeMap::new(),
            syscalls: TableBuffer::new(),
            blocks: TableBuffer::new(),
            vmstats: TableBuffer::new(),
            faults: TableBuffer::new(),
            processes: TableBuffer::new(),
            files: TableBuffer::new(),
            counters: TableBuffer::new(),
            reject_rows: TableBuffer::new(),
        }));
        Ok(())
    }

    /// The first error met while taking rows, if any: a reader may stop early.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Change the clock of the open source, once the parser knows what its time stamps are.
    pub fn set_clock(&mut self, clock: ClockKind) {
        if let Some(open) = &mut self.open {
            open.clock = clock;
        }
    }

    /// End the source; from now on a later run can reuse it.
    ///
    /// # Errors
    /// The first error met while taking its rows, or while closing its parts.
    pub fn finish_source(&mut self, facts: SourceFacts) -> Result<&SourceInfo> {
        if let Some(error) = self.error.take() {
            self.open = None;
            return Err(error);
        }
        let Some(open) = self.open.take() else { return Err(Error::Misuse("finish_source without a source")) };
        let open = *open;
        let source = self.sources.len();
        let mut events = BTreeMap::new();
        let spans = [open.syscalls.span_ns(), open.blocks.span_ns(), open.vmstats.span_ns(), open.faults.span_ns()];
        let mut end = Ending { dir: self.dir.path(), source, numbers: &mut self.numbers, parts: &mut self.parts };
        end.table(open.syscalls, &mut events)?;
        end.table(open.blocks, &mut events)?;
        end.table(open.vmstats, &mut events)?;
        end.table(open.faults, &mut events)?;
        end.table(open.processes, &mut events)?;
        end.table(open.files, &mut events)?;
        end.table(open.counters, &mut events)?;
        end.table(open.reject_rows, &mut events)?;
        self.sources.push(SourceInfo {
            path: open.key.path,
            blake3: facts.blake3,
            bytes: facts.bytes,
            text_bytes: facts.text_bytes,
            format: open.key.format,
            options: open.key.options,
            lines: facts.lines,
            events,
            rejects: open.rejects,
            non_events: facts.non_events,
            clock: open.clock,
            zero_ns: facts.zero_ns.unwrap_or(0),
            zero_assumed: facts.zero_ns.is_none(),
            span_ns: spans.into_iter().fold(None, join),
            births: facts.births,
            behind_ns: 0,
            notes: facts.notes,
        });
        self.dir.write_journal(&WorkDir::journal(&self.sources, &self.parts))?;
        Ok(&self.sources[source])
    }

    /// Drop the open source: its rows will not be part of the trace.
    ///
    /// # Errors
    /// If its finished parts cannot be removed.
    pub fn abandon_source(&mut self) -> Result<()> {
        self.error = None;
        let Some(open) = self.open.take() else { return Ok(()) };
        let open = *open;
        let mut parts: Vec<PartInfo> = self.parts.drain(open.parts_before..).collect();
        parts.extend(open.syscalls.abandon());
        parts.extend(open.blocks.abandon());
        parts.extend(open.vmstats.abandon());
        parts.extend(open.faults.abandon());
        parts.extend(open.processes.abandon());
        parts.extend(open.files.abandon());
        parts.extend(open.counters.abandon());
        parts.extend(open.reject_rows.abandon());
        for part in parts {
            let path = self.dir.path().join(&part.file);
            fs::remove_file(&path).map_err(|e| Error::io(&path, Doing::Removing, e))?;
        }
        Ok(())
    }

    /// Say what machine was recorded.
    pub fn set_machine(&mut self, machine: MachineInfo) {
        self.machine = machine;
    }

    /// Add a network link; its index is the number of links before it.
    pub fn add_link(&mut self, link: LinkSpec) {
        self.links.push(link);
    }

    /// Add a warning for the reader of the trace.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Say that a source's clock is behind that of the others with the same clock; see
    /// [`SourceInfo::behind_ns`](super::SourceInfo::behind_ns).
    pub fn set_behind(&mut self, source: usize, behind_ns: i64) {
        if let Some(source) = self.sources.get_mut(source) {
            source.behind_ns = behind_ns;
        }
    }

    /// Sources so far.
    pub fn sources(&self) -> &[SourceInfo] {
        &self.sources
    }

    /// Align the clocks, write the manifest and give the directory its final name.
    ///
    /// # Errors
    /// If a source is open, or writing or renaming fails; the working directory then stays.
    pub fn finish(mut self) -> Result<(PathBuf, Manifest)> {
        if self.open.is_some() {
            return Err(Error::Misuse("finish while a source is open"));
        }
        let clock = align::align(&mut self.sources, &mut self.warnings);
        let mut counts: BTreeMap<String, u64> = TABLES.iter().map(|t| ((*t).to_owned(), 0)).collect();
        for part in &self.parts {
            *counts.entry(part.table.clone()).or_default() += part.rows;
        }
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            trace_id: Manifest::compute_id(&self.parts, &self.sources, &self.machine),
            counts,
            sources: self.sources,
            clock,
            machine: self.machine,
            links: self.links,
            warnings: self.warnings,
            parts: self.parts,
        };
        self.dir.remove_unused(&manifest.parts)?;
        let json = serde_json::to_vec_pretty(&manifest)
            .map_err(|e| Error::Encode { table: "manifest", why: e.to_string() })?;
        publish::write_atomically(self.dir.path().join(MANIFEST_FILE), &json)?;
        Ok((self.dir.publish()?, manifest))
    }

    /// Give up: remove the working directory, finished sources included.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn discard(self) -> Result<()> {
        self.dir.discard()
    }

    fn flush<T: Table>(&mut self, pick: impl FnOnce(&mut Open) -> &mut TableBuffer<T>) {
        let Some(open) = &mut self.open else { return };
        let place = PartPlace {
            dir: self.dir.path(),
            source: self.sources.len(),
            next_number: self.numbers[table_index(T::NAME)],
        };
        if let Err(e) = pick(open).flush(place) {
            self.error = Some(e);
        }
    }

    /// The open source, unless an earlier error has made further rows pointless.
    fn taking(&mut self) -> Option<&mut Open> {
        if self.error.is_some() {
            return None;
        }
        if self.open.is_none() {
            self.error = Some(Error::Misuse("a row outside of a source"));
        }
        self.open.as_deref_mut()
    }
}

/// Closes the tables of a source one after the other.
struct Ending<'a> {
    dir: &'a Path,
    source: usize,
    numbers: &'a mut [usize; TABLES.len()],
    parts: &'a mut Vec<PartInfo>,
}

impl Ending<'_> {
    fn table<T: Table>(&mut self, buffer: TableBuffer<T>, events: &mut BTreeMap<String, u64>) -> Result<()> {
        if buffer.total() > 0 {
            events.insert(T::NAME.to_owned(), buffer.total());
        }
        let next_number = &mut self.numbers[table_index(T::NAME)];
        let done = buffer.finish(PartPlace { dir: self.dir, source: self.source, next_number: *next_number })?;
        *next_number = done.next_number;
        self.parts.extend(done.parts);
        Ok(())
    }
}

impl EventSink for TraceWriter {
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        let Some(open) = self.taking() else { return };
        if open.syscalls.push(row) {
            self.flush(|o| &mut o.syscalls);
        }
    }
    fn block(&mut self, row: &BlockRow<'_>) {
        let Some(open) = self.taking() else { return };
        if open.blocks.push(row) {
            self.flush(|o| &mut o.blocks);
        }
    }
    fn vmstat(&mut self, row: &VmstatRow) {
        let Some(open) = self.taking() else { return };
        if open.vmstats.push(row) {
            self.flush(|o| &mut o.vmstats);
        }
    }
    fn fault(&mut self, row: &FaultRow) {
        let Some(open) = self.taking() else { return };
        if open.faults.push(row) {
            self.flush(|o| &mut o.faults);
        }
    }
    fn process(&mut self, row: &ProcessRow<'_>) {
        let Some(open) = self.taking() else { return };
        if open.processes.push(row) {
            self.flush(|o| &mut o.processes);
        }
    }
    fn file(&mut self, row: &FileRow<'_>) {
        let Some(open) = self.taking() else { return };
        if open.files.push(row) {
            self.flush(|o| &mut o.files);
        }
    }
    fn counter(&mut self, row: &CounterRow<'_>) {
        let Some(open) = self.taking() else { return };
        if open.counters.push(row) {
            self.flush(|o| &mut o.counters);
        }
    }
    fn reject(&mut self, row: &RejectRow<'_>) {
        let Some(open) = self.taking() else { return };
        match open.rejects.get_mut(row.reason) {
            Some(n) => *n += 1,
            None => {
                open.rejects.insert(row.reason.to_owned(), 1);
            }
        }
        if open.reject_rows.push(row) {
            self.flush(|o| &mut o.reject_rows);
        }
    }
}
