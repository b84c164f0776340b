//! Tasks of the trace: thread ids with generations, thread groups, what they share.

use rustc_hash::FxHashMap;

use super::fds::TableId;
use super::memory::MmId;

/// Index of a task in order of first appearance; the program leaves out those without events.
pub(super) type TaskIndex = usize;

/// One task.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    pub(super) tid: i64,
    /// Thread group, as the index of its first task.
    pub(super) group: TaskIndex,
    pub(super) table: TableId,
    pub(super) mm: MmId,
    /// Index into the working directories.
    pub(super) cwd: usize,
    pub(super) ended: bool,
    /// The creator waits until this task execs or ends (vfork).
    pub(super) vforked: bool,
    /// End of the clone that made it (its start, if the duration is unknown).
    pub(super) spawned_ns: Option<i64>,
}

/// All tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    all: Vec<TaskState>,
    by_tid: FxHashMap<i64, TaskIndex>,
    cwds: Vec<String>,
    /// Members of each thread group, by the group's first task.
    members: FxHashMap<TaskIndex, Vec<TaskIndex>>,
}

impl Tasks {
    /// The living task of a thread id.
    pub(super) fn current(&self, tid: i64) -> Option<TaskIndex> {
        self.by_tid.get(&tid).copied().filter(|t| !self.all[*t].ended)
    }

    /// The task that had a thread id last, ended or not.
    pub(super) fn last_of(&self, tid: i64) -> Option<TaskIndex> {
        self.by_tid.get(&tid).copied()
    }

    pub(super) fn get(&self, task: TaskIndex) -> &TaskState {
        &self.all[task]
    }

    pub(super) fn get_mut(&mut self, task: TaskIndex) -> &mut TaskState {
        &mut self.all[task]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A task that nobody in the trace made.
    pub(super) fn add_root(&mut self, tid: i64, table: TableId, mm: MmId, cwd: &str) -> TaskIndex {
        self.cwds.push(cwd.to_owned());
        let index = self.all.len();
        self.push(TaskState {
            tid,
            group: index,
            table,
            mm,
            cwd: self.cwds.len() - 1,
            ended: false,
            vforked: false,
            spawned_ns: None,
        })
    }

    /// A task as described.
    pub(super) fn push(&mut self, task: TaskState) -> TaskIndex {
        self.by_tid.insert(task.tid, self.all.len());
        self.members.entry(task.group).or_default().push(self.all.len());
        self.all.push(task);
        self.all.len() - 1
    }

    /// A working directory of its own, equal to `cwd`.
    pub(super) fn copy_cwd(&mut self, cwd: usize) -> usize {
        self.cwds.push(self.cwds[cwd].clone());
        self.cwds.len() - 1
    }

    pub(super) fn cwd(&self, task: TaskIndex) -> &str {
        &self.cwds[self.all[task].cwd]
    }

    pub(super) fn set_cwd(&mut self, task: TaskIndex, path: String) {
        let at = self.all[task].cwd;
        self.cwds[at] = path;
    }

    /// The living tasks of a task's thread group but itself.
    pub(super) fn siblings(&self, task: TaskIndex) -> Vec<TaskIndex> {
        let members = self.members.get(&self.all[task].group);
        members.into_iter().flatten().copied().filter(|t| *t != task && !self.all[*t].ended).collect()
    }
}
