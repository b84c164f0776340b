//! What is known of each name that a log has (a file, a disk, a host), in bounded room.
//!
//! A log may have any number of names of any length. The table keeps a hash of each, not the name, and no more than it was told;
//! what comes after that is the caller's to count.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rustc_hash::FxBuildHasher;

/// The hash that stands for a name: 128 bits of blake3, which no two names share by accident or by design.
pub(crate) fn name_key(name: &[u8]) -> u128 {
    let hash = blake3::hash(name);
    u128::from_le_bytes(hash.as_bytes()[..16].try_into().unwrap_or([0; 16]))
}

/// A value for each of the first so many names.
#[derive(Debug)]
pub(crate) struct Kept<V> {
    values: HashMap<u128, V, FxBuildHasher>,
    /// The name asked for last: most lines are of the same as the one before.
    last: Option<(Vec<u8>, u128)>,
    max: usize,
}

impl<V: Default> Kept<V> {
    /// Room for `max` names.
    pub(crate) fn with_room(max: usize) -> Self {
        Self { values: HashMap::default(), last: None, max }
    }

    /// How many names have a value.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// How many names can have one.
    pub(crate) fn room(&self) -> usize {
        self.max
    }

    /// The value of a name, made if there is room; `None` for a name beyond those that are told apart.
    pub(crate) fn of(&mut self, name: &[u8]) -> Option<&mut V> {
        self.of_or(name, V::default)
    }

    /// As [`Kept::of`], with the value that a new name gets.
    pub(crate) fn of_or(&mut self, name: &[u8], new: impl FnOnce() -> V) -> Option<&mut V> {
        let key = match &mut self.last {
            Some((last, key)) if last == name => *key,
            last => {
                let key = name_key(name);
                let (text, of) = last.get_or_insert_with(|| (Vec::new(), key));
                text.clear();
                text.extend_from_slice(name);
                *of = key;
                key
            }
        };
        let room = self.values.len() < self.max;
        match self.values.entry(key) {
            Entry::Occupied(value) => Some(value.into_mut()),
            Entry::Vacant(place) if room => Some(place.insert(new())),
            Entry::Vacant(_) => None,
        }
    }
}

/// Numbers names from 0 in the order of their first appearance.
#[derive(Debug)]
pub(crate) struct Numbers(Kept<u32>);

impl Numbers {
    /// Room for `max` names.
    pub(crate) fn with_room(max: u32) -> Self {
        Self(Kept::with_room(max as usize))
    }

    /// The number of a name; `None` for a name beyond those that are told apart.
    pub(crate) fn of(&mut self, name: &[u8]) -> Option<u32> {
        let next = self.0.len() as u32;
        self.0.of_or(name, || next).copied()
    }

    /// How many names can have a number: those without one may share this.
    pub(crate) fn room(&self) -> u32 {
        self.0.room() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_are_told_apart() {
        let mut numbers = Numbers::with_room(2);
        let got = [&b"a"[..], b"b", b"a", b"c", b"", b"b"].map(|name| numbers.of(name));
        assert_eq!(got, [Some(0), Some(1), Some(0), None, None, Some(1)]);
        assert_eq!(numbers.room(), 2);
    }
}
