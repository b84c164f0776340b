//! The middle one of several outcomes of a run.

use crate::prove::Figure;

/// Per figure the outcome in the middle, in the order of the first outcome's figures. Of an even number the lower of the two
/// in the middle.
pub(super) fn median_of(outcomes: Vec<Vec<Figure>>) -> Vec<Figure> {
    let mut rest = outcomes.into_iter();
    let mut all: Vec<Vec<Figure>> = rest.next().unwrap_or_default().into_iter().map(|f| vec![f]).collect();
    for figure in rest.flatten() {
        match all.iter_mut().find(|of| of[0].name == figure.name) {
            Some(of) => of.push(figure),
            None => all.push(vec![figure]),
        }
    }
    all.into_iter().filter_map(middle).collect()
}

fn middle(mut of: Vec<Figure>) -> Option<Figure> {
    of.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let at = of.len().checked_sub(1)? / 2;
    Some(of.swap_remove(at))
}

/// What a figure is sorted by: a time that was never reached is later than any.
fn place(figure: &Figure) -> f64 {
    if figure.simulated < 0.0 { f64::INFINITY } else { figure.simulated }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, simulated: f64) -> Figure {
        Figure {
            name: name.into(),
            recorded: 1.0,
            simulated,
            error_pct: (simulated - 1.0).abs() * 100.0,
            telling: true,
        }
    }

    #[test]
    fn the_middle_outcome_counts_figure_by_figure() {
        let outcomes = [(3.0, 1.0), (1.0, 2.0), (2.0, 9.0)];
        let all = outcomes.map(|(a, b)| vec![figure("a", a), figure("b", b)]).to_vec();
        let middle: Vec<f64> = median_of(all).iter().map(|f| f.simulated).collect();
        assert_eq!(middle, [2.0, 2.0]);
    }

    #[test]
    fn what_is_never_reached_is_latest() {
        let one = |x| vec![figure("a", x)];
        assert_eq!(median_of(vec![one(-1.0), one(5.0), one(4.0)])[0].simulated, 5.0);
        assert_eq!(median_of(vec![one(-1.0), one(5.0), one(-1.0)])[0].simulated, -1.0);
        assert!(median_of(Vec::new()).is_empty());
    }
}
