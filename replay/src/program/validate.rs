//! The program's own rules, checked.

use super::{AreaInfo, FileInfo, FileKind, Op, Program, TaskProgram};
use kreplay_traces::units::PAGE_BYTES;

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct InvalidProgram {
    /// Where: a file, an area, or a task's operation.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

type Check = Result<(), InvalidProgram>;

fn ensure(ok: bool, place: impl FnOnce() -> String, problem: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(InvalidProgram { place: place(), problem: problem() }) }
}

impl Program {
    /// Check that every id is in range, that vectors that belong together have the same length, that page ids and
    /// extents cover what they must, and that every wait can be met.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), InvalidProgram> {
        let mut next = 0_u64;
        for (i, f) in self.files.iter().enumerate() {
            self.check_file(i, f, &mut next)?;
        }
        for (i, a) in self.areas.iter().enumerate() {
            self.check_area(i, a, &mut next)?;
        }
        ensure(next == u64::from(self.pages), || "pages".into(), || format!("{next} are in use, not {}", self.pages))?;
        for t in &self.tasks {
            self.check_task(t)?;
        }
        self.check_waits()
    }

    fn check_file(&self, id: usize, f: &FileInfo, next: &mut u64) -> Check {
        let place = || format!("file {id} ({})", f.path);
        ensure(u64::from(f.first_page) == *next, place, || format!("first page is {}, not {next}", f.first_page))?;
        *next += u64::from(f.pages);
        ensure((f.device as usize) < self.devices.len(), place, || format!("device {} is not there", f.device))?;
        let mut page = 0_u64;
        for e in &f.extents {
            ensure(u64::from(e.page) == page && e.pages > 0, place, || format!("extents leave out page {page}"))?;
            page += u64::from(e.pages);
        }
        ensure(page == u64::from(f.pages), place, || format!("extents cover {page} of {} pages", f.pages))?;
        let parent_ok =
            f.parent.is_none_or(|p| self.files.get(p as usize).is_some_and(|d| d.kind == FileKind::Directory));
        ensure(parent_ok, place, || "its parent is no directory".into())?;
        let in_file = |page: u32, file: &FileInfo| page.wrapping_sub(file.first_page) < file.pages;
        let is_meta = |page: &u32| self.files.iter().rev().any(|m| m.kind == FileKind::Metadata && in_file(*page, m));
        ensure(f.inode_page.iter().chain(&f.indirect).all(is_meta), place, || {
            "its inode or an indirect block is no page of a metadata file".into()
        })?;
        let name_ok = match (f.name_page, f.parent) {
            (Some(page), Some(dir)) => self.files.get(dir as usize).is_some_and(|d| in_file(page, d)),
            (None, _) => true,
            (Some(_), None) => false,
        };
        ensure(name_ok, place, || "the page of its name is not one of its directory".into())
    }

    fn check_area(&self, id: usize, a: &AreaInfo, next: &mut u64) -> Check {
        let place = || format!("area {id}");
        ensure((a.task as usize) < self.tasks.len(), place, || format!("task {} is not there", a.task))?;
        match a.file {
            None => {
                ensure(u64::from(a.first_page) == *next, place, || {
                    format!("first page is {}, not {next}", a.first_page)
                })?;
                *next += u64::from(a.pages);
                Ok(())
            }
            Some(file) => {
                let inside = self.files.get(file as usize).is_some_and(|f| {
                    a.first_page >= f.first_page
                        && u64::from(a.first_page) + u64::from(a.pages) <= u64::from(f.first_page) + u64::from(f.pages)
                });
                ensure(inside, place, || format!("it reaches beyond the pages of file {file}"))
            }
        }
    }

    fn check_task(&self, t: &TaskProgram) -> Check {
        let n = t.ops.len();
        let whole = || format!("task {}", t.name);
        ensure([t.think.len(), t.at.len(), t.recorded.len(), t.line.len()] == [n; 4], whole, || {
            "its vectors differ in length".into()
        })?;
        ensure(t.repeat_from.is_none_or(|r| (r as usize) < n), whole, || "it repeats from beyond its end".into())?;
        ensure(t.exit_channel.is_none_or(|c| (c as usize) < self.channels.len()), whole, || {
            "its exit channel is not there".into()
        })?;
        let mut file_of_ofd = rustc_hash::FxHashMap::default();
        for (i, op) in t.ops.iter().enumerate() {
            let place = || format!("task {}, operation {i} (line {})", t.name, t.line[i]);
            let problem = || format!("{op:?} is out of range");
            if let Op::Open { ofd, file, .. } = *op {
                file_of_ofd.insert(ofd, file);
            }
            let range = |ofd: u32, off: u64, len: u64| {
                ofd < self.ofds
                    && file_of_ofd.get(&ofd).is_none_or(|f| {
                        let pages = self.files.get(*f as usize).map_or(0, |f| u64::from(f.pages));
                        off.checked_add(len).is_some_and(|end| end <= pages * PAGE_BYTES)
                    })
            };
            let file_ok = |file: u32| (file as usize) < self.files.len();
            let ok = match *op {
                Op::Open { ofd, file, .. } => ofd < self.ofds && file_ok(file),
                Op::Close { ofd } | Op::Seek { ofd } | Op::Advise { ofd, .. } => ofd < self.ofds,
                Op::Read { ofd, off, len } | Op::Write { ofd, off, len } | Op::Direct { ofd, off, len, .. } => {
                    range(ofd, off, len)
                }
                Op::RecvWrite { ofd, total, chunk, link, client } => {
                    range(ofd, 0, total)
                        && chunk > 0
                        && self.links.get(usize::from(link)).is_some_and(|l| u32::from(client) < l.clients)
                }
                Op::Fsync { file, .. } | Op::Unlink { file } | Op::Stat { file, .. } | Op::Truncate { file, .. } => {
                    file_ok(file)
                }
                Op::Readdir { file, off, len } => {
                    self.files.get(file as usize).is_some_and(|f| off + len <= u64::from(f.pages) * PAGE_BYTES)
                }
                Op::Map { area } | Op::Unmap { area } | Op::AdviseArea { area, .. } => {
                    (area as usize) < self.areas.len()
                }
                Op::Share { area, task } => {
                    (task as usize) < self.tasks.len()
                        && self.areas.get(area as usize).is_some_and(|a| a.file.is_none())
                }
                Op::Touch { area, first, count, stride, .. } => self.areas.get(area as usize).is_some_and(|a| {
                    let last = u64::from(first) + u64::from(count.saturating_sub(1)) * u64::from(stride);
                    count > 0 && last < u64::from(a.pages)
                }),
                Op::Link { link, .. } => (link as usize) < self.links.len(),
                Op::Ask { link, client } => {
                    let server = |l: &&super::LinkInfo| matches!(l.kind, super::LinkKind::Server(_));
                    self.links.get(link as usize).filter(server).is_some_and(|l| client < l.clients)
                }
                Op::Post { channel, n } | Op::Await { channel, n } => (channel as usize) < self.channels.len() && n > 0,
                Op::Spawn { task } => (task as usize) < self.tasks.len(),
                Op::Mark { mark } => (mark as usize) < self.marks.len(),
                Op::Sync | Op::Sleep { .. } | Op::External { .. } | Op::Pace { .. } | Op::Cpu { .. } => true,
            };
            ensure(ok, place, problem)?;
        }
        Ok(())
    }

    /// Run all tasks without time, each as far as it gets, until nothing moves: whatever is left waits for ever.
    fn check_waits(&self) -> Check {
        let run = self.run_out(false)?;
        for (i, t) in self.tasks.iter().enumerate() {
            let line = t.line.get(run.at[i]).copied().unwrap_or(0);
            let place = || format!("task {}, operation {} (line {line})", t.name, run.at[i]);
            ensure(run.started[i], place, || "nobody starts this task".into())?;
            ensure(run.at[i] > t.ops.len(), place, || "it waits for something that never comes".into())?;
        }
        Ok(())
    }

    /// Turn waits that nothing in the program will ever end into pauses of no time; returns how many there were. A log may
    /// claim such an order (a damaged line, an event that was lost).
    ///
    /// # Errors
    /// If a task is started twice.
    pub fn drop_unmeetable_waits(&mut self) -> Result<u64, InvalidProgram> {
        let skipped = self.run_out(true)?.skipped;
        for &(task, op) in &skipped {
            self.tasks[task].ops[op] = Op::Cpu { time: kreplay_traces::units::Nanos::ZERO };
        }
        Ok(skipped.len() as u64)
    }

    /// See [`Program::check_waits`]; with `skip` the first task that is stuck goes on without what it waits for.
    fn run_out(&self, skip: bool) -> Result<RunOut, InvalidProgram> {
        let mut level: Vec<u64> = self.channels.iter().map(|c| u64::from(*c)).collect();
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.channels.len()];
        let mut run = RunOut {
            at: vec![0; self.tasks.len()],
            started: self.tasks.iter().map(|t| t.start != super::Start::Spawned).collect(),
            skipped: Vec::new(),
        };
        let mut ready: Vec<usize> = (0..self.tasks.len()).filter(|t| run.started[*t]).collect();
        loop {
            while let Some(task) = ready.pop() {
                self.run_task(task, &mut run, &mut level, &mut waiting, &mut ready)?;
            }
            let stuck = (0..self.tasks.len()).find(|&t| run.started[t] && run.at[t] <= self.tasks[t].ops.len());
            let Some(task) = stuck.filter(|_| skip) else { return Ok(run) };
            if let Some(Op::Await { channel, .. }) = self.tasks[task].ops.get(run.at[task]) {
                waiting[*channel as usize].retain(|t| *t != task);
            }
            run.skipped.push((task, run.at[task]));
            run.at[task] += 1;
            ready.push(task);
        }
    }

    /// One task as far as it gets.
    fn run_task(
        &self,
        task: usize,
        run: &mut RunOut,
        level: &mut [u64],
        waiting: &mut [Vec<usize>],
        ready: &mut Vec<usize>,
    ) -> Check {
        let t = &self.tasks[task];
        while run.at[task] <= t.ops.len() {
            let posted = match t.ops.get(run.at[task]) {
                Some(Op::Await { channel, n }) => {
                    let have = &mut level[*channel as usize];
                    if *have < u64::from(*n) {
                        waiting[*channel as usize].push(task);
                        return Ok(());
                    }
                    *have -= u64::from(*n);
                    None
                }
                Some(Op::Post { channel, n }) => Some((*channel, u64::from(*n))),
                Some(Op::Spawn { task: child }) => {
                    let child = *child as usize;
                    if run.started[child] {
                        let place = format!("task {}, operation {}", t.name, run.at[task]);
                        return Err(InvalidProgram { place, problem: format!("task {child} was started already") });
                    }
                    run.started[child] = true;
                    ready.push(child);
                    None
                }
                Some(_) => None,
                None => t.exit_channel.map(|c| (c, 1)),
            };
            if let Some((channel, n)) = posted {
                level[channel as usize] += n;
                ready.append(&mut waiting[channel as usize]);
            }
            run.at[task] += 1;
        }
        Ok(())
    }
}

