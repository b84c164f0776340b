//! Memory: pages, LRU lists, zones, buffers, swap, name caches, and the state that the kernel keeps beside them.
//!
//! Everything here is synchronous and never blocks: whoever has to wait is told so by the caller's own logic (see
//! [`crate::sim`]). Invariants (audited by [`Mm::audit`]): a page holds a frame if and only if it is `PRESENT`; it is on the
//! LRU list its record names and on no other; free + present + slab + kernel frames are all frames; a swap slot is used
//! if and only if a page-table entry or the swap cache refers to it.

pub mod aging;
pub mod buffer;
pub mod clock;
pub mod evictions;
pub mod generations;
pub mod lru;
pub mod namecache;
pub mod page;
pub mod sharing;
pub mod swapspace;
pub mod unmap;
pub mod workingset;
pub mod zone;

use crate::config::{AgingConfig, Config, LookupRule, ReclaimPolicy, WriteMark};
use crate::program::Program;
use crate::results::Counters;
use buffer::{BufList, BufferLists};
use clock::Clock;
use evictions::Evictions;
use generations::Generations;
use kreplay_traces::units::Nanos;
use lru::Lru;
use namecache::NameCache;
use page::{List, Page, flag, noop};
use swapspace::SwapSpace;
use unmap::AddressSpaces;
use workingset::Workingset;
use zone::{NORMAL, Zones};

/// Buffer heads in a page of slab (96 bytes each on i386).
const BUFFER_HEADS_PER_PAGE: u64 = 42;

/// All memory state of one simulated machine.
#[derive(Clone, Debug)]
pub struct Mm {
    /// Page records by page id.
    pub pages: Vec<Page>,
    /// What would change nothing, by page id (see [`noop`]); zero is always right.
    pub hot: Vec<u8>,
    /// Active list.
    pub active: Lru,
    /// Inactive list; of the aging kernels the dirty one.
    pub inactive: Lru,
    /// Clean lists by zone (aging kernels).
    pub clean: [Lru; 2],
    /// Rules of the aging kernels, where they apply.
    pub aging: Option<AgingConfig>,
    /// Frames under the hand, and their rules, where reclaim has no lists (2.2).
    pub clock: Option<Clock>,
    /// Page ids from here on are buffers of the pages of files that lie so many ids before them; 0 = there are none.
    pub twins: u32,
    /// What a write does to a page's mark (two-list kernels).
    pub write_mark: WriteMark,
    /// Lists and clock of refault detection, where it applies.
    pub ws: Option<Workingset>,
    /// Time of the step in hand, for what is stamped.
    pub now: Nanos,
    /// Buffer lists.
    pub bufs: BufferLists,
    /// Zones.
    pub zones: Zones,
    /// Swap.
    pub swap: SwapSpace,
    /// Page tables, as far as unmapping needs them.
    pub spaces: AddressSpaces,
    /// Dentries and inodes.
    pub names: NameCache,
    /// How fast they shrink.
    names_half_life: namecache::HalfLife,
    /// Cache pages that count against nobody's limit here.
    uncharged_pages: u64,
    /// Slab grows by clean pages where free frames are few (a proof that sets the lists up itself says no).
    pub slab_reclaims: bool,
    /// Totals.
    pub counters: Counters,
    /// Pages that were unlocked or whose buffer was: their waiters are to be woken.
    pub unlocked: Vec<u32>,
    /// Pages that reclaim threw out, for the result table.
    pub evictions: Evictions,
    /// The frame that was allocated last had never been used.
    pub fresh: bool,
    /// Somebody asked for bdflush.
    pub wake_bdflush: bool,
    /// `page_launder` writes (-ac with launder): so many pages could not be cleaned without.
    pub should_write: bool,
    /// Pages in page cache or swap cache.
    pub cache_pages: u64,
    /// ... of these in the swap cache.
    pub swap_cache_pages: u64,
    /// ... of these metadata.
    pub meta_pages: u64,
    /// Anonymous pages with a frame.
    pub anon_pages: u64,
    /// Cached pages by file.
    file_pages: Vec<u32>,
    /// First page id and pages by file.
    spans: Vec<(u32, u32)>,
    /// First page id and file, ascending.
    first_pages: Vec<(u32, u32)>,
    buffer_heads: u64,
    slab: [u64; 2],
    /// Frames by zone that the rest of the recorded machine has.
    pub held: [u64; 2],
    kernel_frames: u64,
}

