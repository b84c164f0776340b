//! A Jupyter notebook (nbformat 4.5) over the result tables: loads them by polars, DuckDB and pandas, draws three plots, and
//! computes two figures of the report anew, each by all three, and compares.

use crate::escape;
use crate::{Error, Result, provenance};
use kreplay_analysis::model::{Report, Value};
use serde_json::json;

/// Figures that the notebook computes anew: column of the matrix.
pub const FIGURES: [&str; 2] = ["elapsed_s", "read_p99_ms"];

const LOAD: &str = r#"import json, math
from pathlib import Path

ROOT = Path(RESULTS)
MANIFEST = json.loads((ROOT / "manifest.json").read_text())
CELLS = [c for c in MANIFEST["cells"] if c["state"] == "done"]

def table(cell, name):
    """Path of a result table: see docs/RESULTS.md for the columns."""
    for base in (ROOT, ROOT.parent):
        path = base / cell["path"] / f"{name}.parquet"
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{name} of {cell['path']}")

def rank(n, q):
    """Nearest rank, as in the report: the 1-based rank ceil(q * n), at least 1."""
    return max(math.ceil(q * n), 1)

def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

def fold(figures):
    """Median over the seeds of a variant, as in the report's matrix."""
    by_variant = {}
    for cell, value in zip(CELLS, figures):
        if value is not None:
            by_variant.setdefault((cell["trace"], cell["variant"]), []).append(value)
    return {key: median(values) for key, values in by_variant.items()}

len(CELLS)"#;

const POLARS: &str = r#"import polars as pl

def by_polars(cell):
    tasks = pl.scan_parquet(table(cell, "clients")).filter(~pl.col("background"))
    end = tasks.select(pl.col("end_ns").max() - pl.col("start_ns").min()).collect().item()
    reads = pl.scan_parquet(table(cell, "calls")).filter(pl.col("op") == "read").select(pl.col("dur_ns").sort()).collect()
    p99 = reads["dur_ns"][rank(len(reads), 0.99) - 1] if len(reads) else None
    return end / 1e9, None if p99 is None else p99 / 1e6

POLARS = [by_polars(cell) for cell in CELLS]
pl.DataFrame({"variant": [c["variant"] for c in CELLS], "seed": [c["seed"] for c in CELLS],
              "elapsed_s": [e for e, _ in POLARS], "read_p99_ms": [p for _, p in POLARS]})"#;

const DUCKDB: &str = r#"import duckdb

def by_duckdb(cell):
    end = duckdb.execute("select max(end_ns) - min(start_ns) from read_parquet(?) where not background", [table(cell, "clients")]).fetchone()[0]
    n = duckdb.execute("select count(*) from read_parquet(?) where op = 'read'", [table(cell, "calls")]).fetchone()[0]
    if not n:
        return end / 1e9, None
    p99 = duckdb.execute(f"select dur_ns from read_parquet(?) where op = 'read' order by dur_ns limit 1 offset {rank(n, 0.99) - 1}",
                         [table(cell, "calls")]).fetchone()[0]
    return end / 1e9, p99 / 1e6

DUCKDB = [by_duckdb(cell) for cell in CELLS]
DUCKDB"#;

const PANDAS: &str = r#"import pandas as pd

def by_pandas(cell):
    tasks = pd.read_parquet(table(cell, "clients"))
    tasks = tasks[~tasks["background"].astype(bool)]
    end = tasks["end_ns"].max() - tasks["start_ns"].min()
    calls = pd.read_parquet(table(cell, "calls"), columns=["op", "dur_ns"])
    reads = calls.loc[calls["op"] == "read", "dur_ns"].sort_values()
    return end / 1e9, reads.iloc[rank(len(reads), 0.99) - 1] / 1e6 if len(reads) else None

PANDAS = [by_pandas(cell) for cell in CELLS]
pd.DataFrame(PANDAS, columns=["elapsed_s", "read_p99_ms"], index=[c["variant"] for c in CELLS])"#;

const PLOT_LATENCY: &str = r#"import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(8, 4))
for cell in CELLS:
    reads = pl.read_parquet(table(cell, "calls"), columns=["op", "dur_ns"]).filter(pl.col("op") == "read")["dur_ns"].sort()
    n = len(reads)
    if n:
        ax.plot(reads / 1e6, [100 * (n - i) / n for i in range(n)], label=cell["variant"].replace("$", r"\$"))
ax.set(xscale="log", yscale="log", xlabel="duration of a read (ms)", ylabel="took at least as long (%)")
ax.legend(fontsize=7)
plt.show()"#;

const PLOT_MEMORY: &str = r#"fig, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharex=True)
for cell in CELLS:
    s = pl.read_parquet(table(cell, "samples"))
    for ax, column in zip(axes, ("free_kib", "cache_kib")):
        ax.plot(s["time_ns"] / 1e9, s[column] / 1024, label=cell["variant"].replace("$", r"\$"))
        ax.set(xlabel="time (s)", ylabel=column.removesuffix("_kib") + " (MiB)")
