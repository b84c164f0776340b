//! Tasks: clone, exec, exit, and waiting for children.

use kreplay_traces::event::SyscallRow;

use super::fd::has;
use super::{World, args};
use crate::compile::tasks::{TaskIndex, TaskState};
use crate::program::{ChannelId, Op};

impl World<'_> {
    /// Calls that make, change or end tasks. Returns whether it was one.
    pub(super) fn process_call(&mut self, r: &SyscallRow<'_>) -> bool {
        match r.call {
            "fork" | "vfork" | "clone" | "clone2" | "clone3" => self.spawn(r),
            "execve" | "execveat" => self.exec(r),
            "exit" | "_exit" => self.end(self.task),
            "exit_group" => {
                for t in self.tasks.siblings(self.task) {
                    self.end(t);
                }
                self.end(self.task);
            }
            "wait4" | "waitpid" | "waitid" | "wait3" => self.wait_child(r),
            "unshare" if has(r, "CLONE_FILES") => {
                let table = self.tasks.get(self.task).table;
                if self.fds.users(table) > 1 {
                    let own = self.fds.copy_table(table);
                    let gone = self.fds.leave_table(table);
                    debug_assert!(gone.is_empty());
                    self.tasks.get_mut(self.task).table = own;
                }
            }
            _ => return false,
        }
        true
    }

    fn spawn(&mut self, r: &SyscallRow<'_>) {
        let Some(tid) = r.ret.filter(|t| *t > 0) else { return };
        if self.tasks.current(tid).is_some() {
            self.notes.count("tasks that ran before the call that made them was seen (they start by the clock)");
            return;
        }
        let word = |w| has(r, w);
        let creator = self.tasks.get(self.task).clone();
        let vfork = r.call == "vfork" || word("CLONE_VFORK");
        let table =
            if word("CLONE_FILES") { self.fds.share_table(creator.table) } else { self.fds.copy_table(creator.table) };
        let mm = if vfork || word("CLONE_VM") { self.mem.share(creator.mm) } else { self.mem.copy(creator.mm) };
        let cwd = if word("CLONE_FS") { creator.cwd } else { self.tasks.copy_cwd(creator.cwd) };
        let group = if word("CLONE_THREAD") { creator.group } else { self.tasks.len() };
        let child = self.tasks.push(TaskState {
            tid,
            group,
            table,
            mm,
            cwd,
            ended: false,
            vforked: vfork,
            spawned_ns: Some(r.time_ns.saturating_add(r.dur_ns.unwrap_or(0).max(0))),
        });
        let Some(out) = &self.out else { return };
        let Some(task) = out.known.ids[child] else {
            return self.notes.count("tasks made but not traced");
        };
        let released = out.known.released_ns[child];
        if mm != creator.mm {
            for area in self.mem.private_areas(mm) {
                self.emit(Op::Share { area, task });
            }
        }
        self.emit(Op::Spawn { task });
        if vfork && released.is_some_and(|at| at <= Self::end_ns(r)) {
            let channel = self.vfork_channel(child);
            if let Some(channel) = channel {
                self.emit(Op::Await { channel, n: 1 });
            }
        } else {
            self.tasks.get_mut(child).vforked = false;
        }
    }

    fn vfork_channel(&mut self, child: TaskIndex) -> Option<ChannelId> {
        let out = self.out.as_mut()?;
        if let Some(channel) = out.vfork_channels.get(&child) {
            return Some(*channel);
        }
        let channel = out.new_channel();
        out.vfork_channels.insert(child, channel);
        Some(channel)
    }

    /// A vfork child execs or ends: its parent goes on.
    fn release_parent(&mut self, task: TaskIndex) {
        if self.tasks.get(task).vforked {
            self.tasks.get_mut(task).vforked = false;
            if let Some(channel) = self.vfork_channel(task) {
                self.emit(Op::Post { channel, n: 1 });
            }
        }
    }

    fn exec(&mut self, r: &SyscallRow<'_>) {
        // The other threads are gone, and the one that called takes over the group's id.
        let group = self.tasks.get(self.task).group;
        let leader_tid = self.tasks.get(group).tid;
        for t in self.tasks.siblings(self.task) {
            self.end(t);
        }
        self.survey.released(self.task, r.time_ns);
        if let Some(path) = r.path.filter(|p| !p.is_empty()).map(|p| self.locate(r, p, r.fd))
            && self.names.is_modelled(&path)
        {
            let file = self.intern(&path, true);
            self.found(file);
            self.emit(Op::Stat { file, negative: false });
        }
        self.release_parent(self.task);
        let state = self.tasks.get(self.task).clone();
        let table = if self.fds.users(state.table) > 1 {
            let own = self.fds.copy_table(state.table);
            self.fds.leave_table(state.table);
            own
        } else {
            state.table
        };
        for gone in self.fds.close_on_exec(table) {
            self.closed(Some(gone));
        }
        let unmapped = self.mem.leave(state.mm);
        self.unmapped(unmapped);
        let mm = self.mem.new_mm();
        let state = self.tasks.get_mut(self.task);
        state.table = table;
        state.mm = mm;
        if leader_tid != r.tid {
            let successor = TaskState { tid: leader_tid, spawned_ns: None, ..state.clone() };
            state.ended = true;
            let index = self.tasks.len();
            self.tasks.push(TaskState { group: index, ..successor });
        }
    }

    /// A task ends: its share of descriptors and memory goes.
    fn end(&mut self, task: TaskIndex) {
        let state = self.tasks.get(task).clone();
        if state.ended {
            return;
        }
        self.survey.released(task, self.now_ns);
        self.tasks.get_mut(task).ended = true;
        for gone in self.fds.leave_table(state.table) {
            self.closed(Some(gone));
        }
        let unmapped = self.mem.leave(state.mm);
        self.unmapped(unmapped);
        self.release_parent(task);
    }

    fn wait_child(&mut self, r: &SyscallRow<'_>) {
        let pid = if r.call == "waitid" { args::number(r.args, "si_pid") } else { r.ret };
        let Some(pid) = pid.filter(|p| *p > 0) else {
            if r.call == "waitid" && !has(r, "WNOHANG") {
                self.external(r);
            }
            return;
        };
        match self.tasks.last_of(pid).and_then(|child| self.exit_channel(child, Self::end_ns(r))) {
            Some(channel) => self.emit(Op::Await { channel, n: 1 }),
            None => self.external(r),
        }
    }

    /// The channel that a child's end posts to, if the trace has its end by `by_ns` and nobody waited for it yet.
    fn exit_channel(&mut self, child: TaskIndex, by_ns: i64) -> Option<ChannelId> {
        let tid = self.tasks.get(child).tid;
        let background = self.background.get(&tid).copied().unwrap_or(false);
        let out = self.out.as_mut()?;
        out.known.ids[child]?;
        if background || out.known.last_ns[child] > by_ns || out.exit_channels.contains_key(&child) {
            return None;
        }
        let channel = out.new_channel();
        out.exit_channels.insert(child, channel);
        Some(channel)
    }
}
