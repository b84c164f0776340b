//! Block events back into the formats of other tools: blkparse text, fio I/O log version 3, oracleGeneral.
//!
//! Each exporter is an [`EventSink`]: rows go in, text goes out to a writer. Rows that the target cannot express are counted,
//! not bent. What a row does not say where the target always has a number (device, CPU, sequence, process, error) is written as 0.
//! Write errors are kept and returned at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use hashbrown::HashMap;
use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};

macro_rules! blocks_only {
    () => {
        fn syscall(&mut self, _: &SyscallRow<'_>) {}
        fn vmstat(&mut self, _: &VmstatRow) {}
        fn fault(&mut self, _: &FaultRow) {}
        fn process(&mut self, _: &ProcessRow<'_>) {}
        fn file(&mut self, _: &FileRow<'_>) {}
        fn counter(&mut self, _: &CounterRow<'_>) {}
        fn reject(&mut self, _: &RejectRow<'_>) {}
    };
}

/// Writes blkparse's default text.
pub struct BlkparseText<W> {
    out: W,
    error: io::Result<()>,
    skipped: u64,
}

impl<W: Write> BlkparseText<W> {
    /// Write to `out`.
    pub fn new(out: W) -> Self {
        Self { out, error: Ok(()), skipped: 0 }
    }

    /// How many rows could not be expressed: times before 0, texts with line ends or NUL bytes, lengths that are no whole
    /// sectors, remaps and splits without their other half.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<u64> {
        self.error?;
        self.out.flush()?;
        Ok(self.skipped)
    }

    fn line(&mut self, r: &BlockRow<'_>) -> io::Result<()> {
        let out = &mut self.out;
        let (secs, ns) = (r.time_ns / 1_000_000_000, r.time_ns % 1_000_000_000);
        let (cpu, seq, pid) = (r.cpu.unwrap_or(0), r.seq.unwrap_or(0), r.pid.unwrap_or(0));
        let (major, minor) = (r.device() >> 20, r.device() & 0xf_ffff);
        write!(out, "{major:3},{minor:<3} {cpu:2} {seq:8} {secs:5}.{ns:09} {pid:5} {:>2} {:>3} ", r.action, r.rwbs)?;
        let comm = r.comm.unwrap_or("(null)");
        let packet = r.sector_512.is_none() && r.text.is_some();
        match r.action {
            "m" => return writeln!(out, "{}", r.text.unwrap_or("")),
            "P" => return writeln!(out, "[{comm}]"),
            "U" | "UT" => return writeln!(out, "[{comm}] {}", r.unplugged.unwrap_or(0)),
            _ => {}
        }
        if let Some(sector) = r.sector_512 {
            write!(out, "{sector} ")?;
            match r.action {
                "X" => write!(out, "/ {} ", r.from_sector_512.unwrap_or(0))?,
                _ => {
                    if let Some(bytes) = r.len_bytes {
                        write!(out, "+ {} ", bytes / 512)?;
                    }
                }
            }
        } else if let Some(bytes) = r.len_bytes.filter(|_| !matches!(r.action, "C" | "R")) {
            write!(out, "{bytes} ")?;
        }
        if packet {
            write!(out, "({}) ", r.text.unwrap_or(""))?;
        }
        match r.action {
            "A" => {
                let from = r.from_dev.unwrap_or(0);
                writeln!(out, "<- ({},{}) {}", from >> 20, from & 0xf_ffff, r.from_sector_512.unwrap_or(0))
            }
            "C" | "R" => {
                write!(out, "[{}]", r.error.unwrap_or(0))?;
                match r.from_sector_512 {
                    // Zone append: where the device wrote.
                    Some(sector) => writeln!(out, " <{sector}>"),
                    None => writeln!(out),
                }
            }
            _ => writeln!(out, "[{comm}]"),
        }
    }
}

/// Whether blkparse's text has a line that says this.
fn is_expressible(r: &BlockRow<'_>) -> bool {
    let one_line = |text: Option<&str>| !text.is_some_and(|t| t.contains(['\n', '\r', '\0']));
    let letters = !r.rwbs.is_empty() && r.rwbs.bytes().all(|b| b.is_ascii_uppercase());
    let negative = |number: Option<i64>| number.is_some_and(|n| n < 0);
    let whole = r.sector_512.is_none() || r.len_bytes.is_none_or(|l| l % 512 == 0);
    let parts = match r.action {
        "A" => [r.sector_512, r.len_bytes, r.from_dev, r.from_sector_512].iter().all(Option::is_some),
        "X" => r.sector_512.is_some() && r.from_sector_512.is_some() && r.len_bytes.is_none_or(|l| l == 0),
        "U" | "UT" => r.unplugged.is_some_and(|n| n >= 0),
        "C" => true,
        _ => r.from_sector_512.is_none(),
    };
    let packet = r.action == "m" || !r.text.is_some_and(|t| t.contains(['(', ')', '[', ']']));
    let numbers = [r.dev, r.sector_512, r.len_bytes, r.from_sector_512, r.from_dev, r.cpu, r.seq, r.pid];
    r.time_ns >= 0
        && letters
        && one_line(r.text)
        && one_line(r.comm)
        && whole
        && parts
        && packet
        && !numbers.into_iter().any(negative)
}

impl<W: Write> EventSink for BlkparseText<W> {
    blocks_only!();

    fn block(&mut self, row: &BlockRow<'_>) {
        if !is_expressible(row) {
            self.skipped += 1;
        } else if self.error.is_ok() {
            self.error = self.line(row);
        }
    }
}

/// Writes fio's I/O log, version 3: the arrivals (Q) of reads, writes, discards and flushes. Devices become files: of the
/// names given, others `dev-MAJOR-MINOR`.
pub struct FioIologV3<W> {
    out: W,
    names: BTreeMap<i64, String>,
    error: io::Result<()>,
    opened: BTreeSet<i64>,
    header: bool,
    skipped: u64,
}

impl<W: Write> FioIologV3<W> {
    /// Write to `out`. A name with blanks cannot stand in the log and is not used.
    pub fn new(out: W, mut names: BTreeMap<i64, String>) -> Self {
        names.retain(|_, name| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control()));
        Self { out, names, error: Ok(()), opened: BTreeSet::new(), header: false, skipped: 0 }
    }

    /// How many arrivals could not be expressed (times before 0, no place, zone appends and other operations).
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<u64> {
        self.error?;
        self.out.flush()?;
        Ok(self.skipped)
    }

    fn line(&mut self, r: &BlockRow<'_>) -> io::Result<()> {
        let out = &mut self.out;
        if !std::mem::replace(&mut self.header, true) {
            writeln!(out, "fio version 3 iolog")?;
        }
        let us = r.time_ns / 1000;
        // A leading F is a flush before the operation; alone, or with N (no data) or F (as ftrace has it), it is the operation.
        let action = match r.rwbs.strip_prefix('F').unwrap_or(r.rwbs) {
            "" | "N" | "F" | "FN" | "NS" | "FS" if r.rwbs.starts_with('F') => "sync",
            rest if rest.starts_with('R') => "read",
            rest if rest.starts_with('W') && !rest.starts_with("WZ") => "write",
            rest if rest.starts_with('D') => "trim",
            _ => {
                self.skipped += 1;
                return Ok(());
            }
        };
        let dev = r.device();
        let name = self.names.get(&dev).cloned();
        let name = name.unwrap_or_else(|| format!("dev-{}-{}", dev >> 20, dev & 0xf_ffff));
        if self.opened.insert(dev) {
            writeln!(out, "{us} {name} add\n{us} {name} open")?;
        }
        if action == "sync" {
            return writeln!(out, "{us} {name} sync 0 0");
        }
        match r.sector_512.and_then(|s| s.checked_mul(512)).zip(r.len_bytes) {
            Some((offset, bytes)) => writeln!(out, "{us} {name} {action} {offset} {bytes}"),
            None => {
                self.skipped += 1;
                Ok(())
            }
        }
    }
}

impl<W: Write> EventSink for FioIologV3<W> {
    blocks_only!();

    fn block(&mut self, row: &BlockRow<'_>) {
        if row.action != "Q" || self.error.is_err() {
            return;
        }
        if row.time_ns < 0 {
            self.skipped += 1;
        } else {
            self.error = self.line(row);
        }
    }
}

/// Collects arrivals (Q) as cache requests and writes libCacheSim's oracleGeneral. The format looks into the future, so all
/// requests are held until the end: 24 bytes each.
#[derive(Default)]
pub struct OracleGeneral {
    requests: Vec<(u32, u64, u32)>,
    skipped: u64,
}

impl OracleGeneral {
    /// Write all requests to `out`; gives how many arrivals could not be expressed.
    ///
    /// # Errors
    /// The first write error.
    pub fn write(self, mut out: impl Write) -> io::Result<u64> {
        let mut next = vec![-1i64; self.requests.len()];
        let mut later: HashMap<u64, usize> = HashMap::new();
        for (index, (_, object, _)) in self.requests.iter().enumerate().rev() {
            if let Some(at) = later.insert(*object, index) {
                next[index] = at as i64;
            }
        }
        for ((time_s, object, size), next) in self.requests.iter().zip(next) {
            out.write_all(&time_s.to_le_bytes())?;
            out.write_all(&object.to_le_bytes())?;
            out.write_all(&size.to_le_bytes())?;
            out.write_all(&next.to_le_bytes())?;
        }
        out.flush()?;
        Ok(self.skipped)
    }
}

impl EventSink for OracleGeneral {
    blocks_only!();

    fn block(&mut self, r: &BlockRow<'_>) {
        if r.action != "Q" {
            return;
        }
        let time = u32::try_from(r.time_ns / 1_000_000_000);
        let object = r.sector_512.and_then(|s| u64::try_from(s).ok());
        let size = r.len_bytes.and_then(|l| u32::try_from(l).ok());
        match (time, object, size) {
            (Ok(time), Some(object), Some(size)) => self.requests.push((time, object, size)),
            _ => self.skipped += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ParseOptions;
    use crate::rows::Rows;
    use crate::{by_id, parse_all};

    const TEXT: &str = "  8,0    1        1     0.000001000  4321  Q   R 64 + 8 [a b]
  8,0    1        2     0.000002000  4321  Q  DS 128 + 16 [(null)]
  8,0    1        3     0.000003000  4321  P   N [x]
  8,0    1        4     0.000004000  4321  U   N [x] 3
  0,0    1        4     0.000004500  4321  P   N [x]
  8,0    1        5     0.000005000  4321  X   W 64 / 72 [x]
  8,0    1        6     0.000006000  4321  A   W 64 + 8 <- (8,1) 8
  8,0    1        7     0.000007000  4321  D   R 36 (12 00 ..) [x]
  8,0    1        8     0.000008000     0  C   W 64 + 8 [-5]
  8,0    1        9     0.000009000     0  C   N [0]
  8,0    1        9     0.000009500     0  C ZAS 64 + 8 [0] <72>
  8,0    1        0     0.000010000     0  m   N bfq [x] y
  8,16   1       10     1.000011000  4321  Q   R 64 + 8 [x]
  8,0    1       11     2.000012000  4321  Q  FN [x]
";

    fn rows(format: &str, text: &[u8]) -> Rows {
        let (rows, diag) = parse_all(by_id(format).unwrap(), &ParseOptions::default(), text);
        assert_eq!(diag.rejects(), [], "{}", String::from_utf8_lossy(text));
        rows
    }

    #[test]
    fn blkparse_text_comes_back_as_it_was() {
        let first = rows("blkparse", TEXT.as_bytes());
        let mut out = Vec::new();
        let mut export = BlkparseText::new(&mut out);
        first.blocks.iter().for_each(|b| export.block(&b.row()));
        assert_eq!(export.finish().unwrap(), 0);
        assert_eq!(String::from_utf8(out).unwrap(), TEXT);
        let unnamed: Vec<_> = first.blocks.iter().filter(|b| b.dev.is_none()).map(|b| b.action.as_str()).collect();
        assert_eq!(unnamed, ["P"], "a plug of no device, as ftrace has it");
    }

    #[test]
    fn fio_logs_keep_the_arrivals() {
        let first = rows("blkparse", TEXT.as_bytes());
        let mut out = Vec::new();
        let mut export = FioIologV3::new(&mut out, BTreeMap::new());
        first.blocks.iter().for_each(|b| export.block(&b.row()));
        assert_eq!(export.finish().unwrap(), 0);
        let second = rows("fio-iolog", &out);
        let key = |r: &Rows| -> Vec<_> {
            let arrivals = r.blocks.iter().filter(|b| b.action == "Q");
            arrivals.map(|b| (b.time_ns, b.rwbs[..1].to_owned(), b.sector_512, b.len_bytes)).collect()
        };
        assert_eq!(key(&first), key(&second));
    }

    #[test]
    fn rows_that_no_line_can_say_are_counted() {
        let fits = BlockRow {
            time_ns: 1,
            action: "Q",
            rwbs: "W",
            sector_512: Some(8),
            len_bytes: Some(512),
            comm: Some("x"),
            ..BlockRow::default()
        };
        let message = BlockRow { action: "m", rwbs: "N", text: Some("m"), ..BlockRow::default() };
        let cases = [
            (fits, 0),
            (message, 0),
            (BlockRow { text: Some("two\nlines"), ..message }, 1),
            (BlockRow { text: Some("nul\0"), ..message }, 1),
            (BlockRow { comm: Some("a\nb"), ..fits }, 1),
            (BlockRow { len_bytes: Some(100), ..fits }, 1),
            (BlockRow { rwbs: "", ..fits }, 1),
            (BlockRow { action: "A", ..fits }, 1),
            (BlockRow { action: "X", ..fits }, 1),
            (BlockRow { action: "U", ..fits }, 1),
            (BlockRow { from_sector_512: Some(1), ..fits }, 1),
            (BlockRow { time_ns: -1, ..fits }, 1),
        ];
        for (row, left_out) in cases {
            let mut out = Vec::new();
            let mut export = BlkparseText::new(&mut out);
            export.block(&row);
            assert_eq!(export.finish().unwrap(), left_out, "{row:?}");
            // What is said to be there is read again.
            assert_eq!(rows("blkparse", &out).blocks.len() as u64, 1 - left_out, "{row:?}");
        }
    }

    #[test]
    fn fio_logs_keep_the_names_and_leave_out_what_fio_has_not() {
        let text = b"fio version 3 iolog\n1 m/h5.1.0 add\n1 m/h5.1.0 open\n2 m/h5.1.0 write 0 512\n3 g add\n3 g open\n3 g sync 0 0\n";
        let first = rows("fio-iolog", text);
        let names: BTreeMap<i64, String> =
            first.files.iter().zip(0..).map(|(f, dev)| (dev, f.0.clone())).chain([(9, "a b".to_owned())]).collect();
        let mut out = Vec::new();
        let mut export = FioIologV3::new(&mut out, names);
        first.blocks.iter().for_each(|b| export.block(&b.row()));
        for rwbs in ["ZAS", "WZS", "N"] {
            export.block(&BlockRow {
                action: "Q",
                rwbs,
                sector_512: Some(0),
                len_bytes: Some(512),
                ..BlockRow::default()
            });
        }
        export.block(&BlockRow {
            action: "Q",
            rwbs: "R",
            dev: Some(9),
            sector_512: Some(0),
            len_bytes: Some(512),
            ..BlockRow::default()
        });
        assert_eq!(export.finish().unwrap(), 3);
        let second = rows("fio-iolog", &out);
        let names = |r: &Rows| r.files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(&second), ["m/h5.1.0", "g", "dev-0-9"]);
        assert_eq!(second.blocks[..2].iter().map(|b| &b.rwbs).collect::<Vec<_>>(), ["W", "FN"]);
    }

    #[test]
    fn oracle_general_keeps_objects_and_knows_the_next_request() {
        let first = rows("blkparse", TEXT.as_bytes());
        let mut export = OracleGeneral::default();
        first.blocks.iter().for_each(|b| export.block(&b.row()));
        let mut out = Vec::new();
        assert_eq!(export.write(&mut out).unwrap(), 1, "the flush has no place");
        let second = rows("oracle-general", &out);
        let got: Vec<_> = second.blocks.iter().map(|b| (b.time_ns, b.sector_512, b.len_bytes)).collect();
        assert_eq!(got, [(0, Some(64), Some(4096)), (0, Some(128), Some(8192)), (1_000_000_000, Some(64), Some(4096))]);
        assert_eq!(i64::from_le_bytes(out[16..24].try_into().unwrap()), 2);
        assert_eq!(i64::from_le_bytes(out[40..48].try_into().unwrap()), -1);
    }

    #[test]
    fn what_cannot_be_written_is_counted_or_an_error() {
        let row = BlockRow { time_ns: -1, action: "Q", rwbs: "R", ..BlockRow::default() };
        let mut export = BlkparseText::new(Vec::new());
        export.block(&row);
        assert_eq!(export.finish().unwrap(), 1);
        let full: &mut [u8] = &mut [0; 4];
        let mut export = BlkparseText::new(full);
        export.block(&BlockRow { time_ns: 1, ..row });
        assert!(export.finish().is_err());
    }
}
