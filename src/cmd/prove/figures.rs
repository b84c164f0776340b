//! Proofs by figures as text.

use super::{Kind, Report};
use kreplay_replay::prove::order::OrderReport;
use kreplay_replay::prove::{FigureReport, median_error};
use std::fmt::Write as _;

impl Report for FigureReport {
    fn holds(&self) -> bool {
        self.holds()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn text(&self, kind: &Kind) -> String {
        figures_text(kind, self)
    }
}

/// A line for each variant, where there are several and each has several runs to sum up.
fn by_variant(t: &mut String, report: &FigureReport) {
    let mut variants: Vec<&str> = report.runs.iter().map(|r| r.variant.as_str()).collect();
    variants.sort_unstable();
    variants.dedup();
    if variants.len() < 2 || variants.len() * 2 > report.runs.len() {
        return;
    }
    t.push_str("\nmedian error by variant:\n");
    for variant in variants {
        let runs = report.runs.iter().filter(|r| r.variant == variant);
        let n = runs.clone().count();
        let median = median_error(runs.flat_map(|r| &r.figures)).unwrap_or(0.0);
        let _ = writeln!(t, "  {variant}: {median:.1} % in {n} runs");
    }
}

/// Order of the kernels: counts, the wrong pairs, the rule for noise.
fn order_text(t: &mut String, order: &OrderReport) {
    t.push_str(
        "\norder of kernels, pairs of recorded figures of one load that differ by more than repeated recordings do:\n",
    );
    for w in &order.wrong {
        let [a, b] = &w.kernels;
        let _ = writeln!(
            t,
            "  wrong: {}, {}: {a} {:.2}, {b} {:.2} recorded; {:.2}, {:.2} simulated",
            w.load, w.figure, w.recorded[0], w.recorded[1], w.simulated[0], w.simulated[1]
        );
    }
    for l in &order.loads {
        let _ = writeln!(t, "  {}: {} of {} pairs right", l.load, l.right, l.pairs);
    }
    for n in &order.noise {
        let _ = writeln!(
            t,
            "  noise of {}: {:.1} % at least, which nine tenths of {} repeated figures lie below",
            n.kind, n.p90_pct, n.repeats
        );
    }
    let share = order.right_pct.map_or_else(|| "no pairs".to_owned(), |p| format!("{p:.1} %"));
    let _ = writeln!(t, "  {} of {} pairs right: {share} (goal: {} %)", order.right, order.pairs, order.bar_pct);
}

fn figures_text(kind: &Kind, report: &FigureReport) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for run in &report.runs {
        let median = run.median_error_pct.map_or_else(|| "no figures".to_owned(), |m| format!("median error {m:.1} %"));
        let _ = writeln!(t, "\n{} under {}: {median}", run.run, run.variant);
        let width = run.figures.iter().map(|f| f.name.len()).max().unwrap_or(0).max(6);
        let _ = writeln!(t, "  {:width$} {:>12} {:>12} {:>9}", "figure", "recorded", "simulated", "error %");
        for f in &run.figures {
            let _ = writeln!(t, "  {:width$} {:>12.3} {:>12.3} {:>9.1}", f.name, f.recorded, f.simulated, f.error_pct);
        }
    }
    by_variant(&mut t, report);
    if !report.skipped.is_empty() {
        t.push_str("\nnot compared:\n");
        for s in &report.skipped {
            let _ = writeln!(t, "  {}: {}", s.case, s.why);
        }
    }
    if let Some(order) = &report.order {
        order_text(&mut t, order);
    }
    let all = || report.runs.iter().flat_map(|r| &r.figures);
    let (figures, telling) = (all().count(), all().filter(|f| f.telling).count());
    let median = report.median_error_pct.map_or_else(|| "no figures".to_owned(), |m| format!("{m:.1} %"));
    let verdict = if report.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(
        t,
        "\n{} runs, {figures} figures, {telling} of them telling (not next to nothing on both sides: the medians are over these); \
         median error {median}: {verdict} (bar: below {} %)",
        report.runs.len(),
        report.bar_pct
    );
    t
}
