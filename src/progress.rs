//! Progress of a matrix run: bars on a terminal, a line every ten seconds otherwise, nothing when told so.

use crate::args::ProgressMode;
use crate::stderr;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kreplay_replay::matrix::{CellState, Plan, Progress};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how a plan gets on.
pub(crate) struct Watcher {
    names: Vec<String>,
    state: Mutex<State>,
    mode: Mode,
}

enum Mode {
    Bars { all: MultiProgress, total: ProgressBar },
    Lines,
    Silent,
}

struct State {
    running: BTreeMap<usize, ProgressBar>,
    ended: usize,
    failed: usize,
    last_line: Instant,
}

impl Watcher {
    pub(crate) fn new(plan: &Plan, mode: ProgressMode) -> Self {
        let names: Vec<String> =
            plan.cells()
                .iter()
                .map(|c| {
                    if plan.seeds.len() > 1 {
                        format!("{} #{}", c.variant.name, c.seed)
                    } else {
                        c.variant.name.clone()
                    }
                })
                .collect();
        let bars = match mode {
            ProgressMode::Auto => std::io::stderr().is_terminal(),
            ProgressMode::Bar => true,
            ProgressMode::Plain | ProgressMode::None => false,
        };
        let mode = if bars {
            let all = MultiProgress::new();
            let total = all.add(
                ProgressBar::new(names.len() as u64)
                    .with_style(style("{bar:30.cyan/blue} {pos}/{len} cells, {elapsed_precise}")),
            );
            Mode::Bars { all, total }
        } else if mode == ProgressMode::None {
            Mode::Silent
        } else {
            Mode::Lines
        };
        let state = State { running: BTreeMap::new(), ended: 0, failed: 0, last_line: Instant::now() };
        Self { names, state: Mutex::new(state), mode }
    }

    /// Takes news from any thread.
    pub(crate) fn tell(&self, progress: Progress<'_>) {
        // A poisoned lock means that another thread panicked while printing: the picture may be off, no more.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match progress {
            Progress::Started(cell) => self.started(&mut state, cell),
            Progress::At(cell, time) => {
                if let Some(bar) = state.running.get(&cell) {
                    bar.set_message(format!("{}: {} simulated", self.names[cell], minutes(time.0)));
                }
            }
            Progress::Ended(cell, outcome) => {
                state.ended += 1;
                state.failed += usize::from(outcome.state == CellState::Failed);
                if let Some(bar) = state.running.remove(&cell) {
                    bar.finish_and_clear();
                }
                if let Mode::Bars { total, .. } = &self.mode {
                    total.set_position(state.ended as u64);
                }
            }
        }
        self.line(&mut state);
    }

    fn started(&self, state: &mut State, cell: usize) {
        let bar = match &self.mode {
            Mode::Bars { all, .. } => {
                let bar = all.add(ProgressBar::new_spinner().with_style(style("  {spinner} {msg}")));
                bar.enable_steady_tick(Duration::from_millis(200));
                bar.set_message(self.names[cell].clone());
                bar
            }
            Mode::Lines | Mode::Silent => ProgressBar::hidden(),
        };
        state.running.insert(cell, bar);
    }

    fn line(&self, state: &mut State) {
        if matches!(self.mode, Mode::Lines) && state.last_line.elapsed() >= LINE_EVERY {
            state.last_line = Instant::now();
            stderr::say(&format!(
                "cells {}/{}, {} running, {} failed\n",
                state.ended,
                self.names.len(),
                state.running.len(),
                state.failed
            ));
        }
    }

    /// Takes the bars away.
    pub(crate) fn finish(&self) {
        if let Mode::Bars { all, total } = &self.mode {
            total.finish_and_clear();
            // A terminal that went away has no bars left to clear.
            let _ = all.clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn minutes(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    format!("{}:{:02}", s / 60, s % 60)
}
