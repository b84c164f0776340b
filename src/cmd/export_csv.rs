//! `kreplay export DIR --to csv`: the tables of a trace or of a replay's results as CSV (RFC 4180, LF line ends), a file a table.

use super::export::tell;
use super::export_results::results_of;
use crate::args::Cli;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::export_args::ExportArgs;
use crate::outfile;
use kreplay_reports::escape;
use kreplay_traces::publish::AtomicFile;
use kreplay_traces::store::{TraceDir, copy_tables};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Deepest folder below the results that is looked into: trace, variant and seed, and one to spare.
const DEEPEST: usize = 4;

pub(crate) fn run(cli: &Cli, args: &ExportArgs) -> Result<Exit> {
    outfile::check_folder(&args.output)?;
    let written = if TraceDir::is_trace(&args.trace) {
        let trace = TraceDir::open(&args.trace)?;
        outfile::check(&args.output, &trace)?;
        let tables = tempfile::tempdir().map_err(|e| CliError::unwritable(&std::env::temp_dir(), &e))?;
        copy_tables(&trace, tables.path())?;
        convert_all(tables.path(), &args.output)?
    } else {
        outfile::check_run(&args.output, &args.trace)?;
        let Some(results) = results_of(&args.trace) else {
            let what =
                format!("{} is neither a trace directory nor the output folder of a replay", args.trace.display());
            return Err(CliError::new(Exit::Input, what).help("give what `kreplay ingest` or `kreplay run` wrote"));
        };
        convert_all(&results, &args.output)?
    };
    tell(cli, &args.output, &written)
}

/// Every table below `from`, under the same name below `to`; files and rows, in the order of their names.
fn convert_all(from: &Path, to: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut tables = Vec::new();
    find(from, DEEPEST, &mut tables).map_err(|e| CliError::new(Exit::Input, format!("{}: {e}", from.display())))?;
    tables.sort_unstable();
    let mut written = Vec::new();
    for table in tables {
        let below = table.strip_prefix(from).unwrap_or(&table);
        let path = to.join(below).with_extension("csv");
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder).map_err(|e| CliError::unwritable(folder, &e))?;
        let mut out = BufWriter::new(AtomicFile::create(&path)?);
        let rows = convert(&table, &mut out).map_err(|e| match e {
            Failed::Reading(e) => CliError::new(Exit::Input, format!("{}: {e}", table.display())),
            Failed::Writing(e) => CliError::unwritable(&path, &e),
        })?;
        out.into_inner().map_err(|e| CliError::unwritable(&path, e.error()))?.commit()?;
        written.push((path, rows));
    }
    Ok(written)
}

fn find(folder: &Path, deepest: usize, tables: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
        if kind.is_dir() && deepest > 0 {
            find(&path, deepest - 1, tables)?;
        } else if kind.is_file() && path.extension().is_some_and(|e| e == "parquet") {
            tables.push(path);
        }
    }
    Ok(())
}

enum Failed {
    Reading(ParquetError),
    Writing(io::Error),
}

impl From<ParquetError> for Failed {
    fn from(e: ParquetError) -> Self {
        Self::Reading(e)
    }
}

impl From<io::Error> for Failed {
    fn from(e: io::Error) -> Self {
        Self::Writing(e)
    }
}

/// One table, row by row.
fn convert(table: &Path, out: &mut impl Write) -> std::result::Result<u64, Failed> {
    let file = File::open(table).map_err(|e| Failed::Reading(ParquetError::External(Box::new(e))))?;
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema();
    // Names of columns are our own: `[a-z0-9_]`.
    let names: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
    writeln!(out, "{}", names.join(","))?;
    let mut rows = 0;
    for row in reader.get_row_iter(None)? {
        let row = row?;
        let mut line = String::new();
        for (c, (_, field)) in row.get_column_iter().enumerate() {
            if c > 0 {
                line.push(',');
            }
            match field {
                Field::Null => {}
                // Whoever opens it in a spreadsheet is safe: text of a trace is anybody's.
                Field::Str(text) => line.push_str(&escape::csv(text, false)),
                number => line.push_str(&number.to_string()),
            }
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        rows += 1;
    }
    Ok(rows)
}
