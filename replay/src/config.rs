//! A resolved variant: what one kernel on one machine does, as data over the mechanisms in this crate.
//!
//! Read from TOML by [`crate::variant`]; every key is required after resolution (`extends` supplies what a file leaves
//! out), unknown keys are errors. Field docs give unit and source; which choice was seen in source, taken from a patch
//! or inferred stands in the TOML files.

mod aging;
pub mod check;
mod device;
mod elevator;
mod modern;
mod net;
mod passes;
pub(crate) mod priority;
mod queue;
mod reclaim;

use serde::{Deserialize, Serialize};

pub use aging::{
    AgedUnmap, AgingConfig, AgingDriver, BackgroundAging, CacheHogs, Decay, InactivePlenty, LaunderRule, LookupRule,
    NewPage, PlentyOrder, PlentySpares, Reactivation, RefillRounds, ShortMark, UseRule,
};
pub use device::{CommandOrder, DeviceConfig};
pub use elevator::{
    AnticipatoryConfig, BfqConfig, Cfq26Config, CfqConfig, DeadlineConfig, ElevatorConfig, KyberConfig,
};
pub use modern::{BalancedConfig, GenerationsConfig, OnDemandConfig, ReadaheadPolicy, WorkingsetConfig};
pub use net::{NetConfig, ReplyStrategy};
pub use passes::{PassConfig, WriteMark};
pub use queue::{IocostConfig, IocostModel, PlugList, QueueConfig, SlotRule, WakeRule, WbtConfig};
pub use reclaim::{
    BufferWait, ClockConfig, MaxMapped, MetadataMark, OomRule, ReadMark, ReclaimConfig, ReclaimPolicy, RefillRule,
    ScanBudget, UnmapSkips,
};

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
    /// Network server.
    #[serde(default)]
    pub net: NetConfig,
}

impl Config {
    /// Binary logarithm of the slots that a swap-in reads at once: the variant's, less on small machines (`swap_setup`,
    /// mm/swap.c of 2.4).
    pub fn swap_cluster(&self) -> u32 {
        let most = match self.machine.ram / 1024 {
            0..16 => 2,
            16..32 => 3,
            _ => u32::MAX,
        };
        self.swap.page_cluster.min(most)
    }
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
    /// Time slice of a task when others are ready, ms (2.4 at HZ 100: 60).
    #[serde(default = "default_slice_ms")]
    pub slice_ms: u32,
    /// Who gets a processor.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheduler: Scheduler,
    /// By goodness: ticks by which a woken task has to be better than the running one to interrupt it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preempt_margin: u32,
    /// CPU time of a system call's entry and exit, ns.
    pub syscall_ns: u64,
    /// CPU time to copy a page between user and kernel, ns.
    pub copy_page_ns: u64,
    /// CPU time of a page fault, without I/O, ns.
    pub fault_ns: u64,
    /// What clearing a frame costs more if nothing ever used it since the machine began, ns (an emulator's host has to find
    /// memory for it first).
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh_frame_ns: u64,
    /// CPU time of a touch through a mapping that does not fault, ns.
    pub touch_ns: u64,
    /// CPU time to look at one page in reclaim, ns.
    pub scan_page_ns: u64,
    /// CPU time to put a page into the page cache beside the copy, ns: memory, tree, list, place of the block.
    #[serde(default, skip_serializing_if = "is_default")]
    pub page_cache_add_ns: u64,
    /// CPU time to build and queue one block I/O, ns.
    pub submit_ns: u64,
    /// From the end of a request's service until the kernel has handled the interrupt and can start the next, ns for
    /// each page of the request; the device is idle meanwhile.
    pub completion_page_ns: u64,
    /// Kernel paths can be preempted: a woken task gets the processor at once, not when the running call ends (R. Love's
    /// patch).
    #[serde(default)]
    pub preempt: bool,
    /// File system block size, bytes (only 4096 is modelled).
    pub block_bytes: u32,
    /// Limit on the memory of all tasks of the trace together (a memory cgroup), KiB; 0 = none.
    #[serde(default, with = "size_kib", skip_serializing_if = "is_default")]
    pub memory_limit: u64,
    /// Part of the limit that is charged before the first operation (programs, page tables, kernel objects), KiB.
    #[serde(default, with = "size_kib", skip_serializing_if = "is_default")]
    pub limit_reserved: u64,
    /// Sleeps end when they were asked to (high-resolution timers) and not on a tick.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precise_sleeps: bool,
    /// What the rest of the recorded machine takes of memory, as its vmstat log tells.
    #[serde(default, skip_serializing_if = "is_default")]
    pub envelope: Envelope,
    /// What is in the page cache when the trace begins: `cold`, `warm` (what the trace's files held then, so far as it goes in),
    /// or a list as mincore gives it: `PATH` or `PATH:FIRST-LAST,PAGE`, least recently used first, separated by blanks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache: String,
}

/// Whether memory that the recorded machine's other processes had is taken here as well (from a vmstat log in the trace).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Envelope {
    /// Nothing is taken.
    #[default]
    None,
    /// As much as recorded.
    Recorded,
    /// The same share of memory as recorded.
    Scaled,
}

