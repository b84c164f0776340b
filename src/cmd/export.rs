//! `kreplay export`: a trace in another tool's format.

use super::{export_csv, export_results};
use crate::args::Cli;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::export_args::{ExportArgs, Target};
use crate::{outfile, stderr, stdout};
use kreplay_parsers::export::{BlkparseText, FioIologV3, OracleGeneral};
use kreplay_traces::event::EventSink;
use kreplay_traces::publish::AtomicFile;
use kreplay_traces::schema::Files;
use kreplay_traces::store::{TraceDir, copy_tables};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(cli: &Cli, args: &ExportArgs) -> Result<Exit> {
    if matches!(args.to, Target::Perfetto | Target::Notebook) {
        return export_results::run(cli, args);
    }
    if args.variant.is_some() || args.seed.is_some() {
        return Err(CliError::new(Exit::Usage, "--variant and --seed choose a run of a replay")
            .help("they go with --to perfetto; a trace directory holds the recording only"));
    }
    if args.to == Target::Csv {
        return export_csv::run(cli, args);
    }
    let trace = TraceDir::open(&args.trace)?;
    outfile::check(&args.output, &trace)?;
    if args.to == Target::Parquet {
        outfile::check_folder(&args.output)?;
        return parquet(cli, &trace, &args.output);
    }
    if trace.manifest().count("block") == 0 {
        return Err(CliError::new(Exit::Input, format!("{} has no block events", args.trace.display()))
            .help("this format holds block events; --to parquet writes whatever a trace has"));
    }
    let is_stdout = args.output.as_os_str() == "-";
    let left_out = if is_stdout {
        let mut out = BufWriter::new(io::stdout().lock());
        match write(&trace, args.to, &mut out)? {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Ok),
            other => other.map_err(|e| CliError::unwritable(&args.output, &e))?,
        }
    } else {
        let mut out = BufWriter::new(AtomicFile::create(&args.output)?);
        let left_out = write(&trace, args.to, &mut out)?.map_err(|e| CliError::unwritable(&args.output, &e))?;
        out.into_inner().map_err(|e| CliError::unwritable(&args.output, e.error()))?.commit()?;
        left_out
    };
    let rows = trace.manifest().count("block");
    if is_stdout || !cli.json {
        if !cli.quiet {
            stderr::say(&format!("{rows} block events read, {left_out} cannot be expressed in this format\n"));
        }
    } else {
        stdout::print_json(
            &serde_json::json!({"output": stdout::json_path(&args.output), "block_events": rows, "left_out": left_out}),
        )?;
    }
    Ok(if left_out > 0 { Exit::Skipped } else { Exit::Ok })
}

/// Writes the block events; gives how many the format cannot express. The inner error is that of the output.
fn write(trace: &TraceDir, to: Target, out: &mut impl Write) -> Result<io::Result<u64>> {
    let feed = |sink: &mut dyn EventSink| -> Result<()> {
        trace.blocks()?.for_each(|row| sink.block(&row))?;
        Ok(())
    };
    Ok(match to {
        Target::Blkparse => {
            let mut sink = BlkparseText::new(out);
            feed(&mut sink)?;
            sink.finish()
        }
        Target::FioIolog => {
            let mut sink = FioIologV3::new(out, names(trace)?);
            feed(&mut sink)?;
            sink.finish()
        }
        Target::OracleGeneral => {
            let mut sink = OracleGeneral::default();
            feed(&mut sink)?;
            sink.write(out)
        }
        Target::Parquet | Target::Csv | Target::Perfetto | Target::Notebook => Ok(0),
    })
}

/// Names of the files that stand for devices in the logs the trace was made from: they have numbers of major 0, which no
/// disk has, and one name each.
fn names(trace: &TraceDir) -> Result<BTreeMap<i64, String>> {
    let (mut names, mut several) = (BTreeMap::new(), Vec::new());
    let mut files = trace.rows::<Files>()?;
    while let Some(file) = files.next()? {
        if let Some(dev) = file.dev.filter(|d| *d >> 20 == 0 && file.extent_sector_512.is_none())
            && names.insert(dev, file.path.to_owned()).is_some_and(|other| other != file.path)
        {
            several.push(dev);
        }
    }
    names.retain(|dev, _| !several.contains(dev));
    Ok(names)
}

fn parquet(cli: &Cli, trace: &TraceDir, dir: &Path) -> Result<Exit> {
    tell(cli, dir, &copy_tables(trace, dir)?)
}

/// Says which files were written to a folder, with their rows.
pub(super) fn tell(cli: &Cli, dir: &Path, written: &[(PathBuf, u64)]) -> Result<Exit> {
    if cli.json {
        let files: Vec<_> = written
            .iter()
            .map(|(path, rows)| serde_json::json!({"file": stdout::json_path(path), "rows": rows}))
            .collect();
        stdout::print_json(&serde_json::json!({"output": stdout::json_path(dir), "files": files}))?;
    } else {
        let lines: Vec<String> =
            written.iter().map(|(path, rows)| format!("{}: {rows} rows\n", path.display())).collect();
        stdout::print(&lines.concat())?;
    }
    Ok(Exit::Ok)
}
