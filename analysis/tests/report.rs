//! The whole way from result tables to the report model.

use kreplay_analysis::fixture::{Spec, Written, write_results};
use kreplay_analysis::model::{Block, Level, Value};
use kreplay_analysis::{Error, Options, analyse};
use tempfile::TempDir;

fn fixture(spec: &Spec) -> (TempDir, Written) {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), spec).unwrap();
    (dir, written)
}

#[test]
fn the_report_of_the_fixture() {
    let (_dir, written) = fixture(&Spec::default());
    let mut report = analyse(&written.out, &Options::default()).unwrap();
    report.provenance.analysis_version = "0.0.0".to_string();
    // Hashes of Parquet files change with the writer's version and say nothing here.
    for table in report.provenance.cells.iter_mut().flat_map(|c| &mut c.tables) {
        assert_eq!(table.blake3.len(), 64);
        table.blake3 = "(hash)".to_string();
    }
    for block in report.traces.iter_mut().flat_map(|t| &mut t.sections).flat_map(|s| &mut s.blocks) {
        if let Block::Strips(strips) = block {
            strips.panels.truncate(1);
            for series in strips.panels.iter_mut().flat_map(|p| &mut p.series) {
                series.points.truncate(3);
            }
        }
        if let Block::Plane(plane) = block {
            plane.lines.truncate(3);
            plane.lines.iter_mut().for_each(|l| l.points.truncate(3));
        }
        if let Block::Flame(flame) = block {
            flame.root.parts.truncate(1);
        }
    }
    // One figure of each kind tells as much as one a variant.
    for section in report.traces.iter_mut().flat_map(|t| &mut t.sections) {
        let whose = |b: &Block| match b {
            Block::Plane(p) => p.label.clone(),
            Block::Strips(s) => s.label.clone(),
            Block::Flame(f) => f.label.clone(),
            _ => String::new(),
        };
        section.blocks.retain(|b| ["", "linux-2.4.16"].contains(&whose(b).as_str()));
    }
    insta::assert_json_snapshot!(report);
}

#[test]
fn the_same_results_give_the_same_report() {
    let (_dir, written) = fixture(&Spec { seeds: 2, ..Spec::default() });
    let text = |path| serde_json::to_string(&analyse(path, &Options::default()).unwrap()).unwrap();
    assert_eq!(text(&written.out), text(&written.out.join("results")));
}

#[test]
fn the_report_survives_json() {
    let (_dir, written) = fixture(&Spec { seeds: 2, lost_cells: true, ..Spec::default() });
    let report = analyse(&written.out, &Options::default()).unwrap();
    let text = serde_json::to_string(&report).unwrap();
    let back: kreplay_analysis::model::Report = serde_json::from_str(&text).unwrap();
    assert_eq!(back.verdict, report.verdict);
    assert_eq!(back.provenance, report.provenance);
    assert_eq!(back.traces[0].matrix.columns, report.traces[0].matrix.columns);
    let cells = |r: &kreplay_analysis::model::Report| {
        r.traces[0].matrix.rows.iter().flat_map(|row| row.cells.clone()).collect::<Vec<_>>()
    };
    for (a, b) in cells(&back).iter().zip(cells(&report)) {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
        assert!(a.as_number().zip(b.as_number()).is_none_or(|(a, b)| close(a, b)) && a.best == b.best, "{a:?} {b:?}");
    }
}

#[test]
fn an_unfinished_run_is_never_best_and_is_named() {
    let spec = Spec { variants: vec!["a".into(), "b".into()], last_unfinished: true, ..Spec::default() };
    let (_dir, written) = fixture(&spec);
    let report = analyse(&written.out, &Options::default()).unwrap();
    let matrix = &report.traces[0].matrix;
    assert_eq!(matrix.rows[1].cells[0].value, Value::Text("b (unfinished)".to_string()));
    assert!(matrix.rows[1].cells.iter().all(|c| !c.best));
    assert!(report.verdict[0].text.starts_with("a would have taken 40.00 s"), "{}", report.verdict[0].text);
    assert_eq!(report.verdict[1].level, Level::Problem);
    assert!(report.traces[0].findings.iter().any(|f| f.text.contains("Killed process 104") && f.time_s == Some(25.0)));
}

#[test]
fn seeds_decide_what_is_distinguishable() {
    // A seed moves the time by 1 %, a variant by 20 %.
    let verdict = |seeds, variants: &[&str]| {
        let variants = variants.iter().map(|v| (*v).to_string()).collect();
        let (_dir, written) = fixture(&Spec { seeds, variants, seconds: 10, ..Spec::default() });
        analyse(&written.out, &Options::default()).unwrap().verdict[0].text.clone()
    };
    let apart = verdict(3, &["a", "b"]);
    assert!(apart.contains("a finishes first") && apart.contains("95 % interval"), "{apart}");
    // Forty seeds spread each variant over 40 %, yet their means are known well enough.
    assert!(verdict(40, &["a", "b"]).contains("a finishes first"));
    // Two seeds give t = 12.7 or 4.3: enough for 20 % against 0.7 %.
    assert!(verdict(2, &["a", "b"]).contains("a finishes first"), "{}", verdict(2, &["a", "b"]));
}

#[test]
fn a_reference_is_compared_with_in_words() {
    let (_dir, written) = fixture(&Spec::default());
    let options = Options { reference: Some("linux-2.4.16-noop".to_string()), ..Options::default() };
    let report = analyse(&written.out, &options).unwrap();
    let said = report.verdict.iter().find(|f| f.text.starts_with("Against linux-2.4.16-noop (48.00 s)")).unwrap();
    assert!(said.text.contains("linux-2.4.16 finishes 16.7 % earlier"), "{}", said.text);
    let options = Options { reference: Some("linux-9".to_string()), ..Options::default() };
    assert!(matches!(analyse(&written.out, &options), Err(Error::NoReference { .. })));
}