impl Mm {
    /// Memory of a machine before the first operation: nothing cached.
    pub fn new(program: &Program, config: &Config) -> Self {
        let zones = Zones::new(&config.machine, &config.alloc);
        let kernel_frames = zones.zone.iter().map(|z| z.size - z.free).sum();
        let clocked = config.reclaim.policy == ReclaimPolicy::Clock;
        let mut pages = vec![Page::default(); program.pages as usize * if clocked { 2 } else { 1 }];
        for f in &program.files {
            let meta = if f.kind == crate::program::FileKind::Metadata { flag::META | flag::ON_DISK } else { 0 };
            let first = f.first_page as usize;
            let on_disk = if f.exists { f.initial_size.div_ceil(4096).min(u64::from(f.pages)) as usize } else { 0 };
            for (i, p) in pages[first..first + f.pages as usize].iter_mut().enumerate() {
                p.flags = meta | if i < on_disk { flag::ON_DISK } else { 0 };
            }
        }
        // Indirect blocks of what does not exist yet are made in memory, not read.
        for f in &program.files {
            let on_disk = if f.exists { f.initial_size.div_ceil(4096) } else { 0 };
            for (k, &block) in f.indirect.iter().enumerate() {
                if 12 + k as u64 * 1024 >= on_disk {
                    pages[block as usize].flags &= !flag::ON_DISK;
                }
            }
        }
        for a in program.areas.iter().filter(|a| a.file.is_none()) {
            let first = a.first_page as usize;
            pages[first..first + a.pages as usize].iter_mut().for_each(|p| p.flags = flag::ANON);
        }
        let mut first_pages: Vec<(u32, u32)> =
            (0u32..).zip(&program.files).filter(|(_, f)| f.pages > 0).map(|(i, f)| (f.first_page, i)).collect();
        first_pages.sort_unstable();
        let n = pages.len();
        let free = zones.free();
        let mut names = NameCache::new(program.files.len());
        if clocked && config.reclaim.clock.inode_max_divisor > 0 {
            let most = config.machine.ram / 4 / u64::from(config.reclaim.clock.inode_max_divisor);
            names.limit_inodes(most.clamp(1, 16_384) as u32);
        }
        Self {
            pages,
            hot: vec![0; n],
            active: Lru::new(List::Active),
            inactive: Lru::new(List::Inactive),
            clean: [Lru::new(List::Clean); 2],
            aging: (config.reclaim.policy == ReclaimPolicy::Aging).then_some(config.reclaim.aging),
            clock: clocked.then(|| {
                let frames = config.machine.ram / 4;
                let mask =
                    (frames / u64::from(config.alloc.normal_ratio)).clamp(u64::from(config.alloc.mask_floor), 256);
                Clock::new(frames, kernel_frames, mask, config.reclaim.clock)
            }),
            twins: if clocked { program.pages } else { 0 },
            write_mark: config.reclaim.write_mark,
            ws: config.reclaim.policy.detects_refaults().then(|| {
                let mut ws = Workingset::new(n, program.files.len(), config.machine.swap > 0);
                if config.reclaim.policy == ReclaimPolicy::Generations {
                    ws.generations = Some(Box::new(Generations::new(config.reclaim.generations)));
                }
                ws
            }),
            now: Nanos::ZERO,
            bufs: BufferLists::new(n),
            swap: SwapSpace::new((config.machine.swap / 4).min(u64::from(u32::MAX)) as u32),
            spaces: AddressSpaces::new(program),
            names,
            names_half_life: namecache::HalfLife::default(),
            slab_reclaims: true,
            uncharged_pages: 0,
            counters: Counters { min_free_kib: free * 4, ..Counters::default() },
            zones,
            unlocked: Vec::new(),
            evictions: Evictions::default(),
            fresh: false,
            wake_bdflush: false,
            should_write: false,
            cache_pages: 0,
            swap_cache_pages: 0,
            meta_pages: 0,
            anon_pages: 0,
            file_pages: vec![0; program.files.len()],
            spans: program.files.iter().map(|f| (f.first_page, f.pages)).collect(),
            first_pages,
            buffer_heads: 0,
            slab: [0; 2],
            held: [0; 2],
            kernel_frames,
        }
    }

