//! The proof on a bundled trace, on all recorded ones, and on lines written by hand.

use std::path::PathBuf;

use super::*;

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn the_bundled_trace_reaches_the_bars_and_broken_rules_do_not() {
    let report =
        run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traced-vm"), &never()).expect("readable");
    assert!(report.holds(), "{report:#?}");
    let of = |name: &str| report.runs[0].scores.iter().find(|s| s.name == name).map_or(0, |s| s.of);
    assert!(of("scan order") > 900 && of("scan outcomes") > 900, "{report:#?}");
    assert_eq!(of("free run: evict, rank within 32"), 896);
    assert!(report.runs[0].broken.iter().filter(|b| b.noticed).count() >= 4, "{:?}", report.runs[0].broken);
}

/// Where `KREPLAY_SHARED` names the folder that has them.
#[test]
fn recorded_traces_reach_the_bars_and_broken_rules_do_not() {
    let dir = std::env::var_os("KREPLAY_SHARED").map(|d| PathBuf::from(d).join("oracle/linux24"));
    let Some(dir) = dir.filter(|d| d.is_dir()) else { return };
    let report = run(&dir, &never()).expect("readable");
    assert!(report.holds(), "{report:#?}");
    assert!(report.runs.len() >= 9);
}

#[test]
fn damaged_files_say_where() {
    let wrong = |text: &str| events::parse(FILE, text, &[], &[], 8).expect_err("damaged");
    assert!(wrong("").starts_with("vm_events.csv: empty"));
    assert!(wrong("t,pid\n").starts_with("vm_events.csv:1: the header is"));
    let line = |l: &str| wrong(&format!("t_us,pid,event,ino,index,pfn\n{l}\n"));
    assert_eq!(line("1,2,lru_add,6"), "vm_events.csv:2: the line ends early");
    assert_eq!(line("1,2,lru_add,six,0,1"), "vm_events.csv:2: \"six\" is no number");
    assert_eq!(line("1,2,moved,6,0,1"), "vm_events.csv:2: event \"moved\" is not known");
    assert_eq!(line("x,2,lru_add,6,0,1"), "vm_events.csv:2: time \"x\" is no number that fits");
}

#[test]
fn a_page_is_mapped_until_it_is_unmapped_for_the_last_time() {
    let text = "t_us,pid,event,ino,index,pfn\n1,4,lru_add,anon,0,77\n2,4,unmap,anon,0,77\n3,4,writepage_launder,swap,256,77\n\
                4,4,evict,swap,256,77\n5,4,lru_add,12,0,77\n6,4,unmap,anon,0,77\n";
    let log = events::parse(FILE, text, &[], &[], 8).expect("good");
    assert_eq!(log.pages.len(), 2, "a frame given away is another page's");
    assert!(log.pages[0].mapped && log.mapping[&1] == (0, false));
    assert_eq!((log.events[3].page, log.events[4].page), (0, 1));
}

#[test]
fn the_samplers_clock_is_told_by_the_passes_that_both_logs_show() {
    let log = "t_us,pid,event,ino,index,pfn\n100,9,read_access,18,0,1\n110,9,read_access,18,1,2\n115,8,read_access,12,0,3\n\
               400,9,read_access,18,0,1\n410,9,read_access,18,1,2\n";
    assert_eq!(super::pass_ends(log, 50), [110, 410]);
    assert_eq!(super::pass_ends(log, 500), [410]);
    let pairs = [(10, 110), (310, 410), (610, 713)];
    assert_eq!(super::translated(10, &pairs), 110);
    assert_eq!(super::translated(460, &pairs), 561, "half way between 410 and 713");
    assert_eq!(super::translated(910, &pairs), 1016, "the last clock goes on");
    assert_eq!(super::translated(0, &pairs), 100);
    assert_eq!(super::time_of("1847952 hotpass n us 0", "hotpass"), Some(1_847_952));
    assert_eq!(super::time_of("2336115 bigstart 0", "hotpass"), None);
}
