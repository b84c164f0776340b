//! FIU traces (SRCMap, I/O deduplication): `time pid process lba size W|R major minor md5`, separated by blanks.
//!
//! Time in nanoseconds since the start (seconds where it has decimals), lba and size in 512-byte blocks. Format after the
//! description of the sets in the SNIA IOTTA repository.

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, read_or_write, sectors};
use crate::diag::Reason;
use crate::num::{dec_i64, secs_ns};

/// The format.
pub static FIU: CsvTrace<FiuLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "fiu-bad-line",
    expected: "`nanoseconds pid process block blocks W|R major minor md5`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// Lines of the trace.
#[derive(Default)]
pub struct FiuLines;

impl CsvFormat for FiuLines {
    const ID: &'static str = "fiu";
    const ABOUT: &'static str = "FIU block trace (SRCMap, I/O deduplication)";
    const BLANKS: bool = true;
    const FIELDS: usize = 8;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "trace";

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        let (major, minor) = (dec_i64(f[6]).filter(|m| *m < 1 << 20), dec_i64(f[7]).filter(|m| *m < 1 << 20));
        Ok(Request {
            time_ns: if f[0].contains(&b'.') { secs_ns(f[0]) } else { dec_i64(f[0]) }.ok_or(0usize)?,
            pid: Some(dec_i64(f[1]).ok_or(1usize)?),
            comm: std::str::from_utf8(f[2]).ok(),
            offset_bytes: sectors(f[3]).ok_or(3usize)?,
            len_bytes: sectors(f[4]).ok_or(4usize)?,
            rwbs: read_or_write(f[5]).ok_or(5usize)?,
            dev: Some(major.ok_or(6usize)? << 20 | minor.ok_or(7usize)?),
            latency_ns: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ParseOptions;

    #[test]
    fn columns_and_units() {
        let text = b"0 4892 syslogd 904265560 8 W 6 0 531e7799\n1500 4892 syslogd 904265568 16 R 6 1 531e7799\n1 2 x y 8 W 6 0 z\n";
        let (rows, diag) = crate::parse_all(&FIU, &ParseOptions::default(), text);
        let got: Vec<_> = rows
            .blocks
            .iter()
            .map(|b| (b.time_ns, b.dev.unwrap(), b.sector_512, b.len_bytes, b.rwbs.as_str(), b.pid, b.comm.as_deref()))
            .collect();
        let first = (0, 6 << 20, Some(904_265_560), Some(4096), "W", Some(4892), Some("syslogd"));
        let second = (1500, 6 << 20 | 1, Some(904_265_568), Some(8192), "R", Some(4892), Some("syslogd"));
        assert_eq!(got, [first, second]);
        assert_eq!((diag.rejected(), rows.rejects[0].column), (1, Some(7)));
    }
}
