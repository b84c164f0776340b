//! A resolved variant: what one kernel on one machine does, as data over the mechanisms in this crate.
//!
//! Read from TOML by [`crate::variant`]; every key is required after resolution (`extends` supplies what a file leaves
//! out), unknown keys are errors. Field docs give unit and source; which choice was seen in source, taken from a patch
//! or inferred stands in the TOML files.

pub mod check;

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
    /// File system block size, bytes (only 4096 is modelled).
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
    /// 2.4.11 to 2.4.17: a request for one frame that may wait retries for ever, with a yield; others fail in silence.
    ClasszoneRetry,
    /// 2.2.x to 2.4.9 and -ac: frames come from the free or the clean lists, a zone at a time; reclaim helps all zones.
    ThreeList,
    /// 2.4.10: after reclaim without success a frame is taken only above `high`; else the request fails, and says so.
    ClasszoneFail,
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
    /// How many active pages a pass looks at before the inactive ones.
    pub refill: RefillRule,
    /// Pages that go to the inactive list are marked referenced, so that one use brings them back (2.4.14+, vm-tweaks).
    pub refill_marks: bool,
    /// What a pass over the inactive list is measured by.
    pub scan_budget: ScanBudget,
    /// The scan spares a referenced page once, clearing its mark, at no cost (2.4.10 to 2.4.12).
    pub scan_clears_referenced: bool,
    /// What becomes of mapped pages that a pass meets.
    pub max_mapped: MaxMapped,
    /// Pages still wanted are carried from pass to pass (2.4.11+), else each pass wants `cluster` anew.
    pub want_carried: bool,
    /// The scan sleeps on a page that reclaim itself is writing (PG_launder, 2.4.13+).
    pub wait_laundered: bool,
    /// Which busy buffers the second encounter waits for.
    pub buffer_wait: BufferWait,
    /// Pages to unmap after each pass that failed (2.4.10: 128, 2.4.13: 32); 0 = only when too many mapped pages are met.
    pub swap_out_pages: u32,
    /// One call goes over all address spaces (2.4.14+), else over their number / priority.
    pub swap_out_all: bool,
    /// A page-table entry found used marks its page accessed (2.4.13+).
    pub young_accessed: bool,
    /// Pages whose entries are left alone.
    pub unmap_skips: UnmapSkips,
    /// Entries of pages outside of the wanted zones are unmapped as well, without credit (2.4.10 to 2.4.12).
    pub unmap_foreign: bool,
    /// Anonymous pages go on the inactive list when they are faulted in (2.4.14+).
    pub anon_on_lru: bool,
    /// ... and are marked accessed once there (2.4.17).
    pub anon_accessed: bool,
    /// A swap-in marks the page accessed.
    pub swapin_accessed: bool,
    /// When read() marks a page accessed.
    pub read_mark: ReadMark,
    /// A fault that finds a mapped file's page activates it (vm-tweaks), else it marks it accessed.
    pub fault_activates: bool,
    /// What finding a metadata block in memory does to its page.
    pub metadata_mark: MetadataMark,
    /// kswapd sleeps this long after a failed pass, ms.
    pub kswapd_fail_ms: u64,
    /// When a process is killed.
    pub oom: OomRule,
    /// [`OomRule::Failures`]: so many failures in a row (at least 1 s in all, at most 5 s apart).
    pub oom_failures: u32,
    /// 1/n of unused dentries and inodes per failed pass; 0 = n is the priority.
    pub dcache_divisor: u32,
    /// Rules of [`ReclaimPolicy::Aging`].
    #[serde(default)]
    pub aging: AgingConfig,
}

/// Page aging of 2.4.5 to 2.4.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AgingConfig {
    /// Age of a page that is activated or new on the active list (PAGE_AGE_START).
    pub start: u8,
    /// A use makes a page so much older (PAGE_AGE_ADV).
    pub advance: u8,
    /// Highest age (PAGE_AGE_MAX).
    pub most: u8,
    /// Where a new cache page goes.
    pub new_page: NewPage,
    /// What a read of a page does once it has copied from it.
    pub use_rule: UseRule,
    /// Read-ahead and completed writes deactivate what lies behind them (2.4.5 to 2.4.7).
    pub drop_behind: bool,
    /// Zones with plenty of inactive (free) pages are spared by aging and unmapping (by laundering): 2.4.8+.
    pub zone_plenty: bool,
    /// How the dirty list is laundered.
    pub launder: LaunderRule,
    /// How a reclaim run goes.
    pub driver: AgingDriver,
}

impl Default for AgingConfig {
    fn default() -> Self {
        Self {
            start: 2,
            advance: 3,
            most: 64,
            new_page: NewPage::Inactive,
            use_rule: UseRule::SecondActivates,
            drop_behind: false,
            zone_plenty: true,
            launder: LaunderRule::Share,
            driver: AgingDriver::Rounds,
        }
    }
}

/// Where a new cache page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewPage {
    /// On the active list, at the start age: 2.4.5 to 2.4.7.
    Active,
    /// On the dirty list, at age 0 ("use once"): 2.4.8, 2.4.9.
    Inactive,
}

/// What using a page does, besides the mark of its lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseRule {
    /// Nothing: 2.4.5 to 2.4.7.
    LookupOnly,
    /// A page of age 0 gets the start age and loses its mark: 2.4.8.
    FirstAges,
    /// A page that is not active is activated if it has an age, else it gets one and loses its mark: 2.4.9.
    SecondActivates,
}

/// How the dirty list is laundered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunderRule {
    /// The whole list without I/O, then, if frames are still short, again with some I/O: 2.4.5 to 2.4.8.
    TwoPasses,
    /// One pass over 1/64 of the list: 2.4.9.
    Share,
}

