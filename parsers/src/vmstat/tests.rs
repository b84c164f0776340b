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
    let page = row.repeat(21);
    let (rows, diag) = parse(&format!("{NEW}{page}{NEW}{row}Thu Feb 11 10:00:01 IST 2016\n\n{NEW}{row}{row}"));
    let runs: Vec<_> = rows.vmstats[20..].iter().map(|r| (r.run, r.since_boot)).collect();
    assert_eq!(runs, [(0, false), (0, false), (1, true), (1, false)]);
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
        (format!("{NEW} 0 0 0 - 2 3 0 0 0 0 0 0 0 0 99 1 0\n"), "vmstat-bad-number"),
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

/// Logs of vmstat in its modes, each with the numbers of three rows of today's widths.
fn modes() -> Vec<String> {
    let plain = |zone: &str, stamp: fn(usize) -> String, ends: (&str, &str)| {
        let mut text = format!(
            "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----{}\n \
             r  b   swpd   free {} {}   si   so    bi    bo   in   cs us sy id wa st{zone}\n",
            if zone.is_empty() { "" } else { " -----timestamp-----" },
            ends.0,
            ends.1
        );
        for i in 0..3 {
            text += &format!(
                " 8  {i}      0 4285828 156948 16860920    0    0  1640  540{i}  426  695 8{i}  7 11  0  0{}\n",
                stamp(i)
            );
        }
        text
    };
    let wide = |zone: &str, stamp: fn(usize) -> String| {
        let mut text = format!(
            "--procs-- -----------------------memory---------------------- ---swap-- -----io---- -system-- ----------cpu----------\n   \
             r    b         swpd         free         buff        cache   si   so    bi    bo   in   cs  us  sy  id  wa  st  gu{zone}\n"
        );
        for i in 0..3 {
            text += &format!(
                "  12    {i}            0      2663708       120552     18791484    0    0  1627  525{i}  428  727  8{i}   7  10   0   0   0{}\n",
                stamp(i)
            );
        }
        text
    };
    let stamp: fn(usize) -> String = |i| format!(" 2026-11-30 23:47:2{i}");
    let none: fn(usize) -> String = |_| String::new();
    vec![
        plain("", none, ("  buff", " cache")),
        plain("", none, (" inact", "active")),
        plain("                 UTC", stamp, ("  buff", " cache")),
        wide("", none),
        wide("                 UTC", stamp),
    ]
}

/// Lines broken at blanks as mail programs do; `flowed` leaves the blank at the end of the first piece.
fn wrapped(text: &str, width: usize, flowed: bool) -> String {
    let mut out = String::new();
    for mut line in text.lines() {
        while line.len() > width {
            let Some(at) = line[..=width].rfind(' ').filter(|at| !line[..*at].trim().is_empty()) else { break };
            out += &line[..at + usize::from(flowed)];
            out.push('\n');
            line = &line[at + 1..];
        }
        out += line;
        out.push('\n');
    }
    out
}

#[test]
fn logs_wrapped_at_any_width_are_whole_again() {
    for text in modes() {
        let columns = |rows: Rows| -> Vec<_> { rows.vmstats.iter().map(|r| VmstatRow { line: 0, ..*r }).collect() };
        let expected = columns(parse(&text).0);
        assert_eq!(expected.len(), 3);
        let widest = text.lines().map(str::len).max().unwrap_or(0);
        for (width, flowed) in (28..widest).flat_map(|w| [(w, false), (w, true)]) {
            let broken = wrapped(&text, width, flowed);
            let (rows, diag) = parse(&broken);
            assert_eq!(diag.rejected(), 0, "{width}\n{broken}{:?}", diag.rejects());
            assert_eq!(columns(rows), expected, "{width}\n{broken}");
        }
    }
}

#[test]
fn halves_of_two_rows_are_not_joined() {
    let (first, second) = (" 8 0 0 4285828 156948 16860920 0 0 1640 5402 426 695 81 7", " 11 0 0");
    let bad = " 8 0 0 4285828 156948 16860920 0 0 1640 x 426 695 81 7";
    let (rows, diag) = parse(&format!("{NEW}{bad}\n{second}\n{first}\n{second}\n{second}\n{first}\n{second}\n"));
    let got: Vec<_> = rows.vmstats.iter().map(|r| (r.free_kib, r.line, r.since_boot)).collect();
    assert_eq!(got, [(Some(4_285_828), 5, false), (Some(4_285_828), 8, false)]);
    let reasons: Vec<_> = diag.rejects().iter().map(|r| (r.reason.code, r.count)).collect();
    assert_eq!(reasons, [("vmstat-bad-number", 2), ("vmstat-short-row", 1)]);
}

