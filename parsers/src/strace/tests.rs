use super::*;
use crate::rows::{Rows, Syscall};

fn parse(text: &str) -> (Rows, Diagnostics) {
    let (rows, diag) = crate::parse_all(&Strace, &ParseOptions::default(), text.as_bytes());
    assert!(diag.adds_up(), "{text}: {diag:?}");
    (rows, diag)
}

fn call(body: &str) -> Syscall {
    let (rows, diag) = parse(&format!("7 1796035855.000000 {body}\n"));
    assert_eq!(diag.rejects(), [], "{body}");
    assert_eq!(rows.syscalls.len(), 1, "{body}");
    rows.syscalls[0].clone()
}

fn base(call: &str, ret: i64) -> Syscall {
    Syscall {
        time_ns: 1_796_035_855_000_000_000,
        tid: 7,
        call: call.into(),
        ret: Some(ret),
        line: 1,
        ..Syscall::default()
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.into())
}

/// One case of the columns table: a body, and the row that it must give.
macro_rules! row {
    ($name:expr, $ret:expr $(, $field:ident: $value:expr)* $(,)?) => {
        Syscall { $($field: $value,)* ..base($name, $ret) }
    };
}

#[test]
fn typed_columns() {
    let cwd = "AT_FDCWD</home/u>";
    let cases: Vec<(String, Syscall)> = vec![
        (
            r#"read(3</etc/f>, ""..., 832) = 832 <0.000003>"#.into(),
            row!("read", 832, fd: Some(3), path: some("/etc/f"), len_bytes: Some(832), dur_ns: Some(3000)),
        ),
        (r#"write(1, "a, b) = 5\n", 10) = 10"#.into(), row!("write", 10, fd: Some(1), len_bytes: Some(10))),
        (
            r#"pread64(3</f>, ""..., 784, 64) = 784"#.into(),
            row!("pread64", 784, fd: Some(3), path: some("/f"), len_bytes: Some(784), offset_bytes: Some(64)),
        ),
        (
            r#"pwrite64(4, "", 512, 1048576) = 512"#.into(),
            row!("pwrite64", 512, fd: Some(4), len_bytes: Some(512), offset_bytes: Some(1_048_576)),
        ),
        (
            r#"writev(4, [{iov_base="iov_len=9", iov_len=5}, {iov_base="", iov_len=7}], 2) = 12"#.into(),
            row!("writev", 12, fd: Some(4), len_bytes: Some(12)),
        ),
        (
            r#"preadv2(4, [{iov_base=""..., iov_len=4096}], 1, 8192, RWF_NOWAIT) = -1 EAGAIN (x)"#.into(),
            row!("preadv2", -1, errno: some("EAGAIN"), fd: Some(4), len_bytes: Some(4096), offset_bytes: Some(8192),
                flags: some("RWF_NOWAIT")),
        ),
        (
            format!(r#"openat({cwd}, "a/b", O_RDWR|O_CREAT, 0644) = 3</mnt/u/a/b>"#),
            row!("openat", 3, path: some("/home/u/a/b"), path2: some("/mnt/u/a/b"), flags: some("O_RDWR|O_CREAT"), fd: None),
        ),
        (
            r#"openat(AT_FDCWD, "a", O_RDONLY) = -1 ENOENT (No such file or directory)"#.into(),
            row!("openat", -1, errno: some("ENOENT"), path: some("a"), flags: some("O_RDONLY")),
        ),
        (
            r#"openat(5</d>, "x y\"z", O_RDONLY) = 6"#.into(),
            row!("openat", 6, fd: Some(5), path: some("/d/x y\"z"), flags: some("O_RDONLY")),
        ),
        (
            r#"openat2(AT_FDCWD, "f", {flags=O_RDONLY|O_CLOEXEC, resolve=0}, 24) = 3"#.into(),
            row!("openat2", 3, path: some("f"), flags: some("O_RDONLY|O_CLOEXEC")),
        ),
        (
            r#"open("/etc/f", O_RDONLY|O_CLOEXEC) = 3"#.into(),
            row!("open", 3, path: some("/etc/f"), flags: some("O_RDONLY|O_CLOEXEC")),
        ),
        (r#"creat("/f", 0666) = 3"#.into(), row!("creat", 3, path: some("/f"))),
        ("close(3</etc/f>) = 0".into(), row!("close", 0, fd: Some(3), path: some("/etc/f"))),
        (
            "dup2(3</a>, 1</b>) = 1</a>".into(),
            row!("dup2", 1, fd: Some(3), fd2: Some(1), path: some("/a"), path2: some("/b")),
        ),
        (
            "fcntl(1</o>, F_DUPFD, 10) = 11</o>".into(),
            row!("fcntl", 11, fd: Some(1), path: some("/o"), path2: some("/o"), flags: some("F_DUPFD"),
                args: some("1</o>, F_DUPFD, 10")),
        ),
        (
            "lseek(3, -100, SEEK_END) = 900".into(),
            row!("lseek", 900, fd: Some(3), offset_bytes: Some(-100), flags: some("SEEK_END")),
        ),
        (
            "_llseek(3, 4096, [4096], SEEK_SET) = 0".into(),
            row!("_llseek", 0, fd: Some(3), offset_bytes: Some(4096), flags: some("SEEK_SET"),
                args: some("3, 4096, [4096], SEEK_SET")),
        ),
        (
            "sendfile(5</o>, 4</i>, [0] => [100], 4096) = 100".into(),
            row!("sendfile", 100, fd: Some(5), fd2: Some(4), path: some("/o"), path2: some("/i"), offset_bytes: Some(0),
                len_bytes: Some(4096), args: some("5</o>, 4</i>, [0] => [100], 4096")),
        ),
        (
            "copy_file_range(4</i>, NULL, 5</o>, NULL, 9223372035781033984, 0) = 11000".into(),
            row!("copy_file_range", 11000, fd: Some(4), fd2: Some(5), path: some("/i"), path2: some("/o"),
                len_bytes: Some(9_223_372_035_781_033_984), args: some("4</i>, NULL, 5</o>, NULL, 9223372035781033984, 0")),
        ),
        ("fsync(3</f>) = 0".into(), row!("fsync", 0, fd: Some(3), path: some("/f"))),
        ("sync()  = 0".into(), row!("sync", 0)),
        ("ftruncate(3, 4096) = 0".into(), row!("ftruncate", 0, fd: Some(3), len_bytes: Some(4096))),
        (r#"truncate("/f", 0) = 0"#.into(), row!("truncate", 0, path: some("/f"), len_bytes: Some(0))),
        (
            "fallocate(3, FALLOC_FL_KEEP_SIZE, 0, 8192) = 0".into(),
            row!("fallocate", 0, fd: Some(3), flags: some("FALLOC_FL_KEEP_SIZE"), offset_bytes: Some(0), len_bytes: Some(8192)),
        ),
        (
            "fadvise64(3, 0, 0, POSIX_FADV_SEQUENTIAL) = 0".into(),
            row!("fadvise64", 0, fd: Some(3), offset_bytes: Some(0), len_bytes: Some(0), flags: some("POSIX_FADV_SEQUENTIAL")),
        ),
        (
            r#"rename("/a", "/b") = 0"#.into(),
            row!("rename", 0, path: some("/a"), path2: some("/b")),
        ),
        (
            r#"renameat2(3</d>, "a", 4</e/>, "b", RENAME_NOREPLACE) = 0"#.into(),
            row!("renameat2", 0, fd: Some(3), fd2: Some(4), path: some("/d/a"), path2: some("/e/b"), flags: some("RENAME_NOREPLACE")),
        ),
        (
            format!(r#"unlinkat({cwd}, "d", AT_REMOVEDIR) = 0"#),
            row!("unlinkat", 0, path: some("/home/u/d"), flags: some("AT_REMOVEDIR")),
        ),
        (
            r#"stat("/f", {st_mode=S_IFREG|0644, st_size=258, ...}) = 0"#.into(),
            row!("stat", 0, path: some("/f"), len_bytes: Some(258), flags: some("S_IFREG|0644")),
        ),
        (
            r#"newfstatat(3</f>, "", {st_mode=S_IFREG|0755, st_size=47995, ...}, AT_EMPTY_PATH) = 0"#.into(),
            row!("newfstatat", 0, fd: Some(3), path: some("/f"), len_bytes: Some(47995), flags: some("S_IFREG|0755|AT_EMPTY_PATH")),
        ),
        (
            r#"statx(AT_FDCWD, "/f", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFDIR|0755, stx_size=61, ...}) = 0"#.into(),
            row!("statx", 0, path: some("/f"), len_bytes: Some(61), flags: some("AT_STATX_SYNC_AS_STAT|S_IFDIR|0755")),
        ),
        (
            "getdents64(3</d>, 0x55 /* 12 entries */, 32768) = 400".into(),
            row!("getdents64", 400, fd: Some(3), path: some("/d"), len_bytes: Some(32768)),
        ),
        (
            "mmap(NULL, 47995, PROT_READ, MAP_PRIVATE, 3</f>, 0x26000) = 0x7fd93bae5000".into(),
            row!("mmap", 0x7fd9_3bae_5000, fd: Some(3), path: some("/f"), len_bytes: Some(47995), offset_bytes: Some(0x26000),
                addr: Some(0x7fd9_3bae_5000), flags: some("PROT_READ|MAP_PRIVATE")),
        ),
        (
            "old_mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x40017000".into(),
            row!("old_mmap", 0x4001_7000, fd: Some(-1), len_bytes: Some(4096), offset_bytes: Some(0), addr: Some(0x4001_7000),
                flags: some("PROT_READ|PROT_WRITE|MAP_PRIVATE|MAP_ANONYMOUS")),
        ),
        (
            "mmap(NULL, 1, PROT_READ, MAP_PRIVATE, 3, 0) = -1 ENOMEM (Cannot allocate memory)".into(),
            row!("mmap", -1, errno: some("ENOMEM"), fd: Some(3), len_bytes: Some(1), offset_bytes: Some(0), addr: Some(0),
                flags: some("PROT_READ|MAP_PRIVATE")),
        ),
        (
            "munmap(0x7fd93bae5000, 47995) = 0".into(),
            row!("munmap", 0, addr: Some(0x7fd9_3bae_5000), len_bytes: Some(47995)),
        ),
        (
            "madvise(0x7f00, 4096, MADV_DONTNEED) = 0".into(),
            row!("madvise", 0, addr: Some(0x7f00), len_bytes: Some(4096), flags: some("MADV_DONTNEED")),
        ),
        ("brk(NULL) = 0x557482851000".into(), row!("brk", 0x5574_8285_1000, addr: Some(0x5574_8285_1000))),
        (
            "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {tv_sec=1425, tv_nsec=584253018}, NULL) = 0".into(),
            row!("clock_nanosleep", 0, args: some("CLOCK_MONOTONIC, TIMER_ABSTIME, {tv_sec=1425, tv_nsec=584253018}, NULL")),
        ),
        (
            "clone3({flags=CLONE_VM|CLONE_FS, exit_signal=SIGCHLD} => {parent_tid=[9]}, 88) = 9".into(),
            row!("clone3", 9, flags: some("CLONE_VM|CLONE_FS"),
                args: some("{flags=CLONE_VM|CLONE_FS, exit_signal=SIGCHLD} => {parent_tid=[9]}, 88")),
        ),
        (
            "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 28".into(),
            row!("wait4", 28, args: some("-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL")),
        ),
        (
            "epoll_wait(4<anon_inode:[eventpoll]>, [], 16, -1) = 0 (Timeout)".into(),
            row!("epoll_wait", 0, fd: Some(4), path: some("anon_inode:[eventpoll]"), args: some("4<anon_inode:[eventpoll]>, [], 16, -1")),
        ),
        ("syscall_0x1a2(0x1, 0x2) = -1 ENOSYS (x)".into(), row!("syscall_0x1a2", -1, errno: some("ENOSYS"), args: some("0x1, 0x2"))),
        ("umask(022) = 077".into(), row!("umask", 77, args: some("022"))),
        ("read(0x3, 0x7ffe, 0x400) = 0x400".into(), row!("read", 0x400, fd: Some(3), len_bytes: Some(0x400))),
    ];
    for (body, expected) in cases {
        assert_eq!(call(&body), expected, "{body}");
    }
}

#[test]
fn results_that_are_none() {
    let exit = call("exit_group(0) = ?");
    assert_eq!((exit.ret, exit.errno, exit.unfinished), (None, None, false));
    let restarted = call("read(0, 0x7ffe, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
    assert_eq!((restarted.ret, restarted.errno), (None, some("ERESTARTSYS")));
    assert_eq!(call("futex(0x1, FUTEX_WAIT) = ? <unavailable>").ret, None);
}

#[test]
fn halves_are_joined_by_thread() {
    let text = "\
        1 10.000000000 read(3</f>, <unfinished ...>\n\
        2 10.100000000 wait4(-1,  <unfinished ...>\n\
        1 10.200000000 <... read resumed>\"x\"..., 100) = 50 <0.150000>\n\
        2 10.300000000 <... wait4 resumed> [{WIFEXITED(s)}], 0, NULL) = 9\n";
    let (rows, diag) = parse(&text.replace(" 10.", " 1700000010."));
    let (read, wait) = (&rows.syscalls[0], &rows.syscalls[1]);
    assert_eq!(
        (read.ret, read.dur_ns, read.line, read.time_ns),
        (Some(50), Some(150_000_000), 1, 1_700_000_010_000_000_000)
    );
    assert_eq!((read.path.as_deref(), read.len_bytes), (Some("/f"), Some(100)));
    assert_eq!((wait.ret, wait.dur_ns, wait.line), (Some(9), Some(200_000_000), 2));
    assert_eq!(wait.args.as_deref(), Some("-1,   [{WIFEXITED(s)}], 0, NULL"));
    assert_eq!((diag.events(), diag.note_count("resumed")), (2, 2));
}

#[test]
fn numbered_halves_are_joined_too() {
    let text = "1 poll([{fd=3}], 1, 5 <unfinished #12 ...>\n1 <... poll resumed #12>) = 0 (Timeout)\n";
    let (rows, _) = parse(text);
    assert_eq!((rows.syscalls[0].ret, rows.syscalls[0].args.as_deref()), (Some(0), Some("[{fd=3}], 1, 5")));
}

#[test]
fn calls_that_never_end_are_kept() {
    // By the log's end, by the thread's exit, and by another call of the same thread.
    let text = "1 epoll_wait(4,  <unfinished ...>\n\
        2 pause( <unfinished ...>\n2 +++ killed by SIGKILL +++\n\
        3 read(0, <unfinished ...>\n3 write(1, \"\", 0) = 0\n";
    let (rows, diag) = parse(text);
    let calls: Vec<_> = rows.syscalls.iter().map(|c| (c.call.as_str(), c.tid, c.unfinished, c.ret)).collect();
    let expected = [
        ("pause", 2, true, None),
        ("read", 3, true, None),
        ("write", 3, false, Some(0)),
        ("epoll_wait", 1, true, None),
    ];
    assert_eq!(calls, expected);
    assert_eq!((diag.events(), diag.note_count("exit"), diag.noted()), (4, 1, 1));
}

#[test]
fn an_orphaned_second_half_is_a_call() {
    let (rows, diag) = parse("1001 1700000010.500000 <... clone resumed>) = 0 <0.200000>\n");
    assert_eq!((rows.syscalls[0].call.as_str(), rows.syscalls[0].time_ns), ("clone", 1_700_000_010_300_000_000));
    assert_eq!(diag.warnings()[0].code, "strace-orphan-resumed");

    let (rows, _) = parse("3619  <... futex resumed> )             = ? <unavailable>\n");
    assert_eq!((rows.syscalls[0].call.as_str(), rows.syscalls[0].ret), ("futex", None));

    let (rows, diag) = parse("1 read(3, <unfinished ...>\n1 <... write resumed>) = 5\n");
    let calls: Vec<_> = rows.syscalls.iter().map(|c| (c.call.as_str(), c.unfinished)).collect();
    assert_eq!(calls, [("read", true), ("write", false)]);
    assert_eq!(diag.warnings()[0].code, "strace-resumed-other");
}

#[test]
fn lines_that_are_no_calls() {
    let cases = [
        ("--- SIGCHLD {si_signo=SIGCHLD, si_pid=9868} ---", "signal"),
        ("--- SIGCHLD (Child exited) @ 0 (0) ---", "signal"),
        ("--- stopped by SIGSTOP ---", "signal"),
        ("+++ exited with 0 +++", "exit"),
        ("+++ killed by SIGSEGV (core dumped) +++", "exit"),
        ("+++ superseded by execve in pid 12 +++", "exit"),
        ("strace: Process 75 attached", "strace-message"),
        ("Process 75 attached (waiting for parent)", "strace-message"),
        ("Process 75 suspended", "strace-message"),
        ("[ Process PID=75 runs in 32 bit mode. ]", "strace-message"),
        (" > /lib/libc.so.6(read+0x1d) [0xe1b2d]", "stack"),
        ("", "blank"),
    ];
    for (line, kind) in cases {
        let (rows, diag) = parse(&format!("{line}\n"));
        assert_eq!((diag.note_count(kind), rows.syscalls.len(), rows.rejects.len()), (1, 0, 0), "{line}");
    }
}

#[test]
fn rejects_name_reason_and_column() {
    let cases = [
        ("hello world", "strace-not-a-call", 1),
        ("7 1700000010.5 hello world", "strace-not-a-call", 16),
        ("<... what", "strace-not-a-call", 1),
        ("read(3, \"abc", "strace-no-end", 13),
        ("read(3, \"abc\", 5", "strace-no-end", 17),
        ("read(3, \"abc\", 5) is fine", "strace-no-result", 19),
        ("read(3, \"abc\", 5) = yes", "strace-bad-result", 21),
        ("read(3, \"abc\", 5) =", "strace-bad-result", 20),
    ];
    for (line, reason, column) in cases {
        let (rows, _) = parse(line);
        let got = rows.rejects.first().map(|r| (r.reason.as_str(), r.column));
        assert_eq!(got, Some((reason, Some(column))), "{line}");
    }
}

#[test]
fn a_misleading_structure_falls_back_to_the_last_equals() {
    let c = call(r#"read(3</odd "name>, "x", 5) = 5 <0.000001>"#);
    assert_eq!((c.ret, c.fd), (Some(5), Some(3)));
    let c = call(r#"openat(AT_FDCWD, "a", O_RDONLY) = 3</odd) = 7>"#);
    assert_eq!((c.ret, c.path2.as_deref()), (Some(3), Some("/odd) = 7")));
    let c = call(r#"ioctl(3, 0x1 {odd, 0x7) = 0"#);
    assert_eq!(c.ret, Some(0));
}

#[test]
fn clocks() {
    let times = |text: &str| parse(text).0.syscalls.iter().map(|c| c.time_ns).collect::<Vec<_>>();
    assert_eq!(times("23:59:59 sync() = 0\n00:00:01 sync() = 0\n"), [86_399_000_000_000, 86_401_000_000_000]);
    assert_eq!(
        times("     0.000000 sync() = 0\n     1.500000 sync() = 0\n     0.25 sync() = 0\n"),
        [0, 1_500_000_000, 1_750_000_000]
    );
    assert_eq!(times("sync() = 0\nsync() = 0\n"), [0, 0]);
    let (_, diag) = parse("sync() = 0\n");
    assert_eq!((diag.options()["clock"].as_str(), diag.warnings()[0].code), ("none", "no-clock"));
    let (_, diag) = parse("7 1700000010.5 sync() = 0\n7 1700000010.4 sync() = 0\n");
    assert_eq!((diag.options()["clock"].as_str(), diag.warnings()[0].code), ("epoch", "clock-step"));
    let options = ParseOptions { tid: Some(42), midnight_ns: Some(5), ..ParseOptions::default() };
    let (rows, _) = crate::parse_all(&Strace, &options, b"00:00:01.5 sync() = 0\n");
    assert_eq!((rows.syscalls[0].tid, rows.syscalls[0].time_ns), (42, 1_500_000_005));
}

#[test]
fn processes_have_parents_and_names() {
    let text = "1 execve(\"/usr/bin/a-very-long-program\", [\"x\"], 0x7ff) = 0\n\
        1 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7) = 2\n\
        1 vfork( <unfinished ...>\n2 execve(\"/bin/b\", [\"x\"], 0x7ff) = 0\n1 <... vfork resumed>) = 3\n\
        4<sh> sync() = 0\n5 execve(\"/bin/no\", [\"x\"], 0x7ff) = -1 ENOENT (x)\n";
    let (rows, _) = parse(text);
    let expected = [
        (1, None, some("a-very-long-pro")),
        (2, Some(1), some("b")),
        (3, Some(1), some("a-very-long-pro")),
        (4, None, some("sh")),
        (5, None, None),
    ];
    assert_eq!(rows.processes, expected);
    assert_eq!(rows.syscalls[1].flags.as_deref(), Some("CLONE_CHILD_SETTID|SIGCHLD"));
}

#[test]
fn program_output_inside_of_a_call_is_cut_out() {
    let text = "write(2, \"sdd: Done\"..., 33sdd: Done with input.\n) = 33\nclose(3) = 0\n";
    let (rows, diag) = parse(text);
    let calls: Vec<_> = rows.syscalls.iter().map(|c| (c.call.as_str(), c.ret, c.len_bytes, c.line)).collect();
    assert_eq!(calls, [("write", Some(33), Some(33), 1), ("close", Some(0), None, 3)]);
    assert_eq!((diag.note_count("program-output"), diag.rejected()), (1, 0));

    let text =
        "waitpid(-1, Setting up (1) ...\nmore\n[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0) = 9979\nclose(3) = 0\n";
    let (rows, diag) = parse(text);
    assert_eq!((rows.syscalls[0].ret, diag.note_count("program-output"), diag.rejected()), (Some(9979), 2, 0));

    // What the program printed may look like a result.
    let text =
        "write(1, \"child says (hi) = 3\\n\", 20child says (hi) = 3\n <unfinished ...>\n<... write resumed>) = 20\n";
    let (rows, diag) = parse(text);
    assert_eq!((rows.syscalls.len(), rows.syscalls[0].ret, diag.rejected()), (1, Some(20), 0));

    let (rows, diag) = parse("read(3, \"abc\nclose(3) = 0\n");
    assert_eq!((rows.syscalls.len(), diag.rejected()), (1, 1));
}

#[test]
fn summaries_are_no_calls() {
    let text = "close(3) = 0\n% time     seconds  usecs/call     calls    errors syscall\n\
        ------ ----------- ----------- --------- --------- ----------------\n\
        \x20 0.00    0.000000           0         1         1 access\n100.00    0.000000                     3         1 total\n";
    let (rows, diag) = parse(text);
    assert_eq!((rows.syscalls.len(), diag.note_count("summary"), diag.rejected()), (1, 4, 0));
}

#[test]
fn quoted_logs_and_raw_names() {
    let (rows, _) = parse("> _llseek(4, 0, [0], SEEK_SET)            = 0\n4167<\\x73\\x68> sync() = 0\n");
    assert_eq!((rows.syscalls.len(), &rows.processes[0]), (2, &(4167, None, some("sh"))));
}

#[test]
fn a_terminal_prints_the_first_thread_without_its_id() {
    let text = "clone(child_stack=NULL, flags=SIGCHLD) = 12\n\
        wait4(12, strace: Process 12 attached\n <unfinished ...>\n\
        [pid 12] sync() = 0\n[pid 11] <... wait4 resumed>NULL, 0, NULL) = 12\n[pid 11] pause( <unfinished ...>\n\
        <... pause resumed>) = 0\n";
    let (rows, diag) = parse(text);
    let calls: Vec<_> = rows.syscalls.iter().map(|c| (c.call.as_str(), c.tid, c.unfinished, c.line)).collect();
    assert_eq!(
        calls,
        [("clone", 0, false, 1), ("sync", 12, false, 4), ("wait4", 11, false, 2), ("pause", 11, false, 6)]
    );
    assert_eq!((diag.rejected(), diag.warnings()[0].code), (0, "strace-first-thread"));
    assert_eq!(rows.processes, [(11, None, None), (12, Some(11), None)]);
}

#[test]
fn an_execve_that_ends_in_the_first_thread_is_one_call() {
    let text = "4 1600000000.000001 futex(0x7f, FUTEX_WAIT, 0, NULL) = ?\n\
        5 1600000000.000002 execve(\"/bin/x\", [\"x\"], 0x7 /* 3 vars */ <unfinished ...>\n\
        4 1600000000.000003 +++ superseded by execve in pid 5 +++\n\
        4 1600000000.000004 <... execve resumed>) = 0 <0.000001>\n\
        4 1600000000.000005 brk(NULL) = 0x5000\n";
    let (rows, diag) = parse(text);
    let calls: Vec<_> = rows.syscalls.iter().map(|c| (c.call.as_str(), c.tid, c.ret, c.unfinished)).collect();
    let expected = [("futex", 4, None, false), ("execve", 5, Some(0), false), ("brk", 4, Some(0x5000), false)];
    assert_eq!(calls, expected);
    assert_eq!((rows.syscalls[1].path.as_deref(), rows.syscalls[1].line), (Some("/bin/x"), 2));
    assert_eq!((diag.note_count("resumed"), diag.note_count("exit"), diag.warnings().len()), (1, 1, 0));
    let comm = |tid: i64| rows.processes.iter().find(|p| p.0 == tid).and_then(|p| p.2.clone());
    assert_eq!(comm(4).as_deref(), Some("x"));
    // Without the first half in the log it is a call without a beginning.
    let (rows, diag) = parse(text.split_once("\n5 ").map(|t| t.1.split_once('\n').unwrap().1).unwrap());
    assert_eq!((rows.syscalls.len(), diag.warnings()[0].code), (2, "strace-orphan-resumed"));
}

#[test]
fn an_execve_over_the_files_of_two_threads_is_one_call() {
    let of = |tid: i64, text: &str| {
        let options = ParseOptions { tid: Some(tid), ..ParseOptions::default() };
        let (rows, diag) = crate::parse_all(&Strace, &options, text.as_bytes());
        assert!(diag.adds_up());
        (rows.syscalls, diag)
    };
    let (thread, _) = of(5, "1600000000.000002 execve(\"/bin/x\", [\"x\"], 0x7 /* 3 vars */ <pid changed to 4 ...>\n");
    assert_eq!((thread.len(), thread[0].ret, thread[0].unfinished), (1, Some(0), false));
    assert_eq!(thread[0].path.as_deref(), Some("/bin/x"));
    let text = "1600000000.000003 +++ superseded by execve in pid 5 +++\n\
        1600000000.000004 <... execve resumed>) = 0\n1600000000.000005 brk(NULL) = 0x5000\n";
    let (leader, diag) = of(4, text);
    assert_eq!((leader.len(), diag.note_count("resumed"), diag.warnings().len()), (1, 1, 0));
}

#[test]
fn vectors_and_devices_of_other_versions() {
    assert_eq!(call(r#"writev(3, [{"abc", 3}, {""..., 10}], 2) = 13"#).len_bytes, Some(13));
    let c = call(r#"read(3</dev/sda<block 8:0>>, "", 512) = 512"#);
    assert_eq!((c.fd, c.path.as_deref()), (Some(3), Some("/dev/sda")));
    let c = call(r#"openat(AT_FDCWD</>, "dev/tty", O_RDWR) = 3</dev/tty<char 5:0>>"#);
    assert_eq!((c.path.as_deref(), c.path2.as_deref()), (Some("/dev/tty"), Some("/dev/tty")));
    assert_eq!(call(r#"read(3</tmp/a>(deleted), "x", 10) = 1"#).path.as_deref(), Some("/tmp/a"));
}

#[test]
fn many_calls_without_a_beginning_take_no_more_than_their_share() {
    // Each thread is new and each second half has no first: a search over all threads would take minutes.
    let text: String = (1..=60_000).map(|i| format!("{i} 1600000000.000001 <... read resumed>) = 0\n")).collect();
    let begin = std::time::Instant::now();
    let (rows, _) = parse(&text);
    assert_eq!(rows.syscalls.len(), 60_000);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn few_calls_before_a_table_are_a_log_of_calls() {
    let text = b"write(1, \"a\", 1) = 1\n+++ exited with 0 +++\n\
        % time     seconds  usecs/call     calls    errors syscall\n\
        ------ ----------- ----------- --------- --------- ----------------\n\
        \x20 0.00    0.000000           0         1           write\n\
        ------ ----------- ----------- --------- --------- ----------------\n\
        100.00    0.000000           0         1           total\n";
    let id = |text| crate::registry::detect(Head { bytes: text, complete: true }).map(|f| f.id()).ok();
    assert_eq!(id(text), Some("strace"));
    let table = &text[text.iter().position(|b| *b == b'%').unwrap()..];
    assert_eq!(id(table), Some("strace-summary"));
}

#[test]
fn decoded_process_ids_link_tasks() {
    let text = "[pid 1234<my prog>] 1.000001 kill(1235<other (x)>, SIGTERM) = 0 <0.000010>\n\
        1234<my prog> 1.000002 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 1235<other>\n\
        1234<my prog> 1.000003 clone(child_stack=NULL, flags=SIGCHLD) = 5 /* 1236 in strace's PID NS */\n\
        1234<my prog> 1.000004 kill(5 /* 1236 in strace's PID NS */, SIGTERM) = 0\n\
        1236<x> 1.000005 +++ killed by SIGTERM +++\n";
    let (rows, diag) = parse(text);
    let got: Vec<_> = rows.syscalls.iter().map(|s| (s.tid, s.call.as_str(), s.ret)).collect();
    let of = |call, ret| (1234, call, Some(ret));
    assert_eq!(got, [of("kill", 0), of("wait4", 1235), of("clone", 1236), of("kill", 0)]);
    assert_eq!(diag.rejected(), 0);
    assert!(rows.processes.contains(&(1236, Some(1234), Some("x".into()))), "{:?}", rows.processes);
}
