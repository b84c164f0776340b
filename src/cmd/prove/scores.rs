//! Scores of single decisions as text.

use super::{Kind, Report};
use kreplay_replay::prove::scores::{RunScores, Score, ScoreReport, Tally};
use std::fmt::Write as _;

impl Report for ScoreReport {
    fn holds(&self) -> bool {
        self.holds()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn text(&self, kind: &Kind) -> String {
        text(kind, self)
    }
}

/// The report: each run's scores, what was fed and what is hidden, rules broken on purpose; then the verdict.
fn text(kind: &Kind, report: &ScoreReport) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for run in &report.runs {
        run_text(&mut t, run);
    }
    if !report.skipped.is_empty() {
        t.push_str("\nnot compared:\n");
        for s in &report.skipped {
            let _ = writeln!(t, "  {}: {}", s.case, s.why);
        }
    }
    let barred = || report.runs.iter().flat_map(|r| &r.scores).filter(|s| s.bar_pct.is_some());
    let broken = || report.runs.iter().flat_map(|r| &r.broken);
    for rule in report.unnoticed() {
        let _ = writeln!(t, "\nno run notices: {rule}");
    }
    let verdict = if report.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(
        t,
        "\n{} runs; {} of {} scores reach their bars, rules were broken on purpose {} times, noticed {} times: {verdict} (bar: all)",
        report.runs.len(),
        barred().filter(|s| s.holds()).count(),
        barred().count(),
        broken().count(),
        broken().filter(|b| b.noticed).count(),
    );
    t
}

fn run_text(t: &mut String, run: &RunScores) {
    let _ = writeln!(t, "\n{} under {}", run.run, run.variant);
    let width = run.scores.iter().map(|s| s.name.len()).max().unwrap_or(0).max(8);
    let _ = writeln!(t, "  {:width$} {:>9} {:>9} {:>8} {:>6}", "decision", "right", "of", "%", "bar");
    for s in &run.scores {
        score_line(t, s, width);
    }
    tallies(t, "fed", &run.inputs);
    tallies(t, "hidden", &run.hidden);
    for b in &run.broken {
        let verdict = if b.noticed { "noticed" } else { "not noticed by this run" };
        let _ = writeln!(t, "  broken: {}: {} {:.2} % (bar {} %): {verdict}", b.rule, b.score, b.pct, b.bar_pct);
    }
}

fn score_line(t: &mut String, s: &Score, width: usize) {
    let bar = s.bar_pct.map_or_else(|| "-".to_owned(), |b| b.to_string());
    let miss = if s.holds() { "" } else { "  BELOW" };
    let pct = s.pct().map_or_else(|| "-".to_owned(), |p| format!("{p:.3}"));
    let _ = writeln!(t, "  {:width$} {:>9} {:>9} {pct:>8} {bar:>6}{miss}", s.name, s.right, s.of);
    if let Some(note) = &s.note {
        let _ = writeln!(t, "  {:width$}   ({note})", "");
    }
    if let Some(first) = &s.first_difference {
        let _ = writeln!(t, "  {:width$}   first difference: {first}", "");
    }
}

fn tallies(t: &mut String, what: &str, list: &[Tally]) {
    let list: Vec<String> = list.iter().filter(|x| x.count > 0).map(|x| format!("{} {}", x.count, x.name)).collect();
    if !list.is_empty() {
        let _ = writeln!(t, "  {what}: {}", list.join(", "));
    }
}
