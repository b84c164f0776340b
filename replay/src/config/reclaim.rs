//! Page replacement: section `reclaim`.

use super::AgingConfig;
use super::passes::{PassConfig, WriteMark};
use serde::{Deserialize, Serialize};

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
    /// ... and leaves it marked referenced (-aa of October 2001).
    #[serde(default)]
    pub fault_marks: bool,
    /// What a write does to the page's mark.
    #[serde(default)]
    pub write_mark: WriteMark,
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
    /// Passes of a two-list run.
    #[serde(default)]
    pub passes: PassConfig,
    /// Rules of [`ReclaimPolicy::Aging`].
    #[serde(default)]
    pub aging: AgingConfig,
    /// Rules of [`ReclaimPolicy::Clock`].
    #[serde(default)]
    pub clock: ClockConfig,
    /// Rules of [`ReclaimPolicy::Workingset`].
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub workingset: super::WorkingsetConfig,
    /// Rules of [`ReclaimPolicy::Generations`].
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub generations: super::GenerationsConfig,
}

/// The clock over all frames of 2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ClockConfig {
    /// The buffer cache is left alone below this share of memory, percent.
    pub buffer_min_pct: u32,
    /// The page cache is left alone, and its pages stay mapped, below this share of memory, percent.
    pub cache_min_pct: u32,
    /// At most 1/n as many inodes as memory has frames; 0 = any number. Inodes go only when this is reached, not when
    /// memory is short.
    pub inode_max_divisor: u32,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self { buffer_min_pct: 2, cache_min_pct: 2, inode_max_divisor: 2 }
    }
}

/// Replacement family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReclaimPolicy {
    /// Active and inactive list without ages, 2.4.10 and later.
    TwoList,
    /// Active, dirty and clean lists, pages with ages: 2.4.5 to 2.4.9. See [`AgingConfig`].
    Aging,
    /// A hand over all frames, page cache and buffer cache apart: 2.2. See [`ClockConfig`].
    Clock,
    /// Active and inactive lists of file and of anonymous pages, with refault detection: since 3.15. See
    /// [`super::WorkingsetConfig`].
    Workingset,
    /// Generations of pages, tiers and refault feedback: the multi-generational LRU, an option since 6.1. See
    /// [`super::GenerationsConfig`] and, for what both share, [`super::WorkingsetConfig`].
    Generations,
}

impl ReclaimPolicy {
    /// Evicted pages leave a shadow, and dirty pages are counted by file.
    pub fn detects_refaults(self) -> bool {
        matches!(self, Self::Workingset | Self::Generations)
    }
}

/// Active pages that a pass looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefillRule {
    /// As many as are wanted, while the inactive list is shorter than twice the active one: 2.4.10.
    WhenShort,
    /// want x active / (2 x (inactive + 1)): 2.4.11 to 2.4.17, vm-tweaks.
    Proportional,
    /// The same, but so many pages are moved, not looked at, and as many as are wanted if that is none: A. Morton, December
    /// 2001.
    ProportionalMoved,
    /// want x active / (2 x inactive + 1) are moved; where the walk stopped, the next one goes on: -aa from December 2001,
    /// 2.4.23.
    Moved,
    /// The same, at most as many as are wanted, and mapped pages stay: -aa of October 2001.
    MovedUnmapped,
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
    /// Pages looked at: 1/`passes.scan-ratio` of the list after the refill, whatever the priority: -aa.
    Share,
    /// The same share of both lists together: 2.4.23.
    ShareOfBoth,
}

/// Busy buffers that reclaim waits for when it meets them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferWait {
    /// All under I/O, if the allocation may wait: 2.4.10 to 2.4.12.
    Any,
    /// Those that reclaim itself wrote: 2.4.13+.
    Laundered,
    /// Any, already on the first encounter, which writes dirty ones at once: 2.4.9.
    AtOnce,
    /// As at once, but what was written is waited for as well, and not dropped then: 2.4.5 to 2.4.8.
    WriteThenWait,
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
    /// Only one whose page fault finds no frame: 2.2, 2.4.10, -aa.
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
    /// want x `passes.mapped-ratio`, then pages are unmapped and the scan goes on: -aa, 2.4.23.
    Ratio,
}
