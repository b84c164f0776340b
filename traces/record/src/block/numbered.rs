//! The `blk` tracer's classic text in blkparse's columns: the sequence number that it lacks is added.
//!
//! ```text
//!   7,0    1 13252.191147588 31640  Q  RM 15766 + 2 [dd]                 the tracer
//!   7,0    1        1 13252.191147588 31640  Q  RM 15766 + 2 [dd]        blkparse
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use super::pipe::Lines;

/// Numbers each processor's events from 1, as blkparse prints them.
#[derive(Default)]
pub(super) struct Numbered {
    next: BTreeMap<u32, u64>,
}

impl Lines for Numbered {
    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        let Some((before, cpu, after)) = split(line) else { return false };
        let number = self.next.entry(cpu).or_insert(0);
        *number += 1;
        out.extend_from_slice(before);
        // Writing to memory does not fail.
        let _ = write!(out, " {number:>8} ");
        out.extend_from_slice(after.trim_ascii_end());
        true
    }
}

/// A line cut behind its processor; none of a line that is no event (`CPU:1 [LOST 5 EVENTS]`).
fn split(line: &[u8]) -> Option<(&[u8], u32, &[u8])> {
    let device = line.iter().position(|b| *b != b' ')?;
    let device_end = device + line[device..].iter().position(|b| *b == b' ')?;
    let (major, minor) = std::str::from_utf8(&line[device..device_end]).ok()?.split_once(',')?;
    let number = |text: &str| text.parse::<u32>().is_ok();
    if !number(major) || !number(minor) {
        return None;
    }
    let cpu = device_end + line[device_end..].iter().position(|b| *b != b' ')?;
    let cpu_end = cpu + line[cpu..].iter().position(|b| *b == b' ')?;
    let number = std::str::from_utf8(&line[cpu..cpu_end]).ok()?.parse().ok()?;
    Some((&line[..cpu_end], number, line[cpu_end..].trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_counts_for_itself() {
        let mut numbered = Numbered::default();
        let mut lines = Vec::new();
        for line in [
            "  7,0    1 13252.191147588 31640  Q  RM 15766 + 2 [dd]",
            "CPU:1 [LOST 5 EVENTS]",
            "  7,0    0 13252.192258532    14  C  RM 15766 + 2 [0]",
            "  7,0    1 13252.192319162 31640  P   N [dd]",
            "259,12  10 1.000000001 7 UT   N [a b] 1",
        ] {
            let mut out = Vec::new();
            if numbered.line(line.as_bytes(), &mut out) {
                lines.push(String::from_utf8(out).unwrap());
            }
        }
        assert_eq!(
            lines,
            [
                "  7,0    1        1 13252.191147588 31640  Q  RM 15766 + 2 [dd]",
                "  7,0    0        1 13252.192258532    14  C  RM 15766 + 2 [0]",
                "  7,0    1        2 13252.192319162 31640  P   N [dd]",
                "259,12  10        1 1.000000001 7 UT   N [a b] 1",
            ]
        );
    }
}
