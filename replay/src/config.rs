//! A resolved variant: what one kernel on one machine does, as data over the mechanisms in this crate.
//!
//! Read from TOML by [`crate::variant`]; every key is required after resolution (`extends` supplies what a file leaves
//! out), unknown keys are errors. Field docs give unit and source; which choice was seen in source, taken from a patch
//! or inferred stands in the TOML files.

use serde::{Deserialize, Serialize};

/// Everything a simulation needs to know besides the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The machine.
    pub machine: MachineConfig,
    /// Zones, watermarks, allocation.
    pub alloc: AllocConfig,
    /// Page replacement.
    pub reclaim: ReclaimConfig,
    /// Swap.
    pub swap: SwapConfig,
    /// File read-ahead.
    pub readahead: ReadaheadConfig,
    /// Dirty pages.
    pub writeback: WritebackConfig,
    /// Block request queue.
    pub queue: QueueConfig,
    /// I/O scheduler.
    pub elevator: ElevatorConfig,
    /// Device model under every queue.
    pub device: DeviceConfig,
}

/// The machine: memory, processors, costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineConfig {
    /// Installed memory in KiB (TOML accepts "64MiB").
    #[serde(with = "size_kib")]
    pub ram: u64,
    /// Memory that the kernel image, its tables and the memory map take before the first process runs, KiB.
    #[serde(with = "size_kib")]
    pub reserved: u64,
    /// Swap space, KiB; 0 = none.
    #[serde(with = "size_kib")]
    pub swap: u64,
    /// Timer ticks per second.
    pub hz: u32,
    /// Processors.
    pub cpus: u32,
    /// CPU time of a system call's entry and exit, ns.
    pub syscall_ns: u64,
    /// CPU time to copy a page between user and kernel, ns.
    pub copy_page_ns: u64,
    /// CPU time of a page fault, without I/O, ns.
    pub fault_ns: u64,
    /// CPU time of a touch through a mapping that does not fault, ns.
    pub touch_ns: u64,
    /// CPU time to look at one page in reclaim, ns.
    pub scan_page_ns: u64,
    /// CPU time to build and queue one block I/O, ns.
    pub submit_ns: u64,
    /// From the end of a request's service until the kernel has handled the interrupt and can start the next, ns for
    /// each page of the request; the device is idle meanwhile.
    pub completion_page_ns: u64,
    /// File system block size, bytes (1024 or 4096).
    pub block_bytes: u32,
}

/// Zones and allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AllocConfig {
    /// Allocator rules.
    pub policy: AllocPolicy,
    /// `mask = clamp(frames / ratio, min-frames, 255)` per zone; min, low, high = 1, 2, 3 x mask.
    pub dma_ratio: u32,
    /// The same for NORMAL.
    pub normal_ratio: u32,
    /// Lower clamp of the mask, frames.
    pub mask_floor: u32,
    /// Sum the zones' watermarks along the fallback list (2.4.15+).
    pub cumulative: bool,
}

/// Allocator family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocPolicy {
    /// 2.4.14 to 2.4.17: orders up to 3 retry for ever, with a yield.
    ClasszoneRetry,
}

/// Page replacement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReclaimConfig {
    /// Policy name, see `kreplay policies`.
    pub policy: ReclaimPolicy,
    /// Pages wanted per reclaim call (SWAP_CLUSTER_MAX).
    pub cluster: u32,
    /// First (gentlest) priority (DEF_PRIORITY).
    pub def_priority: u32,
    /// How many mapped pages a pass may meet before it starts to unmap.
    pub max_mapped: MaxMapped,
    /// Anonymous pages go on the inactive list when they are faulted in (2.4.14+).
    pub anon_on_lru: bool,
    /// ... and are marked accessed once there (2.4.17).
    pub anon_accessed: bool,
    /// A swap-in marks the page accessed.
    pub swapin_accessed: bool,
    /// Reading a metadata block (bread) marks its page accessed (2.4.15+).
    pub bread_accessed: bool,
    /// kswapd sleeps this long after a failed pass, ms.
    pub kswapd_fail_ms: u64,
    /// Try to kill after reclaim failed this often within the rule of 2.4.14+ (at least 1 s, at most 5 s apart).
    pub oom_failures: u32,
    /// 1/n of unused dentries and inodes per failed pass; 0 = n is the priority.
    pub dcache_divisor: u32,
}

/// Replacement family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReclaimPolicy {
    /// Active and inactive list without ages, 2.4.14 to 2.4.17.
    TwoList,
}

