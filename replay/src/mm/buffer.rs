//! The buffer lists of fs/buffer.c: dirty buffers in the order of their first dirtying, and locked ones.
//!
//! A buffer here is a page's (one 4 KiB block). LOCKED also holds buffers whose I/O is over but which nobody has refiled
//! yet; 2.4.17 counts them as dirty.

use super::page::NIL;

/// Which list a buffer is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BufList {
    /// None, or clean (the kernel's CLEAN list has no effect on behaviour).
    Clean,
    /// Dirty.
    Dirty,
    /// Under write-out, or done and not refiled.
    Locked,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    prev: u32,
    /// Tick at which kupdate writes it.
    flush_at: u32,
    list: BufList,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: u32,
}

/// Both lists over all page ids.
#[derive(Clone, Debug)]
pub struct BufferLists {
    nodes: Vec<Node>,
    ends: [Ends; 3],
}

impl BufferLists {
    /// Lists for `pages` page ids, all clean.
    pub fn new(pages: usize) -> Self {
        Self {
            nodes: vec![Node { next: NIL, prev: NIL, flush_at: 0, list: BufList::Clean }; pages],
            ends: [Ends { head: NIL, tail: NIL, len: 0 }; 3],
        }
    }

    /// Buffers on a list.
    #[inline]
    pub fn len(&self, list: BufList) -> u32 {
        self.ends[list as usize].len
    }

    /// First (oldest) of a list, [`NIL`] if none.
    #[inline]
    pub fn first(&self, list: BufList) -> u32 {
        self.ends[list as usize].head
    }

    /// The one after, [`NIL`] at the end.
    #[inline]
    pub fn after(&self, id: u32) -> u32 {
        self.nodes[id as usize].next
    }

    /// List of a buffer.
    #[inline]
    pub fn list(&self, id: u32) -> BufList {
        self.nodes[id as usize].list
    }

    /// Tick at which a dirty buffer is due.
    #[inline]
    pub fn flush_at(&self, id: u32) -> u32 {
        self.nodes[id as usize].flush_at
    }

    /// Set the due tick (on first dirtying).
    pub fn set_flush_at(&mut self, id: u32, tick: u32) {
        self.nodes[id as usize].flush_at = tick;
    }

    /// Move to the end of a list (no change if it is there already).
    pub fn refile(&mut self, id: u32, to: BufList) {
        let n = self.nodes[id as usize];
        if n.list == to {
            return;
        }
        if n.list != BufList::Clean {
            let e = n.list as usize;
            match n.prev {
                NIL => self.ends[e].head = n.next,
                i => self.nodes[i as usize].next = n.next,
            }
            match n.next {
                NIL => self.ends[e].tail = n.prev,
                i => self.nodes[i as usize].prev = n.prev,
            }
            self.ends[e].len -= 1;
        }
        let node = &mut self.nodes[id as usize];
        (node.next, node.prev, node.list) = (NIL, NIL, to);
        if to != BufList::Clean {
            let e = to as usize;
            let tail = self.ends[e].tail;
            self.nodes[id as usize].prev = tail;
            match tail {
                NIL => self.ends[e].head = id,
                t => self.nodes[t as usize].next = id,
            }
            self.ends[e].tail = id;
            self.ends[e].len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_first_in_first_out() {
        let mut b = BufferLists::new(4);
        for i in [2, 0, 3] {
            b.refile(i, BufList::Dirty);
        }
        b.refile(0, BufList::Locked);
        assert_eq!((b.first(BufList::Dirty), b.after(2), b.after(3)), (2, 3, NIL));
        assert_eq!((b.len(BufList::Dirty), b.len(BufList::Locked)), (2, 1));
        b.refile(0, BufList::Clean);
        assert_eq!(b.first(BufList::Locked), NIL);
    }
}
