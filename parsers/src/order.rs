//! Rows in time order with bounded memory.
//!
//! Parsers emit rows as the text gives them: a strace call when it ends, a completion right after its arrival. This sink
//! holds a window of rows and lets the earliest go when the window is full; rows of equal time keep their order. A row
//! that comes later than the window reaches is passed on at once and counted. What a clock does that no clock should is
//! noticed here, because every row passes: see [`Findings`].

use std::collections::VecDeque;

use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};

use crate::rows::{Block, Syscall};

/// Rows that are held at most, for each of the two ordered tables.
pub const WINDOW_ROWS: usize = 32 * 1024;

/// A time that differs by more than this from the one before it in the log is a jump of the clock, not a wait: a year.
const JUMP_NS: u64 = 366 * 86_400 * 1_000_000_000;

/// What was noticed about the rows that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Rows too late to be put into their place.
    pub late: u64,
    /// Jumps of the clock by more than a year.
    pub jumps: u64,
    /// The first of them: its line, the time before it and the time after it.
    pub first_jump: Option<(i64, i64, i64)>,
    /// Block events of zoned devices (append, reset, ...: a `Z` in RWBS).
    pub zone_rows: u64,
    /// Block events.
    pub block_rows: u64,
}

/// A sink that orders system calls and block events by time before it passes them on.
pub struct Ordered<'a> {
    out: &'a mut dyn EventSink,
    syscalls: Window<Syscall>,
    blocks: Window<Block>,
    arrived_ns: Option<i64>,
    found: Findings,
}

/// Slots are reused, so that a row costs no allocation once the window is full.
struct Window<T> {
    /// Time and slot, ascending.
    order: VecDeque<(i64, u32)>,
    slots: Vec<T>,
    free: Vec<u32>,
    limit: usize,
    last_ns: i64,
    late: u64,
}

impl<T: Default> Window<T> {
    fn new(limit: usize) -> Self {
        Self { order: VecDeque::new(), slots: Vec::new(), free: Vec::new(), limit, last_ns: i64::MIN, late: 0 }
    }

    /// A slot for a row of this time, put into its place in the order.
    fn slot(&mut self, time_ns: i64) -> &mut T {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(T::default());
            (self.slots.len() - 1) as u32
        });
        if self.order.back().is_none_or(|last| last.0 <= time_ns) {
            self.order.push_back((time_ns, slot));
        } else {
            let at = self.order.partition_point(|entry| entry.0 <= time_ns);
            self.order.insert(at, (time_ns, slot));
        }
        &mut self.slots[slot as usize]
    }

    fn is_over(&self) -> bool {
        self.order.len() > self.limit
    }

    /// The earliest row leaves.
    fn pop(&mut self) -> Option<&T> {
        let (time_ns, slot) = self.order.pop_front()?;
        self.late += u64::from(time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.free.push(slot);
        Some(&self.slots[slot as usize])
    }
}

impl<'a> Ordered<'a> {
    /// Order with the usual window.
    pub fn new(out: &'a mut dyn EventSink) -> Self {
        Self::with_window(out, WINDOW_ROWS)
    }

    /// Order with a window of `rows` for each table.
    pub fn with_window(out: &'a mut dyn EventSink, rows: usize) -> Self {
        Self {
            out,
            syscalls: Window::new(rows),
            blocks: Window::new(rows),
            arrived_ns: None,
            found: Findings::default(),
        }
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

    /// Let all rows go.
    pub fn finish(mut self) -> Findings {
        while let Some(row) = self.syscalls.pop() {
            self.out.syscall(&row.row());
        }
        while let Some(row) = self.blocks.pop() {
            self.out.block(&row.row());
        }
        Findings { late: self.syscalls.late + self.blocks.late, ..self.found }
    }
}

impl EventSink for Ordered<'_> {
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        self.arrive(row.time_ns, row.line);
        self.syscalls.slot(row.time_ns).set(row);
        if self.syscalls.is_over()
            && let Some(first) = self.syscalls.pop()
        {
            self.out.syscall(&first.row());
        }
    }

    fn block(&mut self, row: &BlockRow<'_>) {
        self.arrive(row.time_ns, row.line);
        self.found.block_rows += 1;
        self.found.zone_rows += u64::from(row.rwbs.contains('Z'));
        self.blocks.slot(row.time_ns).set(row);
        if self.blocks.is_over()
            && let Some(first) = self.blocks.pop()
        {
            self.out.block(&first.row());
        }
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
    use proptest::prelude::*;

    use super::*;
    use crate::rows::Rows;

    fn order(times: &[i64], window: usize) -> (Vec<(i64, i64)>, u64) {
        let mut rows = Rows::default();
        let mut ordered = Ordered::with_window(&mut rows, window);
        for (line, time) in times.iter().enumerate() {
            ordered.block(&BlockRow { time_ns: *time, line: line as i64, action: "Q", ..BlockRow::default() });
        }
        let late = ordered.finish().late;
        (rows.blocks.iter().map(|b| (b.time_ns, b.line)).collect(), late)
    }

    #[test]
    fn equal_times_keep_their_order_and_late_rows_are_counted() {
        assert_eq!(order(&[3, 1, 2, 1], 8), (vec![(1, 1), (1, 3), (2, 2), (3, 0)], 0));
        assert_eq!(order(&[5, 6, 7, 1], 2), (vec![(5, 0), (1, 3), (6, 1), (7, 2)], 1));
    }

    #[test]
    fn a_jump_of_the_clock_is_told_from_a_wait() {
        let mut rows = Rows::default();
        let mut ordered = Ordered::new(&mut rows);
        let year = JUMP_NS as i64;
        for (line, time_ns) in [(1, 0), (2, year), (3, 3 * year), (4, 3 * year + 5), (5, 0)] {
            ordered.syscall(&SyscallRow { time_ns, line, ..SyscallRow::default() });
        }
        let found = ordered.finish();
        assert_eq!((found.jumps, found.first_jump), (2, Some((3, year, 3 * year))));
    }

    proptest! {
        #[test]
        fn a_window_as_large_as_the_input_sorts(times in prop::collection::vec(-50i64..50, 0..200)) {
            let (got, late) = order(&times, times.len());
            let mut expected: Vec<_> = times.iter().enumerate().map(|(i, t)| (*t, i as i64)).collect();
            expected.sort();
            prop_assert_eq!((got, late), (expected, 0));
        }

        #[test]
        fn no_row_is_lost_whatever_the_window(times in prop::collection::vec(-50i64..50, 0..200), window in 0usize..20) {
            let (mut got, _) = order(&times, window);
            got.sort_by_key(|r| r.1);
            let expected: Vec<_> = times.iter().enumerate().map(|(i, t)| (*t, i as i64)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
