//! The page record: 24 bytes hot, indexed by the trace's own page id.
//!
//! A page of the trace (a file's page or an anonymous page) has one record whether it is in memory or not; what a kernel
//! keeps in `struct page` while a frame holds it and what it keeps in page tables and swap maps otherwise stand side by
//! side, so no lookup is needed anywhere. Buffers are one block per page (4 KiB blocks).

/// No page: end of a list.
pub const NIL: u32 = u32::MAX;

/// Which LRU list a page is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum List {
    /// None.
    None,
    /// Active list.
    Active,
    /// Inactive list (of the aging kernels: the dirty one).
    Inactive,
    /// Clean list of its zone (aging kernels).
    Clean,
    /// Active list of anonymous pages, where they have lists of their own.
    AnonActive,
    /// Inactive list of anonymous pages.
    AnonInactive,
    /// A generation's list, where pages have generations.
    Generation,
}

/// Flags of a page. The names are the kernel's where it has one.
pub mod flag {
    /// A frame holds the page.
    pub const PRESENT: u32 = 1 << 0;
    /// Contents are valid.
    pub const UPTODATE: u32 = 1 << 1;
    /// PG_locked: under I/O, or held by a writer.
    pub const LOCKED: u32 = 1 << 2;
    /// PG_referenced.
    pub const REFERENCED: u32 = 1 << 3;
    /// PG_dirty: dirtied through a mapping or swap cache; not counted as dirty buffers.
    pub const DIRTY: u32 = 1 << 4;
    /// PG_launder: written by reclaim, which may wait for it.
    pub const LAUNDER: u32 = 1 << 5;
    /// Has a buffer.
    pub const BUFFER: u32 = 1 << 6;
    /// The buffer is dirty.
    pub const BUF_DIRTY: u32 = 1 << 7;
    /// The buffer is under I/O.
    pub const BUF_LOCKED: u32 = 1 << 8;
    /// BH_Wait_IO: reclaim met this buffer once.
    pub const BUF_WAIT: u32 = 1 << 9;
    /// BH_launder: reclaim wrote this buffer.
    pub const BUF_LAUNDER: u32 = 1 << 10;
    /// In the swap cache.
    pub const SWAP_CACHE: u32 = 1 << 11;
    /// A page-table entry maps the page.
    pub const MAPPED: u32 = 1 << 12;
    /// That entry's accessed bit.
    pub const YOUNG: u32 = 1 << 13;
    /// That entry's dirty bit.
    pub const PTE_DIRTY: u32 = 1 << 14;
    /// The page-table entry holds the page's swap slot.
    pub const SWAPPED: u32 = 1 << 15;
    /// Anonymous page.
    pub const ANON: u32 = 1 << 16;
    /// The file system has given the page a place on disk.
    pub const ON_DISK: u32 = 1 << 17;
    /// Freed while under I/O: the frame goes when the I/O ends.
    pub const ORPHAN: u32 = 1 << 18;
    /// An anonymous page that was only read: the zero page is mapped there.
    pub const ZERO_MAPPED: u32 = 1 << 19;
    /// Brought in by read-ahead, not used yet.
    pub const READAHEAD: u32 = 1 << 20;
    /// Metadata page (buffer cache).
    pub const META: u32 = 1 << 21;
    /// Under swap I/O that counts as in flight.
    pub const ASYNC_SWAP: u32 = 1 << 22;
    /// PG_workingset: it was active before.
    pub const WORKINGSET: u32 = 1 << 23;
    /// PG_reclaim: reclaim met it dirty or under write-out; it goes to the inactive tail when that ends.
    pub const RECLAIM: u32 = 1 << 24;
    // Bits 25 to 29: generation and uses, see `super::super::generations`.
    /// An entry that a fork copied maps the page as well.
    pub const SHARED_MAP: u32 = 1 << 30;
    /// An entry that a fork copied holds the page's swap slot as well.
    pub const SHARED_SLOT: u32 = 1 << 31;
    /// Any reference of a copied entry.
    pub const SHARED: u32 = SHARED_MAP | SHARED_SLOT;
}

/// One page of the trace.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Next towards the tail of its LRU list.
    pub next: u32,
    /// Next towards the head.
    pub prev: u32,
    /// Flags, see [`flag`].
    pub flags: u32,
    /// First waiter (task + 1, newest first), 0 = none.
    pub waiters: u32,
    /// Swap slot, 0 = none (slot 0 is the swap header).
    pub slot: u32,
    /// LRU list.
    pub list: List,
    /// Zone of the frame, 0 = DMA, 1 = NORMAL.
    pub zone: u8,
    /// Temporary references: tasks that sleep holding the page.
    pub pins: u8,
    /// Age (aging kernels); order of the page's folio (on-demand read-ahead).
    pub age: u8,
}

const _: () = assert!(std::mem::size_of::<Page>() == 24);

impl Default for Page {
    fn default() -> Self {
        Self { next: NIL, prev: NIL, flags: 0, waiters: 0, slot: 0, list: List::None, zone: 0, pins: 0, age: 0 }
    }
}

impl Page {
    /// All of `mask` set?
    #[inline]
    pub fn has(&self, mask: u32) -> bool {
        self.flags & mask == mask
    }
    /// Any of `mask` set?
    #[inline]
    pub fn any(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }
    /// The buffer is dirty, under I/O.
    #[inline]
    pub fn buffer_busy(&self) -> bool {
        self.any(flag::BUF_DIRTY | flag::BUF_LOCKED)
    }
    /// Somebody besides the cache and the buffer holds a reference.
    #[inline]
    pub fn in_use(&self) -> bool {
        self.pins > 0 || self.any(flag::MAPPED | flag::SHARED_MAP)
    }
    /// In the swap cache for nobody: no page-table entry maps it or holds its slot.
    #[inline]
    pub fn forsaken(&self) -> bool {
        self.any(flag::SWAP_CACHE) && !self.any(flag::MAPPED | flag::SWAPPED | flag::SHARED)
    }
    /// In the page cache or swap cache (`page->mapping` set).
    #[inline]
    pub fn has_mapping(&self) -> bool {
        !self.any(flag::ANON) || self.any(flag::SWAP_CACHE)
    }
}

/// Bits of the hot byte: what would change nothing.
pub mod noop {
    /// A read() of the page.
    pub const READ: u8 = 1;
    /// A write() to the page.
    pub const WRITE: u8 = 2;
    /// A load through a mapping.
    pub const LOAD: u8 = 4;
    /// A store through a mapping.
    pub const STORE: u8 = 8;
}
