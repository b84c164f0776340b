//! Threads of a strace log: who made whom, their names, and the call that each has open.
//!
//! What is kept is bounded: threads that a log has beyond [`MAX_TASKS`], and open calls whose text goes beyond
//! [`MAX_OPEN_BYTES`], push the oldest out.

use hashbrown::HashMap;
use kreplay_traces::event::{EventSink, ProcessRow};
use rustc_hash::FxBuildHasher;

use super::text::push_unescaped;

/// Threads that are remembered at once. Linux has at most 4 Mi of them, but rarely a hundredth of that.
pub(super) const MAX_TASKS: usize = 1 << 18;
/// Bytes of all begun calls that are remembered at once.
pub(super) const MAX_OPEN_BYTES: usize = 16 << 20;

/// A call that was begun and not yet resumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The thread that began it; an `execve` ends in the thread group's first thread.
    pub(super) tid: i64,
    /// Length of the name in the task's text; the beginning of the arguments follows it.
    pub(super) name_len: usize,
    pub(super) time_ns: i64,
    pub(super) line: i64,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Task {
    tid: i64,
    parent: Option<i64>,
    comm: Option<String>,
    open: Option<Open>,
    text: Vec<u8>,
    /// When it was last looked for, counted in such looks.
    seen: u64,
    /// Latest time stamp of the thread.
    pub(super) last_ns: i64,
}

impl Task {
    pub(super) fn rename(&mut self, comm: &[u8]) {
        if self.comm.as_ref().is_none_or(|c| c.as_bytes() != comm) {
            let mut text = String::new();
            // The kernel's names have 15 bytes, up to four printed for each.
            push_unescaped(&mut text, &mut Vec::new(), &comm[..comm.len().min(60)]);
            self.comm = Some(text);
        }
    }
}

/// All threads, in the order of their first appearance.
#[derive(Debug)]
pub(super) struct Tasks {
    list: Vec<Task>,
    index: HashMap<i64, usize, FxBuildHasher>,
    last: usize,
    looks: u64,
    /// Of each call's name: how many threads have one open, and the exclusive or of their places in the list. Where there
    /// is one, that is its place.
    open: HashMap<Vec<u8>, (usize, usize), FxBuildHasher>,
    /// Room that the texts of begun calls take, bytes.
    text_bytes: usize,
    max_tasks: usize,
    max_text_bytes: usize,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::with_limits(MAX_TASKS, MAX_OPEN_BYTES)
    }
}

impl Tasks {
    fn with_limits(max_tasks: usize, max_text_bytes: usize) -> Self {
        let (list, index, open) = (Vec::new(), HashMap::default(), HashMap::default());
        Self { list, index, last: 0, looks: 0, open, text_bytes: 0, max_tasks, max_text_bytes }
    }

