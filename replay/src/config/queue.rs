//! Request queue, write-back throttling, cost-based sharing: section `queue`.

use serde::{Deserialize, Serialize};

/// Request queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueConfig {
    /// Request slots of both directions together; 0 = by memory, see `slot-rule`.
    pub slots: u32,
    /// How many slots memory gives, where `slots` is 0.
    #[serde(default)]
    pub slot_rule: SlotRule,
    /// Slots freed before sleepers are woken: slots / this number.
    pub batch_divisor: u32,
    /// ... but at most this many; 0 = no limit (2.4.19+: 32).
    #[serde(default)]
    pub batch_cap: u32,
    /// Who is woken when.
    pub wake: WakeRule,
    /// Largest request, sectors.
    pub max_sectors: u32,
    /// Largest request, segments.
    pub max_segments: u32,
    /// The driver leaves the request in service at the queue's head (IDE); it can't be merged with.
    pub head_active: bool,
    /// Queue holds back requests until somebody waits.
    pub plugging: bool,
    /// Each task holds back what it submits until it waits, has 32 requests, or made one of 128 KiB (blk_start_plug).
    #[serde(default)]
    pub task_plugs: bool,
    /// How a task's list is kept.
    #[serde(default)]
    pub plug_list: PlugList,
    /// blk-mq with a scheduler: once the device is full, one request more leaves the scheduler and waits for the next free
    /// place; nothing merges with it or passes it (`blk_mq_do_dispatch_sched`, the dispatch list of a hardware queue).
    #[serde(default)]
    pub dispatch_ahead: bool,
    /// I/O priorities of tasks: `WHO=CLASS[:LEVEL]` separated by blanks, the first that fits counts. WHO: a process number (of
    /// block traces), a name, or NAME*; CLASS: rt, be, idle; LEVEL: 0 to 7, default 4. Others are best effort, 4. What a
    /// block trace says of a bio itself (ftrace's request events) goes first. The simulated kernel's own threads are `kswapd0`, `kworker/flush` and `jbd2/journal`.
    #[serde(default)]
    pub priorities: String,
    /// 2.4.1 to 2.4.7: processes wait while buffers for two thirds of memory are queued, on all devices together.
    #[serde(default)]
    pub queued_limit: bool,
    /// Write-back throttling.
    #[serde(default)]
    pub wbt: WbtConfig,
    /// Cost-based sharing between groups.
    #[serde(default)]
    pub iocost: IocostConfig,
}

/// Write-back throttling (`block/blk-wbt.c`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WbtConfig {
    /// Reads are to take no longer than this, us; 0 = off. The kernel's default is 75 000 on rotating disks, 2000 else.
    pub min_lat_us: u64,
    /// The device has a write cache: throttled writers are woken only when it has emptied.
    pub write_cache: bool,
    /// The driver tells the queue how many commands the device takes (SCSI, SATA), which then bounds the depth; with others
    /// (NVMe, virtio, loop) the request slots do (`blk_queue_depth`).
    pub driver_depth: bool,
    /// Requests of the queue when the throttle was set up, where the driver tells nothing: later changes of `nr_requests`, or
    /// of the tags behind it, do not reach it. 0 = the request slots.
    pub requests: u32,
}

impl WbtConfig {
    /// The queue's depth as the throttle sees it (`blk_queue_depth`).
    pub fn queue_depth(&self, device: u32, slots: u32) -> u32 {
        match (self.driver_depth, self.requests) {
            (true, _) => device,
            (false, 0) => slots,
            (false, n) => n,
        }
    }
}

impl Default for WbtConfig {
    fn default() -> Self {
        Self { min_lat_us: 0, write_cache: false, driver_depth: true, requests: 0 }
    }
}

/// Cost-based sharing between groups (`block/blk-iocost.c`). The root group, 0, is never held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct IocostConfig {
    /// Weights of groups 1, 2 and so on; empty = off.
    pub weights: Vec<u32>,
    /// Cost model.
    pub model: IocostModel,
    /// Lower and upper bound of the device's virtual time rate, percent (`min`, `max` of io.cost.qos).
    pub vrate_min_pct: u32,
    /// ... upper bound.
    pub vrate_max_pct: u32,
}

impl Default for IocostConfig {
    fn default() -> Self {
        Self { weights: Vec::new(), model: IocostModel::Hdd, vrate_min_pct: 1, vrate_max_pct: 10_000 }
    }
}

/// The built-in cost models of iocost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IocostModel {
    /// Rotating disk.
    Hdd,
    /// Flash that takes one command at a time.
    SsdQd1,
    /// Flash.
    SsdDefault,
    /// Fast flash.
    SsdFast,
}

/// A task's list of requests (`blk_add_rq_to_plug`): which of them tells by its size that the list has to go down, and in
/// which order a queue without a scheduler gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlugList {
    /// 6.1 to 6.12: the newest; from the newest to the oldest, unless a sleep cuts the list short.
    #[default]
    Stack,
    /// 6.13+: the oldest; in order.
    Fifo,
}

/// Request slots of a queue by memory size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotRule {
    /// 2.4.8 to 2.4.22: 128, or 64 up to 32 MiB.
    #[default]
    Fixed,
    /// 2.4.1 to 2.4.7: one per 512 KiB of memory rounded up to 32 MiB, at most 8192.
    #[serde(rename = "ram-2.4.7")]
    Ram247,
    /// read-latency2 and Red Hat's 2.4.18: one per 512 KiB rounded down to a multiple of 16, 32 to 1024.
    PerMib,
    /// 2.4.23+: 1024, or 512 below 30 MiB.
    Pool,
    /// 2.4.0: 256.
    #[serde(rename = "fixed-256")]
    Fixed256,
    /// blk-mq: twice the device's queue depth, but no more than 256; the depth itself for `none`.
    Tags,
}

/// Wake-up rule of processes that wait for a request slot (letters of spec/elevator-disk.md section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeRule {
    /// 2.4.0: reads take write slots if theirs are used up; each release wakes one, in order.
    ReadsSteal,
    /// P, 2.4.1 to 2.4.13: freed slots pend until a batch is complete.
    PendingBatch,
    /// L, 2.4.14 to 2.4.18: all are woken, newest first, when a batch is free.
    AllLifo,
    /// F, 2.4.19 and 2.4.20: one is woken, in order.
    OneFifo,
    /// F', 2.4.21: all of the direction are woken.
    AllPerDirection,
    /// U, 2.4.23+: one pool, each woken one wakes the next.
    Chain,
    /// 2.2: one table of requests for all disks, writes get two thirds; every release wakes all, newest first.
    Table22,
    /// 0.01: one table for all disks; a release wakes the newest sleeper, which wakes the one before it when it runs.
    SleepChain,
    /// blk-mq: a bitmap of scheduler tags; sleepers are woken in order, a batch at a time.
    Tags,
}