    /// A page's record.
    #[inline]
    pub fn page(&self, id: u32) -> &Page {
        &self.pages[id as usize]
    }
    /// File of a page of the page cache.
    pub fn file_of(&self, page: u32) -> u32 {
        let page = self.base(page);
        let i = self.first_pages.partition_point(|&(first, _)| first <= page) - 1;
        self.first_pages[i].1
    }
    /// Page ids of a file.
    fn pages_of_file(&self, file: u32) -> std::ops::Range<u32> {
        let (first, pages) = self.spans[file as usize];
        first..first + pages
    }
    /// A page's record, for changing.
    #[inline]
    pub fn page_mut(&mut self, id: u32) -> &mut Page {
        &mut self.pages[id as usize]
    }
    /// Set flags; never makes a hit cheaper, so the hot byte stays.
    #[inline]
    pub fn set(&mut self, id: u32, mask: u32) {
        self.pages[id as usize].flags |= mask;
    }
    /// Clear flags; forgets what would change nothing.
    #[inline]
    pub fn clear(&mut self, id: u32, mask: u32) {
        self.pages[id as usize].flags &= !mask;
        self.hot[id as usize] = 0;
    }

    /// Lock a page that is not locked.
    #[inline]
    pub fn lock(&mut self, id: u32) {
        debug_assert!(!self.page(id).has(flag::LOCKED));
        self.set(id, flag::LOCKED);
        self.hot[id as usize] = 0;
    }
    /// Unlock a page; its waiters will be woken.
    #[inline]
    pub fn unlock(&mut self, id: u32) {
        self.clear(id, flag::LOCKED | flag::LAUNDER);
        if self.page(id).waiters != 0 {
            self.unlocked.push(id);
        }
    }

    /// `mark_page_accessed`: a second use of an inactive page activates it.
    #[inline]
    pub fn mark_accessed(&mut self, id: u32) {
        if let Some(rules) = self.aging {
            self.accessed_aged(id, rules);
            return;
        }
        if self.use_in_generation(id) {
            return;
        }
        let p = &mut self.pages[id as usize];
        if p.list == List::AnonInactive && p.any(flag::REFERENCED) {
            p.flags &= !flag::REFERENCED;
            self.move_to_active(id);
            self.counters.activated_pages += 1;
            if let Some(ws) = &mut self.ws {
                ws.aged();
            }
        } else if p.list == List::Inactive && p.any(flag::REFERENCED) {
            p.flags &= !flag::REFERENCED;
            self.activate(id);
        } else {
            p.flags |= flag::REFERENCED;
        }
    }

    /// Move an inactive page to the active list.
    pub fn activate(&mut self, id: u32) {
        self.inactive.remove(&mut self.pages, id);
        self.active.push_head(&mut self.pages, id);
        self.hot[id as usize] = 0;
        self.counters.activated_pages += 1;
        if let Some(ws) = &mut self.ws {
            ws.aged();
        }
    }

    /// Move an active page to the inactive list.
    pub fn deactivate(&mut self, id: u32) {
        self.active.remove(&mut self.pages, id);
        self.inactive.push_head(&mut self.pages, id);
        self.hot[id as usize] = 0;
        self.counters.deactivated_pages += 1;
    }

    /// Take a page off its LRU list, if it is on one.
    pub fn lru_del(&mut self, id: u32) {
        match self.page(id).list {
            List::Active => self.active.remove(&mut self.pages, id),
            List::Inactive => self.inactive.remove(&mut self.pages, id),
            List::Clean => self.clean[usize::from(self.page(id).zone)].remove(&mut self.pages, id),
            List::AnonActive | List::AnonInactive => {
                if let Some(ws) = &mut self.ws {
                    let list = match self.pages[id as usize].list {
                        List::AnonActive => &mut ws.anon_active,
                        _ => &mut ws.anon_inactive,
                    };
                    list.remove(&mut self.pages, id);
                }
            }
            List::Generation => self.remove_from_generation(id),
            List::None => {}
        }
    }

