use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::event::{BlockRow, CounterRow, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow};

/// What the rows of a load say, in the shape that the checks need.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<String, u64>,
    read_bytes: i64,
    written_bytes: i64,
    touches: i64,
    marks: Vec<String>,
    tasks: BTreeMap<i64, (bool, Option<i64>)>,
    sizes: Vec<i64>,
    files: BTreeSet<String>,
    last_line: i64,
    /// End of each task's last row.
    ends: BTreeMap<i64, i64>,
    gaps: u64,
    messages: i64,
}

impl Seen {
    fn row(&mut self, tid: i64, time_ns: i64, dur_ns: i64, line: i64) {
        assert_eq!(line, self.last_line + 1, "lines count rows");
        self.last_line = line;
        if let Some(end) = self.ends.insert(tid, time_ns + dur_ns) {
            self.gaps += u64::from(end != time_ns);
        }
    }
}

impl EventSink for Seen {
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        self.row(row.tid, row.time_ns, row.dur_ns.unwrap(), row.line);
        *self.calls.entry(row.call.to_owned()).or_default() += 1;
        match row.call {
            "read" => self.read_bytes += row.ret.unwrap(),
            "write" => {
                self.written_bytes += row.ret.unwrap();
                self.sizes.push(row.ret.unwrap());
            }
            "x-mark" => self.marks.push(row.path.unwrap().to_owned()),
            "x-link" => self.messages += row.len_bytes.unwrap(),
            _ => {}
        }
    }
    fn fault(&mut self, row: &FaultRow) {
        self.row(row.tid, row.time_ns, script::STEP_NS, row.line);
        self.touches += row.count;
    }
    fn process(&mut self, row: &ProcessRow<'_>) {
        let new = self.tasks.insert(row.tid, (row.background, row.repeat_from_line)).is_none();
        assert!(new, "each task once");
    }
    fn counter(&mut self, _: &CounterRow<'_>) {}
    fn file(&mut self, row: &FileRow<'_>) {
        self.files.insert(row.path.to_owned());
    }
    fn block(&mut self, _: &BlockRow<'_>) {}
    fn vmstat(&mut self, _: &VmstatRow) {}
    fn reject(&mut self, _: &RejectRow<'_>) {}
}

fn seen(name: &str, settings: &[&str]) -> Seen {
    let (load, params) = find(name, settings).unwrap();
    let mut seen = Seen::default();
    let made = load.generate(&params, &mut seen);
    assert_eq!(made.rows.cast_signed(), seen.last_line);
    assert_eq!(seen.gaps, 0, "{name}: think times are zero, computing is a call");
    let ended: BTreeSet<i64> = seen.ends.keys().copied().collect();
    let declared: BTreeSet<i64> = seen.tasks.keys().copied().collect();
    assert_eq!(ended, declared, "{name}: every task is declared");
    for (background, repeat) in seen.tasks.values() {
        assert!(repeat.is_none() || *background, "{name}: what never ends is in the background");
    }
    assert_eq!(seen.marks.first().unwrap(), "start", "{name}");
    // Where nobody waits for the clients, each marks its own end.
    let marked = |m: &String| m == "workload" || m.starts_with("client done ");
    assert!(seen.marks.iter().any(marked), "{name}: the end is marked");
    seen
}

#[test]
fn every_load_keeps_the_conventions() {
    for load in LOADS {
        seen(load.name, &[]);
    }
    for preset in PRESETS {
        assert!(find::<&str>(preset.name, &[]).is_ok(), "{}", preset.name);
    }
}

#[test]
fn base_reads_and_writes_what_it_says() {
    let s = seen("base", &[]);
    assert_eq!((s.read_bytes, s.written_bytes), (64 << 20, 32 << 20));
    assert_eq!(s.marks[1..6], ["read16 0", "read16 1", "write32", "write32+fsync", "reread32"]);
    assert_eq!(s.calls["fsync"], 1);
}

#[test]
fn the_hot_reader_of_seqhot_never_ends_and_the_other_waits_for_it() {
    let s = seen("seqhot512", &["hot_mib=4", "big_mib=32"]);
    assert_eq!(s.read_bytes - 1, (4 * 4 + 32) << 20, "four passes are spelled out, the last one repeats");
    assert_eq!(s.calls["read"], 4 * 1024 + 65_536 + 1);
    assert_eq!(s.marks.iter().filter(|m| *m == "hotpass").count(), 4);
    assert!(s.tasks.values().any(|t| t.0 && t.1.is_some()));
    assert!(s.marks.contains(&"bigprog 16".to_owned()));
}

#[test]
fn untar_draws_the_documented_sizes() {
    let s = seen("untar", &["directories=1", "files=3"]);
    // 12345 x 1103515245 + 12345 mod 2^32 = 3554416254; / 256 = 13884438; mod 24000 = 12438. And so on.
    let mut r = 12_345_u64;
    let mut expected = Vec::new();
    for _ in 0..3 {
        r = (r * 1_103_515_245 + 12_345) % (1 << 32);
        expected.push(500 + (r / 256 % 24_000).cast_signed());
    }
    assert_eq!(expected[0], 500 + 3_554_416_254_i64 / 256 % 24_000);
    assert_eq!(s.sizes, expected);
    assert_eq!(s.calls["sync"], 1);
}

#[test]
fn a_walk_stats_every_name_once() {
    let s = seen("dcache", &["big_mib=0"]);
    assert_eq!(s.calls["stat"], 4 * 15_100);
    assert_eq!(s.files.iter().filter(|f| f.starts_with("/mnt/small/")).count(), 15_100);
}

#[test]
fn a_hog_touches_every_page_each_pass() {
    let s = seen("oom", &[]);
    assert_eq!(s.touches, 3 * 36 * 256 * 2);
    assert_eq!(s.marks.iter().filter(|m| m.starts_with("hogpass")).count(), 6);
    let random = seen("hog", &["size_mib=1", "passes=2", "random=1", "read_only=1"]);
    assert_eq!(random.touches, 512);
    assert_eq!(random.last_line, seen("hog", &["size_mib=1", "passes=2"]).last_line + 255);
}

#[test]
fn a_rotation_touches_both_buffers_in_every_round() {
    let s = seen("desk", &["image_mib=1", "text_mib=1", "heap_mib=1", "walk=0"]);
    let rotation = 64 * 2 * 256;
    assert_eq!(s.touches, 3 * rotation + 256 * 3 + 16);
    assert!(s.files.contains("/mnt/big"));
}

#[test]
fn netatalk_moves_the_same_bytes_with_any_window() {
    for window in ["window=1", "window=4"] {
        let s = seen("netatalk", &["clients=2", "size_mib=1", "repeats=2", window]);
        let requests = 2 * 2 * 2 * 128;
        assert_eq!(s.messages, requests * (8192 + 240), "{window}");
        assert_eq!(s.calls["lseek"], requests.unsigned_abs(), "{window}");
        let done: Vec<_> = s.marks.iter().filter(|m| m.starts_with("client done")).collect();
        assert_eq!(done, ["client done 0", "client done 1"], "{window}");
        assert_eq!(s.marks.iter().filter(|m| m.starts_with("phase")).count(), 8, "{window}");
    }
}

#[test]
fn wrong_settings_say_what_is_allowed() {
    let message = |name: &str, setting: &str| find(name, &[setting]).err().unwrap().to_string();
    assert!(message("nope", "a=1").contains("known are base, seqhot"));
    assert!(message("hog", "sizes=1").contains("it has processes, size_mib"));
    assert!(message("hog", "passes=0").contains("1 to 1000 are possible"));
    assert!(message("hog", "passes=x").contains("not a whole number"));
    assert!(message("hog", "passes").contains("key=value"));
}

#[test]
fn a_run_description_gives_load_machine_and_elevator() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.json");
    let json = r#"{"kernel": "2.4.17", "mem_mb": 64, "workload": "wr16p-x", "swap_mb": 256,
        "params": {"WL": "wr16", "PART": "1", "WARM": "4", "IV": "500", "ELVR": "2048", "ELVW": "8192",
                   "ELVB": "0 (dropped)", "ide1": "dma"},
        "disk_model": {"on": 1, "overhead_us": 300, "seek_a_us": 800, "seek_b_us": 15000, "rot_us": 4170,
                       "rate_Bps": 20000000, "stroke_bytes": 9100000000}, "completed": true}"#;
    std::fs::write(&path, json).unwrap();
    let run = linux24::from_run_json(&path).unwrap();
    assert_eq!((run.load.name, run.params.get("warm_s"), run.params.get("partition")), ("wr16", 4, 1));
    assert_eq!(run.elevator.map(|e| (e.read_latency, e.write_latency, e.max_bomb)), Some((2048, 8192, 0)));
    assert_eq!(run.disk.rate_bytes_s, 20_000_000);
    let made = run.load.generate(&run.params, &mut Seen::default());
    let machine = run.machine(&made.devices);
    assert_eq!(machine.ram_kib, Some(65_536));
    assert_eq!(machine.devices[0].partitions, layout::PARTITIONS);

    std::fs::write(&path, json.replace("WARM", "WARN")).unwrap();
    let error = linux24::from_run_json(&path).err().unwrap().to_string();
    assert!(error.contains("no parameter WARN"), "{error}");
}

