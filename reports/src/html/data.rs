//! The charts' data for the page's script: the same series that the drawings show, as JSON that cannot end its element.
//!
//! Texts pass [`escape::terminal`] first, so that what the script shows is visible text, then [`escape::json`].

use crate::charts::{Scale, axis_title, part_number};
use crate::{Result, escape};
use kreplay_analysis::model::{Axis, Bars, Dots, Flame, FlameNode, Join, Origin, Plane, Strips};
use serde_json::{Value, json};

/// Longest text, characters.
const LONGEST: usize = 200;

fn text(t: &str) -> String {
    escape::terminal(t, LONGEST)
}

/// A number with five significant digits: more cannot be seen, and the page has thousands of them.
fn short(v: f64) -> f64 {
    if v == 0.0 || !v.is_finite() {
        return 0.0;
    }
    let digits = 4 - v.abs().log10().floor() as i32;
    if digits > 12 {
        return 0.0;
    }
    if digits <= 0 {
        return v.round();
    }
    let power = 10f64.powi(digits);
    (v * power).round() / power
}

fn number(v: f64) -> Value {
    let v = short(v);
    // Whole numbers without ".0": the page is full of them.
    if v.fract() == 0.0 && v.abs() < 9e15 { json!(v as i64) } else { json!(v) }
}

/// x and y by turns.
fn flat(points: &[(f64, f64)]) -> Vec<Value> {
    points.iter().flat_map(|(x, y)| [number(*x), number(*y)]).collect()
}

fn axis(axis: &Axis) -> Value {
    json!({"t": text(&axis_title(axis)), "u": axis.unit.label(), "log": axis.log})
}

/// A plane; `variant` gives the number of a variant by its name.
pub(super) fn plane(chart: &Plane, variant: &dyn Fn(&str) -> Option<usize>) -> Result<String> {
    let lines: Vec<Value> = chart
        .lines
        .iter()
        .map(|l| json!({"n": text(&l.label), "v": variant(&l.group), "m": l.join == Join::Marks, "p": flat(&l.points)}))
        .collect();
    document(&json!({"kind": "plane", "x": axis(&chart.x), "y": axis(&chart.y), "lines": lines}))
}

/// Strips. `recorded` is left out where another figure of the page has the same: the script takes it from there.
pub(super) fn strips(chart: &Strips, recorded: bool) -> Result<String> {
    let panels: Vec<Value> = chart
        .panels
        .iter()
        .map(|p| {
            let of = |origin: Origin| p.series.iter().find(|s| s.origin == origin).map(|s| flat(&s.points));
            let was = if recorded { json!(of(Origin::Recorded)) } else { Value::Null };
            json!({"n": text(&p.title), "about": text(&p.about), "u": p.unit.label(), "top": number(p.top), "rec": was, "sim": of(Origin::Simulated)})
        })
        .collect();
    document(&json!({"kind": "strips", "end": number(chart.end_s), "panels": panels}))
}

/// Stacked bars; `variant` gives the number of a variant by its name.
pub(super) fn bars(chart: &Bars, variant: &dyn Fn(&str) -> Option<usize>) -> Result<String> {
    let parts: Vec<Value> = chart
        .categories
        .iter()
        .enumerate()
        .map(|(i, c)| json!({"n": text(&c.label), "k": part_number(&c.id).unwrap_or(i)}))
        .collect();
    let rows: Vec<Value> = chart
        .rows
        .iter()
        .map(|r| json!({"n": text(&r.label), "v": variant(&r.label), "p": r.values.iter().map(|v| number(*v)).collect::<Vec<_>>()}))
        .collect();
    document(&json!({"kind": "bars", "u": chart.unit.label(), "parts": parts, "rows": rows}))
}

/// Rows of points.
pub(super) fn dots(chart: &Dots, variant: &dyn Fn(&str) -> Option<usize>) -> Result<String> {
    let rows: Vec<Value> = chart
        .rows
        .iter()
        .map(|r| {
            let points: Vec<Value> = r.points.iter().map(|p| json!([text(&p.label), number(p.value)])).collect();
            json!({"n": text(&r.label), "v": variant(&r.label), "rec": r.origin == Origin::Recorded, "p": points})
        })
        .collect();
    document(&json!({"kind": "dots", "u": chart.unit.label(), "log": chart.log, "rows": rows}))
}

/// A tree of time.
pub(super) fn flame(chart: &Flame) -> Result<String> {
    fn node(n: &FlameNode) -> Value {
        json!({"n": text(&n.name), "k": part_number(&n.part), "v": number(n.value), "c": n.parts.iter().map(node).collect::<Vec<_>>()})
    }
    document(&json!({"kind": "flame", "u": chart.unit.label(), "top": number(chart.top), "root": node(&chart.root)}))
}

fn document(value: &Value) -> Result<String> {
    Ok(escape::json(&serde_json::to_string(value)?))
}

/// True if a plane has anything to react to.
pub(super) fn worth_it(chart: &Plane) -> bool {
    let xs = || chart.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0));
    xs().count() > 1 && Scale::new(&chart.x, xs()).marks.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_five_digits() {
        assert_eq!(number(123_456.7), json!(123_457));
        assert_eq!(number(0.001_234_567), json!(0.001_234_6));
        assert_eq!(number(12.0), json!(12));
        assert_eq!(number(f64::NAN), json!(0));
        assert_eq!(number(-2.345_678_9), json!(-2.3457));
    }
}