    /// Put a new page on the list where new pages go.
    pub fn lru_add(&mut self, id: u32) {
        if self.add_to_generation(id) {
            return;
        }
        match self.aging {
            None if self.clock.is_some() => {}
            None if self.ws.is_some() => self.move_to_inactive(id, false),
            None => self.inactive.push_head(&mut self.pages, id),
            Some(rules) => self.add_aged(id, rules),
        }
    }

    /// Give the frame of zone `zone` to a cache page: it is present, locked, not up to date, on the inactive list.
    fn add_to_page_cache(&mut self, id: u32, zone: usize) {
        debug_assert!(!self.page(id).any(flag::PRESENT | flag::ANON));
        let start = self.aging.map_or(0, |r| r.start);
        let p = self.page_mut(id);
        p.age = start;
        p.zone = zone as u8;
        p.flags = p.flags & (flag::META | flag::ON_DISK) | flag::PRESENT | flag::LOCKED;
        let meta = p.any(flag::META) || self.is_twin(id);
        if !self.is_twin(id) {
            let file = self.file_of(id);
            self.file_pages[file as usize] += 1;
        }
        self.clock_add(id);
        self.cache_pages += 1;
        self.meta_pages += u64::from(meta);
        self.counters.max_cache_kib = self.counters.max_cache_kib.max(self.cache_pages * 4);
        self.lru_add(id);
    }

    /// A frame came back from the allocator for a cache page: use it, or give it back if somebody else was faster
    /// (`add_to_page_cache_unique`). True if the page is the caller's to fill.
    pub fn adopt_frame(&mut self, id: u32, zone: usize) -> bool {
        if self.page(id).any(flag::PRESENT) {
            self.zones.give(zone);
            return false;
        }
        self.add_to_page_cache(id, zone);
        true
    }

    /// Remove a clean, unmapped cache page; returns the zone of the frame, which the caller gives back or keeps.
    pub fn remove_from_page_cache(&mut self, id: u32) -> usize {
        debug_assert!(!self.page(id).any(flag::ANON | flag::BUFFER), "page {id} {:?}", self.page(id));
        self.lru_del(id);
        let p = self.page_mut(id);
        let (zone, meta) = (p.zone, p.any(flag::META));
        p.flags &= flag::META | flag::ON_DISK;
        self.hot[id as usize] = 0;
        let meta = meta || self.is_twin(id);
        if !self.is_twin(id) {
            let file = self.file_of(id);
            self.file_pages[file as usize] -= 1;
        }
        self.clock_remove(id);
        self.cache_pages -= 1;
        self.meta_pages -= u64::from(meta);
        usize::from(zone)
    }

    /// Give the frame of zone `zone` to an anonymous page.
    pub fn add_anon(&mut self, id: u32, zone: usize) {
        debug_assert!(self.page(id).any(flag::ANON) && !self.page(id).any(flag::PRESENT));
        let start = self.aging.map_or(0, |r| r.start);
        let p = self.page_mut(id);
        p.zone = zone as u8;
        p.flags |= flag::PRESENT;
        p.age = start;
        self.anon_pages += 1;
        self.clock_add(id);
    }

    /// Drop the frame of an anonymous page that is in no swap cache; returns its zone.
    pub fn remove_anon(&mut self, id: u32) -> usize {
        debug_assert!(!self.page(id).any(flag::SWAP_CACHE));
        self.lru_del(id);
        let p = self.page_mut(id);
        p.flags &= flag::ANON | flag::SWAPPED | flag::SHARED_SLOT;
        let zone = p.zone;
        self.hot[id as usize] = 0;
        self.anon_pages -= 1;
        self.clock_remove(id);
        usize::from(zone)
    }

