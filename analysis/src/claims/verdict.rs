//! Verdicts from figures and conditions.

use super::expr::Plotted;
use super::registry::Claim;
use serde::Serialize;

/// How a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Every condition of the band holds.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Not the band, but every condition of the direction.
    #[serde(rename = "direction only")]
    DirectionOnly,
    /// Not even that.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// A figure is missing.
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::DirectionOnly => "direction only",
            Verdict::NotReproduced => "not reproduced",
            Verdict::NotRun => "not run",
        }
    }
}

/// A condition and what it came out as.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tested {
    /// The condition.
    pub text: String,
    /// It holds; none if a figure is missing.
    pub holds: Option<bool>,
    /// The value compared.
    pub value: Option<f64>,
    /// The same for a plot.
    #[serde(skip)]
    pub plotted: Option<Plotted>,
}

/// Tests a claim's conditions against its figures; both lists in the registry's order.
pub(crate) fn judge(claim: &Claim, figure: &dyn Fn(&str) -> Option<f64>) -> (Verdict, Vec<Tested>, Vec<Tested>) {
    let test = |conditions: &[super::expr::Condition]| -> Vec<Tested> {
        conditions
            .iter()
            .map(|c| {
                let outcome = c.test(figure);
                Tested {
                    text: c.text().to_string(),
                    holds: outcome.as_ref().map(|o| o.holds),
                    value: outcome.as_ref().and_then(|o| o.value).filter(|v| v.is_finite()),
                    plotted: outcome.and_then(|o| o.plotted),
                }
            })
            .collect()
    };
    let (band, direction) = (test(&claim.holds), test(&claim.direction));
    let all = |tests: &[Tested]| tests.iter().try_fold(true, |all, t| t.holds.map(|h| all && h));
    let verdict = match (all(&band), all(&direction)) {
        (None, _) => Verdict::NotRun,
        (Some(true), _) => Verdict::Reproduced,
        (Some(false), Some(true)) if !direction.is_empty() => Verdict::DirectionOnly,
        _ => Verdict::NotReproduced,
    };
    (verdict, band, direction)
}