#[test]
fn lost_cells_are_reported() {
    let (_dir, written) = fixture(&Spec { lost_cells: true, ..Spec::default() });
    let report = analyse(&written.out, &Options::default()).unwrap();
    assert!(report.verdict[1].text.contains("linux-2.4.17 with seed 1 is not in this comparison, it failed"));
    assert_eq!(report.provenance.cells.len(), 5);
}

#[test]
fn a_trace_directory_that_moved_is_no_error() {
    let (dir, written) = fixture(&Spec::default());
    std::fs::rename(&written.trace, dir.path().join("elsewhere")).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    assert!(report.traces[0].findings.iter().any(|f| f.text.contains("trace directory is not where")));
    assert!(report.traces[0].sections.iter().all(|s| s.id != "vmstat" || !format!("{s:?}").contains("Recorded")));
    let options = Options { trace_dir: Some(dir.path().join("elsewhere")), ..Options::default() };
    let report = analyse(&written.out, &options).unwrap();
    let findings = &report.traces[0].findings;
    assert!(findings.iter().all(|f| !f.text.contains("trace directory")), "{findings:?}");
}

#[test]
fn a_damaged_trace_directory_is_told() {
    let (_dir, written) = fixture(&Spec::default());
    let part = std::fs::read_dir(written.trace.join("vmstat")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(part, b"no parquet").unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let warned = report.traces[0].findings.iter().find(|f| f.text.contains("recording could not be read")).unwrap();
    // It takes something away from the report, and nothing from the comparison.
    assert_eq!(warned.level, Level::Note);
}

#[test]
fn rejected_lines_and_the_machine_are_told() {
    let (_dir, written) = fixture(&Spec::default());
    let report = analyse(&written.out, &Options::default()).unwrap();
    let text =
        "vmstat.log: 1 of 40 lines were not understood and are missing from the replay (vmstat-not-a-number: 1).";
    assert!(report.traces[0].findings.iter().any(|f| f.text == text), "{:?}", report.traces[0].findings);
    let recordings = &report.provenance.recordings;
    assert!(recordings.contains(&("recorded memory".to_string(), "128 MiB".to_string())), "{recordings:?}");
}

#[test]
fn quantile_columns_are_in_order() {
    let (_dir, written) = fixture(&Spec::default());
    let report = analyse(&written.out, &Options::default()).unwrap();
    let ids: Vec<&str> = report.traces[0].matrix.columns.iter().map(|c| c.id.as_str()).collect();
    for (low, high) in [("read_p99_ms", "read_p999_ms"), ("write_p99_ms", "write_p999_ms")] {
        let at = |id| ids.iter().position(|i| *i == id).unwrap();
        for row in &report.traces[0].matrix.rows {
            assert!(row.cells[at(low)].as_number() <= row.cells[at(high)].as_number());
        }
    }
}

#[test]
fn every_figure_of_the_clients_follows_from_the_fixture() {
    // The slow path: one variant, two clients; the fixture lets client 1 end at 40 - 40 * 1/2 * 1/6 s.
    let spec = Spec { variants: vec!["a".into()], clients: vec!["x".into(), "y".into()], ..Spec::default() };
    let (_dir, written) = fixture(&spec);
    let report = analyse(&written.out, &Options::default()).unwrap();
    let row = &report.traces[0].matrix.rows[0];
    let value = |id: &str| {
        let column = report.traces[0].matrix.columns.iter().position(|c| c.id == id).unwrap();
        row.cells[column].as_number().unwrap()
    };
    let (first, last) = (40.0 - 20.0 / 6.0, 40.0);
    assert!((value("first_finish_s") - first).abs() < 1e-6);
    assert!((value("last_over_first") - last / first).abs() < 1e-6);
    let (a, b) = (1.0 / first, 1.0 / last);
    assert!((value("jain") - (a + b) * (a + b) / (2.0 * (a * a + b * b))).abs() < 1e-6);
    assert!((value("throughput_mib_s") - 240.0 / 40.0).abs() < 1e-9);
}

#[test]
fn a_grid_is_taken_apart_and_a_reference_explains_itself() {
    let (_dir, written) = fixture(&Spec { seeds: 2, ..Spec::default() });
    let options = Options { reference: Some("linux-2.4.16".to_string()), ..Options::default() };
    let report = analyse(&written.out, &options).unwrap();
    let section = |id: &str| report.traces[0].sections.iter().find(|s| s.id == id);
    let why = section("why").expect("the variants differ");
    let [Block::Table(causes), Block::Table(table)] = why.blocks.as_slice() else { panic!() };
    assert!(causes.caption.contains("Against linux-2.4.16"));
    assert_eq!(causes.rows[0].cells[1].value, Value::Text("disk reads".to_string()));
    assert!(causes.rows[0].cells[2].as_number().is_some_and(|s| s > 0.0));
    assert!(table.caption.contains("seed 1"), "one run is shown, and its seed named: {}", table.caption);
    // The slowest differs most and comes first; its chief cause is named with a line of the log.
    assert_eq!(table.rows[0].cells[1].value, Value::Text("disk reads".to_string()));
    let place = table.columns.iter().position(|c| c.id == "where").unwrap();
    assert!(
        matches!(&table.rows[0].cells[place].value, Value::Text(t) if t.starts_with("strace.log:")),
        "{:?}",
        table.rows[0]
    );
    let options = Options { pareto: vec!["beauty".to_string()], ..Options::default() };
    assert!(matches!(analyse(&written.out, &options), Err(Error::NoFigure { .. })));
}
