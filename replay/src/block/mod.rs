//! The block layer: request queues, elevators and the devices below, behind one facade.
//!
//! The simulator knows [`BlockLayer`] only: it submits bios, waits where no request is free, and is told when each
//! started request will be done. Nothing here blocks or knows tasks beyond an opaque [`Waiter`].

pub(crate) mod device;
pub(crate) mod elevator;
mod error;
mod layer;
pub(crate) mod list;
mod plug;
#[cfg(test)]
mod properties;
pub(crate) mod qos;
pub(crate) mod queue;
pub(crate) mod request;
pub(crate) mod slots;
#[cfg(test)]
mod tests;
mod watermark;
#[cfg(test)]
mod worked;

pub use elevator::{PolicyInfo, policies};
pub use error::ConfigError;
pub use layer::BlockLayer;

use kreplay_traces::units::{Nanos, Sectors};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

impl Dir {
    /// 0 for reads, 1 for writes: index into pairs.
    pub(crate) const fn index(self) -> usize {
        match self {
            Dir::Read => 0,
            Dir::Write => 1,
        }
    }
}

/// What a bio carries, for the result tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BioKind {
    /// File data.
    Data,
    /// File data read ahead.
    Readahead,
    /// Metadata (inode tables, indirect blocks, directories).
    Meta,
    /// Swap.
    Swap,
}

/// I/O priority class (`ioprio_set`); schedulers before 2.6.13 have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Before all others.
    RealTime,
    /// Whoever asked for nothing.
    #[default]
    BestEffort,
    /// After all others.
    Idle,
}

/// Why a write is submitted; decides what may be held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Periodic or background write-back.
    Background,
    /// Other write-back.
    #[default]
    Writeback,
    /// Somebody waits for it (fsync, `O_SYNC`).
    Sync,
    /// Memory is to be freed (kswapd).
    Reclaim,
    /// Direct I/O.
    Direct,
}

/// What a submitter says of a bio besides its place; schedulers before 2.6 ask for none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hints {
    /// Priority class.
    pub class: IoClass,
    /// Priority within the class, 0 (highest) to 7.
    pub level: u8,
    /// Cause, of writes.
    pub cause: Cause,
    /// Control group; 0 = the root.
    pub group: u16,
}

impl Default for Hints {
    fn default() -> Self {
        Self { class: IoClass::BestEffort, level: 4, cause: Cause::default(), group: 0 }
    }
}

impl Hints {
    /// Somebody waits for a bio of this direction.
    pub(crate) fn sync(self, dir: Dir) -> bool {
        dir == Dir::Read || matches!(self.cause, Cause::Sync | Cause::Direct)
    }
}

/// Opaque number of whoever sleeps for a request slot.
pub type Waiter = u32;
/// Device index.
pub type DevId = u32;
/// A request of one queue; valid from its insertion to its completion.
pub type RqId = u32;

/// One buffer on its way to or from a device: at most a page, contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Direction.
    pub dir: Dir,
    /// First sector on the device.
    pub sector: Sectors,
    /// Length in sectors.
    pub nr: u32,
    /// Partition number: kernels that compare device numbers never merge or sort across partitions.
    pub partition: u16,
    /// Content.
    pub kind: BioKind,
    /// Caller's handle, handed back at completion.
    pub tag: u32,
    /// Task that submits it, for the result tables.
    pub task: u32,
}

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// It joined a request that was queued already.
    Merged(RqId),
    /// It became a request.
    Queued(RqId),
    /// No request slot is free for its direction, or the queue holds such bios back: the bio was not taken; see
    /// [`BlockLayer::wait_slot`].
    Full,
}

/// A request that the device began to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Device.
    pub dev: DevId,
    /// Request.
    pub rq: RqId,
    /// When it will be done.
    pub done_at: Nanos,
    /// Its length in sectors.
    pub nr: u32,
}

/// A finished request: a row of `io.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRecord {
    /// Device.
    pub dev: DevId,
    /// Direction.
    pub dir: Dir,
    /// First sector.
    pub sector: Sectors,
    /// Length in sectors.
    pub nr: u32,
    /// Bios in it.
    pub bios: u32,
    /// Task that queued the first bio.
    pub task: u32,
    /// Content of the first bio.
    pub kind: BioKind,
    /// First bio queued.
    pub q: Nanos,
    /// Inserted into the queue.
    pub i: Nanos,
    /// Dispatched.
    pub d: Nanos,
    /// Completed.
    pub c: Nanos,
    /// Requests dispatched while it waited.
    pub passed: u32,
    /// Inserted at the tail of the queue.
    pub tail: bool,
    /// Distance from the end of the request served before on this device, sectors.
    pub seek_sectors: i64,
}
