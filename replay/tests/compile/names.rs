//! Which file a name means.

use kreplay_replay::compile::{CompileOptions, OwnedSyscall};
use kreplay_replay::program::{FileKind, Op};

use crate::trace::*;

fn rename(from: &str, to: &str) -> OwnedSyscall {
    OwnedSyscall { path2: Some(to.to_owned()), ..on_path("rename", from) }
}

#[test]
fn a_file_renamed_over_stays_with_who_has_it_open() {
    let p = Trace::new()
        .file("/d/a", 100)
        .file("/d/b", 200)
        .then(open("/d/b", "O_RDWR", 3))
        .then(rename("/d/a", "/d/b"))
        .then(io("read", 3, 10))
        .then(open("/d/b", "O_RDONLY", 4))
        .compile();
    let (a, b) = (file(&p, "/d/a").0, file(&p, "/d/b").0);
    assert_eq!(
        ops(&p, 1),
        [
            Op::Open { ofd: 0, file: b, create: false, truncate: false },
            Op::Unlink { file: b },
            Op::Stat { file: a, negative: false },
            Op::Read { ofd: 0, off: 0, len: 10 },
            Op::Open { ofd: 1, file: a, create: false, truncate: false },
        ]
    );
}

#[test]
fn writes_after_an_unlink_go_to_the_old_file() {
    let p = Trace::new()
        .file("/a", 100)
        .then(open("/a", "O_RDWR", 3))
        .then(on_path("unlink", "/a"))
        .then(io("write", 3, 10))
        .then(failed(on_path("stat", "/a"), "ENOENT"))
        .then(open("/a", "O_RDWR|O_CREAT", 4))
        .then(io("write", 4, 5))
        .compile();
    let both: Vec<usize> = (0..p.files.len()).filter(|i| p.files[*i].path == "/a").collect();
    assert_eq!(both.len(), 2);
    let (old, new) = (both[0] as u32, both[1] as u32);
    assert_eq!(
        ops(&p, 1)[1..],
        [
            Op::Unlink { file: old },
            Op::Write { ofd: 0, off: 0, len: 10 },
            Op::Stat { file: old, negative: true },
            Op::Open { ofd: 1, file: new, create: true, truncate: false },
            Op::Write { ofd: 1, off: 0, len: 5 },
        ]
    );
    assert!(p.files[old as usize].exists && !p.files[new as usize].exists);
    assert_eq!(p.coverage.calls_failed, 1);
}

#[test]
fn creation_is_not_guessed_from_the_flag_alone() {
    let contents = Trace::new()
        .then(open("/a", "O_RDWR|O_CREAT", 3))
        .then(OwnedSyscall { len_bytes: Some(4096), ..io("read", 3, 10) })
        .compile();
    assert!(matches!(ops(&contents, 1)[0], Op::Open { create: false, .. }));
    let fresh = Trace::new().then(open("/a", "O_RDWR|O_CREAT", 3)).then(io("write", 3, 10)).compile();
    assert!(matches!(ops(&fresh, 1)[0], Op::Open { create: true, .. }));
}

#[test]
fn truncation_of_an_existing_file() {
    let p = Trace::new()
        .file("/a", 5000)
        .then(open("/a", "O_WRONLY|O_CREAT|O_TRUNC", 3))
        .then(io("write", 3, 10))
        .then(OwnedSyscall { fd: Some(3), len_bytes: Some(4), ..call("ftruncate") })
        .compile();
    let (a, info) = file(&p, "/a");
    assert_eq!(info.initial_size, 5000);
    assert_eq!(ops(&p, 1)[0], Op::Open { ofd: 0, file: a, create: false, truncate: true });
    assert_eq!(ops(&p, 1)[2], Op::Truncate { file: a, len: 4 });
}