#[test]
fn recorded_events_become_marks() {
    let mark = |e| linux24::mark_of_event(e);
    assert_eq!(mark("rprog id MB us 0 4 559767").as_deref(), Some("rprog 0 4"));
    assert_eq!(mark("hotpass n us 17 13671 0").as_deref(), Some("hotpass"));
    assert_eq!(mark("rep client rep us 2 0 7499635").as_deref(), Some("rep 2 0"));
    assert_eq!(mark("walk n us 15100 44526 1").as_deref(), Some("walk 1"));
    assert_eq!(mark("untar+sync us 7277172 0 0").as_deref(), Some("untar+sync"));
    assert_eq!(mark("reaped pid status 12 0 0"), None);
    assert_eq!(mark(""), None);
}

#[test]
fn a_generated_trace_is_an_ordinary_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let (load, params) = find("srnetfresh", &["size_mib=1", "repeats=2"]).unwrap();
    write_trace(load, &params, None, &path, WriterOptions::default()).unwrap();
    let trace = crate::store::TraceDir::open(&path).unwrap();
    assert_eq!(trace.manifest().links.len(), 1);
    assert_eq!(trace.manifest().sources[0].options["size_mib"], "1");
    let mut last = 0;
    trace
        .syscalls()
        .unwrap()
        .for_each(|r| {
            assert!(r.time_ns >= last);
            last = r.time_ns;
        })
        .unwrap();
    let mut clients = Vec::new();
    trace.processes().unwrap().for_each(|r| clients.extend(r.client.map(str::to_owned))).unwrap();
    assert_eq!(clients, ["client 0", "client 1", "client 2", "client 3", "client 4"]);
}

