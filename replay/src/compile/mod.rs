//! Compile a trace into a [`Program`]: once, for all variants.
//!
//! Two passes over the events, both by the same interpreter (module `world`): the first collects evidence (how large files
//! were, which pipes are all the trace's own, who waits for whom), the second emits operations. Memory is bounded by the
//! program and by what is open at a time, not by the events.
//!
//! What is reconstructed, what is assumed and what is left out is written down in `docs/MODEL.md`, "From calls to
//! operations"; how often each assumption was needed is counted in [`Coverage`](crate::program::Coverage).

mod args;
mod emit;
mod fds;
mod layout;
mod link;
mod memory;
mod names;
mod notes;
mod paths;
mod sizes;
pub mod source;
mod stored;
mod survey;
mod tasks;
mod world;

use kreplay_traces::units::Nanos;

use crate::program::{InvalidProgram, Program, TaskProgram};
pub use source::{
    DeviceFact, EventRow, MachineFacts, OwnedFile, OwnedProcess, OwnedSyscall, SideTables, TraceSource, TraceTables,
};
pub use stored::StoredTrace;
use tasks::TaskIndex;
use world::{Output, World};

/// Time that strace takes between two calls of a task where the trace does not say (measured: mean gap of 18 us in a
/// loop that needs less than 0.3 us by itself).
pub const DEFAULT_TRACER_FLOOR: Nanos = Nanos::from_micros(15);

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Only files under these directories are simulated; empty = what the recording says, else all. Calls on other
    /// files are taken to be served from memory.
    pub roots: Vec<String>,
    /// Taken off every think time; `None` = what the trace says, 0 for generated ones, else [`DEFAULT_TRACER_FLOOR`].
    pub tracer_floor: Option<Nanos>,
    /// A call on something outside of the model that took at least this long was a wait and is kept as one.
    pub outside_wait: Nanos,
    /// Assume page touches where the trace has none at all.
    pub assume_touches: bool,
    /// Pages behind the furthest byte that any operation reaches which read-ahead may reach as well (page ids are
    /// reserved for them, within the file's size).
    pub readahead_pages: u32,
    /// Replay sleeps until a point of time as messages over a link, or as a pace, where they show one; else they keep their
    /// recorded length.
    pub shared_links: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            tracer_floor: None,
            outside_wait: Nanos::from_micros(200),
            assume_touches: true,
            readahead_pages: 1024,
            shared_links: false,
        }
    }
}

/// Why a trace could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The trace could not be read.
    #[error("the trace could not be read: {message}")]
    Source {
        /// What the reader said.
        message: String,
    },
    /// The trace has no events to replay.
    #[error(
        "the trace has neither system calls nor page touches; replay needs one of them (strace, or a generated load); block events alone are replayed with --level block"
    )]
    Empty,
    /// Something is beyond what 32-bit ids can number.
    #[error("too many {what}: more than 4294967295; replay a part of the trace, or fewer files (roots)")]
    TooLarge {
        /// What, with the file that needs most and the line that made it so, where that is known.
        what: String,
    },
    /// A generated trace's pseudo-call makes no sense.
    #[error("line {line}: {call}: {problem}")]
    Pseudo {
        /// Input line.
        line: i64,
        /// Call.
        call: String,
        /// What is wrong.
        problem: String,
    },
    /// The result breaks the program's own rules: a bug in the compiler.
    #[error("the compiled program is inconsistent (please report this): {0}")]
    Invalid(#[from] InvalidProgram),
}

/// Compile a trace.
///
/// # Errors
/// See [`CompileError`].
pub fn compile(source: &mut dyn TraceSource, opts: &CompileOptions) -> Result<Program, CompileError> {
    let side = source.side().clone();
    let mut first = World::new(opts, &side, None);
    source.events(&mut |row| first.event(row))?;
    first.finish()?;
    let known = first.survey.conclude(first.names.files(), first.fds.streams(), first.tasks.len());
    if known.order.is_empty() {
        return Err(CompileError::Empty);
    }
    let floor = opts.tracer_floor.or(side.machine.tracer_floor).unwrap_or(if known.generated {
        Nanos::ZERO
    } else {
        DEFAULT_TRACER_FLOOR
    });
    let zero_ns = side.origin_ns.unwrap_or(known.first_ns);
    let mut second = World::new(opts, &side, Some(Output::new(known, zero_ns, floor)));
    source.events(&mut |row| second.event(row))?;
    second.finish()?;
    let mut program = assemble(second, &side, opts)?;
    let unmeetable = program.drop_unmeetable_waits()?;
    if unmeetable > 0 {
        let what = "waits for something that the log never shows (taken out)";
        program.coverage.notes.push(format!("{what}: {unmeetable}"));
    }
    program.validate()?;
    Ok(program)
}

fn assemble(world: World<'_>, side: &SideTables, opts: &CompileOptions) -> Result<Program, CompileError> {
    let World { names, fds, mem, out, mut notes, mut coverage, .. } = world;
    let Some(Output { known, emitter, channels, exit_channels, marks, absolute, .. }) = out else {
        return Err(CompileError::Source { message: "the second pass kept nothing".to_owned() });
    };
    let area_tasks: Vec<u32> = mem.areas().iter().map(|a| known.ids[a.task].unwrap_or(0)).collect();
    notes.add("calls without a recorded duration", emitter.without_duration);
    let assumed = known.initial.iter().filter(|i| i.assumed).count() as u64;
    notes.add("files whose initial size is only a lower bound (a window of read-ahead was added)", assumed);
    let layout = layout::lay_out(side, opts, &known, names.files(), mem.areas(), &area_tasks, &mut coverage)?;
    let mut tasks = emitter.into_tasks();
    let mut links = side.links.clone();
    if links.is_empty() && opts.shared_links {
        let (link, messages, paced) = link::infer(&mut tasks, &absolute);
        links.extend(link);
        notes.add("sleeps until a point of time, replayed as messages over a link that tasks share", messages as u64);
        notes.add("sleeps until a point of time, replayed at the recorded distances", paced as u64);
    }
    for (index, task) in known.order.iter().zip(&mut tasks) {
        finish_task(task, *index, side, &exit_channels);
    }
    coverage.notes = notes.into_lines();
    Ok(Program {
        trace_id: side.trace_id.clone(),
        files: layout.files,
        areas: layout.areas,
        devices: layout.devices,
        links,
        tasks,
        ofds: fds.ofds(),
        channels,
        marks: marks.into_iter().collect(),
        pages: layout.pages,
        memory: side.memory.clone(),
        coverage,
    })
}

/// Add what the side table says of a task.
fn finish_task(
    task: &mut TaskProgram,
    index: TaskIndex,
    side: &SideTables,
    exit_channels: &rustc_hash::FxHashMap<TaskIndex, u32>,
) {
    task.exit_channel = exit_channels.get(&index).copied();
    let Some(row) = side.processes.iter().find(|p| p.tid == task.tid) else { return };
    if let Some(comm) = &row.comm {
        task.name = format!("{comm} {}", task.tid);
    }
    task.client.clone_from(&row.client);
    task.background = row.background;
    task.gives_up = row.gives_up;
    if let Some(line) = row.repeat_from_line {
        task.repeat_from = task.line.iter().position(|l| i64::from(*l) >= line).map(|from| from as u32);
    }
}