/// Budget of mapped pages in the two-list scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxMapped {
    /// want << (9 - priority): 2.4.14 to 2.4.16.
    Shift9,
    /// min(want << (10 - priority), scan / 10): 2.4.17.
    Shift10Tenth,
}

/// Swap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SwapConfig {
    /// log2 of the pages read around a faulting slot; the kernel lowers it to 2 below 16 MiB.
    pub page_cluster: u32,
    /// A swapped-in page's slot is freed when less than this share of swap is free, percent (2.4.14+: 50).
    pub free_slot_below_pct: u32,
    /// More swap pages than this in flight make the next swap write synchronous; 0 = no limit.
    pub max_in_flight: u32,
}

/// Read-ahead of 2.4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadaheadConfig {
    /// Smallest window of a sequential reader, pages.
    pub min_pages: u32,
    /// Largest window, pages.
    pub max_pages: u32,
}

/// bdflush and kupdate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WritebackConfig {
    /// Policy.
    pub policy: WritebackPolicy,
    /// Above this share of low memory a writer starts write-out, percent (nfract).
    pub soft_pct: u32,
    /// Above this share it also waits, percent (nfract_sync).
    pub hard_pct: u32,
    /// Buffers under write-out count as dirty (2.4.17).
    pub count_locked: bool,
    /// Buffers per batch (NRSYNC).
    pub batch: u32,
    /// kupdate's interval, ms.
    pub interval_ms: u64,
    /// Age at which a dirty buffer is written, ms.
    pub expire_ms: u64,
}

/// Write-back family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritebackPolicy {
    /// 2.4.8 to 2.4.17: the writer writes 32 and waits for one; bdflush the same.
    WriteSome,
}

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WbtConfig {
    /// Reads are to take no longer than this, us; 0 = off. The kernel's default is 75 000 on rotating disks, 2000 else.
    pub min_lat_us: u64,
    /// The device has a write cache: throttled writers are woken only when it has emptied.
    pub write_cache: bool,
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

/// I/O scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ElevatorConfig {
    /// Name, see `kreplay policies`.
    pub policy: String,
    /// Passover limit of reads (elvtune -r).
    pub read_latency: u32,
    /// Passover limit of writes (elvtune -w).
    pub write_latency: u32,
    /// A merge refused for its segments goes beside its target instead of to the tail (2.4.18+).
    pub refused_beside: bool,
    /// Read promotion: a read may pass writes behind this many of their segments (64 sectors each); 0 = off.
    #[serde(default)]
    pub max_bomb_segments: u32,
    /// What an insertion costs each request behind it (2.4.20 to 2.4.22: 16, 2.4.23+: 1).
    #[serde(default = "default_seek_cost")]
    pub seek_cost: u32,
    /// linux-0.01: numbers (from 0) of the submissions during whose sorting the disk's interrupt arrives.
    #[serde(default)]
    pub irq_during_sort: Vec<u64>,
    /// linux-0.01: numbers of the submissions for which it arrives when the head of the list has been read, but the new
    /// request is not linked to it yet. Harmless unless the list has one element: then the request is lost.
    #[serde(default)]
    pub irq_after_head_load: Vec<u64>,
    /// mq-deadline and the deadline scheduler of 2.6.
    #[serde(default)]
    pub deadline: DeadlineConfig,
    /// The anticipatory scheduler of 2.6.
    #[serde(default)]
    pub anticipatory: AnticipatoryConfig,
    /// CFQ with time slices.
    #[serde(default)]
    pub cfq: CfqConfig,
    /// CFQ of 2.6.12.
    #[serde(default)]
    pub cfq_2_6: Cfq26Config,
    /// BFQ.
    #[serde(default)]
    pub bfq: BfqConfig,
    /// Kyber.
    #[serde(default)]
    pub kyber: KyberConfig,
}

fn default_seek_cost() -> u32 {
    16
}

/// Tunables of the deadline schedulers, with the names and defaults of their sysfs files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct DeadlineConfig {
    /// A read is to be dispatched within this time, ms.
    pub read_expire_ms: u64,
    /// A write is, ms.
    pub write_expire_ms: u64,
    /// Read batches that may go before waiting writes.
    pub writes_starved: u32,
    /// Requests in a batch of one direction.
    pub fifo_batch: u32,
    /// Look for front merges.
    pub front_merges: bool,
    /// A request of a lower priority class is dispatched before a higher class once it is older than this, ms.
    pub prio_aging_expire_ms: u64,
    /// mq-deadline: scheduler tags that writes and asynchronous reads may use; 0 = all (6.1's default).
    pub async_depth: u32,
}

