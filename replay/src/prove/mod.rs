//! Proofs: the model held against things that this project did not write.

pub mod linux24;

/// One figure of one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// Name with its unit.
    pub name: String,
    /// As recorded.
    pub recorded: f64,
    /// As simulated.
    pub simulated: f64,
    /// Error in percent of the recorded value (see the proof's documentation for small ones).
    pub error_pct: f64,
}

/// All figures of one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RunFigures {
    /// The run.
    pub run: String,
    /// The variant that it was simulated under.
    pub variant: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Median of their errors, percent.
    pub median_error_pct: Option<f64>,
}

/// Something that could not be compared, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Run or case.
    pub case: String,
    /// Reason.
    pub why: String,
}

/// What a proof by figures says.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FigureReport {
    /// Name of the proof.
    pub kind: String,
    /// Runs compared.
    pub runs: Vec<RunFigures>,
    /// Runs not compared.
    pub skipped: Vec<Skipped>,
    /// Median error of all figures, percent; `None` without runs.
    pub median_error_pct: Option<f64>,
}

/// Median of a list; `None` if it is empty.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}
