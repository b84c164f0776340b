//! Numbers for the distinct values of a column chunk, in the order of their first appearance.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Most distinct values that are worth a dictionary.
pub(super) const MAX_ENTRIES: usize = 16 * 1024;
/// Most bytes of a dictionary.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The distinct values of a column, as Parquet's PLAIN encoding writes them.
pub(super) trait Dictionary: Default + Send {
    /// A value.
    type Item<'a>: Copy;
    /// The number of a value, a new one if it was not seen.
    fn number(&mut self, value: Self::Item<'_>) -> u32;
    /// Distinct values so far.
    fn len(&self) -> usize;
    /// The dictionary page's bytes.
    fn plain(&self) -> &[u8];
    /// Forget all values but the first `len`; no value may be numbered after that.
    fn cut(&mut self, len: usize);

    /// It has grown beyond what pays.
    fn is_full(&self) -> bool {
        self.len() > MAX_ENTRIES || self.plain().len() > MAX_BYTES
    }
}

/// Places for integers seen lately; a power of two.
const RECENT: usize = 256;

/// Integers.
#[derive(Default)]
pub(super) struct Ints {
    table: HashTable<u32>,
    values: Vec<i64>,
    plain: Vec<u8>,
    /// Values seen lately and their numbers, each in the one place that is its own; empty before the first value.
    recent: Vec<Option<(i64, u32)>>,
}

#[inline]
fn hash_int(value: i64) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_i64(value);
    hasher.finish()
}

impl Ints {
    #[inline(never)]
    fn look_up(&mut self, value: i64, place: usize) -> u32 {
        let hash = hash_int(value);
        let number = match self.table.find(hash, |n| self.values[*n as usize] == value) {
            Some(number) => *number,
            None => {
                let number = self.values.len() as u32;
                self.values.push(value);
                self.plain.extend_from_slice(&value.to_le_bytes());
                self.table.insert_unique(hash, number, |n| hash_int(self.values[*n as usize]));
                number
            }
        };
        self.recent.resize(RECENT, None);
        self.recent[place] = Some((value, number));
        number
    }
}

impl Dictionary for Ints {
    type Item<'a> = i64;

    #[inline]
    fn number(&mut self, value: i64) -> u32 {
        let place = ((value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize;
        match self.recent.get(place) {
            Some(Some((recent, number))) if *recent == value => *number,
            _ => self.look_up(value, place),
        }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn plain(&self) -> &[u8] {
        &self.plain
    }

    fn cut(&mut self, len: usize) {
        self.values.truncate(len);
        self.plain.truncate(len * size_of::<i64>());
    }
}

/// Texts.
#[derive(Default)]
pub(super) struct Texts {
    table: HashTable<u32>,
    /// Length (4 bytes) and bytes of each.
    plain: Vec<u8>,
    /// Where the bytes of each lie.
    places: Vec<(u32, u32)>,
    last: Option<u32>,
}

#[inline]
fn hash_text(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl Texts {
    #[inline]
    fn text(plain: &[u8], place: (u32, u32)) -> &[u8] {
        &plain[place.0 as usize..place.1 as usize]
    }
}

impl Dictionary for Texts {
    type Item<'a> = &'a [u8];

    #[inline]
    fn number(&mut self, value: &[u8]) -> u32 {
        let (plain, places) = (&self.plain, &self.places);
        if let Some(last) = self.last.filter(|last| Self::text(plain, places[*last as usize]) == value) {
            return last;
        }
        let hash = hash_text(value);
        let number = match self.table.find(hash, |n| Self::text(plain, places[*n as usize]) == value) {
            Some(number) => *number,
            None => {
                let number = self.places.len() as u32;
                push_plain(&mut self.plain, value);
                let end = self.plain.len();
                self.places.push(((end - value.len()) as u32, end as u32));
                let (plain, places) = (&self.plain, &self.places);
                self.table.insert_unique(hash, number, |n| hash_text(Self::text(plain, places[*n as usize])));
                number
            }
        };
        self.last = Some(number);
        number
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn plain(&self) -> &[u8] {
        &self.plain
    }

    fn cut(&mut self, len: usize) {
        self.places.truncate(len);
        self.plain.truncate(self.places.last().map_or(0, |place| place.1 as usize));
    }
}

/// Append a text in Parquet's PLAIN encoding.
#[inline]
pub(super) fn push_plain(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut ints = Ints::default();
        assert_eq!([5, 5, -1, i64::MIN, 5, -1].map(|v| ints.number(v)), [0, 0, 1, 2, 0, 1]);
        assert_eq!((ints.len(), ints.plain().len()), (3, 24));
        let mut texts = Texts::default();
        assert_eq!(["", "a", "", "ab", "a"].map(|v| texts.number(v.as_bytes())), [0, 1, 0, 2, 1]);
        assert_eq!(texts.plain(), b"\0\0\0\0\x01\0\0\0a\x02\0\0\0ab");
        (0..40_000).for_each(|i| _ = ints.number(i));
        assert!(ints.is_full());
        assert_eq!(ints.number(39_999), 40_001);
        ints.cut(2);
        texts.cut(2);
        assert_eq!((ints.plain().len(), texts.plain()), (16, &b"\0\0\0\0\x01\0\0\0a"[..]));
    }
}
