//! A block-level replay as rows of the result tables.

use std::sync::atomic::AtomicBool;

use kreplay_traces::units::{Bytes, Nanos, SECTOR_BYTES};

use super::engine::{BioDone, BlockReplayError, Observe, Replayed, run};
use super::program::{Action, BlockProgram};
use crate::block::{Dir, IoRecord};
use crate::config::Config;
use crate::results::{Blame, CallOp, CallRow, Cause, ClientRow, ResultSink, SampleRow};
use crate::sim::Pacing;

/// Replays into a sink: requests as `io`, bios as `calls` (from Q to C), tasks as `clients`, device rates as `samples`.
///
/// # Errors
/// See [`BlockReplayError`].
pub fn replay(
    program: &BlockProgram,
    config: &Config,
    pacing: Pacing,
    sink: &mut dyn ResultSink,
    abort: &AtomicBool,
) -> Result<Replayed, BlockReplayError> {
    let clients = (0..program.tasks.len() as u32).map(client).collect();
    let each = sink.wants_each();
    let mut rows = Rows { sink, clients, each };
    let end = run(program, config, pacing, &mut rows, abort)?;
    for client in &rows.clients {
        rows.sink.client(client);
    }
    rows.sink.counters(&end.counters);
    Ok(end)
}

fn client(task: u32) -> ClientRow {
    ClientRow {
        task,
        start: None,
        end: None,
        bytes_read: Bytes::ZERO,
        bytes_written: Bytes::ZERO,
        think: Nanos::ZERO,
        blame: Blame::ZERO,
        killed: false,
    }
}

struct Rows<'a> {
    sink: &'a mut dyn ResultSink,
    clients: Vec<ClientRow>,
    /// Rows of single requests and bios are wanted.
    each: bool,
}

impl Observe for Rows<'_> {
    fn request(&mut self, rec: &IoRecord) {
        if self.each {
            self.sink.io(rec);
        }
    }

    fn bio(&mut self, a: &Action, done: &BioDone) {
        let dur = done.c.saturating_sub(done.q);
        let mut blame = Blame::ZERO;
        blame.add(Cause::Slot, done.slept);
        let (op, cause) = match (a.nr, a.flags.dir()) {
            (0, _) => (CallOp::Fsync, Cause::Sync),
            (_, Dir::Read) => (CallOp::Read, Cause::Read),
            (_, Dir::Write) => (CallOp::Write, Cause::Sync),
        };
        blame.add(cause, dur.saturating_sub(done.slept));
        let len = Bytes(u64::from(a.nr) * SECTOR_BYTES);
        if self.each {
            self.sink.call(&CallRow {
                task: a.task,
                line: a.line,
                op,
                file: None,
                offset: Some(Bytes(a.sector * SECTOR_BYTES)),
                len: Some(len),
                start: done.q,
                dur,
                recorded: a.done.checked_sub(a.at).filter(|_| a.done != Nanos::MAX),
                blame,
            });
        }
        let c = &mut self.clients[a.task as usize];
        c.start = Some(c.start.map_or(done.q, |s| s.min(done.q)));
        c.end = Some(c.end.map_or(done.c, |e| e.max(done.c)));
        match a.flags.dir() {
            Dir::Read => c.bytes_read += len,
            Dir::Write => c.bytes_written += len,
        }
        c.blame.add(Cause::Slot, done.slept);
        c.blame.add(cause, dur.saturating_sub(done.slept));
    }

    fn second(&mut self, time: Nanos, moved: [u64; 2], queued: u64) {
        let [read, written] = moved;
        let row = SampleRow {
            time,
            bi_kib_s: read / 1024,
            bo_kib_s: written / 1024,
            queue_len: queued,
            ..SampleRow::default()
        };
        self.sink.sample(&row);
    }

    fn failed(&self) -> bool {
        self.sink.failed()
    }
}