    /// Put an anonymous page into the swap cache. It has a slot.
    pub fn add_to_swap_cache(&mut self, id: u32) {
        debug_assert!(self.page(id).slot != 0 && self.page(id).any(flag::PRESENT));
        self.set(id, flag::SWAP_CACHE);
        self.cache_pages += 1;
        self.swap_cache_pages += 1;
    }

    /// Take an anonymous page out of the swap cache; its slot is freed unless a page-table entry still holds it.
    pub fn remove_from_swap_cache(&mut self, id: u32) {
        if self.page(id).any(flag::BUFFER) {
            self.drop_buffer(id);
        }
        self.clear(id, flag::SWAP_CACHE);
        self.cache_pages -= 1;
        self.swap_cache_pages -= 1;
        if !self.page(id).any(flag::SWAPPED | flag::SHARED_SLOT) {
            self.free_slot(id);
        }
    }

    /// Free a page's swap slot.
    pub fn free_slot(&mut self, id: u32) {
        let slot = std::mem::take(&mut self.page_mut(id).slot);
        self.swap.release(slot);
    }

    /// Give a page a swap slot; false when swap is full.
    pub fn allocate_slot(&mut self, id: u32) -> bool {
        match self.swap.allocate(id) {
            Some(slot) => {
                self.page_mut(id).slot = slot;
                self.counters.max_swpd_kib = self.counters.max_swpd_kib.max(u64::from(self.swap.used()) * 4);
                true
            }
            None => false,
        }
    }

    /// Attach a buffer to a page (its place on disk is known from now on).
    pub fn attach_buffer(&mut self, id: u32) {
        // 2.2: those of page cache and swap live as long as their I/O (`brw_page`, `free_async_buffers`).
        let passing = self.clock.is_some() && !self.is_twin(id) && !self.page(id).any(flag::META);
        if !passing && !self.page(id).any(flag::BUFFER) {
            self.set(id, flag::BUFFER);
            self.buffer_heads += 1;
            self.settle_slab();
        }
    }

    /// Drop a page's buffer, which is neither dirty nor under I/O.
    pub fn drop_buffer(&mut self, id: u32) {
        debug_assert!(!self.page(id).buffer_busy());
        self.bufs.refile(id, BufList::Clean);
        self.clear(id, flag::BUFFER | flag::BUF_WAIT | flag::BUF_LAUNDER);
        self.buffer_heads -= 1;
        self.settle_slab();
    }

    /// `mark_buffer_dirty`: true if it was clean before.
    #[inline]
    pub fn dirty_buffer(&mut self, id: u32, flush_at: u32) -> bool {
        if self.page(id).any(flag::BUF_DIRTY) {
            return false;
        }
        self.attach_buffer(id);
        self.set(id, flag::BUF_DIRTY);
        self.note_dirtied(id);
        self.bufs.set_flush_at(id, flush_at);
        self.bufs.refile(id, BufList::Dirty);
        let dirty = u64::from(self.bufs.len(BufList::Dirty)) * 4;
        self.counters.dirty_max_kib = self.counters.dirty_max_kib.max(dirty);
        true
    }

    /// Begin to write a dirty buffer: clean, locked, on the LOCKED list.
    pub fn begin_buffer_write(&mut self, id: u32) {
        debug_assert!(self.page(id).has(flag::BUF_DIRTY) && !self.page(id).any(flag::BUF_LOCKED));
        self.clear(id, flag::BUF_DIRTY);
        self.note_cleaned(id);
        if let Some(ws) = &mut self.ws {
            ws.writeback += 1;
        }
        self.set(id, flag::BUF_LOCKED);
        self.bufs.refile(id, BufList::Locked);
    }

    /// A buffer's I/O is over.
    pub fn end_buffer_io(&mut self, id: u32) {
        self.clear(id, flag::BUF_LOCKED | flag::BUF_WAIT | flag::BUF_LAUNDER);
        if self.page(id).waiters != 0 {
            self.unlocked.push(id);
        }
    }

