//! Frames: what a task is in the middle of.
//!
//! A context that blocks deep inside the kernel is a stack of these small values, not a coroutine: the whole simulator can
//! be cloned and sent, and a task's frames *are* its wait chain. One kind per generic blocking operation; nothing per kernel
//! variant. After any wait a frame re-validates from the page id: the page may be gone, or locked again.

use crate::block::{BioKind, Dir};
use crate::mm::zone::AllocFlags;

/// One step of a deep call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Fetches the task's next operation.
    Program,
    /// The operation itself; its cursor stands in the task.
    Op,
    /// `generic_file_readahead`'s loop: pages `base + 1 ..= base + max` of the operation's file.
    Readahead {
        /// Page before the first.
        base: u32,
        /// Pages tried.
        done: u16,
        /// Pages to try.
        max: u16,
        /// Progress on the page in hand.
        at: Bring,
    },
    /// Get a frame; returns its zone or [`FAILED`].
    Alloc {
        /// What the caller may do.
        flags: AllocFlags,
        /// Progress.
        at: Alloc,
    },
    /// A reclaim run; its cursor stands in the task. Returns 1 for success.
    Reclaim,
    /// Read a locked cache page: find its place, submit.
    ReadPage {
        /// Page.
        page: u32,
        /// For the result tables.
        kind: BioKind,
        /// The place is known.
        mapped: bool,
    },
    /// Bring a metadata block in and wait for it.
    Bread {
        /// Page.
        page: u32,
        /// Progress.
        at: Bread,
    },
    /// Write inodes that are dirty and unused.
    WriteUnused {
        /// Progress.
        at: WriteUnused,
    },
    /// Queue one page's I/O, waiting for a request if none is free.
    Submit {
        /// Page.
        page: u32,
        /// Direction.
        dir: Dir,
        /// For the result tables.
        kind: BioKind,
        /// It waited already.
        waited: bool,
    },
    /// Wait until a page is unlocked.
    WaitPage {
        /// Page.
        page: u32,
    },
    /// Wait until a page's buffer is unlocked.
    WaitBuffer {
        /// Page.
        page: u32,
    },
    /// Submit the task's batch of buffers.
    WriteSome {
        /// Next in the batch.
        next: u8,
        /// Size of the batch.
        len: u8,
    },
    /// `balance_dirty`.
    Balance {
        /// Progress.
        at: Balance,
    },
    /// `writepage` of a locked page.
    WriteOut {
        /// Page.
        page: u32,
        /// Its I/O is queued.
        queued: bool,
    },
    /// Bring a swapped-out page and its cluster in; on return the page is in the swap cache, locked or not.
    SwapIn {
        /// Page that faulted.
        page: u32,
        /// Next slot of the cluster.
        slot: u32,
        /// End of the cluster.
        end: u32,
        /// Progress.
        at: Bring,
    },
    /// Queue reads for the missing pages `first..end` of a file, without waiting (`filemap_nopage`'s cluster).
    ReadAround {
        /// Next page.
        first: u32,
        /// End.
        end: u32,
        /// Progress on the page in hand.
        at: Bring,
    },
    /// Look a name up; brings directory block and inode in.
    Lookup {
        /// File.
        file: u32,
        /// Progress.
        at: Lookup,
    },
    /// The reclaim daemon.
    Kswapd {
        /// Progress.
        at: Kswapd,
        /// Zone in hand.
        class: u8,
        /// Some zone needs more.
        more: bool,
    },
    /// The dirty buffer daemon.
    Bdflush {
        /// Progress.
        at: Bdflush,
    },
    /// The daemon that writes old buffers.
    Kupdate {
        /// Progress.
        at: Kupdate,
    },
    /// Bring the missing ones of `n` pages of a file in; returns [`FAILED`] when a frame could not be had.
    Fill {
        /// First page.
        first: u32,
        /// Pages.
        n: u16,
        /// Next page, from the first.
        at: u16,
        /// First page that is locked and whose read is not queued yet.
        run: u16,
        /// Page that gets the read-ahead mark.
        mark: u16,
        /// For the result tables.
        kind: BioKind,
        /// Progress.
        state: Fill,
    },
    /// Queue the I/O of pages in a row of one file.
    SubmitRun {
        /// First page.
        page: u32,
        /// Pages.
        n: u16,
        /// Direction.
        dir: Dir,
        /// For the result tables.
        kind: BioKind,
        /// It waited already.
        waited: bool,
    },
    /// `balance_dirty_pages`.
    Throttle {
        /// Look at the level; else the pause is over.
        look: bool,
    },
    /// A reclaimer's rest until something is written.
    Rest {
        /// It was registered.
        begun: bool,
    },
    /// The daemon that writes dirty pages by file.
    Flusher {
        /// Progress.
        at: Flush,
    },
    /// The journal's daemon.
    Journal,
    /// A commit of the journal, or the wait for one.
    Commit {
        /// Progress.
        at: Commit,
    },
}

