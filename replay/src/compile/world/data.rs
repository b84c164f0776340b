//! Reading, writing, seeking, syncing.

use kreplay_traces::event::SyscallRow;

use super::fd::has;
use super::{World, args};
use crate::compile::fds::{DescId, StreamId, Target};
use crate::program::{Advice, FileId, Op};

/// Largest offset in a file that can be simulated, bytes: half of the page ids there are.
const LONGEST_FILE: u64 = 8 << 40;

impl World<'_> {
    /// Calls that move data or make it durable. Returns whether it was one.
    pub(super) fn data_call(&mut self, r: &SyscallRow<'_>) -> bool {
        match r.call {
            "read" | "readv" => self.read(r, None),
            "pread" | "pread64" | "preadv" | "preadv2" => self.read(r, explicit_offset(r)),
            "write" | "writev" => self.write(r, None),
            "pwrite" | "pwrite64" | "pwritev" | "pwritev2" => self.write(r, explicit_offset(r)),
            "lseek" | "_llseek" | "llseek" => self.seek(r),
            "sendfile" | "sendfile64" => {
                let from = args::nth(r.args, 2).and_then(bracketed);
                self.transfer(r, (r.fd2, r.path2, from), (r.fd, r.path, None));
            }
            "copy_file_range" | "splice" => {
                let from = args::nth(r.args, 1).and_then(bracketed);
                let to = args::nth(r.args, 3).and_then(bracketed);
                self.transfer(r, (r.fd, r.path, from), (r.fd2, r.path2, to));
            }
            "getdents" | "getdents64" => self.read_directory(r),
            "fsync" | "fdatasync" => {
                if let Some(file) = self.file_of(r, r.fd, r.path).filter(|f| self.is_real(*f)) {
                    self.survey.seeks(file);
                    self.emit(Op::Fsync { file, data_only: r.call == "fdatasync" });
                } else {
                    self.outside(r);
                }
            }
            "sync_file_range" | "sync_file_range2" => {
                self.notes.count("sync_file_range, replayed as fsync if it waits and not at all otherwise");
                if let Some(file) = self.file_of(r, r.fd, r.path).filter(|f| self.is_real(*f))
                    && r.flags.is_some_and(|f| f.contains("WAIT_AFTER"))
                {
                    self.emit(Op::Fsync { file, data_only: false });
                }
            }
            "sync" => self.emit(Op::Sync),
            "syncfs" => {
                if self.file_of(r, r.fd, r.path).is_some() {
                    self.emit(Op::Sync);
                } else {
                    self.outside(r);
                }
            }
            "ftruncate" | "ftruncate64" => {
                if let (Some(file), Some(len)) = (self.file_of(r, r.fd, r.path), length(r)) {
                    self.truncate(file, len);
                }
            }
            "truncate" | "truncate64" => {
                let path = r.path.map(|p| self.locate(r, p, None)).filter(|p| self.names.is_modelled(p));
                if let (Some(path), Some(len)) = (path, length(r)) {
                    let file = self.intern(&path, true);
                    self.found(file);
                    self.truncate(file, len);
                }
            }
            "fallocate" => {
                if has(r, "FALLOC_FL_PUNCH_HOLE") || has(r, "FALLOC_FL_KEEP_SIZE") || has(r, "FALLOC_FL_COLLAPSE_RANGE")
                {
                    self.notes.count("fallocate that punches holes, keeps the size or moves data (not replayed)");
                } else if let (Some(file), Some(len)) = (self.file_of(r, r.fd, r.path), length(r)) {
                    let end = r.offset_bytes.and_then(|o| u64::try_from(o).ok()).unwrap_or(0).saturating_add(len);
                    if end > self.names.get(file).size {
                        self.truncate(file, end);
                    }
                }
            }
            "readahead" | "fadvise64" | "posix_fadvise" | "fadvise64_64" => {
                self.advise(r);
            }
            "io_submit" | "io_uring_enter" => {
                self.notes.count("asynchronous I/O submissions (their requests are not reconstructed)");
            }
            _ => return false,
        }
        true
    }

    /// Advice on a file: what of it changes what is read, or kept.
    fn advise(&mut self, r: &SyscallRow<'_>) {
        let advice = match r.call {
            "readahead" => Some(Advice::WillNeed),
            _ => [
                ("POSIX_FADV_NORMAL", Advice::Normal),
                ("POSIX_FADV_SEQUENTIAL", Advice::Sequential),
                ("POSIX_FADV_RANDOM", Advice::Random),
                ("POSIX_FADV_WILLNEED", Advice::WillNeed),
                ("POSIX_FADV_DONTNEED", Advice::DontNeed),
            ]
            .into_iter()
            .find_map(|(word, advice)| has(r, word).then_some(advice)),
        };
        let Some(advice) = advice else {
            self.notes.count("read-ahead advice of an unknown kind (not replayed)");
            return;
        };
        let Some(desc) = r.fd.and_then(|fd| self.resolve(r, fd, r.path)) else { return };
        let Target::File { ofd, file, .. } = self.fds.target(desc) else { return };
        if self.is_real(file) {
            let off = r.offset_bytes.and_then(|o| u64::try_from(o).ok()).unwrap_or(0);
            self.emit(Op::Advise { ofd, off, len: length(r).unwrap_or(0), advice });
        }
    }

    fn read(&mut self, r: &SyscallRow<'_>, explicit: Option<u64>) {
        let (Some(fd), Some(n)) = (r.fd, r.ret.and_then(|n| u64::try_from(n).ok())) else { return };
        let Some(desc) = self.resolve(r, fd, r.path) else { return };
        match self.fds.target(desc) {
            Target::File { file, .. } if self.is_real(file) => {
                let short = matches!(r.call, "read" | "pread" | "pread64") && length(r).is_some_and(|want| n < want);
                self.read_file(desc, explicit, n, short);
            }
            Target::Stream { read: Some(stream), .. } if n > 0 => self.take(r, stream, n),
            Target::File { .. } | Target::Stream { .. } => self.external(r),
            Target::Other => self.other_end(r),
        }
    }

    /// Reads of sockets and terminals wait for somebody; of files outside of the model they usually do not.
    fn other_end(&mut self, r: &SyscallRow<'_>) {
        if r.path.is_some_and(|p| p.starts_with('/') && !p.starts_with("/dev/")) {
            self.outside(r);
        } else {
            self.external(r);
        }
    }

    fn write(&mut self, r: &SyscallRow<'_>, explicit: Option<u64>) {
        let (Some(fd), Some(n)) = (r.fd, r.ret.and_then(|n| u64::try_from(n).ok())) else { return };
        let Some(desc) = self.resolve(r, fd, r.path) else { return };
        match self.fds.target(desc) {
            Target::File { file, .. } if self.is_real(file) => self.write_file(desc, explicit, n),
            Target::Stream { write: Some(stream), .. } => self.give(r, stream, n),
            Target::File { .. } | Target::Stream { .. } => {}
            Target::Other => self.outside(r),
        }
    }

    /// Where a transfer ends; `None`, and counted, if that is beyond any file whose pages could be simulated (a damaged
    /// line).
    fn end_of(&mut self, off: u64, n: u64) -> Option<u64> {
        let end = off.checked_add(n).filter(|end| *end <= LONGEST_FILE);
        if end.is_none() {
            self.notes.count("calls that reach beyond 8 TiB of a file (left out)");
        }
        end
    }

    /// `short`: fewer bytes came than were asked for, so the file ends there.
    fn read_file(&mut self, desc: DescId, explicit: Option<u64>, n: u64, short: bool) {
        let Target::File { ofd, file, offset, direct, .. } = self.fds.target(desc) else { return };
        if explicit.is_some() {
            self.survey.seeks(file);
        }
        let off = explicit.unwrap_or(offset);
        let Some(end) = self.end_of(off, n) else { return };
        let seen = self.names.get(file).size;
        let evidence = self.survey.size(file);
        if n > 0 {
            evidence.at_least(end);
        }
        if short && (n > 0 || off <= seen) {
            evidence.exactly(end);
        }
        if n == 0 {
            return;
        }
        let state = self.names.get_mut(file);
        state.grow_to(end);
        state.reaches(end, self.line);
        self.emit(if direct { Op::Direct { ofd, off, len: n, write: false } } else { Op::Read { ofd, off, len: n } });
        if explicit.is_none() {
            self.set_offset(desc, end);
        }
    }

    fn write_file(&mut self, desc: DescId, explicit: Option<u64>, n: u64) {
        let Target::File { ofd, file, offset, append, sync, direct } = self.fds.target(desc) else { return };
        if n == 0 {
            return;
        }
        let off = if append { self.names.get(file).size } else { explicit.unwrap_or(offset) };
        let Some(end) = self.end_of(off, n) else { return };
        let state = self.names.get_mut(file);
        state.grow_to(end);
        state.reaches(end, self.line);
        if append {
            self.survey.size(file).appended(n);
        } else {
            self.survey.size(file).wrote(end);
        }
        if explicit.is_some() {
            self.survey.seeks(file);
        }
        self.emit(if direct { Op::Direct { ofd, off, len: n, write: true } } else { Op::Write { ofd, off, len: n } });
        if sync {
            self.emit(Op::Fsync { file, data_only: false });
        }
        if explicit.is_none() {
            self.set_offset(desc, end);
        }
    }

    fn set_offset(&mut self, desc: DescId, to: u64) {
        if let Target::File { offset, .. } = self.fds.target_mut(desc) {
            *offset = to;
        }
    }

    fn seek(&mut self, r: &SyscallRow<'_>) {
        let Some(desc) = r.fd.and_then(|fd| self.resolve(r, fd, r.path)) else { return };
        let Target::File { ofd, file, offset, .. } = self.fds.target(desc) else { return };
        let to = if r.call == "lseek" {
            r.ret
        } else {
            args::nth(r.args, 2)
                .and_then(bracketed)
                .and_then(|v| i64::try_from(v).ok())
                .or(r.offset_bytes.filter(|_| has(r, "SEEK_SET")))
        };
        let Some(to) = to.and_then(|v| u64::try_from(v).ok()) else { return };
        self.survey.seeks(file);
        if has(r, "SEEK_END")
            && let Some(size) = r.offset_bytes.and_then(|delta| to.checked_add_signed(-delta))
        {
            self.size_seen(file, size);
        }
        if to != offset {
            self.set_offset(desc, to);
            if self.is_real(file) {
                self.emit(Op::Seek { ofd });
            }
        }
    }

    /// The size of a file was seen.
    pub(super) fn size_seen(&mut self, file: FileId, bytes: u64) {
        self.survey.size(file).exactly(bytes);
        // The second pass keeps its own account: only growth that it did not know of is taken over.
        self.names.get_mut(file).grow_to(bytes);
    }

    fn truncate(&mut self, file: FileId, len: u64) {
        self.survey.seeks(file);
        let evidence = self.survey.size(file);
        evidence.found();
        evidence.set();
        self.names.get_mut(file).set_size(len);
        if self.is_real(file) {
            self.emit(Op::Truncate { file, len });
        }
    }

    /// sendfile, copy_file_range, splice: a read and a write of the same bytes, without a detour through user memory.
    fn transfer(
        &mut self,
        r: &SyscallRow<'_>,
        from: (Option<i64>, Option<&str>, Option<u64>),
        to: (Option<i64>, Option<&str>, Option<u64>),
    ) {
        let Some(n) = r.ret.and_then(|n| u64::try_from(n).ok()) else { return };
        let source = from.0.and_then(|fd| self.resolve(r, fd, from.1));
        match source.map(|d| (d, self.fds.target(d))) {
            Some((desc, Target::File { .. })) => self.read_file(desc, from.2, n, n == 0),
            Some((_, Target::Stream { read: Some(stream), .. })) if n > 0 => self.take(r, stream, n),
            _ => {}
        }
        let sink = to.0.and_then(|fd| self.resolve(r, fd, to.1));
        match sink.map(|d| (d, self.fds.target(d))) {
            Some((desc, Target::File { .. })) => self.write_file(desc, to.2, n),
            Some((_, Target::Stream { write: Some(stream), .. })) if n > 0 => self.give(r, stream, n),
            _ => {}
        }
    }

    fn read_directory(&mut self, r: &SyscallRow<'_>) {
        let Some(desc) = r.fd.and_then(|fd| self.resolve(r, fd, r.path)) else { return };
        let Target::File { ofd: _, file, offset, .. } = self.fds.target(desc) else { return self.outside(r) };
        self.names.get_mut(file).directory = true;
        self.survey.seeks(file);
        let returned = r.ret.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let len = directory_bytes(r.call, returned, args::entry_count(r.args));
        if len == 0 {
            return;
        }
        let Some(end) = self.end_of(offset, len) else { return };
        let state = self.names.get_mut(file);
        state.grow_to(end);
        state.reaches(end, self.line);
        self.survey.size(file).found();
        self.emit(Op::Readdir { file, off: offset, len });
        self.set_offset(desc, end);
    }

    /// Read from a stream: wait for the bytes if the trace has who wrote them.
    pub(super) fn take(&mut self, r: &SyscallRow<'_>, stream: StreamId, n: u64) {
        self.survey.stream_read(stream, Self::end_ns(r), n);
        match self.stream_channel(stream) {
            Some(channel) => self.emit(Op::Await { channel, n: clip(n) }),
            None => self.external(r),
        }
    }

    /// Write to a stream.
    pub(super) fn give(&mut self, r: &SyscallRow<'_>, stream: StreamId, n: u64) {
        self.survey.stream_write(stream, r.time_ns, n);
        if let Some(channel) = self.stream_channel(stream) {
            self.emit(Op::Post { channel, n: clip(n) });
        }
    }

    fn stream_channel(&mut self, stream: StreamId) -> Option<u32> {
        let out = self.out.as_mut()?;
        if !out.known.streams[stream] {
            return None;
        }
        if let Some(channel) = out.stream_channels.get(&stream) {
            return Some(*channel);
        }
        let channel = out.new_channel();
        out.stream_channels.insert(stream, channel);
        Some(channel)
    }
}