    /// Forget a dirty or clean cache page whose data nobody wants any more (truncate, unlink). Pages under I/O or in use
    /// become orphans and go when that is over.
    pub fn truncate_page(&mut self, id: u32) {
        let buffer = self.buffer_of(id);
        if buffer != id {
            self.truncate_page(buffer);
        }
        self.forget_shadow(id);
        let p = *self.page(id);
        if !p.any(flag::PRESENT) {
            self.page_mut(id).flags &= !flag::ON_DISK;
            return;
        }
        if p.any(flag::BUF_DIRTY) {
            self.clear(id, flag::BUF_DIRTY);
            self.note_cleaned(id);
            self.bufs.refile(id, BufList::Clean);
        }
        self.clear(id, flag::DIRTY | flag::ON_DISK);
        if p.any(flag::BUF_LOCKED | flag::LOCKED) || p.pins > 0 {
            self.set(id, flag::ORPHAN);
            return;
        }
        self.forget(id);
    }

    /// A page that was cut off while it was under I/O is wanted again: the file has grown over it.
    pub fn readopt(&mut self, id: u32) {
        if self.page(id).any(flag::ORPHAN) {
            self.clear(id, flag::ORPHAN);
        }
    }

    /// Free an orphan or truncated page.
    pub fn forget(&mut self, id: u32) {
        if self.page(id).any(flag::ANON) {
            if self.page(id).any(flag::SWAP_CACHE) {
                self.remove_from_swap_cache(id);
            }
            let zone = self.remove_anon(id);
            self.zones.give(zone);
            return;
        }
        if self.page(id).any(flag::BUFFER) {
            self.drop_buffer(id);
        }
        self.clear(id, flag::MAPPED | flag::ORPHAN);
        let zone = self.remove_from_page_cache(id);
        self.zones.give(zone);
    }

    /// More pages than these are not promised to anybody who maps anonymous memory: page cache, free frames and free swap,
    /// the swap cache once more for what it will give back, and unused names (`vm_enough_memory` of 2.4); of 2.2: page cache,
    /// free frames and free swap, less 6 % of memory.
    pub fn commit_limit(&self) -> u64 {
        let free = self.cache_pages + self.zones.free() + u64::from(self.swap.free());
        if self.clock.is_some() {
            let frames: u64 = self.zones.zone.iter().map(|z| z.size).sum();
            return free.saturating_sub(frames * 6 / 100);
        }
        free + self.swap_cache_pages + self.names.slab_pages()
    }

    /// Shrink dentry and inode caches by a share of their unused entries. Returns how many inodes too few went.
    pub fn shrink_names(&mut self, divisor: u32) -> u32 {
        let before = self.names.dentries() + self.names.inodes();
        let (names, file_pages) = (&mut self.names, &self.file_pages);
        let wanted = if self.clock.is_some() {
            // Inodes stay until there are too many of them.
            names.shrink(divisor, |_| true)
        } else {
            names.shrink(divisor, |f| file_pages[f as usize] > 0)
        };
        let after = self.names.dentries() + self.names.inodes();
        self.names_half_life.shrunk(before, after, self.counters.evicted_pages);
        self.counters.names_half_life_pages = self.names_half_life.pages();
        self.settle_slab();
        wanted
    }

    /// Free up to `n` inodes that nobody holds, once more.
    pub fn prune_inodes(&mut self, n: u32) {
        let (names, file_pages) = (&mut self.names, &self.file_pages);
        names.prune_inodes(n, |f| file_pages[f as usize] > 0);
        self.settle_slab();
    }

    /// A name was looked up: its inode may be one too many, and others' cached pages go with them.
    pub fn limit_inodes(&mut self) {
        for file in self.names.make_room() {
            for id in self.pages_of_file(file) {
                let p = *self.page(id);
                let idle = p.pins == 0 && !p.any(flag::LOCKED | flag::MAPPED | flag::META | flag::BUFFER);
                if p.any(flag::PRESENT) && idle {
                    let zone = self.remove_from_page_cache(id);
                    self.zones.give(zone);
                }
            }
        }
    }

    /// Note the level of free memory after an allocation.
    #[inline]
    pub fn note_free(&mut self) {
        let free = self.zones.free() * 4;
        // A frame given back is taken again before one that was always free: only a new low reaches into those.
        self.fresh = free < self.counters.min_free_kib;
        if self.fresh {
            self.counters.min_free_kib = free;
        }
    }

