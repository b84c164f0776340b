//! Integers as differences from the one before (Parquet's DELTA_BINARY_PACKED, `Encodings.md` of the Parquet format).

use super::bits::{PACK, pack, varint, width_of, zigzag};

/// Differences that share a minimum.
const BLOCK: usize = 256;
/// Parts of a block with a width of their own.
const MINI_BLOCKS: usize = BLOCK / PACK;

/// Append the values.
pub(super) fn delta(out: &mut Vec<u8>, values: &[i64]) {
    varint(out, BLOCK as u64);
    varint(out, MINI_BLOCKS as u64);
    varint(out, values.len() as u64);
    zigzag(out, values.first().copied().unwrap_or(0));
    let mut start = 0;
    while start + 1 < values.len() {
        let end = values.len().min(start + 1 + BLOCK);
        block(out, &values[start..end]);
        start = end - 1;
    }
}

/// The differences between neighbours of at most `BLOCK + 1` values.
fn block(out: &mut Vec<u8>, values: &[i64]) {
    let mut differences = [0i64; BLOCK];
    let count = values.len() - 1;
    let mut least = i64::MAX;
    for (difference, pair) in differences.iter_mut().zip(values.windows(2)) {
        *difference = pair[1].wrapping_sub(pair[0]);
        least = least.min(*difference);
    }
    zigzag(out, least);
    let widths_at = out.len();
    out.extend_from_slice(&[0; MINI_BLOCKS]);
    for (mini, differences) in differences[..count].chunks(PACK).enumerate() {
        // What is missing at the end is filled with zeros.
        let mut above = [0u64; PACK];
        let mut all = 0;
        for (above, difference) in above.iter_mut().zip(differences) {
            *above = difference.wrapping_sub(least) as u64;
            all |= *above;
        }
        let width = width_of(all);
        out[widths_at + mini] = width as u8;
        pack(out, &above, width);
    }
}
