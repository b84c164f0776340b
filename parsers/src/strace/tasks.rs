//! Threads of a strace log: who made whom, their names, and the call that each has open.

use hashbrown::HashMap;
use kreplay_traces::event::{EventSink, ProcessRow};
use rustc_hash::FxBuildHasher;

use super::text::push_unescaped;

/// A call that was begun and not yet resumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
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
    /// Latest time stamp of the thread.
    pub(super) last_ns: i64,
}

impl Task {
    pub(super) fn rename(&mut self, comm: &[u8]) {
        if self.comm.as_ref().is_none_or(|c| c.as_bytes() != comm) {
            let mut text = String::new();
            push_unescaped(&mut text, &mut Vec::new(), comm);
            self.comm = Some(text);
        }
    }
}

/// All threads, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    list: Vec<Task>,
    index: HashMap<i64, usize, FxBuildHasher>,
    last: usize,
}

impl Tasks {
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
        &mut self.list[at]
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
            for task in self.list.iter_mut().filter(|t| t.parent == Some(anonymous)) {
                task.parent = Some(tid);
            }
        }
    }

    /// The only thread with an open call of this name.
    pub(super) fn only_open(&self, name: &[u8]) -> Option<i64> {
        let mut open =
            self.list.iter().filter(|t| t.open.is_some_and(|o| o.name_len == name.len()) && t.text.starts_with(name));
        let first = open.next()?;
        open.next().is_none().then_some(first.tid)
    }

    /// The thread runs another program now. The kernel keeps 15 bytes of a name.
    pub(super) fn named(&mut self, tid: i64, name: &str) {
        let end = (0..=name.len().min(15)).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
        self.seen(tid).rename(&name.as_bytes()[..end]);
    }

    /// A thread has begun a call.
    pub(super) fn open(&mut self, tid: i64, name: &[u8], args: &[u8], time_ns: i64, line: i64) {
        let task = self.seen(tid);
        task.text.clear();
        task.text.extend_from_slice(name);
        task.text.extend_from_slice(args);
        task.open = Some(Open { name_len: name.len(), time_ns, line });
    }

    /// The open call, which is open no longer; its text stays in [`Tasks::text_of`].
    #[inline]
    pub(super) fn take_open(&mut self, tid: i64) -> Option<Open> {
        self.seen(tid).open.take()
    }

    /// The thread has an open call.
    pub(super) fn has_open(&mut self, tid: i64) -> bool {
        self.seen(tid).open.is_some()
    }

    pub(super) fn reopen(&mut self, tid: i64, open: Open) {
        self.seen(tid).open = Some(open);
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
        for task in &self.list {
            out.process(&ProcessRow {
                tid: task.tid,
                parent_tid: task.parent,
                comm: task.comm.as_deref(),
                ..ProcessRow::default()
            });
        }
    }
}