/// How a reclaim run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgingDriver {
    /// Launder if frames are short, then age if inactive pages are: 2.4.5 to 2.4.7.
    Stages,
    /// Always launder, then age, for all zones together and for each that is short: 2.4.8.
    ZoneStages,
    /// Rounds of aging and laundering until nothing is short, at most 64: 2.4.9.
    Rounds,
}

/// Replacement family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReclaimPolicy {
    /// Active and inactive list without ages, 2.4.10 and later.
    TwoList,
    /// Active, dirty and clean lists, pages with ages: 2.4.5 to 2.4.9. See [`AgingConfig`].
    Aging,
}

/// Active pages that a pass looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefillRule {
    /// As many as are wanted, while the inactive list is shorter than twice the active one: 2.4.10.
    WhenShort,
    /// want x active / (2 x (inactive + 1)): 2.4.11 to 2.4.17, vm-tweaks.
    Proportional,
}

/// Measure of a pass over the inactive list; the share is the list's length / priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScanBudget {
    /// Pages looked at, of the list as it was before the refill: 2.4.10.
    BeforeRefill,
    /// Pages looked at, of the list after the refill: 2.4.11, 2.4.12, 2.4.14 to 2.4.17.
    AfterRefill,
    /// Mapped pages met; unmapped ones cost nothing: 2.4.13. Bounded here by two rounds of the list.
    Mapped,
}

/// Busy buffers that reclaim waits for when it meets them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferWait {
    /// All under I/O, if the allocation may wait: 2.4.10 to 2.4.12.
    Any,
    /// Those that reclaim itself wrote: 2.4.13+.
    Laundered,
    /// Any, already on the first encounter, which writes dirty ones at once: 2.4.6 to 2.4.9.
    AtOnce,
}

/// Pages that unmapping leaves alone, besides those used lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmapSkips {
    /// None: 2.4.10 to 2.4.12.
    None,
    /// Active ones: 2.4.13+.
    Active,
    /// Active ones, and inactive ones that are marked referenced: vm-tweaks.
    ActiveOrReferenced,
}

/// When read() marks a page accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadMark {
    /// On every copy out of it: 2.4.10.
    EveryCopy,
    /// On a copy from its beginning, or on the first after open or lseek: 2.4.11+.
    Once,
}

/// What finding a metadata block in memory does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetadataMark {
    /// Nothing: 2.4.11 to 2.4.14.
    None,
    /// Marks it referenced: 2.4.10.
    Referenced,
    /// Marks it accessed, which may activate it: 2.4.15+, vm-tweaks.
    Accessed,
}

/// When a process is killed for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OomRule {
    /// Reclaim failed, frames below the sums of `min` and `low`, swap full, and at most 4 % of memory in caches: 2.4.5 to
    /// 2.4.9.
    Aging,
    /// Only one whose page fault finds no frame: 2.4.10, -aa.
    FaultOnly,
    /// kswapd is not done, no zone above `low`, swap full, and less than 2 % of memory in caches: 2.4.11 to 2.4.13.
    Kswapd,
    /// Reclaim failed often enough in a row with swap full: 2.4.14+.
    Failures,
}

/// What becomes of mapped pages in the two-list scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxMapped {
    /// They are passed over: 2.4.10 to 2.4.12.
    Ignore,
    /// They are activated: vm-tweaks.
    Activate,
    /// inactive / priority of them end the pass: 2.4.13.
    Share,
    /// want << (9 - priority): 2.4.14 to 2.4.16.
    Shift9,
    /// min(want << (10 - priority), scan / 10): 2.4.17.
    Shift10Tenth,
}

/// Swap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SwapConfig {
    /// log2 of the pages read around a faulting slot; the kernel takes at most 2 below 16 MiB and 3 below 32 MiB.
    pub page_cluster: u32,
    /// When a swapped-in page that nobody shares gives its slot back.
    pub slot_rule: SlotFate,
    /// [`SlotFate::FreeBelow`]: when less than this share of swap is free, percent (2.4.14+: 50).
    pub free_slot_below_pct: u32,
    /// More swap pages in flight than so many read clusters make the next swap write wait for its end, and end the read of a
    /// cluster; 0 = no limit (2.4.14+). Before: 8.
    pub max_in_flight_clusters: u32,
}

/// When a swapped-in page's slot is freed; the page is dirty then and has to be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotFate {
    /// Always: 2.4.10.
    Always,
    /// When the fault is a write, or more than four fifths of swap are in the swap cache: 2.4.11 to 2.4.13.
    OnWrite,
    /// When little swap is free, see `free-slot-below-pct`: 2.4.14+.
    FreeBelow,
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
    /// What the shares are of.
    pub base: DirtyBase,
    /// Above this share a writer starts write-out, percent (nfract).
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

/// Base of the dirty limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirtyBase {
    /// The larger of free, clean and dirty-list pages and of `high` plus the inactive target, plus 1/16 of the active list:
    /// 2.4.5 to 2.4.7.
    InactiveFloor,
    /// By zone the larger of free, clean and dirty-list pages and of `high`: 2.4.8, 2.4.9.
    InactiveByZone,
    /// Free frames and both lists: 2.4.10 to 2.4.12.
    FreeAndLists,
    /// Low memory less its high watermarks: 2.4.13 to 2.4.17.
    LowMemory,
}

/// Write-back family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritebackPolicy {
    /// 2.4.8 to 2.4.17: the writer writes 32 and waits for one; bdflush the same.
    WriteSome,
    /// 2.4.5 to 2.4.7: above the soft limit a writer only wakes bdflush, above the hard one it also writes a batch; nobody
    /// waits.
    WakeBdflush,
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
