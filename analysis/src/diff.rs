//! Two runs against each other: every key figure before and after, what changed, and thresholds for machines that watch.
//!
//! A change is *better*, *worse* or *not distinguishable* by the same rule as in reports; with several seeds the 95 %
//! confidence interval of the difference of the means is given.

use crate::compare::Rule;
use crate::matrix::{Folded, Matrix, MatrixRow};
use crate::model::{self, Better, Cell, Column, Finding, Level, Provenance, Report, Table, TraceReport, Unit};
use crate::stats::welch_interval;
use crate::{Error, Measured, Options, measure_all};
use std::path::{Path, PathBuf};

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// Output folder of a run.
    pub dir: PathBuf,
    /// The one variant that is meant, if not all.
    pub variant: Option<String>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The figures as a report, for any renderer.
    pub report: Report,
    /// Thresholds that were crossed, in words.
    pub crossed: Vec<String>,
}

/// A threshold: `p99_read > +10%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As it was written.
    text: String,
    figure: String,
    above: bool,
    or_equal: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Of the figure itself.
    Value(f64),
    /// Of the difference, in the figure's unit.
    Difference(f64),
    /// Of the difference, in percent of the first side.
    Percent(f64),
}

impl std::str::FromStr for Threshold {
    type Err = String;

    /// `FIGURE OP LIMIT`: OP is `>`, `>=`, `<` or `<=`; LIMIT is a number (of the second side's figure), a number with a sign (of
    /// the difference, in the figure's unit) or a signed number with `%` (of the difference, relative to the first side).
    fn from_str(text: &str) -> std::result::Result<Threshold, String> {
        let wanted = "expected FIGURE > LIMIT, for example `p99_read > +10%` or `elapsed_s > 20`";
        let at = text.find(['>', '<']).ok_or_else(|| format!("`{text}` has neither > nor <; {wanted}"))?;
        let figure = text[..at].trim();
        let above = text[at..].starts_with('>');
        let or_equal = text[at + 1..].starts_with('=');
        let limit = text[at + 1 + usize::from(or_equal)..].trim();
        let signed = limit.starts_with(['+', '-', '\u{2212}']);
        let (number, percent) = match limit.strip_suffix('%') {
            Some(number) => (number.trim(), true),
            None => (limit, false),
        };
        let value: f64 = number
            .replace('\u{2212}', "-")
            .parse()
            .ok()
            .filter(|v: &f64| v.is_finite())
            .ok_or_else(|| format!("`{limit}` in `{text}` is no number; {wanted}"))?;
        if figure.is_empty() {
            return Err(format!("`{text}` names no figure; {wanted}"));
        }
        let limit = match (percent, signed) {
            (true, true) => Limit::Percent(value),
            (true, false) => {
                return Err(format!(
                    "`{limit}` in `{text}` needs a sign: +10% is ten percent more than the first side"
                ));
            }
            (false, true) => Limit::Difference(value),
            (false, false) => Limit::Value(value),
        };
        Ok(Threshold { text: text.trim().to_string(), figure: figure.to_string(), above, or_equal, limit })
    }
}

impl Threshold {
    /// True if the pair crosses it. What is relative to the first side must also be distinguishable where there are seeds
    /// enough to tell.
    fn crossed(&self, a: Folded, b: Folded, rule: Rule) -> bool {
        let value = match self.limit {
            Limit::Value(limit) => b.median - limit,
            Limit::Difference(limit) => b.median - a.median - limit,
            Limit::Percent(limit) => b.median - a.median * (1.0 + limit / 100.0),
        };
        let over = if self.above { value > 0.0 } else { value < 0.0 };
        let relative = !matches!(self.limit, Limit::Value(_));
        let told_apart = a.seeds < 2 || b.seeds < 2 || rule.differ(a, b);
        (over || (self.or_equal && value == 0.0)) && (!relative || told_apart)
    }

