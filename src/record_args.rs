//! The grammar of `kreplay record`.

use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

/// Where block events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Blocks {
    /// The blk tracer, or events where it is taken
    Auto,
    /// The kernel's blk tracer: nanoseconds, plugs; one at a time on a machine
    Tracer,
    /// The kernel's block events: microseconds, no plugs; any number at a time
    Events,
}

/// The load: exactly one of a command, processes, a device with a time.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("load").required(true).multiple(true).args(["command", "pid", "seconds"])))]
pub(crate) struct RecordArgs {
    /// Command to run and record, behind --
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    pub(crate) command: Vec<String>,
    /// Record a process that runs already, with its threads and children; repeatable
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Vec<u32>,
    /// End after so many seconds; without command and --pid: record the device that long
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: Option<u32>,
    /// Folder that the load works in: its file system, its device and its files are recorded
    /// [default: where --device is mounted, or the working folder]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Block device to record instead of the one below the root
    #[arg(short, long, value_name = "DEV")]
    pub(crate) device: Option<PathBuf>,
    /// Leave system calls out (strace slows a load down)
    #[arg(long)]
    pub(crate) no_strace: bool,
    /// Leave block events out
    #[arg(long)]
    pub(crate) no_block: bool,
    /// Leave vmstat out
    #[arg(long)]
    pub(crate) no_vmstat: bool,
    /// Where block events come from
    #[arg(long, value_enum, default_value_t = Blocks::Auto, value_name = "HOW")]
    pub(crate) block: Blocks,
    /// Seconds between vmstat's rows
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) interval: u32,
    /// List the places of at most so many files
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) layout_files: usize,
    /// Memory cgroup (its folder) to run the command in
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cgroup: Option<PathBuf>,
    /// The kernel's buffer for block events, KiB a processor
    #[arg(long, value_name = "KIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub(crate) buffer: u32,
    /// Fail (exit 3) where something cannot be recorded, instead of leaving it out (exit 4)
    #[arg(long)]
    pub(crate) strict: bool,
    /// Folder to make for the recording
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}
