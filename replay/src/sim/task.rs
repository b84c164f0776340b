//! Tasks: traced processes and kernel daemons alike.

use super::frame::Frame;
use crate::dirty::Writer;
use crate::program::OfdId;
use crate::reclaim::Cursor;
use crate::results::{Blame, Cause};
use crate::writeback::MAX_BATCH;
use kreplay_traces::units::Nanos;

/// Deepest chain of frames: a designed bound, exceeding it is a bug and panics.
pub const MAX_DEPTH: usize = 20;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: it runs or is ready to.
    Nothing,
    /// A page's lock.
    Page(u32),
    /// A page's buffer.
    Buffer(u32),
    /// A request slot.
    Slot,
    /// A point in time.
    Time,
    /// A daemon's wake-up.
    Daemon,
    /// Write-out of something, as a reclaimer.
    Rest,
    /// The journal.
    Journal,
    /// Its transfers without a cached page.
    Raw,
    /// A file's inode semaphore.
    Inode(u32),
    /// A channel.
    Channel(u32),
    /// To be started.
    Start,
    /// It has ended.
    Ended,
}

/// Progress of the operation in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It begins.
    Begin,
    /// Next page.
    Loop,
    /// A frame was asked for.
    Allocated,
    /// The page's read was queued.
    Queued,
    /// Read-ahead beside a read of our own was queued: wait for the page.
    WaitOwn,
    /// Read-ahead was queued, the page is there.
    Copy,
    /// Waited for somebody else's lock.
    Waited,
    /// Read-ahead was queued, the page is locked by somebody else.
    LockWait,
    /// The place on disk is known.
    Mapped,
    /// The block was read.
    BlockRead,
    /// The block read was waited for.
    Filled,
    /// Dirty level was balanced.
    Balanced,
    /// Second half of a two-part operation.
    Second,
    /// Third part.
    Third,
    /// The pause of a writer is over.
    Paused,
    /// A wait is over.
    Done,
}

/// Cursor of the operation in hand.
#[derive(Clone, Copy, Debug)]
pub struct OpCursor {
    /// Progress.
    pub at: At,
    /// Descriptor.
    pub ofd: OfdId,
    /// File.
    pub file: u32,
    /// First page id of file or area.
    pub first: u32,
    /// Next byte (or touch).
    pub pos: u64,
    /// End.
    pub end: u64,
    /// Where it began.
    pub start: u64,
    /// End of the outer operation (RecvWrite).
    pub outer_end: u64,
    /// Read-ahead may be asynchronous.
    pub reada_ok: bool,
    /// The page in hand is pinned.
    pub pinned: bool,
    /// The write in hand covers a part of a block that had no place on disk.
    pub fresh: bool,
}

impl Default for OpCursor {
    fn default() -> Self {
        Self {
            at: At::Begin,
            ofd: 0,
            file: 0,
            first: 0,
            pos: 0,
            end: 0,
            start: 0,
            outer_end: 0,
            reada_ok: false,
            pinned: false,
            fresh: false,
        }
    }
}

