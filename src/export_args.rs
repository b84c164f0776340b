//! Arguments of `kreplay export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What a trace, or the results of a replay, are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Block events as blkparse's default text
    Blkparse,
    /// Arrivals of block requests as fio's I/O log, version 3
    FioIolog,
    /// Arrivals as libCacheSim's binary cache trace
    OracleGeneral,
    /// The tables themselves, one file each
    Parquet,
    /// The tables of a trace or of the results of a replay as comma-separated values, one file each
    Csv,
    /// Calls and requests of a trace, or of one run of a replay, as spans (Trace Event Format, for ui.perfetto.dev)
    Perfetto,
    /// A Jupyter notebook over the results of a replay
    Notebook,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Trace directory; for notebook, and for csv and perfetto of a replay, the output folder of run or replay
    #[arg(value_name = "DIR")]
    pub(crate) trace: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Target,
    /// File to write, or - for standard output; a folder for parquet and csv
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// perfetto: the variant whose run is written [default: the first]
    #[arg(long, value_name = "VARIANT")]
    pub(crate) variant: Option<String>,
    /// perfetto: the seed of that run [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<i64>,
}
