//! Which tasks stand for which client.
//!
//! A client is all foreground tasks that carry the same client name. Where no task carries one, each foreground task that
//! moved at least [`SHARE`] of the bytes of the busiest is a client of its own (a shell that only waits is none).

use crate::cell::{CellData, Task};
use indexmap::IndexMap;

/// Least share of the busiest task's bytes that makes a task a client.
const SHARE: f64 = 0.01;

/// Bytes that a task moved by system calls.
pub(crate) fn moved(task: &Task) -> i64 {
    task.bytes_read.saturating_add(task.bytes_written)
}

/// The clients of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    /// Names, in the order of first appearance.
    pub names: Vec<String>,
    /// Bytes that each moved.
    pub bytes: Vec<i64>,
    /// First start and last end of each, nanoseconds; `None` if a task did not end.
    pub spans: Vec<(i64, Option<i64>)>,
    of_task: IndexMap<i64, usize>,
}

impl Who {
    /// The clients of `cell`.
    pub(crate) fn of(cell: &CellData) -> Who {
        let named = cell.foreground().any(|t| t.client.is_some());
        let enough = cell.foreground().map(moved).max().unwrap_or(0) as f64 * SHARE;
        let counts = |t: &&Task| if named { t.client.is_some() } else { moved(t) as f64 >= enough };
        let mut who = Who::default();
        let mut places: IndexMap<String, usize> = IndexMap::new();
        for task in cell.foreground().filter(counts) {
            let name = task.client.clone().unwrap_or_else(|| task.shown_name());
            let place = *places.entry(name.clone()).or_insert(who.names.len());
            if place == who.names.len() {
                who.names.push(name);
                who.bytes.push(0);
                who.spans.push((task.start_ns, task.end_ns));
            } else {
                let span = &mut who.spans[place];
                *span = (span.0.min(task.start_ns), span.1.zip(task.end_ns).map(|(a, b)| a.max(b)));
            }
            who.bytes[place] = who.bytes[place].saturating_add(moved(task));
            who.of_task.insert(task.task, place);
        }
        who
    }

    /// The client of a task, as an index into [`Who::names`].
    pub(crate) fn client(&self, task: i64) -> Option<usize> {
        self.of_task.get(&task).copied()
    }

    /// For each task index below `tasks` its client: quicker than [`Who::client`] where there are many rows.
    pub(crate) fn by_task(&self, tasks: usize) -> Vec<Option<usize>> {
        (0..tasks).map(|t| self.client(t as i64)).collect()
    }

    /// A name for whoever queued something: the client, else the task's own name, else "the kernel".
    pub(crate) fn name_of(&self, cell: &CellData, task: i64) -> String {
        match (self.client(task), cell.tasks.iter().find(|t| t.task == task)) {
            (Some(client), _) => self.names[client].clone(),
            (None, Some(task)) => task.shown_name(),
            (None, None) => "the kernel".to_string(),
        }
    }
}
