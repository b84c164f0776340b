//! vmstat over time: the recorded log laid over the simulated one, for the columns that both have (KiB and KiB/s).
//!
//! Series are thinned to at most [`POINTS`] points, lowest and highest of each stretch kept ([`crate::stats::envelope`]). The table
//! compares means over the rows of each log: recorded rows up to the recording's end, simulated rows up to the run's end.

use super::{Context, Metric};
use crate::cell::{CellData, seconds};
use crate::error::Result;
use crate::model::{Block, Cell, Column, Definition, Origin, Panel, Section, Series, Strips, Table, Unit};
use crate::recorded::{COLUMNS, Recorded};
use crate::stats::{envelope, mean};

/// Most points of a series that is drawn.
const POINTS: usize = 400;

/// A recorded series that goes this many times higher than the simulated ones is not drawn with them.
const MANY_TIMES: f64 = 8.0;

pub(crate) struct Vmstat;

pub(crate) struct Facts {
    /// One series a column of [`COLUMNS`].
    series: Vec<Vec<(f64, f64)>>,
}

impl Metric for Vmstat {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let mut wanted = vec!["time_ns"];
        wanted.extend(COLUMNS.iter().map(|c| c.column));
        let frame = cell.table("samples", &wanted)?;
        let times = frame.whole("time_ns")?;
        let series = COLUMNS
            .iter()
            .map(|c| {
                let values = frame.ints(c.column)?;
                Ok(times.iter().zip(values).filter_map(|(t, v)| Some((seconds(*t), v? as f64))).collect())
            })
            .collect::<Result<_>>()?;
        Ok(Facts { series })
    }

    fn thin(&self, facts: &mut Facts) {
        facts.series.iter_mut().for_each(Vec::clear);
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let recorded: Vec<Vec<(f64, f64)>> = context
            .recorded
            .vmstat
            .iter()
            .map(|v| context.recorded.time_s.iter().zip(v).filter_map(|(t, v)| Some((*t, (*v)?))).collect())
            .collect();
        let all = || facts.iter().map(|f| &f.series).chain(std::iter::once(&recorded));
        let used: Vec<usize> =
            (0..COLUMNS.len()).filter(|c| all().filter_map(|s| s.get(*c)).flatten().any(|(_, v)| *v > 0.0)).collect();
        if used.is_empty() {
            return None;
        }
        let shown = || all().flatten().flatten();
        let end_s = shown().map(|(t, _)| *t).fold(0.0, f64::max);
        let top = |series: &[Vec<(f64, f64)>], c: usize| {
            series.get(c).into_iter().flatten().map(|(_, v)| *v).fold(0.0, f64::max)
        };
        let simulated = |c: usize| facts.iter().map(|f| top(&f.series, c)).fold(0.0, f64::max);
        // Beside a machine many times as large the simulated one would be a line on the axis.
        let too_large: Vec<bool> =
            (0..COLUMNS.len()).map(|c| simulated(c) > 0.0 && top(&recorded, c) > simulated(c) * MANY_TIMES).collect();
        let tops: Vec<f64> = (0..COLUMNS.len())
            .map(|c| if too_large[c] { simulated(c) } else { simulated(c).max(top(&recorded, c)) })
            .collect();
        let drawn: Vec<Vec<(f64, f64)>> =
            recorded.iter().zip(&too_large).map(|(r, large)| if *large { Vec::new() } else { r.clone() }).collect();
        let left_out: Vec<&str> =
            (0..COLUMNS.len()).filter(|c| too_large[*c] && used.contains(c)).map(|c| COLUMNS[c].title).collect();
        let note = if left_out.is_empty() {
            String::new()
        } else {
            format!(
                " The recorded machine's {} went to more than {MANY_TIMES} times the simulated ones and is not drawn; the table has its means.",
                left_out.join(", ")
            )
        };
        let mut blocks = vec![Block::Table(table(context, facts, &recorded, &used))];
        blocks.extend(
            context
                .labelled(facts)
                .enumerate()
                .map(|(i, (label, f))| Block::Strips(strips(i, label, f, (&drawn, &note), &used, &tops, end_s))),
        );
        Some(Section {
            id: "vmstat".to_string(),
            title: "vmstat, recorded and simulated".to_string(),
            lead: "Second by second what vmstat shows. The recorded series comes from the recording's own machine and kernel: the variant that stands for that machine should follow it, the others may well differ. A panel has the same scale for every variant; a column that is zero everywhere is left out.".to_string(),
            blocks,
            definitions: COLUMNS
                .iter()
                .enumerate()
                .filter(|(i, _)| used.contains(i))
                .map(|(_, c)| Definition::new(c.title, &format!("{} ({})", c.about, unit(c.rate).label())))
                .collect(),
        })
    }
}

fn unit(rate: bool) -> Unit {
    if rate { Unit::KibPerSecond } else { Unit::Kib }
}

fn strips(
    index: usize,
    label: &str,
    facts: &Facts,
    (recorded, note): (&[Vec<(f64, f64)>], &str),
    used: &[usize],
    tops: &[f64],
    end_s: f64,
) -> Strips {
    let empty = Vec::new();
    let longest =
        used.iter().map(|c| facts.series[*c].len().max(recorded.get(*c).map_or(0, Vec::len))).max().unwrap_or(0);
    let thin = |points: &[(f64, f64)]| envelope(points, POINTS / 2);
    Strips {
        id: format!("vmstat-{index}"),
        label: label.to_string(),
        caption: if recorded.iter().any(|r| !r.is_empty()) {
            format!("Grey area: recorded. Line: simulated.{note}")
        } else {
            format!(
                "Line: simulated.{}",
                if note.is_empty() { " There is no recorded vmstat log to compare with." } else { note }
            )
        },
        end_s,
        panels: used
            .iter()
            .map(|&c| Panel {
                title: COLUMNS[c].title.to_string(),
                about: COLUMNS[c].about.to_string(),
                unit: unit(COLUMNS[c].rate),
                top: tops[c],
                series: [(Origin::Recorded, recorded.get(c).unwrap_or(&empty)), (Origin::Simulated, &facts.series[c])]
                    .into_iter()
                    .filter(|(_, points)| !points.is_empty())
                    .map(|(origin, points)| Series { origin, points: thin(points) })
                    .collect(),
            })
            .collect(),
        thinned_from: (longest > POINTS).then_some(longest),
    }
}

fn table(context: &Context<'_>, facts: &[Facts], recorded: &[Vec<(f64, f64)>], used: &[usize]) -> Table {
    let mut columns = vec![Column::text("variant", "variant")];
    columns.extend(used.iter().map(|&c| {
        let column = &COLUMNS[c];
        Column::number(&format!("mean_{}", column.column), column.title, unit(column.rate), 0)
    }));
    let mut table = Table::new("vmstat-means", "Means over all samples of a run.", columns);
    let row = |label: &str, series: &[Vec<(f64, f64)>]| {
        let mut cells = vec![Cell::text(label)];
        cells.extend(used.iter().map(|&c| {
            let values: Vec<f64> = series.get(c).map(|s| s.iter().map(|(_, v)| *v).collect()).unwrap_or_default();
            Cell::number(mean(&values))
        }));
        cells
    };
    for (label, f) in context.labelled(facts) {
        table.push(row(label, &f.series));
    }
    if recorded.iter().any(|r| !r.is_empty()) {
        table.push(row("(recorded)", recorded));
    }
    table
}
