//! What happened during the runs that a reader should know: `events`, killed tasks, runs that did not end.

use crate::cell::{CellData, Task, seconds};
use crate::error::Result;
use crate::model::{Finding, Level};

/// Events of one kind shown one by one, for each cell; the others are counted.
const SHOWN: usize = 3;

/// The findings of one cell.
///
/// # Errors
/// What is wrong with the `events` table.
pub(crate) fn of_cell(cell: &CellData) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let label = &cell.label;
    if !cell.finished {
        let unfinished = cell.foreground().filter(|t| t.end_ns.is_none()).count();
        findings.push(Finding::new(
            Level::Problem,
            format!("{label}: the run ended before its tasks did ({unfinished} of {} foreground tasks unfinished); its times are lower bounds and it is never marked best.", cell.foreground().count()),
        ));
    }
    let frame = cell.table("events", &["time_ns", "task", "kind", "text"])?;
    let (times, tasks) = (frame.ints("time_ns")?, frame.ints("task")?);
    let (kinds, texts) = (frame.texts("kind")?, frame.texts("text")?);
    for (kind, count, _) in frame.sums_by("kind", &["time_ns"])? {
        let rows: Vec<usize> = (0..frame.rows()).filter(|i| kinds[*i].as_deref().unwrap_or("") == kind).collect();
        for &i in rows.iter().take(SHOWN) {
            let who = tasks[i].and_then(|index| cell.tasks.iter().find(|t| t.task == index));
            let who = who.map_or(String::new(), |t| format!(" ({}, thread {})", t.name, t.tid));
            let what = texts[i].as_deref().filter(|t| !t.is_empty()).map_or(String::new(), |t| format!(": {t}"));
            let mut finding = Finding::new(level(&kind), format!("{label}: {}{who}{what}", words(&kind)));
            finding.time_s = times[i].map(seconds);
            findings.push(finding);
        }
        if rows.len() > SHOWN {
            findings.push(Finding::new(
                level(&kind),
                format!(
                    "{label}: {} of {count} events \"{}\" are shown; all are in events.parquet.",
                    SHOWN,
                    words(&kind)
                ),
            ));
        }
    }
    let killed: Vec<String> = cell.tasks.iter().filter(|t| t.killed).map(Task::shown_name).collect();
    if !killed.is_empty() {
        findings
            .push(Finding::new(Level::Problem, format!("{label}: killed for lack of memory: {}.", killed.join(", "))));
    }
    Ok(findings)
}

fn words(kind: &str) -> &str {
    match kind {
        "alloc-failure" => "an allocation failed",
        "oom-kill" => "out of memory, a process was killed",
        "livelock" => "no progress any more (livelock)",
        "hung" => "a task hung",
        other => other,
    }
}

fn level(kind: &str) -> Level {
    match kind {
        "livelock" | "hung" | "oom-kill" => Level::Problem,
        "alloc-failure" => Level::Warning,
        _ => Level::Note,
    }
}
