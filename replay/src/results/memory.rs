//! A sink that keeps every row in memory.

use super::{CallRow, ClientRow, Counters, EventRow, EvictionRow, MarkRow, ResultSink, SampleRow};
use crate::block::IoRecord;

/// Keeps what it is given, in order. For tests and `prove`; memory grows with the run.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "one vector a table of docs/RESULTS.md")]
pub struct MemorySink {
    pub io: Vec<IoRecord>,
    pub calls: Vec<CallRow>,
    pub samples: Vec<SampleRow>,
    pub marks: Vec<MarkRow>,
    pub events: Vec<EventRow>,
    pub evictions: Vec<EvictionRow>,
    pub clients: Vec<ClientRow>,
    /// Set once the run has ended.
    pub counters: Option<Counters>,
}

impl ResultSink for MemorySink {
    fn io(&mut self, row: &IoRecord) {
        self.io.push(*row);
    }
    fn call(&mut self, row: &CallRow) {
        self.calls.push(*row);
    }
    fn sample(&mut self, row: &SampleRow) {
        self.samples.push(*row);
    }
    fn mark(&mut self, row: &MarkRow) {
        self.marks.push(*row);
    }
    fn event(&mut self, row: &EventRow) {
        self.events.push(row.clone());
    }
    fn evicted(&mut self, row: &EvictionRow) {
        self.evictions.push(*row);
    }
    fn client(&mut self, row: &ClientRow) {
        self.clients.push(*row);
    }
    fn counters(&mut self, counters: &Counters) {
        self.counters = Some(*counters);
    }
}
