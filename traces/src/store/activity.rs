//! System calls and page touches in one stream: what tasks did, in time order.

use super::dir::TraceDir;
use super::reader::TableReader;
use crate::error::Result;
use crate::event::{FaultRow, SyscallRow};
use crate::schema::{Faults, Syscalls};

/// A row of either table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activity<'a> {
    /// A system call.
    Syscall(SyscallRow<'a>),
    /// Page touches.
    Fault(FaultRow),
}

/// Merges the tables `syscall` and `fault` by (time, line).
pub struct ActivityReader {
    syscalls: TableReader<Syscalls>,
    faults: TableReader<Faults>,
    /// The row last returned was a page touch; `None` before the first.
    last_was_fault: Option<bool>,
}

impl ActivityReader {
    pub(super) fn open(trace: &TraceDir) -> Result<Self> {
        Ok(Self { syscalls: trace.syscalls()?, faults: trace.faults()?, last_was_fault: None })
    }

    /// The next row; `None` at the end. Times are nanoseconds since the start of the trace.
    ///
    /// # Errors
    /// If a part turns out to be damaged or cannot be read.
    #[expect(clippy::should_implement_trait, reason = "rows borrow from the reader")]
    pub fn next(&mut self) -> Result<Option<Activity<'_>>> {
        if self.last_was_fault != Some(true) {
            self.syscalls.advance()?;
        }
        if self.last_was_fault != Some(false) {
            self.faults.advance()?;
        }
        let call = self.syscalls.current();
        let fault = self.faults.current();
        let fault_first = match (&call, &fault) {
            (Some(c), Some(f)) => (f.time_ns, f.line) < (c.time_ns, c.line),
            (None, _) => true,
            (Some(_), None) => false,
        };
        self.last_was_fault = Some(fault_first);
        Ok(if fault_first { fault.map(Activity::Fault) } else { call.map(Activity::Syscall) })
    }
}