    /// Frames in kernel objects (buffer heads, dentries, inodes).
    pub fn slab_frames(&self) -> u64 {
        self.slab[0] + self.slab[1]
    }

    /// Frames of the kernel image and its tables.
    pub fn kernel_frames(&self) -> u64 {
        self.kernel_frames
    }

    fn held_frames(&self) -> u64 {
        self.held[0] + self.held[1]
    }

    /// Let slab grow or shrink to what its objects need. The kernel grows it object by object with allocations of its
    /// own; here the frames are taken without waiting, which the watermarks' reserve allows.
    pub fn settle_slab(&mut self) {
        let want = self.buffer_heads.div_ceil(BUFFER_HEADS_PER_PAGE) + self.names.slab_pages();
        while self.slab_frames() < want {
            match self.frame_above_low().or_else(|| self.zones.take_any()) {
                Some(z) => self.slab[z] += 1,
                None => break,
            }
        }
        while self.slab_frames() > want {
            let z = if self.slab[NORMAL] > 0 { NORMAL } else { zone::DMA };
            self.slab[z] -= 1;
            self.zones.give(z);
        }
    }

    /// A frame as allocations that may wait find one before they reclaim, where there is a list of clean pages: a free one of a
    /// zone that has `low` of them, else a clean page's.
    fn frame_above_low(&mut self) -> Option<usize> {
        if self.aging.is_none() || !self.slab_reclaims {
            return None;
        }
        for zone in [NORMAL, zone::DMA] {
            let z = &mut self.zones.zone[zone];
            if z.free > 0 && z.free >= z.low {
                z.free -= 1;
                return Some(zone);
            }
        }
        [NORMAL, zone::DMA].into_iter().find(|&zone| self.reclaim_page(zone))
    }

    /// What an access would change, recomputed after a slow hit. `in_window` pages may trigger read-ahead and stay slow.
    #[inline]
    pub fn refresh_hot(&mut self, id: u32) {
        let p = &self.pages[id as usize];
        let mut h = 0;
        if p.has(flag::PRESENT | flag::UPTODATE) && !p.any(flag::LOCKED) {
            let listed = p.list == List::Active || self.clock.is_some();
            let settled = if p.list == List::Generation {
                generations::is_saturated(p) && !p.any(flag::READAHEAD)
            } else {
                listed && p.any(flag::REFERENCED) && !p.any(flag::READAHEAD)
            };
            let settled = settled && (self.aging.is_none() || p.age > 0);
            if settled {
                h |= noop::READ;
            }
            let write_settled = match self.aging {
                // A write is no use of the page.
                None if self.ws.is_some() => true,
                None => match self.write_mark {
                    WriteMark::Referenced => p.any(flag::REFERENCED),
                    WriteMark::Accessed => settled,
                    WriteMark::Unreferenced => !p.any(flag::REFERENCED),
                },
                // There a write first brings the page back, then deactivates it: that moves it.
                Some(rules) if rules.drop_behind && rules.lookup == LookupRule::Activates => false,
                Some(rules) if rules.drop_behind => p.list == List::Inactive && p.age == 0 && !p.any(flag::REFERENCED),
                Some(_) => settled,
            };
            if p.any(flag::BUF_DIRTY) && write_settled && !p.any(flag::MAPPED) {
                h |= noop::WRITE;
            }
            if p.has(flag::MAPPED | flag::YOUNG) {
                h |= noop::LOAD;
                if p.any(flag::PTE_DIRTY) {
                    h |= noop::STORE;
                }
            }
        } else if p.has(flag::MAPPED | flag::YOUNG | flag::PTE_DIRTY) {
            h |= noop::LOAD | noop::STORE;
        }
        if p.any(flag::SHARED) {
            // Write-protected: the first store makes a copy.
            h &= !noop::STORE;
        }
        self.hot[id as usize] = h;
    }

