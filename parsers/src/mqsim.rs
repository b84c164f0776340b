//! MQSim's traces: `time device lba sectors type`, separated by blanks.
//!
//! Time in nanoseconds, as in the samples that come with MQSim (its configuration may say otherwise), lba and length in
//! 512-byte sectors, type 0 write and 1 read. Format after MQSim's README.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, sectors};
use crate::diag::Reason;
use crate::num::dec_i64;

/// The format.
pub static MQSIM: CsvTrace<MqsimLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "mqsim-bad-line",
    expected: "`nanoseconds device sector sectors 0|1`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// Lines of the trace.
#[derive(Default)]
pub struct MqsimLines;

impl CsvFormat for MqsimLines {
    const ID: &'static str = "mqsim";
    const ABOUT: &'static str = "MQSim block trace";
    const BLANKS: bool = true;
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "trace";

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        if !f[5].is_empty() {
            return Err(5);
        }
        Ok(Request {
            time_ns: dec_i64(f[0]).ok_or(0usize)?,
            dev: Some(dec_i64(f[1]).filter(|d| *d < 1 << 20).ok_or(1usize)?),
            offset_bytes: sectors(f[2]).ok_or(2usize)?,
            len_bytes: sectors(f[3]).ok_or(3usize)?,
            rwbs: match f[4] {
                b"0" => "W",
                b"1" => "R",
                _ => return Err(4),
            },
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
            &MQSIM,
            &ParseOptions::default(),
            b"48513000 1 6249728 48 0\n7 0 8 8 1\n1 2 3 4 5\n1 2 3 4 0 6\n",
        );
        let got: Vec<_> = rows
            .blocks
            .iter()
            .map(|b| (b.time_ns, b.dev.unwrap(), b.sector_512, b.len_bytes, b.rwbs.as_str()))
            .collect();
        assert_eq!(got, [(48_513_000, 1, Some(6_249_728), Some(24_576), "W"), (7, 0, Some(8), Some(4096), "R")]);
        assert_eq!((diag.events(), diag.rejected()), (2, 2));
    }
}
