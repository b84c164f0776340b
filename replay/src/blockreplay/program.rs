//! What a block trace asks of the queues below: bios in time order, and what the recording says became of them.

use kreplay_traces::units::{Nanos, Sectors};

use crate::block::{BioKind, Dir, IoClass};
use crate::program::{Coverage, DeviceInfo, Program, Start, TaskProgram};

/// No action.
pub const NONE: u32 = u32::MAX;
/// The bio stays in its task's plug list until a later one is released.
pub const NO_UNPLUG: u32 = u32::MAX;

/// Properties of a bio, from its RWBS letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    const WRITE: u8 = 1;
    const SYNC: u8 = 2;
    const PREFLUSH: u8 = 4;
    const FUA: u8 = 8;
    const META: u8 = 16;
    const READAHEAD: u8 = 32;

    /// Flags of an RWBS field; `None` for operations that move no data and flush nothing (discards, zone commands).
    ///
    /// The letters are blktrace's: F in front of the operation is a flush before it, F behind it forced unit access.
    pub fn from_rwbs(rwbs: &str) -> Option<Self> {
        let mut f = 0;
        let mut op = None;
        for (at, c) in rwbs.bytes().enumerate() {
            match c {
                b'F' if at == 0 => f |= Self::PREFLUSH,
                b'R' | b'W' | b'D' | b'N' | b'Z' if op.is_none() => op = Some(c),
                b'F' => f |= Self::FUA,
                b'S' | b'B' => f |= Self::SYNC,
                b'M' => f |= Self::META,
                b'A' => f |= Self::READAHEAD,
                _ => {}
            }
        }
        match op {
            Some(b'R') => Some(Self(f & !Self::SYNC | Self::SYNC)),
            Some(b'W') => {
                // Whoever asks for a flush waits for it.
                let sync = if f & (Self::PREFLUSH | Self::FUA) != 0 { Self::SYNC } else { 0 };
                Some(Self(f | Self::WRITE | sync))
            }
            None if f & Self::PREFLUSH != 0 => Some(Self(f | Self::WRITE | Self::SYNC)),
            _ => None,
        }
    }

    /// Direction.
    pub fn dir(self) -> Dir {
        if self.0 & Self::WRITE == 0 { Dir::Read } else { Dir::Write }
    }

    /// Somebody waits for it: a read, or a synchronous write.
    pub fn sync(self) -> bool {
        self.0 & Self::SYNC != 0
    }

    /// The device's write cache is emptied before.
    pub fn preflush(self) -> bool {
        self.0 & Self::PREFLUSH != 0
    }

    /// It is on the medium when it is done.
    pub fn fua(self) -> bool {
        self.0 & Self::FUA != 0
    }

    /// Content, as far as the letters tell it.
    pub fn kind(self) -> BioKind {
        if self.0 & Self::META != 0 {
            BioKind::Meta
        } else if self.0 & Self::READAHEAD != 0 {
            BioKind::Readahead
        } else {
            BioKind::Data
        }
    }
}

/// A bio to be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Recorded time.
    pub at: Nanos,
    /// Recorded completion; `Nanos::MAX` = the trace does not show it.
    pub done: Nanos,
    /// First sector.
    pub sector: u64,
    /// From the last of the completions that its task had waited for (none: from the task's bio before) to this bio.
    pub think: Nanos,
    /// Sectors; 0 = a flush alone.
    pub nr: u32,
    /// Index into [`BlockProgram::tasks`].
    pub task: u32,
    /// How many earlier bios of its task have to be complete before it is queued (closed pacing).
    pub waits: u32,
    /// The later bio of the task that waits for this one, or [`NONE`].
    pub waited_by: u32,
    /// How long its task holds it in its plug list, ns; [`NO_UNPLUG`] = until a later bio's time.
    pub hold_ns: u32,
    /// Input line.
    pub line: u32,
    /// Index into [`BlockProgram::devices`].
    pub dev: u16,
    /// What it is.
    pub flags: Flags,
    /// I/O priority of the request that it became, where the trace says it: class, and level 0 to 7.
    pub priority: Option<(IoClass, u8)>,
}

const _: () = assert!(size_of::<Action>() <= 64);

/// A task of a block trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTask {
    /// Process id; -1 where the trace does not say.
    pub pid: i64,
    /// Name.
    pub name: String,
    /// Its actions, ascending.
    pub actions: Vec<u32>,
}

/// A request as the recorded device got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Device.
    pub dev: u16,
    /// Direction.
    pub dir: Dir,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub nr: u32,
    /// Dispatched.
    pub d: Nanos,
    /// Completed, if the trace shows it.
    pub c: Option<Nanos>,
}

/// How much of a block trace was replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockCoverage {
    /// Bios that become actions.
    pub bios: u64,
    /// Discards, zone commands and other operations that are not modelled.
    pub not_modelled: u64,
    /// Events of devices that lie above others of the same trace.
    pub stacked: u64,
    /// Devices driven by their D events, having no Q.
    pub from_dispatches: u64,
    /// The trace shows when tasks released their plug lists.
    pub plugs: bool,
}

/// A compiled block trace; shared read-only by all variants.
#[derive(Clone, Debug, Default)]
pub struct BlockProgram {
    /// Content hash of the trace directory (hex).
    pub trace_id: String,
    /// Devices.
    pub devices: Vec<DeviceInfo>,
    /// Tasks.
    pub tasks: Vec<BlockTask>,
    /// Bios in time order.
    pub actions: Vec<Action>,
    /// Requests as dispatched in the recording, in that order.
    pub requests: Vec<RecordedRequest>,
    /// How much of the trace this is.
    pub coverage: BlockCoverage,
}

impl BlockProgram {
    /// A program of the same tasks and devices that does nothing: gives result tables their names.
    pub fn skeleton(&self) -> Program {
        let c = &self.coverage;
        let mut notes = vec!["block level: queues, elevators and devices only, no memory above them".to_owned()];
        let mut note = |n: u64, what: &str| {
            if n > 0 {
                notes.push(format!("{n} {what}"));
            }
        };
        note(c.not_modelled, "operations without a model (discards, zone commands) were left out");
        note(c.stacked, "bios of devices that lie above others were left out");
        note(c.from_dispatches, "devices are driven by their dispatched requests, having no queued bios");
        Program {
            trace_id: self.trace_id.clone(),
            devices: self.devices.clone(),
            tasks: self.tasks.iter().map(task).collect(),
            coverage: Coverage { calls: c.bios, calls_failed: c.not_modelled, notes, ..Coverage::default() },
            ..Program::default()
        }
    }

    /// Capacity of a device as far as the trace reaches.
    pub(super) fn reach(&mut self, dev: u16, end: u64) {
        let sectors = &mut self.devices[usize::from(dev)].sectors;
        *sectors = (*sectors).max(Sectors(end));
    }
}

fn task(t: &BlockTask) -> TaskProgram {
    TaskProgram::new(t.pid, t.name.clone(), Start::At(Nanos::ZERO))
}
