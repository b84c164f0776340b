use super::*;
use crate::rows::Rows;

const OLD: &str = "   procs                      memory    swap          io     system         cpu\n \
                   r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy  id\n";
const NEW: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
                   r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";
const STAMPED: &str =
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu                 UTC\n";

fn parse(text: &str) -> (Rows, Diagnostics) {
    parse_with(&ParseOptions::default(), text)
}

fn parse_with(options: &ParseOptions, text: &str) -> (Rows, Diagnostics) {
    let (rows, diag) = crate::parse_all(&Vmstat, options, text.as_bytes());
    assert!(diag.adds_up(), "{text}: {diag:?}");
    (rows, diag)
}

#[test]
fn columns_follow_the_header() {
    let (rows, _) =
        parse(&format!("{OLD} 1  2  3      4     5     6      7   8   9    10    11   12    13  14  15  16\n"));
    let expected = VmstatRow {
        run: 0,
        since_boot: true,
        r: Some(1),
        b: Some(2),
        w: Some(3),
        swpd_kib: Some(4),
        free_kib: Some(5),
        buff_kib: Some(6),
        cache_kib: Some(7),
        si_kib_s: Some(8),
        so_kib_s: Some(9),
        bi_kib_s: Some(10),
        bo_kib_s: Some(11),
        in_s: Some(12),
        cs_s: Some(13),
        us_pct: Some(14),
        sy_pct: Some(15),
        id_pct: Some(16),
        line: 3,
        ..VmstatRow::default()
    };
    assert_eq!(rows.vmstats, [expected]);

    let (rows, _) = parse(&format!("{NEW} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"));
    let row = rows.vmstats[0];
    assert_eq!((row.w, row.swpd_kib, row.wa_pct, row.st_pct), (None, Some(3), Some(16), Some(17)));
}

#[test]
fn active_and_inactive_take_the_places_of_buff_and_cache() {
    let header = " r  b   swpd   free  inact active   si   so    bi    bo   in   cs us sy id wa\n";
    let (rows, _) = parse(&format!("{header} 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1\n"));
    let row = rows.vmstats[0];
    assert_eq!((row.inact_kib, row.active_kib, row.buff_kib, row.cache_kib), (Some(2), Some(3), None, None));
}

#[test]
fn a_change_of_columns_begins_a_run() {
    let other = " r  b   swpd   free  inact active   si   so    bi    bo   in   cs us sy id wa st\n";
    let row = " 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let (rows, _) = parse(&format!("{NEW}{row}{row}{other}{row}"));
    let runs: Vec<_> = rows.vmstats.iter().map(|r| (r.run, r.since_boot)).collect();
    assert_eq!(runs, [(0, true), (0, false), (1, true)]);
}

#[test]
fn a_repeated_header_does_not_begin_a_run_but_a_date_does() {
    let row = " 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let (rows, diag) = parse(&format!("{NEW}{row}{row}{NEW}{row}Thu Feb 11 10:00:01 IST 2016\n\n{NEW}{row}{row}"));
    let runs: Vec<_> = rows.vmstats.iter().map(|r| (r.run, r.since_boot)).collect();
    assert_eq!(runs, [(0, true), (0, false), (0, false), (1, true), (1, false)]);
    assert_eq!((diag.note_count("header"), diag.note_count("banner"), diag.note_count("date")), (3, 3, 1));
    assert_eq!(diag.options()["runs"], "2");
}

#[test]
fn stamps_give_the_time() {
    let text = format!("{STAMPED} 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 0 2026-11-30 10:50:55\n");
    let (rows, diag) = parse(&text);
    assert_eq!(rows.vmstats[0].time_ns, Some(1_796_035_855_000_000_000));
    assert_eq!((diag.options()["clock"].as_str(), diag.options()["zone"].as_str()), ("epoch", "UTC"));

    let (rows, _) = parse(&text.replace("UTC", "CET"));
    assert_eq!(rows.vmstats[0].time_ns, Some(1_796_032_255_000_000_000));

    let (_, diag) = parse(&text.replace("UTC", "IST"));
    assert_eq!(diag.warnings()[0].code, "zone-unknown");
    let options = ParseOptions { utc_offset_s: Some(19_800), ..ParseOptions::default() };
    let (rows, diag) = parse_with(&options, &text.replace("UTC", "IST"));
    assert_eq!(rows.vmstats[0].time_ns, Some(1_796_035_855_000_000_000 - 19_800_000_000_000));
    assert_eq!(diag.warnings(), []);

    let (rows, _) = parse(&text.replace("10:50:55", "10:50:55 UTC"));
    assert_eq!(rows.vmstats.len(), 1);
}

#[test]
fn without_stamps_the_interval_is_the_users() {
    let row = " 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let text = format!("{NEW}{row}{row}");
    assert_eq!(parse(&text).0.vmstats[1].time_ns, None);
    let options = ParseOptions { interval_ns: Some(1_000_000_000), start_ns: Some(5), ..ParseOptions::default() };
    let times: Vec<_> = parse_with(&options, &text).0.vmstats.iter().map(|r| r.time_ns).collect();
    assert_eq!(times, [Some(5), Some(1_000_000_005)]);
}