const _: () = assert!(std::mem::size_of::<Frame>() <= 16);

/// A frame's "no".
pub const FAILED: u32 = u32::MAX;

/// Progress of bringing a page into a cache without waiting for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bring {
    /// Next page.
    Next,
    /// A frame was asked for.
    Allocated,
    /// Its read was queued.
    Queued,
}

/// Progress of filling a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Next page.
    Next,
    /// A frame was asked for.
    Allocated,
    /// None could be had; what was locked is queued.
    Failed,
}

/// Progress of the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Look for a reason to write.
    Idle,
    /// Choose a file.
    Next,
    /// Write a file's dirty pages, a chunk of them.
    Write {
        /// File.
        file: u32,
    },
}

/// Progress of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Wait until a transaction is on the medium.
    Await {
        /// Its number.
        number: u32,
    },
    /// It begins.
    Begin,
    /// Write what is left.
    Write {
        /// Blocks to queue.
        left: u32,
        /// It is the commit block.
        last: bool,
    },
    /// The device was flushed.
    Flushed {
        /// Behind the commit block.
        last: bool,
    },
}

/// Progress of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alloc {
    /// Try the watermarks.
    Try,
    /// Try them again after reclaim (aging kernels).
    Again,
    /// Reclaim for it.
    Rebalance,
    /// Reclaim is over.
    Reclaimed,
    /// Reclaimed once before the reserve is looked at (aging kernels).
    Helped,
    /// Other tasks ran (aging kernels).
    Yielded,
    /// Anything that is left (aging kernels).
    Last,
}

/// Progress of writing unused inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteUnused {
    /// Find the next one.
    Next,
    /// Its block is in.
    Read {
        /// The block.
        block: u32,
        /// It is the only one, and waited for.
        only: bool,
    },
    /// It was the last.
    Over,
}

/// Progress of reading a metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bread {
    /// Look.
    Look,
    /// A frame was asked for.
    Allocated,
    /// Its read was queued.
    Queued,
}

/// Progress of `balance_dirty`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Look at the level.
    Look,
    /// Wrote some, above the soft limit.
    Soft,
    /// Wrote some, above the hard limit.
    Hard,
    /// Waited for one.
    Waited,
}

/// Progress of a name lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Look.
    Look,
    /// Look for the name of a file that is about to be made.
    New,
    /// The directory block is in.
    Directory,
    /// The inode's block is in.
    Inode,
}

/// Progress of kswapd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kswapd {
    /// Asleep.
    Sleep,
    /// Next zone.
    Zone,
    /// A zone was reclaimed.
    Reclaimed,
    /// Rested after a failure.
    Rested,
    /// Look for shortages (aging kernels).
    Look,
    /// A run is over (aging kernels).
    Ran,
}

/// Progress of bdflush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bdflush {
    /// Write a batch.
    Write,
    /// It is written.
    Wrote {
        /// There may be more.
        full: bool,
        /// Something was written.
        wrote: bool,
    },
    /// Waited for one buffer.
    Waited,
}

/// Progress of kupdate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kupdate {
    /// Wait for one buffer.
    Begin,
    /// Sleep for the interval.
    Sleep,
    /// Write inodes back; the number in the task's cursor is the next file.
    Inodes,
    /// An inode's block is in.
    InodeRead,
    /// Write old buffers.
    Buffers,
}
