//! What claims can take from cells: one function a figure, one line in [`KINDS`].

mod clients;
mod disk;
mod grid;
mod memory;
mod time;

use super::view::View;
use crate::error::Result;
use crate::model::Unit;

pub(crate) use grid::Grid;

/// A figure of one cell: `None` where the cell does not have it (a mark never reached).
type OfCell = fn(&View, &[String]) -> Result<Option<f64>>;

/// How a figure is computed.
#[derive(Clone, Copy)]
enum Eval {
    /// From one cell.
    Cell(OfCell),
    /// From a figure of every cell of a grid.
    Grid(fn(&Grid, &[String]) -> Option<f64>),
}

/// A kind of figure.
pub struct Kind {
    /// Name in the registry.
    pub name: &'static str,
    /// Its arguments, for messages.
    pub args: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Unit.
    pub unit: Unit,
    least: usize,
    most: usize,
    eval: Eval,
}

const fn kind(
    name: &'static str,
    args: &'static str,
    (least, most): (usize, usize),
    unit: Unit,
    about: &'static str,
    eval: OfCell,
) -> Kind {
    Kind { name, args, about, unit, least, most, eval: Eval::Cell(eval) }
}

const fn of_grid(
    name: &'static str,
    args: &'static str,
    count: usize,
    unit: Unit,
    about: &'static str,
    eval: fn(&Grid, &[String]) -> Option<f64>,
) -> Kind {
    Kind { name, args, about, unit, least: count, most: count, eval: Eval::Grid(eval) }
}

