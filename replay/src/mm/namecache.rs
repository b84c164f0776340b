//! Dentry and inode caches: which names and inodes are in memory, and how they shrink.
//!
//! Source: fs/dcache.c (`prune_dcache`) and fs/inode.c (`prune_icache`) of 2.4: a looked-up name goes to the head of the
//! unused list with its referenced flag set; pruning takes from the tail, sparing a referenced one once. An inode can go
//! when its name is gone, it is clean and has no cached pages.

use super::page::NIL;

/// Dentries (128 bytes) in a page of slab.
const DENTRIES_PER_PAGE: u64 = 31;
/// In-core inodes (about 480 bytes with the file system's part) in a page of slab.
const INODES_PER_PAGE: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Entry {
    next: u32,
    prev: u32,
    dentry: bool,
    referenced: bool,
    inode: bool,
    /// Opens that hold the name.
    holds: u32,
    /// The inode differs from its block on disk.
    dirty: bool,
}

/// Both caches, indexed by file id.
#[derive(Clone, Debug)]
pub struct NameCache {
    entries: Vec<Entry>,
    head: u32,
    tail: u32,
    unused: u32,
    dentries: u32,
    inodes: u32,
    /// So many inodes at most, 0 = any number.
    most_inodes: u32,
    /// Inodes whose dentry is gone, oldest first.
    orphans: std::collections::VecDeque<u32>,
}

impl NameCache {
    /// Nothing cached.
    pub fn new(files: usize) -> Self {
        let e = Entry { next: NIL, prev: NIL, dentry: false, referenced: false, inode: false, holds: 0, dirty: false };
        Self {
            entries: vec![e; files],
            head: NIL,
            tail: NIL,
            unused: 0,
            dentries: 0,
            inodes: 0,
            most_inodes: 0,
            orphans: std::collections::VecDeque::new(),
        }
    }

    /// Keep at most so many inodes (2.2, which frees inodes for no other reason).
    pub fn limit_inodes(&mut self, most: u32) {
        self.most_inodes = most;
    }

    /// More inodes than there may be: all that no name holds go, and if that is not a quarter, names go for more
    /// (`try_to_free_inodes`). Inodes that are dirty stay. Returns those that went: their pages go with them.
    pub fn make_room(&mut self) -> Vec<u32> {
        let mut gone = Vec::new();
        if self.most_inodes == 0 || self.inodes <= self.most_inodes {
            return gone;
        }
        let goal = self.inodes / 4;
        self.take_orphans(&mut gone);
        let mut looks = 2 * self.unused;
        while (gone.len() as u32) < goal && self.tail != NIL && looks > 0 {
            looks -= 1;
            self.prune_dentries(1);
            self.take_orphans(&mut gone);
        }
        gone
    }

    fn take_orphans(&mut self, gone: &mut Vec<u32>) {
        for _ in 0..self.orphans.len() {
            let Some(f) = self.orphans.pop_front() else { break };
            let e = &mut self.entries[f as usize];
            if e.dentry {
                continue;
            }
            if e.dirty {
                self.orphans.push_back(f);
                continue;
            }
            e.inode = false;
            self.inodes -= 1;
            gone.push(f);
        }
    }

    /// Dentries in memory.
    pub fn dentries(&self) -> u32 {
        self.dentries
    }
    /// Inodes in memory.
    pub fn inodes(&self) -> u32 {
        self.inodes
    }
    /// Frames that the objects need.
    pub fn slab_pages(&self) -> u64 {
        u64::from(self.dentries).div_ceil(DENTRIES_PER_PAGE) + u64::from(self.inodes).div_ceil(INODES_PER_PAGE)
    }
    /// Is the name cached?
    pub fn has_dentry(&self, file: u32) -> bool {
        self.entries[file as usize].dentry
    }
    /// Is the inode cached?
    pub fn has_inode(&self, file: u32) -> bool {
        self.entries[file as usize].inode
    }

    /// A successful lookup: the name and its inode are cached and in use once more.
    pub fn touch(&mut self, file: u32) {
        let e = &mut self.entries[file as usize];
        e.referenced = true;
        if !e.inode {
            e.inode = true;
            self.inodes += 1;
        }
        if e.dentry {
            if e.holds == 0 {
                self.unlink(file);
                self.link_head(file);
            }
        } else {
            e.dentry = true;
            self.dentries += 1;
            if e.holds == 0 {
                self.link_head(file);
            }
        }
    }

