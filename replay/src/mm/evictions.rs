//! Which pages reclaim threw out, and when, until the engine hands them to its sink.

use super::Mm;
use super::page::flag;
use crate::results::EvictionRow;
use kreplay_traces::units::Nanos;

/// Pages of one file beside each other that were thrown out in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    time: Nanos,
    first: u32,
    pages: u32,
}

/// Runs not yet taken.
#[derive(Clone, Debug, Default)]
pub struct Evictions {
    runs: Vec<Run>,
}

impl Evictions {
    /// Nothing waits to be taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

impl Mm {
    /// Reclaim freed the frame of `id`: counted, and kept if the page holds a file's data. The order of events is that of the
    /// calls; the time is that of the step in hand.
    pub fn note_evicted(&mut self, id: u32) {
        self.counters.evicted_pages += 1;
        if self.page(id).any(flag::ANON | flag::META) || self.is_twin(id) {
            return;
        }
        let time = self.now;
        match self.evictions.runs.last_mut() {
            Some(run) if run.time == time && run.first + run.pages == id => run.pages += 1,
            _ => self.evictions.runs.push(Run { time, first: id, pages: 1 }),
        }
    }

    /// Takes what was thrown out since the last time, a row for each run within one file.
    pub fn take_evictions(&mut self) -> Vec<EvictionRow> {
        let runs = std::mem::take(&mut self.evictions.runs);
        let mut rows = Vec::with_capacity(runs.len());
        for Run { time, mut first, pages } in runs {
            let end = first + pages;
            // Files lie beside each other in the page ids: a run may go over the end of one.
            while first < end {
                let file = self.file_of(first);
                let of_file = self.pages_of_file(file);
                let stop = end.min(of_file.end);
                rows.push(EvictionRow { time, file, page: first - of_file.start, pages: stop - first });
                first = stop;
            }
        }
        rows
    }
}
