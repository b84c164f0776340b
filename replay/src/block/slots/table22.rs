//! The request table of Linux 2.2 (`drivers/block/ll_rw_blk.c`): one for all disks, searched downwards and cyclically.
//!
//! Reads may use every entry, writes the lower two thirds only; a read in a low entry thus takes a write's place, which
//! is why entries have to be modelled one by one.

use super::super::Dir;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Table22 {
    taken: Vec<bool>,
    cursor: usize,
    last_limit: usize,
}

impl Table22 {
    pub(super) fn new(entries: u32) -> Self {
        Self { taken: vec![false; entries as usize], cursor: 0, last_limit: 0 }
    }

    /// Takes the first free entry below the one found last. A search with another limit starts at the table's top.
    pub(super) fn take(&mut self, dir: Dir) -> Option<u32> {
        let limit = match dir {
            Dir::Read => self.taken.len(),
            Dir::Write => self.taken.len() * 2 / 3,
        };
        if limit != self.last_limit {
            self.last_limit = limit;
            self.cursor = 0;
        }
        let mut at = self.cursor;
        for _ in 0..limit {
            at = if at == 0 { limit } else { at } - 1;
            if !self.taken[at] {
                self.taken[at] = true;
                self.cursor = at;
                return Some(at as u32);
            }
        }
        None
    }

    pub(super) fn put(&mut self, entry: u32) {
        self.taken[entry as usize] = false;
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> u32 {
        self.taken.iter().filter(|t| !**t).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_end_at_two_thirds_and_a_change_of_direction_restarts_the_search() {
        let mut t = Table22::new(6);
        assert_eq!(t.take(Dir::Write), Some(3));
        assert_eq!(t.take(Dir::Write), Some(2));
        assert_eq!(t.take(Dir::Read), Some(5));
        t.put(3);
        assert_eq!(t.take(Dir::Write), Some(3), "restarted at the top of the write part");
        assert_eq!(t.take(Dir::Write), Some(1));
        assert_eq!(t.take(Dir::Write), Some(0));
        assert_eq!(t.take(Dir::Write), None);
        assert_eq!(t.take(Dir::Read), Some(4));
        assert_eq!(t.idle(), 0);
    }
}
