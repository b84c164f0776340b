//! Bit packing, the hybrid of runs and packed bits, and variable-length numbers, as Parquet defines them
//! (`Encodings.md` of the Parquet format, "RLE/Bit-Packing Hybrid" and "Delta Encoding").

/// Values that are packed together: 64 of them fill whole words at any width.
pub(super) const PACK: usize = 64;

/// Bits that the largest of some values needs, given the bitwise or of all of them.
#[inline]
pub(super) fn width_of(or_of_all: u64) -> u32 {
    64 - or_of_all.leading_zeros()
}

/// Append values of `width` bits each, the least significant bit first, filled up with zeros to a multiple of 8 values.
/// No value may need more bits.
pub(super) fn pack<V: Copy + Into<u64>>(out: &mut Vec<u8>, values: &[V], width: u32) {
    if width == 0 {
        return;
    }
    for chunk in values.chunks(PACK) {
        let mut bytes = [0u8; PACK * 8];
        let (mut word, mut filled, mut at) = (0u64, 0, 0);
        for value in chunk {
            let value: u64 = (*value).into();
            word |= value << filled;
            filled += width;
            if filled >= 64 {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += 8;
                filled -= 64;
                // The bits of this value that found no room; a shift by all 64 would not be one.
                word = if filled == 0 { 0 } else { value >> (width - filled) };
            }
        }
        if filled > 0 {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&bytes[..chunk.len().div_ceil(8) * width as usize]);
    }
}

/// Append an unsigned number, 7 bits a byte.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Append a signed number as zigzag, so that small negative ones stay short.
pub(super) fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Append values of `width` bits as runs, where 64 or more in a row are equal, and packed bits elsewhere.
pub(super) fn hybrid(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let (mut at, mut literal) = (0, 0);
    while at < values.len() {
        let block = &values[at..values.len().min(at + PACK)];
        if block.iter().all(|v| *v == block[0]) {
            packed_run(out, &values[literal..at], width);
            let length = values[at..].iter().take_while(|v| **v == block[0]).count();
            run(out, length, block[0], width);
            at += length;
            literal = at;
        } else {
            at += block.len();
        }
    }
    packed_run(out, &values[literal..], width);
}

/// Append `length` times the same value.
pub(super) fn run(out: &mut Vec<u8>, length: usize, value: u32, width: u32) {
    varint(out, (length as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

fn packed_run(out: &mut Vec<u8>, values: &[u32], width: u32) {
    if !values.is_empty() {
        varint(out, (values.len().div_ceil(8) as u64) << 1 | 1);
        pack(out, values, width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read packed values back, bit by bit.
    fn unpack(bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
        let bit = |i: usize| u64::from(bytes[i / 8] >> (i % 8) & 1);
        let value = |n: usize| (0..width as usize).map(|b| bit(n * width as usize + b) << b).sum();
        (0..count).map(value).collect()
    }

    #[test]
    fn every_width_comes_back() {
        for width in 0..=64u32 {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let values: Vec<u64> = (0..200u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut out = Vec::new();
            pack(&mut out, &values, width);
            assert_eq!(out.len(), values.len() * width as usize / 8);
            assert_eq!(unpack(&out, width, values.len()), values, "{width}");
        }
    }

    #[test]
    fn a_short_rest_is_filled_up_to_eight() {
        let mut out = Vec::new();
        pack(&mut out, &[1u32, 2, 3], 3);
        assert_eq!(out.len(), 3);
        assert_eq!(unpack(&out, 3, 8), [1, 2, 3, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn runs_and_packed_bits_alternate() {
        let mut values = vec![7u32; 100];
        values.extend((0..70).map(|i| i % 5));
        values.extend(vec![3; 64]);
        let mut out = Vec::new();
        hybrid(&mut out, &values, 3);
        // A run of 100; 128 packed values, the last 58 of them from the run of threes; a run of the 6 left.
        assert_eq!(out[..3], [200, 1, 7]);
        assert_eq!(out[3], 16 << 1 | 1);
        assert_eq!(unpack(&out[4..], 3, 128), values[100..228].iter().map(|v| u64::from(*v)).collect::<Vec<_>>());
        assert_eq!(out[4 + 48..], [12, 3]);
    }

    #[test]
    fn small_numbers_are_short() {
        let number = |value| {
            let mut out = Vec::new();
            zigzag(&mut out, value);
            out
        };
        assert_eq!((number(0), number(-1), number(1)), (vec![0], vec![1], vec![2]));
        assert_eq!(number(-65), [129, 1]);
        assert_eq!(number(i64::MIN).len(), 10);
    }
}
