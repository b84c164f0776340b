//! The command line's grammar.

use crate::export_args::ExportArgs;
use crate::parse_args::ParseArgs;
use crate::record_args::RecordArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Variants of a run that names none: they differ in the memory management and in the elevator.
pub(crate) const DEFAULT_VARIANTS: [&str; 3] = ["linux-2.4.16", "linux-2.4.16-noop", "linux-2.4.17"];

/// What would this recorded load have done under another kernel, memory size or I/O scheduler?
#[derive(Debug, Parser)]
#[command(name = "kreplay", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Facts as JSON on standard output, errors as JSON on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors on standard error
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// How to show progress
    #[arg(long, global = true, value_enum, default_value_t = ProgressMode::Auto, value_name = "HOW")]
    pub(crate) progress: ProgressMode,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
    0  done
    1  a bug in this program
    2  the command line, a variant or a setting is wrong
    3  the input cannot be read or understood
    4  done, but parts of the input were skipped
    5  a proof did not hold, or a threshold was crossed
    6  some cells failed, the others are whole
    7  the output cannot be written: not ours, in use, no space
  130  interrupted; the same command goes on from there";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// Bars on a terminal, else a line every ten seconds
    Auto,
    /// Bars
    Bar,
    /// A line every ten seconds
    Plain,
    /// Nothing
    None,
}

/// Where in the machine a replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// System calls: page cache, memory, write-back, queues, elevators and devices
    System,
    /// Recorded bios (Q events, or D where there are none): queues, elevators and devices only
    Block,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a load: system calls, block events, vmstat, places of files, the machine
    Record(RecordArgs),
    /// Logs in, comparison report out: ingest, replay under each variant, analyse, report
    Run(RunArgs),
    /// Read logs into a trace directory
    Ingest(IngestArgs),
    /// What logs or traces hold: format, counts, time span, devices, processes, problems
    Inspect(InspectArgs),
    /// A trace, or the results of a replay, in another tool's format
    Export(ExportArgs),
    /// Simulate traces under variants
    Replay(ReplayArgs),
    /// Report on results
    Report(ReportArgs),
    /// Two runs against each other; exit 5 if a threshold is crossed
    Compare(CompareArgs),
    /// Kernel variants: list, show, diff
    Variants(VariantsArgs),
    /// Log formats that are understood
    Formats,
    /// Hold the models against recordings of real kernels
    Prove(ProveArgs),
    /// Answer what was reported on the kernel list in 2001
    Claims(ClaimsArgs),
    /// Fit a device model to the times of a recorded block trace
    Fit(FitArgs),
    /// Generate the trace of a workload
    Synth(SynthArgs),
    /// Completion script for a shell, on standard output
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Manual pages, into a folder
    Man {
        /// Folder
        dir: PathBuf,
    },
}

/// How logs are read.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Format of all logs, instead of looking at each
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Fail (exit 3) where input would be skipped (exit 4)
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) parse: ParseArgs,
}