#[test]
fn runs_that_were_appended_begin_with_averages_since_boot() {
    let run = |rows: &[&str]| NEW.to_owned() + &rows.iter().map(|r| format!(" {r}\n")).collect::<String>();
    let since_boot = "12 0 0 2663708 120552 18791484 0 0 1627 5251 428 727 82 7 10 0 0";
    let (a, b) = (
        "11 0 0 2663708 120552 18791484 0 0 24 116 813 1484 91 9 0 0 0",
        "11 0 0 2663708 120552 18791484 0 0 32 184 717 1440 88 11 0 0 1",
    );
    let marks = |text: &str| {
        let (rows, diag) = parse(text);
        assert_eq!(diag.rejected(), 0);
        let marks: Vec<_> = rows.vmstats.iter().map(|r| r.since_boot).collect();
        let warned: Vec<_> = diag.warnings().iter().map(|w| (w.code, w.count)).collect();
        (marks, rows.vmstats.last().map(|r| r.run), warned)
    };
    let short = run(&[since_boot, a, b]);
    let once = [true, false, false];
    assert_eq!(marks(&short.repeat(3)), (once.repeat(3), Some(2), vec![("vmstat-restart", 2)]));
    // As many rows as a terminal may have: the averages tell.
    let page: Vec<_> = std::iter::once(since_boot).chain((0..20).map(|i| if i % 2 == 0 { a } else { b })).collect();
    let (got, runs, _) = marks(&run(&page).repeat(2));
    assert_eq!((got[0], got[21], got.iter().filter(|f| **f).count(), runs), (true, true, 2, Some(1)));
    // The same in one run: the header comes again and nothing else.
    let more: Vec<_> = page.iter().map(|r| if *r == since_boot { a } else { *r }).collect();
    assert_eq!(marks(&format!("{}{}", run(&page), run(&more))).1, Some(0));
}

#[test]
fn a_clock_that_steps_back_is_warned_of_with_its_size() {
    let row = |time: &str| format!(" 0 0 0 1 2 3 0 0 0 0 0 0 0 0 99 1 0 0 2026-11-30 {time}\n");
    let (rows, diag) =
        parse(&[STAMPED.into(), row("02:59:58"), row("02:59:59"), row("02:00:00"), row("02:00:01")].concat());
    assert_eq!(rows.vmstats.iter().filter(|r| r.since_boot).count(), 1, "a step alone begins no run");
    let warning = &diag.warnings()[0];
    assert_eq!((warning.code, warning.count, warning.first_line), ("clock-step", 1, Some(4)));
    assert!(warning.text.contains("3599000000000 ns"), "{}", warning.text);
    let (rows, diag) =
        parse(&[STAMPED.into(), row("02:59:58"), row("02:59:59"), STAMPED.into(), row("02:00:00")].concat());
    assert_eq!(rows.vmstats[2].run, 1);
    let codes: Vec<_> = diag.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, ["clock-step", "vmstat-restart"]);
}

#[test]
fn a_row_with_a_bad_word_is_lost_and_the_run_goes_on() {
    let row = " 1 0 0 7050000 8 12175000 0 0 10 20 100 200 1 2 97 0 0\n";
    for bad in ["10.5", "-", "7,050,000", "1e3", "nan"] {
        let bad = row.replacen(" 10 ", &format!(" {bad} "), 1);
        let options = ParseOptions { interval_ns: Some(5), ..ParseOptions::default() };
        let (rows, diag) = parse_with(&options, &format!("{NEW}{row}{bad}{row}"));
        let got: Vec<_> = rows.vmstats.iter().map(|r| (r.run, r.since_boot, r.time_ns)).collect();
        assert_eq!(got, [(0, true, Some(0)), (0, false, Some(10))], "{bad}");
        assert_eq!((diag.rejected(), diag.rejects()[0].reason.code), (1, "vmstat-bad-number"));
        let (rows, _) = parse(&format!("{NEW}{bad}{row}"));
        assert!(!rows.vmstats[0].since_boot, "the row since boot was lost");
    }
}

#[test]
fn the_end_of_a_run_on_a_terminal_is_a_note() {
    let row = " 1 0 0 7050000 8 12175000 0 0 10 20 100 200 1 2 97 0 0\n";
    let (rows, diag) =
        parse(&format!("[root@host ~]# vmstat 5\n{NEW}{row}{row}^C\n[root@host ~]#\n{NEW}{row}$ exit\n"));
    assert_eq!((rows.vmstats.len(), rows.vmstats[2].since_boot, diag.rejected()), (3, true, 0));
    assert_eq!(diag.note_count("terminal"), 3);
}

#[test]
fn times_before_the_lines_are_the_rows_times() {
    let row = " 1 0 0 7050000 8 12175000 0 0 10 20 100 200 1 2 97 0 0\n";
    let log = |before: &dyn Fn(usize) -> String| -> String {
        let lines = format!("{NEW}{row}{row}");
        lines.lines().enumerate().map(|(i, l)| format!("{} {l}\n", before(i))).collect()
    };
    let times = |text: &str| {
        let score = Vmstat.sniff(Head { bytes: text.as_bytes(), complete: true });
        let (rows, diag) = parse(text);
        assert_eq!((score, diag.rejected()), (100, 0), "{text}");
        (rows.vmstats.iter().map(|r| r.time_ns).collect::<Vec<_>>(), diag.options()["clock"].clone())
    };
    let second = 1_000_000_000;
    let (got, clock) = times(&log(&|i| format!("2026-11-30T10:50:5{i}Z")));
    assert_eq!((got, clock.as_str()), (vec![Some(1_796_035_852 * second), Some(1_796_035_853 * second)], "epoch"));
    let (got, clock) = times(&log(&|i| format!("Nov 30 00:00:0{i} host vmstat[123]:")));
    assert_eq!((got, clock.as_str()), (vec![Some(2 * second), Some(3 * second)], "time-of-day"));
    let (got, _) = times(&log(&|i| format!("[00:00:0{i}]")));
    assert_eq!(got, [Some(2 * second), Some(3 * second)]);
}
