//! A program in a few figures, for `kreplay inspect`.

use kreplay_traces::units::{Bytes, Nanos, PAGE_BYTES};
use serde::Serialize;

use super::{Coverage, FileKind, Op, Program};

/// What a program holds. Bytes and times are sums over all tasks' operations, one pass each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramSummary {
    /// Tasks.
    pub tasks: u64,
    /// Of these, tasks in the background (they end with the last of the others).
    pub background_tasks: u64,
    /// Operations.
    pub operations: u64,
    /// Regular files, also those that do not exist.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Mapped areas.
    pub areas: u64,
    /// Page ids.
    pub pages: u64,
    /// Size of what exists before the first operation.
    pub initial_bytes: Bytes,
    /// Bytes read by calls.
    pub read_bytes: Bytes,
    /// Bytes written by calls.
    pub written_bytes: Bytes,
    /// Different pages of regular files that reads and writes reach.
    pub file_pages_reached: u64,
    /// Pages of anonymous memory that are touched.
    pub anonymous_pages: u64,
    /// Page touches through mappings.
    pub touches: u64,
    /// Think time.
    pub think: Nanos,
    /// Sleeps asked for.
    pub sleep: Nanos,
    /// Waits for things outside of the trace.
    pub external: Nanos,
    /// Waits for other tasks of the trace.
    pub awaits: u64,
    /// From the trace's start to the last recorded start or end of an operation.
    pub recorded_span: Nanos,
    /// How much rests on assumptions.
    pub coverage: Coverage,
}

impl Program {
    /// Sum the program up.
    pub fn summary(&self) -> ProgramSummary {
        let kind = |k: FileKind| self.files.iter().filter(|f| f.kind == k).count() as u64;
        let mut s = ProgramSummary {
            tasks: self.tasks.len() as u64,
            background_tasks: self.tasks.iter().filter(|t| t.background).count() as u64,
            files: kind(FileKind::Regular),
            directories: kind(FileKind::Directory),
            areas: self.areas.len() as u64,
            pages: u64::from(self.pages),
            initial_bytes: Bytes(
                self.files.iter().filter(|f| f.kind == FileKind::Regular && f.exists).map(|f| f.initial_size).sum(),
            ),
            anonymous_pages: self.areas.iter().filter(|a| a.file.is_none()).map(|a| u64::from(a.pages)).sum(),
            coverage: self.coverage.clone(),
            ..ProgramSummary::default()
        };
        let mut reached = Reached::new(self);
        for t in &self.tasks {
            s.operations += t.ops.len() as u64;
            for (i, op) in t.ops.iter().enumerate() {
                s.think += t.think[i];
                let end = if t.recorded[i] == Nanos::MAX { t.at[i] } else { t.at[i] + t.recorded[i] };
                s.recorded_span = s.recorded_span.max(end);
                match *op {
                    Op::Open { ofd, file, .. } => reached.open(ofd, file),
                    Op::Read { ofd, off, len } | Op::Direct { ofd, off, len, write: false } => {
                        s.read_bytes += Bytes(len);
                        reached.range(ofd, off, len);
                    }
                    Op::Write { ofd, off, len } | Op::Direct { ofd, off, len, write: true } => {
                        s.written_bytes += Bytes(len);
                        reached.range(ofd, off, len);
                    }
                    Op::RecvWrite { ofd, total, .. } => {
                        s.written_bytes += Bytes(total);
                        reached.range(ofd, 0, total);
                    }
                    Op::Touch { count, .. } => s.touches += u64::from(count),
                    Op::Sleep { time } => s.sleep += time,
                    Op::External { time } => s.external += time,
                    Op::Await { .. } => s.awaits += 1,
                    _ => {}
                }
            }
        }
        s.file_pages_reached = reached.pages();
        s
    }
}

/// Which file pages are reached. Descriptors are seen opened before they are used if the opening task comes first;
/// others (inherited across tasks in the other order) are looked up in a first sweep.
struct Reached<'a> {
    program: &'a Program,
    file_of: Vec<Option<u32>>,
    seen: Vec<bool>,
}

impl<'a> Reached<'a> {
    fn new(program: &'a Program) -> Self {
        let mut file_of = vec![None; program.ofds as usize];
        for op in program.tasks.iter().flat_map(|t| &t.ops) {
            if let Op::Open { ofd, file, .. } = op {
                file_of[*ofd as usize] = Some(*file);
            }
        }
        Self { program, file_of, seen: vec![false; program.pages as usize] }
    }

    fn open(&mut self, ofd: u32, file: u32) {
        self.file_of[ofd as usize] = Some(file);
    }

    fn range(&mut self, ofd: u32, off: u64, len: u64) {
        let Some(file) = self.file_of[ofd as usize] else { return };
        let first = self.program.files[file as usize].first_page as usize;
        let (from, to) = ((off / PAGE_BYTES) as usize, (off + len).div_ceil(PAGE_BYTES) as usize);
        self.seen[first + from..first + to].fill(true);
    }

    fn pages(&self) -> u64 {
        self.seen.iter().filter(|s| **s).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_program_sums_to_nothing() {
        assert_eq!(Program::default().summary(), ProgramSummary::default());
    }
}