/// Choice among ready tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// In turn; who is woken goes first when the running call ends.
    #[default]
    Turns,
    /// 2.2 and 2.4: who has most left of its slice.
    Goodness,
}

const fn default_slice_ms() -> u32 {
    60
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
    /// For allocations that would rather have NORMAL, the marks of DMA lie higher by 1/n of NORMAL's size; 0 = they do
    /// not (2.4.23: 256).
    #[serde(default)]
    pub lower_zone_ratio: u32,
}

/// Allocator family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocPolicy {
    /// 2.4.11 to 2.4.17: a request for one frame that may wait retries for ever, with a yield; others fail in silence.
    ClasszoneRetry,
    /// 2.2.x to 2.4.9 and -ac: frames come from the free or the clean lists, a zone at a time; reclaim helps all zones.
    ThreeList,
    /// 2.2: one set of marks for the whole machine; reclaim for a request gives it the first frame that it frees.
    Global,
    /// 2.4.10: after reclaim without success a frame is taken only above `high`; else the request fails, and says so.
    ClasszoneFail,
    /// One zone with watermarks from `min_free_kbytes`, and the limit of a memory cgroup: 2.6 and later.
    Watermarks,
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
    /// When an entry goes that holds a swap slot, the slot's page leaves the swap cache if it has no buffers or little swap
    /// is free (2.4.14+); else it stays there until reclaim finds it.
    #[serde(default)]
    pub exit_frees_cache: bool,
    /// More swap pages in flight than so many read clusters make the next swap write wait for its end, and end the read of a
    /// cluster; 0 = no limit (2.4.14+). Before: 8.
    pub max_in_flight_clusters: u32,
    /// Pages that a process leaves behind in the swap cache stay there, with their slots, until reclaim meets them (2.4.5),
    /// else they go with the process.
    #[serde(default)]
    pub exit_keeps_cache: bool,
    /// Swap is a partition of the first disk of the trace, behind everything else there: its requests share that disk's queue
    /// and arm. Else it has a disk of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shares_disk: bool,
}

/// When a swapped-in page's slot is freed; the page is dirty then and has to be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotFate {
    /// Always: 2.4.10.
    Always,
    /// When the fault is a write: 2.2.
    OnWriteFault,
    /// When the fault is a write, or more than four fifths of swap are in the swap cache: 2.4.11 to 2.4.13.
    OnWrite,
    /// When little swap is free, see `free-slot-below-pct`: 2.4.14+.
    FreeBelow,
}

/// Read-ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadaheadConfig {
    /// Family.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: ReadaheadPolicy,
    /// Smallest window of a sequential reader, pages ([`ReadaheadPolicy::Window`]).
    pub min_pages: u32,
    /// Largest window, pages ([`ReadaheadPolicy::Window`]).
    pub max_pages: u32,
    /// The last page of a request, if it is not whole, counts as needed (2.4), else not (2.2).
    #[serde(default = "yes")]
    pub partial_needed: bool,
    /// A page under read begins a new window unless it lies within the last two (2.4), else unless within the last (2.2).
    #[serde(default = "yes")]
    pub two_windows: bool,
    /// Rules of [`ReadaheadPolicy::OnDemand`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_demand: OnDemandConfig,
}

const fn yes() -> bool {
    true
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
    /// [`WritebackPolicy::Hysteresis`]: bdflush goes on down to this share, percent (nfract_stop_bdflush).
    #[serde(default)]
    pub stop_pct: u32,
    /// [`WritebackPolicy::Hysteresis`]: buffers that bdflush writes between two looks at the level (ndirty).
    #[serde(default)]
    pub bdflush_buffers: u32,
    /// Buffers per batch (NRSYNC).
    pub batch: u32,
    /// [`WritebackPolicy::WaitBdflush`]: buffers that bdflush writes before it wakes waiting writers (ndirty).
    #[serde(default)]
    pub flush_buffers: u32,
    /// kupdate's interval, ms.
    pub interval_ms: u64,
    /// Age at which a dirty buffer is written, ms.
    pub expire_ms: u64,
    /// Rules of [`WritebackPolicy::Balanced`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub balanced: BalancedConfig,
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
    /// The buffer cache and free frames: 2.2.
    BuffersAndFree,
    /// Free frames and both lists: 2.4.10 to 2.4.12.
    FreeAndLists,
    /// Low memory less its high watermarks: 2.4.13 to 2.4.17.
    LowMemory,
    /// Page cache, and free frames above the high watermarks: 2.4.23.
    CacheAndFree,
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
    /// 2.2: above the soft limit a writer wakes bdflush, above the hard one it also sleeps until bdflush has written its
    /// share.
    WaitBdflush,
    /// -aa of early December 2001: above the soft limit a writer only wakes bdflush, above the hard one it also writes a
    /// batch and waits for one; bdflush and kupdate wait for nothing.
    WakeAndWait,
    /// -aa from mid-December 2001, 2.4.21+: nobody waits; bdflush, once woken, goes on until few buffers are dirty.
    Hysteresis,
    /// Writers pause for what they dirtied, flushers write by inode: since 3.2. See [`BalancedConfig`].
    Balanced,
}

/// The default, which a configuration need not spell out.
fn is_default<T: Default + PartialEq>(v: &T) -> bool {
    *v == T::default()
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
