//! Entries that come and go, named by small numbers that are used again.

use std::ops::{Index, IndexMut};

/// A table that grows to the largest number of entries that were ever there at a time.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an entry; the number freed last is used first.
    pub(super) fn put(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self[id] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }

    /// This number may name another entry from now on.
    pub(super) fn free(&mut self, id: u32) {
        self.free.push(id);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        &self.entries[id as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut s = Slab::default();
        let (a, b) = (s.put('a'), s.put('b'));
        s.free(a);
        assert_eq!((s.put('c'), s[a], s[b], s.entries.len()), (a, 'c', 'b', 2));
    }
}
