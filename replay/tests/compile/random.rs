//! Random call sequences against a naive interpreter.

use std::collections::BTreeMap;

use kreplay_replay::compile::OwnedSyscall;
use kreplay_replay::program::Op;
use proptest::prelude::*;

use crate::trace::*;

#[derive(Clone, Debug)]
enum Call {
    Open { name: u8, trunc: bool, append: bool },
    Close { fd: u8 },
    Dup { fd: u8 },
    Read { fd: u8, n: u16 },
    Write { fd: u8, n: u16 },
    Pread { fd: u8, off: u32, n: u16 },
    Seek { fd: u8, to: u32 },
    Truncate { fd: u8, len: u32 },
    Unlink { name: u8 },
    Rename { from: u8, to: u8 },
    Fork,
}

fn calls() -> impl Strategy<Value = Vec<(u8, Call)>> {
    let fd = 0_u8..6;
    let call = prop_oneof![
        4 => (0_u8..4, any::<bool>(), any::<bool>()).prop_map(|(name, trunc, append)| Call::Open { name, trunc, append }),
        2 => fd.clone().prop_map(|fd| Call::Close { fd }),
        1 => fd.clone().prop_map(|fd| Call::Dup { fd }),
        4 => (fd.clone(), 1_u16..9000).prop_map(|(fd, n)| Call::Read { fd, n }),
        4 => (fd.clone(), 1_u16..9000).prop_map(|(fd, n)| Call::Write { fd, n }),
        2 => (fd.clone(), 0_u32..100_000, 1_u16..9000).prop_map(|(fd, off, n)| Call::Pread { fd, off, n }),
        2 => (fd.clone(), 0_u32..100_000).prop_map(|(fd, to)| Call::Seek { fd, to }),
        1 => (fd, 0_u32..50_000).prop_map(|(fd, len)| Call::Truncate { fd, len }),
        1 => (0_u8..4).prop_map(|name| Call::Unlink { name }),
        1 => (0_u8..4, 0_u8..4).prop_map(|(from, to)| Call::Rename { from, to }),
        1 => Just(Call::Fork),
    ];
    proptest::collection::vec((0_u8..3, call), 1..60)
}

/// A file system with names, inodes and descriptors, as simple as can be.
#[derive(Default)]
struct Naive {
    names: BTreeMap<u8, usize>,
    sizes: Vec<u64>,
    /// (inode, offset, append)
    descs: Vec<(usize, u64, bool)>,
    tables: BTreeMap<i64, BTreeMap<i64, usize>>,
    /// Expected (task, offset, length, is a write).
    moved: Vec<(i64, u64, u64, bool)>,
}

impl Naive {
    fn lowest(&self, tid: i64) -> i64 {
        (3..).find(|fd| !self.tables[&tid].contains_key(fd)).expect("there is always one")
    }

