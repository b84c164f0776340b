//! Bytes between chunks: records that the end of a chunk cut wait for the next one.

/// What was left of the chunks so far.
#[derive(Debug, Default)]
pub(crate) struct Carry(Vec<u8>);

impl Carry {
    /// Gives what waits and the next chunk to `take`, which says how many bytes from the front it took.
    pub(crate) fn feed(&mut self, chunk: &[u8], take: impl FnOnce(&[u8]) -> usize) {
        if self.0.is_empty() {
            // Nothing is copied but the rest.
            let taken = take(chunk);
            self.0.extend_from_slice(&chunk[taken..]);
        } else {
            self.0.extend_from_slice(chunk);
            let taken = take(&self.0);
            self.0.drain(..taken);
        }
    }

    /// What waits when the input ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_records_are_made_whole() {
        let (mut carry, mut seen) = (Carry::default(), Vec::new());
        for chunk in [&b"abcd"[..], b"e", b"fgh", b"ij"] {
            carry.feed(chunk, |bytes| {
                let whole = bytes.len() / 3 * 3;
                seen.extend_from_slice(&bytes[..whole]);
                whole
            });
        }
        assert_eq!((seen.as_slice(), carry.rest().as_slice()), (&b"abcdefghi"[..], &b"j"[..]));
        assert!(carry.rest().is_empty());
    }
}
