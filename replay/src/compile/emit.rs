//! Building the tasks' operation streams: think times, recorded times, lines.
//!
//! Think time (closed pacing) is the recorded gap between a call's end and the next one's start, less what the tracer
//! itself takes between two calls, at least 0. A call that becomes several operations gives its start to all of them
//! and its duration to the first; the others follow without thinking.
//!
//! Where no duration was recorded (strace without `-T`) the gap from start to start has to be divided: a call that may
//! wait for a disk or for somebody else is taken to have filled the gap (no think time), one that costs only CPU to have
//! taken none of it, a sleep what it asked for.

use kreplay_traces::units::Nanos;

use crate::program::{Op, Start, TaskProgram};

/// The event that operations come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// Task, as an index of the builder.
    pub(super) task: usize,
    /// Start, in the trace's clock.
    pub(super) start_ns: i64,
    /// Duration, if recorded.
    pub(super) dur_ns: Option<i64>,
    /// Input line.
    pub(super) line: i64,
    /// A system call: the tracer stops the task at it.
    pub(super) traced_call: bool,
}

#[derive(Clone, Copy, Debug)]
struct Previous {
    start_ns: i64,
    dur_ns: Option<i64>,
    floor: u64,
    filled: Filled,
}

/// What a call without a duration did with the gap to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    Nothing,
    All { external_op: Option<usize> },
    Asked(u64),
}

/// One task in the making.
#[derive(Clone, Debug)]
struct Build {
    program: TaskProgram,
    previous: Option<Previous>,
}

/// All tasks in the making.
#[derive(Clone, Debug)]
pub(super) struct Emitter {
    tasks: Vec<Build>,
    zero_ns: i64,
    floor: Nanos,
    current: Option<Origin>,
    first_of_event: bool,
    /// Calls whose duration was not recorded.
    pub(super) without_duration: u64,
}

impl Emitter {
    pub(super) fn new(zero_ns: i64, floor: Nanos) -> Self {
        Self { tasks: Vec::new(), zero_ns, floor, current: None, first_of_event: true, without_duration: 0 }
    }

    /// Add a task; it is spawned at `spawned_ns`, or starts by itself with its first event.
    pub(super) fn add_task(&mut self, tid: i64, name: String, spawned_ns: Option<i64>) {
        self.tasks.push(Build {
            program: TaskProgram::new(
                tid,
                name,
                if spawned_ns.is_some() { Start::Spawned } else { Start::At(Nanos::ZERO) },
            ),
            previous: spawned_ns.map(|start_ns| Previous {
                start_ns,
                dur_ns: Some(0),
                floor: self.floor.get(),
                filled: Filled::Nothing,
            }),
        });
    }

    /// Tasks so far.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// What follows comes from this event.
    pub(super) fn begin(&mut self, origin: Origin) {
        self.current = Some(origin);
        self.first_of_event = true;
        if origin.traced_call && origin.dur_ns.is_none() {
            self.without_duration += 1;
        }
    }

    /// Task and index of the operation that the event in hand gave last.
    pub(super) fn last_op(&self) -> Option<(usize, usize)> {
        let task = self.current?.task;
        Some((task, self.tasks[task].program.ops.len().checked_sub(1)?))
    }

    /// Whether the event has given no operation yet.
    pub(super) fn is_first(&self) -> bool {
        self.first_of_event
    }

    /// Append an operation to the event's task.
    pub(super) fn push(&mut self, op: Op) {
        let Some(origin) = self.current else { return };
        let zero = self.zero_ns;
        let build = &mut self.tasks[origin.task];
        let at = Nanos(u64::try_from(origin.start_ns.saturating_sub(zero)).unwrap_or(0));
        let index = build.program.ops.len();
        let think = if self.first_of_event { build.think_before(origin.start_ns, at) } else { Nanos::ZERO };
        let recorded = match origin.dur_ns {
            _ if !self.first_of_event => Nanos::ZERO,
            Some(d) if origin.traced_call => Nanos(u64::try_from(d).unwrap_or(0)),
            _ => Nanos::MAX,
        };
        let p = &mut build.program;
        p.ops.push(op);
        p.think.push(think);
        p.at.push(at);
        p.recorded.push(recorded);
        p.line.push(u32::try_from(origin.line).unwrap_or(u32::MAX));
        let filled = fills(op, index);
        match (&mut build.previous, self.first_of_event) {
            (Some(previous), false) => {
                if previous.filled == Filled::Nothing {
                    previous.filled = filled;
                }
            }
            (slot, _) => {
                let floor = if origin.traced_call { self.floor.get() } else { 0 };
                *slot = Some(Previous { start_ns: origin.start_ns, dur_ns: origin.dur_ns, floor, filled });
            }
        }
        self.first_of_event = false;
    }

