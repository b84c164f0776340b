//! Memory stays small however many different files, devices, threads and calls a log has, and no row is lost for it.
//!
//! One test of its own process: the peak of a process is that of all its tests.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;

use kreplay_parsers::survey::{MAX_DISTINCT, Survey};
use kreplay_parsers::{Diagnostics, ParseOptions, by_id};

/// Different values of each kind: many more than are told apart.
const VALUES: u64 = 600_000;
/// What the whole process may have resident at its peak, KiB.
const LIMIT_KIB: u64 = 200 * 1024;

/// Lines of a log of this format, one for each value, fed in pieces.
fn survey(format: &str, first: &str, line: impl Fn(&mut String, u64)) -> (Survey, Diagnostics) {
    let mut parser = by_id(format).unwrap().parser(&ParseOptions::default());
    let (mut survey, mut diag) = (Survey::default(), Diagnostics::new());
    let mut text = first.to_owned();
    for i in 0..VALUES {
        line(&mut text, i);
        if text.len() > 1 << 16 || i + 1 == VALUES {
            parser.feed(text.as_bytes(), &mut survey, &mut diag);
            text.clear();
        }
    }
    parser.finish(&mut survey, &mut diag);
    assert!(diag.adds_up() && diag.rejected() == 0, "{format}: {:?}", diag.rejects());
    (survey, diag)
}

/// Peak of resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn many_different_values_stay_below_200_mib_and_lose_no_row() {
    let others = VALUES - MAX_DISTINCT as u64;

    let (s, _) = survey("fio-iolog", "fio version 3 iolog\n", |t, i| {
        let _ = writeln!(t, "{i} /srv/data/directory-{}/file-number-{i} read 0 4096", i % 977);
    });
    assert_eq!((s.count("block"), s.count("file"), s.others().get("devices")), (VALUES, VALUES, Some(&others)));
    assert!(s.remarks()[0].contains("different devices"), "{:?}", s.remarks());
    assert!(s.to_json().to_string().len() < 1 << 20);

    let (s, _) = survey("blkparse", "", |t, i| {
        let _ = writeln!(t, "{},{} 1 {i} 0.{i:09} {i} Q R 64 + 8 [p{i}]", i >> 8, i & 255);
    });
    assert_eq!((s.count("block"), s.others().get("processes")), (VALUES, Some(&others)));
    assert!(s.to_json().to_string().len() < 1 << 20);

    let (s, _) = survey("strace", "", |t, i| {
        let _ = writeln!(t, "{i} 1700000000.000001 call_{i}(1) = 0");
    });
    assert_eq!((s.count("syscall"), s.others().get("calls")), (VALUES, Some(&others)));
    assert_eq!(s.count("process"), VALUES);

    let (s, diag) = survey("strace", "", |t, i| {
        let _ = writeln!(t, "{i} 1700000000.000001 read(3</srv/data/a-file-of-some-length>,  <unfinished ...>");
    });
    assert_eq!((s.count("syscall"), s.unfinished_calls, s.count("process")), (VALUES, VALUES, VALUES));
    assert!(diag.warnings().iter().any(|w| w.code == "strace-many-threads"), "{:?}", diag.warnings());

    let peak = peak_kib();
    assert!(peak < LIMIT_KIB, "{peak} KiB");
}
