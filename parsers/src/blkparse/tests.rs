use super::*;
use crate::rows::Block;

const PREFIX: &str = "  8,0    1       19     2.000000123  4321  ";

fn parse(text: &str) -> (crate::rows::Rows, Diagnostics) {
    let parsed = crate::parse_all(&Blkparse, &ParseOptions::default(), text.as_bytes());
    assert!(parsed.1.adds_up(), "{text}");
    parsed
}

fn base(action: &str, rwbs: &str) -> Block {
    Block {
        time_ns: 2_000_000_123,
        dev: Some(8 << 20),
        cpu: Some(1),
        seq: Some(19),
        action: action.into(),
        rwbs: rwbs.into(),
        pid: Some(4321),
        line: 1,
        ..Block::default()
    }
}

#[test]
fn every_action() {
    let io = |action, rwbs, sector, sectors: i64, comm: &str| Block {
        sector_512: Some(sector),
        len_bytes: Some(sectors * 512),
        comm: Some(comm.into()),
        ..base(action, rwbs)
    };
    let done = |action, rwbs, sector, len_bytes, error| Block {
        sector_512: sector,
        len_bytes,
        error: Some(error),
        ..base(action, rwbs)
    };
    let cases: Vec<(&str, Block)> = vec![
        ("Q   R 67848 + 8 [wl]", io("Q", "R", 67848, 8, "wl")),
        ("Q  WS 1 + 8 [kworker/u8:0]", io("Q", "WS", 1, 8, "kworker/u8:0")),
        ("G RAM 1 + 2 [a b]", io("G", "RAM", 1, 2, "a b")),
        ("I FWFSM 1 + 8 [dmcrypt_write/2]", io("I", "FWFSM", 1, 8, "dmcrypt_write/2")),
        ("D   W 1 + 8 [x]y]", io("D", "W", 1, 8, "x]y")),
        ("D   W 1 + 8 [[x]", io("D", "W", 1, 8, "[x")),
        ("D   W 1 + 8 [(null)]", Block { comm: None, ..io("D", "W", 1, 8, "") }),
        ("D   W 1 + 8 [1234]", io("D", "W", 1, 8, "1234")),
        ("M  RA 1 + 32 [wl]", io("M", "RA", 1, 32, "wl")),
        ("F   W 331344 + 176 [kworker/u8:0]", io("F", "W", 331_344, 176, "kworker/u8:0")),
        ("S   W 5 + 8 [wl]", io("S", "W", 5, 8, "wl")),
        ("B   W 5 + 8 [wl]", io("B", "W", 5, 8, "wl")),
        ("D   W 1 + 8 (     512) [wl]", io("D", "W", 1, 8, "wl")),
        ("Q  FN [jbd2/sda-8]", Block { comm: Some("jbd2/sda-8".into()), ..base("Q", "FN") }),
        ("P   N [wl]", Block { comm: Some("wl".into()), ..base("P", "N") }),
        ("U   N [wl] 3", Block { comm: Some("wl".into()), unplugged: Some(3), ..base("U", "N") }),
        ("UT   N [swapper] 1", Block { comm: Some("swapper".into()), unplugged: Some(1), ..base("UT", "N") }),
        ("C   R 64 + 8 [0]", done("C", "R", Some(64), Some(4096), 0)),
        ("C   W 64 + 8 [-5]", done("C", "W", Some(64), Some(4096), -5)),
        ("C   W 64 + 8 [65531]", done("C", "W", Some(64), Some(4096), 65531)),
        ("C   W 64 + 8 (  120031) [0]", done("C", "W", Some(64), Some(4096), 0)),
        ("C  WS 64 [0]", done("C", "WS", Some(64), None, 0)),
        ("C   N [0]", done("C", "N", None, None, 0)),
        ("R   W 64 + 8 [0]", done("R", "W", Some(64), Some(4096), 0)),
        (
            "C ZAS 262144 + 8 [0] <262152>",
            Block { from_sector_512: Some(262_152), ..done("C", "ZAS", Some(262_144), Some(4096), 0) },
        ),
        (
            "D   R 36 (12 00 00 00 24 00 ..) [udevd]",
            Block {
                len_bytes: Some(36),
                comm: Some("udevd".into()),
                text: Some("12 00 00 00 24 00 ..".into()),
                ..base("D", "R")
            },
        ),
        ("D   R 4 [dmraid]", Block { len_bytes: Some(4), comm: Some("dmraid".into()), ..base("D", "R") }),
        ("C   R (12 00 ..) [0]", Block { text: Some("12 00 ..".into()), ..done("C", "R", None, None, 0) }),
        (
            "X   W 335872 / 336896 [kworker/u8:0]",
            Block {
                sector_512: Some(335_872),
                from_sector_512: Some(336_896),
                comm: Some("kworker/u8:0".into()),
                ..base("X", "W")
            },
        ),
        (
            "A   W 2048 + 8 <- (8,1) 0",
            Block {
                sector_512: Some(2048),
                len_bytes: Some(4096),
                from_dev: Some(8 << 20 | 1),
                from_sector_512: Some(0),
                ..base("A", "W")
            },
        ),
        ("m   N bfq [x] y", Block { text: Some("bfq [x] y".into()), ..base("m", "N") }),
        ("1,0  m   N cfq 1", Block { text: Some("cfq 1".into()), ..base("m", "N") }),
    ];
    for (tail, expected) in cases {
        let (rows, diag) = parse(&format!("{PREFIX}{tail}\n"));
        assert_eq!(rows.blocks, [expected], "{tail}: {:?}", diag.rejects());
    }
}

