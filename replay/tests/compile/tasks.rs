//! Tasks, waiting for each other, and streams between them.

use kreplay_replay::compile::OwnedSyscall;
use kreplay_replay::program::{Op, Start};
use kreplay_traces::units::Nanos;

use crate::trace::*;

fn at(ms: i64, us: i64, mut c: OwnedSyscall) -> OwnedSyscall {
    c.time_ns = ms * 1_000_000;
    c.dur_ns = Some(us * 1_000);
    c
}

#[test]
fn a_child_starts_with_its_creation_and_wait_ends_with_its_exit() {
    let p = Trace::new()
        .then(at(1, 100, clone(2, "SIGCHLD")))
        .then(at(2, 50_000, OwnedSyscall { ret: Some(2), ..call("wait4") }))
        .then(at(3, 10, by(2, call("getpid"))))
        .then(OwnedSyscall { time_ns: 40_000_000, ..by(2, exit()) })
        .compile();
    let channel = task(&p, 2).exit_channel.expect("somebody waits");
    assert_eq!(ops(&p, 1), [Op::Spawn { task: 1 }, Op::Await { channel, n: 1 }]);
    assert_eq!(task(&p, 2).start, Start::Spawned);
    assert_eq!(task(&p, 2).think[0], Nanos(2_000_000 - 100_000 - 15_000), "since the clone returned");
    assert_eq!(task(&p, 1).exit_channel, None);
}

#[test]
fn a_child_that_was_not_traced_cannot_be_waited_for() {
    let p = Trace::new()
        .then(clone(2, "SIGCHLD"))
        .then(at(5, 3_000, OwnedSyscall { ret: Some(2), ..call("wait4") }))
        .compile();
    assert_eq!(ops(&p, 1), [Op::External { time: Nanos(3_000_000) }]);
    assert_eq!(p.tasks.len(), 1);
    assert_eq!(noted(&p, "not traced"), 1);
}

#[test]
fn vfork_waits_for_exec() {
    let p = Trace::new()
        .file("/a", 10)
        .then(open("/a", "O_RDONLY|O_CLOEXEC", 3))
        .then(at(2, 5_000, OwnedSyscall { ret: Some(2), ..call("vfork") }))
        .then(at(4, 100, by(2, on_path("execve", "/bin/x"))))
        .then(at(8, 10, io("read", 3, 10)))
        .then(at(9, 10, by(2, call("getpid"))))
        .compile();
    let parent = ops(&p, 1);
    let Op::Await { channel, n: 1 } = parent[2] else { panic!("{parent:?}") };
    assert_eq!(parent[1], Op::Spawn { task: 1 });
    assert_eq!(parent[3], Op::Read { ofd: 0, off: 0, len: 10 }, "the child closed only its own");
    assert_eq!(ops(&p, 2)[1..], [Op::Post { channel, n: 1 }]);
}

#[test]
fn exec_from_a_thread_takes_the_leaders_place() {
    let p = Trace::new()
        .file("/a", 100)
        .then(open("/a", "O_RDONLY", 3))
        .then(clone(2, "CLONE_VM|CLONE_FILES|CLONE_FS|CLONE_THREAD|CLONE_SIGHAND"))
        .then(by(2, on_path("execve", "/bin/x")))
        .then(io("read", 3, 10))
        .compile();
    let leader: Vec<&Op> = p.tasks.iter().filter(|t| t.tid == 1).flat_map(|t| &t.ops).collect();
    assert!(leader.contains(&&Op::Read { ofd: 0, off: 0, len: 10 }), "{leader:?}");
    assert_eq!(p.coverage.unknown_fds, 0);
}

#[test]
fn exit_group_ends_all_threads_and_thread_ids_come_back() {
    let p = Trace::new()
        .then(clone(2, "CLONE_VM|CLONE_FILES|CLONE_FS|CLONE_THREAD|CLONE_SIGHAND"))
        .then(by(2, call("getpid")))
        .then(clone(3, "SIGCHLD"))
        .then(by(3, exit()))
        .then(clone(3, "SIGCHLD"))
        .then(by(3, exit()))
        .then(exit())
        .compile();
    assert_eq!(p.tasks.iter().map(|t| t.tid).collect::<Vec<_>>(), [1, 2, 3, 3]);
    assert_eq!(ops(&p, 1), [1, 2, 3].map(|task| Op::Spawn { task }));
}

#[test]
fn pipes_count_bytes() {
    let pipe = OwnedSyscall { args: Some("[3, 4], 0".into()), ..call("pipe2") };
    let p = Trace::new()
        .then(pipe)
        .then(clone(2, "SIGCHLD"))
        .then(by(2, at(3, 6_000, io("read", 3, 30))))
        .then(at(4, 10, io("write", 4, 20)))
        .then(at(6, 10, io("write", 4, 20)))
        .then(by(2, at(12, 10, io("read", 3, 10))))
        .compile();
    assert_eq!(ops(&p, 2), [Op::Await { channel: 0, n: 30 }, Op::Await { channel: 0, n: 10 }]);
    assert_eq!(ops(&p, 1)[1..], [Op::Post { channel: 0, n: 20 }; 2]);
    assert_eq!(p.channels, [0]);
}

#[test]
fn a_pipe_with_an_untraced_end_is_a_wait() {
    let named = |c: OwnedSyscall| OwnedSyscall { path: Some("pipe:[99]".into()), ..c };
    let p = Trace::new().then(at(1, 700, named(io("read", 0, 30)))).compile();
    assert_eq!(ops(&p, 1), [Op::External { time: Nanos(700_000) }]);
    // Both ends by name only: the numbers were not printed.
    let p = Trace::new().then(named(io("write", 4, 30))).then(by(2, named(io("read", 5, 30)))).compile();
    assert_eq!(ops(&p, 1), [Op::Post { channel: 0, n: 30 }]);
    assert_eq!(ops(&p, 2), [Op::Await { channel: 0, n: 30 }]);
}

#[test]
fn socket_pairs_are_two_streams() {
    let pair = OwnedSyscall { args: Some("AF_UNIX, SOCK_STREAM, 0, [3, 4]".into()), ..call("socketpair") };
    let p = Trace::new()
        .then(pair)
        .then(clone(2, "SIGCHLD"))
        .then(io("write", 3, 7))
        .then(by(2, io("read", 4, 7)))
        .then(by(2, io("write", 4, 9)))
        .then(io("read", 3, 9))
        .compile();
    assert_eq!(ops(&p, 1)[1..], [Op::Post { channel: 0, n: 7 }, Op::Await { channel: 1, n: 9 }]);
    assert_eq!(ops(&p, 2), [Op::Await { channel: 0, n: 7 }, Op::Post { channel: 1, n: 9 }]);
}