/// Rows of a load whose tasks think, or begin by themselves: counts and marks only.
fn loose(name: &str, settings: &[&str]) -> (Seen, Generated) {
    let (load, params) = find(name, settings).unwrap();
    let mut seen = Seen::default();
    let made = load.generate(&params, &mut seen);
    (seen, made)
}

#[test]
fn file_server_clients_move_each_byte_over_the_link_once() {
    let bytes = 2 * 3 * 2 * (1 << 20);
    let (whole, _) = loose("fileserver", &["clients=2", "size_mib=2", "repeats=3"]);
    assert_eq!((whole.written_bytes, whole.read_bytes), (bytes, bytes));
    // Two messages for each of 256 pieces, of which one carries the piece.
    let headers = 2 * 2 * 3 * 2 * 256 * 120;
    assert_eq!(whole.messages, 2 * bytes + headers);
    let (cut, _) = loose("fileserver", &["clients=2", "size_mib=2", "repeats=3", "segment_bytes=1460"]);
    assert_eq!(cut.messages, whole.messages);
    assert!(cut.calls["x-link"] > 3 * whole.calls["x-link"]);
    let (turns, _) = loose("fileserver", &["clients=2", "size_mib=2", "repeats=3", "turn_kib=1024"]);
    assert_eq!(turns.calls["x-link"], 2 * 3 * 2 * 2 * 2, "request and reply of each of two turns");
    assert_eq!(turns.calls["write"], whole.calls["write"]);
}

