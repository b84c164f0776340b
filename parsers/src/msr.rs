//! MSR Cambridge block traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamp and response time in units of 100 ns, the former since 1601 (Windows FILETIME); offset and size in bytes.
//! Each line gives an arrival and a completion. Format after the data set's own README (SNIA IOTTA 388).

use hashbrown::HashMap;

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, read_or_write};
use crate::diag::Reason;
use crate::num::{dec_i64, signed};

/// The format.
pub static MSR: CsvTrace<MsrLines> = CsvTrace::new();

static BAD: Reason = Reason {
    code: "msr-bad-line",
    expected: "`FILETIME,host,disk,Read|Write,offset bytes,size bytes,response time`",
    hint: "the line was cut, or the columns are those of another trace",
};

/// 1970 in units of 100 ns since 1601.
const EPOCH_TICKS: i64 = 116_444_736_000_000_000;

/// Lines of the trace.
#[derive(Default)]
pub struct MsrLines {
    hosts: HashMap<Vec<u8>, i64>,
}

impl CsvFormat for MsrLines {
    const ID: &'static str = "msr";
    const ABOUT: &'static str = "MSR Cambridge block trace (CSV)";
    const FIELDS: usize = 7;
    const BAD: &'static Reason = &BAD;
    const CLOCK: &'static str = "epoch";

    fn is_header(&self, line: &[u8]) -> bool {
        line.starts_with(b"Timestamp,")
    }

    fn request<'a>(&mut self, f: &Fields<'a>) -> Result<Request<'a>, usize> {
        let ticks = dec_i64(f[0]).ok_or(0usize)?;
        let disk = dec_i64(f[2]).filter(|d| *d < 1 << 20).ok_or(2usize)?;
        // Hosts become major numbers in the order of their appearance.
        let next = self.hosts.len() as i64;
        let host = match self.hosts.get(f[1]) {
            Some(host) => *host,
            None => *self.hosts.entry(f[1].to_vec()).or_insert(next),
        };
        Ok(Request {
            time_ns: ticks.checked_sub(EPOCH_TICKS).and_then(|t| t.checked_mul(100)).ok_or(0usize)?,
            dev: host << 20 | disk,
            rwbs: read_or_write(f[3]).ok_or(3usize)?,
            offset_bytes: dec_i64(f[4]).ok_or(4usize)?,
            len_bytes: dec_i64(f[5]).ok_or(5usize)?,
            latency_ns: Some(signed(f[6]).and_then(|t| t.checked_mul(100)).ok_or(6usize)?),
            ..Request::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ParseOptions;

    #[test]
    fn ticks_become_nanoseconds() {
        let text = b"128166372003061629,hm,0,Write,7014912,4096,26\n128166372016382155,hm,1,Read,512,512,113\nx\n\
            128166372016382155,hm,1,Trim,512,512,113\n";
        let (rows, diag) = crate::parse_all(&MSR, &ParseOptions::default(), text);
        let first: Vec<_> =
            rows.blocks.iter().map(|b| (b.action.as_str(), b.rwbs.as_str(), b.time_ns, b.dev, b.sector_512)).collect();
        assert_eq!(first[0], ("Q", "W", 1_172_163_600_306_162_900, 0, Some(13_701)));
        assert_eq!(first[1], ("C", "W", 1_172_163_600_306_165_500, 0, Some(13_701)));
        assert_eq!((first[2].3, rows.blocks[2].len_bytes), (1, Some(512)));
        let columns: Vec<_> = rows.rejects.iter().map(|r| r.column).collect();
        assert_eq!(columns, [None, Some(25)]);
        assert_eq!((diag.events(), diag.options()["clock"].as_str()), (2, "epoch"));
    }
}
