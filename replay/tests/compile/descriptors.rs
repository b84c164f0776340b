//! Descriptors, offsets, open file descriptions.

use kreplay_replay::compile::OwnedSyscall;
use kreplay_replay::program::Op;

use crate::trace::*;

#[test]
fn dup_and_fork_share_the_offset() {
    let p = Trace::new()
        .file("/a", 1 << 20)
        .then(open("/a", "O_RDONLY", 3))
        .then(OwnedSyscall { fd: Some(3), ret: Some(4), ..call("dup") })
        .then(io("read", 3, 100))
        .then(clone(2, "SIGCHLD"))
        .then(by(2, io("read", 4, 50)))
        .then(io("read", 4, 10))
        .compile();
    let reads = |tid| -> Vec<Op> { ops(&p, tid).into_iter().filter(|o| matches!(o, Op::Read { .. })).collect() };
    assert_eq!(reads(1), [Op::Read { ofd: 0, off: 0, len: 100 }, Op::Read { ofd: 0, off: 150, len: 10 }]);
    assert_eq!(reads(2), [Op::Read { ofd: 0, off: 100, len: 50 }]);
    assert_eq!(p.ofds, 1);
}

#[test]
fn two_appenders_write_one_after_the_other() {
    let p = Trace::new()
        .file("/log", 1000)
        .then(open("/log", "O_WRONLY|O_APPEND", 3))
        .then(open("/log", "O_WRONLY|O_APPEND", 4))
        .then(io("write", 3, 10))
        .then(io("write", 4, 20))
        .then(io("pwrite64", 3, 5))
        .compile();
    let writes: Vec<u64> =
        ops(&p, 1).into_iter().filter_map(|o| if let Op::Write { off, .. } = o { Some(off) } else { None }).collect();
    assert_eq!(writes, [1000, 1010, 1030]);
}

#[test]
fn pread_leaves_the_offset() {
    let p = Trace::new()
        .file("/a", 1 << 20)
        .then(open("/a", "O_RDONLY", 3))
        .then(io("read", 3, 10))
        .then(OwnedSyscall { offset_bytes: Some(5000), ..io("pread64", 3, 10) })
        .then(io("read", 3, 10))
        .compile();
    let read = |off| Op::Read { ofd: 0, off, len: 10 };
    assert_eq!(ops(&p, 1)[1..], [read(0), read(5000), read(10)]);
}

#[test]
fn only_a_seek_that_moves_is_one() {
    let p = Trace::new()
        .file("/a", 1 << 20)
        .then(open("/a", "O_RDONLY", 3))
        .then(OwnedSyscall { fd: Some(3), flags: Some("SEEK_CUR".into()), ret: Some(0), ..call("lseek") })
        .then(OwnedSyscall { fd: Some(3), flags: Some("SEEK_SET".into()), ret: Some(700), ..call("lseek") })
        .then(io("read", 3, 10))
        .compile();
    assert_eq!(ops(&p, 1)[1..], [Op::Seek { ofd: 0 }, Op::Read { ofd: 0, off: 700, len: 10 }]);
}

#[test]
fn llseek_of_32_bit_programs_has_its_result_in_brackets() {
    let seek = OwnedSyscall {
        fd: Some(3),
        offset_bytes: Some(4096),
        flags: Some("SEEK_SET".into()),
        args: Some("3, 4096, [4096], SEEK_SET".into()),
        ..call("_llseek")
    };
    let p =
        Trace::new().file("/a", 1 << 20).then(open("/a", "O_RDONLY", 3)).then(seek).then(io("read", 3, 10)).compile();
    assert_eq!(ops(&p, 1)[2], Op::Read { ofd: 0, off: 4096, len: 10 });
}

#[test]
fn a_thread_may_close_what_its_sibling_opened_and_the_number_is_used_again() {
    // Thread 2's open returns 3, which thread 1 freed after that open had begun.
    let mut reopen = by(2, open("/b", "O_RDONLY", 3));
    reopen.time_ns = 3_000_000;
    reopen.dur_ns = Some(2_000_000);
    let mut close3 = close(3);
    close3.time_ns = 3_500_000;
    let mut read = io("read", 3, 10);
    read.time_ns = 6_000_000;
    let p = Trace::new()
        .file("/a", 1 << 20)
        .file("/b", 1 << 20)
        .then(open("/a", "O_RDONLY", 3))
        .then(clone(2, "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD"))
        .then(reopen)
        .then(close3)
        .then(read)
        .compile();
    assert_eq!(ops(&p, 1)[2..], [Op::Close { ofd: 0 }, Op::Read { ofd: 1, off: 0, len: 10 }]);
    assert_eq!(ops(&p, 2), [Op::Open { ofd: 1, file: file(&p, "/b").0, create: false, truncate: false }]);
}

