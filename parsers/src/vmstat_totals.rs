//! What vmstat prints beside its time series: disks (`-d`), their sum (`-D`), a partition (`-p`), memory and event totals
//! (`-s`), slabs (`-m`), forks (`-f`). Totals since boot, as counters.
//!
//! Row forms after procps 3.3 and procps-ng 4.0 (`vmstat.c`). Memory is in KiB unless `-S` chose another unit, whose letter
//! stands before the name.

use kreplay_traces::event::{CounterRow, EventSink};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::{Fields, dec_i64, push_text, unquote};
use crate::vmstat::{civil_ns, zone_offset_s};

/// The format.
pub struct VmstatTotals;

impl Format for VmstatTotals {
    fn id(&self) -> &'static str {
        "vmstat-totals"
    }

    fn about(&self) -> &'static str {
        "vmstat -d -D -p -s -m -f: totals of disks, memory, slabs, forks"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(TotalsLines::new(&ParseOptions::default()), head)
    }

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(TotalsLines::new(options)))
    }
}

static NOT_A_TOTAL: Reason = Reason {
    code: "vmstat-totals-not-a-total",
    expected: "a row under a header of vmstat -d, -p or -m, or `number name` of vmstat -s, -D or -f",
    hint: "text between the totals is skipped",
};

/// Columns of `-d` after the disk's name.
const DISK: [&str; 10] = [
    "reads",
    "merged_reads",
    "read_sectors",
    "read_ms",
    "writes",
    "merged_writes",
    "written_sectors",
    "write_ms",
    "in_progress",
    "busy_s",
];
/// Columns of `-p`.
const PARTITION: [&str; 4] = ["reads", "read_sectors", "writes", "requested_writes"];
/// Columns of `-m` after the cache's name.
const SLAB: [&str; 4] = ["objects", "total_objects", "object_bytes", "objects_per_slab"];

/// Names of `-s`, `-D` and `-f`, and what they are called here; those before the mark are in memory units.
const NAMES: &[(&[u8], &str)] = &[
    (b"total memory", "total_memory_kib"),
    (b"used memory", "used_memory_kib"),
    (b"active memory", "active_memory_kib"),
    (b"inactive memory", "inactive_memory_kib"),
    (b"free memory", "free_memory_kib"),
    (b"buffer memory", "buffer_memory_kib"),
    (b"swap cache", "swap_cache_kib"),
    (b"total swap", "total_swap_kib"),
    (b"used swap", "used_swap_kib"),
    (b"free swap", "free_swap_kib"),
    (b"paged in", "paged_in_kib"),
    (b"paged out", "paged_out_kib"),
    (b"non-nice user cpu ticks", "user_ticks"),
    (b"nice user cpu ticks", "nice_ticks"),
    (b"system cpu ticks", "system_ticks"),
    (b"idle cpu ticks", "idle_ticks"),
    (b"IO-wait cpu ticks", "io_wait_ticks"),
    (b"IRQ cpu ticks", "irq_ticks"),
    (b"softirq cpu ticks", "softirq_ticks"),
    (b"stolen cpu ticks", "stolen_ticks"),
    (b"non-nice guest cpu ticks", "guest_ticks"),
    (b"nice guest cpu ticks", "nice_guest_ticks"),
    (b"pages paged in", "pages_paged_in"),
    (b"pages paged out", "pages_paged_out"),
    (b"pages swapped in", "pages_swapped_in"),
    (b"pages swapped out", "pages_swapped_out"),
    (b"interrupts", "interrupts"),
    (b"CPU context switches", "context_switches"),
    (b"boot time", "boot_time_s"),
    (b"forks", "forks"),
    (b"disks", "disks"),
    (b"partitions", "partitions"),
    (b"total reads", "reads"),
    (b"merged reads", "merged_reads"),
    (b"read sectors", "read_sectors"),
    (b"milli reading", "read_ms"),
    (b"writes", "writes"),
    (b"merged writes", "merged_writes"),
    (b"written sectors", "written_sectors"),
    (b"milli writing", "write_ms"),
    (b"inprogress IO", "in_progress"),
    (b"milli spent IO", "busy_ms"),
    (b"milli weighted IO", "weighted_ms"),
];

