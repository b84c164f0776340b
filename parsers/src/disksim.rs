//! DiskSim's ASCII traces: `time device block blocks flags`, separated by blanks.
//!
//! Time in milliseconds with decimals since the start, blocks of 512 bytes, bit 0 of the flags (hexadecimal) set for a
//! read. Format after the DiskSim 4.0 reference manual, section on input traces.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, sectors};
use crate::diag::Reason;
use crate::num::{dec_i64, hex_u64, secs_ns};

/// The format.
pub static DISKSIM: CsvTrace<DisksimLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "disksim-bad-line",
    expected: "`milliseconds.decimals device block blocks flags`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// Lines of the trace.
#[derive(Default)]
pub struct DisksimLines;

impl CsvFormat for DisksimLines {
    const ID: &'static str = "disksim";
    const ABOUT: &'static str = "DiskSim block trace (ASCII)";
    const BLANKS: bool = true;
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "trace";

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        if !f[5].is_empty() {
            return Err(5);
        }
        // Milliseconds with up to 9 decimals: read as seconds, then a thousandth.
        let time_ns = memchr::memchr(b'.', f[0]).and_then(|_| secs_ns(f[0])).ok_or(0usize)? / 1000;
        Ok(Request {
            time_ns,
            dev: Some(dec_i64(f[1]).filter(|d| *d < 1 << 20).ok_or(1usize)?),
            offset_bytes: sectors(f[2]).ok_or(2usize)?,
            len_bytes: sectors(f[3]).ok_or(3usize)?,
            rwbs: if hex_u64(f[4].strip_prefix(b"0x").unwrap_or(f[4])).ok_or(4usize)? & 1 == 1 { "R" } else { "W" },
            ..Request::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ParseOptions;

    #[test]
    fn columns_and_units() {
        let (rows, diag) = crate::parse_all(
            &DISKSIM,
            &ParseOptions::default(),
            b"0.000000 0 64 8 0\n12.345678 1 128 16 1\n5 0 1 1 1\n1.0 x 1 1 1\n",
        );
        let got: Vec<_> = rows
            .blocks
            .iter()
            .map(|b| (b.time_ns, b.dev.unwrap(), b.sector_512, b.len_bytes, b.rwbs.as_str()))
            .collect();
        assert_eq!(got, [(0, 0, Some(64), Some(4096), "W"), (12_345_678, 1, Some(128), Some(8192), "R")]);
        assert_eq!((diag.events(), diag.rejected()), (2, 2));
    }
}
