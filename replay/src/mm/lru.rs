//! LRU lists over page records: the only code that writes their links.

use super::page::{List, NIL, Page};

/// One doubly linked list; insertion at the head, scanning from the tail, as the kernel does it.
#[derive(Clone, Copy, Debug)]
pub struct Lru {
    head: u32,
    tail: u32,
    len: u32,
    by_zone: [u32; 2],
    kind: List,
}

impl Lru {
    /// An empty list.
    pub fn new(kind: List) -> Self {
        Self { head: NIL, tail: NIL, len: 0, by_zone: [0; 2], kind }
    }

    /// Pages on it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Pages of a zone on it.
    #[inline]
    pub fn of_zone(&self, zone: usize) -> u32 {
        self.by_zone[zone]
    }

    /// No pages?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Next candidate of a scan, [`NIL`] if empty.
    #[inline]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Insert at the head.
    #[inline]
    pub fn push_head(&mut self, pages: &mut [Page], id: u32) {
        let p = &mut pages[id as usize];
        assert!(p.list == List::None, "page {id} is on {:?} already", p.list);
        p.list = self.kind;
        self.by_zone[usize::from(p.zone)] += 1;
        p.prev = NIL;
        p.next = self.head;
        match self.head {
            NIL => self.tail = id,
            h => pages[h as usize].prev = id,
        }
        self.head = id;
        self.len += 1;
    }

    /// Insert at the tail: the next candidate of a scan.
    pub fn push_tail(&mut self, pages: &mut [Page], id: u32) {
        let p = &mut pages[id as usize];
        assert!(p.list == List::None, "page {id} is on {:?} already", p.list);
        p.list = self.kind;
        self.by_zone[usize::from(p.zone)] += 1;
        p.next = NIL;
        p.prev = self.tail;
        match self.tail {
            NIL => self.head = id,
            t => pages[t as usize].next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Take off the list.
    #[inline]
    pub fn remove(&mut self, pages: &mut [Page], id: u32) {
        let Page { next, prev, list, .. } = pages[id as usize];
        assert!(list == self.kind, "page {id} is on {list:?}, not on {:?}", self.kind);
        match prev {
            NIL => self.head = next,
            i => pages[i as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            i => pages[i as usize].prev = prev,
        }
        let p = &mut pages[id as usize];
        self.by_zone[usize::from(p.zone)] -= 1;
        (p.next, p.prev, p.list) = (NIL, NIL, List::None);
        self.len -= 1;
    }

    /// Move to the head.
    #[inline]
    pub fn rotate(&mut self, pages: &mut [Page], id: u32) {
        if self.head != id {
            self.remove(pages, id);
            self.push_head(pages, id);
        }
    }

    /// Ids from tail to head, for audits and tests.
    pub fn iter_from_tail<'a>(&self, pages: &'a [Page]) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors((self.tail != NIL).then_some(self.tail), |&i| {
            let p = pages[i as usize].prev;
            (p != NIL).then_some(p)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_first_in_at_the_tail() {
        let mut pages = vec![Page::default(); 4];
        let mut l = Lru::new(List::Inactive);
        for i in 0..4 {
            l.push_head(&mut pages, i);
        }
        l.rotate(&mut pages, 0);
        l.remove(&mut pages, 2);
        assert_eq!(l.iter_from_tail(&pages).collect::<Vec<_>>(), [1, 3, 0]);
        assert_eq!(l.len(), 3);
        assert_eq!(pages[2].list, List::None);
    }

    #[test]
    #[should_panic(expected = "already")]
    fn a_page_is_never_on_two_lists() {
        let mut pages = vec![Page::default(); 1];
        Lru::new(List::Inactive).push_head(&mut pages, 0);
        Lru::new(List::Active).push_head(&mut pages, 0);
    }
}