impl Default for DeadlineConfig {
    fn default() -> Self {
        Self {
            read_expire_ms: 500,
            write_expire_ms: 5_000,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            prio_aging_expire_ms: 10_000,
            async_depth: 0,
        }
    }
}

/// Tunables of the anticipatory scheduler, with the names and defaults of their sysfs files (HZ = 1000).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AnticipatoryConfig {
    /// A synchronous request is to be dispatched within this time, ms.
    pub read_expire_ms: u64,
    /// An asynchronous one is, ms.
    pub write_expire_ms: u64,
    /// A batch of synchronous requests lasts this long while others wait, ms.
    pub read_batch_expire_ms: u64,
    /// A batch of asynchronous ones is made to last this long, ms.
    pub write_batch_expire_ms: u64,
    /// Longest wait for the next request of a process, us; 0 = never wait.
    pub antic_expire_us: u64,
}

impl Default for AnticipatoryConfig {
    fn default() -> Self {
        Self {
            read_expire_ms: 125,
            write_expire_ms: 250,
            read_batch_expire_ms: 500,
            write_batch_expire_ms: 125,
            antic_expire_us: 6_000,
        }
    }
}

/// Tunables of CFQ with time slices, with the names and defaults of their sysfs files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CfqConfig {
    /// Requests of a queue at the device at a time; half of it while others wait.
    pub quantum: u32,
    /// A synchronous request is overdue after this time, ms.
    pub fifo_expire_sync_ms: u64,
    /// An asynchronous one is, ms.
    pub fifo_expire_async_ms: u64,
    /// How far back the arm may go for the next request, KiB.
    pub back_seek_max_kib: u64,
    /// A KiB back counts as so many ahead.
    pub back_seek_penalty: u64,
    /// Slice of a synchronous queue of middle priority, ms.
    pub slice_sync_ms: u64,
    /// Slice of an asynchronous one, ms.
    pub slice_async_ms: u64,
    /// Asynchronous requests per slice: twice this number, times 8 less the priority level.
    pub slice_async_rq: u32,
    /// How long the device is kept idle for the next request of a process, ms; 0 = never.
    pub slice_idle_ms: u64,
    /// Shorten slices so that all queues come by within `target-latency-ms`; ramp asynchronous depth up slowly.
    pub low_latency: bool,
    /// Time within which each queue should have had its turn, ms.
    pub target_latency_ms: u64,
}

impl Default for CfqConfig {
    fn default() -> Self {
        Self {
            quantum: 8,
            fifo_expire_sync_ms: 125,
            fifo_expire_async_ms: 250,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice_sync_ms: 100,
            slice_async_ms: 40,
            slice_async_rq: 2,
            slice_idle_ms: 8,
            low_latency: true,
            target_latency_ms: 300,
        }
    }
}

/// Tunables of the CFQ of 2.6.12, with the names and defaults of their sysfs files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Cfq26Config {
    /// Requests that a refill of the dispatch list takes.
    pub quantum: u32,
    /// A read is overdue after this time, ms.
    pub fifo_expire_r_ms: u64,
    /// A write is, ms.
    pub fifo_expire_w_ms: u64,
    /// How far back the arm may go for the next request, KiB.
    pub back_seek_max_kib: u64,
    /// A KiB back counts as so many ahead.
    pub back_seek_penalty: u64,
}

impl Default for Cfq26Config {
    fn default() -> Self {
        Self {
            quantum: 4,
            fifo_expire_r_ms: 500,
            fifo_expire_w_ms: 5_000,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
        }
    }
}

/// Tunables of BFQ, with the names and defaults of their sysfs files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct BfqConfig {
    /// A synchronous request is overdue after this time, ms.
    pub fifo_expire_sync_ms: u64,
    /// An asynchronous one is, ms.
    pub fifo_expire_async_ms: u64,
    /// How far back the arm may go for the next request, KiB.
    pub back_seek_max_kib: u64,
    /// A KiB back counts as so many ahead.
    pub back_seek_penalty: u64,
    /// How long the device is kept idle for the next request of a process, ms; 0 = never.
    pub slice_idle_ms: u64,
    /// Longest stay of a queue in service, ms.
    pub timeout_sync_ms: u64,
    /// Largest budget of a queue, sectors; 0 = what the device transfers in `timeout-sync-ms` at its peak rate.
    pub max_budget: u64,
    /// Raise the weights of interactive and soft real-time processes.
    pub low_latency: bool,
}