    fn apply(&mut self, tid: i64, c: &Call, forks: &mut i64) -> Option<OwnedSyscall> {
        let desc = |fd: u8| self.tables[&tid].get(&(3 + i64::from(fd))).copied();
        let number = |fd: u8| 3 + i64::from(fd);
        let row = match *c {
            Call::Open { name, trunc, append } => {
                let inode = *self.names.entry(name).or_insert_with(|| {
                    self.sizes.push(0);
                    self.sizes.len() - 1
                });
                if trunc {
                    self.sizes[inode] = 0;
                }
                let fd = self.lowest(tid);
                self.descs.push((inode, 0, append));
                self.tables.get_mut(&tid)?.insert(fd, self.descs.len() - 1);
                let flags = format!(
                    "O_RDWR|O_CREAT{}{}",
                    if trunc { "|O_TRUNC" } else { "" },
                    if append { "|O_APPEND" } else { "" }
                );
                open(&format!("/f{name}"), &flags, fd)
            }
            Call::Close { fd } => {
                self.tables.get_mut(&tid)?.remove(&number(fd))?;
                close(number(fd))
            }
            Call::Dup { fd } => {
                let d = desc(fd)?;
                let to = self.lowest(tid);
                self.tables.get_mut(&tid)?.insert(to, d);
                OwnedSyscall { fd: Some(number(fd)), ret: Some(to), ..call("dup") }
            }
            Call::Read { fd, n } => {
                let d = desc(fd)?;
                let (inode, off, _) = self.descs[d];
                let got = self.sizes[inode].saturating_sub(off).min(u64::from(n));
                self.descs[d].1 += got;
                if got > 0 {
                    self.moved.push((tid, off, got, false));
                }
                OwnedSyscall { len_bytes: Some(i64::from(n)), ..io("read", number(fd), got as i64) }
            }
            Call::Write { fd, n } => {
                let d = desc(fd)?;
                let (inode, off, append) = self.descs[d];
                let off = if append { self.sizes[inode] } else { off };
                let end = off + u64::from(n);
                self.descs[d].1 = end;
                self.sizes[inode] = self.sizes[inode].max(end);
                self.moved.push((tid, off, u64::from(n), true));
                io("write", number(fd), i64::from(n))
            }
            Call::Pread { fd, off, n } => {
                let (inode, ..) = self.descs[desc(fd)?];
                let got = self.sizes[inode].saturating_sub(u64::from(off)).min(u64::from(n));
                if got > 0 {
                    self.moved.push((tid, u64::from(off), got, false));
                }
                OwnedSyscall {
                    offset_bytes: Some(i64::from(off)),
                    len_bytes: Some(i64::from(n)),
                    ..io("pread64", number(fd), got as i64)
                }
            }
            Call::Seek { fd, to } => {
                let d = desc(fd)?;
                self.descs[d].1 = u64::from(to);
                let flags = Some("SEEK_SET".to_owned());
                OwnedSyscall { fd: Some(number(fd)), ret: Some(i64::from(to)), flags, ..call("lseek") }
            }
            Call::Truncate { fd, len } => {
                let (inode, ..) = self.descs[desc(fd)?];
                self.sizes[inode] = u64::from(len);
                OwnedSyscall { fd: Some(number(fd)), len_bytes: Some(i64::from(len)), ..call("ftruncate") }
            }
            Call::Unlink { name } => {
                self.names.remove(&name)?;
                on_path("unlink", &format!("/f{name}"))
            }
            Call::Rename { from, to } => {
                if from == to {
                    return None;
                }
                let inode = self.names.remove(&from)?;
                self.names.insert(to, inode);
                OwnedSyscall { path2: Some(format!("/f{to}")), ..on_path("rename", &format!("/f{from}")) }
            }
            Call::Fork => {
                if *forks > 4 {
                    return None;
                }
                *forks += 1;
                let copy = self.tables[&tid].clone();
                self.tables.insert(*forks, copy);
                clone(*forks, "SIGCHLD")
            }
        };
        Some(by(tid, row))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Offsets and lengths are those of the naive interpreter; the program obeys its own rules (compile checks them).
    #[test]
    fn offsets_agree_with_a_naive_interpreter(calls in calls()) {
        let mut naive = Naive::default();
        naive.tables.insert(1, BTreeMap::new());
        let mut forks = 1;
        let mut trace = Trace::new().then(call("getpid"));
        for (who, c) in &calls {
            let tid = 1 + i64::from(*who) % forks;
            if let Some(row) = naive.apply(tid, c, &mut forks) {
                trace = trace.then(row);
            }
        }
        let p = trace.compile();
        for tid in 1..=forks {
            let expected: Vec<_> = naive.moved.iter().filter(|m| m.0 == tid).map(|m| (m.1, m.2, m.3)).collect();
            let got: Vec<_> = p.tasks.iter().filter(|t| t.tid == tid).flat_map(|t| &t.ops).filter_map(|o| match *o {
                Op::Read { off, len, .. } => Some((off, len, false)),
                Op::Write { off, len, .. } => Some((off, len, true)),
                _ => None,
            }).collect();
            prop_assert_eq!(got, expected);
        }
        prop_assert_eq!(p.coverage.unknown_fds, 0);
        prop_assert!(p.files.iter().all(|f| f.initial_size == 0 || f.kind != kreplay_replay::program::FileKind::Regular));
    }
}
