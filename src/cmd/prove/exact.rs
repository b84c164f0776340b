//! Proofs by exact cases as text.

use super::{Kind, Report};
use kreplay_replay::prove::ExactReport;
use std::fmt::Write as _;

impl Report for ExactReport {
    fn holds(&self) -> bool {
        self.holds()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn text(&self, kind: &Kind) -> String {
        exact_text(kind, self)
    }
}

fn exact_text(kind: &Kind, report: &ExactReport) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for (title, list) in [("differ", &report.failed), ("not run", &report.skipped)] {
        if !list.is_empty() {
            let _ = writeln!(t, "\n{title}:");
            for v in list {
                let _ = writeln!(t, "  {}: {}", v.case, v.why);
            }
        }
    }
    let verdict = if report.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(t, "\n{} of {} cases agree in everything: {verdict} (bar: all)", report.passed, report.cases);
    t
}