/// How far each task got.
struct RunOut {
    /// Next operation; beyond the last one when the task ended.
    at: Vec<usize>,
    started: Vec<bool>,
    /// Waits passed over: task and operation.
    skipped: Vec<(usize, usize)>,
}

#[cfg(test)]
mod tests {
    use super::super::Start;
    use super::*;
    use kreplay_traces::units::Nanos;

    fn task(ops: Vec<Op>, start: Start) -> TaskProgram {
        let n = ops.len();
        TaskProgram {
            ops,
            think: vec![Nanos::ZERO; n],
            at: vec![Nanos::ZERO; n],
            recorded: vec![Nanos::MAX; n],
            line: vec![7; n],
            ..TaskProgram::new(1, "t", start)
        }
    }

    fn program(tasks: Vec<TaskProgram>, channels: usize) -> Program {
        Program { tasks, channels: vec![0; channels], ..Program::default() }
    }

    const BEGIN: Start = Start::At(Nanos::ZERO);

    #[test]
    fn waits_that_are_met_pass_in_any_order() {
        let mut child = task(vec![Op::Await { channel: 0, n: 3 }], Start::Spawned);
        child.exit_channel = Some(1);
        let parent = task(
            vec![
                Op::Spawn { task: 1 },
                Op::Post { channel: 0, n: 2 },
                Op::Post { channel: 0, n: 1 },
                Op::Await { channel: 1, n: 1 },
            ],
            BEGIN,
        );
        assert_eq!(program(vec![parent, child], 2).validate(), Ok(()));
    }

    #[test]
    fn a_deadlock_is_found() {
        let a = task(vec![Op::Await { channel: 0, n: 1 }, Op::Post { channel: 1, n: 1 }], BEGIN);
        let b = task(vec![Op::Await { channel: 1, n: 1 }, Op::Post { channel: 0, n: 1 }], BEGIN);
        let e = program(vec![a, b], 2).validate().expect_err("each waits for the other");
        assert!(e.to_string().contains("line 7"), "{e}");
    }

    #[test]
    fn ids_out_of_range_are_found() {
        let p = program(vec![task(vec![Op::Fsync { file: 0, data_only: false }], BEGIN)], 0);
        assert!(p.validate().expect_err("there is no file").problem.contains("out of range"));
        let mut p = program(vec![task(vec![Op::Sync], BEGIN)], 0);
        p.tasks[0].think.clear();
        assert!(p.validate().expect_err("lengths differ").problem.contains("length"));
        let p = program(vec![task(vec![], Start::Spawned)], 0);
        assert!(p.validate().expect_err("never spawned").problem.contains("nobody"));
    }
}
