//! How far the model itself is off, said beside the differences that it finds.
//!
//! The error is that of docs/MODEL.md: the median, over recorded runs of real kernels, of the difference between a simulated and a
//! recorded time, percent. It speaks of single times; of two variants compared the larger error counts. Where the recorded machine
//! with nothing changed is among the variants, what it is off by for this very load counts if it is more.

use crate::model::VariantModel;

/// The errors of the models of a report's variants.
#[derive(Clone, Copy)]
pub(crate) struct ModelErrors<'m> {
    /// The models.
    pub models: &'m [VariantModel],
    /// By how much the recorded machine with nothing changed is off, percent of the recorded time.
    pub own_pct: Option<f64>,
}

impl ModelErrors<'_> {
    /// The largest error on times over these variants, percent; `None` if that of one is not known.
    pub(crate) fn of<'v>(self, variants: impl Iterator<Item = &'v str>) -> Option<f64> {
        let one = |variant: &str| self.models.iter().find(|m| m.variant == variant)?.time_error_pct();
        let all: Option<Vec<f64>> = variants.map(one).collect();
        all?.into_iter().chain(self.own()).max_by(f64::total_cmp)
    }

    /// The load's own error as it is printed.
    fn own(self) -> Option<f64> {
        self.own_pct.map(|own| (own * 10.0).round() / 10.0)
    }

    /// "the model is off by ...": what an error of so many percent is.
    pub(crate) fn in_words(self, error_pct: f64) -> String {
        if self.own().is_some_and(|own| own >= error_pct) {
            format!("the model is off by {error_pct} % for this load where nothing was changed")
        } else {
            format!("of the recorded runs that it was held against, half are off by more than {error_pct} %")
        }
    }

    /// What the error says of a difference in time of `difference_pct` between two variants, for brackets.
    pub(crate) fn beside(self, a: &str, b: &str, difference_pct: f64) -> String {
        match self.of([a, b].into_iter()) {
            None => "how far the model is off on such runs is not known".to_string(),
            Some(error) if covers(error, difference_pct) => {
                format!("{}: on real kernels it may come out the other way", self.in_words(error))
            }
            Some(error) => self.in_words(error),
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
        let errors = ModelErrors { models: &models, own_pct: None };
        assert_eq!(errors.of(["a", "b"].into_iter()), Some(10.3));
        assert_eq!(errors.of(["b", "a"].into_iter()), Some(10.3));
        assert_eq!(errors.of(["a", "c"].into_iter()), None);
        assert_eq!(errors.of(["c", "a"].into_iter()), None);
        assert!(errors.beside("a", "b", 8.0).contains("the other way"));
        assert_eq!(
            errors.beside("a", "b", -28.0),
            "of the recorded runs that it was held against, half are off by more than 10.3 %"
        );
        let own = ModelErrors { own_pct: Some(12.04), ..errors };
        assert_eq!(own.of(["a", "b"].into_iter()), Some(12.0));
        assert_eq!(own.beside("a", "b", -28.0), "the model is off by 12 % for this load where nothing was changed");
        assert_eq!(ModelErrors { own_pct: Some(1.0), ..errors }.of(["a", "b"].into_iter()), Some(10.3));
        assert!(errors.beside("a", "nobody", 50.0).contains("not known"));
        assert!(covers(10.3, -10.34) && !covers(10.3, 10.36));
    }
}
