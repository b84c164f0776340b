//! A sink that passes rows on and notices what a clock does that no clock should, whatever the format.
//!
//! Order is the store's business: it sorts what it gets in batches, sets late rows aside and merges when it is read.

use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};

/// A time that differs by more than this from the one before it in the log is a jump of the clock, not a wait: a year.
const JUMP_NS: u64 = 366 * 86_400 * 1_000_000_000;

/// Births of tasks that are remembered.
const MAX_BIRTHS: usize = 1 << 16;

/// What was noticed about the rows that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Jumps of the clock by more than a year.
    pub jumps: u64,
    /// The first of them: its line, the time before it and the time after it.
    pub first_jump: Option<(i64, i64, i64)>,
    /// Block events of zoned devices (append, reset, ...: a `Z` in RWBS).
    pub zone_rows: u64,
    /// Block events.
    pub block_rows: u64,
    /// Tasks that were made (`fork`, `clone`), with the time of the call, nanoseconds; the first 65536.
    pub births: Vec<(i64, i64)>,
}

/// The sink.
pub struct Watched<'a> {
    out: &'a mut dyn EventSink,
    arrived_ns: Option<i64>,
    found: Findings,
}

impl<'a> Watched<'a> {
    /// Pass everything on to `out`.
    pub fn new(out: &'a mut dyn EventSink) -> Self {
        Self { out, arrived_ns: None, found: Findings::default() }
    }

    /// What was noticed.
    pub fn finish(self) -> Findings {
        self.found
    }

    #[inline]
    fn arrive(&mut self, time_ns: i64, line: i64) {
        if let Some(before) = self.arrived_ns.replace(time_ns)
            && before.abs_diff(time_ns) > JUMP_NS
        {
            self.found.jumps += 1;
            self.found.first_jump.get_or_insert((line, before, time_ns));
        }
    }
}

impl EventSink for Watched<'_> {
    #[inline]
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        self.arrive(row.time_ns, row.line);
        if self.found.births.len() < MAX_BIRTHS
            && matches!(row.call, "clone" | "clone2" | "clone3" | "fork" | "vfork")
            && let Some(child) = row.ret.filter(|child| *child > 0)
        {
            self.found.births.push((child, row.time_ns));
        }
        self.out.syscall(row);
    }

    #[inline]
    fn block(&mut self, row: &BlockRow<'_>) {
        self.arrive(row.time_ns, row.line);
        self.found.block_rows += 1;
        self.found.zone_rows += u64::from(row.rwbs.as_bytes().contains(&b'Z'));
        self.out.block(row);
    }

    fn vmstat(&mut self, row: &VmstatRow) {
        if let Some(time_ns) = row.time_ns {
            self.arrive(time_ns, row.line);
        }
        self.out.vmstat(row);
    }

    fn fault(&mut self, row: &FaultRow) {
        self.out.fault(row);
    }

    fn process(&mut self, row: &ProcessRow<'_>) {
        self.out.process(row);
    }

    fn file(&mut self, row: &FileRow<'_>) {
        self.out.file(row);
    }

    fn counter(&mut self, row: &CounterRow<'_>) {
        self.out.counter(row);
    }

    fn reject(&mut self, row: &RejectRow<'_>) {
        self.out.reject(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    #[test]
    fn a_jump_of_the_clock_is_told_from_a_wait() {
        let mut rows = Rows::default();
        let mut watched = Watched::new(&mut rows);
        let year = JUMP_NS as i64;
        for (line, time_ns) in [(1, 0), (2, year), (3, 3 * year), (4, 3 * year + 5), (5, 0)] {
            watched.syscall(&SyscallRow { time_ns, line, ..SyscallRow::default() });
        }
        watched.block(&BlockRow { rwbs: "ZAS", ..BlockRow::default() });
        let found = watched.finish();
        assert_eq!((found.jumps, found.first_jump), (2, Some((3, year, 3 * year))));
        assert_eq!((found.block_rows, found.zone_rows, rows.syscalls.len(), rows.blocks.len()), (1, 1, 5, 1));
    }
}
