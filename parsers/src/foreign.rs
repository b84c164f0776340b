//! Look-alikes and relatives that are known by their text and refused with a sentence, instead of being misread.

use crate::diag::Diagnostics;
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use kreplay_traces::event::EventSink;

/// A kind of text that is recognised, but not read.
pub struct Foreign {
    id: &'static str,
    about: &'static str,
    why: &'static str,
    is: fn(&[u8]) -> bool,
}

impl Format for Foreign {
    fn id(&self) -> &'static str {
        self.id
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        if (self.is)(head.bytes) { 100 } else { 0 }
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Nothing)
    }

    fn refusal(&self) -> Option<&'static str> {
        Some(self.why)
    }
}

/// The parser of what is never parsed.
struct Nothing;

impl Parser for Nothing {
    fn feed(&mut self, _: &[u8], _: &mut dyn EventSink, _: &mut Diagnostics) {}
    fn finish(&mut self, _: &mut dyn EventSink, _: &mut Diagnostics) {}
}

macro_rules! foreign {
    ($($name:ident: $id:literal, $about:literal, $why:literal, $is:expr;)*) => {
        $(
            #[doc = $about]
            pub static $name: Foreign = Foreign { id: $id, about: $about, why: $why, is: $is };
        )*
        #[cfg(test)]
        static ALL: &[&Foreign] = &[$(&$name),*];
    };
}

foreign! {
    BSD_VMSTAT: "vmstat-bsd", "vmstat of a BSD system",
        "its columns mean other things than those of Linux (avm, flt, fr, sr); kreplay reads Linux' vmstat",
        |t| has_words(t, &[b"avm", b"fre", b"flt"]);
    AIX_VMSTAT: "vmstat-aix", "vmstat of AIX",
        "its columns mean other things than those of Linux; kreplay reads Linux' vmstat",
        |t| has(t, b"System configuration: lcpu=") || has_words(t, &[b"avm", b"fre", b"cy"]);
    SOLARIS_VMSTAT: "vmstat-solaris", "vmstat of Solaris or illumos",
        "its columns mean other things than those of Linux; kreplay reads Linux' vmstat",
        |t| has_words(t, &[b"swap", b"free", b"re", b"mf", b"pi"]);
    PROC_VMSTAT: "proc-vmstat", "/proc/vmstat",
        "it holds counters of one moment; record `vmstat -t 1`",
        |t| t.starts_with(b"nr_free_pages ") || has(t, b"\nnr_zone_inactive_anon ");
    IOSTAT: "iostat", "iostat",
        "it holds averages per interval, not requests; record with blktrace",
        |t| lines(t).take(8).any(|l| l.starts_with(b"avg-cpu:") || l.starts_with(b"Device") && has(l, b" tps"));
    LTRACE: "ltrace", "ltrace output (library calls)",
        "library calls are not system calls; record with `strace -f -ttt -T -y`",
        is_ltrace;
    SYSTEMTAP: "systemtap-syscalls", "a SystemTap system call log",
        "only strace's own form is read; record with `strace -f -ttt -T -y`",
        |t| has_line(t, |l| {
            let at = memchr::memmem::find(l, b" @");
            at.is_some_and(|at| memchr::memmem::find(&l[at..], b"] ").is_some() && l[at..].iter().take(24).any(|b| *b == b'['))
                && l.first().is_some_and(u8::is_ascii_uppercase)
        });
    GVISOR: "gvisor-strace", "a gVisor strace log",
        "its calls lack paths and results in strace's form; record with `strace -f -ttt -T -y` outside of the sandbox",
        |t| has(t, b") errno=") && has(t, b") = 0");
    TRUSS: "truss", "truss or dtruss output",
        "other systems' calls differ in arguments and order; kreplay reads strace of Linux",
        |t| has(t, b"SYSCALL(args)") || lines(t).filter(|l| is_truss(l)).count() >= 2;
    PERF_TRACE: "perf-trace", "perf trace output",
        "it prints arguments in another way; record with `strace -f -ttt -T -y`",
        |t| has_line(t, |l| has(l, b" ms): ") && has(l, b"("));
    BIO_SUMMARY: "bio-summary", "a summary or histogram of a BPF or perf tool (biotop, biolatency, bitesize)",
        "it holds counts, not requests; record with blktrace or biosnoop",
        |t| has_words(t, &[b"D", b"MAJ", b"MIN", b"DISK", b"I/O"]) || (has(t, b": count ") && has(t, b"distribution"))
            || (has(t, b"Kbytes") && has(t, b": I/O "));
    BPFTRACE_BIOSNOOP: "bpftrace-biosnoop", "the biosnoop of bpftrace",
        "it holds latencies without addresses, so nothing can be replayed; record with blktrace, or biosnoop of bcc",
        |t| has_words(t, &[b"TIME(ms)", b"COMM", b"PID", b"LAT(ms)"]) && !has_words(t, &[b"SECTOR"]);
    TRACE_DAT: "trace-dat", "a binary trace.dat of trace-cmd",
        "convert it with `trace-cmd report` first",
        |t| t.starts_with(b"\x17\x08\x44tracing");
    PERF_DATA: "perf-data", "a binary perf.data",
        "convert it with `perf script` first",
        |t| t.starts_with(b"PERFILE2");
    PACKED: "packed", "a file packed in a way that is not read (zip, lz4, lzip, compress, lzo, 7-Zip, Snappy)",
        "unpack it first, or pack it with gzip, zstd, xz or bzip2",
        |t| [&b"PK\x03\x04"[..], b"\x04\x22\x4d\x18", b"LZIP\x01", b"\x1f\x9d", b"\x89LZO\0\r\n", b"7z\xbc\xaf\x27\x1c", b"\xff\x06\0\0sNaPpY"]
            .iter().any(|magic| t.starts_with(magic));
    PARQUET: "parquet", "a Parquet file",
        "give the trace directory that it belongs to",
        |t| t.starts_with(b"PAR1");
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').take(200)
}