    /// The column that the threshold names: by id, by id without its unit, or by the same words in another order.
    fn column<'a>(&self, columns: &'a [Column]) -> Option<&'a Column> {
        let words = |id: &str| {
            let mut words: Vec<String> =
                id.to_ascii_lowercase().replace('-', "_").split('_').map(str::to_string).collect();
            words.retain(|w| !w.is_empty() && !["s", "ms", "mib", "pct", "kib"].contains(&w.as_str()));
            words.sort_unstable();
            words
        };
        columns
            .iter()
            .find(|c| c.id == self.figure)
            .or_else(|| columns.iter().find(|c| words(&c.id) == words(&self.figure)))
    }
}

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A side cannot be read.
    #[error(transparent)]
    Analysis(#[from] Error),
    /// A variant is not among the results.
    #[error("{dir}: no variant `{name}`; there are {known}", dir = dir.display())]
    NoVariant {
        /// The folder.
        dir: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The sides have nothing in common.
    #[error("the two have no variant in common: {a} against {b}")]
    NothingInCommon {
        /// Variants of the first.
        a: String,
        /// Variants of the second.
        b: String,
    },
    /// A threshold names a figure that there is not.
    #[error("no figure `{figure}`; there are {known}")]
    NoFigure {
        /// What was asked for.
        figure: String,
        /// Column ids.
        known: String,
    },
}

/// Compares `b` with `a`, variant by variant; sides with one variant each are compared whatever they are called.
///
/// # Errors
/// [`DiffError`].
pub fn compare(
    a: &Side,
    b: &Side,
    thresholds: &[Threshold],
    options: &Options,
) -> std::result::Result<Comparison, DiffError> {
    let rule = Rule { tie_pct: options.tie_pct };
    let (before, after) = (read(a, options)?, read(b, options)?);
    let known: Vec<Column> = before.iter().flat_map(|t| t.matrix.columns.clone()).collect();
    for t in thresholds {
        if t.column(&known).is_none() {
            let mut ids: Vec<&str> = known.iter().map(|c| c.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            return Err(DiffError::NoFigure { figure: t.figure.clone(), known: ids.join(", ") });
        }
    }
    let (mut traces, mut crossed, mut verdict) = (Vec::new(), Vec::new(), Vec::new());
    let mut compared = 0;
    for old in &before {
        let new = match after.iter().find(|t| t.id == old.id) {
            Some(new) => new,
            None if before.len() == 1 && after.len() == 1 => {
                verdict.push(Finding::new(
                    Level::Warning,
                    "The two runs replayed different traces: differences may come from the load.",
                ));
                &after[0]
            }
            None => {
                verdict.push(Finding::new(Level::Warning, format!("Trace {} is in the first run only.", old.name)));
                continue;
            }
        };
        let both = pairs(&old.matrix, &new.matrix);
        compared += both.len();
        verdict.extend(alone(&old.matrix, &new.matrix, &both));
        let mut table = table(a, b);
        for (x, y) in both {
            rows(&mut table, &old.matrix, x, &new.matrix, y, rule, &mut verdict);
            for t in thresholds {
                crossed.extend(check(t, &old.matrix, x, &new.matrix, y, rule));
            }
        }
        traces.push(TraceReport {
            id: old.id.clone(),
            name: old.name.clone(),
            matrix: table,
            sections: Vec::new(),
            findings: Vec::new(),
        });
    }
    if compared == 0 {
        let names = |side: &[Figures]| {
            side.iter().flat_map(|t| t.matrix.rows.iter().map(|r| r.variant.clone())).collect::<Vec<_>>().join(", ")
        };
        return Err(DiffError::NothingInCommon { a: names(&before), b: names(&after) });
    }
    let seeds_of = |side: &[Figures]| side.iter().map(|t| t.seeds).min().unwrap_or(1);
    let rule_in_words = rule.of_both_in_words(seeds_of(&before), seeds_of(&after));
    if verdict.iter().all(|f| f.level != Level::Answer) {
        let same = traces.iter().all(|t: &TraceReport| t.matrix.rows.is_empty());
        let text =
            if same { "All key figures are the same." } else { "No key figure is distinguishable between the two." };
        verdict.insert(0, Finding::new(Level::Answer, text));
    }
    verdict.extend(crossed.iter().map(|text| Finding::new(Level::Problem, text.clone())));
    verdict.push(Finding::new(Level::Note, rule_in_words.clone()));
    let models = crate::cell::each_once(before.iter().chain(&after).flat_map(|t| t.models.iter()));
    let cells: Vec<_> = before.into_iter().chain(after).flat_map(|t| t.provenance).collect();
    let report = Report {
        legend: crate::legend::legend(&cells, &models),
        schema: model::SCHEMA,
        kind: "kreplay-comparison".to_string(),
        title: "Two runs compared".to_string(),
        question: format!("What changed from {} to {}?", shown(a), shown(b)),
        verdict,
        traces,
        provenance: Provenance {
            analysis_version: env!("CARGO_PKG_VERSION").to_string(),
            comparison_rule: rule_in_words,
            models,
            cells,
            ..Provenance::default()
        },
    };
    Ok(Comparison { report, crossed })
}

fn shown(side: &Side) -> String {
    match &side.variant {
        Some(variant) => format!("{} ({variant})", side.dir.display()),
        None => side.dir.display().to_string(),
    }
}

/// The key figures of a trace.
struct Figures {
    id: String,
    name: String,
    matrix: Matrix,
    seeds: usize,
    provenance: Vec<crate::model::CellProvenance>,
    models: Vec<crate::model::VariantModel>,
}

fn read(side: &Side, options: &Options) -> std::result::Result<Vec<Figures>, DiffError> {
    let measured: Vec<Measured> = measure_all(&side.dir, options)?;
    let mut all: Vec<Figures> = measured
        .into_iter()
        .map(|m| Figures {
            matrix: m.matrix(),
            id: m.id.clone(),
            name: m.name(),
            seeds: m.seeds,
            provenance: m.provenance,
            models: m.models,
        })
        .collect();
    if let Some(name) = &side.variant {
        let mut known: Vec<String> = all.iter().flat_map(|t| t.matrix.rows.iter().map(|r| r.variant.clone())).collect();
        known.sort_unstable();
        known.dedup();
        let Some(found) = crate::matrix::named(known.iter().map(String::as_str), name) else {
            return Err(DiffError::NoVariant { dir: side.dir.clone(), name: name.clone(), known: known.join(", ") });
        };
        all.iter_mut().for_each(|t| t.matrix.rows.retain(|r| r.variant == found));
    }
    Ok(all)
}

fn pairs<'a>(a: &'a Matrix, b: &'a Matrix) -> Vec<(&'a MatrixRow, &'a MatrixRow)> {
    if let ([x], [y]) = (a.rows.as_slice(), b.rows.as_slice()) {
        return vec![(x, y)];
    }
    a.rows.iter().filter_map(|x| Some((x, b.rows.iter().find(|y| y.variant == x.variant)?))).collect()
}

/// Variants that have no counterpart on the other side, and so are not compared.
fn alone(old: &Matrix, new: &Matrix, both: &[(&MatrixRow, &MatrixRow)]) -> Vec<Finding> {
    let first = (old, "first", both.iter().map(|(x, _)| &x.variant).collect::<Vec<_>>());
    let second = (new, "second", both.iter().map(|(_, y)| &y.variant).collect());
    let left = [first, second].into_iter().filter_map(|(side, which, paired)| {
        let alone: Vec<&MatrixRow> = side.rows.iter().filter(|r| !paired.contains(&&r.variant)).collect();
        let are = if alone.len() > 1 { "are" } else { "is" };
        let names = crate::verdict::names(alone.iter().map(|r| r.shown.clone()));
        (!alone.is_empty())
            .then(|| Finding::new(Level::Warning, format!("In the {which} run only, so not compared, {are} {names}.")))
    });
    left.collect()
}

fn table(a: &Side, b: &Side) -> Table {
    Table::new(
        "comparison",
        &format!(
            "Key figures of {} (before) and {} (after). Figures that are the same in both are left out.",
            shown(a),
            shown(b)
        ),
        vec![
            Column::text("figure", "figure"),
            Column::text("variant", "variant"),
            Column::number("before", "before", Unit::Count, 3),
            Column::number("after", "after", Unit::Count, 3),
            Column::number("change_pct", "change", Unit::Percent, 1),
            Column::text("verdict", "verdict"),
            Column::text("interval", "95 % interval"),
        ],
    )
}

fn rows(
    table: &mut Table,
    old: &Matrix,
    x: &MatrixRow,
    new: &Matrix,
    y: &MatrixRow,
    rule: Rule,
    verdict: &mut Vec<Finding>,
) {
    let name = if x.variant == y.variant { x.variant.clone() } else { format!("{} -> {}", x.variant, y.variant) };
    let (mut better, mut worse) = (Vec::new(), Vec::new());
    for column in &old.columns {
        let (Some(a), Some(b)) = (old.get(x, &column.id), new.get(y, &column.id)) else { continue };
        // What differs in the last bits only is the same.
        if (a.median - b.median).abs() <= 1e-9 * a.median.abs().max(b.median.abs()) {
            continue;
        }
        let change = (a.median != 0.0).then(|| (b.median / a.median - 1.0) * 100.0);
        let interval = welch_interval(b.sample, a.sample)
            .filter(|_| a.sample.mean > 0.0)
            .map(|(l, h)| format!("{:+.1} to {:+.1} %", l / a.sample.mean * 100.0, h / a.sample.mean * 100.0));
        let up = b.median > a.median;
        let word = match (rule.differ(a, b), column.better) {
            (false, _) => "not distinguishable",
            (true, Better::Neither) => "different",
            (true, Better::Higher) if up => "better",
            (true, Better::Lower) if !up => "better",
            _ => "worse",
        };
        let said = format!(
            "{} {}",
            column.title,
            change.map_or_else(|| format!("{:.*}", column.digits, b.median), |c| format!("{c:+.1} %"))
        );
        match word {
            "better" => better.push(said),
            "worse" => worse.push(said),
            _ => {}
        }
        table.push(vec![
            Cell::text(column.heading()),
            Cell::text(name.clone()),
            Cell::number(a.median),
            Cell::number(b.median),
            Cell::number(change),
            Cell::text(word),
            interval.map_or_else(|| Cell::number(None), Cell::text),
        ]);
    }
    if !(better.is_empty() && worse.is_empty()) {
        let list = |what: &str, items: &[String]| {
            if items.is_empty() { String::new() } else { format!(" {what}: {}.", items.join(", ")) }
        };
        verdict
            .push(Finding::new(Level::Answer, format!("{name}:{}{}", list("better", &better), list("worse", &worse))));
    }
    if !y.finished {
        verdict.push(Finding::new(Level::Problem, format!("{name}: the second run ended before its tasks did.")));
    }
}

fn check(t: &Threshold, old: &Matrix, x: &MatrixRow, new: &Matrix, y: &MatrixRow, rule: Rule) -> Option<String> {
    let column = t.column(&old.columns)?;
    if x.finished && !y.finished {
        return Some(format!("{}: the second run did not finish, so `{}` counts as crossed.", y.variant, t.text));
    }
    let (a, b) = (old.get(x, &column.id)?, new.get(y, &column.id)?);
    t.crossed(a, b, rule).then(|| {
        format!(
            "{}: `{}` is crossed: {} went from {:.*} to {:.*}.",
            y.variant,
            t.text,
            column.heading(),
            column.digits.max(3),
            a.median,
            column.digits.max(3),
            b.median
        )
    })
}

/// True for a folder that holds results of its own.
pub fn is_results(dir: &Path) -> bool {
    dir.join("manifest.json").is_file() || dir.join("results/manifest.json").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Folded {
        Folded::of(values).unwrap()
    }

    const RULE: Rule = Rule { tie_pct: 5.0 };

    #[test]
    fn thresholds_are_read() {
        let t: Threshold = "p99_read > +10%".parse().unwrap();
        assert_eq!((t.above, t.limit), (true, Limit::Percent(10.0)));
        let columns =
            [Column::text("variant", "variant"), Column::number("read_p99_ms", "read p99", Unit::Milliseconds, 3)];
        assert_eq!(t.column(&columns).unwrap().id, "read_p99_ms");
        assert_eq!("elapsed_s<=20".parse::<Threshold>().unwrap().limit, Limit::Value(20.0));
        assert_eq!("jain < -0.1".parse::<Threshold>().unwrap().limit, Limit::Difference(-0.1));
        for bad in ["", "elapsed", "> 3", "elapsed > x", "elapsed > 10%", "elapsed > +inf", "elapsed > +nan%"] {
            assert!(bad.parse::<Threshold>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ten_percent_more_is_crossed_beyond_ten_percent_more() {
        let t: Threshold = "x > +10%".parse().unwrap();
        assert!(!t.crossed(of(&[100.0]), of(&[110.0]), RULE) && t.crossed(of(&[100.0]), of(&[110.1]), RULE));
        assert!(t.crossed(of(&[0.0]), of(&[1.0]), RULE), "from nothing to something is more than any percentage");
        // 20 % more in the middle, but no seed count tells it from noise.
        assert!(!t.crossed(of(&[50.0, 100.0, 150.0]), of(&[60.0, 120.0, 170.0]), RULE));
        let t: Threshold = "x < -5".parse().unwrap();
        assert!(t.crossed(of(&[100.0]), of(&[94.0]), RULE) && !t.crossed(of(&[100.0]), of(&[96.0]), RULE));
    }
}
