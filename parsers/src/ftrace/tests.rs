use super::*;
use crate::rows::{Block, Rows};

fn parse(text: &str) -> (Rows, Diagnostics) {
    let parsed = crate::parse_all(&Ftrace, &ParseOptions::default(), text.as_bytes());
    assert!(parsed.1.adds_up(), "{text}");
    parsed
}

fn row(action: &str, rwbs: &str) -> Block {
    Block {
        time_ns: 1_425_576_266_000,
        dev: Some(8 << 20),
        cpu: Some(1),
        action: action.into(),
        rwbs: rwbs.into(),
        pid: Some(123),
        line: 1,
        ..Block::default()
    }
}

#[test]
fn payloads() {
    let io = |action, rwbs, comm: &str| Block {
        sector_512: Some(64),
        len_bytes: Some(4096),
        comm: Some(comm.into()),
        ..row(action, rwbs)
    };
    let done = |action, rwbs, error| Block { error: Some(error), comm: None, ..io(action, rwbs, "") };
    let cases: Vec<(&str, Block)> = vec![
        ("block_bio_queue: 8,0 R 64 + 8 [dd]", io("Q", "R", "dd")),
        ("block_getrq: 8,0 WS 64 + 8 [a b]", io("G", "WS", "a b")),
        ("block_bio_backmerge: 8,0 WS 64 + 8 [dd]", io("M", "WS", "dd")),
        ("block_bio_frontmerge: 8,0 WS 64 + 8 [dd]", io("F", "WS", "dd")),
        ("block_bio_complete: 8,0 WS 64 + 8 [0]", done("C", "WS", 0)),
        ("block_rq_insert: 8,0 R 4096 () 64 + 8 [dd]", io("I", "R", "dd")),
        ("block_rq_issue: 8,0 R 0 () 64 + 8 [dd]", io("D", "R", "dd")),
        ("block_rq_issue: 8,0 WFSU 4096 () 64 + 8 none,0,0 [xfs_io]", io("D", "WFSU", "xfs_io")),
        (
            "block_rq_issue: 8,0 WS 4096 () 64 + 8 rt,4 [highpool[1]]",
            Block { text: Some("rt:4".into()), ..io("D", "WS", "highpool[1]") },
        ),
        (
            "block_rq_insert: 8,0 WS 4096 () 64 + 8 idle,0,7 [backup]",
            Block { text: Some("idle:7".into()), ..io("I", "WS", "backup") },
        ),
        ("block_rq_insert: 8,0 WS 4096 () 64 + 8 be,0,9 [odd]", io("I", "WS", "odd")),
        ("block_rq_complete: 8,0 WS () 64 + 8 be,0,4 [0]", done("C", "WS", 0)),
        ("block_rq_complete: 8,0 WS () 64 + 8 none,0,0 [0]", done("C", "WS", 0)),
        ("block_rq_complete: 8,0 WS () 64 + 8 [-5]", done("C", "WS", -5)),
        ("block_rq_requeue: 8,0 WS () 64 + 8 [0]", done("R", "WS", 0)),
        (
            "block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]",
            Block { sector_512: None, len_bytes: Some(0), ..done("C", "FF", 0) },
        ),
        ("block_plug: [dd]", Block { dev: None, comm: Some("dd".into()), ..row("P", "N") }),
        ("block_unplug: [dd] 3", Block { dev: None, comm: Some("dd".into()), unplugged: Some(3), ..row("U", "N") }),
        ("block_split: 8,0 R 64 / 72 [dd]", Block { len_bytes: None, from_sector_512: Some(72), ..io("X", "R", "dd") }),
        (
            "block_bio_remap: 8,0 WS 64 + 8 <- (8,1) 8",
            Block { comm: None, from_dev: Some(8 << 20 | 1), from_sector_512: Some(8), ..io("A", "WS", "") },
        ),
        (
            "block_rq_remap: 8,0 WS 64 + 8 <- (8,1) 8 1",
            Block { comm: None, from_dev: Some(8 << 20 | 1), from_sector_512: Some(8), ..io("A", "WS", "") },
        ),
        ("  8,0    Q   R 64 + 8 [dd]", io("Q", "R", "dd")),
    ];
    for (payload, expected) in cases {
        for front in
            ["dd-123   [001] d..1.  1425.576266: ", "  dd-123 (  99) [001] 1425.576266: ", "dd 123 [001] 1425.576266: "]
        {
            let (rows, diag) = parse(&format!("{front}{payload}\n"));
            assert_eq!(rows.blocks, std::slice::from_ref(&expected), "{front}{payload} {:?}", diag.rejects());
        }
    }
}

