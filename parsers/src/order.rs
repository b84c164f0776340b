//! Rows in time order with bounded memory.
//!
//! Parsers emit rows as the text gives them: a strace call when it ends, a completion right after its arrival. This sink
//! holds a window of rows and lets the earliest go when the window is full; rows of equal time keep their order. A row
//! that comes later than the window reaches is passed on at once and counted.

use std::collections::VecDeque;

use kreplay_traces::event::{BlockRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow};

use crate::rows::{Block, Syscall};

/// Rows that are held at most, for each of the two ordered tables.
pub const WINDOW_ROWS: usize = 32 * 1024;

/// A sink that orders system calls and block events by time before it passes them on.
pub struct Ordered<'a> {
    out: &'a mut dyn EventSink,
    syscalls: Window<Syscall>,
    blocks: Window<Block>,
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
        Self { out, syscalls: Window::new(rows), blocks: Window::new(rows) }
    }

    /// Let all rows go; gives how many came too late to be put into their place.
    pub fn finish(mut self) -> u64 {
        while let Some(row) = self.syscalls.pop() {
            self.out.syscall(&row.row());
        }
        while let Some(row) = self.blocks.pop() {
            self.out.block(&row.row());
        }
        self.syscalls.late + self.blocks.late
    }
}

impl EventSink for Ordered<'_> {
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        self.syscalls.slot(row.time_ns).set(row);
        if self.syscalls.is_over()
            && let Some(first) = self.syscalls.pop()
        {
            self.out.syscall(&first.row());
        }
    }

    fn block(&mut self, row: &BlockRow<'_>) {
        self.blocks.slot(row.time_ns).set(row);
        if self.blocks.is_over()
            && let Some(first) = self.blocks.pop()
        {
            self.out.block(&first.row());
        }
    }

    fn vmstat(&mut self, row: &VmstatRow) {
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
        let late = ordered.finish();
        (rows.blocks.iter().map(|b| (b.time_ns, b.line)).collect(), late)
    }

    #[test]
    fn equal_times_keep_their_order_and_late_rows_are_counted() {
        assert_eq!(order(&[3, 1, 2, 1], 8), (vec![(1, 1), (1, 3), (2, 2), (3, 0)], 0));
        assert_eq!(order(&[5, 6, 7, 1], 2), (vec![(5, 0), (1, 3), (6, 1), (7, 2)], 1));
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