#[test]
fn memory_units_are_the_users_too() {
    let options = ParseOptions { memory_unit_bytes: Some(1_000_000), ..ParseOptions::default() };
    let (rows, _) = parse_with(&options, &format!("{NEW} 0 0 0 1024 2 3 0 1024 77 0 0 0 0 0 99 1 0\n"));
    let row = rows.vmstats[0];
    assert_eq!((row.free_kib, row.so_kib_s, row.bi_kib_s), (Some(1_000_000), Some(1_000_000), Some(77)));
}

#[test]
fn wrapped_rows_and_headers_are_joined() {
    let text = "   procs                      memory    swap          io     system\ncpu\n \
                r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy\nid\n \
                1  2  3  4  5  6  7  8  9  10  11  12  13  14\n15  16\n\
                1  2  3  4  5  6  7  8  9  10  11  12  13  14  15\n  17\n";
    let (rows, diag) = parse(text);
    let ids: Vec<_> = rows.vmstats.iter().map(|r| (r.id_pct, r.line, r.since_boot)).collect();
    assert_eq!(ids, [(Some(16), 5, true), (Some(17), 7, false)]);
    assert_eq!((diag.note_count("header"), diag.note_count("continuation"), diag.rejected()), (1, 3, 0));
}

#[test]
fn widths_mean_nothing() {
    let text = format!("{NEW}1441 0 0 12615398208 1 2 0 0 0 0 1234567 7654321 1 1 98 0 0");
    let (rows, _) = parse(&text);
    assert_eq!((rows.vmstats[0].free_kib, rows.vmstats[0].cs_s), (Some(12_615_398_208), Some(7_654_321)));
}

#[test]
fn what_is_no_row_is_a_reject() {
    let row = " 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let cases = [
        (row.to_owned(), "vmstat-no-header"),
        (format!("{NEW} 0 0 0 1 2 3\n{row}"), "vmstat-short-row"),
        (format!("{NEW} 0 0 0 1 2 3"), "vmstat-short-row"),
        (format!("{NEW} 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 5\n"), "vmstat-short-row"),
        (format!("{NEW}hello\n"), "vmstat-not-a-row"),
        (format!("{NEW} 0 0 0 - 2 3 0 0 0 0 0 0 0 0 99 1 0\n"), "vmstat-not-a-row"),
        (format!("{STAMPED} 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 0\n"), "vmstat-bad-stamp"),
        (format!("{STAMPED} 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 0 2026-11-31 10:00:00\n"), "vmstat-bad-stamp"),
    ];
    for (text, reason) in cases {
        let (rows, _) = parse(&text);
        assert_eq!(rows.rejects.iter().map(|r| r.reason.as_str()).collect::<Vec<_>>(), [reason], "{text}");
    }
}

#[test]
fn quoted_logs_are_read() {
    let (rows, _) =
        parse(&format!("> {}> 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n", NEW.replace('\n', "\n> ").trim_end_matches("> ")));
    assert_eq!(rows.vmstats.len(), 1);
}

#[test]
fn reset_counters_begin_a_run() {
    let row = " 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let (rows, diag) = parse(&format!("{NEW}{row}{row} 1 0 0 1 2 3 0 -129 -36591 0 0 0 0 0 99 1 0\n{row}"));
    let runs: Vec<_> = rows.vmstats.iter().map(|r| (r.run, r.since_boot, r.bi_kib_s)).collect();
    assert_eq!(runs, [(0, true, Some(0)), (0, false, Some(0)), (1, true, None), (1, false, Some(0))]);
    assert_eq!(diag.warnings()[0].code, "vmstat-negative");
}

#[test]
fn command_lines_say_what_the_rows_do_not() {
    let row = " 0 0 0 1024 2 3 0 0 0 0 0 0 0 0 99 1 0\n";
    let (rows, diag) = parse(&format!("# vmstat -y -S M 5\n{NEW}{row}{row}"));
    let got: Vec<_> = rows.vmstats.iter().map(|r| (r.time_ns, r.since_boot, r.free_kib)).collect();
    assert_eq!(got, [(Some(0), false, Some(1 << 20)), (Some(5_000_000_000), false, Some(1 << 20))]);
    assert_eq!((diag.note_count("command"), diag.rejected()), (1, 0));
}

#[test]
fn prefixes_of_tools_are_dropped() {
    let text: String = NEW.lines().enumerate().map(|(i, l)| format!("#  {} {l}\n", i + 1)).collect();
    let (rows, diag) = parse(&format!("{text}#  3  0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n"));
    assert_eq!((rows.vmstats.len(), diag.rejected()), (1, 0));
    let header = NEW.lines().nth(1).unwrap();
    let text = format!(
        "stress-ng: info:  [30142] vmstat: {header}\nstress-ng: info:  [30142] vmstat: 1 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0\n"
    );
    assert_eq!(parse(&text).0.vmstats.len(), 1);
}

#[test]
fn an_error_instead_of_rows_is_a_warning() {
    let (rows, diag) = parse(&format!("{NEW}vmstat: Bad pgpgin in /proc/vmstat:\n"));
    assert_eq!((rows.vmstats.len(), diag.warnings()[0].code), (0, "vmstat-error"));
}
