//! Traces to programs, programs to results.

use crate::args::{Cli, DEFAULT_VARIANTS, MatrixArgs, ProgressMode};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::progress::Watcher;
use crate::signal;
use kreplay_replay::compile::{CompileError, CompileOptions, StoredTrace, compile};
use kreplay_replay::matrix::{CellState, Ended, Failure, Outcome, Plan, Runner, Simulate, TraceInput, code_version};
use kreplay_replay::program::Program;
use kreplay_replay::results::ResultSink;
use kreplay_replay::sim::{self, Pacing, SimError};
use kreplay_replay::variant::{Library, Variant};
use kreplay_traces::store::TraceDir;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Opens, verifies and compiles a trace.
pub(crate) fn load(path: &Path) -> Result<TraceInput> {
    let trace = TraceDir::open(path)?;
    let explain = |e: CompileError| {
        let exit = if matches!(e, CompileError::Invalid(_)) { Exit::Internal } else { Exit::Input };
        CliError::new(exit, format!("cannot compile {}: {e}", path.display()))
    };
    let mut source = StoredTrace::new(&trace).map_err(explain)?;
    let program = compile(&mut source, &CompileOptions::default()).map_err(explain)?;
    Ok(TraceInput { program, path: Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())) })
}

/// The cells that a command line means. Variants are checked before anything is read, so `traces` comes last.
pub(crate) fn plan(args: &MatrixArgs) -> Result<impl FnOnce(Vec<TraceInput>) -> Plan> {
    let mut library = Library::builtin()?;
    for file in &args.variant_file {
        library.load(file)?;
    }
    let patterns =
        if args.variants.is_empty() { DEFAULT_VARIANTS.map(str::to_owned).to_vec() } else { args.variants.clone() };
    let variants = library.select(&patterns, &args.with, &args.sets)?;
    let pacing: Pacing = args.pacing.parse().map_err(|e: String| CliError::new(Exit::Usage, e))?;
    let seeds = (1..=args.seeds).collect();
    Ok(move |traces| Plan { traces, variants, seeds, pacing: pacing.to_string(), code_version: code_version() })
}

/// The engine.
struct Engine {
    pacing: Pacing,
}

impl Simulate for Engine {
    fn simulate(
        &self,
        program: &Program,
        variant: &Variant,
        seed: u64,
        sink: &mut dyn ResultSink,
        abort: &AtomicBool,
    ) -> std::result::Result<Ended, Failure> {
        match sim::run(program, &variant.config, seed, self.pacing, sink, abort) {
            Ok(end) => Ok(Ended { finished: end.finished, elapsed: end.elapsed, events: end.events }),
            Err(SimError::Interrupted) => Err(Failure::Interrupted),
            Err(e) => Err(Failure::Failed(e.to_string())),
        }
    }
}

/// Runs a plan's cells into `results`, showing progress.
pub(crate) fn simulate(cli: &Cli, args: &MatrixArgs, plan: &Plan, results: &Path) -> Result<Outcome> {
    let pacing: Pacing = plan.pacing.parse().map_err(|e: String| CliError::new(Exit::Usage, e))?;
    let watcher = Watcher::new(plan, if cli.quiet { ProgressMode::None } else { cli.progress });
    let runner = Runner {
        dir: results,
        threads: args.threads.map_or(0, usize::from),
        drain: &signal::DRAIN,
        abort: &signal::ABORT,
        watch: &|p| watcher.tell(p),
    };
    let command: Vec<String> = std::env::args().collect();
    let outcome = runner.run(plan, &command, &Engine { pacing });
    watcher.finish();
    let outcome = outcome?;
    if outcome.disk_full {
        let done = outcome.count(CellState::Done);
        return Err(CliError::new(Exit::Output, format!("no space left in {}", results.display()))
            .note(format!("{done} of {} cells are complete and kept", outcome.cells.len()))
            .help("free some space and run the same command again"));
    }
    Ok(outcome)
}

/// Traces of several paths.
pub(crate) fn load_all(paths: &[PathBuf]) -> Result<Vec<TraceInput>> {
    paths.iter().map(|p| load(p)).collect()
}
