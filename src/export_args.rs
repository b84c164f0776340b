//! Arguments of `kreplay export`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What a trace is written as.
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
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Trace directory
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Target,
    /// File to write, or - for standard output; a folder for parquet
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}