    /// The tasks.
    pub(super) fn into_tasks(self) -> Vec<TaskProgram> {
        self.tasks.into_iter().map(|b| b.program).collect()
    }
}

fn fills(op: Op, index: usize) -> Filled {
    match op {
        Op::External { .. } => Filled::All { external_op: Some(index) },
        Op::Sleep { time } => Filled::Asked(time.get()),
        Op::Cpu { .. }
        | Op::Spawn { .. }
        | Op::Map { .. }
        | Op::Share { .. }
        | Op::Unmap { .. }
        | Op::Mark { .. }
        | Op::Close { .. }
        | Op::Seek { .. }
        | Op::Pace { .. }
        | Op::Direct { .. }
        | Op::Advise { .. }
        | Op::AdviseArea { .. }
        | Op::Post { .. } => Filled::Nothing,
        Op::Open { .. }
        | Op::Read { .. }
        | Op::Write { .. }
        | Op::Fsync { .. }
        | Op::Sync
        | Op::Truncate { .. }
        | Op::Unlink { .. }
        | Op::Stat { .. }
        | Op::Readdir { .. }
        | Op::Touch { .. }
        | Op::Link { .. }
        | Op::RecvWrite { .. }
        | Op::Ask { .. }
        | Op::Await { .. } => Filled::All { external_op: None },
    }
}

impl Build {
    fn think_before(&mut self, start_ns: i64, at: Nanos) -> Nanos {
        let Some(previous) = self.previous else {
            self.program.start = Start::At(at);
            return Nanos::ZERO;
        };
        let since = |ns: i64| u64::try_from(start_ns.saturating_sub(ns)).unwrap_or(0).saturating_sub(previous.floor);
        if let Some(dur) = previous.dur_ns {
            return Nanos(since(previous.start_ns.saturating_add(dur.max(0))));
        }
        let gap = since(previous.start_ns);
        match previous.filled {
            Filled::Nothing => Nanos(gap),
            Filled::Asked(time) => Nanos(gap.saturating_sub(time)),
            Filled::All { external_op } => {
                if let Some(op) = external_op {
                    self.program.ops[op] = Op::External { time: Nanos(gap) };
                }
                Nanos::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Op = Op::Cpu { time: Nanos::ZERO };

    fn call(start_ns: i64, dur_ns: Option<i64>) -> Origin {
        Origin { task: 0, start_ns, dur_ns, line: 1, traced_call: true }
    }

    #[test]
    fn think_is_the_gap_less_the_tracer() {
        let mut e = Emitter::new(1_000, Nanos(15));
        e.add_task(1, "t".into(), None);
        e.begin(call(1_100, Some(20)));
        e.push(CPU);
        e.push(CPU);
        e.begin(call(1_200, Some(5)));
        e.push(CPU);
        e.begin(call(1_210, Some(5)));
        e.push(CPU);
        let p = e.into_tasks().remove(0);
        assert_eq!(p.start, Start::At(Nanos(100)));
        assert_eq!(p.think, [0, 0, 200 - 120 - 15, 0].map(Nanos));
        assert_eq!(p.at, [100, 100, 200, 210].map(Nanos));
        assert_eq!(p.recorded, [20, 0, 5, 5].map(Nanos));
    }

    #[test]
    fn without_durations_the_gap_goes_to_whoever_waits() {
        let mut e = Emitter::new(0, Nanos(0));
        e.add_task(1, "t".into(), None);
        for (at, op) in [
            (0, Op::Sync),
            (50, CPU),
            (70, Op::External { time: Nanos::ZERO }),
            (100, Op::Sleep { time: Nanos(30) }),
            (140, CPU),
        ] {
            e.begin(call(at, None));
            e.push(op);
        }
        assert_eq!(e.without_duration, 5);
        let p = e.into_tasks().remove(0);
        assert_eq!(p.think, [0, 0, 20, 0, 10].map(Nanos));
        assert_eq!(p.ops[2], Op::External { time: Nanos(30) });
        assert!(p.recorded.iter().all(|r| *r == Nanos::MAX));
    }
}
