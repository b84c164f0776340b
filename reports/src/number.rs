//! Numbers as text, the same in every format.

use kreplay_analysis::model::{Cell, Column, Table, Value};

/// A number with `digits` digits after the point; never "-0.00".
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_string(),
        _ => text,
    }
}

/// A cell's content before escaping: the number or text, the range over seeds in brackets; `-` if there is nothing.
pub(crate) fn content(cell: &Cell, column: &Column) -> String {
    match (&cell.value, cell.range) {
        (Value::Missing, _) => "-".to_string(),
        (Value::Text(text), _) => text.clone(),
        (Value::Number(v), None) => fixed(*v, column.digits),
        (Value::Number(v), Some((low, high))) => {
            let (v, low, high) = (fixed(*v, column.digits), fixed(low, column.digits), fixed(high, column.digits));
            if low == high { v } else { format!("{v} [{low}-{high}]") }
        }
    }
}

/// The table without the columns in which there is nothing but zeros; the caption names them. The first column stays.
pub(crate) fn without_zeros(table: &Table) -> Table {
    let zero = |c: usize| {
        c > 0
            && table.rows.iter().all(|r| {
                r.cells.get(c).is_none_or(|cell| cell.value == Value::Missing || cell.as_number() == Some(0.0))
            })
    };
    let dropped: Vec<bool> = (0..table.columns.len()).map(zero).collect();
    let mut out = table.clone();
    if !dropped.contains(&true) || table.rows.is_empty() {
        return out;
    }
    // A column of text without any is not missed.
    let gone = table.columns.iter().zip(&dropped).filter(|(c, d)| **d && !c.is_text());
    let names: Vec<&str> = gone.map(|(c, _)| c.title.as_str()).collect();
    if !names.is_empty() {
        out.caption.push_str(&format!(" Zero everywhere and left out: {}.", names.join(", ")));
    }
    let mut keep = dropped.iter().map(|d| !d).cycle();
    out.columns.retain(|_| keep.next().unwrap_or(true));
    for row in &mut out.rows {
        row.cells.retain(|_| keep.next().unwrap_or(true));
    }
    out
}

/// A number for an axis: as few digits as tell it from `step` neighbours.
pub(crate) fn tick(value: f64, step: f64) -> String {
    let digits = if step >= 1.0 || step <= 0.0 { 0 } else { (-step.log10()).ceil().clamp(0.0, 9.0) as usize };
    fixed(value, digits)
}

/// Round axis marks from 0 to at least `top`, about `count` of them, and their distance (1, 2 or 5 times a power of ten).
pub(crate) fn ticks(top: f64, count: usize) -> (Vec<f64>, f64) {
    if !top.is_finite() || top <= 0.0 {
        return (vec![0.0, 1.0], 1.0);
    }
    let rough = top / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(rough);
    let last = (top / step * 0.999).ceil() as usize;
    ((0..=last).map(|i| i as f64 * step).collect(), step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-0.01, 2), "-0.01");
        assert_eq!(tick(0.25, 0.05), "0.25");
        assert_eq!(tick(1500.0, 500.0), "1500");
    }

    #[test]
    fn columns_of_zeros_are_named_and_left_out() {
        let column = |id: &str| Column::number(id, id, kreplay_analysis::model::Unit::Count, 0);
        let mut table = Table::new("t", "T.", vec![Column::text("v", "v"), column("a"), column("b"), column("c")]);
        table.push(vec![Cell::text("x"), Cell::number(0.0), Cell::number(1.0), Cell::number(None)]);
        table.push(vec![Cell::text("y"), Cell::number(0.0), Cell::number(0.0), Cell::number(0.0)]);
        let shown = without_zeros(&table);
        assert_eq!(shown.columns.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["v", "b"]);
        assert_eq!(shown.rows[0].cells, [Cell::text("x"), Cell::number(1.0)]);
        assert_eq!(shown.rows[1].cells, [Cell::text("y"), Cell::number(0.0)]);
        assert_eq!(shown.caption, "T. Zero everywhere and left out: a, c.");
    }

    #[test]
    fn ticks_cover_the_range() {
        for top in [0.0, 0.003, 1.0, 7.3, 99.0, 123_456.0, f64::NAN] {
            let (marks, step) = ticks(top, 5);
            assert!(marks.len() >= 2 && marks.len() <= 12, "{top}: {marks:?}");
            assert!(step > 0.0 && (top.is_nan() || marks[marks.len() - 1] >= top * 0.998));
        }
    }
}
