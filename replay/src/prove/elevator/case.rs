//! The case files: one JSON object a line (schema `elevator-oracle/1`).

use serde::Deserialize;

use crate::block::{Dir, IoClass};

/// A case: what is submitted when, and what the kernel's elevator did with it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) case: String,
    pub(super) schema: String,
    pub(super) elevator: String,
    pub(super) params: Params,
    pub(super) requests: Vec<Request>,
    pub(super) expected: Vec<Taken>,
    pub(super) expected_dispatch_order: Vec<usize>,
    pub(super) expected_dispatches: Vec<Dispatch>,
    pub(super) end_time: u64,
    pub(super) left_in_queue: usize,
    pub(super) stuck_tasks: usize,
    /// 0.01 only.
    pub(super) hung: Option<bool>,
    /// 0.01 only.
    pub(super) irqs_during_sort: Option<u64>,
}

/// Parameters; times in ticks.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Params {
    #[serde(default)]
    pub(super) read_latency: u32,
    #[serde(default)]
    pub(super) write_latency: u32,
    #[serde(default)]
    pub(super) max_bomb_segments: u32,
    pub(super) nr_requests: u32,
    #[serde(default = "one")]
    pub(super) batch: u32,
    #[serde(default = "unlimited")]
    pub(super) max_sectors: u32,
    #[serde(default = "segments")]
    pub(super) max_segments: u16,
    #[serde(default)]
    pub(super) head_active: u8,
    #[serde(default = "one")]
    pub(super) depth: u32,
    #[serde(default)]
    pub(super) unplug_delay: u64,
    pub(super) svc_base: u64,
    pub(super) svc_per_sector: u64,
    pub(super) svc_seek: u64,
    pub(super) svc_seek_div: u64,
    #[serde(default)]
    pub(super) fixed: bool,
    pub(super) read_expire: Option<u64>,
    pub(super) write_expire: Option<u64>,
    pub(super) writes_starved: Option<u32>,
    pub(super) fifo_batch: Option<u32>,
    pub(super) front_merges: Option<u8>,
    pub(super) prio_aging_expire: Option<u64>,
}

fn one() -> u32 {
    1
}

fn unlimited() -> u32 {
    u32::MAX
}

fn segments() -> u16 {
    128
}

/// A bio to submit.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Request {
    /// Its number.
    pub(super) i: usize,
    /// Earliest tick.
    pub(super) t: u64,
    /// Process; each submits its own in order.
    pub(super) pid: u32,
    pub(super) sector: u64,
    pub(super) nr: u32,
    pub(super) rw: Rw,
    /// Partition; drive for 0.01.
    #[serde(default)]
    pub(super) dev: u16,
    pub(super) ioprio_class: Option<u8>,
    /// 0.01: the interrupt of the command in service comes while this one is being sorted in.
    #[serde(default)]
    pub(super) irq_during_sort: bool,
}

impl Request {
    /// Priority class by its number in the kernel's interface (0 = none asked for).
    pub(super) fn class(&self) -> Result<IoClass, String> {
        match self.ioprio_class {
            None | Some(0 | 2) => Ok(IoClass::BestEffort),
            Some(1) => Ok(IoClass::RealTime),
            Some(3) => Ok(IoClass::Idle),
            Some(n) => Err(format!("request {}: ioprio_class {n} is none of 0 to 3", self.i)),
        }
    }
}

/// Direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Rw {
    R,
    W,
}

impl From<Rw> for Dir {
    fn from(rw: Rw) -> Self {
        match rw {
            Rw::R => Dir::Read,
            Rw::W => Dir::Write,
        }
    }
}

impl From<Dir> for Rw {
    fn from(dir: Dir) -> Self {
        match dir {
            Dir::Read => Rw::R,
            Dir::Write => Rw::W,
        }
    }
}

/// What became of a bio.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Taken {
    pub(super) i: usize,
    pub(super) t: u64,
    pub(super) op: Op,
    pub(super) into: usize,
    pub(super) pos: Option<i64>,
    pub(super) qlen: Option<usize>,
    pub(super) coalesced: Option<usize>,
    #[serde(default, deserialize_with = "flag")]
    pub(super) waited: bool,
    pub(super) do_hd: Option<bool>,
}

/// `true`, `false`, or a number that is not zero.
fn flag<'de, D: serde::Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Flag {
        Bool(bool),
        Number(u64),
    }
    Ok(match Flag::deserialize(d)? {
        Flag::Bool(b) => b,
        Flag::Number(n) => n != 0,
    })
}

/// Operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    Insert,
    BackMerge,
    FrontMerge,
}

/// A request handed to the device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Dispatch {
    pub(super) t: u64,
    pub(super) id: usize,
    pub(super) sector: u64,
    pub(super) nr: u32,
    pub(super) rw: Rw,
    /// Bios in sector order; 0.01 never merges and names none.
    pub(super) members: Option<Vec<usize>>,
}