axes[1].legend(fontsize=7)
plt.show()"#;

const PLOT_SEEKS: &str = r#"io = pl.read_parquet(table(CELLS[0], "io"))
fig, ax = plt.subplots(figsize=(8, 4))
for direction, colour in (("R", "tab:blue"), ("W", "tab:orange")):
    part = io.filter(pl.col("dir") == direction)
    ax.scatter(part["d_ns"] / 1e9, part["sector_512"] / 2048, s=1, c=colour, label={"R": "reads", "W": "writes"}[direction])
ax.set(xlabel="time (s)", ylabel="place on the disk (MiB)")
ax.legend()
plt.show()"#;

const CHECK: &str = r#"def close(a, b):
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)

for number, figure in enumerate(("elapsed_s", "read_p99_ms")):
    for name, computed in (("polars", POLARS), ("DuckDB", DUCKDB), ("pandas", PANDAS)):
        found = fold([row[number] for row in computed])
        for trace, variant, value in REPORT[figure]:
            assert close(found.get((trace, variant)), value), (figure, name, variant, found.get((trace, variant)), value)
print("all figures are those of the report")"#;

/// The notebook about the results in `results` (a path as the notebook shall open it), with the figures of `report` to compare.
///
/// # Errors
/// If the report has nothing to compare, or JSON fails.
pub fn notebook(report: &Report, results: &str) -> Result<Vec<u8>> {
    let figures = figures(report);
    if figures.values().all(|v| v.as_array().is_none_or(Vec::is_empty)) {
        return Err(Error::Nothing { kind: "notebook", why: "no finished variant has an elapsed time" });
    }
    // JSON inside a Python literal: JSON's own string syntax is Python's as well, as long as no surrogate is escaped.
    let literal = |text: &str| serde_json::to_string(&escape::visible(text));
    let load = format!(
        "import json\nRESULTS = {}\nREPORT = json.loads({})",
        literal(results)?,
        serde_json::to_string(&serde_json::to_string(&figures)?)?
    );
    let title = format!(
        "# {}\n\n{}\n\nThe tables are described in docs/RESULTS.md. Needed are polars, duckdb, pandas with pyarrow, and matplotlib.",
        escape::markdown(&report.title),
        escape::markdown(&report.question)
    );
    let models: String = provenance::models_in_short(&report.provenance)
        .iter()
        .map(|said| format!("- {}\n", escape::markdown(&provenance::whose(said))))
        .collect();
    let title = if models.is_empty() { title } else { format!("{title}\n\n{}:\n\n{models}", provenance::MODELS) };
    let cells = [
        ("about", "markdown", title),
        ("figures", "code", load),
        ("load", "code", LOAD.to_string()),
        ("by-polars", "code", POLARS.to_string()),
        ("by-duckdb", "code", DUCKDB.to_string()),
        ("by-pandas", "code", PANDAS.to_string()),
        ("plot-latency", "code", PLOT_LATENCY.to_string()),
        ("plot-memory", "code", PLOT_MEMORY.to_string()),
        ("plot-seeks", "code", PLOT_SEEKS.to_string()),
        ("check", "code", CHECK.to_string()),
    ];
    let cells: Vec<serde_json::Value> = cells
        .into_iter()
        .map(|(id, kind, text)| {
            let source: Vec<&str> = text.split_inclusive('\n').collect();
            if kind == "code" {
                json!({"cell_type": kind, "id": id, "metadata": {}, "source": source, "execution_count": null, "outputs": []})
            } else {
                json!({"cell_type": kind, "id": id, "metadata": {}, "source": source})
            }
        })
        .collect();
    let document = json!({
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    });
    let mut text = escape::json(&serde_json::to_string_pretty(&document)?);
    text.push('\n');
    Ok(text.into_bytes())
}

/// For each figure the finished variants that have it: trace, variant, value.
fn figures(report: &Report) -> serde_json::Map<String, serde_json::Value> {
    let mut all = serde_json::Map::new();
    for figure in FIGURES {
        let mut rows = Vec::new();
        for trace in &report.traces {
            let Some(column) = trace.matrix.columns.iter().position(|c| c.id == figure) else { continue };
            for row in &trace.matrix.rows {
                // The names of unfinished runs carry a mark; their times are lower bounds and nothing to check against.
                let Some(Value::Text(variant)) = row.cells.first().map(|c| &c.value) else { continue };
                let finished =
                    report.provenance.cells.iter().any(|c| c.variant == *variant && c.finished != Some(false));
                if let Some(value) = row.cells[column].as_number().filter(|_| finished) {
                    rows.push(json!([trace.id, variant, value]));
                }
            }
        }
        all.insert(figure.to_string(), json!(rows));
    }
    all
}