/// One call moves less than 2 GiB.
fn clip(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn length(r: &SyscallRow<'_>) -> Option<u64> {
    r.len_bytes.and_then(|n| u64::try_from(n).ok())
}

/// pread's offset; preadv2's -1 means the description's own.
fn explicit_offset(r: &SyscallRow<'_>) -> Option<u64> {
    r.offset_bytes.and_then(|o| u64::try_from(o).ok())
}

/// `[4096]` or `[4096] => [8192]`: the value passed in.
fn bracketed(text: &str) -> Option<u64> {
    text.strip_prefix('[').and_then(args::leading_number).and_then(|v| u64::try_from(v).ok())
}

/// Bytes of an ext2 directory that hold what getdents returned.
///
/// A record on disk takes 8 bytes and the name, rounded up to 4; getdents64 returns 19 bytes and the name with its
/// terminating zero, rounded up to 8 (10 bytes for getdents of 32 bits, rounded up to 4). With the number of entries the
/// names' length follows to within the rounding; without it names of 12 bytes are assumed.
fn directory_bytes(call: &str, returned: u64, entries: Option<u64>) -> u64 {
    let (fixed, round) = if call == "getdents64" { (20, 8) } else { (11, 4) };
    let entries = entries.unwrap_or_else(|| returned.div_ceil((fixed + 12_u64).next_multiple_of(round)));
    let names = returned.saturating_sub(entries * (fixed + round / 2 - 1));
    entries * 9 + names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_bytes_come_from_entries() {
        // 28 entries of getdents64 in 880 bytes: about 8.5 bytes a name; ext2 needs 16 to 20 bytes for each.
        let bytes = directory_bytes("getdents64", 880, Some(28));
        assert!((28 * 16..=28 * 20).contains(&bytes), "{bytes}");
        assert_eq!(directory_bytes("getdents64", 0, None), 0);
    }

    #[test]
    fn offsets_in_brackets() {
        assert_eq!(bracketed("[4096] => [8192]"), Some(4096));
        assert_eq!(bracketed("NULL"), None);
    }
}
