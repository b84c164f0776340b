//! Memory zones: free frames, watermarks, the order-0 part of the page allocator.
//!
//! Sources: mm/page_alloc.c of 2.4.15 to 2.4.17 (cumulative watermark test), `free_area_init_core` for the watermarks.

use crate::config::{AllocConfig, AllocPolicy, MachineConfig};

/// Zone numbers: fallback order of an allocation is NORMAL, then DMA.
pub const DMA: usize = 0;
/// The rest of low memory.
pub const NORMAL: usize = 1;
const DMA_FRAMES: u64 = 4096;

/// One zone. All counts in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// All frames, also those that the kernel's image holds.
    pub size: u64,
    /// Free frames.
    pub free: u64,
    /// Below this only reclaimers allocate.
    pub min: u64,
    /// Below this kswapd is woken.
    pub low: u64,
    /// kswapd stops above this.
    pub high: u64,
    /// kswapd is asked to look at this zone.
    pub need_balance: bool,
}

/// Who allocates, as far as the allocator's rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocFlags {
    /// __GFP_WAIT: may sleep.
    pub wait: bool,
    /// __GFP_IO: may start I/O.
    pub io: bool,
    /// __GFP_FS: may call into the file system.
    pub fs: bool,
}

impl AllocFlags {
    /// The mask that 2.4.10 prints: __GFP_WAIT 0x10, HIGH 0x20, IO 0x40, HIGHIO 0x80, FS 0x100, HIGHMEM 0x02 (mm.h); user and page
    /// cache allocations are GFP_HIGHUSER, others may use the reserve (HIGH).
    pub const fn mask(self) -> u32 {
        let io = if self.io { 0xc0 } else { 0 };
        let wait = if self.wait { 0x10 } else { 0 };
        if self.fs { 0x102 | io | wait } else { 0x20 | io | wait }
    }

    /// Page cache, anonymous memory (GFP_HIGHUSER, GFP_KERNEL, kswapd from 2.4.10 on).
    pub const USER: Self = Self { wait: true, io: true, fs: true };
    /// Metadata, buffer heads (GFP_NOFS).
    pub const NOFS: Self = Self { wait: true, io: true, fs: false };
    /// Block layer internals (GFP_NOIO).
    pub const NOIO: Self = Self { wait: true, io: false, fs: false };
    /// Interrupts, network receive (GFP_ATOMIC).
    pub const ATOMIC: Self = Self { wait: false, io: false, fs: false };
}

/// Both zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zones {
    /// DMA, NORMAL.
    pub zone: [Zone; 2],
    cumulative: bool,
    /// By so much DMA's marks lie higher for those who would rather have NORMAL.
    reserve: u64,
    /// `memory_pressure` of the aging kernels: allocations, less frees.
    pub pressure: u64,
}

impl Zones {
    /// Zones of a machine. `reserved` memory is taken from DMA first, where a 2.4 kernel and its memory map lie.
    pub fn new(machine: &MachineConfig, cfg: &AllocConfig) -> Self {
        if cfg.policy == AllocPolicy::Watermarks {
            return Self::one_zone(machine);
        }
        let frames = machine.ram / 4;
        let mut reserved = machine.reserved / 4;
        let sizes = [frames.min(DMA_FRAMES), frames.saturating_sub(DMA_FRAMES)];
        let ratios = [u64::from(cfg.dma_ratio), u64::from(cfg.normal_ratio)];
        let zone = std::array::from_fn(|i| {
            let mask = (sizes[i] / ratios[i].max(1)).clamp(u64::from(cfg.mask_floor), 255);
            let taken = reserved.min(sizes[i] / 4 * 3);
            reserved -= taken;
            let (min, low, high) = if sizes[i] == 0 { (0, 0, 0) } else { (mask, 2 * mask, 3 * mask) };
            Zone { size: sizes[i], free: sizes[i] - taken, min, low, high, need_balance: false }
        });
        let reserve = sizes[NORMAL].checked_div(u64::from(cfg.lower_zone_ratio)).unwrap_or(0);
        Self { zone, cumulative: cfg.cumulative, reserve, pressure: 0 }
    }

    /// All memory in one zone, with watermarks from `min_free_kbytes` = 4 x the square root of the memory in KiB, 128 to
    /// 262144, and the least distances between them (`init_per_zone_wmark_min`, `__setup_per_zone_wmarks`).
    fn one_zone(machine: &MachineConfig) -> Self {
        let frames = machine.ram / 4;
        let free = frames - (machine.reserved / 4).min(frames / 4 * 3);
        let min = (16 * free * 4).isqrt().clamp(128, 262_144) / 4;
        let gap = (min / 4).max(free / 1000);
        let normal = Zone { size: frames, free, min, low: min + gap, high: min + 2 * gap, need_balance: false };
        Self { zone: [Zone::default(), normal], cumulative: false, reserve: 0, pressure: 0 }
    }

    /// The first zone of the fallback list: the class that a reclaim on behalf of an allocation has to help.
    pub fn classzone(&self) -> usize {
        if self.zone[NORMAL].size > 0 { NORMAL } else { DMA }
    }

    /// Free frames in all.
    pub fn free(&self) -> u64 {
        self.zone[DMA].free + self.zone[NORMAL].free
    }

