//! How large a file was before the trace, from what the trace shows of it.
//!
//! Evidence counts only as far as the trace's own writes do not explain it: a read that ends where the trace wrote
//! before says nothing about the initial size.

use kreplay_traces::units::PAGE_BYTES;

/// Added to a size that is only known to be at least so much: one read-ahead window of 128 KiB, so that read-ahead
/// beyond the last read is not cut off (a guess).
const WINDOW_BYTES: u64 = 128 * 1024;

/// Whether the file was there before the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Existence {
    #[default]
    Unknown,
    /// Opened with O_CREAT and without O_EXCL first: it was there if it turns out to have had contents.
    OpenedToCreate,
    There,
    Absent,
}

/// Evidence about one file, collected in trace order.
#[derive(Clone, Debug, Default)]
pub(super) struct SizeEvidence {
    existence: Existence,
    /// Size before the trace: at least this, or exactly if `exact`.
    initial: u64,
    exact: bool,
    /// The size no longer depends on the initial one (truncated, created).
    reset: bool,
    /// End of the furthest write at an offset.
    written: u64,
    /// Bytes appended.
    appended: u64,
}

impl SizeEvidence {
    /// The trace's side table knows the size.
    pub(super) fn recorded(bytes: u64) -> Self {
        Self { existence: Existence::There, initial: bytes, exact: true, ..Self::default() }
    }

    /// The name was found (or the file is otherwise known to be there).
    pub(super) fn found(&mut self) {
        if self.existence == Existence::Unknown {
            self.existence = Existence::There;
        }
    }

    /// The name was looked up in vain, or made in a way that fails if it is there.
    pub(super) fn absent(&mut self) {
        if matches!(self.existence, Existence::Unknown) {
            self.existence = Existence::Absent;
            self.reset = true;
        }
    }

    /// Opened with O_CREAT but not O_EXCL.
    pub(super) fn opened_to_create(&mut self) {
        if self.existence == Existence::Unknown {
            self.existence = Existence::OpenedToCreate;
        }
    }

    /// The size was set.
    pub(super) fn set(&mut self) {
        self.reset = true;
    }

    /// Bytes up to `end` were there to be read.
    pub(super) fn at_least(&mut self, end: u64) {
        if !self.reset && !self.exact && self.appended == 0 && end > self.written {
            self.initial = self.initial.max(end);
        }
    }

    /// The size was seen to be `bytes` (stat, end of file).
    pub(super) fn exactly(&mut self, bytes: u64) {
        if self.reset || self.exact {
            return;
        }
        if self.appended > 0 {
            if self.written == 0 && bytes >= self.appended {
                self.initial = bytes - self.appended;
                self.exact = true;
            }
        } else if bytes > self.written || self.written == 0 {
            self.initial = bytes;
            self.exact = true;
        }
    }

    /// Written up to `end`.
    pub(super) fn wrote(&mut self, end: u64) {
        self.written = self.written.max(end);
    }

    /// Appended.
    pub(super) fn appended(&mut self, bytes: u64) {
        self.appended += bytes;
    }

    /// The trace made it.
    pub(super) fn is_absent(&self) -> bool {
        self.existence == Existence::Absent
    }

    /// The verdict.
    pub(super) fn conclude(&self) -> InitialSize {
        let assumed = !self.exact && self.initial > 0;
        let bytes = if assumed { self.initial.next_multiple_of(PAGE_BYTES) + WINDOW_BYTES } else { self.initial };
        let exists = match self.existence {
            Existence::There => true,
            Existence::Absent => false,
            Existence::OpenedToCreate | Existence::Unknown => bytes > 0,
        };
        InitialSize { bytes: if exists { bytes } else { 0 }, exists, assumed: assumed && exists }
    }
}

/// What a file was before the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitialSize {
    pub(super) bytes: u64,
    pub(super) exists: bool,
    /// The size is a lower bound plus a window.
    pub(super) assumed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_file_is_exact_and_reads_are_a_bound() {
        let mut e = SizeEvidence::default();
        e.found();
        e.at_least(4096);
        assert_eq!(e.conclude(), InitialSize { bytes: 4096 + WINDOW_BYTES, exists: true, assumed: true });
        e.exactly(5000);
        assert_eq!(e.conclude(), InitialSize { bytes: 5000, exists: true, assumed: false });
    }

    #[test]
    fn own_writes_explain_later_reads() {
        let mut e = SizeEvidence::default();
        e.opened_to_create();
        e.wrote(8192);
        e.at_least(8192);
        e.exactly(8192);
        assert_eq!(e.conclude(), InitialSize { bytes: 0, exists: false, assumed: false });
        e.exactly(10_000);
        assert_eq!(e.conclude(), InitialSize { bytes: 10_000, exists: true, assumed: false });
    }

    #[test]
    fn appended_bytes_are_taken_off() {
        let mut e = SizeEvidence::default();
        e.opened_to_create();
        e.appended(100);
        e.exactly(600);
        assert_eq!(e.conclude(), InitialSize { bytes: 500, exists: true, assumed: false });
    }

    #[test]
    fn nothing_counts_after_the_size_was_set() {
        let mut e = SizeEvidence::default();
        e.opened_to_create();
        e.set();
        e.at_least(1 << 20);
        assert_eq!(e.conclude().bytes, 0);
    }
}
