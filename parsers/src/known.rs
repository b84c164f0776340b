//! Files that an earlier layout has, in bounded room.

use std::sync::Arc;

use hashbrown::HashSet;
use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};
use rustc_hash::FxBuildHasher;

use crate::kept::name_key;

/// Files that are remembered.
const MAX_FILES: usize = 1 << 20;

/// The files that the layout before a run has, by the hashes of their paths: a sink that remembers the file rows it gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownFiles {
    keys: Arc<HashSet<u128, FxBuildHasher>>,
    missed: u64,
}

impl KnownFiles {
    /// Whether the path is one of them.
    pub fn has(&self, path: &str) -> bool {
        self.keys.contains(&name_key(path.as_bytes()))
    }

    /// How many paths are remembered.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// None is.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Rows whose paths are not remembered, for want of room.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl EventSink for KnownFiles {
    fn file(&mut self, row: &FileRow<'_>) {
        let key = name_key(row.path.as_bytes());
        if self.keys.len() < MAX_FILES {
            Arc::make_mut(&mut self.keys).insert(key);
        } else {
            self.missed += u64::from(!self.keys.contains(&key));
        }
    }

    fn syscall(&mut self, _: &SyscallRow<'_>) {}
    fn block(&mut self, _: &BlockRow<'_>) {}
    fn vmstat(&mut self, _: &VmstatRow) {}
    fn fault(&mut self, _: &FaultRow) {}
    fn process(&mut self, _: &ProcessRow<'_>) {}
    fn counter(&mut self, _: &CounterRow<'_>) {}
    fn reject(&mut self, _: &RejectRow<'_>) {}
}
