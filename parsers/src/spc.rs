//! SPC-1 block traces (UMass Financial and WebSearch): `ASU,LBA,size,opcode,timestamp`.
//!
//! LBA in 512-byte blocks of the application storage unit (ASU), size in bytes, timestamp in seconds since the start.
//! Format after the SPC trace file specification 1.0.1 as the UMass repository describes it; further fields are allowed.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, read_or_write, sectors};
use crate::diag::Reason;
use crate::num::{dec_i64, secs_ns};

/// The format.
pub static SPC: CsvTrace<SpcLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "spc-bad-line",
    expected: "`ASU,LBA in 512-byte blocks,size in bytes,r|w,seconds`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// Lines of the trace.
#[derive(Default)]
pub struct SpcLines;

impl CsvFormat for SpcLines {
    const ID: &'static str = "spc";
    const ABOUT: &'static str = "SPC block trace (UMass Financial, WebSearch)";
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "trace";

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        Ok(Request {
            dev: Some(dec_i64(f[0]).filter(|d| *d < 1 << 20).ok_or(0usize)?),
            offset_bytes: sectors(f[1]).ok_or(1usize)?,
            len_bytes: dec_i64(f[2]).ok_or(2usize)?,
            rwbs: read_or_write(f[3]).ok_or(3usize)?,
            time_ns: memchr::memchr(b'.', f[4]).and_then(|_| secs_ns(f[4])).ok_or(4usize)?,
            ..Request::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ParseOptions;

    #[test]
    fn units() {
        let (rows, _) = crate::parse_all(
            &SPC,
            &ParseOptions::default(),
            b"0,20941264,8192,W,0.551706\n1,8,512,r,1.5,extra\n0,1,1,x,0.1\n",
        );
        let got: Vec<_> = rows
            .blocks
            .iter()
            .map(|b| (b.dev.unwrap(), b.sector_512, b.len_bytes, b.rwbs.as_str(), b.time_ns))
            .collect();
        assert_eq!(
            got,
            [(0, Some(20_941_264), Some(8192), "W", 551_706_000), (1, Some(8), Some(512), "R", 1_500_000_000)]
        );
        assert_eq!(rows.rejects[0].column, Some(7));
    }
}
