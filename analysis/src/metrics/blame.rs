//! Where the time went: the `t_*_ns` columns of `clients`, summed over foreground tasks (s).
//!
//! Each nanosecond of a task belongs to one cause, so the parts of a bar add up to what the tasks lived through: with n tasks
//! side by side about n times the elapsed time. Think time is computing between calls, taken from the recording.

use super::{Context, Metric};
use crate::cell::{CAUSES, CellData, seconds};
use crate::error::Result;
use crate::model::{BarRow, Bars, Block, Category, Cell, Column, Definition, Section, Table, Unit};
use crate::recorded::Recorded;

/// Parts of a bar: id, legend, and the causes it sums. Think time comes last.
pub(super) const PARTS: [(&str, &str, &[&str]); 10] = [
    ("cpu", "processor", &["t_cpu_ns", "t_runq_ns"]),
    ("disk", "disk reads", &["t_read_ns", "t_meta_ns"]),
    ("swapin", "swap-in", &["t_swapin_ns"]),
    ("slot", "request slots", &["t_slot_ns"]),
    ("lock", "locks", &["t_pagelock_ns", "t_inode_ns"]),
    ("throttle", "dirty limits", &["t_throttle_ns"]),
    ("reclaim", "reclaim", &["t_reclaim_ns"]),
    ("sync", "sync, journal", &["t_sync_ns"]),
    ("net", "network", &["t_net_ns"]),
    ("idle", "sleep, other tasks", &["t_sleep_ns", "t_dep_ns"]),
];

/// Heading of each cause in the table, in the order of [`CAUSES`], and its meaning.
const NAMES: [(&str, &str); CAUSES.len()] = [
    ("own work", "the task's own work on a processor"),
    ("run queue", "ready to run, but every processor was busy"),
    ("page lock", "a page locked by somebody else's I/O or write"),
    ("inode", "the semaphore of a file that another task was writing"),
    ("read", "the disk, on reads of data that the task asked for"),
    ("metadata", "the disk, on reads of inodes, directories and indirect blocks"),
    ("slot", "no free request in the queue"),
    ("throttle", "dirty limits: the task had to write, or wait for, dirty pages"),
    ("reclaim", "waits while the task itself freed memory"),
    ("swap-in", "the disk, on swapped-out pages"),
    (
        "sync, journal",
        "completion of writes in fsync and sync, or of a journal's commit that holds a block which the task must change",
    ),
    ("network", "a network link, or another wait outside the machine"),
    ("sleep", "a sleep the task asked for"),
    ("other task", "another task: a pipe, a child, a lock"),
];

/// What a cause (index into [`CAUSES`]) is called.
pub(crate) fn cause_name(cause: usize) -> &'static str {
    NAMES.get(cause).map_or("?", |(name, _)| name)
}

/// What a cause (index into [`CAUSES`]) is called where it stands alone.
pub(crate) fn cause_words(cause: usize) -> &'static str {
    const WORDS: [&str; CAUSES.len()] = [
        "own work",
        "waiting for a processor",
        "locked pages",
        "a file that another task writes",
        "disk reads",
        "reads of metadata",
        "waiting for a request slot",
        "dirty limits",
        "freeing memory",
        "swap-in",
        "sync or the journal",
        "network",
        "sleep",
        "other tasks",
    ];
    WORDS.get(cause).copied().unwrap_or("?")
}

/// Id of a cause's column.
pub(crate) fn column_id(cause: &str) -> String {
    format!("{}_s", cause.trim_end_matches("_ns"))
}

/// Id of the part of a bar that a cause belongs to.
pub(super) fn part_of(cause: usize) -> &'static str {
    let name = CAUSES.get(cause).copied().unwrap_or("");
    PARTS.iter().find(|(_, _, causes)| causes.contains(&name)).map_or("", |(id, _, _)| id)
}

pub(crate) struct Blame;

pub(crate) struct Facts {
    causes_s: [f64; CAUSES.len()],
    think_s: f64,
}

impl Facts {
    fn part(&self, causes: &[&str]) -> f64 {
        CAUSES.iter().zip(self.causes_s).filter(|(c, _)| causes.contains(c)).map(|(_, s)| s).sum()
    }

    fn bar(&self) -> Vec<f64> {
        PARTS.iter().map(|(_, _, causes)| self.part(causes)).chain([self.think_s]).collect()
    }
}

impl Metric for Blame {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, _recorded: &Recorded) -> Result<Facts> {
        let sum = |c: usize| cell.foreground().map(|t| t.causes_ns[c]).fold(0i64, i64::saturating_add);
        Ok(Facts {
            causes_s: std::array::from_fn(|c| seconds(sum(c).max(0))),
            think_s: seconds(cell.foreground().map(|t| t.think_ns).fold(0i64, i64::saturating_add).max(0)),
        })
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        let bars = bars(context, facts);
        if bars.categories.is_empty() {
            return None;
        }
        let table = table(context, facts);
        let shown: Vec<&str> = table.columns.iter().map(|c| c.title.as_str()).collect();
        let definitions = NAMES
            .iter()
            .filter(|(name, _)| shown.contains(name))
            .map(|(name, meaning)| Definition::new(name, meaning))
            .collect();
        Some(Section {
            id: "blame".to_string(),
            title: "Where the time went".to_string(),
            lead: "Every moment of every foreground task is put down to the one thing it waited for. Compare the same cause between the variants: the part that shrinks is what the better variant does better.".to_string(),
            blocks: vec![Block::Bars(bars), Block::Table(table)],
            definitions,
        })
    }
}

fn bars(context: &Context<'_>, facts: &[Facts]) -> Bars {
    let rows: Vec<(&str, Vec<f64>)> = context.labelled(facts).map(|(l, f)| (l, f.bar())).collect();
    let all = PARTS.iter().map(|(id, label, _)| (*id, *label)).chain([("think", "think time")]);
    let used: Vec<(usize, (&str, &str))> =
        all.enumerate().filter(|(i, _)| rows.iter().any(|(_, values)| values[*i] > 0.0)).collect();
    Bars {
        id: "time-by-cause".to_string(),
        caption: "Seconds of all foreground tasks together, by what they were spent on. With several tasks side by side the sum exceeds the elapsed time.".to_string(),
        unit: Unit::Seconds,
        categories: used
            .iter()
            .map(|(_, (id, label))| Category { id: (*id).to_string(), label: (*label).to_string() })
            .collect(),
        rows: rows
            .iter()
            .map(|(label, values)| BarRow {
                label: (*label).to_string(),
                values: used.iter().map(|(i, _)| values[*i]).collect(),
            })
            .collect(),
    }
}

fn table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let used: Vec<usize> = (0..CAUSES.len()).filter(|c| facts.iter().any(|f| f.causes_s[*c] > 0.0)).collect();
    let mut columns = vec![Column::text("variant", "variant")];
    columns.extend(used.iter().map(|c| Column::number(&column_id(CAUSES[*c]), NAMES[*c].0, Unit::Seconds, 2)));
    columns.push(Column::number("think_s", "think", Unit::Seconds, 2));
    columns.push(Column::number("total_s", "sum", Unit::Seconds, 2));
    let mut table = Table::new("time-by-cause-table", "The same in figures, each cause by itself.", columns);
    table.sparse = true;
    for (label, f) in context.labelled(facts) {
        let mut cells = vec![Cell::text(label)];
        cells.extend(used.iter().map(|c| Cell::number(f.causes_s[*c])));
        cells.push(Cell::number(f.think_s));
        cells.push(Cell::number(f.causes_s.iter().sum::<f64>() + f.think_s));
        table.push(cells);
    }
    table
}
