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
}

/// Request slots of a queue by memory size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotRule {
    /// 2.4.8 to 2.4.22: 128, or 64 up to 32 MiB.
    #[default]
    Fixed,
    /// 2.4.7: one per 512 KiB of memory rounded up to 32 MiB, at most 8192.
    #[serde(rename = "ram-2.4.7")]
    Ram247,
    /// read-latency2 and Red Hat's 2.4.18: one per 512 KiB rounded down to a multiple of 16, 32 to 1024.
    PerMib,
    /// 2.4.23+: 1024, or 512 below 30 MiB.
    Pool,
}

/// Wake-up rule of processes that wait for a request slot (letters of spec/elevator-disk.md section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakeRule {
    /// P, 2.4.7 to 2.4.13: freed slots pend until a batch is complete.
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
    /// blk-mq: one pool of scheduler tags, woken in order.
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
    /// mq-deadline and the deadline scheduler of 2.6.
    #[serde(default)]
    pub deadline: DeadlineConfig,
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
        }
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
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// All devices of the machine share one channel: only one of them works at a time.
        shared_channel: bool,
        /// Write cache, bytes; 0 = writes are done when they are on the medium.
        #[serde(default)]
        write_cache_bytes: u64,
        /// Which of the requests that it holds it serves next.
        #[serde(default)]
        order: CommandOrder,
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
        /// After so many pages written a unit erases a block; 0 = never.
        #[serde(default)]
        erase_pages: u64,
        /// Erasing a block, ns.
        #[serde(default)]
        erase_ns: u64,
    },
    /// Answers at once.
    Null {
        /// Requests the device takes at a time.
        #[serde(rename = "queue-depth")]
        queue_depth: u32,
    },
}

/// Order in which a drive serves the commands that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum CommandOrder {
    /// As they came.
    #[default]
    Fifo,
    /// The one whose first sector is reached soonest (TCQ, NCQ).
    #[serde(rename_all = "kebab-case")]
    Positioning {
        /// Share of a command's wait that counts against its positioning time, percent.
        age_weight_pct: u32,
        /// A command that has waited for longer goes first, ms.
        age_limit_ms: u64,
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
