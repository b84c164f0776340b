//! What the first pass finds out, so that the second can decide at once.

use super::sizes::{InitialSize, SizeEvidence};
use crate::program::{FileId, TaskId};

/// Uses of a byte stream.
#[derive(Clone, Debug, Default)]
struct StreamUse {
    /// (start, bytes) of each write.
    writes: Vec<(i64, u64)>,
    /// (end, bytes) of each read.
    reads: Vec<(i64, u64)>,
}

impl StreamUse {
    /// Every read returned bytes that traced writes had begun to write before it ended: only then is the stream all
    /// the trace's own, and waiting for those bytes can be met in the recorded order.
    fn explained(&self) -> bool {
        if self.reads.is_empty() || self.writes.is_empty() {
            return false;
        }
        let (mut writes, mut reads) = (self.writes.clone(), self.reads.clone());
        writes.sort_unstable();
        reads.sort_unstable();
        let (mut written, mut read, mut next) = (0_u64, 0_u64, 0);
        reads.iter().all(|&(end, n)| {
            while next < writes.len() && writes[next].0 <= end {
                written += writes[next].1;
                next += 1;
            }
            read += n;
            read <= written
        })
    }
}

/// Collected during the first pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) sizes: Vec<SizeEvidence>,
    /// The file was seen to be a file (sought in, mapped, truncated ...).
    seekable: Vec<bool>,
    streams: Vec<StreamUse>,
    /// Per task: events, start of the last one, and when a vfork child let its parent go on.
    tasks: Vec<TaskUse>,
    /// A pseudo-call was seen: the trace was generated.
    pub(super) generated: bool,
    /// Page touches were seen.
    pub(super) faults: bool,
    /// Time of the first event.
    pub(super) first_ns: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TaskUse {
    events: u64,
    last_ns: i64,
    released_ns: Option<i64>,
}

fn slot<T: Clone + Default>(v: &mut Vec<T>, i: usize) -> &mut T {
    if v.len() <= i {
        v.resize(i + 1, T::default());
    }
    &mut v[i]
}

impl Survey {
    pub(super) fn size(&mut self, file: FileId) -> &mut SizeEvidence {
        slot(&mut self.sizes, file as usize)
    }

    pub(super) fn seeks(&mut self, file: FileId) {
        *slot(&mut self.seekable, file as usize) = true;
    }

    pub(super) fn stream_write(&mut self, stream: usize, start_ns: i64, bytes: u64) {
        slot(&mut self.streams, stream).writes.push((start_ns, bytes));
    }

    pub(super) fn stream_read(&mut self, stream: usize, end_ns: i64, bytes: u64) {
        slot(&mut self.streams, stream).reads.push((end_ns, bytes));
    }

    pub(super) fn event(&mut self, task: usize, time_ns: i64) {
        let t = slot(&mut self.tasks, task);
        t.events += 1;
        t.last_ns = time_ns;
        self.first_ns.get_or_insert(time_ns);
    }

    pub(super) fn released(&mut self, task: usize, time_ns: i64) {
        slot(&mut self.tasks, task).released_ns.get_or_insert(time_ns);
    }

    /// Sum up. `directory` and `guessed` say so of each file.
    pub(super) fn conclude(mut self, files: &[super::names::FileState], streams: usize, tasks: usize) -> Known {
        slot(&mut self.sizes, files.len());
        slot(&mut self.seekable, files.len());
        slot(&mut self.streams, streams);
        slot(&mut self.tasks, tasks);
        let initial = files
            .iter()
            .zip(&self.sizes)
            .map(|(f, e)| {
                let mut size = e.conclude();
                if f.directory && !e.is_absent() {
                    size.exists = true;
                    size.bytes = size.bytes.max(kreplay_traces::units::PAGE_BYTES);
                    size.assumed = false;
                }
                size
            })
            .collect();
        let real = files.iter().zip(&self.seekable).map(|(f, seeks)| !f.guessed || *seeks).collect();
        let mut ids = Vec::with_capacity(tasks);
        let mut order = Vec::new();
        for (index, t) in self.tasks[..tasks].iter().enumerate() {
            ids.push((t.events > 0).then_some(order.len() as TaskId));
            if t.events > 0 {
                order.push(index);
            }
        }
        Known {
            initial,
            real,
            ids,
            order,
            streams: self.streams.iter().map(StreamUse::explained).collect(),
            last_ns: self.tasks.iter().map(|t| t.last_ns).collect(),
            released_ns: self.tasks.iter().map(|t| t.released_ns).collect(),
            generated: self.generated,
            faults: self.faults,
            first_ns: self.first_ns.unwrap_or(0),
        }
    }
}

/// What the second pass knows beforehand.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// By file.
    pub(super) initial: Vec<InitialSize>,
    /// By file: it is one (a guess was not borne out otherwise).
    pub(super) real: Vec<bool>,
    /// By task: its id in the program, `None` if it has no events.
    pub(super) ids: Vec<Option<TaskId>>,
    /// Task of each id of the program.
    pub(super) order: Vec<usize>,
    /// By stream: both ends are the trace's own.
    pub(super) streams: Vec<bool>,
    /// By task: start of its last event.
    pub(super) last_ns: Vec<i64>,
    /// By task: exec or exit of a vfork child.
    pub(super) released_ns: Vec<Option<i64>>,
    pub(super) generated: bool,
    pub(super) faults: bool,
    pub(super) first_ns: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_explained_only_if_every_read_had_its_bytes() {
        let mut s = Survey::default();
        s.stream_write(0, 10, 100);
        s.stream_read(0, 12, 60);
        s.stream_read(0, 30, 40);
        s.stream_read(1, 5, 1);
        s.stream_write(1, 6, 1);
        let k = s.conclude(&[], 3, 0);
        assert_eq!(k.streams[..3], [true, false, false]);
    }
}