#[test]
fn fronts() {
    let pid = |front: &str| parse(&format!("{front} 1.5: block_plug: [x]\n")).0.blocks.first().map(|b| (b.pid, b.cpu));
    assert_eq!(pid("kworker/0:1H-1090    [000] ....."), Some((Some(1090), Some(0))));
    assert_eq!(pid("<...>-1297  [007]"), Some((Some(1297), Some(7))));
    assert_eq!(pid("a b [x]-9 [002] d...",), Some((Some(9), Some(2))));
    assert_eq!(pid("swapper     0 [000]"), Some((Some(0), Some(0))));
    assert_eq!(pid("fio  12/34 [003]"), Some((Some(34), Some(3))));
    let (rows, _) = parse("  dd 1 [000] 5.123456789:   block:block_plug: [x]\n");
    assert_eq!(rows.blocks[0].time_ns, 5_123_456_789);
    let (rows, diag) = parse("> block_bio_queue: 8,0 R 64 + 8 [dd]\n");
    assert_eq!((rows.blocks.len(), diag.warnings()[0].code), (1, "no-clock"));
}

#[test]
fn the_blk_tracer_in_its_shapes() {
    let lines = [
        "dd-123   [001] d..1.  1425.576266:   8,0    Q   R 64 + 8 [dd]",
        "dd-123   [001] d..1.  1425.576266:   8,0 /user.slice   Q   R 64 + 8 [dd]",
        "dd-123   [001] d..1.  1425.576266:   8,0 1,2d   Q   R 64 + 8 [dd]",
        "dd-123   [001]  1425.576266: blktrace:   8,0    Q   R 64 + 8 [dd]",
        "  8,0    1  1425.576266000   123  Q   R 64 + 8 [dd]",
    ];
    for line in lines {
        let (rows, diag) = parse(line);
        assert_eq!(rows.blocks.len(), 1, "{line}: {:?}", diag.rejects());
        let b = &rows.blocks[0];
        assert_eq!((b.time_ns, b.dev, b.cpu, b.pid), (1_425_576_266_000, Some(8 << 20), Some(1), Some(123)), "{line}");
        assert_eq!((b.action.as_str(), b.sector_512, b.comm.as_deref()), ("Q", Some(64), Some("dd")), "{line}");
    }
    // blkparse's own line has a sequence number before the time.
    assert_eq!(parse("  8,0    1        1  1425.576266000   123  Q   R 64 + 8 [dd]").1.rejected(), 1);
}

#[test]
fn losses_are_summed_up() {
    let warning = |text: &str| {
        let (_, diag) = parse(text);
        assert_eq!(diag.rejected(), 0);
        diag.warnings().iter().find(|w| w.code == "events-lost").map(|w| (w.first_line, w.text.clone()))
    };
    let text = "cpus=8\nCPU:7 [204600 EVENTS DROPPED]\nCPU:3 [LOST 5 EVENTS]\n";
    assert_eq!(warning(text), Some((Some(2), "204605 events were lost, at 2 places".into())));
    assert!(warning(&format!("{text}CPU:1 [LOST EVENTS]\n")).unwrap().1.starts_with("204605 or more"));
}