#[test]
fn the_quick_reader_gives_what_the_general_one_gives() {
    let tails = [
        "Q   R 67848 + 8 [wl]",
        "Q  WS 1 + 8 [a b]",
        "D   W 1 + 8 [x]y]",
        "D   W 1 + 8 [[x]",
        "D   W 1 + 8 [(null)]",
        "G FWFSM 1 + 0 []",
        "P   N [wl]",
        "P N [(null)]",
        "U   N [wl] 3",
        "UT  N [x] y] 1",
        "U N [a] x",
        "C   R 64 + 8 [0]",
        "C   W 64 + 8 [-5]",
        "C R 64 + 8 [1] [2]",
        "C   W 64 + 8 [x]",
        "C WS 64 [0]",
        "M RA 1 + 8 [\u{e4}]",
        "I W 1 - 8 [a]",
        "I W 1 + 8 [a] b",
        "Q R 18446744073709551615 + 8 [a]",
        "Q R 1 + 99999999999999999 [a]",
        "F W 1 +8 [a]",
        "Q r 1 + 8 [a]",
        "Q R 1 + 8 (12) [a]",
        "R W 1 + 8 [0]",
        "A W 1 + 8 <- (8,1) 0",
    ];
    let fronts = [
        PREFIX,
        "8,0 1 1 0.000000001 0 ",
        "8,0 1 1 1.5 7 ",
        "8,0,1 1 1 1.000000000 7 ",
        "8,1048576 1 1 0.000000001 7 ",
    ];
    for (front, tail) in fronts.iter().flat_map(|f| tails.iter().map(move |t| (f, t))) {
        // A blank at the end is enough for the quick reader to leave the line alone.
        let (quick, general) = (parse(&format!("{front}{tail}\n")).0, parse(&format!("{front}{tail} \n")).0);
        assert_eq!(quick.blocks, general.blocks, "{front}{tail}");
        assert_eq!(quick.rejects.len(), general.rejects.len(), "{front}{tail}");
    }
}

#[test]
fn rejects_name_the_column() {
    let cases = [
        ("hello world", "blkparse-not-an-event", 1),
        ("8,x 1 1 0.1 5 Q R 1 + 8 [a]", "blkparse-bad-field", 1),
        ("8,0 x 1 0.1 5 Q R 1 + 8 [a]", "blkparse-bad-field", 5),
        ("8,0 1 1 0 5 Q R 1 + 8 [a]", "blkparse-bad-field", 9),
        ("8,0 1 1 0.1 5 K R 1 + 8 [a]", "blkparse-bad-field", 15),
        ("8,0 1 1 0.1 5 Q r 1 + 8 [a]", "blkparse-bad-field", 17),
        ("8,0 1 1 0.1 5 Q", "blkparse-bad-field", 16),
        ("8,0 1 1 0.1 5 Q R 1 + 8", "blkparse-bad-tail", 24),
        ("8,0 1 1 0.1 5 Q R 1 + 8 [a", "blkparse-bad-tail", 27),
        ("8,0 1 1 0.1 5 C R 1 + 8 [a]", "blkparse-bad-tail", 26),
        ("8,0 1 1 0.1 5 I W 1 - 8 [a]", "blkparse-bad-tail", 21),
        ("8,0 1 1 0.1 5 A W 1 + 8 <- 8,0 4", "blkparse-bad-tail", 28),
        ("8,0 1 1 0.1 5 U N [a] x", "blkparse-bad-tail", 22),
        ("8,0 1 1 99999999999.1 5 U N [a] 1", "blkparse-bad-field", 9),
    ];
    for (text, reason, column) in cases {
        let (rows, _) = parse(text);
        let got = rows.rejects.first().map(|r| (r.reason.as_str(), r.column));
        assert_eq!(got, Some((reason, Some(column))), "{text}");
    }
}