/// One execution context.
#[derive(Clone, Debug)]
pub struct Task {
    frames: [Frame; MAX_DEPTH],
    depth: u8,
    /// What the last popped frame returned.
    pub ret: u32,
    /// What it waits for.
    pub wait: Wait,
    /// Next waiter on the same page (task + 1), 0 = none.
    pub next_waiter: u32,
    /// What it counts as for the pressure while it sleeps.
    pub pressure: u8,
    /// PF_MEMALLOC: may take the last frame and never reclaims.
    pub memalloc: bool,
    /// Chosen by the OOM killer.
    pub dying: bool,
    /// Its reclaim run.
    pub reclaim: Option<Cursor>,
    /// Buffers it is about to write.
    pub batch: [u32; MAX_BATCH],
    /// The operation in hand.
    pub op: OpCursor,
    /// Index of the next operation of its program.
    pub next_op: u32,
    /// Index of the operation in hand.
    pub this_op: u32,
    /// The pause before the next operation is over.
    pub paced: bool,
    /// Start of the operation in hand.
    pub op_start: Nanos,
    /// Up to here its time is accounted for.
    pub since: Nanos,
    /// Where the time of the operation in hand went.
    pub blame: Blame,
    /// Cause of the wait in hand.
    pub cause: Cause,
    /// Ready, waiting for a processor.
    pub ready: bool,
    /// What is left of its time slice.
    pub slice: Nanos,
    /// Its place in the run queue: higher is nearer to the head.
    pub place: u64,
    /// In an operation (not thinking).
    pub in_op: bool,
    /// A daemon of the kernel.
    pub daemon: bool,
    /// What it dirtied, where writers pause for that.
    pub dirty: Writer,
    /// Longest end of its rest.
    pub rest_until: Nanos,
    /// Reclaim runs in a row that freed nothing.
    pub fruitless: u8,
    /// It sleeps or slept for a request slot for a transfer without a cached page, and how many of these are on their way.
    pub wait_slot: bool,
    /// ... on their way.
    pub raw_pending: u32,
    /// Point of time that its last pace named.
    pub pace: Nanos,
    /// Totals.
    pub total: Totals,
}

/// A task's totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// First operation began.
    pub start: Option<Nanos>,
    /// It ended.
    pub end: Option<Nanos>,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Think time.
    pub think: Nanos,
    /// Blame of all its operations.
    pub blame: Blame,
    /// Killed.
    pub killed: bool,
}

impl Task {
    /// A task that waits to be started, with one frame.
    pub fn new(base: Frame, daemon: bool, slice: Nanos) -> Self {
        let mut t = Self {
            frames: [Frame::Program; MAX_DEPTH],
            depth: 0,
            ret: 0,
            wait: Wait::Start,
            next_waiter: 0,
            pressure: 0,
            memalloc: false,
            dying: false,
            reclaim: None,
            batch: [0; MAX_BATCH],
            op: OpCursor::default(),
            next_op: 0,
            this_op: 0,
            paced: false,
            op_start: Nanos::ZERO,
            since: Nanos::ZERO,
            blame: Blame::ZERO,
            cause: Cause::Cpu,
            ready: false,
            slice,
            place: 0,
            in_op: false,
            daemon,
            dirty: Writer::default(),
            rest_until: Nanos::ZERO,
            fruitless: 0,
            wait_slot: false,
            raw_pending: 0,
            pace: Nanos::ZERO,
            total: Totals::default(),
        };
        t.push(base);
        t
    }

    /// The frame in hand.
    #[inline]
    pub fn top(&self) -> Frame {
        self.frames[self.depth as usize - 1]
    }
    /// Replace the frame in hand.
    #[inline]
    pub fn set_top(&mut self, f: Frame) {
        self.frames[self.depth as usize - 1] = f;
    }
    /// Go deeper.
    ///
    /// # Panics
    /// Beyond [`MAX_DEPTH`].
    #[inline]
    pub fn push(&mut self, f: Frame) {
        self.frames[self.depth as usize] = f;
        self.depth += 1;
    }
    /// Return to the frame below.
    #[inline]
    pub fn pop(&mut self, ret: u32) {
        self.depth -= 1;
        self.ret = ret;
    }
    /// The chain from the outermost frame to the one in hand.
    pub fn chain(&self) -> &[Frame] {
        &self.frames[..self.depth as usize]
    }

    /// Account for time up to `to`.
    #[inline]
    pub fn account(&mut self, cause: Cause, to: Nanos) {
        if to > self.since {
            if self.in_op {
                self.blame.add(cause, to - self.since);
            } else if cause == Cause::RunQueue && self.total.start.is_some() {
                // Ready between two calls: no call's time, but the task's.
                self.total.blame.add(cause, to - self.since);
            }
            self.since = to;
        }
    }
}