/// Which table the rows belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Table {
    #[default]
    None,
    Disks,
    Partition(String),
    Slabs,
}

struct TotalsLines {
    table: Table,
    subject: String,
    zone: Option<String>,
    utc_offset_s: Option<i64>,
    stamped: bool,
    unit_bytes: i64,
}

impl TotalsLines {
    fn new(options: &ParseOptions) -> Self {
        Self {
            table: Table::None,
            subject: String::new(),
            zone: None,
            utc_offset_s: options.utc_offset_s,
            stamped: false,
            unit_bytes: options.memory_unit_bytes.unwrap_or(1024),
        }
    }

    fn header(&mut self, words: &[&[u8]]) -> bool {
        if words.starts_with(&[b"total", b"merged", b"sectors", b"ms", b"total", b"merged", b"sectors", b"ms"]) {
            self.table = Table::Disks;
            self.zone = words.get(10).map(|w| String::from_utf8_lossy(w).into_owned());
            return true;
        }
        if words.first().is_some_and(|w| w.starts_with(b"disk-")) && words.len() > 2 {
            return true;
        }
        if let [name, b"reads", b"read", b"sectors", b"writes", b"requested", b"writes"] = words {
            self.table = Table::Partition(String::from_utf8_lossy(name).into_owned());
            return true;
        }
        if words == [&b"Cache"[..], b"Num", b"Total", b"Size", b"Pages"] {
            self.table = Table::Slabs;
            return true;
        }
        false
    }

