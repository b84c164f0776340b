//! Whose requests a queue holds, in the schedulers that share the disk between processes.

use rustc_hash::FxHashMap;

use super::super::IoClass;
use super::Context;

/// Synchronous queues by task, asynchronous ones by priority. Only looked up, never iterated.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    by_task: FxHashMap<u32, u32>,
    by_prio: FxHashMap<(IoClass, u8), u32>,
}

impl Owners {
    /// The queue that a task's request belongs to, if there is one already.
    pub(super) fn find(&self, task: u32, cx: &Context) -> Option<u32> {
        if cx.sync { self.by_task.get(&task) } else { self.by_prio.get(&(cx.class, cx.level)) }.copied()
    }

    /// From now on such requests belong to queue `id`.
    pub(super) fn set(&mut self, task: u32, cx: &Context, id: u32) {
        if cx.sync {
            self.by_task.insert(task, id);
        } else {
            self.by_prio.insert((cx.class, cx.level), id);
        }
    }

    /// The task's synchronous requests go to another queue from now on.
    pub(super) fn go_over(&mut self, task: u32, id: u32) {
        self.by_task.insert(task, id);
    }
}