    /// An open holds the name: it leaves the unused list.
    pub fn hold(&mut self, file: u32) {
        self.touch(file);
        if self.entries[file as usize].holds == 0 {
            self.unlink(file);
        }
        self.entries[file as usize].holds += 1;
    }

    /// The last close gives it back.
    pub fn release(&mut self, file: u32) {
        let e = &mut self.entries[file as usize];
        if e.holds == 0 {
            return;
        }
        e.holds -= 1;
        if e.holds == 0 && e.dentry {
            self.link_head(file);
        }
    }

    /// Note whether the inode itself is dirty; dirty inodes stay.
    pub fn set_inode_dirty(&mut self, file: u32, dirty: bool) {
        self.entries[file as usize].dirty = dirty;
    }
    /// Is the inode dirty?
    pub fn inode_dirty(&self, file: u32) -> bool {
        self.entries[file as usize].dirty
    }

    /// Shrink both caches by a `1/divisor` share of their unused entries; `divisor` 0 frees all of them. Returns how many
    /// inodes too few went.
    pub fn shrink(&mut self, divisor: u32, has_pages: impl Fn(u32) -> bool) -> u32 {
        let share = |n: u32| n.checked_div(divisor).unwrap_or(n);
        self.prune_dentries(share(self.unused));
        let n = share(self.orphans.len() as u32);
        self.prune_inodes(n, has_pages)
    }

    /// The first inode that is dirty and that neither a name nor an open holds.
    pub fn first_dirty_unused(&self) -> Option<u32> {
        let unused = |f: &u32| {
            let e = &self.entries[*f as usize];
            e.dirty && e.inode && !e.dentry
        };
        self.orphans.iter().copied().find(unused)
    }

    fn prune_dentries(&mut self, mut n: u32) {
        let mut looks = 2 * self.unused;
        while n > 0 && self.tail != NIL && looks > 0 {
            looks -= 1;
            let f = self.tail;
            self.unlink(f);
            let e = &mut self.entries[f as usize];
            if e.referenced {
                e.referenced = false;
                self.link_head(f);
                continue;
            }
            e.dentry = false;
            self.dentries -= 1;
            self.orphans.push_back(f);
            n -= 1;
        }
    }

    /// Free up to `n` inodes that no name holds; returns how many of these could not go.
    pub fn prune_inodes(&mut self, mut n: u32, has_pages: impl Fn(u32) -> bool) -> u32 {
        for _ in 0..self.orphans.len() {
            if n == 0 {
                break;
            }
            let Some(f) = self.orphans.pop_front() else { break };
            let e = &mut self.entries[f as usize];
            if e.dentry || !e.inode {
                continue; // looked up again, or deleted, meanwhile: then it may stand in the queue twice
            }
            if e.dirty || has_pages(f) {
                self.orphans.push_back(f);
                continue;
            }
            e.inode = false;
            self.inodes -= 1;
            n -= 1;
        }
        n
    }

    fn link_head(&mut self, f: u32) {
        let e = &mut self.entries[f as usize];
        (e.prev, e.next) = (NIL, self.head);
        match self.head {
            NIL => self.tail = f,
            h => self.entries[h as usize].prev = f,
        }
        self.head = f;
        self.unused += 1;
    }

    fn unlink(&mut self, f: u32) {
        let Entry { next, prev, .. } = self.entries[f as usize];
        match prev {
            NIL => self.head = next,
            i => self.entries[i as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            i => self.entries[i as usize].prev = prev,
        }
        self.unused -= 1;
    }
}

/// How fast the caches shrink once memory is short: the first time that half of their largest size is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct HalfLife {
    /// Dentries and inodes when they began to shrink, and the pages evicted until then.
    from: Option<(u32, u64)>,
    /// Pages evicted until half was gone.
    pages: Option<u64>,
}

impl HalfLife {
    /// The caches shrank from `before` to `after` objects; `evicted` pages were dropped since the start.
    pub fn shrunk(&mut self, before: u32, after: u32, evicted: u64) {
        if self.pages.is_some() {
            return;
        }
        let (most, since) = match self.from {
            Some(from) if from.0 >= before => from,
            _ => (before, evicted),
        };
        self.from = Some((most, since));
        if after <= most / 2 && most > 0 {
            self.pages = Some((evicted - since).max(1));
        }
    }