/// Which simulations.
#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Variant: name, glob or .toml file, with +PROFILE and +KEY=VALUE changes; repeatable
    /// [default: the recorded kernel on the recorded machine and under the other
    /// schedulers; where no kernel of today was recorded, linux-2.4.16, linux-2.4.16-noop and linux-2.4.17]
    #[arg(short, long = "variant", value_name = "VARIANT")]
    pub(crate) variants: Vec<String>,
    /// Put a profile (machine, disk) on top of every variant; `recorded` is the recorded machine; repeatable
    #[arg(long, value_name = "PROFILE")]
    pub(crate) with: Vec<String>,
    /// Sweep: every variant with each of the values, e.g. machine.ram=64MiB,128MiB; repeatable
    #[arg(long = "set", value_name = "KEY=A,B")]
    pub(crate) sets: Vec<String>,
    /// Further variant file that names may refer to; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Simulations of each variant, with different seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// When calls are issued: closed (when the last returned, plus think time), recorded, scaled=X
    #[arg(long, value_name = "HOW", default_value = "closed")]
    pub(crate) pacing: String,
    /// What is simulated: the whole machine from system calls, or from the block trace down
    #[arg(long, value_enum, default_value_t = Level::System, value_name = "LEVEL")]
    pub(crate) level: Level,
    /// Simulations at a time [default: one a processor]
    #[arg(short = 'j', long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Folder with logs of one recording, or a trace directory; repeatable
    #[arg(required = true, value_name = "DIR")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Variant to compare with
    #[arg(long, value_name = "VARIANT")]
    pub(crate) reference: Option<String>,
    /// Output folder
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// Logs, folders of logs, or - for standard input
    #[arg(required = true, value_name = "LOG")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Replace a finished trace of that name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Trace directory to write
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Logs, folders of logs, - for standard input, or trace directories
    #[arg(required = true, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Block events as btt sums them up: Q2Q, Q2G, G2I, I2D, D2C, Q2C, merges, seeks, plugs
    #[arg(long)]
    pub(crate) btt: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Trace directories
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    /// Write totals, samples and clients, but no row for each request and each call
    #[arg(long)]
    pub(crate) totals_only: bool,
    /// Output folder; results go to OUT/results
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Output folder of run or replay
    #[arg(value_name = "OUT")]
    pub(crate) results: PathBuf,
    /// File to write, its kind by its ending (.html, .md, .json, .txt, .mail, .csv, .svg, .png); repeatable [default: to the terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Variant to compare with [default: the best]
    #[arg(long, value_name = "VARIANT")]
    pub(crate) reference: Option<String>,
    /// Where the trace directory is now, if it has moved
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Kind of report, whatever the files are called; without -o to the terminal
    #[arg(long = "as", value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Pictures (.svg, .png): the charts of this id or section, e.g. blame, progress or vmstat, instead of an overview; `each` writes a
    /// file for each chart
    #[arg(long, value_name = "ID")]
    pub(crate) chart: Option<String>,
    /// Figures of the Pareto set, by column of the matrix [default: elapsed_s,last_over_first,read_p999_ms]
    #[arg(long, value_name = "FIGURE,...", value_delimiter = ',')]
    pub(crate) pareto: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Output folder of the first run, or FOLDER:VARIANT
    #[arg(value_name = "BEFORE")]
    pub(crate) before: String,
    /// Output folder of the second run, or FOLDER:VARIANT
    #[arg(value_name = "AFTER")]
    pub(crate) after: String,
    /// Exit with 5 if this holds: 'p99_read > +10%' (of the change), 'elapsed_s > 20' (of the second run); repeatable
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,
    /// File to write, its kind by its ending; repeatable [default: to the terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VariantsArgs {
    /// Further variant file that names may refer to; repeatable
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Trace directory whose machine the profile `recorded` stands for
    #[arg(long, value_name = "TRACE", global = true)]
    pub(crate) recording: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: VariantsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VariantsCommand {
    /// All variants and profiles
    List,
    /// What a variant sets, with origin and evidence of each key
    Show {
        /// Variant
        variant: String,
        /// Every key, also those of the variants it extends, as a file that can be copied
        #[arg(long)]
        resolved: bool,
    },
    /// Keys in which two variants differ
    Diff {
        /// First
        a: String,
        /// Second
        b: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// What to prove [possible values: see `kreplay prove list`]
    pub(crate) kind: String,
    /// Folder with the recordings
    pub(crate) dir: Option<PathBuf>,
    /// Simulations at a time [default: one a processor]
    #[arg(short = 'j', long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimsArgs {
    /// Claims to answer, by id; A* means all that begin so [default: all]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// All claims with what was reported and the band
    #[arg(long, conflicts_with = "output")]
    pub(crate) list: bool,
    /// Claims of your own (TOML, as those in analysis/claims) instead of the built-in ones; repeatable
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Further variant file that claims may refer to; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) variant_file: Vec<PathBuf>,
    /// Simulations at a time [default: one a processor]
    #[arg(short = 'j', long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Output folder
    #[arg(short, long, value_name = "OUT", required_unless_present = "list")]
    pub(crate) output: Option<PathBuf>,
}

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitWhat {
    /// Rotating disk and flash, to the times from dispatch to completion
    Disk,
}

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// What to fit
    pub(crate) what: FitWhat,
    /// Trace directory with block events
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Device of the trace [default: the one with the most requests]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// File for the better model, as a profile for variants (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SynthArgs {
    /// Load to generate
    #[arg(required_unless_present = "list")]
    pub(crate) load: Option<String>,
    /// Parameters of the load
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    /// All loads and their parameters
    #[arg(long, conflicts_with_all = ["load", "output"])]
    pub(crate) list: bool,
    /// Replace a finished trace of that name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Trace directory to write
    #[arg(short, long, value_name = "TRACE", required_unless_present = "list")]
    pub(crate) output: Option<PathBuf>,
}