    /// Check the invariants of the module's header; `Err` names the first violation. For tests and `--verify`: O(pages).
    pub fn audit(&self) -> Result<(), String> {
        let (mut present, mut active, mut inactive, mut slots, mut dirty) = (0u64, 0u32, 0u32, 0u32, 0u32);
        let mut clean = 0;
        for (id, p) in self.pages.iter().enumerate() {
            present += u64::from(p.any(flag::PRESENT));
            active += u32::from(p.list == List::Active);
            inactive += u32::from(p.list == List::Inactive);
            clean += u32::from(p.list == List::Clean);
            dirty += u32::from(p.any(flag::BUF_DIRTY));
            if p.list != List::None && !p.any(flag::PRESENT) {
                return Err(format!("page {id} is on {:?} without a frame", p.list));
            }
            let refers = p.any(flag::SWAP_CACHE | flag::SWAPPED | flag::SHARED_SLOT);
            if refers != (p.slot != 0) {
                return Err(format!("page {id} slot {} flags {:#x}", p.slot, p.flags));
            }
            if p.slot != 0 {
                slots += 1;
                if self.swap.owner(p.slot) != Some(id as u32) {
                    return Err(format!("slot {} of page {id} belongs to {:?}", p.slot, self.swap.owner(p.slot)));
                }
            }
            if p.any(flag::BUF_DIRTY) != (self.bufs.list(id as u32) == BufList::Dirty) {
                return Err(format!("page {id}: dirty bit and list {:?} differ", self.bufs.list(id as u32)));
            }
        }
        let on_lists =
            (self.active.iter_from_tail(&self.pages).count(), self.inactive.iter_from_tail(&self.pages).count());
        if on_lists != (active as usize, inactive as usize)
            || (active, inactive) != (self.active.len(), self.inactive.len())
        {
            return Err(format!("lists hold {on_lists:?}, records say {active}, {inactive}"));
        }
        if clean != self.clean[0].len() + self.clean[1].len() {
            return Err(format!("{clean} pages say that they are clean, the lists differ"));
        }
        if slots != self.swap.used() {
            return Err(format!("{slots} slots are referred to, {} in use", self.swap.used()));
        }
        if let Some(clock) = &self.clock
            && clock.owned() != present
        {
            return Err(format!("{present} pages have frames, the clock knows {}", clock.owned()));
        }
        if dirty != self.bufs.len(BufList::Dirty) {
            return Err(format!("{dirty} dirty buffers, list has {}", self.bufs.len(BufList::Dirty)));
        }
        Ok(present).and_then(|n| {
            let all: u64 = self.zones.zone.iter().map(|z| z.size).sum();
            let known = n + self.zones.free() + self.slab_frames() + self.kernel_frames + self.held_frames();
            if known <= all { Ok(()) } else { Err(format!("{known} frames accounted for, the machine has {all}")) }
        })
    }

    /// What frames hold, in words, for reports of hangs. O(pages).
    pub fn census(&self) -> String {
        let count = |mask: u32| self.pages.iter().filter(|p| p.has(flag::PRESENT | mask)).count();
        let pinned = self.pages.iter().filter(|p| p.any(flag::PRESENT) && p.pins > 0).count();
        format!(
            "{} free, {} active, {} inactive, {} mapped, {} in swap cache, {} dirty buffers, {} buffers under I/O, {} locked, \
             {} orphans, {pinned} pinned, {} in slab, {} swap slots free",
            self.zones.free(),
            self.active.len(),
            self.inactive.len(),
            count(flag::MAPPED),
            count(flag::SWAP_CACHE),
            count(flag::BUF_DIRTY),
            count(flag::BUF_LOCKED),
            count(flag::LOCKED),
            count(flag::ORPHAN),
            self.slab_frames(),
            self.swap.free(),
        )
    }

    /// Frames that are neither free, present, slab nor the kernel's: held by a reclaimer for its own allocation.
    pub fn frames_in_hand(&self) -> u64 {
        let present = self.pages.iter().filter(|p| p.any(flag::PRESENT)).count() as u64;
        let all: u64 = self.zones.zone.iter().map(|z| z.size).sum();
        all - present - self.zones.free() - self.slab_frames() - self.kernel_frames - self.held_frames()
    }
}
