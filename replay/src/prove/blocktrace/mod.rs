//! `prove blocktrace`: every decision of the elevator in the block event traces of real 2.4 kernels.
//!
//! The elevator code of the run's variant is driven with the recorded submissions (`Q`), plugs and unplugs (`P`, `U`),
//! completions (`C`) and sleeps (`S`), in the order of the file, and has to decide what the kernel decided.
//!
//! # Scores
//! - `insert position`: place in the list and the list's length before (`I`), and that it was an insertion;
//! - `back merge`, `front merge`: that the bio was merged, into which request (by its first sector), at which end;
//! - `coalesce`: which two requests became one (`X`), and that no other two did;
//! - `dispatched request`: the request that completes is the one that the elevator handed out, with its length;
//! - `plug`: the queue was plugged when and only when the model says so (`P`);
//! - `sleep for a slot`: a submitter sleeps when and only when all request slots of its direction are in use, where sleeps
//!   are logged.
//!
//! # Limits of the traces
//! 2.4.9 and 2.4.10 log no sleeps. There, a submission that takes longer than 300 us with a completion in between, while the
//! slots of its direction may be used up, is taken for one that slept (and therefore looked at the list twice). Some may be
//! taken wrongly, so the bar of such a run is 99.9 % instead of all.

pub(super) mod events;
mod play;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::scores::{Broken, RunScores, ScoreReport};
use super::traced::{self, Traced};
use crate::config::Config;
use events::Event;

const FILE: &str = "block_events.csv";

/// Compares every run below `dir` that has block events.
///
/// # Errors
/// `dir` can't be listed or has no such run.
pub fn run(dir: &Path, stop: &AtomicBool) -> Result<ScoreReport, String> {
    traced::run_all("blocktrace", dir, FILE, stop, compare)
}

fn compare(run: &Traced) -> Result<RunScores, String> {
    let text = traced::text(&run.folder, FILE)?;
    let events = events::parse(FILE, &text)?;
    let mut scores = play::play(run, &run.config, &events, true)?;
    scores.broken = broken(run, &events)?;
    Ok(scores)
}

/// The elevator's rules broken one at a time, where the trace puts them to the test.
fn broken(run: &Traced, events: &[Event]) -> Result<Vec<Broken>, String> {
    let sleeps = events.iter().filter(|e| e.slept || e.late).count();
    let inserts = events.iter().filter(|e| matches!(e.act, events::Act::Insert { .. })).count();
    // Queues of one or two requests, as a single reader makes them, decide nothing.
    let deep = |e: &&Event| matches!(e.act, events::Act::Insert { qlen, .. } if qlen >= 16);
    if events.iter().filter(deep).count() * 2 < inserts {
        return Ok(Vec::new());
    }
    let mut broken = Vec::new();
    let mut with = |rule: &str, config: &Config, rescans: bool| -> Result<(), String> {
        broken.extend(play::play(run, config, events, rescans)?.worst(rule));
        Ok(())
    };
    let mut patient = run.config.clone();
    (patient.elevator.read_latency, patient.elevator.write_latency) = (1 << 30, 1 << 30);
    with("patience without end", &patient, true)?;
    let mut unsorted = run.config.clone();
    "noop-2.4".clone_into(&mut unsorted.elevator.policy);
    with("no sorting", &unsorted, true)?;
    // Where few sleep, looking twice may change nothing.
    if sleeps * 40 > inserts {
        with("no second look after a sleep", &run.config, false)?;
    }
    Ok(broken)
}
