//! What happened during the runs that a reader should know: `events`, killed tasks, runs that did not end.
//!
//! Events of one kind are one finding, whatever the number of runs; the single events are its details. What can change a conclusion is a problem or a
//! warning: a run without all of its tasks is no run to compare. An allocation that failed is a note: what came of it shows as a kill, or in the times.

use crate::cell::{CellData, Task, seconds};
use crate::error::Result;
use crate::model::{Finding, Level};
use indexmap::IndexMap;

/// Events of one kind kept for each cell; the others are counted.
const KEPT: usize = 3;
/// Runs named one by one.
const NAMED: usize = 6;

/// What a cell has to say.
pub(crate) struct Happened {
    label: String,
    /// Foreground tasks that did not end, and all, if the run ended before them.
    unfinished: Option<(usize, usize)>,
    /// Tasks killed for lack of memory.
    killed: Vec<String>,
    /// By kind: how many, and the first of them.
    events: IndexMap<String, (usize, Vec<Event>)>,
}

struct Event {
    time_s: Option<f64>,
    text: String,
}

/// What happened in one cell.
///
/// # Errors
/// What is wrong with the `events` table.
pub(crate) fn of_cell(cell: &CellData) -> Result<Happened> {
    let unfinished = cell.foreground().filter(|t| t.end_ns.is_none()).count();
    let mut events: IndexMap<String, (usize, Vec<Event>)> = IndexMap::new();
    let frame = cell.table("events", &["time_ns", "task", "kind", "text"])?;
    let (times, tasks) = (frame.ints("time_ns")?, frame.ints("task")?);
    let (kinds, texts) = (frame.texts("kind")?, frame.texts("text")?);
    for i in 0..frame.rows() {
        let (count, kept) = events.entry(kinds[i].clone().unwrap_or_default()).or_default();
        *count += 1;
        if kept.len() < KEPT {
            let who = tasks[i].and_then(|index| cell.tasks.iter().find(|t| t.task == index));
            let who = who.map_or(String::new(), |t| format!(" ({}, thread {})", t.name, t.tid));
            let what = texts[i].as_deref().filter(|t| !t.is_empty()).map_or(String::new(), |t| format!(": {t}"));
            kept.push(Event { time_s: times[i].map(seconds), text: format!("{who}{what}") });
        }
    }
    events.sort_keys();
    Ok(Happened {
        label: cell.label.clone(),
        unfinished: (!cell.finished).then(|| (unfinished, cell.foreground().count())),
        killed: cell.tasks.iter().filter(|t| t.killed).map(Task::shown_name).collect(),
        events,
    })
}

/// The findings over all cells of a trace, a kind each.
pub(crate) fn over_cells(all: &[Happened]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ended: Vec<(&str, String)> = all
        .iter()
        .filter_map(|h| {
            let (left, of) = h.unfinished?;
            Some((h.label.as_str(), format!("{left} of {of} foreground tasks unfinished")))
        })
        .collect();
    findings.extend(stated(
        &ended,
        "the run ended before its tasks did",
        "; its times are lower bounds and it is never marked best",
    ));
    let killed: Vec<(&str, String)> =
        all.iter().filter(|h| !h.killed.is_empty()).map(|h| (h.label.as_str(), h.killed.join(", "))).collect();
    findings.extend(stated(&killed, "killed for lack of memory", ""));
    let mut kinds: Vec<&str> = Vec::new();
    for kind in all.iter().flat_map(|h| h.events.keys()) {
        if !kinds.contains(&kind.as_str()) {
            kinds.push(kind);
        }
    }
    findings.extend(kinds.into_iter().map(|kind| of_kind(all, kind)));
    findings
}

/// A problem of some runs: one by itself, or how many of them.
fn stated(runs: &[(&str, String)], what: &str, meaning: &str) -> Option<Finding> {
    match runs {
        [] => None,
        [(label, which)] => Some(Finding::new(Level::Problem, format!("{label}: {what} ({which}){meaning}."))),
        _ => {
            let names = named(&runs.iter().map(|(label, _)| (*label).to_string()).collect::<Vec<_>>());
            let mut finding =
                Finding::new(Level::Problem, format!("In {} runs: {what}{meaning}: {names}.", runs.len()));
            finding.details = runs.iter().map(|(label, which)| format!("{label}: {which}")).collect();
            Some(finding)
        }
    }
}

fn of_kind(all: &[Happened], kind: &str) -> Finding {
    let runs: Vec<(&Happened, &(usize, Vec<Event>))> =
        all.iter().filter_map(|h| Some((h, h.events.get(kind)?))).collect();
    let count: usize = runs.iter().map(|(_, (count, _))| count).sum();
    if let ([(run, (1, kept))], Some(event)) = (runs.as_slice(), runs.first().and_then(|r| r.1.1.first())) {
        debug_assert_eq!(kept.len(), 1);
        let text = format!("{}: {}{}", run.label, words(kind), event.text);
        return Finding { time_s: event.time_s, ..Finding::new(level(kind), text) };
    }
    let of: Vec<String> = runs.iter().map(|(h, (n, _))| format!("{} {n}", h.label)).collect();
    let text = format!("{} events \"{}\" in {} of {} runs: {}.", count, words(kind), runs.len(), all.len(), named(&of));
    let at = |e: &Event| e.time_s.map_or(String::new(), |t| format!(" at {t:.2} s"));
    let mut details: Vec<String> = runs
        .iter()
        .flat_map(|(h, (_, kept))| kept.iter().map(move |e| format!("{}{}{}", h.label, at(e), e.text)))
        .collect();
    if count > details.len() {
        details.push(format!("{} more are in the tables `events` of the runs", count - details.len()));
    }
    Finding { details, ..Finding::new(level(kind), text) }
}

fn named(all: &[String]) -> String {
    let more = all.len().saturating_sub(NAMED);
    let shown = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
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
        _ => Level::Note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, events: usize) -> Happened {
        let kept =
            (0..events.min(KEPT)).map(|i| Event { time_s: Some(i as f64), text: format!(": number {i}") }).collect();
        let events = if events > 0 { [("alloc-failure".to_string(), (events, kept))].into() } else { IndexMap::new() };
        Happened { label: label.into(), unfinished: None, killed: Vec::new(), events }
    }

    #[test]
    fn events_of_a_kind_are_one_finding() {
        let findings = over_cells(&[run("a #1", 5), run("a #2", 0), run("b #1", 2)]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].text, "7 events \"an allocation failed\" in 2 of 3 runs: a #1 5, b #1 2.");
        assert_eq!(findings[0].level, Level::Note);
        assert_eq!(findings[0].details.len(), 6);
        assert_eq!(findings[0].details[1], "a #1 at 1.00 s: number 1");
    }

    #[test]
    fn a_single_event_stands_for_itself_and_what_spoils_a_run_is_a_problem() {
        let findings = over_cells(&[run("a", 1)]);
        assert_eq!((findings[0].text.as_str(), findings[0].time_s), ("a: an allocation failed: number 0", Some(0.0)));
        let ended = |label: &str| Happened { unfinished: Some((2, 5)), ..run(label, 0) };
        let findings = over_cells(&[ended("a #1"), ended("a #2"), run("b", 0)]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Problem);
        assert!(findings[0].text.starts_with("In 2 runs: the run ended before its tasks did"), "{}", findings[0].text);
        assert!(over_cells(&[ended("a")])[0].text.starts_with("a: the run ended before its tasks did (2 of 5"));
    }
}
