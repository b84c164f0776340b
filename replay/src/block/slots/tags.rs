//! Scheduler tags of blk-mq (`lib/sbitmap.c`, `block/blk-mq-tag.c` of 6.1): a bitmap in words, and a hint where to look.
//!
//! Some requests may use only the lower part of each word, so that others always find a tag. The hint is that of one
//! processor: a tag that was just given back is taken first.

/// Tags of a word, for the 256 that a scheduler has on most devices.
const WORD: u32 = 64;

/// The bitmap.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags {
    words: Vec<u64>,
    /// Tags per word; the last word may have fewer.
    word: u32,
    total: u32,
    used: u32,
    hint: u32,
    /// Tags given back since sleepers were woken.
    returned: u32,
}

impl Tags {
    pub(super) fn new(total: u32) -> Self {
        // Few tags are spread over at least four words (sbitmap_calculate_shift).
        let mut word = WORD;
        if total >= 4 {
            while 4 * word > total && word > 1 {
                word /= 2;
            }
        }
        let words = total.div_ceil(word);
        Self { words: vec![0; words as usize], word, total, used: 0, hint: 0, returned: 0 }
    }

    pub(super) fn word(&self) -> u32 {
        self.word
    }

    #[cfg(test)]
    pub(super) fn idle(&self) -> u32 {
        self.total - self.used
    }

    fn bits(&self, word: u32) -> u32 {
        self.word.min(self.total - word * self.word)
    }

    /// Takes a tag from the lowest `depth` of a word.
    pub(super) fn take(&mut self, depth: u32) -> Option<u32> {
        let words = self.words.len() as u32;
        let mut word = self.hint / self.word;
        let mut from = self.hint % self.word;
        // The word of the hint may be met twice: behind the hint and before it.
        for _ in 0..=words {
            let bits = self.bits(word).min(depth);
            let limit = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
            let free = !self.words[word as usize] & limit;
            let behind = if from >= 64 { 0 } else { free >> from << from };
            let found = if behind != 0 { behind } else { free };
            if found != 0 {
                let bit = found.trailing_zeros();
                self.words[word as usize] |= 1 << bit;
                self.used += 1;
                let tag = word * self.word + bit;
                if tag == self.hint {
                    self.hint = if tag + 1 >= self.total { 0 } else { tag + 1 };
                }
                return Some(tag);
            }
            from = 0;
            word = (word + 1) % words;
        }
        self.hint = 0;
        None
    }

    /// Gives a tag back; how many sleepers to wake, if anybody sleeps: none until `batch` tags came back, then as many.
    pub(super) fn put(&mut self, tag: u32, batch: u32, sleeps: bool) -> u32 {
        self.words[(tag / self.word) as usize] &= !(1 << (tag % self.word));
        self.used -= 1;
        self.hint = tag;
        if !sleeps {
            return 0;
        }
        self.returned += 1;
        // Nothing is out any more: nobody else would wake them.
        if self.returned >= batch || self.used == 0 {
            self.returned = 0;
            batch
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_requests_leave_the_upper_part_of_each_word() {
        let mut t = Tags::new(256);
        assert_eq!(t.word(), 64);
        let limited = std::iter::from_fn(|| t.take(48)).count();
        assert_eq!(limited, 4 * 48);
        assert_eq!(std::iter::from_fn(|| t.take(64)).count(), 4 * 16);
        assert_eq!((t.used, t.idle()), (256, 0));
    }

    #[test]
    fn a_returned_tag_is_taken_first_and_sleepers_wake_by_the_batch() {
        let mut t = Tags::new(32);
        assert_eq!(t.word(), 8);
        for want in 0..32 {
            assert_eq!(t.take(8), Some(want));
        }
        assert_eq!((t.put(17, 2, true), t.put(5, 2, true)), (0, 2));
        assert_eq!((t.take(8), t.take(8), t.take(8)), (Some(5), Some(17), None));
    }
}
