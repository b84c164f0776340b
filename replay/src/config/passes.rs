//! Passes of the two-list reclaim beyond mainline's priorities: table `reclaim.passes`.

use serde::{Deserialize, Serialize};

/// What a pass does and how many a run has: A. Arcangeli's VM (-aa, merged in 2.4.23) and patches of late 2001. The
/// default is mainline's: a pass for each priority, each with one scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PassConfig {
    /// Passes of equal pressure before a run fails (vm_passes); 0 = one for each priority from `def-priority` down to 1.
    pub count: u32,
    /// Scans of the inactive list in a pass.
    pub scans: u32,
    /// A scan looks at 1/n of the list, or of both lists (vm_scan_ratio, vm_cache_scan_ratio).
    pub scan_ratio: u32,
    /// The scan clears a page's mark and goes on with the page.
    pub scan_unmarks: bool,
    /// With `max-mapped = "ratio"`: mapped pages met for each page wanted before pages are unmapped (vm_mapped_ratio).
    pub mapped_ratio: u32,
    /// ... the name caches shrink then,
    pub mapped_shrinks_names: bool,
    /// ... and the active list is looked at again.
    pub mapped_refills: bool,
    /// Unmapping that found too little is not tried again in the same run, and is no success.
    pub unmap_fails_once: bool,
    /// One call of unmapping goes round all address spaces so often (with `swap-out-all`).
    pub unmap_rounds: u32,
    /// The name caches shrink at the beginning of each pass instead of at the end of one that failed.
    pub names_first: bool,
    /// An anonymous page stays on its list when it leaves the swap cache, even if such pages are not put on a list at first.
    pub anon_stays: bool,
}

impl Default for PassConfig {
    fn default() -> Self {
        Self {
            count: 0,
            scans: 1,
            scan_ratio: 6,
            scan_unmarks: false,
            mapped_ratio: 0,
            mapped_shrinks_names: false,
            mapped_refills: false,
            unmap_fails_once: false,
            unmap_rounds: 1,
            names_first: false,
            anon_stays: false,
        }
    }
}

/// What a write does to the mark of the page that it wrote to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMark {
    /// Sets it, which never activates the page: mainline.
    #[default]
    Referenced,
    /// Marks the page accessed if the write begins at its first byte, or if the file was not read since it was opened or
    /// sought in: -aa of October 2001.
    Accessed,
    /// Clears it: A. Morton, November 2001.
    Unreferenced,
}
