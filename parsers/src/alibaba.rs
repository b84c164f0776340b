//! Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
//!
//! Offset and length in bytes, timestamp in microseconds since 1970. Format after the data set's own README.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, read_or_write};
use crate::diag::Reason;
use crate::num::dec_i64;

/// The format.
pub static ALIBABA: CsvTrace<AlibabaLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "alibaba-bad-line",
    expected: "`device,R|W,offset bytes,length bytes,microseconds since 1970`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// Lines of the trace.
#[derive(Default)]
pub struct AlibabaLines;

impl CsvFormat for AlibabaLines {
    const ID: &'static str = "alibaba";
    const ABOUT: &'static str = "Alibaba block trace (CSV)";
    const FIELDS: usize = 5;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "epoch";

    fn is_header(&self, line: &[u8]) -> bool {
        line.starts_with(b"device_id,")
    }

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        Ok(Request {
            dev: Some(dec_i64(f[0]).ok_or(0usize)?),
            rwbs: read_or_write(f[1]).ok_or(1usize)?,
            offset_bytes: dec_i64(f[2]).ok_or(2usize)?,
            len_bytes: dec_i64(f[3]).ok_or(3usize)?,
            time_ns: dec_i64(f[4]).and_then(|t| t.checked_mul(1000)).ok_or(4usize)?,
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
            &ALIBABA,
            &ParseOptions::default(),
            b"419,W,8792731648,16384,1577808000000607\n1,R,1,2,x\n",
        );
        let b = &rows.blocks[0];
        assert_eq!(
            (b.dev, b.rwbs.as_str(), b.sector_512, b.len_bytes),
            (Some(419), "W", Some(17_173_304), Some(16_384))
        );
        assert_eq!(b.time_ns, 1_577_808_000_000_607_000);
        assert_eq!(rows.rejects[0].column, Some(9));
    }

    #[test]
    fn seconds_instead_of_microseconds_are_suspect() {
        let warning = |stamp: &str| {
            let text = format!("419,W,8192,4096,{stamp}\n");
            let (_, diag) = crate::parse_all(&ALIBABA, &ParseOptions::default(), text.as_bytes());
            diag.warnings().first().map(|w| (w.code, w.text.clone()))
        };
        assert_eq!(warning("1577808000000607"), None);
        let (code, text) = warning("1577808000").unwrap();
        assert_eq!((code, text.contains("1970")), ("unit-suspect", true));
    }
}
