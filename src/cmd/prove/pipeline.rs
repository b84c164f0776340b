//! Text of `kreplay prove pipeline`.

use super::{Kind, Report};
use kreplay_replay::prove::pipeline::PipelineReport;
use std::fmt::Write as _;

impl Report for PipelineReport {
    fn holds(&self) -> bool {
        self.holds()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn text(&self, _: &Kind) -> String {
        text(self)
    }
}

/// A table of times, and the two means.
fn text(r: &PipelineReport) -> String {
    let mut t = String::from("pipeline: a chain of tasks that read and write large files, on a machine of 250 GiB\n");
    for (i, run) in r.runs.iter().enumerate() {
        let how = if i == 0 { "constants were calibrated on this one" } else { "predicted" };
        let _ = writeln!(t, "\n{} under {} ({how})", run.run, run.variant);
        let _ = writeln!(t, "  {:10} {:>10} {:>10} {:>8}", "time", "recorded", "simulated", "error %");
        for f in &run.figures {
            let _ = writeln!(t, "  {:10} {:>10.1} {:>10.1} {:>8.1}", f.name, f.recorded, f.simulated, f.error_pct);
        }
    }
    let verdict = if r.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(
        t,
        "\nsimulated at 1/{} of the size; mean error {:.1} % where calibrated, {:.1} % predicted: {verdict} (bar: {} %)",
        r.scale, r.calibrated_mean_pct, r.predicted_mean_pct, r.bar_pct
    );
    t
}