#[test]
fn events_wrapped_over_lines_are_joined_at_any_width() {
    let events = [
        "     kworker/0:1H-1090    [000] d..1.  1425.576266: block_rq_issue: 8,0 WFSU 4096 () 64 + 8 none,0,0 [kworker/0:1H]",
        "              dd-123      [001] d..1.  1425.576267: block_bio_queue: 8,0 R 67848 + 8 [my dd]",
        "          <idle>-0        [001] d..1.  1425.576268: block_rq_complete: 8,0 WS () 64 + 8 none,0,0 [0]",
        "              dd-123      [001] d..1.  1425.576269: ext4_mark_inode_dirty: dev 259,5 ino 12 caller something+0x3",
        "              dd-123      [001] d..1.  1425.576270: block_unplug: [dd] 3",
        "              dd-123      [001] d..1.  1425.576271: block_bio_remap: 8,0 WS 64 + 8 <- (8,1) 8",
    ];
    let rows_of = |text: &str| {
        let (rows, diag) = parse(text);
        let rows: Vec<Block> = rows.blocks.into_iter().map(|b| Block { line: 0, ..b }).collect();
        (rows, diag)
    };
    let (whole, _) = rows_of(&events.join("\n"));
    assert_eq!(whole.len(), 5);
    for width in 50..100 {
        let text: String = events.iter().map(|e| wrap(e, width)).collect();
        let (rows, diag) = rows_of(&text);
        assert_eq!(rows, whole, "{width}: {text}{:?}", diag.rejects());
        assert_eq!(diag.rejected(), 0, "{width}: {text}");
        let head = Head { bytes: text.as_bytes(), complete: true };
        assert_eq!(crate::registry::detect(head).map(|f| f.id()).ok(), Some("ftrace"), "{width}");
    }
}

/// As a mailer wraps a line: at the last blank before the width.
fn wrap(line: &str, width: usize) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while rest.len() > width {
        let Some(at) = rest[..width].rfind(' ').filter(|at| !rest[..*at].trim().is_empty()) else { break };
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = rest[at..].trim_start();
    }
    out + rest + "\n"
}

#[test]
fn a_line_that_nothing_completes_is_a_reject_of_its_own() {
    let text = "dd-1 [000] 1.5: block_bio_queue: 8,0 R 64 +\ndd-1 [000] 1.6: block_plug: [dd]\ndd-1 [000] 1.7: block_bio_queue: 8,0\n";
    let (rows, diag) = parse(text);
    assert_eq!((rows.blocks.len(), diag.rejected(), diag.rejects()[0].first_line), (1, 2, 1));
    assert!(diag.warnings().iter().any(|w| w.code == "plug-without-device"));
}

#[test]
fn overwritten_buffers_and_decimal_commas() {
    let text = "# entries-in-buffer/entries-written: 3/10   #P:2\n\
        dd-1 [000] 1.500000: block_plug: [dd]\ndd-1 [001] 2.250000: block_plug: [dd]\n\
        dd 1 [000] 3,000001: block:block_plug: [dd]\n";
    let (rows, diag) = parse(text);
    assert_eq!(rows.blocks[2].time_ns, 3_000_001_000);
    let warning = &diag.warnings()[0];
    assert_eq!(warning.code, "buffer-overwritten");
    assert!(
        warning.text.starts_with("7 events") && warning.text.contains("CPU 1 begins last, at 2.250000000 s"),
        "{}",
        warning.text
    );
    assert_eq!(diag.options()["decimal-sign"], "comma");
}

#[test]
fn what_is_no_block_event() {
    let cases = [
        ("# tracer: nop", "header"),
        ("", "blank"),
        (" => blk_start_request", "stack"),
        ("CPU:3 [LOST 123 EVENTS]", "lost-events"),
        ("CPU:3 [LOST EVENTS]", "lost-events"),
        ("CPU:7 [204600 EVENTS DROPPED]", "lost-events"),
        ("CPU:7 [EVENTS DROPPED]", "lost-events"),
        ("CPU 1 is empty", "header"),
        ("x-1 [001] 1.5: ext4_mark_inode_dirty: dev 259,5 ino 12", "other-event"),
        ("x-1 [001] 1.5: block_touch_buffer: 259,5 sector=135 size=4096", "accounting-event"),
        ("x-1 [001] 1.5: block_io_done: 8,16 R 0 () 98400 + 0 [swapper/2]", "accounting-event"),
    ];
    for (line, kind) in cases {
        assert_eq!(parse(&format!("{line}\n")).1.note_count(kind), 1, "{line}");
    }
    for line in [
        "hello",
        "x-1 [001] 1.5: block_rq_issue: 8,0 R 0 64 + 8 [dd]",
        "x-1 [001] 1.5: block_rq_complete: 8,0 R () 64 + 8 [dd]",
    ] {
        assert_eq!(parse(line).1.rejected(), 1, "{line}");
    }
}