    fn at(&mut self, tid: i64) -> usize {
        // Most lines come from the thread of the line before.
        if self.list.get(self.last).is_some_and(|t| t.tid == tid) {
            return self.last;
        }
        self.last = match self.index.get(&tid) {
            Some(at) => *at,
            None => {
                self.list.push(Task { tid, last_ns: i64::MIN, ..Task::default() });
                self.index.insert(tid, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        self.last
    }

    /// The thread of this id, made if need be.
    #[inline]
    pub(super) fn seen(&mut self, tid: i64) -> &mut Task {
        let at = self.at(tid);
        self.looks += 1;
        let task = &mut self.list[at];
        task.seen = self.looks;
        task
    }

    /// `parent` has made `child`; a child is named as its parent until it executes something.
    pub(super) fn born(&mut self, child: i64, parent: i64) {
        let comm = self.seen(parent).comm.clone();
        let task = self.seen(child);
        task.parent = task.parent.or(Some(parent));
        if task.comm.is_none() {
            task.comm = comm;
        }
    }

    /// The thread is known: it was seen, made by another, or attached.
    pub(super) fn knows(&self, tid: i64) -> bool {
        self.index.contains_key(&tid)
    }

    /// A thread turns out to have this id (it was printed without one before).
    pub(super) fn identify(&mut self, anonymous: i64, tid: i64) {
        if let Some(at) = self.index.remove(&anonymous) {
            self.index.insert(tid, at);
            self.list[at].tid = tid;
            if let Some(open) = self.list[at].open.as_mut().filter(|o| o.tid == anonymous) {
                open.tid = tid;
            }
            for task in self.list.iter_mut().filter(|t| t.parent == Some(anonymous)) {
                task.parent = Some(tid);
            }
        }
    }

    /// The only thread with an open call of this name.
    pub(super) fn only_open(&self, name: &[u8]) -> Option<i64> {
        let (count, place) = self.open.get(name)?;
        (*count == 1).then(|| self.list[*place].tid)
    }

    /// Count a call as open (or no longer open) in the thread at this place.
    fn count_open(&mut self, at: usize, name_len: usize, opens: bool) {
        let name = &self.list[at].text[..name_len];
        match self.open.get_mut(name) {
            Some((count, places)) => {
                *count = if opens { *count + 1 } else { *count - 1 };
                *places ^= at;
                if *count == 0 {
                    self.open.remove(name);
                }
            }
            None => {
                self.open.insert(name.to_vec(), (1, at));
            }
        }
    }

    /// The thread runs another program now. The kernel keeps 15 bytes of a name.
    pub(super) fn named(&mut self, tid: i64, name: &str) {
        let end = (0..=name.len().min(15)).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
        self.seen(tid).rename(&name.as_bytes()[..end]);
    }

    /// A thread has begun a call.
    pub(super) fn open(&mut self, tid: i64, name: &[u8], args: &[u8], time_ns: i64, line: i64) {
        self.take_open(tid);
        let task = self.seen(tid);
        let before = task.text.capacity();
        task.text.clear();
        task.text.extend_from_slice(name);
        task.text.extend_from_slice(args);
        let after = task.text.capacity();
        self.text_bytes = self.text_bytes + after - before.min(after);
        self.reopen(tid, Open { tid, name_len: name.len(), time_ns, line });
    }

    /// The open call, which is open no longer; its text stays in [`Tasks::text_of`].
    #[inline]
    pub(super) fn take_open(&mut self, tid: i64) -> Option<Open> {
        let open = self.seen(tid).open.take()?;
        self.count_open(self.last, open.name_len, false);
        Some(open)
    }

    /// The thread has an open call.
    pub(super) fn has_open(&mut self, tid: i64) -> bool {
        self.seen(tid).open.is_some()
    }

    pub(super) fn reopen(&mut self, tid: i64, open: Open) {
        self.seen(tid).open = Some(open);
        self.count_open(self.last, open.name_len, true);
    }

    /// The open call of `thread` will end in `leader`, whose id it has from now on. False where it has none.
    pub(super) fn take_over(&mut self, leader: i64, thread: i64) -> bool {
        if !self.knows(thread) {
            return false;
        }
        let Some(open) = self.take_open(thread) else { return false };
        let text = std::mem::take(self.text_of(thread));
        *self.text_of(leader) = text;
        self.reopen(leader, open);
        true
    }

    /// `leader` is named as `thread`, which it was before.
    pub(super) fn name_as(&mut self, leader: i64, thread: i64) {
        let comm = self.seen(thread).comm.clone();
        self.seen(leader).comm = comm;
    }

    /// There is more than is kept: [`Tasks::oldest`] must go.
    #[inline]
    pub(super) fn full(&self) -> bool {
        self.list.len() >= self.max_tasks || self.text_bytes > self.max_text_bytes
    }

    /// The threads that must go so that there is room again: the half that was not seen for longest. Room of texts that
    /// are not needed any more is freed first.
    pub(super) fn oldest(&mut self) -> Vec<i64> {
        if self.text_bytes > self.max_text_bytes {
            self.list.iter_mut().filter(|t| t.open.is_none()).for_each(|t| t.text = Vec::new());
            self.text_bytes = self.list.iter().map(|t| t.text.capacity()).sum();
        }
        if self.list.len() < self.max_tasks && self.text_bytes <= self.max_text_bytes / 2 {
            return Vec::new();
        }
        let mut seen: Vec<u64> = self.list.iter().map(|t| t.seen).collect();
        let middle = seen.len() / 2;
        let (_, last, _) = seen.select_nth_unstable(middle);
        self.list.iter().filter(|t| t.seen <= *last).map(|t| t.tid).collect()
    }

    /// Emit the process rows of threads without an open call and forget them.
    pub(super) fn forget(&mut self, tids: &[i64], out: &mut dyn EventSink) {
        for tid in tids {
            self.index.remove(tid);
        }
        let (gone, kept): (Vec<Task>, Vec<Task>) =
            std::mem::take(&mut self.list).into_iter().partition(|t| !self.index.contains_key(&t.tid));
        emit(&gone, out);
        self.list = kept;
        self.last = 0;
        self.open.clear();
        self.text_bytes = self.list.iter().map(|t| t.text.capacity()).sum();
        for at in 0..self.list.len() {
            self.index.insert(self.list[at].tid, at);
            if let Some(open) = self.list[at].open {
                self.count_open(at, open.name_len, true);
            }
        }
    }

    /// Name and beginning of the arguments of the latest open call.
    pub(super) fn text_of(&mut self, tid: i64) -> &mut Vec<u8> {
        &mut self.seen(tid).text
    }

    /// Threads with an open call, by the line where it began.
    pub(super) fn open_tids(&self) -> Vec<i64> {
        let mut open: Vec<(i64, i64)> = self.list.iter().filter_map(|t| t.open.map(|o| (o.line, t.tid))).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, tid)| tid).collect()
    }

    /// Emit the process rows.
    pub(super) fn emit(&self, out: &mut dyn EventSink) {
        emit(&self.list, out);
    }
}

fn emit(tasks: &[Task], out: &mut dyn EventSink) {
    for task in tasks {
        out.process(&ProcessRow {
            tid: task.tid,
            parent_tid: task.parent,
            comm: task.comm.as_deref(),
            ..ProcessRow::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    #[test]
    fn the_only_thread_with_a_call_open_is_known_without_looking_at_all() {
        let mut tasks = Tasks::default();
        for tid in 1..=3 {
            tasks.open(tid, b"read", b"3, ", 0, tid);
        }
        tasks.open(4, b"futex", b"", 0, 4);
        assert_eq!((tasks.only_open(b"read"), tasks.only_open(b"futex"), tasks.only_open(b"x")), (None, Some(4), None));
        tasks.take_open(1);
        tasks.open(3, b"close", b"", 0, 5);
        assert_eq!((tasks.only_open(b"read"), tasks.only_open(b"close")), (Some(2), Some(3)));
        assert!(tasks.take_over(9, 4) && !tasks.take_over(9, 4) && !tasks.take_over(9, 77));
        assert_eq!(tasks.only_open(b"futex"), Some(9));
        assert_eq!(tasks.take_open(9).map(|o| o.tid), Some(4));
        assert_eq!(tasks.open.len(), 2);
    }

    #[test]
    fn the_longest_silent_half_goes_when_there_are_too_many() {
        let mut tasks = Tasks::with_limits(4, 1 << 20);
        for tid in [1, 2, 3, 4] {
            tasks.seen(tid).rename(format!("t{tid}").as_bytes());
        }
        tasks.open(1, b"read", b"", 0, 1);
        assert!(tasks.full());
        let oldest = tasks.oldest();
        assert_eq!(oldest, [2, 3, 4]);
        let mut rows = Rows::default();
        tasks.forget(&oldest, &mut rows);
        assert_eq!((rows.processes.len(), tasks.full(), tasks.only_open(b"read")), (3, false, Some(1)));

        let mut tasks = Tasks::with_limits(100, 1000);
        for tid in 0..4 {
            tasks.open(tid, b"write", &[b'x'; 400], 0, 1);
            tasks.take_open(tid);
        }
        // Texts of calls that have ended are no reason to forget threads.
        assert!(tasks.full() && tasks.oldest().is_empty() && !tasks.full());
        for tid in 0..4 {
            tasks.open(tid, b"write", &[b'x'; 400], 0, 1);
        }
        assert!(tasks.full() && !tasks.oldest().is_empty());
    }
}