/// All kinds.
pub static KINDS: &[Kind] = &[
    kind("span", "mark, mark", (2, 2), Unit::Seconds, "from the first mark to the second", time::span),
    kind("count-marks", "mark", (1, 1), Unit::Count, "how often a mark was passed", time::count_marks),
    kind(
        "overwritten",
        "beginning",
        (1, 1),
        Unit::Count,
        "marks with that beginning whose name had been there before",
        time::overwritten,
    ),
    kind("elapsed", "", (0, 0), Unit::Seconds, "until the last foreground task ended", time::elapsed),
    kind(
        "missed",
        "mark, period ms",
        (2, 2),
        Unit::Count,
        "gaps between a mark's times longer than its period by half",
        time::missed,
    ),
    kind(
        "dry",
        "tasks, period ms",
        (2, 2),
        Unit::Count,
        "messages, after the first, that found their link idle: what plays them had run dry",
        time::dry,
    ),
    kind(
        "longest-gap",
        "mark",
        (1, 1),
        Unit::Milliseconds,
        "longest time between two passes of a mark",
        time::longest_gap,
    ),
    kind(
        "call-ms",
        "tasks, call, quantile %",
        (3, 3),
        Unit::Milliseconds,
        "quantile of a call's duration",
        time::call_ms,
    ),
    kind("call-sum", "tasks, call", (2, 2), Unit::Seconds, "time in all calls of a kind", time::call_sum),
    kind(
        "wake-ms",
        "tasks, sleep ms, quantile %",
        (3, 3),
        Unit::Milliseconds,
        "quantile of how much longer than asked for sleeps lasted",
        time::wake_ms,
    ),
    kind(
        "ready-ms",
        "tasks, quantile %",
        (2, 2),
        Unit::Milliseconds,
        "quantile, over the calls that waited for a processor, of how long they did",
        time::ready_ms,
    ),
    kind("first-finish", "", (0, 0), Unit::Seconds, "when the first client finished", clients::first),
    kind("last-finish", "", (0, 0), Unit::Seconds, "when the last client finished", clients::last),
    kind("last-over-first", "", (0, 0), Unit::Ratio, "last finish over first", clients::last_over_first),
    kind("second-over-first", "", (0, 0), Unit::Ratio, "second finish over first", clients::second_over_first),
    kind(
        "moved-mb-s",
        "",
        (0, 0),
        Unit::Count,
        "10^6 bytes that the clients read and wrote, by the last finish in seconds",
        clients::moved,
    ),
    kind(
        "task-mib-s",
        "tasks",
        (1, 1),
        Unit::MibPerSecond,
        "MiB that tasks read and wrote, by their time",
        clients::task_rate,
    ),
    kind("task-mib", "tasks", (1, 1), Unit::Mib, "MiB that tasks read and wrote", clients::task_mib),
    kind(
        "busiest-share",
        "",
        (0, 0),
        Unit::Percent,
        "median over seconds of the busiest client's share of what all moved",
        clients::busiest_share,
    ),
    kind(
        "groove-s",
        "",
        (0, 0),
        Unit::Seconds,
        "seconds in which one client moved more than 70 % of all bytes, before the first finished",
        clients::groove,
    ),
    kind(
        "starved-s",
        "",
        (0, 0),
        Unit::Seconds,
        "longest time in which a client moved less than a tenth of the busiest",
        clients::starved,
    ),
    kind("served", "tasks", (1, 1), Unit::Count, "calls finished", clients::calls),
    kind("counter", "name", (1, 1), Unit::Count, "a counter of the run", memory::counter),
    kind("swap-out-kib", "", (0, 0), Unit::Kib, "swapped out", memory::swap_out),
    kind("swap-in-kib", "", (0, 0), Unit::Kib, "swapped in", memory::swap_in),
    kind("so-peak-mib", "samples", (0, 1), Unit::Mib, "most swapped out in so many samples", memory::so_peak),
    kind(
        "active-pct",
        "",
        (0, 0),
        Unit::Percent,
        "largest share of the active list in the page lists, samples with at least half of memory in lists",
        memory::active_share,
    ),
    kind(
        "names-kept-pct",
        "mark, mark",
        (2, 2),
        Unit::Percent,
        "dentries and inodes at the second mark against the first",
        memory::names_kept,
    ),
    kind(
        "names-half-pages",
        "",
        (0, 0),
        Unit::Count,
        "pages that reclaim dropped while dentries and inodes shrank from their largest number to half of it",
        memory::names_half,
    ),
    kind(
        "back-mib",
        "mark, mark",
        (2, 2),
        Unit::Mib,
        "read from disks between two marks, files and swap together",
        disk::back_mib,
    ),
    kind("events", "kind", (1, 1), Unit::Count, "findings of a kind", memory::events),
    kind(
        "events-of",
        "kind, words",
        (2, 2),
        Unit::Count,
        "findings of a kind whose text has these words",
        memory::events_of,
    ),
    kind("tasks-killed", "tasks", (1, 1), Unit::Count, "tasks that were killed", memory::killed),
    kind(
        "killed-with-swap-mib",
        "",
        (0, 0),
        Unit::Mib,
        "swap that was free when the first process was killed or a frame was refused",
        memory::swap_free_at_failure,
    ),
    kind("read-mib", "from mark, to mark", (0, 2), Unit::Mib, "read from the data disks", disk::read_mib),
    kind("written-mib", "", (0, 0), Unit::Mib, "written to the data disks", disk::written_mib),
    kind("read-avg-kib", "", (0, 0), Unit::Kib, "mean size of read requests on the data disks", disk::read_avg),
    kind(
        "reads-passed",
        "tasks",
        (0, 1),
        Unit::Count,
        "requests dispatched before a read that came later, mean",
        disk::passed,
    ),
    kind("reads-tail-pct", "tasks", (0, 1), Unit::Percent, "reads inserted at the tail", disk::tail),
    kind(
        "episode-s",
        "",
        (0, 0),
        Unit::Seconds,
        "longest run of single-page reads of one client without read-ahead",
        disk::episode_s,
    ),
    kind(
        "episode-passed",
        "",
        (0, 0),
        Unit::Count,
        "requests dispatched before each read of that run, mean",
        disk::episode_passed,
    ),
    kind("episode-tail-pct", "", (0, 0), Unit::Percent, "reads of that run inserted at the tail", disk::episode_tail),
    kind(
        "onset-lag",
        "",
        (0, 0),
        Unit::Count,
        "samples from the end of the cache's growth to the first reads",
        disk::onset_lag,
    ),
    kind(
        "bo-drop",
        "",
        (0, 0),
        Unit::Ratio,
        "bo in the samples after the first reads over bo before them",
        disk::bo_drop,
    ),
    of_grid(
        "variance-pct",
        "factor, figure",
        2,
        Unit::Percent,
        "share of a figure's sum of squares that a factor explains: variants, columns, both (interaction), seeds",
        grid::variance,
    ),
    of_grid(
        "range-columns",
        "variant, figure",
        2,
        Unit::Ratio,
        "largest over smallest of the columns' means for a variant",
        grid::range_columns,
    ),
    of_grid(
        "range-variants",
        "column, figure",
        2,
        Unit::Ratio,
        "largest over smallest of the variants' means for a column",
        grid::range_variants,
    ),
];

