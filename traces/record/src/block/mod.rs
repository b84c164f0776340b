//! Block events while a load runs, from the kernel's own tracing; blktrace(8) is not needed, whose files in debugfs a
//! locked-down kernel keeps shut.

mod events;
mod numbered;
mod pipe;
mod tracer;

use std::path::Path;

use crate::device::Device;
use crate::tracefs::TraceFs;

/// How block events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// The `blk` tracer if it is free, else events.
    Auto,
    /// The kernel's `blk` tracer (`blktrace.txt` in blkparse's columns, nanoseconds): one at a time on a machine.
    Tracer,
    /// The `block_*` events in an instance of their own (`block.ftrace.txt`, microseconds): any number at a time.
    Events,
}

/// What was got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCount {
    /// Lines written.
    pub lines: u64,
    /// Events that did not fit into the kernel's buffers.
    pub lost: u64,
}

/// A recording of block events under way. Dropped without [`BlockRecorder::stop`] it puts the kernel's settings back too.
pub(crate) enum BlockRecorder {
    Tracer(tracer::BlkTracer),
    Events(events::BlockEvents),
}

impl BlockRecorder {
    /// Begins. `buffer_kib` is the kernel's buffer per processor.
    ///
    /// # Errors
    /// A sentence that says what is lacking.
    pub(crate) fn start(source: BlockSource, device: &Device, buffer_kib: u32, dir: &Path) -> Result<Self, String> {
        let top = TraceFs::top()?;
        let tracer = || tracer::BlkTracer::start(&top, device, buffer_kib, &dir.join("blktrace.txt"));
        let events = || events::BlockEvents::start(&top, device, buffer_kib, &dir.join("block.ftrace.txt"));
        match source {
            BlockSource::Tracer => tracer().map(Self::Tracer),
            BlockSource::Events => events().map(Self::Events),
            BlockSource::Auto => match tracer() {
                Ok(tracer) => Ok(Self::Tracer(tracer)),
                Err(why) => events().map(Self::Events).map_err(|e| format!("{why}; {e}")),
            },
        }
    }

    /// Lines so far.
    pub(crate) fn lines(&self) -> u64 {
        match self {
            Self::Tracer(t) => t.lines(),
            Self::Events(e) => e.lines(),
        }
    }

    /// Ends, when the buffers have been read to their end.
    ///
    /// # Errors
    /// A sentence, when the events could not be written down.
    pub(crate) fn stop(self) -> Result<BlockCount, String> {
        match self {
            Self::Tracer(t) => t.stop(),
            Self::Events(e) => e.stop(),
        }
    }

    /// As the recording names it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tracer(_) => "blk-tracer",
            Self::Events(_) => "events",
        }
    }
}
