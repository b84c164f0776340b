//! Tables of the mechanisms that came after 2.4: on-demand read-ahead, refault-aware lists, balanced dirty throttling.

use serde::{Deserialize, Serialize};

/// How read-ahead is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadaheadPolicy {
    /// A window per open file that each read may move: 2.4.
    #[default]
    Window,
    /// A miss or a marked page decides (mm/readahead.c since 2.6.23). See [`OnDemandConfig`].
    OnDemand,
}

/// On-demand read-ahead (`mm/readahead.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct OnDemandConfig {
    /// Largest window, KiB (`read_ahead_kb`).
    pub window_kib: u32,
    /// Largest I/O of the device, KiB (`max_sectors_kb`): requests above the window, and advice, go up to it.
    pub io_kib: u32,
    /// A window's end is aligned to its folios, whose order grows by 2 with each marked page met (6.18); else the order
    /// follows the marked page's (6.1 to 6.12).
    pub aligned: bool,
    /// A miss at the end of the window in hand continues it, and the first window is larger (6.1).
    pub continues: bool,
    /// Largest folio of the file system, log2 of pages; 0 = single pages.
    pub folio_order: u32,
}

impl Default for OnDemandConfig {
    fn default() -> Self {
        Self { window_kib: 128, io_kib: 1280, aligned: true, continues: false, folio_order: 9 }
    }
}

/// Active and inactive lists with refault detection (`mm/vmscan.c`, `mm/workingset.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct WorkingsetConfig {
    /// Relative price of file pages against anonymous ones, 0 to 200 (`vm.swappiness`).
    pub swappiness: u32,
    /// Reclaim under a limit sleeps on pages under write-out that it met before (memory cgroup version 1).
    pub wait_writeback: bool,
    /// Longest wait of a reclaimer that met only dirty pages nobody writes, ms.
    pub throttle_ms: u64,
}

impl Default for WorkingsetConfig {
    fn default() -> Self {
        Self { swappiness: 60, wait_writeback: false, throttle_ms: 100 }
    }
}

/// Generations of pages (`mm/vmscan.c` with `CONFIG_LRU_GEN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct GenerationsConfig {
    /// New pages of files enter the second oldest of more than three generations, not the oldest: 6.12.
    pub enters_second: bool,
    /// The rework of 6.14: pages enter by their signs of use; a shadow is recent for four generations, not one; all tiers count
    /// when kinds are compared; tiers are weighed 2:3, not 1:2; a generation begins whenever only two are left, however large
    /// they are.
    pub reworked: bool,
}

/// Dirty throttling by rate, flusher and journal (`mm/page-writeback.c`, `fs/fs-writeback.c`, `fs/jbd2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct BalancedConfig {
    /// Share of dirtyable memory at which writers stop, percent (`vm.dirty_ratio`).
    pub dirty_pct: u32,
    /// Share at which background write-out begins, percent (`vm.dirty_background_ratio`).
    pub background_pct: u32,
    /// The same two as amounts, KiB, instead (`vm.dirty_bytes`, `vm.dirty_background_bytes`); 0 = by share.
    pub dirty_kib: u64,
    /// ... where background write-out begins.
    pub background_kib: u64,
    /// The load and the kernel's workers run under a real-time policy: all limits are a quarter and a 32nd higher for them
    /// (`domain_dirty_limits`).
    pub real_time: bool,
    /// Limit of the device itself, KiB, kept strictly (`bdi/max_bytes` with `strict_limit`); 0 = none.
    pub device_limit_kib: u64,
    /// Write bandwidth that the estimator begins with, KiB/s (the kernel: 100 MiB/s).
    pub start_kib_s: u64,
    /// Rate of a dirtying task that the estimator begins with, KiB/s (the kernel: 100 MiB/s).
    pub start_rate_kib_s: u64,
    /// Largest extent that one write-out call maps, pages (ext4: 2048).
    pub extent_pages: u32,
    /// The journal's commit interval, ms; 0 = the file system has no journal that costs I/O.
    pub commit_ms: u64,
    /// The log is empty when the trace begins, as after mounting: the first commit writes the journal's superblock first.
    pub journal_empty: bool,
    /// The file system is as it was made: no block of metadata was ever freed, so that the first one waits for the journal's
    /// superblock (`journal_incompat_revoke` in `dumpe2fs -h` says the opposite).
    pub journal_new: bool,
    /// What changes is copied into the log's memory, so that nobody waits for blocks on their way to the log: xfs. Else
    /// whoever must change such a block waits: jbd2.
    pub journal_copies: bool,
}

impl Default for BalancedConfig {
    fn default() -> Self {
        Self {
            dirty_pct: 20,
            background_pct: 10,
            dirty_kib: 0,
            background_kib: 0,
            real_time: false,
            device_limit_kib: 0,
            start_kib_s: 102_400,
            start_rate_kib_s: 102_400,
            extent_pages: 2048,
            commit_ms: 5000,
            journal_empty: false,
            journal_new: false,
            journal_copies: false,
        }
    }
}