    /// Pages evicted meanwhile, at least 1; 0 as long as half is left.
    pub fn pages(&self) -> u64 {
        self.pages.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_life_counts_from_the_largest_size() {
        let mut h = HalfLife::default();
        h.shrunk(100, 90, 1000);
        h.shrunk(120, 110, 2000);
        h.shrunk(110, 61, 2100);
        assert_eq!(h.pages(), 0);
        h.shrunk(61, 60, 2150);
        h.shrunk(60, 10, 9999);
        assert_eq!(h.pages(), 150);
        let mut at_once = HalfLife::default();
        at_once.shrunk(100, 0, 7);
        assert_eq!(at_once.pages(), 1);
    }

    #[test]
    fn a_referenced_name_is_spared_once() {
        let mut n = NameCache::new(4);
        (0..4).for_each(|f| n.touch(f));
        n.shrink(4, |_| false);
        assert_eq!(n.dentries(), 3, "all were spared once, then the oldest went");
        assert!(!n.has_dentry(0));
        n.shrink(0, |_| false);
        assert_eq!((n.dentries(), n.inodes()), (0, 0));
    }

    #[test]
    fn too_many_inodes_take_a_quarter_with_them() {
        let mut n = NameCache::new(10);
        n.limit_inodes(8);
        (0..8).for_each(|f| n.touch(f));
        assert!(n.make_room().is_empty());
        n.touch(8);
        // None is without a name: names go, oldest first, each spared once.
        assert_eq!(n.make_room(), [0, 1]);
        assert_eq!((n.dentries(), n.inodes()), (7, 7));
        n.shrink(1, |_| true);
        assert_eq!((n.dentries(), n.inodes()), (0, 7), "memory pressure alone frees no inode");
    }

    #[test]
    fn inodes_that_cannot_go_are_still_wanted_and_dirty_ones_are_found() {
        let mut n = NameCache::new(4);
        (0..4).for_each(|f| n.touch(f));
        n.set_inode_dirty(2, true);
        assert_eq!(n.first_dirty_unused(), None, "its name holds it");
        // Each name is spared once; then they go, and with them the inodes but the dirty one and that with pages.
        n.shrink(0, |f| f == 1);
        let wanted = n.shrink(0, |f| f == 1);
        assert_eq!((n.dentries(), n.inodes()), (0, 2));
        assert!(wanted > 0);
        assert_eq!(n.first_dirty_unused(), Some(2));
        n.set_inode_dirty(2, false);
        assert_eq!(n.prune_inodes(2, |f| f == 1), 1);
        assert_eq!((n.inodes(), n.first_dirty_unused()), (1, None));
    }

    #[test]
    fn held_names_and_inodes_with_pages_stay() {
        let mut n = NameCache::new(2);
        n.hold(0);
        n.touch(1);
        n.shrink(0, |f| f == 1);
        n.shrink(0, |f| f == 1);
        assert!(n.has_dentry(0) && !n.has_dentry(1) && n.has_inode(1));
        n.release(0);
        n.shrink(0, |_| false);
        n.shrink(0, |_| false);
        assert_eq!((n.dentries(), n.inodes()), (0, 0));
    }

    #[test]
    fn an_inode_that_loses_its_name_twice_is_freed_once() {
        let mut n = NameCache::new(8);
        let mut r = 12345_u32;
        for _ in 0..20_000 {
            r = r.wrapping_mul(1_103_515_245).wrapping_add(12345);
            let (f, what, divisor) = (r >> 8 & 7, r >> 12 & 3, r >> 16 & 7);
            match what {
                0 | 1 => n.touch(f),
                2 => {
                    n.shrink(divisor, |id| id == f);
                }
                _ => {
                    n.shrink(divisor, |_| false);
                }
            }
            let count = |has: &dyn Fn(u32) -> bool| (0..8).filter(|f| has(*f)).count() as u32;
            assert_eq!(n.inodes(), count(&|f| n.has_inode(f)));
            assert_eq!(n.dentries(), count(&|f| n.has_dentry(f)));
        }
    }
}