impl Default for BfqConfig {
    fn default() -> Self {
        Self {
            fifo_expire_sync_ms: 125,
            fifo_expire_async_ms: 250,
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice_idle_ms: 8,
            timeout_sync_ms: 125,
            max_budget: 0,
            low_latency: true,
        }
    }
}

/// Tunables of Kyber, with the names and defaults of their sysfs files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KyberConfig {
    /// Target latency of reads, us.
    pub read_lat_us: u64,
    /// Of writes, us.
    pub write_lat_us: u64,
}

impl Default for KyberConfig {
    fn default() -> Self {
        Self { read_lat_us: 2_000, write_lat_us: 10_000 }
    }
}

/// Device model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "model", rename_all = "kebab-case")]
pub enum DeviceConfig {
    /// One arm: positioning by distance, mean rotational wait, constant rate (groundtruth/disk.json, oracle/linux24).
    #[serde(rename_all = "kebab-case")]
    Rotating {
        /// Fixed time per request, us.
        overhead_us: u64,
        /// Seek: constant part, us.
        seek_min_us: u64,
        /// Seek: part that grows with the square root of distance / stroke, us.
        seek_span_us: u64,
        /// Distance at which the growing part is reached in full, bytes.
        stroke_bytes: u64,
        /// Mean rotational wait, us.
        rotation_us: u64,
        /// Transfer rate, bytes per second.
        rate_bytes_s: u64,
        /// Gaps up to this many bytes ahead are passed without a seek.
        skip_gap_bytes: u64,
        /// Passing such a gap takes the time of reading it (else it is free).
        skip_gap_costs: bool,
        /// A skip needs the same direction as the request before.
        skip_same_direction: bool,
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// All devices of the machine share one channel: only one of them works at a time.
        shared_channel: bool,
    },
    /// A disk with zones, seek curve, rotation, head switches and a read-ahead cache, from the built-in parameter sets.
    #[serde(rename_all = "kebab-case")]
    Disk {
        /// Name of the parameter set (`atlas10k`, `ide_7200_33mb`, ...).
        preset: String,
        /// Requests the device takes at a time; it serves them in order.
        queue_depth: u32,
        /// All devices of the machine share one channel: only one of them works at a time.
        shared_channel: bool,
    },
    /// Flash: parallel units behind a controller and a link, writes acknowledged from a buffer.
    #[serde(rename_all = "kebab-case")]
    Ssd {
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// Units (channels x dies) that work in parallel; pages are striped over them.
        units: u32,
        /// Page, bytes.
        page_bytes: u64,
        /// Reading a page, ns.
        read_ns: u64,
        /// Programming a page, ns.
        program_ns: u64,
        /// Acknowledging a buffered write, ns.
        ack_ns: u64,
        /// Controller's serial work per command, ns.
        overhead_ns: u64,
        /// Link rate, bytes per second.
        link_bytes_s: u64,
        /// Write buffer, bytes; a write that finds it full is paced by programming.
        buffer_bytes: u64,
        /// Bytes programmed per 100 bytes written.
        write_amplification_pct: u64,
    },
    /// Answers at once.
    Null {
        /// Requests the device takes at a time.
        #[serde(rename = "queue-depth")]
        queue_depth: u32,
    },
}

mod size_kib {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(kib: &u64, s: S) -> Result<S::Ok, S::Error> {
        if kib.is_multiple_of(1024) {
            s.serialize_str(&format!("{}MiB", kib / 1024))
        } else {
            s.serialize_str(&format!("{kib}KiB"))
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as \"64MiB\"")]
        enum Raw {
            Text(String),
            Bare(i64),
        }
        match Raw::deserialize(d)? {
            Raw::Bare(n) => Err(serde::de::Error::custom(format!("{n} is a size without a unit, write \"{n}MiB\""))),
            Raw::Text(t) => {
                // "64M" is 64 MiB, as in the kernel's mem= parameter.
                let with_unit = if t.ends_with(['K', 'M', 'G']) { format!("{t}iB") } else { t.clone() };
                let b: bytesize::ByteSize = with_unit
                    .parse()
                    .map_err(|_| serde::de::Error::custom(format!("\"{t}\" is not a size such as \"64MiB\"")))?;
                Ok(b.as_u64() / 1024)
            }
        }
    }
}