fn has(text: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(text, what).is_some()
}

fn has_line(text: &[u8], is: impl Fn(&[u8]) -> bool) -> bool {
    lines(text).any(is)
}

/// One of the first lines has all these words.
fn has_words(text: &[u8], words: &[&[u8]]) -> bool {
    has_line(text, |line| words.iter().all(|w| line.split(|b| matches!(b, b' ' | b'\t' | b'\r')).any(|x| x == *w)))
}

fn is_ltrace(text: &[u8]) -> bool {
    let library: [&[u8]; 10] = [
        b"strlen(",
        b"strcmp(",
        b"strncmp(",
        b"printf(",
        b"malloc(",
        b"fgets(",
        b"strcpy(",
        b"strtok(",
        b"puts(",
        b"memcpy(",
    ];
    lines(text).filter(|l| library.iter().any(|c| has(&l[..l.len().min(48)], c) && !has(l, b"\", "))).count() >= 3
}

/// `read(3,"...",5) = 5 (0x5)`, with a tab before the equals sign.
fn is_truss(line: &[u8]) -> bool {
    let Some(equals) = memchr::memmem::rfind(line, b" = ") else { return false };
    let tail = line[equals + 3..].trim_ascii();
    tail.ends_with(b")") && has(tail, b" (0x") && tail.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_and_the_real_ones_are_not_taken_for_them() {
        let cases: &[(&str, &[u8])] = &[
            ("vmstat-bsd", b" r b w avm fre flt re pi po fr sr ad0 in sy cs us sy id\n"),
            ("vmstat-aix", b" r  b   avm   fre  re  pi  po  fr   sr  cy  in   sy  cs us sy id wa\n"),
            ("vmstat-solaris", b" r b w   swap  free  re  mf pi po fr de sr m0   in   sy   cs us sy id\n"),
            ("proc-vmstat", b"nr_free_pages 12\n"),
            ("iostat", b"avg-cpu:  %user\n"),
            (
                "ltrace",
                b"strlen(\"a\") = 1\nstrcmp(\"a\", \"b\") = 1\nputs(\"x\") = 2\nstrlen(\"b\") = 1\nmalloc(5) = 0x1\n",
            ),
            ("systemtap-syscalls", b"Fri Apr 21 04:50:39 2017.564717 @8050a46[1155] read(6, 0x1, 1) = 1\n"),
            ("gvisor-strace", b"[ 23: 23] cmake X unlink(0x7f ) = 0 (0x0) errno=2 (x) (667ns)\n"),
            ("truss", b"read(3,\"a\",5)\t\t = 5 (0x5)\nclose(3)\t\t = 0 (0x0)\n"),
            ("perf-trace", b"     0.017 ( 0.004 ms): ls/12 read(fd: 3) = 1\n"),
            ("bpftrace-biosnoop", b"TIME(ms)     MAJOR MINOR   COMM            PID      LAT(ms)\n"),
            ("bio-summary", b"PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n"),
            ("trace-dat", b"\x17\x08\x44tracing6"),
            ("perf-data", b"PERFILE2"),
            ("packed", b"\x04\x22\x4d\x18\x40\x40"),
            ("parquet", b"PAR1"),
        ];
        for (id, text) in cases {
            let found: Vec<_> = ALL.iter().filter(|f| (f.is)(text)).map(|f| f.id).collect();
            assert_eq!(found, [*id]);
        }
        let real: [&[u8]; 4] = [
            b"7 1.5 read(3, \"\", 5) = 5 <0.000001>\n7 1.5 close(3) = 0 <0.000001>\n",
            b"8,0 1 1 0.1 5 P N [a]\n",
            b" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n",
            b"write(1, \"printf(\\\"strlen(3)\\\", \\\"puts(\", 5) = 5\n",
        ];
        for text in real {
            assert!(ALL.iter().all(|f| !(f.is)(text)), "{}", String::from_utf8_lossy(text));
        }
    }
}