#[test]
fn the_traced_path_is_right_where_it_contradicts() {
    let p = Trace::new()
        .file("/a", 1 << 20)
        .file("/b", 1 << 20)
        .then(open("/a", "O_RDONLY", 3))
        .then(OwnedSyscall { path: Some("/b".into()), ..io("read", 3, 10) })
        .then(OwnedSyscall { path: Some("/b".into()), ..io("read", 7, 10) })
        .compile();
    assert_eq!(noted(&p, "had come to mean"), 1);
    assert_eq!(noted(&p, "from before the trace"), 1);
    assert_eq!(p.coverage.unknown_fds, 0);
}

#[test]
fn an_unknown_descriptor_is_a_file_only_if_it_seeks() {
    let p = Trace::new()
        .then(io("read", 5, 100))
        .then(io("read", 6, 100))
        .then(OwnedSyscall { offset_bytes: Some(0), ..io("pread64", 6, 10) })
        .compile();
    assert_eq!(p.coverage.unknown_fds, 2);
    let o = ops(&p, 1);
    assert!(matches!(o[0], Op::External { .. }), "{o:?}");
    assert_eq!(o[1..], [Op::Read { ofd: 1, off: 0, len: 100 }, Op::Read { ofd: 1, off: 0, len: 10 }]);
}

#[test]
fn exec_closes_what_is_marked_and_exit_the_rest() {
    let p = Trace::new()
        .file("/a", 4096)
        .then(open("/a", "O_RDONLY|O_CLOEXEC", 3))
        .then(open("/a", "O_RDONLY", 4))
        .then(on_path("execve", "/bin/x"))
        .then(exit())
        .compile();
    let o = ops(&p, 1);
    let closes: Vec<&Op> = o.iter().filter(|o| matches!(o, Op::Close { .. })).collect();
    assert_eq!(closes, [&Op::Close { ofd: 0 }, &Op::Close { ofd: 1 }]);
}

#[test]
fn copies_inside_the_kernel_are_a_read_and_a_write() {
    let copy = OwnedSyscall {
        fd: Some(3),
        fd2: Some(4),
        ret: Some(2046),
        args: Some("3</a>, NULL, 4</b>, NULL, 9223372035781033984, 0".into()),
        ..call("copy_file_range")
    };
    let end = OwnedSyscall { ret: Some(0), ..copy.clone() };
    let send = OwnedSyscall {
        fd: Some(4),
        fd2: Some(3),
        ret: Some(100),
        args: Some("4, 3, [1000] => [1100], 100".into()),
        ..call("sendfile")
    };
    let p = Trace::new()
        .then(open("/a", "O_RDONLY", 3))
        .then(open("/b", "O_WRONLY|O_CREAT|O_EXCL", 4))
        .then(copy)
        .then(end)
        .then(send)
        .compile();
    assert_eq!(
        ops(&p, 1)[2..],
        [
            Op::Read { ofd: 0, off: 0, len: 2046 },
            Op::Write { ofd: 1, off: 0, len: 2046 },
            Op::Read { ofd: 0, off: 1000, len: 100 },
            Op::Write { ofd: 1, off: 2046, len: 100 },
        ]
    );
    assert_eq!(file(&p, "/a").1.initial_size, 2046, "the copy ended there");
}

#[test]
fn a_short_read_sets_the_size() {
    let p = Trace::new()
        .then(open("/a", "O_RDONLY", 3))
        .then(OwnedSyscall { len_bytes: Some(4096), ..io("read", 3, 300) })
        .compile();
    assert_eq!(file(&p, "/a").1.initial_size, 300);
    let bounded = Trace::new().then(open("/a", "O_RDONLY", 3)).then(io("read", 3, 300)).compile();
    assert_eq!(file(&bounded, "/a").1.initial_size, 4096 + 128 * 1024);
    assert_eq!(noted(&bounded, "lower bound"), 1);
}

#[test]
fn synchronous_writes_are_followed_by_a_sync() {
    let p = Trace::new().then(open("/a", "O_WRONLY|O_CREAT|O_DSYNC", 3)).then(io("write", 3, 10)).compile();
    assert_eq!(
        ops(&p, 1)[1..],
        [Op::Write { ofd: 0, off: 0, len: 10 }, Op::Fsync { file: file(&p, "/a").0, data_only: false }]
    );
}
