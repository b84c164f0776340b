//! Think times, sleeps, waits, pseudo-calls.

use kreplay_replay::compile::{CompileError, CompileOptions, OwnedProcess, OwnedSyscall, TraceTables, compile};
use kreplay_replay::program::{LinkInfo, LinkKind, Op};
use kreplay_traces::units::Nanos;

use crate::trace::*;

#[test]
fn think_and_recorded_times() {
    let p = Trace::new().then(call("getpid")).then(call("getpid")).compile();
    let t = task(&p, 1);
    assert_eq!(t.think, [Nanos::ZERO, Nanos(1_000_000 - 10_000 - 15_000)]);
    assert_eq!(t.at, [Nanos::ZERO, Nanos(1_000_000)]);
    assert_eq!(t.recorded, [Nanos(10_000); 2]);
    assert_eq!(t.line, [1, 2]);
    let opts = CompileOptions { tracer_floor: Some(Nanos(2_000_000)), ..CompileOptions::default() };
    let p = Trace::new().then(call("getpid")).then(call("getpid")).compile_with(&opts);
    assert_eq!(task(&p, 1).think[1], Nanos::ZERO);
}

#[test]
fn sleeps_keep_what_was_asked_for() {
    let sleep = OwnedSyscall {
        dur_ns: Some(2_400_000),
        args: Some("CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=1000000}, NULL".into()),
        ..call("clock_nanosleep")
    };
    let until = OwnedSyscall {
        flags: Some("TIMER_ABSTIME".into()),
        args: Some("CLOCK_REALTIME, TIMER_ABSTIME, {tv_sec=1796039341, tv_nsec=5}, NULL".into()),
        ..sleep.clone()
    };
    let interrupted = failed(OwnedSyscall { dur_ns: Some(300_000), ..sleep.clone() }, "ERESTART_RESTARTBLOCK");
    let rest = OwnedSyscall { dur_ns: Some(700_000), ..call("restart_syscall") };
    let p = Trace::new().then(sleep).then(until).then(interrupted).then(rest).compile();
    let external = |ns| Op::External { time: Nanos(ns) };
    assert_eq!(
        ops(&p, 1),
        [Op::Sleep { time: Nanos(1_000_000) }, external(2_400_000), external(300_000), external(700_000)]
    );
}

#[test]
fn waits_for_others_keep_their_length() {
    let p = Trace::new()
        .then(OwnedSyscall { dur_ns: Some(5_000_000), ret: Some(1), ..call("epoll_wait") })
        .then(OwnedSyscall { dur_ns: Some(6_000_000), ..call("futex") })
        .then(OwnedSyscall { dur_ns: Some(7_000_000), ..call("mprotect") })
        .compile();
    let external = |ms: u64| Op::External { time: Nanos::from_millis(ms) };
    assert_eq!(ops(&p, 1), [external(5), external(6)]);
    assert_eq!((p.coverage.calls, p.coverage.calls_cpu_only), (2, 1));
}

#[test]
fn a_call_that_never_returned_did_nothing() {
    let open_end = OwnedSyscall { ret: None, unfinished: true, dur_ns: None, ..io("write", 3, 10) };
    let p = Trace::new().file("/a", 10).then(open("/a", "O_RDWR", 3)).then(open_end).compile();
    assert_eq!(ops(&p, 1).len(), 1);
    assert_eq!(p.coverage.calls_failed, 1);
}

fn generated(calls: Vec<OwnedSyscall>) -> TraceTables {
    let mut t = Trace::new();
    for c in calls {
        t = t.then(c);
    }
    t.tables.side.links.push(LinkInfo { kind: LinkKind::Fifo, rate_bytes_s: 1_000_000, clients: 3 });
    t.tables
}

#[test]
fn pseudo_calls_of_generated_traces() {
    let receive = OwnedSyscall {
        fd: Some(3),
        len_bytes: Some(1 << 20),
        args: Some("link=0 client=2 chunk=8192".into()),
        ..call("x-recvwrite")
    };
    let send = OwnedSyscall { len_bytes: Some(500), args: Some("link=0".into()), ..call("x-link") };
    let sleep = OwnedSyscall { dur_ns: Some(3_000), ..call("nanosleep") };
    let mut t = generated(vec![
        on_path("x-mark", "begin"),
        open("/a", "O_RDWR|O_CREAT|O_TRUNC", 3),
        receive,
        send,
        sleep,
        on_path("x-mark", "end"),
    ]);
    t.side.processes.push(OwnedProcess {
        tid: 1,
        comm: Some("load".into()),
        client: Some("client 3".into()),
        background: true,
        repeat_from_line: Some(3),
        ..OwnedProcess::default()
    });
    let p = compile(&mut t, &CompileOptions::default()).expect("compiles");
    assert_eq!(
        ops(&p, 1),
        [
            Op::Mark { mark: 0 },
            Op::Open { ofd: 0, file: file(&p, "/a").0, create: true, truncate: false },
            Op::RecvWrite { ofd: 0, total: 1 << 20, chunk: 8192, link: 0, client: 2 },
            Op::Link { link: 0, bytes: 500 },
            Op::Sleep { time: Nanos(3_000) },
            Op::Mark { mark: 1 },
        ]
    );
    assert_eq!(p.marks, ["begin", "end"]);
    let t = task(&p, 1);
    assert_eq!(t.think[1], Nanos(990_000), "generated traces have no tracer");
    assert_eq!((t.name.as_str(), t.client.as_deref()), ("load 1", Some("client 3")));
    assert_eq!((t.background, t.repeat_from), (true, Some(2)));
    assert_eq!(file(&p, "/a").1.pages, 256);
}

#[test]
fn wrong_pseudo_calls_say_where_and_why() {
    let error = |c: OwnedSyscall| {
        compile(&mut generated(vec![c]), &CompileOptions::default()).expect_err("refused").to_string()
    };
    let e = error(OwnedSyscall { len_bytes: Some(5), args: Some("link=4".into()), ..call("x-link") });
    assert!(e.starts_with("line 1: x-link: ") && e.contains("defines 1 links"), "{e}");
    assert!(error(call("x-sing")).contains("known are"));
    assert!(error(call("x-mark")).contains("needs a name"));
    let empty = compile(&mut TraceTables::default(), &CompileOptions::default());
    assert!(matches!(empty, Err(CompileError::Empty)));
}
