//! MSR Cambridge block traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamp and response time in units of 100 ns, the former since 1601 (Windows FILETIME); offset and size in bytes.
//! Each line gives an arrival and a completion. Format after the data set's own README (SNIA IOTTA 388).

use crate::csv::{CsvFormat, CsvTrace, Fields, Request, read_or_write};
use crate::diag::{Diagnostics, Reason};
use crate::kept::Numbers;
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

/// Hosts that get a major number each; the set has 13.
const MAX_HOSTS: u32 = 1 << 16;

/// Lines of the trace.
pub struct MsrLines {
    hosts: Numbers,
    /// Requests of hosts after those.
    others: u64,
}

impl Default for MsrLines {
    fn default() -> Self {
        Self { hosts: Numbers::with_room(MAX_HOSTS), others: 0 }
    }
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
        let host = self.hosts.of(f[1]);
        let request = Request {
            time_ns: ticks.checked_sub(EPOCH_TICKS).and_then(|t| t.checked_mul(100)).ok_or(0usize)?,
            dev: Some(i64::from(host.unwrap_or(self.hosts.room())) << 20 | disk),
            rwbs: read_or_write(f[3]).ok_or(3usize)?,
            offset_bytes: dec_i64(f[4]).ok_or(4usize)?,
            len_bytes: dec_i64(f[5]).ok_or(5usize)?,
            latency_ns: Some(signed(f[6]).and_then(|t| t.checked_mul(100)).ok_or(6usize)?),
            ..Request::default()
        };
        self.others += u64::from(host.is_none());
        Ok(request)
    }

    fn remark(&self, diag: &mut Diagnostics) {
        if self.others > 0 {
            let (room, others) = (self.hosts.room(), self.others);
            diag.warn("msr-many-hosts", None, || {
                format!("more than {room} hosts: {others} requests of all others stand under major {room} together")
            });
        }
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
        let first: Vec<_> = rows
            .blocks
            .iter()
            .map(|b| (b.action.as_str(), b.rwbs.as_str(), b.time_ns, b.dev.unwrap(), b.sector_512))
            .collect();
        assert_eq!(first[0], ("Q", "W", 1_172_163_600_306_162_900, 0, Some(13_701)));
        assert_eq!(first[1], ("C", "W", 1_172_163_600_306_165_500, 0, Some(13_701)));
        assert_eq!((first[2].3, rows.blocks[2].len_bytes), (1, Some(512)));
        let columns: Vec<_> = rows.rejects.iter().map(|r| r.column).collect();
        assert_eq!(columns, [None, Some(25)]);
        assert_eq!((diag.events(), diag.options()["clock"].as_str()), (2, "epoch"));
    }

    #[test]
    fn hosts_beyond_those_that_are_told_apart_stand_together() {
        let mut text = String::new();
        for i in (0..MAX_HOSTS + 2).chain([1]) {
            text += &format!("128166372003061629,h{i},3,Read,0,512,1\n");
        }
        let (rows, diag) = crate::parse_all(&MSR, &ParseOptions::default(), text.as_bytes());
        let of = |i: usize| rows.blocks[2 * i].dev;
        let (room, last) = (i64::from(MAX_HOSTS), MAX_HOSTS as usize + 2);
        assert_eq!([of(1), of(last - 1), of(last)], [Some(1 << 20 | 3), Some(room << 20 | 3), Some(1 << 20 | 3)]);
        assert_eq!((diag.events(), diag.warnings()[0].code), (last as u64 + 1, "msr-many-hosts"));
        assert!(diag.warnings()[0].text.contains(": 2 requests"), "{}", diag.warnings()[0].text);
    }
}