#[test]
fn the_trailer_and_the_tool_are_no_events() {
    let text = "8,0 1 1 0.000000001 5 P N [a]\n\
        CPU0 (8,0):\n Reads Queued:          13,       52KiB\t Writes Queued:           0,        0KiB\n\
        \x20Read depth:             4\t Write depth:            0\n IO unplugs:             7\t Timer unplugs: 0\n\n\
        Total (8,0):\n Reads Completed: 1, 1KiB\n\nThroughput (R/W): 3KiB/s / 0KiB/s\n\
        Events (8,0): 30 entries\nSkips: 0 forward (0 -   0.0%)\nInput file x.blktrace.0 added\n\
        8,0 1 1 0.000000001 5 P N [a]\n Reads Queued: 1\n";
    let (rows, diag) = parse(text);
    assert_eq!(rows.blocks.len(), 2);
    assert_eq!((diag.note_count("trailer"), diag.note_count("tool-message")), (9, 1));
    assert_eq!(rows.rejects.len(), 1, "a summary line outside of a trailer");
}

#[test]
fn times_before_the_genesis_are_put_back() {
    let text = "259,0 1 1 0.000000000 5 P N [a]\n259,0 1 2 1266874889.709450585 5 P N [a]\n";
    let (rows, diag) = parse(text);
    assert_eq!(rows.blocks[1].time_ns, -101_031);
    let codes: Vec<_> = diag.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, ["time-wrapped", "time-backwards"]);
}

#[test]
fn a_second_run_in_the_text_is_pointed_out() {
    let run = "8,0 1 1 0.000000000 5 P N [a]\n8,0 1 2 0.5 5 P N [a]\n";
    let late = "8,0 1 1 0.1 5 P N [a]\n8,0 1 2 0.2 5 P N [a]\n";
    let runs = |text: &str| {
        let diag = parse(text).1;
        diag.warnings().iter().find(|w| w.code == "several-runs").map(|w| (w.count, w.first_line))
    };
    assert_eq!(runs(run), None);
    assert_eq!(runs(&format!("{run}{late}")), None, "a step back alone is one of the merge");
    assert_eq!(runs(&format!("{run}{run}")), Some((1, Some(3))));
    assert_eq!(runs(&format!("{run}CPU0 (8,0):\n IO unplugs: 7\n{late}")), Some((1, Some(5))));
}

#[test]
fn wrapped_events_are_joined() {
    let text = "8,0 1 1 0.1 5 D W 64 + 8 \n[kworker/18:1H]\n>> 8,0 1 2 0.2 5 A W 64 + 8 <- (9,127) =\n274432\n\
        8,0 1 3 0.3 5 D W 64 + 8\n8,0 1 4 0.4 5 P N [a]\n8,0 1 5 0.5 5 D W 64 + 8\n";
    let (rows, diag) = parse(text);
    let got: Vec<_> = rows.blocks.iter().map(|b| (b.action.as_str(), b.line, b.from_sector_512)).collect();
    assert_eq!(got, [("D", 1, None), ("A", 3, Some(274_432)), ("P", 6, None)]);
    assert_eq!((diag.note_count("continuation"), diag.rejected()), (2, 2));
}

#[test]
fn quotes_and_remarks_are_dropped() {
    let text = ">> 8,0 1 1 0.1 5 P N [a]\n8,0 1 1 0.1 5 C R 1 + 8 [0] <-- here\n[b] 8,0 1 1 0.1 5 Q FN [x]\t>> none\n\
        8,0 1 1 0.1 5 I WZS BEST 4 0 + 8 [a]\n8,0 1 1 0.1 5 Q ZAS N 64 + 8 [a]\n";
    let (rows, diag) = parse(text);
    assert_eq!(rows.blocks.len(), 5, "{:?}", diag.rejects());
    assert_eq!((rows.blocks[3].sector_512, rows.blocks[4].sector_512), (Some(0), Some(64)));
    assert_eq!(diag.warnings()[0].code, "annotated");
}

#[test]
fn elapsed_times_below_zero_are_no_latencies() {
    let line = |elapsed: &str| format!("{PREFIX}C   W 992 + 24 ({elapsed}) [0]\n");
    let (rows, diag) = parse(&line("18446744071823058088"));
    assert_eq!((rows.blocks.len(), rows.blocks[0].text.as_deref()), (1, None));
    let warning = &diag.warnings()[0];
    assert_eq!((warning.code, warning.text.contains("1886493528 ns below zero")), ("negative-latency", true));
    assert_eq!(parse(&line("     100")).1.warnings(), []);
}

#[test]
fn the_header_of_the_tracer_is_a_comment() {
    let (rows, diag) = parse(&format!("# tracer: blk\n#\n{PREFIX}P   N [wl]\n"));
    assert_eq!((rows.blocks.len(), diag.note_count("comment"), diag.rejected()), (1, 2, 0));
}
