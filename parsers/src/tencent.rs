//! Tencent CBS block traces: `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! Timestamp in whole seconds since 1970, offset and size in 512-byte sectors, type 0 read and 1 write. Format as the
//! SNIA IOTTA repository describes the set. Whole seconds order nothing within one: requests keep the file's order.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, sectors};
use crate::diag::Reason;
use crate::num::dec_i64;

/// The format.
pub static TENCENT: CsvTrace<TencentLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "tencent-bad-line",
    expected: "`seconds since 1970,offset in sectors,size in sectors,0|1,volume`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// September 2001: plain numbers below it are no time stamps of this trace.
const FIRST_SECOND: i64 = 1_000_000_000;

/// Lines of the trace.
#[derive(Default)]
pub struct TencentLines;

impl CsvFormat for TencentLines {
    const ID: &'static str = "tencent";
    const ABOUT: &'static str = "Tencent CBS block trace (CSV)";
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "epoch";

    fn is_header(&self, line: &[u8]) -> bool {
        line.starts_with(b"Timestamp,Offset,")
    }

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        let seconds = dec_i64(f[0]).filter(|s| (FIRST_SECOND..FIRST_SECOND * 10).contains(s)).ok_or(0usize)?;
        Ok(Request {
            time_ns: seconds.checked_mul(1_000_000_000).ok_or(0usize)?,
            offset_bytes: sectors(f[1]).ok_or(1usize)?,
            len_bytes: sectors(f[2]).ok_or(2usize)?,
            rwbs: match f[3] {
                b"0" => "R",
                b"1" => "W",
                _ => return Err(3),
            },
            dev: Some(dec_i64(f[4]).ok_or(4usize)?),
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
            &TENCENT,
            &ParseOptions::default(),
            b"1538323200,12910952,8,1,1063\n1538323200,1,8,2,1\n5,1,8,1,1\n",
        );
        let b = &rows.blocks[0];
        assert_eq!(
            (b.dev, b.rwbs.as_str(), b.sector_512, b.len_bytes),
            (Some(1063), "W", Some(12_910_952), Some(4096))
        );
        assert_eq!(b.time_ns, 1_538_323_200_000_000_000);
        assert_eq!(rows.rejects.iter().map(|r| r.column).collect::<Vec<_>>(), [Some(16), Some(1)]);
    }
}