#[test]
fn pieces_from_a_network_are_no_pages_and_pieces_from_a_pipe_are() {
    let (net, _) = loose("receive", &["clients=2", "size_mib=1", "repeats=2"]);
    assert_eq!(net.written_bytes, 4 << 20);
    let whole_pages = net.sizes.iter().filter(|s| *s % 4096 == 0).count();
    assert!(whole_pages * 50 < net.sizes.len(), "{whole_pages} of {}", net.sizes.len());
    assert!(net.sizes.iter().all(|s| (1..=8192).contains(s)));
    let (pipe, _) = loose("receive", &["clients=2", "size_mib=1", "repeats=2", "pipe=1"]);
    assert_eq!((pipe.written_bytes, pipe.sizes.iter().all(|s| *s == 4096)), (4 << 20, true));
}

#[test]
fn the_desktop_has_three_orders_and_audio() {
    let marks = |order: &str| loose("desktop", &[order, "audio_s=5", "names=300"]).0.marks;
    let at = |marks: &[String], name: &str| marks.iter().position(|m| m == name);
    let a = marks("order=0");
    assert!(at(&a, "walked") < at(&a, "created") && at(&a, "created") < at(&a, "suite starts"));
    let b = marks("order=1");
    assert_eq!(at(&b, "walked"), None);
    assert!(at(&b, "created") < at(&b, "suite starts") && at(&b, "app 2 up") < at(&b, "rotating"));
    let c = marks("order=2");
    assert!(at(&c, "suite up") < at(&c, "created"));
    // 5 s in fragments of 92.9 ms.
    assert_eq!(a.iter().filter(|m| *m == "audio").count(), 53);
}

#[test]
fn dumps_clash_by_their_scheme() {
    let distinct = |settings: &[&str]| {
        let dumps: Vec<String> =
            loose("coredump", settings).0.marks.into_iter().filter(|m| m.starts_with("dumped")).collect();
        (dumps.len(), dumps.iter().collect::<BTreeSet<_>>().len())
    };
    assert_eq!(distinct(&["core_mib=1"]), (48, 6));
    assert_eq!(distinct(&["core_mib=1", "scheme=2"]), (48, 24));
    assert_eq!(distinct(&["core_mib=1", "scheme=3"]), (48, 48));
    assert_eq!(distinct(&["core_mib=1", "one_directory=1"]), (48, 1));
}

#[test]
fn every_load_is_made_at_its_defaults_or_smaller() {
    for (name, settings) in [
        ("audio", &["audio_s=2", "written_mib=1"][..]),
        ("xterm", &["written_mib=1", "hog_mib=1"]),
        ("copytree", &["directories=2", "files=3"]),
        ("copytree", &["directories=2", "files=3", "xterm=1"]),
        ("make", &["jobs=2", "units=4"]),
        ("pollute", &["big_mib=1", "walk=1", "pause_ms=10"]),
        ("interleave", &["requests=10"]),
        ("nfsd", &[]),
        ("pipeline", &["size_mb=3", "tasks=2"]),
    ] {
        let (seen, made) = loose(name, settings);
        assert_eq!(made.rows.cast_signed(), seen.last_line, "{name}");
        assert!(!seen.tasks.is_empty() && !seen.marks.is_empty(), "{name}");
    }
    assert!(matches!(loose("nfsd", &[]).1.links[0].kind, crate::store::LinkKind::Server { threads: 8, .. }));
}