#[test]
fn sparse_write_and_seek_to_the_end() {
    let p = Trace::new()
        .file("/a", 0)
        .then(open("/a", "O_RDWR", 3))
        .then(OwnedSyscall { offset_bytes: Some(1 << 20), ..io("pwrite64", 3, 1) })
        .then(OwnedSyscall {
            fd: Some(3),
            offset_bytes: Some(0),
            flags: Some("SEEK_END".into()),
            ret: Some((1 << 20) + 1),
            ..call("lseek")
        })
        .then(io("write", 3, 1))
        .compile();
    assert_eq!(ops(&p, 1)[3], Op::Write { ofd: 0, off: (1 << 20) + 1, len: 1 });
    assert_eq!(file(&p, "/a").1.initial_size, 0);
    assert_eq!(file(&p, "/a").1.pages, 257);
}

#[test]
fn relative_names_follow_the_working_directory_and_directory_descriptors() {
    let p = Trace::new()
        .file("/w/a", 10)
        .file("/w/s/b", 10)
        .then(on_path("chdir", "/w"))
        .then(open("a", "O_RDONLY", 3))
        .then(open("s", "O_RDONLY|O_DIRECTORY", 4))
        .then(OwnedSyscall { fd: Some(4), ..open("../s/./b", "O_RDONLY", 5) })
        .compile();
    assert!(p.files.iter().all(|f| !f.path.contains("cwd")), "{:?}", p.files);
    assert_eq!(file(&p, "/w/s").1.kind, FileKind::Directory);
    assert_eq!(file(&p, "/w/s/b").1.parent, Some(file(&p, "/w/s").0));
    assert_eq!(file(&p, "/w/a").1.initial_size, 10);
}

#[test]
fn mkdir_creates_and_getdents_reads() {
    let p = Trace::new()
        .then(on_path("mkdir", "/d"))
        .then(open("/d", "O_RDONLY|O_DIRECTORY", 3))
        .then(OwnedSyscall { args: Some("3, 0x55 /* 28 entries */, 32768".into()), ..io("getdents64", 3, 880) })
        .then(OwnedSyscall { ret: Some(0), ..io("getdents64", 3, 0) })
        .compile();
    let d = file(&p, "/d").0;
    let o = ops(&p, 1);
    assert!(matches!(o[0], Op::Open { file, create: true, .. } if file == d));
    assert!(matches!(o[1], Op::Close { .. }));
    assert!(matches!(o[3], Op::Readdir { file, off: 0, len } if file == d && len > 400 && len < 880), "{:?}", o[3]);
    assert_eq!(o.len(), 4);
}

#[test]
fn files_outside_of_the_roots_cost_cpu_or_time() {
    let opts = CompileOptions { roots: vec!["/mnt".into()], ..CompileOptions::default() };
    let p = Trace::new()
        .then(open("/etc/passwd", "O_RDONLY", 3))
        .then(OwnedSyscall { path: Some("/etc/passwd".into()), ..io("read", 3, 10) })
        .then(OwnedSyscall { dur_ns: Some(5_000_000), path: Some("/etc/passwd".into()), ..io("read", 3, 10) })
        .then(open("/mnt/a", "O_RDONLY", 4))
        .compile_with(&opts);
    let o = ops(&p, 1);
    assert!(matches!(o[0], Op::External { time } if time.get() == 5_000_000), "{o:?}");
    assert!(matches!(o[1], Op::Open { .. }));
    assert!(p.files.iter().all(|f| f.path == "[meta]" || f.path.starts_with("/mnt")));
    assert_eq!(noted(&p, "outside of the model"), 3);
}

#[test]
fn special_files_are_no_files() {
    let p = Trace::new()
        .then(open("/dev/null", "O_WRONLY", 3))
        .then(io("write", 3, 10))
        .then(open("/proc/self/maps", "O_RDONLY", 4))
        .then(OwnedSyscall { ret: Some(5), ..call("socket") })
        .then(OwnedSyscall { path: Some("socket:[77]".into()), ..io("read", 5, 10) })
        .compile();
    assert!(p.files.iter().all(|f| f.path == "[meta]"));
    assert!(matches!(ops(&p, 1)[..], [Op::External { .. }]));
}
