//! What one variant's tasks spend more on than another's (s, medians over the seeds), from the table of blame.

use crate::cell::CAUSES;
use crate::metrics::{Context, blame, why};
use crate::model::{Block, Cell, Column, Section, Table, Unit, Value};

/// Waits for other tasks: these have their own causes, which are counted there.
pub(crate) const SECOND_HAND: &str = "t_dep_ns";
/// Smaller shares of a difference are not worth a line.
pub(crate) const LEAST: f64 = 0.02;
/// Causes named for each variant.
const NAMED: usize = 3;

/// The seconds of each variant by cause.
pub(crate) struct Spent<'t>(&'t Table);

/// A cause under two variants.
pub(crate) struct Gap {
    /// One of [`CAUSES`].
    pub cause: &'static str,
    /// Seconds under the one.
    pub here_s: f64,
    /// And under the other.
    pub there_s: f64,
    /// Share of everything that changed in the direction of the whole, percent.
    pub share_pct: f64,
}

impl Gap {
    /// What it is called.
    pub(crate) fn words(&self) -> &'static str {
        blame::cause_words(CAUSES.iter().position(|c| *c == self.cause).unwrap_or(CAUSES.len()))
    }
}

impl<'t> Spent<'t> {
    /// The table of blame among the sections of a trace.
    pub(crate) fn of(sections: &'t [Section]) -> Option<Spent<'t>> {
        let blocks = sections.iter().find(|s| s.id == "blame")?.blocks.iter();
        blocks.filter_map(|b| if let Block::Table(t) = b { Some(Spent(t)) } else { None }).next()
    }

    fn seconds(&self, variant: &str) -> Option<Vec<f64>> {
        let row = self.0.rows.iter().find(|r| matches!(&r.cells[0].value, Value::Text(t) if t == variant))?;
        let of = |cause: &&str| {
            let id = blame::column_id(cause);
            // Columns of nothing but zeros are left out.
            self.0.columns.iter().position(|c| c.id == id).and_then(|at| row.cells[at].as_number()).unwrap_or(0.0)
        };
        Some(CAUSES.iter().map(of).collect())
    }

    /// The causes that changed in the direction of the whole from `there` to `here`, the most changed first.
    pub(crate) fn gaps(&self, here: &str, there: &str) -> Option<Vec<Gap>> {
        let (here, there) = (self.seconds(here)?, self.seconds(there)?);
        let counted = || (0..CAUSES.len()).filter(|c| CAUSES[*c] != SECOND_HAND);
        let gap = |c: usize| here[c] - there[c];
        let whole: f64 = counted().map(gap).sum();
        let same = || counted().filter(|c| gap(*c) != 0.0 && (gap(*c) > 0.0) == (whole > 0.0));
        let moved: f64 = same().map(gap).sum();
        let mut gaps: Vec<Gap> = same()
            .map(|c| Gap { cause: CAUSES[c], here_s: here[c], there_s: there[c], share_pct: gap(c) / moved * 100.0 })
            .collect();
        gaps.sort_by(|a, b| b.share_pct.total_cmp(&a.share_pct));
        Some(gaps)
    }
}

/// Puts the sums by cause in front of the calls that show them.
pub(crate) fn into_why(sections: &mut [Section], context: &Context<'_>) {
    let Some((base, others)) = why::compared(context) else { return };
    let base = context.cells[base].variant.as_str();
    let mut table = Table::new(
        "why-causes",
        &format!("Against {base}: what each variant that differs spends more, or less, of its clients' time on."),
        vec![
            Column::text("variant", "variant"),
            Column::text("cause", "cause"),
            Column::number("difference_s", "difference", Unit::Seconds, 2),
            Column::number("share_pct", "share", Unit::Percent, 0),
            Column::number("here_s", "here", Unit::Seconds, 2),
            Column::number("there_s", "there", Unit::Seconds, 2),
        ],
    );
    if let Some(spent) = Spent::of(sections) {
        for variant in others.iter().map(|o| context.cells[*o].variant.as_str()) {
            let gaps = spent.gaps(variant, base).unwrap_or_default();
            for gap in gaps.iter().filter(|g| g.share_pct >= LEAST * 100.0).take(NAMED) {
                table.push(vec![
                    Cell::text(variant),
                    Cell::text(gap.words()),
                    Cell::number(gap.here_s - gap.there_s),
                    Cell::number(gap.share_pct),
                    Cell::number(gap.here_s),
                    Cell::number(gap.there_s),
                ]);
            }
        }
    }
    if let Some(section) = sections.iter_mut().find(|s| s.id == "why").filter(|_| !table.rows.is_empty()) {
        section.blocks.insert(0, Block::Table(table));
    }
}
