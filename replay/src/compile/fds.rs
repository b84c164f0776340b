//! Descriptor tables, open file descriptions and byte streams between tasks.
//!
//! A descriptor names an entry of its table; tables are shared by threads and copied by fork; entries of all tables
//! refer to open file descriptions, which hold the offset and live until their last reference goes.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::program::{FileId, OfdId};

/// Index of an open description of any kind.
pub(super) type DescId = usize;
/// Index of a descriptor table.
pub(super) type TableId = usize;
/// Index of a byte stream (pipe, one direction of a socket pair, eventfd).
pub(super) type StreamId = usize;

/// What a description is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// File or directory of the model.
    File {
        ofd: OfdId,
        file: FileId,
        offset: u64,
        append: bool,
        /// Each write is followed by an fsync.
        sync: bool,
        /// Transfers pass the page cache.
        direct: bool,
    },
    /// End of a stream; which streams a read takes from and a write adds to.
    Stream { read: Option<StreamId>, write: Option<StreamId> },
    /// Socket, terminal, device, file outside of the model.
    Other,
}

#[derive(Clone, Debug)]
struct Desc {
    target: Target,
    refs: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    desc: DescId,
    cloexec: bool,
}

#[derive(Clone, Debug, Default)]
struct Table {
    entries: BTreeMap<i64, Entry>,
    users: u32,
}

/// All tables, descriptions and streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors {
    tables: Vec<Table>,
    descs: Vec<Desc>,
    streams: usize,
    by_name: FxHashMap<String, StreamId>,
    ofds: OfdId,
}

impl Descriptors {
    /// An empty table with one user.
    pub(super) fn new_table(&mut self) -> TableId {
        self.tables.push(Table { entries: BTreeMap::new(), users: 1 });
        self.tables.len() - 1
    }

    /// One more user.
    pub(super) fn share_table(&mut self, table: TableId) -> TableId {
        self.tables[table].users += 1;
        table
    }

    /// A copy with one user; descriptions are shared.
    pub(super) fn copy_table(&mut self, table: TableId) -> TableId {
        let entries = self.tables[table].entries.clone();
        for e in entries.values() {
            self.descs[e.desc].refs += 1;
        }
        self.tables.push(Table { entries, users: 1 });
        self.tables.len() - 1
    }

    /// Users of a table.
    pub(super) fn users(&self, table: TableId) -> u32 {
        self.tables[table].users
    }

    /// A user goes; with the last one all descriptors are closed. Returns the files whose last reference went.
    pub(super) fn leave_table(&mut self, table: TableId) -> Vec<Target> {
        let t = &mut self.tables[table];
        t.users = t.users.saturating_sub(1);
        if t.users > 0 {
            return Vec::new();
        }
        let entries = std::mem::take(&mut t.entries);
        entries.values().filter_map(|e| self.unref(e.desc)).collect()
    }

    /// exec: close what is marked. Returns the files whose last reference went.
    pub(super) fn close_on_exec(&mut self, table: TableId) -> Vec<Target> {
        let marked: Vec<i64> =
            self.tables[table].entries.iter().filter(|(_, e)| e.cloexec).map(|(fd, _)| *fd).collect();
        marked.into_iter().filter_map(|fd| self.close(table, fd)).collect()
    }

    /// A fresh file description's id.
    pub(super) fn new_ofd(&mut self) -> OfdId {
        self.ofds += 1;
        self.ofds - 1
    }

    /// File descriptions made so far.
    pub(super) fn ofds(&self) -> u32 {
        self.ofds
    }

    /// Streams made so far.
    pub(super) fn streams(&self) -> usize {
        self.streams
    }

    /// A stream without a name.
    pub(super) fn new_stream(&mut self) -> StreamId {
        self.streams += 1;
        self.streams - 1
    }

    /// The stream that `-y` calls by this name.
    pub(super) fn named_stream(&mut self, name: &str) -> StreamId {
        if let Some(s) = self.by_name.get(name) {
            return *s;
        }
        let s = self.new_stream();
        self.by_name.insert(name.to_owned(), s);
        s
    }

    /// Give a stream the name that `-y` shows.
    pub(super) fn name_stream(&mut self, name: &str, stream: StreamId) {
        self.by_name.insert(name.to_owned(), stream);
    }

    /// Put a new description into a table. Returns a file whose last reference that replaced.
    pub(super) fn install(
        &mut self,
        table: TableId,
        fd: i64,
        target: Target,
        cloexec: bool,
    ) -> (DescId, Option<Target>) {
        let desc = self.descs.len();
        self.descs.push(Desc { target, refs: 1 });
        let old = self.tables[table].entries.insert(fd, Entry { desc, cloexec });
        (desc, old.and_then(|e| self.unref(e.desc)))
    }

    /// dup: `to` refers to what `desc` is.
    pub(super) fn alias(&mut self, table: TableId, desc: DescId, to: i64, cloexec: bool) -> Option<Target> {
        self.descs[desc].refs += 1;
        let old = self.tables[table].entries.insert(to, Entry { desc, cloexec });
        old.and_then(|e| self.unref(e.desc))
    }

    /// The description of a descriptor.
    pub(super) fn desc(&self, table: TableId, fd: i64) -> Option<DescId> {
        self.tables[table].entries.get(&fd).map(|e| e.desc)
    }

    /// What a description is.
    pub(super) fn target(&self, desc: DescId) -> Target {
        self.descs[desc].target
    }

    /// Change a description (offset, flags).
    pub(super) fn target_mut(&mut self, desc: DescId) -> &mut Target {
        &mut self.descs[desc].target
    }

    /// Set or clear close-on-exec.
    pub(super) fn set_cloexec(&mut self, table: TableId, fd: i64, cloexec: bool) {
        if let Some(e) = self.tables[table].entries.get_mut(&fd) {
            e.cloexec = cloexec;
        }
    }

    /// Close. Returns the description if its last reference went.
    pub(super) fn close(&mut self, table: TableId, fd: i64) -> Option<Target> {
        let e = self.tables[table].entries.remove(&fd)?;
        self.unref(e.desc)
    }

    /// Open descriptors of a table in `first..=last`, ascending.
    pub(super) fn range(&self, table: TableId, first: i64, last: i64) -> Vec<i64> {
        if first > last {
            return Vec::new();
        }
        self.tables[table].entries.range(first..=last).map(|(fd, _)| *fd).collect()
    }

    fn unref(&mut self, desc: DescId) -> Option<Target> {
        let d = &mut self.descs[desc];
        d.refs -= 1;
        (d.refs == 0).then_some(d.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(ofd: OfdId) -> Target {
        Target::File { ofd, file: 0, offset: 0, append: false, sync: false, direct: false }
    }

    #[test]
    fn the_last_reference_closes() {
        let mut d = Descriptors::default();
        let t = d.new_table();
        let (desc, old) = d.install(t, 3, file(0), true);
        assert_eq!(old, None);
        assert_eq!(d.alias(t, desc, 4, false), None);
        let child = d.copy_table(t);
        assert_eq!(d.close(t, 3), None);
        assert_eq!(d.close_on_exec(child), vec![], "4 still refers to it");
        assert_eq!(d.desc(child, 3), None);
        assert_eq!(d.leave_table(t), vec![]);
        assert_eq!(d.leave_table(child), vec![file(0)]);
    }

    #[test]
    fn dup_over_an_open_descriptor_closes_it() {
        let mut d = Descriptors::default();
        let t = d.new_table();
        let (a, _) = d.install(t, 3, file(0), false);
        d.install(t, 4, file(1), false);
        assert_eq!(d.alias(t, a, 4, false), Some(file(1)));
    }
}