/// A figure to take: a kind with its arguments, `span(start, read16 0)`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Take {
    kind: usize,
    args: Vec<String>,
}

impl Take {
    /// Reads one.
    ///
    /// # Errors
    /// An unknown kind, or a wrong number of arguments, in words.
    pub fn parse(text: &str) -> std::result::Result<Take, String> {
        let (name, args) = match text.split_once('(') {
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| format!("`{text}` lacks its `)`"))?;
                (name.trim(), split(inner))
            }
            None => (text.trim(), Vec::new()),
        };
        let kind = KINDS.iter().position(|k| k.name == name).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            format!("`{name}` is no figure; there are {}", known.join(", "))
        })?;
        let k = &KINDS[kind];
        if !(k.least..=k.most).contains(&args.len()) {
            return Err(format!("{name} takes ({}), not `{text}`", k.args));
        }
        let take = Take { kind, args };
        if take.of_grid() {
            Take::parse(&take.args[1])?;
        }
        Ok(take)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static Kind {
        &KINDS[self.kind]
    }

    /// As it is written.
    pub fn text(&self) -> String {
        if self.args.is_empty() {
            self.kind().name.to_string()
        } else {
            format!("{}({})", self.kind().name, self.args.join(", "))
        }
    }

    /// It is taken from a grid, not from a cell.
    pub fn of_grid(&self) -> bool {
        matches!(self.kind().eval, Eval::Grid(_))
    }

    /// What is taken from each cell: the take itself, or the one inside of a grid's.
    pub(crate) fn of_cells(&self) -> Take {
        if self.of_grid() { Take::parse(&self.args[1]).unwrap_or_else(|_| self.clone()) } else { self.clone() }
    }

    /// From a cell.
    pub(crate) fn in_cell(&self, view: &View) -> Result<Option<f64>> {
        match self.kind().eval {
            Eval::Cell(eval) => Ok(eval(view, &self.args)?.filter(|v| v.is_finite())),
            Eval::Grid(_) => Ok(None),
        }
    }

    /// From a grid.
    pub(crate) fn in_grid(&self, grid: &Grid) -> Option<f64> {
        match self.kind().eval {
            Eval::Cell(_) => None,
            Eval::Grid(eval) => eval(grid, &self.args).filter(|v| v.is_finite()),
        }
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<String> {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim().to_string());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim().to_string());
    if parts == [""] { Vec::new() } else { parts }
}

/// An argument as a number; 0 where it is none, which the registry's test rules out.
fn number(args: &[String], i: usize) -> f64 {
    args.get(i).and_then(|a| a.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_are_read_with_their_arguments() {
        let take = Take::parse("span(start, read16 0)").unwrap();
        assert_eq!((take.kind().name, take.text().as_str()), ("span", "span(start, read16 0)"));
        let grid = Take::parse("variance-pct(columns, last-over-first)").unwrap();
        assert!(grid.of_grid());
        assert_eq!(grid.of_cells().text(), "last-over-first");
        assert!(Take::parse("span(start)").unwrap_err().contains("takes (mark, mark)"));
        assert!(Take::parse("nothing").unwrap_err().contains("is no figure"));
    }

    #[test]
    fn names_of_kinds_are_unique() {
        let names: std::collections::BTreeSet<&str> = KINDS.iter().map(|k| k.name).collect();
        assert_eq!(names.len(), KINDS.len());
    }
}
