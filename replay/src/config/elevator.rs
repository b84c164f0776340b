//! I/O schedulers and their tunables: section `elevator`.

use serde::{Deserialize, Serialize};

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
    /// linux-0.01: time that a process takes to look at one listed request while it sorts, ns; an interrupt that comes in that time
    /// meets the sorting. 0: sorting takes no time, and only the submissions listed above are hit.
    #[serde(default)]
    pub sort_element_ns: u64,
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
    /// mq-deadline, 6.5+: a batch goes on with the first request at or behind the place of the last one; before, with the one
    /// that followed that when it was dispatched, whatever came between since.
    pub next_by_place: bool,
    /// mq-deadline: scheduler tags that writes and asynchronous reads may use; 0 = all (6.1's default).
    pub async_depth: u32,
    /// mq-deadline: tags that its narrowest limit leaves, as it tells the bitmap of tags, which wakes sleepers by the batch of that;
    /// 0 = all. 1 since 6.11.
    pub least_tags: u32,
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
            next_by_place: false,
            async_depth: 0,
            least_tags: 0,
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
    /// As `least-tags` of the deadline schedulers; 0 = three of sixteen, its own narrowest limit. 1 since 6.18.
    pub least_tags: u32,
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
            least_tags: 0,
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
