//! Traces to programs, programs to results.

use crate::args::{Cli, DEFAULT_VARIANTS, Level, MatrixArgs, ProgressMode};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::progress::Watcher;
use crate::{signal, stderr};
use kreplay_replay::blockreplay::{self, BlockProgram, BlockReplayError};
use kreplay_replay::compile::{CompileError, CompileOptions, StoredTrace, compile};
use kreplay_replay::config::{DeviceConfig, WritebackPolicy};
use kreplay_replay::matrix::{CellState, Ended, Failure, Outcome, Plan, Runner, Simulate, TraceInput, code_version};
use kreplay_replay::program::Program;
use kreplay_replay::results::ResultSink;
use kreplay_replay::sim::{self, Pacing, SimError};
use kreplay_replay::variant::{
    Library, RECORDED, Variant, VariantError, names_machine, nearest, recorded_defaults, recorded_device,
};
use kreplay_traces::store::{MachineInfo, TraceDir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A trace ready to be replayed.
pub(crate) struct Loaded {
    pub(crate) input: TraceInput,
    device: Option<DeviceConfig>,
    machine: MachineInfo,
    /// At block level: what is replayed instead of the program.
    block: Option<BlockProgram>,
}

/// Opens, verifies and compiles a trace; with the disk that it was recorded on, where it says so.
pub(crate) fn load(path: &Path, level: Level) -> Result<Loaded> {
    let trace = TraceDir::open(path)?;
    let machine = trace.manifest().machine.clone();
    let device = recorded_device(&machine.facts);
    if level == Level::Block {
        return load_block(path, &trace, machine, device);
    }
    let explain = |e: CompileError| {
        let exit = if matches!(e, CompileError::Invalid(_)) { Exit::Internal } else { Exit::Input };
        CliError::new(exit, format!("cannot compile {}: {e}", path.display()))
    };
    let mut source = StoredTrace::new(&trace).map_err(explain)?;
    let program = compile(&mut source, &CompileOptions::default()).map_err(explain)?;
    Ok(Loaded { input: TraceInput { program, path: Some(absolute(path)) }, device, machine, block: None })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn load_block(path: &Path, trace: &TraceDir, machine: MachineInfo, device: Option<DeviceConfig>) -> Result<Loaded> {
    let m = trace.manifest();
    let known: Vec<_> = m.machine.devices.iter().map(|d| (d.dev, d.name.clone(), d.sectors)).collect();
    let block = blockreplay::compile(&m.trace_id, &known, trace)?;
    if block.actions.is_empty() {
        return Err(CliError::new(Exit::Input, format!("{}: {}", path.display(), BlockReplayError::Empty))
            .help("`kreplay inspect` shows what the trace holds"));
    }
    let input = TraceInput { program: block.skeleton(), path: Some(absolute(path)) };
    Ok(Loaded { input, device, machine, block: Some(block) })
}

/// The cells that a command line means. Variants are checked before anything is read, so `traces` comes last.
///
/// Variants whose device the command line leaves open get the one of the recording, if all traces agree on it. Without `-v`, a
/// recording of a kernel of today is compared with that kernel on the recorded machine under each scheduler.
pub(crate) fn plan(
    args: &MatrixArgs,
    reference: Option<&str>,
    quiet: bool,
) -> Result<impl FnOnce(Vec<Loaded>) -> Result<(Plan, Blocks)>> {
    let select = |machine: Option<&MachineInfo>, patterns: &[String]| -> std::result::Result<_, VariantError> {
        let mut library = Library::builtin()?;
        library.add_recorded(machine)?;
        for file in &args.variant_file {
            library.load(file)?;
        }
        library.select(patterns, &args.with, &args.sets)
    };
    let unnamed = args.variants.is_empty();
    let patterns = if unnamed { DEFAULT_VARIANTS.map(str::to_owned).to_vec() } else { args.variants.clone() };
    let mut variants = select(None, &patterns)?;
    if !unnamed {
        check_reference(&variants, reference)?;
    }
    let pacing: Pacing = args.pacing.parse().map_err(|e: String| CliError::new(Exit::Usage, e))?;
    let seeds = (1..=args.seeds).collect();
    // Cells of the two levels are different cells.
    let pacing = match args.level {
        Level::System => pacing.to_string(),
        Level::Block => format!("{pacing}{BLOCK_LEVEL}"),
    };
    Ok(move |loaded: Vec<Loaded>| {
        let machine = one_machine(&loaded);
        let defaults = match machine {
            Ok(m) if unnamed => recorded_defaults(m, &Library::builtin()?),
            _ => Vec::new(),
        };
        if !defaults.is_empty() {
            variants = select(machine.ok(), &defaults)?;
        } else if variants.iter().any(|v| v.layers.iter().any(|l| l == RECORDED)) {
            variants = select(Some(machine.map_err(no_machine)?), &patterns)?;
        }
        if unnamed {
            check_reference(&variants, reference)?;
        }
        if !quiet && machine.is_ok() && args.level == Level::System && variants.iter().any(leaves_the_machine_open) {
            stderr::say(&format!(
                "note: the variants' own memory, limits and scheduler are simulated; `--with {RECORDED}` takes those of the recording\n"
            ));
        }
        let same = loaded.windows(2).all(|w| w[0].device == w[1].device);
        if let Some(device) = loaded.first().and_then(|l| l.device.as_ref()).filter(|_| same) {
            variants.iter_mut().filter(|v| !v.has_chosen_device()).for_each(|v| v.adopt_device(device));
        }
        let (mut traces, mut blocks): (Vec<TraceInput>, Blocks) = (Vec::new(), Blocks::new());
        for l in loaded {
            // A trace given twice would be replayed twice into the same cells.
            if let Some(twin) = traces.iter().find(|t| t.program.trace_id == l.input.program.trace_id) {
                stderr::say(&format!("note: {} is the same trace as {}, used once\n", at(&l.input), at(twin)));
                continue;
            }
            if let Some(block) = l.block {
                blocks.insert(block.trace_id.clone(), block);
            }
            traces.push(l.input);
        }
        let code_version = code_version();
        Ok((Plan { traces, variants, seeds, picked: None, pacing, totals_only: false, code_version }, blocks))
    })
}

/// A kernel of today on a machine that is not the recorded one.
fn leaves_the_machine_open(v: &Variant) -> bool {
    v.config.writeback.policy == WritebackPolicy::Balanced && !v.layers.iter().any(|l| l == RECORDED)
}

/// The machine that all the traces were recorded on, or why there is none.
fn one_machine(loaded: &[Loaded]) -> std::result::Result<&MachineInfo, &'static str> {
    let first = loaded.first().ok_or("there is no recording")?;
    if loaded.iter().any(|l| !names_machine(&l.machine)) {
        return Err("the recording does not say what machine it was made on (no run.json)");
    }
    let alike = |l: &Loaded| {
        let (a, b) = (&l.machine, &first.machine);
        let settings = |m: &MachineInfo| {
            let kept = |k: &&String| ["vm.", "bdi.", "queue.", "memory_limit"].iter().any(|p| k.starts_with(p));
            m.facts.iter().filter(|(k, _)| kept(k)).map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>()
        };
        let scheduler = |m: &MachineInfo| m.devices.iter().map(|d| d.scheduler.clone()).collect::<Vec<_>>();
        (a.ram_kib, a.cpus, &a.kernel, settings(a), scheduler(a))
            == (b.ram_kib, b.cpus, &b.kernel, settings(b), scheduler(b))
    };
    if loaded.iter().all(alike) { Ok(&first.machine) } else { Err("the recordings were made on different machines") }
}

fn no_machine(why: &str) -> CliError {
    CliError::new(Exit::Usage, format!("the profile `{RECORDED}` cannot be used: {why}")).help(
        "`kreplay record` notes the machine; without it name memory and scheduler yourself, e.g. \
         --set machine.ram=512MiB --set elevator.policy=none; recordings of different machines are replayed one by one",
    )
}

/// Block-level programs by trace id; none at system level.
pub(crate) type Blocks = BTreeMap<String, BlockProgram>;

/// How the pacing of a block-level replay ends.
const BLOCK_LEVEL: &str = ", block level";

fn at(trace: &TraceInput) -> String {
    trace.path.as_ref().map_or_else(|| trace.program.trace_id.clone(), |p| p.display().to_string())
}

/// Says before any work if the variant to compare with is not among those of the run.
fn check_reference(variants: &[Variant], reference: Option<&str>) -> Result<()> {
    let Some(name) = reference.filter(|name| variants.iter().all(|v| v.name != *name)) else { return Ok(()) };
    let names = || variants.iter().map(|v| v.name.as_str());
    let help = nearest(name, names()).map_or_else(
        || format!("the variants of this run are {}", names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Err(CliError::new(Exit::Usage, format!("--reference: no variant `{name}` in this run")).help(help))
}

/// The engine.
struct Engine<'a> {
    pacing: Pacing,
    blocks: &'a Blocks,
}

impl Simulate for Engine<'_> {
    fn simulate(
        &self,
        program: &Program,
        variant: &Variant,
        seed: u64,
        sink: &mut dyn ResultSink,
        abort: &AtomicBool,
    ) -> std::result::Result<Ended, Failure> {
        if let Some(block) = self.blocks.get(&program.trace_id) {
            return match blockreplay::replay(block, &variant.config, self.pacing, sink, abort) {
                Ok(end) => Ok(Ended { finished: end.finished, elapsed: end.elapsed, events: end.events }),
                Err(BlockReplayError::Interrupted) => Err(Failure::Interrupted),
                Err(e) => Err(Failure::Failed(e.to_string())),
            };
        }
        match sim::run(program, &variant.config, seed, self.pacing, sink, abort) {
            Ok(end) => Ok(Ended { finished: end.finished, elapsed: end.elapsed, events: end.events }),
            Err(SimError::Interrupted) => Err(Failure::Interrupted),
            Err(e) => Err(Failure::Failed(e.to_string())),
        }
    }
}

/// Runs a plan's cells into `results`, showing progress.
pub(crate) fn simulate(
    cli: &Cli,
    args: &MatrixArgs,
    (plan, blocks): &(Plan, Blocks),
    results: &Path,
) -> Result<Outcome> {
    let pacing: Pacing = args.pacing.parse().map_err(|e: String| CliError::new(Exit::Usage, e))?;
    run_cells(cli, args.threads, &Engine { pacing, blocks }, plan, results)
}

/// Runs a plan of programs, closed loop.
pub(crate) fn simulate_closed(cli: &Cli, threads: Option<u16>, plan: &Plan, results: &Path) -> Result<Outcome> {
    run_cells(cli, threads, &Engine { pacing: Pacing::Closed, blocks: &Blocks::new() }, plan, results)
}

fn run_cells(cli: &Cli, threads: Option<u16>, engine: &Engine<'_>, plan: &Plan, results: &Path) -> Result<Outcome> {
    let watcher = Watcher::new(plan, if cli.quiet { ProgressMode::None } else { cli.progress });
    let runner = Runner {
        dir: results,
        threads: threads.map_or(0, usize::from),
        drain: &signal::DRAIN,
        abort: &signal::ABORT,
        watch: &|p| watcher.tell(p),
    };
    let command: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let outcome = runner.run(plan, &command, engine);
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
pub(crate) fn load_all(paths: &[PathBuf], level: Level) -> Result<Vec<Loaded>> {
    paths.iter().map(|p| load(p, level)).collect()
}
