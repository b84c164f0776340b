//! Spans and notebooks: against the definitions of their formats, and run by Jupyter where there is one.

#![allow(clippy::print_stderr, reason = "a test that skips says why")]

use kreplay_analysis::fixture::{Spec, Written, write_results};
use kreplay_analysis::timeline::timeline;
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{notebook, trace_event};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tempfile::TempDir;

fn fixture(spec: &Spec) -> (TempDir, Written) {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), spec).unwrap();
    (dir, written)
}

/// What "Trace Event Format" asks of each kind of event that is written.
fn check(document: &Value) -> BTreeMap<String, usize> {
    let events = document["traceEvents"].as_array().expect("an array of events");
    let mut counts = BTreeMap::new();
    let mut open: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
    for e in events {
        let phase = e["ph"].as_str().expect("every event has a phase").to_string();
        assert!(e["name"].is_string() && e["pid"].is_i64(), "{e}");
        match phase.as_str() {
            "M" => {
                assert!(["process_name", "thread_name"].contains(&e["name"].as_str().unwrap()), "{e}");
                assert!(e["args"]["name"].is_string(), "{e}");
            }
            "X" => assert!(
                e["ts"].is_number() && e["dur"].as_f64().unwrap() >= 0.0 && e["tid"].is_i64() && e["cat"].is_string(),
                "{e}"
            ),
            "b" | "e" => {
                assert!(e["id"].is_string() && e["cat"].is_string() && e["ts"].is_number(), "{e}");
                let key = (e["cat"].to_string(), e["id"].to_string());
                let (name, ts) = (e["name"].to_string(), e["ts"].as_f64().unwrap());
                let stack = open.entry(key).or_default();
                if phase == "b" {
                    assert!(stack.last().is_none_or(|(_, t)| *t <= ts), "{e}: begins before what it is nested in");
                    stack.push((name, ts));
                } else {
                    let (begun, from) = stack.pop().expect("an end has a beginning");
                    assert!(begun == name && from <= ts, "{e}");
                }
            }
            "C" => assert!(e["args"].as_object().unwrap().values().all(Value::is_number) && e["ts"].is_number(), "{e}"),
            other => panic!("unknown phase {other}"),
        }
        *counts.entry(phase).or_insert(0) += 1;
    }
    assert!(open.values().all(Vec::is_empty), "every beginning has an end");
    counts
}

#[test]
fn spans_are_what_the_format_says() {
    let (_dir, written) = fixture(&Spec::default());
    let run = timeline(&written.out, Some("linux-2.4.16-noop"), None).unwrap();
    let mut bytes = Vec::new();
    trace_event::write(&run, &mut bytes).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let counts = check(&document);
    assert_eq!(counts["X"], 300, "a call each");
    assert_eq!(counts["b"], 200 * 3, "request, queue and disk");
    let first = document["traceEvents"].as_array().unwrap().iter().find(|e| e["ph"] == "X").unwrap();
    assert_eq!(first["dur"].as_f64().unwrap() * 1e3, run.calls[0].dur_ns as f64);
    assert!(timeline(&written.out, Some("nobody"), None).is_err());
    assert!(timeline(&written.out, None, Some(99)).is_err());
}

#[test]
fn hostile_names_do_not_leave_their_strings() {
    let names = ["\u{202e}x", "</script>", "a\"b\\", "\x1b]0;x\x07"].map(str::to_string).to_vec();
    let (_dir, written) = fixture(&Spec { clients: names.clone(), variants: names, seconds: 5, ..Spec::default() });
    let mut bytes = Vec::new();
    trace_event::write(&timeline(&written.out, None, None).unwrap(), &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    check(&serde_json::from_str(&text).unwrap());
    assert!(!text.contains('\u{202e}') && !text.contains('\x1b') && !text.contains("</"));
    let report = analyse(&written.out, &Options::default()).unwrap();
    let text = String::from_utf8(notebook::notebook(&report, "results").unwrap()).unwrap();
    assert!(!text.contains('\u{202e}') && !text.contains('\x1b') && !text.contains("</"));
}

/// The demands of nbformat 4.5 on what is written here.
#[test]
fn the_notebook_has_the_formats_shape() {
    let (_dir, written) = fixture(&Spec { seeds: 2, ..Spec::default() });
    let report = analyse(&written.out, &Options::default()).unwrap();
    let book: Value = serde_json::from_slice(&notebook::notebook(&report, "results").unwrap()).unwrap();
    assert_eq!((book["nbformat"].as_i64(), book["nbformat_minor"].as_i64()), (Some(4), Some(5)));
    let cells = book["cells"].as_array().unwrap();
    let mut ids: Vec<&str> = cells.iter().map(|c| c["id"].as_str().unwrap()).collect();
    for c in cells {
        assert!(c["source"].is_array() && c["metadata"].is_object());
        assert_eq!(c["cell_type"] == "code", c["outputs"].is_array() && c.get("execution_count").is_some());
    }
    let text = |c: &Value| c["source"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect::<String>();
    assert_eq!(cells.iter().filter(|c| text(c).contains("plt.show()")).count(), 3, "three plots");
    for library in ["import polars", "import duckdb", "import pandas"] {
        assert!(cells.iter().any(|c| text(c).contains(library)), "{library}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), cells.len());
}

const RUN: &str = "
import sys
try:
    import nbformat, nbclient, polars, duckdb, pandas, pyarrow, matplotlib, ipykernel
except ImportError as e:
    print('missing:', e)
    sys.exit(77)
book = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=300, resources={'metadata': {'path': sys.argv[2]}}).execute()
said = ''.join(o.get('text', '') for c in book.cells for o in c.get('outputs', []))
images = sum('image/png' in o.get('data', {}) for c in book.cells for o in c.get('outputs', []))
assert 'all figures are those of the report' in said, said
assert images == 3, images
";

/// `KREPLAY_PYTHON` names an interpreter with nbclient, polars, duckdb, pandas, pyarrow and matplotlib; without it `python3` is tried.
#[test]
fn jupyter_computes_the_reports_figures() {
    let python = std::env::var("KREPLAY_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let (_dir, written) = fixture(&Spec { seeds: 2, ..Spec::default() });
    let report = analyse(&written.out, &Options::default()).unwrap();
    let path = written.out.join("report.ipynb");
    std::fs::write(&path, notebook::notebook(&report, "results").unwrap()).unwrap();
    let run = Command::new(&python).arg("-c").arg(RUN).arg(&path).arg(&written.out).output();
    let Ok(run) = run else {
        eprintln!("skipped: no {python}");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(77) {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(run.status.success(), "{said}");
}