    fn row(&mut self, words: &[&[u8]], line: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<()> {
        let (names, numbers): (&[&str], &[&[u8]]) = match &self.table {
            Table::None => return None,
            Table::Disks => (&DISK, words.get(1..11)?),
            Table::Partition(_) => (&PARTITION, (words.len() == 4).then_some(words)?),
            Table::Slabs => (&SLAB, (words.len() == 5).then(|| &words[1..])?),
        };
        let values: Vec<i64> = numbers.iter().map(|w| dec_i64(w)).collect::<Option<_>>()?;
        let stamp = match (&self.table, words.get(11..)) {
            (Table::Disks, Some([date, time])) => Some((*date, *time)),
            (Table::Disks, Some([])) | (Table::Partition(_) | Table::Slabs, _) => None,
            _ => return None,
        };
        let time_ns = match stamp {
            Some((date, time)) => {
                let offset_ns = self.offset_s(line, diag).saturating_mul(1_000_000_000);
                Some(civil_ns(date, time)?.saturating_sub(offset_ns))
            }
            None => None,
        };
        self.stamped |= time_ns.is_some();
        self.subject.clear();
        match &self.table {
            Table::Partition(name) => {
                self.subject.push_str("partition ");
                self.subject.push_str(name);
            }
            table => {
                self.subject.push_str(if *table == Table::Disks { "disk " } else { "slab " });
                push_text(&mut self.subject, words[0]);
            }
        }
        for (name, value) in names.iter().zip(values) {
            out.counter(&CounterRow { time_ns, subject: &self.subject, name, value, line });
        }
        Some(())
    }

    fn offset_s(&self, line: i64, diag: &mut Diagnostics) -> i64 {
        let zone = self.zone.as_deref().unwrap_or("UTC");
        self.utc_offset_s.or_else(|| zone_offset_s(zone)).unwrap_or_else(|| {
            diag.warn("zone-unknown", Some(line), || {
                format!("the zone {zone:?} is not known exactly; its times are taken as UTC (say --utc-offset)")
            });
            0
        })
    }

    /// `number [unit] name` of `-s`, `-D`, `-f`.
    fn total(&self, text: &[u8], line: i64, out: &mut dyn EventSink) -> Option<()> {
        let mut f = Fields::new(text);
        let value = f.next().and_then(dec_i64)?;
        let rest = f.rest();
        let (unit, name) = match rest {
            [b'K', b' ', name @ ..] => (Some(1024), name),
            [b'k', b' ', name @ ..] => (Some(1000), name),
            [b'M', b' ', name @ ..] => (Some(1 << 20), name),
            [b'm', b' ', name @ ..] => (Some(1_000_000), name),
            name => (None, name.strip_prefix(b"bytes ").unwrap_or(name)),
        };
        let (_, known) = NAMES.iter().find(|(printed, _)| *printed == name)?;
        let value = match (unit, known.ends_with("_kib")) {
            (unit, true) => {
                let bytes = unit.unwrap_or(self.unit_bytes);
                i64::try_from(i128::from(value) * i128::from(bytes) / 1024).ok()?
            }
            (None, false) => value,
            (Some(_), false) => return None,
        };
        out.counter(&CounterRow { time_ns: None, subject: "", name: known, value, line });
        Some(())
    }
}

impl LineParser for TotalsLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let text = unquote(line.bytes).trim_ascii();
        if text.is_empty() {
            return Outcome::Note("blank");
        }
        let words: Vec<&[u8]> = Fields::new(text).take(24).collect();
        if self.header(&words) {
            return Outcome::Note("header");
        }
        let done = self.row(&words, line.number, out, diag).or_else(|| self.total(text, line.number, out));
        if done.is_some() { Outcome::Event } else { Outcome::Reject(&NOT_A_TOTAL, None) }
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", if self.stamped { "epoch" } else { "none" });
        if let Some(zone) = &self.zone {
            diag.option("zone", zone.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn parse(text: &str) -> (Rows, Diagnostics) {
        let parsed = crate::parse_all(&VmstatTotals, &ParseOptions::default(), text.as_bytes());
        assert!(parsed.1.adds_up());
        parsed
    }

    fn value(rows: &Rows, subject: &str, name: &str) -> Option<i64> {
        rows.counters.iter().find(|c| c.1 == subject && c.2 == name).map(|c| c.3)
    }

    #[test]
    fn disks_with_and_without_stamps() {
        let text = "disk- ------------reads------------ ------------writes----------- -----IO------\n       \
            total merged sectors      ms  total merged sectors      ms    cur    sec\nsda 1 2 3 4 5 6 7 8 9 10\ndm-0 1 2\n";
        let (rows, diag) = parse(text);
        assert_eq!((value(&rows, "disk sda", "reads"), value(&rows, "disk sda", "busy_s")), (Some(1), Some(10)));
        assert_eq!((diag.events(), diag.note_count("header"), diag.rejected()), (1, 2, 1));
        let text = "       total merged sectors      ms  total merged sectors      ms    cur    sec                 UTC\n\
            sda 1 2 3 4 5 6 7 8 9 10 2023-11-14 22:13:20\n";
        assert_eq!(parse(text).0.counters[0].0, Some(1_700_000_000_000_000_000));
    }

    #[test]
    fn sums_partitions_slabs_memory_and_forks() {
        let (rows, diag) = parse("           10 disks\n      2687598 total reads\n         1539 milli spent IO\n");
        assert_eq!(
            (value(&rows, "", "reads"), value(&rows, "", "busy_ms"), diag.rejected()),
            (Some(2_687_598), Some(1539), 0)
        );
        let (rows, _) =
            parse("vda             reads      read sectors      writes  requested writes\n 1 2 3 4\n 5 6 7 8\n");
        assert_eq!(rows.counters.iter().map(|c| c.3).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
        let (rows, _) = parse("Cache                       Num  Total   Size  Pages\nnf_conntrack   10 20 320 12\n");
        assert_eq!(value(&rows, "slab nf_conntrack", "object_bytes"), Some(320));
        let (rows, diag) =
            parse("      8057892 K total memory\n 3 M free swap\n 12 interrupts\n 12 apples\n        99 forks\n");
        assert_eq!(value(&rows, "", "total_memory_kib"), Some(8_057_892));
        assert_eq!((value(&rows, "", "free_swap_kib"), value(&rows, "", "forks")), (Some(3072), Some(99)));
        assert_eq!((diag.events(), diag.rejected()), (4, 1));
    }
}