    fn take_above(&mut self, mark: impl Fn(&Zone) -> u64) -> Option<usize> {
        let mut min = 1;
        for i in [NORMAL, DMA] {
            let z = &mut self.zone[i];
            if z.size == 0 {
                continue;
            }
            let m = mark(z) + if i == DMA { self.reserve } else { 0 };
            if self.cumulative {
                min += m;
            } else {
                min = 1 + m;
            }
            if z.free > min {
                z.free -= 1;
                return Some(i);
            }
        }
        None
    }

    /// Take a frame where a zone stays above `low`.
    #[inline]
    pub fn take_low(&mut self) -> Option<usize> {
        self.take_above(|z| z.low)
    }
    /// Take a frame where a zone stays above `min`, or a quarter of it for those who can't wait.
    pub fn take_min(&mut self, flags: AllocFlags) -> Option<usize> {
        self.take_above(|z| if flags.wait { z.min } else { z.min / 4 })
    }
    /// Take a frame where a zone stays above `high`.
    pub fn take_high(&mut self) -> Option<usize> {
        self.take_above(|z| z.high)
    }
    /// No zone has more than `low` free.
    pub fn all_low(&self) -> bool {
        self.zone.iter().all(|z| z.free <= z.low)
    }
    /// Take any frame.
    pub fn take_any(&mut self) -> Option<usize> {
        for i in [NORMAL, DMA] {
            if self.zone[i].free > 0 {
                self.zone[i].free -= 1;
                return Some(i);
            }
        }
        None
    }
    /// Give a frame back.
    #[inline]
    pub fn give(&mut self, zone: usize) {
        self.zone[zone].free += 1;
        if self.pressure > 1 {
            self.pressure -= 1;
        }
        debug_assert!(self.zone[zone].free <= self.zone[zone].size);
    }

    /// Does zone `z` count for a reclaim of class `class`?
    #[inline]
    pub fn in_class(z: u8, class: usize) -> bool {
        usize::from(z) <= class
    }

    /// kswapd's test: a zone of this class or below has more than `high` free, so no more balancing is needed.
    pub fn balanced(&self, class: usize) -> bool {
        (0..=class).any(|i| self.zone[i].free > self.high_for(i, class))
    }

    /// High watermark of zone `i` for allocations of class `class`.
    fn high_for(&self, i: usize, class: usize) -> u64 {
        self.zone[i].high + if i < class { self.reserve } else { 0 }
    }

    /// Free frames above the high watermarks of the fallback list's first zone (`nr_free_buffer_pages` of 2.4.23).
    pub fn free_above_high(&self) -> u64 {
        let class = self.classzone();
        (0..=class).map(|i| self.zone[i].free.saturating_sub(self.high_for(i, class))).sum()
    }

    /// Base of the dirty limits of 2.4.13 to 2.4.17 (`nr_free_buffer_pages`): low memory less its high watermarks.
    pub fn buffer_pages(&self) -> u64 {
        self.zone.iter().map(|z| z.size.saturating_sub(z.high)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mib: u64) -> MachineConfig {
        MachineConfig { ram: mib * 1024, ..crate::testing::config().machine }
    }

    #[test]
    fn watermarks_are_those_of_the_specification() {
        let cfg = AllocConfig { dma_ratio: 128, normal_ratio: 128, mask_floor: 20, ..crate::testing::config().alloc };
        let z = Zones::new(&machine(64), &cfg);
        assert_eq!((z.zone[DMA].min, z.zone[DMA].low, z.zone[DMA].high), (32, 64, 96));
        assert_eq!((z.zone[NORMAL].min, z.zone[NORMAL].low, z.zone[NORMAL].high), (96, 192, 288));
        let z = Zones::new(&machine(256), &cfg);
        assert_eq!((z.zone[NORMAL].min, z.zone[NORMAL].high), (255, 765));
    }

    #[test]
    fn the_lower_zone_is_held_back_for_those_who_have_no_other() {
        let cfg = AllocConfig { cumulative: false, lower_zone_ratio: 256, ..crate::testing::config().alloc };
        let mut z = Zones::new(&machine(64), &cfg);
        let reserve = z.zone[NORMAL].size / 256;
        assert_eq!(reserve, 48);
        z.zone[NORMAL].free = 0;
        z.zone[DMA].free = z.zone[DMA].low + reserve + 1;
        assert_eq!(z.take_low(), None);
        z.zone[DMA].free += 1;
        assert_eq!(z.take_low(), Some(DMA));
        z.zone[DMA].free = z.zone[DMA].high + 1;
        assert!(z.balanced(DMA) && !z.balanced(NORMAL));
    }

    #[test]
    fn dma_is_used_only_above_the_sum_of_the_marks() {
        let cfg = AllocConfig { cumulative: true, ..crate::testing::config().alloc };
        let mut z = Zones::new(&machine(64), &cfg);
        z.zone[NORMAL].free = z.zone[NORMAL].low;
        z.zone[DMA].free = z.zone[NORMAL].low + z.zone[DMA].low + 1;
        assert_eq!(z.take_low(), None);
        z.zone[DMA].free += 1;
        assert_eq!(z.take_low(), Some(DMA));
    }
}
