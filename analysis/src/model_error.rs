//! How far the model itself is off, said beside the differences that it finds.
//!
//! The error is that of docs/MODEL.md: the median, over recorded runs of real kernels, of the difference between a simulated and a
//! recorded time, percent. It speaks of single times; of two variants compared the larger error counts.

use crate::model::VariantModel;

/// The errors of the models of a report's variants.
#[derive(Clone, Copy)]
pub(crate) struct ModelErrors<'m>(pub &'m [VariantModel]);

impl ModelErrors<'_> {
    /// The largest error on times over these variants, percent; `None` if that of one is not known.
    pub(crate) fn of<'v>(self, variants: impl Iterator<Item = &'v str>) -> Option<f64> {
        let one = |variant: &str| self.0.iter().find(|m| m.variant == variant)?.time_error_pct();
        let all: Option<Vec<f64>> = variants.map(one).collect();
        all?.into_iter().max_by(f64::total_cmp)
    }

    /// What the error says of a difference in time of `difference_pct` between two variants, for brackets.
    pub(crate) fn beside(self, a: &str, b: &str, difference_pct: f64) -> String {
        match self.of([a, b].into_iter()) {
            None => "how far the model is off on such runs is not known".to_string(),
            Some(error) if covers(error, difference_pct) => {
                format!(
                    "less than the model's own error on such times, {error} %: on real kernels it may come out the other way"
                )
            }
            Some(error) => format!("the model's own error on such times is {error} %"),
        }
    }
}

/// A difference is no larger than the error, both as they are printed: with one digit behind the point.
pub(crate) fn covers(error_pct: f64, difference_pct: f64) -> bool {
    (difference_pct.abs() * 10.0).round() / 10.0 <= error_pct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelLine;

    fn model(variant: &str, error: Option<f64>) -> VariantModel {
        let line = ModelLine { part: ModelLine::WHOLE.into(), time_error_pct: error, ..ModelLine::default() };
        VariantModel { variant: variant.into(), lines: vec![line], checked: Vec::new() }
    }

    #[test]
    fn the_larger_error_counts_and_one_unknown_makes_it_unknown() {
        let models = [model("a", Some(3.0)), model("b", Some(10.3)), model("c", None)];
        let errors = ModelErrors(&models);
        assert_eq!(errors.of(["a", "b"].into_iter()), Some(10.3));
        assert_eq!(errors.of(["b", "a"].into_iter()), Some(10.3));
        assert_eq!(errors.of(["a", "c"].into_iter()), None);
        assert_eq!(errors.of(["c", "a"].into_iter()), None);
        assert!(errors.beside("a", "b", 8.0).starts_with("less than the model's own error"));
        assert_eq!(errors.beside("a", "b", -28.0), "the model's own error on such times is 10.3 %");
        assert!(errors.beside("a", "nobody", 50.0).contains("not known"));
        assert!(covers(10.3, -10.34) && !covers(10.3, 10.36));
    }
}
